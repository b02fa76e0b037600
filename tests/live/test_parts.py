"""A run in several files is one run, in whatever order its files appear: in ``tail`` and in the app's list."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.replay import Replay, by_id, until_equal
from tests.live.test_lister import listing
from tests.shared import PATIENCE, ROOT
from tracetui.live.mailbox import Mailbox
from tracetui.live.scan import scan
from tracetui.live.tail.tail import Tail
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
        told = set(replay.runs)
        put(main, target)
        until_equal(tail, replay, str(tmp_path), by_id)
        assert str(target) in {address.partition("#")[0] for address in replay.runs}
        gone = told - set(replay.runs)
        resets = {event["run"] for event in replay.seen if event["event"] == "reset"}
        assert gone <= resets
        assert gone or case == "opencode/storage" or case == "claude_code/old"
        target.unlink()
        until_equal(tail, replay, str(tmp_path), by_id)
        assert set(replay.runs) == told


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
        told = set(replay.runs)
        for line in lines[spawns:]:
            with target.open("ab") as file:
                file.write(line)
            until_equal(tail, replay, str(tmp_path), by_id)
        assert len(told) > len(replay.runs) >= 1


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


def take(mailbox: Mailbox, known: dict[str, set[str]]) -> bool:
    mail = mailbox.collect()
    for found in mail.found:
        known[found.path] = {run.ref.address for run in found.runs}
    return mail.watching is not None


def listed(folder: Path) -> dict[str, set[str]]:
    found = scan(LocalSource(), [str(folder)], deep=False)
    return {one.path: {run.ref.address for run in one.runs} for one in found if one.runs}
