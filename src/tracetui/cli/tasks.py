"""``tracetui tasks``: pass rates and pass^k of tasks with several trials."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from tracetui.analysis.run_tree import run_tree
from tracetui.analysis.tasks import compared_directories, matrix
from tracetui.cli.ls import asked
from tracetui.cli.output import complain, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_paths, add_query, add_redact, named, roots
from tracetui.cli.reading import list_runs, require_runs, sources_at
from tracetui.export.tasks import sentences, task_table, tasks_value
from tracetui.export.triage import json_lines
from tracetui.live.load import FileCaches, read_run
from tracetui.model import Run, RunRef
from tracetui.redact import Redactor
from tracetui.sources.base import Source

HELP = "compare repeated runs of the same tasks: pass rates, pass^k, first fork"
EXAMPLES = """\
Runs of one task are its trials. The trace names the task; otherwise runs with the same name and first input are trials.
Forks, retries and replays are listed, but excluded from rates. pass^k is the chance that k trials all pass.
Agents, models and directories have separate pass rates, side by side.

examples:
  tracetui tasks traces/
  tracetui tasks traces/ -q model:gpt-4o
  tracetui tasks main/ candidate/     the same tasks, side by side
  tracetui tasks traces/ --json | jq '.pass_hat'
  tracetui ./tasks                    open a folder of that name
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``tasks``."""
    add_paths(parser)
    add_query(parser)
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/tasks/1, see docs/json.md")
    add_redact(parser)


def run(args: argparse.Namespace) -> int:
    """Print the tasks. Raises `NothingReadable` if there is no run, `UsageError` if the query is wrong."""
    hint_folder("tasks", named(args))
    places = roots(args)
    wanted = asked(args.query, args) if args.query else None
    with sources_at(places, args) as source:
        unfiltered = list_runs(source, places, args)
        require_runs(unfiltered, places)
        listing = unfiltered if wanted is None else wanted(unfiltered, source)
        tasks = matrix(listing.runs, among=unfiltered.runs, directories=compared_directories(places))
        if args.json:
            read = reader(source)
            trees = {task.key: run_tree(task.trials, read) for task in tasks.tasks if len(task.trials) > 1}
            write_bytes(json_lines(tasks_value(tasks, trees, listing.problems, Redactor() if args.redact else None)))
            return 0
    write_lines(task_table(tasks, terminal_width(), Redactor()))
    sys.stdout.flush()
    for sentence in sentences(tasks, len({problem.path for problem in listing.problems})):
        complain(sentence)
    return 0


def reader(source: Source) -> Callable[[RunRef], Run | None]:
    """Return a function that reads a run; it returns None for a run of which nothing can be read."""
    caches = FileCaches()

    def read(ref: RunRef) -> Run | None:
        run = read_run(source, ref, caches.for_run(ref))
        return run if run.spans or not run.problems else None

    return read


def hint_folder(command: str, paths: list[str]) -> None:
    """Say how to open a folder with the name of a command, if no path is given."""
    if not paths and os.path.isdir(command):
        complain(f"{command} is a command; `tracetui {os.path.join(os.curdir, command)}` opens the folder")
