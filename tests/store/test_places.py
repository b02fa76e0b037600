"""What names a step opens it: every number and path leads through the address lookup to the span that it means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.cli.run import Cli
from tests.formats import hypergraph_build
from tests.views.build import make_run, make_span
from tracetui.diff.comparison import compare
from tracetui.export.diff import diff_lines
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import Operation, Run, Span, Status
from tracetui.sources.local import LocalSource
from tracetui.store.address import target
from tracetui.store.places import label_of, reference_of, step_of, words_of

CASES = Path(__file__).parents[1] / "formats"
SAMPLES = Path(__file__).parents[2].parent / "shared/samples"
SOURCE = LocalSource()
MOST = 400
"""Spans of a run that are tried."""


def opened(run: Run, place: str) -> Span | None:
    found = target(run, [unquote(part) for part in place.split("/")])
    return None if found.keys else found.span


def runs_of(root: Path) -> Iterator[Run]:
    for found in scan(SOURCE, [str(root)], deep=False):
        yield from (read_run(SOURCE, run.ref) for run in found.runs)


@pytest.mark.parametrize("root", sorted(one.name for one in CASES.iterdir() if (one / "exceptions.txt").exists()))
def test_every_reference_opens_its_span_in_the_cases(root: str) -> None:
    check(CASES / root)


@pytest.mark.parametrize("root", sorted(one.name for one in SAMPLES.iterdir()) if SAMPLES.is_dir() else [])
def test_every_reference_opens_its_span_in_the_samples(root: str) -> None:
    check(SAMPLES / root)


def check(root: Path) -> None:
    for run in runs_of(root):
        for position, span in enumerate(run.spans[:MOST]):
            place, number = reference_of(run, span), step_of(run, span)
            if not place:
                assert span.step is None
                continue
            there = opened(run, place)
            assert there is not None, (run.summary.ref.address, span.id, place)
            if "/" in place or span.is_step or number is None:
                assert there.id == span.id
            else:
                start = run.index[there.id]
                within = start <= position < start + run.sizes[start]
                assert there.is_step
                assert there.step == span.step
                assert within or not any(run.spans[i].is_step for i in above(run, position))


def above(run: Run, position: int) -> Iterator[int]:
    at = run.parent(position)
    while at is not None:
        yield at
        at = run.parent(at)


@pytest.fixture
def outer(tmp_path: Path) -> Run:
    """A run that failed in a nested graph, at the superstep 1 of that."""
    hypergraph_build.v3(tmp_path / "w.db")
    return next(run for run in runs_of(tmp_path) if run.summary.id == "outer-1")


def test_a_nested_step_is_named_by_its_path() -> None:
    graph = make_span("g", "rag", Operation.INVOKE_WORKFLOW, step=4, is_step=True)
    nested = make_span("n", "ask me", Operation.NODE, parent="g", step=2, owner="child")
    same = make_span("s", "a/b", Operation.NODE, parent="g", step=4, owner="child")
    run = make_run([graph, nested, same])

    assert [words_of(run, span) for span in run.spans] == ["step 4 rag", "step 4/ask me", "step 4/a%2Fb"]
    assert [label_of(run, span) for span in run.spans] == ["step 4", "step 4/ask me", "step 4/a%2Fb"]
    assert [step_of(run, span) for span in run.spans] == [4, 4, 4]


def test_steps_side_by_side_are_told_apart_by_name() -> None:
    run = make_run(
        [make_span(one, f"node {one}", Operation.NODE, step=1, is_step=True) for one in "ab"]
        + [make_span("c", "node c", Operation.NODE, step=2, is_step=True)]
    )

    assert [words_of(run, span) for span in run.spans] == ["step 1/node a", "step 1/node b", "step 2 node c"]
    assert all(opened(run, reference_of(run, span)) is span for span in run.spans)


def test_a_call_within_a_step_has_the_number_of_the_step() -> None:
    chat = make_span("m", "gpt", Operation.CHAT, step=3, is_step=True)
    call = make_span("t", "search", Operation.EXECUTE_TOOL, parent="m", step=3)
    below = make_span("u", "fetch", Operation.EXECUTE_TOOL, step=7)
    run = make_run([chat, call, below])

    assert [words_of(run, span) for span in run.spans] == ["step 3 gpt", "step 3 search", "fetch"]


def test_a_cause_in_a_nested_graph_is_printed_as_an_address_that_opens(cli: Cli, tmp_path: Path, outer: Run) -> None:
    address = outer.summary.ref.address
    assert outer.summary.status is Status.ERROR
    text = cli("show", address).text
    cause = re.search(r"^cause +step (\S+?)(?::|$)", text, re.MULTILINE)
    assert cause is not None, text
    there = opened(outer, cause[1])
    assert there is not None
    assert outer.summary.first_error is not None
    shown = cli("show", f"{address}/{cause[1]}", "--json")
    assert shown.status == 0
    spans = shown.data["spans"] if "spans" in shown.data else [shown.data]
    assert there.id in str(spans)
