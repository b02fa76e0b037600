"""No text is cut for lack of room while the same screen has blank rows or columns that could hold it.

Every screen is drawn at three sizes and measured. What counts, by pane:

fold    a text folded for its length, above blank rows of its pane
scroll  hidden rows, while the pane or one above or below it has blank rows
cut     rows that end in an ellipsis, while columns of the pane, or of one beside it, are blank in all rows

number  a number that is not whole: columns of numbers are shown complete, or not at all

Exempt are folds that group (loops, hooks, unchanged messages, values of a tree), ids and paths cut in the middle, and
`SLACK`: the blank row between two panes, and columns that wrapped text leaves. A row of a table is one line: its text
is complete in the detail, so blank rows below a table don't count. The run list keeps its width while the cursor moves
from run to run, whatever their details leave blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from textual.geometry import Region
from textual.pilot import Pilot

from tests.shared import ROOT, SEARCHES, SHARED
from tests.ui.conftest import NOW, Opener, press, settle, until
from tracetui import demo
from tracetui.text import Clean
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.diff import DiffScreen
from tracetui.ui.screens.lists import ContrastScreen, StatisticsScreen
from tracetui.ui.screens.run_tree import RunTreeScreen
from tracetui.ui.screens.triage import TriageScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.rows import Line, Piece

SIZES: Final = ((80, 24), (120, 40), (200, 60))
SLACK: Final = 2, 16
"""Blank rows and columns that may stay."""
NARROWEST: Final = 40
"""Columns that a pane has, whatever it shows: its tabs need them."""
ENDLESS: Final = 1000
"""Cells in which no number is cut."""
FOLD: Final = re.compile("▸ (?:[0-9 ]+ more lines|all of )")
CUT: Final = re.compile(r"(?<![\[{(])…(?=\s*(?:$|  |[0-9—✓✗~·]))")
"""An ellipsis at the end of a cell; in the middle, it shortens an id or a path."""


NUMBER: Final = re.compile(r"[~$<+-]{0,2}\d[\d.,/ ]*(?:[%kMG]|(?:ms|mo|[smhdwy])(?:\d\d?[smh]?)?)?")


def cut_numbers(lines: Iterable[Line], whole: Iterable[Line]) -> list[str]:
    """The cells that show a part of a number; `whole` are the same lines with room for all of it."""
    numbers = {text for line in whole for piece in line if NUMBER.fullmatch(text := piece.text.strip())}
    cut = [text for line in lines for piece in line if "…" in (text := piece.text.strip())]
    return [text for text in cut if any(_is_part(text, number) for number in numbers)]


def _is_part(text: str, number: str) -> bool:
    """Whether a cut text is some of the number, and nothing else."""
    head, _, tail = text.partition("…")
    return bool(head or tail) and text != number and number.startswith(head) and number.endswith(tail)


class Pane(NamedTuple):
    """A measured pane."""

    name: str
    region: Region
    lines: tuple[str, ...]
    hidden: int
    """Rows out of view."""
    folded: int
    cut: int
    """Rows with a cut text."""
    numbers: list[str]
    """Cut numbers."""

    @property
    def blank_rows(self) -> int:
        """Blank rows at the bottom."""
        filled = [i for i, line in enumerate(self.lines) if line.strip()]
        return len(self.lines) - 1 - (filled[-1] if filled else -1)

    @property
    def blank_columns(self) -> int:
        """Columns at the right that are blank in all rows."""
        return self.region.width - max(NARROWEST, *(len(line.rstrip()) for line in self.lines))


def measure(app: TraceApp) -> list[Pane]:
    """The visible panes."""
    panes = []
    for view in app.screen.query(LineView):
        region = view.region
        if not view.is_on_screen or not region.area:
            continue
        lines = tuple(view.strip_at(y).text[:-1] for y in range(1, region.height))
        hidden = max(0, len(view.rows) - view.page)
        cut = sum(1 for line in lines if CUT.search(line))
        folded = sum(map(bool, map(FOLD.search, lines)))
        panes.append(Pane(view.pane_name, region, lines, hidden, folded, cut, _numbers_in(view)))
    return panes


def _numbers_in(view: LineView) -> list[str]:
    """Cut numbers in the rows on the screen and their headings."""
    at, width = range(view.top, min(len(view.rows), view.top + view.page)), view.region.width - 2
    rows = [[*view._make_heading(room), *(view.rows.line(i, room) for i in at)] for room in (width, ENDLESS)]
    return cut_numbers(*rows)


def wasted(panes: list[Pane]) -> Iterator[str]:
    """What is cut although there is room for it."""
    rows, columns = SLACK
    for pane in panes:
        place = pane.region
        stacked = [pane for pane in panes if _overlap(pane.region.x, pane.region.right, place.x, place.right)]
        beside = (
            [pane]
            if pane.name == "Runs"
            else [pane for pane in panes if _overlap(pane.region.y, pane.region.bottom, place.y, place.bottom)]
        )
        most = max(stacked, key=lambda pane: pane.blank_rows)
        widest = max(beside, key=lambda pane: _free_columns(pane, panes))
        if pane.numbers:
            yield f"{pane.name}: cut numbers {pane.numbers}"
        if pane.folded and pane.blank_rows > rows:
            yield f"{pane.name}: {pane.folded} folds above {pane.blank_rows} blank rows"
        if pane.hidden and most.blank_rows > rows:
            yield f"{pane.name}: {pane.hidden} rows hidden, {most.blank_rows} rows of {most.name} blank"
        free = _free_columns(widest, panes)
        if pane.cut and free > columns:
            yield f"{pane.name}: {pane.cut} rows cut, {free} columns of {widest.name} blank"


def _free_columns(pane: Pane, panes: list[Pane]) -> int:
    """Blank columns of a pane and of those above and below it."""
    place = pane.region
    return min(pane.blank_columns for pane in panes if _overlap(pane.region.x, pane.region.right, place.x, place.right))


def _overlap(a: int, b: int, c: int, d: int) -> bool:
    return max(a, c) < min(b, d)


async def check(
    app: TraceApp, pilot: Pilot[int], name: str, gaps: list[str], sizes: Sequence[tuple[int, int]] = SIZES
) -> None:
    """Measure the screen at these sizes."""
    for size in sizes:
        await pilot.resize_terminal(*size)
        await settle(pilot)
        await until(pilot, lambda: is_settled(app), what=name)
        panes: list[Pane] = []
        while panes != (panes := measure(app)):  # a value that comes late makes another layout
            await pilot.pause()
        gaps += [f"{name} {size[0]}x{size[1]}  {gap}" for gap in wasted(panes)]


def is_settled(app: TraceApp) -> bool:
    """Whether the current screen shows everything."""
    screen = app.screen
    if isinstance(screen, DiffScreen | RunTreeScreen):
        return screen.settled
    if isinstance(screen, TriageScreen):
        ref = screen.queue.run
        return ref is not None and app.store.opened(ref) is not None
    if isinstance(screen, StatisticsScreen | ContrastScreen):
        return bool(app.surveys.latest and app.surveys.latest.finished)
    return True


DEMO: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "list": ("", ()),
    "run": ("", ("enter",)),
    "tree": ("latticeflow", ("enter", "t")),
    "goal": ("penelope/appeal", ("enter",)),
    "one run": ("paprika/0690e0f0-e1bf-4d65-ac52-89138f446e8d.json", ()),
    "story": ("ccpa", ("enter",)),
    "diff": ("", ("g", "j", "j", "j", "D")),
    "triage": ("", ("T", "j")),
    "context": ("paprika", ("enter", "]", "m", "]", "m", "c")),
}
"""Screens of the built-in samples: folder and keys."""


@pytest.mark.parametrize("name", DEMO)
async def test_the_demo_fills_the_screen(name: str, opened: Opener, samples: Path) -> None:
    folder, keys = DEMO[name]
    gaps: list[str] = []
    async with opened(samples / folder) as (app, pilot):
        await press(pilot, *keys)
        await check(app, pilot, name, gaps)
    assert not gaps, "\n".join(gaps)


OVER_THE_LIST: Final = {
    "statistics": "S",
    "today": "H",
    "live": "L",
    "contrast": "C",
    "filter values": "P",
    "help": "?",
    "palette": "ctrl+p",
    "columns": "W",
    "tasks of several formats": "M",
}
"""Screens over the list of the built-in samples: their keys."""


async def test_screens_over_the_list_fill_the_screen(opened: Opener, samples: Path) -> None:
    gaps: list[str] = []
    async with opened(samples) as (app, pilot):
        for name, key in OVER_THE_LIST.items():
            await press(pilot, key)
            await check(app, pilot, name, gaps)
            await press(pilot, "escape")
            assert app.screen is app.main
    assert not gaps, "\n".join(gaps)


TRIALS: Final = {
    "tasks": ("M",),
    "run tree": ("enter",),
    "run tree with texts": ("i",),
    "tasks by cost": ("i", "escape", *(",",) * 4),
}
"""Screens of the built-in trials: keys after those of the screen before."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trials")
    demo.SETS["trials"](folder, NOW)
    return folder


async def test_trials_fill_the_screen(opened: Opener, trials: Path) -> None:
    gaps: list[str] = []
    async with opened(trials) as (app, pilot):
        for name, keys in TRIALS.items():
            await press(pilot, *keys)
            await check(app, pilot, name, gaps)
    assert not gaps, "\n".join(gaps)


def test_cut_numbers_are_detected() -> None:
    def line(*cells: str) -> Line:
        return tuple(Piece(Clean(cell)) for cell in cells)

    whole = [line("refund 2024", " 12/120", "  $1.25", "10h45m", "gpt-4o-mini")]
    assert not cut_numbers([line("refund 2…", " 12/120")], whole)
    assert not cut_numbers([line("refund", "…", "gpt-4…")], whole)
    assert cut_numbers([line("12/1…", "$1.…", "10h4…", "…5m")], whole) == ["12/1…", "$1.…", "10h4…", "…5m"]


CASES: Final = ("claude_code", "codex", "hypergraph", "latticeflow", "otlp", "paprika", "penelope")
"""Formats of which the first conformance case is drawn."""


@pytest.mark.parametrize("name", CASES)
async def test_samples_fill_the_screen(name: str, opened: Opener) -> None:
    folder = next(path for path in sorted((ROOT / "tests" / "formats" / name).iterdir()) if path.is_dir())
    await draw_list_and_run(name, folder, opened, sizes_of(CASES.index(name)))


def sizes_of(number: int) -> Sequence[tuple[int, int]]:
    """The sizes at which the list and a run of a folder are drawn: in the suite one of them in turn."""
    return SIZES if SEARCHES else SIZES[number % len(SIZES) :][:1]


async def draw_list_and_run(name: str, folder: Path, opened: Opener, sizes: Sequence[tuple[int, int]]) -> None:
    """Check the list of a folder and its run under the cursor."""
    gaps: list[str] = []
    async with opened(folder) as (app, pilot):
        await check(app, pilot, f"{name} list", gaps, sizes)
        await press(pilot, "enter")
        await check(app, pilot, f"{name} run", gaps, sizes)
    assert not gaps, "\n".join(gaps)


REAL: Final = ("claude-code/real_projects", "hypergraph/v6", "latticeflow", "paprika", "penelope")


@pytest.mark.parametrize("name", REAL)
async def test_real_samples_fill_the_screen(name: str, opened: Opener) -> None:
    folder = SHARED / "samples" / name if SHARED is not None else None
    if folder is None or not folder.is_dir():
        pytest.skip("the shared samples are not beside this checkout")
    await draw_list_and_run(name, folder, opened, sizes_of(REAL.index(name)))
