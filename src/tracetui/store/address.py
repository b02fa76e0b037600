"""Addresses: how a run, a step, a span or a value in it is written in one word.

``PATH`` where a file holds one run, else ``PATH#RUN``; then ``/STEP``, ``/SPAN`` and the names of fields may follow:
``runs.db#wf-1/3/output/answer``. In RUN and in every part ``/``, ``#`` and ``%`` are percent-encoded; PATH is written
as it is. A bare run id, or a prefix of one, stands for the address of the run that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from tracetui.errors import NothingReadable, UsageError
from tracetui.model import Run, RunSummary, Span, quote_key
from tracetui.model.part import is_part, part_of

CANDIDATES_SHOWN: Final = 12


class Address(msgspec.Struct, frozen=True):
    """An address taken apart: the file, the run's key in it (None: not said) and what is wanted of the run."""

    path: str
    key: str | None = None
    parts: tuple[str, ...] = ()


class Target(msgspec.Struct, frozen=True):
    """What the parts of an address lead to: the whole run, one span of it, or a value in either of them."""

    span: Span | None = None
    keys: tuple[str, ...] = ()


def parse(text: str, is_file: Callable[[str], bool]) -> Address | None:
    """`text` as an address of a file that exists, the longest possible path first; None if there is no such file."""
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
    for place in range(len(text) - 1, 0, -1):
        if text[place] in "/#":
            yield place


def pick(runs: Sequence[RunSummary], key: str | None, path: str) -> RunSummary:
    """The run of the file `path` with that key or id. Raises `NothingReadable` or `UsageError`."""
    if not runs:
        raise NothingReadable(f"no run could be read in {path}; `tracetui doctor` says why")
    if key is None:
        return runs[0] if len(runs) == 1 else _only(runs, f"{path} holds {len(runs)} runs")
    exact = [run for run in runs if run.ref.key == key] or [run for run in runs if run.id == key]
    return _match(exact, runs, key, path)


def find(text: str, runs: Iterable[RunSummary], place: str) -> tuple[RunSummary, tuple[str, ...]]:
    """The run whose id is `text` or begins with it, and the parts that follow the id.

    Exact beats prefix. Raises `NothingReadable` if there is none under `place`, `UsageError` if there are several.
    """
    runs = list(runs)
    by_id: dict[str, list[RunSummary]] = {}
    for run in runs:
        by_id.setdefault(run.id, []).append(run)
    for end in _ends(text):
        exact = by_id.get(text[:end]) or by_id.get(unquote(text[:end]))
        if exact:
            parts = tuple(unquote(part) for part in text[end:].split("/") if part)
            return _match(exact, runs, text[:end], place), parts
    head, *parts_after = text.split("/")
    return _match([], runs, unquote(head), place), tuple(unquote(part) for part in parts_after if part)


def _match(exact: Sequence[RunSummary], runs: Iterable[RunSummary], wanted: str, place: str) -> RunSummary:
    found = exact or [run for run in runs if wanted and run.id.startswith(wanted)]
    if not found:
        raise NothingReadable(f"no run {wanted!r} in {place}; `tracetui ls` lists what is there")
    return found[0] if len(found) == 1 else _only(found, f"{wanted!r} is ambiguous")


def _only(runs: Sequence[RunSummary], problem: str) -> RunSummary:
    shown = "".join(f"\n  {run.ref.address}" for run in runs[:CANDIDATES_SHOWN])
    more = len(runs) - CANDIDATES_SHOWN
    raise UsageError(f"{problem}; name one of them:{shown}" + (f"\n  … and {more} more" if more > 0 else ""))


def target(run: Run, parts: Sequence[str]) -> Target:
    """What the parts lead to: ``STEP``, then spans by id or name, then names of fields.

    Raises `UsageError`, with the candidates, if several spans are meant.
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
    """Position of the span that the first of `parts` names below `position` (None: in the run), and how many it took.

    Several steps may have one number (nodes that ran side by side): the next part then says which.
    """
    part = parts[0]
    if position is None and (steps := _steps(run, part)):
        if len(steps) == 1:
            return steps[0], 1
        named = [i for i in steps if len(parts) > 1 and parts[1] in (run.spans[i].id, run.spans[i].name)]
        return _one(run, named or steps, f"{len(steps)} spans are step {part}"), 2
    if position is not None and is_part(run.spans[position]) and part.isdecimal():
        numbered = [step.span for step in part_of(run, position).steps if str(step.number) == part]
        if len(numbered) == 1:
            return run.index[numbered[0]], 1
    known = run.index.get(part)
    start, end = (0, len(run.spans)) if position is None else (position + 1, position + run.sizes[position])
    if known is not None and start <= known < end:
        return known, 1
    tops = run.children(position) if position is not None else [i for i, depth in enumerate(run.depths) if depth == 0]
    called = [i for i in tops if run.spans[i].name == part]
    return (_one(run, called, f"{len(called)} spans are called {part!r}"), 1) if called else (None, 0)


def _steps(run: Run, part: str) -> list[int]:
    if not part.isdecimal() or len(part) > 18:
        return []
    number = int(part)
    numbers = [step.number for step in run.steps]
    if not any(one is not None for one in numbers):  # the trace does not number its steps: they are counted from 1
        numbers = [*range(1, len(numbers) + 1)]
    return [run.index[step.span] for step, one in zip(run.steps, numbers, strict=True) if one == number]


def _one(run: Run, positions: Sequence[int], problem: str) -> int:
    if len(positions) > 1:
        shown = "".join(f"\n  {quote_key(run.spans[i].id)}  {run.spans[i].name}" for i in positions[:CANDIDATES_SHOWN])
        raise UsageError(f"{problem}; name one of them by its id:{shown}")
    return positions[0]


def follow(value: Any, keys: Sequence[str], what: str) -> Any:
    """The value that `keys` lead to: names of fields, positions in lists. Raises `UsageError` where there is none."""
    for done, key in enumerate(keys):
        if isinstance(value, msgspec.Struct):
            value = {name: getattr(value, name) for name in value.__struct_fields__}
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            raise UsageError(f"there is no {'/'.join(keys[: done + 1])!r} in {what}; {_choices(value)}")
    return value


def _choices(value: Any) -> str:
    if isinstance(value, dict) and value:
        names = ", ".join(map(str, list(value)[:CANDIDATES_SHOWN]))
        return f"there is: {names}"
    if isinstance(value, list | tuple) and value:
        return f"there are items 0 to {len(value) - 1}"
    return "it goes no deeper"
