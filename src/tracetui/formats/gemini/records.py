"""Records of Gemini CLI sessions: their fields, and where a span finds its records again.

Facts: files of Gemini CLI 0.61.0 and of 0.40, and documents of versions before JSON lines. All lines have one shape
here, because the kind of a line is which fields it has: metadata (``sessionId``), a message (``id`` and ``type``),
``$set`` or ``$rewindTo``.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct, field

from tracetui.formats.agent_log import CANCELLED, DERIVED, ERROR, EXIT, EXPLICIT, OK, RUNNING, UNKNOWN, Outcome
from tracetui.formats.scalars import mapping, sequence, text
from tracetui.formats.schema import NULL, Field, Loose, Natural, Schema, plain
from tracetui.model import MESSAGE_LIMIT, Error, Usage
from tracetui.model.status import status_of

_UNDER_WAY: Final = frozenset({"validating", "scheduled", "executing", "awaiting_approval"})
_EXIT_CODE: Final = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_TERMINATION: Final = re.compile(r"^Termination Reason: (\w{1,60})$", re.MULTILINE)
_SHELL: Final = "run_shell_command"


class Tokens(Struct, gc=False):
    """Usage of a response: cached input is part of `input`; thoughts are no part of `output`."""

    known: ClassVar = ""
    input: Natural | None = None
    output: Natural | None = None
    cached: Natural | None = None
    thoughts: Natural | None = None
    tool: Natural | None = None
    """Input that the tools of the service added."""
    total: Natural | None = None

    def usage(self) -> Usage | None:
        """Thoughts are part of the output here, and input of tools part of the input."""
        return usage_of(self.input, self.output, self.cached, self.thoughts, self.tool, self.total)


def usage_of(
    given: int | None, made: int | None, cached: int | None, thoughts: int | None, tool: int | None, total: int | None
) -> Usage | None:
    """Counts as the Gemini API gives them; None where it gives none.

    Where the total leaves no room for the thoughts, the service counted them as output already.
    """
    if given is made is cached is thoughts is tool is total is None:
        return None
    inside = total is not None and total == (given or 0) + (made or 0) + (tool or 0)
    if thoughts and not inside:
        made = (made or 0) + thoughts
    if tool:
        given = (given or 0) + tool
    return Usage(given, made, total, cached, None, thoughts)


class ToolCall(Struct, gc=False, rename="camel"):
    """A call with its result, which the program adds to its response."""

    known: ClassVar = "description displayName renderOutputAsMarkdown resultDisplay parentCallId approvalMode"
    id: str | None = None
    name: str | None = None
    args: Raw = NULL
    result: Raw = NULL
    status: str | None = None
    timestamp: str | None = None
    agent_id: str | None = None
    """Session of the sub-agent that the call began."""

    def outcome(self) -> Outcome:
        """How the call ended. ``success`` says that the tool ran: a shell command may have failed."""
        word = self.status
        if word is None:
            return (UNKNOWN, None, None) if self.result == NULL else (OK, DERIVED, None)
        if word in _UNDER_WAY:
            return RUNNING, EXPLICIT, None
        said = answer_in(self.result) if word != "cancelled" else ""
        if word != "success":
            status = ERROR if word == "error" else CANCELLED if word == "cancelled" else status_of(word)
            return status, EXPLICIT, Error(said[:MESSAGE_LIMIT] or word) if status is ERROR else None
        code = next(iter(_EXIT_CODE.findall(said)[-1:]), "0") if self.name == _SHELL else "0"
        if int(code):
            return ERROR, EXIT, Error(said[:MESSAGE_LIMIT], f"exit {int(code)}")
        reason = _TERMINATION.search(said) if self.agent_id else None
        if reason is not None and reason[1] != "GOAL":
            return ERROR, DERIVED, Error(said[:MESSAGE_LIMIT], reason[1])
        return OK, EXPLICIT, None


class Change(Struct, gc=False, rename="camel"):
    """Metadata that replaces earlier metadata; `messages` replaces the list of messages."""

    known: ClassVar = "directories kind memoryScratchpad projectHash startTime summary"
    session_id: str | None = None
    last_updated: str | None = None
    messages: Raw | None = None


class Record(Struct, gc=False, rename="camel"):
    """A line, or a message in a list of messages, or a document without its messages."""

    known: ClassVar = "displayContent memoryScratchpad projectHash summary thoughts"
    id: str | None = None
    type: str | None = None
    timestamp: str | None = None
    content: Raw = NULL
    tokens: Tokens | Loose = None
    model: str | None = None
    tool_calls: list[ToolCall] | None = None
    session_id: str | None = None
    start_time: str | None = None
    last_updated: str | None = None
    kind: str | None = None
    directories: list[str] | None = None
    change: Change | None = field(default=None, name="$set")
    rewind_to: str | None = field(default=None, name="$rewindTo")

    @property
    def usage(self) -> Usage | None:
        return self.tokens.usage() if isinstance(self.tokens, Tokens) else None


class Named(Struct, gc=False):
    """A call or an answer among the parts of a message."""

    id: str | None = None
    name: str | None = None
    args: Raw = NULL
    response: Raw = NULL


class Part(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    function_call: Named | None = None
    function_response: Named | None = None


_content: Final[Field[Any]] = Field(str | list[Part | str] | Part | None)


def parts_of(content: Raw) -> list[Part]:
    """The parts of a message: a text is one part."""
    found = _content.value(content)
    items = found if isinstance(found, list) else [] if found is None else [found]
    return [Part(one) if isinstance(one, str) else one for one in items]


def text_of(parts: list[Part]) -> str:
    """What is said in a message, without thoughts."""
    return "\n".join([one.text for one in parts if one.text and not one.thought])


def answer_in(result: Raw) -> str:
    """The text that the model is given as the answer of a call."""
    for part in sequence(plain(result)):
        response = mapping(mapping(mapping(part).get("functionResponse")).get("response"))
        for name in ("error", "output"):
            if (said := text(response.get(name))) is not None:
                return said
    return ""


def outcome_of(answer: Named, name: str, word: str | None) -> Outcome:
    """How a call of tool `name` ended that was answered so; `word` is its status, None where there is none."""
    response = b'[{"functionResponse":{"response":' + bytes(answer.response) + b"}}]"
    status, source, error = ToolCall(name=name, result=Raw(response), status=word or "success").outcome()
    failed = "error" in mapping(plain(answer.response))
    if word is None and failed and status is OK:
        status, error = ERROR, Error(answer_in(Raw(response))[:MESSAGE_LIMIT] or "failed")
    return status, DERIVED if word is None and source is EXPLICIT else source, error


class Source(Struct, frozen=True, gc=False):
    """Where a record is: on a line, or an item of the list that the line sets. `raw` is a message of a document."""

    offset: int
    length: int
    item: int = -1
    raw: Raw | None = None


class Spot(Struct, frozen=True, gc=False):
    """Where the body of a span is: its records, the latest version last, and the call within them."""

    sources: tuple[Source, ...]
    call: int = -1
    answers: tuple[Source, ...] = ()
    """Messages that repeat the answer of the call."""

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return sum(one.length for one in self.sources)


RECORD: Final = Schema[Record](Record)
