"""The context of a long run: what fills it is computed when the run is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench import data
from tests.bench.table import Row, cpu_ms
from tests.context_build import ClaudeSession, tool_use
from tracetui.analysis import prices
from tracetui.analysis.context_feed import ledger_of
from tracetui.live.load import read_run
from tracetui.model import RunRef
from tracetui.sources.local import LocalSource

CALLS: Final = 8_000
_LINE: Final = "    42\t        total += price_of(item, tax=0.25)  # one more\n"


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about contexts; the number of calls is divided by `scale`."""
    calls = CALLS // scale
    folder = data.cached_folder(f"context-{calls}", lambda folder: _write(folder, calls))
    prices.load()
    run = read_run(LocalSource(), RunRef("claude-code", str(folder / "session.jsonl")))
    ledger_of(run)  # prices are looked up once
    opened = cpu_ms(lambda: ledger_of(run), rounds)
    yield Row(f"context of {calls} calls", opened, 2_000, "ms", "CPU time, with decoding")


def _write(folder: Path, calls: int) -> None:
    session, size, read = ClaudeSession(folder / "session.jsonl"), 20_000, 0
    session.prompt("go on")
    for number in range(calls):
        call = tool_use(f"t{number}", "Read", file_path=f"/w/{number % 200}.py")
        session.answer(f"m{number}", call, read=read, written=size - read, output=80)
        session.result(f"t{number}", _LINE * (5 + number % 55))
        read, size = size, size + 100 + 25 * (5 + number % 55)
        if size > 160_000:
            session.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": size})
            session.prompt("summary " * 1_000, isCompactSummary=True)
            size, read = 25_000, 15_000
    session.write()
