"""Addresses of runs, steps, spans and values.

``PATH`` if the file contains one run, else ``PATH#RUN``; ``/STEP``, ``/SPAN`` and field names may follow:
``runs.db#wf-1/3/output/answer``. In RUN and the parts after it, ``/``, ``#`` and ``%`` are percent-encoded; PATH is
literal. A run id, or a prefix of one, is short for the address of its run.
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
    found = exact or [run for run in runs if wanted and run.id.startswith(wanted)]
    if not found:
        raise NothingReadable(f"no run {wanted!r} in {where}; `tracetui ls` lists the runs")
    return found[0] if len(found) == 1 else _only(found, f"{wanted!r} is ambiguous")


def _only(runs: Sequence[RunSummary], problem: str) -> RunSummary:
    shown = "".join(f"\n  {run.ref.address}" for run in runs[:CANDIDATES_SHOWN])
    more = len(runs) - CANDIDATES_SHOWN
    raise UsageError(f"{problem}; choose one:{shown}" + (f"\n  … and {more} more" if more > 0 else ""))


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
        return _one(run, named or steps, f"{len(steps)} spans are step {part}"), 2
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
    return (_one(run, called, f"{len(called)} spans are called {part!r}"), 1) if called else (None, 0)


def _steps(run: Run, part: str) -> list[int]:
    if not part.isdecimal() or len(part) > 18:
        return []
    number = int(part)
    numbers = [step.number for step in run.steps]
    if not any(one is not None for one in numbers):  # unnumbered steps count from 1
        numbers = [*range(1, len(numbers) + 1)]
    return [run.index[step.span] for step, one in zip(run.steps, numbers, strict=True) if one == number]


def _one(run: Run, positions: Sequence[int], problem: str) -> int:
    if len(positions) > 1:
        shown = "".join(f"\n  {quote_key(run.spans[i].id)}  {run.spans[i].name}" for i in positions[:CANDIDATES_SHOWN])
        raise UsageError(f"{problem}; choose one by id:{shown}")
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
