"""Which run counts a response or call that several runs have: the first that was written.

Runs are compared by the tables of their summaries (`tracetui.model.claims`), not by folders or names. A summary is
*gross*: it depends on the files of its run only. `Claims.net` takes off what other runs count, and names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from tracetui.model import ModelUsage, Operation, Run, RunRef, RunSummary, Usage
from tracetui.model.claims import Claim, key_of, mark_copy, unpack_claims, unpack_keys
from tracetui.model.tally import size_class

FORK: Final = "fork"
COPY: Final = "copy"
_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name not in ("cost_usd", "output_at_least"))
_LEAST: Final = 1e-9
"""US dollars below which a difference of costs is rounding."""


class Claims:
    """The claims of a set of runs. Adding or removing a run costs time for its own claims, in any order of runs; a new
    version with the same table costs time for the claims that others have too.

    Not thread-safe.
    """

    def __init__(self, runs: Iterable[RunSummary] = ()) -> None:
        self._runs: dict[RunRef, RunSummary] = {}
        """The gross summaries of runs with a table."""
        self._holders: dict[int, RunRef] = {}
        """One run that has the claim: the only one, unless the claim is in `_shared`."""
        self._shared: dict[int, list[RunRef]] = {}
        """All runs that have the claim, if there are several."""
        self._sharing: dict[RunRef, set[int]] = {}
        """The claims of a run that others have too."""
        self._origins: dict[int, list[RunRef]] = {}
        """Runs by their first record."""
        self._origin_of: dict[RunRef, int | None] = {}
        """The first record of a run with a table."""
        self._changed: set[RunRef] = set()
        for run in runs:
            self.add(run)
        self._changed.clear()

    def add(self, run: RunSummary) -> None:
        """Add a run, or a new version of it; `run` is gross."""
        ref, before = run.ref, self._runs.get(run.ref)
        if before is not None:
            if before.claims == run.claims:
                self._runs[ref] = run
                if order_of(before) != order_of(run):
                    self._changed |= self._relatives(ref)
                return
            self.remove(ref)
        if not run.claims:
            return
        self._runs[ref] = run
        table = unpack_keys(run.claims)
        self._origin_of[ref] = table.origin
        if table.origin is not None:
            family = self._origins.setdefault(table.origin, [])
            family.append(ref)
            if len(family) > 1:
                self._changed.update(family)
        holders = self._holders
        keys = dict.fromkeys(table.keys, ref)
        for key in holders.keys() & keys.keys():
            group = self._shared.get(key)
            if group is None:
                first = holders[key]
                group = self._shared[key] = [first]
                self._sharing.setdefault(first, set()).add(key)
            group.append(ref)
            self._sharing.setdefault(ref, set()).add(key)
            self._changed.update(group)
            del keys[key]
        holders.update(keys)

    def remove(self, ref: RunRef) -> None:
        """Remove a run: its claims pass on to the next run that has them."""
        run = self._runs.pop(ref, None)
        if run is None:
            return
        table = unpack_keys(run.claims)
        del self._origin_of[ref]
        if table.origin is not None:
            family = self._origins[table.origin]
            family.remove(ref)
            self._changed.update(family)
            if not family:
                del self._origins[table.origin]
        sharing = self._sharing.pop(ref, set())
        for key in table.keys:
            if key not in sharing:
                self._holders.pop(key, None)
        for key in sharing:
            group = self._shared[key]
            group.remove(ref)
            self._changed.update(group)
            self._holders[key] = group[0]
            if len(group) == 1:
                del self._shared[key]
                self._sharing[group[0]].discard(key)
        self._changed.discard(ref)

    @property
    def runs(self) -> Collection[RunSummary]:
        """The gross summaries of all runs with a table."""
        return self._runs.values()

    def take_changed(self) -> list[RunSummary]:
        """The gross summaries of runs of which `net` may have changed since the last call."""
        changed, self._changed = self._changed, set()
        return [self._runs[ref] for ref in changed if ref in self._runs]

    def gross(self, ref: RunRef) -> RunSummary | None:
        """The summary of a run with a table as it was added."""
        return self._runs.get(ref)

    def copied(self, ref: RunRef) -> Collection[int]:
        """The keys of the claims of `ref` that other runs count."""
        return self._owners(ref).keys()

    def net(self, run: RunSummary) -> RunSummary:
        """The summary of an added run with its own usage, calls and relation; `run` itself where nothing changes."""
        owners = self._owners(run.ref) if run.claims else {}  # a run read from its beginning again may have none yet
        original = self._original(run, owners)
        if not owners and original is None:
            return run
        fields: dict[str, Any] = {}
        if owners:
            fields = {**_deduction(run, owners), "counts_in": self._main_owner(owners).address}
        if original is not None:
            is_copy = bool(owners) and len(owners) == len({*unpack_keys(run.claims).keys})
            fields |= {
                "replay_of": original.id,
                "replay_of_path": original.ref.path,
                "relation": COPY if is_copy else FORK,
            }
        return run.replace(**fields)

    def mark(self, run: Run) -> Run:
        """The run with its net summary, and the spans that other runs count as copies."""
        summary = self.net(run.summary) if run.summary.ref in self._runs else run.summary
        return marked(run, self.copied(run.summary.ref), summary)

    def _owners(self, ref: RunRef) -> dict[int, RunRef]:
        """By the keys of the claims of `ref` that other runs count, which run does."""
        keys = self._sharing.get(ref)
        if not keys:
            return {}
        orders: dict[RunRef, tuple[Any, ...]] = {}
        owners: dict[int, RunRef] = {}
        for key in keys:
            group = self._shared[key]
            for one in group:
                if one not in orders:
                    orders[one] = self._order(one)
            if (owner := min(group, key=orders.__getitem__)) != ref:
                owners[key] = owner
        return owners

    def _original(self, run: RunSummary, owners: dict[int, RunRef]) -> RunSummary | None:
        """The run of which `run` copied its beginning, unless its trace names it or it is a part of another."""
        head = run.head
        if head.replay_of is not None or head.replay_of_path is not None or run.shared.parent is not None:
            return None
        family = self._family(run.ref)
        first = min(family, key=self._order) if len(family) > 1 else None
        if first is None or first == run.ref:
            first = self._main_owner(owners) if owners else None
        return None if first is None else self._runs[first]

    def _family(self, ref: RunRef) -> Sequence[RunRef]:
        """The runs with the first record of a run, with the run itself; empty without a first record."""
        origin = self._origin_of.get(ref)
        return self._origins[origin] if origin is not None else ()

    def _relatives(self, ref: RunRef) -> set[RunRef]:
        """The runs that have a claim or the first record in common with a run, with the run itself if there are any."""
        groups = [self._shared[key] for key in self._sharing.get(ref, ())]
        family = self._family(ref)
        return set[RunRef]().union(*groups, family if len(family) > 1 else ())

    def _main_owner(self, owners: dict[int, RunRef]) -> RunRef:
        """The run that counts most of these claims; of several the first."""
        counts = Counter(owners.values())
        return min(counts, key=lambda ref: (-counts[ref], self._order(ref)))

    def _order(self, ref: RunRef) -> tuple[Any, ...]:
        return order_of(self._runs[ref])


def order_of(run: RunSummary) -> tuple[Any, ...]:
    """Sort key: the run that counts a claim before others that have it. Forks and sub-agents come after their original;
    of runs that began at the same time, the one that ended first was copied.
    """
    head, start = run.head, inf if run.started_at is None else run.started_at
    depends = head.replay_of is not None or head.replay_of_path is not None or run.shared.parent is not None
    return depends, start, start + (run.duration_ms or 0.0) / 1000, run.ref.path, run.ref


def marked(run: Run, copied: Collection[int], summary: RunSummary | None = None) -> Run:
    """The run with the spans of the keys `copied` as copies, which don't count; `summary` is its net one, if known."""
    found = {
        i: span
        for i, before in enumerate(run.spans if copied else ())
        if before.claim is not None and (span := mark_copy(before, copied)) is not before
    }
    if summary is None:
        summary = run.summary.replace(**_deduction(run.summary, copied)) if found else run.summary
    if not found and summary is run.summary:
        return run
    return replace(run, spans=run.spans.replaced(found) if found else run.spans, summary=summary)


def families(runs: Iterable[RunSummary]) -> set[RunRef]:
    """The runs that have the first record in common with another."""
    by_origin: dict[int, list[RunRef]] = {}
    for run in runs:
        if run.claims and (origin := unpack_keys(run.claims).origin) is not None:
            by_origin.setdefault(origin, []).append(run.ref)
    return {ref for family in by_origin.values() if len(family) > 1 for ref in family}


def keys_in(run: Run) -> set[int]:
    """The keys of the claims of a run."""
    return {key for span in run.spans if span.claim is not None and (key := key_of(span)) is not None}


def _deduction(run: RunSummary, owners: Collection[int]) -> dict[str, Any]:
    """The fields of a summary without the claims that others count."""
    copied = [claim for claim in unpack_claims(run.claims).claims() if claim.key in owners]
    operations = Counter(claim.kind.operation for claim in copied)
    used = sum((claim.usage for claim in copied if claim.usage is not None), Usage())
    fields: dict[str, Any] = {}
    if run.usage is not None and used:
        fields["usage"] = _minus(run.usage, used)
    if run.llm_calls is not None:
        fields["llm_calls"] = max(0, run.llm_calls - operations[Operation.CHAT])
    if run.tool_calls is not None:
        fields["tool_calls"] = max(0, run.tool_calls - operations[Operation.EXECUTE_TOOL])
    if run.model_usage:
        fields["model_usage"] = _by_model(run.model_usage, copied)
    return fields


def _by_model(usages: tuple[ModelUsage, ...], copied: Iterable[Claim]) -> tuple[ModelUsage, ...]:
    """Usage by price, in the given order, without the claims `copied`."""
    gone: dict[tuple[str | None, int, str | None], list[Usage]] = {}
    for claim in copied:
        if claim.usage is not None:
            gone.setdefault((claim.kind.model, size_class(claim.usage), claim.kind.tier), []).append(claim.usage)
    rest = []
    for part in usages:
        copies = gone.get((part.model, part.size, part.tier), ())
        usage = _minus(part.usage, sum(copies, Usage())) if copies else part.usage
        if usage is not None and part.calls > len(copies):
            rest.append(replace(part, calls=part.calls - len(copies), usage=usage))
    return tuple(rest)


def _minus(whole: Usage, part: Usage) -> Usage | None:
    """What is left of usage; None where nothing is.

    A cost that the trace records for the whole run goes: the copied part of it is unknown.
    """
    *counts, cost, at_least = (getattr(whole, name) for name in (*_COUNTS, "cost_usd", "output_at_least"))
    taken = [getattr(part, name) or 0 for name in _COUNTS]
    rest = [None if count is None else max(0, count - less) for count, less in zip(counts, taken, strict=True)]
    if cost is not None:
        cost = None if part.cost_usd is None else max(0.0, cost - part.cost_usd)
    if not any(rest) and (cost is None or cost < _LEAST):
        return None
    return Usage(**dict(zip(_COUNTS, rest, strict=True)), cost_usd=cost, output_at_least=at_least)
