"""``python -m tests.fuzz MODE``: read mutated traces, or other mutated input, until the time is over.

ids    exchanges ids, references and names among and within the files
bytes  changes values, records and bytes of one file
suite  runs the random searches among the tests with all seeds and ten times the examples, however long that takes
cases  breaks and grows the files of the conformance suite, each case in as many ways as there are seeds

settings, verdicts  change these files of the user
mcp, serve          send changed messages to the servers
answers             changes what databases and object stores answer
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import tempfile
import time
from itertools import count, takewhile
from pathlib import Path

import pytest

from tests.fuzz import judge, surfaces
from tests.fuzz.campaign import fuzz, make
from tests.fuzz.mutate import CHANGES, cases_of
from tracetui import testing
from tracetui.formats import registry


def fuzz_cases(seed: int, seconds: float, only: str | None) -> int:
    """Check every case of the conformance suite with one seed after the other; exit status 1 if a check fails."""
    tried = failures = 0
    end = time.process_time() + seconds
    names = [only] if only else [*registry.BUILT_IN]
    checks = (testing.check_hostile, testing.check_growth)
    every = ((number, name, case) for number in count(seed) for name in names for case in cases_of(name))
    for number, name, case in takewhile(lambda _: time.process_time() < end, every):
        for check in checks:
            tried += 1
            try:
                check(registry.load(name), case, seed=number)
            except AssertionError as error:
                failures += 1
                print(f"{check.__name__}, {name} {case.name}, seed {number}: {error}", flush=True)
    print(f"{tried} checks, {failures} findings")
    return 1 if failures else 0


def main() -> int:
    """Print each finding when it is met; exit status 1 if there is one."""
    parser = argparse.ArgumentParser(
        prog="python3 dev.py fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", nargs="?", choices=[*CHANGES, "cases", "suite", *surfaces.SURFACES], default="ids")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time (default: 60)")
    parser.add_argument("--format", choices=[*registry.BUILT_IN], help="only cases of that format")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where directories that show a finding are kept")
    parser.add_argument("--number", type=int, help="only this directory of that seed; it is kept whole")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds * 20 + 600, exit=True)  # code that no signal interrupts
    os.environ.update(judge.ENVIRONMENT)
    if options.mode == "suite":
        os.environ["TRACETUI_FUZZ"] = "1"
        return pytest.main(["-m", "search or hypothesis"])
    if options.mode == "cases":
        return fuzz_cases(options.seed, options.seconds, options.format)
    if options.mode in surfaces.SURFACES:
        findings = surfaces.fuzz(options.mode, seed=options.seed, seconds=options.seconds, number=options.number)
        return 1 if findings else 0
    keep = options.keep or Path(tempfile.gettempdir()) / "tracetui-fuzz"
    if options.number is not None:
        root = keep / f"{options.mode}-{options.seed}-{options.number}" / "traces"
        print(make(root, options.mode, options.seed, options.number, options.format), f"in {root}", sep="\n")
        findings = list(judge.findings(root, commands=True))
        print(*findings, sep="\n")
        return 1 if findings else 0
    report = fuzz(
        options.mode,
        seed=options.seed,
        seconds=options.seconds,
        only=options.format,
        keep=keep,
        say=lambda text: print(text, flush=True),
    )
    print(f"{report.tried} directories, {len(report.findings)} findings")
    for finding in report.findings.values():
        print(f"{finding.count:5}  {finding.text}")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
