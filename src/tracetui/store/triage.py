"""The failures of a directory by what made them fail: a night's forty failed runs, and the four causes to look at."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

import msgspec

from tracetui.model import RunRef, RunSummary
from tracetui.store.relations import Relations, copies_of
from tracetui.store.signature import Key, Signature, names_of, signature_of


class Group(msgspec.Struct, frozen=True):
    """Failed runs with one signature.

    Of what a run took, the part of failed runs that it started is theirs: nothing is wasted twice, here or elsewhere.
    """

    signature: Signature
    id: str
    """``F-`` and four digits or more, so that no two listed groups share it."""
    runs: tuple[RunRef, ...]
    """All of them, newest first; also those that another run started."""
    first_seen: float | None
    """The earliest start, in UTC seconds since the epoch; None where no run says when it started."""
    last_seen: float | None
    agents: tuple[str, ...]
    wasted_ms: float | None
    """None where no run says how long it took."""
    wasted_tokens: int | None
    example: RunRef
    """The newest."""


def groups(runs: Iterable[RunSummary]) -> list[Group]:
    """The failed runs by signature, the biggest waste first: in time, then tokens, then number.

    The order of `runs` does not matter. Of runs whose deep pass is still to come, the signature may change. A run that
    is told several times failed once.
    """
    told = list(runs)
    copies = copies_of(told)
    known = [run for run in told if run.ref not in copies]
    alike: dict[Key, list[tuple[RunSummary, Signature]]] = {}
    for run in known:
        signature = signature_of(run)
        if signature is not None:
            alike.setdefault(signature.key, []).append((run, signature))
    waste = _waste(known, [run for same in alike.values() for run, _ in same])
    names = names_of([same[0][1].digest for same in alike.values()])
    made = [_group(name, same, waste) for name, same in zip(names, alike.values(), strict=True)]
    return sorted(made, key=_biggest_first)


def _biggest_first(group: Group) -> tuple[float, int, int, str]:
    return -(group.wasted_ms or 0.0), -(group.wasted_tokens or 0), -len(group.runs), group.signature.digest


Waste = tuple[float | None, int | None]
"""Milliseconds and tokens."""


def _group(name: str, same: list[tuple[RunSummary, Signature]], waste: dict[RunRef, Waste]) -> Group:
    same.sort(key=lambda one: (one[0].started_at is None, -(one[0].started_at or 0.0), one[0].ref.address))
    starts = [run.started_at for run, _ in same if run.started_at is not None]
    wasted = [waste[run.ref] for run, _ in same]
    times, tokens = [ms for ms, _ in wasted if ms is not None], [count for _, count in wasted if count is not None]
    return Group(
        signature=same[0][1],
        id=name,
        runs=tuple(run.ref for run, _ in same),
        first_seen=min(starts, default=None),
        last_seen=max(starts, default=None),
        agents=tuple(sorted({run.agent for run, _ in same if run.agent is not None})),
        wasted_ms=fsum(times) if times else None,
        wasted_tokens=sum(tokens) if tokens else None,
        example=same[0][0].ref,
    )


def _waste(known: list[RunSummary], failed: list[RunSummary]) -> dict[RunRef, Waste]:
    """What each failed run wasted itself."""
    spent = {run.ref: (run.duration_ms, run.usage.all_tokens if run.usage is not None else None) for run in failed}
    below: dict[RunRef, list[Waste]] = {}
    for ref, parent in _parents(known, failed).items():
        below.setdefault(parent, []).append(spent[ref])
    return spent | {ref: _less(spent[ref], theirs) for ref, theirs in below.items()}


def _less(spent: Waste, theirs: list[Waste]) -> Waste:
    ms, tokens = spent
    return (
        None if ms is None else max(0.0, ms - fsum(one or 0.0 for one, _ in theirs)),
        None if tokens is None else max(0, tokens - sum(one or 0 for _, one in theirs)),
    )


def _parents(known: list[RunSummary], failed: list[RunSummary]) -> dict[RunRef, RunRef]:
    """The nearest failed run above each failed one that another run started, where there is one."""
    refs = {run.ref for run in failed}
    involved = {run.ref: run for run in failed if run.parent is not None}
    started, named = [*involved], {run.parent for run in involved.values()}
    while named:
        above = [run for run in known if run.id in named and run.ref not in involved]
        involved |= {run.ref: run for run in above}
        named = {run.parent for run in above if run.parent is not None}
    relations = Relations(involved.values())
    found = {}
    for ref in started:
        seen, parent = {ref}, relations.parent(ref)
        while parent is not None and parent not in refs and parent not in seen:
            seen.add(parent)
            parent = relations.parent(parent)
        if parent in refs and parent != ref:
            found[ref] = parent
    return found
