"""Counting a regular session without making its spans: typed decoding passes over the long texts.

Regular means that there is nothing to mend, to take back or to leave out: no forks, no rewinds, no unknown kinds, no
answers without a call. Any other session is read in full, and both ways give the same numbers.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.claude_code import branches
from tracetui.formats.claude_code.agents import beside, meta_of, parts_of
from tracetui.formats.claude_code.conversation import GROUP
from tracetui.formats.claude_code.facts import EARLIER, Facts
from tracetui.formats.claude_code.lean import NULL, Assistant, Block, Counts, Node, Rare, Said, User, decode
from tracetui.formats.claude_code.originals import original_of
from tracetui.formats.claude_code.records import (
    SYNTHETIC,
    At,
    Record,
    command_in,
    kind_of,
    role_of,
    spoken,
    type_of,
)
from tracetui.formats.claude_code.spans import SYSTEM, hook_span, outcome
from tracetui.formats.counting import Failures, Irregular
from tracetui.formats.decode import skippable, strict
from tracetui.formats.lines import batches
from tracetui.formats.scalars import mapping, moment, text
from tracetui.formats.tail import MAX_LINE
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Error, FirstError, Operation, Span, Status, Usage
from tracetui.model.build import Tally
from tracetui.model.status import status_of
from tracetui.model.tally import keep
from tracetui.sources.base import File

Position = tuple[int, ...]
"""Where a span stands in pre-order."""
_BRACE: Final = ord("{")
_QUOTE: Final = ord('"')
_FIRST: Final = -1 << 20
_OURS: Final = ("l", "agent:", "branch:")
"""How ids begin that spans get from us."""


class _Response:
    """A response, and what its last line said."""

    __slots__ = ("failure", "ident", "name", "position", "usage", "word")

    def __init__(self, ident: str, name: str, position: Position) -> None:
        self.ident, self.name, self.position = ident, name, position
        self.usage: Counts | None = None
        self.word: str | None = None
        self.failure: Error | None = None


def count(file: File) -> tuple[Facts, Tally, int]:
    """What the header of a session is made of, and the numbers of its spans, also of sub-agents; bytes of all files.

    See `tracetui.formats.counting.regular`.
    """
    try:
        main, size = _read(file, ""), file.stat.size
        parts = parts_of(file)
        known = {part.agent for part in parts}
        if any(beside(file, sorted(main.started.keys() - known))):
            raise Irregular
        found = []
        for part in parts:
            with file.other(part.path, part.stat) as other:
                found.append((part, meta_of(file, part)[0], _read(other, part.agent)))
                size += other.stat.size
    except OSError:  # a file of a sub-agent went away
        raise Irregular from None
    if main.facts.first is None or main.facts.uuid is None or len(known) != len(parts):
        raise Irregular
    if original_of(main.facts, file) is not None:
        raise Irregular
    tally, failed = main.tally, main.failed()
    for number, (part, meta, one) in enumerate(found):
        called = meta.call or main.started.get(part.agent) or main.started.get(part.workflow or "")
        place = main.calls.get(called or "")
        if place is None:  # started by another sub-agent, or nobody knows
            raise Irregular
        failed.found += [((*place, _FIRST + number, *at), error) for at, error in one.failed(main.responses).found]
        _add(tally, one.tally)
        for name, times in one.facts.strange.items():
            main.facts.strange[name] = main.facts.strange.get(name, 0) + times
    failed.count(tally)
    return main.facts, tally, size


def _add(tally: Tally, part: Tally) -> None:
    """Count what a sub-agent did, and the sub-agent."""
    tally.spans += part.spans + 1
    tally.llm_calls += part.llm_calls
    tally.tool_calls += part.tool_calls
    tally.usage = tally.usage + part.usage
    for name in part.tools:
        keep(tally.tools, name)
    for name in part.models:
        keep(tally.models, name)


def _read(file: File, agent: str) -> _Counter:
    counter = _Counter(agent)
    for batch, finished in batches(file, MAX_LINE):
        if not finished:
            raise Irregular
        skippable(batch)
        for data in batch.split(b"\n"):
            if data:
                counter.take(data)
    return counter


class _Counter:
    """Counts what a `Conversation` would make spans of."""

    def __init__(self, agent: str) -> None:
        self.agent, self.prefix = agent, f"{agent}/" if agent else ""
        self.facts = Facts()
        self.tally = Tally()
        self.last_time: str | None = None
        self.trail = branches.Trail()
        self.prompted = False
        self.parent: str | None = None
        """What the record follows."""
        self.responses: dict[str, _Response] = {}
        self.calls: dict[str, Position] = {}
        self.names: dict[str, str] = {}
        self.answered: set[str] = set()
        self.started: dict[str, str] = {}
        self.failures: Failures[Position] = Failures()
        self.tops = self.below = self.group = 0
        self.top: Position = ()
        """The latest span that is not housekeeping."""

    def take(self, data: bytes) -> None:
        """Count one record."""
        record: Node = decode(data, self.facts.strange)
        self.prompted = False
        self.parent = record.parent_uuid or record.logical_parent_uuid
        self._facts(record)
        if isinstance(record, User):
            self._user(record)
        elif isinstance(record, Assistant):
            self._assistant(record)
        elif isinstance(record, Rare):
            self._rare(strict(data))
        else:
            self._housekeeping()
        if record.uuid:
            self.trail.append(branches.Node(record.uuid, self.parent, record.uuid, self.prompted))

    def failed(self, known: dict[str, _Response] | None = None) -> Failures[Position]:
        """What failed, and where; also sums up the usage of all responses but those that are `known`."""
        total = [0, 0, 0, 0]
        some = False
        for ident, one in self.responses.items():
            error = one.failure
            if error is None and one.word is not None and status_of(one.word) is Status.ERROR:
                error = Error(f"stopped: {one.word}"[:MESSAGE_LIMIT], one.word)
            if error is not None:
                self.failures.add(one.position, error, self.prefix + one.ident, one.name, Operation.CHAT)
            usage = one.usage
            if usage is not None and (known is None or ident not in known):
                some = True
                total[0] += usage.input_tokens
                total[1] += usage.output_tokens
                total[2] += usage.cache_read_input_tokens
                total[3] += usage.cache_creation_input_tokens
        if some:
            given, made, read, written = total
            self.tally.usage = Usage(
                given + read + written, made, cache_read_tokens=read, cache_creation_tokens=written
            )
        if self.last_time is not None:
            self.facts.last = moment(self.last_time)
            if self.facts.last is None:
                raise Irregular
        return self.failures

    # ---- records

    def _facts(self, record: Node) -> None:
        facts, uuid = self.facts, record.uuid
        if (record.is_sidechain is True and not self.agent) or record.forked_from is not NULL:
            raise Irregular
        if record.timestamp is not None:
            self.last_time = record.timestamp
            if facts.first is None:
                facts.first = moment(record.timestamp)
                if facts.first is None:
                    raise Irregular
        facts.version = record.version or facts.version
        if record.session_id and "sessionId" not in facts.named:
            facts.named["sessionId"] = record.session_id
        if record.cwd and "cwd" not in facts.named:
            facts.named["cwd"] = record.cwd
        if record.git_branch and "gitBranch" not in facts.named:
            facts.named["gitBranch"] = record.git_branch
        if uuid is None:
            return
        if not uuid or self._is_taken(uuid):
            raise Irregular
        if facts.uuid is None:
            facts.uuid, when = uuid, moment(record.timestamp)
            if when is not None and facts.first is not None and when < facts.first - EARLIER:
                raise Irregular

    def _user(self, record: User) -> None:
        content = record.message.content
        answers = 0
        if isinstance(content, list):
            for block in content:
                if block.type.endswith("tool_result"):
                    answers += 1
                    self._answer(block, record.tool_use_result)
            rest = len(content) - answers
        else:
            rest = 1
        if rest or not answers:
            self._message(record, content, answers)

    def _message(self, record: User, content: str | list[Block], answers: int) -> None:
        plain: Any = content
        if isinstance(content, list):
            plain = [{"text": block.text} for block in content if block.text is not None]
        said = spoken(plain)
        flags: Record = {"isMeta": record.is_meta, "isCompactSummary": record.is_compact_summary}
        role = role_of(flags, said, plain)
        self.prompted = role == "user" and not answers
        if self.prompted and not self.parent and not self.agent:
            self.parent = branches.ROOT
        if self.prompted and record.uuid and self.parent and self.trail.leave(self.parent):
            raise Irregular
        self._top()
        if answers:
            return
        if role == "user":
            self.facts.failure = None
            if said and self.facts.prompt is None:
                self.facts.prompt = said[:PREVIEW]
        elif role == "command" and self.facts.command is None:
            self.facts.command = command_in(said)[:PREVIEW]

    def _assistant(self, record: Assistant) -> None:
        message = record.message
        ident = message.id or record.uuid
        if not ident:
            raise Irregular
        one = self.responses.get(ident)
        failed = record.is_api_error_message is True
        if one is None:
            if self._is_taken(ident):
                raise Irregular
            model = message.model or None
            name = ("API" if failed else (model or "").strip("<>")) or "assistant"
            one = self.responses[ident] = _Response(ident, name, self._top())
            self.tally.llm_calls += 1
            self.tally.steps += not self.agent
            if model is not None and model != SYNTHETIC:
                keep(self.tally.models, model)
        elif one.failure is not None:
            raise Irregular
        if message.model and message.model != SYNTHETIC and self.facts.model is None:
            self.facts.model = message.model
        self.top, self.group = one.position, 0
        one.usage = message.usage or one.usage
        one.word = message.stop_reason or one.word
        self._failure(record, one, message, failed=failed)
        if isinstance(message.content, list):
            for block in message.content:
                if block.type.endswith("tool_use"):
                    self._call(block)
                elif block.type.endswith("tool_result"):
                    self._answer(block, NULL)

    def _failure(self, record: Assistant, one: _Response, message: Said, *, failed: bool) -> None:
        one.failure = self.facts.failure = None
        if failed:
            content = message.content
            said = content if isinstance(content, str) else "\n".join(b.text for b in content if b.text is not None)
            kind = text(strict(bytes(record.error)))
            one.failure = Error(said[:MESSAGE_LIMIT] or kind or "API error", kind)
            told = spoken(said)[:MESSAGE_LIMIT] or kind or "API error"
            self.facts.failure = FirstError(told, kind, one.ident, "API", Operation.CHAT)

    def _call(self, block: Block) -> None:
        if not block.id or self._is_taken(block.id):
            raise Irregular
        self.calls[block.id] = self._child()
        name = self.names[block.id] = block.name or "tool"
        keep(self.tally.tools, name)
        self.tally.tool_calls += 1

    def _answer(self, block: Block, result: msgspec.Raw) -> None:
        ident = block.tool_use_id
        if not ident or ident not in self.calls or ident in self.answered:
            raise Irregular
        self.answered.add(ident)
        self.group = 0
        told = strict(bytes(result)) if block.is_error is None and memoryview(result)[0] == _QUOTE else None
        if block.is_error is True or told is not None:
            answer = {"is_error": block.is_error, "content": strict(bytes(block.content))}
            _, _, _, error = outcome(answer, {"toolUseResult": told})
            if error is not None:
                self.failures.add(
                    self.calls[ident], error, self.prefix + ident, self.names[ident], Operation.EXECUTE_TOOL
                )
        if memoryview(result)[0] == _BRACE:
            self._started(bytes(result), ident)

    def _started(self, result: bytes, ident: str) -> None:
        if b'Id"' not in result or not (b'"agentId"' in result or b'"runId"' in result):
            return
        found = mapping(strict(result))
        for name in ("agentId", "runId"):
            if (started := text(found.get(name))) is not None:
                self.started[started] = ident

    def _rare(self, record: Record) -> None:
        at, ident = At(), self.prefix + (text(record.get("uuid")) or "")
        attached = mapping(record.get("attachment"))
        make = SYSTEM.get(text(record.get("subtype")) or "") if kind_of(record) == "system" else None
        if make is not None:
            self._told(make(record, ident, at), self._top())
        elif kind_of(record) == "attachment" and type_of(attached).startswith("hook_"):
            call = self.calls.get(text(attached.get("toolUseID")) or "")
            place = self._child() if call is None else (*call, self._below())
            self._told(hook_span(record, ident, at), place)
        else:
            self._housekeeping()

    def _housekeeping(self) -> None:
        if self.group == 0 or self.group >= GROUP:
            self._child()
            self.group = 0
        self.group += 1

    def _is_taken(self, ident: str) -> bool:
        """Whether a span may have this id already, or may get it."""
        taken = ident in self.trail or ident in self.responses or ident in self.calls
        return taken or ident.startswith(_OURS) or "/" in ident

    # ---- places

    def _top(self) -> Position:
        """A span of the conversation itself."""
        self.tops += 1
        self.tally.spans += 1
        self.group = 0
        self.top = (self.tops,)
        return self.top

    def _child(self) -> Position:
        """A span below the latest; at the top where there is none."""
        self.tally.spans += 1
        self.group = 0
        return (*self.top, self._number()) if self.top else (self._number(),)

    def _below(self) -> int:
        """A span below a call."""
        self.tally.spans += 1
        self.group = 0
        return self._number()

    def _number(self) -> int:
        self.below += 1
        return self.below - (1 << 30) if not self.top else self.below

    def _told(self, span: Span, place: Position) -> None:
        if span.status is Status.ERROR and span.error is not None:
            self.failures.add(place, span.error, span.id, span.name, span.operation)
