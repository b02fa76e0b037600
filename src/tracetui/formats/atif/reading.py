"""Interprets the steps of a trajectory: the spans of all files of a run, their totals and bodies.

What goes on elsewhere is put after a trajectory, its sub-agents below their calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final
from zlib import crc32

from msgspec import Raw
from msgspec.structs import astuple, replace

from tracetui.errors import FormatError
from tracetui.formats.atif.records import (
    AGENT,
    AGENTS,
    CONTINUED,
    DEPTH,
    STEPS,
    At,
    Call,
    Context,
    Document,
    Extra,
    Folders,
    Mark,
    Metrics,
    MetricsExtra,
    Ref,
    Result,
    Step,
    answers_of,
    arguments_in,
    document,
    refs_in,
    step_in,
    text_of,
)
from tracetui.formats.base import Chunk
from tracetui.formats.bodies import as_parts, cached, rendered, text_in
from tracetui.formats.document import Fingerprint, fingerprint
from tracetui.formats.scalars import (
    layout,
    mapping,
    moment,
    sequence,
    source_in,
    tags_in,
    task_key,
    version,
    without,
    word,
    zoned,
)
from tracetui.formats.schema import Unknown, plain, unknown_fields
from tracetui.model import (
    COPIED,
    PREVIEW,
    Body,
    Error,
    Header,
    Message,
    Operation,
    Part,
    Problem,
    Reasoning,
    RunBody,
    Span,
    Status,
    StatusSource,
    ToolCall,
    ToolResult,
    Total,
    Usage,
    excerpt,
)
from tracetui.sources.base import File, reason_of

MOST: Final = 1000
"""Files of one run."""
_OK: Final = Status.OK
_DERIVED: Final = StatusSource.DERIVED
_CHAT: Final = Operation.CHAT
_TOOL: Final = Operation.EXECUTE_TOOL
_MESSAGES: Final = frozenset({"user", "system"})
_TOTALS: Final = {
    "total_prompt_tokens": "input_tokens",
    "total_completion_tokens": "output_tokens",
    "total_cached_tokens": "cache_read_tokens",
    "total_cost_usd": "cost_usd",
}
"""Fields of the final metrics, and of `Usage`."""


class Opening:
    """What a trajectory begins with: the prompt by which people know it again, when it was, which model answered."""

    def __init__(self, doc: Document) -> None:
        self._prompt = self._wrapped = ""
        self.started_at: float | None = None
        self.zone: str | None = "UTC"
        self.model = word(doc.agent.model_name)

    @property
    def prompt(self) -> str:
        """The whole of it: the first that a person typed, or else the first."""
        return self._prompt or self._wrapped

    @property
    def settled(self) -> bool:
        """Whether no later step adds anything."""
        return bool(self._prompt and self.started_at is not None and self.model)

    def take(self, step: Step) -> None:
        """Look at the next step that is no copy."""
        if self.started_at is None and (time := zoned(step.time))[0] is not None:
            self.started_at, self.zone = time
        if not self._prompt and step.source == "user" and (text := text_of(step.message).strip()):
            self._wrapped = self._wrapped or text
            self._prompt = "" if is_wrapped(text) else text
        self.model = self.model or word(step.model_name)


def opening_of(doc: Document) -> Opening:
    """How a trajectory begins; no more steps are decoded than that takes."""
    opening = Opening(doc)
    for step, _ in doc.steps():
        if step is not None and not step.is_copied_context:
            opening.take(step)
            if opening.settled:
                break
    return opening


class Segment:
    """One trajectory, and what was read of it."""

    def __init__(
        self, doc: Document, path: str | None = None, prefix: str = "", parent: str | None = None, depth: int = 0
    ) -> None:
        """`path` is its file where that is not the run's, `prefix` stands before the ids of its spans, which are below
        the span `parent`. The steps of a sub-agent (`depth` > 0) are not those of the run.
        """
        self.doc, self.path, self.prefix, self.parent, self.depth = doc, path, prefix, parent, depth
        self.opening = Opening(doc)
        self.model = self.opening.model
        self.own = self.around = Usage()
        """What its steps used; the same with its sub-agents."""
        self.copied = 0
        self.placed: set[int] = set()
        """The sub-agents within it that something refers to."""
        self._ids: dict[str, int] = {}
        self._sessions: dict[str, int | None] = {}
        for place, about in enumerate(agent.about for agent in doc.agents or ()):
            if about.trajectory_id:
                self._ids.setdefault(about.trajectory_id, place)
            if about.session_id:
                self._sessions[about.session_id] = None if about.session_id in self._sessions else place

    def find(self, ref: Ref) -> int | None:
        """The place of the sub-agent that is meant: by its own id, or else by a session that is only its."""
        if ref.trajectory_id:
            return self._ids.get(ref.trajectory_id)
        return self._sessions.get(ref.session_id or "") if not ref.trajectory_path else None


class Reading:
    """One read of all files of a run."""

    def __init__(self, file: File, data: bytes) -> None:
        """Raises `FormatError` if the run's own file cannot be read."""
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self._file, self._folders = file, Folders(file)
        self._unknown: Unknown = {}
        self._own = fingerprint(file, data)
        self._parts: dict[str, Fingerprint | None] = {}
        self._missing: list[tuple[str, str]] = []
        self._size = len(data)
        self._agents = self._continued = 0
        self._declared = False
        """Only a declaration in a trajectory shows something."""
        self._last: float | None = None
        """When the last step was."""
        self._system: str | None = None
        self._last_user: str | None = None
        self._last_assistant: str | None = None
        self._segments: list[Segment] = []
        """The trajectory and those in which it goes on."""
        self._usage = self._trajectory(Segment(document(data, self._unknown)))

    @property
    def mark(self) -> Mark:
        """All files as they were read."""
        return Mark(self._own, self._parts, self._missing, self._file.moving)

    @property
    def chunk(self) -> Chunk:
        """The whole run, but for `body`."""
        return Chunk(spans=self.spans, header=self.header, problems=self.problems)

    @property
    def header(self) -> Header:
        """The header, with how long it took, and what it used where steps lack usage."""
        first = self._segments[0]
        header = header_of(first.doc, first.opening, self._file)
        duration = None
        if header.started_at is not None and self._last is not None and self._last > header.started_at:
            duration = (self._last - header.started_at) * 1000
        used, fields = self._usage if self._declared else None, unknown_fields(self._unknown)
        return replace(header, duration_ms=duration, usage=used, size=self._size, fields=fields)

    @property
    def body(self) -> RunBody:
        """Everything about the run as a whole."""
        return RunBody(
            system_prompt=self._system,
            last_user=self._last_user,
            last_assistant=self._last_assistant,
            totals=tuple(_totals(self._segments)),
            attributes=self._segments[0].doc.root,
        )

    # ---- trajectories

    def _trajectory(self, segment: Segment) -> Usage:
        """Read a trajectory and its continuations; their usage, sub-agents included."""
        used, steps = Usage(), 0
        while True:
            if segment.depth == 0:
                self._segments.append(segment)
            self._steps(segment)
            used += self._used(segment, used, steps)
            steps += len(segment.doc)
            ref = word(segment.doc.about.continued_trajectory_ref)
            continuation = None if ref is None else self._open(ref, segment.path, CONTINUED)
            if continuation is None:
                return used
            self._continued += 1
            ident, (doc, path), model = f"cont-{self._continued}", continuation, segment.model
            self.spans.append(_row(ident, "continuation", segment.parent, doc.at(path), preview=path[:PREVIEW]))
            segment = Segment(doc, path, f"{ident}/", segment.parent, segment.depth)
            segment.model = segment.model or model

    def _used(self, segment: Segment, before: Usage, steps: int) -> Usage:
        """What a trajectory used: the sum of its steps; where these have none, what it declares.

        That may be of all files so far, which used `before` in so many `steps`.
        """
        if (final := segment.doc.about.final_metrics) is None:
            return segment.around
        on = steps > 0 and final.total_steps == steps + len(segment.doc)
        missing = {}
        for name, field in _TOTALS.items():
            declared = getattr(final, name)
            if declared is not None and getattr(segment.own, field) is None:
                missing[field] = max(0, declared - ((getattr(before, field) if on else None) or 0))
        self._declared = self._declared or bool(missing)
        cost = missing.get("cost_usd", segment.around.cost_usd)
        return replace(Usage(**missing) + segment.around, cost_usd=cost)

    def _steps(self, segment: Segment) -> None:
        """Each step of a trajectory, and the sub-agents that no step refers to."""
        doc, path, opening, settled = segment.doc, segment.path, segment.opening, False
        for name in (STEPS, AGENTS):
            if doc.root.get(name) is not None:
                self._problem(path, name, "not read: not a list, or not of objects, or nested too deeply")
        used: list[Usage] = []
        has_other = False
        copies = 0
        for place, (step, at) in enumerate(doc.steps(path)):
            ident = f"{segment.prefix}{place + 1}"
            if step is None:
                if not has_other:
                    self._problem(path, f"steps[{place}]", "not an object, shown as it is")
                has_other, step = True, Step()
            if step.is_copied_context:
                if not segment.copied:
                    copies = len(self.spans)
                    self.spans.append(_row(f"{segment.prefix}copied", "copied context", segment.parent, At()))
                segment.copied += 1
                self.spans.append(_copy(step, ident, self.spans[copies].id, at))
                continue
            if not settled:
                opening.take(step)
                settled = opening.settled
            self.spans.append(top := _step(step, ident, at, segment))
            if (when := top.started_at) is not None and (self._last is None or when > self._last):
                self._last = when
            if top.usage is not None:
                used.append(top.usage)
            if segment.depth == 0 and (text := text_of(step.message)):
                self._system = self._system or (text if step.source == "system" else None)
                self._last_user = text if step.source == "user" else self._last_user
                self._last_assistant = text if step.source == AGENT else self._last_assistant
            if step.observation is not None or step.tool_calls:
                self._calls(step, top, segment)
        if segment.copied:
            note = f"{segment.copied} step{'s' if segment.copied > 1 else ''}"
            self.spans[copies] = replace(self.spans[copies], note=note)
        if doc.note:
            self._problem(path, "", f"read leniently: {doc.note}")
        for place, agent in enumerate(doc.agents or ()):
            if place not in segment.placed:
                segment.around += self._agent(agent, path, segment.parent, segment.depth, "no call refers to it")
        segment.own = _sum(used)
        segment.around += segment.own

    def _calls(self, step: Step, top: Span, segment: Segment) -> None:
        """The calls of a step, each with the sub-agents that its results refer to."""
        calls, results = step.calls, step.results
        answers, loose = answers_of(step, calls)
        alone = step.extra if len(calls) == 1 else None
        for place, call in enumerate(calls):
            if isinstance(call, Call):
                own_results = [results[number] for number in answers.get(place, ())]
                self.spans.append(span := _call(call, place, own_results, top, alone))
                self._refs(own_results, span.id, segment)
        self._refs([results[number] for number in loose], top.id, segment)

    # ---- sub-agents

    def _refs(self, results: Sequence[Any], parent: str, segment: Segment) -> None:
        """The sub-agents that results refer to, below the span `parent`."""
        refs = [ref for result in results for ref in refs_in(result)]
        path, depth, agents = segment.path, segment.depth, segment.doc.agents or ()
        if not refs:
            return
        where = f"step {parent}"
        if depth >= DEPTH:
            self._problem(path, where, "sub-agents of sub-agents are read no deeper")
            return
        for ref in refs:
            place = segment.find(ref)
            if place is not None and place not in segment.placed:
                segment.placed.add(place)
                segment.around += self._agent(agents[place], path, parent, depth)
            elif place is None and ref.trajectory_path:
                opened = self._open(ref.trajectory_path, path, where)
                segment.around += Usage() if opened is None else self._agent(opened[0], opened[1], parent, depth)
            elif place is None and ref.trajectory_id:
                self._problem(path, where, f"there is no trajectory {ref.trajectory_id[:PREVIEW]!r} within it")

    def _agent(self, doc: Document, path: str | None, parent: str | None, depth: int, note: str = "") -> Usage:
        """A sub-agent, its own steps below it."""
        self._agents += 1
        ident, place = f"agent-{self._agents}", len(self.spans)
        name = (word(doc.agent.name) or AGENT)[:PREVIEW]
        self.spans.append(row := _row(ident, name, parent, doc.at(path), note=note))
        segment = Segment(doc, path, f"{ident}/", ident, depth + 1)
        used = self._trajectory(segment)
        self.spans[place] = replace(
            row,
            operation=Operation.INVOKE_AGENT,
            status=_OK if len(doc) else Status.UNKNOWN,
            started_at=segment.opening.started_at,
            usage=used or None,
            preview=segment.opening.prompt[:PREVIEW],
        )
        return used

    # ---- files

    def _open(self, ref: str, path: str | None, where: str) -> tuple[Document, str] | None:
        """The trajectory in the file that `ref` means, and its path; None, and a problem, where there is none."""
        own = path or self._file.name
        part = self._folders.find(ref, own)
        if part is None:
            self._missing.append((ref, own))
            self._problem(path, where, f"{ref[:PREVIEW]!r} is missing: no such file is beside the trajectory")
            return None
        if len(self._parts) >= MOST:
            self._problem(path, where, f"{ref[:PREVIEW]!r} is not read: the run is in too many files")
            return None
        if part == self._file.name or part in self._parts:
            return None
        self._parts[part] = None
        try:
            with self._file.other(part) as other:
                self._file.other(part, other.stat)  # the run moves while a part of it does
                data = other.read_all()
                self._parts[part] = fingerprint(other, data)
                self._size += len(data)
            return document(data, self._unknown), part
        except (OSError, FormatError) as error:
            self._problem(part, getattr(error, "where", ""), getattr(error, "reason", "") or reason_of(error))
            return None

    def _problem(self, path: str | None, where: str, reason: str) -> None:
        place = f"{path}: {where}" if path and where else path or where
        self.problems.append(Problem(self._file.path, place, reason))


# ---- steps


def _row(ident: str, name: str, parent: str | None, at: At, *, preview: str = "", note: str = "") -> Span:
    """A row that is no step."""
    return Span(
        id=ident,
        name=name,
        operation=Operation.META,
        parent_id=parent,
        status=_OK,
        status_source=_DERIVED,
        preview=preview,
        note=note,
        at=at,
    )


def _copy(step: Step, ident: str, parent: str, at: At) -> Span:
    """A step of the context that a trajectory was begun with: it happened, and was paid for, elsewhere."""
    row = _row(ident, (word(step.source) or "step")[:PREVIEW], parent, at, preview=_preview(step), note=COPIED)
    return replace(row, operation=Operation.MESSAGE, started_at=moment(step.time))


def _step(step: Step, ident: str, at: At, segment: Segment) -> Span:
    """What the agent did: a call of its model, several segment as one, or none; or a message of the user or the system.

    A step from another source than the three of the schema is a separate row.
    """
    operation, name, model, usage, note = Operation.UNKNOWN, word(step.source) or "?", None, None, ""
    status, source, error = None, None, None
    extra = step.extra if isinstance(step.extra, Extra) else None
    if extra is not None:
        status, source, error = _failure((replace(extra, tool_result_is_error=None),), lambda: text_of(step.message))
    if name == AGENT:
        usage, count = _usage(step.metrics), step.llm_call_count
        operation, note = (Operation.OTHER, "no model call") if count == 0 else (_CHAT, "")
        if count != 0:
            model = word(step.model_name) or segment.model
            name = model or "model"
            note = f"{count} model calls" if count is not None and count > 1 else ""
    elif name in _MESSAGES:
        operation = Operation.MESSAGE
        if extra is not None and isinstance(extra.context_management, Context):
            note = (extra.context_management.type or "")[:PREVIEW]
    return Span(
        id=ident,
        name=name[:PREVIEW],
        operation=operation,
        parent_id=segment.parent,
        step=None if segment.depth else step.step_id,
        is_step=not segment.depth,
        status=status or _OK,
        status_source=source or _DERIVED,
        started_at=moment(step.time),
        usage=usage,
        error=error,
        model=model,
        preview=_preview(step),
        note=note,
        at=at,
    )


def _call(call: Call, place: int, answers: Sequence[Any], top: Span, alone: Any) -> Span:
    """A call of the step that is `top`; `alone` is the ``extra`` of the step of a single call."""
    status, source, error = None, None, None
    extras = [record.extra for record in (*answers, call) if record.extra is not None]
    if isinstance(alone, Extra) and alone.tool_result_is_error:
        extras.append(Extra(is_error=True))
    if extras:
        status, source, error = _failure(extras, lambda: _texts(answers))
    return Span(
        id=f"{top.id}.{place + 1}",
        name=(word(call.function_name) or "tool")[:PREVIEW],
        operation=_TOOL,
        parent_id=top.id,
        step=top.step,
        status=status or (_OK if answers else Status.UNKNOWN),
        status_source=source or _DERIVED,
        started_at=top.started_at,
        error=error,
        preview=_distinct(arguments_in(plain(call.arguments))),
        at=At(top.at.piece, top.at.path, place),
    )


def _failure(
    extras: Iterable[Any], reason: Callable[[], str]
) -> tuple[Status | None, StatusSource | None, Error | None]:
    """Status, its source and the error from fields outside the schema, each None where there are none.

    ATIF has no field for that; converters write these into ``extra``. Nothing is guessed from text: `reason` is only
    the text of a failure.
    """
    fine: StatusSource | None = None
    for extra in extras:
        if not isinstance(extra, Extra):
            continue
        error, kind, code = mapping(extra.error), extra.error_type, extra.exit_code
        message = word(extra.error) or word(error.get("message"))
        flags = [flag for flag in (extra.is_error, extra.tool_result_is_error) if flag is not None]
        if message or kind or error or any(flags):
            failure = Error(excerpt(message or reason().strip()), kind or word(error.get("type")))
            return Status.ERROR, StatusSource.EXPLICIT, failure
        if code:
            return Status.ERROR, StatusSource.EXIT, Error(excerpt(reason().strip()), f"exit {code}")
        fine = StatusSource.EXPLICIT if flags else StatusSource.EXIT if code is not None else fine
    return (_OK, fine, None) if fine else (None, None, None)


def _texts(answers: Sequence[Result]) -> str:
    return "\n".join(filter(None, (text_in(plain(answer.content)) for answer in answers)))


def _preview(step: Step) -> str:
    return (text_of(step.message).strip() or (step.reasoning_content or "").strip())[:PREVIEW]


def _distinct(arguments: Any) -> str:
    """What distinguishes this call from the next: its first text."""
    if isinstance(arguments, str):
        return arguments[:PREVIEW]
    return next((value for value in mapping(arguments).values() if isinstance(value, str) and value), "")[:PREVIEW]


def is_wrapped(text: str) -> bool:
    """Whether a text is one element, ``<environment_context>…</environment_context>``: no person typed that."""
    name = text[1 : text.find(">")] if text.startswith("<") else ""
    return name.replace("_", "").replace("-", "").isalnum() and text.endswith(f"</{name}>")


# ---- what was used


def _usage(metrics: Metrics | None) -> Usage | None:
    """What one step used; ATIF counts cached input as part of the prompt, as `Usage` does."""
    if metrics is None:
        return None
    extra = metrics.extra if isinstance(metrics.extra, MetricsExtra) else MetricsExtra()
    thought = extra.reasoning_output_tokens if extra.reasoning_tokens is None else extra.reasoning_tokens
    used = Usage(
        input_tokens=metrics.prompt_tokens,
        output_tokens=metrics.completion_tokens,
        cache_read_tokens=metrics.cached_tokens,
        cache_creation_tokens=extra.cache_creation_input_tokens,
        reasoning_tokens=thought,
        cost_usd=metrics.cost_usd,
    )
    return used or None


def _sum(used: Sequence[Usage]) -> Usage:
    """The sum of what was used, each number over the steps that have it."""
    columns = zip(*map(astuple, used), strict=True)
    recorded = ([value for value in column if value is not None] for column in columns)
    counts: list[Any] = [sum(values) if values else None for values in recorded]
    return Usage(*counts[:-1])  # the last field isn't a count


def _totals(segments: Sequence[Segment]) -> Iterator[Total]:
    """What the trajectory and those in which it goes on declare, recounted.

    Some writers count sub-agents in, and some count on where a trajectory goes on: a number that is right in one of
    these readings is right. Where it is in none, the sum of the steps is shown beside it.
    """
    own = around = Usage()
    steps = 0
    for number, segment in enumerate(segments):
        own, around, steps = own + segment.own, around + segment.around, steps + len(segment.doc)
        prefix = f"cont-{number} " if number else ""
        readings = (segment.own, segment.around, own, around)
        counts = {name: [getattr(reading, field) for reading in readings] for name, field in _TOTALS.items()}
        counts["total_steps"] = [len(segment.doc), len(segment.doc) - segment.copied, steps]
        for name, numbers in counts.items():
            declared = getattr(segment.doc.about.final_metrics, name, None)
            if declared is not None:
                yield Total(f"{prefix}{name}", declared, _agreeing(declared, numbers))


def _agreeing(declared: float, counts: list[Any]) -> Any:
    """The count that agrees with what is declared (sums of cents never do exactly), else the first."""
    recorded = [count for count in counts if count is not None]
    return next((declared for count in recorded if math.isclose(count, declared, abs_tol=1e-9)), counts[0])


# ---- the run


def header_of(doc: Document, opening: Opening, file: File) -> Header:
    """The header, from the beginning of a trajectory.

    ATIF does not record how a run ended, and some writers write final metrics after each step: it has ended once
    these are there and the file is still.
    """
    about, agent = doc.about, doc.agent
    stem = file.name.removesuffix(".json") or file.name
    name = word(agent.name)
    return Header(
        id=word(about.trajectory_id) or word(about.session_id) or stem,
        name=name or stem,
        agent=name,
        model=opening.model,
        ended=not file.moving and (about.final_metrics is not None or bool(about.continued_trajectory_ref)),
        started_at=opening.started_at,
        time_zone=opening.zone,
        repeats=task_key(name or "", opening.prompt),
        prompt=opening.prompt[:PREVIEW],
        tags=tags_in(doc.values, about.extra, agent.extra),
        source=source_in(about.extra, agent.extra),
        writer=version(agent.version) or layout(about.schema_version),
    )


def body_of(file: File, span: Span) -> Body:
    """The body of a span. Raises `FormatError` for a span of another format."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    if at.piece is None:
        return Body()  # no record holds it
    source = _source_of(file, at)
    if at.whole:
        return Body(attributes=({"file": at.path} if at.path else {}) | mapping(source.value), raw=source.raw)
    if not source.step:
        return Body(output=source.value, raw=source.raw)
    if at.call is not None:
        return _call_body(source, at.call)
    return _message(source) if source.copied or source.step.get("source") != AGENT else _agent(source)


class _Source:
    """The bytes of a record, and its value."""

    def __init__(self, raw: bytes, value: Any) -> None:
        self.raw, self.value = raw, value
        self.step = mapping(value)
        self.copied = self.step.get("is_copied_context") is True

    @property
    def calls(self) -> list[Any]:
        """The calls that a step of the agent asked for."""
        return sequence(self.step.get("tool_calls")) if self.step.get("source") == AGENT else []

    def answers(self, place: int) -> list[Any]:
        """The results of the call at that place."""
        return [self._results[number] for number in self._paired[0].get(place, ())]

    @property
    def loose(self) -> list[Any]:
        """The results of no call."""
        return [self._results[number] for number in self._paired[1]]

    @property
    def _results(self) -> list[Any]:
        return sequence(mapping(self.step.get("observation")).get("results"))

    @cached_property
    def _paired(self) -> tuple[dict[int, list[int]], list[int]]:
        step = step_in(self.step)
        return answers_of(step, () if self.copied else step.calls)


def _source_of(file: File, at: At) -> _Source:
    """What a span is recorded in. A step of several calls is kept for the next of them."""
    piece = at.piece
    if not isinstance(piece, Raw):
        return _Source(rendered(piece), piece)
    if at.whole:
        return _Source(bytes(piece), Document(piece, {}).root)
    if not at.call:
        return _Source(bytes(piece), plain(piece))
    return cached(file, (at.path, crc32(piece), at.size), lambda: _Source(bytes(piece), plain(piece)))


def _message(source: _Source) -> Body:
    """A message; everything else stays under its own name."""
    step, loose = source.step, source.loose
    parts, rest = as_parts(step.get("message"))
    attributes = without(step, "message") | ({} if rest is None else {"message": rest})
    if source.copied:
        parts = [*_thought(step), *parts, *_asked(source)]
    message = (Message(_role(step), tuple(parts)),) if parts else ()
    return Body(
        input=step.get("message"),
        output=_contents(loose),
        input_messages=(*message, *_answers(loose)),
        attributes=attributes,
        raw=source.raw,
    )


def _agent(source: _Source) -> Body:
    """The reasoning, message and calls of the agent; results are shown with their calls, those of no call here."""
    step, loose = source.step, source.loose
    parts, rest = as_parts(step.get("message"))
    attributes = without(step, "message", "tool_calls", "observation")
    thoughts = list(_thought(step))
    if thoughts:
        del attributes["reasoning_content"]
    if rest is not None:
        attributes["message"] = rest
    calls = step.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        attributes["tool_calls"] = calls
    others = {f"tool_calls[{i}]": call for i, call in enumerate(sequence(calls)) if not isinstance(call, dict)}
    observed = _observed(step.get("observation"), loose)
    answer = (Message(_role(step), (*thoughts, *parts, *_asked(source))),)
    return Body(
        output=text_in(step.get("message")) or _contents(loose),
        output_messages=(*answer, *_answers(loose)),
        attributes=attributes | others | observed,
        raw=source.raw,
    )


def _call_body(source: _Source, place: int) -> Body:
    """A call with its results; where a name is taken, a result's is ``result.FIELD``."""
    call = mapping(source.calls[place]) if place < len(source.calls) else {}
    attributes = without(call, "arguments")
    answers = source.answers(place)
    for number, answer in enumerate(answers):
        prefix = f"result {number + 1}." if number else "result."
        for key, value in mapping(answer).items():
            if key == "source_call_id" or (key == "content" and number == 0):
                continue
            attributes[f"{prefix}{key}" if number or key in attributes else key] = value
    output = mapping(answers[0]).get("content") if answers else None
    return Body(input=arguments_in(call.get("arguments")), output=output, attributes=attributes, raw=source.raw)


def _observed(observation: Any, loose: list[Any]) -> dict[str, Any]:
    """An observation without the results of calls."""
    if not isinstance(observation, dict):
        return {} if observation is None else {"observation": observation}
    rest: dict[str, Any] = {f"observation.{key}": value for key, value in observation.items() if key != "results"}
    results = observation.get("results")
    if loose or (results is not None and not isinstance(results, list)):
        rest["observation.results"] = loose or results
    return rest


def _role(step: dict[str, Any]) -> str:
    source = word(step.get("source"))
    return "assistant" if source == AGENT else source or "message"


def _thought(step: dict[str, Any]) -> tuple[Part, ...]:
    thought = step.get("reasoning_content")
    return (Reasoning(thought),) if isinstance(thought, str) and thought else ()


def _asked(source: _Source) -> list[Part]:
    calls: list[Part] = []
    for call in map(mapping, source.calls):
        name = word(call.get("function_name"))
        if name is not None:
            calls.append(ToolCall(word(call.get("tool_call_id")), name, arguments_in(call.get("arguments"))))
    return calls


def _contents(results: list[Any]) -> Any:
    """The contents of results: the one, or their texts."""
    contents = [mapping(result).get("content") for result in results]
    return contents[0] if len(contents) == 1 else "\n".join(filter(None, map(text_in, contents))) or None


def _answers(results: list[Any]) -> tuple[Message, ...]:
    """Results that belong to no call, as they stand in the conversation."""
    parts = [
        ToolResult(word(result.get("source_call_id")), result.get("content"))
        for result in results
        if isinstance(result, dict) and result.get("content") is not None
    ]
    return (Message("tool", tuple(parts)),) if parts else ()
