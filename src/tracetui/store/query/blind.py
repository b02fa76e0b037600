"""Queries of a reader who is not the owner of the traces: they match masked text, so no answer depends on a secret."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import asdict

from tracetui.model import RunRef, RunState, RunSummary, Span
from tracetui.model.masked import masked_span, masked_summary
from tracetui.redact import Redactor
from tracetui.store.facts import ContextUse, EffectFacts
from tracetui.store.query.run_keys import Context


class MaskedFacts:
    """Masked summaries and effects of runs, each masked once. Thread-safe."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._runs: dict[RunRef, tuple[RunSummary, RunSummary]] = {}
        """Exact and masked."""
        self._effects: dict[RunRef, tuple[EffectFacts, EffectFacts]] = {}

    def masked(self, run: RunSummary) -> RunSummary:
        """A masked run; the same object if it has no secret."""
        known = self._runs.get(run.ref)
        if known is None or (run is not known[0] and run is not known[1]):
            known = self._runs[run.ref] = run, masked_summary(run, self.redactor)
        return known[1]

    def exact(self, run: RunSummary) -> RunSummary:
        """The run that `masked` made this one of; another run is exact."""
        exact, masked = self._runs.get(run.ref, (run, run))
        return exact if run is masked else run

    def span(self, span: Span) -> Span:
        """A masked header."""
        return masked_span(span, self.redactor)

    def effects(self, run: RunSummary, facts: EffectFacts) -> EffectFacts:
        """The masked effects of a run."""
        known = self._effects.get(run.ref)
        if known is None or known[0] is not facts:
            mask = self.redactor.header
            masked = EffectFacts(**{name: tuple(map(mask, texts)) for name, texts in asdict(facts).items()})
            known = self._effects[run.ref] = facts, masked
        return known[1]


class BlindContext:
    """A `Context` without secrets: the answers of another, masked."""

    def __init__(self, context: Context, masked: MaskedFacts) -> None:
        self._exact, self._masked, self._mask = context, masked, masked.redactor.header
        self.masked = masked.masked

    def verdict(self, run: RunSummary) -> str | None:
        return self._exact.verdict(self._masked.exact(run))

    def tags(self, run: RunSummary) -> Sequence[str]:
        return self._all_masked(self._exact.tags(self._masked.exact(run)))

    def has_tags(self) -> bool:
        return self._exact.has_tags()

    def note(self, run: RunSummary) -> str | None:
        return self._optional(self._exact.note(self._masked.exact(run)))

    def cause(self, run: RunSummary) -> Sequence[str]:
        return self._all_masked(self._exact.cause(self._masked.exact(run)))

    def relation(self, run: RunSummary) -> str | None:
        return self._optional(self._exact.relation(self._masked.exact(run)))

    def replayed(self, run: RunSummary) -> bool:
        return self._exact.replayed(self._masked.exact(run))

    def repeated(self, run: RunSummary) -> bool:
        return self._exact.repeated(self._masked.exact(run))

    def task(self, run: RunSummary) -> str | None:
        return self._optional(self._exact.task(self._masked.exact(run)))

    def state(self, run: RunSummary) -> RunState | None:
        return self._exact.state(self._masked.exact(run))

    def formats(self) -> Collection[str]:
        return self._exact.formats()

    def effects(self, run: RunSummary) -> EffectFacts:
        exact = self._masked.exact(run)
        return self._masked.effects(exact, self._exact.effects(exact))

    def context_use(self, run: RunSummary) -> ContextUse:
        return self._exact.context_use(self._masked.exact(run))

    def _all_masked(self, texts: Sequence[str]) -> Sequence[str]:
        return tuple(map(self._mask, texts))

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self._mask(text)
