"""``python -m tests.bench``: measure what is promised about speed. docs/performance.md says how, and what came out."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.bench import (
    cache,
    context,
    data,
    diff,
    formats,
    grep,
    growth,
    home,
    listing,
    live,
    memory,
    screen,
    secrets,
    stores,
    tasks,
    triage,
)
from tests.bench.table import Row, say
from tests.shared import ROOT

PARTS = {
    "listing": listing.rows,
    "cache": cache.rows,
    "formats": formats.rows,
    "memory": memory.rows,
    "home": home.rows,
    "start": screen.first_paint,
    "view": screen.line_view,
    "list": screen.run_list,
    "large": screen.large_runs,
    "values": screen.large_values,
    "loading": screen.loading,
    "diff": diff.rows,
    "grep": grep.rows,
    "live": live.rows,
    "growth": growth.rows,
    "context": context.rows,
    "secrets": secrets.rows,
    "triage": triage.rows,
    "tasks": tasks.rows,
    "stores": stores.rows,
}
SAVED: Final = ROOT / "docs" / "performance.json"
_ROW: Final = re.compile(
    r"^(?:met   |MISSED|BROKEN)  (.{58,}?) +([\d. ]+ \S*|nan \S*)  of .{10,}?(?:   (-?[\d.]+ ms)?.*)?$", re.MULTILINE
)


def main() -> int:
    """Print the table; exit status 1 if a promise was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {' '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, fewer rounds")
    parser.add_argument("--rounds", type=int, help="rounds of everything of which medians are taken")
    parser.add_argument("--clean", action="store_true", help=f"remove {data.CACHE} at the end")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED.name}, of which docs/performance.md is made")
    parser.add_argument("--compare", metavar="COMMIT", help="measure that commit and this one in turn")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {sorted(unknown)[0]!r}; there are {' '.join(PARTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was made is removed then too
    if options.compare:
        arguments = [*["--quick"] * options.quick, *(["--rounds", str(options.rounds)] if options.rounds else [])]
        return compare(options.compare, arguments, options.parts or [*PARTS])
    scale, rounds = (10, options.rounds or 3) if options.quick else (1, options.rounds or 5)
    cores = os.cpu_count()
    say(
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {cores} cores, load {_load()}"
    )
    rows: list[Row] = []
    began = datetime.now(UTC), _load()
    for name in options.parts or PARTS:
        try:
            for row in PARTS[name](scale, rounds):
                rows.append(row)
                say(row)
        except AssertionError as error:  # the other parts can be measured
            rows.append(Row(f"the rest of {name}", math.nan, 0.0, "×", str(error).partition("\n")[0]))
            say(rows[-1])
    broken = sum(not row.possible for row in rows)
    missed = sum(not row.met for row in rows) - broken
    say(f"\n{len(rows) - missed - broken} met, {missed} missed, {broken} broken; load {_load()} at the end")
    if options.save:
        SAVED.write_text(
            json.dumps(
                {
                    "date": f"{began[0]:%Y-%m-%d}",
                    "commit": _git("rev-parse", "--short", "HEAD"),
                    "machine": f"Python {platform.python_version()}, {platform.system()}, {cores} cores",
                    "load": [began[1], _load()],
                    "options": f"{scale=}, {rounds=}",
                    "rows": [row._asdict() | {"met": row.met} for row in rows if row.possible],
                },
                indent=1,
                ensure_ascii=False,
            )
            + "\n",
            "utf-8",
        )
    if options.clean:
        shutil.rmtree(data.CACHE, ignore_errors=True)
    return 1 if missed or broken else 0


def compare(commit: str, arguments: list[str], parts: list[str]) -> int:
    """Measure another commit and this one in turn, part by part, each with its own benchmark; print both."""
    with tempfile.TemporaryDirectory(prefix="tracetui-bench-") as name:
        other = Path(name) / "other"
        _git("worktree", "add", "--detach", str(other), commit)
        try:
            for part in parts:
                there, here = (_measured(tree, [part, *arguments]) for tree in (other, ROOT))
                for what in [*there, *(name for name in here if name not in there)]:
                    say(f"{what:<58} {there.get(what, '–'):>20} {here.get(what, '–'):>20}")
        finally:
            _git("worktree", "remove", "--force", str(other))
    return 0


def _measured(tree: Path, arguments: list[str]) -> dict[str, str]:
    """What the benchmark of a tree prints, by row: the value with its unit, and the milliseconds of the remark."""
    paths = os.pathsep.join((str(tree / "src"), str(tree)))
    command = [sys.executable, "-m", "tests.bench", *arguments]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True, check=False
    )
    return {match[1].strip(): f"{match[2].strip()} {match[3] or ''}".strip() for match in _ROW.finditer(done.stdout)}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main())
