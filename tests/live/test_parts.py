"""A run in several files is one run, in whatever order its files appear: in ``tail`` and in the app's list."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.live.replay import Replay, by_id, until_equal
from tests.live.test_lister import listing
from tests.shared import PATIENCE, ROOT, seeds
from tracetui.live.lister import Lister
from tracetui.live.mailbox import Mailbox, Throttle
from tracetui.live.scan import scan
from tracetui.live.tail import Tail
from tracetui.live.watch import Watch
from tracetui.model import RunSummary
from tracetui.sources.base import File, Stat
from tracetui.sources.local import LocalSource

_FORMATS = ROOT / "tests" / "formats"
CASES = {
    "codex/threads": "*000002.jsonl",  # the agents began after midnight: their files are in another folder
    "claude_code/agents": "e1000000-*.jsonl",
    "claude_code/old": "01d00000-*.jsonl",
    "atif/agents": "trajectory.json",
    "opencode/storage": "ses_a.json",
}
"""Cases of formats with runs in several files, with the name of the main file."""

parametrized = pytest.mark.parametrize("case", CASES)


def copy_parts(case: str, folder: Path) -> tuple[Path, Path]:
    """Copy all files of a case but the main one; returns that, and where it belongs."""
    source = _FORMATS / case / "input"
    (main,) = source.rglob(CASES[case])
    shutil.copytree(source, folder, ignore=lambda _, names: {main.name} & set(names), dirs_exist_ok=True)
    return main, folder / main.relative_to(source)


def put(main: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(main, target.with_name("written.tmp"))
    target.with_name("written.tmp").rename(target)


@parametrized
def test_tail_replaces_a_part_that_appeared_before_its_main_file(tmp_path: Path, case: str) -> None:
    replay = Replay()
    with closing(Tail(LocalSource(), [str(tmp_path)])) as tail:
        main, target = copy_parts(case, tmp_path)
        until_equal(tail, replay, str(tmp_path), by_id)
        reported = set(replay.runs)
        put(main, target)
        until_equal(tail, replay, str(tmp_path), by_id)
        assert str(target) in {address.partition("#")[0] for address in replay.runs}
        gone = reported - set(replay.runs)
        resets = {event["run"] for event in replay.seen if event["event"] == "reset"}
        assert gone <= resets
        assert gone or case == "opencode/storage" or case == "claude_code/old"
        target.unlink()
        until_equal(tail, replay, str(tmp_path), by_id)
        assert set(replay.runs) == reported


def test_tail_replaces_a_part_when_its_main_file_comes_to_name_it(tmp_path: Path) -> None:
    replay = Replay()
    with closing(Tail(LocalSource(), [str(tmp_path)])) as tail:
        main, target = copy_parts("codex/threads", tmp_path)
        for fork in tmp_path.rglob("*000004.jsonl"):
            fork.unlink()  # inherited records are not written here yet, which never happens
        lines = main.read_bytes().splitlines(keepends=True)
        spawns = next(number for number, line in enumerate(lines) if b"spawn_agent" in line)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"".join(lines[:spawns]))
        until_equal(tail, replay, str(tmp_path), by_id)
        reported = set(replay.runs)
        for line in lines[spawns:]:
            with target.open("ab") as file:
                file.write(line)
            until_equal(tail, replay, str(tmp_path), by_id)
        assert len(reported) > len(replay.runs) >= 1


@parametrized
def test_the_list_replaces_a_part_that_appeared_before_its_main_file(tmp_path: Path, case: str) -> None:
    with listing(tmp_path, LocalSource()) as (_, mailbox):
        known: dict[str, set[str]] = {}
        collect_until_equal(mailbox, known, tmp_path, watching=True)
        main, target = copy_parts(case, tmp_path)
        collect_until_equal(mailbox, known, tmp_path)
        for path in sorted(tmp_path.rglob("*.jsonl")):  # files that change again and again have readers of their own
            for _ in range(2):
                with path.open("ab") as file:
                    file.write(b"\n")
                collect_until_changed(mailbox, known)
        put(main, target)
        collect_until_equal(mailbox, known, tmp_path)
        assert known[str(target)]
        target.unlink()
        collect_until_equal(mailbox, known, tmp_path)


def collect_until_changed(mailbox: Mailbox, known: dict[str, set[str]]) -> None:
    """Collect the next mail."""
    assert mailbox.wait(PATIENCE)
    take(mailbox, known)


def collect_until_equal(mailbox: Mailbox, known: dict[str, set[str]], folder: Path, *, watching: bool = False) -> None:
    """Collect mail until the list equals the disk."""
    end = time.monotonic() + PATIENCE
    seen_watching = not watching
    while not seen_watching or {path: runs for path, runs in known.items() if runs} != listed(folder):
        assert mailbox.wait(end - time.monotonic()), (known, listed(folder))
        seen_watching |= take(mailbox, known)


class Steps:
    """A list that is updated step by step, and files of a case to add and remove."""

    def __init__(self, case: str, folder: Path, source: LocalSource | None = None) -> None:
        self.input = _FORMATS / case / "input"
        self.files = sorted(path for path in self.input.rglob("*") if path.is_file())
        self.folder = folder
        self.known: dict[str, set[str]] = {}
        self.runs: dict[str, tuple[RunSummary, ...]] = {}
        self._mailbox, source = Mailbox(), source or LocalSource()
        self._watch = Watch(source, [str(folder)], events=False)
        self._lister = Lister(source, [str(folder)], None, self._mailbox, Throttle())

    def target(self, path: Path) -> Path:
        return self.folder / path.relative_to(self.input)

    def add(self, *paths: Path) -> None:
        for path in paths:
            self.target(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.target(path))

    def remove(self, *paths: Path) -> None:
        for path in paths:
            self.target(path).unlink()

    def update(self) -> None:
        self._lister.recheck(self._watch.sweep())
        for file in self._mailbox.collect().files:
            self.known[file.path] = {run.ref.address for run in file.runs}
            self.runs[file.path] = file.runs

    def check(self) -> None:
        """Update the list, and compare it with the disk."""
        self.update()
        assert {path: runs for path, runs in self.known.items() if runs} == listed(self.folder)


def batches(random: Random, paths: Iterable[Path]) -> Iterator[list[Path]]:
    """The paths in random order, a few at a time or one by one."""
    remaining, most = list(paths), random.choice((1, 4))
    random.shuffle(remaining)
    while remaining:
        size = random.randint(1, most)
        yield remaining[:size]
        remaining = remaining[size:]


@parametrized
@pytest.mark.parametrize("seed", seeds(12))
def test_the_list_equals_the_disk_in_whatever_order_files_come_and_go(tmp_path: Path, case: str, seed: int) -> None:
    random, steps = Random(seed), Steps(case, tmp_path)
    for files in batches(random, steps.files):
        steps.add(*files)
        steps.check()
    gone: list[Path] = []
    for files in batches(random, random.sample(steps.files, random.randint(1, len(steps.files)))):
        steps.remove(*files)
        gone += files
        steps.check()
    for files in batches(random, gone):
        steps.add(*files)
        steps.check()


def of_kind(steps: Steps, kind: str) -> list[Path]:
    """The sessions, messages or parts of opencode: a part names its message, and that its session."""
    return [path for path in steps.files if kind in path.relative_to(steps.input).parts]


@pytest.mark.parametrize("order", [("part", "session", "message"), ("session", "part", "message")])
def test_a_part_that_waits_for_a_part_of_an_old_run_joins_that_run(tmp_path: Path, order: tuple[str, ...]) -> None:
    steps = Steps("opencode/storage", tmp_path)
    for kind in order:
        steps.add(*of_kind(steps, kind))
        steps.check()


@pytest.mark.parametrize("order", [("part", "session", "message"), ("session", "part", "message")])
def test_tail_lets_a_part_join_an_old_run_through_a_new_part(tmp_path: Path, order: tuple[str, ...]) -> None:
    steps, replay = Steps("opencode/storage", tmp_path), Replay()
    with closing(Tail(LocalSource(), [str(tmp_path)], events=False)) as tail:
        for kind in order:
            steps.add(*of_kind(steps, kind))
            until_equal(tail, replay, str(tmp_path), by_id)
        steps.remove(*of_kind(steps, "message"))
        until_equal(tail, replay, str(tmp_path), by_id)


def test_a_part_stands_alone_once_the_part_that_it_belongs_to_is_gone(tmp_path: Path) -> None:
    steps = Steps("opencode/storage", tmp_path)
    steps.add(*steps.files)
    steps.check()
    steps.remove(next(path for path in steps.files if path.name == "msg_a2.json"))
    steps.check()
    assert {Path(path).name for path, runs in steps.known.items() if runs} == {
        "ses_a.json",
        *(f"prt_000{number}.json" for number in range(4, 10)),
    }


@parametrized
def test_a_run_is_counted_again_when_one_of_its_parts_is_gone(tmp_path: Path, case: str) -> None:
    steps = Steps(case, tmp_path)
    steps.add(*steps.files)
    steps.check()
    (main,) = (path for path in steps.files if path.match(CASES[case]))
    before = steps.runs[str(steps.target(main))]
    parts = [path for path in steps.files if not steps.known[str(steps.target(path))]]
    steps.remove(*parts)
    steps.check()
    path = str(steps.target(main))
    (after,) = (file.runs for file in scan(LocalSource(), [str(tmp_path)], deep=True) if file.path == path)
    assert [run.spans for run in steps.runs[path]] == [run.spans for run in after] != [run.spans for run in before]


class Interleaved(LocalSource):
    """Local files; calls a function just before a file is next opened."""

    def __init__(self) -> None:
        self.before_open: dict[str, Callable[[], None]] = {}

    def open(self, path: str, stat: Stat | None = None) -> File:
        self.before_open.pop(path, lambda: None)()
        return super().open(path, stat)


def test_a_part_that_was_read_before_its_main_file_was_written_is_delivered_as_read_last(tmp_path: Path) -> None:
    source = Interleaved()
    steps = Steps("opencode/storage", tmp_path, source)
    message, session = (
        next(path for path in steps.files if path.name == name) for name in ("msg_a5.json", "ses_a.json")
    )
    steps.add(message, session)
    steps.target(session).write_bytes(b"")
    source.before_open[str(steps.target(session))] = lambda: steps.add(session)  # after the message was read
    steps.update()
    assert steps.known[str(steps.target(session))]
    steps.check()


def test_a_file_that_was_no_main_file_for_a_moment_lists_its_parts_again(tmp_path: Path) -> None:
    source = Interleaved()
    steps = Steps("opencode/storage", tmp_path, source)
    part, message, session = (
        next(path for path in steps.files if path.name == name)
        for name in ("prt_0015.json", "msg_a5.json", "ses_a.json")
    )
    steps.add(message)
    steps.check()
    source.before_open[str(steps.target(message))] = lambda: steps.add(session)  # after the part named the message
    steps.add(part)
    steps.update()
    steps.check()
    steps.remove(session)
    steps.check()


def take(mailbox: Mailbox, known: dict[str, set[str]]) -> bool:
    mail = mailbox.collect()
    for file in mail.files:
        known[file.path] = {run.ref.address for run in file.runs}
    return mail.watching is not None


def listed(folder: Path) -> dict[str, set[str]]:
    files = scan(LocalSource(), [str(folder)], deep=False)
    return {file.path: {run.ref.address for run in file.runs} for file in files if file.runs}
