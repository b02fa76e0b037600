"""Kinds of keys of the query language: how their values are written, and how they are compared."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

import msgspec

from tracetui.model import PassRule
from tracetui.redact import ASCII_MASK, MASK
from tracetui.store.query.syntax import Value

Test = Callable[[Any], bool]
"""Returns whether a value of a run or span matches."""


class Operand(msgspec.Struct, frozen=True):
    """A value of a term, with what its test depends on besides."""

    key: str
    """Name of the key."""
    fold: Callable[[str], str]
    """Normalizes names: names with equal results are equal."""
    compare: str
    """One of ``: = < <= > >=``."""
    value: Value
    now: float
    """UTC seconds."""


class Values(msgspec.Struct, frozen=True, eq=False):
    """The values of a kind of keys."""

    about: str
    test: Callable[[Operand], Test]
    """Returns the test for an operand. Raises ValueError, KeyError, OverflowError or OSError for text that is no such
    value, `UsageError` with what is wrong about it.
    """
    expects: str = ""
    """What to write in place of text that is no such value; empty: any text is one."""
    unfinished: re.Pattern[str] | None = None
    """Matches text that may become a value as typing goes on."""
    ordered: bool = False
    """Whether `<` and `>` compare them."""
    repeats: bool = True
    """Whether they repeat so often that each distinct one is tested once."""


_COMPARE: Final[dict[str, Callable[[float], Test]]] = {
    ":": lambda bound: lambda value: value is not None and value == bound,
    "=": lambda bound: lambda value: value is not None and value == bound,
    "<": lambda bound: lambda value: value is not None and value < bound,
    "<=": lambda bound: lambda value: value is not None and value <= bound,
    ">": lambda bound: lambda value: value is not None and value > bound,
    ">=": lambda bound: lambda value: value is not None and value >= bound,
}
_NUMBER: Final = re.compile(r"\$?(\d+(?:_\d+)*(?:\.\d*)?|\.\d+)([kmgb]?)", re.IGNORECASE)
_SIZES: Final = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "b": 1_000_000_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h|d|w)", re.IGNORECASE)
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
NONE: Final = "none"
"""Matches items without a name."""
_COMPARISON: Final = re.compile("[<>=!]")
"""The form of a value of `score` that is a comparison."""
_STARS: Final = re.compile(r"[*?]")
_MASKS: Final = re.compile(rf"{MASK}|{re.escape(ASCII_MASK)}|{re.escape(glob.escape(ASCII_MASK))}")
"""Masks, as they are and escaped."""
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def number(text: str) -> float:
    """Parse ``10``, ``1.5k``, ``2M`` or ``$0.05``; whole numbers as int, which compares faster. Raises ValueError."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError
    value = float(match[1]) * _SIZES[match[2].lower()]
    return int(value) if value.is_integer() else value


def milliseconds(text: str) -> float:
    """Parse ``250ms``, ``5s`` or ``1h30m``; a bare number is seconds. Raises ValueError."""
    if _NUMBER.fullmatch(text) and text[-1] in "0123456789.":
        return number(text) * 1_000
    at, total = 0, 0.0
    while match := _DURATION.match(text, at):
        total += float(match[1]) * _UNITS[match[2].lower()]
        at = match.end()
    if at == 0 or at < len(text):
        raise ValueError
    return total


def period(text: str, now: float) -> tuple[float, float]:
    """Parse a period in local time; return its begin and end in UTC seconds (``2h`` is a point). Raises ValueError."""
    here = datetime.fromtimestamp(now)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    if text.lower() in ("today", "yesterday"):
        begin = midnight - timedelta(days=text.lower() == "yesterday")
        return begin.timestamp(), (begin + timedelta(days=1)).timestamp()
    if _DURATION.match(text):
        ago = now - milliseconds(text) / 1_000
        return ago, ago
    if re.fullmatch(r"\d\d?:\d\d", text):
        begin = midnight.replace(hour=int(text[:-3]), minute=int(text[-2:]))
        return begin.timestamp(), begin.timestamp() + 60
    if match := re.fullmatch(r"(\d{4})(?:-(\d\d))?", text):
        year, month = int(match[1]), int(match[2] or 1)
        begin = datetime(year, month, 1)
        following = datetime(year + (not match[2] or month == 12), month % 12 + 1 if match[2] else 1, 1)
        return begin.timestamp(), following.timestamp()
    begin = datetime.fromisoformat(text)
    length = timedelta(days=1) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else timedelta(minutes=1)
    return begin.timestamp(), (begin + length).timestamp()


def strings(value: Any) -> Iterator[str]:
    """Yield the strings in a value: itself, or those of a tuple."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from strings(part)


def pattern(value: Value, fold: Callable[[str], str] = str.lower) -> Callable[[str], bool] | None:
    """Return a test of whole texts against a pattern, in linear time per piece; None if a value isn't one.

    `*` and `?` stand for text unless the value is quoted; so does the mask of a secret, wherever it was copied from.
    """
    text = glob.escape(value.text) if value.quoted else value.text.replace("[", "[[]")
    masked = any(mask in value.text for mask in (MASK, ASCII_MASK))
    if not masked and (value.quoted or not _STARS.search(value.text)):
        return None
    compiled = re.compile(fnmatch.translate(fold(_MASKS.sub("*", text))))
    return lambda text: compiled.match(fold(text)) is not None


def _name_test(operand: Operand) -> Test:
    value, fold = operand.value, operand.fold
    wanted = fold(value.text)
    if fits := pattern(value, fold):
        return _any(fits)
    same = _any(lambda name: fold(name) == wanted)
    if not value.quoted and wanted == NONE:
        return lambda value: not any(strings(value)) or same(value)
    return same


def _text_test(operand: Operand) -> Test:
    wanted = operand.value.text.lower()
    return _whole_text_test(operand) or _any(lambda text: wanted in text.lower())


def _id_test(operand: Operand) -> Test:
    wanted = operand.value.text.lower()
    return _whole_text_test(operand) or _any(lambda text: text.lower().startswith(wanted))


def _whole_text_test(operand: Operand) -> Test | None:
    """Return the test of a pattern or of `=`; None where a part of the text may match."""
    wanted = operand.value.text.lower()
    if fits := pattern(operand.value):
        return _any(fits)
    return _any(lambda text: text.lower() == wanted) if operand.compare == "=" else None


def _cause_test(operand: Operand) -> Test:
    """Return the test of a title and ids."""
    by_title, by_id = _text_test(operand), _id_test(operand)
    return lambda cause: bool(cause) and (by_title(cause[0]) or by_id(cause[1:]))


def _score_test(operand: Operand) -> Test:
    if not _COMPARISON.search(operand.value.text):
        named = _name_test(operand)
        return lambda scores: named(tuple(score.name for score in scores))
    rule = PassRule.parse(operand.value.text)
    return lambda scores: any(rule.applies_to(score) and rule.accepts(score.value) for score in scores)


def _truth_test(operand: Operand) -> Test:
    wanted = _TRUTHS[operand.value.text.lower()]
    return lambda value: bool(value) is wanted


def _time_test(operand: Operand) -> Test:
    """The test of a start; an undated run matches no time."""
    begin, end = period(operand.value.text, operand.now)
    if operand.key == "since":
        return lambda value: value is not None and value >= begin
    if operand.key == "before":
        return lambda value: value is not None and value < begin
    if operand.key == "until":
        return lambda value: value is not None and value < end
    return lambda value: value is not None and begin <= value < end


def _any(fits: Callable[[str], bool]) -> Test:
    """Return a test that matches a string, or any of several."""
    return lambda value: fits(value) if isinstance(value, str) else value is not None and any(map(fits, strings(value)))


class Kind(Enum):
    """How the values of a key are written and compared."""

    NAME = Values("the whole value, in any case: `tool:bash`; `none` where there is none", _name_test)
    TEXT = Values('a part of the text, in any case: `error:"timed out"`; with `=` all of it', _text_test)
    ID = Values("the beginning of the id; with `=` all of it", _id_test)
    NUMBER = Values(
        "a number, with `<`, `<=`, `>`, `>=` or `:`: `tokens>10k`, `tokens<2M`",
        lambda operand: _COMPARE[operand.compare](number(operand.value.text)),
        "a number such as `10`, `1.5k` or `2M`",
        re.compile(r"\$?[\d_.]*"),
        ordered=True,
        repeats=False,
    )
    DURATION = Values(
        "a duration: `250ms`, `5s`, `2m`, `1h30m`, `3d`, `1w`; a bare number counts seconds",
        lambda operand: _COMPARE[operand.compare](milliseconds(operand.value.text)),
        "a duration such as `250ms`, `5s`, `2m` or `1h30m`",
        re.compile(r"[\d.msdhw]*", re.IGNORECASE),
        ordered=True,
        repeats=False,
    )
    TIME = Values(
        "ago (`2h`, `3d`), `today`, `yesterday`, `09:30`, a date (`2026-11-20`, `2026-11`, `2026-11-20T18:00`)",
        _time_test,
        "`2h`, `3d`, `today`, `09:30` or a date such as `2026-11-20`",
        re.compile(r"[\d:TtZz.+-]*|t(od?|oda)?|y(est?|ester|esterd|esterda)?", re.IGNORECASE),
        repeats=False,
    )
    TRUTH = Values("`true` or `false`", _truth_test, "`true` or `false`")
    SCORE = Values(
        "a name, in any case, alone or compared: `score:reward`, `score:reward<0.5`, `score:accuracy=C`; "
        "in quotes if it has blanks; `none` for a run without scores",
        _score_test,
        repeats=False,
    )
    CAUSE = Values("the beginning of its id, or a part of its text, in any case; with `=` all of either", _cause_test)
    FACT = Values("one of the words below", _name_test)
