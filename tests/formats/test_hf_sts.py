"""Hugging Face session traces: replies, calls and results, and what is not recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared import needs_shared, sample
from tracetui.formats import registry
from tracetui.formats.hf_sts import HfSts
from tracetui.model import Operation, Run, RunRef, Span, Status
from tracetui.sources.local import LocalFile
from tracetui.testing import read_run

FORMAT = HfSts()
CASES = Path(__file__).parent / "hf_sts"
SESSION = CASES / "session" / "input" / "orchard.jsonl"
ODD = CASES / "bare" / "input" / "odd.jsonl"


def read(path: Path) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path)))


def named(run: Run, name: str) -> Span:
    return next(span for span in run.spans if span.name == name)


def test_a_trace_is_called_by_its_folder_title_and_prompt() -> None:
    summary = read(SESSION).summary
    assert (summary.name, summary.agent, summary.title) == ("orchard", "keeper", "Trees of row 4")
    assert (summary.prompt, summary.model, summary.steps) == ("Count the trees", "acorn-2", 3)
    assert summary.started_at == 1_767_258_000.0


def test_results_belong_to_calls_by_id_in_any_order() -> None:
    run = read(SESSION)
    count = named(run, "count")
    body = run.load(count)
    assert (body.input, body.output) == ({"row": 4}, "12")
    assert run.load(named(run, "map")).output == "no map"
    assert count.duration_ms == 90.0


def test_unrecorded_outcomes_are_not_ok() -> None:
    run = read(SESSION)
    assert {run.summary.status, *(span.status for span in run.spans)} == {Status.UNKNOWN}
    assert run.summary.usage is None
    assert run.summary.errors == 0


def test_odd_messages_are_shown_and_a_result_of_no_call_is_a_problem() -> None:
    run = read(ODD)
    assert [problem.where for problem in run.problems] == ["line 6"]
    assert named(run, "result").operation is Operation.OTHER
    assert named(run, "note").operation is Operation.UNKNOWN
    assert run.load(named(run, "prune")).input == "{bad json"
    assert (run.summary.steps, run.summary.tool_calls) == (3, 1)


def test_a_call_without_a_result_has_no_end() -> None:
    run = read(CASES / "bare" / "input" / "waiting.jsonl")
    assert [run.spans[position].name for position in run.unended] == ["make"]


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "steps", "calls"),
    [
        ("success", 3, 2),
        ("no-times-no-name", 2, 1),
        ("unanswered-live", 1, 1),
        ("subagent-unknown-role", 2, 0),
    ],
)
def test_the_samples_have_the_values_of_the_specification(name: str, steps: int, calls: int) -> None:
    summary = read(sample("hf-sts", f"{name}.jsonl")).summary
    assert (summary.steps, summary.llm_calls, summary.tool_calls) == (steps, steps, calls)
    assert (summary.status, summary.usage) == (Status.UNKNOWN, None)


@needs_shared
@pytest.mark.shared
def test_a_file_of_pi_stays_one() -> None:
    with LocalFile(str(sample("hf-sts", "pi-with-harness.jsonl"))) as file:
        assert FORMAT.sniff(file) == 0
        detected = registry.detect(file)
    assert detected is not None
    assert detected.name == "pi"
