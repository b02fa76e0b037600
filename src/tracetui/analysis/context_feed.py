"""Feeds the spans of a run to its context ledger: whose conversation each belongs to, and which texts it brings.

Two kinds of traces: in most, a text is recorded once, in the order of the conversation; in others (OpenTelemetry,
Inspect) every call holds its whole input, of which the messages that the previous call didn't have are new.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.analysis.context import Chain, Ledger, ModelCall
from tracetui.analysis.context_costs import rates_of
from tracetui.analysis.context_estimate import is_image
from tracetui.errors import FormatError, TracetuiError
from tracetui.formats import guard, registry
from tracetui.formats.base import Contextual, is_contextual
from tracetui.formats.branches import ABANDONED_BRANCH
from tracetui.model import Blob, Body, Message, Operation, Reasoning, Run, Span, Text, ToolCall, ToolResult
from tracetui.model.build import is_taken_over
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
_CONTAINERS: Final = frozenset({Operation.TURN, Operation.INVOKE_AGENT, Operation.INVOKE_WORKFLOW})
"""They change as long as anything in them does, and bring nothing of their own."""
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


def has_one_root(run: Run) -> bool:
    """Whether all spans are below the first, which is then the run itself, not a sub-agent."""
    return len(run.spans) > 0 and run.sizes[0] == len(run.spans)


def contextual_format(run: Run) -> Contextual | None:
    """The format of a run if it says more about the context than messages do; None also for one that is gone."""
    try:
        format_ = registry.load(run.summary.ref.format)
    except TracetuiError:
        return None
    return format_ if is_contextual(format_) else None


def is_fed(span: Span, *, contextual: bool) -> bool:
    """Whether a span may bring something into the context; `contextual` formats say so of most."""
    if span.operation in _CONTAINERS:
        return span.name == _COMPACTION
    return contextual or span.operation in _CONVERSATION or span.name == _COMPACTION


class GrowingLedger:
    """The ledger of a run and of newer versions of it. Each is read from the first span that changed on, or a little
    before: the state is saved at some positions, denser towards the end.
    """

    def __init__(self) -> None:
        self._run: Run | None = None
        self._saved: list[Feed] = []

    def read(self, run: Run) -> Generator[Feed, None, None]:
        """Read a run, a span a step. May be closed at any step; each step yields the state then."""
        feed = self._resume(run)
        yield feed
        marks = [len(run.spans) - (_FIRST_SAVED << 2 * power) for power in range(_MOST_SAVED - 1, -1, -1)]
        marks = [mark for mark in marks if mark > feed.position]
        for _ in feed:
            if marks and feed.position >= marks[0]:
                marks.pop(0)
                self._saved.append(feed.copy(run))
                if len(self._saved) > 2 * _MOST_SAVED:
                    del self._saved[1:_MOST_SAVED:2]
            yield feed

    def _resume(self, run: Run) -> Feed:
        before, self._run = self._run, run
        start = 0
        if before is not None and before.summary.ref == run.summary.ref and has_one_root(before) == has_one_root(run):
            contextual = contextual_format(run) is not None
            changed = before.spans.differing(run.spans)
            shorter = min(len(before.spans), len(run.spans))
            start = next((i for i in changed if is_fed(run.spans[i], contextual=contextual)), shorter)
        self._saved = [feed for feed in self._saved if feed.position <= start]
        return self._saved[-1].copy(run) if self._saved else Feed(run)


class RunContext(msgspec.Struct, frozen=True, eq=False):
    """The context of a version of a run, as far as it is read."""

    run: Run
    ledger: Ledger
    """A copy, which nothing feeds."""
    done: int
    """Spans read."""

    @property
    def is_complete(self) -> bool:
        """Whether all spans are read."""
        return self.done == len(self.run.spans)


_FIRST_SAVED: Final = 16
"""Spans before the end at which the last state is saved; the others are four times as far from it each."""
_MOST_SAVED: Final = 10


class _Frame(msgspec.Struct):
    """A part of the tree: a sub-agent, spans of another run, or an abandoned branch with the context before it."""

    start: int
    agent: str | None
    inherited: bool = False
    """Whether it comes from another run."""
    chain: Chain | None = None
    before: Any = None


class _Conversation(msgspec.Struct):
    """A conversation of which each call holds its whole input."""

    chain: Chain
    messages: tuple[Message, ...] = ()
    output: int | None = None
    serial: int = 0
    """Messages that entered; makes the keys of their items unique."""
    keys: list[list[str]] = []
    """The keys of the items of each message."""
    number: int = 0
    """Tells apart the chains of one agent."""

    def copy(self, chain: Chain) -> _Conversation:
        """The conversation as it is now, in a copied ledger."""
        return replace(self, chain=chain, keys=[*self.keys])


class Feed:
    """Iterates over the spans of a run, a step each; `ledger` has the calls so far."""

    def __init__(self, run: Run) -> None:
        """Reads exact bodies, whether or not those of `run` are masked: callers mask the names they show."""
        self.ledger = Ledger()
        self.position = 0
        """The next span."""
        self._run = unmasked(run)
        self._format = contextual_format(run)
        self._conversations: dict[str | None, list[_Conversation]] = {}
        self._tools: dict[str, tuple[str, Any]] = {}
        """Name and arguments of tool calls by id; copies share it."""
        self._idents: set[str] = set()
        self._frames: list[_Frame] = []

    def copy(self, run: Run) -> Feed:
        """The feed as it is now, to go on with a version of the run that has the same spans up to `position`."""
        duplicate = copy(self)
        duplicate.ledger, duplicate._run = self.ledger.copy(), unmasked(run)
        duplicate._idents = {*self._idents}
        duplicate._frames = [
            frame if frame.chain is None else replace(frame, chain=duplicate.ledger.chain(frame.chain.agent))
            for frame in self._frames
        ]
        duplicate._conversations = {
            agent: [
                conversation.copy(duplicate.ledger.chain(agent, conversation.number)) for conversation in conversations
            ]
            for agent, conversations in self._conversations.items()
        }
        return duplicate

    def __iter__(self) -> Iterator[None]:
        run, frames = self._run, self._frames
        spans, sizes = run.spans, run.sizes
        gross = run.gross or spans
        ends = [frame.start + sizes[frame.start] for frame in frames]
        has_root = has_one_root(run)
        for i in range(self.position, len(spans)):
            span = spans[i]
            while ends and ends[-1] <= i:
                ends.pop()
                frame = frames.pop()
                if frame.chain is not None:
                    frame.chain.restore(frame.before)
            agent, inherited = (frames[-1].agent, frames[-1].inherited) if frames else (None, False)
            frame_before = len(frames)
            if not inherited and is_taken_over(span):
                inherited = True
                if sizes[i] > 1:
                    frames.append(_Frame(i, agent, inherited))
            if span.operation is Operation.INVOKE_AGENT and not (has_root and not i):
                frames.append(_Frame(i, span.id, inherited))
            elif span.name == ABANDONED_BRANCH and sizes[i] > 1:
                chain = self.ledger.chain(agent)
                frames.append(_Frame(i, agent, inherited, chain, chain.snapshot()))
            elif is_fed(span, contextual=self._format is not None):
                self._take(i, gross[i], agent, inherited=inherited)
            ends += [i + sizes[i]] * (len(frames) - frame_before)
            self.position = i + 1
            yield

    def _take(self, position: int, span: Span, agent: str | None, *, inherited: bool) -> None:
        """Take the texts of a span; model calls of another run don't count."""
        body = self._run.load(span)
        facts = self._facts(span, body)
        if span.operation is Operation.CHAT:
            self._call(agent, span, body, facts, inherited=inherited)
            return
        items = self._items(position, span, body) if facts.items is None else facts.items
        if (file := file_read(span.name, body.input)) is not None:
            items = [replace(item, file=file) if item.content.startswith(RESULT) else item for item in items]
        chain = self.ledger.chain(agent)
        if span.name == _COMPACTION and facts is NO_FACTS:
            facts = replace(facts, compacts=True)
        chain.take(facts, self._placed(chain, items), _end(span), span.id, inherited=inherited)

    def _facts(self, span: Span, body: Body) -> ContextFacts:
        if self._format is None:
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
            yield replace(item, content=ATTACHMENT) if is_late else item

    # ---- calls

    def _call(self, agent: str | None, span: Span, body: Body, facts: ContextFacts, *, inherited: bool) -> None:
        usage = span.usage
        answer = [item for message in body.output_messages for item in self._of_message(message, REPLY)]
        answer = answer if facts.items is None else [*facts.items]
        chain = self.ledger.chain(agent)
        if usage is None or not usage.input_tokens:
            # a further part of an answer may repeat its thinking
            parts = [item for item in answer if not body.input_messages and item not in chain.answered]
            chain.take(facts, (), None)
            chain.answer_more(parts, span.id, inherited=inherited)
            return
        conversation = self._continue(agent, body.input_messages) if body.input_messages else None
        if conversation is not None:
            chain = conversation.chain
            chain.pending_at = span.started_at
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
                rates=rates_of(span.model, usage, span.started_at, span.tier),
                facts=facts,
                inherited=inherited,
            ),
        )
        output = None if facts.partial_output else usage.output_tokens
        if conversation is not None:
            conversation.output = output
        elif facts.compacts:
            chain.take(ContextFacts(compacts=True), (), None)
            chain.answer([replace(item, content=SUMMARY) for item in answer], output, span.id)
        else:
            chain.answer(answer, output, span.id)

    def _continue(self, agent: str | None, messages: tuple[Message, ...]) -> _Conversation:
        """The conversation that a call with these messages continues; takes those that are new in it."""
        conversations = self._conversations.setdefault(agent, [])
        shared, conversation = max(
            ((_common(conversation.messages, messages), conversation) for conversation in conversations),
            key=lambda pair: pair[0],
            default=(0, None),
        )
        leading = next((i for i, message in enumerate(messages) if message.role not in _SYSTEM), len(messages))
        if conversation is None or (shared <= leading and len(messages) > leading):
            number = conversations[-1].number + 1 if conversations else 0
            conversation = _Conversation(self.ledger.chain(agent, number), keys=[], number=number)
            conversations.append(conversation)
            del conversations[:-_CONVERSATIONS]
            shared = 0
        chain = conversation.chain
        if removed := [key for keys in conversation.keys[shared:] for key in keys]:
            chain.cleared.update(removed)
            chain.went_back = True
        del conversation.keys[shared:]
        chain.pending.clear()
        for message in messages[shared:]:
            conversation.serial += 1
            items = [
                replace(item, key=f"{conversation.serial}.{number}")
                for number, item in enumerate(self._placed(chain, self._of_message(message)))
            ]
            conversation.keys.append([item.key for item in items if item.key is not None])
            if message.role == "assistant":
                chain.answer(items, conversation.output)
                conversation.output = None
            else:
                chain.take(NO_FACTS, items, None)
        conversation.messages = messages
        return conversation

    # ---- texts

    def _items(self, position: int, span: Span, body: Body) -> list[ContextItem]:
        """What a span other than a model call brings in."""
        if span.operation in _TOOLS:
            if body.output is None:
                return []
            children = (self._run.spans[child] for child in self._run.children(position))
            is_report = any(child.operation is Operation.INVOKE_AGENT for child in children)
            content = REPORT if is_report else RESULT + span.name
            return [ContextItem(content, body.output, key=span.id)]
        if span.name == _COMPACTION:
            text = body.output if body.output is not None else body.input
            return [] if text is None else [ContextItem(SUMMARY, text)]
        messages = (*body.input_messages, *body.output_messages)
        if not messages and span.operation is Operation.MESSAGE and body.input is not None:
            return [ContextItem(PROMPT, body.input)]
        return [item for message in messages for item in self._of_message(message)]

    def _of_message(self, message: Message, text: str = "") -> Iterator[ContextItem]:
        """Its parts; `text` is the content of texts, by the role unless given."""
        role = message.role
        text = text or (REPLY if role == "assistant" else START if role in _SYSTEM else PROMPT)
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
