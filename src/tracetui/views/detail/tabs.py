"""The detail pane: a span by tabs. A span has only tabs with content. One masked value can be revealed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.analysis import prices
from tracetui.analysis.values import is_container
from tracetui.masking import clean, mask, one_line, record
from tracetui.model import Binding, Body, Check, Link, Message, Run, Span, Status, StatusSource, Usage
from tracetui.model.tally import CONTAINERS
from tracetui.store.address import span_label, span_title
from tracetui.text import Clean, duration, grouped
from tracetui.views.detail.assessment import add_doom, add_limits
from tracetui.views.detail.nodes import has_nodes, node_rows
from tracetui.views.detail.run import (
    add_price,
    add_usage,
    goal_rows,
    run_rows,
    source_words,
    status_pieces,
)
from tracetui.views.detail.transcript import edit_lines, edit_source, edits_of, last_reply, transcript
from tracetui.views.document import ValueKey, document
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.goal import has_goal
from tracetui.views.labels import clock
from tracetui.views.rows import Piece, Rows
from tracetui.views.sheet import Sheet
from tracetui.views.stack import Stack, StyledRows, TextKey, TextRows

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.statistics import Estimate


_LOOKED_AT: Final = 500
_MAX_USAGE: Final = 8
"""Maximum number of attribute values to look at, and of matches."""
_SIGNS: Final = ("usage", "token")


def recorded_usage(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes whose names mention usage or tokens, by path, without duplicates.

    A heuristic for common names; the attributes tab shows all.
    """
    found: dict[str, Any] = {}
    todo: list[tuple[str, Any]] = [("", attributes)]
    for path, value in todo:
        if not isinstance(value, Mapping) or len(todo) > _LOOKED_AT:
            continue
        for key, below in value.items():
            name = f"{path}.{key}" if path else str(key)
            if not any(sign in str(key).lower() for sign in _SIGNS):
                todo.append((name, below))
            elif len(found) < _MAX_USAGE and below not in (None, "") and not _is_among(below, found.values()):
                found[name] = below
    return found


def _is_among(value: Any, others: Iterable[Any]) -> bool:
    try:
        return value in others
    except RecursionError:  # too deep to compare
        return False


_MAX_ROWS: Final = 12


def tab_names(run: Run, span: Span | None, body: Body | None) -> list[str]:
    """The tabs with content, most relevant first, run tabs last."""
    found = []
    if span is not None:
        found.append("error" if span.error is not None or span.status is Status.ERROR else "overview")
        if body is not None:
            found += [tab for tab, has in _HAS.items() if has(body)]
            if edits_of(body.input):
                found.insert(1 if found[0] == "error" else 0, "edit")
    if has_goal(run.body):
        found.append("goal")
    if has_nodes(run):
        found.append("nodes")
    return [*found, "run"]


_HAS: Final[dict[str, Callable[[Body], bool]]] = {
    "messages": lambda body: bool(body.input_messages or body.output_messages),
    "input": lambda body: body.input is not None,
    "output": lambda body: body.output is not None,
    "state": lambda body: body.state is not None,
    "inputs": lambda body: bool(body.bindings),
    "attributes": lambda body: bool(body.attributes),
    "raw": lambda body: bool(body.raw),
}


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
) -> Rows:
    """The rows of a tab. `opened` contains toggled fold keys (see `tracetui.views.rows.Fold`).

    `before` is the body of the model call before a failed span: what the model had seen.
    """
    if tab == "run" or span is None:
        return run_rows(run, width=width, opened=opened, glyphs=glyphs, now=now, zone=zone, assessment=assessment)
    if tab == "goal":
        return goal_rows(run, width=width, opened=opened, glyphs=glyphs)
    if tab == "nodes":
        return node_rows(run, width=width, glyphs=glyphs)
    view = _View(run, span, body or Body(), width, opened, glyphs, zone, assessment, before)
    return _TABS[tab](view) if tab in _TABS else _overview(view)


class _View(msgspec.Struct, frozen=True):
    """Input of a tab."""

    run: Run
    span: Span
    body: Body
    width: int
    opened: frozenset[Hashable]
    glyphs: Glyphs
    zone: tzinfo
    assessment: Assessment | None = None
    before: Body | None = None

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
    words = source_words(span.status, span.status_source)
    if span.status_source is StatusSource.EXPLICIT and error is not None:
        words = Clean("recorded with the step's error")
    sheet.line(Piece(Clean(f"status: {words}"), "dim"))
    sheet.blank()
    _facts(sheet, view)
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
    sheet.fact("status", *status_pieces(span.status, span.status_word, view.glyphs))
    sheet.fact("", Piece(source_words(span.status, span.status_source), "dim"))
    _facts(sheet, view)
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
        cached = used.cache_read_tokens or used.cache_creation_tokens
        words = "normalized above" + (" (in includes cached tokens)" if cached else "")
        sheet.fact("", Piece(Clean(f"{words}; as recorded:"), "dim"))
        sheet.value("", recorded if len(recorded) > 1 else next(iter(recorded.values())), most=3)


def _estimate(view: _View) -> Estimate | None:
    """The estimated cost of a call. Requires an assessed run: then the price library is loaded."""
    from tracetui.analysis.statistics import Estimate

    span = view.span
    model = span.model or view.run.summary.model
    usd = prices.of_call(model, span.usage, span.started_at) if span.operation not in CONTAINERS else None
    return None if usd is None or model is None else Estimate(usd, (model,), ())


def _facts(sheet: Sheet, view: _View) -> None:
    """Facts about any span: time, note, arguments, result, checks, links."""
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
    if body.input is not None:
        sheet.value("args", body.input, most=3)
    elif span.preview:
        sheet.fact("args", Piece(one_line(span.preview, 120), "dim"))
    if body.output is not None:
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
            words = Piece(Clean(" matches args"), "dim")
            sheet.fact("hash", stored, Piece(glyphs.ok, "status.ok"), words, recipe)
            continue
        none = "neither recipe" if len(check.expected) == 2 else "no recipe"
        sheet.fact("hash", stored, Piece(Clean(f"{glyphs.error} matches {none}"), "status.warn"))
        for name, value in check.expected:
            sheet.fact("", Piece(Clean(f"{clean(value, 200)} "), "dim"), Piece(one_line(name, 80), "dim"))


def _link(sheet: Sheet, run: Run, link: Link) -> None:
    spans = (link.span,) if link.span is not None else ()
    there = run.span(link.span) if link.span is not None else None
    where = span_title(run, there) if there is not None else (link.run or link.span or "")
    arrow = Piece(Clean(f"{sheet.glyphs.arrow} "), "dim")
    sheet.fact(link.label, arrow, Piece(one_line(where, 200), "accent"), spans=spans, run=link.run)


def _messages(view: _View) -> Rows:
    """Usage and conversation. Messages since the model's last reply are highlighted."""
    sheet = view.sheet("used")
    if view.span.usage is not None:
        add_usage(sheet, view.span.usage)
        sheet.blank()
    sheet.add(_conversation(view, view.body))
    return sheet.rows()


def _conversation(view: _View, body: Body) -> Stack:
    given = body.input_messages
    new = range(last_reply(given), len(given)) if last_reply(given) else range(0)
    everything = (*given, *body.output_messages)
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
    text = record(view.body.raw).decode("utf-8", "backslashreplace")
    return TextRows(text, view.width, name="raw", style="sec", glyphs=view.glyphs)


_TABS: Final[dict[str, Callable[[_View], Rows]]] = {
    "error": _error,
    "overview": _overview,
    "messages": _messages,
    "input": lambda view: view.document("input", view.body.input),
    "output": lambda view: view.document("output", view.body.output),
    "state": lambda view: view.document("state", view.body.state),
    "inputs": _inputs,
    "attributes": lambda view: view.document("attributes", view.body.attributes),
    "raw": _raw,
    "edit": _edit,
}


_FIELDS: Final = frozenset({"input", "output", "state", "attributes"})


def reveal_value(body: Body, exact: Body, key: Hashable) -> Body | None:
    """The masked `body` with the value of row `key` of the detail pane taken from `exact`.

    That is the value of a JSON row, or a text or result of a message. None for other rows, and for unmasked values.
    """
    name, path = _place(key)
    if isinstance(name, str) and name in _FIELDS:
        made = _with(getattr(body, name), getattr(exact, name), path)
        found = None if made is None else replace(body, **{name: made})
    else:
        found = _part(body, exact, name, path)
    return None if found is None or found == body else found


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
    parts[number] = _revealed_part(parts[number], original, path)
    messages[place] = replace(message, parts=tuple(parts))
    return replace(body, **{field: tuple(messages)})


def _revealed_part(part: Any, original: Any, path: Sequence[Hashable]) -> Any:
    """Replace the visible field of a part: text, arguments, content or data."""
    field = next(name for name in ("text", "arguments", "content", "data") if name in part.__struct_fields__)
    if isinstance(part, msgspec.Struct) and field == "data":
        path = path[1:]  # the first path element is the kind
    made = _with(getattr(part, field), getattr(original, field), path)
    return part if made is None else replace(part, **{field: made})


def _with(value: Any, exact: Any, path: Sequence[Hashable]) -> Any:
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
    made = exact
    for container, name in reversed(above):
        if isinstance(container, Mapping):
            made = {**container, name: made}
        else:
            assert isinstance(name, int)
            made = [*container[:name], made, *container[name + 1 :]]
    return made
