"""A run in several files: the session's, and those of its sub-agents, which appear and grow during the run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from math import inf
from time import perf_counter, thread_time
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.agent_log import CHAT, EXECUTE_TOOL
from tracetui.formats.base import Chunk
from tracetui.formats.claude_code.records import SCHEMA
from tracetui.formats.claude_code.session import Session, agent_span, sub_agent_span
from tracetui.formats.decode import decode
from tracetui.formats.jsonl import BUDGET, FIRST, LogReader
from tracetui.formats.opening import beginning
from tracetui.formats.scalars import between, mapping, sequence, text
from tracetui.formats.schema import unknown_fields
from tracetui.model import COPIED, PREVIEW, Header, Problem, Span
from tracetui.model.claims import counts_elsewhere
from tracetui.sources.base import File, Stat, reason_of

_NAME: Final = re.compile(r"agent-([A-Za-z0-9_-]{1,64})\.jsonl")
_BELOW: Final = re.compile(r"(?:^|/)([^/]+)/subagents/(?:[^/]+/){0,4}[^/]+\.jsonl$")
_IDENT: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_FEW: Final = 200
"""Lines of a head that are looked at."""
_META_LIMIT: Final = 1 << 16
_PLAN_LIMIT: Final = 4 << 20
PATIENCE: Final = 1.0
"""Seconds for which files of sub-agents are read at most while the processor works on something else."""
DEPTH: Final = 3
"""Folders below ``subagents`` that are looked into."""


class Part(NamedTuple):
    """The file of a sub-agent: its path relative to the folder of the session's file."""

    path: str
    agent: str
    stat: Stat | None
    meta: Stat | None
    """Of the file with the call that started it."""
    workflow: str | None
    """The workflow that started it."""
    plan: Stat | None = None
    """Of the file with the plan of that workflow."""


class Meta(msgspec.Struct, frozen=True):
    """The description of a sub-agent, from the file next to its records."""

    kind: str = ""
    task: str = ""
    call: str | None = None
    """The id of the call that started it."""


# ---- which files there are


def parts_of(file: File, session: str = "") -> list[Part]:
    """The files of sub-agents that belong to the session in `file`, or to another one of its folder."""
    stem = session or file.name.removesuffix(".jsonl")
    parts = sorted(_in_folder(file, f"{stem}/subagents", DEPTH), key=lambda part: part.path)
    if not any(part.workflow for part in parts):
        return parts
    plans = {plan.name: plan for plan in file.folder(f"{stem}/workflows").entries}
    stats = {name: plan.stat for name, plan in plans.items() if plan.skipped is None}
    return [part._replace(plan=stats.get(f"{part.workflow}.json")) for part in parts]


def _in_folder(file: File, folder: str, depth: int) -> Iterator[Part]:
    listed = file.folder(folder)
    names = {entry.name: entry for entry in listed.entries if entry.skipped is None}
    for name, entry in names.items():
        if named := _NAME.fullmatch(name):
            meta = names.get(name.removesuffix(".jsonl") + ".meta.json")
            workflow = folder.partition("/workflows/")[2] or None
            yield Part(f"{folder}/{name}", named[1], entry.stat, None if meta is None else meta.stat, workflow)
    for path in listed.folders if depth else ():
        yield from _in_folder(file, f"{folder}/{path.rpartition('/')[2]}", depth - 1)


def _beside(file: File, agents: Sequence[str]) -> Iterator[Part]:
    """The files of these sub-agents in the folder of the session itself, where Claude Code 2.0 had them."""
    for agent in agents:
        name = f"agent-{agent}.jsonl"
        if _NAME.fullmatch(name) and name != file.name and file.sibling(name) is not None:
            entries = (entry for entry in file.folder().entries if entry.name == name and entry.skipped is None)
            yield from (Part(name, agent, entry.stat, None, None) for entry in entries)


def part_at(file: File, path: str) -> Part:
    """The file of a sub-agent at that path."""
    part = next((candidate for candidate in parts_of(file, path.partition("/")[0]) if candidate.path == path), None)
    if part is not None:
        return part
    meta = path.removesuffix(".jsonl") + ".meta.json"  # in the folder of the session itself
    stat = next((entry.stat for entry in file.folder().entries if entry.path.endswith(meta)), None)
    return Part(path, "", None, stat, None)


def meta_of(file: File, part: Part) -> tuple[Meta, dict[str, Any], bytes]:
    """The description of a sub-agent; all fields of its file, with the plan of its workflow; and its bytes."""
    fields, data = _small(file, part.path.removesuffix(".jsonl") + ".meta.json", part.meta, _META_LIMIT)
    kind, task, call = (text(fields.get(name)) for name in ("agentType", "description", "toolUseId"))
    if (row := _planned(file, part)) and (label := text(row.get("label"))) is not None:
        phase = text(row.get("phaseTitle"))
        task, fields = task or (label if phase is None else f"{phase}: {label}"), fields | {"workflow": row}
    return Meta((kind or "")[:PREVIEW], (task or "")[:PREVIEW], call), fields, data


def _planned(file: File, part: Part) -> dict[str, Any]:
    """The entry of a sub-agent in the plan of its workflow."""
    if part.plan is None:
        return {}
    path = f"{part.path.partition('/subagents/')[0]}/workflows/{part.workflow}.json"
    rows = map(mapping, sequence(_small(file, path, part.plan, _PLAN_LIMIT)[0].get("workflowProgress")))
    return next((row for row in rows if row.get("agentId") == part.agent), {})


def _small(file: File, path: str, stat: Stat | None, limit: int) -> tuple[dict[str, Any], bytes]:
    """The object that is in a small file, and its bytes; nothing where there is none."""
    if stat is None or stat.size > limit:
        return {}, b""
    try:
        with file.other(path, stat) as other:
            data = other.read(0, limit)
        return mapping(decode(data)[0]), data
    except (FormatError, OSError):
        return {}, b""


def session_of(file: File, ident: Any) -> str | None:
    """Path, relative to its folder, of the file of the session that the sub-agent's file `file` may belong to.

    `ident` is the id of the session as the records of the sub-agent have it.
    """
    below = _BELOW.search(file.path)
    if below is not None:
        folders = file.path[below.end(1) :].count("/") - 1
        return f"{'../' * (folders + 1)}{below[1]}.jsonl"
    if _NAME.fullmatch(file.name) is None or not isinstance(ident, str) or not _IDENT.fullmatch(ident):
        return None
    return f"{ident}.jsonl"


def copied_session(file: File, ident: str) -> str | None:
    """Path of the file of the session that the stream in `file` repeats: it has the same id, lies in the same
    folder, and is no stream itself; None without one. It also has the prompts, which no stream has.
    """
    if not _IDENT.fullmatch(ident) or file.name == f"{ident}.jsonl":
        return None
    try:
        with file.other(f"{ident}.jsonl") as session:
            is_session = any(record.get("sessionId") == ident for record in beginning(session, _FEW))
            return session.path if is_session else None
    except OSError:
        return None


# ---- reading all of them


class _AgentFile:
    """The part of a sub-agent's file that was read."""

    def __init__(self, part: Part, meta: Meta) -> None:
        self.part, self.meta = part, meta
        self.reader = LogReader(SCHEMA, lambda file: Session(file, agent=part.agent, part=part.path))
        self.session: Session | None = None
        """None: nothing was read yet."""
        self.failed = False
        """It cannot be read, and a problem was reported."""
        self.to_read = True
        """Not all of it was read."""
        self.span: Span | None = None
        """The row of the sub-agent as it was emitted last."""

    @property
    def is_current(self) -> bool:
        """Whether there is nothing new to read. Does not open the file."""
        return not self.to_read and self.reader.is_current(self.part.stat)

    def linked(self, sessions: Sequence[Session]) -> Span:
        """The span of the sub-agent below the call that one of these sessions, but for its own, started it by."""
        part, meta, own = self.part, self.meta, self.session
        when, prompt = (None, "") if own is None else (own.first, own.prompt or "")
        span = agent_span(part.agent, meta.kind, meta.task or prompt, when, "", part.path)
        for session in sessions:
            if session is not own:
                key = meta.call or session.starters.get(part.agent) or session.starters.get(part.workflow or "")
                call = None if key is None else session.calls.get(key)
                if call is not None:
                    return sub_agent_span(span, call)
        return span


class RunReader:
    """The `Reader` of a session with its sub-agents. Begins again where any of the files is another one.

    All that may raise `OSError` is done before anything is collected, so that nothing is lost when it does.
    """

    def __init__(self) -> None:
        self._given = self._reset = False
        """A chunk was returned; the next one replaces all before."""
        self._begin()

    def _begin(self) -> None:
        """Read all files from their start."""
        self._main = LogReader(SCHEMA, Session)
        self._begin_parts()

    def _begin_parts(self) -> None:
        self._reset = self._given
        self._files: dict[str, _AgentFile] = {}
        self._by_response: dict[str, list[_AgentFile]] = {}
        """The files that have a response of that id."""
        self._unread: list[_AgentFile] = []
        """The files of which the last call left records to read; until they are read, no others are looked for."""
        self._problems: list[Problem] = []
        self._is_fresh = True
        """No chunk was given since."""
        self._moved = self._done = False

    @property
    def records(self) -> int:
        """Records that were taken."""
        return sum(session.records for session in self._sessions())

    def more(self, file: File) -> Chunk:
        return self.read(file, self._main.budget)

    def read(self, file: File, seconds: float) -> Chunk:
        """Read what is new in all files, for about `seconds` at most."""
        if not self._advance(file, seconds):
            self._begin()
            self._advance(file, seconds)
        return self._chunk()

    def _advance(self, file: File, seconds: float) -> bool:
        """Read new records; False if a sub-agent's file was rewritten or deleted."""
        deadline = perf_counter() + seconds
        self._moved |= self._main.advance(file, deadline)
        if self._main.take_restart():
            self._begin_parts()
            self._moved = True
        self._done = self._main.done
        if not self._is_fresh and not self._done:
            return True
        if not self._unread and not self._meet(file):  # once all files that were listed before are read
            return False
        # regardless of the time spent on listing files
        return not self._done or self._read_parts(file, max(deadline - perf_counter(), BUDGET * FIRST))

    def _meet(self, file: File) -> bool:
        """Update the set of sub-agents; False if one was deleted."""
        session, parts = self._main.session, parts_of(file)
        missing, original = session.agents.difference(part.agent for part in parts), session.forked_from or ""
        if missing and _IDENT.fullmatch(original):  # those of the calls that it copied
            parts += (part for part in parts_of(file, original) if part.agent in missing)
            missing.difference_update(part.agent for part in parts)
        parts += _beside(file, sorted(missing))
        for part in parts:
            agent = self._files.get(part.path)
            if agent is None:
                self._files[part.path] = _AgentFile(part, meta_of(file, part)[0])
            elif agent.part != part:
                if (agent.part.meta, agent.part.plan) != (part.meta, part.plan):
                    agent.meta = meta_of(file, part)[0]
                agent.part = part
            else:
                continue
            self._moved = True
        return self._files.keys() <= {part.path for part in parts}

    def _read_parts(self, file: File, seconds: float) -> bool:
        """Read new records of sub-agents for about `seconds` of the processor; False if a file was rewritten."""
        busy, deadline = thread_time() + seconds, perf_counter() + max(seconds, PATIENCE)
        agents, self._unread = (
            self._unread or [agent_file for agent_file in self._files.values() if not agent_file.is_current],
            [],
        )
        agents.sort(key=lambda agent: agent.to_read)  # always check files read before
        has_begun = False
        for number, agent in enumerate(agents):
            if agent.to_read and has_begun and (thread_time() > busy or perf_counter() > deadline):
                self._done = False
                self._unread += agents[number:]
                break
            has_begun |= agent.to_read
            try:
                with file.other(agent.part.path, agent.part.stat) as other:
                    self._moved |= agent.reader.advance(other, perf_counter() + seconds)
            except OSError as error:
                if not agent.failed:
                    self._problems.append(Problem(file.path, agent.part.path, reason_of(error)))
                    self._moved = True
                agent.failed, agent.to_read = True, False
                continue
            if agent.reader.take_restart():
                return False
            agent.session, agent.to_read = agent.reader.session, not agent.reader.done
            self._done &= agent.reader.done
            if agent.to_read:
                self._unread.append(agent)
        return True

    # ---- chunks

    def _chunk(self) -> Chunk:
        if not self._moved:
            return Chunk(done=self._done)
        header, session = self._header(), self._main.session
        own = session.collect()
        new, linked = self._linked()
        first, second = (new, own) if self._is_fresh else (own, new)
        spans = [*first, *second, *self._given_along(own), *self._of_parts(), *linked]
        problems = [*self._main.take_problems(), *self._problems]
        for agent in self._files.values():
            problems += agent.reader.take_problems() if agent.session is not None else ()
        self._problems = []
        reset, self._reset = self._reset, False
        self._given, self._is_fresh, self._moved = True, False, False
        body = session.run_body()
        return Chunk(spans=spans, header=header, body=body, problems=problems, reset=reset, done=self._done)

    def _sessions(self) -> list[Session]:
        """Those of all files that were read, the main one first."""
        return [self._main.session, *(agent.session for agent in self._files.values() if agent.session is not None)]

    def _header(self) -> Header:
        readers = [self._main, *(agent.reader for agent in self._files.values() if agent.session is not None)]
        header = self._main.session.header()
        last = max((session.last for session in self._sessions() if session.last is not None), default=None)
        return replace(
            header,
            duration_ms=between(header.started_at, last) or None,
            size=sum(reader.stat.size for reader in readers if reader.stat is not None),
            unfinished=tuple(chain.from_iterable(reader.unfinished for reader in readers)),
            fields=unknown_fields(*(session.unknown for session in self._sessions())),
        )

    def _linked(self) -> tuple[list[Span], list[Span]]:
        """New and changed rows of sub-agents, below the calls that started them; those without a call come first."""
        new: list[Span] = []
        changed: list[Span] = []
        sessions = self._sessions()
        starting = [session for session in sessions if session.starters]
        for agent in self._files.values():
            span = agent.linked(sessions if agent.meta.call is not None else starting)
            if span != agent.span:
                (new if agent.span is None else changed).append(span)
                agent.span = span
        return new, changed

    def _of_parts(self) -> Iterator[Span]:
        """Collect the news of sub-agents."""
        for agent in self._files.values():
            session = agent.session
            if session is None:
                continue
            for span in session.collect():
                if span.operation is CHAT:
                    ident = span.id.removeprefix(session.prefix)
                    owners = self._by_response.setdefault(ident, [])
                    if agent not in owners:
                        owners.append(agent)
                        if len(owners) > 1 and _first(owners) is agent:
                            yield from self._given_along((span,), ident, but=agent)
                yield self._counted(agent, span)

    def _counted(self, agent: _AgentFile, span: Span) -> Span:
        """A row of a sub-agent; a copy if the response, or that of the call, counts in another file."""
        session = agent.session
        is_below = span.operation is EXECUTE_TOOL or span.usage is not None  # a call of a tool, or an iteration
        response = span.id if span.operation is CHAT else span.parent_id if is_below else None
        if session is None or response is None:
            return span
        ident = response.removeprefix(session.prefix)
        owners = self._by_response.get(ident, ())
        if (
            self._is_of_another(agent)
            or _is_response(self._main.session.rows.get(ident))
            or (len(owners) > 1 and _first(owners) is not agent)
        ):
            return _copy(span)
        return span

    def _given_along(self, spans: Sequence[Span], ident: str = "", but: _AgentFile | None = None) -> Iterator[Span]:
        """Copies of these responses, their calls and iterations in files of sub-agents that were read before: they were
        given them along. `ident`: the id of the response, if that of the span has the prefix of the sub-agent
        `but`.
        """
        for span in spans:
            for agent in self._by_response.get(ident or span.id, ()) if span.operation is CHAT else ():
                session = agent.session
                if session is None or agent is but:
                    continue
                row = session.rows.get(session.prefix + (ident or span.id))
                if row is not None and _is_response(row):
                    calls = [call for call in session.calls_of(row) if not session.is_pending(call.id)]
                    for original in (row, *calls, *session.iterations.get(row.id, {}).values()):
                        yield _copy(original if isinstance(original, Span) else original.span())

    def _is_of_another(self, agent: _AgentFile) -> bool:
        """Whether a sub-agent that was copied with the call that started it is, and counts, with another session."""
        ident = None if "/" in agent.part.path or agent.session is None else agent.session.metadata.get("sessionId")
        return ident is not None and ident != self._main.session.metadata.get("sessionId")


def _first(agents: Sequence[_AgentFile]) -> _AgentFile:
    """The sub-agent that counts a response which several were given along: the one that began first."""
    return min(agents, key=_began)


def _began(agent: _AgentFile) -> tuple[float, str]:
    first = None if agent.session is None else agent.session.first
    return inf if first is None else first, agent.part.path


def _is_response(row: Any) -> bool:
    """Whether a row, if there is one, is a response."""
    return row is not None and row.operation is CHAT


def _copy(span: Span) -> Span:
    """A response or call that the sub-agent was given along: it counts there."""
    return span if counts_elsewhere(span) else replace(span, usage=None, note=COPIED)
