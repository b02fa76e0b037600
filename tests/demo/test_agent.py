"""The agent of the demo: what it writes is a trace that is read as it grows."""

from __future__ import annotations

from pathlib import Path

from tracetui.demo import ccpa
from tracetui.formats import registry
from tracetui.live.load import Reader
from tracetui.live.scan import scan
from tracetui.model import RunRef, Status
from tracetui.sources.local import LocalSource


def test_it_writes_runs_that_can_be_followed(tmp_path: Path) -> None:
    """After every pause the reader that follows knows one more thing; the first session fails in the end."""
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
    (found,) = scan(LocalSource(), [str(tmp_path)], deep=True, only=registry.load("ccpa"))
    assert [run.status for run in found.runs] == [Status.ERROR]
    assert found.runs[0] == readers[0].summary()


def test_it_works_in_a_process_of_its_own_that_ends_with_the_demo(tmp_path: Path) -> None:
    with ccpa.running(tmp_path):
        while not list(tmp_path.glob("ccpa/*.jsonl")):
            pass
    (path,) = tmp_path.glob("ccpa/*.jsonl")
    assert path.read_bytes().count(b"\n") >= 2
