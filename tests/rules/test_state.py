"""No format has state in the process: what must live across calls belongs to the caller (`CACHE`, `SHARED`)."""

from __future__ import annotations

from typing import Final

import pytest

from tests.rules.state import process_state
from tests.shared import ROOT

SOURCE: Final = ROOT / "src" / "tracetui"
ALLOWED: Final = {
    ("formats/base.py", "_is_composed"): "by the class of a format",
    ("formats/guard.py", "_is_built_in"): "by the class of a format",
    ("formats/schema.py", "_shape"): "by a declared class",
    ("formats/schema.py", "_MEMBERS"): "by a declared type",
    ("formats/schema.py", "_closed_struct"): "by a declared class",
    ("formats/registry.py", "_plugins"): "by the packages that are installed",
    ("formats/registry.py", "load"): "by the name of a format",
    ("formats/registry.py", "formats"): "by the packages that are installed",
}
"""State that depends on no file, and why it is none of a run."""


def test_formats_hold_no_process_wide_state() -> None:
    lines = {
        (path.relative_to(SOURCE).as_posix(), name): line
        for path in sorted((SOURCE / "formats").rglob("*.py"))
        for line, name in process_state(path.read_text(encoding="utf-8"))
    }

    assert {f"{path}:{line}: {name}" for (path, name), line in lines.items() if (path, name) not in ALLOWED} == set()
    assert lines.keys() == ALLOWED.keys(), "an exception that nothing needs"


@pytest.mark.parametrize(
    "source",
    [
        "_CACHE = {}\ndef f(x):\n    _CACHE[x] = 1",
        "_CACHE: dict[str, int] = {}\ndef f(x):\n    return _CACHE.setdefault(x, 1)",
        "_CACHE = set()\nclass A:\n    def f(self, x):\n        _CACHE.add(x)",
        "_SEEN = []\ndef f(x):\n    def g():\n        del _SEEN[0]\n    g()",
        "from other import CACHE\ndef f(x):\n    CACHE.clear()",
        "_last = None\ndef f(x):\n    global _last\n    _last = x",
        "@lru_cache(9)\ndef f(x):\n    return x",
        "@functools.cache\ndef f(x):\n    return x",
        "class A:\n    seen = {}\n    @classmethod\n    def f(cls, x):\n        cls.seen[x] = 1",
    ],
)
def test_state_is_found(source: str) -> None:
    assert list(process_state(source))


@pytest.mark.parametrize(
    "source",
    [
        "_TABLE = {'a': 1}\ndef f(x):\n    return _TABLE.get(x)",
        "def f(x):\n    cache = {}\n    cache[x] = 1",
        "_TABLE = {}\ndef f(_TABLE, x):\n    _TABLE[x] = 1",
        "class A:\n    def f(self, x):\n        self.seen[x] = 1",
    ],
)
def test_what_is_no_state_is_left_alone(source: str) -> None:
    assert not list(process_state(source))
