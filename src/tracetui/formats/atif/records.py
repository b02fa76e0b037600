"""Records of a trajectory, of versions 1.0 to 1.8, and the document that they are in.

The specification has an ``extra`` at every level; converters write there what it has no field for. Harbor's own models
refuse fields that they do not know, other writers add them.

Several files may make one run: a trajectory, those in which it continues, and those of its sub-agents. A reference is
a path relative to the folder of the file that contains it. If it is a path of another machine or container, or leads
out of that folder, its longest end that names an existing file is used. No file names those that refer to it: the files
around it are searched for references.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct

from tracetui.errors import FormatError
from tracetui.formats.decode import decode, decode_value
from tracetui.formats.document import Fingerprint, unchanged
from tracetui.formats.schema import NULL, Finite, Integer, Loose, Schema, Unknown
from tracetui.sources.base import File, Stat

AGENT: Final = "agent"
STEPS: Final = "steps"
AGENTS: Final = "subagent_trajectories"
DEPTH: Final = 16
"""Trajectories within trajectories are read so far; deeper ones stay among the attributes of their parent."""


class Part(Struct, gc=False):
    """A part of a message or a result: text, or an image."""

    text: str | None = None


Content = str | list[Part | Loose] | None


class Context(Struct, gc=False):
    type: str | None = None


class Extra(Struct, gc=False):
    """Where converters write how a step or call ended, for which the schema has no field."""

    error: Any = None
    error_type: str | None = None
    exit_code: Integer | None = None
    is_error: bool | None = None
    tool_result_is_error: bool | None = None
    """In the ``extra`` of a step: that its only call failed."""
    context_management: Context | Loose = None


class Call(Struct, gc=False):
    other_fields: ClassVar[str] = ""
    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Raw = NULL
    extra: Extra | Loose = None


class Ref(Struct, gc=False):
    """A reference to the trajectory of a sub-agent: within this one, or in a file."""

    other_fields: ClassVar[str] = "extra"
    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None


class Result(Struct, gc=False):
    other_fields: ClassVar[str] = ""
    source_call_id: str | None = None
    content: Raw = NULL
    subagent_trajectory_ref: Ref | list[Ref | Loose] | bool | int | float | str | None = None
    extra: Extra | Loose = None


class Observation(Struct, gc=False):
    other_fields: ClassVar[str] = "extra"
    results: list[Result | Loose] | None = None


class MetricsExtra(Struct, gc=False):
    cache_creation_input_tokens: Integer | None = None
    reasoning_tokens: Integer | None = None
    reasoning_output_tokens: Integer | None = None


class Metrics(Struct, gc=False):
    """What a step used. Cached input is part of the prompt."""

    other_fields: ClassVar[str] = "prompt_token_ids completion_token_ids logprobs"
    prompt_tokens: Integer | None = None
    completion_tokens: Integer | None = None
    cached_tokens: Integer | None = None
    cost_usd: Finite | None = None
    extra: MetricsExtra | Loose = None


class Step(Struct, gc=False):
    other_fields: ClassVar[str] = "reasoning_effort"
    step_id: Integer | None = None
    timestamp: str | None = None
    source: str | None = None
    model_name: str | None = None
    message: Content = None
    reasoning_content: str | None = None
    tool_calls: list[Call | Loose] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    """Since 1.5: it repeats a step of another trajectory, only so that the context is complete."""
    llm_call_count: Integer | None = None
    """Since 1.7. 0: the step was made without the model."""
    extra: Extra | Loose = None

    @property
    def calls(self) -> list[Call | Loose]:
        """The calls that a step of the agent asked for."""
        return self.tool_calls or [] if self.source == AGENT else []

    @property
    def time(self) -> str | None:
        """`timestamp` without blanks around it."""
        return self.timestamp and self.timestamp.strip()

    @property
    def results(self) -> list[Result | Loose]:
        return (self.observation and self.observation.results) or []


class Agent(Struct, gc=False):
    other_fields: ClassVar[str] = "tool_definitions"
    name: str | None = None
    version: str | None = None
    model_name: str | None = None
    extra: Any = None


class FinalMetrics(Struct, gc=False):
    other_fields: ClassVar[str] = "extra"
    total_prompt_tokens: Integer | None = None
    total_completion_tokens: Integer | None = None
    total_cached_tokens: Integer | None = None
    total_cost_usd: Finite | None = None
    total_steps: Integer | None = None


class Trajectory(Struct, gc=False):
    """The fields of a trajectory but for its steps and sub-agents."""

    other_fields: ClassVar[str] = f"{STEPS} {AGENTS} notes"
    schema_version: str | int | float | None = None
    trajectory_id: str | None = None
    """Since 1.7."""
    session_id: str | None = None
    agent: Agent | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: Any = None


_STEP: Final = Schema[Step](Step)
_TRAJECTORY: Final = Schema[Trajectory](Trajectory)
_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_items: Final = msgspec.json.Decoder(list[Raw]).decode


def step_in(value: Any) -> Step:
    """The step that a decoded value is; an empty one where it is no object."""
    return _STEP.convert(value, {})


def refs_in(result: Result | Loose) -> list[Ref]:
    """The references to trajectories of sub-agents in a result."""
    refs = result.subagent_trajectory_ref if isinstance(result, Result) else None
    return [ref for ref in (refs if isinstance(refs, list) else (refs,)) if isinstance(ref, Ref)]


def text_of(content: Content) -> str:
    """The text of a message, or the texts of its parts."""
    if isinstance(content, list):
        return "\n".join([part.text for part in content if isinstance(part, Part) and part.text is not None])
    return content or ""


def arguments_in(value: Any) -> Any:
    """The arguments of a call, decoded where they are JSON in a text."""
    return decode_value(value) if isinstance(value, str) else value


def answers_of(step: Step, calls: Sequence[Call | Loose]) -> tuple[dict[int, list[int]], list[int]]:
    """The places of the results of each of its `calls`, by the place of the call; and those of results of none.

    A result belongs to the call that it names (in order, where several have that id); one that names none belongs to
    the only call, where there is one.
    """
    results = step.results
    if not results:
        return {}, []
    named: dict[str | None, list[int]] = {}
    for place, call in enumerate(calls):
        if isinstance(call, Call) and call.tool_call_id:
            named.setdefault(call.tool_call_id, []).append(place)
    by_call: dict[int, list[int]] = {}
    loose = []
    for number, result in enumerate(results):
        call_id = result.source_call_id if isinstance(result, Result) else ""
        if places := named.get(call_id):
            by_call.setdefault(places[0] if len(places) == 1 else places.pop(0), []).append(number)
        elif call_id is None and len(calls) == 1 and isinstance(calls[0], Call):
            by_call.setdefault(0, []).append(number)
        else:
            loose.append(number)
    return by_call, loose


class At(Struct, frozen=True, gc=False):
    """What a span is recorded in: a step, one call in it, or a whole trajectory."""

    piece: Any = None
    """As it is written, decoded where the file is not strict JSON; None where no record holds it."""
    path: str | None = None
    """The file, where it is not that of the run; relative to its folder."""
    call: int | None = None
    """Which of the step's calls."""
    whole: bool = False
    """It is that of a trajectory, not of a step."""

    @property
    def size(self) -> int:
        """Its bytes, 0 where it was decoded leniently."""
        return memoryview(self.piece).nbytes if isinstance(self.piece, Raw) else 0


class Document:
    """A trajectory as a file holds it: its steps and sub-agents are decoded where they are asked for."""

    def __init__(self, item: Any, unknown: Unknown, depth: int = DEPTH, note: str | None = None) -> None:
        """`item` is its object: as it is written, or decoded leniently. Unknown fields are counted in `unknown`."""
        self.note = note
        """Why something in it had to be read leniently."""
        self._item, self._unknown, self._depth = item, unknown, depth
        self._fields: dict[str, Any] = self._inside(item, _fields)
        steps = self._inside(self._fields.get(STEPS), _items)
        self._steps: list[Any] | None = steps if isinstance(steps, list) else None
        values = ((name, value) for name, value in self._fields.items() if name not in (STEPS, AGENTS))
        self.values = {name: self._value(value) for name, value in values}
        """Its fields, but for steps and sub-agents."""
        self.about = _TRAJECTORY.convert(self.values, unknown)
        self.agent = self.about.agent or Agent()

    def __len__(self) -> int:
        """How many steps it has."""
        return len(self._steps or ())

    @cached_property
    def agents(self) -> list[Document] | None:
        """The trajectories of its sub-agents; None where that field is something else, or nested too deeply."""
        items = self._inside(self._fields.get(AGENTS, []), _items) if self._depth else None
        if not isinstance(items, list) or not all(map(_is_object, items)):
            return None
        return [Document(item, self._unknown, self._depth - 1) for item in items]

    @property
    def root(self) -> dict[str, Any]:
        """`values`, and what should be steps and sub-agents but cannot be read as such."""
        read = {STEPS: self._steps, AGENTS: self.agents}
        return self.values | {
            name: self._value(self._fields[name]) for name in read if read[name] is None and name in self._fields
        }

    def at(self, path: str | None) -> At:
        """All of it."""
        return At(self._item if isinstance(self._item, Raw) else self.root, path, whole=True)

    def steps(self, path: str | None = None) -> Iterator[tuple[Step | None, At]]:
        """Each step, None for what is no object, and what it is recorded in; `path` is that of `At`."""
        for item in self._steps or ():
            if isinstance(item, Raw):
                step, _, note = _STEP.decode(bytes(item), self._unknown)
                self.note = self.note or note
            else:
                step = _STEP.convert(item, self._unknown) if isinstance(item, dict) else None
            yield step, At(item, path)

    def _inside(self, item: Any, decoder: Callable[[Raw], Any]) -> Any:
        """What is directly in a value, as it is written if it is."""
        try:
            return decoder(item) if isinstance(item, Raw) else item
        except (ValueError, RecursionError):
            return self._value(item)

    def _value(self, item: Any) -> Any:
        if not isinstance(item, Raw):
            return item
        value, note = decode(bytes(item))
        self.note = self.note or note
        return value


def document(data: bytes, unknown: Unknown) -> Document:
    """The trajectory that a file holds; its unknown fields are counted in `unknown`. Raises `FormatError`."""
    if data.lstrip()[:1] == b"{":
        return Document(Raw(data), unknown)
    value, note = decode(data)
    if not isinstance(value, dict):
        raise FormatError("not a JSON object")
    return Document(value, unknown, note=note)


def _is_object(item: Any) -> bool:
    return bytes(memoryview(item)[:1]) == b"{" if isinstance(item, Raw) else isinstance(item, dict)


CONTINUED: Final = "continued_trajectory_ref"
_ENDS: Final = 4
"""Ends of a path that are looked for where all of it leads nowhere."""
CHAIN: Final = 64
"""Files that refer to files are followed so far."""
_NEAR: Final = 8
"""Files of a folder that may refer to one of another name."""
_BUDGET: Final = 16 << 20
"""Bytes of them that are read to see."""
_HINTS: Final = (b"trajectory_path", CONTINUED.encode())


class Folders:
    """The files around a run's file, each folder listed once."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._listed: dict[str, dict[str, Stat]] = {}

    def names(self, folder: str) -> dict[str, Stat]:
        """Files that may be read, by name, in a folder relative to that of the run's file."""
        if folder not in self._listed:
            entries = self._file.folder(folder).entries
            self._listed[folder] = {
                _name(entry.path): entry.stat for entry in entries if entry.skipped is None and entry.stat
            }
        return self._listed[folder]

    def find(self, ref: str, path: str) -> str | None:
        """Path of another file that `ref` means in the trajectory at `path`, None if there is none."""
        parts = [part for part in re.split(r"[/\\]", ref) if part not in ("", ".")]
        for i in range(len(parts) - 1, -1, -1):
            if parts[i] == ".." or ":" in parts[i]:
                parts = parts[i + 1 :]
                break
        for i in (0, *range(max(1, len(parts) - _ENDS), len(parts))) if parts else ():
            below, _, name = posixpath.join(posixpath.dirname(path), *parts[i:]).rpartition("/")
            candidate = f"{below}/{name}" if below else name
            if candidate != path and name in self.names(below):
                return candidate
        return None


def file_refs(doc: Document) -> Iterator[str]:
    """All references to files in a trajectory and in those within it, but for those of copied steps."""
    yield from filter(None, (doc.about.continued_trajectory_ref,))
    for step, _ in doc.steps():
        for result in step.results if step is not None and not step.is_copied_context else ():
            yield from (ref.trajectory_path for ref in refs_in(result) if ref.trajectory_path)
    for agent in doc.agents or ():
        yield from file_refs(agent)


def whole_of(file: File) -> str | None:
    """Path of the file whose run `file` is a part of, None for a run of its own (or a circle of references)."""
    folders, seen, at = Folders(file), [file.name], file.name
    while len(seen) < CHAIN:
        above = _referrer(file, folders, at)
        if above is None:
            break
        if above in seen:
            return None
        seen.append(above)
        at = above
    if len(seen) == 1:
        return None
    with file.other(at) as main:
        return main.path


def _referrer(file: File, folders: Folders, path: str) -> str | None:
    """The file that refers to the one at `path`, in the folder of `file` or above: it is there, or one further up."""
    folder, _, name = path.rpartition("/")
    for other in _candidates(folders.names(folder), name):
        candidate = f"{folder}/{other}" if folder else other
        if _refers(file, candidate, name):
            return candidate
    parents = re.split(r"[/\\]", file.path)[:-1]
    own = parents[-1 - folder.count("..")] if len(parents) > folder.count("..") else ""
    above = posixpath.join(folder, "..")
    for other in _candidates(folders.names(above), "") if own else ():
        if _refers(file, f"{above}/{other}", f"{own}/{name}"):
            return f"{above}/{other}"
    return None


def _candidates(names: dict[str, Stat], name: str) -> Iterator[str]:
    """Files that may refer to `name`: those that are called like it up to the first dot, and a few others."""
    family = name.split(".")[0] + "." if name.count(".") > 1 else "\0"
    near = sorted(
        (other for other in names if other.endswith(".json") and other != name), key=lambda other: (len(other), other)
    )
    yield from (other for other in near if other.startswith(family))
    if len(near) <= _NEAR and sum(names[other].size for other in near) <= _BUDGET:
        yield from (other for other in near if not other.startswith(family))


def _refers(file: File, path: str, target: str) -> bool:
    """Whether the trajectory at `path` refers to the file `target`, relative to its own folder."""
    try:
        with file.other(path) as other:
            data = other.read_all()
            if os.fsencode(_name(target)) not in data or not any(hint in data for hint in _HINTS):
                return False
            around = Folders(other)
            return any(around.find(ref, other.name) == target for ref in file_refs(document(data, {})))
    except (OSError, FormatError):
        return False


def _name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


# ---- versions


class Mark(msgspec.Struct):
    """All files of a run as they were read."""

    own: Fingerprint
    parts: dict[str, Fingerprint | None]
    """By path, relative to the folder of the run's file; None for one that could not be read."""
    missing: list[tuple[str, str]]
    """References to what was not there, and the files that they are in."""
    moving: bool
    """They were being written."""


def mark_if_unchanged(file: File, before: Mark) -> Mark | None:
    """The mark of what was read, if no file of the run has changed since; None if they must be read again."""
    own, folders, parts = unchanged(file, before.own), Folders(file), dict(before.parts)
    if own is None or any(folders.find(ref, path) is not None for ref, path in before.missing):
        return None
    for path, version in before.parts.items():
        try:
            with file.other(path) as other:
                file.other(path, other.stat)
                parts[path] = unchanged(other, version)
        except OSError:  # perhaps it never could be read
            if version is not None:
                return None
        else:
            if parts[path] is None:
                return None
    return Mark(own, parts, before.missing, file.moving) if file.moving == before.moving else None
