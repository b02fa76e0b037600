"""``python -m tests.bench``: measure what is promised about speed. docs/performance.md says how, and what came out."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys

from tests.bench import data, diff, formats, grep, home, listing, live, screen, secrets, triage, triage_screen
from tests.bench.table import Row, say

PARTS = {
    "listing": listing.rows,
    "formats": formats.rows,
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
    "secrets": secrets.rows,
    "query": triage.rows,
    "triage": triage_screen.rows,
}


def main() -> int:
    """Print the table; exit status 1 if a promise was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {' '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, fewer rounds")
    parser.add_argument("--rounds", type=int, help="rounds of everything of which medians are taken")
    parser.add_argument("--clean", action="store_true", help=f"remove {data.CACHE} at the end")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {sorted(unknown)[0]!r}; there are {' '.join(PARTS)}")
    scale, rounds = (10, options.rounds or 3) if options.quick else (1, options.rounds or 5)
    cores = os.cpu_count()
    say(
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {cores} cores, load {_load()}"
    )
    rows: list[Row] = []
    for name in options.parts or PARTS:
        for row in PARTS[name](scale, rounds):
            rows.append(row)
            say(row)
    missed = sum(not row.met for row in rows)
    say(f"\n{len(rows) - missed} met, {missed} missed; load {_load()} at the end")
    if options.clean:
        shutil.rmtree(data.CACHE, ignore_errors=True)
    return 1 if missed else 0


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main())
