"""Sessions of opencode 2: what its tables record, what was moved into them, and how a session goes on there."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.formats.opencode2_build import COST, SCHEMA_2, Writer2, moved, said, stories_2, used
from tests.formats.opencode_build import CASES, database
from tests.shared import needs_shared, sample
from tracetui.formats.opencode import Opencode
from tracetui.model import Operation, Problem, Run, RunRef, RunSummary, Span, Status
from tracetui.sources.local import LocalFile
from tracetui.testing import read_run as run_of
from tracetui.testing import reading
from tracetui.testing.reading import Follower

FORMAT = Opencode()
NEW = CASES / "version2" / "input" / "opencode.db"


def listed(path: Path, *, deep: bool = True) -> dict[str, RunSummary]:
    with LocalFile(str(path)) as file:
        return {item.id: item for item in FORMAT.summarize(file, deep=deep) if isinstance(item, RunSummary)}


def cost(run: RunSummary) -> float | None:
    return None if run.usage is None else run.usage.cost_usd


def problems(path: Path) -> list[Problem]:
    with LocalFile(str(path)) as file:
        return [item for item in FORMAT.summarize(file, deep=True) if isinstance(item, Problem)]


def read(path: Path, ident: str) -> Run:
    return run_of(FORMAT, RunRef(FORMAT.name, str(path), ident))


def spans(run: Run, operation: Operation) -> list[Span]:
    return [span for span in run.spans if span.operation is operation]


@pytest.mark.parametrize(
    ("ident", "status"),
    [("ses_2a", Status.OK), ("ses_2fork", Status.OK), ("ses_2fail", Status.ERROR), ("ses_2stop", Status.CANCELLED)],
)
def test_the_noted_end_of_the_last_turn_is_the_status(ident: str, status: Status) -> None:
    """Notes, commands of the user and a summary that come after it say nothing about it."""
    assert listed(NEW)[ident].status is listed(NEW, deep=False)[ident].status is status


def test_a_sub_agent_is_below_the_call_that_names_it() -> None:
    run = read(NEW, "ses_2a")
    (agent,) = spans(run, Operation.INVOKE_AGENT)
    assert next(span for span in run.spans if span.id == agent.parent_id).name == "subagent"
    assert "ses_2sub" not in listed(NEW)


def test_calls_fail_by_their_error_or_exit_code() -> None:
    calls = {span.name: span for span in spans(read(NEW, "ses_2a"), Operation.EXECUTE_TOOL)}
    assert {name: call.status for name, call in calls.items()} == {
        "subagent": Status.OK,
        "shell": Status.ERROR,
        "read": Status.ERROR,
    }
    assert calls["read"].error is not None
    assert calls["read"].error.message == "File not found"


def test_the_copied_rows_of_a_fork_count_with_the_original() -> None:
    fork, original = listed(NEW)["ses_2fork"], listed(NEW)["ses_2a"]
    assert fork.replay_of == "ses_2a"
    assert (fork.relation, cost(fork)) == ("fork", COST)
    assert cost(original) == pytest.approx(3 * COST)  # two responses, one of the sub-agent


def test_a_fork_whose_original_is_gone_counts_everything(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path, SCHEMA_2) as db:
        stories_2(Writer2(db))
        db.execute("DELETE FROM session_v2 WHERE id = 'ses_2a'")
        db.execute("DELETE FROM session_message WHERE session_id = 'ses_2a'")
        assert cost(listed(path)["ses_2fork"]) == pytest.approx(3 * COST)


def test_a_compaction_is_a_model_call_and_a_command_of_the_user_no_tool_call() -> None:
    run = read(NEW, "ses_2stop")
    assert [span.note for span in spans(run, Operation.CHAT)] == ["", "summary"]
    assert (cost(run.summary), run.summary.tool_calls) == (COST, 0)
    assert {span.name for span in spans(run, Operation.META)} >= {"idle", "agent-switched", "shell"}


def test_totals_that_include_the_call_for_the_title_do_not_differ() -> None:
    assert [total.name for total in read(NEW, "ses_2a").body.totals if total.differs] == []


def test_a_moved_session_is_read_from_the_new_tables_only(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as db:
        db.executescript(SCHEMA_2)
        moved(db)
        runs = listed(path)
        assert {ident: (run.steps, run.llm_calls, run.tool_calls) for ident, run in runs.items()} == {
            "ses_old": (2, 2, 1),
            "ses_late": (1, 1, 1),
        }
        assert cost(runs["ses_old"]) == pytest.approx(2 * COST)
        assert problems(path) == []


def test_before_its_release_messages_were_in_the_new_table_and_sessions_in_the_old(tmp_path: Path) -> None:
    path = tmp_path / "opencode-next.db"
    with database(path, SCHEMA_2) as db:
        stories_2(Writer2(db))
        db.execute("ALTER TABLE session_v2 RENAME TO session")
        with LocalFile(str(path)) as file:
            assert FORMAT.sniff(file) > 0
        runs = listed(path)
        assert runs["ses_2a"].llm_calls == listed(NEW)["ses_2a"].llm_calls


def test_a_response_that_is_written_again_in_place_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path, SCHEMA_2) as db:
        write = Writer2(db)
        write.session("ses_1", 1, "Long job")
        write.row("ses_1", "user", 2, text="Build it")
        ident = write.answer("ses_1", 3, said("Starting."))
        follower = Follower(FORMAT, RunRef(FORMAT.name, str(path), "ses_1"))
        follower.read()
        content = [said("Starting."), used("shell", {"command": "make"}, "made", 4, exit=0)]
        data: dict[str, Any] = {"time": {"created": 1, "completed": 2}, "content": content, "finish": "tool-calls"}
        db.execute("UPDATE session_message SET data = ? WHERE id = ?", (json.dumps(data), ident))
        follower.read()
        follower.check("after the call")
        write.answer("ses_1", 6, said("Done."), end=7)
        write.row("ses_1", "idle", 7.1, outcome="succeeded")
        follower.read()
        follower.check("at the end")
        assert follower.resets == 0


def test_a_body_has_what_was_said_and_the_raw_row() -> None:
    run = read(NEW, "ses_2a")
    call = next(span for span in run.spans if span.name == "shell")
    with LocalFile(str(NEW)) as file:
        body = FORMAT.body(file, RunRef(FORMAT.name, str(NEW), "ses_2a"), call)
    assert (body.input, body.output) == ({"command": "ls trees"}, "ls: no such file")
    assert b'"session_id"' in (body.raw or b"")


def test_rows_that_are_no_messages_are_problems_and_hide_nothing(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path, SCHEMA_2) as db:
        stories_2(Writer2(db))
        db.execute("UPDATE session_message SET data = '[1' WHERE id = 'msg_b'")
        db.execute("UPDATE session_message SET data = x'00ff' WHERE id = 'msg_i'")
        write = Writer2(db)
        write.count = 900
        write.row("ses_gone", "user", 1, text="Who?")
        assert [problem.where for problem in problems(path)] == ["session_message"]
        run = read(path, "ses_2a")
        assert {problem.where for problem in run.problems} == {"message msg_b", "message msg_i"}
        assert reading.plain(run.summary) == reading.plain(listed(path)["ses_2a"])


@needs_shared
@pytest.mark.parametrize("name", ["fresh", "migrated"])
def test_sessions_count_what_their_rows_do(name: str) -> None:
    path = sample(f"opencode-2/{name}/opencode.db")
    facts = json.loads(sample("opencode-2/facts.json").read_text("utf-8"))[f"{name}/opencode.db"]
    runs = listed(path)
    costs = [cost(run) or 0 for run in runs.values()]
    fresh = [
        (run.usage.input_tokens or 0) - (run.usage.cache_read_tokens or 0) - (run.usage.cache_creation_tokens or 0)
        for run in runs.values()
        if run.usage
    ]
    assert sum(costs) == pytest.approx(facts["total"]["cost_in_messages"])
    assert sum(fresh) == facts["total"]["input"]
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
        below = {ident for (ident,) in db.execute("SELECT id FROM session_v2 WHERE parent_id NOT NULL")}
    assert runs.keys() == {ident for ident in facts["sessions"] if ident not in below}
