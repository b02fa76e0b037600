"""Claude Code sessions with copies of another one's records: who is whose original, and each response counts once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.test_claude_code import (
    CASES,
    FORMAT,
    claims_of,
    listed,
    raw_tokens,
    read,
    session,
    tokens,
    with_case,
    write,
)
from tracetui.formats import jsonl
from tracetui.model import COPIED, COUNTED_COPY, RunRef
from tracetui.sources.base import File, Stat
from tracetui.sources.local import LocalFile
from tracetui.testing.reading import Follower

__all__ = ["CASES"]  # of which the fixture `case` makes copies

SIGNS = ("first", "each", "none")
"""How a fork says what it copied: by records of its own before it, on each copy, or not at all, as before 2.1."""


def stamp(second: int) -> str:
    return f"2026-01-{1 + second // 86_400:02}T{second // 3_600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


class Folder:
    """A project in which sessions are begun, gone on with and forked; time goes on with each record."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self.now = 0
        self.sessions: list[list[dict[str, Any]]] = []
        at.mkdir(parents=True)

    def turn(self, ident: int, *, version: str, parent: str | None) -> list[dict[str, Any]]:
        self.now += 10
        shared = {"sessionId": f"s{ident}", "version": version, "cwd": "/home/ada/yew", "isSidechain": False}
        asked, answer = f"u{self.now}", f"a{self.now}"
        prompt = {"role": "user", "content": f"Prompt {self.now}"}
        usage = {"input_tokens": self.now, "output_tokens": 1}
        said = {"id": f"m{self.now}", "role": "assistant", "model": "m", "content": [], "usage": usage}
        first = {"type": "user", "uuid": asked, "parentUuid": parent, "timestamp": stamp(self.now), "message": prompt}
        second = {"type": "assistant", "uuid": answer, "parentUuid": asked, "timestamp": stamp(self.now + 1)}
        return [first | shared, second | shared | {"message": said}]

    def begin(self, turns: int, version: str = "2.1.197") -> None:
        self.append_turns([], len(self.sessions), turns, version)

    def fork(self, original: int, keep: int, sign: str, turns: int) -> None:
        """A fork of a session, which begins with the first `keep` of its turns; without a sign, with all of them."""
        ident, of = len(self.sessions), self.sessions[original]
        known = [record for record in of if "uuid" in record]
        copies = [{**record, "sessionId": f"s{ident}"} for record in (known if sign == "none" else known[: 2 * keep])]
        for copy in copies:
            copy.pop("forkedFrom", None)
        self.now += 10
        if sign == "first":
            note = {"type": "queue-operation", "timestamp": stamp(self.now), "sessionId": f"s{ident}"}
            copies.insert(0, note)
        elif sign == "each":
            copies = [{**copy, "forkedFrom": {"sessionId": f"s{original}"}} for copy in copies]
        self.append_turns(copies, ident, turns, "2.0.3" if sign == "none" else "2.1.197")

    def append_turns(self, before: list[dict[str, Any]], ident: int, turns: int, version: str) -> None:
        parent = before[-1].get("uuid") if before else None
        records = list(before)
        for _ in range(turns):
            records += self.turn(ident, version=version, parent=parent)
            parent = records[-1]["uuid"]
        self.sessions.append(records)
        write(self.at / f"s{ident}.jsonl", records)

    def path(self, ident: int) -> Path:
        return self.at / f"s{ident}.jsonl"


def input_of(folder: Folder) -> dict[str, int | None]:
    """Input tokens of each session that is there."""
    return {run.id: run.usage.input_tokens if run.usage else None for run in listed(folder.at)}


def test_copies_of_a_missing_original_count_in_the_first_fork(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(3)  # 10, 20, 30
    folder.fork(0, 2, "first", 1)  # 50
    folder.fork(0, 3, "first", 1)  # 70
    assert input_of(folder) == {"s0": 60, "s1": 50, "s2": 70}
    folder.path(0).unlink()
    assert input_of(folder) == {"s1": 10 + 20 + 50, "s2": 30 + 70}
    run = claims_of(folder.at).mark(read(folder.path(2)))
    assert [(span.note, span.usage is not None) for span in run.spans if span.id.startswith("m")] == [
        (COPIED, False),
        (COPIED, False),
        (COUNTED_COPY, True),
        ("", True),
    ]
    assert all(span.taken_over for span in run.spans if span.note)
    folder.path(1).unlink()
    assert input_of(folder) == {"s2": 10 + 20 + 30 + 70}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_fork_counts_right_when_its_original_comes_back_and_goes(tmp_path: Path, sign: str) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(3, "2.0.3")
    folder.fork(0, 2, sign, 2)
    data = folder.path(0).read_bytes()
    folder.path(0).unlink()
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(folder.path(1))))
    follower.read()
    given, own = follower.given, input_of(folder)["s1"]
    for what in (data, None, data):
        folder.path(0).unlink() if what is None else folder.path(0).write_bytes(what)
        follower.read()
        assert follower.given == given  # its own records are the same
        counts = input_of(folder)
        assert (counts["s1"] == own) is (what is None)


def test_a_session_that_is_rewritten_as_a_copy_counts_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(2, "2.0.3")
    folder.begin(2, "2.0.3")
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(folder.path(1))))
    follower.read()
    folder.fork(0, 2, "none", 1)
    folder.path(2).replace(folder.path(1))
    follower.read()
    follower.check("after it was rewritten")


def test_a_fork_that_grows_ends_in_the_same_run(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(2, "2.0.3")
    for sign in SIGNS:
        folder.fork(0, 2, sign, 2)
        path = folder.path(len(folder.sessions) - 1)
        data, cut = path.read_bytes(), 0
        path.write_bytes(b"")
        follower = Follower(FORMAT, RunRef(FORMAT.name, str(path)))
        while cut < len(data):
            with path.open("ab") as writer:
                writer.write(data[cut : cut + 333])
            cut += 333
            follower.read()
        follower.check(f"after growing, sign {sign}")


def test_an_old_session_that_was_resumed_is_the_original_of_the_one_that_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(2, "1.0.58")
    folder.fork(0, 2, "none", 1)
    for deep in (False, True):  # the first record of each shows it
        runs = {run.id: run for run in listed(folder.at, deep=deep)}
        assert (runs["s0"].relation, runs["s1"].relation, runs["s1"].replay_of) == (None, "fork", "s0")
        assert runs["s1"].replay_of_path == str(folder.path(0))
    assert input_of(folder) == {"s0": 30, "s1": 40}
    marked = claims_of(folder.at).mark(read(folder.path(1)))
    assert [span.id for span in marked.spans if span.taken_over] == ["m10", "m20"]


@pytest.mark.parametrize("sign", SIGNS)
def test_reading_a_session_opens_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(2, "2.0.3")
    folder.fork(0, 2, sign, 1)
    opened: list[str] = []
    other = LocalFile.other

    def noted(self: LocalFile, path: str, stat: Stat | None = None) -> File:
        opened.append(path)
        return other(self, path, stat)

    monkeypatch.setattr(LocalFile, "other", noted)
    assert len(listed(folder.at)) == 2
    assert not opened


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(1, 3), st.sampled_from(["2.0.3", "2.1.197"])),
        st.tuples(st.just("fork"), st.integers(0, 9), st.integers(1, 4), st.sampled_from(SIGNS), st.integers(0, 2)),
    ),
    max_size=6,
)


@given(acts=ACTS, gone=st.sets(st.integers(0, 9), max_size=4))
def test_each_response_counts_once_whatever_was_forked_and_is_gone(
    tmp_path_factory: pytest.TempPathFactory, acts: list[Any], gone: set[int]
) -> None:
    folder = Folder(tmp_path_factory.mktemp("forks") / "yew")
    folder.begin(3, "2.0.3")
    for act, *arguments in acts:
        if act == "begin":
            folder.begin(*arguments)
        else:
            original, keep, sign, turns = arguments
            old = folder.sessions[original % len(folder.sessions)][-1].get("version") == "2.0.3"
            folder.fork(original % len(folder.sessions), keep, sign if old or sign != "none" else "first", turns)
    for ident in gone:
        folder.path(ident).unlink(missing_ok=True)
    assert tokens(listed(folder.at)) == raw_tokens(iter(folder.at.glob("*.jsonl")))


@with_case(["fork"])
def test_a_fork_whose_original_is_gone_is_counted(case: Path) -> None:
    session(case, "f0").unlink()
    assert tokens(listed(case)) == raw_tokens(case.rglob("*.jsonl"))
    session(case, "f1").unlink()
    assert tokens(listed(case)) == raw_tokens(case.rglob("*.jsonl"))


def test_a_broken_original_is_no_harm(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "yew")
    folder.begin(2)
    folder.fork(0, 2, "each", 1)
    lines = folder.path(0).read_text().splitlines()
    lines[1] = '{"uuid": 7, "message": []}'
    folder.path(0).write_text("\n".join(["[1]", "{", *lines]))
    assert input_of(folder)["s1"] == 10 + 40  # the first response is nowhere else any more


def edited(tmp_path: Path, *, linked: bool = True) -> Folder:
    """A session whose first prompt was edited after two turns, and a third turn after that."""
    folder = Folder(tmp_path / "yew")
    folder.begin(2)
    lines = folder.sessions[0] + folder.turn(0, version="2.1.197", parent=None)
    if not linked:
        lines = [{**record, "parentUuid": None} for record in lines]
    write(folder.path(0), lines)
    return folder


def test_answer_to_an_edited_first_prompt_is_an_abandoned_branch(tmp_path: Path) -> None:
    folder = edited(tmp_path)
    run = read(folder.path(0))
    (branch,) = [span for span in run.spans if span.name == "abandoned branch"]
    assert (branch.preview, branch.note) == ("Prompt 10", "2 responses")
    assert [(span.id, span.parent_id) for span in run.spans if span.id != branch.id] == [
        ("u10", branch.id),
        ("m10", branch.id),
        ("u20", branch.id),
        ("m20", branch.id),
        ("u30", None),
        ("m30", None),
    ]
    assert run.load(branch).attributes["went_on_with"] == "u30"
    (counted,) = listed(folder.at)
    assert (counted.steps, counted.llm_calls, run.summary.steps) == (1, 3, 1)
    assert tokens([counted]) == raw_tokens(iter([folder.path(0)]))  # what was said was paid for


def test_prompts_that_follow_nothing_are_no_rewind_where_nothing_follows_anything(tmp_path: Path) -> None:
    run = read(edited(tmp_path, linked=False).path(0))
    assert [span.parent_id for span in run.spans] == [None] * 6
    assert run.summary.steps == 3


def test_a_first_prompt_that_was_edited_twice_while_somebody_looked(tmp_path: Path) -> None:
    folder = edited(tmp_path)
    data = folder.path(0).read_bytes()
    second = folder.turn(0, version="2.1.197", parent=None)
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(folder.path(0))))
    follower.read()
    write(folder.path(0), second)
    folder.path(0).write_bytes(data + folder.path(0).read_bytes())
    follower.read()
    follower.check("after the second edit")
    run = read(folder.path(0))
    assert [span.id for span in run.spans if span.is_step] == ["m40"]
    assert [span.preview for span in run.spans if span.name == "abandoned branch"] == ["Prompt 10", "Prompt 30"]


def test_sub_agents_within_a_copied_session_count_once(tmp_path: Path) -> None:
    folder = tmp_path / "input"
    shutil.copytree(CASES / "old" / "input", folder)
    main = session(folder, "")
    copy = main.with_name("0c000000-aaaa-4bbb-8ccc-0000000000aa.jsonl")
    copy.write_bytes(main.read_bytes().replace(main.stem.encode(), copy.stem.encode()))
    assert tokens(listed(folder)) == raw_tokens(folder.rglob("*.jsonl"))


def test_context_handed_to_an_agent_counts_once_with_small_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CASES / "agents" / "input", tmp_path / "input")
    main = session(tmp_path)
    data, right = main.read_bytes(), read(main).summary.usage
    main.write_bytes(b"")
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(main)))
    follower.read()  # the files of agents
    monkeypatch.setattr(jsonl, "BUDGET", 0.0)  # a line at a time
    main.write_bytes(data)
    follower.read()
    follower.check("after the session came")
    assert read(main).summary.usage == right


def test_the_agents_of_a_workflow_are_called_as_its_plan_calls_them(tmp_path: Path) -> None:
    shutil.copytree(CASES / "agents" / "input", tmp_path / "input")
    main = session(tmp_path)
    follower = Follower(FORMAT, RunRef(FORMAT.name, str(main)))
    follower.read()
    before = read(main)
    plan = main.with_suffix("") / "workflows" / "wf_nest.json"
    plan.parent.mkdir()
    row = {"type": "workflow_agent", "agentId": "ant01", "label": "dig", "phaseTitle": "Map", "state": "done"}
    plan.write_text(json.dumps({"runId": "wf_nest", "workflowProgress": [{"type": "workflow_phase"}, 7, row]}))
    run = read(main)
    ant = run.span("agent:ant01")
    assert ant is not None
    assert ant.preview == "Map: dig"
    assert run.load(ant).attributes["workflow"] == row
    follower.read()
    follower.check("after its plan came")
    assert [(span.id, span.preview) for span in run.spans if span.id != ant.id] == [
        (span.id, span.preview) for span in before.spans if span.id != ant.id
    ]
    plan.write_text("[")
    assert read(main).spans == before.spans


@with_case(["fork"])
def test_ownership_is_the_same_after_an_early_end_of_the_first_read(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first line nothing shows yet that the fork began as early as its copy, which comes later by name."""
    fork = session(case, "f2")
    shutil.copyfile(fork, fork.with_name(f"z-{fork.name}"))
    right = read(fork).summary.usage
    times = iter([0.0, 0.0, 100.0])  # the first read begins, and meets two lines
    monkeypatch.setattr(jsonl, "perf_counter", lambda: next(times, 0.0))
    assert read(fork).summary.usage == right
