"""An Inspect log written sample by sample: events equal a fresh read."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.formats.inspect_build import DEFLATED, ZSTANDARD, archive, head, members, retried, sample
from tests.live.replay import Replay, until_equal
from tracetui.live.tail import Tail
from tracetui.sources.local import LocalSource


def states(method: int) -> list[bytes]:
    """The archive after each flush; the last one has its end."""
    written = list(members(head("evalOfTail"), [sample("dover"), retried("brest"), sample("dover", 2)]).items())
    return [archive(written[:count], method) for count in (1, 3, 5, 7, len(written))]


@pytest.mark.parametrize("way", ["in place", "torn", "renamed"])
@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_log_is_followed(tmp_path: Path, method: int, way: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path, random = folder / "tides.eval", Random(1)
    tail, replay = Tail(LocalSource(), [str(folder)], from_start=True), Replay()
    with closing(tail):
        for data in states(method):
            if way == "renamed":
                (tmp_path / "new").write_bytes(data)
                os.replace(tmp_path / "new", path)
            else:
                for size in (random.randrange(len(data)), len(data)) if way == "torn" else (len(data),):
                    path.write_bytes(data[:size])
                    replay.take(tail.events(0.0))
            replay.take(tail.events(0.05))
        until_equal(tail, replay, str(folder))
    keys = [address.partition("#")[2] for address in replay.runs]
    assert sorted(keys) == sorted(
        ["dover_epoch_1", "brest_epoch_1_attempt_1", "brest_epoch_1_attempt_2", "brest_epoch_1", "dover_epoch_2"]
    )
    assert replay.problems == {}
