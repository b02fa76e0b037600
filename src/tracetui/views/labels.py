"""Labels for runs, spans, lists, numbers, times and parse coverage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from math import floor
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui import text
from tracetui.masking import clean, one_line
from tracetui.model import Ledger, Operation, RunRef, RunSummary, Span
from tracetui.model.ledger import Kinds
from tracetui.text import Clean, age, cells, duration, grouped, pad, tokens, truncate_middle
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:
    from tracetui.analysis.arrangement import Arrangement

SHORT: Final = 20
"""Cells of an id beside a name."""
_HEAD: Final = 8
_RANDOM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}", re.I)
"""A UUID or an OpenTelemetry trace id: its head is distinctive."""


def run_label(run: RunSummary) -> Clean:
    """The name and label of a run: ``errors_task bad #2``."""
    return clean(" ".join(filter(None, (run.name, run.label))) or run.id, 200)


def short_id(ident: str, size: int = SHORT) -> Clean:
    """An id in at most `size` cells: the head of a random id, both ends of others."""
    whole = clean(ident, 200)
    if _RANDOM.fullmatch(whole):
        return Clean(whole[:_HEAD])
    return truncate_middle(whole, size)


def short_names(runs: Iterable[RunSummary]) -> dict[RunRef, str]:
    """Short names for the runs of a list: the shortest unique head of a random id, at least eight characters; other ids
    in full. Runs with the same id share a name.
    """
    ids = {run.ref: run.id for run in runs}
    ordered = sorted(set(ids.values()))
    shared = [0, *(_shared(one, other) for one, other in pairwise(ordered)), 0]
    heads = {one: max(_HEAD, 1 + max(shared[i : i + 2])) for i, one in enumerate(ordered)}
    return {ref: one[: heads[one]] if _RANDOM.fullmatch(one) else one for ref, one in ids.items()}


def _shared(one: str, other: str) -> int:
    """Length of the common prefix of two ids."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


MAX_QUERY: Final = 200
"""Cells of a query in the title of a list."""


def filter_badge(words: str) -> list[Piece]:
    """The query of a filtered list, for its title."""
    return [Piece(Clean(" ")), Piece(Clean(f" f {one_line(words, MAX_QUERY)} "), "hit")]


def arrangement_title(arrangement: Arrangement, words: str, *, ungrouped: str, sort: str = "") -> Line:
    """The title of a list: how it is sorted, grouped and filtered.

    `words`: the query. `ungrouped`: the default group. `sort`: the sort order in words.
    """
    parts = [(sort or arrangement.sort) + (" reversed" if arrangement.reverse else "")]
    if arrangement.group not in (ungrouped, "none"):
        parts.append(f"by {arrangement.group}")
    if arrangement.failures:
        parts.append("failures only")
    if arrangement.new:
        parts.append("new only")
    title = Piece(Clean(" · ".join(parts)), "sec")
    return (title, *filter_badge(words)) if words else (title,)


def errors_inside(run: RunSummary) -> Clean:
    """How many spans failed in a run that did not fail itself: ``3 errors inside``."""
    return Clean(f"{grouped(run.errors or 0)} error{'' if run.errors == 1 else 's'} inside")


def number(value: float | None, glyphs: Glyphs = UNICODE) -> Clean:
    """A number as `tracetui.text.number` formats it; ``—`` for None."""
    return glyphs.missing if value is None else text.number(value)


def start_label(summary: RunSummary, *, now: float | None = None, zone: tzinfo = UTC) -> Clean:
    """The start of a run: ``13:09:22Z, 3m ago``, with the date unless it is today; empty if unknown."""
    start = summary.started_at
    text = clock(start, summary.time_zone, now=now, zone=zone)
    if start is None or now is None or summary.time_zone is None or not text:
        return text
    return Clean(f"{text}, {_ago(now - start)}")


def clock(at: float | None, time_zone: str | None, *, now: float | None = None, zone: tzinfo = UTC) -> Clean:
    """A time on the clock of `zone` (``Z`` for UTC), with the date unless it is that of `now`.

    A naive time (`time_zone` None) is printed as recorded, and labeled. Empty for None.
    """
    if at is None:
        return Clean("")
    naive = time_zone is None
    try:
        when = datetime.fromtimestamp(at, UTC if naive else zone)
        today = now is not None and datetime.fromtimestamp(now, zone).date() == when.date()
    except (OverflowError, ValueError, OSError):
        return Clean("time out of range")
    text = when.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
    return Clean(f"{text} local, zone unknown" if naive else f"{text}Z" if zone is UTC else text)


def _ago(seconds: float) -> str:
    words = age(max(0.0, seconds))
    return words if words == "now" else f"{words} ago"


BLANK: Final = Piece(Clean(" "))
_CELLS: Final = 5
_TAKES_TEXT: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.EMBEDDINGS})
_PROSE: Final = re.compile(r"[\w][^\"'{}\[\]=:/\\|;$<>`]*")
"""Arguments that read as words, not as code, path or JSON: shown in quotes."""


_DATED: Final = re.compile(r"[-@]20\d\d-?\d\d-?\d\d(?!\d)")
"""The date in a model version."""
_NAME_SHARE, _NAME_LEAST = 0.45, 15
"""Share of the cell for a name beside a truncated argument, and its minimum."""


class Columns(NamedTuple):
    """Cells of each column, separated by blanks; 0 for a hidden column."""

    number: int
    what: int
    tokens: int
    time: int
    bar: int


def token_cell(number: int | None, glyphs: Glyphs) -> Piece:
    """A number of tokens, ``—`` for None."""
    return Piece(pad(glyphs.missing if number is None else tokens(number), _CELLS, right=True), "sec")


def time_cell(elapsed: float | None, style: str, glyphs: Glyphs) -> Piece:
    """A duration in ms, ``—`` for None."""
    if elapsed is None:
        return Piece(pad(glyphs.missing, _CELLS, right=True), "dim")
    return Piece(pad(duration(elapsed), _CELLS, right=True), style)


def argument(span: Span) -> Clean:
    """The input of a span on one line; empty if its header has none."""
    text = one_line(span.preview, 200)
    if span.operation is Operation.HOOK and text.startswith(span.name):  # ``PostToolUse`` of ``PostToolUse:Bash``
        text = Clean(text[len(span.name) :].lstrip(":"))
    if text and span.operation in _TAKES_TEXT and _PROSE.fullmatch(text):
        return Clean(f'"{text}"')
    return text


def short_name(span: Span) -> Clean:
    """The name of a span; a model without its version date."""
    name = one_line(span.name, 120)
    return Clean(_DATED.sub("", name) or name) if span.operation is Operation.CHAT else name


def name_beside(span: Span, given: Clean, room: int) -> Clean:
    """The name of a span in `room` cells, truncated in the middle to leave room for the argument, which tells calls
    apart.
    """
    name = short_name(span)
    if not given or cells(name) + 1 + cells(given) <= room:
        return name
    return truncate_middle(name, max(_NAME_LEAST, int(room * _NAME_SHARE)))


_NAMED: Final = 3
"""Maximum kinds and versions to name."""
_KIND_NAME: Final = 40
_BYTES: Final = " of bytes"
"""Dropped first if the width is small."""


def ledger_words(ledger: Ledger, *, glyphs: Glyphs = UNICODE, width: int | None = None) -> Clean:
    """``parsed 99.2 % of bytes · unknown kinds 3 (weather ×2 …) · torn lines 1 · writer version 2.1.197``.

    Zero counts are left out. A small `width` shortens the lists.
    """
    words = Clean("")
    for most, of_what in ((_NAMED, _BYTES), (2, _BYTES), (1, _BYTES), (1, ""), (0, _BYTES), (0, "")):
        words = _ledger_words(ledger, glyphs, most, of_what)
        if width is None or cells(words) <= width:
            break
    return words


def _ledger_words(ledger: Ledger, glyphs: Glyphs, most: int, of_what: str) -> Clean:
    words = [f"parsed {share(ledger.share, glyphs)}{of_what}"]
    for what, counted in (("kinds", ledger.kinds), ("fields", ledger.fields)):
        if counted:
            named = f" ({_commonest(counted, glyphs, most)})" if most else ""
            words.append(f"unknown {what} {grouped(len(counted))}{named}")
    if ledger.torn:
        words.append(f"torn lines {grouped(ledger.torn)}")
    if ledger.writers:
        words.append(_writers(ledger.writers, most))
    return Clean(f" {glyphs.dot} ".join(words))


def share(part: float | None, glyphs: Glyphs = UNICODE) -> str:
    """A share in percent, rounded down to a tenth: ``100 %`` only for all."""
    return glyphs.missing if part is None else "100 %" if part == 1 else f"{floor(part * 1000) / 10:.1f} %"


def _commonest(counted: Kinds, glyphs: Glyphs, most: int) -> str:
    found = sorted(counted, key=lambda one: (-one[1], one[0]))
    named = [f"{one_line(name, _KIND_NAME)} {glyphs.times}{grouped(count)}" for name, count in found[:most]]
    return ", ".join(named) + (f" {glyphs.cut}" if len(found) > most else "")


def _writers(writers: tuple[str, ...], most: int) -> str:
    """The latest versions."""
    if not most:
        return f"{grouped(len(writers))} writer version{'s' if len(writers) > 1 else ''}"
    named = ", ".join(one_line(writer, _KIND_NAME) for writer in writers[-most:])
    more = len(writers) - most
    return f"writer version{'s' if len(writers) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")
