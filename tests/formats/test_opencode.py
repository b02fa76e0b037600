"""Sessions of opencode: what its database, exports and old files say, sub-agents, forks, tokens, growth, damage."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.formats.opencode_build import (
    CASES,
    COST,
    T0,
    Writer,
    at,
    call,
    database,
    exported,
    insert,
    stored,
    stories,
    text,
)
from tests.hostile import ATTACKS
from tests.shared import SEARCHES, SHARED, needs_shared, sample, seeds
from tracetui.cli import main
from tracetui.diff.comparison import compare
from tracetui.errors import FormatError
from tracetui.formats.opencode import Opencode
from tracetui.formats.opencode.listing import CachedSummary
from tracetui.live.load import Reader
from tracetui.live.scan import ScannedFile, Scanner, scan
from tracetui.model import Operation, Problem, Run, RunRef, RunSummary, Span, Status, StatusSource, Usage
from tracetui.sources.base import CACHE
from tracetui.sources.local import LocalFile, LocalSource
from tracetui.store.relations import Relations
from tracetui.testing import hostile, reading
from tracetui.testing import read_run as run_of
from tracetui.testing.reading import Follower
from tracetui.text import exact

FORMAT = Opencode()
CASE = CASES / "database" / "input" / "opencode.db"


def listed(path: Path, *, deep: bool = True) -> dict[str, RunSummary]:
    with LocalFile(str(path)) as file:
        return {item.id: item for item in FORMAT.summarize(file, deep=deep) if isinstance(item, RunSummary)}


def problems(path: Path) -> list[Problem]:
    with LocalFile(str(path)) as file:
        return [item for item in FORMAT.summarize(file, deep=True) if isinstance(item, Problem)]


def aged(path: Path) -> Path:
    """The file, as one that nobody has written for long."""
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def read(path: Path, session: str | None = None) -> Run:
    return run_of(FORMAT, RunRef(FORMAT.name, str(path), session))


def outline(run: Run) -> list[str]:
    return [f"{'  ' * depth}{span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


def named(run: Run, name: str, number: int = 0) -> Span:
    """A span of that id or name."""
    return [span for span in run.spans if name in (span.id, span.name)][number]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[Path, Writer]]:
    """An empty database with its writer."""
    path = tmp_path / "opencode.db"
    with database(path) as db:
        yield path, Writer(db)


# ---- what a session is


def test_turns_hold_responses_and_these_the_calls_that_they_asked_for() -> None:
    assert outline(read(CASE, "ses_a")) == [
        "turn",
        *("  user", "  acorn-2", "    bash", "    bash", "  acorn-2", "    task"),
        *("      general", "        turn", "          user", "          acorn-2"),
        "    patch",
        *("turn", "  user", "  acorn-2"),
    ]
    run = read(CASE, "ses_a")
    assert [step.number for step in run.steps] == [1, 2]
    assert run.summary.steps == 2
    assert [span.step for span in run.spans if span.name == "turn"] == [1, None, 2]


def test_a_run_is_called_by_its_folder_prompt_agent_model_and_branch() -> None:
    summary = read(CASE, "ses_a").summary
    facts = (summary.name, summary.prompt, summary.agent, summary.model, summary.tags, summary.writer, summary.source)
    assert facts == (
        *("orchard", "Count the trees", "build", "acorn-2"),
        *(("grafting",), "1.18.33", "/home/ada/orchard"),
    )
    assert summary.status is Status.OK
    assert summary.status_word == "stop"


def test_a_call_that_is_completed_failed_by_its_exit_code() -> None:
    tried, answered = (named(read(CASE, "ses_a"), "bash", number) for number in (0, 1))
    assert (tried.status, tried.status_source, tried.status_word) == (Status.ERROR, StatusSource.EXIT, "completed")
    assert tried.error is not None
    assert (tried.error.type, tried.error.message) == ("exit 2", "ls: trees: No such file")
    assert (answered.status, answered.status_source) == (Status.OK, StatusSource.EXPLICIT)
    assert (tried.preview, tried.duration_ms) == ("ls trees", 500)


def test_errors_are_shown_at_the_steps_that_failed() -> None:
    run = read(CASE, "ses_bad")
    spans = {span.name: span for span in run.spans}
    assert (spans["edit"].status, spans["edit"].preview) == (Status.ERROR, "/home/ada/oak")
    assert spans["edit"].error is not None
    assert spans["edit"].error.message == "oldString not found"
    assert (spans["bash"].status, spans["bash"].status_word) == (Status.CANCELLED, "interrupted")
    retry = spans["retry"]
    assert retry.error is not None
    assert (retry.status, retry.error.type, retry.note) == (Status.ERROR, "APIError", "attempt 1")
    assert named(run, "msg_b2").note == "length"
    last = named(run, "msg_b4")
    assert last.error is not None
    assert last.error.text == "ProviderAuthError: no key"
    assert (run.summary.status, run.summary.status_source) == (Status.ERROR, StatusSource.EXPLICIT)


def test_an_old_message_of_two_steps_is_two_responses() -> None:
    run = read(CASE, "ses_bad")
    first, second = named(run, "msg_b3"), next(span for span in run.spans if span.preview == "Second.")
    assert (first.preview, first.status_word, second.parent_id) == ("First.", "tool-calls", first.parent_id)
    assert (first.usage, second.usage) == (STEP, STEP)
    assert [run.load(span).output for span in (first, second)] == ["First.", "Second."]


def test_a_part_of_an_unknown_kind_is_shown_and_no_problem() -> None:
    run = read(CASE, "ses_bad")
    odd = named(run, "hologram")
    assert (odd.operation, run.problems) == (Operation.UNKNOWN, ())
    assert run.load(odd).attributes["depth"] == 3
    assert run.summary.unread is not None
    assert run.summary.unread.kinds == (("hologram", 1),)


def test_compaction_is_no_prompt() -> None:
    run = read(CASE, "ses_bad")
    assert (run.spans[0].operation, run.spans[0].preview) == (Operation.META, "automatic")
    assert (run.summary.steps, run.summary.prompt) == (1, "Fell the oak")


def test_reverted_messages_are_below_a_row_of_their_own_and_no_step() -> None:
    run = read(CASE, "ses_back")
    assert outline(run)[3:] == ["reverted", "  turn", "    user", "    acorn-2"]
    assert run.summary.steps == 1
    assert {span.note for span in run.spans[4:]} == {"reverted"}
    assert run.load(run.spans[3]).attributes == {"messageID": "msg_r3", "snapshot": "beef"}


def test_synthetic_parts_are_shown_but_are_no_prompt() -> None:
    run = read(CASE, "ses_a")
    body = run.load(named(run, "user"))
    assert body.input == "Count the trees"
    kinds = [type(part).__name__ for part in body.input_messages[0].parts]
    assert kinds == ["Text", "Text", "Blob"]


def test_a_session_that_goes_on_runs_while_its_database_moves() -> None:
    run = read(CASE, "ses_now")
    waiting = [run.spans[position] for position in run.unended]
    assert waiting == [span for span in run.spans if span.operation is not Operation.MESSAGE]
    assert {(span.status, span.status_source) for span in waiting} == {(Status.UNKNOWN, StatusSource.DERIVED)}
    assert run.summary.status is Status.UNKNOWN  # nobody has written the file for years
    path = CASE
    with LocalFile(str(path)) as file:
        assert not file.moving


def test_only_recent_sessions_without_an_end_are_running(written: tuple[Path, Writer]) -> None:
    path, write = written
    for ident, second in (("ses_1", 0), ("ses_2", time.time() - T0 / 1000)):
        write.session(ident, second, "Sweep")
        write.user(f"msg_{ident}", ident, second, "Sweep")
    runs = listed(path, deep=False)
    assert [runs[ident].status for ident in ("ses_1", "ses_2")] == [Status.UNKNOWN, Status.RUNNING]
    assert {ident: run.status for ident, run in listed(path).items()} == {i: run.status for i, run in runs.items()}


# ---- sub-agents


def test_sub_agents_are_below_their_calls_and_not_listed() -> None:
    assert list(listed(CASE)) == ["ses_a", "ses_fork", "ses_bad", "ses_back", "ses_lost", "ses_now"]
    run = read(CASE, "ses_a")
    agent = named(run, "ses_sub")
    assert agent.parent_id == named(run, "task").id
    assert (agent.operation, agent.name, agent.duration_ms) == (Operation.INVOKE_AGENT, "general", 1000)
    assert run.load(named(run, "task")).links[0].run == "ses_sub"
    assert run.load(agent).attributes["title"] == "Count the rows (@general subagent)"


def test_a_sub_agent_whose_parent_is_missing_stands_for_itself() -> None:
    run = read(CASE, "ses_lost")
    assert (run.summary.parent, run.summary.agent, run.summary.prompt) == ("ses_gone", "explore", "Find the shed")


def test_a_sub_agent_that_no_call_names_is_in_the_turn_in_which_it_began(written: tuple[Path, Writer]) -> None:
    path, write = written
    write.session("ses_1", 1, "Two turns")
    for number in (2, 4):
        write.user(f"msg_{number}", "ses_1", number, "Go on")
    write.session("ses_2", 3, "Helper", parent_id="ses_1", agent="general")
    write.session("ses_3", 3.5, "Helper of a helper", parent_id="ses_2", agent="explore")
    run = read(path, "ses_1")
    assert outline(run) == ["turn", "  user", "  general", "    explore", "turn", "  user"]
    assert list(listed(path)) == ["ses_1"]


def test_sessions_that_are_each_others_parents_stand_for_themselves(written: tuple[Path, Writer]) -> None:
    path, write = written
    for ident, parent in (("ses_1", "ses_2"), ("ses_2", "ses_1"), ("ses_3", "ses_2"), ("ses_4", "ses_4")):
        write.session(ident, 1, "Round", parent_id=parent)
        write.user(f"msg_{ident}", ident, 2, "Go round")
    assert list(listed(path)) == ["ses_1", "ses_2", "ses_4"]
    assert {problem.where for problem in problems(path)} == {"session ses_1", "session ses_2", "session ses_4"}
    assert {ident: read(path, ident).summary.spans for ident in ("ses_1", "ses_2", "ses_4")} == {
        "ses_1": 2,
        "ses_2": 5,
        "ses_4": 2,
    }


def test_a_thousand_sub_agents_of_sub_agents_are_read(written: tuple[Path, Writer]) -> None:
    path, write = written
    write.db.execute("BEGIN")
    for number in range(1000):
        write.session(f"ses_{number:04}", number, "Deeper", parent_id=f"ses_{number - 1:04}")
    write.db.execute("COMMIT")
    run = read(path, "ses_0000")
    assert (len(run.spans), max(run.depths)) == (999, 998)


# ---- tokens

STEP = Usage(137, 7, None, 100, 7, 2, COST)
"""What each step of the cases used: 30 + 100 + 7 went in, 5 + 2 came out."""


def test_input_holds_what_was_cached_and_output_what_was_thought() -> None:
    assert named(read(CASE, "ses_a"), "msg_a6").usage == STEP


def counted(path: Path, session: str) -> tuple[int, int, int, float]:
    """(Input, output, cached, cost) of a session and its sub-agents, by somebody who knows no format.

    What is older than its session was copied from another one.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
        tokens, cost, queue = [0, 0, 0], 0.0, [session]
        for current in queue:
            (born,) = db.execute("SELECT time_created FROM session WHERE id = ?", (current,)).fetchone()
            queue += [ident for (ident,) in db.execute("SELECT id FROM session WHERE parent_id = ?", (current,))]
            own = "SELECT id FROM message WHERE session_id = ? AND time_created >= ?"
            for (data,) in db.execute(f"SELECT data FROM part WHERE message_id IN ({own})", (current, born)):
                part = json.loads(data)
                if part["type"] == "step-finish":
                    used = part["tokens"]
                    tokens[0] += used["input"] + used["cache"]["read"] + used["cache"]["write"]
                    tokens[1] += used["output"] + used["reasoning"]
                    tokens[2] += used["cache"]["read"]
                    cost += part["cost"]
    return (*tokens, cost)  # type: ignore[return-value]


def databases() -> list[Path]:
    return [CASE, *(sorted(sample("opencode").rglob("*.db")) if SHARED is not None else [])]


@pytest.mark.parametrize("path", databases(), ids=lambda path: path.parent.name)
def test_tokens_are_those_of_the_raw_rows(path: Path) -> None:
    runs = listed(path)
    assert runs
    for ident, summary in runs.items():
        used, right = summary.usage or Usage(0, 0, None, 0, None, None, 0), counted(path, ident)
        assert (used.input_tokens or 0, used.output_tokens or 0, used.cache_read_tokens or 0) == right[:3]
        assert used.cost_usd or pytest.approx(right[3]) == 0


@pytest.mark.parametrize("session", ["ses_a", "ses_fork"])
def test_totals_that_a_session_declares_are_recounted_over_all_that_is_in_it(session: str) -> None:
    totals = {total.name: (total.declared, total.counted) for total in read(CASE, session).body.totals}
    assert totals == {
        "tokens.input": (90, 90),
        "tokens.output": (15, 15),
        "tokens.reasoning": (6, 6),
        "tokens.cache.read": (300, 300),
        "tokens.cache.write": (21, 21),
        "cost": (3 * COST, 3 * COST),
    }


def test_totals_of_zero_say_nothing_and_wrong_ones_are_shown(written: tuple[Path, Writer]) -> None:
    path, write = written
    for ident, more in (("ses_1", {}), ("ses_2", {"tokens_input": 31})):
        write.session(ident, 1, "Count", **more)
        write.answer(f"msg_{ident}", ident, 2, "", end=3)
        write.step(f"msg_{ident}", ident, 2, 3)
    assert read(path, "ses_1").body.totals == ()
    assert [total.name for total in read(path, "ses_2").body.totals if total.differs][:1] == ["tokens.input"]


# ---- forks


def test_a_fork_is_found_by_the_messages_that_it_copied() -> None:
    for deep in (False, True):
        fork = listed(CASE, deep=deep)["ses_fork"]
        assert (fork.replay_of, fork.relation) == ("ses_a", "fork")
    run = read(CASE, "ses_fork")
    assert [span.note for span in run.spans if span.operation is Operation.TURN] == ["copied", "copied", ""]
    assert run.summary.usage == STEP
    relations = Relations(list(listed(CASE).values()))
    original = relations.original(run.summary.ref)
    assert original is not None
    assert original.key == "ses_a"


def fork_of(write: Writer, ident: str, second: float, title: str, **more: Any) -> None:
    """A session that begins as one did at second 2."""
    write.session(ident, second, title, **more)
    write.user(f"msg_{ident}", ident, 2, more.pop("said", "Count the trees"))


@pytest.mark.parametrize(
    ("titles", "original"),
    [
        (("Trees", "Trees (fork #1)", "Trees (fork #1)"), "ses_0"),
        (("Trees", "Trees (fork #1)", "Trees (fork #2)"), "ses_1"),
        (("Trees", "Trees (fork #1)", "What I called it"), "ses_0"),
        (("Woods", "Bushes", "Trees (fork #1)"), "ses_0"),
    ],
)
def test_the_title_decides_between_several_possible_originals(
    written: tuple[Path, Writer], titles: tuple[str, ...], original: str
) -> None:
    path, write = written
    write.session("ses_other", 0, titles[0])
    write.user("msg_other", "ses_other", 1, "Something else")
    for number, title in enumerate(titles):
        fork_of(write, f"ses_{number}", 1 + 10 * number, title)
    assert listed(path)["ses_2"].replay_of == original
    assert read(path, "ses_2").summary.replay_of == original


def test_the_same_prompt_in_another_session_is_no_fork(written: tuple[Path, Writer]) -> None:
    path, write = written
    for number in (1, 2):
        write.session(f"ses_{number}", 10 * number, "Trees")
        write.user(f"msg_{number}", f"ses_{number}", 10 * number + 1, "Count the trees")
    assert [summary.replay_of for summary in listed(path).values()] == [None, None]


def test_the_diff_of_a_fork_opens_where_it_went_another_way() -> None:
    check_diff(read(CASE, "ses_a"), read(CASE, "ses_fork"), "Now prune them", "Now water them")


@needs_shared
def test_the_diff_of_a_real_fork_opens_where_it_went_another_way() -> None:
    path = sample("opencode", "generated-1.18.33", "opencode.db")
    fork = next(summary for summary in listed(path).values() if summary.relation == "fork")
    assert fork.replay_of == "ses_e0723a3f2ffequ2EAzJBIAIZfm"
    asked = ('"Now FLAKY: say the number"', '"BRANCH: find the number another way"')
    check_diff(read(path, fork.replay_of), read(path, fork.id), *asked)


def check_diff(first: Run, other: Run, *asked: str) -> None:
    diff = compare(first, other)
    assert diff.first is not None
    assert (diff.first.path, diff.first.a, diff.first.b) == ("", *asked)
    at = diff.rows[diff.first.row].a
    assert at is not None
    assert first.spans[at].step == 2
    assert diff.relation == "fork"


def test_grep_finds_message_texts_in_every_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grep", "Seven rows", str(CASES)]) == 0
    names = {line.split("  ")[0].rpartition("/input/")[2] for line in capsys.readouterr().out.splitlines()}
    places = ("opencode.db#ses_a/prt_0012", "opencode.db#ses_a/msg_s2", "storage/session/p1/ses_a.json/msg_s2")
    assert names.issuperset(places)


# ---- exports and old files


@pytest.fixture
def document() -> dict[str, Any]:
    with closing(sqlite3.connect(f"{CASE.as_uri()}?immutable=1", uri=True)) as db:
        return exported(db, "ses_a")


def without_rows(span: Span) -> Any:
    """A span without the time of its row, which an export leaves out."""
    return reading.plain(replace(span, started_at=None) if span.operation is Operation.META else span)


def test_an_export_says_what_the_database_says(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document, indent=2))
    own, run = read(path), read(CASE, "ses_a")
    agents = {span.id for span in run.spans if span.step is None}
    spans = [without_rows(span) for span in run.spans if span.id not in agents]
    assert [without_rows(span) for span in own.spans] == spans
    assert own.summary.id == "ses_a"
    assert [total.differs for total in own.body.totals] == [False] * 6


def test_old_files_say_what_the_database_says(tmp_path: Path, document: dict[str, Any]) -> None:
    own, run = read(CASES / "storage" / "input" / "storage" / "session" / "p1" / "ses_a.json"), read(CASE, "ses_a")
    assert outline(own)[:-3] == [line.replace("general", "agent") for line in outline(run)[:-3]]
    assert own.summary.usage == run.summary.usage
    path = stored(document, tmp_path)
    assert outline(read(path)) == [line for line in outline(run) if not line.startswith("      ")]


def test_everything_of_a_session_is_in_one_run(tmp_path: Path, document: dict[str, Any]) -> None:
    folder = tmp_path / "case"
    shutil.copytree(CASES / "storage" / "input", folder)
    files = list(scan(LocalSource(), [str(folder)], deep=True, only=FORMAT))
    runs = [run for file in files for run in file.runs]
    assert [Path(run.ref.path).name for run in runs] == ["ses_a.json"]
    assert {file.part_of for file in files if not file.runs} == {runs[0].ref.path}


def loose(folder: Path, name: str) -> dict[str, ScannedFile]:
    """What becomes of old files when one of them is gone."""
    shutil.copytree(CASES / "storage" / "input" / "storage", folder)
    (folder / name).unlink()
    return {Path(file.path).name: file for file in scan(LocalSource(), [str(folder)], deep=True, only=FORMAT)}


def test_orphaned_files_are_runs_of_their_own(tmp_path: Path) -> None:
    files = loose(tmp_path / "a", "session/p1/ses_a.json")
    assert files["ses_sub.json"].runs[0].parent == "ses_a"
    assert files["msg_a1.json"].runs[0].prompt == "Count the trees"
    assert files["prt_0001.json"].part_of == files["msg_a1.json"].path
    files = loose(tmp_path / "b", "message/ses_a/msg_a5.json")
    alone = [file for file in files.values() if file.runs and file.runs[0].steps == 0]
    assert [[run.spans for run in file.runs] for file in alone] == [[1]]


def test_old_files_that_come_change_or_go_are_read_as_at_once(tmp_path: Path) -> None:
    whole = CASES / "storage" / "input" / "storage"
    paths = [path for path in sorted(whole.rglob("*.json")) if path.name != "ses_a.json"]
    main = tmp_path / "session" / "p1" / "ses_a.json"
    main.parent.mkdir(parents=True)
    shutil.copy(whole / "session" / "p1" / "ses_a.json", main)
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(main)))
    Random(1).shuffle(paths)
    for path in paths:
        copy = tmp_path / path.relative_to(whole)
        copy.parent.mkdir(parents=True, exist_ok=True)
        for data in (path.read_bytes()[:40], path.read_bytes()):
            copy.write_bytes(data)
            follower.read()
            follower.check(f"with {len(data)} bytes of {path.name}")
    given = follower.given
    (main.parent / "ses_other.json").write_text('{"id": "ses_other", "title": "Other", "time": {}}')
    follower.read()
    assert follower.given == given, "a session of its own beside it is none of its files"
    (tmp_path / "message" / "ses_a" / "msg_a5.json").unlink()
    follower.read()
    follower.check("without a message")


def test_ids_of_an_export_need_not_be_different(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "export.json"
    twice = document | {"messages": [*document["messages"], *document["messages"], 5, {"info": None, "parts": {}}]}
    path.write_text(json.dumps(twice))
    run = read(path)
    calls = [span for span in run.spans if span.operation is Operation.EXECUTE_TOOL]
    assert [call.name for call in calls] == ["bash", "bash", "task"] * 2
    assert len({run.load(call).input["command"] for call in calls if call.name == "bash"}) == 2
    assert [problem.where for problem in run.problems] == ["messages[10]", "messages[11]"]


def test_an_export_that_is_no_strict_json_is_read_all_the_same(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document | {"odd": float("nan")}))
    run = read(path)
    assert outline(run)[:4] == ["turn", "  user", "  acorn-2", "    bash"]
    assert run.load(named(run, "bash")).output == "ls: trees: No such file\n"
    assert "leniently" in run.problems[0].reason


# ---- growth


def played(db: sqlite3.Connection) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What a writer executed: rows come by their times, calls and responses go on for a while before they end."""
    rows: list[tuple[float, int, str, list[str], list[Any]]] = []
    for rank, table in enumerate(("session", "message", "part")):
        cursor = db.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        when = names.index("time_created")
        rows += [(values[when], rank, table, names, list(values)) for values in cursor.fetchall()]
    for _, _, table, names, values in sorted(rows, key=lambda row: row[:2]):
        row = dict(zip(names, values, strict=True))
        insert_row = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        begun = dict(row)
        if "data" in row:
            data = json.loads(row["data"])
            begun = row | {"data": json.dumps(unfinished(data)), "time_updated": row["time_created"]}
        yield insert_row, tuple(begun.values())
        if begun != row:
            update = f"UPDATE {table} SET data = ?, time_updated = ? WHERE id = ?"
            yield update, (row["data"], max(row["time_updated"], begun["time_updated"] + 1), row["id"])


def unfinished(data: dict[str, Any]) -> dict[str, Any]:
    """A message or a part as it was at first."""
    if data.get("role") == "assistant":
        times = {name: value for name, value in data["time"].items() if name != "completed"}
        return {name: value for name, value in data.items() if name not in ("finish", "error")} | {"time": times}
    if data.get("type") == "tool" and "state" in data:
        return data | {"state": {"status": "pending", "input": {}, "raw": ""}}
    return data | {"text": ""} if data.get("type") in ("text", "reasoning") else data


@pytest.mark.search
@pytest.mark.parametrize("path", databases(), ids=lambda path: path.parent.name)
def test_rows_that_come_and_change_are_read_as_at_once(path: Path, tmp_path: Path) -> None:
    live = tmp_path / "opencode.db"
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
        schema = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY type DESC")]
        statements = list(played(db))
    followers = [Follower(FORMAT, RunRef(FORMAT.name, str(live), ident)) for ident in listed(path)]
    with closing(sqlite3.connect(live, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = OFF")
        writer.execute("PRAGMA foreign_keys = OFF")
        for sql in schema:
            writer.execute(sql)
        for number, (sql, values) in enumerate(statements):
            writer.execute(sql, values)
            if number % (8 if SEARCHES else 32) == 0 or number == len(statements) - 1:
                for follower in followers:
                    follower.read()
                    follower.check(f"after {number + 1} of {len(statements)} statements")
        for follower in followers:
            assert follower.resets <= len(follower._spans) // 2  # most of it goes on where it was
    assert {run.id: run.spans for run in listed(live).values()} == {run.id: run.spans for run in listed(path).values()}


def test_a_session_goes_on_while_its_call_does_and_only_what_is_new_is_given(written: tuple[Path, Writer]) -> None:
    path, write = written
    write.session("ses_1", 1, "Long")
    for number in range(40):
        write.user(f"msg_{number:02}u", "ses_1", 2 + number, "Go on")
        write.answer(f"msg_{number:02}v", "ses_1", 2.2 + number, f"msg_{number:02}u", end=2.9 + number)
        write.step(
            f"msg_{number:02}v", "ses_1", 2.3 + number, 2.9 + number, call("bash", {"command": "ls"}, "a", 3, exit=0)
        )
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(path), "ses_1"))
    follower.read()
    before = follower.given
    write.answer("msg_99", "ses_1", 90, "msg_39u", end=None)
    state: dict[str, Any] = {"status": "running", "input": {"command": "make"}, "time": {"start": at(91)}}
    part = write.part("msg_99", "ses_1", 91, type="tool", tool="bash", state=state)
    follower.read()
    assert follower.given - before == 3  # the turn, the response, the call
    state |= {
        "status": "completed",
        "output": "made",
        "metadata": {"exit": 1},
        "time": {"start": at(91), "end": at(93)},
    }
    data = json.dumps({"type": "tool", "tool": "bash", "state": state})
    write.db.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = ?", (data, at(91), part))  # the same time
    follower.read()
    follower.check("after the call ended")
    assert follower.resets == 0
    given = follower.given
    follower.read()
    assert follower.given == given


def test_other_sessions_of_the_database_are_not_read_again(written: tuple[Path, Writer]) -> None:
    path, write = written
    for ident in ("ses_1", "ses_2"):
        write.session(ident, 1, "Count")
        write.user(f"msg_{ident}", ident, 2, "Count")
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(path), "ses_1"))
    follower.read()
    given = follower.given
    write.user("msg_x", "ses_2", 3, "More")
    follower.read()
    follower.check("when another one went on")
    assert follower.given == given


def test_only_sessions_to_which_something_came_are_counted_again(written: tuple[Path, Writer]) -> None:
    path, write = written
    stories(write)
    write.session("ses_new", 90_000, "A day later")
    write.user("msg_x1", "ses_new", 90_001, "Water the trees")
    kept: dict[str, Any] = {}

    def repeat_summary() -> dict[str, Any]:
        with LocalFile(str(path)) as file:
            file.memo[CACHE] = kept
            runs = [run for run in FORMAT.summarize(file, deep=True) if isinstance(run, RunSummary)]
        right = {ident: reading.plain(run) for ident, run in listed(path).items()}
        assert {run.id: reading.plain(run) for run in runs} == right
        return {ident: cached.summary for ident, cached in kept.items() if isinstance(cached, CachedSummary)}

    before = repeat_summary()
    assert set(before) == {"ses_a", "ses_fork", "ses_bad", "ses_back", "ses_lost", "ses_now"}  # the new one may change
    write.answer("msg_x2", "ses_new", 90_002, "msg_x1", end=90_003)
    assert {ident for ident, cached in repeat_summary().items() if cached is not before.get(ident)} == set()
    write.user("msg_s9", "ses_sub", 4.6, "And the columns")
    assert {ident for ident, cached in repeat_summary().items() if cached is not before.get(ident)} == {
        "ses_a",
        "ses_fork",
    }


def test_a_watched_directory_keeps_cached_counts(tmp_path: Path) -> None:
    path = aged(Path(shutil.copy(CASE, tmp_path / "opencode.db")))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        Writer(db).session("ses_new", 90_000, "A day later")
    entry = next(iter(LocalSource().walk(str(path))))
    kept: dict[str, Any] = {}
    first = Scanner(LocalSource()).look(entry, deep=True, cache=kept)
    counted = {ident: cached for ident, cached in kept.items() if isinstance(cached, CachedSummary)}
    assert len(counted) == len(first.runs) - 1
    for ident, cached in counted.items():
        kept[ident] = replace(cached, summary=cached.summary.replace(result="kept"))
    second = Scanner(LocalSource()).look(entry, deep=True, cache=kept)
    assert [run.result for run in second.runs] == ["kept"] * len(counted) + [""]


def test_reading_in_pieces_equals_one_full_read(written: tuple[Path, Writer], monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = written
    stories(write)
    write.session("ses_1", 200, "A call without an end, and a response after it")
    write.user("msg_1", "ses_1", 201, "Rake")
    write.answer("msg_2", "ses_1", 202, "msg_1", end=None)
    state = {"status": "running", "input": {"command": "rake"}, "time": {"start": at(203)}}
    write.part("msg_2", "ses_1", 203, type="tool", tool="bash", callID="call-r", state=state)
    write.user("msg_3", "ses_1", 204, "Rake again")
    write.answer("msg_4", "ses_1", 205, "msg_3", end=206)
    right = {ident: reading.plain_run(read(path, ident)) for ident in listed(path)}
    monkeypatch.setattr("tracetui.formats.opencode.reading.PIECE_SECONDS", 0.0)
    monkeypatch.setattr("tracetui.formats.opencode.reading.BATCH", 1)
    for ident, run in right.items():
        with LocalFile(str(path)) as file:
            assert not FORMAT.open(file, RunRef(FORMAT.name, str(path), ident)).more(file).done or len(run["spans"]) < 3
        assert reading.plain_run(read(path, ident)) == run


def test_a_revert_and_its_end_are_followed(written: tuple[Path, Writer]) -> None:
    path, write = written
    stories(write)
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(path), "ses_back"))
    for revert in (
        None,
        json.dumps({"messageID": "msg_r2", "partID": "prt_0000"}),
        json.dumps({"messageID": "msg_r1"}),
    ):
        follower.read()
        write.db.execute("UPDATE session SET revert = ? WHERE id = 'ses_back'", (revert,))
        follower.read()
        follower.check(f"with {revert}")
    write.db.execute("DELETE FROM message WHERE id = 'msg_r4'")
    follower.read()
    follower.check("without a message")


def test_nothing_is_written_beside_a_live_database(written: tuple[Path, Writer]) -> None:
    path, write = written
    stories(write)
    before = {file.name: file.stat().st_size for file in path.parent.iterdir()}
    assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
    reader = Reader(LocalSource(), RunRef(FORMAT.name, str(path), "ses_a"))
    reader._format = FORMAT
    reader.catch_up()
    run = reader.build()
    assert all(run.load(span).attributes.get("problem") is None for span in run.spans)
    assert {file.name: file.stat().st_size for file in path.parent.iterdir()} == before


# ---- damage


@pytest.mark.search
@pytest.mark.parametrize("seed", seeds(12))
def test_odd_json_in_any_row_becomes_problems(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(f"{CASE.as_uri()}?immutable=1", uri=True)) as db:
        rows = {name: db.execute(f"SELECT rowid, data FROM {name}").fetchall() for name in ("message", "part")}
    for _ in range(25 if SEARCHES else 10):
        shutil.copy(CASE, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            for _ in range(3):
                table = random.choice(["message", "part"])
                rowid, data = random.choice(rows[table])
                record = json.loads(data)
                where, key = random.choice(hostile.places(record))
                where[key] = random.choice(hostile.JUNK)
                written = hostile._marked([record], True)
                odd = random.choice(
                    [written, written.decode(), random.choice(["", "[", "[]", "5", "null", b"\xff\x00"])]
                )
                db.execute(f"UPDATE {table} SET data = ? WHERE rowid = ?", (odd, rowid))
        quick, deep = listed(aged(path), deep=False), listed(path)
        assert list(quick) == list(deep)
        for ident, summary in deep.items():
            run = read(path, ident)
            assert reading.plain(run.summary) == reading.plain(summary)
            for span in run.spans:
                run.load(span)


@pytest.mark.parametrize("table", ["session", "message", "part", "project", "workspace", "todo"])
def test_columns_come_and_go(tmp_path: Path, table: str) -> None:
    with closing(sqlite3.connect(f"{CASE.as_uri()}?immutable=1", uri=True)) as db:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    for column in columns:
        path = tmp_path / f"{column}.db"
        shutil.copy(CASE, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            for (index,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL"
            ).fetchall():
                db.execute(f"DROP INDEX {index}")
            db.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO gone")
        aged(path)
        needed = {"session": {"id"}, "message": {"id", "session_id", "data"}}.get(table, set())
        if column in needed:
            with pytest.raises(FormatError):
                listed(path)
            continue
        runs = listed(path)
        assert "ses_a" in runs
        for ident, summary in runs.items():
            assert reading.plain(read(path, ident).summary) == reading.plain(summary)


def test_rows_that_belong_to_nothing_are_reported(written: tuple[Path, Writer]) -> None:
    path, write = written
    write.session("ses_1", 1, "Count")
    write.user("msg_1", "ses_gone", 2, "Count")
    write.part("msg_gone", "ses_1", 2, type="text", text="Who said that?")
    insert(write.db, "session", id=None, project_id="p", slug="", directory="", title="", version="",
           time_created=0, time_updated=0)  # fmt: skip
    assert {(problem.where, problem.reason) for problem in problems(path)} == {
        ("session", "1 rows have no id"),
        ("message", "1 rows belong to no session"),
        ("part", "1 rows belong to no message"),
    }


def test_messages_that_are_in_a_table_to_come_only_are_reported(written: tuple[Path, Writer]) -> None:
    path, write = written
    stories(write)
    write.db.execute("CREATE TABLE session_message (id, session_id, data)")
    insert(write.db, "session_message", id="msg_1", session_id="ses_a", data="{}")
    assert problems(path) == []
    write.session("ses_next", 1, "Told elsewhere")
    insert(write.db, "session_message", id="msg_2", session_id="ses_next", data="{}")
    assert [problem.where for problem in problems(path)] == ["session_message"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_anywhere_is_only_text(written: tuple[Path, Writer], attack: str) -> None:
    path, write = written
    column = attack.encode("utf-8", "replace").decode()  # SQLite takes no lone surrogates; JSON does
    write.session("ses_1", 1, column, directory=column, agent=column, version=column)
    write.user("msg_1", "ses_1", 2, attack)
    write.answer("msg_2", "ses_1", 3, "msg_1", end=4, finish=attack, modelID=attack)
    given = {"command": attack, attack: attack}
    write.step("msg_2", "ses_1", 3, 4, text(attack), call(attack, given, attack, 3, exit=1), {"type": attack})
    run = read(path, "ses_1")
    assert run.load(named(run, "msg_2")).output == attack
    errors = [span.error for span in run.spans if span.error is not None]
    assert any(exact(error.message).isprintable() for error in errors)  # type: ignore[unmasked]


def test_a_body_of_a_changed_row_is_refused(written: tuple[Path, Writer]) -> None:
    path, write = written
    stories(write)
    run = read(path, "ses_a")
    changes: list[tuple[str, Callable[[], object]]] = [
        ("msg_a6", lambda: write.db.execute("UPDATE message SET id = 'msg_zz' WHERE id = 'msg_a6'")),
        (named(run, "bash").id, lambda: write.db.execute("DELETE FROM part WHERE id = ?", (named(run, "bash").id,))),
        ("ses_sub", lambda: write.db.execute("DELETE FROM session WHERE id = 'ses_sub'")),
    ]
    for ident, change in changes:
        span = named(run, ident)
        run.load(span)
        change()
        with pytest.raises(FormatError):
            run.load(span)


def test_other_databases_and_documents_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE session (id)")
        db.execute("CREATE TABLE message (id)")
    texts = ['{"info": {}, "messages": []}', '{"id": 1, "title": "x", "time": 5}', '{"id": "a", "type": "text"}', "[]"]
    for number, content in enumerate(texts):
        (tmp_path / f"{number}.json").write_text(content)
    for file_path in tmp_path.iterdir():
        with LocalFile(str(file_path)) as file:
            assert FORMAT.sniff(file) == 0, file_path.name


def test_a_task_that_names_the_session_it_stands_in_is_read_once(written: tuple[Path, Writer]) -> None:
    path, write = written
    stories(write)
    write.db.execute("UPDATE part SET data = replace(data, 'ses_sub', 'ses_a')")
    with LocalFile(str(path)) as file:
        runs = list(FORMAT.summarize(file, deep=True))
    assert "ses_a" in [run.id for run in runs if isinstance(run, RunSummary)]
