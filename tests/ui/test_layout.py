"""How the panes share the screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracetui.ui.layout import classes, heights

PANES = ("runs", "steps", "detail", "facts")


@given(st.integers(1, 400), st.integers(1, 200), st.integers(0, 2), st.none() | st.sampled_from(PANES))
def test_exactly_one_width_and_one_level_hold(width: int, height: int, level: int, zoomed: str | None) -> None:
    holds = classes(width, height, level, zoomed, PANES)
    assert sum(holds[name] for name in ("narrow", "middle", "wide")) == 1
    assert sum(holds[f"level-{number}"] for number in range(3)) == 1
    assert sum(holds[f"zoom-{name}"] for name in PANES) == (zoomed is not None)


def test_the_steps_get_what_they_need_and_leave_room_for_the_detail() -> None:
    assert heights(120, 40, 1, None, 11) == (12, "1fr")
    assert heights(120, 40, 0, None, 11) == (16, "1fr")
    middle, _ = heights(120, 40, 1, None, 1000)
    assert isinstance(middle, int)
    assert middle < 37
    assert heights(200, 60, 1, None, 11) == ("1fr", 12)
    assert heights(120, 40, 1, "steps", 11) == ("1fr", "1fr")
    assert heights(80, 24, 2, None, 11) == ("1fr", "1fr")
