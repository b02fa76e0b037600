"""The file of verdicts: nothing is lost, nothing is claimed that is not there, and nothing in it can hurt."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import ROOT
from tests.store.build import make_summary
from tracetui import demo
from tracetui.errors import NotWritten, UsageError
from tracetui.live.scan import scan
from tracetui.model import RunSummary, Status
from tracetui.sources.local import LocalSource
from tracetui.store import sidecar as module
from tracetui.store.judgement import CauseRef, Verdict, event_of
from tracetui.store.settings import verdicts_file
from tracetui.store.sidecar import Sidecar

NAME: Final = "verdicts.jsonl"

RUN, OTHER = make_summary("a"), make_summary("b")
CAUSE = CauseRef("f" * 64, "F-ffff", "TimeoutError search")
SUBJECTS: tuple[RunSummary | CauseRef, ...] = (RUN, CAUSE, OTHER)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tracetui"


def lines(folder: Path) -> list[bytes]:
    return (folder / NAME).read_bytes().split(b"\n")[:-1]


def test_verdicts_persist(folder: Path) -> None:
    sidecar = Sidecar(folder)
    sidecar.judge(RUN, Verdict.FLAKY)
    sidecar.judge(CAUSE, Verdict.KNOWN)
    sidecar.note(RUN, "seen on Friday")
    sidecar.tag(RUN, "night")
    sidecar.tag(RUN, "slow")
    sidecar.untag(RUN, "night")
    sidecar.mark("m", RUN, "span 7")

    for instance in (sidecar, Sidecar(folder)):
        held = instance.of(RUN)
        assert (held.verdict, held.source, held.note, held.tags) == ("flaky", "run", "seen on Friday", ("slow",))
        later = instance.of(OTHER, CAUSE.digest)
        assert (later.verdict, later.source) == ("known", "cause")
        assert instance.of(OTHER).verdict is None
        mark = instance.marked("m")
        assert mark is not None
        assert (mark.among([OTHER, RUN]), mark.span) == (RUN, "span 7")
        assert instance.tags() == ["night", "slow"]
        assert instance.problems == ()


def test_the_file_is_the_owners_alone_and_is_made_when_it_is_needed(folder: Path) -> None:
    sidecar = Sidecar(folder)
    assert not folder.exists()

    sidecar.judge(RUN, Verdict.REAL)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600


def test_the_sidecar_is_in_the_state_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert verdicts_file() == tmp_path / "tracetui" / NAME
    for nothing in ("", "relative/path"):
        monkeypatch.setenv("XDG_STATE_HOME", nothing)
        assert verdicts_file() == Path.home() / ".local/state/tracetui" / NAME


def test_undo_goes_back_step_by_step_and_not_into_what_others_did(folder: Path) -> None:
    other, sidecar = Sidecar(folder), Sidecar(folder)
    other.judge(RUN, Verdict.REAL)
    sidecar.judge(RUN, Verdict.FLAKY)
    sidecar.note(CAUSE, "known since May")
    other.judge(OTHER, Verdict.IGNORE)

    assert sidecar.undo() == "Undone: note on F-ffff TimeoutError search"
    assert sidecar.of_causes(CAUSE.digest).note == ""
    assert sidecar.undo() == "Undone: verdict flaky on researcher"
    assert sidecar.of(RUN).verdict is Verdict.REAL
    assert sidecar.undo() is None
    assert sidecar.of(OTHER).verdict is Verdict.IGNORE
    sidecar.judge(OTHER, None)
    assert sidecar.of(OTHER).verdict is None
    assert sidecar.undo() == "Undone: remove verdict on researcher"
    assert other.refresh()
    assert other.of(OTHER).verdict is Verdict.IGNORE


def test_lines_of_other_writers_are_read_at_the_cost_of_one_stat(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Sidecar(folder), Sidecar(folder)
    first.judge(RUN, Verdict.REAL)
    assert second.refresh()
    revision = second.revision

    def forbidden(*_: object) -> int:
        raise AssertionError("the file was opened")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_opened", forbidden)
        assert not second.refresh()
    assert second.revision == revision

    first.judge(OTHER, Verdict.FLAKY)
    assert second.refresh()
    assert (second.of(RUN).verdict, second.of(OTHER).verdict) == ("real", "flaky")


def test_the_last_word_is_that_of_the_one_who_spoke_last_whatever_the_clocks(folder: Path) -> None:
    ahead, behind = Sidecar(folder, clock=lambda: 2e9), Sidecar(folder, clock=lambda: 1e9)
    ahead.judge(RUN, Verdict.REAL)
    behind.judge(RUN, Verdict.FLAKY)

    assert Sidecar(folder).of(RUN).verdict is Verdict.FLAKY


def replaced(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    other.replace(path)


@pytest.mark.parametrize("change", [replaced, Path.write_bytes], ids=["another file", "in place"])
def test_a_file_that_was_edited_is_read_anew(folder: Path, change: Callable[[Path, bytes], object]) -> None:
    sidecar = Sidecar(folder)
    for run in (RUN, OTHER):
        sidecar.judge(run, Verdict.FLAKY)
    path = folder / NAME
    os.utime(path, (1, 1))
    sidecar.refresh()

    change(path, path.read_bytes().replace(b"flaky", b"known"))
    assert sidecar.refresh()
    assert sidecar.of(RUN).verdict is Verdict.KNOWN

    change(path, lines(folder)[1] + b"\n")
    assert sidecar.refresh()
    assert (sidecar.of(RUN).verdict, sidecar.of(OTHER).verdict) == (None, "known")

    change(path, b"\n" * 3 + path.read_bytes() + path.read_bytes())
    assert sidecar.refresh()
    assert sidecar.of(OTHER).verdict is Verdict.KNOWN

    path.unlink()
    assert sidecar.refresh()
    assert sidecar.of(OTHER).verdict is None
    sidecar.judge(RUN, Verdict.REAL)
    assert sidecar.of(RUN).verdict is Verdict.REAL
    assert len(lines(folder)) == 1


def test_a_corrupt_line_is_a_problem_and_the_rest_stays(folder: Path) -> None:
    sidecar = Sidecar(folder)
    for run in (RUN, OTHER):
        sidecar.judge(run, Verdict.FLAKY)
    first, second = lines(folder)
    (folder / NAME).write_bytes(b"\n".join([first, b"<<<<<<< HEAD", b"\xff\x1b[2J", second, b"x" * 70_000, b""]))

    assert sidecar.refresh()
    assert sidecar.of(RUN).verdict is sidecar.of(OTHER).verdict is Verdict.FLAKY
    assert [problem.where for problem in sidecar.problems] == ["line 2", "line 3", "line 5"]
    assert sidecar.problems[2].reason == "longer than 64 KB"
    assert all(problem.path == sidecar.path for problem in sidecar.problems)
    sidecar.judge(RUN, Verdict.REAL)
    assert lines(folder)[1] == b"<<<<<<< HEAD"
    assert Sidecar(folder).of(RUN).verdict is Verdict.REAL


def test_a_thousand_corrupt_lines_are_counted(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(b"{\n" * 1000)

    problems = Sidecar(folder).problems
    assert len(problems) == 101
    assert problems[-1].reason == "900 more unreadable lines"


def test_a_torn_line_is_ended_before_the_next(folder: Path) -> None:
    sidecar = Sidecar(folder)
    sidecar.judge(RUN, Verdict.FLAKY)
    path = folder / NAME
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])

    assert sidecar.refresh()
    assert [problem.where for problem in sidecar.problems] == ["line 2"]
    sidecar.judge(OTHER, Verdict.REAL)
    assert lines(folder)[1] == whole[:50]
    for instance in (sidecar, Sidecar(folder)):
        assert (instance.of(RUN).verdict, instance.of(OTHER).verdict) == ("flaky", "real")
        assert [problem.where for problem in instance.problems] == ["line 2"]


def test_a_last_line_whose_end_an_editor_left_out_counts(folder: Path) -> None:
    Sidecar(folder).judge(RUN, Verdict.FLAKY)
    path = folder / NAME
    path.write_bytes(path.read_bytes().rstrip())

    sidecar = Sidecar(folder)
    assert (sidecar.of(RUN).verdict, sidecar.problems) == ("flaky", ())
    sidecar.judge(OTHER, Verdict.REAL)
    assert len(lines(folder)) == 2
    assert (sidecar.of(RUN).verdict, sidecar.of(OTHER).verdict, sidecar.problems) == ("flaky", "real", ())


@given(st.lists(st.integers(0, 3), max_size=14))
def test_two_instances_that_take_turns_agree_and_so_does_a_merge(
    tmp_path_factory: pytest.TempPathFactory, turns: list[int]
) -> None:
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    writers = [Sidecar(here), Sidecar(here), Sidecar(there), Sidecar(there)]
    for number, turn in enumerate(turns):
        if number % 5 == 4:
            writers[turn].undo()
        else:
            writers[turn].judge(SUBJECTS[number % 3], [*Verdict][number % 4])
    for writer in writers:
        writer.refresh()

    def held(instance: Sidecar) -> list[object]:
        return [instance.of(RUN), instance.of(OTHER, CAUSE.digest), instance.of_causes(CAUSE.digest)]

    assert held(writers[0]) == held(writers[1]) == held(Sidecar(here))
    parts = [path.read_bytes() if (path := folder / NAME).exists() else b"" for folder in (here, there)]
    (here / NAME).write_bytes(parts[0] + parts[1])
    (there / NAME).write_bytes(parts[1] + parts[0] + parts[1])
    assert held(Sidecar(here)) == held(Sidecar(there))


# ---- what must not be written to


def test_nothing_is_written_among_traces(tmp_path: Path) -> None:
    folder = tmp_path / "traces" / "state"
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "traces")
    for root in (tmp_path / "traces", tmp_path, link, folder):
        sidecar = Sidecar(folder, [str(root)])
        with pytest.raises(UsageError, match="XDG_STATE_HOME"):
            sidecar.judge(RUN, Verdict.REAL)
        assert sidecar.of(RUN).verdict is None
    assert not folder.exists()
    Sidecar(folder, [str(tmp_path / "trace"), "/elsewhere"]).judge(RUN, Verdict.REAL)


def as_link(path: Path) -> None:
    path.with_name("target").write_bytes(b"")
    path.symlink_to("target")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (as_link, "is a symbolic link"),
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "irectory"),
        (lambda path: path.symlink_to("nowhere"), "is a symbolic link"),
    ],
    ids=["link", "pipe", "folder", "dangling link"],
)
def test_links_and_odd_files_are_refused(folder: Path, make: Callable[[Path], object], reason: str) -> None:
    folder.mkdir(parents=True)
    make(folder / NAME)
    before = sorted(folder.iterdir())

    sidecar = Sidecar(folder)
    with pytest.raises(NotWritten, match=reason):
        sidecar.judge(RUN, Verdict.REAL)
    assert sidecar.of(RUN).verdict is None
    assert sorted(folder.iterdir()) == before
    assert all(path.stat().st_size == 0 for path in before if path.is_file())
    if "dangling" not in reason:
        assert [problem.path for problem in sidecar.problems] == [sidecar.path]
    assert not sidecar.refresh()


def test_a_file_in_place_of_the_folder_is_an_error(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_bytes(b"")

    with pytest.raises(NotWritten, match="exists"):
        Sidecar(folder).judge(RUN, Verdict.REAL)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sidecar: sidecar.note(RUN, "x" * 5000),
        lambda sidecar: sidecar.tag(RUN, "two words"),
        lambda sidecar: sidecar.tag(RUN, ""),
        lambda sidecar: sidecar.tag(RUN, "x" * 100),
        lambda sidecar: sidecar.mark("ab", RUN),
        lambda sidecar: sidecar.mark("\x1b", RUN),
        lambda sidecar: sidecar.mark("m", RUN, "s" * 2000),
        lambda sidecar: sidecar.judge(CauseRef(""), Verdict.REAL),
    ],
)
def test_invalid_events_are_refused_and_write_nothing(folder: Path, wrong: Callable[[Sidecar], None]) -> None:
    sidecar = Sidecar(folder)
    with pytest.raises(UsageError):
        wrong(sidecar)
    assert not (folder / NAME).exists() or lines(folder) == []
    assert sidecar.undo() is None


def test_a_lock_that_is_never_let_go_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    sidecar = Sidecar(folder)
    sidecar.judge(RUN, Verdict.REAL)
    with (folder / NAME).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(NotWritten, match="another instance"):
            sidecar.judge(RUN, Verdict.FLAKY)
    assert sidecar.of(RUN).verdict is Verdict.REAL


def test_a_file_that_is_replaced_while_one_waits_for_it_gets_the_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = Sidecar(folder)
    sidecar.judge(RUN, Verdict.REAL)
    lock, path = module._lock, folder / NAME
    pulled = [path.read_bytes().replace(b"real", b"known")]

    def late(fd: int, deadline: float) -> None:
        lock(fd, deadline)
        if pulled:
            replaced(path, pulled.pop())

    monkeypatch.setattr(module, "_lock", late)
    sidecar.judge(OTHER, Verdict.FLAKY)
    assert len(lines(folder)) == 2
    assert (sidecar.of(RUN).verdict, sidecar.of(OTHER).verdict) == ("known", "flaky")


# ---- several processes, and what kills them

WRITE = """
import resource, sys
from pathlib import Path
from tests.store.build import make_summary
from tracetui.errors import NotWritten
from tracetui.store import sidecar as module
from tracetui.store.judgement import Verdict
from tracetui.store.sidecar import Sidecar
module.LOCK_SECONDS = 60.0  # who holds it may have to wait for the processor
name, folder, times, size = sys.argv[1:]
if int(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
sidecar = Sidecar(Path(folder))
kept = 0
print("ready", flush=True)
sys.stdin.readline()
try:
    for number in range(int(times)):
        sidecar.judge(make_summary(f"{name}{number}"), Verdict.REAL)
        kept += 1
        if number == 20:
            print("many", flush=True)
except NotWritten as error:
    print(error)
claimed = [n for n in range(kept + 2) if sidecar.of(make_summary(f"{name}{n}")).verdict]
assert claimed == list(range(kept)), claimed
print(kept)
"""


def writing(name: str, folder: Path, times: int, size: int = 0) -> subprocess.Popen[str]:
    """A process that writes verdicts once it is told to."""
    command = [sys.executable, "-c", WRITE, name, str(folder), str(times), str(size)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_writing_a_thousand_verdicts_each_lose_none(folder: Path) -> None:
    both = [writing(name, folder, 1000) for name in "ab"]
    for process in both:
        go(process)
    for process in both:
        assert process.communicate(timeout=120)[0].endswith("1000\n")

    sidecar = Sidecar(folder)
    assert sidecar.problems == ()
    assert len(lines(folder)) == 2000
    assert all(sidecar.of(make_summary(f"{name}{n}")).verdict for name in "ab" for n in range(1000))
    times = [event_of(line).at for line in lines(folder)]
    assert times == sorted(set(times))


def test_a_killed_writer_leaves_a_file_that_can_be_read(folder: Path) -> None:
    for _ in range(3):
        process = writing("a", folder, 1_000_000)
        go(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "many\n"
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)

    sidecar = Sidecar(folder)
    assert len(sidecar.problems) <= 3  # a line at most for each kill
    assert sidecar.of(make_summary("a20")).verdict is Verdict.REAL
    sidecar.judge(OTHER, Verdict.FLAKY)
    assert Sidecar(folder).of(OTHER).verdict is Verdict.FLAKY


def test_a_full_disk_is_an_error_and_nothing_is_claimed(folder: Path) -> None:
    process = writing("a", folder, 1000, size=10_000)
    go(process)
    many, error, kept = process.communicate(timeout=60)[0].split("\n")[:3]

    assert many == "many"
    assert "nothing was saved" in error
    assert int(kept) == len(lines(folder)) > 20
    assert (folder / NAME).read_bytes().endswith(b"\n")
    assert Sidecar(folder).problems == ()


def test_a_device_that_is_full_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sidecar = Sidecar(folder)
    sidecar.judge(RUN, Verdict.REAL)
    write = os.write
    calls: list[int] = []

    def full(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) == 1:
            return write(fd, data[:40])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(NotWritten, match="No space left on device; nothing was saved"):
            sidecar.judge(RUN, Verdict.FLAKY)
    assert len(lines(folder)) == 1
    assert sidecar.of(RUN).verdict is Verdict.REAL
    assert sidecar.undo() == "Undone: verdict real on researcher"


# ---- real traces


def failed(folder: Path, *, deep: bool) -> dict[str, RunSummary]:
    """Failed runs by file and key."""
    runs = [run for file in scan(LocalSource(), [str(folder)], deep=deep) for run in file.runs]
    name = {run.ref: f"{Path(run.ref.path).relative_to(folder)} {run.ref.key}".removeprefix("deeper/") for run in runs}
    return {name[run.ref]: run for run in runs if run.status is Status.ERROR or not deep}


def test_a_moved_file_keeps_its_verdict_in_every_format(folder: Path, tmp_path: Path) -> None:
    traces, moved = tmp_path / "traces", tmp_path / "archive"
    demo.write(traces, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    before = failed(traces, deep=True)
    assert len({run.ref.format for run in before.values()}) == 5
    sidecar = Sidecar(folder, [str(traces)])
    for run in before.values():
        sidecar.judge(run, Verdict.KNOWN)

    for path in sorted(traces.rglob("*")):
        if path.is_file():
            target = moved / "deeper" / path.relative_to(traces)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
    sidecar = Sidecar(folder)
    for deep in (True, False):
        after = failed(moved, deep=deep)
        decided = {name for name, run in after.items() if sidecar.of(run).verdict}
        assert decided == set(before)
        assert all(after[name].ref != before[name].ref for name in decided)


def test_a_line_is_what_docs_say(folder: Path) -> None:
    Sidecar(folder, clock=lambda: 0.0).judge(RUN, Verdict.FLAKY)
    fields = msgspec.json.decode(lines(folder)[0])
    page = (ROOT / "docs" / "verdicts.md").read_text("utf-8")

    assert fields["at"] == "1970-01-01T00:00:00.000000Z"
    assert all(f"`{name}`" in page for name in fields | fields["run"])
    assert fields["schema"] in page
