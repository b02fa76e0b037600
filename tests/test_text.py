"""The gate: nothing that a terminal acts upon or that does not show passes, and nothing hides."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.shared import examples
from tracetui import text
from tracetui.text import Masked, clean_lines, exact, one_line, pad, truncate, truncate_middle, wrap

SEQUENCES = ["\x1b[31m", "\x9b", "\x07", "\x00", "\r", "\n", "\t", "\u202e", "\u2066", "\u200d", "\ufe0f", "\U000e0041"]
PILES = ["e" + "\u0301" * 9, "\u0e34" * 8, "\u064b" * 7, "\u20dd" * 6, "\u1161" * 9]
ODD = st.sampled_from([*SEQUENCES, *PILES, "\ud800", "漢", "👩", "🇨🇭", "\u3164", "\u2028", "…", "─────"])
TEXT = st.lists(st.one_of(st.text(max_size=12), ODD), max_size=12).map("".join)
WIDTH = st.integers(2, 40)
FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.fixture(scope="module")
def cleaned() -> list[str]:
    """Every character, cleaned."""
    return [exact(chr(code)) for code in range(sys.maxunicode + 1)]


def test_every_character_of_a_forbidden_category_is_replaced(cleaned: list[str]) -> None:
    assert [hex(code) for code, text in enumerate(cleaned) if not _is_safe(text)] == []


def test_every_character_without_width_is_a_mark_or_replaced(cleaned: list[str]) -> None:
    invisible = [
        hex(code)
        for code, text in enumerate(cleaned)
        if code >= 0x20 and cell_len(text) == 0 and not _stacks(chr(code))
    ]

    assert invisible == []


def _stacks(character: str) -> bool:
    """Marks and the vowels and finals of Korean belong to the character before them."""
    return unicodedata.category(character) in ("Mn", "Me", "Mc", "Cn") or "HANGUL J" in unicodedata.name(character)


def _is_safe(cleaned: str) -> bool:
    return all(unicodedata.category(character) not in FORBIDDEN for character in cleaned)


@settings(max_examples=examples(100))
@given(TEXT)
def test_clean_is_safe_idempotent_and_hides_nothing(foreign: str) -> None:
    cleaned = exact(foreign)

    assert _is_safe(cleaned)
    assert exact(cleaned) == cleaned
    assert foreign == "" or cleaned != ""
    assert not any(len(pile) > text.MAX_COMBINING for pile in _piles(cleaned))


def _piles(cleaned: str) -> list[str]:
    marks = "".join(c if unicodedata.category(c) in ("Mn", "Me") else "\n" for c in cleaned)
    return marks.split("\n")


@pytest.mark.parametrize(
    ("foreign", "cleaned"),
    [
        ("plain", "plain"),
        ("\x1b]52;c;QQ==\x07", "␛]52;c;QQ==␇"),
        ("a\rb\nc\x7f", "a␍b␊c␡"),
        ("\x9b31m", "<009B>31m"),
        ("\u202eabc\u2069", "<202E>abc<2069>"),
        ("a\tb", "a    b"),
        ("e" + "\u0301" * 7, "e" + "\u0301" * 4 + "<+3 marks>"),
        ("[b]markup[/b]", "[b]markup[/b]"),
        ("\ud800", "<D800>"),
    ],
)
def test_clean_replaces_by_what_shows(foreign: str, cleaned: str) -> None:
    assert exact(foreign) == cleaned


def test_clean_looks_at_no_more_than_its_limit() -> None:
    assert exact("x" * 10, 4) == "xxxx…"


@settings(max_examples=examples(100))
@given(TEXT)
def test_lines_are_cut_at_newlines_only(foreign: str) -> None:
    lines = clean_lines(Masked(foreign))

    assert len(lines) == foreign.count("\n") + 1
    assert all(_is_safe(line) for line in lines)


@settings(max_examples=examples(100))
@given(TEXT)
def test_one_line_is_safe(foreign: str) -> None:
    assert _is_safe(one_line(Masked(foreign)))
    assert len(one_line(Masked("x" * 5000), 100)) == 101


@settings(max_examples=examples(100))
@given(TEXT, WIDTH)
def test_wrapped_lines_fit_and_lose_nothing_but_blanks(foreign: str, width: int) -> None:
    cleaned = exact(foreign)
    lines = wrap(cleaned, width)

    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == cleaned.replace(" ", "")


@settings(max_examples=examples(100))
@given(TEXT, st.integers(0, 40))
def test_truncated_text_fits_and_says_that_it_was_cut(foreign: str, width: int) -> None:
    cleaned = exact(foreign)
    for cut in (truncate(cleaned, width), truncate_middle(cleaned, width)):
        assert cell_len(cut) <= max(width, 0)
        assert cut == cleaned or width == 0 or "…" in cut


@settings(max_examples=examples(100))
@given(TEXT, st.integers(0, 40), st.booleans())
def test_padded_text_has_exactly_the_width(foreign: str, width: int, right: bool) -> None:
    assert cell_len(pad(exact(foreign), width, right=right)) == width


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**30), 10**30)


@settings(max_examples=examples(100))
@given(NUMBERS)
def test_durations_take_are_short(ms: float) -> None:
    assert len(text.duration(ms)) <= (5 if not ms < 0 else 8)


@pytest.mark.parametrize(
    ("ms", "duration"),
    [
        (None, "—"),
        (0, "0ms"),
        (0.23, "230µs"),
        (820, "820ms"),
        (9100, "9.1s"),
        (62_000, "1m02s"),
        (11_220_000, "3h07m"),
        (38_520_000, "10h42"),
        (86_400_000 * 12.5, "12d"),
    ],
)
def test_durations_read_as_people_write_them(ms: float | None, duration: str) -> None:
    assert text.duration(ms) == duration


@pytest.mark.parametrize(
    ("number", "tokens"), [(None, "—"), (0, "0"), (346, "346"), (9_800, "9.8k"), (190_000, "190k"), (1_200_000, "1.2M")]
)
def test_tokens_read_as_people_write_them(number: int | None, tokens: str) -> None:
    assert text.tokens(number) == tokens


@settings(max_examples=examples(100))
@given(st.integers(-(10**40), 10**40))
def test_any_count_is_short(number: int) -> None:
    assert len(text.tokens(number)) <= 6
    assert text.count(number) != ""


@given(st.integers(0, 10**11))
def test_a_count_fits_its_column(number: int) -> None:
    assert len(text.count(number)) <= 4


@pytest.mark.parametrize(
    ("usd", "exact_cost", "estimated"),
    [
        (None, "—", "—"),
        (0.0, "$0.00", "~$0.00"),
        (0.00001, "$0.0000", "<$0.001"),
        (0.0012, "$0.0012", "~$0.001"),
        (0.0099, "$0.0099", "~$0.010"),
        (0.123, "$0.12", "~$0.12"),
        (1234.5, "$1234.50", "~$1234.50"),
    ],
)
def test_costs(usd: float | None, exact_cost: str, estimated: str) -> None:
    assert (text.cost(usd), text.cost(usd, estimated=True)) == (exact_cost, estimated)


def test_marks_that_stand_on_nothing_are_cut_too() -> None:
    marks = exact("\u0e34" * 9)
    assert [cell_len(truncate(marks, width)) <= width for width in range(5)] == [True] * 5


def test_the_emoji_style_of_a_symbol_is_dropped_and_other_selectors_are_visible() -> None:
    assert exact("🏗\ufe0f ok") == "🏗 ok"
    assert exact("🏗\ufe0f\ufe0f") == "🏗<FE0F>"
    assert exact("a\ufe0f\ufe01") == "a<FE0F><FE01>"
