"""What lies among traces in a real directory: a file cut short, and files that are no traces."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tracetui.demo.files import pretty, put, uid, zulu

NOTES = """\
Nightly runs write here. Ask on #agents before deleting anything: the replays need their originals.
"""


def write(folder: Path, now: datetime) -> None:
    """One unreadable file (the disk was full) and two that are no traces."""
    cut = now - timedelta(minutes=25)
    ident = uid("cut", "77aa31")
    record = {
        "schema_version": "1.0",
        "record_id": ident,
        "parent_record_id": None,
        "replay_of": None,
        "agent": {"name": "researcher", "version": "2.3.0"},
        "execution": {"started_at": zulu(cut), "ended_at": zulu(cut), "duration_ms": 4810.2, "status": "success"},
        "input": {"args": [], "kwargs": {"question": "Which EU states tax company cars by emissions?"}},
    }
    put(folder / "paprika" / f"{ident}.json", pretty(record)[:-96], cut)
    put(folder / "NOTES.txt", NOTES.encode(), now - timedelta(days=12))
    put(folder / "nightly.json", pretty({"cron": "0 2 * * *", "agents": ["researcher", "fixer"]}), now)
