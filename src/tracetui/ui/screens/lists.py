"""List screens: search hits, contrast, statistics, replays, filter values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult

from tracetui.analysis.arrangement import Arrangement, Choices
from tracetui.analysis.contrast import Contrast
from tracetui.analysis.statistics import By, Row
from tracetui.live.jobs import Counted, Job, JobProgress
from tracetui.live.mailbox import FindDivergence, Mail
from tracetui.masking import clean, one_line
from tracetui.model import RunRef, RunSummary
from tracetui.store.query.complete import Facet
from tracetui.text import Clean, grouped, quantity
from tracetui.ui.base_app import HostApp
from tracetui.ui.commands import FACETS, FINDINGS, HITS, REPLAYS, STATISTICS, Command, key_label
from tracetui.ui.layout import FRAME
from tracetui.ui.panes.detail import Detail
from tracetui.ui.screens.base import BaseListScreen
from tracetui.ui.services.findings import Search
from tracetui.ui.state import SearchTarget, rearrange, toggle_sort
from tracetui.ui.widgets.frame import with_hints
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.diff.steps import ReplayRows, name_of
from tracetui.views.labels import no_hits
from tracetui.views.list.tables import STATISTIC_SORTS, Choice, FacetRows, Hit, HitRows, StatisticRows, picked_query
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.triage import contrast_rows, example_of

TABS: Final = {
    "error": ("error", "output"),
    "input": ("input", "messages"),
    "output": ("output", "messages"),
    "message": ("messages", "input", "output"),
    "attribute": ("attributes", "run"),
}
"""Tabs of the detail that show a kind of field, best first."""
MIN_PREVIEW: Final = 16
"""Rows of a screen with a preview of the hit."""
LEAST_PREVIEW: Final = 6
"""Rows of the smallest preview."""
MAX_NEEDLE: Final = 80
"""Maximum characters of a match that the detail searches for."""


class RunsListScreen(BaseListScreen):
    """List screen of `HostApp`."""

    app: HostApp


class ArrangedScreen(RunsListScreen):
    """List screen with an arrangement of its own."""

    arrangement: Arrangement
    choices: Choices
    """Sort orders and groups to choose from."""

    def show_arrangement(self, arrangement: Arrangement) -> None:
        """Show the rows in this arrangement."""
        self.arrangement = arrangement
        self.show_rows()

    def action_arrange(self, change: str) -> None:
        """Arrange the rows; see `state.rearrange`."""
        self.show_arrangement(rearrange(self.arrangement, change, self.choices))

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.action_arrange("sort")

    @on(LineView.SortRequested)
    def _sort_requested(self, message: LineView.SortRequested) -> None:
        self.show_arrangement(toggle_sort(self.arrangement, message.sort))


class PreviewScreen(RunsListScreen):
    """List screen with the detail of the row under the cursor below the list."""

    _previewed: tuple[object, bool] | None = None
    """What the detail is requested of, and whether it is shown."""

    def __init__(self, pane: str, title: str, commands: Sequence[Command], view: LineView | None = None) -> None:
        super().__init__(pane, title, commands, view)
        self._preview = Detail()
        self._preview.number, self._preview.pane_name, self._preview.can_focus = 0, "Preview", False
        self._tallest = LEAST_PREVIEW
        """Rows of the longest detail so far: so the list doesn't grow and shrink with each row."""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        with Box(classes="previewed"):
            yield self.list
            yield self._preview
        yield self._footer

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self._lay_out()

    @property
    def _has_preview(self) -> bool:
        """Whether the row under the cursor has a detail."""
        raise NotImplementedError

    def _lay_out(self) -> None:
        """Share the rows: the list takes those that it needs, at most half, and those that no detail needed yet."""
        height = self.app.size.height - FRAME
        self._preview.display = self._has_preview and height + FRAME >= MIN_PREVIEW
        self._tallest = max(self._tallest, len(self._preview.rows) + 1)
        wanted = len(self.list.rows) + len(self.list.heading) + 1
        rows = min(wanted, max(height // 2, height - self._tallest))
        self.list.styles.height = rows if self._preview.display else "1fr"

    def on_closed(self) -> None:
        self.app.surveys.stop()
        if self._previewed is not None:
            self.app.read_main_run()


class HitsScreen(PreviewScreen):
    """Hits of a `Search`, and the value with the hit under the cursor."""

    def __init__(self, search: Search, commands: Sequence[Command]) -> None:
        super().__init__(HITS, "Hits", commands)
        self._search = search
        self.list.position = search.cursor or 0

    def receive(self, mail: Mail) -> None:
        if mail.progress is not None and mail.progress.job is self._search.job:
            self.show_rows()
        hit = self._hit
        if hit is not None and (hit.ref in mail.runs or (hit.ref, hit.span) in mail.bodies):
            self._show_preview()

    # ---- the preview

    @property
    def _has_preview(self) -> bool:
        return self._hit is not None

    def _load_preview(self) -> None:
        """Show the value of the hit under the cursor; read its run first if necessary."""
        hit = self._hit
        if hit is None or (self._previewed is not None and self._previewed[0] is hit) or not self._preview.display:
            return
        self._previewed = hit, False
        if self.app.store.opened(hit.ref) is None:
            self.app.engine.open(hit.ref)
            self.app.engine.enter(hit.ref)
        self._show_preview()

    def _show_preview(self) -> None:
        hit, store = self._hit, self.app.store
        run = store.opened(hit.ref) if hit is not None else None
        if hit is None or run is None or self._previewed == (hit, True):
            return
        span = run.span(hit.span) if hit.span is not None else None
        body = store.body(hit.ref, span) if span is not None else None
        if hit.span is not None and span is None:
            return  # not read yet
        if span is not None and body is None:
            self.app.engine.load_body(run, span)
            return
        self._previewed = hit, True
        self._preview.search_target = _target(hit)
        self._preview.show_span(run, span, body)
        self._lay_out()
        self._preview.move_to(self._preview.position, center=True)

    @on(LineView.Moved, f"#{HITS}")
    def _hit_moved(self) -> None:
        self._load_preview()

    def show_rows(self) -> None:
        progress = self._search.progress
        if progress is not None and progress.finished and not self._search.rows.hits:
            lines = no_hits(self._search.text, progress.done)
            self.list.show(ListRows(lines, headings=range(len(lines))))
        elif self.list.rows is not self._search.rows:
            self.list.show(self._search.rows, key=self._search.cursor)
        else:
            self.list.show(self._search.rows)
        self._lay_out()
        self._load_preview()
        self.refresh_frame()

    @property
    def _hit(self) -> Hit | None:
        rows = self.list.rows
        return rows.hit(self.list.position) if isinstance(rows, HitRows) else None

    @property
    def ref(self) -> RunRef | None:
        return self._hit.ref if self._hit is not None else None

    def action_open(self) -> None:
        hit = self._hit
        if hit is None:
            return
        self._search.cursor = self.list.position
        self.app.visit(hit.ref, hit.span, _target(hit))

    def recreate(self) -> HitsScreen:
        return HitsScreen(self._search, self.commands)

    def action_reread(self) -> None:
        if self.leave():
            self.app.surveys.search = None
            self.app.search_runs(self._search.text)

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("search  "), "text bold"), Piece(one_line(self._search.text, 80), "hit")), ()

    def summary(self) -> Line:
        search, progress = self._search, self._search.progress
        rows = search.rows
        hits = quantity(rows.hits, "hit")
        pieces = [Piece(Clean(f"{hits} in {grouped(rows.runs)} of {quantity(search.runs, 'run')}"), "text bold")]
        if progress is None or not progress.finished:
            done = (
                f"  ·  searching, {grouped(progress.done if progress else 0)} of {quantity(search.job.total, 'file')}"
            )
            pieces.append(Piece(Clean(done), "status.running"))
        elif progress.lost:
            pieces.append(Piece(Clean(f"  ·  {one_line(progress.lost, 100)}"), "status.warn"))
        elif progress.more:
            pieces.append(Piece(Clean("  ·  more matches; refine the search"), "status.warn"))
        if search.problems:
            first = search.problems[0]
            note = f"  ·  {grouped(len(search.problems))} unreadable: {first.reason}"
            pieces.append(Piece(one_line(note, 160), "status.warn"))
        if self._hit is not None:
            pieces.append(Piece(Clean("  ·  "), "dim"))
            return with_hints(pieces, (("↵", "open at this step"), ("Esc", "back")), self.app.size.width)
        return tuple(pieces)


def _target(hit: Hit) -> SearchTarget:
    """Where the detail finds a hit."""
    needle = (hit.match.split("\n", 1)[0] or hit.match)[:MAX_NEEDLE]
    return SearchTarget(hit.ref, hit.span, needle, TABS[hit.kind.value], hit.before, hit.after)


class ContrastScreen(RunsListScreen):
    """Factors over-represented in a set of runs; Enter opens an example at its step."""

    def __init__(self, refs: Sequence[RunRef], of: str, commands: Sequence[Command], position: int = 0) -> None:
        super().__init__(FINDINGS, "Shared", commands)
        self.list.position = position
        self.refs, self._of = refs, of

    def receive(self, mail: Mail) -> None:
        if mail.progress is not None:
            self.show_rows()

    @property
    def _contrast(self) -> Contrast | None:
        return self.app.surveys.contrast_of(self.refs)

    def show_rows(self) -> None:
        self.list.show(contrast_rows(self._contrast, width=self.app.size.width - 2, glyphs=self.app.look.glyphs))
        self.refresh_frame()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.show_rows()

    @property
    def ref(self) -> RunRef | None:
        example = example_of(self.list.cursor)
        return example[0] if example is not None else None

    def action_open(self) -> None:
        example = example_of(self.list.cursor)
        if example is not None:
            self.app.visit(*example)

    def recreate(self) -> ContrastScreen:
        return ContrastScreen(self.refs, self._of, self.commands, self.list.position)

    def on_closed(self) -> None:
        self.app.surveys.stop()

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("contrast  "), "text bold"), Piece(one_line(f"of {self._of}", 100), "sec")), ()

    def summary(self) -> Line:
        contrast, progress = self._contrast, self.app.surveys.progress(self.refs)
        count = len(contrast.findings) if contrast is not None else 0
        factors = quantity(count, "factor") if count else "no factors"
        label = f"{factors} over-represented in these runs"
        pieces = [Piece(Clean(label), "text bold")]
        if progress:
            pieces.append(Piece(Clean(f"  ·  {one_line(progress, 100)}"), "status.running"))
        return tuple(pieces)


class StatisticsView(LineView):
    """The rows of the statistics."""

    sorts: ClassVar[Mapping[str, str]] = {name: name for name in STATISTIC_SORTS}


class StatisticsScreen(RunsListScreen):
    """Statistics by tool, model … (``<`` and ``>`` switch); Enter filters the runs by the row."""

    def __init__(self, job: Job, of: str, commands: Sequence[Command]) -> None:
        super().__init__(STATISTICS, "Statistics", commands, StatisticsView(id=STATISTICS))
        self._sort, self._reverse = "", False
        """One of `STATISTIC_SORTS`; empty: the usual order."""
        self._job, self._of = job, of
        self._progress: JobProgress | None = None
        self.by = By.TOOL
        self._chosen = False
        """Whether the user chose the grouping."""
        self._moved = False
        """Whether the user moved the cursor; until then it stays on the first row."""

    def receive(self, mail: Mail) -> None:
        if mail.progress is not None and mail.progress.job is self._job:
            self._progress = mail.progress
            self.show_rows()

    @property
    def _counted(self) -> Counted | None:
        return self._progress.result if self._progress is not None else None

    def show_rows(self) -> None:
        counted = self._counted
        rows = counted.rows if counted is not None else {}
        if not self._chosen:
            self.by = next((by for by in By if rows.get(by)), self.by)
        by = self.by.value
        if counted is not None and rows.get(self.by):
            statistic_rows = StatisticRows(
                self._sort_rows(rows[self.by]),
                total=counted.totals[self.by],
                sorted_by=self._sort,
                glyphs=self.app.look.glyphs,
            )
            key = None if self._moved else statistic_rows.key(0)
            self.list.show(
                statistic_rows,
                key=key,
                title_right=self._tabs(),
                heading=lambda width: [statistic_rows.heading(width, by)],
            )
        else:
            message = f"no {by} recorded" if self._progress is not None and self._progress.finished else "counting …"
            line: Line = (Piece(Clean(message), "dim"),)
            self.list.show(ListRows([line], headings=[0]), title_right=self._tabs(), heading=lambda width: [])
        self.refresh_frame()

    def _sort_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        if not self._sort:
            return rows[::-1] if self._reverse else rows
        return sorted(rows, key=STATISTIC_SORTS[self._sort], reverse=self._reverse)

    def action_sort(self) -> None:
        """Sort by the next column."""
        order = [*STATISTIC_SORTS]
        self._change_sort(order[(order.index(self._sort) + 1) % len(order) if self._sort else 1])

    def action_arrange(self, change: str) -> None:
        """Reverse the order."""
        self._change_sort(self._sort, reverse=not self._reverse)

    @on(LineView.SortRequested)
    def _sort_requested(self, message: LineView.SortRequested) -> None:
        self._change_sort(message.sort, reverse=message.sort == self._sort and not self._reverse)

    def _change_sort(self, sort: str, *, reverse: bool = False) -> None:
        self._sort, self._reverse, self._moved = sort, reverse, False
        self.show_rows()

    def show_tab(self, tab: str) -> None:
        self._choose(By(tab))

    def _tabs(self) -> Line:
        pieces = []
        for by in By:
            pieces += [Piece(Clean(by.value), "accent bold underline" if by is self.by else "sec"), Piece(Clean("  "))]
        return tuple(pieces[:-1])

    def action_tab(self, step: int) -> None:
        """Show the next or previous grouping."""
        order = list(By)
        self._choose(order[(order.index(self.by) + step) % len(order)])

    def _choose(self, by: By) -> None:
        self.by, self._chosen, self._moved = by, True, False
        self.show_rows()

    @on(LineView.Moved)
    def _row_moved(self) -> None:
        self._moved = True

    def action_open(self) -> None:
        """Filter the runs by the row under the cursor, if a query can express it."""
        name = self.list.cursor
        if not name or self.by in (By.OPERATION, By.DAY):
            self.say("can't filter by this row; choose a named tool, model, node, agent or project", "status.warn")
        elif isinstance(name, str) and self.leave():
            self.app.filter_runs("source" if self.by is By.PROJECT else self.by.value, name)

    def on_closed(self) -> None:
        self.app.surveys.stop()

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("statistics  "), "text bold"), Piece(one_line(f"of {self._of}", 100), "sec")), ()

    def summary(self) -> Line:
        counted, progress = self._counted, self._progress
        done = counted.runs if counted is not None else 0
        pieces = [Piece(Clean(f"{quantity(done, 'run')}, by {self.by.value}"), "text bold")]
        if progress is None or not progress.finished:
            pieces.append(
                Piece(Clean(f"  ·  reading, {grouped(done)} of {grouped(self._job.total)}"), "status.running")
            )
        elif progress.lost:
            pieces.append(Piece(Clean(f"  ·  {one_line(progress.lost, 100)}"), "status.warn"))
        pieces += [Piece(Clean("  ·  ")), Piece(Clean("< >"), "key bold"), Piece(Clean(" change grouping"), "sec")]
        return tuple(pieces)


class ReplaysScreen(RunsListScreen):
    """Replays of a run; Enter compares a replay with the original."""

    def __init__(self, original: RunSummary, replays: Sequence[RunRef], commands: Sequence[Command]) -> None:
        super().__init__(REPLAYS, "Replays", commands)
        self.original, self._replays = original, list(replays)

    def on_mount(self) -> None:
        super().on_mount()
        verdicts = self.app.comparisons.verdicts
        self._compare([ref for ref in self._replays if (self.original.ref, ref) not in verdicts])

    def _compare(self, refs: Sequence[RunRef]) -> None:
        relation = self.app.store.relations.relation
        self.app.engine.differ.find_divergences([FindDivergence(self.original.ref, ref, relation(ref)) for ref in refs])

    def receive(self, mail: Mail) -> None:
        if any(isinstance(ask, FindDivergence) for ask in mail.diffs):
            self.show_rows()

    def show_rows(self) -> None:
        store, comparisons = self.app.store, self.app.comparisons
        runs = [store.runs[ref] for ref in self._replays if ref in store.runs]
        verdicts = {run.ref: comparisons.verdicts.get((self.original.ref, run.ref)) for run in runs}
        rows = ReplayRows(runs, verdicts, store.relations.relation, glyphs=self.app.look.glyphs)
        title = (Piece(Clean(f"of {name_of(self.original)} {clean(self.original.name, 60)}"), "sec"),)
        self.list.show(rows, title=title, heading=lambda width: rows.heading(self.original, width))
        self.refresh_frame()

    def path(self) -> tuple[Line, Line]:
        crumb: Line = (
            Piece(Clean(f"{clean(self.original.name, 60)} {name_of(self.original)} "), "sec"),
            Piece(Clean(f"{self.app.look.glyphs.path} "), "dim"),
            Piece(Clean("replays"), "text bold"),
        )
        return crumb, ()

    def summary(self) -> Line:
        verdicts = [self.app.comparisons.verdicts.get((self.original.ref, ref)) for ref in self._replays]
        diverged = sum(verdict is not None and not verdict.same for verdict in verdicts)
        pending = verdicts.count(None)
        pieces = [Piece(Clean(f"{grouped(diverged)} of {grouped(len(verdicts))} replays diverged"), "text bold")]
        if pending:
            pieces.append(Piece(Clean(f"  ·  comparing, {grouped(pending)} left"), "status.running"))
        return tuple(pieces)

    @property
    def ref(self) -> RunRef | None:
        ref = self.list.cursor
        return ref if isinstance(ref, RunRef) else None

    def action_open(self) -> None:
        if self.ref is not None:
            self.app.compare(self.original.ref, self.ref)

    def action_reread(self) -> None:
        self._compare(self._replays)
        self.say("comparing all replays again")

    def on_closed(self) -> None:
        self.app.engine.differ.find_divergences(())


class FacetsScreen(RunsListScreen):
    """Values to filter by; Enter applies the picked ones, or the one under the cursor."""

    def __init__(
        self, facets: Sequence[Facet], total: int, on_pick: Callable[[str], None], commands: Sequence[Command]
    ) -> None:
        """`on_pick`: called with the query for the picked values. `total`: number of runs."""
        super().__init__(FACETS, "Pick", commands)
        self._facets, self._total, self._on_pick = facets, total, on_pick
        self._chosen: list[Choice] = []

    def show_rows(self) -> None:
        terms = [choice.term for choice in self._chosen]
        self.list.show(FacetRows(self._facets, terms, self._total, glyphs=self.app.look.glyphs))
        self.refresh_frame()

    @property
    def _here(self) -> Choice | None:
        rows = self.list.rows
        return rows.choice(self.list.position) if isinstance(rows, FacetRows) else None

    def action_pick(self) -> None:
        """Pick or unpick the value under the cursor."""
        here = self._here
        if here is not None:
            self._chosen = (
                [facet for facet in self._chosen if facet != here] if here in self._chosen else [*self._chosen, here]
            )
            self.show_rows()

    def action_open(self) -> None:
        chosen = self._chosen or ([self._here] if self._here is not None else [])
        if self.leave() and chosen:
            self._on_pick(picked_query(chosen))

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("pick a filter"), "text bold"),), ()

    def summary(self) -> Line:
        if not self._chosen:
            label = f"{quantity(self._total, 'run')}  ·  "
            return (
                Piece(Clean(label), "sec"),
                Piece(Clean(key_label("enter")), "key bold"),
                Piece(Clean(" filter by this value   "), "sec"),
                Piece(Clean("Space"), "key bold"),
                Piece(Clean(" pick several"), "sec"),
            )
        return (Piece(Clean("filter  "), "sec"), Piece(one_line(picked_query(self._chosen), 200), "hit"))
