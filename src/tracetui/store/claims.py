"""Which run counts a response or call that several runs have: the first that was written.

Runs are compared by the tables of their summaries (`tracetui.model.claims`), not by folders or names. A summary is
*gross*: it depends on the files of its run only. `Claims.net` takes off what other runs count, and names them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from tracetui.model import ModelUsage, Operation, Run, RunRef, RunSummary, Span, Status, Usage
from tracetui.model.claims import Claim, ClaimKeys, as_copy, is_among, unpack_claims, unpack_keys
from tracetui.model.tally import size_class
from tracetui.store.relations import place_of

K = TypeVar("K", int, str)

FORK: Final = "fork"
COPY: Final = "copy"
_NOTHING: Final = ClaimKeys()
_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name not in ("cost_usd", "output_at_least"))
_COUNTED: Final = ("errors", "llm_calls", "tool_calls")
_SLICES: Final = 8
_LEAST: Final = 1e-9
"""US dollars below which a difference of costs is rounding."""


class Share(NamedTuple):
    """What other runs count of one run. It doesn't change with the claims that it was made from."""

    copied: Collection[int] = ()
    """The keys of those claims."""
    fields: Mapping[str, Any] = MappingProxyType({})
    """Fields of the net summary: where the claims count, and the run of which the beginning was copied."""
    whole: bool = False
    """Nothing of the run counts: it is a copy without claims."""

    def net(self, run: RunSummary) -> RunSummary:
        """The net summary for the gross one `run`; `run` itself where nothing changes."""
        if self.whole:
            return run.replace(**{name: None if getattr(run, name) is None else 0 for name in _COUNTED}, **self.fields)
        fields = {**_deduction(run, self.copied), **self.fields} if self.copied and run.claims else self.fields
        return run.replace(**fields) if fields else run

    def mark(self, run: Run) -> Run:
        """The run with its net summary, and the spans that other runs count as copies; `run` is gross."""
        if self.whole:
            copies = {i: as_copy(span) for i, span in enumerate(run.spans) if _counts(span)}
        else:
            spans = enumerate(run.spans if self.copied else ())
            copies = {i: as_copy(span) for i, span in spans if is_among(span, self.copied)}
        summary = self.net(run.summary)
        if not copies and summary is run.summary:
            return run
        marked = replace(run, summary=summary)
        return replace(marked, spans=run.spans.replaced(copies), gross=run.spans) if copies else marked


Shares = Mapping[RunRef, Share]
"""Shares by run, to be used in another thread."""
NO_SHARES: Final[Shares] = MappingProxyType({})


class Claims:
    """The claims of a set of runs. Adding or removing a run costs time for its own claims, in any order of runs; a new
    version with the same table costs time for the claims that others have too. Runs given at the beginning are compared
    as a whole, which costs less; they are indexed when one more is added or removed.

    Not thread-safe.
    """

    def __init__(self, runs: Iterable[RunSummary] = ()) -> None:
        self._runs: dict[RunRef, RunSummary] = {}
        """The gross summaries of runs with a table or an identity."""
        self._holders: dict[int, RunRef] = {}
        """One run that has the claim: the only one, unless the claim is in `_shared`; empty before the first change."""
        self._is_indexed = False
        self._shared: dict[int, list[RunRef]] = {}
        """All runs that have the claim, if there are several."""
        self._sharing: dict[RunRef, set[int]] = {}
        """The claims of a run that others have too."""
        self._owner_of: dict[int, RunRef] = {}
        """The run that counts the claim, as far as it was asked for."""
        self._orders: dict[RunRef, tuple[Any, ...]] = {}
        """Sort keys of runs, as far as they were asked for."""
        self._origins: dict[int, list[RunRef]] = {}
        """Runs by their first record."""
        self._origin_of: dict[RunRef, int | None] = {}
        """The first record of a run with a table."""
        self._identities: dict[str, list[RunRef]] = {}
        """Runs by identity."""
        self._related: set[RunRef] = set()
        """Runs that have, or had, something in common with others."""
        self._changed: set[RunRef] = set()
        self._changed_keys: set[int] = set()
        """Claims of which all runs that share them have changed."""
        unique = {run.ref: run for run in runs if run.claims or run.head.identity is not None}
        tables = {ref: self._enroll(run) for ref, run in unique.items()}
        if repeated := _repeated([table.keys for table in tables.values()]):
            groups: dict[int, list[RunRef]] = {key: [] for key in repeated}
            for ref, table in tables.items():
                for key in repeated.intersection(table.keys):
                    groups[key].append(ref)
            for key, group in groups.items():
                if len(group) > 1:
                    self._share(key, group)
        self._changed.clear()

    def add(self, run: RunSummary) -> None:
        """Add a run, or a new version of it; `run` is gross."""
        ref, identity, before = run.ref, run.head.identity, self._runs.get(run.ref)
        if before is not None:
            if before.claims == run.claims and before.head.identity == identity:
                self._runs[ref] = run
                self._orders.pop(ref, None)
                if order_of(before) != order_of(run):
                    self._changed |= self.relatives(ref)
                    for key in self._sharing.get(ref, ()):
                        self._owner_of.pop(key, None)
                return
            self.remove(ref)
        if not run.claims and identity is None:
            return
        holders = self._indexed()
        keys = dict.fromkeys(self._enroll(run).keys, ref)
        for key in holders.keys() & keys.keys():
            if (group := self._shared.get(key)) is None:
                self._share(key, [holders[key], ref])
            else:
                group.append(ref)
                self._sharing.setdefault(ref, set()).add(key)
                self._owner_of.pop(key, None)
            self._related.add(ref)
            self._changed_keys.add(key)
            del keys[key]
        holders.update(keys)

    def _enroll(self, run: RunSummary) -> ClaimKeys:
        """Enter a run without its claims, which are returned."""
        table = unpack_keys(run.claims) if run.claims else _NOTHING
        self._runs[run.ref] = run
        self._origin_of[run.ref] = table.origin
        self._join(self._identities, run.head.identity, run.ref)
        self._join(self._origins, table.origin, run.ref)
        return table

    def _share(self, key: int, group: list[RunRef]) -> None:
        """Enter a claim that these runs have, and no others."""
        self._shared[key] = group
        self._related.update(group)
        for ref in group:
            self._sharing.setdefault(ref, set()).add(key)

    def _indexed(self) -> dict[int, RunRef]:
        """One run for each claim."""
        if not self._is_indexed:
            self._is_indexed = True
            for ref, run in self._runs.items():
                if run.claims:
                    self._holders.update(dict.fromkeys(unpack_keys(run.claims).keys, ref))
        return self._holders

    def remove(self, ref: RunRef) -> None:
        """Remove a run: its claims pass on to the next run that has them."""
        if ref not in self._runs:
            return
        holders, run = self._indexed(), self._runs.pop(ref)
        self._orders.pop(ref, None)
        self._leave(self._identities, run.head.identity, ref)
        table = unpack_keys(run.claims) if run.claims else _NOTHING
        self._leave(self._origins, self._origin_of.pop(ref), ref)
        sharing = self._sharing.pop(ref, set())
        for key in table.keys:
            if key not in sharing:
                holders.pop(key, None)
        for key in sharing:
            group = self._shared[key]
            group.remove(ref)
            self._owner_of.pop(key, None)
            self._changed_keys.add(key)
            holders[key] = group[0]
            if len(group) == 1:
                del self._shared[key]
                self._sharing[group[0]].discard(key)
                self._changed.add(group[0])
        self._changed.discard(ref)

    def _join(self, groups: dict[K, list[RunRef]], key: K | None, ref: RunRef) -> None:
        if key is not None:
            group = groups.setdefault(key, [])
            group.append(ref)
            if len(group) > 1:
                self._related.update(group)
                self._changed.update(group)

    def _leave(self, groups: dict[K, list[RunRef]], key: K | None, ref: RunRef) -> None:
        if key is not None:
            group = groups[key]
            group.remove(ref)
            self._changed.update(group)
            if not group:
                del groups[key]

    @property
    def runs(self) -> Collection[RunSummary]:
        """The gross summaries of all runs that were added and may count elsewhere."""
        return self._runs.values()

    def take_changed(self) -> list[RunSummary]:
        """The gross summaries of runs of which `net` may have changed since the last call."""
        changed = self._changed.union(*(self._shared.get(key, ()) for key in self._changed_keys))
        self._changed, self._changed_keys = set(), set()
        return [self._runs[ref] for ref in changed if ref in self._runs]

    def gross(self, ref: RunRef) -> RunSummary | None:
        """The summary of a run as it was added; None without a table and an identity."""
        return self._runs.get(ref)

    def net(self, run: RunSummary) -> RunSummary:
        """The summary of an added run with its own counts and relation; `run` itself where nothing changes."""
        return self.share(run.ref).net(run) if run.ref in self._related else run

    def mark(self, run: Run) -> Run:
        """The run with its net summary, and the spans that other runs count as copies."""
        return self.share(run.summary.ref).mark(run)

    def share(self, ref: RunRef) -> Share:
        """What other runs count of a run at this time."""
        run = self._runs.get(ref) if ref in self._related else None
        if run is None:
            return Share()
        if (first := self._same_without_claims(run)) is not None:
            return Share(fields={"usage": None, "model_usage": (), "counts_in": first.address}, whole=True)
        owners = self._owners(ref)
        original = self._original(run, owners)
        fields: dict[str, Any] = {"counts_in": self._main_owner(owners).address} if owners else {}
        if original is not None:
            is_copy = bool(owners) and len(owners) == len({*unpack_keys(run.claims).keys})
            fields |= {
                "replay_of": original.id,
                "replay_of_path": original.ref.path,
                "relation": COPY if is_copy else FORK,
            }
        return Share(owners.keys(), fields)

    def shares(self, refs: Iterable[RunRef]) -> Shares:
        """What other runs count of these at this time."""
        return {ref: self.share(ref) for ref in refs}

    def _same_without_claims(self, run: RunSummary) -> RunRef | None:
        """The run with the identity of `run` that counts; None if it is `run`, or if the claims of `run` decide."""
        group = self._identities.get(run.head.identity or "", ())
        if len(group) < 2 or (run.claims and unpack_keys(run.claims).packed):
            return None
        first = min(group, key=place_of)
        return None if first == run.ref else first

    def _owners(self, ref: RunRef) -> dict[int, RunRef]:
        """By the keys of the claims of `ref` that other runs count, which run does."""
        keys = self._sharing.get(ref)
        if not keys:
            return {}
        owners: dict[int, RunRef] = {}
        for key in keys:
            if (owner := self._owner_of.get(key)) is None:
                owner = self._owner_of[key] = min(self._shared[key], key=self._order)
            if owner != ref:
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

    def _family(self, ref: RunRef) -> list[RunRef]:
        """The runs with the first record of a run, with the run itself; empty without a first record."""
        origin = self._origin_of.get(ref)
        return self._origins[origin] if origin is not None else []

    def relatives(self, ref: RunRef) -> set[RunRef]:
        """The runs that have a claim or the first record in common with a run, with the run itself if there are any."""
        if ref not in self._runs:
            return set()
        groups = [self._shared[key] for key in self._sharing.get(ref, ())]
        groups += [self._family(ref), self._identities.get(self._runs[ref].head.identity or "", [])]
        return set[RunRef]().union(*(group for group in groups if len(group) > 1))

    def _main_owner(self, owners: dict[int, RunRef]) -> RunRef:
        """The run that counts most of these claims; of several the first."""
        counts = Counter(owners.values())
        return min(counts, key=lambda ref: (-counts[ref], self._order(ref)))

    def _order(self, ref: RunRef) -> tuple[Any, ...]:
        order = self._orders.get(ref)
        if order is None:
            order = self._orders[ref] = order_of(self._runs[ref])
        return order


def _counts(span: Span) -> bool:
    """Whether a span is part of the counts of its run, were this no copy."""
    failed = span.status is Status.ERROR
    return failed or span.usage is not None or span.operation in (Operation.CHAT, Operation.EXECUTE_TOOL)


def _repeated(tables: Sequence[array[int]]) -> set[int]:
    """The keys that several of these tables have, or one has twice. Slices of the tables, which are sorted, are
    compared one after the other: small sets stay in the processor's cache.
    """
    repeated: set[int] = set()
    begins = [0] * len(tables)
    for number in range(1, _SLICES + 1):
        bound = (number << 64) // _SLICES
        keys = array("Q")
        for index, table in enumerate(tables):
            end = bisect_left(table, bound, begins[index]) if number < _SLICES else len(table)
            keys += table[begins[index] : end]
            begins[index] = end
        unique = set(keys)
        if len(unique) < len(keys):
            repeated.update(key for key, count in Counter(keys).items() if count > 1)
    return repeated


def order_of(run: RunSummary) -> tuple[Any, ...]:
    """Sort key: the run that counts a claim before others that have it. Forks and sub-agents come after their original;
    of runs that began at the same time, the one that ended first was copied.
    """
    head, start = run.head, inf if run.started_at is None else run.started_at
    depends = head.replay_of is not None or head.replay_of_path is not None or run.shared.parent is not None
    return depends, start, start + (run.duration_ms or 0.0) / 1000, run.ref.path, run.ref


def _deduction(run: RunSummary, owners: Collection[int]) -> dict[str, Any]:
    """The fields of a summary without the claims that others count."""
    copied = [claim for claim in unpack_claims(run.claims).claims() if claim.key in owners]
    operations = Counter(claim.kind.operation for claim in copied)
    less = {
        "errors": sum(claim.kind.failed for claim in copied),
        "llm_calls": operations[Operation.CHAT],
        "tool_calls": operations[Operation.EXECUTE_TOOL],
    }
    used = sum((claim.usage for claim in copied if claim.usage is not None), Usage())
    fields: dict[str, Any] = {
        name: max(0, count - less[name]) for name in _COUNTED if (count := getattr(run, name)) is not None
    }
    if run.usage is not None and used:
        fields["usage"] = _minus(run.usage, used)
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
