"""Markdown, code and edits as styled rows: safe, within the width, and complete."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import text_of_line
from tracetui.analysis.effects import edits_of
from tracetui.text import UNSAFE
from tracetui.views.detail.transcript import edit_lines, edit_source, markdown, prose
from tracetui.views.rows import STYLES, Line, width_of
from tracetui.views.stack import TextKey, TextRows

TEXT = """# Result

Some **bold** and `code`, a [link](http://a.b) and <b>html</b>.
Next line.

- one
  - two
1. three

> quoted

```python
def f():
    return 1  # why
```

| a | b |
|---|---|
| 1 | long |
"""


def styles(lines: list[Line], text: str) -> set[str]:
    return {piece.style for line in lines for piece in line if piece.text.strip() == text}


def test_markdown_is_rendered_in_our_styles() -> None:
    lines = markdown(TEXT, 50)
    assert [text_of_line(line).rstrip() for line in lines] == [
        "Result", "",
        "Some bold and code, a link (http://a.b) and", "<b>html</b>.", "Next line.", "",
        "· one", "  · two", "", "1. three", "",
        "│ quoted", "",
        "│ def f():", "│     return 1  # why", "",
        "a │ b", "1 │ long",
    ]  # fmt: skip
    assert styles(lines, "Result") == {"text bold"}
    assert styles(lines, "bold") == {"text bold"}
    assert styles(lines, "code") == {"role.tool"}
    assert styles(lines, "link") == {"accent"}
    assert styles(lines, "def") == {"json.word"}
    assert styles(lines, "# why") == {"dim"}


def test_text_without_markup_and_very_long_text_stay_as_they_are() -> None:
    assert isinstance(prose("2 * 3 = 6, snake_case and a > b", 40, name="a"), TextRows)
    assert isinstance(prose("**a** " * 10_000, 40, name="a"), TextRows)


def test_long_text_folds_and_search_finds_the_folded_part() -> None:
    text = "\n".join(f"- item {i}" for i in range(30))
    rows = prose(text, 40, name="a", most=12)
    assert len(rows) == 13
    assert "item 29" in rows.plain(12)
    key = rows.key(12)
    assert key == TextKey("a", -1)
    assert len(prose(text, 40, name="a", most=12, opened=frozenset({key}))) == 30


def test_entities_and_code_of_hostile_text_pass_the_gate() -> None:
    text = "**a** &#27;[31m &#x202e; `\x1b]0;x\x07`\n\n```python\n'\x1b[31m\u202e'\n```\n<script>\x1b</script>"
    plain = "\n".join(text_of_line(line) for line in markdown(text, 60))
    assert not UNSAFE.search(plain.replace("\n", ""))


@given(
    st.text(st.sampled_from("ab *_`#>-|1.[]()\n\t&;<~\x1b\u202eé漢\u0301") | st.characters(), max_size=200),
    st.integers(8, 60),
)
def test_any_text_is_drawn_safely_within_the_width(text: str, width: int) -> None:
    for line in markdown(text, width):
        assert not any(UNSAFE.search(piece.text) for piece in line)
        assert all(style in STYLES for piece in line for style in piece.style.split())
        if len(line) and width_of(line) > width:  # deep lists keep some room for their text
            assert width_of(line[:-1]) + 8 >= width - 8


def test_an_edit_is_a_unified_diff() -> None:
    edits = edits_of({"file_path": "src/a.py", "old_string": "one\nold", "new_string": "one\nnew \x1b[31m"})
    lines = edit_lines(edits, 40)
    assert [text_of_line(line).rstrip() for line in lines] == [
        "src/a.py  +1 −1", "  one", "− old", "+ new ␛[31m",
    ]  # fmt: skip
    assert [line[-1].style for line in lines] == ["dim", "sec", "diff.rem.line", "diff.add.line"]
    assert edit_source(edits) == "src/a.py\n one\n-old\n+new \x1b[31m"
