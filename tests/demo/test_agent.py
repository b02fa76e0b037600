"""The live agent of the demo writes a trace that can be read as it grows."""

from __future__ import annotations

from pathlib import Path

from tracetui.demo import ccpa
from tracetui.formats import registry
from tracetui.live.load import Reader
from tracetui.live.scan import scan
from tracetui.model import RunRef, Status
from tracetui.sources.local import LocalSource


def test_the_agent_writes_runs_that_can_be_followed(tmp_path: Path) -> None:
    """The follower has at least as many events after each pause; the first session ends with an error."""
    readers: list[Reader] = []
    counts: list[int] = []

    def rest(seconds: float) -> bool:
        assert seconds > 0
        path = next((tmp_path / "ccpa").iterdir())
        if not readers:
            readers.append(Reader(LocalSource(), RunRef("ccpa", str(path))))
        readers[0].catch_up()
        counts.append(len(readers[0]))
        return readers[0].summary().status is not Status.RUNNING

    ccpa.work(tmp_path, rest)
    assert counts == sorted(counts)
    assert len(set(counts)) > 10
    (file,) = scan(LocalSource(), [str(tmp_path)], deep=True, only=registry.load("ccpa"))
    assert [run.status for run in file.runs] == [Status.ERROR]
    assert file.runs[0] == readers[0].summary()


def test_the_agent_process_ends_with_the_demo(tmp_path: Path) -> None:
    with ccpa.running(tmp_path):
        while not list(tmp_path.glob("ccpa/*.jsonl")):
            pass
    (path,) = tmp_path.glob("ccpa/*.jsonl")
    assert path.read_bytes().count(b"\n") >= 2
