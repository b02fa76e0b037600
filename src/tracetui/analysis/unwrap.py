"""Unwraps the text of an error: ``repr`` of an exception, JSON envelopes, tracebacks and panics.

Agents and libraries wrap one error in many ways. The result is the message of the library itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from tracetui.analysis.normalize import contains_any
from tracetui.model import CUT

MAX_LAYERS: Final = 6
"""Wrappings that are removed, one inside the other."""

_TYPE: Final = (
    r"(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*"
    r"(?:Error|Exception|Exit|Expired|Failure|Fault|Interrupt|Timeout|Violation|Warning|Refused|NotFound|Denied)s?"
)
_PREFIX: Final = re.compile(rf"(?P<type>{_TYPE})(?::\s+|:?$)|(?P<generic>(?i:error|exception)):\s+", re.ASCII)
_DRIVER: Final = re.compile(r"\((?:[a-z]\w*\.)+(?P<type>[A-Z]\w*)\)\s+", re.ASCII)
"""SQLAlchemy puts the type of the database's own error in front."""
_REPR: Final = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*)\("
    r"(?:(?P<errno>\d+), |message=)?(?P<quote>['\"])(?P<text>.*?)(?:(?P=quote),?\)?|…)",
    re.DOTALL | re.ASCII,
)
_INNER_REPR: Final = re.compile(rf"\b(?P<type>{_TYPE})\((['\"])(?P<text>(?:(?!\2).)*)\2,?\)", re.ASCII)
_QUOTED: Final = re.compile(r"(['\"])((?:(?!\1).)*)\1", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_GENERIC: Final = frozenset({"error", "exception", "toolerror", "tool_error", "failed", "failure"})

_TRACEBACK: Final = "Traceback (most recent call last):"
_PYTHON_FRAME: Final = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line \d+, in (?P<name>.+)$', re.MULTILINE)
_PYTHON_END: Final = re.compile(rf"^(?=[^\s({CUT}])", re.MULTILINE)
_NODE_FRAME: Final = re.compile(
    r"^\s+at (?:(?:async )?(?P<name>[^\s(]+)[^(\n]*\()?(?P<path>[^()\n]+?):\d+:\d+\)?$", re.MULTILINE
)
_NODE_ERROR: Final = re.compile(rf"^(?:{_TYPE}|Error)(?=: |$)", re.MULTILINE | re.ASCII)
"""Above it, Node prints the line of code, and programs their own output."""
_NOT_USER_CODE: Final = re.compile(
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
_STATUS: Final = re.compile(r"(?:API )?(?:Error|HTTP)(?: code| status)?:?\s*(?P<status>\d{3})\W*", re.IGNORECASE)
_MARKS: Final = ("(", "{", "[", ":", "\n", "'", '"', "rror", "xception", "imeout")
"""One of them is in every text that is wrapped."""


class ErrorText(NamedTuple):
    """What a library said of an error."""

    type: str | None
    """Name of the exception without its module; None if there is none."""
    text: str
    frame: str | None = None
    """The last frame of a traceback in user code: ``load in tools.py``."""


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
        text, found = _without_traceback(text)
        frame = found or frame
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
    if head is None or not (found := _REPR.fullmatch(text)):
        return None, text
    inner = _unescape(found["text"])
    return _short(found["type"]), f"[Errno {found['errno']}] {inner}" if found["errno"] else inner


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text) if "\\" in text else text


def _without_traceback(text: str) -> tuple[str, str | None]:
    """The message of the last traceback, Node stack or Rust panic of a text, and its last frame in user code."""
    if (_TRACEBACK in text or CUT in text) and (found := _python_traceback(text)):
        return found
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
    head, found, trace = text.rpartition(_TRACEBACK)
    _, cut, end = trace.rpartition(f"{CUT}\n")
    if not cut or not _PYTHON_FRAME.search(end):
        if not found:
            return None
        end = trace
    end = end.lstrip("\n")
    message = _PYTHON_END.search(end)
    if not found and message is None:
        return None
    frames = [(match["name"], match["path"]) for match in _PYTHON_FRAME.finditer(trace)]
    return (end[message.start() :] if message else head).strip(), _frame(frames[::-1])


def _frame(frames: list[tuple[str, str]]) -> str | None:
    """The first of these frames that is in user code; the very first where none is."""
    own = [frame for frame in frames if not _NOT_USER_CODE.search(frame[1])] or frames
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
        words = match["double"] if match["double"] is not None else match["single"]
        value = match["number"] or (_unescape(words) if words is not None else None)
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
    if status := _STATUS.fullmatch(prefix):
        codes, prefix = {status["status"]: None, **codes}, ""
    said = "; ".join([*messages][:3])
    numbers = [f"code {code}" for code in codes if code.lstrip("-").isdecimal()]
    words_of = [code for code in codes if not code.lstrip("-").isdecimal() and code not in said]
    parts = [prefix.rstrip(":- "), " ".join([*numbers, *sorted(words_of)]), said]
    return ": ".join(part for part in parts if part)
