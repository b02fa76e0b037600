"""A trial of Harbor is one run while its files appear: in ``tail`` and in the app's list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson

from tests.formats.test_harbor import SESSION, TRAJECTORY, recorded
from tests.live.replay import Replay, by_id, until_equal
from tests.live.test_lister import listing
from tests.live.test_parts import collect_until_equal
from tests.shared import ROOT
from tracetui.live.tail import Tail
from tracetui.sources.local import LocalSource

CASE = ROOT / "tests" / "formats" / "harbor" / "checks" / "input"


def written(folder: Path) -> Iterator[str]:
    """Write the files of a trial as Harbor does, one after the other; yields what is listed then."""
    agent = folder / "prune__1" / "agent"
    for path, data in (
        (agent / "claude-code.txt", SESSION % b"s-1"),
        (agent / "sessions" / "s-1.jsonl", SESSION % b"s-1"),
        (agent / "trajectory.json", orjson.dumps(TRAJECTORY)),
        (folder / "prune__1" / "verifier" / "ctrf.json", (CASE / "verifier" / "ctrf.json").read_bytes()),
        (folder / "prune__1" / "result.json", orjson.dumps(recorded())),
        (folder / "prune__1" / "result.json", orjson.dumps(recorded("exception"))),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("written.tmp").write_bytes(data)
        path.with_name("written.tmp").rename(path)
        yield str(path)


def test_tail_replaces_the_logs_by_the_run_of_the_trial_and_follows_its_result(tmp_path: Path) -> None:
    replay = Replay()
    with closing(Tail(LocalSource(), [str(tmp_path)])) as tail:
        for _ in written(tmp_path):
            until_equal(tail, replay, str(tmp_path), by_id)
        result, log = tmp_path / "prune__1" / "result.json", str(tmp_path / "prune__1" / "agent" / "trajectory.json")
        last = [event for event in replay.seen if event["event"] == "end"][-1]
        assert (last["status"], last["outcome"], last["scores"]) == ("error", "passed", replay.runs[log]["scores"])

        assert [*replay.runs] == [log]

        result.unlink()  # what is left of it is the logs of an agent
        until_equal(tail, replay, str(tmp_path), by_id)
    assert (replay.runs[log]["outcome"], replay.runs[log]["scores"]) == (None, [])


def test_the_list_replaces_the_logs_by_the_run_of_the_trial(tmp_path: Path) -> None:
    with listing(tmp_path, LocalSource()) as (_, mailbox):
        known: dict[str, set[str]] = {}
        collect_until_equal(mailbox, known, tmp_path, watching=True)
        for _ in written(tmp_path):
            collect_until_equal(mailbox, known, tmp_path)
        log = str(tmp_path / "prune__1" / "agent" / "trajectory.json")
        assert [path for path, runs in known.items() if runs] == [log]
        (tmp_path / "prune__1" / "result.json").unlink()
        collect_until_equal(mailbox, known, tmp_path)
    assert known[log]
