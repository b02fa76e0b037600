"""The steps of a run as a tree for a document, in bounded time and size, with counts of omitted steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from tracetui.analysis.navigation import errors, initial_folds
from tracetui.export.json import moment
from tracetui.export.page import Bar, Section, Step, Tree
from tracetui.export.text import messages_lines, short, value_lines
from tracetui.model import Body, Message, Run, Span, Status, quote_key
from tracetui.text import Clean, clean, clean_lines, duration, grouped, one_line, tokens
from tracetui.views.glyphs import bar_style, kind
from tracetui.views.timeline.chart import Chart

MAX_HEAD: Final = 3_000
MAX_TAIL: Final = 1_000
MAX_FAILED: Final = 500
"""Steps listed from the start, from the end, and failed ones between them."""
MAX_READ: Final = 24_000_000
"""Characters of contents that are read for a document."""
MAX_WRITTEN: Final = 6_000_000
"""Characters of contents that are written; further steps have none. Half of them are for failed steps alone."""
MAX_LINES: Final = 120
MAX_SIZE: Final = 8_000
"""Lines and characters of a section."""
MAX_SECTIONS: Final = 30
_ROLES: Final = frozenset({"user", "assistant", "system", "tool"})
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9-]")


def run_tree(run: Run, *, full: bool = False, contents: bool = True) -> Tree:
    """The steps of a run with their bars, and with contents unless `contents` is False. `full`: all, uncut."""
    chart = Chart(run)
    axis = [Clean("0"), duration(chart.total_ms / 2), duration(chart.total_ms)] if chart.total_ms > 0 else []
    timed = any(span.duration_ms is not None for span in run.spans)
    return Tree(_steps(run, chart, full=full, contents=contents), axis, timed, chart.has_tokens)


def anchors(run: Run) -> list[str]:
    """The anchor of each span: ``step-3`` if the number is unique, else ``span-`` and its position from 1."""
    found, used = [], set[str]()
    for position, span in enumerate(run.spans):
        anchor = f"step-{span.step}" if span.is_step and span.step is not None else ""
        if not anchor or anchor in used or _NOT_IN_IDS.search(anchor):
            anchor = f"span-{position + 1}"
        used.add(anchor)
        found.append(anchor)
    return found


def ended(span: Span) -> Clean:
    """How a span ended: its error, its status unless ok, or its note."""
    words = span.error.words if span.error is not None else ""
    if span.status in (Status.OK, Status.UNKNOWN):
        return one_line(span.note, 80)
    if span.status is Status.ERROR and words:
        return one_line(words, 160)
    return one_line(f"{span.status.value}: {words}" if words else span.status.value, 160)


def _steps(run: Run, chart: Chart, *, full: bool, contents: bool) -> Iterator[Step | Clean]:
    failed = [run.index[one] for one in errors(run)]
    shown = range(len(run.spans)) if full else _selected(len(run.spans), failed)
    allowance = _Allowance(set(failed[:MAX_FAILED]), limited=not full)
    names, folds = anchors(run), initial_folds(run)
    first = _first_error(run, failed)
    before = -1
    for position in shown:
        if position > before + 1:
            yield _gap(position - before - 1)
        before = position
        sections = allowance.sections(run, position) if contents else ()
        yield _step(run, chart, position, names[position], sections, folds, first)
    if len(run.spans) > before + 1:
        yield _gap(len(run.spans) - before - 1)
    if allowance.skipped:
        yield Clean(f"… contents of {grouped(allowance.skipped)} steps left out (size limit; export with --full) …")


def _gap(number: int) -> Clean:
    return Clean(f"… {grouped(number)} more step{'' if number == 1 else 's'} (export with --full) …")


def _selected(number: int, failed: Sequence[int]) -> Sequence[int]:
    if number <= MAX_HEAD + MAX_TAIL:
        return range(number)
    return sorted({*range(MAX_HEAD), *failed[:MAX_FAILED], *range(number - MAX_TAIL, number)})


def _first_error(run: Run, failed: Sequence[int]) -> int | None:
    error = run.summary.first_error
    if error is not None and error.span is not None and error.span in run.index:
        return run.index[error.span]
    return failed[0] if failed else None


def _step(
    run: Run,
    chart: Chart,
    position: int,
    anchor: str,
    sections: Sequence[Section],
    folds: frozenset[str],
    first_error: int | None,
) -> Step:
    span = run.spans[position]
    glyph, style = kind(span)
    extent, total = chart.extent(position), chart.tokens(position)
    bar = None
    if extent is not None and chart.total_ms > 0:
        start, end = extent
        length = 0.0 if end is None else end - start
        bar = Bar(start / chart.total_ms, length / chart.total_ms, bar_style(span), thin=run.sizes[position] > 1)
    return Step(
        position,
        position + run.sizes[position],
        run.depths[position],
        anchor,
        Clean(str(span.step)) if span.is_step and span.step is not None else Clean(""),
        glyph,
        style,
        one_line(span.name or "(no name)", 80),
        one_line(span.preview, 120),
        ended(span),
        duration(span.duration_ms) if span.duration_ms is not None else Clean(""),
        tokens(total) if total is not None else Clean(""),
        bar,
        sections,
        span.status is Status.ERROR,
        (run.sizes[position] > 1 and span.id not in folds) or position == first_error,
    )


# ---- contents


class _Allowance:
    """Contents of steps until the limits of a document are reached; `failed` steps have a part of their own."""

    def __init__(self, failed: set[int], *, limited: bool) -> None:
        self._failed, self._limited = failed, limited
        self._read = {True: MAX_READ, False: MAX_READ}
        self._written = {True: MAX_WRITTEN // 2, False: MAX_WRITTEN // 2}
        self.skipped = 0
        """Steps without contents because of the limits."""

    def sections(self, run: Run, position: int) -> Sequence[Section]:
        """The contents of a span; empty once the limits are reached."""
        kind = position in self._failed
        if self._limited and min(self._read[kind], self._written[kind]) <= 0:
            self.skipped += 1
            return ()
        body = run.load(run.spans[position])
        found = list(span_sections(run, position, body, full=not self._limited))
        self._read[kind] -= len(body.raw) + _size(found)
        if self._limited:
            found = _cut_sections(found)
        self._written[kind] -= _size(found)
        return found


def _size(sections: Iterable[Section]) -> int:
    return sum(len(line) + 1 for section in sections for line in section.lines)


def span_sections(run: Run, position: int, body: Body, *, full: bool) -> Iterator[Section]:
    """The contents of a span. Unless `full`, a model call has only the messages since the last reply."""
    span = run.spans[position]
    yield Section(Clean(""), list(_about(run, span)))
    if span.error is not None:
        yield Section(Clean("error"), clean_lines(span.error.words), "error")
    if body.traceback:
        yield Section(Clean("traceback"), clean_lines(body.traceback), "error")
    given = body.input_messages if full else _new(body.input_messages)
    if len(given) < len(body.input_messages):
        before = len(body.input_messages) - len(given)
        yield Section(Clean(f"… {grouped(before)} earlier messages, in earlier steps (export with --full) …"), ())
    yield from _messages_or_value(Clean("input"), given, body.input)
    yield from _messages_or_value(Clean("output"), body.output_messages, body.output)
    for name in ("bindings", "checks", "links", "state", "attributes"):
        value = getattr(body, name)
        if value not in ((), {}, None):
            yield Section(Clean(name), value_lines(value))


def _about(run: Run, span: Span) -> Iterator[Clean]:
    details = [one_line(span.status_word, 80)] if span.status_word else []
    details += [Clean(span.status_source.value)] if span.status_source else []
    status = span.status.value + (f" ({', '.join(details)})" if details else "")
    yield Clean(f"{span.operation.value} · {status}")
    if (when := moment(span.started_at, zone=run.summary.time_zone)) is not None:
        yield Clean(f"started {when}")
    if span.usage:
        yield Clean(f"usage {short(msgspec.structs.asdict(span.usage))}")
    if span.input_hash:
        yield Clean(f"hash {one_line(span.input_hash, 200)}")
    yield clean(f"{run.summary.ref.address}/{quote_key(span.id)}")


def _new(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages after the last one of the model: the steps before have the others."""
    last = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :] or messages[-1:]


def _messages_or_value(title: Clean, messages: tuple[Message, ...], value: object) -> Iterator[Section]:
    if not messages and value is not None:
        yield Section(title, value_lines(value))
    for message in messages:
        role, *lines = messages_lines([message])
        kind = f"role.{message.role}" if message.role in _ROLES else ""
        yield Section(Clean(f"{title} · {role[1:-1]}"), lines, kind)


def _cut_sections(sections: Sequence[Section]) -> list[Section]:
    found = [section._replace(lines=cut_lines(section.lines)) for section in sections[:MAX_SECTIONS]]
    if len(sections) > MAX_SECTIONS:
        more = grouped(len(sections) - MAX_SECTIONS)
        found.append(Section(Clean(f"… {more} more parts (export with --full) …"), ()))
    return found


def cut_lines(lines: Sequence[Clean]) -> Sequence[Clean]:
    """The first and last of too many or too long lines, and between them how many are left out."""
    if len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_SIZE:
        return lines
    head = _take(lines)
    tail = _take(lines[len(head) :][::-1])[::-1]
    hidden = len(lines) - len(head) - len(tail)
    between = [Clean(f"… {grouped(hidden)} more line{'' if hidden == 1 else 's'} (export with --full) …")]
    return [*head, *(between if hidden else []), *tail]


def _take(lines: Sequence[Clean]) -> list[Clean]:
    taken: list[Clean] = []
    room = MAX_SIZE // 2
    for line in lines[: MAX_LINES // 2]:
        if room <= 0:
            break
        cut = f"{line[:room]} … [{grouped(len(line))} characters; export with --full]"
        taken.append(line if len(line) <= room else Clean(cut))
        room -= len(line)
    return taken
