"""Values as text, and labels that distinguish values that print alike: ``2`` and ``"2"``, NFC and NFD."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final
from unicodedata import category, is_normalized, normalize

import msgspec

from tracetui.masking import one_line
from tracetui.text import UNSAFE, Clean


def is_container(value: object) -> bool:
    """True for mappings and sequences (but not text or bytes)."""
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
    )


def scalar_text(value: object) -> Clean:
    """The text of a value that is neither text nor a container; `repr` for non-JSON types."""
    if value is None or isinstance(value, bool):
        return Clean({None: "null", True: "true", False: "false"}[value])
    if isinstance(value, int):
        return Clean(str(value) if value.bit_length() < 10_000 else hex(value))
    if isinstance(value, float):
        return Clean(repr(value) if math.isfinite(value) else str(value))
    return one_line(repr(value[:200] if isinstance(value, bytes | bytearray) else value), 500)


def value_text(value: Any) -> str:
    """The complete text of a value, for search and copy."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, ValueError, TypeError):
        return " ".join(value_leaves(value))


def value_leaves(value: Any) -> Iterator[str]:
    """Every key and every scalar of a value as text, at any depth."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            yield from map(str, item)
            stack.extend(reversed(list(item.values())))
        elif is_container(item):
            stack.extend(reversed(item))
        else:
            yield item if isinstance(item, str) else scalar_text(item)


LENGTH: Final = 1_000_000
"""Maximum characters of a text to compare."""
_MAX_POINTS: Final = 4
_ANOTHER: Final = "different call"
_NUMBERS: Final = {Clean("integer"): Clean("number"), Clean("float"): Clean("number")}


def lookalike_labels(a: Any, b: Any) -> tuple[Clean, Clean] | None:
    """Labels for two values that print alike: ``("string", "number")``; None if they print differently."""
    if isinstance(a, str) and isinstance(b, str):
        if max(len(a), len(b)) > LENGTH:
            return None
        if a == b:
            return Clean(""), Clean(_ANOTHER)
        return _text_labels(a, b) if _look(a) == _look(b) else None
    kinds = _kind(a), _kind(b)
    if isinstance(a, str) or isinstance(b, str):
        left, right = _look(_written(a)), _look(_written(b))
        if isinstance(a, dict | list) or isinstance(b, dict | list):
            left, right = left.replace(" ", ""), right.replace(" ", "")
        return (_NUMBERS.get(kinds[0], kinds[0]), _NUMBERS.get(kinds[1], kinds[1])) if left == right else None
    if kinds[0] != kinds[1] and not isinstance(a, bool) and not isinstance(b, bool) and a == b:
        return kinds
    return (Clean(""), Clean(_ANOTHER)) if a == b and kinds[0] == kinds[1] == "integer" else None


def with_label(text: Clean, label: Clean) -> Clean:
    """A printed value with its label: ``"2" (string)``."""
    if label == "string":
        text = Clean(f'"{text}"')
    return Clean(f"{text} ({label})") if label else text


def lookalike_note(a: Any, b: Any) -> Clean:
    """One phrase that distinguishes two values that print alike; empty if they print differently."""
    labels = lookalike_labels(a, b)
    if labels is None:
        return Clean("")
    return Clean(" · ".join(f"{side} {label}" for side, label in zip("AB", labels, strict=True) if label))


def _kind(value: Any) -> Clean:
    kinds = (
        (str, "string"), (bool, "boolean"), (int, "integer"), (float, "float"), (dict, "object"), (list, "list"),
    )  # fmt: skip
    return Clean(next((word for kind, word in kinds if isinstance(value, kind)), "null" if value is None else "value"))


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, RecursionError, OverflowError):
        return repr(type(value))


def _look(text: str) -> str:
    """A text as it prints on one line."""
    return " ".join(normalize("NFKC", UNSAFE.sub(_unseen, text)).split())


def _unseen(match: Any) -> str:
    return " " if match.group().isspace() else ""


def _text_labels(a: str, b: str) -> tuple[Clean, Clean]:
    if normalize("NFC", a) == normalize("NFC", b):
        return _form(a, b), _form(b, a)
    if a.replace("\r\n", "\n") == b.replace("\r\n", "\n"):
        return _ends(a), _ends(b)
    at = _common(a, b)
    while at and _is_unseen(a[at - 1]):
        at -= 1
    runs = ["".join(takewhile(_is_unseen, text[at:])) for text in (a, b)]
    if runs == ["", ""]:
        at = _letter(a, b, at)
        runs = [text[at : at + 1] + _marks(text, at) for text in (a, b)]
    return _characters(a, at, runs[0]), _characters(b, at, runs[1])


def _common(a: str, b: str) -> int:
    """Length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _letter(a: str, b: str, at: int) -> int:
    """Start of the letter that combining marks at a position of either text belong to."""
    while at and any(category(text[at : at + 1] or "a")[0] == "M" for text in (a, b)):
        at -= 1
    return at


def _marks(text: str, at: int) -> str:
    """The combining marks of the letter at a position."""
    return "".join(takewhile(lambda character: category(character)[0] == "M", text[at + 1 : at + 1 + _MAX_POINTS]))


def _form(text: str, other: str) -> Clean:
    """The Unicode form of a text, and its first letter that is encoded differently in `other`."""
    name = next((form for form in ("NFC", "NFD") if is_normalized(form, text)), "no normal form")
    if name == "NFC" and not is_normalized("NFC", other):
        return Clean(name)
    at = _letter(text, other, _common(text, other))
    marks = _marks(text, at)
    points = " ".join(f"U+{ord(mark):04X}" for mark in (marks or text[at : at + 1]))
    letter = f"{text[at]} " if marks and not UNSAFE.match(text[at]) else ""
    return Clean(f"{name}: {letter}{points}")


def _ends(text: str) -> Clean:
    both = text.count("\r\n")
    return Clean("LF" if not both else "CRLF" if both == text.count("\n") else f"{both} of {text.count(chr(10))} CRLF")


def _is_unseen(character: str) -> bool:
    return character.isspace() or UNSAFE.match(character) is not None


def _characters(text: str, at: int, run: str) -> Clean:
    """The characters `run` at a position: ``U+00A0 at 5``."""
    if not run:
        return Clean(f"nothing at {at + 1}")
    if at + len(run) == len(text) and not run.strip(" "):
        return Clean(f"{len(run)} trailing {'space' if len(run) == 1 else 'spaces'}")
    points = " ".join(f"U+{ord(character):04X}" for character in run[:_MAX_POINTS])
    return Clean(f"{points}{' …' if len(run) > _MAX_POINTS else ''} at {at + 1}")
