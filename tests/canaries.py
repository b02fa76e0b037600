"""Secrets of every kind that is masked, none of them real: each holds `CANARY`, or begins with what must go."""

from __future__ import annotations

from typing import Final

CANARY: Final = "CNRYSECRET"
PRIVATE: Final = f"-----BEGIN PRIVATE KEY-----\n{CANARY}sMIIEvQ\n{CANARY}2\n-----END PRIVATE KEY-----"
SHAPED: Final = {
    "provider": f"sk-proj-{CANARY}s" + "A1b2" * 8,
    "provider, other": f"sk-ant-api03-{CANARY}" + "x9" * 12,
    "aws": f"AKIA{CANARY}S12345",
    "aws, for a session": f"ASIA{CANARY}S12345",
    "github": f"ghp_{CANARY}s" + "x" * 25,
    "github, fine": f"github_pat_{CANARY}_" + "x" * 25,
    "gitlab": f"glpat-{CANARY}" + "x" * 12,
    "slack": f"xoxb-123456-{CANARY}",
    "google": f"AIza{CANARY}" + "x" * 25,
    "hugging face": f"hf_{CANARY}" + "x" * 24,
    "jwt": f"eyJ{CANARY}.eyJzdWIiOiIx.{CANARY}",
    "bearer": f"Bearer {CANARY}12345678",
    "pem": PRIVATE,
    "url": f"postgres://admin:{CANARY}@db.example/main",
}
"""Known by how they look."""
NAMED: Final = {
    "api_key": f"{CANARY}-1",
    "apiKey": f"{CANARY}-2",
    "Authorization": f"Basic {CANARY}",
    "x-api-key": f"{CANARY}-3",
    "PASSWORD": f"{CANARY} four words",
    "db_password": f"{CANARY}-5",
    "client_secret": f"{CANARY}-6",
    "access_token": f"{CANARY}-7",
    "Set-Cookie": f"sid={CANARY}; Path=/",
    "private_key": f"{CANARY}-8",
    "credentials": f"{CANARY}-9",
    "connection_string": f"Server=db;Pwd={CANARY}",
}
"""Known by the name of their field."""
IN_TEXT: Final = (
    f"export OPENAI_API_KEY={CANARY}-77",
    f'the config says "db_password": "{CANARY} and more", fine',
    f"{{'client_secret': '{CANARY}'}}",
    f"curl -H 'Authorization: Basic {CANARY}' https://api.example",
    f"login --password {CANARY}1 --user root",
    f"API_TOKEN: {CANARY}12",
    f'{{"cmd": "export X_SECRET={CANARY}"}} and after it',
    f'{{\\"api_key\\": \\"{CANARY}\\"}}',
    f"Cookie: session={CANARY}; theme=dark\r\nHost: example",
)
"""Known by what stands before them in a text."""
CLEAN: Final = (
    "",
    "The quick brown fox reads a book of tokens.",
    "max_tokens=4096 input_tokens: 17 token_count=3",
    "def login(password: str, token: Token = get_token()) -> None:",
    "token: invalid",
    "sk-learn and task-sk-management-of-things",
    "see https://example.org:8080/path@v2 and mail@example.org",
    "the bearer of good news",
    "API_KEY=$API_KEY password=<your password>",
    '{"type": "object", "properties": {"api_key": {"type": "string", "description": "The key."}}}',
    "secretary, author, authority, keyboard, monkey=banana",
    "0690e0f0-6b1c-7d2e-8000-c0ffee000001",
)
"""Nothing to mask."""
