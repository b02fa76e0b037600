"""What names a step opens it: every number and path leads through the address lookup to the span that it means."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from tests.cli.run import Cli
from tests.formats import hypergraph_build
from tests.views.build import make_run, make_span
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import Operation, Run, Span, Status, quote_key
from tracetui.sources.local import LocalSource
from tracetui.store.address import span_label, span_reference, span_title, step_number, target

CASES = Path(__file__).parents[1] / "formats"
SAMPLES = Path(__file__).parents[2].parent / "shared/samples"
SOURCE = LocalSource()
FORMATS = sorted({path.parents[1].name for path in CASES.glob("*/*/input")})
MOST = 400
"""Spans of a run that are tried."""


def opened(run: Run, place: str) -> Span | None:
    result = target(run, [unquote(part) for part in place.split("/")])
    return None if result.keys else result.span


def runs_of(root: Path) -> Iterator[Run]:
    for entry in scan(SOURCE, [str(root)], deep=False):
        yield from (read_run(SOURCE, run.ref) for run in entry.runs)


@pytest.mark.parametrize("root", FORMATS)
def test_every_reference_opens_its_span_in_the_cases(root: str) -> None:
    check(CASES / root)


@pytest.mark.parametrize("root", sorted(path.name for path in SAMPLES.iterdir()) if SAMPLES.is_dir() else [])
def test_every_reference_opens_its_span_in_the_samples(root: str) -> None:
    check(SAMPLES / root)


def test_naming_all_spans_of_a_deep_run_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = [
        make_span(f"s{i}", "deeper", Operation.EXECUTE_TOOL, parent_id=f"s{i - 1}" if i else None) for i in range(1_000)
    ]
    run, walked, parent = make_run(spans), list[int](), Run.parent

    def counted(self: Run, position: int) -> int | None:
        walked.append(position)
        return parent(self, position)

    monkeypatch.setattr(Run, "parent", counted)

    assert {step_number(run, span) for span in run.spans} == {None}
    assert len(walked) <= len(spans)


def check(root: Path) -> None:
    for run in runs_of(root):
        for position, span in enumerate(run.spans[:MOST]):
            place, number = span_reference(run, span), step_number(run, span)
            if not place:
                assert span.step is None
                continue
            opened_span = opened(run, place)
            assert opened_span is not None, (run.summary.ref.address, span.id, place)
            if "/" in place or span.is_step or number is None:
                assert opened_span.id == span.id
            else:
                start = run.index[opened_span.id]
                within = start <= position < start + run.sizes[start]
                assert opened_span.is_step
                assert opened_span.step == span.step
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
    return next(run for run in runs_of(tmp_path / "w.db") if run.summary.id == "outer-1")


def span_of(span_id: str, name: str, step: int, operation: Operation = Operation.NODE, **rest: Any) -> Span:
    return msgspec.structs.replace(make_span(span_id, name, operation, step=step), **rest)


def test_a_nested_step_is_named_by_its_path() -> None:
    graph = span_of("g", "rag", 4, Operation.INVOKE_WORKFLOW)
    nested = span_of("n", "ask me", 2, parent_id="g", is_step=False, owner="child")
    same = span_of("s", "a/b", 4, parent_id="g", is_step=False, owner="child")
    run = make_run([graph, nested, same])

    assert [span_title(run, span) for span in run.spans] == ["step 4 rag", "step 4/ask me", "step 4/a%2Fb"]
    assert [span_label(run, span) for span in run.spans] == ["step 4", "step 4/ask me", "step 4/a%2Fb"]
    assert [step_number(run, span) for span in run.spans] == [4, 4, 4]


def test_parallel_steps_are_distinguished_by_name() -> None:
    run = make_run([span_of("a", "node a", 1), span_of("b", "node b", 1), span_of("c", "node c", 2)])

    assert [span_title(run, span) for span in run.spans] == ["step 1/node a", "step 1/node b", "step 2 node c"]
    assert all(opened(run, span_reference(run, span)) is span for span in run.spans)


def test_a_call_within_a_step_has_the_number_of_the_step() -> None:
    chat = span_of("m", "gpt", 3, Operation.CHAT)
    call = span_of("t", "search", 3, Operation.EXECUTE_TOOL, parent_id="m", is_step=False)
    below = span_of("u", "fetch", 7, Operation.EXECUTE_TOOL, is_step=False)
    run = make_run([chat, call, below])

    assert [span_title(run, span) for span in run.spans] == ["step 3 gpt", "step 3 search", "fetch"]


def test_a_difference_in_a_nested_graph_is_printed_as_an_address_that_opens(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        hypergraph_build.v3(tmp_path / f"{name}.db")
    with closing(sqlite3.connect(tmp_path / "b.db")) as db, db:
        db.execute("UPDATE steps SET values_data = ? WHERE run_id = 'outer-1/rag'", (b'{"answer": "another"}',))
    a, b = (f"{tmp_path / name}.db#outer-1" for name in ("a", "b"))
    run = next(run for run in runs_of(tmp_path / "b.db") if run.summary.id == "outer-1")

    text, data = cli("diff", a, b).text, cli("diff", a, b, "--json").data
    place = re.search(r"First difference: step (.+?): ", text)
    row = data["rows"][data["first_divergence"]["row"]]

    assert place is not None, text
    opened_span = opened(run, place[1])
    assert opened_span is not None
    assert row["b"] == f"{b}/{quote_key(opened_span.id)}"
    assert opened(run, str(row["step"])) is run.spans[run.index[opened_span.parent_id or opened_span.id]]
    assert cli("show", f"{b}/{place[1]}").status == 0


def test_a_cause_in_a_nested_graph_is_printed_as_an_address_that_opens(cli: Cli, tmp_path: Path, outer: Run) -> None:
    address = outer.summary.ref.address
    assert outer.summary.status is Status.ERROR
    text = cli("show", address).text
    cause = re.search(r"^cause +step (\S+?)(?::|$)", text, re.MULTILINE)
    assert cause is not None, text
    opened_span = opened(outer, cause[1])
    assert opened_span is not None
    assert outer.summary.first_error is not None
    result = cli("show", f"{address}/{cause[1]}", "--json")
    assert result.status == 0
    assert opened_span.id in str(result.data)
