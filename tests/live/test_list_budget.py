"""No file keeps the list waiting: the list stage reads little of any file, and large ones are read apart."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from tests.formats.inspect_build import archive
from tests.live.test_lister import collect, listing
from tests.shared import PATIENCE, ROOT
from tracetui.live.scan import ScannedFile, Scanner, entries
from tracetui.sources.base import HEAD_SIZE, File, FileView, Stat
from tracetui.sources.file_views import LIST_BUDGET, Budget, unpacked
from tracetui.sources.local import LocalSource

CASES = ROOT / "tests" / "formats"
TERABYTE = 1 << 40
DEEP_MOST = 300 << 20
"""Bytes of a file with a hole of a terabyte that reading all of it may take."""


class Counted(FileView):
    """A file that counts the bytes that are read of it."""

    def __init__(self, file: File, source: Counting) -> None:
        super().__init__(file)
        self._source = source

    @property
    def stat(self) -> Stat:
        return self._file.stat

    @property
    def head(self) -> bytes:
        return self._file.head

    def read(self, offset: int, size: int) -> bytes:
        data = self._file.read(offset, size)
        self._source.count += len(data)
        return data

    def read_all(self) -> bytes:
        data = self._file.read_all()
        self._source.count += len(data)
        return data

    def other(self, path: str, stat: Stat | None = None) -> File:
        return Counted(self._file.other(path, stat), self._source)


class Counting(LocalSource):
    def __init__(self) -> None:
        self.count = 0

    def open(self, path: str, stat: Stat | None = None) -> File:
        file = super().open(path, stat)
        return unpacked(Counted(getattr(file, "_file", file), self)) if path.endswith(".zst") else Counted(file, self)


def look(source: LocalSource, path: Path, *, budget: Budget | None = None) -> ScannedFile:
    folder = str(path.parent)
    entry = next(entry for entry in entries(source, [folder]) if entry.path == str(path))
    return Scanner(source, [folder]).look(entry, deep=budget is None, budget=budget)


def sparse(tmp_path: Path, case: str, name: str) -> Path:
    """A copy of a case with one file extended to a sparse terabyte."""
    shutil.copytree(CASES / case / "input", tmp_path, dirs_exist_ok=True)
    path = next(path for path in sorted(tmp_path.rglob(name)) if path.is_file())
    os.truncate(path, TERABYTE)
    return path


SHAPES = [
    ("ccpa/{}", "*.jsonl"),
    ("claude_code/plain", "*.jsonl"),
    ("codex/{}", "*.jsonl"),
    ("copilot/{}", "*.jsonl"),
    ("pi/{}", "*.jsonl"),
    ("otlp/{}", "*.jsonl"),
    ("latticeflow/{}", "*.jsonl"),
    ("otlp/{}", "*.json"),
    ("latticeflow/{}", "*.json"),
    ("paprika/{}", "*.json"),
    ("penelope/{}", "*.json"),
    ("atif/{}", "*.json"),
    ("hypergraph/{}", "*.json"),
    ("inspect/{}", "*.json"),
    ("opencode/{}", "prt_*.json"),
    ("opencode/{}", "msg_*.json"),
    ("opencode/{}", "ses_*.json"),
    ("hypergraph/{}", "*.db"),
    ("opencode/{}", "*.db"),
    ("inspect/{}", "*.eval"),
]


def case_with(shape: str, name: str) -> str:
    """The first case that has such a file."""
    folder, _, wanted = shape.partition("/")
    cases = sorted((CASES / folder).glob(wanted.replace("{}", "*")))
    match = next(case for case in cases if any(path.is_file() for path in (case / "input").rglob(name)))
    return match.relative_to(CASES).as_posix()


@pytest.mark.parametrize(("shape", "name"), SHAPES, ids=" ".join)
def test_a_file_with_a_hole_of_a_terabyte_is_listed_at_once_and_read_soon(
    tmp_path: Path, shape: str, name: str
) -> None:
    path, source = sparse(tmp_path, case_with(shape, name), name), Counting()

    listed = look(source, path, budget=Budget(LIST_BUDGET))
    assert listed.kind in ("listed", "problem") or listed.part_of
    assert source.count <= LIST_BUDGET + HEAD_SIZE

    source.count = 0
    assert look(source, path).kind in ("listed", "problem")
    assert source.count <= DEEP_MOST


@pytest.mark.parametrize(
    "head", [b"SQLite format 3\0", b"PK\3\4", b"\x28\xb5\x2f\xfd", b'{"id":"prt_1","messageID":"msg_1","sessionID":"s"']
)
@pytest.mark.parametrize("name", ["a.db", "a.eval", "prt_a.json", "a.jsonl", "rollout-a.jsonl.zst"])
def test_only_the_head_of_a_trace_is_there(tmp_path: Path, head: bytes, name: str) -> None:
    path, source = tmp_path / name, Counting()
    path.write_bytes(head)
    os.truncate(path, TERABYTE)

    for budget in (Budget(LIST_BUDGET), None):
        assert look(source, path, budget=budget).path == str(path)
    assert source.count <= DEEP_MOST


LARGE = [
    ("ccpa", "*.jsonl"),
    ("claude_code", "*.jsonl"),
    ("codex", "*.jsonl"),
    ("copilot", "*.jsonl"),
    ("pi", "*.jsonl"),
    ("otlp", "*.jsonl"),
    ("latticeflow", "*.jsonl"),
]


@pytest.mark.parametrize(("name", "glob"), LARGE, ids=[name for name, _ in LARGE])
def test_the_list_stage_reads_no_more_of_a_long_file_than_its_budget(tmp_path: Path, name: str, glob: str) -> None:
    budget = 1 << 20
    path = next(path for path in sorted((CASES / name).glob(f"*/input/**/{glob}")) if path.stat().st_size > 500)
    first, *rest = path.read_bytes().splitlines(keepends=True)
    middle = b"".join(rest[:-1]) or first
    long = tmp_path / path.name
    long.write_bytes(first + middle * (3 * budget // 2 // len(middle)) + (rest[-1] if rest else b""))
    source = Counting()

    file = look(source, long, budget=Budget(budget))
    assert file.kind == "listed"
    assert source.count <= budget + HEAD_SIZE
    assert all(not run.deep for run in file.runs)
    counted = look(source, long)
    assert counted.kind == "listed"
    assert not counted.unread


def test_a_long_session_without_a_prompt_in_its_head_is_listed_by_its_ends(tmp_path: Path) -> None:
    path, source = tmp_path / "s.ccpa-trace.jsonl", Counting()
    start = b'{"v":1,"kind":"session_start","session_id":"s","ts":"2026-03-01T09:00:00Z","actor":"a"}\n'
    turn = b'{"v":1,"kind":"assistant_turn","turn":1,"blocks":[{"type":"text","text":"t"}],"stop_reason":"end_turn"}\n'
    path.write_bytes(start + turn * 100_000 + b'{"v":1,"kind":"session_end","stop_reason":"end_turn","elapsed_ms":5}\n')

    file = look(source, path, budget=Budget(LIST_BUDGET))
    assert (file.unread, file.runs[0].id, file.runs[0].duration_ms) == (False, "s", 5)
    assert source.count < 5 << 20


@pytest.mark.parametrize("log", ["-wal", "-journal"])
def test_a_large_database_that_would_have_to_be_copied_is_not_listed(tmp_path: Path, log: str) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id TEXT)")
    Path(f"{path}{log}").write_bytes(b"x")
    os.truncate(path, 2 * LIST_BUDGET)

    listed = look(LocalSource(), path, budget=Budget(LIST_BUDGET))
    assert (listed.reason, listed.unread) == ("not read yet", True)


def test_statements_of_the_list_stage_come_from_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.sources.file_views.PROGRESS_OPS", 1)
    shutil.copytree(CASES / case_with("opencode/{}", "*.db") / "input", tmp_path, dirs_exist_ok=True)
    path = next(tmp_path.rglob("*.db"))
    budget = Budget(LIST_BUDGET)
    assert not look(LocalSource(), path, budget=budget).unread
    budget = Budget(LIST_BUDGET)
    budget.ops = 0

    listed = look(LocalSource(), path, budget=budget)
    assert (listed.kind, listed.unread, listed.problems) == ("listed", True, ())
    assert all(run.deep for run in look(LocalSource(), path).runs)


def test_decompressed_files_count_against_the_budget(tmp_path: Path) -> None:
    source = LocalSource()
    plain = next(path for path in sorted((CASES / "codex").glob("*/input/**/*.jsonl")) if path.stat().st_size > 500)
    first, *rest = plain.read_bytes().splitlines(keepends=True)
    path = tmp_path / f"{plain.name}.zst"
    said = b'{"type":"event_msg","payload":{"type":"agent_message","message":"%s"}}\n'
    lines = [said % os.urandom(500).hex().encode() + said % (b"x" * 100_000) for _ in range(2 * LIST_BUDGET // 100_000)]
    path.write_bytes(ZstdCompressor().compress(b"".join([first, *rest, *lines])))
    assert path.stat().st_size < LIST_BUDGET // 4

    listed = look(source, path, budget=Budget(LIST_BUDGET))
    assert (listed.kind, listed.unread, len(listed.runs)) == ("listed", True, 1)
    assert look(source, path).runs[0].deep


def test_decompressed_archive_members_count_against_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    head = {"version": 2, "status": "success", "eval": {"task": "t", "created": "2026-03-01T09:00:00Z"}}
    text = b"[" + b'{"id": 1, "epoch": 1},' * (LIST_BUDGET // 8) + b'{"id": 2, "epoch": 1}]'
    path.write_bytes(archive({"header.json": head, "summaries.json": text}))

    listed = look(LocalSource(), path, budget=Budget(LIST_BUDGET))
    assert (listed.kind, listed.unread) == ("listed", True)


class Slow(LocalSource):
    """Reading one file beyond its head waits at a gate."""

    def __init__(self, name: str) -> None:
        self.name, self.gate = name, threading.Event()

    def open(self, path: str, stat: Stat | None = None) -> File:
        file = super().open(path, stat)
        return Waiting(file, self.gate) if path.endswith(self.name) else file


class Waiting(Counted):
    def __init__(self, file: File, gate: threading.Event) -> None:
        super().__init__(file, Counting())
        self._gate = gate

    def read(self, offset: int, size: int) -> bytes:
        assert offset + size <= HEAD_SIZE or self._gate.wait(PATIENCE)
        return super().read(offset, size)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A large session, the newest file, and a small one."""
    monkeypatch.setattr("tracetui.live.deep_reader.LARGE", 100_000)
    monkeypatch.setattr("tracetui.live.lister.LIST_BUDGET", HEAD_SIZE)
    record = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032d","spanId":"%016d","name":"s"}]}]}]}\n'
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_bytes(record % (1, 1))
    large.write_bytes(b"".join(record % (2, i) for i in range(1_500)))
    os.utime(small, (1e9, 1e9))
    assert large.stat().st_size > 100_000
    return large, small


def test_a_large_file_delays_no_other(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    source = Slow("large.jsonl")
    with listing(tmp_path, source) as (_, mailbox):
        counted: dict[str, ScannedFile] = {}

        def deep(path: Path) -> bool:
            return any(run.deep for run in counted[str(path)].runs) if str(path) in counted else False

        mails = collect(mailbox, lambda mail: counted.update({file.path: file for file in mail.files}) or deep(pair[1]))
        assert any(mail.listed for mail in mails)
        listed = counted[str(pair[0])]
        assert (listed.unread, [run.deep for run in listed.runs]) == (True, [False])

        pair[1].write_bytes(pair[1].read_bytes() * 2)  # neither are changes of others delayed
        collect(mailbox, lambda mail: any(file.path == str(pair[1]) for file in mail.files))

        source.gate.set()
        mails = collect(mailbox, lambda mail: counted.update({file.path: file for file in mail.files}) or deep(pair[0]))
        assert counted[str(pair[0])].runs[0].spans == 1_500
        if mails[-1].stage:
            collect(mailbox, lambda mail: not mail.stage)


def test_a_large_file_that_changes_is_read_again_and_one_that_goes_is_forgotten(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    with listing(tmp_path, LocalSource()) as (_, mailbox):
        collect(mailbox, lambda mail: any(run.spans == 1_500 for file in mail.files for run in file.runs))
        with pair[0].open("ab") as writer:
            writer.write(pair[0].read_bytes().splitlines(keepends=True)[0].replace(b"0" * 16, b"9" * 16, 2))
        collect(
            mailbox,
            lambda mail: any(file.path == str(pair[0]) and run.deep for file in mail.files for run in file.runs),
        )
        pair[0].unlink()
        collect(mailbox, lambda mail: any(file.path == str(pair[0]) and not file.runs for file in mail.files))
