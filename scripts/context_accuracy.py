"""Measure the context ledger: ``python scripts/context_accuracy.py DIR…`` prints the table by format of
docs/context.md for the traces below these folders.

Nobody knows the true tokens of a text, but three sums are recorded: the growth of a *step* (all that entered between
two calls of a chain), the output of a call, and, where both are, what the other texts of the step come to. Estimates
are compared with these, in percent of the recorded number. Left out are steps from which something left the context,
and sums of at most 200 tokens, where the frames of messages weigh more than texts.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final

from tracetui.analysis.context import Call, Chain, Ledger, ModelCall
from tracetui.analysis.context_feed import ledger_of
from tracetui.formats import registry
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.sources.local import LocalSource

LEAST: Final = 200
"""Tokens that a recorded sum must exceed."""
HEADING: Final = """\
format | runs | calls | close | not recorded | a step | texts beside a recorded answer | an answer
---|---|---|---|---|---|---|---"""


class Measures:
    """What the runs of one format came to."""

    def __init__(self) -> None:
        self.runs = self.calls = self.closing = self.input = self.unexplained = 0
        self.steps, self.texts, self.answers = list[float](), list[float](), list[float]()

    def add(self, ledger: Ledger) -> None:
        """Count the calls of a run."""
        self.runs += 1
        for call in ledger.calls:
            self.calls += 1
            self.closing += sum(call.by.values()) == call.input
            self.input += call.input
            self.unexplained += call.by.get("not recorded", 0) + call.by.get("after compaction", 0)
            if call.growth < call.input and not call.note and not call.removed:
                self._compare(call)

    def _compare(self, call: Call) -> None:
        exact = sum(arrival.tokens for arrival in call.arrivals if arrival.exact)
        others, recorded = call.estimated - exact, call.growth - exact
        if call.growth > LEAST and call.estimated:
            self.steps.append(abs(call.estimated - call.growth) / call.growth)
        if exact and recorded > LEAST and others > 0:
            self.texts.append(abs(others - recorded) / recorded)

    def row(self, name: str) -> str:
        """A row of the table."""
        share = f"{100 * self.unexplained / self.input:.1f} %" if self.input else "—"
        cells = (name, self.runs, self.calls, self.closing, share, *map(errors, (self.steps, self.texts, self.answers)))
        return " | ".join(map(str, cells))


def errors(values: Sequence[float]) -> str:
    """``5.4, 24 % of 120``: the median, 9 of 10, and how many were compared."""
    if len(values) < 2:
        return "—"
    return f"{100 * median(values):.0f}, {100 * quantiles(values, n=10, method='inclusive')[8]:.0f} % of {len(values)}"


def main(folders: Sequence[str]) -> None:
    """Print the table."""
    source, by_format = LocalSource(), defaultdict[str, Measures](Measures)
    take_call, current = Chain.call, Measures()

    def compare_answer(chain: Chain) -> None:
        if chain.output and chain.output > LEAST and chain.sizes:
            current.answers.append(abs(sum(chain.sizes) - chain.output) / chain.output)

    def measured(chain: Chain, call: ModelCall) -> Call:
        compare_answer(chain)
        return take_call(chain, call)

    Chain.call = measured  # type: ignore[method-assign, assignment]
    seen = set[str]()
    for file in scan(source, folders, deep=True):
        for run in file.runs:
            if run.identity is not None and run.identity in seen:
                continue
            seen |= {run.identity} if run.identity is not None else set()
            current = by_format[run.ref.format]
            current.add(ledger := ledger_of(read_run(source, run.ref)))
            for chain in ledger._chains.values():
                compare_answer(chain)
    print(HEADING)
    for name, measures in sorted(by_format.items(), key=lambda item: (-item[1].calls, item[0])):
        if measures.calls:
            print(measures.row(registry.load(name).title))


if __name__ == "__main__":
    main(sys.argv[1:])
