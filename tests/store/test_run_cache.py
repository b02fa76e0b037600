"""What is shown with the cache of runs is what is shown without it, and no fault of the cache is one of the user's."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.claude_sessions import bash, write_session
from tests.cli.run import Cli
from tests.shared import ROOT, SEARCHES, examples
from tracetui.analysis import prices
from tracetui.analysis.statistics import By, Statistics
from tracetui.live.engine import Engine
from tracetui.live.scan import ScannedFile, scan
from tracetui.live.scan_cache import Outlines, ScanCache, version
from tracetui.model import Status
from tracetui.sources.base import File, FileView, Stat
from tracetui.sources.local import LocalSource
from tracetui.store.run_cache import NAME, Page, Storage, cache_folder

SAMPLES: Final = Path(__file__).parent.parent / "formats"
EVERY: Final = 1 if SEARCHES else 2
"""Of so many conformance cases of each format, most tests copy one."""
LIMIT: Final = 64 << 20
OLD: Final = 1_700_000_000
STATISTICS: Final = ("tool", "task", *(("model", "node", "agent", "operation") if SEARCHES else ()))
COMMANDS: Final[dict[str, list[list[str]]]] = {
    "ls": [["--json"], []],
    "stats": [
        *(
            ["--json", "--by", by]
            for by in (*(("model", "node", "agent", "operation") if SEARCHES else ()), "tool", "task")
        ),
        ["-q", "steps>0"],
    ],
    "triage": [["--json"]],
}
"""Commands that read every run, each with lists of options."""


class Reads(LocalSource):
    """Local files; `paths` are those that were read."""

    def __init__(self) -> None:
        self.paths: set[str] = set()

    def open(self, path: str, stat: Any = None) -> File:
        return _ReadFile(super().open(path, stat), self.paths)


class _ReadFile(FileView):
    """A file that reports when its contents are read."""

    def __init__(self, file: File, paths: set[str]) -> None:
        super().__init__(file)
        self._paths = paths

    @property
    def stat(self) -> Stat:
        return self._file.stat

    @property
    def head(self) -> bytes:
        self._paths.add(self.path)
        return self._file.head

    def read(self, offset: int, size: int) -> bytes:
        self._paths.add(self.path)
        return self._file.read(offset, size)

    def read_all(self) -> bytes:
        self._paths.add(self.path)
        return self._file.read_all()


def listed(root: Path, *, cached: bool = True, source: LocalSource | None = None) -> list[ScannedFile]:
    """What a deep pass finds below `root`."""
    source, roots = source or LocalSource(), [str(root)]
    if not cached:
        return [*scan(source, roots, deep=True)]
    cache = ScanCache(Storage(version(None), roots, limit=LIMIT), source, roots)
    try:
        return [*scan(source, roots, deep=True, cache=cache)]
    finally:
        cache.close()


def age(root: Path) -> None:
    """Give all files an old modification time, so that no run counts as going on, and let the clock tick."""
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, (OLD, OLD))
    time.sleep(0.06)  # the resolution of the clock of file systems (`TICK_NS`) is what is tested here


def samples(to: Path, names: list[str] | None = None, *, every: int = EVERY) -> Path:
    """A copy of `every` so many-th conformance case of each format, at least of one."""
    for folder in sorted(SAMPLES.iterdir()):
        if names is None or folder.name in names:
            for case in sorted(folder.glob("*/input"))[::every]:
                shutil.copytree(case, to / f"{folder.name}-{case.parent.name}")
    return to


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line, without a directory of the user's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(prices.SWITCH, "off")
    return Cli(capsysbinary)


# ---- exactness


@pytest.mark.search
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_the_same_with_the_cache_and_without(cli: Cli, tmp_path: Path, command: str) -> None:
    root = samples(tmp_path / "traces")
    age(root)
    ways = [(command, *options, str(root)) for options in COMMANDS[command]]
    cold = {way: cli(*way, "--no-cache") for way in ways}
    assert not (cache_folder() / NAME).exists()
    for way in (ways[0], *ways):  # the first fills the cache
        assert cli(*way) == cold[way], way


def test_unchanged_files_are_not_read_again(tmp_path: Path) -> None:
    root = samples(tmp_path / "traces", every=1)
    age(root)
    cold = listed(root)
    reads = Reads()
    assert listed(root, source=reads) == cold
    assert len(cold) > 100
    broken = {file.path for file in cold if file.problems}
    assert len(reads.paths - broken) < len(cold) / 50


@pytest.mark.parametrize("name", [path.name for path in sorted(SAMPLES.iterdir()) if list(path.glob("*/input"))])
@pytest.mark.search
@settings(max_examples=examples(6))
@given(seed=st.integers(0, 1 << 32))
def test_random_changes(name: str, seed: int) -> None:
    """Append, rewrite, truncate, touch back, swap, delete, rename, copy: cold and warm always agree."""
    with tempfile.TemporaryDirectory() as folder:
        root, random = samples(Path(folder) / "traces", [name]), Random(seed)
        age(root)
        listed(root)
        for _ in range(4):
            for _ in range(random.randint(1, 3)):
                change(random, root)
            if random.random() < 0.5:
                age(root)
            assert listed(root) == listed(root, cached=False)


def change(random: Random, root: Path) -> None:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    if not files:
        return
    path, other = random.choice(files), random.choice(files)
    stat, data = path.stat(), path.read_bytes()
    kinds = ("append", "rewrite", "truncate", "back", "same", "swap", "delete", "rename", "copy", "folder")
    match random.choice(kinds):
        case "append":
            path.write_bytes(data + data[-random.randint(1, 400) :])
        case "rewrite":
            path.write_bytes(other.read_bytes())
        case "truncate":
            path.write_bytes(data[: random.randint(0, len(data))])
        case "back":  # other contents of the same size, and the time set back
            path.write_bytes(data.replace(b"1", b"2"))
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        case "same":
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + random.choice((-1, 1, 0)) * 1_000_000_000))
        case "swap" if path != other:
            moved = path.with_name("moved")
            path.rename(moved)
            other.rename(path)
            moved.rename(other)
        case "delete":
            path.unlink()
        case "rename":
            path.rename(path.with_name(f"x{path.name}"))
        case "copy":
            shutil.copy2(path, path.with_name(f"copy-{path.name}"))
        case "folder":
            path.parent.rename(path.parent.with_name(f"{path.parent.name}x")) if path.parent != root else None


def write(path: Path, text: bytes = b'{"role":"user"}') -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


def test_a_file_that_changed_in_the_same_tick_as_it_was_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = samples(tmp_path / "traces", ["paprika"])
    age(root)
    now = max(path.stat().st_ctime_ns for path in root.rglob("*.json"))
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: now + 1_000_000)
        listed(root)
    assert uses(root) == 0
    assert uses(root) > 0


def test_statistics_read_no_unchanged_file(tmp_path: Path) -> None:
    root = samples(tmp_path / "traces")
    age(root)
    refs = [run.ref for file in listed(root) if not file.problems for run in file.runs]
    rows = []
    for source in (reads := [Reads(), Reads()]):
        with Outlines(source, [str(root)], LIMIT) as outlines:
            statistics = Statistics(By.TOOL)
            for ref in refs:
                statistics.add(outlines.read(ref))
        rows.append(statistics.rows())
    assert rows[0] == rows[1]
    assert len(reads[1].paths) < len(reads[0].paths) / 10


def test_a_run_that_seems_to_go_on_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "traces"
    path = write_session(root / "s-1.jsonl", [bash("make", None)])
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    path.write_text(re.sub(r"2026-05-04T[\d:.]+Z", now, path.read_text()))
    time.sleep(0.06)  # as in `age`
    assert [run.status for file in listed(root) for run in file.runs] == [Status.RUNNING]
    age(root)
    assert [run.status for file in listed(root) for run in file.runs] == [Status.UNKNOWN]
    assert listed(root) == listed(root, cached=False)


def test_the_outcome_by_a_rule_of_the_user_is_not_stored(cli: Cli, tmp_path: Path) -> None:
    root = samples(tmp_path / "traces", ["inspect", "harbor"])
    age(root)
    rule = ["--pass", "reward>=0.0"]
    plain, ruled = (cli("ls", str(root), "--json", "--no-cache", *more).out for more in ([], rule))
    assert plain != ruled
    for more, expected in ((rule, ruled), ([], plain), (rule, ruled), ([], plain)):
        assert cli("ls", str(root), "--json", *more).out == expected


def test_another_version_of_the_readers_is_another_cache(tmp_path: Path) -> None:
    root = samples(tmp_path / "traces", ["paprika"])
    age(root)
    listed(root)
    source, roots = Reads(), [str(root)]
    cache = ScanCache(Storage("another", roots, limit=LIMIT), source, roots)
    assert [*scan(source, roots, deep=True, cache=cache)] == listed(root)
    assert source.paths
    cache.close()


def test_paths_stay_as_the_user_wrote_them(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        samples(tmp_path / name / "traces", ["paprika"])
        age(tmp_path / name)
    for _ in range(2):
        for name in ("a", "b"):
            monkeypatch.chdir(tmp_path / name)
            for path in ("traces", "./traces", ".", str(tmp_path / name)):
                assert cli("ls", path, "--json").out == cli("ls", path, "--json", "--no-cache").out


def listed_files(root: Path, source: LocalSource, limit: int) -> dict[str, Any]:
    """What the app lists, once all is counted."""
    engine, results, listed = Engine(source, [str(root)], events=False, cache_limit=limit), dict[str, Any](), False
    engine.start()
    engine.first_painted()
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            engine.wait(0.1)
            mail = engine.collect()
            assert mail.failure is None
            listed |= mail.listed
            results |= {
                file.path: (file.runs, file.problems, file.reason, file.part_of) for file in mail.files if file.whole
            }
            if listed and mail.stage == "":
                return results
    finally:
        engine.stop()
    raise AssertionError("it is still counting")


def test_the_app_shows_the_same(tmp_path: Path) -> None:
    root, reads = samples(tmp_path / "traces"), Reads()
    age(root)
    cold = listed_files(root, LocalSource(), 0)
    assert listed_files(root, LocalSource(), LIMIT) == cold
    assert listed_files(root, reads, LIMIT) == cold
    assert len(reads.paths) < len(cold) / 10


# ---- faults


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = samples(tmp_path / "traces", ["paprika", "ccpa"])
    age(folder)
    return folder


def test_the_cache_folder_is_private(root: Path) -> None:
    listed(root)
    folder = cache_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "data",
    [b"", b"x" * 68 + b"ttui" + b"x" * 8192, b"SQLite format 3\0".ljust(68, b"x") + b"ttui"],
    ids=["empty", "torn", "cut"],
)
def test_a_damaged_file_is_made_again(root: Path, data: bytes) -> None:
    write(cache_folder() / NAME, data)
    expected = listed(root, cached=False)
    assert listed(root) == listed(root) == expected
    assert uses(root) > 0


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 1 << 32))
def test_changed_bytes_change_nothing_that_is_shown(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, random = samples(Path(folder) / "traces", ["penelope"]), Random(seed)
        age(root)
        expected = listed(root)
        path = cache_folder() / NAME
        if not path.exists():  # `listed` found the damage of the example before
            assert listed(root) == expected
        data = bytearray(path.read_bytes())
        for _ in range(random.choice((1, 30, 3000))):
            data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(data[: random.choice((len(data), random.randrange(len(data))))])
        assert listed(root) == expected
        assert listed(root) == expected


def uses(root: Path) -> int:
    """How many of the files are not read again."""
    storage = Storage(version(None), [str(root)], limit=LIMIT)
    cache = ScanCache(storage, LocalSource(), [str(root)])
    for _ in scan(LocalSource(), [str(root)], deep=True, cache=cache):
        pass
    hits = storage.hits
    cache.close()
    return hits


@pytest.mark.parametrize(
    "script",
    ["PRAGMA user_version = 999", "PRAGMA application_id = 5", "PRAGMA application_id = 0; PRAGMA user_version = 0"],
    ids=["newer", "foreign", "foreign-0"],
)
def test_a_file_of_others_is_left_alone(root: Path, script: str) -> None:
    expected = listed(root)
    path = cache_folder() / NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"CREATE TABLE more (x); {script}")
    with closing(sqlite3.connect(path)) as connection:
        before = [*connection.iterdump()]
    assert listed(root) == listed(root) == expected
    with closing(sqlite3.connect(path)) as connection:
        assert [*connection.iterdump()] == before


FOREIGN = {
    "text": "",
    "wal": "PRAGMA journal_mode = WAL; CREATE TABLE more (x)",
    "wal-only": "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; BEGIN; CREATE TABLE more (x); COMMIT",
}
"""How another program made the file: a text, a database with a log, one with all its tables in the log."""


@pytest.mark.parametrize("kind", FOREIGN)
def test_no_byte_of_a_file_of_another_program_changes_nor_of_its_log(root: Path, kind: str) -> None:
    expected = listed(root, cached=False)
    path = cache_folder() / NAME
    write(path, b"garbage" * 5000 if kind == "text" else b"")
    with closing(sqlite3.connect(path)) as connection:
        if kind != "text":
            connection.executescript(FOREIGN[kind])
        before = {path.name: path.read_bytes() for path in cache_folder().iterdir()}
        assert listed(root) == expected
        assert {path.name: path.read_bytes() for path in cache_folder().iterdir()} == before


def test_an_older_schema_is_replaced(root: Path) -> None:
    expected = listed(root)
    with closing(sqlite3.connect(cache_folder() / NAME)) as connection:
        connection.executescript("DROP TABLE pages; PRAGMA user_version = 0")
    assert listed(root) == expected
    assert uses(root) > 0


def test_a_missing_table_is_damage(root: Path) -> None:
    expected = listed(root)
    with closing(sqlite3.connect(cache_folder() / NAME)) as connection:
        connection.execute("DROP TABLE pages")
    assert listed(root) == listed(root) == expected
    assert uses(root) > 0


def test_a_damaged_index_is_damage(root: Path) -> None:
    """SQLite's quick check does not compare an index with its table."""
    expected, used = listed(root), uses(root)
    with closing(sqlite3.connect(cache_folder() / NAME)) as connection:
        connection.execute("CREATE TRIGGER lost AFTER INSERT ON folders BEGIN DELETE FROM folders; END")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        index = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_folders_1'"
        start = (connection.execute(index).fetchone()[0] - 1) * size
    data = bytearray((cache_folder() / NAME).read_bytes())
    place = data.index(str(root).encode(), start, start + size)
    data[place : place + 4] = b"zzzz"
    (cache_folder() / NAME).write_bytes(data)
    assert listed(root) == listed(root) == expected
    assert uses(root) == used > 0


def test_a_folder_that_is_not_found_after_it_was_stored_changes_nothing_that_is_shown(root: Path) -> None:
    expected = listed(root)
    with closing(sqlite3.connect(cache_folder() / NAME)) as connection:
        connection.execute("DELETE FROM folders")
        connection.execute("CREATE TRIGGER lost AFTER INSERT ON folders BEGIN DELETE FROM folders; END")
        connection.commit()
    assert listed(root) == listed(root) == listed(root) == expected


@pytest.mark.parametrize("kind", ["file", "link", "missing"])
def test_without_a_usable_folder(root: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "cache"
    if kind == "file":
        home.write_text("")
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir()
        home.mkdir()
        (home / "tracetui").symlink_to(tmp_path / "elsewhere")
    else:
        home = Path("/proc/none")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert listed(root) == listed(root, cached=False)
    assert kind != "link" or not [*(tmp_path / "elsewhere").iterdir()]


def test_never_inside_a_trace_directory(root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "below"))
    before = sorted(root.rglob("*"))
    assert listed(root) == listed(root, cached=False)
    assert sorted(root.rglob("*")) == before
    assert "inside the trace directory" in cli("doctor", str(root)).err


LIST: Final = """
import sys
from tracetui.cli import main
sys.exit(main(["ls", "--json", *sys.argv[1:]]))
"""


def start(root: Path, before: str = "", **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", f"{before}\n{LIST}", str(root)], stdout=subprocess.PIPE, **options)


def ended(process: subprocess.Popen[bytes]) -> bytes:
    with process:
        out = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    return out


def test_two_processes_at_once(tmp_path: Path, cli: Cli) -> None:
    root = samples(tmp_path / "traces", ["codex", "otlp", "langgraph", "paprika"])
    age(root)
    processes = [start(root) for _ in range(2)]
    outs = {ended(process) for process in processes}
    assert outs == {cli("ls", "--json", "--no-cache", str(root)).out}
    count = "import pathlib, sys; from tests.store import test_run_cache as t; print(t.uses(pathlib.Path(sys.argv[1])))"
    with subprocess.Popen([sys.executable, "-c", count, str(root)], stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert int(ended(process)) > 0  # in another process: tests of plug-ins add folders to the path of this one


SLOW: Final = """
import time
from tracetui.store.run_cache import Storage
put = Storage.put
def slow(self, rows):
    print("putting", flush=True, file=sys.stderr)
    put(self, rows)
import sys
Storage.put = slow
import tracetui.live.scan_cache as cache
cache._FLUSH_SECONDS = -1.0  # after each file
"""


def test_killed_while_it_writes(root: Path) -> None:
    expected = listed(root, cached=False)
    for count in range(1, 6):
        process = start(root, SLOW, stderr=subprocess.PIPE)
        with process:
            assert process.stderr is not None
            for _ in range(count):
                process.stderr.readline()
            process.send_signal(signal.SIGKILL)
        assert listed(root) == expected
    assert uses(root) > 0


@contextmanager
def files_limited(size: int) -> Iterator[None]:
    """No file can become larger than `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk(root: Path) -> None:
    expected = listed(root, cached=False)
    for size in (0, 5000, 20_000):
        with files_limited(size):
            assert listed(root) == expected
        assert listed(root) == expected
        with files_limited(size):
            assert listed(root) == expected  # beside a cache that is there
        shutil.rmtree(cache_folder())


def test_the_limit_holds(tmp_path: Path) -> None:
    storage = Storage("1", limit=2_000_000)
    for number in range(40):
        storage.put([Page(f"folder {number}", os.urandom(10_000)) for _ in range(10)])
    assert storage.usage().size < 8_000_000  # with its log
    assert storage.pages("folder 39")
    assert not storage.pages("folder 0")
    storage.close()
    assert (cache_folder() / NAME).stat().st_size < 3_000_000


def test_pages_have_checksums() -> None:
    storage = Storage("1", limit=LIMIT)
    storage.put([Page("a", b"1"), Page("b", b"2"), Page("a", b"3")])
    assert [*storage.pages("a").values()] == [b"1", b"3"]
    assert Storage("2", limit=LIMIT).pages("a") == {}
    with closing(sqlite3.connect(storage.path)) as connection, connection:
        connection.execute("UPDATE pages SET value = x'07' WHERE value = x'33'")
    assert [*storage.pages("a").values()] == [b"1"]
    storage.close()


def test_a_page_replaces_others() -> None:
    storage = Storage("1", limit=LIMIT)
    storage.put([Page("a", b"1"), Page("a", b"2", 9), Page("b", b"3")])
    small, other = storage.pages("a", below=9), storage.pages("b")
    assert [*small.values()] == [b"1"]
    storage.put([Page("a", b"4", replaces=[*small, *other])])
    assert [*storage.pages("a").values()] == [b"2", b"4"]
    assert [*storage.pages("b").values()] == [b"3"]
    assert storage.usage().rows == 11
    storage.close()


def test_a_folder_in_which_files_change_one_by_one_has_few_pages(tmp_path: Path) -> None:
    root = samples(tmp_path / "traces", ["paprika"])
    files = sorted(root.rglob("*.json"))
    folder = files[0].parent
    for number in range(60):
        shutil.copy(files[number % len(files)], folder / f"{number}.json")
        age(root)
        listed(root)
    storage = Storage(version(None), limit=LIMIT)
    assert len(storage.pages(f"{folder}/")) <= 9
    storage.close()
    assert uses(root) == len([*root.rglob("*")]) - len([path for path in root.rglob("*") if path.is_dir()])
    assert listed(root) == listed(root, cached=False)


# ---- commands


def test_the_command(cli: Cli, root: Path) -> None:
    assert "files   0" in cli("cache").text
    assert not (cache_folder() / NAME).exists()
    cli("ls", str(root))
    cli("ls", str(root))
    output = cli("cache")
    assert str(cache_folder() / NAME) in output.text
    assert "50%" in output.text
    assert cli("cache", "clear").status == 0
    assert uses(root) == 0
    assert cli("cache", "--json").data["rows"] > 0


def test_the_setting(cli: Cli, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = write(tmp_path / "config" / "tracetui" / "config.toml", b"cache_mb = 0")
    assert cli("ls", str(root)).status == 0
    assert not (cache_folder() / NAME).exists()
    file.write_text("cache_mb = -1")
    failed = cli("ls", str(root))
    assert failed.status == 2
    assert "cache_mb is -1" in failed.err
