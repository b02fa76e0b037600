"""Texts by lines, then by words; nothing is lost, and crumbs are joined."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tracetui.diff.align import Hunk, Line, text_diff

PARTS = ["Paris", " ", "\n", "2023", ",", "東京", "\r", "a long line of words", ""]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


def mark_changes(line: Line) -> str:
    return "".join(f"[{piece.text}]" if piece.changed else piece.text for piece in line)


def side(hunks: list[Hunk], name: str) -> str:
    return "\n".join("".join(piece.text for piece in line) for hunk in hunks for line in getattr(hunk, name))


@settings(max_examples=examples(300))
@given(TEXTS, TEXTS)
def test_hunks_contain_both_texts_in_full(a: str, b: str) -> None:
    diff = text_diff(a, b)

    assert side(diff.hunks, "a") == a
    assert side(diff.hunks, "b") == b
    assert all(hunk.a == hunk.b for hunk in diff.hunks if hunk.same)
    assert all(hunk.same != following.same for hunk, following in zip(diff.hunks, diff.hunks[1:], strict=False))
    assert (not diff.changed) == (a == b)
    assert sum(len(hunk.a) for hunk in diff.hunks) == a.count("\n") + 1


def test_a_word_is_a_word() -> None:
    (hunk,) = text_diff("Paris, since 2023", "Paris, since 2024").hunks

    assert [mark_changes(line) for line in hunk.a] == ["Paris, since [2023]"]
    assert [mark_changes(line) for line in hunk.b] == ["Paris, since [2024]"]


def test_hunks_have_line_numbers() -> None:
    hunks = text_diff("same\nold\nsame too", "new\nsame\nsame too").hunks

    assert [(hunk.same, hunk.at_a, hunk.at_b, len(hunk.a), len(hunk.b)) for hunk in hunks] == [
        (False, 0, 0, 0, 1),
        (True, 0, 1, 1, 1),
        (False, 1, 2, 1, 0),
        (True, 2, 2, 1, 1),
    ]


def test_crumbs_between_changes_are_joined() -> None:
    (hunk,) = text_diff("we went to the old town by bus then home", "we went to a new city by bus then home").hunks

    assert [mark_changes(line) for line in hunk.a] == ["we went to [the old town] by bus then home"]


def test_lines_without_common_words_are_replaced() -> None:
    (hunk,) = text_diff("alpha beta gamma delta", "one two three four").hunks

    assert [mark_changes(line) for line in hunk.a] == ["[alpha beta gamma delta]"]


def test_scripts_without_blanks_are_compared_by_character() -> None:
    (hunk,) = text_diff("東京都の天気は晴れ", "東京都の天気は雨降").hunks

    assert [mark_changes(line) for line in hunk.a] == ["東京都の天気は[晴れ]"]


def test_one_endless_line_is_compared_within_bounds() -> None:
    words = [f"word{i}" for i in range(30_000)]
    other = [*words[:10_000], "changed", *words[10_001:20_000], "again", *words[20_001:]]

    diff = text_diff(" ".join(words), " ".join(other))

    assert sum(piece.changed for piece in diff.hunks[0].a[0]) == 2
