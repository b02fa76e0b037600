"""Codex threads that make one run: agents below the call that spawned them, forks that go on from another file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tests.formats.codex_build import (
    DAY,
    FIRST,
    SECOND,
    THIRD,
    Record,
    call,
    counts,
    done,
    encoded,
    event,
    message,
    meta,
    output,
    record,
    rollout,
)
from tests.shared import needs_shared, sample
from tracetui.diff.comparison import compare
from tracetui.formats.codex import Codex
from tracetui.live.scan import scan
from tracetui.model import Link, Operation, Run, RunRef, Status
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing, read_run

FORMAT = Codex()


def read(path: Path) -> Run:
    return read_run(FORMAT, RunRef("codex", str(path)))


def usage(tokens: int) -> Record:
    return record("token_usage_record", {"usage": counts(tokens, 0, 1), "thread_token_usage": counts(tokens, 0, 1)})


def spawn(ident: str, thread: str) -> list[Record]:
    agents = [{"thread_id": thread, "agent_nickname": "Hedge"}]
    said = done("CollabAgentToolCall", id=ident, receiver_thread_ids=[thread], receiver_agents=agents)
    return [call(ident, "help"), said, output(ident, f'{{"agent_id":"{thread}"}}')]


def parent_of(*threads: str) -> list[Record]:
    """A thread that spawns others."""
    spawned = [record for number, thread in enumerate(threads) for record in spawn(f"s{number}", thread)]
    return [meta(), event("task_started"), message("user", "Plant"), *spawned, usage(100), event("task_complete")]


def agent(thread: str, above: str = FIRST, *more: Record, tokens: int = 10) -> list[Record]:
    begun = meta(thread, parent_thread_id=above, agent_nickname="Hedge", session_id=FIRST)
    end = event("task_complete")
    return [begun, event("task_started"), message("user", "Measure"), call("m"), output("m"), *more, usage(tokens), end]


def tree(run: Run) -> list[str]:
    return [f"{'  ' * depth}{span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


# -------------------------------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("day", [DAY, "2026/03/03"])
def test_work_of_an_agent_is_below_the_call_that_spawned_it(tmp_path: Path, day: str) -> None:
    path = rollout(tmp_path, FIRST, parent_of(SECOND))
    rollout(tmp_path, SECOND, agent(SECOND), day)
    run = read(path)
    assert tree(run) == [
        "turn",
        "  user",
        "  model",
        "    exec_command",
        "      Hedge",
        "        turn",
        "          user",
        "          model",
        "            exec_command",
    ]
    assert run.problems == ()
    assert run.summary.steps == 1
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 110
    (call_,) = [span for span in run.spans if span.preview == "help"]
    assert run.load(call_).links == (Link("sub-agent Hedge", run=SECOND),)
    (hedge,) = [span for span in run.spans if span.operation is Operation.INVOKE_AGENT]
    assert (hedge.status, hedge.status_word) == (Status.OK, "task_complete")
    assert [run.load(span).raw for span in run.spans if span.preview == "Measure"][-1]


def test_an_agent_is_listed_with_the_thread_that_spawned_it(tmp_path: Path) -> None:
    main = rollout(tmp_path, FIRST, parent_of(SECOND))
    part = rollout(tmp_path, SECOND, [*agent(SECOND)[:-1], *spawn("deeper", THIRD)])
    deeper = rollout(tmp_path, THIRD, agent(THIRD, SECOND))
    files = {file.path: file for file in scan(LocalSource(), [str(tmp_path)], deep=True, only=FORMAT)}
    assert len(files[str(main)].runs) == 1
    assert [(files[str(agent)].runs, files[str(agent)].part_of) for agent in (part, deeper)] == [((), str(main))] * 2
    assert [span.name for span in read(main).spans].count("Hedge") == 2


def test_an_agent_without_the_file_of_its_parent_is_a_run_of_its_own(tmp_path: Path) -> None:
    path = rollout(tmp_path, SECOND, agent(SECOND))
    (scanned,) = scan(LocalSource(), [str(tmp_path)], deep=True, only=FORMAT)
    assert [(run.parent, run.agent) for run in scanned.runs] == [(FIRST, "Hedge")]
    rollout(tmp_path, FIRST, [meta(), message("user", "I know nothing of that")])
    with LocalSource().open(str(path)) as file:
        assert FORMAT.whole_of(file) is None


def test_threads_that_spawn_each_other_end(tmp_path: Path) -> None:
    path = rollout(tmp_path, FIRST, [*parent_of(SECOND), *spawn("again", FIRST)])
    rollout(tmp_path, SECOND, [*agent(SECOND), *spawn("back", FIRST), *spawn("self", SECOND)])
    assert [span.name for span in read(path).spans].count("Hedge") == 1
    with LocalSource().open(str(path)) as file:
        assert FORMAT.whole_of(file) is None


def test_threads_that_are_each_others_parents_are_both_listed(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, [*agent(FIRST, SECOND), *spawn("a", SECOND)])
    rollout(tmp_path, SECOND, [*agent(SECOND, FIRST), *spawn("b", FIRST)])
    rollout(tmp_path, THIRD, [*agent(THIRD, THIRD), *spawn("c", THIRD)])
    files = list(scan(LocalSource(), [str(tmp_path)], deep=True, only=FORMAT))
    assert [len(file.runs) for file in files] == [1, 1, 1]


def test_a_thread_of_just_now_is_its_parents_before_that_says_so(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, parent_of()[:3])
    now = datetime.now(UTC).isoformat()
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": FIRST, "depth": 1}}}
    path = rollout(tmp_path, SECOND, [meta(SECOND, source=spawned, timestamp=now)])
    with LocalSource().open(str(path)) as file:
        assert FORMAT.whole_of(file) is not None
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with LocalSource().open(str(path)) as file:
        assert FORMAT.whole_of(file) is None


@pytest.mark.parametrize("thread", ["../../../../etc/passwd", "", "*", "\0", FIRST.upper()])
def test_invalid_thread_id_is_not_searched(tmp_path: Path, thread: str) -> None:
    path = rollout(tmp_path, FIRST, parent_of(thread))
    assert [span.name for span in read(path).spans] == ["turn", "user", "model", "exec_command"]


@pytest.mark.parametrize("seed", range(6))
def test_threads_that_grow_together_are_read_as_at_once(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    wholes = {
        rollout(tmp_path, FIRST, []): encoded(parent_of(SECOND, THIRD)),
        rollout(tmp_path, SECOND, []): encoded(agent(SECOND)),
        rollout(tmp_path, THIRD, []): encoded(agent(THIRD, FIRST, *spawn("x", FIRST), tokens=20)),
    }
    main = next(iter(wholes))
    growing = Growing(FORMAT, RunRef("codex", str(main)))
    offsets = dict.fromkeys(wholes, 0)
    while offsets:
        path = random.choice(list(offsets))
        with path.open("ab") as stream:
            begin, offsets[path] = offsets[path], offsets[path] + random.choice((7, 100, 900, 5000))
            stream.write(wholes[path][begin : offsets[path]])
        if offsets[path] >= len(wholes[path]):
            del offsets[path]
        growing.read()
    growing.read()
    once = read(main)
    known = growing.run()
    assert {span.id: span for span in known.spans} == {span.id: span for span in once.spans}
    assert tree(known) == tree(once)
    assert known.summary == once.summary
    assert known.problems == once.problems == ()


def test_the_run_moves_while_an_agent_does(tmp_path: Path) -> None:
    path = rollout(tmp_path, FIRST, parent_of(SECOND))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    rollout(tmp_path, SECOND, agent(SECOND))
    with LocalSource().open(str(path)) as file:
        assert not file.moving
        FORMAT.open(file, RunRef("codex", str(path))).more(file)
        assert file.moving


def test_the_thread_of_an_agent_under_another_name_is_a_run_of_its_own(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, parent_of(SECOND))
    path = rollout(tmp_path, SECOND, agent(SECOND))
    path.rename(path.with_name("rollout-kept.jsonl"))
    listed = [run for file in scan(LocalSource(), [str(tmp_path)], deep=True) for run in file.runs]
    assert sorted(run.usage.input_tokens or 0 for run in listed if run.usage is not None) == [10, 100]


@pytest.mark.parametrize("root", ["{}", "{}/", ".", "../{1}"])
def test_the_thread_of_an_agent_is_listed_where_its_run_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    rollout(tmp_path, FIRST, parent_of(SECOND))
    path = rollout(tmp_path, SECOND, agent(SECOND), "2026/03/03")
    monkeypatch.chdir(path.parent)
    root = root.format(path.parent, path.parent.name)
    (run,) = [run for file in scan(LocalSource(), [root], deep=True) for run in file.runs]
    assert run.id == SECOND
    monkeypatch.chdir(path.parents[1])
    (run,) = [run for file in scan(LocalSource(), ["."], deep=True) for run in file.runs]
    assert run.id == FIRST


# --------------------------------------------------------------------------------------------------------------- forks


def original() -> list[Record]:
    first = [
        event("task_started"),
        message("user", "Plant"),
        call("a"),
        output("a"),
        usage(100),
        event("task_complete"),
    ]
    return [
        meta(),
        *first,
        event("task_started"),
        message("user", "Water"),
        call("b"),
        output("b"),
        event("task_complete"),
    ]


def fork(before: list[Record], thread: str = SECOND, above: str = FIRST, **base: int) -> list[Record]:
    where = {"thread_id": above, "end_byte_offset": len(encoded(before)), **base}
    begun = meta(thread, forked_from_id=above, history_mode="paginated", history_base=where)
    return [
        begun,
        event("task_started"),
        message("user", "Mulch"),
        call("c"),
        output("c"),
        usage(7),
        event("task_complete"),
    ]


def test_a_fork_begins_with_the_history_up_to_where_it_was_forked(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, original())
    run = read(rollout(tmp_path, SECOND, fork(original()[:7]), "2026/03/04"))
    assert tree(run) == ["turn", "  user", "  model", "    exec_command"] * 2
    assert [span.note for span in run.spans] == ["inherited"] * 4 + [""] * 4
    assert [span.preview for span in run.spans if span.operation is Operation.TURN] == ["Plant", "Mulch"]
    assert run.load(run.spans[3]).input == {"cmd": "ls"}
    summary = run.summary
    assert (summary.replay_of, summary.relation, summary.prompt, summary.steps) == (FIRST, "fork", "Mulch", 2)
    assert summary.usage is not None
    assert summary.usage.input_tokens == 7
    assert run.problems == ()


def test_the_ordinal_ends_a_history_without_an_offset(tmp_path: Path) -> None:
    numbered = [{**record, "ordinal": number} for number, record in enumerate(original())]
    rollout(tmp_path, FIRST, numbered)
    records = fork([], end_ordinal_exclusive=7)
    del records[0]["payload"]["history_base"]["end_byte_offset"]
    assert [span.note for span in read(rollout(tmp_path, SECOND, records)).spans] == ["inherited"] * 4 + [""] * 4


def test_a_fork_of_a_fork_has_the_history_of_both(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, original())
    second = fork(original()[:7])
    rollout(tmp_path, SECOND, second)
    run = read(rollout(tmp_path, THIRD, fork(second, THIRD, SECOND)))
    assert [span.note for span in run.spans] == ["inherited"] * 8 + [""] * 4
    assert [span.step for span in run.spans if span.is_step] == [1, 2, 3]
    assert len({span.id for span in run.spans}) == 12


def test_the_agents_of_a_history_are_there_too(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, parent_of(THIRD))
    rollout(tmp_path, THIRD, agent(THIRD))
    run = read(rollout(tmp_path, SECOND, fork(parent_of(THIRD))))
    assert [span.note for span in run.spans if span.name == "Hedge"] == ["inherited"]
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 7


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ([], f"history of thread {FIRST} is missing: no file found"),
        (original()[:3], f"history of thread {FIRST} ends before the fork"),
    ],
)
def test_a_missing_history_is_reported(tmp_path: Path, there: list[Record], reason: str) -> None:
    if there:
        rollout(tmp_path, FIRST, there)
    path = rollout(tmp_path, SECOND, fork(original()))
    run = read(path)
    assert [(problem.path, problem.where, problem.reason) for problem in run.problems] == [
        (str(path), "line 1", reason)
    ]
    assert tree(run)[-4:] == ["turn", "  user", "  model", "    exec_command"]


def test_forks_of_each_other_end(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, fork([], FIRST, SECOND, end_byte_offset=1 << 40))
    run = read(rollout(tmp_path, SECOND, fork([], end_byte_offset=1 << 40)))
    assert run.problems


def test_a_fork_with_a_late_first_line_has_its_history(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, original())
    whole = encoded(fork(original()[:7]))
    path = rollout(tmp_path, SECOND, [])
    growing = Growing(FORMAT, RunRef("codex", str(path)))
    for size in (0, 10, 150, len(whole) // 2, len(whole)):
        path.write_bytes(whole[:size])
        growing.read()
    assert growing.run().spans == read(path).spans


@needs_shared
def test_a_real_fork_first_differs_in_its_first_own_turn() -> None:
    folder = sample("codex", "generated-0.169.0")
    a, b = (read(next(folder.rglob(f"*{name}*.jsonl"))) for name in ("d1d4", "45dc"))
    assert b.summary.replay_of == a.summary.id
    diff = compare(a, b)
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    assert (diff.relation, row.a) == ("fork", None)
    assert b.spans[row.b or 0].preview == "BRANCH: find the number another way"


def test_a_fork_that_was_not_gone_on_with_costs_nothing(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, original())
    run = read(rollout(tmp_path, SECOND, fork(original()[:7])[:1]))
    assert [span.note for span in run.spans] == ["inherited"] * 4
    assert run.summary.usage is None


# ----------------------------------------------------------------------------- forks that copied the lines of another


def copied(records: list[Record], *own: Record, thread: str = SECOND) -> list[Record]:
    """An old fork: the records of another thread, its first one too, written again later."""
    copies = [{**record, "timestamp": "2026-03-02T10:00:00.000Z"} for record in records]
    return [meta(thread, forked_from_id=FIRST), *copies, *own]


OWN = [event("task_started", turn_id="own"), *fork([])[2:]]


@pytest.mark.parametrize("lost", [(), (3,), (1, 2)])
def test_copies_in_an_old_fork_are_inherited_and_cost_nothing(tmp_path: Path, lost: tuple[int, ...]) -> None:
    before = original()
    rollout(tmp_path, FIRST, before)
    kept = [record for place, record in enumerate(before[:7]) if place not in lost]
    path = rollout(tmp_path, SECOND, copied(kept, *OWN), "2026/03/04")
    run = read(path)
    noted = {span.preview: span.note for span in run.spans if span.name == "user"}
    assert noted == ({"Mulch": ""} if 2 in lost else {"Plant": "inherited", "Mulch": ""})
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 7
    assert (run.summary.replay_of, run.summary.relation) == (FIRST, "fork")
    listed = [run for file in scan(LocalSource(), [str(tmp_path)], deep=True) for run in file.runs]
    assert sorted(run.usage.input_tokens or 0 for run in listed if run.usage is not None) == [7, 100]


def test_the_copies_of_an_original_that_is_gone_count(tmp_path: Path) -> None:
    run = read(rollout(tmp_path, SECOND, copied(original()[:7], *OWN)))
    assert {span.note for span in run.spans} == {""}
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 107


def test_equal_messages_after_the_fork_diverged_are_its_own(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, [*original(), *OWN])
    different = [event("task_started", turn_id="t"), message("user", "Prune"), event("task_complete")]
    run = read(rollout(tmp_path, SECOND, copied(original()[:7], *different, *OWN)))
    assert [span.note for span in run.spans if span.name == "user"] == ["inherited", "", ""]
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 7


def test_the_comparison_with_an_old_fork_begins_with_what_is_its_own(tmp_path: Path) -> None:
    first = read(rollout(tmp_path, FIRST, original()))
    second = read(rollout(tmp_path, SECOND, copied(original()[:7], *OWN)))
    diff = compare(first, second)
    assert diff.first is not None
    row = diff.rows[diff.first.row]
    assert [first.spans[row.a or 0].step, second.spans[row.b or 0].step] == [2, 2]


def test_an_old_fork_that_grows_ends_in_the_same_run(tmp_path: Path) -> None:
    rollout(tmp_path, FIRST, original())
    whole = encoded(copied(original()[:7], *OWN))
    path = rollout(tmp_path, SECOND, [])
    growing = Growing(FORMAT, RunRef("codex", str(path)))
    for size in (0, 10, *range(150, len(whole), 97), len(whole)):
        path.write_bytes(whole[:size])
        growing.read()
    assert growing.run().spans == read(path).spans
    assert growing.run().summary == read(path).summary
