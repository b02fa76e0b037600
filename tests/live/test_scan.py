"""Every file has exactly one class and a reason; broken traces are distinguished from other files."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui.errors import FormatError
from tracetui.formats.unclaimed import explain_unclaimed
from tracetui.live.scan import ScannedFile, scan
from tracetui.sources.local import LocalFile, LocalSource

TRACE = Path(__file__).parents[1] / "cli" / "traces" / "paprika" / "plan-7.json"
TURNS = Path(__file__).parents[1] / "formats" / "codex_exec" / "turns"


def files_by_name(*roots: Path) -> dict[str, ScannedFile]:
    files = list(scan(LocalSource(), map(str, roots), deep=True))
    by_name = {os.path.relpath(file.path, roots[0]): file for file in files}
    assert len(by_name) == len(files)
    return by_name


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.json", b"", "empty file"),
        ("a.json", b" \n", "white space"),
        ("a.json", b"null", "null"),
        ("a.json", b"true", "true or false"),
        ("a.json", b"1.5", "a number"),
        ("a.json", b'"x"', "a string"),
        ("a.json", b"[]", "empty list"),
        ("a.json", b"{}", "empty object"),
        ("a.json", b'{"a": 1', "cut off"),
        ("a.json", b"{'a': 1}", "not valid JSON"),
        ("a.json", b'{"__proto__": {}}', "__proto__"),
        ("a.json", '{"a": 1}'.encode("utf-16"), "utf-16"),
        ("a.json", '{"a": 1}'.encode("utf-16-be"), "utf-16-be"),
        ("A.JSON", b"[" * 100_000, "nested too deeply"),
        ("a.jsonl", b"", "empty file"),
        ("a.jsonl", b"\n\n", "white space"),
        ("a.jsonl", b"x\ny\n", "not valid JSON"),
        ("a.ndjson", b"x" * 70_000, "too long to check"),
        ("a.db", b"", "empty file"),
        ("a.db", b"not a database", "not a SQLite database"),
        ("a.sqlite", b"SQLite format 3\0" + bytes(100), "database"),
    ],
)
def test_a_broken_file_is_a_problem(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)

    (file,) = files_by_name(tmp_path).values()

    assert file.kind == "problem"
    assert reason in file.problems[0].reason


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_json_lines_in_utf_16_are_read_with_and_without_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    session = next(TURNS.rglob("*.jsonl")).read_text(encoding="utf-8")
    for folder, data in (("wide", session.encode(encoding)), ("narrow", session.encode())):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_bytes(data)
    [wide] = (file.runs[0] for file in files_by_name(tmp_path / "wide").values())
    [narrow] = (file.runs[0] for file in files_by_name(tmp_path / "narrow").values())
    assert wide.replace(ref=narrow.ref, modified_at=narrow.modified_at) == narrow


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'{"name": "x"}'),
        ("a.json", b"[1]"),
        ("a.jsonl", b'{"a": 1}\n'),
        ("long.jsonl", b'{"role": "user", "content": "%s"}\n' % (b"x" * 70_000)),
        ("a.txt", b"{"),
        ("a.md", b""),
    ],
)
def test_a_file_of_another_kind_is_ignored_with_a_reason(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)

    (file,) = files_by_name(tmp_path).values()

    assert (file.kind, file.problems) == ("ignored", ())
    assert "no format claims it" in file.reason


def test_another_database_is_ignored(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")

    assert files_by_name(tmp_path)["other.db"].kind == "ignored"


def test_a_database_without_runs_is_not_dropped_silently(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "checkpoints.sqlite")) as db:
        ids = "thread_id, checkpoint_ns, checkpoint_id"
        db.execute(f"CREATE TABLE checkpoints ({ids}, parent_checkpoint_id, type, checkpoint, metadata)")
        db.execute(f"CREATE TABLE writes ({ids}, task_id, idx, channel, type, value)")

    (file,) = files_by_name(tmp_path).values()

    assert (file.kind, [problem.reason for problem in file.problems]) == (
        "problem",
        ["claimed by langgraph, but no run in it"],
    )


def test_links_are_not_followed_and_links_to_files_are_reported(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "run.json").write_bytes(TRACE.read_bytes())
    (inside / "file.json").symlink_to(outside / "run.json")
    (inside / "folder").symlink_to(outside)
    (inside / "nowhere.json").symlink_to("missing")

    kinds = {name: file.kind for name, file in files_by_name(inside).items()}

    assert kinds == {"file.json": "problem", "folder": "ignored", "nowhere.json": "ignored"}


def test_two_names_of_a_file_are_two_runs_but_one_file_named_twice_is_one(tmp_path: Path) -> None:
    (tmp_path / "plan-7.json").write_bytes(TRACE.read_bytes())
    os.link(tmp_path / "plan-7.json", tmp_path / "twin.json")

    assert [file.kind for file in files_by_name(tmp_path).values()] == ["listed", "listed"]
    files = list(scan(LocalSource(), [str(tmp_path), str(tmp_path / "twin.json")], deep=True))
    assert [file.kind for file in files] == ["listed", "listed"]
    other = tmp_path.parent / f"{tmp_path.name}-other"
    other.mkdir()
    os.link(tmp_path / "plan-7.json", other / "third.json")
    more = list(scan(LocalSource(), [str(tmp_path), str(other)], deep=True))
    assert [file.kind for file in more] == ["listed", "listed", "ignored"]


@given(st.sampled_from(["json", "jsonl", "db", "txt"]), st.binary(max_size=60))
def test_any_bytes_are_a_problem_or_another_kind_of_file(
    tmp_path_factory: pytest.TempPathFactory, ending: str, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{ending}"
    path.write_bytes(data)
    with LocalFile(str(path)) as file:
        try:
            reason = explain_unclaimed(file).reason
        except FormatError as error:
            reason = error.reason
        except OSError as error:  # of a database that is cut: `look` makes a problem of it too
            reason = str(error)

    assert reason


def test_a_part_with_a_main_file_of_another_format_is_listed_itself(tmp_path: Path) -> None:
    """Otherwise it would go unnoticed."""
    source = Path(__file__).parent.parent / "formats" / "atif" / "continued" / "input"
    root = Path(shutil.copytree(source, tmp_path / "traces"))
    main = root / "ferry" / "trajectory.json"
    parts = {file.path for file in scan(LocalSource(), [str(root)], deep=False) if file.part_of == str(main)}
    assert parts
    main.write_text(main.read_text().replace('"schema_version"', '"version"').replace('"ATIF-v', '"x'))

    files = {file.path: file for file in scan(LocalSource(), [str(root)], deep=False)}

    assert files[str(main)].kind == "ignored"
    assert any(files[part].kind == "listed" for part in parts)
    for file in files.values():
        assert not file.part_of or files[file.part_of].kind == "listed"


def test_a_file_is_no_part_of_itself(tmp_path: Path) -> None:
    """A message of opencode where the file of its session is to be."""
    path = tmp_path / "storage" / "session" / "p1" / "ses_a.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"id":"msg_1","sessionID":"ses_a","role":"user","time":{"created":1}}')

    (file,) = scan(LocalSource(), [str(tmp_path)], deep=False)

    assert file.kind == "listed"


def test_a_part_of_a_part_is_listed_itself(tmp_path: Path) -> None:
    """The file that it names is no main file, so the run that it belongs to is nowhere else."""
    messages = tmp_path / "storage" / "message" / "ses_a"
    piece = tmp_path / "storage" / "part" / "msg_b" / "prt_c.json"
    for path, record in (
        (messages / "msg_a.json", {"type": "text", "id": "prt_a", "messageID": "msg_x", "text": "x"}),
        (messages / "msg_b.json", {"type": "text", "id": "prt_b", "sessionID": "ses_a", "messageID": "msg_a"}),
        (piece, {"type": "text", "id": "prt_c", "messageID": "msg_b"}),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))

    files = {file.path: file for file in scan(LocalSource(), [str(tmp_path)], deep=False)}

    assert files[str(piece)].kind == "listed"
    for file in files.values():
        assert not file.part_of or files[file.part_of].kind != "ignored"
