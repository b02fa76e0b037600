"""File edits in the arguments of tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from tracetui.analysis.effects import compare, edits_of

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** Add File: b.py\n+first\n*** End Patch\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "a.py", "old_string": "x\nold", "new_string": "x\nnew"},
        {"filePath": "a.py", "oldString": "x\nold", "newString": "x\nnew"},
        {"path": "a.py", "edits": [{"oldText": "x\nold", "newText": "x\nnew"}]},
    ],
)
def test_texts_before_and_after_become_a_diff(arguments: Any) -> None:
    (edit,) = edits_of(arguments)
    assert (edit.path, edit.lines, edit.added, edit.removed) == ("a.py", (" x", "-old", "+new"), 1, 1)


@pytest.mark.parametrize("arguments", [PATCH, {"input": PATCH}, {"command": ["apply_patch", PATCH]}])
def test_a_patch_is_one_edit_per_file(arguments: Any) -> None:
    assert [(edit.path, edit.lines) for edit in edits_of(arguments)] == [
        ("a.py", ("@@", "-old", "+new")),
        ("b.py", ("+first",)),
    ]


def test_a_written_file_is_added_as_a_whole() -> None:
    (edit,) = edits_of({"file_path": "a.py", "content": "one\ntwo\n"})
    assert edit.lines == ("+one", "+two")


@pytest.mark.parametrize(
    "arguments", [None, "ls", 5, [], {"command": "ls"}, {"path": "a"}, {"content": "a"}, {"edits": [3]}]
)
def test_other_arguments_are_no_edit(arguments: Any) -> None:
    assert edits_of(arguments) == []


def test_only_changed_lines_and_their_surroundings_are_shown() -> None:
    before = [str(i) for i in range(40)]
    after = [*before[:5], "new", *before[6:30], *before[31:]]
    lines = compare("\n".join(before), "\n".join(after))
    assert [line for line in lines if line[0] in "+-"] == ["-5", "+new", "-30"]
    assert sum(line.startswith("@@") for line in lines) == 2
    assert len(lines) < 20
    assert len(compare("a\n" * 5000, "b\n" * 5000)) == 10_000
