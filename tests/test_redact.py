"""Secrets are found by name and by shape, nothing else is touched, and hostile text costs what it is long."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.canaries import CANARY, CLEAN, IN_TEXT, NAMED, PRIVATE, SHAPED
from tracetui import redact, redact_rules
from tracetui.model import Body, Message, Text, ToolCall
from tracetui.redact import ASCII_MASK, MASK, Redactor, is_mask, masks, split_colors
from tracetui.redact_rules import ScannedText, find_signs, finders, scan
from tracetui.redact_shapes import SHAPES, NameClass, classify_name

SECRETS = [*SHAPED.values(), *IN_TEXT]
words = st.sampled_from(
    [*SECRETS, *CLEAN, *NAMED, '"', "\\", ": ", "=", "\n", "{", "}", "[", "]", ", ", "sk-", "://", "@", "-----", MASK]
)
hostile = st.lists(words | st.text(max_size=8), max_size=12).map("".join)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | hostile
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*NAMED, "a", "b"]), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "key is {}", "a\n{}\nb", '["{}"]'])
def test_a_secret_in_a_text_is_masked(secret: str, around: str) -> None:
    redactor = Redactor()
    made = redactor.text(around.replace("{}", secret))
    assert CANARY not in made
    assert MASK in made
    assert sum(redactor.counts.values()) >= 1


@pytest.mark.parametrize("name", NAMED)
def test_a_value_is_masked_by_the_name_of_its_field(name: str) -> None:
    assert Redactor().value({"a": [{name: NAMED[name], "n": 1}]}) == {"a": [{name: MASK, "n": 1}]}


@pytest.mark.parametrize("name", NAMED)
def test_a_header_that_is_listed_by_name_and_value_is_masked(name: str) -> None:
    pair = {"name": name, "value": NAMED[name]}
    assert Redactor().value([pair]) == [{"name": name, "value": MASK}]


@pytest.mark.parametrize("text", CLEAN)
def test_what_is_no_secret_is_returned_itself(text: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) is text
    value = {"a": [text, {"usage": {"input_tokens": 3, "max_tokens": 4}, "token_count": 5, "password": None}]}
    assert redactor.value(value) is value
    record = json.dumps(value).encode()
    assert redactor.raw(record) is record
    assert not redactor.counts


@pytest.mark.parametrize(
    ("name", "says"),
    [
        *((name, NameClass.TEXT) for name in ["token", "refreshToken", "APIKey", "basic_auth", "connectionString"]),
        *((name, NameClass.ALL) for name in ["AWS_SECRET_ACCESS_KEY", "pwd"]),
        *(
            (name, NameClass.OPEN)
            for name in [
                "key",
                "input_tokens",
                "max_tokens",
                "token_count",
                "tokens",
                "secret_name",
                "author",
                "token_type",
                "monkey",
            ]
        ),
    ],
)
def test_names_are_read_word_by_word(name: str, says: NameClass) -> None:
    assert classify_name(name) is says


PASSWORDS = [
    "$ecur3P", "$ecur3P@ss99", "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW", "%4gKq9zD", "%Kq94gzD%x",
    "{abc9d8e7f", "{SSHA}9dk3Kd83kd", "<9dk3Kd83kd", "(9dk3Kd83kd", "$(9dk3Kd83kd", "${9dk3Kd83kd", "your-key-9f8d7c6b",
    "my-9f8d7c6b", "example-9f8d7c6b", "file:9dk3", "env:9dk3Kd", "vault:9dk3Kd", "op:9dk3Kd", "arn:9dk3Kd",
    "config.9dk3Kd", "$1Kd83kd",
]  # fmt: skip
REFERENCES = [
    "$TOKEN", "$DB2_PASSWORD", "$K8S_TOKEN", "$apiKey", "$env:TOKEN", "$this->token", "$1", "$USER:$TOKEN", "${DB}",
    "${DB:-none}", "${{ secrets.K }}", "$(pass show x/y1)", "%TOKEN%", "%env(APP_SECRET)%", "%s", "%(pw)s", "%{pw}",
    "{x}", "{settings.key}", "{{ x }}", "{{ lookup('env', 'X1') }}", "<your-key>", "<user>:<key 1>", "(not set)",
    "[hidden]", "os.environ['X']", "os.environ.get('X9')", "process.env.K8S_TOKEN", "self._key", "env:TOKEN_2",
    "{{ env \"X1\" }}", "$(cat \"x 1\")", '{os.environ["X1"]}',
    "your-api-key", "your-256-bit-secret", "my_password", "vault:secret/data/x#k9", "op://vault/x/y9",
    "file:///run/x9", "file:token.txt", "arn:aws:secretsmanager:eu-1:12:x", "ssm:/x/y9",
]  # fmt: skip


@pytest.mark.parametrize("secret", PASSWORDS)
def test_a_password_may_begin_as_a_reference_does(secret: str) -> None:
    assert Redactor().value({"password": secret}) == {"password": MASK}
    for text in (f'password = "{secret}"', json.dumps({"password": secret}), json.dumps(json.dumps({"pwd": secret}))):
        assert secret not in Redactor().text(text)


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_only_refers_to_a_secret_is_left_alone(reference: str) -> None:
    for text in (json.dumps({"password": reference}), f"PASSWORD={reference}", f"Authorization: Bearer {reference}"):
        assert Redactor().text(text) is text
    value = {"password": reference, "a": [json.dumps({"password": reference})]}
    assert Redactor().value(value) is value


def test_numbers_are_masked_where_only_a_secret_can_be_meant() -> None:
    assert Redactor().value({"password": 1234, "token": 1183, "secret": True}) == {
        "password": MASK,
        "token": 1183,
        "secret": True,
    }


def test_everything_in_a_field_of_secrets_is_masked() -> None:
    value = {"credentials": {"user": "root", "parts": ["a1", ["b2"]]}}
    assert Redactor().value(value) == {"credentials": {"user": MASK, "parts": [MASK, [MASK]]}}


def test_the_parameters_of_a_tool_are_no_secrets() -> None:
    schema = {"properties": {"password": {"type": "string", "description": "the password"}}}
    assert Redactor().value(schema) is schema


def test_a_key_of_a_mapping_may_be_a_secret() -> None:
    value = {SHAPED["aws"]: 1, SHAPED["github"]: 2, "a": 3}
    made = Redactor().value(value)
    assert CANARY not in str(made)
    assert list(made.values()) == [1, 2, 3]


def test_json_in_a_text_stays_json_and_keeps_its_indentation() -> None:
    text = json.dumps({"a": 1, "password": 12, "list": [SHAPED["aws"]]}, indent=2)
    assert Redactor().text(text) == json.dumps({"a": 1, "password": MASK, "list": [MASK]}, indent=2, ensure_ascii=False)


def test_a_record_is_masked_also_where_json_escapes_hide_the_secret() -> None:
    record = b'{"text": "\\u0073k-proj-' + CANARY.encode() + b'A1b2A1b2", "n": 1}\n'
    assert json.loads(Redactor().raw(record)) == {"text": MASK, "n": 1}


def test_a_record_that_is_no_json_is_masked_and_keeps_its_other_bytes() -> None:
    made = Redactor().raw(b"\xff\xfe" + SHAPED["aws"].encode() + b'\x00{"api_key": "' + CANARY.encode() + b'", cut')
    assert CANARY.encode() not in made
    assert made.startswith(b"\xff\xfe")
    assert made.endswith(b'", cut')


def test_structs_are_masked_and_stay_what_they_are() -> None:
    call = ToolCall("c1", "login", {"password": CANARY, "user": "root"})
    body = Body(input={"q": 1}, input_messages=(Message("assistant", (Text("hi"), call)),))
    made = Redactor().value(body)
    assert made == msgspec.structs.replace(
        body,
        input_messages=(
            Message("assistant", (Text("hi"), ToolCall("c1", "login", {"password": MASK, "user": "root"}))),
        ),
    )


@pytest.mark.parametrize("secret", SHAPED.values())
def test_a_secret_that_a_header_was_cut_in_is_masked(secret: str) -> None:
    for length in range(1, len(secret)):
        text = ("x " * 60)[: 119 - length] + " " + secret[:length]
        made = Redactor().header(text)
        assert CANARY not in made, made
        if length > secret.index(CANARY):
            assert made != text


def test_a_text_that_is_not_cut_may_end_like_a_secret() -> None:
    assert Redactor().header("written with sk-learn") == "written with sk-learn"
    assert Redactor().header("x" * 100 + " http://localhost:8080") == "x" * 100 + " http://localhost:8080"


def test_compared_secrets_are_told_apart_by_number() -> None:
    redactor = Redactor(compared=True)
    made = [redactor.value({"password": secret})["password"] for secret in ("a", "b", "a")]
    assert made == [f"{MASK} (secret 1)", f"{MASK} (secret 2)", f"{MASK} (secret 1)"]
    assert all(map(is_mask, made))
    assert Redactor(mask=ASCII_MASK).value({"password": "a"}) == {"password": "********"}


def test_masks_are_found_again() -> None:
    text = Redactor(compared=True).text(f"a {SHAPED['aws']} b {SHAPED['github']}")
    assert [is_mask(text[start:end]) for start, end in masks(text)] == [True, True]


@given(hostile)
@example(SHAPED["aws"] + SHAPED["github"])
def test_masking_twice_is_masking_once(text: str) -> None:
    redactor = Redactor(compared=True)
    made = redactor.text(text)
    assert redactor.text(made) == made


def test_secrets_that_touch_are_both_masked() -> None:
    assert CANARY not in Redactor().text(SHAPED["aws"] + SHAPED["github"])


def test_a_value_may_end_in_the_name_of_the_next_one() -> None:
    assert CANARY not in Redactor().text(f"pwd: x-api-keyCookie: session={CANARY}; theme=dark")


@given(values)
def test_structure_is_kept(value: Any) -> None:
    made = Redactor().value(value)
    assert _shape(made) == _shape(value)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    return [_shape(inner) for inner in value] if isinstance(value, list) else None


@given(values)
def test_json_stays_json(value: Any) -> None:
    for indent in (None, 2):
        text = json.dumps(value, indent=indent)
        made = Redactor().text(text)
        json.loads(made)
        json.loads(Redactor().raw(text.encode()))


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data: bytes) -> None:
    Redactor().raw(data)


def test_depth_is_no_limit() -> None:
    deep: Any = {"password": CANARY}
    for _ in range(50_000):
        deep = [deep]
    made = Redactor().value(deep)
    for _ in range(50_000):
        made = made[0]
    assert made == {"password": MASK}


@pytest.mark.parametrize(
    "text",
    ['{"password":"CNRYSECRET1","password":null}', '[{"token": "CNRYSECRET1", "token" : ""}]'],
)
def test_a_field_that_another_of_its_name_hides_is_masked(text: str) -> None:
    for made in (
        Redactor().text(text),
        Redactor().raw(text.encode()).decode(),
        str(Redactor().value({"a": text})),
        Redactor().raw(json.dumps({"a": text}).encode()).decode(),
    ):
        assert CANARY not in made


HOSTILE = {
    "words": "token",
    "names": "api_key",
    "separators": 'api_key": ',
    "assignments": "password=x ",
    "quotes": 'password="',
    "escapes": '\\"token\\": \\"',
    "keys": "sk-",
    "blocks": "-----BEGIN PRIVATE KEY-----",
    "block and quote": '-----BEGIN PRIVATE KEY-----"',
    "dashes": "-",
    "addresses": "://a:",
    "at": "://@",
    "web tokens": "eyJabcdefgh.",
    "bearer": "bearer ",
    "secrets": SHAPED["aws"] + " ",
    "pem": PRIVATE,
    "brackets": "[{",
    "backslashes": "password=\\",
    "cookies": "cookie: ",
    "letters": "a",
    "masks": MASK,
    "prefixes": "gsk_",
    "colors": "\x1b[31mtoken\x1b[0m=",
    "links": "\x1b]8;;",
    "escaped colors": "\\u001b[",
    "elements": "<password>",
    "attributes": "<password ",
    "options": "curl -u a:b ",
    "option lists": '"-p", ',
    "netrc": "machine h login a ",
    "dots": "sg.",
    "tokens": f"gsk{'_'}A1b2C3d4E5f6G7h8",
    "token beginnings": "sk-abcdef",
    "passwords of commands": "mysql -p",
    "users of commands": "curl -u ",
    "signatures": "sig=",
    "slashes": "1//0",
    "quoted": '"',
    "backslashes alone": "\\",
    "tags": "<a>",
    "short options": "--x ",
    "short names": "key=",
    "ends of colors": "\x1b[31",
    "lists": "password\n value",
}


def test_a_text_is_masked_and_counted_each_time_however_many_others_were_between() -> None:
    redactor = Redactor()
    texts = [f"{number} password=hunter2-{number}" for number in range(1_500)]
    for _ in range(2):
        assert all("hunter2" not in redactor.text(text) for text in texts)
    assert redactor.counts.total() == 2 * len(texts)


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_costs_what_it_is_long(piece: str) -> None:
    """Steps of the program are counted. A pattern that backtracks would not come to an end at this size. Both texts are
    too long to be remembered.
    """
    short, long = (_steps(piece * (size // len(piece))) for size in (12_000, 48_000))
    assert long <= 4 * short * 1.2 + 200


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_no_longer_than_text_full_of_secrets(piece: str) -> None:
    """Processor time against that of as many characters of assignments, with much room for other load."""
    size = 40_000
    usual = min(_seconds("DB_PASSWORD=hunter22\nPORT=80\n" * (size // 29)) for _ in range(3))
    assert min(_seconds(piece * (size // len(piece))) for _ in range(3)) < 12 * usual + 0.02


def _seconds(text: str) -> float:
    start = time.process_time()
    Redactor().text(text)
    return time.process_time() - start


def _steps(text: str) -> int:
    steps = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal steps
        steps += 1

    redactor = Redactor()
    sys.setprofile(count)
    try:
        redactor.text(text, cut=True)
        redactor.value([text])
    finally:
        sys.setprofile(None)
    return steps


# ---- the first look


HIDDEN = {
    "listed, in a text": ('{"name": "x-api-key", "value": "CNRYSECRET-1"}', f"{CANARY}-1"),
    "listed, in an escaped text": (
        'say {\\"name\\": \\"x-api-key\\", \\"api_key\\": \\"CNRYSECRET-1\\"}',
        f"{CANARY}-1",
    ),
    "after a tab": (f"Bearer\t{CANARY}12345678", CANARY),
    "slash early in a bearer token": (f"Bearer ab/{CANARY}12345678", CANARY),
    "assigned after a tab": (f"password\t=\t{CANARY}1", CANARY),
    "after an option and a tab": (f"login --password\t{CANARY}1", CANARY),
    "name with a space": ('{"private key": "CNRYSECRET-1"}', CANARY),
    "name with more than a name": ('{"password (of ops)": "CNRYSECRET-1"}', CANARY),
    "listed, with more than a name": ('[{"value": "CNRYSECRET-1", "name": "password (of ops)"}]', CANARY),
    "name with escaped letters": ('{"a": "cookie\\u6771x=CNRYSECRET-1", "password \\u6771": "CNRYSECRET-1"}', CANARY),
    "escaped slashes": ('{"url": "postgres:\\/\\/admin:CNRYSECRET@db.example\\/main"}', CANARY),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_secret_is_seen_through_json(name: str) -> None:
    text, secret = HIDDEN[name]
    for made in (
        Redactor().text(text),
        Redactor().value([{"a": text}]),
        Redactor().raw(json.dumps([{"a": text}]).encode()),
        Redactor().raw(json.dumps({"a": json.dumps({"b": text})}).encode()),
    ):
        assert secret not in str(made)


COLORS = ["\x1b[31m", "\x1b[0m", "\x1b[1;38;5;214m", "\x1b[K", "\x1b]8;;https://a.b\x07", "\\x1b[0m", "\x1b", "\x1b["]
colored = st.lists(words | st.sampled_from(COLORS), max_size=12).map("".join)


@given(hostile | colored)
@example("--api_key x")
@example("\\/")
@example("\x1b[31mapi_key\x1b[0m=A1b2C3d4E5")
@example(f"\x07{SHAPED['provider']}")
@example(f"\x1b[\x1b[31m{SHAPED['provider']}")
def test_the_first_look_passes_nothing_over(text: str) -> None:
    """What is found with every sign given has the sign that the first look must have seen."""
    plain, colors = split_colors(text)
    low = plain.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    every = [*{shape.sign for shape in SHAPES}, "token", "name", "option"]
    signs = {sign for sign in every if any(any(find(ScannedText(plain, low, every))) for find in finders([sign]))}
    if signs and colors:
        signs.add("color")
    here = scan(text)
    assert signs <= set(here.signs if here is not None else ())
    assert signs <= set(find_signs(msgspec.json.encode([{"a": text}]), encoded=True))


@given(st.sampled_from(SECRETS), st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_secret_in_long_prose_is_masked(secret: str, before: int, after: int) -> None:
    """Where separators are few, names are looked for around them alone."""
    prose = "a word of prose, and " * 300
    text = f"{prose[:before]} {secret} {prose[:after]}"
    assert CANARY not in Redactor().text(text)
    assert CANARY not in str(Redactor().value({"a": [text], "b": [prose] * 20}))


class Counting:
    """A pattern that finds nothing, and counts the bytes that it was given."""

    def __init__(self) -> None:
        self.bytes = 0

    def search(self, data: bytes) -> None:
        self.bytes += len(data)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The bytes in which signs are looked for, all of them at once."""
    counting = Counting()

    def counted(data: bytes, *, encoded: bool = False) -> list[str]:
        counting.search(data)
        return find_signs(data, encoded=encoded)

    monkeypatch.setattr(redact, "find_signs", counted)
    monkeypatch.setattr(redact_rules, "find_signs", counted)
    return counting


PROSE = "a word of prose, and another one " * 10_000


def test_a_text_that_is_in_a_value_twice_is_read_once(read: Counting) -> None:
    body = Body(
        output={"choices": [{"message": {"content": PROSE}}]}, output_messages=(Message("assistant", (Text(PROSE),)),)
    )
    assert Redactor().value(body) is body
    assert read.bytes < 1.01 * len(PROSE)


def test_a_large_value_without_a_sign_is_read_once(read: Counting) -> None:
    value = {"rows": [{"id": number, "title": f"row {number}", "tags": ["a", "b"]} for number in range(5_000)]}
    assert Redactor().value(value) is value
    assert read.bytes < 1.01 * len(msgspec.json.encode(value))


def test_names_are_looked_for_around_separators_alone_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    monkeypatch.setattr(redact_rules, "_names", lambda **_: (counting,))
    Redactor().text(PROSE)
    assert counting.bytes == 0
    Redactor().text(PROSE + "note: this" + PROSE)
    assert 0 < counting.bytes < 2_000


def test_one_secret_among_many_texts_is_looked_at_closely_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counted(text: str) -> ScannedText | None:
        looked.append(text)
        return scan(text)

    monkeypatch.setattr(redact, "scan", counted)
    value = [f"text {number}" for number in range(10_000)]
    value[5_000] += f" {SHAPED['aws']}"
    made = Redactor().value(value)
    assert made[5_000] == f"text 5000 {MASK}"
    assert made[:5_000] == value[:5_000]
    assert len(looked) <= 32
