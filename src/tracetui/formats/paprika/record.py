"""Paprika records as they lie on disk: decoded no further than needed.

Facts: vaibhavhariram/paprika, ``execution_record.py`` (v1), and its document "Execution Records". A record is one JSON
object, written once. Two ways lead to the same `Record`: one typed decode of the whole file, and, where types do not
fit, value by value, so that one odd field spoils nothing else.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.paprika.fields import Raw, fields_of, is_null, value_of, values_of, whole
from tracetui.formats.scalars import mapping, number, string
from tracetui.model import Problem

_NULL: Final = Raw(b"null")


class Tokens(msgspec.Struct, gc=False):
    """``token_usage`` of a model call, and the names that other providers use for the same."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class Skim(msgspec.Struct, gc=False):
    """What lists and counts need of one step; inputs and outputs stay undecoded (or are values, read leniently)."""

    step_type: str | None = None
    step_index: int | None = None
    timestamp: str | None = None
    model: str | None = None
    provider: str | None = None
    tool_name: str | None = None
    policy_name: str | None = None
    message: str | None = None
    status: str | None = None
    input_hash: str | None = None
    token_usage: Tokens | None = None
    duration_ms: float | None = None
    error: Any = None
    input_data: Raw = _NULL
    args: Raw = _NULL
    output_data: Raw = _NULL

    @property
    def has_output(self) -> bool:
        """False if ``output_data`` is null or missing."""
        return not is_null(self.output_data)


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where one record of a step lies in the file: byte and length."""

    offset: int
    size: int


class Agent(msgspec.Struct, gc=False):
    """``agent``"""

    name: str | None = None


class Execution(msgspec.Struct, gc=False):
    """``execution``"""

    started_at: str | None = None
    ended_at: str | None = None
    duration_ms: float | None = None
    status: str | None = None
    termination_reason: str | None = None


class Violation(msgspec.Struct, gc=False):
    """``policy.violation``"""

    policy_name: str | None = None
    message: str | None = None


class Policy(msgspec.Struct, gc=False):
    """``policy``"""

    violation: Violation | None = None


class Totals(msgspec.Struct, gc=False):
    """``totals``, of which the rest is recounted only where a run is opened."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class Facts(msgspec.Struct, kw_only=True):
    """What lists need of the record itself. Extensions and metadata are undecoded (or values, read leniently)."""

    schema_version: Any = None
    record_id: str | None = None
    parent_record_id: str | None = None
    replay_of: str | None = None
    agent: Agent | None = None
    execution: Execution | None = None
    policy: Policy | None = None
    totals: Totals | None = None
    input: Any = None
    error: Any = None
    tags: Any = None
    source: Any = None
    extensions: Raw = _NULL
    metadata: Raw = _NULL


class Record(msgspec.Struct):
    """A file, decoded: what it says of the run, and its steps. The rest is filled only by `load`."""

    facts: Facts
    steps: list[Skim]
    problems: list[Problem] = []
    fields: dict[str, Any] = {}
    """All fields but the steps, under the names of v1."""
    attributes: dict[str, Any] = {}
    """What else the file says about the run, in its own names; what stands among the steps and is no step."""
    places: list[tuple[Place, ...]] = []
    """Where each step lies in the file; empty if it was not asked for, or the file is not strict JSON."""
    values: list[tuple[dict[str, Any], ...]] = []
    """The step's records themselves, where the file is not strict JSON."""


class _Whole(Facts, kw_only=True):
    """The typed decode of a v1 record: what is not named here is skipped."""

    schema_version: Any
    record_id: str | None
    steps: list[Skim]


_WHOLE: Final = msgspec.json.Decoder(_Whole)
_PARTS: Final[dict[str, Any]] = {
    "agent": msgspec.json.Decoder(Agent | None),
    "execution": msgspec.json.Decoder(Execution | None),
    "policy": msgspec.json.Decoder(Policy | None),
    "totals": msgspec.json.Decoder(Totals | None),
}
_SKIM: Final = msgspec.json.Decoder(Skim)
_RAWS: Final = msgspec.json.Decoder(list[Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


def skim(data: bytes) -> Record | None:
    """A v1 record by one typed decode; None where its types do not fit (or it is none)."""
    try:
        whole = _WHOLE.decode(data)
    except (ValueError, RecursionError):
        return None
    return Record(whole, whole.steps)


def facts_of(fields: dict[str, Any], root: dict[str, Any] | None = None) -> Facts:
    """The same from decoded fields: what has not the type that it should have counts as absent.

    `root`: the fields undecoded, of which each is tried by a typed decode first.
    """
    agent, execution = fields.get("agent"), mapping(fields.get("execution"))
    violation, totals = mapping(mapping(fields.get("policy")).get("violation")), mapping(fields.get("totals"))
    facts = Facts(
        schema_version=fields.get("schema_version"),
        record_id=string(fields.get("record_id")),
        parent_record_id=string(fields.get("parent_record_id")),
        replay_of=string(fields.get("replay_of")),
        agent=Agent(string(agent.get("name") if isinstance(agent, dict) else agent)),
        execution=Execution(
            string(execution.get("started_at")),
            string(execution.get("ended_at")),
            number(execution.get("duration_ms")),
            string(execution.get("status")),
            string(execution.get("termination_reason")),
        ),
        totals=Totals(*(whole(totals.get(name)) for name in Totals.__struct_fields__)),
        input=fields.get("input"),
        error=fields.get("error"),
    )
    for name in ("tags", "source", "extensions", "metadata"):
        setattr(facts, name, fields.get(name))
    if violation:
        facts.policy = Policy(Violation(string(violation.get("policy_name")), string(violation.get("message"))))
    for name, decoder in _PARTS.items():
        raw = (root or {}).get(name)
        if isinstance(raw, Raw):
            with suppress(ValueError, RecursionError):
                setattr(facts, name, decoder.decode(raw))
    return facts


def outline(data: bytes) -> tuple[dict[str, Raw], str | None]:
    """The top-level values of a JSON object, undecoded, and why it had to be read leniently (None if not)."""
    try:
        return _OBJECT.decode(data), None
    except msgspec.ValidationError:
        raise FormatError("not a JSON object") from None
    except (ValueError, RecursionError):
        root, note = decode(data)
    if not isinstance(root, dict):
        raise FormatError("not a JSON object")
    return root, note or "what a strict reader refuses"


def load(data: bytes, path: str) -> Record:
    """A v1 record, value by value, with the places of its steps. Raises `FormatError` if it is no JSON object."""
    root, note = outline(data)
    typed = skim(data)
    problems = [Problem(path, "", f"read leniently: {note}")] if note and typed is None else []
    items = items_of(root.get("steps"), "steps", path, problems)
    fields = values_of(root, "steps")
    attributes = {name: value for name, value in fields.items() if name not in _MORE or isinstance(value, _MORE[name])}
    return Record(
        facts_of(fields, root) if typed is None else typed.facts,
        [skim_of(raw) for raw in items.raws] if typed is None else typed.steps,
        problems,
        fields,
        attributes | items.stray,
        [(place,) for place in places_of(data, items.raws)],
        [(raw,) for raw in items.raws] if note else [],
    )


_MORE: Final = {"input": (), "output": (), "error": (dict, list)}
"""What has its own place in the *Run* tab, unless it is of these types and says more than fits there."""


class Items(msgspec.Struct):
    """The objects of a list of steps or events (undecoded), and what else stood in it."""

    raws: list[Any]
    stray: dict[str, Any]


def items_of(listed: Any, name: str, path: str, problems: list[Problem]) -> Items:
    """The objects of the list `name`; what is none is a problem, and kept."""
    if isinstance(listed, Raw):
        try:
            listed = _RAWS.decode(listed)
        except (ValueError, RecursionError):
            listed = value_of(listed)
    if not isinstance(listed, list):
        if listed is not None:
            problems.append(Problem(path, name, "not a list"))
        return Items([], {} if listed is None else {name: listed})
    items = Items([], {})
    for i, item in enumerate(listed):
        if isinstance(item, dict) or (isinstance(item, Raw) and bytes(memoryview(item)[:1]) == b"{"):
            items.raws.append(item)
        else:
            problems.append(Problem(path, f"{name}[{i}]", "not an object"))
            items.stray[f"{name}[{i}]"] = value_of(item)
    return items


def skim_of(raw: Any) -> Skim:
    """One step from its bytes (or its value): what has not the type that it should have counts as absent."""
    if isinstance(raw, Raw):
        try:
            return _SKIM.decode(raw)
        except (ValueError, RecursionError):
            raw = fields_of(raw)
    found: dict[str, Any] = {name: string(value_of(raw.get(name))) for name in _TEXTS}
    undecoded = {name: raw.get(name, _NULL) for name in _UNDECODED}
    usage = value_of(raw.get("token_usage"))
    step = Skim(**found, **undecoded, error=value_of(raw.get("error")))
    step.step_index = whole(value_of(raw.get("step_index")))
    step.duration_ms = number(value_of(raw.get("duration_ms")))
    if isinstance(usage, dict):
        step.token_usage = Tokens(*(whole(usage.get(name)) for name in Tokens.__struct_fields__))
    return step


_UNDECODED: Final = ("input_data", "args", "output_data")
_TEXTS: Final = (
    "step_type",
    "timestamp",
    "model",
    "provider",
    "tool_name",
    "policy_name",
    "message",
    "status",
    "input_hash",
)


def places_of(data: bytes, raws: list[Any]) -> list[Place]:
    """Where undecoded objects lie in `data`, in which they stand in this order; none for decoded ones."""
    places = []
    position = 0
    for raw in raws:
        if not isinstance(raw, Raw):
            return []
        text = bytes(raw)
        start = data.index(b"{", position)  # between two objects of a list there is no bracket
        if not data.startswith(text, start):
            start = data.index(text, position)
        places.append(Place(start, len(text)))
        position = start + len(text)
    return places
