"""Reading from another machine: a real sshd on loopback, the real ssh, and a config like a user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.run import Cli, write_traces
from tests.shared import ROOT
from tests.sources.sshd import SlowLine, Sshd, missing, until
from tests.terminal import TRACETUI, Terminal
from tracetui.formats import registry
from tracetui.live.load import Reader, read_run
from tracetui.live.scan import ScannedFile, scan
from tracetui.live.scan_cache import open_cache
from tracetui.model import RunRef
from tracetui.sources.base import LinkLost
from tracetui.sources.local import LocalSource
from tracetui.sources.locations import MultiHostSource, open_source
from tracetui.sources.ssh import BACKOFF, CONNECT_SECONDS

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line."""
    monkeypatch.setenv("PAPRIKA_TRACE_DIR", str(tmp_path / "nothing"))
    return Cli(capsysbinary)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Traces of every format."""
    write_traces(tmp_path / "traces")
    return tmp_path / "traces"


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    paths = [folder, *folder.rglob("*")]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}


def ours() -> list[str]:
    """Processes below this one that are an ssh."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.split("\n") if line.strip()]
    return [row[2] for row in rows if row[1] == str(os.getpid()) and "-s -- " in row[2]]


def test_everything_is_listed_and_read_as_it_is_here(there: Sshd, traces: Path) -> None:
    for name, case in (
        ("claude_code", "agents"),
        ("codex", "threads"),
        ("atif", "agents"),
        ("otlp", "genai"),
        ("inspect", "archive"),
        ("opencode", "database"),
        ("opencode", "storage"),
        ("pi", "fork"),
        ("copilot", "agents"),
        ("swe_agent", "mini"),
        ("gemini", "session"),
        ("harbor", "checks"),
        ("qwen", "session"),
        ("google_adk", "sqlite"),
        ("openhands", "tools"),
        ("codex_exec", "turns"),
        ("hf_sts", "session"),
        ("langgraph", "threads"),
        ("mlflow", "store"),
        ("antigravity", "conversations"),
        ("cursor", "transcripts"),
    ):
        shutil.copytree(ROOT / "tests" / "formats" / name / case / "input", traces / name, dirs_exist_ok=True)
    (traces / "wide.jsonl").write_bytes(next((traces / "codex_exec").rglob("*.jsonl")).read_text().encode("utf-16"))
    before = state_of(traces)
    here = {file.path: file for file in scan(LocalSource(), [str(traces)], deep=True)}
    with open_source([f"there:{traces}"]) as source:
        far = {file.path: file for file in scan(source, [f"there:{traces}"], deep=True)}

        assert {path.removeprefix("there:") for path in far} == set(here)
        assert far[f"there:{traces}/wide.jsonl"].runs, "a file in UTF-16"
        assert {file.format for file in far.values() if file.format} == {fmt.name for fmt in registry.formats()}
        for path, file in far.items():
            same = here[path.removeprefix("there:")]
            assert (file.kind, file.format, len(file.runs)) == (same.kind, same.format, len(same.runs))
            for run, original in zip(file.runs, same.runs, strict=True):
                remote, other = read_run(source, run.ref), read_run(LocalSource(), original.ref)
                assert [replace(span, at=None) for span in remote.spans] == [
                    replace(span, at=None) for span in other.spans
                ]
                assert [remote.load(span) for span in remote.spans] == [other.load(span) for span in other.spans]
    assert state_of(traces) == before
    assert ours() == []
    until(lambda: there.sessions() == 0, "the connection is still served")


def test_files_elsewhere_are_cached_by_what_sftp_reports(there: Sshd, traces: Path) -> None:
    place = f"there:{traces}"

    def listed() -> tuple[list[ScannedFile], int, int]:
        with open_source([place]) as source:
            cache = open_cache(source, [place], None, 1 << 20)
            files = sorted(scan(source, [place], deep=True, cache=cache), key=lambda file: file.path)
            hits = cache.storage.hits
            cache.close()
            return files, hits, source.received

    cold, none, much = listed()
    warm, hits, little = listed()
    assert warm == cold
    assert (none, hits > 0) == (0, True)
    assert little < much
    with open_source([place]) as source:
        assert sorted(scan(source, [place], deep=True), key=lambda file: file.path) == cold


@pytest.mark.parametrize("form", ["there:{}", "ssh://there{}"])
def test_commands_take_places_elsewhere(there: Sshd, traces: Path, cli: Cli, form: str) -> None:
    place = form.format(traces)

    def check_same(*arguments: str) -> None:
        far, here = cli(*arguments), cli(*(argument.replace(place, str(traces)) for argument in arguments))
        assert (far.status, far.err) == (here.status, here.err.replace(str(traces), place))
        assert far.text.replace(place, str(traces)) == here.text or arguments[0] == "ls"
        assert far.text

    check_same("doctor", place)
    check_same("show", f"{place}/daily.db#nightly-1/1")
    check_same("show", f"{place}/paprika/plan-7.json/3", "--json")
    check_same("show", f"{place}/lattice/weather.jsonl#seoul-1", "--raw")
    check_same("show", f"{place}/paprika/plan-7-again.json", "--json")
    check_same("show", "plan-7-a", "--trace-dir", place)
    far, here = cli("ls", place, "--json"), cli("ls", str(traces), "--json")
    assert json.loads(far.text.replace(place, str(traces))) == here.data


def test_a_lost_link_comes_back(there: Sshd, traces: Path) -> None:
    place = f"there:{traces}"
    with open_source([place]) as source:
        assert source.list(place).entries
        there.cut()
        with pytest.raises(LinkLost, match="there"):
            cut_and_list(there, source, place)

        def is_back() -> bool:
            try:
                return bool(source.list(place).entries)
            except LinkLost:
                return False

        until(is_back, "it does not come back")
    assert ours() == []


def cut_and_list(there: Sshd, source: MultiHostSource, place: str) -> None:
    for _ in range(50):  # a connection that ended while idle is reopened at once
        there.cut()
        source.list(place)


def test_a_server_that_went_away_is_tried_again_and_again(there: Sshd, traces: Path) -> None:
    place = f"there:{traces}"
    with open_source([place]) as source:
        file = source.open(f"{place}/paprika/plan-7.json")
        there.stop()
        began = time.monotonic()
        with pytest.raises(LinkLost):
            file.read_all()
        with pytest.raises(LinkLost):
            source.list(place)
        assert time.monotonic() - began < CONNECT_SECONDS
        calls, began = len(there.calls()), time.monotonic()
        for _ in range(20):
            with pytest.raises(LinkLost):
                source.list(place)
        assert len(there.calls()) - calls <= 1 + (time.monotonic() - began) / BACKOFF[0]
        there.start()

        def reads() -> bool:
            try:
                return file.read_all() == (traces / "paprika" / "plan-7.json").read_bytes()
            except LinkLost:
                return False

        until(reads, "it does not come back")


def test_a_changed_host_key_is_refused(there: Sshd, cli: Cli, traces: Path) -> None:
    there.trust(there.new_key())
    done = cli("ls", f"there:{traces}")

    assert (done.status, done.text) == (1, "")
    assert "host key of" in done.err
    assert "`ssh there`" in done.err


def test_an_unknown_host_is_refused(there: Sshd, cli: Cli, traces: Path) -> None:
    there.trust()
    done = cli("ls", f"there:{traces}")

    assert (done.status, done.text) == (1, "")
    assert "not a known host" in done.err
    assert "`ssh there`" in done.err
    assert done.err.count("\n") == 1


def test_a_place_that_is_not_there(there: Sshd, cli: Cli, traces: Path) -> None:
    assert cli("ls", f"there:{traces}/none").status == 1
    assert "no such file" in cli("ls", f"there:{traces}/none").err


def test_odd_entries_are_reported_like_local_ones(there: Sshd, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    os.mkfifo(folder / "fifo.json")
    (folder / "real.json").write_text("{}")
    (folder / "link.json").symlink_to(folder / "real.json")
    (folder / "dangling.json").symlink_to(folder / "none")
    (folder / "around").symlink_to(folder)
    for name in (".hidden", "x.tmp", "x.db-wal", "a\x1b[31m.json", "a b\n.json"):
        (folder / name).write_text("x")
    (folder / ".git").mkdir()
    here = {(entry.path, entry.skipped, entry.failed) for entry in LocalSource().walk(str(folder))}
    with open_source([f"there:{folder}"]) as source:
        listed = source.list(f"there:{folder}")
        walked = {(entry.path[6:], entry.skipped, entry.failed) for entry in source.walk(f"there:{folder}")}

    assert walked == here
    assert {(entry.path[6:], entry.skipped, entry.failed) for entry in listed.entries} == here
    assert listed.folders == []


def ccpa(traces: Path) -> Path:
    return traces / "ccpa" / "bump" / "teacher.ccpa-trace.jsonl"


def append(path: Path, size: int) -> bytes:
    """One more record of a ccpa session."""
    last = [line for line in path.read_bytes().split(b"\n") if b'"assistant"' in line or b'"type"' in line][-1]
    record = {"type": "note", "padding": os.urandom(size // 2 - 20).hex()}
    data = json.dumps(record).encode() + b"\n"
    assert last
    with path.open("ab") as file:
        file.write(data)
    return data


def test_two_kilobytes_more_cost_about_two(there: Sshd, traces: Path) -> None:
    path = ccpa(traces)
    for _ in range(60):
        append(path, 4096)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with open_source([f"there:{traces}"]) as source:
        ref = RunRef("ccpa", f"there:{path}", None)
        reader = Reader(source, ref)
        reader.read()
        while reader.more:
            reader.read()
        for _ in range(4):
            before = source.received
            append(path, 2048)
            reader.read()
            cost = source.received - before
            assert 2048 < cost < 4096
            assert len(reader.build().problems) == len(
                read_run(LocalSource(), RunRef("ccpa", str(path), None)).problems
            )


def test_a_list_reads_head_and_end_only(there: Sshd, tmp_path: Path) -> None:
    folder = tmp_path / "big"
    write_traces(folder)
    for _ in range(400):
        append(ccpa(folder), 8192)
    size = ccpa(folder).stat().st_size
    assert size > 3_000_000
    with open_source([f"there:{folder}"]) as source:
        assert any(file.runs for file in scan(source, [f"there:{folder}"], deep=False))
        assert source.received < size / 4


def rewrites(data: bytes) -> dict[str, bytes]:
    """Other contents of a file, none of them an append."""
    return {
        "as long": data[:-9] + b"x" * 9,
        "shorter": data[: len(data) // 2],
        "longer, other head": b"y" * 600 + data,
        "longer, other end": data[:-100] + b"z" * 3000,
        "empty": b"",
    }


@pytest.mark.parametrize("how", list(rewrites(b"x" * 200)))
def test_a_rewrite_is_not_hidden(there: Sshd, tmp_path: Path, how: str) -> None:
    path = tmp_path / "f.json"
    data = os.urandom(150_000)
    path.write_bytes(data)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with open_source([f"there:{tmp_path}"]) as source:
        with source.open(f"there:{path}") as file:
            assert file.read_all() == data
        path.write_bytes(rewrites(data)[how])
        with source.open(f"there:{path}") as file:
            assert file.read_all() == path.read_bytes()
        path.write_bytes(rewrites(data)[how][::-1])  # most likely in the same second, and as long

        def shows() -> bool:
            with source.open(f"there:{path}") as file:
                return file.read_all() == path.read_bytes()

        until(shows, "what was written in the same second is hidden")


def test_a_listing_tells_once_more_when_the_second_is_over(there: Sshd, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text("{}")
    place = f"there:{tmp_path}"
    with open_source([place]) as source:
        first = source.list(place).entries[0].stat
        assert first is not None
        assert first.ctime_ns == 0
        until(lambda: source.list(place).entries[0].stat != first, "it is not reported again")
        settled = source.list(place).entries[0].stat
        assert settled is not None
        assert settled.ctime_ns > settled.mtime_ns
        assert source.list(place).entries[0].stat == settled


def test_latency_costs_few_round_trips(there: Sshd, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    write_traces(tmp_path / "traces")
    data = (tmp_path / "traces" / "paprika" / "plan-7.json").read_bytes()
    for i in range(100):
        (folder / f"{i}.json").write_bytes(data)
    line = SlowLine(there.port, 0.1)
    try:
        there.connect_to(line.port)
        with open_source([f"there:{folder}"]) as source:
            assert source.list(f"there:{folder}")
            before = line.trips
            assert sum(len(file.runs) for file in scan(source, [f"there:{folder}"], deep=True)) == 100
            trips = line.trips - before
    finally:
        line.close()
    assert trips < 100  # not even one round trip a file


def test_a_database_is_copied_while_it_is_written(there: Sshd, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = OFF")
        writer.execute("CREATE TABLE t (a, b)")

        def rows(source: MultiHostSource) -> int:
            with source.open(f"there:{path}") as file, file.database() as connection:
                (count,) = connection.execute("SELECT count(*) FROM t").fetchone()
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                return int(count)

        with open_source([f"there:{tmp_path}"]) as source:
            before = sorted(os.listdir(tmp_path))
            for i in range(1, 30):
                writer.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * 3000))
                if i % 7 == 0:
                    writer.execute("PRAGMA wal_checkpoint(RESTART)")
                if i % 5 == 0:
                    until(lambda i=i: rows(source) == i, f"row {i} does not show")
            with source.open(f"there:{path}") as file:
                assert file.tables == {"t"}
            received = source.received
            rows(source)
            assert source.received - received < 4096
            assert sorted(os.listdir(tmp_path)) == before


def test_an_interactive_read_does_not_wait_behind_a_scan(there: Sshd, tmp_path: Path) -> None:
    from threading import Thread

    (tmp_path / "big.bin").write_bytes(os.urandom(60_000_000))
    (tmp_path / "small.bin").write_bytes(b"small")
    place = f"there:{tmp_path}"
    with open_source([place]) as source:
        read = []
        scan_thread = Thread(target=lambda: read.append(len(source.open(f"{place}/big.bin").read_all())), daemon=True)
        scan_thread.start()
        between = 0
        while scan_thread.is_alive():
            with source.open(f"{place}/small.bin") as file:
                assert file.read_all() == b"small"
            between += 1
        scan_thread.join()
        assert read == [60_000_000]
        assert between > 3  # the last may have come after the scan


def test_copies_of_databases_are_private_and_go_at_the_end(there: Sshd, traces: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import os, sys, tempfile; from tracetui.sources.locations import open_source\n"
        "with open_source([sys.argv[1]]) as source:\n"
        "    print(sorted(source.open(sys.argv[1]).tables))\n"
        "    for name in os.listdir(tempfile.gettempdir()):\n"
        "        print(oct(os.stat(os.path.join(tempfile.gettempdir(), name)).st_mode))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"there:{traces}/daily.db"],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "runs" in done.stdout
    assert "0o40700" in done.stdout
    assert list(scratch.iterdir()) == []


@pytest.mark.e2e
def test_the_app_opens_there_and_leaves_nothing(there: Sshd, traces: Path) -> None:
    with Terminal(*TRACETUI, f"there:{traces}") as terminal:
        terminal.expect("10 runs")
        terminal.type("q")
        assert terminal.wait_exit() == 0
    until(lambda: there.sessions() == 0, "the connection is still served")


@pytest.mark.e2e
def test_the_app_draws_nothing_before_it_is_connected(there: Sshd, traces: Path) -> None:
    there.trust()
    with Terminal(*TRACETUI, f"there:{traces}") as terminal:
        assert terminal.wait_exit() == 1
        assert b"not a known host" in terminal.output
        assert b"\x1b" not in terminal.output
