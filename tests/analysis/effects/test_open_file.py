"""Edits without a path: of the file that the program had open (SWE-agent)."""

from __future__ import annotations

from typing import Any

import pytest

from tracetui.analysis.effects import Kind
from tracetui.analysis.effects.paths import Place
from tracetui.analysis.effects.tools import call_effects, in_open_file


@pytest.mark.parametrize(
    ("name", "arguments", "added", "removed"),
    [
        ("edit", "edit 2:3\none\ntwo\nend_of_edit\n", 2, None),
        ("edit", {"start_line": 2, "end_line": 3, "replacement_text": "one\ntwo"}, 2, None),
        ("edit", {"search": "one", "replace": "two"}, 1, 1),
        ("insert", {"text": "one\ntwo"}, 2, 0),
    ],
)
def test_an_edit_without_a_path_changes_the_open_file(
    name: str, arguments: Any, added: int, removed: int | None
) -> None:
    (effect,) = call_effects(name, in_open_file(name, arguments, "a.py"), Place("/shop", "/shop"))
    assert (effect.kind, effect.target, effect.added, effect.removed) == (Kind.EDIT, "/shop/a.py", added, removed)
