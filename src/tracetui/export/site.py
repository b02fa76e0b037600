"""A static site of the runs of a place: an index, a page per run, triage, tasks, and diffs of replays.

Links are relative, so that the site works from any place, such as the artifacts of a CI job. Its size is limited:
failed runs come first, and the index counts the runs left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from tracetui.analysis import spending
from tracetui.analysis.tasks import Matrix
from tracetui.errors import TracetuiError
from tracetui.export.document import (
    Links,
    export_diff,
    export_run,
    export_tasks,
    export_triage,
    file_name,
    new_redactor,
    page_of,
)
from tracetui.export.page import Block, Cell, Facts, Heading, Link, Pages, Prose, Styled, Table
from tracetui.export.triage import Shared, Triage
from tracetui.masking import one_line
from tracetui.model import Run, RunRef, RunSummary
from tracetui.model.masked import masked_summary
from tracetui.redact import Redactor
from tracetui.store.relations import Pair, pairs_of
from tracetui.text import Clean, duration, exact, grouped, quantity, size, tokens
from tracetui.views.labels import cost_text, ending_texts, run_label, run_sign, score_cell, start_label
from tracetui.views.timeline.chart import tokens_of

MAX_PAGES: Final = 500
MAX_DIFFS: Final = 100
MAX_LISTED: Final = 5_000
"""Rows of the index."""
MAX_BYTES: Final = 100_000_000
"""Size of a site; further pages only say that they were left out."""
FOLDERS: Final = ("runs", "diffs")
_HEADING: Final = ("run", "status", "score", "result", "time", "steps", "tokens", "cost", "started", "cause")
_NUMBERS: Final = frozenset({4, 5, 6, 7})


class Page(NamedTuple):
    """A file of the site."""

    path: str
    """Relative to the site."""
    pieces: Iterator[bytes]


class Content(NamedTuple):
    """The contents of a site."""

    place: str
    runs: Sequence[RunSummary]
    """Newest first."""
    triage: Triage
    shared: Shared
    matrix: Matrix
    redactor: Redactor | None
    """Masked the triage; None: nothing is masked."""


class Site:
    """The pages of a site; `read` reads a run."""

    def __init__(self, content: Content, read: Callable[[RunRef], Run]) -> None:
        self._content, self._read = content, read
        self._written = 0
        self._left_out = 0
        planned = sorted(content.runs, key=lambda run: not run.failed)[:MAX_PAGES]
        self._runs = _names(planned)
        pairs = [pair for pair in pairs_of(content.runs) if pair.original and self._has_pages(pair)]
        self._pairs = pairs[:MAX_DIFFS]
        self._omitted_diffs = len(pairs) - len(self._pairs)
        self._causes = {ref: entry.group.id for entry in content.triage.entries for ref in entry.group.runs}

    def pages(self) -> Iterator[Page]:
        """Every page; consume the pieces of one before the next. The index comes last."""
        content = self._content
        for run in content.runs:
            if run.ref in self._runs:
                yield self._page(f"runs/{self._runs[run.ref]}", run, partial(self._run, run))
        for pair in self._pairs:
            yield self._page(f"diffs/{self._runs[pair.replay.ref]}", pair.replay, partial(self._diff, pair))
        pages = {ref: f"runs/{name}" for ref, name in self._runs.items()}
        place, masks = content.place, content.redactor
        triage = export_triage(content.triage, content.shared, place, "html", masks, next_command="", pages=pages)
        yield self._counted("triage.html", triage)
        if content.matrix.tasks:
            tasks = export_tasks(content.matrix, place, "html", self._redactor(), pages=pages)
            yield self._counted("tasks.html", tasks)
        redactor = self._redactor()
        blocks = self._index(pages, redactor)
        yield self._counted("index.html", page_of(blocks, "html", redactor, f"Traces of {content.place}"))

    def _redactor(self, *, compared: bool = False) -> Redactor | None:
        return new_redactor(compared=compared) if self._content.redactor is not None else None

    def _has_pages(self, pair: Pair) -> bool:
        return pair.replay.ref in self._runs and pair.original is not None and pair.original.ref in self._runs

    def _page(self, path: str, run: RunSummary, make: Callable[[], Iterator[bytes]]) -> Page:
        """A page of a run; a short one if the site is full or the run can't be read."""
        if self._written >= MAX_BYTES:
            self._left_out += 1
            reason = f"Left out: the site has reached its limit of {size(MAX_BYTES)}."
        else:
            try:
                return self._counted(path, make())
            except (TracetuiError, OSError) as error:
                reason = str(error)
        return self._counted(path, self._stub(run, reason))

    def _counted(self, path: str, pieces: Iterator[bytes]) -> Page:
        def counted() -> Iterator[bytes]:
            for piece in pieces:
                self._written += len(piece)
                yield piece

        return Page(path, counted())

    def _stub(self, run: RunSummary, reason: str) -> Iterator[bytes]:
        redactor = self._redactor()
        masked_run = run if redactor is None else masked_summary(run, redactor)
        masked_reason = reason if redactor is None else redactor.header(reason)
        blocks: list[Block] = [
            Heading(1, run_label(masked_run)),
            Facts(self._home()),
            Prose(one_line(masked_reason)),
            Prose(_address(run)),
        ]
        return page_of(blocks, "html", redactor, run_label(masked_run))

    def _run(self, run: RunSummary) -> Iterator[bytes]:
        return export_run(self._read(run.ref), "html", self._redactor(), links=list(self._links(run.ref)))

    def _links(self, ref: RunRef) -> Iterator[tuple[str, Sequence[Link]]]:
        yield from self._home()
        if ref in self._causes:
            cause = self._causes[ref]
            yield "triage", [Link(Clean(cause), cause, "../triage.html")]
        compared = [
            Link(one_line(f"{pair.relation} {pair.replay.id}", 120), "", f"../diffs/{self._runs[pair.replay.ref]}")
            for pair in self._pairs
            if ref in (pair.replay.ref, pair.original.ref if pair.original is not None else None)
        ]
        if compared:
            yield "diff", compared

    def _home(self) -> Links:
        return [("site", [Link(Clean("all runs"), "", "../index.html")])]

    def _diff(self, pair: Pair) -> Iterator[bytes]:
        assert pair.original is not None
        sides = (("A", pair.original), ("B", pair.replay))
        links = [(side, [Link(_address(run), "", f"../runs/{self._runs[run.ref]}")]) for side, run in sides]
        a, b = (self._read(run.ref) for _, run in sides)
        return export_diff(
            a, b, "html", self._redactor(compared=True), relation=pair.relation, links=[*self._home(), *links]
        )

    def _index(self, pages: Pages, redactor: Redactor | None) -> Iterator[Block]:
        content, counts = self._content, self._content.triage.counts
        yield Heading(1, exact(f"Traces of {content.place}", 300))
        causes = quantity(counts["causes"], "cause")
        yield Prose(Clean(f"{counts['failed']} of {quantity(counts['runs'], 'run')} failed ({causes})."))
        links = [Link(Clean(f"triage: {causes}"), "", "triage.html")]
        if content.matrix.tasks:
            links.append(Link(Clean(f"tasks: {grouped(len(content.matrix.tasks))}"), "", "tasks.html"))
        diffs = [
            Link(one_line(f"{run_label(self._masked(pair.replay, redactor))} {pair.replay.id}: {pair.relation}", 120),
                 "", f"diffs/{self._runs[pair.replay.ref]}")
            for pair in self._pairs
        ]  # fmt: skip
        yield Facts([("pages", links), *([("diffs", diffs)] if diffs else [])])
        for sentence in self._left_out_sentences():
            yield Prose(Clean(sentence))
        yield Heading(2, Clean("Runs"), "runs")
        rows = [self._row(run, pages, redactor) for run in content.runs[:MAX_LISTED]]
        yield Table(_HEADING, rows, _NUMBERS)

    def _left_out_sentences(self) -> Iterator[str]:
        runs = len(self._content.runs)
        if runs > len(self._runs):
            yield f"{grouped(len(self._runs))} of {grouped(runs)} runs have pages (limit), failed runs first."
        if runs > MAX_LISTED:
            yield f"The {grouped(MAX_LISTED)} newest of {grouped(runs)} runs are listed."
        if self._omitted_diffs:
            yield f"{grouped(self._omitted_diffs)} diffs were left out (limit: {MAX_DIFFS})."
        if self._left_out:
            yield f"{grouped(self._left_out)} pages were left out: the site has reached its limit of {size(MAX_BYTES)}."

    def _masked(self, run: RunSummary, redactor: Redactor | None) -> RunSummary:
        return run if redactor is None else masked_summary(run, redactor)

    def _row(self, run: RunSummary, pages: Pages, redactor: Redactor | None) -> Sequence[Cell]:
        masked_run = self._masked(run, redactor)
        name, used = run_label(masked_run), tokens_of(run.usage)
        error = masked_run.first_error
        result = error.text if run.failed and error is not None else masked_run.result or masked_run.prompt
        cause, (sign, style) = self._causes.get(run.ref), run_sign(run, run.status)
        return (
            Link(name, "", pages[run.ref]) if run.ref in pages else name,
            Styled(Clean(f"{sign} {' · '.join(ending_texts(run, time.time()))}"), style),
            score_cell(masked_run) if run.scores else Clean(""),
            one_line(result, 120),
            Clean("") if run.duration_ms is None else duration(run.duration_ms),
            Clean("") if run.steps is None else grouped(run.steps),
            Clean("") if used is None else tokens(used),
            cost_text(spending.of_run(run)),
            start_label(run),
            Clean("") if cause is None else Link(Clean(cause), cause, "triage.html"),
        )


def _address(run: RunSummary) -> Clean:
    return exact(run.ref.address)


def _names(runs: Iterable[RunSummary]) -> Mapping[RunRef, str]:
    """A file name for every run, unique also where case doesn't count, without its secrets."""
    paths: dict[RunRef, str] = {}
    used = set[str]()
    for run in runs:
        name = file_name(masked_summary(run, Redactor()), "html")
        stem = name.removesuffix(".html")
        number = 1
        while name.lower() in used:
            number += 1
            name = f"{stem}-{number}.html"
        used.add(name.lower())
        paths[run.ref] = name
    return paths
