"""Colors can be read: the contrast of text and bars in each theme, as WCAG 2 defines it."""

from __future__ import annotations

import pytest
from rich.color import Color

from tracetui.ui.theme import PALETTES, Palette

GROUNDS = ("bg", "surface", "raised", "sel", "selq")
RULES = ("line", "diff.gap")
"""Frames, guides and gaps: without them nothing is lost."""
TEXT = 4.5
GRAPHICS = 3.0
THEMES = [palette for palette in PALETTES.values() if not palette.ansi]


def luminance(color: Color) -> float:
    def linear(channel: int) -> float:
        value = channel / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, color.get_truecolor())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(palette: Palette, name: str, ground: str) -> float:
    """Contrast of a style on a ground: 1 to 21."""
    style = palette.style(name, ground)
    assert style.color is not None
    assert style.bgcolor is not None
    return ratio(style.color, style.bgcolor)


def ratio(color: Color, ground: Color) -> float:
    darker, lighter = sorted((luminance(color), luminance(ground)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_wcag() -> None:
    palette = Palette("test", {"text": "777777", "bg": "ffffff", "black": "000000"})
    assert contrast(palette, "black", "bg") == pytest.approx(21)
    assert contrast(palette, "text", "bg") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("palette", THEMES, ids=lambda palette: palette.name)
def test_text_has_contrast_on_every_ground(palette: Palette) -> None:
    texts = [
        name for name in palette.colors if not name.startswith(("bar.", "tint.")) and name not in (*RULES, *GROUNDS)
    ]
    low = {(name, ground): contrast(palette, name, ground) for name in texts for ground in GROUNDS}
    assert {key: round(value, 2) for key, value in low.items() if value < TEXT} == {}


@pytest.mark.parametrize("palette", THEMES, ids=lambda palette: palette.name)
def test_bars_and_tints_have_contrast(palette: Palette) -> None:
    bars = [name for name in palette.colors if name.startswith("bar.") and name != "bar.error.part"]
    contrasts = {(name, ground): contrast(palette, name, ground) for name in bars for ground in ("bg", "sel", "selq")}
    contrasts |= {(name, "bg"): contrast(palette, name, "bg") for name in palette.colors if name.startswith("tint.")}
    part, ground = palette.style("bar.error.part").color, palette.style("bar.error").bgcolor
    assert part is not None
    assert ground is not None
    contrasts["bar.error.part", "bg"] = ratio(part, ground)
    least = TEXT if palette.name == "high-contrast" else GRAPHICS
    assert {key: round(value, 2) for key, value in contrasts.items() if value < least} == {}
