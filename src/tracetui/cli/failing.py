"""``--fail-on error``: an exit status for CI, where a failed run is no trouble of ours."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from tracetui.model import RunSummary, Status

FAILED = 3
"""Exit status where a run failed and the user asked to be told."""


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """--fail-on."""
    parser.add_argument("--fail-on", choices=("error",), help="exit with status 3 if one of the printed runs failed")


def status_of(args: argparse.Namespace, runs: Iterable[RunSummary]) -> int:
    """The exit status after these runs were printed."""
    return FAILED if args.fail_on and any(run.status is Status.ERROR for run in runs) else 0
