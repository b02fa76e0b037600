"""The writings of a value: exact, or the same number, date or id written in another way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Final, NamedTuple

MAX_VALUE: Final = 200
"""Longest value to look for, in characters."""
_SEPARATORS: Final = "[,_'’\u00a0\u202f ]"
_NUMBER: Final = re.compile(r"[$€£]?(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?)")
_NUMBERS: Final = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?\\.?" if len(name) > 3 else name for name in _MONTHS)
_DATES: Final = (
    re.compile(r"(?P<year>\d{4})[-/.]?(?P<month>\d{2})[-/.]?(?P<day>\d{2})"),
    re.compile(rf"(?P<name>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})", re.IGNORECASE),
    re.compile(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?P<name>{_MONTH}),? (?P<year>\d{{4}})", re.IGNORECASE),
)
_ID: Final = re.compile(r"#?(?=[^\s]*\d|[A-Z0-9_-]+$)[A-Za-z0-9][A-Za-z0-9_.:-]{3,}")
_PATH: Final = re.compile(r"[\w.@~+-]*(?:/[\w.@+-]+)+/?")
_ID_BREAK: Final = re.compile(r"[#_ -]+")
_TOKEN: Final = re.compile(r"#?[\w$€£][\w./:@,'-]*")


class Match(StrEnum):
    """How the text at one end of a link is the text at the other end."""

    EXACT = "exact"
    NUMBER = "same number"
    DATE = "same date"
    DAY = "same day, without a year"
    ID = "same id"
    SUM = "sum"
    DIFFERENCE = "difference"
    NONE = "in no earlier recorded text"
    PARENT = "call of the sub-agent"
    ARGUMENT = "another argument"
    CALL = "another call"


class Occurrence(NamedTuple):
    """Where a text has a value, and in which writing."""

    start: int
    quote: str
    match: Match


class Writings:
    """Finds a value in texts, in any of its writings."""

    def __init__(self, value: str) -> None:
        """`value` is stripped, and cut to `MAX_VALUE` characters."""
        self.value = value = value.strip()[:MAX_VALUE]
        exact = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)") if value else None
        if exact is not None and number_of(value) is not None:
            exact = re.compile(rf"(?<![\w.]){re.escape(value)}(?!\w|[.,]\d)")
        self._exact = exact
        self._others = [(match, re.compile(pattern, re.IGNORECASE)) for match, pattern in _others(value)]

    def occurs_exactly(self, text: str) -> bool:
        """Whether a text has the value exactly."""
        return self._exact is not None and self.value in text and self._exact.search(text) is not None

    def find(self, text: str) -> Occurrence | None:
        """Return the first exact occurrence, else the first in another writing."""
        if self._exact is not None and self.value in text and (occurrence := self._exact.search(text)):
            return Occurrence(occurrence.start(), occurrence[0], Match.EXACT)
        for match, pattern in self._others:
            if occurrence := pattern.search(text):
                return Occurrence(occurrence.start(), occurrence[0], match)
        return None


def _others(value: str) -> Iterator[tuple[Match, str]]:
    day = date_of(value)
    if day is not None:
        yield from _date_patterns(day)
    elif (number := number_of(value)) is not None:
        yield Match.NUMBER, _number_pattern(number)
    elif _ID.fullmatch(value):
        letters = _ID_BREAK.sub("", value)
        yield Match.ID, r"(?<![A-Za-z0-9])#?" + "[-_ ]?".join(map(re.escape, letters)) + r"(?![A-Za-z0-9])"


def number_of(text: str) -> Decimal | None:
    """The number that a whole text is: ``1,250.00``, ``$305``; None for any other text."""
    match = _NUMBER.fullmatch(text)
    return None if match is None else _decimal(match[1])


def numbers_in(text: str) -> list[str]:
    """The numbers in a text in their plain form (`plain_number`), without signs."""
    return [plain_number(word) if "," in word or "." in word else word for word in _NUMBERS.findall(text)]


def plain_number(word: str) -> str:
    """The number without separators of thousands and zeros at the end of its fraction: ``1250`` for ``1,250.00``."""
    word = word.replace(",", "")
    return word.rstrip("0").rstrip(".") if "." in word else word


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


def _number_pattern(number: Decimal) -> str:
    integer, _, fraction = f"{abs(number):f}".partition(".")
    fraction = fraction.rstrip("0")
    groups = [integer[max(0, end - 3) : end] for end in range(len(integer), 0, -3)][::-1]
    end = rf"\.{fraction}0*" if fraction else r"(?:\.0+)?"
    sign = "-" if number < 0 else ""
    return rf"(?<![\w.]){sign}" + f"{_SEPARATORS}?".join(groups) + end + r"(?!\w|[.,]\d)"


def date_of(text: str) -> date | None:
    """The date that a whole text is: ``2024-05-20``, ``May 20, 2024``; None for any other text."""
    match = next((match for pattern in _DATES if (match := pattern.fullmatch(text))), None)
    if match is None:
        return None
    fields = match.groupdict()
    month = (
        next(i for i, name in enumerate(_MONTHS, 1) if name[:3].lower() == fields["name"][:3].lower())
        if ("name" in fields)
        else int(fields["month"])
    )
    try:
        return date(int(fields["year"]), month, int(fields["day"]))
    except ValueError:
        return None


def _date_patterns(day: date) -> Iterator[tuple[Match, str]]:
    name = _MONTHS[day.month - 1]
    month = rf"{name[:3]}(?:{name[3:]})?\.?" if len(name) > 3 else name
    number, two = rf"0?{day.day}(?:st|nd|rd|th)?", f"{day.day:02}"
    numeric = rf"{day.year}[-/.]?{day.month:02}[-/.]?{two}|0?{day.month}/0?{day.day}/{day.year}"
    spelled_out = (
        rf"{month} {number},? {day.year}|{number} (?:of )?{month},? {day.year}|{two}\.{day.month:02}\.{day.year}"
    )
    yield Match.DATE, rf"(?<!\w)(?:{numeric}|{spelled_out})(?!\w)"
    yield Match.DAY, rf"(?<!\w)(?:{month} {number}|{number} (?:of )?{month})(?!\w)"


def is_value(text: str) -> bool:
    """Whether a text is a number of two digits or more, a date, an id or a path."""
    if number_of(text) is not None:
        return sum(map(str.isdigit, text)) > 1
    return is_name(text) or date_of(text) is not None


def is_name(text: str) -> bool:
    """Whether a text is an id or a path, neither a number nor a date."""
    if text.isdigit() or len(text) > MAX_VALUE or not (_ID.fullmatch(text) or _PATH.fullmatch(text)):
        return False
    return number_of(text) is None and date_of(text) is None


def value_in(text: str) -> str | None:
    """The text itself if it is short and has no blank, else the first number, date or id in it; None without any."""
    text = text.strip()
    if 0 < len(text) <= MAX_VALUE and not any(map(str.isspace, text)):
        candidates = [text.strip("\"'“”,;()[]{}")]
        return candidates[0] or None
    date = next((match[0] for pattern in _DATES[1:] if (match := pattern.search(text))), None)
    candidates = [match[0].rstrip(".,:'") for match in _TOKEN.finditer(text)]
    return next((word for word in candidates if is_value(word)), None) if date is None else date
