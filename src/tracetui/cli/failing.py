"""``--fail-on error``: an exit status for CI, where a failed run is no trouble of ours."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tracetui.cli.output import complain
from tracetui.errors import PluginError, UsageError
from tracetui.model import Problem, RunSummary, Status

UNREADABLE: Final = 1
"""Exit status where no run failed, but something could not be read that may hold one."""
FAILED: Final = 3
"""Exit status where a run failed and the user asked to be told."""
NEW: Final = "new"
"""Condition: a cause has no verdict."""
MOST_NAMED: Final = 20
"""Unreadable files that are named on standard error."""


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """--fail-on."""
    words = "exit with status 3 if one of the printed runs failed, else 1 if a file or format could not be read"
    parser.add_argument("--fail-on", action="append", default=[], choices=("error", NEW), help=words)


def status_of(
    args: argparse.Namespace, runs: Iterable[RunSummary], problems: Sequence[Problem] = (), *, new: bool | None = None
) -> int:
    """The exit status after these runs were printed; `problems` are those of files, `new` says whether a cause is new.

    Says what could not be read. Raises `UsageError` for ``--fail-on new`` where causes are not known (None).
    """
    if not args.fail_on:
        return 0
    if NEW in args.fail_on and new is None:
        raise UsageError("--fail-on new needs causes; use it with tracetui triage")
    failed = "error" in args.fail_on and any(run.status is Status.ERROR for run in runs)
    unreadable = complain_of(problems, args.format)
    return FAILED if failed or (NEW in args.fail_on and new) else UNREADABLE if unreadable else 0


def complain_of(problems: Sequence[Problem], only: str | None = None) -> bool:
    """Name the files and formats that could not be read on standard error; whether there are any.

    `only` is the format that was to be read, if it was but one.
    """
    words = list(dict.fromkeys([*(f"{one.path}: {one.reason}" for one in _masked(problems)), *_formats(only)]))
    for line in words[:MOST_NAMED]:
        complain(f"cannot read {line}")
    if len(words) > MOST_NAMED:
        complain(f"cannot read {len(words) - MOST_NAMED} more; `tracetui doctor` lists them")
    return bool(words)


def _masked(problems: Sequence[Problem]) -> Iterator[Problem]:
    from tracetui.model.masked import masked_problem
    from tracetui.redact import Redactor

    redactor = Redactor()
    return (masked_problem(one, redactor) for one in problems)


def _formats(only: str | None) -> Iterator[str]:
    """What is wrong with formats that cannot be loaded, where any format was to be read."""
    from tracetui.formats import registry

    for name in registry.names() if only is None else ():
        try:
            registry.load(name)
        except PluginError as error:
            yield str(error)
