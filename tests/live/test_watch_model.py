"""Whatever happens in a directory, each update equals a fresh walk and read."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.live.trees import rewrite_in_secret, walked
from tests.shared import examples
from tracetui.live.load import Reader, read_run
from tracetui.live.watch import Watch
from tracetui.model import Run, RunRef
from tracetui.sources.base import Entry
from tracetui.sources.local import LocalSource

FOLDERS = ("", "a", "a/b", "c")
FILES = tuple(f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in ("x.jsonl", "y.jsonl"))
SOURCE = LocalSource()
START = {"v": 1, "kind": "session_start", "session_id": "s1", "ts": "2026-01-01T00:00:00Z", "actor": "claude-code"}
SWAPPED = bytes.maketrans(b"12", b"21")


def record(number: int, text: str) -> bytes:
    """One line of a session: the records take turns."""
    turn = number // 2 + 1
    call = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": text}}
    fields: dict[str, Any] = (
        {"kind": "tool_result", "tool_use_id": f"t{turn}", "ok": True, "content": text}
        if number % 2
        else {"kind": "assistant_turn", "blocks": [{"type": "text", "text": text}, call], "stop_reason": "tool_use"}
    )
    return orjson.dumps({"v": 1, "turn": turn, **fields}) + b"\n"


def session(count: int) -> bytes:
    return orjson.dumps(START) + b"\n" + b"".join(record(number, f"{number} of {count}") for number in range(count))


class Directory(RuleBasedStateMachine):
    """Writers of every kind beside one watch, and a reader of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.root = self.home / "root"
        self.root.mkdir()
        self.clock = self.home / "clock"
        self.count = 0
        self.torn: dict[Path, bytes] = {}
        self.rewritten: set[str] = set()
        self.seen: dict[str, Entry] = {}
        self.readers: dict[str, Reader] = {}
        self.watch = Watch(SOURCE, [str(self.root)], events=False)

    def teardown(self) -> None:
        self.watch.stop()
        shutil.rmtree(self.home)

    def file(self, name: str) -> Path:
        """The path, as one that can be written to: the clock of the file system ticked since the last change."""
        self.clock.touch()
        before = self.clock.stat().st_ctime_ns
        while self.clock.stat().st_ctime_ns == before:
            self.clock.touch()
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def there(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*.jsonl") if path.is_file())

    def add(self, name: str, data: bytes) -> None:
        with self.file(name).open("ab") as file:
            file.write(data)

    # ---- what writers do

    @rule(name=st.sampled_from(FILES), count=st.integers(0, 6))
    def begin(self, name: str, count: int) -> None:
        self.torn.pop(self.root / name, None)
        self.file(name).write_bytes(session(count))

    @rule(name=st.sampled_from(FILES), text=st.text(max_size=20))
    def append(self, name: str, text: str) -> None:
        self.count += 1
        self.add(name, record(self.count, text))

    @rule(name=st.sampled_from(FILES), part=st.floats(0, 1))
    def tear(self, name: str, part: float) -> None:
        self.count += 1
        line = record(self.count, "ä\u2028€ 1")
        cut = int(len(line) * part)
        self.add(name, line[:cut])
        self.torn[self.root / name] = line[cut:]

    @precondition(lambda self: self.torn)
    @rule()
    def mend(self) -> None:
        path, rest = self.torn.popitem()
        self.add(str(path.relative_to(self.root)), rest)

    @precondition(lambda self: bool(self.there()))
    @rule(data=st.data(), part=st.floats(0, 1))
    def truncate(self, data: st.DataObject, part: float) -> None:
        path = self.file(str(data.draw(st.sampled_from(self.there())).relative_to(self.root)))
        os.truncate(path, int(path.stat().st_size * part))

    @precondition(lambda self: bool(self.there()))
    @rule(data=st.data(), name=st.sampled_from(FILES))
    def rename(self, data: st.DataObject, name: str) -> None:
        """Rotate, with or without a new file under the name."""
        target = self.file(name)
        data.draw(st.sampled_from(self.there())).replace(target)

    @precondition(lambda self: bool(self.there()))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.there())).unlink()

    @precondition(lambda self: bool(self.there()))
    @rule(data=st.data())
    def rewrite(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(self.there()))
        if path.stat().st_size:
            rewrite_in_secret(path, path.read_bytes().translate(SWAPPED))
            self.rewritten.add(str(path))

    @rule(name=st.sampled_from(FOLDERS))
    def make_folder(self, name: str) -> None:
        self.file(f"{name}/x").parent.mkdir(exist_ok=True)

    @rule(name=st.sampled_from(FOLDERS))
    def remove_folder(self, name: str) -> None:
        shutil.rmtree(self.root / name, ignore_errors=True)

    @precondition(lambda self: (self.root / "a").is_dir() and not (self.root / "c").exists())
    @rule()
    def move_folder(self) -> None:
        (self.root / "a").rename(self.root / "c")

    # ---- what we see

    @rule()
    def poll(self) -> None:
        changes = self.watch.sweep()
        for change in changes:
            if change.entry is None:
                del self.seen[change.path]
            else:
                assert self.seen.get(change.path) != change.entry
                self.seen[change.path] = change.entry
        assert self.seen == walked(self.root)
        assert (self.rewritten & self.seen.keys()) <= {change.path for change in changes}
        self.rewritten.clear()
        assert self.watch.files == len(self.there())

    @rule()
    def read(self) -> None:
        for path in map(str, self.there()):
            ref = RunRef("ccpa", path, "s1")
            reader = self.readers.setdefault(path, Reader(SOURCE, ref))
            reader.read()
            while reader.more:
                reader.read()
            run, scratch = reader.build(), read_run(SOURCE, ref)
            assert values_of(run) == values_of(scratch)
        for path, reader in self.readers.items():
            if not Path(path).exists():
                reader.read()
                assert reader.failure is not None


def values_of(run: Run) -> dict[str, Any]:
    """All values of a run."""
    spans = {span.id: (span, run.load(span)) for span in run.spans}
    return {"spans": spans, "problems": run.problems}


Directory.TestCase.settings = settings(
    deadline=None, max_examples=examples(60), stateful_step_count=30, suppress_health_check=list(HealthCheck)
)
TestDirectory = Directory.TestCase
