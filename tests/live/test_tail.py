"""Events of changing runs equal a fresh read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.live.replay import Replay, from_scratch, until, until_equal
from tests.live.sessions import Session, paprika
from tests.live.test_forks_listed import FORKS
from tests.scored import install, reward, write_run
from tests.shared import examples
from tracetui import demo
from tracetui.live import tail as tail_module
from tracetui.live.tail import Tail
from tracetui.model import RunRef
from tracetui.sources.local import LocalSource

WAYS = ("in place", "torn", "appended", "replaced", "created again")
Begin = Callable[..., Tail]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begins to follow the folder of the test."""
    tails: list[Tail] = []

    def start(**options: Any) -> Tail:
        tails.append(Tail(LocalSource(), [str(tmp_path)], **options))
        return tails[-1]

    yield start
    for tail in tails:
        tail.close()


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every format."""
    folder = tmp_path_factory.mktemp("samples")
    demo.write(folder, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    return folder


def versions(samples: Path, pattern: str) -> list[bytes]:
    """Contents that a file may have one after the other: those of some samples, whole and not yet complete."""
    contents = []
    for path in sorted(samples.glob(pattern)):
        data = path.read_bytes()
        with suppress(ValueError):
            json.loads(data if path.suffix == ".json" else data.partition(b"\n")[0])
            contents += _shorter(data) if path.suffix == ".json" else _beginnings(data)
    return contents


def _beginnings(data: bytes) -> list[bytes]:
    lines = data.splitlines(keepends=True)
    return [b"".join(lines[:count]) for count in (2, len(lines) // 2, len(lines) - 1, len(lines)) if count > 1]


def _shorter(data: bytes) -> list[bytes]:
    """A document, and the same with half of its longest list."""
    document = json.loads(data)
    lists = [name for name, value in document.items() if isinstance(value, list)]
    if not lists:
        return [data]
    longest = max(lists, key=lambda name: len(document[name]))
    return [json.dumps({**document, longest: document[longest][: len(document[longest]) // 2]}).encode(), data]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("ccpa/*.jsonl", "run.ccpa-trace.jsonl"),
        ("paprika/[0-6]*.json", "run.json"),
        ("penelope/*/test_result.json", "test_result.json"),
        ("latticeflow/[at]*.json*", "run.json"),
        ("latticeflow/*.jsonl", "run.jsonl"),
    ],
)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_a_file_is_followed_whatever_is_done_to_it(samples: Path, pattern: str, name: str, data: st.DataObject) -> None:
    contents = versions(samples, pattern)
    assert len(contents) >= 3
    with TemporaryDirectory() as folder:
        tail, replay = Tail(LocalSource(), [folder], from_start=True), Replay()
        with closing(tail):
            for _ in range(data.draw(st.integers(1, 5))):
                content, way = data.draw(st.sampled_from(contents)), data.draw(st.sampled_from(WAYS))
                for _ in _write(Path(folder, name), content, way):
                    replay.take(tail.events(0.0))
                until_equal(tail, replay, folder)


def _write(path: Path, content: bytes, way: str) -> Iterator[None]:
    """Write `content` to a file in steps, with reads in between."""
    before = path.read_bytes() if path.exists() else b""
    if way == "appended" and content.startswith(before):
        for cut in range(len(before), len(content), 1 + len(content) // 5):
            with path.open("ab") as file:
                file.write(content[cut : cut + 1 + len(content) // 5])
            yield
    elif way == "replaced":
        fresh = path.with_name("fresh.tmp")
        fresh.write_bytes(content)
        fresh.replace(path)
    elif way == "created again":
        path.unlink(missing_ok=True)
        yield
        path.write_bytes(content)
    else:
        with path.open("wb", 0) as file:
            if way == "torn":
                file.write(content[: len(content) // 2])
                yield
                content = content[len(content) // 2 :]
            file.write(content)
    yield


@settings(max_examples=examples(5))
@given(data=st.data())
def test_a_database_is_followed_whatever_is_done_to_it(samples: Path, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder, "runs.db"))) as writer:
        _prepare(writer, samples / "graphs" / "workflows.db")
        tail, replay = Tail(LocalSource(), [folder], from_start=True), Replay()
        with closing(tail):
            for _ in range(data.draw(st.integers(1, 5))):
                _change(writer, data)
                until_equal(tail, replay, folder)


def _prepare(writer: sqlite3.Connection, sample: Path) -> None:
    """The tables of the sample, in WAL mode, with its runs; its steps are there to be taken."""
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("ATTACH ? AS sample", [str(sample)])
    for (statement,) in writer.execute("SELECT sql FROM sample.sqlite_master WHERE sql NOT NULL").fetchall():
        if "sqlite_" not in statement:
            writer.execute(statement)
    writer.execute("INSERT INTO _schema_version SELECT * FROM sample._schema_version")
    writer.execute("INSERT INTO runs SELECT * FROM sample.runs")
    writer.commit()


def _change(writer: sqlite3.Connection, data: st.DataObject) -> None:
    ids = [row for (row,) in writer.execute("SELECT id FROM sample.steps ORDER BY id")]
    row = data.draw(st.sampled_from(ids))
    how = data.draw(st.sampled_from(["more", "more", "other status", "fewer", "checkpoint", "renamed"]))
    if how == "more":
        writer.execute("INSERT OR IGNORE INTO steps SELECT * FROM sample.steps WHERE id <= ?", [row])
    elif how == "other status":
        writer.execute(
            "UPDATE runs SET status = 'failed' WHERE id = (SELECT run_id FROM sample.steps WHERE id=?)", [row]
        )
    elif how == "fewer":
        writer.execute("DELETE FROM steps WHERE id > ?", [row])
    elif how == "renamed":
        writer.execute("UPDATE steps SET node_name = 'other' || id WHERE id = ?", [row])
    writer.commit()
    if how == "checkpoint":
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")


# ---- what is reported, and when


def test_a_run_comes_before_its_spans_and_its_end_once(tmp_path: Path, begin: Begin) -> None:
    tail, replay = begin(from_start=True), Replay()
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    session.step()
    until_equal(tail, replay, str(tmp_path))
    session.step()
    session.end()
    until(tail, replay, lambda: "end" in replay.kinds())
    until_equal(tail, replay, str(tmp_path))

    assert replay.kinds()[0] == "run"
    assert replay.kinds().count("end") == 1
    last: dict[str, object] = {"event": "end", "run": str(session.path), "status": "ok", "outcome": None, "scores": []}
    assert replay.seen[-1] == last
    assert "reset" not in replay.kinds()


def test_a_file_of_many_runs_is_not_read_for_each_at_the_start(
    tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    quietly = tail_module.RunEvents.read_silently

    def noted(self: tail_module.RunEvents, ref: RunRef) -> None:
        read.append(ref.key or "")
        quietly(self, ref)

    monkeypatch.setattr(tail_module.RunEvents, "read_silently", noted)
    path = tmp_path / "many.jsonl"
    path.write_text("".join(_trace(number, ended=number != 3) for number in range(9)))
    begin()
    assert len(read) == 9
    assert read[0] == f"{3:032x}", "one that has not ended goes on, most likely"

    read.clear()
    monkeypatch.setattr("tracetui.live.tail.READ_AHEAD_SECONDS", -1.0)
    tail, replay = begin(), Replay()
    assert read == []
    with path.open("a") as file:
        file.write(_trace(3, ended=True))
    until(tail, replay, lambda: "end" in replay.kinds())
    assert {event["run"] for event in replay.seen if event["event"] == "end"} == {f"{path}#{3:032x}"}


def _trace(number: int, *, ended: bool) -> str:
    """A line of OTLP with the span at the top of a trace, or with one below it."""
    span = {
        "traceId": f"{number:032x}",
        "spanId": f"{1 + (not ended):016x}",
        "parentSpanId": "" if ended else f"{1:016x}",
        "name": "work",
        "startTimeUnixNano": "1772442900000000000",
        "endTimeUnixNano": "1772442901000000000",
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"


def test_a_run_that_ends_again_is_reported_again(tmp_path: Path, begin: Begin) -> None:
    tail, replay = begin(from_start=True), Replay()
    for status in ("success", "error"):
        paprika(tmp_path / "r-1.json", "r-1", status=status)
        until_equal(tail, replay, str(tmp_path))

    assert [event["status"] for event in replay.seen if event["event"] == "end"] == ["ok", "error"]


def test_existing_runs_are_not_reported(tmp_path: Path, begin: Begin) -> None:
    old = Session(tmp_path / "old.ccpa-trace.jsonl", "old")
    quiet = Session(tmp_path / "quiet.ccpa-trace.jsonl", "quiet")
    for session in (old, quiet):
        session.step()
    (tmp_path / "broken.json").write_text('{"record_id": ')
    tail, replay = begin(), Replay()
    replay.take(tail.events(0.2))
    assert replay.seen == []

    old.step("new")
    until(tail, replay, lambda: len(replay.seen) >= 2)

    assert {event["run"] for event in replay.seen} == {str(old.path)}
    assert replay.kinds()[:2] == ["run", "span"]
    reported = json.dumps([event["span"] for event in replay.seen if event["event"] == "span"])
    assert "new" in reported
    assert "make 1" not in reported


def test_a_run_is_followed_from_where_it_was_also_if_it_was_not_read_at_the_start(
    tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracetui.live.tail.READ_AHEAD", -1)
    test_existing_runs_are_not_reported(tmp_path, begin)


def test_more_runs_than_there_are_readers(tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_module, "READERS", 2)
    sessions = [Session(tmp_path / f"{number}.ccpa-trace.jsonl", f"s-{number}") for number in range(5)]
    tail, replay = begin(from_start=True), Replay()
    for _ in range(2):
        for session in sessions:
            session.step()
        until_equal(tail, replay, str(tmp_path))
    sessions[0].path.write_bytes(sessions[0].path.read_bytes().replace(b"make", b"cake"))
    until_equal(tail, replay, str(tmp_path))


def test_a_file_that_goes_takes_its_runs_along(tmp_path: Path, begin: Begin) -> None:
    session = Session(tmp_path / "folder" / "s.ccpa-trace.jsonl")
    tail, replay = begin(from_start=True), Replay()
    until_equal(tail, replay, str(tmp_path))
    shutil.rmtree(session.path.parent)
    until(tail, replay, lambda: not replay.runs)

    assert replay.seen[-1] == {"event": "reset", "run": str(session.path)}


def test_only_wanted_runs_are_reported(tmp_path: Path, begin: Begin) -> None:
    wanted = Session(tmp_path / "b.ccpa-trace.jsonl", "b")
    Session(tmp_path / "a.ccpa-trace.jsonl", "a").step()
    tail, replay = begin(from_start=True, wanted=lambda ref: ref == RunRef("ccpa", str(wanted.path))), Replay()
    until(tail, replay, lambda: bool(replay.runs))
    replay.take(tail.events(0.1))

    assert list(replay.runs) == [str(wanted.path)]


def test_the_replayed_run_is_reported_once_known(tmp_path: Path, begin: Begin, samples: Path) -> None:
    tail, replay = begin(from_start=True), Replay()
    for name in ("student.ccpa-trace.jsonl", "teacher.ccpa-trace.jsonl"):
        shutil.copy(samples / "ccpa" / "0025-rename" / name, tmp_path)
        until_equal(tail, replay, str(tmp_path))

    student = replay.runs[str(tmp_path / "student.ccpa-trace.jsonl")]
    assert student["replay_of_address"] == str(tmp_path / "teacher.ccpa-trace.jsonl")


@pytest.mark.parametrize("names", [("f0", "f1"), ("f1", "f0")])
def test_a_copied_response_counts_once_whichever_file_comes_first(
    tmp_path: Path, begin: Begin, names: tuple[str, str]
) -> None:
    tail, replay = begin(), Replay()
    for path in [next(FORKS.glob(f"{name}*.jsonl")) for name in names]:
        shutil.copy(path, tmp_path)
        until_equal(tail, replay, str(tmp_path))
    next(tmp_path.glob("f0*.jsonl")).unlink()
    until_equal(tail, replay, str(tmp_path))


def test_an_original_from_before_the_start_counts_what_a_new_fork_copied(tmp_path: Path, begin: Begin) -> None:
    original, fork = (next(FORKS.glob(f"{name}*.jsonl")) for name in ("f0", "f1"))
    shutil.copy(original, tmp_path)
    tail, replay = begin(), Replay()
    shutil.copy(fork, tmp_path)
    address = str(tmp_path / fork.name)
    until(tail, replay, lambda: address in replay.runs)
    assert replay.known() == {address: from_scratch(str(tmp_path))[address]}


# ---- problems


def test_a_half_written_file_is_reported_once_unchanged(tmp_path: Path, begin: Begin) -> None:
    path = tmp_path / "r-1.json"
    whole = paprika(path, "r-1", steps=3)
    path.write_bytes(whole[: len(whole) // 2])
    written = path.stat().st_ctime
    tail, replay = begin(from_start=True), Replay()

    until(tail, replay, lambda: bool(replay.problems))
    assert _now() - written >= 2.0
    assert list(replay.problems) == [str(path)]
    for _ in range(3):
        replay.take(tail.events(0.1))
    assert replay.kinds() == ["problem"]

    path.write_bytes(whole)
    until_equal(tail, replay, str(tmp_path))
    assert replay.problems == {}
    assert replay.kinds()[:3] == ["problem", "reset", "run"]


def test_a_run_in_a_broken_file_stays_and_the_problem_is_reported(tmp_path: Path, begin: Begin) -> None:
    path = tmp_path / "r-1.json"
    whole = paprika(path, "r-1", steps=3)
    tail, replay = begin(from_start=True), Replay()
    until_equal(tail, replay, str(tmp_path))
    known = replay.known()
    path.write_bytes(whole[:40])
    until(tail, replay, lambda: bool(replay.problems))
    assert replay.known() == known

    path.write_bytes(whole)
    until(tail, replay, lambda: not replay.problems)
    until_equal(tail, replay, str(tmp_path))


def test_an_old_broken_file_is_reported_at_once(tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.live.tail._changed_at", lambda entry: -1e9)
    monkeypatch.setattr("tracetui.live.watch.STILL_SECONDS", 3600.0)
    path = tmp_path / "r-1.json"
    path.write_text('{"record_id": ')
    tail, replay = begin(from_start=True), Replay()
    until(tail, replay, lambda: bool(replay.problems))

    path.unlink()
    until(tail, replay, lambda: not replay.problems)


def test_bad_lines_are_reported_once_each(tmp_path: Path, begin: Begin) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    tail, replay = begin(from_start=True), Replay()
    session.write_bytes(b"{bad\n")
    until(tail, replay, lambda: bool(replay.problems))
    session.write_bytes(b"worse\n")
    session.step()
    until(tail, replay, lambda: len(replay.problems[str(session.path)]) == 2)
    session.step()
    until_equal(tail, replay, str(tmp_path))

    assert replay.kinds().count("problem") == replay.runs[str(session.path)]["problems"] == 2


def test_a_large_file_does_not_hold_others_up(tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.formats.jsonl.BUDGET", 0.001)
    large, small = Session(tmp_path / "large.ccpa-trace.jsonl", "large"), tmp_path / "small.ccpa-trace.jsonl"
    for _ in range(1500):
        large.step()
    tail, replay = begin(from_start=True), Replay()
    until(tail, replay, lambda: bool(replay.runs))
    Session(small, "small").step()
    until(tail, replay, lambda: str(small) in replay.runs)
    monkeypatch.undo()
    until_equal(tail, replay, str(tmp_path))

    last = max(number for number, event in enumerate(replay.seen) if event["event"] == "span")
    assert replay.seen[last]["run"] == str(large.path)


def _now() -> float:
    return datetime.now(tz=UTC).timestamp()


def test_a_retry_gets_the_task_of_its_original_once_that_appears(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    write_run(tmp_path, "again", replay_of="first", relation="retry")
    tail, replay = begin(from_start=True), Replay()
    until_equal(tail, replay, str(tmp_path))
    write_run(tmp_path, "first", task="t1", scores=[reward(0.0, passed=False)])
    until_equal(tail, replay, str(tmp_path))
    runs = {run["id"]: (run["task"], run["outcome"]) for run, _ in replay.known().values()}
    assert runs == {"again": ("t1", None), "first": ("t1", "failed")}
