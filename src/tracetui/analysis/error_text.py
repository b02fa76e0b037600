"""Reduces the text of an error to what distinguishes causes: unwraps it, and replaces its noise.

Agents and libraries wrap one error in many ways: ``repr`` of an exception, JSON envelopes, tracebacks and panics. The
unwrapped text is the message of the library itself. Noise is ids, hexadecimal numbers, addresses, times, durations,
counts, sizes and absolute paths. Status and exit codes, ``errno``, names of modules, keys and fields, and relative
paths stay. Ports stay only in refused connections (`analysis.cause`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.model import CUT

MAX_INPUT: Final = 4_000
"""Characters of a text that are read: of a longer one its beginning and its end."""
MAX_TEXT: Final = 500
"""Characters of a normalized text, likewise."""
UNSTABLE: Final = "<text>"
"""Replaces a text with a normalization that doesn't converge: one made to be normalized again and again."""
_MAX_PASSES: Final = 12
_CUT: Final = " … "
KINDS: Final = ("n", "id", "hex", "path", "url", "ip", "time", "quoted", "text")
SEPARATOR: Final = " · "
"""Between the text of an error and its deciding words."""
PLACEHOLDER: Final = re.compile(f"<(?:{'|'.join(KINDS)})>")

_BEFORE_CODE: Final = ("errno", "sqlstate", "code", "status", "signal", "exit", "exited", "exits", "non-zero")
"""Words after which any number distinguishes causes, alone or as the end of another: ``exit_code``."""
_HINTS: Final = ("err", "sqlstate", "code", "status", "signal", "exit", "non-zero", "http")
"""One of them is in every text with a code, but for status codes that stand alone."""
_BETWEEN: Final = frozenset({"with", "of", "is"})
_BEFORE_STATUS: Final = frozenset(
    ["", "error", "returned", "responded", "replied", "received", "response", "got", "with", "said", "says"]
)
"""Words after which a number may be a status code, or a count: ``returned 404 rows``."""
_STATUS: Final = re.compile(r"[45]\d\d|-32\d\d\d|\d{4}", re.ASCII)
_AFTER_STATUS: Final = re.compile(r"\W*$|\s*[:\-({\"',.;\])]|\ (?:[A-Z]|from\b|for\b|on\b|by\b|response|error)")
_PHRASES: Final = tuple(sorted({status.phrase.lower() for status in HTTPStatus if status >= 400}))
_PHRASE: Final = re.compile(
    rf":?\s(?:(?:client|server) error|(?:{'|'.join(map(re.escape, _PHRASES))})\b)", re.IGNORECASE
)
_LONGEST_CONTEXT: Final = 40
_UNITS: Final = "[kKMGT]i?[bB]|[kKMGTx%]|bytes?|px|st|nd|rd|th|tok(?:ens?)?"
_TIMES: Final = "ns|us|µs|ms|sec(?:onds?|s)?|min(?:ute)?s?|hrs?|hours?|days?|weeks?"
_NUMBER: Final = r"(?:\d{1,3}(?:[,_]\d{3}){1,9}(?!\d)|\d+)(?:\.\d+){0,9}(?:[eE][-+]?\d+)?"
_NAME: Final = "\\w.@+~\u00c0-\u024f-"
"""Characters of file names."""
_VALUE: Final = (
    r"(?![^'\"]*\b(?i:errors?|fail(?:ed|ure)?|not?|cannot|denied|refused|reset|exceeded|invalid|missing|expired)\b)"
)
"""Not a sentence that reports something."""
_GIVEN: Final = r"(?:(?<=to\ float:\ Q)|(?<=base\ \d\d:\ Q)|(?<=input_value=Q)|(?<=host=Q))"
"""Before a value that was given, after its opening quote."""
_NOISE: Final = re.compile(
    rf"""
    (?=[^A-Za-z\s]|(?<!\w)[A-Za-z])(?:  # only faster: skips the insides of words
    (?P<placeholder><(?:{"|".join(KINDS)})>)
  | (?<!\w)(?![A-Za-z]++(?:[\ ,;)]|[.:]?(?:\ |$)))(?:
        (?P<url>[A-Za-z][A-Za-z0-9+.-]{{1,15}}+://[^\s"'`<>]*[^\s"'`<>.,;:!?)\]}}])
      | (?P<id>
            [0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?![\w-])
          | arn:[\w:/.*-]+
          | [\w.+-]++@[\w-]+\.[\w.-]*\w
          | [\w-]*+\*{{3,}}[\w*-]*
          | [A-Za-z]{{2,12}}+_[A-Za-z0-9]{{16,}}(?!\w)
        )
      | (?P<time>(?:
            (?<![.:])\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?(?:Z|UTC|[-+]\d\d:?\d\d))?)?
          | (?<![.:])\d{{1,3}}:\d\d(?::\d\d)?(?:[.,]\d+)?
          | (?<![.:])[-+]?(?:{_NUMBER}(?:{_TIMES}|[smhd])(?![A-Za-z])){{1,9}}
          | (?<![.:])[-+]?{_NUMBER}\ (?:{_TIMES})
        )(?!\w))
      | (?P<ip>\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d{{1,5}})?(?!\w|\.\d))
      | (?P<number>[-+]?(?<!\.){_NUMBER}(?:\ ?(?:{_UNITS}))?(?!\w|[-.]\w))
      | (?P<hex>0[xX][0-9a-fA-F]+(?![\w-])|(?=[a-fA-F]*\d)[0-9a-fA-F]{{7,}}(?![\w-]))
      | (?P<word>[A-Za-z_-]*+\d[\w-]*)
    )
  | (?P<ip6>\[[0-9a-fA-F]{{0,4}}:[0-9a-fA-F:.]{{1,40}}\](?::\d+)?)
  | (?P<key>\)=\([^()]*\))
  | (?P<value>(?:'{_GIVEN.replace("Q", "'")}[^']*'|"{_GIVEN.replace("Q", '"')}[^"]*"))
  | (?P<path>[/\\~](?<![{_NAME}/\\].)(?:[/\\]|(?<!~))(?:[{_NAME}]+[/\\])*[{_NAME}]*[\w~](?:[?#][^\s"'`)]*)?)
  | (?P<quoted>
        "(?=[^"\s]*\s){_VALUE}[^"]*" | `(?=[^`\s]*\s)[^`]*` | “[^“”]*” | ‘[^‘’]*’ | «[^«»]*»
      | '(?<!\w.)(?=[^'\s]*\s){_VALUE}(?:[^']|(?<=\w)'(?=\w))*'(?!\w)
    ))
    """,
    re.VERBOSE | re.ASCII,
)
_SIGNS: Final = re.compile(r"""[\d"'`“‘«/\\*@]|arn:|_\w{16}|\s\s|[^\S ]|^\s|\s$""")
"""Found in every text that is not its own normalized form."""
_WHOLE_NUMBER: Final = re.compile(_NUMBER, re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]+|(?=\w*\d)[0-9a-fA-F]{7,}", re.ASCII)
_NUMERIC: Final = frozenset({"number", "word", "hex"})
_KIND_OF: Final = {"number": "n", "ip6": "ip", "key": "quoted", "value": "quoted"}
_NUMBERED: Final = re.compile(r"([A-Za-z]+[-_])(\d{1,5})", re.ASCII)
_ERROR_CODE: Final = re.compile(r"[A-Z]{2,8}-\d{3,6}|(?i:utf|iso|cp|sha|ascii|latin|gpt|x86)[-_]\d+", re.ASCII)
"""Words with a number that is part of a name: ``ORA-00942``, ``utf-8``."""


_NUMERAL: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9]+|(?=[a-fA-F]*[0-9])[0-9a-fA-F]{7,})(?![0-9A-Za-z])",
)
"""Digits, or a hexadecimal number as long as an id."""
_UNLIKE: Final = re.compile(r"[45]..|....|32...")
"""A number that may be a status code has a separate shape."""
_EXPONENT: Final = re.compile(r"(?:[0-9]+(?:[eE][0-9]+)?[dD])*[0-9]*[eE]?[0-9]*")
"""A hexadecimal number that may be read as ``12e3`` or as ``5d``."""
_ONES: Final = str.maketrans("023456789", "111111111")
MAX_SHAPES: Final = 1 << 14


Noise = tuple[tuple[str, int, int], ...]
"""(Kind, start, end) of every part of a text that a placeholder stands for, in their order."""


class Template(msgspec.Struct, frozen=True, gc=False):
    """The normalized form of all texts of one shape."""

    text: str
    noise: Noise
    """Empty where it is unknown."""
    codes: tuple[str, ...] = ()
    """Status, error and exit codes that stay."""


class Normalized(msgspec.Struct, frozen=True, gc=False):
    """A text without its noise."""

    source: str
    """The text, with single blanks for white space."""
    shape: str
    """The same for texts that differ only in noise of the same kind and length."""
    template: Template

    @property
    def text(self) -> str:
        """The normalized text."""
        return self.template.text

    @property
    def replaced(self) -> tuple[tuple[str, str], ...]:
        """(Kind, original) of every placeholder, in their order; empty where that is unknown."""
        return originals(self.source, self.template.noise)


def originals(source: str, noise: Noise) -> tuple[tuple[str, str], ...]:
    """(Kind, original) of the noise in a text."""
    return tuple([(kind, source[start:end]) for kind, start, end in noise])


def normalize(text: str) -> Normalized:
    """Replace the noise in `text` by ``<n>`` (a number with its unit), ``<id>``, ``<hex>``, ``<time>``, ``<path>``,
    ``<url>``, ``<ip>`` and ``<quoted>`` (a value of several words).

    White space becomes single blanks. Normalizing is idempotent. The work is bounded, whatever the text; for a
    text like an earlier one, but for its ids and numbers, it is a lookup.
    """
    original, text = text, " ".join(ends(text, MAX_INPUT).split())
    shape = _NUMERAL.sub(_mask, text)
    template, values = _shaped(shape)
    if values:
        for start, end in values:
            shape = shape[:start] + text[start:end] + shape[end:]
        template, _ = _shaped(shape, values)
    if template is None:
        shape, template = text, template_of(text)
    return Normalized(text, shape if len(original) <= MAX_INPUT else original, template)


def _mask(match: re.Match[str]) -> str:
    """A number as long as this one, the same for all that are noise in the same places."""
    token = match.group()
    if token.isdecimal():
        return token if _UNLIKE.fullmatch(token) else "1" * len(token)
    if _EXPONENT.fullmatch(token):
        return token.translate(_ONES)
    first = token[0]
    return ("1" if first.isdecimal() else "A" if first < "a" else "a") + ("1a" * len(token))[: len(token) - 1]


@lru_cache(maxsize=MAX_SHAPES)
def _shaped(
    shape: str, values: tuple[tuple[int, int], ...] = ()
) -> tuple[Template | None, tuple[tuple[int, int], ...]]:
    """The template of a shape in which these `values` are not masked, or None and the ranges that must not be either.

    The ranges are empty if there is no template for all texts of the shape.
    """
    template = template_of(shape)
    ends = [0, *(end for _, _, end in template.noise)]
    starts = [*(start for _, start, _ in template.noise), len(shape)]
    stable = tuple(
        match.span()
        for stretch in zip(ends, starts, strict=True)
        for match in _NUMERAL.finditer(shape, *stretch)
        if match.span() not in values and _mask(match) == match.group()
    )
    if not stable:
        return template, ()
    return None, () if values else stable


def joined(*parts: Normalized) -> Normalized:
    """Several texts as one, each after `SEPARATOR`."""
    source, shape, text = (
        SEPARATOR.join(getattr(part, name) for part in parts) for name in ("source", "shape", "text")
    )
    noise, start = [], 0
    for part in parts:
        noise += [(kind, start + begin, start + end) for kind, begin, end in part.template.noise]
        start += len(part.source) + len(SEPARATOR)
    codes = tuple(code for part in parts for code in part.template.codes)
    return Normalized(source, shape, Template(text, tuple(noise), codes))


def template_of(text: str) -> Template:
    """Find the noise of a text in which all white space is single blanks. The slow part of `normalize`."""
    template = _pass(text)
    if len(template.text) <= MAX_TEXT and not _SIGNS.search(template.text):
        return template
    settled = _settle(template.text)
    return replace(template, codes=settled.codes) if settled.text == template.text else settled


@lru_cache(maxsize=4096)
def _settle(text: str) -> Template:
    """Normalize a text that was normalized once, until it stays: few of very many texts differ by then."""
    for _ in range(_MAX_PASSES):
        after = _pass(" ".join(text.split()))
        if after.text == text or (len(after.text) <= MAX_TEXT and not _SIGNS.search(after.text)):
            return replace(after, noise=())
        text = after.text
    return Template(UNSTABLE, ())


def _pass(text: str) -> Template:
    noise: list[tuple[str, int, int]] = []
    codes: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        token, kind = match.group(), match.lastgroup
        if kind is None or kind == "placeholder":
            return token
        if kind in _NUMERIC and (hinted or _STATUS.fullmatch(token)) and _is_code(match):
            codes.append(token)
            return token
        start, end = match.span()
        if kind == "word":
            return _word(token, start, noise)
        head = ""
        if kind == "key":
            head, start = ")=", start + len(")=")
        elif kind == "time" and _HEX.fullmatch(token):
            kind = "hex"  # it only looks like so many days
        kind = _KIND_OF.get(kind, kind)
        noise.append((kind, start, end))
        return f"{head}<{kind}>"

    hinted = contains_any(text.lower(), _HINTS)
    return Template(ends(_NOISE.sub(placeholder, text), MAX_TEXT), tuple(noise), tuple(codes))


def contains_any(text: str, parts: Iterable[str]) -> bool:
    """Return whether one of the words is in a text; faster than a regular expression."""
    return any(map(text.__contains__, parts))


def _is_code(match: re.Match[str]) -> bool:
    """Whether the text around a number says that it is a status, error or exit code."""
    text, start, end = match.string, match.start(), match.end()
    before = text[max(0, start - _LONGEST_CONTEXT) : start].lower()
    head = before.rstrip(" :='\"([#")
    rest, _, word = head.rpartition(" ")
    if len(head) < len(before):
        closest = rest.rpartition(" ")[2] if word in _BETWEEN else word
        if closest.endswith(_BEFORE_CODE) or closest.startswith(("http", "<signals.")) or head.endswith("os error"):
            return "://" not in closest
    if not _STATUS.fullmatch(text, start, end):
        return False
    if before.endswith("("):  # Forbidden (403), (401) Unauthorized, (1062, "Duplicate entry")
        named = before[:-1].rstrip().endswith(_PHRASES) or _PHRASE.match(text, end + 1) is not None
        return named if text[end : end + 1] == ")" else text[end : end + 3] in (', "', ", '")
    if _PHRASE.match(text, end):
        return True
    return word in _BEFORE_STATUS and _AFTER_STATUS.match(text, end) is not None


def _word(word: str, start: int, noise: list[tuple[str, int, int]]) -> str:
    """A word with digits: an id goes, and so does a number that is a part of its own (``job-7``); a name stays."""
    if _ERROR_CODE.fullmatch(word):
        return word
    end = start + len(word)
    if numbered := _NUMBERED.fullmatch(word):
        noise.append(("n", start + numbered.start(2), end))
        return f"{numbered[1]}<n>"
    if _WHOLE_NUMBER.fullmatch(word):
        kind = "n"
    else:
        parts = re.split(r"([-_]+)", word)
        if not any(map(_is_id, parts)):
            return _without_numbers(parts, start, noise)
        kind = "id"
    noise.append((kind, start, end))
    return f"<{kind}>"


def _without_numbers(parts: list[str], start: int, noise: list[tuple[str, int, int]]) -> str:
    masked = []
    for part in parts:
        if part.isdecimal():
            noise.append(("n", start, start + len(part)))
        masked.append("<n>" if part.isdecimal() else part)
        start += len(part)
    return "".join(masked)


def _is_id(part: str) -> bool:
    """Whether a part of a word is random: ``9f3a2b7c``, and neither ``int64`` nor ``E0382``."""
    digits = sum(map(str.isdigit, part))
    if not digits or len(part) < 6:
        return False
    return digits >= 6 or bool(_HEX.fullmatch(part)) or len(re.findall(r"\d+", part)) > 1


def ends(text: str, limit: int) -> str:
    """At most `limit` characters of a text: of its beginning twice as many as of its end."""
    if len(text) <= limit:
        return text
    tail = (limit - len(_CUT)) // 3
    return text[: limit - len(_CUT) - tail] + _CUT + text[-tail:]


# ---- wrapping


MAX_LAYERS: Final = 6
"""Wrappings that are removed, one inside the other."""

_EXCEPTION: Final = (
    r"(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*"
    r"(?:Error|Exception|Exit|Expired|Failure|Fault|Interrupt|Timeout|Violation|Warning|Refused|NotFound|Denied)s?"
)
_PREFIX: Final = re.compile(rf"(?P<type>{_EXCEPTION})(?::\s+|:?$)|(?P<generic>(?i:error|exception)):\s+", re.ASCII)
_DRIVER: Final = re.compile(r"\((?:[a-z]\w*\.)+(?P<type>[A-Z]\w*)\)\s+", re.ASCII)
"""SQLAlchemy puts the type of the database's own error in front."""
_REPR: Final = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*)\("
    r"(?:(?P<errno>\d+), |message=)?(?P<quote>['\"])(?P<text>.*?)(?:(?P=quote),?\)?|…)",
    re.DOTALL | re.ASCII,
)
_INNER_REPR: Final = re.compile(rf"\b(?P<type>{_EXCEPTION})\((['\"])(?P<text>(?:(?!\2).)*)\2,?\)", re.ASCII)
_QUOTED: Final = re.compile(r"(['\"])((?:(?!\1).)*)\1", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_GENERIC: Final = frozenset({"error", "exception", "toolerror", "tool_error", "failed", "failure"})

_TRACEBACK: Final = "Traceback (most recent call last):"
_PYTHON_FRAME: Final = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line \d+, in (?P<name>.+)$', re.MULTILINE)
_PYTHON_END: Final = re.compile(rf"^(?=[^\s({CUT}])", re.MULTILINE)
_NODE_FRAME: Final = re.compile(
    r"^\s+at (?:(?:async )?(?P<name>[^\s(]+)[^(\n]*\()?(?P<path>[^()\n]+?):\d+:\d+\)?$", re.MULTILINE
)
_NODE_ERROR: Final = re.compile(rf"^(?:{_EXCEPTION}|Error)(?=: |$)", re.MULTILINE | re.ASCII)
"""Above it, Node prints the line of code, and programs their own output."""
NOT_USER_CODE: Final = re.compile(
    r"[/\\](?:site-packages|dist-packages|node_modules|lib[/\\]python[\d.]*)[/\\]|^<frozen|^node:"
)
_PANIC: Final = re.compile(
    r"(?P<thread>thread '[^'\n]*')(?: \(\d+\))? panicked at "
    r"(?:'(?P<old>.*?)', (?P<where>\S+?)|(?P<path>\S+?)):\d+:\d+(?::\s*(?P<new>.*))?$",
    re.DOTALL,
)
_TAIL: Final = re.compile(
    r"\n\s*(?:\[SQL: |\[parameters: |\(Background on this error|DETAIL: |HINT: |LINE \d+: |For more information check: "
    r"|For further information visit |note: run with `RUST_BACKTRACE|stack backtrace:|goroutine \d+ \[).*",
    re.DOTALL,
)
"""Printed after the message: data of this one call, and links."""

_FIELD: Final = re.compile(
    r"""["'](?P<key>\w+)["']\s*:\s*(?:
        "(?P<double>(?:[^"\\]|\\.)*)(?:"|$) | '(?P<single>(?:[^'\\]|\\.)*)(?:'|$)
      | (?P<number>-?\d+)\b | (?P<list>\[[^\[\]{}]*\])
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_MESSAGE: Final = re.compile(
    r"(?:error_?)?message|msg|details?|error|(?:error_)?description|title|reason", re.IGNORECASE
)
_CODE: Final = re.compile(r"(?:error_?)?(?:code|type)|status(?:_?code)?|kind|param|field|loc|path", re.IGNORECASE)
"""Names of the fields of JSON errors that matter."""
_STATUS_PREFIX: Final = re.compile(r"(?:API )?(?:Error|HTTP)(?: code| status)?:?\s*(?P<status>\d{3})\W*", re.IGNORECASE)
_MARKS: Final = ("(", "{", "[", ":", "\n", "'", '"', "rror", "xception", "imeout")
"""One of them is in every text that is wrapped."""


class ErrorText(NamedTuple):
    """The type, codes and message of an error, as a library reported it."""

    type: str | None
    """Name of the exception without its module; None if there is none."""
    text: str
    frame: str | None = None
    """The last frame of a traceback in user code: ``load in tools.py``."""
    subject: str = ""
    """Deciding words that normalizing the text would replace: a command, what a browser waited for."""
    host: str = ""
    """Host of the connection or request, without the digits of pooled machines; empty if unknown or this machine."""
    leaves: tuple[ErrorText, ...] = ()
    """The exceptions of a group."""


def unwrap(kind: str | None, text: str) -> ErrorText:
    """Return the error inside of these wrappings; `kind` is the type that the trace records, if any."""
    if kind and text.startswith(kind) and text[len(kind) :][:1] in ("", ":", " "):
        text = text[len(kind) :].lstrip(": ")
    kind = _short(kind)
    if not contains_any(text, _MARKS):
        return ErrorText(kind, text.strip())
    frame = None
    for _ in range(MAX_LAYERS):
        before = text
        text = text.strip()
        text, inner_frame = _without_traceback(text)
        frame = inner_frame or frame
        if text[:1] == "(" and (driver := _DRIVER.match(text)):
            kind, text = driver["type"], text[driver.end() :]
        own, text = _without_type(text)
        if own is not None and kind is not None and kind != own:
            text = f"{own}: {text}" if text else own
        kind = kind or own
        text = _without_json(text)
        if "\n" in text:
            text = _TAIL.sub("", text)
        if text == before:
            break
    if "('" in text or '("' in text:
        text = _INNER_REPR.sub(r"\g<type>: \g<text>", text)
    if text.startswith("[Errno "):
        kind = None  # it follows from the number
    return ErrorText(kind, text, frame)


@lru_cache(maxsize=1024)
def _short(kind: str | None) -> str | None:
    """The type without its module; None for a word that only says that something failed."""
    if not kind or kind.lower() in _GENERIC:
        return None
    return kind.rsplit(".", 1)[-1] if re.fullmatch(r"[\w.]+\.[A-Z_]\w*", kind) else kind


def _without_type(text: str) -> tuple[str | None, str]:
    """The type that a text itself names, and the rest."""
    if text[:1] in "'\"" and (quoted := _QUOTED.fullmatch(text)):
        return None, _unescape(quoted[2])
    if prefix := _PREFIX.match(text):
        return _short(prefix["type"]), text[prefix.end() :]
    head = _REPR.match(text) if "(" in text[:200] else None
    if head is None or not (call := _REPR.fullmatch(text)):
        return None, text
    inner = _unescape(call["text"])
    return _short(call["type"]), f"[Errno {call['errno']}] {inner}" if call["errno"] else inner


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text) if "\\" in text else text


def _without_traceback(text: str) -> tuple[str, str | None]:
    """The message of the last traceback, Node stack or Rust panic of a text, and its last frame in user code."""
    if (_TRACEBACK in text or CUT in text) and (traceback := _python_traceback(text)):
        return traceback
    if "panicked at" in text and (panic := _PANIC.search(text)):
        message = panic["old"] or panic["new"] or panic["thread"]
        return f"panic: {message}", panic["where"] or panic["path"]
    if "\n    at " in text:
        frames = [(match["name"] or "", match["path"]) for match in _NODE_FRAME.finditer(text)]
        message = text.partition("\n    at ")[0]
        starts = [match.start() for match in _NODE_ERROR.finditer(message)]
        return message[starts[-1] :] if starts else message, _frame(frames)
    return text, None


def _python_traceback(text: str) -> tuple[str, str | None] | None:
    """The same of a traceback of Python. Its header may be in the part of the text that was cut (`excerpt`)."""
    head, header, trace = text.rpartition(_TRACEBACK)
    _, cut, end = trace.rpartition(f"{CUT}\n")
    if not cut or not _PYTHON_FRAME.search(end):
        if not header:
            return None
        end = trace
    end = end.lstrip("\n")
    message = _PYTHON_END.search(end)
    if not header and message is None:
        return None
    frames = [(match["name"], match["path"]) for match in _PYTHON_FRAME.finditer(trace)]
    return (end[message.start() :] if message else head).strip(), _frame(frames[::-1])


def _frame(frames: list[tuple[str, str]]) -> str | None:
    """The first of these frames that is in user code; the very first where none is."""
    own = [frame for frame in frames if not NOT_USER_CODE.search(frame[1])] or frames
    if not own:
        return None
    name, path = own[0]
    file = path.replace("\\", "/").rpartition("/")[2]
    return f"{name} in {file}" if name else file


def _without_json(text: str) -> str:
    """The message and the codes of a JSON object or ``repr`` of a dictionary, after what stands in front of it."""
    start = text.find("{")
    if start < 0:
        return text
    messages: dict[str, None] = {}
    codes: dict[str, None] = {}
    for match in _FIELD.finditer(text, start):
        key = match["key"]
        quoted = match["double"] if match["double"] is not None else match["single"]
        value = match["number"] or (_unescape(quoted) if quoted is not None else None)
        is_code = _CODE.fullmatch(key) is not None
        if is_code and match["list"]:
            codes.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", match["list"])))
        elif value is None or "://" in value[:12] or value.lower() in _GENERIC:
            continue
        elif is_code and len(value) <= 80:
            codes[value] = None
        elif _MESSAGE.fullmatch(key):
            messages[value] = None
    if not messages and not codes:
        return text
    prefix = text[:start].strip()
    if status := _STATUS_PREFIX.fullmatch(prefix):
        codes, prefix = {status["status"]: None, **codes}, ""
    text = "; ".join([*messages][:3])
    numbers = [f"code {code}" for code in codes if code.lstrip("-").isdecimal()]
    names = [code for code in codes if not code.lstrip("-").isdecimal() and code not in text]
    parts = [prefix.rstrip(":- "), " ".join([*numbers, *sorted(names)]), text]
    return ": ".join(part for part in parts if part)
