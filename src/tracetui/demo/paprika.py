"""Paprika: ExecutionRecords (v1) and event files (v0), as the runtime writes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tracetui.demo.files import pretty, put
from tracetui.demo.paprika_runtime import Execution, event_file, record, replay
from tracetui.demo.paprika_stories import diverging_input, last_night, today


def write(folder: Path, now: datetime) -> None:
    """Some twenty runs: what went well, what timed out, what a policy stopped, and replays of them."""
    runs = [*today(now), *last_night(now)]
    named = {run.name: run for run in runs}
    runs += _replays(named, now)
    for run in runs:
        legacy = run.legacy
        place = folder / "paprika" / ("v0" if legacy else "") / f"{run.ident}.json"
        put(place, pretty(event_file(run) if legacy else record(run)), run.ended)


def _replays(named: dict[str, Execution], now: datetime) -> list[Execution]:
    """Replays end as soon as they begin: every answer comes from the recording."""
    exact = replay(named["heat pumps"], "a91f03", now - timedelta(hours=2, minutes=10))
    legacy = replay(named["old triage"], "c3d9e1", now - timedelta(hours=8))
    drifted = replay(named["batteries"], "e4417b", now - timedelta(minutes=14), mismatch_at=4, changed=diverging_input)
    return [exact, legacy, drifted]
