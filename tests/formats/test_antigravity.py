"""Transcripts of Antigravity: results belong to calls in order, and what is not recorded is unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.shared import settled
from tracetui.cli.reading import listing_of
from tracetui.formats.antigravity import Antigravity
from tracetui.model import Link, Operation, Run, RunRef, Span, Status, StatusSource, ToolCall
from tracetui.sources.local import LocalFile, LocalSource
from tracetui.testing import read_run

FORMAT = Antigravity()
CASE = Path(__file__).parent / "antigravity" / "conversations" / "input" / "brain"


def path_of(number: int, folder: Path = CASE, name: str = "transcript_full.jsonl") -> Path:
    return folder / f"a0000000-0000-4000-8000-00000000000{number}" / ".system_generated" / "logs" / name


def read(path: Path) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path)))


def written(tmp_path: Path, *steps: dict[str, Any]) -> Run:
    path = tmp_path / "transcript_full.jsonl"
    lines = [{"step_index": n, "source": "MODEL", "status": "DONE"} | step for n, step in enumerate(steps)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read(path)


def calls(run: Run) -> list[Span]:
    return [span for span in run.spans if span.operation in (Operation.EXECUTE_TOOL, Operation.INVOKE_AGENT)]


def body_of(path: Path, span: Span) -> Any:
    with LocalFile(str(path)) as file:
        return FORMAT.body(file, RunRef(FORMAT.name, str(path)), span)


def test_the_facts_of_the_samples() -> None:
    facts = {1: (4, 3, 0), 2: (4, 3, 3), 3: (1, 1, 0), 4: (3, 1, 0), 5: (2, 1, 0), 6: (1, 1, 0)}
    for number, counts in facts.items():
        run = read(path_of(number))
        failed = sum(call.status is Status.ERROR for call in calls(run))
        assert (run.summary.steps, len(calls(run)), failed) == counts, number
        assert run.summary.usage is None
        assert run.summary.id.endswith(str(number))


def test_the_model_is_the_one_that_the_user_chose() -> None:
    assert read(path_of(1)).summary.model == "Gemini 3.5 Flash (Medium)"
    assert read(path_of(2)).summary.model == "Claude Sonnet 4.6 (Thinking)"


def test_the_end_of_a_conversation_is_unknown_unless_an_error_ends_it() -> None:
    statuses = [read(path_of(number)).summary.status for number in (1, 2, 3)]
    assert statuses == [Status.UNKNOWN, Status.UNKNOWN, Status.ERROR]
    error = read(path_of(3)).summary.first_error
    assert error is not None
    assert "quota" in error.message


def test_only_a_command_says_how_it_ended() -> None:
    command, view, listing = calls(read(path_of(1)))
    assert (command.status, command.status_source) == (Status.OK, StatusSource.EXIT)
    assert [view.status, listing.status] == [Status.UNKNOWN] * 2


def test_a_call_fails_by_exit_code_by_an_error_message_and_by_its_status() -> None:
    failed = calls(read(path_of(2)))
    assert [call.status_source for call in failed] == [StatusSource.EXIT, StatusSource.EXPLICIT, StatusSource.EXPLICIT]
    assert [call.error.type for call in failed if call.error] == ["exit 1", None, None]


def test_a_file_that_quotes_a_failed_command_is_no_failure(tmp_path: Path) -> None:
    call = {"type": "PLANNER_RESPONSE", "tool_calls": [{"name": "view_file", "args": {}}]}
    view = {"type": "VIEW_FILE", "content": "The command failed with exit code: 1"}
    assert calls(written(tmp_path, call, view))[0].status is Status.UNKNOWN


def test_a_step_that_is_written_again_is_one_step(tmp_path: Path) -> None:
    call = {"type": "PLANNER_RESPONSE", "tool_calls": [{"name": "run_command", "args": {}}]}
    begun = {"type": "RUN_COMMAND", "status": "RUNNING", "content": ""}
    done = {"type": "RUN_COMMAND", "step_index": 1, "content": "The command completed successfully."}
    run = written(tmp_path, call, begun, done)
    assert [span.status for span in calls(run)] == [Status.OK]


def test_a_call_without_a_result_is_unknown_once_the_conversation_goes_on(tmp_path: Path) -> None:
    call = {"type": "PLANNER_RESPONSE", "tool_calls": [{"name": "a", "args": {}}, {"name": "b", "args": {}}]}
    run = written(tmp_path, call, {"type": "A", "content": "1"}, {"type": "PLANNER_RESPONSE", "content": "x"})
    assert [span.status for span in calls(run)] == [Status.UNKNOWN] * 2


def test_a_result_without_a_call_is_a_row() -> None:
    run = read(path_of(1))
    assert all(span.operation is not Operation.OTHER for span in run.spans)


def test_the_short_transcript_beside_a_full_one_is_no_run_of_its_own(tmp_path: Path) -> None:
    folder = settled(CASE, tmp_path / "brain")
    path_of(5, folder).unlink()
    runs = listing_of(LocalSource(), [str(folder)], None, deep=False).runs
    assert len(runs) == 6
    assert {Path(run.ref.path).name for run in runs if run.id.endswith("5")} == {"transcript.jsonl"}


def test_arguments_are_decoded_and_a_sub_agent_is_linked() -> None:
    path = path_of(1)
    command, *_ = calls(read(path))
    body = body_of(path, command)
    assert body.input["WaitMsBeforeAsync"] == 5000
    assert body.input["toolSummary"] == "Count lines"
    reply = next(span for span in read(path).spans if span.is_step)
    assert any(isinstance(part, ToolCall) for part in body_of(path, reply).output_messages[0].parts)
    child = calls(read(path_of(4)))[0]
    links = body_of(path_of(4), child).links
    assert links == (Link("sub-agent", run="a0000000-0000-4000-8000-000000000005"),)
