# ruff: noqa: E501
"""More secrets and look-alikes, as the output of common tools holds them: a check on rules that were tuned on others.

The texts were written without a look at what the rules make of them. `tests.secrets_corpus` says how a secret is
written.
"""

from __future__ import annotations

from typing import Final

from tests.secrets_corpus import sample

_SECRET_TEXTS: Final = {
    # ---- packages and builds
    "pip index": "Looking in indexes: https://ci:«mixed»@pypi.example.org/simple\nCollecting requests",
    "pip conf": "[global]\nindex-url = https://__token__:«pypi»@pypi.example.org/simple\n",
    "npm config list": "; userconfig from '/root/.npmrc'\n//npm.example.com/:_authToken = «github»\nalways-auth = true\n",
    "npm debug log": '12 verbose argv "publish" "--otp" "123456"\n13 http request auth Bearer «npm»\n',
    "yarn": 'npmRegistries:\n  "https://npm.example.org":\n    npmAuthToken: «mixed»\n',
    "cargo credentials": '[registry]\ntoken = "«mixed»"\n',
    "gradle": "signing.keyId=24875D73\nsigning.password=«letters»\nossrhPassword=«mixed»\n",
    "maven": "<server>\n  <id>central</id>\n  <username>ci</username>\n  <password>«symbols»</password>\n</server>",
    "docker history": "/bin/sh -c #(nop)  ENV APP_API_KEY=«mixed»",
    "docker inspect": '"Env": [\n  "PATH=/usr/bin",\n  "POSTGRES_PASSWORD=«mixed»"\n],',
    "docker config": '{"auths": {"https://images.example.com/v1/": {"auth": "«base64»"}}}',
    "build arg": "docker build --build-arg GITHUB_TOKEN=«github_fine» -t app .",
    # ---- version control
    "git push": "fatal: unable to access 'https://oauth2:«gitlab»@gitlab.example.org/a/b.git/': The requested URL returned error: 403",
    "git diff": "-  api_key: old\n+  api_key: «mixed»\n   region: eu\n",
    "git log patch": "commit 1c2d3e4\n    add deploy\n\n+DEPLOY_TOKEN=«dashes»\n",
    "gh auth status": "  ✓ Logged in to github.com account me\n  - Token: «github»\n",
    # ---- clusters and infrastructure
    "k8s secret env": '        env:\n        - name: DB_PASSWORD\n          value: "«mixed»"\n',
    "k8s describe": "    Environment:\n      REDIS_PASSWORD:  «mixed»\n      LOG_LEVEL:       info\n",
    "kubeconfig": "users:\n- name: admin\n  user:\n    token: «jwt»\n",
    "helm values": "helm upgrade app ./chart --set auth.password=«mixed» --wait",
    "terraform plan": '  + resource "aws_db_instance" "db" {\n      + password = "«mixed»"\n      + port     = 5432\n',
    "terraform state": '{"attributes": {"access_key": "«aws_id»", "secret_key": "«aws_secret»"}}',
    "terraform output": 'Outputs:\n\nadmin_password = "«symbols»"\n',
    "ansible": 'TASK [db : set password]\nchanged: [db1] => {"changed": true, "db_password": "«mixed»"}',
    "aws cli": '{\n    "AccessKey": {\n        "UserName": "ci",\n        "AccessKeyId": "«aws_id»",\n        "SecretAccessKey": "«aws_secret»"\n    }\n}',
    "aws configure": "AWS Access Key ID [None]: «aws_id»\nAWS Secret Access Key [None]: «aws_secret»\n",
    "az storage": "DefaultEndpointsProtocol=https;AccountName=logs;AccountKey=«azure_key»;EndpointSuffix=core.windows.net",
    "gcloud": "$ gcloud auth print-access-token\n«google_access»\n",
    "vault write": "Key              Value\n---              -----\ntoken            «vault»\ntoken_accessor   x\n",
    # ---- data bases
    "sql insert": "CREATE USER app WITH PASSWORD '«mixed»';",
    "sql dump": "ALTER ROLE app WITH LOGIN ENCRYPTED PASSWORD '«mixed»';",
    "mongo": "MongoServerError: bad auth, uri mongodb+srv://app:«mixed»@cluster0.example.net/shop?retryWrites=true",
    "redis monitor": "REDIS_URL=redis://:«mixed»@cache:6379/0",
    "sqlalchemy echo": "create_engine('postgresql+psycopg://app:«mixed»@db:5432/shop')",
    # ---- throttle and failures
    "curl trace": "> GET /v1/me HTTP/2\n> Host: api.example.org\n> authorization: Bearer «mixed»\n> accept: */*\n",
    "curl response": "< HTTP/2 200\n< set-cookie: session=«mixed»; Path=/; HttpOnly\n",
    "httpx debug": "DEBUG httpx headers={'x-api-key': '«anthropic»', 'accept': 'application/json'}",
    "python traceback": '    client = OpenAI(api_key="«openai_project»")\nopenai.AuthenticationError: Error code: 401',
    "openai error": "Error code: 401 - {'error': {'message': 'Incorrect API key provided: «openai».', 'code': 'invalid_api_key'}}",
    "node dump": "config: { clientId: 'a', clientSecret: '«mixed»', scopes: [ 'read' ] }",
    "php dump": '  ["db_password"]=>\n  string(14) "«mixed»"\n',
    "oauth reply": '{"access_token":"«mixed»","token_type":"Bearer","expires_in":3600,"refresh_token":"«dashes»"}',
}

_SHA1: Final = "7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1f"
_LOOKALIKE_TEXTS: Final = {
    # ---- packages and builds
    "pip install": "Requirement already satisfied: tokenizers<0.22,>=0.21 in ./venv/lib/python3.12/site-packages (0.21.1)\nSuccessfully installed PyJWT-2.10.1 keyring-25.6.0 secretstorage-3.3.3",
    "npm install": "added 312 packages, and audited 313 packages in 9s\n\n47 packages are looking for funding\nnpm notice New major version of npm available! 10.8.2 -> 11.1.0",
    "npm warnings": "npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory. npm_config_cache=/root/.npm npm_package_name=app",
    "cargo build": "   Compiling tokio-rustls v0.26.1\n   Compiling secrecy v0.10.3\n   Compiling jsonwebtoken v9.3.0\n    Finished `dev` profile [unoptimized + debuginfo] target(s) in 12.41s",
    "yarn lock": "\"@babel/core@^7.26.0\":\n  version \"7.26.0\"\n  resolved \"https://npm.example.com/@babel/core/-/core-7.26.0.tgz#d78b6023cc8f3114ccf049eb219613f74a747b40\"\n  integrity sha512-i1SLeK+DzNnQ3LL/CswPCa/E5u4lh1k6IAEphON8F+cXt0t9euTshDru0q7/IqMa1PMPz5RnHuHscF8/ZJsStg==",
    "uv lock": "{ url = \"https://files.example.com/packages/ab/f6/tiktoken-0.9.0-cp312-cp312-manylinux_2_17_x86_64.whl\", hash = \"sha256:2130127471e293d385179c1f3f9cd445070c0772be73cdafb7cec9a3684c0458\", size = 1194987 }",
    "pnpm lock": "  /js-tokens@4.0.0:\n    resolution: {integrity: sha512-RdJUflcE3cUzKiMqQgsCu06FPu9UdIJO0beYbPhHN4k6apgJtifcoCtT9bcxOpYBtpD2kCM6Sbzg4CausW/PKQ==}\n",
    "docker build": "#7 [3/5] RUN pip install -r requirements.txt\n#7 sha256:4f4fb700ef54461cfa02571ae0db9a0dc1e0cdb5577484a6d75e68dc38e8acc1 0B / 32B\n#7 DONE 4.2s",
    "docker ps": "CONTAINER ID   IMAGE            COMMAND                  PORTS\n3f4e8a1b2c3d   vault:1.15       \"docker-entrypoint.s…\"   0.0.0.0:8200->8200/tcp",
    "pytest": "tests/test_auth.py::TestToken::test_secret_key_is_rotated[api_key-None] PASSED\ntests/test_login.py::test_password_reset FAILED",
    "coverage": "src/auth/token.py          120     12    90%   33-41, 77\nsrc/auth/password.py        80      0   100%",
    "mypy": "src/auth.py:31: error: Argument \"password\" to \"login\" has incompatible type \"str | None\"; expected \"str\"  [arg-type]",
    "ruff": "app.py:12:5: S105 Possible hardcoded password assigned to: \"token\"\napp.py:40:9: S106 Possible hardcoded password assigned to argument: \"password\"",
    "webpack": "asset main.3c1f09a8d2b4.js 1.2 MiB [emitted] [immutable] [minimized] (name: main)\n  cacheable modules 531 KiB",
    # ---- version control
    "git log graph": f"* {_SHA1[:9]} (HEAD -> main, tag: v1.2.0) Rotate the signing key: use KMS\n* 1a2b3c4d5 Password: allow 128 characters",
    "git blame": f"^{_SHA1[:8]} (Jane Doe 2024-03-01 10:00:00 +0100 12)     token = request.headers.get(\"X-Token\")",
    "git status": "\tmodified:   src/secrets/manager.py\n\tnew file:   docs/api-key-rotation.md\n\tdeleted:    tests/fixtures/token.json",
    "git ls-tree": f"100644 blob {_SHA1}\tsrc/password_policy.ts",
    "git remote": "origin\tgit@github.com:org/token-service.git (fetch)\norigin\thttps://github.com/org/token-service.git (push)",
    # ---- clusters and infrastructure
    "k8s secret ref": "        - name: DB_PASSWORD\n          valueFrom:\n            secretKeyRef:\n              name: db-credentials\n              key: password\n",
    "k8s volume": "volumes:\n- name: credentials\n  secret:\n    secretName: db-credentials\n    defaultMode: 420\n",
    "kubectl secrets": "NAME                  TYPE                                  DATA   AGE\ndefault-token-x7k2p   kubernetes.io/service-account-token   3      41d\ndb-credentials        Opaque                                2      12d",
    "k8s role": "rules:\n- apiGroups: [\"\"]\n  resources: [\"secrets\", \"serviceaccounts/token\"]\n  verbs: [\"get\", \"create\"]\n",
    "terraform sensitive": "  + password             = (sensitive value)\n  + secret_string        = (known after apply)\n  ~ auth_token           = (sensitive value)",
    "terraform variable": "variable \"db_password\" {\n  type      = string\n  sensitive = true\n}\n\noutput \"token\" { value = module.auth.token }",
    "cloudformation": "MasterUserPassword: !Sub '{{resolve:secretsmanager:${DbSecret}:SecretString:password}}'",
    "github workflow": "permissions:\n  id-token: write\n  contents: read\nwith:\n  github-token: ${{ github.token }}\n",
    # ---- data bases
    "sql migration": "ALTER TABLE users ADD COLUMN reset_token varchar(64), ADD COLUMN api_key_id uuid REFERENCES api_keys(id);",
    "sql index": "CREATE UNIQUE INDEX ix_sessions_token ON sessions USING btree (token) WHERE revoked_at IS NULL;",
    "sql explain": "Index Scan using ix_api_key on keys  (cost=0.29..8.31 rows=1 width=84)\n  Index Cond: (key_hash = $1)",
    "mongo schema": "{ email: { type: String, required: true }, password: { type: String, select: false }, token: String }",
    # ---- throttle and failures
    "http request": "> GET /oauth/token?grant_type=client_credentials HTTP/1.1\n> Accept: */*\n< HTTP/1.1 401 Unauthorized\n< WWW-Authenticate: Bearer realm=\"api\", error=\"invalid_token\"",
    "cors": "access-control-allow-headers: Authorization, X-Api-Key, Content-Type\nvary: Cookie, Authorization\n",
    "python traceback": "  File \"/app/auth.py\", line 31, in login\n    raise InvalidToken(\"token has no key id\")\nauth.InvalidToken: token has no key id",
    "key error": "KeyError: 'api_key'\npydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\nsecret_key\n  Field required [type=missing, input_value={}, input_type=dict]",
    "java trace": "java.lang.IllegalArgumentException: secret key byte array cannot be null or empty.\n\tat io.jsonwebtoken.impl.DefaultJwtBuilder.signWith(DefaultJwtBuilder.java:103)",
    "rust panic": "thread 'main' panicked at src/lexer.rs:88:14:\nunexpected token: RightParen, expected token: Comma",
    "js error": "SyntaxError: Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON\n    at JSON.parse (<anonymous>)",
    # ---- models and tokenizers
    "tokenizer config": "{\"bos_token\": \"<|begin_of_text|>\", \"eos_token\": \"<|eot_id|>\", \"pad_token\": \"<|finetune_right_pad_id|>\", \"add_bos_token\": false, \"tokenizer_class\": \"PreTrainedTokenizerFast\"}",
    "tokenizer vocabulary": "{\"Ġpassword\": 7643, \"Ġtoken\": 6924, \"Ġsecret\": 6767, \"Ġkey\": 1401, \"auth\": 3942, \"##token\": 18715}",
    "merges": "Ġto ken\nĠpass word\nse cret\nĠ key\nau th\n",
    "model config": "{\"hidden_act\": \"silu\", \"num_key_value_heads\": 8, \"image_token_index\": 32000, \"key_proj\": \"linear\", \"vocab_size\": 128256, \"bos_token_id\": 128000}",
    "state dict": "model.layers.0.self_attn.k_proj.weight torch.Size([1024, 4096]) key_mapping={'query_key_value': 'qkv'}",
    "attention math": "softmax(Q K^T / sqrt(d_k)) V where key: R^{n x d}, token: one-hot x_i in {0,1}^V",
    "loss log": "step=1200 loss=2.31 lr=3.0e-04 tokens_per_second=18423 token_accuracy=0.6127 tok/s=18423",
    # ---- the web
    "css": ".sk-circle-fade-dot:before{content:''} .password-toggle__icon--visible{color:#1a2b3c} [data-token]{--token-color-primary:#ff0000;--sk-size:40px}",
    "js minified": "var e=n(42),t=e.token,r=t?\"Bearer \"+t:null;function o(e){return e.key===\"Enter\"&&!e.isComposing}const s={password:e.target.value,key:i++}",
    "jsx": "<Input type=\"password\" value={password} onChange={e => setPassword(e.target.value)} autoComplete=\"current-password\" />",
    "html form": "<form action=\"/login\"><input name=\"password\" placeholder=\"Password\"><a href=\"/forgot-password\">Forgot password?</a></form>",
    "i18n": "{\"login.password.label\": \"Password\", \"login.token.help\": \"Enter the code from your app\", \"errors.apiKey\": \"Invalid API key\"}",
    "graphql": "type Query { token(id: ID!): Token  apiKeys(first: Int): [ApiKey!]! }\nmutation { createToken(input: {name: \"ci\"}) { token { id } } }",
    "protobuf": "message LoginRequest {\n  string username = 1;\n  string password = 2;\n  bytes token = 3;\n}",
    "man page": "       --password[=password], -p[password]\n              The password of the MySQL account used for connecting to the server.",
    "usage text": "  --token TOKEN         access token (default: $GITHUB_TOKEN)\n  --api-key KEY         the key to use\n  --password-stdin      read the password from stdin",
    "sshd config": "PasswordAuthentication no\nAuthorizedKeysFile .ssh/authorized_keys\nPermitEmptyPasswords no\nHostKey /etc/ssh/ssh_host_ed25519_key\n",
}  # fmt: skip

SECRETS: Final = tuple(sample(name, text) for name, text in _SECRET_TEXTS.items())
LOOKALIKES: Final = tuple(sample(name, text) for name, text in _LOOKALIKE_TEXTS.items())
