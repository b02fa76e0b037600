"""One file of a Claude Code session while its records come in: its conversation and sub-agents.

Since 2.0 sub-agents have files of their own; before, their records (``isSidechain``) stood among the others. Records
name the one before them, and a rewind is a prompt that names an earlier one. No record ends a session: it can
always be continued. But if the last call of the model finally failed, the session failed.
"""

from __future__ import annotations

import re
from sys import intern
from typing import Any, Final

from msgspec.structs import replace

from tracetui.formats.agent_log import (
    CHAT,
    DERIVED,
    ERROR,
    EXPLICIT,
    INVOKE_AGENT,
    OK,
    RUNNING,
    UNKNOWN,
    Call,
    OpenRow,
    SyntheticRef,
    span_ref,
)
from tracetui.formats.bodies import pack_block
from tracetui.formats.branches import ROOT, BranchedConversation, Node
from tracetui.formats.claude_code.records import (
    BACKGROUND,
    SCHEMA,
    AnswerEnd,
    Assistant,
    Envelope,
    Forked,
    Result,
    User,
    clean_text,
    typed_command,
)
from tracetui.formats.decode import record_on
from tracetui.formats.jsonl import Line
from tracetui.formats.scalars import UUID, between, folder_of, moment, version
from tracetui.formats.schema import unknown_fields
from tracetui.model import COPIED, COUNTED_COPY, PREVIEW, Error, FirstError, Header, RunBody, Span, Usage, excerpt
from tracetui.model.span import status_of
from tracetui.sources.base import File

AGENT: Final = "claude"
EARLIER: Final = 1.0
"""Seconds by which the conversation must be older than the file, if it was copied from another."""
_HEAD: Final = 6
"""Characters of the id of a sub-agent in its label."""
_FEW: Final = 100
"""Records among which the list stage looks for the first prompt and response."""
_METADATA: Final = {
    "session_id": "sessionId",
    "cwd": "cwd",
    "git_branch": "gitBranch",
    "version": "version",
    "entrypoint": "entrypoint",
    "user_type": "userType",
    "slug": "slug",
}
"""Fields of records with metadata of the session: the first value counts."""
_CLOSING: Final = frozenset({"/exit", "/quit"})
"""Slash commands that close a session."""
_OWN_COMMANDS: Final = frozenset(
    {
        *("/clear", "/compact", "/config", "/context", "/cost", "/doctor", "/effort", "/exit", "/fast", "/help"),
        *("/ide", "/login", "/logout", "/mcp", "/model", "/permissions", "/plugin", "/quit", "/rename", "/resume"),
        *("/rewind", "/status", "/statusline", "/terminal-setup", "/theme", "/usage", "/vim"),
    }
)
"""Commands that set up the program itself: they say nothing about what a session is for, and ``/clear`` begins many."""
_STATUSES: Final = {"end_turn": OK, "tool_use": OK, "stop_sequence": OK}


class Response(OpenRow, gc=False):
    """A response of the model: all of its lines that were read."""

    has_text: bool = False
    """The preview is a text, not a thought."""

    def stop(self, reason: str | None) -> None:
        """Take the stop reason of a line: the last one counts."""
        if reason:
            self.status_word, self.source, self.error = intern(reason), EXPLICIT, None
            self.status = _STATUSES.get(reason) or status_of(reason)
            if self.status is ERROR:
                self.error = Error(excerpt(f"stopped: {reason}"), reason)
        elif self.status_word is None:
            self.status, self.source, self.error = OK, DERIVED, None

    def count(self, usage: Usage | None) -> None:
        """Take the usage on a line: lines repeat it while it grows, and the last one may have none or zeros."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage.largest(usage)

    def show(self, text: str | None, *, is_text: bool) -> None:
        """Take a text or a thought for the preview."""
        if text and (not self.preview or (is_text and not self.has_text)):
            self.preview, self.has_text = text[:PREVIEW], is_text


class Agent(BranchedConversation):
    """The conversation of one agent. `prefix` makes ids of spans unique."""

    def __init__(self, file: File, *, root: str | None = None, part: str = "", prefix: str = "") -> None:
        super().__init__(file, root=root, part=part)
        self.prefix = prefix
        self.task = ""
        self.span: Span | None = None
        """The row of a sub-agent within the file of its session, before it is linked."""
        self.linked: Span | None = None
        """The same as it was emitted last."""
        self.tasks: dict[str, str] = {}
        """The call that gave a sub-agent its task, by the task."""
        self.starters: dict[str, str] = {}
        """The call that started an agent or a workflow, by the id of that in its result."""
        self.agents: set[str] = set()
        """The agents among these."""
        self.copied = ""
        """The note of the responses and calls of this record if it was copied from another session."""
        self.model: str | None = None
        self.prompt: str | None = None
        """The beginning of the first prompt or slash command of the user."""
        self.command: str | None = None
        """The first command of `_OWN_COMMANDS`, for a session that has nothing else."""
        self.last_user: str | None = None
        self.last_assistant: str | None = None
        self.failure: FirstError | None = None
        """The failed call of the API that was the last thing that happened."""
        self.closed = False
        """The last thing that the user did was to close the session."""
        self.knows_status = True
        """The records that were taken show whether there is one."""
        self.iterations: dict[str, dict[str, Span]] = {}
        """Rows of further calls of the provider, by the id of the response that they belong to, and their own."""
        self.cost_states: dict[str, float] = {}
        """The cost of each session, in US dollars, by the last `CostState` with its id."""
        self.answer: AnswerEnd | None = None
        """The end of the last answer in a stream, if no response came after it,"""
        self.answers = Usage()
        """and the usage of all answers."""
        self.latest: dict[str, str] = {}
        """Metadata of the session in records of their own."""
        self._uuid: str | None = None
        self._parent: str | None = None

    def follow(self, record: Envelope, when: float | None, line: Line) -> None:
        """Take one record of this conversation."""
        uuid = record.uuid
        if uuid and uuid in self.nodes:  # written twice around a crash
            record.note(self, when, line)
            return
        self._uuid, self._parent = uuid, record.parent_uuid or record.logical_parent_uuid or None
        if isinstance(record, Assistant):
            self._take_up(line)
        before = self.top
        record.take(self, when, line)
        if uuid:
            parent, top = self._parent, None if self.top is None else self.top.id
            if parent is None or parent not in self.abandoned:
                self.add_node(uuid, parent, top)
            else:  # what another process wrote: it comes back with its branch
                self.add_node(uuid, parent, self.nodes[parent].top if self.top is before else top)
                self.abandoned.add(uuid)

    # ---- messages

    def user_message(self, role: str, prompt: str) -> None:
        """Take a message in the user's name; `role` as in `User`."""
        if role in ("user", "command"):
            self.closed = typed_command(prompt).split(" ", 1)[0] in _CLOSING
        if role == "user":
            self.failure, self.knows_status = None, True
            if prompt:
                self.last_user = prompt
                if self.prompt is None:
                    self.prompt = prompt[:PREVIEW]
        elif role == "command" and self.prompt is None:
            typed = typed_command(prompt)[:PREVIEW]
            if typed.partition(" ")[0] not in _OWN_COMMANDS:
                self.prompt = typed
            elif self.command is None:
                self.command = typed

    def response(
        self, key: str | None, uuid: str | None, name: str, model: str | None, when: float | None, line: Line
    ) -> Response:
        """The response of a line: that of an earlier line, or a new one. `key` is the id of the message."""
        ident = None if key is None else self.prefix + key
        response: Response | Span | None = None if ident is None else self.rows.get(ident)
        self.answer, self.closed = None, False
        if response is not None and response.operation is CHAT:
            if isinstance(response, Span):
                response = Response.from_span(response)
                response.has_text = bool(response.preview)
                self.rows[response.id] = response
            response.add_line(line)
            response.duration_ms = between(response.started_at, when) or response.duration_ms
        else:
            self.settle()
            if ident is None or response is not None:
                ident = self.ident(uuid, line)
            before = self.rows.get(ident)
            parent, self.steps = self.root if before is None else before.parent_id, self.steps + 1
            step = self.steps if self.root is None else None
            response = Response(ident, name, CHAT, parent, step, when, line.packed(), status=OK, model=model)
            response.part, response.claim = self.part, key or uuid
            self.rows[ident] = response
        self.top, self.notes = response, None
        self.emit(response)
        return response

    def end_answer(self, end: AnswerEnd) -> None:
        """Take the end of an answer in a stream."""
        self.answer, self.knows_status = end, True
        models = end.since_last if end.since_last is not None else end.model_usage or {}
        used = sum((total.usage() for total in models.values()), Usage())
        self.answers = used if end.since_last is None else self.answers + used

    def link_agents(self, result: Result, key: str) -> None:
        """Link the call `key` to the agent or workflow that it started, by its result."""
        for ident in (result.agent_id, result.run_id):
            if ident:
                self.starters[ident] = key
        if result.agent_id:
            self.agents.add(result.agent_id)

    def release(self, row: Any, span: Span) -> None:
        super().release(row, span)
        if isinstance(row, Response) and row.has_text is bool(row.preview) and self.rows.get(span.id) is row:
            self.rows[span.id] = span

    # ---- rows

    def ident(self, uuid: str | None, line: Line) -> str:
        """The id of a record's span."""
        return self.prefix + (uuid or f"l{line.number}")

    def row(self, uuid: str | None, name: str, when: float | None, line: Line, block: int = -1, **facts: Any) -> Span:
        """The span of a record, or of a block of it; `facts` are further fields."""
        ident, parent = self.ident(uuid, line), facts.pop("parent_id", self.root)
        packed = line.packed()
        if block >= 0:
            ident, packed = f"{ident}.{block}", pack_block(block) + packed
        at = span_ref(packed, facts.get("operation"), self.part)
        return Span(id=ident, name=name, parent_id=parent, started_at=when, at=at, **facts)

    def add(self, span: Span) -> None:
        """Give out a row of the conversation."""
        before = self.rows.get(span.id)
        if before is not None:
            span = replace(span, parent_id=before.parent_id)
        if self.copied:
            span = replace(span, note=" · ".join(filter(None, (COPIED, span.note))))
        self.rows[span.id] = span
        self.put(span)

    def aside(self, span: Span) -> None:
        """Give out a row below another one."""
        self.notes = None
        self.emit(span)

    # ---- branches

    def _take_up(self, line: Line) -> None:
        """Go to the branch of the prompt that a response answers, if another process went on elsewhere meanwhile."""
        if self._uuid and self._parent and self._parent in self.abandoned:
            self.go(self.path_of_record(self._parent), f"{self.prefix}branch:{self._uuid}", self._uuid, line)

    def rewind(self, line: Line) -> None:
        """Take a prompt that may replace an earlier one.

        It abandons the records after the one that it follows only if they include a prompt: only prompts can be taken
        back, and parallel calls name each other in a similar way. It replaces the first prompt only if that had
        followers, because some files omit parents.
        """
        if self._parent is None and self.root is None:
            self._parent = ROOT
        uuid, parent = self._uuid, self._parent
        if not uuid or parent not in self.nodes or parent == self.leaf.ident:
            return
        path = self.path_of_record(parent)
        if parent == ROOT and all(node.parent == ROOT for node in path.abandoned):
            return
        if any(row.name == "user" for row in self.abandoned_rows(path)):
            self.go(path, f"{self.prefix}branch:{uuid}", uuid, line)


class Session(Agent):
    """One file, and the conversation of its own agent; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File, *, agent: str | None = None, part: str = "") -> None:
        """`agent` is the id of a sub-agent with a file of its own, read as `part` of a run."""
        if agent is None:
            super().__init__(file)
        else:
            super().__init__(file, root=f"agent:{agent}", part=part, prefix=f"{agent}/")
        self.metadata: dict[str, str] = {}
        self._unknown = tuple(_METADATA)
        self.version: str | None = None
        """Of the Claude Code that wrote last."""
        self.first: float | None = None
        self.last: float | None = None
        self._timed = True
        self.stream: str | None = None
        """The id of the session in the first record of a stream."""
        self.uuid: str | None = None
        """The first record of the conversation."""
        self.agent: str | None = None
        """The id of the sub-agent that the file is about, from its records."""
        self.forked_from: str | None = None
        self.is_fork = False
        """Its first record was copied, by a field or by its time."""
        self._copied_before: float | None = None
        """Older records were copied from the session that this one continues."""
        self._within: dict[str, Agent] = {}
        """Conversations of sub-agents in this file, by id."""
        self._owners: dict[str, str] = {}
        """Which sub-agent a record belongs to."""
        self._first_nodes: dict[str, Node] = {}
        """Nodes of the records before the first `skip`."""
        self._left_out = b""
        """Lines after those that were left out, as far as they are in the head of the file."""
        self._left_out_ids: set[str] | None = None
        """Ids of its records on these lines; None before they are decoded."""

    def take(self, record: Envelope, line: Line) -> None:
        self.records += 1
        when = moment(record.timestamp)
        if when is not None:
            self.last, self._timed = when if self.last is None else max(self.last, when), True
        if record.version:
            self.version = record.version
        if (self._unknown or self.first is None or self.uuid is None) and not self.skipped:
            self._begin(record, when)
        agent = self if self._is_own(record) else self._agent_of(record)
        agent.copied = COUNTED_COPY if self.is_fork and self._is_copied(record, when) else ""
        if self._left_out and agent is self and self._was_left_out(record.uuid):
            record.note(self, when, line)  # a duplicate, as in `follow`
        else:
            agent.follow(record, when, line)

    def _begin(self, record: Envelope, when: float | None) -> None:
        """Take the metadata of the session in one of its first records."""
        if self.first is None and not isinstance(record.forked_from, Forked):
            self.first = when
        for name in self._unknown:
            if value := getattr(record, name):
                self.metadata[_METADATA[name]] = value
                self._unknown = tuple(known for known in self._unknown if known != name)
        self.stream = self.stream or getattr(record, "stream_session", None)
        if self.uuid is not None or not record.uuid:
            return
        self.uuid = record.uuid
        if isinstance(record.forked_from, Forked):
            self.forked_from, self.is_fork = record.forked_from.session_id or None, True
        if record.is_sidechain:
            self.agent = record.agent_id or None
        if when is not None and self.first is not None and when < self.first - EARLIER:  # older than the file
            self._copied_before, self.is_fork = self.first, True

    def _is_copied(self, record: Envelope, when: float | None) -> bool:
        """Whether a record of a fork was copied from another session, by a field or by its time."""
        if self.part or isinstance(record.forked_from, Forked):
            return not self.part
        if self._copied_before is not None and when is not None and when >= self._copied_before:
            self._copied_before = None
        return self._copied_before is not None and bool(record.uuid)

    # ---- sub-agents among the records of the session

    def _is_own(self, record: Envelope) -> bool:
        """Whether a record belongs to the conversation of the file, not to a sub-agent among its records."""
        if self.part or not (record.is_sidechain or record.caller):
            return True
        return self.agent is not None and (not record.agent_id or record.agent_id == self.agent)

    def _agent_of(self, record: Envelope) -> Agent:
        """The conversation of the sub-agent that a record belongs to."""
        agent, uuid = record.agent_id or record.caller or None, record.uuid or None
        key = agent or self._owners.get(record.parent_uuid or "") or uuid or "sidechain"
        if uuid is not None:
            self._owners[uuid] = key
        owner = self._within.get(key)
        if owner is None:
            owner = self._within[key] = Agent(self.file, root=f"agent:{key}", part=self.part, prefix=f"{key}/")
            owner.problems, owner._changed = self.problems, self._changed
            if isinstance(record, User) and record.message is not None:
                owner.task = clean_text(record.message.content)
            kind = record.agent_type or (record.attribution_agent if isinstance(record, Assistant) else None)
            if record.caller:
                self.starters[key] = record.caller
            owner.span = agent_span(key, kind or "", "", moment(record.timestamp), owner.task, self.part)
            owner.linked = owner.span
            self.emit(owner.span)
        return owner

    def collect(self) -> list[Span]:
        """Spans that are new or changed since the last call, sub-agents below the call that started them."""
        for key, agent in self._within.items():
            starter = self.starters.get(key) or self.tasks.get(agent.task) or ""
            others = (other.calls.get(starter) for other in self._within.values())
            call = self.calls.get(starter) or next(
                (candidate for candidate in others if starter and candidate is not None), None
            )
            linked = agent.span if call is None or agent.span is None else sub_agent_span(agent.span, call)
            if linked != agent.linked:
                agent.linked = linked
                self.emit(linked)
        return super().collect()

    # ---- the session as a whole

    @property
    def begun(self) -> bool:
        """Whether it has an id."""
        return self.uuid is not None and (self.stream is not None or "sessionId" in self.metadata)

    @property
    def settled(self) -> bool:
        """No later record changes the summary of the beginning."""
        if self.records >= _FEW:
            return self.begun
        is_begun = self.prompt is not None and self.model is not None and self.first is not None
        return self.begun and is_begun and "cwd" in self.metadata

    @property
    def has_status(self) -> bool:
        """The records since `skip` show the status of the session and its last time."""
        return self._timed and self.knows_status

    def skip(self, left_out: bytes) -> None:
        if not self.skipped:
            self._first_nodes = dict(self.nodes)
            self.ignore_branches()
        super().skip(left_out)
        self._left_out, self._left_out_ids = left_out, None
        self._timed = self.knows_status = False
        self.version = self.failure = self.answer = None
        self.closed = False
        self.prompt, self.command, self.model = self.prompt or "", "", self.model or ""
        self.nodes = dict(self._first_nodes)  # the last records may come again, with more before them

    def _was_left_out(self, uuid: str | None) -> bool:
        """Whether a record of this conversation with that id is among the lines left out.

        Decodes these lines once, and only if they contain such an id or, because JSON may escape it, any id.
        """
        if not uuid:
            return False
        if self._left_out_ids is None:
            needle = f'"{uuid}"'.encode() if _IDENT.fullmatch(uuid) else b'"uuid"'
            if needle not in self._left_out:
                return False
            left_out = map(_read, self._left_out.split(b"\n"))
            self._left_out_ids = {record.uuid for record in left_out if record.uuid and self._is_own(record)}
        return uuid in self._left_out_ids

    def header(self) -> Header:
        """The header, without the size of all files."""
        stem, cwd = self.file.name.removesuffix(".jsonl"), self.metadata.get("cwd")
        branch = self.metadata.get("gitBranch")
        failed, answer = self.failure, self.answer
        status = None if failed is None else ERROR
        if answer is not None:
            failed = answer.failure
            status = OK if failed is None else ERROR
        ident = stem if UUID.fullmatch(stem) else self.metadata.get("sessionId") or self.stream or stem
        return Header(
            id=self.agent or ident,
            name=folder_of(cwd) or AGENT,
            agent=AGENT,
            is_session=True,
            model=self.model or None,
            status=status,
            status_source=None if status is None else EXPLICIT,
            ended=answer is not None,
            closed=self.closed,
            error=failed,
            usage=self._recorded_cost(),
            started_at=self.first,
            duration_ms=between(self.first, self.last) or None,
            replay_of=self.forked_from,
            relation="fork" if self.is_fork else None,
            parent=None if self.agent is None else self.metadata.get("sessionId"),
            origin=self._origin(),
            prompt=self.prompt or self.command or "",
            title=None if self.skipped else self._title(),
            tags=() if branch is None else (branch[:PREVIEW],),
            source=(cwd or "")[:PREVIEW] or None,
            label=None if self.agent is None else f"agent {self.agent[:_HEAD]}",
            writer=version(self.version),
            fields=unknown_fields(self.unknown),
        )

    def _origin(self) -> str | None:
        """The first record of the conversation; with the first prompt if its id is too short to be unique."""
        uuid = self.uuid
        return uuid if uuid is None or len(uuid) >= _UNIQUE else f"{uuid}\n{self.prompt or ''}"

    def _recorded_cost(self) -> Usage | None:
        """The recorded cost. That of a fork includes its original, where the copied responses count."""
        if self.skipped or self.part or self.is_fork:
            return None
        if self.answers:
            return self.answers
        cost = self.cost_states.get(self.metadata.get("sessionId", ""))
        return None if cost is None else Usage(cost_usd=cost)

    def _title(self) -> str | None:
        """The user's title of the session, else the program's."""
        return next((title[:PREVIEW] for name in _TITLES if (title := self.latest.get(name))), None)

    def run_body(self) -> RunBody:
        """The last messages, and the metadata."""
        return RunBody(
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            attributes={**self.metadata, **self.latest},
        )


def agent_span(agent: str, kind: str, preview: str, when: float | None, task: str, part: str) -> Span:
    """The span of a sub-agent that is not linked to any call yet."""
    return Span(
        id=f"agent:{agent}",
        name=kind or "agent",
        operation=INVOKE_AGENT,
        status_source=DERIVED,
        started_at=when,
        preview=preview,
        at=SyntheticRef((("agentId", agent), ("task", task)), part),
    )


def sub_agent_span(span: Span, call: Call | Span) -> Span:
    """The span of a sub-agent started by this call, with the status in the result of the call."""
    kind, is_typed, task = call.preview.partition(": ")
    is_certain = call.status in (OK, RUNNING) and call.note != BACKGROUND
    return replace(
        span,
        name=kind if span.name == "agent" and is_typed else span.name,
        parent_id=call.id,
        step=call.step,
        status=call.status if is_certain else UNKNOWN,
        started_at=call.started_at if span.started_at is None else span.started_at,
        duration_ms=call.duration_ms if call.note != BACKGROUND else None,
        preview=span.preview or task,
    )


_TITLES: Final = ("customTitle", "aiTitle")
"""Notes with a title, the user's first. A `summary` may be that of another session."""
_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""The name of the file of a session: its id, also if the first records are those of another session."""
_UNIQUE: Final = 16
"""Characters of an id that no other record has."""


def _read(data: bytes) -> Envelope:
    """The record on a line; an empty one if there is none."""
    try:
        record: Envelope = SCHEMA.strict(data)
    except (ValueError, RecursionError):
        record = SCHEMA.convert(record_on(data), {})
    return record
