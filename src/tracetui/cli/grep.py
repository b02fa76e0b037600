"""``tracetui grep``: full-text search in every run, as text or JSON."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tracetui.analysis.search import BEFORE, Hit, Needle, Options
from tracetui.cli.ls import asked
from tracetui.cli.output import complain, nothing, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_paths_and_runs, add_redact, roots
from tracetui.cli.reading import Aim, aim_of, listing_at, narrow, only, sources_at
from tracetui.errors import TracetuiError
from tracetui.export.json import encode, problem_value
from tracetui.live.search import Item, Outcome, grep, grep_runs
from tracetui.masking import clean, one_line
from tracetui.model import Problem, RunRef, quote_key
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.text import Clean, cells, exact, truncate, truncate_middle
from tracetui.views.glyphs import UNICODE
from tracetui.views.list.tables import hit_label

HELP = "search the inputs, outputs, messages and errors of every run"
EXAMPLES = """\
Prints one matching line per hit: ADDRESS  path: line. On a terminal, hits are grouped by run and cut to fit.
Exit status as grep: 0 match, 1 no match, 2 error.

examples:
  tracetui grep "timed out" traces/                 plain text, whatever its JSON escaping
  tracetui grep -e 'HTTP 5\\d\\d' -i traces/           a Python regular expression
  tracetui grep -l password traces/ runs.db         addresses of matching runs
  tracetui grep --json refund traces/ | jq -r .address | xargs -n1 tracetui show
"""
SCHEMA: Final = "tracetui/grep/1"
MATCH, NO_MATCH, FAILURE = 0, 1, 2
_BOLD: Final = ("\x1b[1m", "\x1b[22m")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``grep``."""
    parser.add_argument("pattern", metavar="PATTERN", help="text to search for")
    add_paths_and_runs(parser)
    parser.add_argument("-e", "--regex", action="store_true", help="PATTERN is a regular expression")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="ignore case")
    parser.add_argument("-m", "--max-count", metavar="N", type=int, help="at most N hits per run")
    parser.add_argument("--names", action="store_true", help="search field names too")
    parser.add_argument("--repeats", action="store_true", help="include hits in text repeated from earlier steps")
    parser.add_argument("-q", "--query", metavar="QUERY", help="search only runs that match QUERY, see docs/query.md")
    add_redact(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("-l", "--runs", action="store_true", help="print only the addresses of matching runs")
    group.add_argument("-c", "--count", action="store_true", help="print only the number of hits per run")
    group.add_argument("--json", action="store_true", help="JSON lines, one per hit: tracetui/grep/1, see docs/grep.md")


def run(args: argparse.Namespace) -> int:
    """Print hits as they are found. Returns 0 for a match, 1 for none, 2 after an error."""
    try:
        needle = Needle(args.pattern, regex=args.regex, ignore_case=args.ignore_case, blind=args.redact)
        with sources_at(roots(args), args) as source:
            if note := narrow(source, args.query, args):
                complain(note)
            if source.has_database:
                runs, spans = source.cost()
                complain(f"reading {runs:,} runs with {spans:,} spans from the database")
            search = _Search(args)
            search.run(source, needle)
    except TracetuiError as error:
        complain(error)
        return FAILURE
    return FAILURE if search.failed else MATCH if search.hits else NO_MATCH


class _Search:
    """One search: prints hits as they arrive and counts outcomes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.hits: Counter[RunRef] = Counter()
        self._outcomes: Counter[Outcome] = Counter()
        self._bold = _BOLD if _has_colors() else ("", "")
        self._redactor = Redactor()
        self._width = terminal_width()
        self._last: RunRef | None = None

    def run(self, source: Source, needle: Needle) -> None:
        """Search everything. Raises `NothingReadable` if there is no file at all."""
        args, aim = self._args, aim_of(source, self._args)
        redactor = self._redactor if args.redact or not args.json else None
        options = Options(args.names, args.repeats, lambda run: aim.wants(run.ref), redactor)
        for item in self._items(source, aim, needle, options):
            if isinstance(item, Hit):
                self._hit(item)
            elif isinstance(item, Problem):
                self._problem(item)
            elif item is not None:
                self._outcomes[item] += 1
        self._end(aim.places)

    def _items(self, source: Source, aim: Aim, needle: Needle, options: Options) -> Iterator[Item]:
        if self._args.query is None:
            return grep(source, aim.places, needle, options, only=only(self._args))
        wanted = asked(self._args.query, self._args)
        listing = wanted(listing_at(source, aim, self._args), source)
        for problem in listing.problems:
            self._problem(problem)
        return grep_runs(source, [run.ref for run in listing.runs], needle, options)

    @property
    def failed(self) -> bool:
        """Whether a file could not be searched."""
        return self._outcomes[Outcome.FAILED] > 0

    def _hit(self, hit: Hit) -> None:
        limit = self._args.max_count
        if limit is not None and self.hits[hit.ref] >= limit:
            return
        self.hits[hit.ref] += 1
        if self._args.json:
            write_bytes([encode(self._value(hit)), b"\n"])
        elif self._args.runs:
            if self.hits[hit.ref] == 1:
                write_lines([exact(hit.ref.address)])
        elif not self._args.count:
            write_lines(self._lines(hit))

    def _value(self, hit: Hit) -> dict[str, Any]:
        """A hit as JSON. If a field name is masked, the address points to its step."""
        value, path = hit_value(hit), self._redactor.header(hit.path)
        return value | {"path": path, "address": _step(hit)} if self._args.redact and path is not hit.path else value

    def _lines(self, hit: Hit) -> Iterator[Clean]:
        """One line per hit; on a terminal cut to fit, below the address of its run."""
        if self._width is None:
            text = clean(_before(hit)), clean(hit.match), clean(hit.after)
            path = clean(self._redactor.header(hit.path))
            yield Clean(f"{clean(_step(hit))}  {path}: {self._highlight(*text)}")
            return
        if hit.ref != self._last:
            yield from () if self._last is None else (Clean(""),)
            yield truncate_middle(exact(hit.ref.address), self._width)
            self._last = hit.ref
        place = self._place(hit, self._width // 2)
        yield Clean(f"{place}{self._highlight(*_around(hit, self._width - cells(place)))}")

    def _place(self, hit: Hit, room: int) -> Clean:
        """``    3 ran pytest  output.text: `` in at most `room` cells."""
        step = "" if hit.step is None else str(hit.step)
        name = "".join(piece.text for piece in hit_label(hit, room // 2, UNICODE))
        head = Clean(f"{step:>5} {name}  ")
        path = truncate_middle(one_line(self._redactor.header(hit.path), 200), room - cells(head) - 2)
        return truncate(Clean(f"{head}{path}: "), room)

    def _highlight(self, before: Clean, match: Clean, after: Clean) -> str:
        on, off = self._bold
        return f"{before}{on}{match}{off}{after}"

    def _problem(self, problem: Problem) -> None:
        if self._args.json:
            write_bytes([encode({"schema": SCHEMA, "event": "problem", **problem_value(problem)}), b"\n"])
        else:
            complain(": ".join(filter(None, (problem.path, problem.where, problem.reason))))

    def _end(self, places: list[str]) -> None:
        if not self._outcomes and self._args.query is None:
            raise nothing(places, [])
        if self._args.json:
            write_bytes([encode({"schema": SCHEMA, "event": "end", **self._totals()}), b"\n"])
            return
        if self._args.count:
            write_lines(self._counts())
        sys.stdout.flush()
        if foreign := self._outcomes[Outcome.FOREIGN]:
            complain(
                "skipped 1 file that isn't a trace" if foreign == 1 else f"skipped {foreign} files that aren't traces"
            )

    def _totals(self) -> dict[str, Any]:
        files = {outcome.value: self._outcomes[outcome] for outcome in Outcome}
        return {"hits": self.hits.total(), "runs": len(self.hits), "files": files}

    def _counts(self) -> Iterator[Clean]:
        for ref, count in self.hits.items():
            address, end = exact(ref.address), f": {count}"
            yield Clean((address if self._width is None else truncate_middle(address, self._width - len(end))) + end)


def _step(hit: Hit) -> str:
    return hit.ref.address if hit.span is None else f"{hit.ref.address}/{quote_key(hit.span)}"


def _before(hit: Hit) -> str:
    return ("…" if len(hit.before) == BEFORE else "") + hit.before.lstrip()


def _around(hit: Hit, room: int) -> tuple[Clean, Clean, Clean]:
    """Text before the match, the match, and text after it, cut to `room` cells with the match in view."""
    match = truncate(clean(hit.match), room)
    before = clean(_before(hit))
    space = max((room - cells(match)) // 2, room - cells(match) - cells(clean(hit.after)))
    if cells(before) > space:
        before = Clean(f"…{before[len(before) - max(space - 1, 0) :]}") if space > 1 else Clean("")
        while cells(before) > space:
            before = Clean(f"…{before[2:]}")
    return before, match, truncate(clean(hit.after), room - cells(before) - cells(match))


def hit_value(hit: Hit) -> dict[str, Any]:
    """A hit as ``--json`` prints it, exact."""
    return {
        "schema": SCHEMA,
        "event": "hit",
        "run": hit.ref.address,
        "span": hit.span,
        "step": hit.step,
        "name": hit.name or None,
        "kind": hit.kind,
        "path": hit.path,
        "address": hit.address,
        "line": hit.line,
        "before": hit.before,
        "match": hit.match,
        "after": hit.after,
    }


def _has_colors() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
