"""Memory of an open session of 300,000 spans, in a process of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench import data, formats, process
from tests.bench.table import Row
from tracetui.live.load import read_run
from tracetui.sources.local import LocalSource

SPANS: Final = 300_000
LIMIT: Final = 200
WHY: Final = "beside its spans, an open session keeps the ids and parents of its records for what is appended"


SPANS_PER_CALL: Final = {"codex": 2, "claude-code": 2.125, "pi": 2.125, "copilot": 3, "ccpa": 2}


def _session(name: str, calls: int) -> Path:
    """A session of so many calls with short texts."""
    if name == "ccpa":
        return data.session_file(f"ccpa-{calls}-{formats.SHORT}", calls=calls, payload=formats.SHORT)
    return formats.log(name, calls, formats.SHORT)


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The memory of a session with small records; spans and megabytes are divided by `scale`."""
    for name, spans in SPANS_PER_CALL.items():
        folder, small = (_session(name, calls) for calls in (round(SPANS / scale / spans), 50))
        count, settled, peak = process.in_own_process(added_memory, folder, small).result
        detail = f"{settled * (1 << 20) / count:.0f} bytes per span; {peak:.0f} MB at the peak"
        yield Row(f"memory of {count} spans, {name}", settled, LIMIT / scale, "MB", detail, why=WHY)


def added_memory(folder: str, small: str) -> tuple[int, float, float]:
    """Spans of the session in `folder`, and the memory (MB) that it adds to that of a small one: then, and at most."""
    for path in (small, small, folder):  # everything is imported before the last
        (ref,) = formats.runs(Path(path))
        gc.collect()
        before = process.memory()
        run = read_run(LocalSource(), ref)
    gc.collect()
    return len(run.spans), process.memory() - before, process.memory(peak=True) - before
