"""The records of a Penelope result, today's and the documented dialect.

Facts: rhesis-ai/rhesis, ``penelope`` (`TestResult` and `TestState.to_result` in ``context.py``), and its document
"Execution Trace". Where only the document or early versions have a field, it is read as well.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.bodies import rendered
from tracetui.formats.decode import decode, decode_value
from tracetui.formats.scalars import mapping, string
from tracetui.formats.schema import Finite, Integer, Loose, Schema

Number = Integer | Finite


# ---- turns


class Function(msgspec.Struct, gc=False):
    """``function`` of a call, as OpenAI has it; the arguments are an object as JSON text."""

    other_fields: ClassVar[str] = ""
    name: str | None = None
    arguments: Any = None


class Asked(msgspec.Struct, gc=False):
    """One of ``tool_calls`` in Penelope's own message."""

    other_fields: ClassVar[str] = "type"
    id: Any = None
    function: Function | None = None


class Assistant(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "content role"
    tool_calls: list[Asked | None] | None = None


class Tool(msgspec.Struct, gc=False):
    """``tool_message``; its content is ``{"success", "output", "error", "metadata"}`` as JSON text, or plain text."""

    other_fields: ClassVar[str] = "role"
    tool_call_id: Any = None
    name: str | None = None
    content: Any = None


class Exchange(msgspec.Struct, gc=False):
    """A call of a tool and its answer."""

    other_fields: ClassVar[str] = "reasoning"
    assistant_message: Assistant | None = None
    tool_message: Tool | Loose = None
    tool_name: str | None = None
    timestamp: str | None = None


class Detail(msgspec.Struct, gc=False):
    """A turn in ``history``. ``target_interaction`` repeats one of the executions.

    A flat turn (in the document, and in Penelope before executions existed) has one exchange in its own fields.
    """

    other_fields: ClassVar[str] = "evaluation reasoning retrieval_context"
    turn_number: Integer | None = None
    timestamp: str | None = None
    executions: list[Exchange | None] | None = None
    target_interaction: Exchange | None = None
    assistant_message: Assistant | None = None
    tool_message: Tool | Loose = None


class Line(msgspec.Struct, gc=False):
    """A turn in ``conversation_summary``; ``tool_calls`` are those of the target."""

    other_fields: ClassVar[str] = "context conversation_id metadata penelope_reasoning sent_files session_id"
    turn: Integer | None = None
    timestamp: str | None = None
    penelope_message: str | None = None
    target_response: str | None = None
    success: bool | None = None
    tool_calls: list[Any] | None = None


# ---- the result


class Spent(msgspec.Struct, gc=False):
    """Tokens, by the names of two generations of providers. Today's ``token_usage`` is a note that there are none."""

    other_fields: ClassVar[str] = "note"
    input_tokens: Integer | None = None
    prompt_tokens: Integer | None = None
    output_tokens: Integer | None = None
    completion_tokens: Integer | None = None
    total_tokens: Integer | None = None


class Timing(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "timestamp"
    turn_number: Integer | None = None
    duration_seconds: Finite | None = None


class Stats(Spent, gc=False):
    """``execution_stats``, in the document ``stats``"""

    other_fields: ClassVar[str] = "estimated_cost tools_used"
    token_usage: Spent | None = None
    turn_timings: list[Timing | None] | None = None
    execution_time_seconds: Finite | None = None
    total_turns: Number | None = None
    successful_interactions: Number | None = None
    tool_usage: dict[str, Any] | Loose = None


class Configuration(msgspec.Struct, gc=False):
    """``test_configuration``, in the document ``config``"""

    other_fields: ClassVar[str] = "context instructions min_turns restrictions scenario"
    goal: str | None = None
    max_turns: Number | None = None
    model_name: str | None = None


class CriterionEvaluation(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = ""
    criterion: str | None = None
    met: bool | None = None
    evidence: str | None = None
    relevant_turns: list[Any] | None = None


class Findings(msgspec.Struct, gc=False):
    """``details`` of an early goal evaluation"""

    other_fields: ClassVar[str] = "confidence is_goal_achievement_metric name score_type threshold threshold_operator"
    score: Number | None = None
    reason: str | None = None
    is_successful: bool | None = None
    all_criteria_met: bool | None = None
    criteria_evaluations: list[CriterionEvaluation | None] | None = None
    criteria_met: Number | None = None
    criteria_total: Number | None = None
    error: str | None = None
    """Of a judge that raised; its ``is_successful`` is false nevertheless. Also `exception_type`."""
    exception_type: str | None = None


class Evaluation(Findings, gc=False):
    details: Findings | None = None


class Model(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "max_tokens provider temperature"
    model_name: str | None = None


class Target(msgspec.Struct, gc=False):
    other_fields: ClassVar[str] = "endpoint_id target_type"
    target_id: str | None = None


class Result(msgspec.Struct, gc=False):
    """The whole file but its turns. Every field may be missing."""

    other_fields: ClassVar[str] = ""
    test_id: Any = None
    status: str | None = None
    goal_achieved: bool | None = None
    turns_used: Number | None = None
    start_time: str | None = None
    end_time: str | None = None
    findings: list[Any] | None = None
    goal_evaluation: Evaluation | None = None
    metrics: dict[str, Any] | Loose = None
    config: Configuration | None = None
    test_configuration: Configuration | None = None
    stats: Stats | None = None
    execution_stats: Stats | None = None
    model_info: Model | None = None
    target_info: Target | None = None
    metadata: dict[str, Any] | Loose = None
    tags: Any = None
    source: Any = None
    source_uri: Any = None
    source_type: Any = None
    origin: Any = None
    framework: Any = None


RESULT: Final = Schema[Result](Result)
TURNS: Final[dict[str, Schema[Any]]] = {"history": Schema(Detail), "conversation_summary": Schema(Line)}
"""The lists of turns, which may be long."""


# ---- values


def milliseconds(seconds: float | None) -> float | None:
    """A duration in seconds as milliseconds, if it is one."""
    return None if seconds is None or not 0 <= seconds < 1e300 else seconds * 1000.0


def decoded(value: Any) -> Any:
    """The object or array in a JSON text (``NaN`` allowed), else `value` itself: ``"12"`` stays a text."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    parsed = decode_value(value)
    if isinstance(parsed, str):
        try:
            parsed, _ = decode(value.encode("utf-8", "surrogatepass"))
        except FormatError:
            return value
    return parsed


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal; False too where they are nested too deeply to tell."""
    try:
        return bool(left == right)
    except RecursionError:
        return False


def as_text(value: Any) -> str:
    """Any value as text: a text as it is, an object's ``message``, else JSON."""
    if isinstance(value, str):
        return value
    message = string(mapping(value).get("message"))
    return message if message is not None else rendered(value).decode("utf-8", "surrogatepass")
