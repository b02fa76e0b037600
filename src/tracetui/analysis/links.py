"""Links between steps that can be checked: where a value comes from, what a refused call was about, what trials did.

A link states what the texts at its ends have in common, and nothing else. Every quote is literally in the part of the
step that its end names (`text_at`). Links are made of the bodies as they are loaded: of a masked run they are masked.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from tracetui.analysis.effects.tools import Tool, tool_of
from tracetui.analysis.effects.vocabulary import names
from tracetui.analysis.navigation import CALLS, is_lane
from tracetui.analysis.run_tree import Path
from tracetui.analysis.tasks import Result, as_trials
from tracetui.analysis.values import is_container, scalar_text, value_leaves
from tracetui.analysis.writings import Match, Writings, is_name, is_value, number_of, numbers_in, plain_number
from tracetui.diff.noise import Noise
from tracetui.diff.step import Header, InputKeys
from tracetui.diff.values import INPUT, changes_of
from tracetui.model import Body, Operation, Reasoning, Run, RunRef, RunSummary, Span, Status, Text, ToolResult
from tracetui.model.build import is_taken_over
from tracetui.redact import masks
from tracetui.text import quantity

MAX_LINKS: Final = 200
"""Most links of a run."""
MAX_TEXT: Final = 8_000_000
"""Characters of a run that are read for its links."""
MAX_SEARCHED: Final = 64_000_000
"""Characters of a run in which one value is looked for."""
MAX_TRIALS: Final = 50
"""Most passed trials that are read."""
MAX_PLACES: Final = 1_000
"""Most appearances of a value."""
_MAX_ARGUMENTS: Final = 200
_NEAR: Final = 100
"""Texts before a call in which two numbers are looked for that give one of its."""
_MAX_NUMBERS: Final = 100
"""Numbers of a text that are added and subtracted."""
_LONG: Final = 20
"""Characters of a number from which on it isn't added."""
_QUOTED: Final = 120
_PASSED: Final = 2
"""Fewest passed trials with which one is compared."""
_FILES: Final = frozenset({Tool.PATCH, Tool.EDIT, Tool.WRITE, Tool.DELETE, Tool.MOVE})
_CREATING: Final = names("add apply book create insert issue order post send submit")
_CHANGING: Final = _CREATING | names(
    "cancel change delete edit exchange modify move patch put remove rename replace return set transfer update write"
)
"""First words of the names of tools that change something."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_REFUSED: Final = re.compile(r"""\W{0,4}(?:error|failed|refused|denied|rejected)\b""", re.IGNORECASE)


class Kind(StrEnum):
    """What a link says."""

    ORIGIN = "origin"
    """The value is in an earlier text, or is the sum or difference of two numbers in one."""
    NO_ORIGIN = "no_origin"
    """A call that changes something has a number that is in no earlier recorded text, nor made of two in one."""
    NAMED = "named"
    """The answer of a failed or refused call names an argument of it."""
    CHANGED = "changed"
    """An earlier call changed what a failed or refused call was about."""
    SUB_AGENT = "sub_agent"
    """A step of a sub-agent failed: the call in its parent, or the sub-agent if no call is recorded."""
    TRIALS = "trials"
    """No passed trial of the task did this; all of them did something else, which this run never did."""


class Part(StrEnum):
    """The part of a step that has a quote."""

    NAME = "name"
    INPUT = "input"
    OUTPUT = "output"
    ERROR = "error"
    MESSAGES = "messages"


class End(msgspec.Struct, frozen=True):
    """One end of a link: `quote` is literally in that part of the step."""

    span: str
    part: Part
    quote: str
    run: RunRef | None = None
    """Its run; None: the run with the link."""


class StepLink(msgspec.Struct, frozen=True):
    """A link of a step (`source`) to other steps; `targets` is empty where there is none."""

    kind: Kind
    source: End
    targets: tuple[End, ...]
    match: Match


class Origin(msgspec.Struct, frozen=True):
    """Where a value of a step appears in its run."""

    value: str
    first: StepLink
    """Link to its first appearance, which is of the kind `NO_ORIGIN` if no earlier text has it."""
    places: tuple[End, ...]
    """All appearances, in the order of the run."""
    hidden: tuple[str, ...]
    """What could hide an appearance: ``5 steps without text``."""


# ---- texts


def text_at(run: Run, end: End) -> str:
    """The text of the part that an end names."""
    span = run.spans[run.index[end.span]]
    if end.part is Part.NAME:
        return span.name
    return "\n".join(text for part, text in _texts(span, run.load(span)) if part is end.part)


def _texts(span: Span, body: Body) -> Iterator[tuple[Part, str]]:
    """The texts of a step in their order; a value is the text of its names and scalars, one a line."""
    if body.input is not None:
        yield Part.INPUT, _text(body.input)
    for message in (*body.input_messages, *body.output_messages):
        for part in message.parts:
            if isinstance(part, Text | Reasoning):
                yield Part.MESSAGES, part.text
            elif isinstance(part, ToolResult):
                yield Part.MESSAGES, _text(part.content)
    if body.output is not None:
        yield Part.OUTPUT, _text(body.output)
    if span.error is not None:
        yield Part.ERROR, span.error.message


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(value_leaves(value))


class _Reader:
    """Reads the texts of a run in order, each repeated message of a conversation once, up to a number of characters."""

    def __init__(self, run: Run, most: int) -> None:
        self.run, self.remaining = run, most
        self.near: deque[tuple[End, str, frozenset[str]]] = deque(maxlen=_NEAR)
        """The last texts with their numbers."""
        self._empty = self._masked = 0
        self._seen: set[str] = set()

    def texts(self, position: int, body: Body) -> Iterator[tuple[Part, str]]:
        span = self.run.spans[position]
        is_empty = True
        for part, text in _texts(span, body):
            is_empty = False
            if part is Part.MESSAGES and text in self._seen:
                continue
            self._seen.add(text)
            self.remaining -= len(text)
            if self.remaining < 0:
                return
            self._masked += next(masks(text), None) is not None
            yield part, text
        self._empty += is_empty and self.run.sizes[position] == 1

    def hidden(self) -> Iterator[str]:
        """What could hide a value."""
        if self._empty:
            yield f"{quantity(self._empty, 'step')} without text"
        if self._masked:
            yield f"{quantity(self._masked, 'text')} with masked secrets"
        if self.remaining < 0:
            yield f"text after {MAX_SEARCHED:,} characters not searched".replace(",", " ")
        if not self.run.complete:
            yield "the run is still being read"

    def remember(self, span: Span, part: Part, text: str) -> list[str]:
        """Keep a text for `made_of`, and return its numbers."""
        numbers = numbers_in(text)
        self.near.append((End(span.id, part, ""), text, frozenset(numbers[:_MAX_NUMBERS])))
        return numbers

    def made_of(self, source: End, number: Decimal | None) -> StepLink | None:
        """The link of a number to two in the nearest text whose sum or difference it is, if only these give it."""
        if number is None or number <= 0:
            return None
        for end, text, numbers in reversed(self.near):
            if len(pairs := _pairs(number, numbers)) == 1:
                match, *operands = pairs[0]
                hits = [Writings(plain_number(f"{operand:f}")).find(text) for operand in operands]
                targets = tuple(msgspec.structs.replace(end, quote=hit.quote) for hit in hits if hit is not None)
                if len(targets) == len(operands):
                    return StepLink(Kind.ORIGIN, source, targets, match)
        return None


@lru_cache(2 * _NEAR)
def _operands(numbers: frozenset[str]) -> frozenset[Decimal]:
    return frozenset(number for word in numbers if len(word) < _LONG and (number := Decimal(word)) > 0)


def _pairs(number: Decimal, numbers: frozenset[str]) -> list[tuple[Match, Decimal, Decimal]]:
    known = _operands(numbers)
    sums = [(Match.SUM, a, number - a) for a in known if 2 * a <= number and number - a in known]
    return [*sums, *((Match.DIFFERENCE, number + a, a) for a in known if number + a in known)]


# ---- the origin of a value


def origin_of(run: Run, span_id: str, value: str, part: Part = Part.INPUT) -> Origin:
    """Where a value that the step has in `part` appears in the run, exactly or in another writing.

    Reads at most `MAX_SEARCHED` characters: too slow for the UI thread. Raises `KeyError` for an unknown step.
    """
    writings, own = Writings(value), run.index[span_id]
    reader, number = _Reader(run, MAX_SEARCHED), number_of(writings.value)
    places: list[tuple[int, End, Match]] = []
    for position, span in enumerate(run.spans):
        if reader.remaining < 0 or len(places) >= MAX_PLACES:
            break
        for source_part, text in reader.texts(position, run.load(span)):
            if occurrence := writings.find(text):
                places.append((position, End(span.id, source_part, occurrence.quote), occurrence.match))
            if number is not None and position < own:
                reader.remember(span, source_part, text)
    source = next((end for at, end, _ in places if at == own and end.part is part), End(span_id, part, writings.value))
    link = next((StepLink(Kind.ORIGIN, source, (end,), match) for at, end, match in places if at < own), None)
    link = link or reader.made_of(source, number) or StepLink(Kind.NO_ORIGIN, source, (), Match.NONE)
    return Origin(writings.value, link, tuple(end for _, end, _ in places), tuple(reader.hidden()))


# ---- the links of a run


def links_of(run: Run) -> list[StepLink]:
    """The links of the calls of a run, in their order, without `ORIGIN` and `TRIALS`.

    Reads at most `MAX_TEXT` characters and returns at most `MAX_LINKS`. Too slow for the UI thread.
    """
    links: list[StepLink] = []
    calls = _Calls(reader := _Reader(run, MAX_TEXT))
    for position, span in enumerate(run.spans):
        if reader.remaining < 0 or len(links) >= MAX_LINKS:
            break
        body = run.load(span)
        if span.status is Status.ERROR and (call := _call_of_sub_agent(run, position)) is not None:
            source, target = End(span.id, Part.NAME, span.name), End(call.id, Part.NAME, call.name)
            links.append(StepLink(Kind.SUB_AGENT, source, (target,), Match.PARENT))
        if span.operation in CALLS:
            links += calls.links(span, body)
        for part, text in reader.texts(position, body):
            calls.numbers.update(reader.remember(span, part, text))
    return links[:MAX_LINKS]


class _Calls:
    """Makes the links of calls, in their order: keeps what earlier calls changed, and the numbers of earlier texts."""

    def __init__(self, reader: _Reader) -> None:
        self.numbers: set[str] = set()
        self._reader = reader
        self._changed: dict[tuple[str, str], tuple[End, bool]] = {}
        """The last call that changed something, by name and text of an argument; whether it made something new."""

    def links(self, span: Span, body: Body) -> Iterator[StepLink]:
        answer, is_change = _refusal(span, body), is_changing(span.name)
        arguments = [*_arguments(body.input)] if is_change or answer is not None else []
        if answer is not None:
            yield from self._of_refused(span, arguments, answer)
        if not is_change or is_taken_over(span):
            return
        if tool_of(span.name) not in _FILES:
            yield from self._without_origin(span, arguments)
        if answer is None:
            is_new = _first_word(span.name) in _CREATING
            self._changed |= {at: (End(span.id, Part.INPUT, at[1]), is_new) for at in arguments if is_name(at[1])}

    def _of_refused(
        self, span: Span, arguments: Sequence[tuple[str, str]], answer: tuple[Part, str]
    ) -> Iterator[StepLink]:
        part, message = answer
        named = [
            argument
            for argument in arguments
            if is_value(argument[1]) and Writings(argument[1]).occurs_exactly(message)
        ]
        if named:
            text = named[0][1]
            yield StepLink(Kind.NAMED, End(span.id, Part.INPUT, text), (End(span.id, part, text),), Match.EXACT)
        for argument in (named or arguments) if is_changing(span.name) else ():
            earlier, is_new = self._changed.get(argument, (None, False))
            if earlier is not None and (named or not is_new):  # what it made new it changes less surely
                yield StepLink(Kind.CHANGED, End(span.id, Part.INPUT, argument[1]), (earlier,), Match.EXACT)
                return

    def _without_origin(self, span: Span, arguments: Sequence[tuple[str, str]]) -> Iterator[StepLink]:
        for _, text in arguments:
            number = number_of(text) if is_value(text) else None
            if number is not None and plain_number(f"{abs(number):f}") not in self.numbers:
                source = End(span.id, Part.INPUT, text)
                if self._reader.made_of(source, number) is None:
                    yield StepLink(Kind.NO_ORIGIN, source, (), Match.NONE)


@lru_cache(1024)
def is_changing(name: str) -> bool:
    """Whether a tool changes something, by its name."""
    return tool_of(name) in _FILES or _first_word(name) in _CHANGING


def _first_word(name: str) -> str:
    word = _WORDS.search(name.rpartition("__")[2])
    return "" if word is None else word[0].lower()


def is_refused(span: Span, body: Body) -> bool:
    """Whether a call failed or was refused: its status says so, or its answer begins with ``Error``."""
    return span.status is Status.ERROR or _REFUSED.match("\n".join(islice(value_leaves(body.output), 5))) is not None


def _refusal(span: Span, body: Body) -> tuple[Part, str] | None:
    """The answer of a call that failed or was refused."""
    if not is_refused(span, body):
        return None
    output = "" if body.output is None else _text(body.output)
    return (Part.OUTPUT, output) if output or span.error is None else (Part.ERROR, span.error.message)


def _arguments(value: Any) -> Iterator[tuple[str, str]]:
    """Name and text of the scalars of a value, at any depth; values with masked secrets aren't."""
    todo: list[tuple[str, Any]] = [("", value)]
    for name, item in todo:
        if len(todo) > _MAX_ARGUMENTS:
            return
        if isinstance(item, Mapping):
            todo += [(f"{name}.{key}" if name else str(key), below) for key, below in item.items()]
        elif is_container(item):
            todo += [(name, below) for below in item]
        elif name and item is not None and not isinstance(item, bool):
            text = item if isinstance(item, str) else scalar_text(item)
            if next(masks(text), None) is None:
                yield name, text


def _call_of_sub_agent(run: Run, position: int) -> Span | None:
    """The call, in the parent, of the sub-agent that a step belongs to; None outside of sub-agents."""
    parent = run.parent(position)
    while parent is not None and not (run.spans[parent].operation is Operation.INVOKE_AGENT and is_lane(run, parent)):
        parent = run.parent(parent)
    if parent is None:
        return None
    call = run.parent(parent)
    return run.spans[call if call is not None and run.spans[call].operation in CALLS else parent]


# ---- trials of one task


def passed_trials(run: RunSummary, runs: Iterable[RunSummary]) -> list[RunSummary]:
    """The passed trials, among `runs`, of the task of a failed run, to compare it with.

    Empty with fewer than two, and with more than `MAX_TRIALS`: some of them don't speak for all.
    """
    task = run.task_key
    if task is None or not run.failed:
        return []
    trials = as_trials([run, *(other for other in runs if other.task_key == task and other.ref != run.ref)])
    passed = [trial.run for trial in trials[1:] if trial.result is Result.PASSED and trial.excluded is None]
    return passed if _PASSED <= len(passed) <= MAX_TRIALS else []


def trial_links(run: Run, passed: Sequence[Run]) -> list[StepLink]:
    """What a run did and no passed trial of its task, and the changes that all of these made instead, and it never.

    Steps are those of the run tree: where the run has left the passed trials. Empty with fewer than two of them.
    """
    if len(passed) < _PASSED:
        return []
    keys = InputKeys()
    own, *others = (_steps(Path(trial, texts=False, keys=keys)) for trial in (run, *passed))
    unshared = [at for key, (at, _) in own.items() if not any(key in other for other in others)]
    links: list[StepLink] = []
    for key, (_, changed) in others[0].items() if unshared else ():
        if changed and key not in own and all(other.get(key, (0, False))[1] for other in others):
            links.append(
                _instead(run, unshared, [(trial, other[key][0]) for trial, other in zip(passed, others, strict=True)])
            )
    return links[:MAX_LINKS]


def _steps(path: Path) -> dict[tuple[Header, bytes], tuple[int, bool]]:
    """The position of the first call of each key, and whether it changed something; without searches and plans."""
    run, steps = path.run, dict[tuple[Header, bytes], tuple[int, bool]]()
    for position in path.steps:
        span = run.spans[position]
        tool = tool_of(span.name)
        if span.operation in CALLS and (tool is None or tool.has_effect):
            changed = is_changing(span.name) and not is_refused(span, run.load(span))
            key = path.key(position)
            if key not in steps or (changed and not steps[key][1]):
                steps[key] = position, changed
    return steps


def _instead(run: Run, unshared: Sequence[int], places: Sequence[tuple[Run, int]]) -> StepLink:
    """The link from a call that no passed trial made, of the same tool if there is one."""
    other, other_position = places[0]
    name = other.spans[other_position].name
    same = [at for at in unshared if run.spans[at].name == name]
    own = run.spans[(same or unshared)[0]]
    quotes = _differing(other.load(other.spans[other_position]).input, run.load(own).input) if same else None
    part, (before, now) = (Part.NAME, (name, own.name)) if quotes is None else (Part.INPUT, quotes)
    targets = tuple(End(trial.spans[at].id, part, before, trial.summary.ref) for trial, at in places)
    return StepLink(Kind.TRIALS, End(own.id, part, now), targets, Match.ARGUMENT if same else Match.CALL)


def _differing(a: Any, b: Any) -> tuple[str, str] | None:
    """The first scalars that differ in the arguments of two calls."""
    for change in changes_of(a, b, Noise(), side=INPUT):
        if change.noise is None and not any(side is None or is_container(side) for side in (change.a, change.b)):
            return _text(change.a)[:_QUOTED], _text(change.b)[:_QUOTED]
    return None


# ---- for documents


def links_at(links: Iterable[StepLink], span_id: str) -> list[StepLink]:
    """The links from a step, and those of sub-agents to it."""
    return [
        link for link in links if span_id in (link.source.span, link.kind is Kind.SUB_AGENT and link.targets[0].span)
    ]


def link_value(link: StepLink) -> dict[str, Any]:
    """A link as JSON."""
    source, *targets = map(_end_value, (link.source, *link.targets))
    return {"kind": link.kind, "from": source, "to": targets, "quote": link.source.quote, "match": link.match}


def origin_value(origin: Origin) -> dict[str, Any]:
    """An origin as JSON."""
    places = [_end_value(end) for end in origin.places]
    return {"value": origin.value, "link": link_value(origin.first), "places": places, "hidden": origin.hidden}


def _end_value(end: End) -> dict[str, Any]:
    return {**msgspec.structs.asdict(end), "run": None if end.run is None else end.run.address}
