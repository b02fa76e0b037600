"""How the panes share the screen."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tracetui.ui.layout import (
    MIN_LIST,
    MIN_SIDE,
    Below,
    classes,
    detail_width,
    heights,
    is_beside,
    is_short,
    list_width,
    share,
)

PANES = ("runs", "steps", "detail", "facts")


@given(st.integers(1, 400), st.integers(1, 200), st.integers(0, 2), st.none() | st.sampled_from(PANES))
def test_exactly_one_width_and_one_level_hold(width: int, height: int, level: int, zoomed: str | None) -> None:
    holds = classes(width, height, level, zoomed, PANES)
    assert sum(holds[name] for name in ("narrow", "middle", "wide")) == 1
    assert sum(holds[f"level-{number}"] for number in range(3)) == 1
    assert sum(holds[f"zoom-{name}"] for name in PANES) == (zoomed is not None)


def test_the_steps_get_what_they_need_and_leave_room_for_the_detail() -> None:
    assert heights(120, 37, 1, None, 11) == (12, "1fr")
    assert heights(120, 37, 0, None, 11) == (16, "1fr")
    assert heights(120, 37, 0, None, 11, Below(30, 30)) == (
        12,
        "1fr",
    )  # the detail would be cut: no blank rows above it
    assert heights(120, 37, 1, None, 1000) == (22, "1fr")
    assert heights(120, 37, 1, None, 1000, Below(5, 5)) == (32, "1fr")
    assert heights(200, 44, 1, None, 32, Below(51, 11)) == ("1fr", 33)  # facts give way that a tab has too
    assert heights(200, 57, 1, None, 11) == ("1fr", 12)
    assert heights(120, 37, 1, "steps", 11) == ("1fr", "1fr")
    assert heights(80, 21, 2, None, 11) == ("1fr", "1fr")


def test_the_line_between_steps_and_detail_stays_while_the_cursor_moves_over_runs() -> None:
    assert heights(120, 37, 0, None, 15, Below(19, 19), 18) == (18, "1fr")  # shows everything
    assert heights(120, 37, 0, None, 15, Below(30, 30), 18) == (18, "1fr")  # two blank rows, at most
    assert heights(120, 37, 0, None, 15, Below(30, 30), 19) == (16, "1fr")
    assert heights(120, 37, 0, None, 18, Below(30, 30), 18) == (19, "1fr")  # no step is hidden for it
    assert heights(120, 37, 1, None, 15, Below(30, 30), 18) == (16, "1fr")


@given(st.integers(20, 100), st.lists(st.integers(0, 200), min_size=2, max_size=3))
@example(27, [0, 13, 14])
def test_panes_that_share_rows_use_all_of_them(rows: int, wanted: list[int]) -> None:
    shares = share(rows, wanted, [1 / len(wanted)] * len(wanted))
    assert sum(shares) == rows
    if sum(wanted) <= rows:
        assert all(got >= want for got, want in zip(shares, wanted, strict=True))


def test_unneeded_rows_of_a_pane_go_to_the_others() -> None:
    assert share(30, (5, 40), (0.5, 0.5)) == [5, 25]
    assert share(30, (40, 40), (0.5, 0.5)) == [15, 15]
    assert share(30, (5, 5), (0.5, 0.5)) == [25, 5]


def test_a_short_list_is_above_its_run() -> None:
    assert is_short(24, 5)
    assert not is_short(24, 10)
    assert list_width(120, 0, 0, 200) == 55
    assert list_width(120, 0, 0, 10) == 48
    assert list_width(80, 0, 0, 10) == "1fr"


def test_chosen_columns_and_dragging_widen_the_list() -> None:
    assert list_width(120, 0, 70, 10) == 70
    assert list_width(120, 0, 200, 10) == 120 - MIN_SIDE
    assert list_width(120, 60, 100, 10) == 72
    assert list_width(120, 1, 0, 10) == MIN_LIST


def test_the_detail_leaves_columns_to_steps_that_are_cut() -> None:
    assert detail_width(120, 50, 30) == 70
    assert detail_width(120, 110, 30) == 40
    assert detail_width(120, 110, 90) == 54
    assert is_beside(120, 1, turns=True)
    assert not is_beside(120, 1, turns=False)
    assert not is_beside(120, 0, turns=True)
