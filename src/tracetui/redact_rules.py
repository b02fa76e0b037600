# ruff: noqa: E501
"""Looks for secrets: by the shapes of `tracetui.redact_shapes`, by names in texts, and by options of commands.

`tracetui.redact` does the masking. Every pattern runs in time linear in the length of the text, for any input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from itertools import chain, islice
from string import ascii_letters, digits
from typing import Final, NamedTuple

from tracetui.redact_shapes import (
    ANYWHERE,
    BEARER,
    ENDINGS,
    FIELD_RULE,
    IN_ADDRESS,
    OPTIONS,
    PREFIXES,
    PROGRAMS,
    SHAPES,
    SPACE,
    TAIL,
    NameClass,
    Option,
    Shape,
    classify_name,
    compiled,
    is_label,
    is_placeholder,
    is_random,
)


class SecretMatch(NamedTuple):
    """A secret in a text: its span and rule; `quoted` if the mask needs quotes to keep the text valid JSON."""

    start: int
    end: int
    rule: str
    quoted: bool = False


class ScannedText(NamedTuple):
    """A text that may contain secrets, a copy with ASCII letters lowered (same positions), and the signs found."""

    text: str
    low: str
    signs: list[str]

    def after(self, text: str) -> ScannedText:
        """The scanned text after masking some secrets."""
        return self if text is self.text else ScannedText(text, _lowered(text), self.signs)


def scan(text: str) -> ScannedText | None:
    """Scan a text cheaply; None if it certainly contains no secret."""
    signs = find_signs(text.encode("utf-8", "surrogatepass"))
    return ScannedText(text, _lowered(text), signs) if signs else None


def _lowered(text: str) -> str:
    return _text(text.encode("utf-8", "surrogatepass").lower())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


Finder = Callable[[ScannedText], Iterator[SecretMatch]]


def finders(signs: list[str]) -> list[Finder]:
    """The functions that find the secrets for these signs."""
    shapes: list[Finder] = [partial(find_shape, shape) for shape in SHAPES if shape.sign in signs]
    others = {"token": _tokens, "option": _options, "name": find_assigned}
    return shapes + [find for sign, find in others.items() if sign in signs]


def find_shape(shape: Shape, scanned: ScannedText) -> Iterator[SecretMatch]:
    """The secrets of one shape."""
    if not any(literal in scanned.low for literal in shape.needs):
        return
    text, likely = scanned.text, compiled(shape.likely)
    for match in compiled(shape.pattern).finditer(scanned.low):
        start, end = match.span(match.lastgroup or 0)
        secret = text[start:end]
        if start < end and likely.search(secret) and not (_may_be_variable(match.lastgroup) and is_placeholder(secret)):
            yield SecretMatch(start, end, shape.name)


_EXACT_GROUPS: Final = frozenset({"token", "slack", "discord", "teams", "open", None})


def _may_be_variable(group: str | None) -> bool:
    """Whether a group of a shape is text that a person chose, and may be a placeholder."""
    return group not in _EXACT_GROUPS


def _tokens(scanned: ScannedText) -> Iterator[SecretMatch]:
    """Tokens that begin with one of the prefixes."""
    place = 0
    while match := _token_pattern().search(scanned.low, place):
        place = match.end()
        prefix = _prefix(scanned.low, place)
        head = _TOKEN_HEAD.match(scanned.text, place) if prefix else None
        if head is None:
            continue
        body = _TOKEN_BODY.match(scanned.text, place) if is_random(head[0]) else None
        if body is None:
            place = head.end() - _LEAST  # no token starts earlier: its first characters would not be random
        else:
            yield SecretMatch(place - len(prefix), body.end(), PREFIXES[prefix])
            place = body.end()


_LEAST: Final = 16
_TOKEN_HEAD: Final = re.compile(r"[A-Za-z0-9_-]{16,64}+")
_TOKEN_BODY: Final = re.compile(r"[A-Za-z0-9_-]{16,1000}+(?:[.%][A-Za-z0-9_-]{2,500}+){0,20}+")


def _prefix(low: str, end: int) -> str:
    """The token prefix that ends at `end`; empty if there is none."""
    for prefix in ENDINGS.get(low[max(0, end - 3) : end], ()):
        if low.endswith(prefix, 0, end):
            before = low[max(0, end - len(prefix) - 3) : end - len(prefix)]
            if prefix.startswith(ANYWHERE) or not _IN_A_WORD.search(before):
                return prefix
    return ""


_IN_A_WORD: Final = re.compile(r"(?<!\\)(?<!%[0-9a-f])[a-z0-9]\Z|\\[^nrtbf]\Z")


@cache
def _token_pattern() -> re.Pattern[str]:
    by_length: dict[int, list[str]] = {}
    for prefix in PREFIXES:
        by_length.setdefault(len(prefix), []).append(prefix)
    exact = "|".join(f"(?<={_tree(prefixes)})" for _, prefixes in sorted(by_length.items()))
    return re.compile(rf"[_.-](?<={_tree(ENDINGS)})(?=[a-z0-9_-]{{16}})(?:{exact})")


def _tree(words: Iterable[str]) -> str:
    """A pattern for any of the words (of equal length), as a prefix tree with few alternatives per position."""
    rest: dict[str, list[str]] = {}
    for word in sorted({*words}):
        rest.setdefault(word[:1], []).append(word[1:])
    inner = "|".join(re.escape(first) + (_tree(words) if words != [""] else "") for first, words in rest.items())
    return f"(?:{inner})"


def truncated_secret(text: str) -> SecretMatch | None:
    """A partial secret at the end of a truncated text."""
    low = _lowered(text)
    begin = max(0, len(low) - 200)
    words = low[begin:].rsplit(None, 2)
    match = compiled(TAIL).search(low, begin + len(words[0]) if len(words) == 3 else begin)
    if match is None:
        return None
    start = match.start() if match.lastgroup == "token" else match.start(match.lastgroup or 0)
    return SecretMatch(start, len(text), "cut off at the end") if start < len(text) else None


# ---- colors

_BEGIN_COLOR: Final = r"(?:\x1b|\\{1,8}(?:u001[bB]|x1[bB]|033|e(?=\[)))"
_REST_OF_COLOR: Final = rf"(?:\[[0-?]*+[ -/]*+[@-\[\]-~]|\][^\x07\x1b\\\n]{{0,2000}}+(?:\x07|\x1b\\|\\{{1,8}}(?:u0007|a)|{_BEGIN_COLOR}\\{{1,9}}))"
COLOR: Final = _BEGIN_COLOR + _REST_OF_COLOR
"""A terminal escape sequence, literal or escaped as in source code and JSON. Sequences in use never end in a backslash,
which starts the next one.
"""


# ---- names in texts

_OPTION_SEPARATOR: Final = (
    rf"{SPACE}|\\{{0,8}}[\"']?,(?:\s|\\n){{0,9}}(?=\\{{0,8}}[\"'])|\\{{0,8}}[\"']?(?:\s|\\n){{1,9}}-[ ]"
)
_QUOTE: Final = r"\\{0,8}[\"'`]"
_NEXT_LINE: Final = r"(?:\\{1,8}n|\n)[ \t]{0,40}+"
_OTHER_LINES: Final = rf"(?:[\w-]{{1,40}}:[^\n\\]{{0,200}}+{_NEXT_LINE}){{0,2}}"
_TYPED: Final = rf"(?:[&']?\w[\w.<>\[\]|?&: ]{{0,60}}+=\s{{0,4}}+(?=[bfru]{{0,2}}{_QUOTE}|[a-z]{{1,12}}(?:::from)?\())?"
"""The type of a variable, as many languages write it between its name and its value."""
_WRAPPED: Final = (
    r"(?:(?:string(?:::from)?|some|secretstr(?:ing)?|secret|ok|just|str|bytes|arc::from|value|securestring|aws\.string"
    rf"|optional\.of)\((?=[bfru]{{0,2}}{_QUOTE}))?"
)
_LISTED_VALUES: Final = rf"(?:[\[(]\s{{0,40}}+(?=[bfru]{{0,2}}{_QUOTE}))?"
_BLOCK: Final = r"(?:[|>][-+0-9]{0,2}(?:\n|\\{1,8}n)[ \t]{1,40}+)?"
"""The mark and the indentation of a text block in YAML."""
_IN_PROSE: Final = r"[ \t]{1,4}+\w"
"""Text after a name that no value follows."""
_NOT_MASKED: Final = r"(?!\\{0,8}[\"']?(?:•{8}|\*{8})(?: \(secret \d{1,6}\))?(?:[\"'\\\n<]|\Z))"
_NAME_END: Final = r"(?P<name>[\w-]{0,40}+)"
_SEPARATOR: Final = (
    rf"{_NAME_END}(?=[\\\"'`\]\s:=?!%%&|*,])%s(?:(?P<quote>\\{{0,8}}[\"']?)\]?(?: \[[\w* -]{{0,40}}\])?"
    rf"(?P<sep>{SPACE}{{0,4}}(?::=|=>|==?|:(?!:)|[?!]:)\s{{0,4}}+(?:string\(\d{{1,6}}\)\s)?"
    rf"{_TYPED}{_WRAPPED}{_LISTED_VALUES}{_BLOCK}|%%(?:25)?3[ad](?:%%(?:25)?2[02]|\+)*+|&gt;)"
    rf"|(?P<attribute>(?:{_QUOTE},?(?:\s|\\n){{0,40}}+(?:{_QUOTE})?|{_NEXT_LINE}{_OTHER_LINES})value(?:{_QUOTE})?(?:\s?=|:)\s?)"
    rf"|(?P<cell>[ \t*`]{{0,40}}+\|[ \t]{{1,40}}+`?(?=[^\s|`]))%s"
    rf"|(?P<pair>{_QUOTE},\s{{0,40}}+b?(?={_QUOTE})))" + _NOT_MASKED
)
_AFTER_DASH: Final = r"(?:s(?:alt|eed)|dsn)(?![a-z])"
_AFTER_P: Final = r"ass(?:w|phrase|(?<=_pass)(?![a-z]))"
_IN_NAMES: Final = (
    r"k(?:ty(?<=[\"']kty)|ey(?:(?<=[a-z0-9_-]key)(?!s)|(?<=[ .]key)(?=\\{0,8}[\"'])|(?:(?<=api key)|(?<=access key))(?!s))"
    r"|en(?<=token)(?!s|_usage|_count)|ie(?<=cookie))",
    r"auth(?!or(?!i)|ent)",
    r"c(?:redential|onnection|ret(?<=secret)|ode(?<=passcode))",
    rf"_{_AFTER_DASH}",
    f"p(?:wd|{_AFTER_P})",
)
"""Parts of secret names, lowered. Each starts with its rarest letter (see below). The last two are looked for together
with tokens and passwords."""
_IN_OPTIONS: Final = "token|key|auth|secret|passw|passphrase|pwd|credential|cookie|connection|_pass"


_COMMANDS: Final = ("define ", "setx ", "env ", "set -")
"""Commands that take a name and a value, without a separator between them."""
_WITH_OPTIONS: Final = ("--", "with password", "encrypted password", *_COMMANDS)


@cache
def _name_patterns(options: bool) -> tuple[re.Pattern[str], ...]:
    """Patterns for names followed by a value. Compiled on demand: compiling dominates the import time."""
    ends = ("", f"|(?P<option>{_OPTION_SEPARATOR})") if options else (f"(?!{_IN_PROSE})", "")
    return tuple(re.compile(pattern + _SEPARATOR % ends) for pattern in _IN_NAMES)


@cache
def _elements() -> tuple[re.Pattern[str], ...]:
    """Patterns for names of elements of XML. An operator such as ``>`` may follow other names."""
    element = rf"(?P<quote>)(?P<sep>){_NAME_END}(?P<element>(?:\s[^<>]{{0,200}}+)?>(?=[^<])){_NOT_MASKED}"
    return tuple(re.compile(pattern + element) for pattern in _IN_NAMES)


# ---- scanning for signs. Each pass of `re` over a text costs about the same, and `bytes.find` is almost free for rare
# letters. So there are few passes: each pattern starts with the rarest letter of its matches and looks behind it.

_RARE: Final = 2_000
"""A letter is rare if it occurs at most once in this many bytes."""


def _matches(pattern: re.Pattern[bytes], letter: bytes, data: bytes) -> Iterable[re.Match[bytes]]:
    """The matches of a pattern that starts with `letter`."""
    place = data.find(letter)
    matches: list[re.Match[bytes]] = []
    for _ in range(len(data) // _RARE):
        if place < 0:
            break
        if match := pattern.match(data, place):
            matches.append(match)
        place = data.find(letter, place + 1)
    return chain(matches, pattern.finditer(data, place)) if place >= 0 else matches


def _has(pattern: re.Pattern[bytes], letter: bytes, data: bytes) -> bool:
    """Whether a pattern that starts with `letter` matches anywhere."""
    place = data.find(letter)
    for _ in range(len(data) // _RARE):
        if place < 0 or pattern.match(data, place):
            break
        place = data.find(letter, place + 1)
    return place >= 0 and pattern.search(data, place) is not None


_EXACT_PREFIXES: Final = tuple(prefix.encode() for prefix in PREFIXES)


@cache
def _token_search(mark: str) -> re.Pattern[bytes]:
    """A pattern for possible tokens in lowered text, with a prefix that ends with `mark`."""
    return re.compile((rf"\{mark}{_MARKED[mark]}" % _after_prefix(mark)).encode())


_MARKED: Final = {
    "_": r"(?:(?=[a-z0-9_+/-]{16})(?:%s|(?:(?<=fm[12]_)(?=[a-z0-9+/]{40})|(?<=ops_)(?=eyj)"
    rf"|(?<=re_)(?=[a-z0-9]{{8}}_[a-z0-9]{{20}}))(?P<mark>))|{_AFTER_DASH}(?P<salt>))",
    ".": r"(?=[a-z0-9_-]{6})(?:(?=[a-z0-9_-]{16})(?:%s|(?:(?=ab8)(?<=aq\.)|(?=eyj)(?<=sk\.)|(?<=sl\.)(?=[a-z0-9_-]{100})"
    r"|(?<=atlasv1\.)|(?=[0-9a-f]{64})(?<=pat[a-z0-9]{14}\.))(?P<mark>))"
    r"|(?=[a-z0-9_-]{6}\.[a-z0-9_-]{27})(?<=[a-z0-9_-]{23}\.)(?P<dots>))",
    "-": r"(?:(?=[ul])(?:(?=us[0-9])(?<=[0-9a-f]{32}-)|(?=lines:)(?<=private-))(?P<mark>)"
    r"|(?=[a-z0-9_-]{16})(?:(?:(?=[0-9a-f]{24})(?<=[cy0]-)(?:(?<=fc-)|(?<=key-)|(?<=v1\.0-))"
    r"|(?<=pa-)(?<![a-z0-9]pa-)(?=[a-z0-9_-]{43}(?![a-z0-9_-])))(?P<marked>)|%s))",
}
"""Contexts of a mark in lowered text that are signs of a shape."""


def _after_prefix(mark: str) -> str:
    """A pattern for the context of the mark at the end of a prefix."""
    endings = [prefix[-4:] for prefix in (*PREFIXES, "sg.") if prefix[-1] == mark]
    longer, short = ([ending for ending in endings if (len(ending) == 4) is long] for long in (True, False))
    return (
        rf"(?=[a-z0-9_-]{{16}})(?!{re.escape(mark) * 2})(?:(?<={_tree(longer)})"
        rf"|(?<={_tree(short)})(?<![acdeg-mo-qsu-z0-9]{_tree(short)}))(?P<token>)"
    )


def _is_token(data: bytes, low: bytes, place: int) -> bool:
    before = low[max(0, place - 15) : place + 1]
    return before.endswith(_EXACT_PREFIXES) and is_random(data[place + 1 : place + 65].decode("ascii", "replace"))


_BLANKS: Final = rb"(?:\s|\\{1,8}[nrt]){1,8}"
_EXACT_SIGNS: Final = (
    (
        "AKIA",
        b"A",
        b"",
        re.compile(
            rb"A(?:[KS]IA(?=[A-Z0-9]{16})|Iza(?=[A-Za-z0-9_-]{30})|A(?<=[0-9]{8}:AA)(?=[A-Za-z0-9_-]{33})"
            rb"|BSK(?=[A-Za-z0-9+/]{40})|TATT3(?=[A-Za-z0-9_-]{40})|KID(?=[A-Za-z0-9]{32})|QVN(?=[A-Za-z0-9_-]{30})"
            rb"|KCp(?=[A-Za-z0-9]{60})|A(?<=EAA)(?=[A-Z][A-Za-z0-9_-]{50})|I(?<=LTAI)(?=[A-Za-z0-9]{12})"
            rb"|K(?<=EZAK)(?=[A-Za-z0-9]{54}))"
        ),
    ),
    ("literal", b"5", b":543", re.compile(rb"5(?<=:5)43[0-9]:")),
    ("literal", b"6", b":6432", re.compile(rb"6(?<=:6)432:")),
    ("literal", b"*", b":", re.compile(rb"\*(?<=:\*)(?=:[\w*-])")),
    ("literal", b"\t", b"E\t", re.compile(rb"\t(?<=(?:TRUE|ALSE)\t)")),
    ("literal", b"T", b"\\", re.compile(rb"TRUE\\")),
    ("tilde", b"~", b"", re.compile(rb"~(?<=[78]Q~)(?=[A-Za-z0-9_.~-]{31})")),
    ("eyJ", b"J", b"", re.compile(rb"J(?<=eyJ)(?=[A-Za-z0-9_-]{6})")),
    ("hex", b"K", b"", re.compile(rb"K(?<=SK)(?=[0-9a-f]{32})")),
    (
        "slash",
        b"/",
        b"",
        re.compile(
            rb"/(?<=[sS2/]/)(?:(?<=/webhookb2/)|(?=0[A-Za-z0-9_-]{20})(?<=1//)"
            rb"|(?i:(?<=/services/|/triggers/|/webhooks/)|(?<=/workflows/))(?=[A-Za-z0-9/_-]{16}))"
        ),
    ),
    (
        "signature",
        b"=",
        b"",
        re.compile(rb"=(?<=[gGeE]=)(?i:(?<=[?&;6]sig=)|(?<=-signature=))(?=[A-Za-z0-9%+/_-]{16})"),
    ),
)
"""Signs of shapes in the original text, each with its first letter and a literal that occurs with it."""
_PASSWORDS: Final = re.compile(
    rb"p(?:i(?<=dapi)(?=[0-9a-f]{32})(?P<hex>)|a(?:(?<=th pa|ed pa)ssword(?P<quoted>)|%b(?P<word>))|wd(?P<short>))"
    % _AFTER_P[1:].encode()
)
_NETRC: Final = re.compile(
    rb"(?:machine%b[^\s\"'\\]{1,200}|default)(?:%b(?:login|account)%b[^\s\"'\\]{1,200}){0,2}%bpassword"
    % (_BLANKS, _BLANKS, _BLANKS, _BLANKS)
)
_BY_PASSWORD: Final = (b"passwd", b"create ", b"alter ", b"set password for")
_BEFORE_PASSWORD: Final = 1_200
"""Most bytes between the start of a shape and its word for a password."""
_WORDS_WITH_B: Final = re.compile(rb"b(?:%b(?P<bearer>)|y(?<=identified by)(?P<literal>))" % BEARER[1:].encode())
_ESCAPES: Final = re.compile(rb"\\(?:u00|/|x1[bB]|033|e\[)")
_ESCAPED: Final = re.compile(rb"\\(?:u00|/)")
_ESCAPED_TWICE: Final = re.compile(rb"\\\\(?:u00|/)")
"""Escapes of JSON may hide any sign."""
_ESCAPED_CONTROL: Final = re.compile(rb"\\u00[01][0-9a-f]")
_ESCAPED_COLOR: Final = re.compile(rb"\\(?:u001[bB]|x1[bB]|033|e\[)")


class _Mark(NamedTuple):
    """Something that may separate a name from its value, with its first letter."""

    letter: bytes
    pattern: re.Pattern[bytes]


_SEPARATORS: Final = (
    *(_Mark(letter, re.compile(re.escape(letter))) for letter in (b":", b"=", b"|")),
    _Mark(b"%", re.compile(rb"%(?:25)?3")),
    _Mark(b"&", re.compile(b"&gt;")),
    _Mark(b"[", re.compile(rb"\[b?[\"']")),
    _Mark(b"(", re.compile(rb"\(b?[\"']")),
)
_ELEMENTS: Final = (*_SEPARATORS, _Mark(b">", re.compile(b">")))
_NEAR: Final = 500
_LONG: Final = 4_000
_IN_WORD: Final = rb"[\w\x80-\xff-]"


def find_signs(data: bytes, *, encoded: bool = False) -> list[str]:
    """Signs of possible secrets in a text (UTF-8, or `encoded` as JSON); empty if it certainly has none."""
    escapes = b"\\" in data and _has(_ESCAPES, b"\\", data)
    colors = _colors_in(data, escapes=escapes)
    if colors is not None:
        data = _without(colors, data)
    escaped = escapes and (_ESCAPED_TWICE if encoded else _ESCAPED).search(data)
    if encoded and escapes:
        data = _ESCAPED_CONTROL.sub(b" ", data)  # else its digits would look like the start of a word
    low = data.lower()
    signs = {
        sign
        for sign, letter, literal, pattern in _EXACT_SIGNS
        if letter in data and literal in data and _has(pattern, letter, data)
    }
    passwords = [*_PASSWORDS.finditer(low)]
    password_forms = {match.lastgroup for match in passwords} if passwords else set()
    if "hex" in password_forms:
        signs.add("hex")
    is_password = not password_forms.issubset(("hex",))
    is_salt = False
    if is_password:
        signs |= _password_signs(low, [match.start() for match in passwords])
    if b"-" in data:
        signs |= _dash_signs(data, low)
    for mark in "_.":
        for match in _matches(_token_search(mark), mark.encode(), low) if mark.encode() in data else ():
            if match.lastgroup == "dots" or low.endswith(b"sg.", 0, match.end()):
                signs.add("dots")
            elif match.lastgroup == "mark":
                signs.add("mark")
            elif match.lastgroup == "salt":
                is_salt = True
            elif "token" not in signs and _is_token(data, low, match.start()):
                signs.add("token")
    if _WORDS_WITH_B.search(low):
        signs.update(str(match.lastgroup) for match in _WORDS_WITH_B.finditer(low))
    if b"@" in data and _has(_ADDRESS, b":", data):
        signs.add("address")
    if escaped:
        signs.add("escape")
    names = _names(is_salt=is_salt, is_password=is_password)
    if _has_name(low, names, is_quoted="quoted" in password_forms) or _has_command(data, low):
        signs.add("name")
    if signs and colors is not None:
        signs.add("color")
    return [*signs]


def _colors_in(data: bytes, *, escapes: bool) -> re.Pattern[bytes] | None:
    """The pattern for the escape sequences of a text, None if it has none. Literal ones are common and fast to find."""
    if escapes and _has(_ESCAPED_COLOR, b"\\", data):
        return _colors(COLOR)
    return _colors("\x1b" + _REST_OF_COLOR) if b"\x1b" in data else None


_FILL: Final = b"\xff"
"""A byte that occurs in no text."""
_MOST_COLORS: Final = 16


def _without(colors: re.Pattern[bytes], data: bytes) -> bytes:
    """A text without its escape sequences. Most texts have few distinct ones, so each is replaced everywhere at once.

    They are overwritten first and removed at the end, so that removing one can't create another.
    """
    filled, place = data, 0
    many = data.count(b"[") > len(data) // 40 and _FILL not in data
    for _ in range(_MOST_COLORS if many else 0):
        match = colors.search(filled, place)
        if match is None:
            return filled.translate(None, _FILL)
        color, place = match[0], match.end()
        if b"]" in color or (color[:1] == b"\\" and b"\\" + color in data):
            break  # a link may contain others, or a sequence may be the end of another one
        filled = filled.replace(color, _FILL * len(color))
    return colors.sub(b"", data)


@cache
def _colors(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


def _any(patterns: tuple[re.Pattern[bytes], ...], data: bytes) -> bool:
    for pattern in patterns:  # noqa: SIM110 - half the time of any() where texts are short
        if pattern.search(data):
            return True
    return False


def _has_name(low: bytes, names: tuple[re.Pattern[bytes], ...], *, is_quoted: bool) -> bool:
    """Whether a secret's name is followed by a value. In a long text with few separators, only their surroundings are
    scanned."""
    elements = b"<" in low and _has(_END_OF_ELEMENT, b"<", low)
    separators = partial(_separators, low, elements=elements, is_quoted=is_quoted)
    near = _near(low, separators()) if len(low) > _LONG else low
    return (
        _any(names, near)
        or (_LISTED.search(near) is not None and _any(_listed_names(), near))
        or (elements and _any(_element_names(), near))
    ) and (near is not low or any(mark.pattern.search(low) for mark in separators()))


def _separators(low: bytes, *, elements: bool, is_quoted: bool) -> tuple[_Mark, ...]:
    """What may separate a name from its value in a text."""
    marks = _ELEMENTS if elements else _SEPARATORS
    return (*marks, _AFTER_WORDS) if b"'" in low and (is_quoted or _has(_DASHES, b"-", low)) else marks


def _near(low: bytes, separators: Iterable[_Mark]) -> bytes:
    """The surroundings of the separators of a text; the text itself if they are many."""
    places = _places(low, separators, len(low) // (2 * _NEAR))
    return low if places is None else b"\0".join(low[max(0, place - _NEAR) : place + _NEAR] for place in places)


_AFTER_WORDS: Final = _Mark(b"'", re.compile(rb"'(?<= ')"))
"""Separates ``PASSWORD '…'``."""
_NAMING: Final = (
    (b"#", b"#define", re.compile(b"#define")),
    (b"x", b"setx", re.compile(rb"x(?<=setx)")),
    (b"V", b"ENV", re.compile(rb"V(?<=ENV)")),
)
"""Commands that take a name and a value without a separator between them, each with its rarest letter."""


def _has_command(data: bytes, low: bytes) -> bool:
    """Whether a command is followed by a secret's name and a value."""
    near = b""
    for letter, word, pattern in _NAMING:
        if letter in data and (word in data if len(data) < _LONG else pattern.search(data)):
            near += b"\0".join(low[match.start() : match.start() + 100] for match in pattern.finditer(data)) + b"\0"
    return near != b"" and _any(_spaced_names(), near)


def _places(data: bytes, marks: Iterable[_Mark], most: int) -> list[int] | None:
    """Positions of marks; None if there are more than `most`."""
    places: list[int] = []
    for mark in marks:
        places += [match.start() for match in islice(_matches(mark.pattern, mark.letter, data), most + 1)]
        if len(places) > most:
            return None
    return places


def _password_signs(low: bytes, places: list[int]) -> set[str]:
    """Signs of shapes that have a word for a password, at one of the places."""
    few = len(places) <= len(low) // (2 * _BEFORE_PASSWORD)
    near = b"\0".join(low[max(0, place - _BEFORE_PASSWORD) : place + 16] for place in places) if few else low
    signs = {"literal"} if any(literal in near for literal in _BY_PASSWORD) else set()
    if (b"machine" in near or b"default" in near) and _NETRC.search(near):
        signs.add("machine")
    return signs


def _dash_signs(data: bytes, low: bytes) -> set[str]:
    """Signs of options, of blocks, and of tokens with a dash."""
    signs: set[str] = set()
    flags: list[int] = []
    for match in _matches(_dashed(), b"-", low):
        sign = str(match.lastgroup)
        if sign == "flag":
            flags.append(match.start())
        elif sign in ("mark", "marked"):
            signs.add("mark")
        elif sign == "value":
            if b"securestring" in low or b"keyvault secret" in low:
                signs.add("literal")
        elif sign not in signs and (sign != "token" or _is_token(data, low, match.start())):
            signs.add(sign)
    if "block" in signs and b"private key" not in low:
        signs.remove("block")
    few = len(flags) <= len(data) // _LONGEST_COMMAND
    before = b"\0".join(low[max(0, flag - _LONGEST_COMMAND) : flag + 1] for flag in flags) if few else low
    if before and (any(program in before for program in _IN_PROGRAMS) or _OTHER_PROGRAMS(before)):
        signs.add("option")
    return signs


_ESCAPED_LETTER: Final = rb"\\{1,8}u[0-9a-f]{4}"
_REST_OF_KEY: Final = rb"[^\"\\]{0,80}+(?:%b[^\"\\]{0,80}+){0,4}\\{0,8}\"" % _ESCAPED_LETTER
_BYTE_QUOTE: Final = _QUOTE.encode()
_FOLLOWED: Final = (
    rb"(?:(?=[:=\\\"'`\]\s|%%&*])(?!%b)(?:"
    rb"\\{0,8}[\"']?\]?(?: \[[\w* -]{0,40}\])?(?:[ \t]|\\{1,8}t){0,4}[:=]|[ \t]{1,4}'"
    rb"|%b,\s{0,40}+b?%b[^\"'`\n]{1,300}+%b\s{0,40}+,?\s{0,40}+[\])]|[ \t*`]{0,40}+\|[ \t]|%%(?:25)?3[ad]|&gt;"
    rb"|%b,?(?:\s|\\n){0,40}+(?:%b)?value|%b%bvalue)|%b[ \t]{0,4}:)"
    % (_IN_PROSE.encode(), *[_BYTE_QUOTE] * 5, _NEXT_LINE.encode(), _OTHER_LINES.encode(), _REST_OF_KEY)
)
_ELEMENT: Final = rb"(?:\s[^<>]{0,200}+)?>"


def _name(pattern: str, after: bytes = _FOLLOWED) -> re.Pattern[bytes]:
    return re.compile(
        pattern.encode() + rb"%b{0,160}+(?:%b%b{0,160}+){0,9}" % (_IN_WORD, _ESCAPED_LETTER, _IN_WORD) + after
    )


_FLAG: Final = (
    rb"(?:(?<=[\s\"'\\]-)(?:[abuw](?=[\s=\"'\\])|p)"
    rb"|(?<=[\s\"'\\]--)(?:user|proxy-user|cookie|auth))(?P<flag>)"
)
"""An option that may take a secret."""
_OPTION: Final = (
    rb"(?<!--)(?=-++(?=%b{1,400}+(?:[ \t]|\\{1,8}t|\\{0,8}[\"'](?:,|\s|\\n)))%b{0,64}?(?:%b))(?P<name>)"
    % (_IN_WORD, _IN_WORD, _IN_OPTIONS.encode())
)
"""An option with a secret's name."""


@cache
def _dashed() -> re.Pattern[bytes]:
    block = rb"(?<=--)(?=---begin)(?P<block>)"
    marked = (_MARKED["-"] % _after_prefix("-")).encode()
    value = rb"(?=-value\s)(?P<value>)"
    return re.compile(
        rb"-(?=[abclpuw-]|[a-z0-9_-]{16})(?:(?=[abcpuw])%b|(?=-)(?:%b|%b|%b)|%b)"
        % (_FLAG, _OPTION, block, value, marked)
    )


_LISTED: Final = re.compile(rb"value\\{0,8}\"")
"""A sign of a name/value list."""


@cache
def _names(*, is_salt: bool, is_password: bool) -> tuple[re.Pattern[bytes], ...]:
    """Names followed by a separator; those of salts and of passwords only on demand."""
    *others, salt, password = _IN_NAMES
    return tuple(map(_name, (*others, *[salt] * is_salt, *[password] * is_password)))


@cache
def _spaced_names() -> tuple[re.Pattern[bytes], ...]:
    """Names followed by a space."""
    return tuple(_name(pattern, rb"[ \t]{1,4}\S") for pattern in _IN_NAMES)


@cache
def _element_names() -> tuple[re.Pattern[bytes], ...]:
    """Names of elements of XML."""
    return tuple(_name(pattern, _ELEMENT) for pattern in _IN_NAMES)


@cache
def _listed_names() -> tuple[re.Pattern[bytes], ...]:
    """Field names in name/value lists."""
    return tuple(_name(pattern, _REST_OF_KEY) for pattern in _IN_NAMES)


_END_OF_ELEMENT: Final = re.compile(b"</")
_DASHES: Final = re.compile(b"--")
_ADDRESS: Final = re.compile(IN_ADDRESS.encode())
_LINE: Final = re.compile(r"(?:(?i:bearer|basic|token|digest|apikey)[ \t]+)?(?P<bare>[^\r\n\"'\\]+)")
_VALUE: Final = re.compile(
    r"(?:(?<![\w])[bruf]{1,2}(?=[\"']))?(?:(?P<escape>\\+)\"(?P<escaped>[^\"\\]*+)"
    r"|\"\"\"\s*+(?P<triple>(?:[^\"]|\"(?!\"\"))++)|'''\s*+(?P<third>(?:[^']|'(?!''))++)"
    r"|\"(?P<double>(?:[^\"\\]|\\.)*+)|'(?P<single>(?:[^'\\\n]|\\.)*+)|`(?P<backtick>[^`\n]*+))"
    r"|\{(?P<braces>[^{}\s\"'\\]++)(?=\}(?:;|$))"
    r"|(?:(?i:bearer|basic|token|digest)[ \t]+)?"
    r"(?P<bare>(?:[^\s\"'\\&;<>(){}\[\]|`]|[&;](?=[^\s\"'\\&;<>(){}\[\]|`=%]+(?:\s|$)))+)",
    re.DOTALL,
)
_OPTION_BEGINS: Final = re.compile(r"--|with|encrypted|define|setx|env|set")
_WITH: Final = re.compile(r"(?:\b(?:with|encrypted|setx|set -[a-z]{1,3})|# ?define|(?:\A|\n|\\n| )env)[ \t]{1,4}\Z")
_BEFORE_VALUE: Final = re.compile(r"(?:name|key|header|variable|id)\\{0,8}[\"']?\s{0,2}[:=]\s{0,2}\\{0,8}[\"'`]?\Z")
_BEFORE_PAIR: Final = re.compile(r"[(\[]\s{0,40}b?\\{0,8}[\"'`]\Z")
_AFTER_PAIR: Final = re.compile(r"\\{0,8}[\"'`]\s{0,40},?\s{0,40}[)\]]")
_BEFORE_CELL: Final = re.compile(r"(?:\A|\n|\||\\n)[ \t*`]{0,8}\Z")
_AFTER_CELL: Final = re.compile(r"`?[ \t]{0,200}(?:\||\\n|\n|\Z)")
_NEXT_VALUE: Final = re.compile(r"\\{0,8}[\"'`]\s{0,40},\s{0,40}(?=[bru]?\\{0,8}[\"'`])")
_NO_NAME: Final = re.compile(r"\bclass\s{1,4}\Z|\barn:[a-z0-9:*_-]{0,80}\Z")
_PERCENT_END: Final = re.compile(r"%(?:25)?(?:2[26c]|7d|0[ad]|3b)|&", re.IGNORECASE)
_CONTENT: Final = re.compile(r"(?P<content>[^<>]{1,4000}+)(?=<\\{0,8}/)")
"""Content of an XML element."""
_CODE: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)+|[A-Za-z_]\w*(?=[(\[])|![A-Z][A-Za-z]+\s|%env\(")
_WORDS: Final = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)*")
_SENTENCE: Final = re.compile(r"[ \t][A-Za-z0-9]+[ \t][A-Za-z]")
"""Text after a word in prose."""
_HUMPS: Final = re.compile(r"(?:[A-Z]*[a-z]+[A-Z]+){3}")
"""Letters that don't form words."""
_HEADERS: Final = ("cookie", "authorization")
"""Names of header lines; the value is the rest of the line."""
_IN_LOGPROBS: Final = re.compile(r"\\{0,8}[\"']\s*,\s*\\{0,8}[\"'](?:logprob|bytes|prob)")


def assignments(scanned: ScannedText) -> Iterator[tuple[str, re.Match[str]]]:
    """Matches of a secret's name followed by a value, with the name."""
    text, low = scanned.text, scanned.low
    options = any(word in low for word in _WITH_OPTIONS)
    elements = _elements() if "<" in low and compiled(r"<\\{0,8}/").search(low) else ()
    for pattern in (*_name_patterns(options), *elements):
        for match in pattern.finditer(low):
            kind = match.lastgroup
            pair = kind == "pair" or (kind == "option" and "," in match["option"])
            place = match.start()
            if kind == "option" and not pair and not _OPTION_BEGINS.search(low, max(0, place - 64), place):
                continue
            start = _beginning(text, place)
            if not _is_meant(scanned, match, start, pair=pair):
                continue
            name = text[start - _before_key(low, start) : match.end("name")]
            if classify_name(name) is not NameClass.OPEN:
                yield name, match


def _is_meant(scanned: ScannedText, match: re.Match[str], start: int, *, pair: bool) -> bool:
    """Whether a word that starts at `start` is the name of what follows, by what stands before it."""
    text, low, kind = scanned.text, scanned.low, match.lastgroup
    before = text[max(0, start - 2) : start]
    if kind in ("option", "pair"):
        if text.startswith("--", start) or (not pair and _WITH.search(low, max(0, start - 16), start)):
            return kind == "option"
        return pair and _BEFORE_PAIR.search(low, max(0, start - 60), start) is not None
    if kind == "cell":
        return _BEFORE_CELL.search(low, max(0, start - 12), start) is not None
    if kind == "element":
        return before[-1:] in ("<", ":")
    if kind == "attribute":
        indented = (
            match["attribute"][:1] in "\"'\\`" or match["attribute"].count("\n") + match["attribute"].count("\\n") == 1
        )
        flat = indented and not match["attribute"].startswith(("\nvalue", "\\nvalue")) and "," not in match["attribute"]
        return flat or _BEFORE_VALUE.search(low, max(0, start - 24), start) is not None
    near = low[max(0, start - 100) : start]
    return before != "${" and not (("class" in near or "arn:" in near) and _NO_NAME.search(near))


def _before_key(low: str, start: int) -> int:
    """Length of the words of a name before its last one."""
    if low[start - 1 : start] != " ":
        return 0
    return next((len(word) for word in ("api ", "access ") if low.endswith(word, 0, start)), 0)


def _beginning(text: str, place: int) -> int:
    """Start of the name that ends at `place`; only the end of a very long name is scanned."""
    first = max(0, place - 64)
    while place > first:
        place = first + len(text[first:place].rstrip(_IN_NAME))
        if place == first or not text[place - 1].isalnum():
            break
        place -= 1
    return place


_IN_NAME: Final = ascii_letters + digits + "_-"


def find_assigned(scanned: ScannedText) -> Iterator[SecretMatch]:
    """Values that follow a name: ``KEY=…``, ``"key": "…"`` (escaped or not), ``--key …``, elements, header lines."""
    end = 0
    for name, match in sorted(assignments(scanned), key=lambda assignment: assignment[1].start()):
        secret = _value(scanned.text, match, name) if match.end() >= end else None
        listed = secret is not None and (match["sep"] or "")[-1:] in ("[", "(")
        while secret is not None:
            end = secret.end
            yield secret
            following = _NEXT_VALUE.match(scanned.text, end) if listed else None
            value = following and _VALUE.match(scanned.text, following.end())
            secret = value and SecretMatch(*value.span(value.lastgroup or 0), FIELD_RULE)


def _value(text: str, match: re.Match[str], name: str) -> SecretMatch | None:
    sep, quote = match["sep"] or "", match["quote"] or ""
    header = not quote and sep.startswith(":") and name.lower().endswith(_HEADERS)
    element = match.lastgroup == "element"
    block = sep[-1:] in (" ", "\t") and sep.lstrip(": \t")[:1] in ("|", ">")
    pattern = _CONTENT if element else _LINE if header else _block(sep) if block else _VALUE
    value = pattern.match(text, match.end())
    if value is None:
        return None
    group = value.lastgroup or 0
    start, end = value.span(group)
    if group == "braces" and is_placeholder(text[start - 1 : end + 1]):
        return None
    if sep[:1] == "%" and (stop := _PERCENT_END.search(text, start, end)):
        end = stop.start()
    if block:
        return None if is_placeholder(text[start:end]) else SecretMatch(start, end, FIELD_RULE)
    pair = match.lastgroup == "pair" or (match.lastgroup == "option" and "," in match[0] and "--" not in name)
    if (pair or match.lastgroup == "cell") and not _in_table(text, value, pair=pair):
        return None
    if group == "bare":
        end = start + len(text[start:end].rstrip(",.: "))
        prose = sep == ": " and text[start:end].islower() and text[start:end].isalpha() and _SENTENCE.match(text, end)
        if header and is_label(text[start:end]):
            return None
        if not header and ("\n" in sep or prose or not _bare(text[start:end], text[end : end + 1], name)):
            return None
    secret = text[start:end]
    if start == end or is_placeholder(secret) or _IN_LOGPROBS.match(text, end):
        return None
    if group != "bare" and is_label(secret) and classify_name(name) is NameClass.TEXT:
        return None
    return SecretMatch(start, end, FIELD_RULE, quoted=group == "bare" and '"' in quote and "\\" not in quote)


@lru_cache(64)
def _block(separator: str) -> re.Pattern[str]:
    """The lines of a block in YAML, after the indentation of the first."""
    indentation = re.search(r"[ \t]*\Z", separator)
    blanks = "" if indentation is None else indentation[0]
    return re.compile(rf"(?P<bare>[^\r\n\\]++(?:(?:\r?\n{blanks}|\\n{blanks})[^\r\n\\]++)*+)")


def _in_table(text: str, value: re.Match[str], *, pair: bool) -> bool:
    """Whether a value is the second one of a pair, or fills the cell of a table; and isn't just words."""
    start, end = value.span(value.lastgroup or 0)
    if (_AFTER_PAIR if pair else _AFTER_CELL).match(text, end) is None:
        return False
    content = text[start:end]
    return (
        len(content) >= 4
        and (_WORDS.fullmatch(content) is None or _HUMPS.search(content) is not None)
        and not is_label(content)
    )


def _bare(value: str, after: str, name: str) -> bool:
    """Whether an unquoted value is a real value: prose and source code are full of ``token: str``."""
    if len(value) < 4 or _CODE.match(value + after):
        return False
    if value.isdecimal() and len(value) < 16 and classify_name(name) is NameClass.TEXT:
        return False
    if classify_name(name) is NameClass.ALL or len(value) >= 16 or not _WORDS.fullmatch(value):
        return True
    return _HUMPS.search(value) is not None or (len(value) >= 8 and name[:2].lower() == "x-")


# ---- options of commands


_IN_PROGRAMS: Final = (
    b"curl",
    b"mysql",
    b"mariadb",
    b"sshpass",
    b"login",
    b"upload",
    b"redis-cli",
    b"ldap",
    b"openssl",
    b"zip",
    b"7z",
    b"sqlcmd",
    b"mongo",
    b"smbclient",
)
_OTHER_PROGRAMS: Final = re.compile(rb"(?:http(?=s?[\s\"'\\])|xh(?=[\s\"'\\])|wget)").search
"""Text that occurs with each program."""
_COMMAND: Final = (
    "|".join(rf"(?P<{name}>(?<![\w-])(?:{program})(?=[\s\"'\\]))" for name, program in PROGRAMS.items())
    + r"|(?P<end>(?<!\\)\n|[;|&])|(?P<flag>-(?<=[\s\"'\\-]-)(?=[abpuw]))"
)
_LONGEST_COMMAND: Final = 400


def _options(scanned: ScannedText) -> Iterator[SecretMatch]:
    """Secrets in command options without a secret's name."""
    program, begin, end = "", 0, 0
    for match in compiled(_COMMAND).finditer(scanned.low):
        kind, place = str(match.lastgroup), match.end()
        if kind != "flag":
            program, begin = ("" if kind == "end" else kind), place
            continue
        if not program or place < end or place - begin > _LONGEST_COMMAND:
            continue
        for option in _options_of(program):
            value = compiled(f"(?:{option.flags}){option.value}").match(scanned.text, place)
            if value is None:
                continue
            start, end = value.span("secret")
            if not is_placeholder(scanned.text[start:end]):
                yield SecretMatch(start, end, option.name)
            program = program if program == "web" else ""
            break


@cache
def _options_of(program: str) -> tuple[Option, ...]:
    return tuple(option for option in OPTIONS if option.program == program)
