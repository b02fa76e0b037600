"""A new user's question on a home of 350 sessions, answered in at most 15 keys by the real program.

The question: the session in which I fixed the parser, what it cost, and which tool failed most in it.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.sessions import WANTED, large_home
from tests.shared import SEARCHES
from tests.terminal import TRACETUI, Terminal
from tracetui.analysis import prices

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not prices.installed(), reason="the extra `prices` is not installed"),
]
MOST_KEYS = 15
WAYS = {
    "search": (("/", *"fix the pa", "enter", "enter"), ("S", ",")),
    "palette": (("ctrl+p", *"fix parse", "enter"), ("S", ",")),
}
"""Keys to the session and its cost, then to the tools."""


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_home(tmp_path_factory.mktemp("home"), time.time())


@pytest.mark.search
@pytest.mark.parametrize(
    ("route", "size"),
    [("search", (80, 24)), *([("palette", (200, 60))] if SEARCHES else [])],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]}x{value[1]}",
)
def test_the_session_its_cost_and_the_tool_that_failed_most(route: str, size: tuple[int, int], sessions: Path) -> None:
    to_session, to_tools = WAYS[route]
    assert len(to_session) + len(to_tools) <= MOST_KEYS
    with Terminal(*TRACETUI, str(sessions), size=size) as terminal:
        terminal.expect("350 runs")
        terminal.wait_quiet()
        terminal.type(*to_session[:-1])
        terminal.expect("Fix the parser")
        terminal.wait_quiet()
        terminal.type(to_session[-1])
        terminal.wait_for(r"~\$\d+\.\d\d")
        terminal.wait_quiet()
        screen = terminal.text()
        assert WANTED.split(":")[0] in screen
        assert re.search(r"~\$\d+\.\d\d", screen)
        terminal.type(*to_tools)
        terminal.expect("by tool")
        terminal.wait_quiet()
        lines = terminal.text().splitlines()
        heading = next(i for i, line in enumerate(lines) if " errors " in line)
        first, second = lines[heading + 1].split(), lines[heading + 2].split()
        tool, calls, errors = _row(first)
        assert (tool, errors) == ("Edit", 3)
        assert calls >= errors
        assert _row(second)[2] < 3
        terminal.type("q", "q", "q", "q")


def _row(tokens: list[str]) -> tuple[str, int, int]:
    """Name, calls and errors of a row of the statistics."""
    tokens = [word for word in tokens if word != "▌"]
    return tokens[0].lstrip("▌"), int(tokens[1]), int(tokens[2].replace("·", "0"))
