"""LineView alone, in an app of nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip

from tracetui.text import Clean, truncate
from tracetui.ui.theme import PALETTES, Look
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.rows import Line, Piece


class Letters:
    """Rows with the keys that are given; those that begin with ``-`` are headings, with ``!`` are marked."""

    def __init__(self, keys: Sequence[str], text: str = "row {key}") -> None:
        self.keys = list(keys)
        self.text = text
        self.drawn: list[int] = []

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, index: int) -> Hashable:
        return self.keys[index]

    def index(self, key: Hashable) -> int | None:
        return self.keys.index(key) if key in self.keys else None

    def line(self, index: int, width: int) -> Line:
        self.drawn.append(index)
        head, tail = self.plain(index)[:3], self.plain(index)[3:]
        return Piece(Clean(head), "sec"), Piece(truncate(Clean(tail), width - 3), "text")

    def selectable(self, index: int) -> bool:
        return not self.keys[index].startswith("-")

    def mark(self, index: int) -> str | None:
        return "status.error" if self.keys[index].startswith("!") else None

    def plain(self, index: int) -> str:
        return self.text.format(key=self.keys[index])


class Tiny(App[None]):
    """One pane."""

    def __init__(self) -> None:
        super().__init__()
        self.look = Look()
        self.view = LineView(id="view")
        self.moves: list[Hashable] = []
        self.opened: list[Hashable] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.view.focus()

    @on(LineView.Moved)
    def moved(self, event: LineView.Moved) -> None:
        """Remember where the cursor went."""
        (self.opened if isinstance(event, LineView.Opened) else self.moves).append(event.key)


@asynccontextmanager
async def open_view(rows: Letters, size: tuple[int, int] = (30, 11)) -> AsyncIterator[tuple[Tiny, Pilot[None]]]:
    """The rows in an app of that size: a title and ten rows."""
    app = Tiny()
    async with app.run_test(size=size) as pilot:
        app.view.show(rows)
        await pilot.pause()
        yield app, pilot


def texts(app: Tiny) -> list[str]:
    """What is on the screen below the title, without the column of the cursor and the minimap."""
    return [strip.text[1:-1].rstrip() for strip in app.screen._compositor.render_strips()[1:]]


def numbers(count: int) -> list[str]:
    """Keys."""
    return [f"{number:03d}" for number in range(count)]


async def test_the_cursor_stays_on_its_row_when_rows_come_and_go_above() -> None:
    async with open_view(Letters(numbers(50))) as (app, pilot):
        app.view.move_to(25)
        line = app.view.position - app.view.top
        app.view.show(Letters([*(f"new{n}" for n in range(7)), *numbers(50)]))
        assert app.view.cursor == "025"
        assert app.view.position == 32
        assert app.view.position - app.view.top == line
        app.view.show(Letters(numbers(50)[20:]))
        assert app.view.cursor == "025"
        assert app.view.position == 5
        await pilot.pause()
        assert "row 025" in texts(app)


async def test_the_cursor_stays_in_range_when_its_row_is_removed() -> None:
    async with open_view(Letters(numbers(50))) as (app, _):
        app.view.move_to(49)
        app.view.show(Letters(numbers(5)))
        assert app.view.position == 4
        app.view.show(Letters([]))
        assert app.view.cursor is None
        app.view.action_move(1)
        app.view.action_page(1)
        app.view.action_edge(True)
        assert app.view.position == 0


async def test_headings_take_no_cursor() -> None:
    async with open_view(Letters(["-a", "1", "-b", "-c", "2", "-d"])) as (app, _):
        cursors = [app.view.cursor]
        for step in (1, 1, -1):
            app.view.action_move(step)
            cursors.append(app.view.cursor)
        app.view.action_edge(True)
        assert [*cursors, app.view.cursor] == ["1", "2", "2", "1", "2"]


async def test_rows_that_are_all_headings() -> None:
    async with open_view(Letters(["-a", "-b"])) as (app, _):
        app.view.action_move(1)
        app.view.action_edge(True)
        app.view.action_page(-1)
        assert app.view.top == 0


@pytest.mark.parametrize(("pages", "expected"), [(1, 9), (0.5, 4), (-1, 0)])
async def test_paging_keeps_a_row_of_context(pages: float, expected: int) -> None:
    async with open_view(Letters(numbers(100))) as (app, _):
        app.view.action_page(pages)
        assert app.view.position == expected
        assert app.view.top == max(0, expected)


async def test_to_the_ends_and_back() -> None:
    async with open_view(Letters(numbers(100))) as (app, pilot):
        app.view.action_edge(True)
        await pilot.pause()
        assert (app.view.position, app.view.top) == (99, 90)
        assert texts(app)[-1] == "row 099"
        app.view.action_page(1)
        assert app.view.position == 99
        app.view.action_edge(False)
        assert (app.view.position, app.view.top) == (0, 0)
        await pilot.pause()
        assert app.moves == ["099", "000"]


async def test_moving_paints_two_rows_and_no_more() -> None:
    rows = Letters(numbers(100_000))
    async with open_view(rows) as (app, pilot):
        painted: list[tuple[Region, ...]] = []
        refresh = app.view.refresh

        def watch(*regions: Region) -> LineView:
            painted.append(regions)
            return refresh(*regions)

        app.view.refresh = watch  # type: ignore[method-assign, assignment]
        rows.drawn.clear()
        app.view.action_move(1)
        await pilot.pause()
        assert [region.height for regions in painted for region in regions] == [1, 1]
        assert {region.y for regions in painted for region in regions} == {1, 2}
        assert set(rows.drawn) <= {0, 1}


async def test_only_what_is_seen_is_drawn() -> None:
    rows = Letters(numbers(10_000))
    async with open_view(rows) as (app, pilot):
        app.view.action_edge(True)
        await pilot.pause()
        assert set(rows.drawn) <= {*range(11), *range(9_989, 10_000)}


async def test_a_layout_paints_a_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_view(Letters(numbers(100))) as (app, pilot):
        painted: list[Region] = []
        render = LineView.render_lines

        def lines(view: LineView, crop: Region) -> list[Strip]:
            painted.append(crop)
            return render(view, crop)

        monkeypatch.setattr(LineView, "render_lines", lines)
        app.view.styles.height = 6
        while app.view.outer_size.height != 6:
            await pilot.pause()
        await pilot.pause()
        assert [region.height for region in painted] == [6]


async def test_the_minimap_ticks_marked_rows_at_their_place() -> None:
    keys = numbers(100)
    keys[55] = "!55"
    async with open_view(Letters(keys)) as (app, _):
        last = [strip.text[-1] for strip in app.screen._compositor.render_strips()[1:]]
        assert [y for y, character in enumerate(last) if character == "◂"] == [5]
        assert last[0] == "┃"


async def test_hits_are_marked_across_pieces() -> None:
    async with open_view(Letters(["aB", "xx"])) as (app, pilot):
        app.view.search("W AB")
        await pilot.pause()
        assert app.view.hits() == [0]
        hit = PALETTES["dark"].style("hit", "sel")
        strips = app.view.render_lines(Region(0, 0, 30, 3))
        marked = ["".join(s.text for s in strip if s.style and s.style.bgcolor == hit.bgcolor) for strip in strips]
        assert marked == ["", "w aB", ""]
        app.view.search("")
        assert app.view.hits() == []


async def test_scrolling_sideways_shows_the_rest_of_a_row() -> None:
    async with open_view(Letters(["a"], text="0123456789 {key} " + "x" * 60 + " end")) as (app, pilot):
        app.view.action_sideways(8)
        await pilot.pause()
        assert texts(app)[0].startswith("89 a xxx")
        app.view.action_sideways(60)
        await pilot.pause()
        assert texts(app)[0].endswith("end")
        app.view.action_sideways(-100)
        assert app.view.left == 0


async def test_a_click_moves_and_a_double_click_opens() -> None:
    async with open_view(Letters(numbers(50))) as (app, pilot):
        await pilot.click(offset=(5, 4))
        assert app.view.cursor == "003"
        await pilot.click(offset=(5, 6), times=2)
        await pilot.pause()
        assert app.opened == ["005"]


async def test_the_wheel_moves_the_view_and_not_the_cursor() -> None:
    from textual import events

    async with open_view(Letters(numbers(50))) as (app, pilot):
        for event, top in ((events.MouseScrollDown, 3), (events.MouseScrollUp, 0)):
            app.view.post_message(event(app.view, 5, 5, 0, 1, 0, shift=False, meta=False, ctrl=False))
            await pilot.pause()
            assert (app.view.top, app.view.cursor) == (top, "000")


async def test_dragging_selects_the_rows_to_copy() -> None:
    async with open_view(Letters(numbers(50))) as (app, pilot):
        await pilot.mouse_down(offset=(1, 2))
        await pilot.hover(offset=(8, 4))
        await pilot.mouse_up(offset=(8, 4))
        await pilot.pause()
        selected = app.screen.get_selected_text()
        assert selected is not None
        rows = selected.split("\n")
        assert [row.strip() for row in rows] == ["row 001", "row 002", "row 003"]


async def test_another_palette_redraws_everything() -> None:
    async with open_view(Letters(numbers(3))) as (app, pilot):
        before = app.view.render_lines(Region(0, 0, 30, 3))
        app.look = app.look._replace(palette=PALETTES["light"])
        app.view.notify_style_update()
        await pilot.pause()
        after = app.view.render_lines(Region(0, 0, 30, 3))
        assert [strip.text for strip in before] == [strip.text for strip in after]
        assert [[s.style for s in strip] for strip in before] != [[s.style for s in strip] for strip in after]


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 3), (300, 2)])
async def test_any_size_draws_lines_of_its_width(size: tuple[int, int]) -> None:
    async with open_view(Letters(numbers(50)), size=size) as (app, _):
        strips = app.view.render_lines(Region(0, 0, *size))
        assert [strip.cell_length for strip in strips] == [size[0]] * size[1]
