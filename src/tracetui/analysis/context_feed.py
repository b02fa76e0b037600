"""Feeds the spans of a run to its context ledger: whose conversation each belongs to, and which texts it brings.

Two kinds of traces: in most, a text is recorded once, in the order of the conversation; in others (OpenTelemetry,
Inspect) every call holds its whole input, of which the messages that the previous call didn't have are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tracetui.analysis.context import (
    Chain,
    Ledger,
    ModelCall,
    is_image,
    rates_of,
)
from tracetui.errors import FormatError
from tracetui.formats import guard, registry
from tracetui.formats.base import is_contextual
from tracetui.formats.branches import ABANDONED_BRANCH
from tracetui.model import Blob, Body, Message, Operation, Reasoning, Run, Span, Text, ToolCall, ToolResult
from tracetui.model.build import Ownership, ownership
from tracetui.model.context import (
    ATTACHMENT,
    IMAGE,
    NO_FACTS,
    PROMPT,
    REPLY,
    REPORT,
    RESULT,
    START,
    SUMMARY,
    THINKING,
    TOOL_CALL,
    ContextFacts,
    ContextItem,
)
from tracetui.model.masked import unmasked

_TOOLS: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL})
_CONVERSATION: Final = _TOOLS | {Operation.CHAT, Operation.MESSAGE}
_COMPACTION: Final = "compaction"
"""The name of the row of a compaction in every format."""
_READERS: Final = frozenset({"read", "readfile", "read_file", "view", "viewfile", "view_file", "notebookread", "cat"})
"""Tools, in lower case, whose result is the text of a file."""
_PATHS: Final = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file")
_CONVERSATIONS: Final = 8
"""Conversations of one agent that a call with its whole input may continue."""
_SYSTEM: Final = frozenset({"system", "developer"})


def ledger_of(run: Run) -> Ledger:
    """The ledger of a run. Reads the body of every message and call."""
    feed = Feed(run)
    for _ in feed:
        pass
    return feed.ledger


def file_read(tool: str, arguments: Any) -> str | None:
    """The path of the file that a tool call reads; None if the tool isn't known to read one."""
    if tool.lower() not in _READERS or not isinstance(arguments, Mapping):
        return None
    return next((path for name in _PATHS if isinstance(path := arguments.get(name), str) and path), None)


class _Frame(msgspec.Struct):
    """A part of the tree: a sub-agent, or an abandoned branch with the context before it."""

    end: int
    agent: str | None
    chain: Chain | None = None
    before: Any = None


class _Whole(msgspec.Struct):
    """A conversation of which each call holds its whole input."""

    chain: Chain
    messages: tuple[Message, ...] = ()
    output: int | None = None
    serial: int = 0
    """Messages that entered; makes the keys of their items unique."""
    keys: list[list[str]] = []
    """The keys of the items of each message."""


class Feed:
    """Iterates over the spans of a run, a step each; `ledger` has the calls so far."""

    def __init__(self, run: Run) -> None:
        """Reads exact bodies, whether or not those of `run` are masked: callers mask the names they show."""
        self.ledger = Ledger()
        self._run = unmasked(run)
        self._format = registry.load(run.summary.ref.format)
        self._is_contextual = is_contextual(self._format)
        self._wholes: dict[str | None, list[_Whole]] = {}
        self._tools: dict[str, tuple[str, Any]] = {}
        """Name and arguments of tool calls by id."""
        self._idents: set[str] = set()

    def __iter__(self) -> Iterator[None]:
        run = self._run
        owners = ownership(run)
        roots = [i for i, depth in enumerate(run.depths) if depth == 0]
        frames: list[_Frame] = []
        for i, span in enumerate(run.spans):
            while frames and frames[-1].end <= i:
                frame = frames.pop()
                if frame.chain is not None:
                    frame.chain.restore(frame.before)
            agent = frames[-1].agent if frames else None
            end = i + run.sizes[i]
            if span.operation is Operation.INVOKE_AGENT and roots != [i]:
                frames.append(_Frame(end, span.id))
            elif span.name == ABANDONED_BRANCH and end > i + 1:
                chain = self.ledger.chain(agent)
                frames.append(_Frame(end, agent, chain, chain.snapshot()))
            elif span.operation in _CONVERSATION or self._is_contextual or span.name == _COMPACTION:
                body = run.load(span)
                facts = self._facts(span, body)
                if span.operation is Operation.CHAT:
                    self._call(agent, span, body, facts, counts=owners[i] is Ownership.OWN)
                else:
                    items = self._items(i, span, body) if facts.items is None else facts.items
                    chain = self.ledger.chain(agent)
                    if span.name == _COMPACTION and facts is NO_FACTS:
                        facts = msgspec.structs.replace(facts, compacts=True)
                    chain.take(facts, self._placed(chain, items), _end(span), span.id)
            yield

    def _facts(self, span: Span, body: Body) -> ContextFacts:
        if not self._is_contextual:
            return NO_FACTS
        try:
            return guard.context(self._format, span, body) or NO_FACTS
        except FormatError:  # its messages still count
            return NO_FACTS

    @staticmethod
    def _placed(chain: Chain, items: Iterable[ContextItem]) -> Iterator[ContextItem]:
        """System messages before the first call are part of the start; later ones are attachments."""
        for item in items:
            is_late = item.content == START and chain.last is not None
            yield msgspec.structs.replace(item, content=ATTACHMENT) if is_late else item

    # ---- calls

    def _call(self, agent: str | None, span: Span, body: Body, facts: ContextFacts, *, counts: bool) -> None:
        usage = span.usage
        answer = list(_answer(body)) if facts.items is None else [*facts.items]
        for message in body.output_messages:
            for part in message.parts:
                if isinstance(part, ToolCall) and part.id is not None:
                    self._tools[part.id] = part.name, part.arguments
        has_whole = bool(body.input_messages)
        whole = self._continue(agent, body.input_messages) if has_whole else None
        chain = self.ledger.chain(agent) if whole is None else whole.chain
        if usage is None or not usage.input_tokens or not counts:
            chain.take(facts, () if has_whole else answer, None, span.id)
            return
        ident = next((message.id for message in body.output_messages if message.id), None) or span.id
        if ident in self._idents:  # one message, several calls
            ident = span.id
        self._idents.add(ident)
        ended = None if span.started_at is None else span.started_at + (span.duration_ms or 0.0) / 1000
        self.ledger.add(
            chain,
            ModelCall(
                number=len(self.ledger.calls) + 1,
                id=ident,
                span=span.id,
                size=usage.input_tokens,
                model=span.model,
                read=usage.cache_read_tokens,
                written=usage.cache_creation_tokens,
                written_1h=usage.cache_write_1h_tokens,
                output=usage.output_tokens,
                started_at=span.started_at,
                ended_at=ended,
                rates=rates_of(span.model, usage, span.started_at),
                facts=facts,
            ),
        )
        output = None if facts.partial_output else usage.output_tokens
        if whole is not None:
            whole.output = output
        elif facts.compacts:
            chain.take(ContextFacts(compacts=True), (), None)
            chain.answer([msgspec.structs.replace(item, content=SUMMARY) for item in answer], output, span.id)
        else:
            chain.answer(answer, output, span.id)

    def _continue(self, agent: str | None, messages: tuple[Message, ...]) -> _Whole:
        """The conversation that a call with these messages continues; takes those that are new in it."""
        wholes = self._wholes.setdefault(agent, [])
        shared, whole = max(
            ((_common(whole.messages, messages), whole) for whole in wholes),
            key=lambda pair: pair[0],
            default=(0, None),
        )
        leading = next((i for i, message in enumerate(messages) if message.role not in _SYSTEM), len(messages))
        if whole is None or (shared <= leading and len(messages) > leading):
            whole = _Whole(self.ledger.chain(agent, len(wholes)), keys=[])
            wholes.append(whole)
            del wholes[:-_CONVERSATIONS]
            shared = 0
        chain = whole.chain
        if gone := [key for keys in whole.keys[shared:] for key in keys]:
            chain.cleared.update(gone)
            chain.went_back = True
        del whole.keys[shared:]
        chain.pending.clear()
        for message in messages[shared:]:
            whole.serial += 1
            items = [
                msgspec.structs.replace(item, key=f"{whole.serial}.{number}")
                for number, item in enumerate(self._placed(chain, self._of_message(message)))
            ]
            whole.keys.append([item.key for item in items if item.key is not None])
            if message.role == "assistant":
                chain.answer(items, whole.output)
                whole.output = None
            else:
                chain.take(NO_FACTS, items, None)
        whole.messages = messages
        return whole

    # ---- texts

    def _items(self, position: int, span: Span, body: Body) -> list[ContextItem]:
        """What a span other than a model call brings in."""
        if span.operation in _TOOLS:
            if body.output is None:
                return []
            children = (self._run.spans[child] for child in self._run.children(position))
            is_report = any(child.operation is Operation.INVOKE_AGENT for child in children)
            content = REPORT if is_report else RESULT + span.name
            return [ContextItem(content, body.output, file_read(span.name, body.input), span.id)]
        if span.name == _COMPACTION:
            text = body.output if body.output is not None else body.input
            return [] if text is None else [ContextItem(SUMMARY, text)]
        messages = (*body.input_messages, *body.output_messages)
        if not messages and span.operation is Operation.MESSAGE and body.input is not None:
            return [ContextItem(PROMPT, body.input)]
        return [item for message in messages for item in self._of_message(message)]

    def _of_message(self, message: Message) -> Iterator[ContextItem]:
        role = message.role
        text = REPLY if role == "assistant" else START if role in _SYSTEM else PROMPT
        for part in message.parts:
            if isinstance(part, Text):
                yield ContextItem(text, part.text)
            elif isinstance(part, Reasoning):
                yield ContextItem(THINKING, part.text)
            elif isinstance(part, ToolCall):
                if part.id is not None:
                    self._tools[part.id] = part.name, part.arguments
                yield ContextItem(TOOL_CALL, part.arguments)
            elif isinstance(part, ToolResult):
                name, arguments = self._tools.get(part.id or "", (part.name or "tool", None))
                yield ContextItem(RESULT + name, part.content, file_read(name, arguments))
            else:
                yield _of_blob(part)


def _of_blob(blob: Blob) -> ContextItem:
    if "image" in blob.kind or is_image(blob.data):
        return ContextItem(IMAGE)
    return ContextItem(ATTACHMENT, blob.data)


def _answer(body: Body) -> Iterator[ContextItem]:
    """The parts of an answer."""
    for message in body.output_messages:
        for part in message.parts:
            if isinstance(part, Reasoning):
                yield ContextItem(THINKING, part.text)
            elif isinstance(part, ToolCall):
                yield ContextItem(TOOL_CALL, part.arguments)
            elif isinstance(part, Text):
                yield ContextItem(REPLY, part.text)
            elif isinstance(part, Blob):
                yield _of_blob(part)


def _common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages two inputs begin with in common."""
    count = 0
    for a, b in zip(before, now, strict=False):
        if a is not b and a != b:
            break
        count += 1
    return count


def _end(span: Span) -> float | None:
    """When a span ended (UTC seconds), else when it began."""
    if span.started_at is None or span.duration_ms is None:
        return span.started_at
    return span.started_at + span.duration_ms / 1000
