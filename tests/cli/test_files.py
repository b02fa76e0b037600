"""``tracetui files``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.claude_sessions import REFUSED, Step, bash, write_session
from tests.cli.run import Cli

ROOT = "/home/dev/shop"


def write(path: str, content: str, *, root: str = ROOT) -> Step:
    """A call that writes a file as a whole."""
    return Step("Write", {"file_path": f"{root}/{path}", "content": content})


def edit(path: str, old: str, new: str, result: str = "done", *, is_error: bool = False) -> Step:
    """A call that replaces a text."""
    return Step("Edit", {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}, result, is_error)


def files(cli: Cli, *arguments: str) -> dict[str, dict[str, Any]]:
    """The files by path."""
    return {file["path"]: file for file in cli("files", "runs", "--json", *arguments).data["files"]}


def repository(**contents: str) -> str:
    """A repository with these files; returns its folder."""
    Path("repo/.git").mkdir(parents=True)
    for name, content in contents.items():
        Path("repo", name.replace("_", ".")).write_text(content)
    return "repo"


def test_people_get_a_line_per_file(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "one\ntwo\n"), bash("sed -i s/a/b/ b.py")])
    result = cli("files", "runs", "--repo", repository(a_py="one\nthree\n", b_py="b\n"))
    assert result.text.splitlines() == [
        "FILE  RUNS  EDITS  +  -  LAST WRITER  WHEN              STATE",
        "a.py     1      1  2  0  one          2026-05-04 09:01  changed (1 of 2 lines stand)",
        "b.py     1      1  —  —  one          2026-05-04 09:03  not recorded",
    ]
    assert result.err.splitlines() == ["tracetui: 2 files, 2 edits · 1 changed · 1 not recorded"]


def test_scripts_get_the_last_writer_and_its_call(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "one\ntwo\n")])
    path = write_session(Path("runs/two.jsonl"), [edit("a.py", "two\n", "2\n")], hour=10)
    file = files(cli)["a.py"]
    assert file["last_writer"] == {"run": str(path), "span": "two-t0"}
    assert (file["runs"], file["edits"], file["added"], file["removed"]) == (2, 2, 3, 1)
    assert (file["state"], file["lines"]) == ("not looked at", None)


def test_only_what_was_done_counts(cli: Cli) -> None:
    steps = [
        edit("a.py", "x", "y", "String to replace not found", is_error=True),
        edit("a.py", "x", "z", REFUSED, is_error=True),
        edit("a.py", "x", "w"),
        edit("never.py", "x", "y", REFUSED, is_error=True),
    ]
    write_session(Path("runs/one.jsonl"), steps)
    (path,) = files(cli)
    assert path == "a.py"
    assert (files(cli)[path]["edits"], files(cli)[path]["tried"], files(cli)[path]["added"]) == (1, 3, 1)


def test_a_file_written_again_counts_what_changed(cli: Cli) -> None:
    read = Step("Read", {"file_path": f"{ROOT}/a.py"}, "     1→one\n     2→two\n")
    write_session(Path("runs/one.jsonl"), [read, write("a.py", "one\n2\n"), write("a.py", "one\n2\n3\n")])
    file = files(cli)["a.py"]
    assert (file["added"], file["removed"]) == (2, 1)


@pytest.mark.parametrize(
    ("now", "state", "lines"),
    [
        ("def a():\n  return 1\n", "as written", [2, 2]),
        ("def a():\n\n\treturn 1", "as written", [2, 2]),
        ("def a():\n  return 2\n", "changed", [1, 2]),
        ("def a():\n  return 1\nby_hand = 1\n", "changed", [2, 2]),
        (None, "gone", None),
    ],
)
def test_lines_are_compared_with_the_repository(cli: Cli, now: str | None, state: str, lines: list[int] | None) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "def a():\n  return 0\n"), edit("a.py", "0", "1")])
    repo = repository(**({} if now is None else {"a_py": now}))
    file = files(cli, "--repo", repo)["a.py"]
    assert (file["state"], file["lines"]) == (state, lines)


@pytest.mark.parametrize(("now", "state"), [("total = price * 1.21\n", "as written"), ("total = price\n", "changed")])
def test_a_part_of_a_line_stands_in_its_line(cli: Cli, now: str, state: str) -> None:
    write_session(Path("runs/one.jsonl"), [edit("a.py", "price * 1.19", "price * 1.21")])
    assert files(cli, "--repo", repository(a_py=now))["a.py"]["state"] == state


def test_a_patch_and_a_here_document_are_edits(cli: Cli) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n one\n-two\n+2\n*** End Patch"
    steps = [bash("cat > a.py <<'EOF'\none\ntwo\nEOF"), Step("apply_patch", {"input": patch})]
    write_session(Path("runs/one.jsonl"), steps)
    file = files(cli, "--repo", repository(a_py="one\n2\n"))["a.py"]
    assert (file["added"], file["removed"], file["state"]) == (3, 1, "as written")


def test_files_outside_of_the_root_and_patterns_are_not_read(cli: Cli) -> None:
    steps = [write("hosts", "a\n", root="/etc"), bash('touch "$NAME"'), bash("mkdir -p new && chmod +x a.sh")]
    write_session(Path("runs/one.jsonl"), steps)
    states = {path: (file["state"], file["outside"]) for path, file in files(cli, "--repo", repository()).items()}
    assert states == {"/etc/hosts": ("not looked at", True), "$NAME": ("not recorded", False)}


def test_the_repository_of_the_current_folder_is_the_default(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "one\n")])
    assert files(cli)["a.py"]["state"] == "not looked at"
    runs = os.path.abspath("runs")
    monkeypatch.chdir(repository(a_py="one\n"))
    assert cli("files", runs, "--json").data["files"][0]["state"] == "as written"


def test_a_foreign_repository_is_not_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(Path("runs/one.jsonl"), [write(name, "one\n") for name in ("a.py", "b.py", "c.py")])
    runs = os.path.abspath("runs")
    monkeypatch.chdir(repository(a_py="another\n"))
    assert {file["state"] for file in cli("files", runs, "--json").data["files"]} == {"not looked at"}
    assert {file["state"] for file in cli("files", runs, "--repo", ".", "--json").data["files"]} == {"changed", "gone"}


def test_links_and_other_kinds_of_files_are_not_followed(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write(name, "root:x\n") for name in ("link", "folder/passwd", "pipe")])
    repo = repository()
    Path(repo, "link").symlink_to("/etc/passwd")
    Path(repo, "folder").symlink_to("/etc")
    os.mkfifo(Path(repo, "pipe"))
    assert {file["state"] for file in files(cli, "--repo", repo).values()} == {"not looked at"}


def test_projects_are_distinguished_by_absolute_paths(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "one\n")])
    write_session(Path("runs/two.jsonl"), [write("a.py", "one\n", root="/home/dev/till")], root="/home/dev/till")
    assert [*files(cli)] == ["/home/dev/shop/a.py", "/home/dev/till/a.py"]


def test_a_missing_repository_is_a_usage_error(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [write("a.py", "one\n")])
    assert cli("files", "runs", "--repo", "nowhere").status == 2
    assert cli("files", "nowhere").status == 1


def test_edits_of_a_trajectory_count_unless_they_were_undone(cli: Cli) -> None:
    actions = [
        ("create a.py\n", "[File: a.py (1 lines total)]"),
        ("edit 1:1\ntotal = (\nend_of_edit\n", "Your proposed edit has introduced new syntax error(s)."),
        ("edit 1:1\ntotal = 1\nend_of_edit\n", "[File: a.py (1 lines total)]"),
        ("rm b.py\n", ""),
    ]
    steps = [{"action": action, "observation": seen, "response": "", "thought": ""} for action, seen in actions]
    Path("runs").mkdir()
    Path("runs/a.traj").write_text(
        json.dumps({"environment": "swe_main", "trajectory": steps, "history": [], "info": {}})
    )
    files = {file["path"]: file for file in cli("files", "runs", "--json").data["files"]}
    assert {path: (file["edits"], file["tried"], file["added"], file["removed"]) for path, file in files.items()} == {
        "a.py": (2, 3, 1, None),
        "b.py": (1, 1, None, None),
    }
