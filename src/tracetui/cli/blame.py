"""``tracetui blame``: which session wrote a line or made a commit."""

from __future__ import annotations

import argparse
import os
import re
import sys

import tracetui
from tracetui.analysis.blame import Step
from tracetui.analysis.navigation import is_prompt
from tracetui.cli.output import ProgressLine, complain, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_place, chosen_directory, default_directory, exists, no_path_error, other_directories
from tracetui.cli.reading import aim_of, cache_limit, listing_at, require_runs, sources_at
from tracetui.errors import UsageError
from tracetui.export.blame import (
    BlameReport,
    Reason,
    agent_trace,
    blame_rows,
    blame_value,
    commit_lines,
    summary,
    why_lines,
)
from tracetui.export.json import encode
from tracetui.live.blame import Target, answers, build_index
from tracetui.live.load import FileCaches, read_run
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.sources.checkout import repository_of
from tracetui.sources.git import Git
from tracetui.views.labels import short_names

HELP = "name the session that wrote a line or made a commit"
EXAMPLES = """\
The evidence is, in this order: the commit in the log of a session, the lines that it wrote, the file and the time. Two
sessions with the same evidence are both named; without evidence the answer is none. git runs read-only, and only in the
repository that you name: --repo DIR, else that of FILE, else that of the current folder.

examples:
  tracetui blame src/till/receipt.py
  tracetui blame src/till/receipt.py:40 --why       prompt, step and evidence of a line
  tracetui blame src/till/receipt.py:38-46
  tracetui blame 5d0e771 --traces ~/.claude/projects
  tracetui blame src/till/receipt.py --json | jq -r '.lines[] | [.line, .run, .rung] | @tsv'
  tracetui blame src/till/receipt.py --agent-trace > trace.json
"""
_RANGE = re.compile(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``blame``."""
    parser.add_argument(
        "target", metavar="FILE[:LINE]|COMMIT", help="a file, a line or lines (:38-46) of it, or a commit"
    )
    parser.add_argument("--why", action="store_true", help="show the prompt, the step and the evidence of each line")
    parser.add_argument(
        "--repo", metavar="DIR", help="the repository (default: that of FILE, else of the current folder)"
    )
    parser.add_argument(
        "--traces",
        metavar="PATH",
        nargs="+",
        action="extend",
        default=[],
        help="where the sessions are (default: what `tracetui` opens)",
    )
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/blame/1, see docs/effects.md")
    parser.add_argument("--agent-trace", action="store_true", help="JSON output: an Agent Trace record (RFC 0.1.0)")
    add_place(parser)


def run(args: argparse.Namespace) -> int:
    """Print who wrote the lines. Raises `NothingReadable` if there is no run, `UsageError` for a wrong target."""
    target = target_of(args.target, args.repo)
    args.paths = [*args.traces] or ([] if args.trace_dir else _default_traces())
    with sources_at(args.paths, args) as source:
        aim = aim_of(source, args)
        listing = listing_at(source, aim, args, deep=False)
        require_runs(listing, aim.places)
        problems = [*listing.problems]
        with ProgressLine(len(listing.runs)) as progress:
            index = build_index(source, listing.runs, aim.places, cache_limit(args), problems, progress.advance)
        answer, lines = answers(index, target)
        steps = {line.answer.step for line in lines if line.answer.step is not None} if args.why else set()
        reasons = reasons_of(source, steps)
    runs = {run.ref: run for run in listing.runs}
    report = BlameReport(lines, target.commit, answer, runs, short_names(listing.runs), reasons, args.why, problems)
    redactor = Redactor()
    if args.json:
        write_bytes([encode(blame_value(report, redactor)), b"\n"])
        return 0
    if args.agent_trace:
        head = target.commit or target.git.commit("HEAD")
        revision = None if head is None else head.hash
        write_bytes([encode(agent_trace(report, tracetui.__version__, revision)), b"\n"])
        return 0
    if args.why:
        for line in lines:
            write_lines(why_lines(report, line, redactor))
    elif target.commit is not None:
        write_lines(commit_lines(report, redactor))
    else:
        write_lines(blame_rows(report, terminal_width(), redactor))
    sys.stdout.flush()
    complain(summary(report, index.sessions, index.oldest))
    return 0


def _default_traces() -> list[str]:
    """What a bare ``tracetui`` opens. Raises `UsageError` if there is nothing."""
    default = default_directory()
    if chosen_directory() is not None or exists(default):
        return [default]
    others = other_directories()
    if not others:
        raise no_path_error(others)
    return [home.path for home in others]


# ---- the target


def target_of(text: str, repo: str | None) -> Target:
    """Find the file, the lines of it, or the commit that `text` names. Raises `UsageError` if there is none."""
    if repo is not None and not os.path.isdir(repo):
        raise UsageError(f"--repo {repo}: no such directory")
    match = _RANGE.fullmatch(text)
    spans = [(text, 1, sys.maxsize)]
    if match is not None:
        first = int(match[2])
        spans.append((match[1], first, int(match[3] or first)))
    for name, first, last in spans:
        if (place := _file_in(name, repo)) is not None:
            return Target(Git(place[0]), place[1], first, last)
    root = repository_of(repo or os.curdir)
    if root is None:
        raise UsageError(f"{text}: no such file, and {repo or 'the current folder'} isn't in a git repository")
    git = Git(root)
    if (commit := git.commit(text)) is not None:
        return Target(git, None, commit=commit)
    for name, first, last in spans:  # a file that was deleted since HEAD
        if not os.path.isabs(name) and git.blame(name, moves=False):
            return Target(git, name, first, last)
    raise UsageError(f"{text}: no such file or commit in {root}")


def _file_in(name: str, repo: str | None) -> tuple[str, str] | None:
    """(The root of the repository, the path in it) of a file that exists."""
    candidates = [name] if repo is None else [os.path.join(repo, name), name]
    for path in candidates:
        if not os.path.lexists(path) or os.path.isdir(path):
            continue
        folder = os.path.realpath(os.path.dirname(path) or os.curdir)
        real = os.path.join(folder, os.path.basename(path))
        root = repository_of(repo if repo is not None else folder) or (repo and os.path.realpath(repo))
        if root is None:
            raise UsageError(f"{name} isn't in a git repository; name one with --repo DIR")
        if real.startswith(root.rstrip(os.sep) + os.sep):
            return root, os.path.relpath(real, root).replace(os.sep, "/")
    return None


# ---- reasons


def reasons_of(source: Source, steps: set[Step]) -> dict[Step, Reason]:
    """Read the prompts before steps, and what the steps did."""
    caches, reasons = FileCaches(), dict[Step, Reason]()
    for ref in sorted({step.run for step in steps}):
        run = read_run(source, ref, caches.for_run(ref))
        prompt: str | None = None
        by_span: dict[str, Reason] = {}
        for span in run.spans:
            if is_prompt(span) and span.owner is None:
                prompt = span.preview
            by_span[span.id] = Reason(prompt, f"{span.name} {span.preview}")
        reasons |= {step: by_span[step.span] for step in steps if step.run == ref and step.span in by_span}
    return reasons
