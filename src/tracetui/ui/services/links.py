"""Links of the shown runs, and origins of values, found in threads."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracetui import masking
from tracetui.model import Body, Run, RunRef, RunSummary, Span
from tracetui.model.masked import masked_bodies
from tracetui.sources.base import LinkLost
from tracetui.store.store import OPEN_RUNS, Store
from tracetui.ui.services.pacing import rest_seconds

if TYPE_CHECKING:
    from tracetui.analysis.links import Origin, StepLink
    from tracetui.live.engine import Engine
    from tracetui.redact import Redactor


class LinkService:
    """Cache of the links of the last shown runs."""

    def __init__(self, store: Store, engine: Engine, changed: Callable[[], None]) -> None:
        """`changed` is called in the UI loop when links of a run were found."""
        self._store, self._engine, self._changed = store, engine, changed
        self._cache: OrderedDict[RunRef, tuple[Run, Sequence[StepLink]]] = OrderedDict()
        self.is_busy = False
        """Whether links are being found."""
        self._not_before = 0.0

    def links_of(self, run: Run) -> Sequence[StepLink]:
        """The links of this or an earlier state of a run; requests missing ones."""
        entry = self._cache.get(run.summary.ref)
        is_due = entry is None or (entry[0] is not run and time.monotonic() >= self._not_before)
        if is_due and run.complete and not self.is_busy:
            self.is_busy = True
            runs, redactor = [*self._store.runs.values()], masking.current()
            self._engine.run_in_background(lambda: self._find(run, runs, redactor))
        return () if entry is None else entry[1]

    def _find(self, run: Run, runs: Sequence[RunSummary], redactor: Redactor | None) -> Callable[[], None]:
        from tracetui.analysis.links import links_of, passed_trials, trial_links

        began = time.thread_time()
        links = links_of(self._at_rest(run))
        with suppress(LinkLost):  # the list says so
            passed = [self._engine.read(trial.ref) for trial in passed_trials(run.summary, runs)]
            links += trial_links(run, [masked_bodies(trial, redactor) if redactor else trial for trial in passed])
        seconds = rest_seconds(time.thread_time() - began)

        def finish() -> None:
            self.is_busy, self._not_before = False, time.monotonic() + seconds
            self._cache[run.summary.ref] = run, links
            self._cache.move_to_end(run.summary.ref)
            while len(self._cache) > OPEN_RUNS:
                self._cache.popitem(last=False)
            self._changed()

        return finish

    def find_origin(self, run: Run, span: str, value: str, show: Callable[[Origin], None]) -> None:
        """Find where a value of a step appears in the run, and call `show` in the UI loop."""

        def work() -> Callable[[], None]:
            from tracetui.analysis.links import origin_of

            return partial(show, origin_of(self._at_rest(run), span, value))

        self._engine.run_in_background(work)

    def _at_rest(self, run: Run) -> Run:
        """The run, whose bodies are loaded only while the app handles no key."""

        def load(span: Span) -> Body:
            self._engine.rest()
            return run.load(span)

        return replace(run, load=load)
