"""What counts as a secret: names of fields, and shapes of text. `tracetui.redact` does the masking.

Everything here costs time that grows with the length of the text, whatever the text is: no pattern looks at the same
stretch again from each of many starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple

CUT_AT: Final = 119
"""A header's text of so many characters may have been cut: at its end also the beginning of a secret counts."""


class Named(IntEnum):
    """What the name of a field says of its value."""

    OPEN = 0
    TEXT = 1
    """Text in it is secret; a number counts or names something (``token: 1183``)."""
    ALL = 2
    """Text and numbers are secret (``password: 1234``)."""


# ---- names

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS: Final = frozenset({"password", "passwd", "passphrase", "pwd", "secret", "secrets", "passwords"})
_TEXTS: Final = frozenset({"authorization", "cookie", "cookies", "credential", "credentials", "apikey"})
_PAIRS: Final = frozenset(
    {
        *((word, "key") for word in ("api", "private", "access", "secret", "signing", "encryption", "ssh", "account")),
        *((word, "key") for word in ("master", "subscription", "license", "deploy", "admin", "service", "auth")),
        ("connection", "string"), ("connection", "strings"), ("connection", "uri"), ("connection", "url"),
    }
)  # fmt: skip
_GLUED: Final = (
    "apikey", "accesstoken", "authtoken", "refreshtoken", "sessiontoken", "idtoken", "bearertoken", "secretkey",
    "privatekey", "accesskey", "clientsecret", "password", "passwd", "passphrase", "connectionstring",
)  # fmt: skip
_ABOUT: Final = frozenset({
    "count", "counts", "type", "types", "name", "names", "url", "uri", "endpoint", "length", "len", "expiry",
    "expires", "expired", "expiration", "at", "in", "ttl", "required", "policy", "hint", "path", "file", "id", "ids",
    "limit", "limits", "budget", "usage", "index", "rate", "per", "max", "min", "total", "size", "age", "version",
    "present", "valid", "enabled", "status", "error", "errors", "kind", "format", "field", "fields", "prompt",
    "estimate", "cost", "price", "details", "window", "used",
})  # fmt: skip
"""What a last word of a name says: not the secret, but something about it (``token_count``, ``secret_name``)."""


@lru_cache(4096)
def named(key: str) -> Named:
    """What the name of a field says of its value. Case and separators don't matter: ``apiKey`` is ``API-KEY``."""
    words = [word.lower() for word in _WORD.findall(key[-80:])]
    if not words or (words[-1] in _ABOUT and tuple(words[-2:]) not in _PAIRS):
        return Named.OPEN
    if not _ALWAYS.isdisjoint(words):
        return Named.ALL
    pairs = _PAIRS.intersection(pairwise(words))
    if pairs or words[-1] in ("token", "auth") or not _TEXTS.isdisjoint(words):
        return Named.TEXT
    return Named.TEXT if words[-1].endswith(_GLUED) else Named.OPEN


# ---- shapes


class Shape(NamedTuple):
    """A kind of secret that is known by how it looks.

    The pattern is searched in text whose ASCII letters were lowered, where `sign` was seen; its named group
    (else all of it) is what is masked. What it finds counts if `likely` is found in it as it was written.
    """

    name: str
    sign: str
    pattern: re.Pattern[str]
    likely: re.Pattern[str] = re.compile("")


def _begins(literal: str) -> str:
    """`literal`, not within a word (in JSON the ``n`` of ``\\n`` may stand before it)."""
    return rf"{literal}(?:(?<![a-z0-9]{literal})|(?<=\\[nrtbf]{literal}))"


_SPACE: Final = r"(?:[ \t]|\\{1,8}t)"
"""Also a tab as JSON escapes it, however often."""
_BEARER: Final = rf"bearer{_SPACE}{{1,4}}(?=[a-z0-9._~+/=-]{{8}})"
_KEY_BLOCK: Final = r"[a-z0-9 ]{0,40}private key(?: block)?-----"
SHAPES: Final = (
    Shape(
        "private key",
        "-",
        re.compile(
            rf"-----begin {_KEY_BLOCK}(?P<secret>[^-]*+(?:-(?!----)[^-]*+)*+)-----end {_KEY_BLOCK}"
            rf"|-----begin {_KEY_BLOCK}(?P<open>[^\"\\]*+(?:\\[^\"][^\"\\]*+)*+)"
        ),
    ),
    Shape("password in a URL", "address", re.compile(r"://[^\s/@:\"'\\<>]*+:(?P<secret>[^\s/@\"'\\<>]++)@")),
    Shape("key of a model provider", "-", re.compile(_begins("sk-") + r"[a-z0-9_-]{16,}+"), re.compile("[0-9A-Z]")),
    Shape(
        "AWS key",
        "written",
        re.compile(rf"(?:{_begins('akia')}|{_begins('asia')})[a-z0-9]{{16}}(?![a-z0-9])"),
        re.compile("^[A-Z0-9]+$"),
    ),
    Shape(
        "GitHub token",
        "_",
        re.compile(r"gh[pousr]_[a-z0-9]{20,}+|github_pat_[a-z0-9_]{20,}+"),
    ),
    Shape("GitLab token", "-", re.compile(r"glpat-[a-z0-9_-]{16,}+")),
    Shape("Slack token", "-", re.compile(r"xox[abeoprs]-[a-z0-9-]{10,}+")),
    Shape("Google key", "written", re.compile(r"aiza[a-z0-9_-]{30,}+"), re.compile("^AIza")),
    Shape("Hugging Face token", "_", re.compile(_begins("hf_") + r"[a-z0-9]{20,}+")),
    Shape(
        "JSON web token",
        "eyj",
        re.compile(_begins("eyj") + r"[a-z0-9_-]{6,}+\.[a-z0-9_-]{6,}+(?:\.[a-z0-9_-]*+)?"),
        re.compile("^eyJ"),
    ),
    Shape(
        "bearer token",
        "bearer",
        re.compile(_BEARER + r"(?P<secret>[a-z0-9._~+/=-]{8,}+)"),
        re.compile(".{20}|[0-9]"),
    ),
)
_TAIL: Final = re.compile(
    r"(?:(?<![a-z0-9])(?:sk-|akia|asia|hf_|eyj)|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|aiza)"
    r"(?P<token>[a-z0-9_.-]*)$|bearer[ \t]{1,4}(?P<bearer>\S*)$|://[^\s/@:]{0,99}:(?!\d{1,5}$)(?P<secret>[^\s/@]+)$"
)


NAME: Final = "name of the field"
"""The rule by which a value counts that follows its name."""


class Found(NamedTuple):
    """A secret in a text: where it is, by which rule it was found; `quoted` if a mask needs quotes to stay JSON."""

    start: int
    end: int
    rule: str
    quoted: bool = False


class Looked(NamedTuple):
    """A text that may hold secrets: with its ASCII letters lowered (every character stays where it is), and the signs
    of them that were seen.
    """

    text: str
    low: str
    signs: list[str]

    def after(self, text: str) -> Looked:
        """The same when some of its secrets are masked."""
        return self if text is self.text else Looked(text, _lowered(text), self.signs)


def look(text: str) -> Looked | None:
    """One cheap look at a text: None where there is certainly no secret in it."""
    signs = signs_in(text.encode("utf-8", "surrogatepass"))
    return Looked(text, _lowered(text), signs) if signs else None


def signs_in(data: bytes, *, encoded: bool = False) -> list[str]:
    """What in a text (as UTF-8, or `encoded` as JSON) may be a secret; nothing where there is certainly none."""
    low = data.lower()
    found = [name for name, exact, search in _SIGNS if search(data if exact else low)]
    if b"@" in low and _ADDRESS.search(low):
        found.append("address")
    if b"\\" in low and (_ESCAPED_TWICE if encoded else _ESCAPED).search(low):
        found.append("escape")
    near = _near_separators(low)
    if near and (_any(_names(), near) or (_LISTED.search(near) and _any(_listed_names(), near))):
        found.append("name")
    return found


def _any(patterns: tuple[re.Pattern[bytes], ...], data: bytes) -> bool:
    for pattern in patterns:  # noqa: SIM110 - half the time of any() where texts are short
        if pattern.search(data):
            return True
    return False


def _near_separators(low: bytes) -> bytes:
    """The stretches of a text in which a name may be that something follows: all of it, where they are many."""
    most = len(low) // (2 * _NEAR)
    places: list[int] = []
    for pattern in _SEPARATORS:
        places += (match.start() for match in islice(pattern.finditer(low), most + 1))
        if len(places) > most:
            return low
    return b"\0".join(low[max(0, place - _NEAR) : place + _NEAR] for place in places)


def _lowered(text: str) -> str:
    return _text(text.encode("utf-8", "surrogatepass").lower())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def shaped(shape: Shape, here: Looked) -> Iterator[Found]:
    """The secrets of one shape."""
    text = here.text
    for match in shape.pattern.finditer(here.low) if shape.sign in here.signs else ():
        group = match.lastgroup or 0
        start, end = match.span(group)
        if start < end and shape.likely.search(text[start:end]):
            yield Found(start, end, shape.name)


def tail(text: str) -> Found | None:
    """The beginning of a secret at the end of a text that was cut there."""
    low = _lowered(text)
    begin = max(0, len(low) - 200)
    words = low[begin:].rsplit(None, 2)
    match = _TAIL.search(low, begin + len(words[0]) if len(words) == 3 else begin)
    if match is None:
        return None
    start = match.start() if match.lastgroup == "token" else match.start(match.lastgroup or 0)
    return Found(start, len(text), "cut off at the end") if start < len(text) else None


# ---- names in texts

_SEPARATOR: Final = (
    rf"(?P<name>[\w-]{{0,40}}+)(?P<quote>\\{{0,8}}[\"']?)(?P<sep>{_SPACE}{{0,4}}(?::=|=>|==?|:)\s{{0,4}}|{_SPACE})"
)
WORDS: Final = {
    "token": "token(?!s)",
    "key": "key(?:(?<=[a-z0-9_-]key)|(?<=api key))(?!s)",
    "auth": "auth(?!or(?!i)|ent)",
    **{word: word for word in ("secret", "passw", "passphrase", "pwd", "credential", "cookie", "connection")},
}
"""What is in names that count, and how each is recognised, lowered."""


@cache
def _words() -> tuple[re.Pattern[str], ...]:
    """Where each word is in a name that something follows. Compiled when it is needed, as all that few texts need:
    compiling is most of what loading this module takes, and the program's start waits for that.
    """
    return tuple(re.compile(pattern + _SEPARATOR) for pattern in WORDS.values())


# ---- the first look. A regular expression that begins with one letter passes all others very quickly: each of these
# begins with the rarest letter of what it looks for, and looks back at what must stand before that.

_SIGNS: Final = (
    ("written", True, re.compile(rb"A(?:[KS]IA(?=[A-Z0-9]{16})|Iza(?=[A-Za-z0-9_-]{30}))").search),
    ("eyj", True, re.compile(rb"J(?<=eyJ)(?=[A-Za-z0-9_-]{6})").search),
    ("_", False, re.compile(rb"_(?:(?<=gh[pousr]_)|(?<=hub_)pat_|(?<=hf_))(?=[a-z0-9_]{20})").search),
    (
        "-",
        False,
        re.compile(
            rb"-(?:(?<=sk-)(?=[a-z0-9_-]{16})|(?<=glpat-)(?=[a-z0-9_-]{16})|(?<=xox[abeoprs]-)(?=[a-z0-9-]{10})"
            rb"|(?=----begin))"
        ).search,
    ),
    ("bearer", False, re.compile(_BEARER.encode()).search),
)
"""Signs of shapes, looked for in a text as it was written where the letters' case is known, else lowered."""
_ESCAPED: Final = re.compile(rb"\\(?:u00|/)")
_ESCAPED_TWICE: Final = re.compile(rb"\\\\(?:u00|/)")
"""Escapes of JSON may hide any sign."""
_SEPARATORS: Final = (re.compile(b":"), re.compile(b"="), re.compile(b"--"))
_NEAR: Final = 500
_IN_WORD: Final = rb"[\w\x80-\xff-]"


_ESCAPED_LETTER: Final = rb"\\{1,8}u[0-9a-f]{4}"
_REST_OF_KEY: Final = rb"[^\"\\]{0,80}+(?:%b[^\"\\]{0,80}+){0,4}\\{0,8}\"" % _ESCAPED_LETTER
_FOLLOWED: Final = rb"(?:\\{0,8}[\"']?(?:[ \t]|\\{1,8}t){0,4}[:=]|%b[ \t]{0,4}:)" % _REST_OF_KEY


def _name(pattern: bytes, after: bytes = _FOLLOWED) -> re.Pattern[bytes]:
    return re.compile(pattern + rb"%b{0,160}+(?:%b%b{0,160}+){0,9}" % (_IN_WORD, _ESCAPED_LETTER, _IN_WORD) + after)


_IN_NAMES: Final = (
    rb"k(?:(?<=[a-z0-9_-]k)ey(?!s)|(?<=[ .]k)ey(?=\\{0,8}[\"'])|(?<=api k)ey(?!s)|(?<=tok)en(?!s|_usage|_count)"
    rb"|(?<=cook)ie)",
    rb"w(?:(?<=passw)|(?<=pw)d)",
    rb"auth(?!or(?!i)|ent)",
    rb"c(?:redential|onnection|(?<=sec)ret)",
    b"passphrase",
)
_OPTION: Final = rb"-(?<!--)-++(?=%b{1,400}+(?:[ \t]|\\{1,8}t))%b{0,64}?(?:%b)"
_LISTED: Final = re.compile(rb"value\\{0,8}\"")
"""Fields may be listed by name and value."""


@cache
def _names() -> tuple[re.Pattern[bytes], ...]:
    """Names that a separator follows, and options of command lines."""
    return (*map(_name, _IN_NAMES), re.compile(_OPTION % (_IN_WORD, _IN_WORD, "|".join(WORDS).encode())))


@cache
def _listed_names() -> tuple[re.Pattern[bytes], ...]:
    """Names of fields that are listed by name and value."""
    return tuple(_name(pattern, _REST_OF_KEY) for pattern in _IN_NAMES)


_ADDRESS: Final = re.compile(SHAPES[1].pattern.pattern.encode())
_LINE: Final = re.compile(r"(?P<bare>[^\r\n\"'\\]+)")
_VALUE: Final = re.compile(
    r"(?P<escape>\\+)\"(?P<escaped>[^\"\\]*+)|\"(?P<double>(?:[^\"\\]|\\.)*+)|'(?P<single>(?:[^'\\\n]|\\.)*+)"
    r"|(?:(?i:bearer|basic|token|digest)[ \t]+)?(?P<bare>[^\s\"'\\&;<>(){}\[\]|`]+)",
    re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(
    r"[$<%{(].*|[^A-Za-z0-9]*|(?:none|null|nil|true|false|undefined|str|string|bytes|bool|boolean|int|integer|number"
    r"|float|object|array|any|optional|required|redacted|hidden|\[?redacted\]?|secretstr)",
    re.IGNORECASE | re.DOTALL,
)
_CODE: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+|[A-Za-z_]\w*(?=\()")
_HEADERS: Final = ("cookie", "authorization")
"""Names of header lines: all that follows is the value."""


def assignments(here: Looked) -> Iterator[tuple[str, re.Match[str]]]:
    """Places where something follows a name that says that it is secret, with that name."""
    text, low = here.text, here.low
    for pattern in _words() if "name" in here.signs else ():
        for match in pattern.finditer(low):
            start = _beginning(text, match.start())
            name = text[start - 4 * (low[max(0, start - 4) : start] == "api ") : match.end("name")]
            if (match["sep"].strip(" \\t\t\r\n") or name.startswith("--")) and named(name) is not Named.OPEN:
                yield name, match


def _beginning(text: str, place: int) -> int:
    """Where the name begins that reaches to `place`; of a very long one only the end is looked at."""
    first = max(0, place - 64)
    while place > first and (text[place - 1].isalnum() or text[place - 1] in "_-"):
        place -= 1
    return place


def assigned(here: Looked) -> Iterator[Found]:
    """Values that follow a name: ``KEY=…``, ``"key": "…"`` (escaped or not), ``--key …``, header lines."""
    end = 0
    for name, match in sorted(assignments(here), key=lambda found: found[1].start()):
        found = _value(here.text, match, name) if match.end() >= end else None
        if found is not None:
            end = found.end
            yield found


def _value(text: str, match: re.Match[str], name: str) -> Found | None:
    header = not match["quote"] and match["sep"].startswith(":") and name.lower().endswith(_HEADERS)
    value = (_LINE if header else _VALUE).match(text, match.end())
    if value is None:
        return None
    group = value.lastgroup or 0
    start, end = value.span(group)
    if group == "bare":
        end = start + len(text[start:end].rstrip(",. "))
        if not header and not _bare(text[start:end], text[end : end + 1], name):
            return None
    if start == end or _PLACEHOLDER.fullmatch(text, start, end) is not None:
        return None
    return Found(start, end, NAME, quoted=group == "bare" and '"' in match["quote"] and "\\" not in match["quote"])


def _bare(value: str, after: str, name: str) -> bool:
    """Whether a value without quotes is meant as one: prose and program text are full of ``token: str``."""
    if len(value) < 4 or _CODE.fullmatch(value + ("(" if after == "(" else "")) or _CODE.match(value + after):
        return False
    return named(name) is Named.ALL or len(value) >= 16 or not value.isalpha()
