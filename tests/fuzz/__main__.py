"""``python -m tests.fuzz ids|bytes``: read directories of mutated traces until the time is over.

ids    exchanges ids, references and names among and within the files
bytes  changes values, records and bytes of one file
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import tempfile
from pathlib import Path

from tests.fuzz import judge
from tests.fuzz.campaign import fuzz, make
from tests.fuzz.mutate import CHANGES
from tracetui.formats import registry


def main() -> int:
    """Print each finding when it is met; exit status 1 if there is one."""
    parser = argparse.ArgumentParser(
        prog="python3 dev.py fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", nargs="?", choices=[*CHANGES], default="ids")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time (default: 60)")
    parser.add_argument("--format", choices=[*registry.BUILT_IN], help="only cases of that format")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where directories that show a finding are kept")
    parser.add_argument("--number", type=int, help="only this directory of that seed; it is kept whole")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds * 20 + 600, exit=True)  # code that no signal interrupts
    os.environ.update(judge.ENVIRONMENT)
    keep = options.keep or Path(tempfile.gettempdir()) / "tracetui-fuzz"
    if options.number is not None:
        root = keep / f"{options.mode}-{options.seed}-{options.number}" / "traces"
        print(make(root, options.mode, options.seed, options.number, options.format), f"in {root}", sep="\n")
        found = list(judge.findings(root, commands=True))
        print(*found, sep="\n")
        return 1 if found else 0
    report = fuzz(
        options.mode,
        seed=options.seed,
        seconds=options.seconds,
        only=options.format,
        keep=keep,
        say=lambda words: print(words, flush=True),
    )
    print(f"{report.tried} directories, {len(report.findings)} findings")
    for one in report.findings.values():
        print(f"{one.count:5}  {one.words}")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
