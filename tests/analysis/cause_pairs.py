# ruff: noqa: E501 -- messages are written as they are printed
"""Pairs of failures: `SAME_CAUSE` have the same cause, `DIFFERENT_CAUSES` have two. Texts are those that the libraries print.

A failure is its text, or (type, text) where the trace records the type apart.
"""

from __future__ import annotations

from typing import Final

Failure = str | tuple[str, str]

_REFUSED = "<urllib3.connection.HTTPConnection object at 0x{:x}>: Failed to establish a new connection: [Errno 111] Connection refused"
_MDN = "For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/{}"
_QUOTA = (
    "Error code: 429 - {'error': {'message': 'You exceeded your current quota, please check your plan and billing "
    "details.', 'type': 'insufficient_quota', 'param': None, 'code': 'insufficient_quota'}}"
)


def _pool(host: str, port: int, url: str, cause: str) -> str:
    return f"HTTPConnectionPool(host='{host}', port={port}): Max retries exceeded with url: {url} (Caused by {cause})"


def _openai(status: int, message: str, kind: str, code: str | None, param: str | None = None) -> str:
    error = {"message": message, "type": kind, "param": param, "code": code}
    return f"Error code: {status} - {{'error': {error!r}}}"


def _openai_limit(used: int, wait: str, org: str) -> str:
    message = (
        f"Rate limit reached for gpt-4o in organization {org} on tokens per min (TPM): Limit 30000, Used {used}, "
        f"Requested 1200. Please try again in {wait}. Visit https://platform.openai.com/account/rate-limits to learn more."
    )
    return _openai(429, message, "tokens", "rate_limit_exceeded")


def _anthropic(status: int, kind: str, message: str, request: str) -> str:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": request}
    return f"Error code: {status} - {body!r}"


def _python(*frames: tuple[str, int, str], last: str) -> str:
    frame_lines = "".join(f'  File "{path}", line {line}, in {name}\n    run()\n' for path, line, name in frames)
    return f"Traceback (most recent call last):\n{frame_lines}{last}"


def _node(first: str, root: str, line: int, name: str = "render") -> str:
    inside = "    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"
    return f"{first}\n    at {name} ({root}/src/list.js:{line}:15)\n{inside}"


def _panic(where: str, text: str, thread: str = "'main'") -> str:
    note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"
    return f"thread {thread} panicked at {where}:\n{text}\n{note}"


def _unique(constraint: str, value: str, parameters: str) -> str:
    return (
        f'(psycopg2.errors.UniqueViolation) duplicate key value violates unique constraint "{constraint}"\n'
        f"DETAIL:  Key (email)=({value}) already exists.\n\n[SQL: INSERT INTO users (email) VALUES (%(email)s)]\n"
        f"[parameters: {parameters}]\n(Background on this error at: https://sqlalche.me/e/20/gkpj)"
    )


def _pydantic(field: str, kind: str, value: str) -> str:
    return (
        f"1 validation error for Order\n{field}\n  Input should be valid [type={kind}, input_value={value}, "
        f"input_type=str]\n    For further information visit https://errors.pydantic.dev/2.9/v/{kind}"
    )


def _aws(code: str, operation: str, message: str) -> str:
    return f"An error occurred ({code}) when calling the {operation} operation: {message}"


_LONG = "This model's maximum context length is 128000 tokens. However, your messages resulted in {} tokens."
_EXPIRED = "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {} (_ssl.c:{})'))"
_OUT_OF_BOUNDS = "index out of bounds: the len is {} but the index is {}"
_NOT_FOUND = "Client error '404 Not Found' for url '{}'\n" + _MDN.format(404)
_KEY = "Incorrect API key provided: {}. You can find your API key at https://platform.openai.com/account/api-keys."

SAME_CAUSE: Final[list[tuple[Failure, Failure]]] = [
    # requests, urllib3
    (
        _pool("localhost", 8000, "/v1/x?id=1", f"NewConnectionError('{_REFUSED.format(0x7F9A1C2B3D40)}')"),
        _pool("127.0.0.1", 8000, "/v1/y", f"NewConnectionError('{_REFUSED.format(0x7F0A11112222)}')"),
    ),
    (
        "HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=10)",
        "HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=30.5)",
    ),
    (
        "404 Client Error: Not Found for url: https://api.example.com/items/1",
        "404 Client Error: Not Found for url: https://api.example.com/items/77?page=2",
    ),
    (
        ("HTTPError", "503 Server Error: Service Unavailable for url: https://a.example/x"),
        "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://a.example/y",
    ),
    (
        (
            "ConnectionError",
            "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
        ),
        "requests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection "
        "without response'))",
    ),
    (
        _pool("a.example", 443, "/a", _EXPIRED.format("certificate has expired", 1006)),
        _pool("a.example", 443, "/b/c", _EXPIRED.format("certificate has expired", 1129)),
    ),
    (
        ("JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
        "json.decoder.JSONDecodeError: Expecting value: line 3 column 14 (char 77)",
    ),
    # httpx
    (_NOT_FOUND.format("https://api.example.com/u/1"), _NOT_FOUND.format("https://api.example.com/u/2")),
    (("ConnectError", "[Errno -2] Name or service not known"), "ConnectError('[Errno -2] Name or service not known')"),
    (("ReadTimeout", "The read operation timed out"), "httpx.ReadTimeout('The read operation timed out')"),
    (
        "RemoteProtocolError('Server disconnected without sending a response.')",
        ("httpx.RemoteProtocolError", "Server disconnected without sending a response."),
    ),
    # timeouts of several libraries
    (
        ("ReadTimeout", "HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=10)"),
        ("httpx.ReadTimeout", "The read operation timed out"),
    ),
    (("openai.APITimeoutError", "Request timed out."), ("asyncio.TimeoutError", "")),
    (("TimeoutError", ""), ("TimeoutError", "timed out")),
    ("MCP error -32001: Request timed out", ("APITimeoutError", "Request timed out.")),
    (
        "connect ETIMEDOUT 10.0.0.1:443",
        'Post "https://a.example/v1": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    ),
    # refused connections of several libraries
    (
        'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused\n\tIs the server running '
        "on that host and accepting TCP/IP connections?",
        "connect ECONNREFUSED 127.0.0.1:5432",
    ),
    (
        "dial tcp 127.0.0.1:6379: connect: connection refused",
        ("redis.exceptions.ConnectionError", "Error 111 connecting to localhost:6379. Connection refused."),
    ),
    (
        "Cannot connect to host localhost:8080 ssl:default [Connect call failed ('127.0.0.1', 8080)]",
        _pool("localhost", 8080, "/", f"NewConnectionError('{_REFUSED.format(0x7FAA)}')"),
    ),
    (
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp '
        '10.1.2.3:50051: connect: connection refused"',
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp '
        '10.9.8.7:50051: connect: connection refused"',
    ),
    (
        ("ConnectionRefusedError", "[Errno 111] Connection refused"),
        ("ConnectionRefusedError", "[Errno 61] Connection refused"),
    ),
    # rate limits of several libraries
    (
        ("RateLimitError", _openai_limit(29500, "1.4s", "org-AbC123dEf456")),
        ("RateLimitError", _openai_limit(29999, "230ms", "org-Zz9y8X7w6v5u")),
    ),
    (
        _anthropic(
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
            "req_011CRabcDEF123456",
        ),
        ("openai.RateLimitError", _openai_limit(1, "2s", "org-1")),
    ),
    (
        _aws("ThrottlingException", "Converse", "Too many requests, please wait before trying again."),
        "429 Client Error: Too Many Requests for url: https://api.example.com/v1/x",
    ),
    # a context that is too long
    ((("BadRequestError", _LONG.format(130512))), "prompt is too long: 210345 tokens > 200000 maximum"),
    (
        _openai(400, _LONG.format(140001), "invalid_request_error", "context_length_exceeded", "messages"),
        "the request exceeds the available context size. try increasing the context size or enable context shift",
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        _aws("ValidationException", "Converse", "Input is too long for requested model."),
    ),
    # memory
    (("MemoryError", ""), "[Errno 12] Cannot allocate memory"),
    (
        (
            "numpy.core._exceptions._ArrayMemoryError",
            "Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64",
        ),
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 14.9 GiB for an array with shape (2000000000,) "
        "and data type float64",
    ),
    (
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory",
    ),
    (
        (
            "torch.cuda.OutOfMemoryError",
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23 GiB.",
        ),
        ("RuntimeError", "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacity of 47 GiB."),
    ),
    # openai, anthropic
    (
        _openai(401, _KEY.format("sk-abc1****xyz9"), "invalid_request_error", "invalid_api_key"),
        _openai(401, _KEY.format("sk-proj-****QrSt"), "invalid_request_error", "invalid_api_key"),
    ),
    (
        _anthropic(529, "overloaded_error", "Overloaded", "req_1"),
        _anthropic(529, "overloaded_error", "Overloaded", "req_011Cx2"),
    ),
    (
        _anthropic(529, "overloaded_error", "Overloaded", "req_011CRabcDEF123456"),
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_2"}',
    ),
    (
        "The server had an error while processing your request. Please include the request ID req_8f3a2c1db7 in your message.",
        "The server had an error while processing your request. Please include the request ID req_11aa22bb33 in your message.",
    ),
    (("APIConnectionError", "Connection error."), "openai.APIConnectionError('Connection error.')"),
    # a repr, as Inspect records errors
    ("RuntimeError('index not built')", "RuntimeError: index not built"),
    ('RuntimeError("Sandbox died after 12s")', "RuntimeError('Sandbox died after 30.5s')"),
    ("Tool search raised ValueError('bad row 3')", 'Tool search raised ValueError("bad row 9")'),
    ("KeyError('user_id')", ("KeyError", "'user_id'")),
    (
        "RuntimeError('Error calling model: HTTP 502 from http://10.0.0.1')",
        ("RuntimeError", "Error calling model: HTTP 502 from http://10.9.8.7"),
    ),
    # botocore
    (
        _aws(
            "AccessDeniedException",
            "InvokeModel",
            "User: arn:aws:sts::123456789012:assumed-role/ci/i-0abc is not authorized to perform: bedrock:InvokeModel",
        ),
        _aws(
            "AccessDeniedException",
            "InvokeModel",
            "User: arn:aws:sts::998877665544:assumed-role/dev/i-0def is not authorized to perform: bedrock:InvokeModel",
        ),
    ),
    (
        ("ClientError", _aws("NoSuchKey", "GetObject", "The specified key does not exist.")),
        "botocore.exceptions.ClientError: " + _aws("NoSuchKey", "GetObject", "The specified key does not exist."),
    ),
    (
        'Could not connect to the endpoint URL: "https://s3.eu-west-1.amazonaws.com/b/k"',
        'Could not connect to the endpoint URL: "https://s3.eu-west-1.amazonaws.com/c"',
    ),
    # sqlalchemy, databases
    (
        _unique("users_email_key", "a@example.com", "{'email': 'a@example.com'}"),
        _unique("users_email_key", "bob@b.example", "{'email': 'bob@b.example'}"),
    ),
    (
        "(sqlite3.OperationalError) database is locked\n[SQL: INSERT INTO a VALUES (?)]\n[parameters: (1,)]",
        "(sqlite3.OperationalError) database is locked\n[SQL: UPDATE a SET b=?]\n[parameters: ('x y', 2)]",
    ),
    (
        "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00",
        "QueuePool limit of size 20 overflow 0 reached, connection timed out, timeout 5.00",
    ),
    (
        'relation "users" does not exist\nLINE 1: SELECT * FROM users\n                      ^',
        'relation "users" does not exist\nLINE 7: SELECT id FROM users WHERE x\n              ^',
    ),
    (
        "(1062, \"Duplicate entry '17' for key 'orders.PRIMARY'\")",
        "(1062, \"Duplicate entry '9001' for key 'orders.PRIMARY'\")",
    ),
    # asyncio
    (
        "Task was destroyed but it is pending! task: <Task pending name='Task-12' coro=<main() running at /app/m.py:10>>",
        "Task was destroyed but it is pending! task: <Task pending name='Task-9' coro=<main() running at /srv/m.py:31>>",
    ),
    (("RuntimeError", "Event loop is closed"), "RuntimeError('Event loop is closed')"),
    ("unhandled errors in a TaskGroup (2 sub-exceptions)", "unhandled errors in a TaskGroup (3 sub-exceptions)"),
    # subprocess, the system
    (
        "Command '['python', '/tmp/tmpab12cd34/run.py']' returned non-zero exit status 1.",
        "Command '['python', '/tmp/tmpzz98yy76/run.py']' returned non-zero exit status 1.",
    ),
    (
        ("subprocess.TimeoutExpired", "Command '['make', 'test']' timed out after 60 seconds"),
        ("subprocess.TimeoutExpired", "Command '['make', 'test']' timed out after 90.0 seconds"),
    ),
    (
        "[Errno 2] No such file or directory: '/tmp/tmpx1y2z3/out.json'",
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/var/folders/zz/out.json'"),
    ),
    ("bash: line 3: jq: command not found", "bash: line 12: jq: command not found"),
    # pytest
    ("1 failed, 2 passed in 0.12s", "7 failed, 45 passed in 3.40s"),
    ("===== 3 failed, 120 passed, 2 skipped in 12.34s =====", "===== 1 failed, 122 passed, 2 skipped in 11.90s ====="),
    (
        "FAILED tests/test_api.py::test_count - AssertionError: assert 3 == 4",
        "FAILED tests/test_api.py::test_count - AssertionError: assert 9 == 4",
    ),
    # Node
    (
        "ENOENT: no such file or directory, open '/home/ci/work/1234/package.json'",
        "ENOENT: no such file or directory, open '/home/ci/work/998/package.json'",
    ),
    (
        _node("TypeError: Cannot read properties of undefined (reading 'map')", "/app", 10),
        _node("TypeError: Cannot read properties of undefined (reading 'map')", "/home/me/app", 31),
    ),
    ("AxiosError: Request failed with status code 502", ("AxiosError", "Request failed with status code 502")),
    ("Unexpected token < in JSON at position 0", "Unexpected token < in JSON at position 41"),
    (
        "npm error code ELIFECYCLE\nnpm error errno 1\nnpm error A complete log of this run can be found in: "
        "/root/.npm/_logs/2026-01-02T03_04_05_678Z-debug-0.log",
        "npm error code ELIFECYCLE\nnpm error errno 1\nnpm error A complete log of this run can be found in: "
        "/root/.npm/_logs/2026-02-11T13_14_15_111Z-debug-0.log",
    ),
    # Rust
    (_panic("src/main.rs:14:10", _OUT_OF_BOUNDS.format(3, 5)), _panic("src/main.rs:16:8", _OUT_OF_BOUNDS.format(8, 9))),
    (
        _panic("src/main.rs:14:10", _OUT_OF_BOUNDS.format(3, 5)),
        f"thread 'main' panicked at '{_OUT_OF_BOUNDS.format(3, 5)}', src/main.rs:14:10",
    ),
    (_panic("src/a.rs:1:2", "boom"), _panic("src/a.rs:1:2", "boom", "'main' (48213)")),
    (
        "error[E0382]: borrow of moved value: `x`\n --> src/lib.rs:10:5",
        "error[E0382]: borrow of moved value: `x`\n --> src/lib.rs:22:9",
    ),
    # JSON interfaces
    (
        '{"error":{"message":"Upstream is down","code":502}}',
        '{"error": {"message": "Upstream is down", "code": 502, "request_id": "5f1c8a5e"}}',
    ),
    ('{"detail":"Not authenticated"}', "Not authenticated"),
    (
        '{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}',
        '{"message":"Bad credentials","documentation_url":"https://docs.github.com/en/v3","status":"401"}',
    ),
    (
        '{"errors":[{"message":"Field \'x\' doesn\'t exist on type \'Query\'","locations":[{"line":2,"column":3}]}]}',
        '{"errors":[{"message":"Field \'x\' doesn\'t exist on type \'Query\'","locations":[{"line":9,"column":5}]}]}',
    ),
    (
        '{"type":"https://e.example/v","title":"Your parameters did not validate.","status":400,"instance":"/a/1"}',
        '{"type":"https://e.example/v","title":"Your parameters did not validate.","status":400,"instance":"/a/2"}',
    ),
    ('{"error": "{\\"message\\": \\"upstream is down\\"}"}', "upstream is down"),
    # pydantic, tracebacks
    (_pydantic("total", "int_parsing", "'12a'"), _pydantic("total", "int_parsing", "'seven of nine'")),
    (
        _python(("/app/agent.py", 10, "main"), ("/app/tools.py", 20, "load"), last="ValueError: row 3 is empty"),
        _python(("/srv/x/agent.py", 12, "main"), ("/srv/x/tools.py", 25, "load"), last="ValueError: row 19 is empty"),
    ),
    (
        _python(
            ("/app/tools.py", 20, "load"),
            ("/usr/lib/python3.11/json/decoder.py", 355, "raw_decode"),
            last="json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ),
        _python(
            ("/app/tools.py", 21, "load"),
            ("/venv/lib/python3.12/site-packages/simplejson/decoder.py", 1, "decode"),
            last="json.decoder.JSONDecodeError: Expecting value: line 2 column 5 (char 9)",
        ),
    ),
    (
        _python(("/app/a.py", 1, "f"), last="KeyError: 'a'")
        + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + _python(("/app/b.py", 2, "g"), last="RuntimeError: no plan"),
        _python(("/app/b.py", 9, "g"), last="RuntimeError: no plan"),
    ),
    # ids of all kinds
    ("run 6f1c8a5e-0000-4000-8000-000000000001 is gone", "run 12345678 is gone"),
    (
        "no answer for call_AbCdEfGhIjKlMnOpQr at 2026-03-02T08:00:00.1Z",
        "no answer for req_011CRx9 at 2026-03-03 09:00:01",
    ),
    ("could not convert string to float: 'abc'", "could not convert string to float: 'n a'"),
    ("Step limit exceeded: 9 > 8", "Step limit exceeded: 12 > 10"),
]

DIFFERENT_CAUSES: Final[list[tuple[Failure, Failure]]] = [
    # HTTP status codes
    ("HTTP 401: Unauthorized", "HTTP 404: Not Found"),
    ("HTTP 404", "HTTP 500"),
    ("HTTP/1.1 502", "HTTP/1.1 503"),
    ("Request failed with status code 400", "Request failed with status code 422"),
    (
        "404 Client Error: Not Found for url: https://a.example/x",
        "403 Client Error: Forbidden for url: https://a.example/x",
    ),
    ("503 Service Unavailable", "504 Gateway Timeout"),
    ("Forbidden (403)", "Forbidden (404)"),
    ("(401) Unauthorized", "(403) Unauthorized"),
    (
        _NOT_FOUND.format("https://a.example"),
        _NOT_FOUND.replace("404 Not Found", "410 Gone").format("https://a.example"),
    ),
    ("unexpected status 502 from upstream", "unexpected status 403 from upstream"),
    ("server returned 500", "server returned 503"),
    ("RuntimeError('gateway said 502 Bad Gateway')", "RuntimeError('gateway said 500 Internal Server Error')"),
    ('{"error":{"message":"denied","code":401}}', '{"error":{"message":"denied","code":403}}'),
    ('{"message":"no","status":"401"}', '{"message":"no","status":"404"}'),
    (
        _openai(400, "Bad request", "invalid_request_error", None),
        _openai(409, "Bad request", "invalid_request_error", None),
    ),
    ("504 Gateway Timeout", ("ReadTimeout", "The read operation timed out")),
    # exit codes, signals, errno
    ("Command '['make']' returned non-zero exit status 1.", "Command '['make']' returned non-zero exit status 2."),
    ("process exited with code 127", "process exited with code 137"),
    (("exit 1", "make: *** [all] Error"), ("exit 2", "make: *** [all] Error")),
    ("died with <Signals.SIGKILL: 9>.", "died with <Signals.SIGSEGV: 11>."),
    ("killed by signal 9", "killed by signal 11"),
    ("[Errno 2] open", "[Errno 13] open"),
    ("failed (os error 2)", "failed (os error 13)"),
    ("[Errno 2] No such file or directory: '/a/b'", "[Errno 13] Permission denied: '/a/b'"),
    ("ENOENT: open '/a/b'", "EACCES: open '/a/b'"),
    ("read ECONNRESET", "read EPIPE"),
    # names of modules, keys, fields and attributes
    ("No module named 'pandas'", "No module named 'numpy'"),
    (("ModuleNotFoundError", "No module named 'a.b'"), ("ModuleNotFoundError", "No module named 'a.c'")),
    ("Cannot find module 'express'", "Cannot find module 'react'"),
    ("KeyError: 'a'", "KeyError: 'b'"),
    ("KeyError('a')", "KeyError('b')"),
    (("KeyError", "'user name'"), ("KeyError", "'user id'")),
    ("'NoneType' object has no attribute 'get'", "'NoneType' object has no attribute 'items'"),
    ("'dict' object has no attribute 'x'", "'list' object has no attribute 'x'"),
    ("name 'client' is not defined", "name 'session' is not defined"),
    ("f() got an unexpected keyword argument 'timeout'", "f() got an unexpected keyword argument 'retries'"),
    ("f() missing 1 required positional argument: 'a'", "f() missing 1 required positional argument: 'b'"),
    ("cannot import name 'A' from 'm'", "cannot import name 'B' from 'm'"),
    ("Cannot read properties of undefined (reading 'map')", "Cannot read properties of undefined (reading 'length')"),
    ("Missing required parameter: 'messages'.", "Missing required parameter: 'model'."),
    (
        "The api_key option must be set, or the environment variable OPENAI_API_KEY",
        "The api_key option must be set, or the environment variable ANTHROPIC_API_KEY",
    ),
    (_pydantic("total", "int_parsing", "'a'"), _pydantic("amount", "int_parsing", "'a'")),
    (_pydantic("total", "int_parsing", "'a'"), _pydantic("total", "missing", "'a'")),
    ("Field 'x' doesn't exist on type 'Query'", "Field 'y' doesn't exist on type 'Query'"),
    ("bash: jq: command not found", "bash: rg: command not found"),
    # databases
    ("ERROR: SQLSTATE[23505]: violation", "ERROR: SQLSTATE[23503]: violation"),
    ("SQLSTATE: 42P01", "SQLSTATE: 42703"),
    ('(1062, "Duplicate")', '(1452, "Duplicate")'),
    ("ORA-00942: no", "ORA-00001: no"),
    (_unique("users_email_key", "a@b.example", "{}"), _unique("users_phone_key", "a@b.example", "{}")),
    ('relation "users" does not exist\nLINE 1: x', 'relation "orders" does not exist\nLINE 1: x'),
    ("(sqlite3.OperationalError) no such table: a", "(sqlite3.OperationalError) no such table: b"),
    (
        _pool("a.example", 443, "/a", _EXPIRED.format("certificate has expired", 1006)),
        _pool("b.example", 443, "/a", _EXPIRED.format("certificate has expired", 1006)),
    ),
    # ports of refused connections, equivalents that are none
    ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 127.0.0.1:6379"),
    ("dial tcp [::1]:80: connect: connection refused", "dial tcp [::1]:8080: connect: connection refused"),
    (("ConnectionError", "connection refused"), ("ConnectionError", "connection reset by peer")),
    ("connect ECONNREFUSED 127.0.0.1:5432", "connect ETIMEDOUT 127.0.0.1:5432"),
    (("RateLimitError", _openai_limit(1, "2s", "org-1")), ("RateLimitError", _QUOTA)),
    (
        ("RateLimitError", _openai_limit(1, "2s", "org-1")),
        ("APIStatusError", _anthropic(529, "overloaded_error", "Overloaded", "r")),
    ),
    (
        "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00",
        ("TimeoutError", "timed out"),
    ),
    (("MemoryError", ""), ("torch.cuda.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.")),
    ("prompt is too long: 210345 tokens > 200000 maximum", "max_tokens: 210345 > 200000, which is the maximum"),
    ("timeout must be a positive number", ("TimeoutError", "timed out")),
    # codes of services and compilers
    (_aws("AccessDenied", "GetObject", "Denied"), _aws("NoSuchKey", "GetObject", "Denied")),
    (_aws("AccessDenied", "GetObject", "Denied"), _aws("AccessDenied", "PutObject", "Denied")),
    (
        _openai(400, "Bad", "invalid_request_error", "invalid_api_key"),
        _openai(400, "Bad", "invalid_request_error", "model_not_found"),
    ),
    (
        _anthropic(500, "api_error", "Internal server error", "r"),
        _anthropic(500, "overloaded_error", "Internal server error", "r"),
    ),
    ("rpc error: code = NotFound desc = x", "rpc error: code = Unavailable desc = x"),
    ("MCP error -32601: failed", "MCP error -32602: failed"),
    ("error[E0382]: cannot compile", "error[E0499]: cannot compile"),
    ("error TS2304: in x", "error TS2345: in x"),
    ("certificate verify failed: certificate has expired", "certificate verify failed: self-signed certificate"),
    # exceptions, and the code that raises them
    (("ValueError", "boom"), ("TypeError", "boom")),
    ("RuntimeError('no index')", "RuntimeError('no sandbox')"),
    ("Tool search raised ValueError('no index')", "Tool search raised ValueError('no sandbox')"),
    ("Tool search raised ValueError('no index')", "Tool search raised TypeError('no index')"),
    ("RuntimeError('the plan is empty')", "RuntimeError('the plan is too long')"),
    (
        _python(("/app/tools.py", 20, "load"), last="ValueError: empty"),
        _python(("/app/tools.py", 20, "save"), last="ValueError: empty"),
    ),
    (
        _python(("/app/tools.py", 20, "load"), last="ValueError: empty"),
        _python(("/app/tools.py", 20, "load"), last="ValueError: too long"),
    ),
    (
        _node("TypeError: x is not a function", "/app", 10, "render"),
        _node("TypeError: x is not a function", "/app", 10, "submit"),
    ),
    (_panic("src/a.rs:1:2", "boom"), _panic("src/b.rs:1:2", "boom")),
    (_panic("src/a.rs:1:2", "boom"), _panic("src/a.rs:1:2", "called `Option::unwrap()` on a `None` value")),
    ("FAILED tests/test_api.py::test_login - AssertionError", "FAILED tests/test_api.py::test_logout - AssertionError"),
    ("cannot read config/a.yaml", "cannot read config/b.yaml"),
    ("Step limit exceeded: 9 > 8", "Token budget exceeded: 9 > 8"),
    # a sentence in quotes that reports something
    ('upstream says "connection reset by peer, not retried"', 'upstream says "permission denied by policy"'),
]
