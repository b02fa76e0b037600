"""Records of Gemini CLI sessions: their fields, and where a span finds its records again.

Facts: files of Gemini CLI 0.61.0 and of 0.40, and documents of versions before JSON lines. All lines have one shape
here, because its fields are the only kind that a line has: metadata (``sessionId``), a message (``id`` and ``type``),
``$set`` or ``$rewindTo``.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct, field

from tracetui.formats.agent_log import CANCELLED, DERIVED, ERROR, EXIT, EXPLICIT, OK, RUNNING, UNKNOWN, Outcome
from tracetui.formats.scalars import mapping, sequence, text
from tracetui.formats.schema import NULL, Field, Loose, Natural, Schema, plain
from tracetui.model import Error, Usage, excerpt
from tracetui.model.span import status_of

_UNDER_WAY: Final = frozenset({"validating", "scheduled", "executing", "awaiting_approval"})
_EXIT_CODE: Final = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_TERMINATION: Final = re.compile(r"^Termination Reason: (\w{1,60})$", re.MULTILINE)
_SHELL: Final = "run_shell_command"


class Tokens(Struct, gc=False):
    """Usage of a response: cached input is part of `input`; thoughts are no part of `output`."""

    other_fields: ClassVar[str | None] = ""
    input: Natural | None = None
    output: Natural | None = None
    cached: Natural | None = None
    thoughts: Natural | None = None
    tool: Natural | None = None
    """Input that the tools of the service added."""
    total: Natural | None = None

    def usage(self) -> Usage | None:
        """Usage with thoughts in the output and input of tools in the input; None without any count.

        Where the total leaves no room for the thoughts, the service counted them as output already.
        """
        prompt, completion, thoughts, tool, total = self.input, self.output, self.thoughts, self.tool, self.total
        if prompt is completion is self.cached is thoughts is tool is total is None:
            return None
        if thoughts and total != (prompt or 0) + (completion or 0) + (tool or 0):
            completion = (completion or 0) + thoughts
        if tool:
            prompt = (prompt or 0) + tool
        return Usage(prompt, completion, total, self.cached, None, thoughts)


class ToolCall(Struct, gc=False, rename="camel"):
    """A call with its result, which the program adds to its response."""

    other_fields: ClassVar = "description displayName renderOutputAsMarkdown resultDisplay parentCallId approvalMode"
    id: str | None = None
    name: str | None = None
    args: Raw = NULL
    result: Raw = NULL
    status: str | None = None
    timestamp: str | None = None
    agent_id: str | None = None
    """Session of the sub-agent that the call began."""

    def outcome(self) -> Outcome:
        """The outcome of the call by its own fields."""
        if self.status is not None:
            return outcome_of(self.status, self.result, self.name, is_agent=bool(self.agent_id))
        return (UNKNOWN, None, None) if self.result == NULL else (OK, DERIVED, None)


def outcome_of(status: str, result: Raw, name: str | None, *, is_agent: bool = False) -> Outcome:
    """How a call of tool `name` ended. ``success`` means that the tool ran: a shell command may have failed."""
    if status in _UNDER_WAY:
        return RUNNING, EXPLICIT, None
    if status == "success" and name != _SHELL and not is_agent:
        return OK, EXPLICIT, None
    answer = answer_in(result) if status != "cancelled" else ""
    if status != "success":
        failure = ERROR if status == "error" else CANCELLED if status == "cancelled" else status_of(status)
        return failure, EXPLICIT, Error(excerpt(answer) or status) if failure is ERROR else None
    code = int(next(iter(_EXIT_CODE.findall(answer)[-1:]), "0")) if name == _SHELL else 0
    if code:
        return ERROR, EXIT, Error(excerpt(answer), f"exit {code}")
    reason = _TERMINATION.search(answer) if is_agent else None
    if reason is not None and reason[1] != "GOAL":
        return ERROR, DERIVED, Error(excerpt(answer), reason[1])
    return OK, EXPLICIT, None


class Change(Struct, gc=False, rename="camel"):
    """Metadata that replaces earlier metadata; `messages` replaces the list of messages."""

    other_fields: ClassVar = "directories kind memoryScratchpad projectHash startTime summary"
    session_id: str | None = None
    last_updated: str | None = None
    messages: Raw | None = None


class Record(Struct, gc=False, rename="camel"):
    """A line, or a message in a list of messages, or a document without its messages."""

    other_fields: ClassVar = "displayContent memoryScratchpad projectHash summary thoughts"
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
    decoded = _content.value(content)
    items = decoded if isinstance(decoded, list) else [] if decoded is None else [decoded]
    return [Part(item) if isinstance(item, str) else item for item in items]


def text_of(parts: list[Part]) -> str:
    """The text of a message, without thoughts."""
    return "\n".join([part.text for part in parts if part.text and not part.thought])


def answer_in(result: Raw) -> str:
    """The text that the model is given as the answer of a call."""
    for part in sequence(plain(result)):
        response = mapping(mapping(mapping(part).get("functionResponse")).get("response"))
        for name in ("error", "output"):
            if (answer := text(response.get(name))) is not None:
                return answer
    return ""


def outcome_of_response(answer: Named, name: str, status: str | None) -> Outcome:
    """How a call of tool `name` ended by the response to it; `status` is that of the record, if it has one."""
    result = Raw(b'[{"functionResponse":{"response":' + bytes(answer.response) + b"}}]")
    if status is not None:
        return outcome_of(status, result, name)
    outcome, source, error = outcome_of("success", result, name)
    if outcome is OK and "error" in mapping(plain(answer.response)):
        outcome, error = ERROR, Error(excerpt(answer_in(result)) or "failed")
    return outcome, DERIVED if source is EXPLICIT else source, error


class RecordRef(Struct, frozen=True, gc=False):
    """Where a record is: on a line, or an item of the list that the line sets. `raw` is a message of a document."""

    offset: int
    length: int
    item: int = -1
    raw: Raw | None = None


class SpanRef(Struct, frozen=True, gc=False):
    """Where the body of a span is: its records, the latest version last, and the call within them."""

    sources: tuple[RecordRef, ...]
    call: int = -1
    answers: tuple[RecordRef, ...] = ()
    """Messages that repeat the answer of the call."""

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return sum(source.length for source in self.sources)


RECORD: Final = Schema[Record](Record)
