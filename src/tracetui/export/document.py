"""Export a run, a comparison or a triage as Markdown, HTML or JSON, secrets masked unless the caller opts out.

Input is exact (`tracetui.model.masked.unmasked`); a `redactor` masks it on the way, and the document ends with the
number of masked values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from secrets import token_bytes
from typing import Final, Literal, TypeAlias

from tracetui.analysis.navigation import errors
from tracetui.diff.comparison import Comparison
from tracetui.diff.result import Diff
from tracetui.export import diff as differences
from tracetui.export.diff import Changes, diff_document
from tracetui.export.json import Masked, encode, run_document
from tracetui.export.page import Block, Code, Facts, Heading, Prose, Table, html, markdown, masked_note, without_empty
from tracetui.export.text import facts, one_span_lines, title
from tracetui.export.triage import Shared, Triage, triage_report, triage_value
from tracetui.model import Operation, Run, RunSummary, Span, Status
from tracetui.model.build import CONTAINERS
from tracetui.model.masked import masked
from tracetui.redact import Redactor
from tracetui.store.span_names import span_label
from tracetui.text import Clean, clean, duration, one_line, tokens
from tracetui.views.glyphs import kind
from tracetui.views.timeline.chart import tokens_of

# ---- reports as blocks

MOST_ROWS: Final = 400
"""Rows shown at each end of a timeline, unless the full one is requested."""
MOST_LINES: Final = 200
"""Lines of a failing step, likewise."""
_STEPS: Final = ("step", "name", "argument", "status", "time", "tokens")
_NUMBERS: Final = frozenset({0, 4, 5})


def run_report(run: Run, *, full: bool = False) -> Iterator[Block]:
    """Report a run: facts, timeline, and its failing steps with their contents (`full`: every step)."""
    yield Heading(1, title(run))
    yield Facts([one for one in facts(run) if one.lines])
    yield Heading(2, Clean("Timeline"))
    yield from _timeline(run, MOST_ROWS if not full else len(run.spans))
    failed = set(errors(run))
    shown = [i for i, span in enumerate(run.spans) if full or span.id in failed]
    if shown:
        yield Heading(2, Clean("Steps" if full else "Failures"))
    for position in shown:
        yield from _step(run, position, most=None if full else MOST_LINES)


def diff_report(diff: Diff, changes: Changes) -> Iterator[Block]:
    """Report a comparison: the first difference with its words, and every step that differs."""
    yield Heading(1, differences.heading(diff))
    yield Code(list(differences.run_lines(diff)))
    for line in differences.verdict_lines(diff):
        yield Prose(line)
    words = list(differences.word_lines(diff.first)) if diff.first is not None else []
    if words:
        yield Code(words, kind="diff")
    yield Prose(differences.summary_line(diff))
    notes = list(differences.aside_lines(diff))
    if notes:
        yield Heading(2, Clean("Run-level differences"))
        yield Code(notes)
    if not diff.same:
        yield Heading(2, Clean("Steps"))
        yield Code(list(differences.step_lines(diff, changes)), kind="diff")


def _timeline(run: Run, most: int) -> Iterator[Block]:
    shown = [i for i, span in enumerate(run.spans) if not (span.operation in CONTAINERS and run.sizes[i] > 1)]
    head, rest = shown[:most], shown[most:]
    tail = rest[-most:]
    yield Table(_STEPS, [_row(run, i) for i in head], _NUMBERS)
    if len(rest) > len(tail):
        yield Prose(Clean(f"… {len(rest) - len(tail)} more …"))
    if tail:
        yield Table(_STEPS, [_row(run, i) for i in tail], _NUMBERS)


def _row(run: Run, position: int) -> Sequence[Clean]:
    span = run.spans[position]
    total = tokens_of(span.usage)
    return (
        Clean(str(span.step)) if span.is_step and span.step is not None else Clean(""),
        Clean(f"{kind(span)[0]} {one_line(span.name or '(no name)', 80)}"),
        one_line(span.preview, 120),
        _ended(span),
        duration(span.duration_ms),
        tokens(total) if total is not None else Clean(""),
    )


def _ended(span: Span) -> Clean:
    words = span.error.words if span.error is not None else ""
    if span.status in (Status.OK, Status.UNKNOWN):
        return one_line(span.note, 80)
    return one_line(f"{span.status.value}: {words}" if words else span.status.value, 160)


def _step(run: Run, position: int, most: int | None) -> Iterator[Block]:
    """One step; for a failure also the model call before it, which requested it."""
    span = run.spans[position]
    label = one_line(span_label(run, span), 80)
    number = f"{label[:1].upper()}{label[1:]}: " if label else ""
    yield Heading(3, Clean(f"{number}{one_line(span.name or '(no name)', 120)}"))
    yield Prose(clean(f"{run.summary.ref.address}/{span.id}"))
    yield _code(run, position, most)
    if most is not None and span.operation is not Operation.CHAT:
        before = next((i for i in range(position - 1, -1, -1) if run.spans[i].operation is Operation.CHAT), None)
        if before is not None:
            yield _code(run, before, most, title=Clean("Preceding model call"))


def _code(run: Run, position: int, most: int | None, title: Clean = Clean("")) -> Code:  # noqa: B008 - a text
    lines = list(one_span_lines(run, position))
    hidden = 0 if most is None else len(lines) - most
    if hidden > 0 and most is not None:
        half = most // 2
        lines = [*lines[:half], Clean(f"… {hidden} more lines (export with --full) …"), *lines[-half:]]
    return Code(lines, title)


# ---- documents as bytes

Form: TypeAlias = Literal["md", "html", "json"]
FORMS: Final[tuple[Form, ...]] = ("md", "html", "json")


def form_of(path: str) -> Form:
    """The document format for a file extension; Markdown for an unknown one."""
    end = path.rpartition(".")[2].lower()
    return "html" if end in ("html", "htm") else "json" if end == "json" else "md"


def redactor_for(*, compared: bool = False) -> Redactor:
    """A redactor for a document. In a comparison, different secrets get different masks."""
    return Redactor(token_bytes(16) if compared else None)


def export_run(run: Run, form: Form, redactor: Redactor | None, *, full: bool = False) -> Iterator[bytes]:
    """Export one run. JSON always contains every step; the other formats with `full`."""
    shown = run if redactor is None else masked(run, redactor)
    if form == "json":
        return run_document(shown, None, masked=_counts(redactor))
    return _page(run_report(shown, full=full), form, redactor, title(shown))


def export_diff(
    a: Run, b: Run, form: Form, redactor: Redactor | None, *, relation: str | None = None, strict: bool = False
) -> Iterator[bytes]:
    """Export a comparison of two runs."""
    runs = (a, b) if redactor is None else (masked(a, redactor), masked(b, redactor))
    comparison = Comparison(*runs, relation=relation, strict=strict)
    found = comparison.result()
    if form == "json":
        return diff_document(found, comparison.changes, masked=_counts(redactor))
    return _page(diff_report(found, comparison.changes), form, redactor, "Comparison")


def export_triage(
    triage: Triage, shared: Shared, place: str, form: Form, redactor: Redactor | None, *, next_command: str
) -> Iterator[bytes]:
    """Export a triage that `triage_of` built with the same `redactor`, with the contrast of each signature."""
    if form == "json":
        counts, value = _counts(redactor), triage_value(triage, shared, redactor, next_command=next_command)
        return iter([encode({**value, "masked": counts()}), b"\n"])
    return _page(triage_report(triage, place, shared, redactor), form, redactor, f"Triage of {place}")


def file_name(run: RunSummary | None, form: Form) -> str:
    """A file name of ASCII letters, digits, ``-`` and ``_``, whatever the trace contains."""
    words = "triage" if run is None else f"{run.agent or run.name or 'run'}-{run.id}"
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in words[:80])
    return f"{plain.strip('-') or 'run'}.{form}"


def _page(blocks: Iterable[Block], form: Form, redactor: Redactor | None, name: str) -> Iterator[bytes]:
    whole = chain(without_empty(blocks), masked_note(redactor))
    return html(whole, name) if form == "html" else markdown(whole)


def _counts(redactor: Redactor | None) -> Masked:
    """A callable that returns the number of masked values so far, by rule."""
    return lambda: None if redactor is None else dict(sorted(redactor.counts.items()))
