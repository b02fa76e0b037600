"""A comparison of two runs as JSON (docs/json.md), as text for a chat or a pull request, and as a tree of steps.

In the tree, equal steps are folded and different ones contain their changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from tracetui.analysis.diff_description import (
    Changes,
    DiffDescription,
    Phrase,
    ignored_counts,
    phrase_steps,
    rest_lines,
)
from tracetui.analysis.step_diff import KIND_LABELS
from tracetui.analysis.values import lookalike_labels, lookalike_note, with_label
from tracetui.diff.align import Line, text_diff
from tracetui.diff.comparison import Diff, Divergence, JudgmentPair, Row
from tracetui.diff.step import Kind
from tracetui.diff.values import Change
from tracetui.export.json import Masked, encode, masked_field
from tracetui.export.page import Section, Step, Tree, cut_lines
from tracetui.export.schemas import reports as schemas
from tracetui.export.text import pretty, short
from tracetui.masking import clean, one_line
from tracetui.model import Criterion, Metric, Run, Span, quote_key
from tracetui.store.address import span_title, step_number
from tracetui.text import Clean, cells, cost, duration, grouped, tokens, truncate, truncate_middle
from tracetui.views.labels import ending_texts

DIFF: Final = "tracetui/diff/1"
REPLAYS: Final = "tracetui/replays/1"

_SIGNS: Final = {Kind.SAME: "=", Kind.ONLY_A: "-", Kind.ONLY_B: "+", Kind.MOVED: "~"}
_AROUND: Final = 2
_LONG: Final = 120


# ---- JSON


def diff_document(
    diff: Diff, changes: Changes, description: DiffDescription, masked: Masked | None = None
) -> Iterator[bytes]:
    """The output of ``diff --json``, one row per line; `changes` as recorded (`Comparison.changes`)."""
    head = encode({"schema": DIFF, **_about(diff, description), **_details(diff)})
    yield head[:-1] + b',"rows":['
    before = b"\n"
    for row in diff.rows:
        yield before + encode(_row_value(diff, row, changes))
        before = b",\n"
    yield b"]" + masked_field(masked) + b"}\n"


def replays_document(pairs: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The output of ``diff --replays --json``, one pair per line."""
    yield b'{"schema":' + encode(REPLAYS) + b',"pairs":['
    before = b"\n"
    for pair in pairs:
        yield before + encode(pair)
        before = b",\n"
    yield b"]}\n"


def pair_value(diff: Diff, description: DiffDescription) -> dict[str, Any]:
    """One pair of several: the comparison without its rows."""
    return {**_about(diff, description), "missing": None}


def missing_value(address: str, relation: str, missing: str) -> dict[str, Any]:
    """A replay with a missing original."""
    nothing: dict[str, Any] = {"first_divergence": None, "in_words": [], "counts": None}
    return {"a": None, "b": address, "relation": relation, "same": None, **nothing, "missing": missing}


def _about(diff: Diff, description: DiffDescription) -> schemas.Pair:
    return {
        "a": diff.a.summary.ref.address,
        "b": diff.b.summary.ref.address,
        "relation": diff.relation,
        "same": diff.same,
        "first_divergence": _divergence_value(diff.first),
        "in_words": [_phrase_value(phrase) for phrase in description.phrases],
        "counts": {kind.value: count for kind, count in diff.counts.items()},
    }


def _phrase_value(phrase: Phrase) -> schemas.Phrase:
    return {"words": phrase.text, "detail": phrase.detail or None, "rows": phrase.rows}


def _details(diff: Diff) -> dict[str, Any]:
    return {
        "first_decision": _divergence_value(diff.decision),
        "deltas": diff.deltas,
        "aligned_by": diff.by,
        "ignored": diff.ignored,
        "envelope": diff.envelope,
        "notes": diff.notes,
        "facts": diff.facts,
        "judged": diff.judgments,
    }


def _divergence_value(first: Divergence | None) -> schemas.Divergence | None:
    if first is None:
        return None
    return {"row": first.row, "kind": first.kind, "path": first.path, "a": first.a, "b": first.b}


def _row_value(diff: Diff, row: Row, changes: Changes) -> schemas.DiffRow:
    span = diff.span_b(row) or diff.span_a(row)
    listed = changes(row).changes if row.changes else ()
    return {
        "kind": row.kind,
        "a": _address(diff.a, diff.span_a(row)),
        "b": _address(diff.b, diff.span_b(row)),
        "step": None if span is None else step_number(diff.a if row.b is None else diff.b, span),
        "name": None if span is None else span.name,
        "downstream": row.downstream,
        "flags": row.flags,
        "changes": [_change_value(change) for change in listed],
    }


def _change_value(change: Change) -> schemas.Change:
    value: schemas.Change = {
        "path": change.path,
        "side": change.side,
        "change": change.word,
        "a": change.a,
        "b": change.b,
    }
    if change.noise is not None:
        value["ignored"] = change.noise
    return value


def _address(run: Run, span: Span | None) -> str | None:
    return None if span is None else f"{run.summary.ref.address}/{quote_key(span.id)}"


# ---- text


def diff_lines(diff: Diff, changes: Changes, description: DiffDescription) -> Iterator[Clean]:
    """The verdict first, then the changes in words, the texts of the first, and every step that differs.

    `changes` are those of messages (`Comparison.messages`).
    """
    yield from run_lines(diff)
    yield Clean("")
    yield from verdict_lines(diff, description)
    if description.phrases:
        yield Clean("")
        yield Clean("What changed:")
        yield from phrase_lines(diff, description)
    first = first_change(diff, changes)
    changed = list(word_lines(first)) if first is not None else []
    if changed:
        yield Clean("")
        yield from changed
    formats = [run.summary.ref.format for run in (diff.a, diff.b)]
    if formats[0] != formats[1]:
        yield Clean(f"Different formats ({formats[0]}, {formats[1]}): only fields of both are compared.")
    yield Clean("")
    yield Clean(summary_line(diff))
    yield from aside_lines(diff)
    if not diff.same:
        yield Clean("")
        yield from step_lines(diff, changes, description)


def first_change(diff: Diff, changes: Changes) -> Divergence | None:
    """The first difference, as a change of a message instead of its JSON."""
    first = diff.first
    change = None if first is None else next(iter(changes(diff.rows[first.row]).changes), None)
    if first is None or change is None:
        return first
    return Divergence(first.row, first.kind, change.path, _as_call(change.a), _as_call(change.b), first.noise)


def _as_call(value: Any) -> Any:
    """A tool call of a message as its name and arguments; other values unchanged."""
    if isinstance(value, dict) and value.get("type") == "tool_call":
        return f"→ {value.get('name')} {pretty(value.get('arguments'))}"
    return value


def phrase_lines(diff: Diff, description: DiffDescription) -> Iterator[Clean]:
    """The changes in words, one per line, with their steps; then the number of those that aren't described."""
    for phrase in description.phrases:
        detail = f": {phrase.detail}" if phrase.detail else ""
        steps = phrase_steps(diff, phrase)
        yield Clean(f"  {_SIGNS.get(phrase.kind, '≠')} {phrase.text}{detail}{f'  ({steps})' if steps else ''}")
    yield from (Clean(f"  … {line}") for line in rest_lines(description))


def pair_line(diff: Diff, description: DiffDescription, width: int | None = None) -> Clean:
    """One pair in one line: same or different, and the first difference; cut to `width` cells unless None."""
    addresses = clean(diff.b.summary.ref.address), _relation(diff), clean(diff.a.summary.ref.address)
    if diff.first is None or diff.same:
        return _pair_text("same", *addresses, "", width)
    note = f" (usually ignored: {diff.first.noise})" if diff.first.noise else ""
    change = description.first or _path_label(diff.first)
    location = f"first at {_location(diff, diff.rows[diff.first.row])}: {change}{note}"
    return _pair_text("different", *addresses, location, width)


def missing_line(address: str, relation: str, missing: str, width: int | None = None) -> Clean:
    """A replay with a missing original."""
    parts = clean(address), f"{one_line(relation, 20)} of", one_line(missing, 100)
    return _pair_text("missing", *parts, "not found", width)


def _pair_text(word: str, b: Clean, relation: str, a: Clean, location: str, width: int | None) -> Clean:
    """Join the parts. To fit `width`, cut addresses in the middle, and `location` last."""
    if width is not None:
        fixed = 16 + len(relation)  # the word, the relation and the blanks
        room = max(24, width - fixed - cells(Clean(location)))
        b = truncate_middle(b, max(room // 2, room - cells(a)))
        a = truncate_middle(a, room - cells(b))
        location = truncate(Clean(location), width - fixed - cells(b) - cells(a))
    comma = "," if word == "missing" else " " if location else ""
    return Clean(f"{word:<9}  {b}  {relation} {a}{comma} {location}".rstrip())


def _relation(diff: Diff) -> str:
    return f"{one_line(diff.relation, 20)} of" if diff.relation else "vs"


def summary_line(diff: Diff) -> Clean:
    """Rows by kind, and the deltas of B: ``same 41 · input≠ 1 · Δ tokens −1.9k``."""
    counts = diff.counts
    parts = [f"{KIND_LABELS[kind]} {counts[kind]}" for kind in Kind if counts[kind] or kind is Kind.SAME]
    deltas = diff.deltas
    if deltas.tokens is not None:
        parts.append(f"Δ tokens {_signed(deltas.tokens, tokens)}")
    if deltas.duration_ms is not None:
        parts.append(f"Δ time {_signed(deltas.duration_ms, duration)}")
    if deltas.cost_usd is not None:
        parts.append(f"Δ cost {_signed(deltas.cost_usd, cost)}")
    return Clean(" · ".join(parts))


def _signed(value: Any, written: Callable[[Any], Clean]) -> Clean:
    sign = "−" if value < 0 else "+" if value > 0 else "±"
    return Clean(sign + written(abs(value)))


def run_lines(diff: Diff) -> Iterator[Clean]:
    """Both runs with their statuses."""
    for letter, run in (("A", diff.a), ("B", diff.b)):
        summary = run.summary
        facts = [one_line(summary.name, 60), *ending_texts(summary, time.time())]
        facts += [duration(summary.duration_ms)] if summary.duration_ms is not None else []
        facts += [Clean(f"{one_line(diff.relation, 20)} of A")] if letter == "B" and diff.relation else []
        facts += [Clean(f"counts in {clean(summary.counts_in)}")] if summary.counts_in else []
        yield Clean(f"{letter}  {clean(summary.ref.address)}  {' · '.join(facts)}")


def heading(diff: Diff, description: DiffDescription) -> Clean:
    """The verdict in a few words, for a title."""
    if diff.same or diff.first is None:
        return Clean("A vs B: no differences")
    change = description.first or Clean("differs")
    return Clean(f"A vs B: {change} at {_location(diff, diff.rows[diff.first.row])}")


def verdict_lines(diff: Diff, description: DiffDescription) -> Iterator[Clean]:
    """The verdict: no differences, or the first one."""
    if diff.first is None:
        yield Clean("No differences.")
        return
    row = diff.rows[diff.first.row]
    if diff.apart:
        yield Clean(f"No common steps (aligned by {diff.by}).")
        return
    if diff.first.noise:
        location = f"{diff.first.noise}, at {_location(diff, row)}: {_path_label(diff.first)}"
        yield Clean(f"No differences except those usually ignored. First: {location}")
        return
    yield Clean(f"First difference: {_location(diff, row)}: {description.first or _path_label(diff.first)}")
    if diff.decision is not None:
        left, right = _labeled_pair(diff.decision.a, diff.decision.b, lambda value: one_line(str(value), 60))
        place = _location(diff, diff.rows[diff.decision.row])
        yield Clean(f"First different decision: {place}: A {left} · B {right}")


def _location(diff: Diff, row: Row) -> Clean:
    span = diff.span_b(row) or diff.span_a(row)
    if span is None:
        return Clean("")
    return one_line(span_title(diff.a if row.b is None else diff.b, span), 120)


def _path_label(first: Divergence) -> Clean:
    path = f" {one_line(first.path, 200)}" if first.path else ""
    return Clean(f"{KIND_LABELS[first.kind]}{path}")


def aside_lines(diff: Diff) -> Iterator[Clean]:
    """Run-level differences, judgments, ignored noise, failed checks, and limits of the comparison."""
    for fact in diff.facts:
        if not fact.same:
            left, right = _labeled_pair(fact.a, fact.b, _fact_value)
            yield Clean(f"{one_line(fact.name, 40)}: A {left} · B {right}")
    yield from map(_judgment_line, diff.judgments)
    if diff.ignored:
        kinds = " · ".join(ignored_counts(diff))
        yield Clean(f"ignored: {kinds} (--strict reports them)")
    for row in diff.rows:
        for flag in row.flags:
            yield Clean(f"check failed: {one_line(flag, 60)} of {_location(diff, row)} doesn't match its contents")
    yield from (clean(note) for note in diff.notes)


def _judgment_line(pair: JudgmentPair) -> Clean:
    return Clean(f"{'=' if pair.same else '≠'} {one_line(pair.name, 80)}: A {_score(pair.a)} · B {_score(pair.b)}")


def _score(verdict: Criterion | Metric | None) -> str:
    if isinstance(verdict, Criterion):
        return {True: "met", False: "UNMET", None: "not judged"}[verdict.met]
    return "—" if verdict is None or verdict.score is None else f"{verdict.score:.4g}"


def _fact_value(value: Any) -> Clean:
    return Clean("—") if value is None else one_line(str(value), 80)


def step_lines(diff: Diff, changes: Changes, description: DiffDescription) -> Iterator[Clean]:
    """Every row that differs; runs of equal rows are counted."""
    yield Clean(f"Steps (aligned by {diff.by}):")
    same = 0
    for index, row in enumerate(diff.rows):
        if row.kind is Kind.SAME:
            same += 1
            continue
        if same:
            yield Clean(f"  = {same} same")
            same = 0
        yield _row_line(diff, row, description.of_row(index), first=diff.first is not None and diff.first.row == index)
        if row.changes and not row.downstream:
            for change in changes(row).changes:
                yield _change_line(change)
    if same:
        yield Clean(f"  = {same} same")


def _row_line(diff: Diff, row: Row, change: Clean, *, first: bool) -> Clean:
    parts = [change or KIND_LABELS[row.kind]]
    if row.downstream and row.path and not change:
        parts.append(one_line(row.path, 120))
    alone = (diff.span_a(row) or diff.span_b(row)) if row.a is None or row.b is None else None
    if alone is not None and alone.preview:
        parts.append(one_line(alone.preview, 80))
    parts += (
        [f"usually ignored: {row.noise}"]
        if row.noise
        else ["← first"]
        if first
        else ["downstream"]
        if row.downstream
        else ["independent"]
    )
    return Clean(f"  {_SIGNS.get(row.kind, '≠')} {_location(diff, row)}  {' · '.join(parts)}")


def _change_line(change: Change) -> Clean:
    path = one_line(change.path, 120) or change.side
    left, right = _labeled_pair(change.a, change.b, short)
    if change.path_a is None or change.path_b is None:
        left, right = (Clean("(nothing)"), short(change.b)) if change.path_a is None else (left, Clean("(nothing)"))
    note = f"  (usually ignored: {change.noise})" if change.noise else ""
    return Clean(f"      {path}: {left} → {right}{note}")


def _labeled_pair(a: Any, b: Any, written: Callable[[Any], Clean]) -> tuple[Clean, Clean]:
    """Two values, labeled with their difference if they look the same."""
    labels = lookalike_labels(a, b)
    left, right = written(a), written(b)
    return (left, right) if labels is None else (with_label(left, labels[0]), with_label(right, labels[1]))


# ---- words


def word_lines(first: Divergence) -> Iterator[Clean]:
    """Both values of the first divergence as a unified diff; long unchanged stretches are folded."""
    if first.kind in (Kind.ONLY_A, Kind.ONLY_B, Kind.MOVED):
        return
    a, b = (value if isinstance(value, str) else "" if value is None else pretty(value) for value in (first.a, first.b))
    hunks = text_diff(a, b).hunks
    alike = lookalike_note(first.a, first.b) if first.a is not None and first.b is not None else Clean("")
    for index, hunk in enumerate(hunks):
        if hunk.same:
            yield from _fold_lines(hunk.a, first=index == 0, last=index == len(hunks) - 1)
            continue
        if first.a is not None:
            yield from (Clean(f"  - {_highlight(line, '[-', '-]')}") for line in hunk.a)
        if first.b is not None:
            yield from (Clean(f"  + {_highlight(line, '{+', '+}')}") for line in hunk.b)
        if not alike and hunk.a and hunk.b and (note := lookalike_note(_plain(hunk.a), _plain(hunk.b))):
            yield Clean(f"    ({note})")
    if alike:
        yield Clean(f"    ({alike})")


def _fold_lines(lines: Sequence[Line], *, first: bool, last: bool) -> Iterator[Clean]:
    head, tail = (0 if first else _AROUND), (0 if last else _AROUND)
    hidden = len(lines) - head - tail
    if hidden <= 1:
        yield from (Clean(f"    {_highlight(line, '', '')}") for line in lines)
        return
    yield from (Clean(f"    {_highlight(line, '', '')}") for line in lines[:head])
    yield Clean(f"    … {hidden} unchanged lines")
    yield from (Clean(f"    {_highlight(line, '', '')}") for line in lines[len(lines) - tail :])


def _plain(lines: Sequence[Line]) -> str:
    return "\n".join("".join(piece.text for piece in line) for line in lines)


def _highlight(line: Line, before: str, after: str) -> Clean:
    """A line with its changed pieces between `before` and `after`, unless all of it changed."""
    if len(line) == 1:
        return clean(line[0].text)
    return Clean("".join(f"{before}{clean(text)}{after}" if changed else _cut_middle(text) for text, changed in line))


def _cut_middle(text: str) -> Clean:
    """Unchanged text of a line; the middle of a long one is omitted."""
    if len(text) <= _LONG:
        return clean(text)
    return Clean(f"{clean(text[: _LONG // 3])} … {clean(text[-_LONG // 3 :])}")


# ---- tree of steps


MAX_ROWS: Final = 2_000
"""Differing rows; and equal ones in a fold."""
MAX_CHANGES: Final = 40
"""Changes of a row."""
_STYLED_SIGNS: Final = {
    Kind.SAME: ("=", "dim"),
    Kind.ONLY_A: ("−", "diff.rem"),
    Kind.ONLY_B: ("+", "diff.add"),
    Kind.MOVED: ("~", "diff.chg"),
}


def diff_tree(diff: Diff, changes: Changes, description: DiffDescription) -> Tree:
    """Every row of a comparison, up to `MAX_ROWS` differing ones."""
    return Tree(_rows(diff, changes, description), timed=False, counted=False)


def row_anchor(index: int) -> str:
    """The anchor of a row."""
    return f"row-{index + 1}"


def _rows(diff: Diff, changes: Changes, description: DiffDescription) -> Iterator[Step | Clean]:
    position, row_count, same = 0, 0, list[int]()
    for index, row in enumerate(diff.rows):
        if row.kind is Kind.SAME:
            same.append(index)
            continue
        if row_count == MAX_ROWS:
            more = sum(later.kind is not Kind.SAME for later in diff.rows[index:])
            yield Clean(f"… {grouped(more)} more differing steps, not listed …")
            return
        yield from _equal_steps(diff, same, position)
        position += len(same) + 1
        same = []
        yield _row(diff, index, changes, description.of_row(index), position)
        position += 1
        row_count += 1
    yield from _equal_steps(diff, same, position)


def _equal_steps(diff: Diff, rows: Sequence[int], position: int) -> Iterator[Step | Clean]:
    """Equal steps below one row that is folded."""
    if not rows:
        return
    end = position + 1 + len(rows)
    name = Clean(f"{grouped(len(rows))} same")
    yield Step(position, end, 0, row_anchor(rows[0]), Clean(""), Clean("="), "dim", name)
    for at, index in enumerate(rows[:MAX_ROWS]):
        row, place = diff.rows[index], position + 1 + at
        anchor = f"same-{index + 1}"
        yield Step(place, place + 1, 1, anchor, _number(diff, row), Clean("="), "dim", _name(diff, row))
    if len(rows) > MAX_ROWS:
        yield Clean(f"… {grouped(len(rows) - MAX_ROWS)} more same steps, not listed …")


def _row(diff: Diff, index: int, changes: Changes, described: Clean, position: int) -> Step:
    row = diff.rows[index]
    first = diff.first is not None and diff.first.row == index
    sign, style = _STYLED_SIGNS.get(row.kind, ("≠", "diff.chg"))
    listed = changes(row).changes if row.changes else ()
    sections = [section for change in listed[:MAX_CHANGES] for section in _change(change, index, row.kind)]
    if len(listed) > MAX_CHANGES:
        sections.append(Section(Clean(f"… {grouped(len(listed) - MAX_CHANGES)} more changes, not listed …"), ()))
    alone = (diff.span_a(row) or diff.span_b(row)) if row.a is None or row.b is None else None
    parts = [described] if described else [KIND_LABELS[row.kind], *([one_line(row.path, 120)] if row.path else [])]
    parts += [one_line(alone.preview, 120)] if alone is not None and alone.preview else []
    return Step(
        position,
        position + 1,
        0,
        row_anchor(index),
        _number(diff, row),
        Clean(sign),
        style,
        _name(diff, row),
        Clean(" · ".join(parts)),
        _relevance(row, first=first),
        sections=sections,
        open=first,
    )


def _relevance(row: Row, *, first: bool) -> Clean:
    if row.noise:
        return Clean(f"usually ignored: {row.noise}")
    return Clean("← first" if first else "downstream" if row.downstream else "independent")


def _number(diff: Diff, row: Row) -> Clean:
    span = diff.span_b(row) or diff.span_a(row)
    number = None if span is None else step_number(diff.a if row.b is None else diff.b, span)
    return Clean("" if number is None else str(number))


def _name(diff: Diff, row: Row) -> Clean:
    span = diff.span_b(row) or diff.span_a(row)
    return Clean("") if span is None else one_line(span.name or "(no name)", 80)


def _change(change: Change, index: int, kind: Kind) -> Iterator[Section]:
    """One changed value, line by line."""
    note = f" (usually ignored: {change.noise})" if change.noise else ""
    title = Clean(f"{one_line(change.path, 200) or change.side}{note}")
    lines = list(word_lines(Divergence(index, kind, change.path, change.a, change.b)))
    yield Section(title, cut_lines(lines), "diff")
