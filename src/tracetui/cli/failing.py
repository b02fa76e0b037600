"""``--fail-on`` and ``--verdicts``: exit statuses for CI."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracetui.cli.output import complain
from tracetui.errors import PluginError, UsageError
from tracetui.model import Problem, RunSummary, Status
from tracetui.text import quantity

if TYPE_CHECKING:
    from tracetui.analysis.triage import CauseVerdicts

UNREADABLE: Final = 1
"""Exit status if no run failed, but a file or format could not be read."""
FAILED: Final = 3
"""Exit status if a run meets a condition of ``--fail-on``."""
CONDITIONS: Final[Mapping[str, Callable[[RunSummary], bool]]] = {
    "error": lambda run: run.status is Status.ERROR,
    "failed": lambda run: run.failed,
    "ungraded": lambda run: run.is_ungraded,
}
NEW: Final = "new"
"""Condition: a cause has no verdict."""
MOST_NAMED: Final = 20
"""Maximum of unreadable files named on standard error."""


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """Add ``--fail-on``."""
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        choices=(*CONDITIONS, NEW),
        help="exit with status 3 if one of the printed runs ended in an error, failed (an error or a wrong answer), was"
        " not graded (ungraded), or (ls, triage) has a cause without a verdict, else 1 if a file or format could not be"
        " read; may be repeated",
    )


def add_verdicts(parser: argparse.ArgumentParser) -> None:
    """Add ``--verdicts``."""
    meaning = "read verdicts from this file instead of your own; it is never written to"
    parser.add_argument("--verdicts", metavar="FILE", type=Path, help=meaning)


def verdicts_of(args: argparse.Namespace) -> CauseVerdicts:
    """Return the verdicts of ``--verdicts``, else the user's own; name unreadable lines on standard error.

    Raises `UsageError` if the file of ``--verdicts`` doesn't exist, and for ``--fail-on new`` without any file.
    """
    from tracetui.analysis.triage import CauseVerdicts
    from tracetui.store.sidecar import Sidecar

    sidecar = Sidecar(file=args.verdicts)
    exists = Path(sidecar.path).exists()
    if args.verdicts is not None and not exists:
        raise UsageError(f"no verdict file {args.verdicts}")
    if NEW in args.fail_on and not exists:
        raise UsageError(f"--fail-on new needs a verdict file: {sidecar.path} doesn't exist; use --verdicts FILE")
    for problem in sidecar.problems:
        complain(f"{problem.path}: {problem.where}: {problem.reason}")
    return CauseVerdicts(sidecar)


def status_of(
    args: argparse.Namespace,
    runs: Iterable[RunSummary],
    problems: Sequence[Problem] = (),
    read: Container[str] = (),
    *,
    new: bool | None = None,
) -> int:
    """Return the exit status for printed runs and problems of files; name these on standard error.

    `read`: as in `complain_of`. `new` says whether a cause is new.
    Raises `UsageError` for ``--fail-on new`` if that is None: causes are unknown.
    """
    if not args.fail_on:
        return 0
    if NEW in args.fail_on and new is None:
        raise UsageError("--fail-on new needs causes; use it with tracetui ls or triage")
    conditions = [CONDITIONS[word] for word in args.fail_on if word != NEW]
    failed = any(meets(run) for run in runs for meets in conditions)
    unreadable = complain_of(problems, args.format, read)
    return FAILED if failed or (NEW in args.fail_on and new) else UNREADABLE if unreadable else 0


def complain_of(problems: Sequence[Problem], only: str | None = None, read: Container[str] = ()) -> bool:
    """Name unreadable files and formats, and problems in files, on standard error; return whether there are any.

    `only` is the format of ``--format``, if given; files in `read` have runs that were read.
    """
    sentences = list(
        dict.fromkeys(
            [
                *(_sentence(problem, problem.path in read) for problem in _masked(problems)),
                *(f"cannot read {error}" for error in _formats(only)),
            ]
        )
    )
    for line in sentences[:MOST_NAMED]:
        complain(line)
    if len(sentences) > MOST_NAMED:
        complain(f"{quantity(len(sentences) - MOST_NAMED, 'more problem')}; see `tracetui doctor`")
    return bool(sentences)


def _sentence(problem: Problem, is_read: bool) -> str:
    if not is_read:
        return f"cannot read {problem.path}: {problem.reason}"
    return f"problem in {problem.path}: {f'{problem.where}: ' if problem.where else ''}{problem.reason}"


def _masked(problems: Sequence[Problem]) -> Iterator[Problem]:
    from tracetui.model.masked import masked_problem
    from tracetui.redact import Redactor

    redactor = Redactor()
    return (masked_problem(problem, redactor) for problem in problems)


def _formats(only: str | None) -> Iterator[str]:
    """Yield the errors of formats that can't be loaded, unless one format was forced."""
    from tracetui.formats import registry

    for name in registry.names() if only is None else ():
        try:
            registry.load(name)
        except PluginError as error:
            yield str(error)
