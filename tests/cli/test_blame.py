"""``tracetui blame``."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.claude_sessions import REFUSED, Step, bash, write_session
from tests.cli.run import Cli
from tests.cli.test_files import edit, write
from tracetui.cli.output import ProgressLine
from tracetui.live.load import Reader

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(*arguments: str, **variables: str) -> str:
    """Run git in the repository."""
    names = {f"GIT_{role}_{field}": "dev" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    environment = os.environ | names | {"GIT_CONFIG_GLOBAL": "/dev/null"} | variables
    return subprocess.run(
        ["git", "-C", "repo", *arguments], env=environment, capture_output=True, check=True
    ).stdout.decode()


def commit(subject: str, at: str, author: str = "dev", authored: str | None = None, **contents: str | None) -> str:
    """Commit these files (``_`` in a name is a dot) at a time of the day of the sessions; returns the hash.

    `authored`: the earlier time at which a rebased commit was made first.
    """
    if not Path("repo").exists():
        Path("repo").mkdir()
        git("init", "-q", "-b", "main")
    for name, content in contents.items():
        path = Path("repo", name.replace("_", "."))
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
    git("add", "-A")
    date, authored = (f"2026-05-04T{time}:00Z" for time in (at, authored or at))
    git("commit", "-q", "-m", subject, GIT_AUTHOR_DATE=authored, GIT_COMMITTER_DATE=date, GIT_AUTHOR_NAME=author)
    return git("rev-parse", "HEAD").strip()


def blame(cli: Cli, target: str, *options: str) -> dict[str, Any]:
    """The answer of ``blame --json``."""
    result = cli("blame", target, "--repo", "repo", "--traces", "runs", "--json", *options)
    assert result.status == 0, result.err
    return result.data  # type: ignore[no-any-return]


def session(address: str | None) -> str | None:
    """The session of an address."""
    return None if address is None else Path(address).stem


def writers(cli: Cli, target: str) -> list[Any]:
    """The session of each line, or the candidates."""
    return [
        session(line["run"]) or [session(candidate["run"]) for candidate in line["candidates"]] or None
        for line in blame(cli, target)["lines"]
    ]


def test_lines_have_the_session_that_wrote_them_before_their_commit(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "total = 0\nprice = 1\n")])
    write_session(Path("runs/two.jsonl"), [edit("a.py", "price = 1\n", "price = 2\n")], hour=11)
    commit("First", "09:30", a_py="total = 0\nprice = 1\n")
    commit("Second", "11:30", a_py="total = 0\nprice = 2\n")
    commit("By hand", "20:00", a_py="total = 0\nprice = 2\nby_hand = 3\n")
    lines = blame(cli, "a.py")["lines"]
    assert [session(line["run"]) for line in lines] == ["one", "two", None]
    assert lines[1] == {
        "path": "a.py",
        "line": 2,
        "run": "runs/two.jsonl",
        "span": "two-t0",
        "candidates": [],
        "rung": "lines",
        "moved": False,
    }


def test_white_space_does_not_count_and_common_lines_prove_nothing(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.go", "func Load(a int,b int) {\n  return nil\n}\n")])
    commit("First", "09:30", a_go="func Load(a int, b int) {\n\treturn nil\n}\n")
    commit("Bump", "09:40", b_go="func Save() {\n\treturn nil\n}\n")
    assert writers(cli, "a.go") == ["one", None, None]
    assert writers(cli, "b.go") == [None, None, None]


def test_a_commit_in_the_log_decides(cli: Cli) -> None:
    steps = [
        write("a.py", "total = 0\n"),
        bash("git commit -am 'Add totals'", "[main 5d0e771] Add totals\n 1 file changed"),
    ]
    write_session(Path("runs/one.jsonl"), [write("a.py", "total = 0\n")])
    write_session(Path("runs/two.jsonl"), steps)
    name = commit("Add totals", "09:04", a_py="total = 0\n")
    answer = blame(cli, name)
    assert (session(answer["commit"]["run"]), answer["commit"]["rung"], answer["commit"]["span"]) == (
        "two",
        "commit",
        "two-t1",
    )
    assert answer["commit"]["hash"] == name
    assert [(session(line["run"]), line["rung"]) for line in answer["lines"]] == [("two", "commit")]


@pytest.mark.parametrize(
    ("command", "at", "rung"),
    [
        ("git commit -qm 'Add totals'", "09:04", "commit"),
        ("git commit -q -m \"$(cat <<'EOF'\nAdd totals\n\nmore\nEOF\n)\"", "09:04", "commit"),
        ("git commit -qm 'Add totals'", "15:04", None),
        ("git commit -qm 'Other'", "09:04", None),
    ],
)
def test_a_silent_commit_is_known_by_its_message(cli: Cli, command: str, at: str, rung: str | None) -> None:
    write_session(Path("runs/one.jsonl"), [bash("git add -A", ""), bash(command, "")])
    assert blame(cli, commit("Add totals", at, a_py="x = 12345\n"))["commit"]["rung"] == rung


def test_a_refused_commit_is_no_evidence(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [bash("git commit -m Totals", REFUSED, is_error=True)])
    assert blame(cli, commit("Totals", "09:02", a_py="x = 12345\n"))["commit"]["run"] is None


def test_two_sessions_with_the_same_text_are_both_named(cli: Cli) -> None:
    text = "reasons = ('broken', 'late')\nlimit = 12\n"
    write_session(Path("runs/one.jsonl"), [write("a.py", text)])
    write_session(Path("runs/two.jsonl"), [write("a.py", text)])
    name = commit("Refunds", "10:00", a_py=text)
    answer = blame(cli, name)
    assert answer["commit"]["run"] is None
    assert {session(candidate["run"]) for candidate in answer["commit"]["candidates"]} == {"one", "two"}
    assert {session(candidate["run"]) for candidate in answer["lines"][0]["candidates"]} == {"one", "two"}


def test_a_line_that_was_removed_belongs_to_who_wrote_it_again(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\ntotal = 0\n")])
    write_session(Path("runs/two.jsonl"), [edit("a.py", "limit = 12\n", "")], hour=10)
    write_session(Path("runs/three.jsonl"), [edit("a.py", "total = 0\n", "limit = 12\ntotal = 0\n")], hour=11)
    commit("All", "11:30", a_py="limit = 12\ntotal = 0\n")
    assert writers(cli, "a.py:1") == ["three"]


def test_few_lines_written_between_commit_and_rebase_are_no_evidence(cli: Cli) -> None:
    lines = [f"parameter_{number} = {number}\n" for number in range(12)]
    write_session(Path("runs/one.jsonl"), [write("a.py", "".join(lines[:4]))], hour=11)
    commit("Parameters", "13:00", authored="09:30", a_py="".join(lines))
    assert writers(cli, "a.py") == [None] * 12
    commit("More", "13:00", b_py="x = 12345\n", a_py="".join(lines[4:]))
    commit("Again", "13:30", authored="13:10", a_py="".join(lines))
    assert writers(cli, "a.py")[:4] == ["one"] * 4


def test_lines_of_a_rebased_commit_have_its_session(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\ntotal = 0\n")], hour=11)
    commit("Limits", "13:00", authored="09:30", a_py="limit = 12\ntotal = 0\n")
    assert writers(cli, "a.py") == ["one", "one"]


@pytest.mark.parametrize("text", ["limit = 12\n", "".join(f"parameter_{number} = {number}\n" for number in range(9))])
def test_lines_moved_by_hand_keep_their_writer(cli: Cli, text: str) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", text + "x = 12345\n")])
    commit("First", "09:30", a_py=text + "x = 12345\n", b_py="other = 1\n")
    commit("Move", "18:00", a_py="x = 12345\n", b_py=text + "other = 1\n")
    line = blame(cli, "b.py:1")["lines"][0]
    assert (session(line["run"]), line["moved"]) == ("one", True)
    assert blame(cli, "b.py")["lines"][-1]["run"] is None


def test_a_resumed_session_has_no_part_in_what_was_copied(cli: Cli) -> None:
    path = write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\ntotal = 0\n")])
    Path("runs/two.jsonl").write_text(path.read_text().replace('"sessionId": "one"', '"sessionId": "two"'))
    commit("All", "09:30", a_py="limit = 12\ntotal = 0\n")
    assert writers(cli, "a.py") == ["one", "one"]


def test_the_only_session_that_changed_the_file_shortly_before_made_the_commit(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [bash("sed -i s/1/2/ a.py")])
    near, late = commit("Near", "09:30", a_py="x = 12345\n"), commit("Late", "19:30", a_py="x = 23456\n")
    assert blame(cli, near)["commit"]["rung"] == "file"
    assert blame(cli, near)["lines"][0]["run"] is None
    assert blame(cli, late)["commit"]["run"] is None


def test_bots_have_no_session(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\n")])
    name = commit("Bump", "09:30", author="bump[bot]", a_py="limit = 12\n")
    assert blame(cli, name)["commit"]["rung"] is None
    assert writers(cli, "a.py") == [None]


def test_changes_that_are_not_committed_have_sessions(cli: Cli) -> None:
    commit("First", "08:00", a_py="total = 0\n")
    write_session(Path("runs/one.jsonl"), [edit("a.py", "total = 0\n", "total = 0\nlimit = 12\n")])
    Path("repo/a.py").write_text("total = 0\nlimit = 12\nby_hand = 1\n")
    assert writers(cli, "a.py") == [None, "one", None]
    Path("repo/new.py").write_text("limit = 12\n")
    assert writers(cli, "new.py") == [None]


def test_people_get_a_line_per_line(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "total = 0\n\nif total:\n    limit = 12\n")])
    commit("First", "20:00", a_py="total = 0\n\nif total:\n    limit = 12\nby_hand = 1\n")
    result = cli("blame", "a.py", "--repo", "repo", "--traces", "runs")
    assert result.text.splitlines() == [
        "   1  one      Go     2026-05-04 09:01    total = 0",
        "   2",
        "   3  one      Go     2026-05-04 09:01    if total:",
        "   4  one      Go     2026-05-04 09:01        limit = 12",
        "   5  —                                   by_hand = 1",
    ]
    assert result.err == "tracetui: 3 of 4 lines by one session, 1 of none · 1 session read, oldest 2026-05-04\n"


def test_why_names_prompt_step_and_evidence(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\n")])
    name = commit("First", "09:30", a_py="limit = 12\n")
    assert cli("blame", "a.py:1", "--why", "--repo", "repo", "--traces", "runs").text.splitlines() == [
        "line     limit = 12",
        "prompt   “Go”",
        "step     one  Write /home/dev/shop/a.py  2026-05-04 09:01",
        f"commit   {name[:8]} “First”",
        "because  lines: the session wrote the lines",
        "open     tracetui runs/one.jsonl/one-t0",
    ]
    assert blame(cli, "a.py:1", "--why")["lines"][0]["why"]["prompt"] == "Go"


def test_a_commit_names_its_session_and_the_others(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\ntotal = 0\n")])
    name = commit("First", "09:30", a_py="limit = 12\ntotal = 0\nby_hand = 1\n")
    assert cli("blame", name[:8], "--repo", "repo", "--traces", "runs").text.splitlines() == [
        f"{name[:8]} First  2026-05-04 09:30",
        "  one  Go  lines: the session wrote the lines",
        "      2 lines  one",
        "      1 line   — no session",
    ]


def test_agent_trace_has_ranges_by_conversation(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\ntotal = 0\n")])
    name = commit("First", "09:30", a_py="limit = 12\ntotal = 0\nby_hand = 1\n")
    record = json.loads(cli("blame", "a.py", "--agent-trace", "--repo", "repo", "--traces", "runs").out)
    assert record["vcs"] == {"type": "git", "revision": name}
    (file,) = record["files"]
    (conversation,) = file["conversations"]
    assert (file["path"], conversation["ranges"]) == ("a.py", [{"start_line": 1, "end_line": 2}])
    assert conversation["contributor"] == {"type": "ai", "model_id": "claude-sonnet-5"}


def test_git_runs_no_program_that_a_repository_names(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\n")])
    name = commit("First", "09:30", a_py="limit = 12\n", _gitattributes="*.py diff=evil filter=evil\n")
    program = Path("evil").resolve()
    program.write_text("#!/bin/sh\ntouch ran\ncat\n")
    program.chmod(0o755)
    for key in (
        "core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.clean",
        "filter.evil.smudge", "core.pager", "gpg.program", "core.sshCommand",
    ):  # fmt: skip
        git("config", key, str(program))
    git("config", "log.showSignature", "true")
    Path("repo/a.py").write_text("limit = 12\ntotal = 0\n")
    before = {path: path.read_bytes() for path in Path("repo").rglob("*") if path.is_file()}
    assert writers(cli, "a.py") == ["one", None]
    assert blame(cli, name)["commit"]["rung"] == "lines"
    assert not [*Path().rglob("ran")]
    assert before == {path: path.read_bytes() for path in Path("repo").rglob("*") if path.is_file()}


def test_paths_with_special_characters_are_found(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write('prix "é".txt', "limite = 12\n")])
    commit("First", "08:00", a_py="x\n")
    Path('repo/prix "é".txt').write_text("limite = 12\n")
    name = commit("Second", "09:30", a_py="x\n")
    assert writers(cli, 'prix "é".txt') == ["one"]
    assert blame(cli, name)["lines"][0]["path"] == 'prix "é".txt'


def test_the_repository_is_that_of_the_file(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\n")])
    commit("First", "09:30", a_py="limit = 12\n")
    assert cli("blame", "repo/a.py", "--traces", "runs", "--json").data["lines"][0]["run"] == "runs/one.jsonl"


@pytest.mark.parametrize("target", ["nowhere.py", "a.py:99", "0123456"])
def test_an_unknown_target_is_a_usage_error(cli: Cli, target: str) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "limit = 12\n")])
    commit("First", "09:30", a_py="limit = 12\n")
    assert cli("blame", target, "--repo", "repo", "--traces", "runs").status == 2


def test_failed_edits_are_no_evidence(cli: Cli) -> None:
    write_session(
        Path("runs/one.jsonl"),
        [Step("Write", {"file_path": "/home/dev/shop/a.py", "content": "limit = 12\n"}, REFUSED, True)],
    )
    commit("First", "19:30", a_py="limit = 12\n")
    assert writers(cli, "a.py") == [None]


def test_the_index_is_kept_in_the_cache_without_text(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write_session(Path("runs/one.jsonl"), [write("a.py", "total = 0\nprice = 1\n")])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    time.sleep(0.06)  # later than the file in the clock of the disk
    commit("First", "09:30", a_py="total = 0\nprice = 1\n")
    first = blame(cli, "a.py")
    pages = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*.sqlite*"))
    assert b"one-t0" in pages
    assert b"total=0" not in pages
    monkeypatch.setattr(Reader, "read", lambda self: pytest.fail("the session was read again"))
    assert blame(cli, "a.py") == first


@pytest.mark.parametrize("move", ["mv a.py src/b.py", "git mv a.py src/b.py", "mkdir -p src && mv a.py src/b.py"])
def test_lines_of_a_moved_file_keep_their_session(cli: Cli, move: str) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "total = 0\nprice = 1\n")])
    write_session(Path("runs/two.jsonl"), [bash(move), edit("src/b.py", "price = 1\n", "price = 2\n")], hour=11)
    Path("repo/src").mkdir(parents=True)
    git("init", "-q", "-b", "main")
    commit("First", "11:30", **{"src/b_py": "total = 0\nprice = 2\n"})
    assert writers(cli, "src/b.py") == ["one", "two"]
    (file,) = (
        file for file in cli("files", "runs", "--repo", "repo", "--json").data["files"] if file["path"] == "src/b.py"
    )
    assert (file["state"], file["lines"]) == ("as written", [2, 2])


def test_an_interrupted_index_keeps_the_sessions_that_were_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        write_session(Path(f"runs/{number}.jsonl"), [write("a.py", f"total = {number}\n")], hour=9 + number)
        os.utime(f"runs/{number}.jsonl", (1_700_000_000, 1_700_000_000))
    commit("First", "11:30", a_py="total = 2\n")
    monkeypatch.setattr("tracetui.sources.file_views.TICK_NS", 0)  # files just written are read as settled
    catch_up, paths = Reader.read, list[str]()

    def interrupted(self: Reader) -> bool:
        paths.append(self.ref.path)
        if len(set(paths)) == 3:
            raise KeyboardInterrupt
        return catch_up(self)

    def counted(self: Reader) -> bool:
        paths.append(self.ref.path)
        return catch_up(self)

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "read", interrupted)
        with suppress(KeyboardInterrupt):
            cli("blame", "a.py", "--repo", "repo", "--traces", "runs", "--json")
    paths.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "read", counted)
        assert writers(cli, "a.py") == ["2"]
    assert {Path(path).stem for path in paths} == {"2"}


def test_a_terminal_shows_how_many_runs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    error = io.StringIO()
    monkeypatch.setattr(error, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(time, "monotonic", iter(range(9)).__next__)
    with ProgressLine(288) as progress:
        progress.advance(12)
    assert error.getvalue() == "\r\x1b[K12 of 288 runs read\r\x1b[K"
