"""The detail pane: a span by tabs. A span has only tabs with content. One masked value can be revealed.

The *nodes* tab has the nodes of a graph, also as a text table. The layout and numbers of the text table are those that
hypergraph's RunLog and Workflow print. `RunBody.layout` selects the title; nothing here depends on a format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.analysis import prices
from tracetui.analysis.effects import edits_of
from tracetui.analysis.values import is_container, scalar_text
from tracetui.analysis.work import NodeStats, is_inherited, node_spans, node_stats, own_node_spans
from tracetui.masking import clean, mask, one_line, record
from tracetui.model import (
    INHERITED,
    Binding,
    Body,
    Check,
    Link,
    Message,
    Operation,
    Run,
    Span,
    Status,
    StatusSource,
    Usage,
)
from tracetui.model.tally import CONTAINERS
from tracetui.store.address import span_label, span_title
from tracetui.text import Clean, cells, count, duration, grouped, pad, quantity
from tracetui.views.bars import amount
from tracetui.views.detail.run import add_doom, add_limits, add_price, add_status, add_usage, goal_rows, run_rows
from tracetui.views.detail.transcript import edit_lines, edit_source, last_reply, transcript, wrap_pieces
from tracetui.views.document import ValueKey, document
from tracetui.views.glyphs import UNICODE, Glyphs, kind
from tracetui.views.goal import has_goal
from tracetui.views.labels import Standing, clock, source_label
from tracetui.views.rows import Jump, Line, ListRows, Piece, Rows, column, fit
from tracetui.views.sheet import Sheet
from tracetui.views.stack import Stack, StyledRows, TextKey, TextRows

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.links import StepLink
    from tracetui.analysis.statistics import Estimate


_LOOKED_AT: Final = 500
_MAX_USAGE: Final = 8
"""Maximum number of attribute values to look at, and of matches."""
_SIGNS: Final = ("usage", "token")


def recorded_usage(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes whose names mention usage or tokens, by path, without duplicates.

    A heuristic for common names; the attributes tab shows all.
    """
    usage: dict[str, Any] = {}
    todo: list[tuple[str, Any]] = [("", attributes)]
    for path, value in todo:
        if not isinstance(value, Mapping) or len(todo) > _LOOKED_AT:
            continue
        for key, below in value.items():
            name = f"{path}.{key}" if path else str(key)
            if not any(sign in str(key).lower() for sign in _SIGNS):
                todo.append((name, below))
            elif len(usage) < _MAX_USAGE and below not in (None, "") and not _is_among(below, usage.values()):
                usage[name] = below
    return usage


def _is_among(value: Any, others: Iterable[Any]) -> bool:
    try:
        return value in others
    except RecursionError:  # too deep to compare
        return False


_MAX_ROWS: Final = 12


def tab_names(run: Run, span: Span | None, body: Body | None) -> list[str]:
    """The tabs with content, most relevant first, run tabs last."""
    return [tab.name for tab in TABS.values() if tab.has(run, span, body or Body())]


def tab_rows(
    run: Run,
    span: Span | None,
    body: Body | None,
    tab: str,
    *,
    width: int,
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
    now: float | None = None,
    zone: tzinfo = UTC,
    assessment: Assessment | None = None,
    before: Body | None = None,
    links: Sequence[StepLink] = (),
    standing: Standing | None = None,
) -> Rows:
    """The rows of a tab. `opened` contains toggled fold keys (see `tracetui.views.rows.Fold`).

    `before` is the body of the model call before a failed span: what the model had seen. `links` are of this span.
    """
    view = _View(run, span, body or Body(), width, opened, glyphs, now, zone, assessment, before, links, standing)
    return TABS[tab if span is not None or tab in RUN_TABS else "run"].rows(view)


class _View(msgspec.Struct, frozen=True):
    """Input of a tab; see `tab_rows`."""

    run: Run
    selected: Span | None
    body: Body
    width: int
    opened: frozenset[Hashable]
    glyphs: Glyphs
    now: float | None
    zone: tzinfo
    assessment: Assessment | None
    before: Body | None
    links: Sequence[StepLink]
    standing: Standing | None

    @property
    def span(self) -> Span:
        """The span, which every tab has but those of the run."""
        assert self.selected is not None
        return self.selected

    def sheet(self, name: str) -> Sheet:
        return Sheet(name, self.width, opened=self.opened, glyphs=self.glyphs)

    def document(self, name: str, value: object) -> Rows:
        return document(value, width=self.width, name=name, opened=self.opened, glyphs=self.glyphs)


def _error(view: _View) -> Stack:
    sheet = view.sheet("error")
    error, span = view.span.error, view.span
    kind = one_line(error.type, 200) if error is not None and error.type else Clean("")
    message = mask(error.message) if error is not None else ""
    gap = ": "
    if kind and message.startswith(f"{kind}:"):
        message = message[len(kind) + 1 :].lstrip()
    elif kind and message.startswith(f"{kind} "):
        message, gap = message[len(kind) + 1 :], " "
    elif kind and message.startswith(f"{kind}("):  # as Python formats an exception
        message, gap = message[len(kind) :], ""
    head, _, rest = message.partition("\n")
    title = [Piece(kind, "status.error bold")] if kind else []
    if kind and head:
        title.append(Piece(Clean(gap)))
    if not kind and not head:
        title = [Piece(Clean("failed"), "status.error bold"), Piece(Clean(", no reason recorded"), "dim")]
    if len(head) + len(kind) + 2 <= view.width:
        sheet.line(*title, Piece(clean(head)))
    else:
        if kind:
            sheet.line(*title[:1])
        sheet.prose(None, head, most=_MAX_ROWS)
    if rest.strip():
        sheet.prose(None, rest, "sec", most=_MAX_ROWS)
    source = source_label(span.status, span.status_source)
    if span.status_source is StatusSource.EXPLICIT and error is not None:
        source = Clean("recorded with the step's error")
    sheet.line(Piece(Clean(f"status: {source}"), "dim"))
    sheet.blank()
    _facts(sheet, view, shown=error.message if error is not None else None)
    if view.run.body.limits:
        sheet.blank()
        add_limits(sheet, view.run.body.limits, view.assessment)
    if view.assessment is not None:
        add_doom(sheet, view.assessment)
    if view.body.traceback:
        sheet.title("Traceback")
        sheet.prose(None, view.body.traceback, "sec", most=40)
    if view.before is not None and (view.before.input_messages or view.before.output_messages):
        sheet.title("Before the failure", "input of the last model call")
        sheet.add(_conversation(view, view.before))
    return sheet.rows()


def _overview(view: _View) -> Stack:
    sheet, span = view.sheet("overview"), view.span
    add_status(sheet, span.status, span.status_word, span.status_source)
    _facts(sheet, view)
    if span.usage is not None or span.operation is not Operation.EXECUTE_TOOL:  # few tools call a model
        add_usage(sheet, span.usage)
    if span.usage is not None:
        _recorded_usage(sheet, span.usage, view.body)
        add_price(sheet, span.usage.cost_usd, _estimate(view) if view.assessment is not None else None)
    if view.body.traceback:
        sheet.prose("trace", view.body.traceback, "sec", most=_MAX_ROWS)
    return sheet.rows()


def _recorded_usage(sheet: Sheet, used: Usage, body: Body) -> None:
    """The recorded token counts, and how ours differ."""
    recorded = recorded_usage(body.attributes)
    if recorded:
        sheet.value("recorded", recorded if len(recorded) > 1 else next(iter(recorded.values())), most=3)
        if used.cache_read_tokens or used.cache_creation_tokens:
            sheet.fact("", Piece(Clean("input above includes cached tokens"), "dim"))


def _estimate(view: _View) -> Estimate | None:
    """The estimated cost of a call. Requires an assessed run: then the price library is loaded."""
    from tracetui.analysis.statistics import Estimate

    span = view.span
    model = span.model or view.run.summary.model
    usd = prices.of_call(model, span.usage, span.started_at, span.tier) if span.operation not in CONTAINERS else None
    return None if usd is None or model is None else Estimate(usd, (model,), ())


def _facts(sheet: Sheet, view: _View, *, shown: str | None = None) -> None:
    """Facts about any span: time, note, arguments, result (unless `shown` is its text), checks, links."""
    span, body, glyphs = view.span, view.body, view.glyphs
    problem = body.attributes.get("problem")
    if isinstance(problem, str) and not body.raw:
        sheet.fact(
            "problem", Piece(Clean(f"{glyphs.note} "), "status.warn bold"), Piece(one_line(problem), "status.warn")
        )
    took = glyphs.missing if span.duration_ms is None else duration(span.duration_ms)
    began = clock(span.started_at, view.run.summary.time_zone, zone=view.zone)
    sheet.fact("time", Piece(took, "sec"), Piece(Clean(f"  from {began}" if began else ""), "dim"))
    if span.note:
        sheet.fact("note", Piece(one_line(span.note), "accent"))
    if view.links:  # above what can be long
        _step_links(sheet, view)
    if body.input is not None:
        sheet.value("args", body.input, most=3)
    elif span.preview and span.operation is Operation.EXECUTE_TOOL:  # of other spans, it can be their output
        sheet.fact("args", Piece(one_line(span.preview, 120), "dim"))
    if body.output is not None and body.output != shown:
        sheet.value("output", body.output, most=3)
    _checks(sheet, span, body.checks)
    for link in body.links:
        _link(sheet, view.run, link)


def _checks(sheet: Sheet, span: Span, checks: tuple[Check, ...]) -> None:
    glyphs = sheet.glyphs
    if span.input_hash and not checks:
        sheet.fact("hash", Piece(clean(span.input_hash, 200), "sec"), Piece(Clean("  not checked"), "dim"))
    for check in checks:
        stored = Piece(Clean(f"{clean(check.stored, 200)} "), "sec")
        if check.matches is not None:
            recipe = Piece(Clean(f"  ({one_line(check.matches, 80)} recipe)"), "dim")
            label = Piece(Clean(" matches args"), "dim")
            sheet.fact("hash", stored, Piece(glyphs.ok, "status.ok"), label, recipe)
            continue
        none = "neither recipe" if len(check.expected) == 2 else "no recipe"
        sheet.fact("hash", stored, Piece(Clean(f"{glyphs.error} matches {none}"), "status.warn"))
        for name, value in check.expected:
            sheet.fact("", Piece(Clean(f"{clean(value, 200)} "), "dim"), Piece(one_line(name, 80), "dim"))


def _link(sheet: Sheet, run: Run, link: Link) -> None:
    spans = (link.span,) if link.span is not None else ()
    target = run.span(link.span) if link.span is not None else None
    title = span_title(run, target) if target is not None else (link.run or link.span or "")
    arrow = Piece(Clean(f"{sheet.glyphs.arrow} "), "dim")
    sheet.fact(link.label, arrow, Piece(one_line(title, 200), "accent"), spans=spans, run=link.run)


def _step_links(sheet: Sheet, view: _View) -> None:
    from tracetui.analysis.links import Kind
    from tracetui.views.links import link_text, other_steps

    for number, link in enumerate(view.links):
        label = link_text(view.run, link, view.span.id)
        spans, run = other_steps(link, view.span.id), None
        if link.kind is Kind.TRIALS and (trial := link.targets[0]).run is not None:
            spans, run = (trial.span,), trial.run.address
        sheet.fact("" if number else "links", Piece(label, "accent" if spans else "sec"), spans=spans, run=run)


def _messages(view: _View) -> Rows:
    """Usage and conversation. Messages since the model's last reply are highlighted."""
    sheet = view.sheet("used")
    if view.span.usage is not None:
        add_usage(sheet, view.span.usage)
        sheet.blank()
    sheet.add(_conversation(view, view.body))
    return sheet.rows()


def _conversation(view: _View, body: Body) -> Stack:
    messages = body.input_messages
    new = range(last_reply(messages), len(messages)) if last_reply(messages) else range(0)
    everything = (*messages, *body.output_messages)
    return transcript(everything, width=view.width, opened=view.opened, glyphs=view.glyphs, new=new)


def _inputs(view: _View) -> Stack:
    sheet = view.sheet("inputs")
    for binding in view.body.bindings:
        _binding(sheet, view.run, binding)
    return sheet.rows()


def _binding(sheet: Sheet, run: Run, binding: Binding) -> None:
    writer = run.span(binding.writer) if binding.writer is not None else None
    by = "run input" if binding.writer is None else f"written by {one_line(writer.name if writer else '?', 60)}"
    if writer is not None and (label := span_label(run, writer)):
        by += f", {one_line(label, 60)}"
    version = f" v{grouped(binding.version)}" if binding.version is not None else ""
    pieces = [Piece(one_line(binding.name, 80), "text bold"), Piece(Clean(f"{version}  "), "dim")]
    sheet.line(*pieces, Piece(Clean(by), "accent" if writer else "dim"), spans=(writer.id,) if writer else ())
    if binding.known:
        sheet.tree(binding.value, indent=2)
    else:
        sheet.line(Piece(Clean(f"  {sheet.glyphs.missing} value not recorded"), "dim"))
    sheet.blank()


def _edit(view: _View) -> Rows:
    edits = edits_of(view.body.input)
    return StyledRows(edit_lines(edits, view.width, view.glyphs), edit_source(edits), name="edit", glyphs=view.glyphs)


def _raw(view: _View) -> Rows:
    raw = record(view.body.raw)
    text = raw.decode("utf-8", "backslashreplace")
    if len(raw) <= _PRETTY and (lines := _pretty(raw, view.width)):
        return StyledRows(lines, text, name="raw", glyphs=view.glyphs)
    return TextRows(text, view.width, name="raw", style="sec", glyphs=view.glyphs)


_PRETTY: Final = 1 << 17
"""Bytes of the largest record that is indented and colored."""


def _pretty(raw: bytes, width: int) -> list[Line]:
    """A record of JSON, or several, one a line: indented, colored and wrapped; empty for others."""
    for records in ([raw], raw.split(b"\n")):
        try:
            texts = [msgspec.json.format(record, indent=2).decode() for record in records if record.strip()]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        lines = [line for text in texts for line in text.split("\n")]
        return [row for line in lines for row in wrap_pieces(_json_line(line), max(8, width))]
    return []


def _json_line(line: str) -> Line:
    """A line of indented JSON in the styles of its key and value."""
    inner = line.lstrip(" ")
    pieces = [Piece(Clean(line[: len(line) - len(inner)]))]
    if (key := _JSON_KEY.match(inner)) is not None:
        pieces += (Piece(clean(key[1]), "json.key"), Piece(Clean(": "), "json.punct"))
        inner = inner[key.end() :]
    style = "json.string" if inner[:1] == '"' else "json.punct" if inner[:1] in "{}[]" else "json.number"
    pieces.append(Piece(clean(inner), "json.word" if inner.rstrip(",") in ("true", "false", "null") else style))
    return tuple(pieces)


_JSON_KEY: Final = re.compile(r'("(?:[^"\\]|\\.)*"): ')


def _run(view: _View) -> Rows:
    return run_rows(
        view.run,
        width=view.width,
        opened=view.opened,
        glyphs=view.glyphs,
        now=view.now,
        zone=view.zone,
        assessment=view.assessment,
        standing=view.standing,
    )


def _is_failed(span: Span) -> bool:
    return span.error is not None or span.status is Status.ERROR


class _Tab(NamedTuple):
    """A tab of the detail."""

    name: str
    has: Callable[[Run, Span | None, Body], bool]
    """Whether the tab has content; the body is empty where there is none."""
    rows: Callable[[_View], Rows]
    of_run: bool = False
    """Whether it is the same for every span of a run."""
    assessed: bool = False
    """Whether it shows the assessment of the run."""
    is_field: bool = False
    """Whether it shows the field of the body with its name."""


_NO_BODY: Final = Body()


def _field(name: str) -> _Tab:
    """The tab of a field of the body."""

    def rows(view: _View) -> Rows:
        return view.document(name, getattr(view.body, name))

    return _Tab(name, lambda run, span, body: getattr(body, name) != getattr(_NO_BODY, name), rows, is_field=True)


TABS: Final = {
    tab.name: tab
    for tab in (
        _Tab("error", lambda run, span, body: span is not None and _is_failed(span), _error, assessed=True),
        _Tab("edit", lambda run, span, body: bool(edits_of(body.input)), _edit),
        _Tab("overview", lambda run, span, body: span is not None and not _is_failed(span), _overview, assessed=True),
        _Tab("messages", lambda run, span, body: bool(body.input_messages or body.output_messages), _messages),
        _field("input"),
        _field("output"),
        _field("state"),
        _Tab("inputs", lambda run, span, body: bool(body.bindings), _inputs),
        _field("attributes"),
        _Tab("raw", lambda run, span, body: bool(body.raw), _raw),
        _Tab(
            "goal",
            lambda run, span, body: has_goal(run.body),
            lambda view: goal_rows(view.run, width=view.width, opened=view.opened, glyphs=view.glyphs),
            of_run=True,
        ),
        _Tab(
            "nodes",
            lambda run, span, body: has_nodes(run),
            lambda view: node_rows(view.run, width=view.width, glyphs=view.glyphs),
            of_run=True,
        ),
        _Tab("run", lambda run, span, body: True, _run, of_run=True, assessed=True),
    )
}
"""The tabs by name, most relevant first."""
RUN_TABS: Final = frozenset(name for name, tab in TABS.items() if tab.of_run)
ASSESSMENT_TABS: Final = frozenset(name for name, tab in TABS.items() if tab.assessed)
_FIELDS: Final = frozenset(name for name, tab in TABS.items() if tab.is_field)


def reveal_value(body: Body, exact: Body, key: Hashable) -> Body | None:
    """The masked `body` with the value of row `key` of the detail pane taken from `exact`.

    That is the value of a JSON row, or a text or result of a message. None for other rows, and for unmasked values.
    """
    name, path = _place(key)
    if isinstance(name, str) and name in _FIELDS:
        value = _replace_value(getattr(body, name), getattr(exact, name), path)
        revealed = None if value is None else replace(body, **{name: value})
    else:
        revealed = _part(body, exact, name, path)
    return None if revealed is None or revealed == body else revealed


def value_at(body: Body, key: Hashable) -> str | None:
    """The scalar in row `key` of a tab with a JSON document, as text; None for other rows."""
    name, path = _place(key)
    if not isinstance(key, ValueKey) or not isinstance(name, str) or name not in _FIELDS:
        return None
    value = getattr(body, name)
    for step in path:
        if not is_container(value) or (
            step not in value if isinstance(value, Mapping) else step not in range(len(value))
        ):
            return None
        value = value[step]
    return None if value is None or is_container(value) else value if isinstance(value, str) else scalar_text(value)


def _place(key: Hashable) -> tuple[Hashable, Sequence[Hashable]]:
    if isinstance(key, ValueKey):
        return key.name, key.path
    return (key.name, ()) if isinstance(key, TextKey) else (None, ())


def _part(body: Body, exact: Body, name: Hashable, path: Sequence[Hashable]) -> Body | None:
    """A part of a message. Its rows are named ((``messages``, message number), part number)."""
    if not (isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], tuple) and len(name[0]) == 2):
        return None
    (_, at), number = name
    before = len(body.input_messages)
    field, place = ("input_messages", at) if at < before else ("output_messages", at - before)
    messages: list[Message] = list(getattr(body, field))
    originals: Sequence[Message] = getattr(exact, field)
    if not (place < min(len(messages), len(originals)) and number < len(messages[place].parts)):
        return None
    message, original = messages[place], originals[place].parts[number]
    parts = list(message.parts)
    parts[number] = _reveal_part(parts[number], original, path)
    messages[place] = replace(message, parts=tuple(parts))
    return replace(body, **{field: tuple(messages)})


def _reveal_part(part: Any, original: Any, path: Sequence[Hashable]) -> Any:
    """Replace the visible field of a part: text, arguments, content or data."""
    field = next(name for name in ("text", "arguments", "content", "data") if name in part.__struct_fields__)
    if isinstance(part, msgspec.Struct) and field == "data":
        path = path[1:]  # the first path element is the kind
    value = _replace_value(getattr(part, field), getattr(original, field), path)
    return part if value is None else replace(part, **{field: value})


def _replace_value(value: Any, exact: Any, path: Sequence[Hashable]) -> Any:
    """Replace the value at `path` by the one in `exact`, which has the same structure; names may be masked."""
    above: list[tuple[Any, Hashable]] = []
    for name in path:
        if not is_container(value) or not is_container(exact) or len(value) != len(exact):
            return None
        above.append((value, name))
        if isinstance(value, Mapping):
            names = list(value)
            if name not in names:
                return None
            exact = list(exact.values())[names.index(name)]
        elif isinstance(name, int) and name < len(value):
            exact = exact[name]
        else:
            return None
        value = value[name]
    result = exact
    for container, name in reversed(above):
        if isinstance(container, Mapping):
            result = {**container, name: result}
        else:
            assert isinstance(name, int)
            result = [*container[:name], result, *container[name + 1 :]]
    return result


NUMBERS = (("exec", 5), ("err", 4), ("cache", 6), ("avg", 6), ("total", 6))
_BLANK = Piece(Clean(" "))


def has_nodes(run: Run) -> bool:
    """True for a run of a graph."""
    return bool(run.summary.nodes)


def node_rows(run: Run, *, width: int, glyphs: Glyphs = UNICODE) -> ListRows:
    """A row per node in order of first execution, leading to that execution."""
    stats = node_stats(run)
    first = {span.name: span for span in reversed(node_spans(run))}
    numbers = sum(size + 1 for _, size in NUMBERS)
    bar = max(0, min(30, width - numbers - 24))
    name = max(12, width - numbers - (bar + 7 if bar else 0) - 2)
    total_ms = sum(stat.total_ms for stat in stats.values())
    heading = [column(Clean("  node"), name + 2, "dim")]
    heading += [piece for label, size in NUMBERS for piece in (_BLANK, column(Clean(label), size, "dim", right=True))]
    if bar:
        heading.append(Piece(Clean("  share of time"), "dim"))
    lines: list[Line] = [(Piece(node_summary(run), "text bold"),), (), tuple(heading)]
    keys: list[object] = ["summary", "blank", "heading"]
    for node, stat in stats.items():
        sign, style = kind(first[node], glyphs)
        row = [Piece(sign, style), _BLANK, Piece(pad(one_line(node, 200), name), "text"), *_number_pieces(stat, glyphs)]
        if bar:
            row += [Piece(Clean("  ")), *amount(stat.total_ms, total_ms, bar, "bar.tool", glyphs=glyphs)]
            row.append(Piece(Clean(f" {stat.total_ms / total_ms:4.0%}" if total_ms else ""), "sec"))
        lines.append(tuple(row))
        keys.append(Jump(node, (first[node].id,)))
    lines += [(), (Piece(Clean("averages exclude failed and cached executions"), "dim"),)]
    keys += ["blank 2", "note"]
    lines = [tuple(fit(line, width)) for line in lines]
    return ListRows(lines, keys=keys, headings=(0, 1, 2, len(lines) - 2, len(lines) - 1))


def _number_pieces(stat: NodeStats, glyphs: Glyphs) -> list[Piece]:
    cells = [
        (count(stat.count), "sec"),
        (count(stat.errors) if stat.errors else glyphs.zero, "status.error" if stat.errors else "dim"),
        (count(stat.cached) if stat.cached else glyphs.zero, "status.ok" if stat.cached else "dim"),
        (duration(stat.avg_ms) if stat.avg_ms is not None else glyphs.missing, "sec"),
        (duration(stat.total_ms), "text"),
    ]
    return [
        piece
        for (text, style), (_, size) in zip(cells, NUMBERS, strict=True)
        for piece in (_BLANK, column(text, size, style, right=True))
    ]


NAME_LIMIT: Final = 60
ERROR_LIMIT: Final = 160
_DASH: Final = "—"


def node_table(run: Run) -> list[Clean]:
    """Title and table as cleaned lines; only the title if no node ran."""
    spans = node_spans(run)
    lines = [node_title(run)]
    if spans:
        lines += [Clean(""), *(_stats_table(run) if _repeats(spans) else _step_table(spans))]
    return lines


def node_title(run: Run) -> Clean:
    """``RunLog: rag_pipeline [item 12] | 1.2s | 3 nodes | 1 error`` or ``Workflow: id | FAILED | 8 steps | 2m10s``."""
    summary = run.summary
    if run.body.layout == "Workflow":
        word = one_line(summary.status_word or summary.status.value, NAME_LIMIT)
        status = word.upper() if summary.status is Status.ERROR else word
        size = _items(run) or quantity(summary.steps or 0, "step")
        return Clean(f"Workflow: {one_line(summary.id)} | {status} | {size} | {_total(summary.duration_ms)}")
    name = " ".join(one_line(part) for part in (summary.name, summary.label) if part)
    spans, items = node_spans(run), _items(run)
    facts = [*([items] if items else []), _total(summary.duration_ms), _nodes(spans), _errors(spans)]
    return Clean(" | ".join([f"RunLog: {name}", *facts]))


def _items(run: Run) -> str:
    """The result of a map: ``7 of 200 failed``, or ``200 items``; empty for other runs."""
    items = 0 if run.summary.steps else sum(depth == 0 for depth in run.depths)
    return (one_line(run.summary.result) or quantity(items, "item")) if items else ""


def node_summary(run: Run) -> Clean:
    """``4 nodes, 2.1s, 0 errors | slowest: llm_call (1.8s)``."""
    spans = own_node_spans(run)
    line = f"{_nodes(spans)}, {_total(run.summary.duration_ms)}, {_errors(spans)}"
    stats = node_stats(run)
    slowest = max(stats, key=lambda name: stats[name].total_ms, default=None)
    if slowest is not None and stats[slowest].total_ms > 0:
        line += f" | slowest: {one_line(slowest, NAME_LIMIT)} ({_total(stats[slowest].total_ms)})"
    return Clean(line)


def _repeats(spans: list[Span]) -> bool:
    """True if a node ran more than once, without inherited executions."""
    return any(count > 1 for count in Counter(s.name for s in spans if not is_inherited(s)).values())


def _step_table(spans: list[Span]) -> Iterator[Clean]:
    names = [one_line(span.name, NAME_LIMIT) for span in spans]
    statuses = [_status(span) for span in spans]
    decisions = [_decision(span) for span in spans]
    durations = [_milliseconds(span.duration_ms) for span in spans]
    name_width = max(cells(name) for name in names) + 1
    status_width = max(9, *map(cells, statuses))
    duration_width = max(8, *(len(text) + 1 for text in durations))
    columns = [("Step", 4), ("Node", max(name_width, 4)), ("Duration", duration_width), ("Status", status_width)]
    if any(decisions):
        columns.append(("Decision", max(8, *map(cells, decisions))))
    yield from _heading(columns)
    rows = zip(spans, names, durations, statuses, decisions, strict=True)
    for position, (span, name, spent, status, decision) in enumerate(rows):
        number = str(position if span.step is None else span.step)
        row = f"  {number:>4}  {pad(name, columns[1][1])}  {spent:>{duration_width - 1}}   {pad(status, status_width)}"
        yield Clean(f"{row}  {decision}".rstrip())


def _stats_table(run: Run) -> Iterator[Clean]:
    stats = {one_line(name, NAME_LIMIT): stat for name, stat in node_stats(run).items()}
    width = max(4, *map(cells, stats)) + 2
    yield from _heading([("Node", width), ("Runs", 5), ("Total", 7), ("Avg", 6), ("Errors", 6), ("Cached", 6)])
    for name, stat in stats.items():
        numbers = f"{stat.count:>6}{_total(stat.total_ms):>8}{_milliseconds(stat.avg_ms):>9}"
        yield Clean(f"  {pad(name, width)}{numbers}{stat.errors:>9}{stat.cached:>8}")


def _heading(columns: list[tuple[str, int]]) -> Iterator[Clean]:
    """Column headings and the rule below."""
    yield Clean(("  " + "  ".join(name.ljust(width) for name, width in columns)).rstrip())
    yield Clean("  " + "  ".join("─" * width for _, width in columns))


def _status(span: Span) -> Clean:
    word = one_line(span.status_word or span.status.value, NAME_LIMIT)
    if span.status is Status.ERROR:
        message = one_line(span.error.message, ERROR_LIMIT) if span.error is not None else ""
        return Clean(f"FAILED: {message}" if message else "FAILED")
    facts = [fact for fact in span.notes if fact in ("cached", "partial", INHERITED)]
    if "cached" in facts:
        word = Clean("cached")
        facts.remove("cached")
    return Clean(f"{word} ({', '.join(facts)})" if facts else word)


def _decision(span: Span) -> Clean:
    return one_line(next((fact for fact in span.notes if fact.startswith("→")), ""))


def _nodes(spans: list[Span]) -> str:
    return quantity(len({span.name for span in spans}), "node")


def _errors(spans: list[Span]) -> str:
    return quantity(sum(span.status is Status.ERROR for span in spans), "error")


def _milliseconds(ms: float | None) -> str:
    """One duration: ``12ms``, ``2400ms``; fractions below 10 ms; as a total from 10 s on."""
    if ms is None:
        return _DASH
    if ms >= 9999.5:
        return _total(ms)
    return f"{ms:.0f}ms" if ms >= 9.95 or ms <= 0 else f"{ms:.2g}ms"


def _total(ms: float | None) -> str:
    """A total: ``62ms``, ``0.7s``, ``7m48s``, ``1h05m``; a dash for invalid times."""
    if ms is None or not isfinite(ms):
        return _DASH
    if ms < 100:
        return _milliseconds(ms)
    if ms < 59_950:
        return f"{ms / 1000:.1f}s"
    seconds = round(ms / 1000)
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"
