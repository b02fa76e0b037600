"""Addresses of runs, steps, spans and values.

``PATH`` if the file contains one run, else ``PATH#RUN``; ``/STEP``, ``/SPAN`` and field names may follow:
``runs.db#wf-1/3/output/answer``. In RUN and the parts after it, ``/``, ``#`` and ``%`` are percent-encoded; PATH is
literal. A run id, or a prefix of one, is short for the address of its run.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from tracetui.errors import NothingReadable, UsageError
from tracetui.model import Run, RunRef, RunSummary, Span, quote_key
from tracetui.model.blocks import Blocks
from tracetui.model.build import is_part, part_of
from tracetui.model.run import Step

CANDIDATES_SHOWN: Final = 12


class Address(msgspec.Struct, frozen=True):
    """A parsed address: the file, the key of the run in it (None: not given), and the parts below the run."""

    path: str
    key: str | None = None
    parts: tuple[str, ...] = ()


class Target(msgspec.Struct, frozen=True):
    """The target of an address: a whole run, one of its spans, or a value in either."""

    span: Span | None = None
    keys: tuple[str, ...] = ()


def parse(text: str, is_file: Callable[[str], bool]) -> Address | None:
    """Parse `text` with the longest path that is an existing file; None if there is none."""
    for end in _ends(text):
        path, rest = text[:end], text[end:]
        if not path or not is_file(path):
            continue
        head, *parts = rest[1:].split("/") if rest else [""]
        if rest.startswith("#"):
            return Address(path, unquote(head), tuple(map(unquote, parts)))
        return Address(path, None, tuple(unquote(part) for part in (head, *parts) if part))
    return None


def _ends(text: str) -> Iterator[int]:
    yield len(text)
    for index in range(len(text) - 1, 0, -1):
        if text[index] in "/#":
            yield index


def pick(runs: Sequence[RunSummary], key: str | None, path: str) -> RunSummary:
    """Select the run of the file `path` by key or id. Raises `NothingReadable` or `UsageError`."""
    if not runs:
        raise NothingReadable(f"no run could be read in {path}; `tracetui doctor` explains")
    if key is None:
        return runs[0] if len(runs) == 1 else _only(runs, f"{path} contains {len(runs)} runs")
    exact = [run for run in runs if run.ref.key == key] or [run for run in runs if run.id == key]
    return _match(exact, runs, key, path)


def find(text: str, runs: Iterable[RunSummary], where: str) -> tuple[RunSummary, tuple[str, ...]]:
    """Find the run with the id (or id prefix) in `text`, and the parts after the id.

    An exact match beats a prefix. Raises `NothingReadable` if no run matches, `UsageError` if several do; `where`
    describes the searched paths in errors.
    """
    runs = list(runs)
    by_id: dict[str, list[RunSummary]] = {}
    for run in runs:
        by_id.setdefault(run.id, []).append(run)
    for end in _ends(text):
        exact = by_id.get(text[:end]) or by_id.get(unquote(text[:end]))
        if exact:
            parts = tuple(unquote(part) for part in text[end:].split("/") if part)
            return _match(exact, runs, text[:end], where), parts
    head, *parts_after = text.split("/")
    return _match([], runs, unquote(head), where), tuple(unquote(part) for part in parts_after if part)


def _match(exact: Sequence[RunSummary], runs: Iterable[RunSummary], wanted: str, where: str) -> RunSummary:
    matches = exact or [run for run in runs if wanted and run.id.startswith(wanted)]
    if not matches:
        raise NothingReadable(f"no run {wanted!r} in {where}; `tracetui ls` lists the runs")
    return matches[0] if len(matches) == 1 else _only(matches, f"{wanted!r} is ambiguous")


def _only(runs: Sequence[RunSummary], problem: str) -> RunSummary:
    candidates = "".join(f"\n  {run.ref.address}" for run in runs[:CANDIDATES_SHOWN])
    more = len(runs) - CANDIDATES_SHOWN
    raise UsageError(f"{problem}; choose one:{candidates}" + (f"\n  … and {more} more" if more > 0 else ""))


def target(run: Run, parts: Sequence[str]) -> Target:
    """Resolve the parts of an address: ``STEP``, then spans by id or name, then field names.

    Raises `UsageError`, with the candidates, if several spans match.
    """
    position: int | None = None
    rest = list(parts)
    while rest:
        below, used = _below(run, position, rest)
        if below is None:
            break
        position, rest = below, rest[used:]
    return Target(None if position is None else run.spans[position], tuple(rest))


def _below(run: Run, position: int | None, parts: Sequence[str]) -> tuple[int | None, int]:
    """Find the span for the first of `parts` below `position` (None: in the run): (position, parts used).

    Several steps may share a number (nodes that ran in parallel): the next part then selects one.
    """
    part = parts[0]
    if position is None and (steps := _steps(run, part)):
        if len(steps) == 1:
            return steps[0], 1
        named = [i for i in steps if len(parts) > 1 and parts[1] in (run.spans[i].id, run.spans[i].name)]
        return _only_position(run, named or steps, f"{len(steps)} spans are step {part}"), 2
    if position is not None and is_part(run.spans[position]) and part.isdecimal():
        numbered = [step.span for step in part_of(run, position).steps if str(step.number) == part]
        if len(numbered) == 1:
            return run.index[numbered[0]], 1
    by_id = run.index.get(part)
    start, end = (0, len(run.spans)) if position is None else (position + 1, position + run.sizes[position])
    if by_id is not None and start <= by_id < end:
        return by_id, 1
    tops = run.children(position) if position is not None else [i for i, depth in enumerate(run.depths) if depth == 0]
    called = [i for i in tops if run.spans[i].name == part]
    return (_only_position(run, called, f"{len(called)} spans are called {part!r}"), 1) if called else (None, 0)


def _steps(run: Run, part: str) -> list[int]:
    if not part.isdecimal() or len(part) > 18:
        return []
    number = int(part)
    numbers = [step.number for step in run.steps]
    if not any(listed is not None for listed in numbers):  # unnumbered steps count from 1
        numbers = [*range(1, len(numbers) + 1)]
    return [run.index[step.span] for step, listed in zip(run.steps, numbers, strict=True) if listed == number]


def _only_position(run: Run, positions: Sequence[int], problem: str) -> int:
    if len(positions) > 1:
        candidates = "".join(
            f"\n  {quote_key(run.spans[i].id)}  {run.spans[i].name}" for i in positions[:CANDIDATES_SHOWN]
        )
        raise UsageError(f"{problem}; choose one by id:{candidates}")
    return positions[0]


def lookup(value: Any, keys: Sequence[str], name: str) -> Any:
    """Look up field names and list indices in a value. Raises `UsageError` if one is missing."""
    for done, key in enumerate(keys):
        if isinstance(value, msgspec.Struct):
            value = {name: getattr(value, name) for name in value.__struct_fields__}
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            raise UsageError(f"no {'/'.join(keys[: done + 1])!r} in {name}; {_choices(value)}")
    return value


def _choices(value: Any) -> str:
    if isinstance(value, dict) and value:
        names = ", ".join(map(str, list(value)[:CANDIDATES_SHOWN]))
        return f"available: {names}"
    if isinstance(value, list | tuple) and value:
        return f"items: 0 to {len(value) - 1}"
    return "it has no fields"


# ---- from a span to the address that opens it
# A span's own step number is that of the trace, which may restart its count in a nested graph or agent, or give one
# number to several steps that ran side by side. Such a number alone would open another span, or none.


_MAX_RUNS: Final = 4
_STEPS: Final[OrderedDict[RunRef, tuple[Blocks[Step], Counter[int]]]] = OrderedDict()
"""Cache: the steps of the last runs, and how many of them have each number."""
_ABOVE: Final[OrderedDict[RunRef, tuple[Blocks[Span], dict[int, int | None]]]] = OrderedDict()
"""Cache: the spans of the last runs, and the position of the step that contains the span at a position."""
_LOCK: Final = threading.Lock()


def span_title(run: Run, span: Span) -> str:
    """A span by step and name, not cleaned: ``step 3 search``, ``step 0/generate``; just its name without a step.

    ``ADDRESS/3`` opens that step; a path opens the span itself.
    """
    label = span_label(run, span)
    if not label:
        return span.name
    return label if label.rpartition("/")[2] == quote_key(span.name) else f"{label} {span.name}"


def span_label(run: Run, span: Span) -> str:
    """The prefix of a span's name: ``step 3``, ``step 0/generate``, ``rag/generate``; not cleaned.

    Empty if the span has no number, or its name alone opens it.
    """
    place = span_reference(run, span)
    if not place or place == quote_key(span.name):
        return ""
    return f"step {place}" if step_number(run, span) is not None else place


def span_reference(run: Run, span: Span) -> str:
    """The part after ``ADDRESS/``: the number of the span's step, else the path to the span.

    Empty if the span has no number.
    """
    if span.step is None or span.id not in run.index:
        return ""
    number = step_number(run, span)
    if number == span.step and _numbered(run)[number] == 1 and (span.is_step or span.owner is None):
        return str(number)
    return span_path(run, span)


def step_number(run: Run, span: Span) -> int | None:
    """The number of the run's step that contains a span; None outside numbered steps."""
    position = run.index.get(span.id)
    step = None if position is None else _step_above(run, position)
    if step is not None:
        return run.spans[step].step
    return span.step if span.owner is None and span.step in _numbered(run) else None


def span_path(run: Run, span: Span) -> str:
    """The path that opens a span below the address of its run: ``2``, ``2/fetch``, ``0/generate``, or its id."""
    parts: list[str] = []
    position: int | None = run.index[span.id]
    while position is not None:
        above = run.spans[position]
        number = above.step if above.is_step else None
        if number is not None and _numbered(run)[number] == 1:
            parts.append(str(number))
            break
        parts.append(above.name)
        if number is not None:
            parts.append(str(number))
            break
        position = run.parent(position)
    for tried in (parts[::-1], [span.id]):
        try:
            resolved = target(run, tried)
        except UsageError:
            continue
        if resolved.span is not None and resolved.span.id == span.id and not resolved.keys:
            return "/".join(map(quote_key, tried))
    return quote_key(span.id)


def _step_above(run: Run, position: int | None) -> int | None:
    """The position of the step that contains a span. Walks up to the first span that was asked about before."""
    with _LOCK:
        spans, above = _ABOVE.pop(run.summary.ref, (run.spans, {}))
        if spans is not run.spans:
            above = {}
        _ABOVE[run.summary.ref] = run.spans, above
        while len(_ABOVE) > _MAX_RUNS:
            _ABOVE.popitem(last=False)
    walked: list[int] = []
    while position is not None and position not in above and not run.spans[position].is_step:
        walked.append(position)
        position = run.parent(position)
    step = position if position is None or run.spans[position].is_step else above[position]
    above.update(dict.fromkeys(walked, step))
    return step


def _numbered(run: Run) -> Counter[int]:
    """How many steps have each number. For a newer state of a run, counts its new steps only."""
    with _LOCK:
        steps, counts = _STEPS.pop(run.summary.ref, (Blocks(), Counter()))
        if len(steps) > len(run.steps) or next(steps.differing(run.steps), None) is not None:
            steps, counts = Blocks(), Counter()
        counts.update(step.number for step in run.steps[len(steps) :] if step.number is not None)
        _STEPS[run.summary.ref] = run.steps, counts
        while len(_STEPS) > _MAX_RUNS:
            _STEPS.popitem(last=False)
    return counts
