"""The gate for untrusted text, and number formatting.

Everything from a trace (contents, names, ids, paths, errors) passes `clean` before it reaches a terminal. `Clean` is a
`NewType`, so the type checker enforces the gate. Unsafe characters are *replaced by visible ones*, never filtered:
filtering escape sequences has failed in other programs (CVE-2022-46663 of less).
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final, NewType
from unicodedata import category

from rich.cells import cell_len, chop_cells

Masked = NewType("Masked", str)
"""Text whose secrets are masked. Only `tracetui.redact` and `tracetui.masking` make it."""
Clean = NewType("Clean", str)
"""Text without control, bidi, zero-width or otherwise invisible characters: safe to print in a terminal."""

TAB_SIZE: Final = 4
MAX_COMBINING: Final = 4
_ELLIPSIS: Final = "…"

UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\ufdd0-\ufdef\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)
"""Every character that a terminal may act on or that is invisible, as one class: clean text costs one scan.

Control (C0, DEL, C1), Cf format characters (soft hyphen, bidi controls, tags …), fillers, zero-width characters, line
and paragraph separators, variation selectors, skin tones, surrogates, non-characters. Private use passes (fonts).
"""
_EMOJI_STYLE: Final = re.compile("(?<=[\xa9\xae\u203c-\u3299\U0001f000-\U0001faff])\ufe0f")
"""The selector that asks for a symbol as an emoji, once per symbol: it is dropped, which only changes its look."""
_JAMO: Final = "\u1160-\u11ff\ud7b0-\ud7fb"  # Korean vowels and finals, in the cells of the preceding consonant
# Runs that may contain stacked marks: \w matches letters but not marks.
_MARKS: Final = re.compile(f"[^\\w\\s\x00-\u02ff{_JAMO}]{{5,}}|[{_JAMO}]{{5,}}")
_STACKED: Final = re.compile(f"[{_JAMO}]")


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 9:
        return " " * TAB_SIZE
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "\u2421"
    return f"<{code:04X}>"


def _takes_no_cell(character: str) -> bool:
    return category(character)[0] == "M" or _STACKED.match(character) is not None


def _cap_marks(match: re.Match[str]) -> str:
    """Cut each stack of combining marks in a run to `MAX_COMBINING`."""
    pieces: list[str] = []
    for is_mark, pile in groupby(match.group(), key=_takes_no_cell):
        marks = "".join(pile)
        more = len(marks) - MAX_COMBINING
        pieces.append(f"{marks[:MAX_COMBINING]}<+{more} marks>" if is_mark and more > 0 else marks)
    return "".join(pieces)


def exact(text: str, limit: int | None = None) -> Clean:
    """Make text safe for one line of a terminal, unmasked: ids, addresses, paths, and what the user or we wrote.

    Control characters become Unicode pictures (``\\n`` → ``␊``), other invisible ones ``<202E>``, tabs four spaces; a
    letter keeps at most four combining marks, a symbol no emoji style. Text beyond `limit` characters is cut.
    Idempotent.
    """
    if limit is not None and len(text) > limit:
        text = text[:limit] + _ELLIPSIS
    if text.isascii():
        if text.isprintable():
            return Clean(text)
        return Clean(UNSAFE.sub(_visible, text))
    if "\ufe0f" in text:
        text = _EMOJI_STYLE.sub("", text)
    return Clean(_MARKS.sub(_cap_marks, UNSAFE.sub(_visible, text)))


def clean(text: Masked | Clean, limit: int | None = None) -> Clean:
    """Make a masked text safe for one line of a terminal, as `exact` does."""
    return exact(text, limit)


def clean_lines(text: Masked | Clean) -> list[Clean]:
    """Split a masked text at ``\\n`` (and ``\\r\\n``) and clean each line; other line separators become visible."""
    return [exact(line[:-1] if line.endswith("\r") else line) for line in text.split("\n")]


def one_line(text: Masked | Clean, limit: int = 500) -> Clean:
    """A masked text on one line: runs of white space become one space, the rest as `clean`."""
    return exact(" ".join(text[: limit * 4].split()), limit)


def cells(text: Clean) -> int:
    """Width of cleaned text in terminal cells."""
    return len(text) if text.isascii() else cell_len(text)


def wrap(text: Clean, width: int) -> list[Clean]:
    """Wrap cleaned text to lines of at most `width` cells, at spaces if possible."""
    if width < 1:
        width = 1
    if cells(text) <= width:
        return [text]
    lines: list[Clean] = []
    ascii_only = text.isascii()
    rest: str = text
    while rest:
        if ascii_only:
            head = rest[:width]
        else:
            head = chop_cells(rest[: width * 2 + 8], width)[0] if cell_len(rest[: width + 1]) > width else rest[:width]
            if not head:
                head = rest[0]
        if len(head) < len(rest):
            blank = head.rfind(" ")
            if blank > width // 3 and rest[len(head)] != " ":
                head = head[: blank + 1]
        lines.append(Clean(head.rstrip(" ") if len(head) < len(rest) else head))
        rest = rest[len(head) :]
        if rest.startswith(" ") and not head.endswith(" "):
            rest = rest[1:]
    return lines


def truncate(text: Clean, width: int) -> Clean:
    """Truncate cleaned text to at most `width` cells, with ``…`` at the cut."""
    if width <= 0:
        return Clean("")
    if cells(text) <= width:
        return text
    if text.isascii():
        return Clean(text[: width - 1] + _ELLIPSIS)
    first = chop_cells(text[: width * 2], width - 1)[:1] if width > 1 else []  # excludes zero-width characters
    return Clean("".join(first) + _ELLIPSIS)


def truncate_middle(text: Clean, width: int) -> Clean:
    """Truncate cleaned text in the middle (paths, URLs, ids, model names) to at most `width` cells."""
    if cells(text) <= width:
        return text
    if width < 5:
        return truncate(text, width)
    if not text.isascii():
        return truncate(text, width)
    head = (width - 1) // 2
    return Clean(text[:head] + _ELLIPSIS + text[len(text) - (width - 1 - head) :])


def pad(text: Clean, width: int, *, right: bool = False) -> Clean:
    """Pad or truncate cleaned text to exactly `width` cells; `right` aligns right."""
    text = truncate(text, width)
    fill = " " * (width - cells(text))
    return Clean(fill + text if right else text + fill)


def duration(ms: float | None) -> Clean:
    """Milliseconds in at most five cells: ``230µs 820ms 9.1s 42.9s 1m02s 12m30 3h07m 10h42 4d02h 12d``.

    ``—`` for None and invalid durations (NaN, over 30,000 years). A negative one takes a cell more.
    """
    if ms is None or ms != ms or abs(ms) > 1e15:
        return Clean("—")
    if ms < 0:
        return Clean("-" + duration(-ms))
    if ms == 0:
        return Clean("0ms")
    if ms < 0.9995:
        return Clean(f"{max(1, round(ms * 1000))}µs")
    if ms < 999.5:
        return Clean(f"{ms:.0f}ms")
    seconds = ms / 1000
    if seconds < 99.95:
        return Clean(f"{seconds:.1f}s") if seconds < 59.95 else Clean(f"1m{round(seconds) - 60:02d}s")
    rounded = round(seconds)
    if rounded < 600:
        return Clean(f"{rounded // 60}m{rounded % 60:02d}s")
    if rounded < 3600:
        return Clean(f"{rounded // 60}m{rounded % 60:02d}")
    if rounded < 86400:
        return Clean(f"{rounded // 3600}h{rounded % 3600 // 60:02d}{'m' if rounded < 36_000 else ''}")
    days = rounded // 86400
    if days >= 10:
        return Clean(f"{days}d" if days < 10_000 else ">27y")
    return Clean(f"{days}d{rounded % 86400 // 3600:02d}h")


_UNITS: Final = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))


def tokens(count: int | None, *, at_least: bool = False) -> Clean:
    """A token count in at most five cells: ``346 9.8k 84.1k 190k 1.2M``; ``—`` for None; `at_least`: ``≥84k``."""
    if count is None:
        return Clean("—")
    if at_least:
        name, unit_size = next(((name, size) for name, size in _UNITS if count >= size), ("", 1))
        tenths = count * 10 // unit_size
        return Clean(f"≥{tenths // 10 if unit_size == 1 or tenths >= 100 else tenths / 10}{name}")
    if abs(count) < 1000:
        return Clean(str(count))
    if abs(count) >= 10**15:
        return Clean(">999T" if count > 0 else "<-1P")
    for unit, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        value = count / scale
        if abs(value) < 99.95:
            return Clean(f"{value:.1f}{unit}")
        if abs(value) < 999.5:
            return Clean(f"{value:.0f}{unit}")
    return Clean(f"{count / 1e12:.0f}T")


def age(seconds: float | None, *, estimated: bool = False) -> Clean:
    """An age in seconds, in at most four cells: ``now 41s 3m 5h 2d 3w 10mo 2y``; ``—`` for None.

    An `estimated` one, by the time of a file, is ``~3m``, and ``~43w`` instead of ten months.
    """
    if estimated and seconds is not None:
        label = f"~{age(seconds)}"
        return Clean(label if len(label) <= 4 else f"~{int(seconds // (7 * 86400))}w")
    if seconds is None:
        return Clean("—")
    if seconds < 10:
        return Clean("now")
    for unit, size, limit in (("s", 1, 60), ("m", 60, 3600), ("h", 3600, 86400), ("d", 86400, 14 * 86400)):
        if seconds < limit:
            return Clean(f"{int(seconds // size)}{unit}")
    days = seconds / 86400
    if days < 60:
        return Clean(f"{int(days // 7)}w")
    return Clean(f"{int(days // 30)}mo" if days < 700 else f"{int(days // 365)}y")


def count(number: int | None) -> Clean:
    """A count of at most four cells, ``12k`` above 9999; ``—`` for None."""
    if number is None:
        return Clean("—")
    if number <= 9999:
        return Clean(str(number))
    for unit, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if number < scale * 999.5:
            return Clean(f"{number / scale:.{1 if number < scale * 9.95 else 0}f}{unit}")
    return tokens(number)


def size(number: int) -> Clean:
    """A size in bytes: ``81 920 B`` below 100 kB, then ``1.1 GB``."""
    if number < 100_000:
        return Clean(f"{grouped(number)} B")
    for unit, scale in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if number < scale * 999.5:
            return Clean(f"{number / scale:.1f} {unit}" if number < scale * 99.95 else f"{number / scale:.0f} {unit}")
    return Clean(f"{number / 1e12:.1f} TB")


def grouped(number: int) -> Clean:
    """An integer in groups of three, ``81 920`` (with a plain space, for every terminal)."""
    return Clean(f"{number:,}".replace(",", " "))


def quantity(number: int | None, noun: str) -> Clean:
    """``1 call``, ``1 204 calls``, ``— calls`` for None: `noun` takes an s in the plural."""
    return Clean(f"{'—' if number is None else grouped(number)} {noun}{'' if number == 1 else 's'}")


def number(value: float) -> Clean:
    """A number for display: whole ones in groups of three, others with four significant digits."""
    if isinstance(value, bool):
        return Clean("true" if value else "false")
    if isinstance(value, int) or (abs(value) < 1e15 and value == int(value)):
        return grouped(int(value))
    return Clean(f"{value:.4g}")


def measured(current: float | None, limit: float | None) -> Clean:
    """A number against its limit: ``11 > 10``, ``7 of 10``; empty where the trace says neither."""
    if current is None:
        return Clean("" if limit is None else f"limit {number(limit)}")
    if limit is None:
        return number(current)
    return Clean(f"{number(current)} {'>' if current > limit else 'of'} {number(limit)}")


def cost(usd: float | None, *, estimated: bool = False) -> Clean:
    """US dollars as ``$0.06``, four decimals below a cent; ``—`` for None.

    Estimates as ``~$0.06``, below a cent with three decimals, and ``<$0.001`` below that.
    """
    if usd is None:
        return Clean("—")
    if estimated and 0 < usd < 0.0005:
        return Clean("<$0.001")
    sign, decimals = ("~$", 3) if estimated else ("$", 4)
    return Clean(f"{sign}{usd:.{2 if usd >= 0.01 or usd == 0 else decimals}f}")
