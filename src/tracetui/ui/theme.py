"""Themes: the only mapping of style names to colors.

Every text color has a contrast of at least 4.5:1 on each of its backgrounds, every bar one of 3:1; glyphs and letters
repeat the information of colors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from rich.color import Color
from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

from tracetui.views.glyphs import UNICODE, Glyphs


def _tints(colors: str, *, dark_text: str, light_text: str = "ffffff", on_dark: str = "") -> dict[str, str]:
    """Styles of the contents of a context, as blocks and as grounds of text; `on_dark`: those with light text."""
    tints = dict(enumerate(colors.split()))
    grounds = {
        f"on.tint.{i}": f"{light_text if str(i) in on_dark else dark_text} on {color}" for i, color in tints.items()
    }
    return {f"tint.{i}": color for i, color in tints.items()} | grounds


_DARK: Final = {
    "bg": "10131a", "surface": "181c25", "raised": "222834", "line": "2f3744", "sel": "243352", "selq": "1d2431",
    "text": "dce1ea", "sec": "b3bccb", "dim": "95a0b1", "accent": "82aaff", "key": "82aaff",
    "onaccent": "10131a on 82aaff",
    "status.ok": "4fc1b0", "status.error": "ff7b72", "status.running": "e6c45f", "status.paused": "9fb4ff",
    "status.cancelled": "b3bccb", "status.warn": "f2a65a", "status.unknown": "95a0b1",
    "role.user": "7fb8f0", "role.assistant": "dce1ea", "role.system": "b9a3e3", "role.tool": "6cc3d5",
    "role.reasoning": "9d9fc6", "kind.model": "b8a4ff", "kind.tool": "6cc3d5", "kind.agent": "8fb4ee",
    "kind.policy": "e39cc4", "kind.hook": "b3bccb",
    "bar.model": "8d79e0", "bar.tool": "3f97ab", "bar.agent": "6784b8", "bar.policy": "c077a2", "bar.error": "f0605a",
    "bar.error.part": "f0605a on 6784b8",
    "bar.running": "c9a63f",
    "diff.add": "6fd6c6", "diff.rem": "ffa28c", "diff.chg": "e6c45f",
    "diff.add.line": "dce1ea on 0f2f36", "diff.add.word": "6fd6c6 on 14545c",
    "diff.rem.line": "dce1ea on 3a1d1b", "diff.rem.word": "ffa28c on 74302a", "diff.gap": "2f3744 on 181c25",
    "json.key": "8fb4ee", "json.string": "dce1ea", "json.number": "b8a4ff", "json.word": "b8a4ff",
    "json.punct": "95a0b1",
    "hit": "10131a on e6c45f", "hit.current": "10131a on ff9e4a", "mask": "c9a0dc on 2a2233",
    **_tints("5570a0 9a7fac 8370d8 3f97ab 2f7484 8f5a78 6f8f6a 6c7482", dark_text="10131a", on_dark="0457"),
}  # fmt: skip
_LIGHT: Final = {
    "bg": "fbfbf9", "surface": "eff0ee", "raised": "e3e5e6", "line": "cfd3d8", "sel": "d5e3fb", "selq": "e7eaee",
    "text": "1d2530", "sec": "4c5866", "dim": "566170", "accent": "1f5fc4", "key": "1f5fc4",
    "onaccent": "ffffff on 1f5fc4",
    "status.ok": "0b6e56", "status.error": "b3123c", "status.running": "7a5c00", "status.paused": "4a50c8",
    "status.cancelled": "4c5866", "status.warn": "98500a", "status.unknown": "566170",
    "role.user": "1a5fa8", "role.assistant": "1d2530", "role.system": "6a45b5", "role.tool": "0b6779",
    "role.reasoning": "585c8c", "kind.model": "6442c4", "kind.tool": "0b6779", "kind.agent": "2f5da3",
    "kind.policy": "9c2f72", "kind.hook": "4c5866",
    "bar.model": "7b66d6", "bar.tool": "2b7f94", "bar.agent": "5f7db0", "bar.policy": "b3578f", "bar.error": "d0304f",
    "bar.error.part": "d0304f on 5f7db0",
    "bar.running": "9a7610",
    "diff.add": "00615f", "diff.rem": "a01f35", "diff.chg": "765500",
    "diff.add.line": "1d2530 on dcf2f4", "diff.add.word": "00615f on a9e0e4",
    "diff.rem.line": "1d2530 on fdeae2", "diff.rem.word": "a01f35 on fbc9b6", "diff.gap": "cfd3d8 on eff0ee",
    "json.key": "2f5da3", "json.string": "1d2530", "json.number": "6442c4", "json.word": "6442c4",
    "json.punct": "566170",
    "hit": "1d2530 on f7d774", "hit.current": "1d2530 on ffb057", "mask": "7c3f99 on f1e6f6",
    **_tints("718aba a184b5 8f7ce0 3f93a8 559aab b77f9c 739269 8b929c", dark_text="10131a"),
}  # fmt: skip
_CONTRAST: Final = {
    **_DARK,
    "bg": "000000", "surface": "000000", "raised": "1a1a1a", "line": "8a8a8a", "sel": "003a8c", "selq": "303030",
    "text": "ffffff", "sec": "ffffff", "dim": "d0d0d0", "accent": "6fc3ff", "key": "6fc3ff",
    "onaccent": "000000 on 6fc3ff",
    "status.ok": "00ffaf", "status.error": "ff8c85", "status.running": "ffe066", "status.warn": "ffc266",
    "status.unknown": "d0d0d0", "status.cancelled": "ffffff", "json.punct": "d0d0d0", "json.string": "ffffff",
    "role.assistant": "ffffff", "role.reasoning": "c8caff", "kind.hook": "ffffff",
    "diff.add.line": "ffffff on 002a30", "diff.rem.line": "ffffff on 3c0f0c",
    "diff.add.word": "ffffff on 00666e", "diff.rem.word": "ffffff on 8a2c20",
    "bar.model": "b3a3ff", "bar.tool": "5fc4da", "bar.agent": "8fb0e6", "bar.policy": "ec9fcb", "bar.error": "ff8c85",
    "bar.error.part": "e0303c on 8fb0e6",
    **_tints("8fa6e8 d3b3ea b3a3ff 5fc4da 4fb0c4 dd9bbd a3cf9b aab3c2", dark_text="000000"),
}  # fmt: skip
_ANSI: Final = {
    "bg": "default", "surface": "default", "raised": "default", "line": "bright_black", "sel": "default",
    "selq": "default", "text": "default", "sec": "default", "dim": "default dim", "accent": "bright_blue",
    "key": "bright_blue", "onaccent": "default reverse",
    "status.ok": "green", "status.error": "bright_red bold", "status.running": "yellow", "status.paused": "bright_blue",
    "status.cancelled": "default", "status.warn": "yellow bold", "status.unknown": "default dim",
    "role.user": "bright_blue", "role.assistant": "default", "role.system": "magenta", "role.tool": "cyan",
    "role.reasoning": "default dim", "kind.model": "magenta", "kind.tool": "cyan", "kind.agent": "blue",
    "kind.policy": "bright_magenta", "kind.hook": "default",
    "bar.model": "magenta", "bar.tool": "cyan", "bar.agent": "blue", "bar.policy": "bright_magenta",
    "bar.error": "bright_red", "bar.error.part": "bright_red on blue", "bar.running": "yellow",
    "diff.add": "green", "diff.rem": "red", "diff.chg": "yellow",
    "diff.add.line": "default", "diff.add.word": "green reverse", "diff.rem.line": "default",
    "diff.rem.word": "red reverse", "diff.gap": "default",
    "json.key": "blue", "json.string": "default", "json.number": "magenta", "json.word": "magenta",
    "json.punct": "default dim",
    "hit": "black on yellow bold underline", "hit.current": "default reverse bold", "mask": "magenta",
    **_tints(
        "blue bright_magenta magenta cyan bright_blue red green bright_black", dark_text="black", light_text="white"
    ),
}  # fmt: skip


_ATTRIBUTES: Final = {
    "bold": Style(bold=True),
    "dim": Style(dim=True),
    "underline": Style(underline=True),
    "reverse": Style(reverse=True),
    "strike": Style(strike=True),
}


@dataclass(frozen=True)
class Palette:
    """Color set: resolves a style name on a background to a `rich` style."""

    name: str
    colors: dict[str, str] = field(hash=False)
    ansi: bool = False

    def style(self, names: str, background: str = "bg") -> Style:
        """Style of `names` (separated by spaces: ``dim bold``) on the background `background`."""
        return _resolve(self, names, background)


@lru_cache(4096)
def _resolve(palette: Palette, names: str, background: str) -> Style:
    # in a reversed row, a bar would look like its gap, and a color is a solid block: for a status and a hit only
    is_bar = palette.ansi and names.startswith("bar.")
    style = _background(palette, "bg" if is_bar else background)
    reversed_row = palette.ansi and background == "sel" and not is_bar
    for name in names.split():
        if name not in palette.colors:
            style += _ATTRIBUTES[name]
        elif name.startswith(("status.", "hit")) or not reversed_row:
            style += _foreground(palette, name)
    return style


def _background(palette: Palette, name: str) -> Style:
    if not palette.ansi:
        return Style.from_color(_color(palette.colors["text"]), _color(palette.colors[name]))
    plain = Style.parse("default on default")
    return plain + {"sel": Style(reverse=True), "selq": Style(underline=True), "raised": Style(reverse=True)}.get(
        name, Style()
    )


def _foreground(palette: Palette, name: str) -> Style:
    value = palette.colors[name]
    if palette.ansi:
        return Style.parse(value)
    color, _, background = value.partition(" on ")
    return Style.from_color(_color(color), _color(background) if background else None)


def _color(value: str) -> Color:
    return Color.parse(f"#{value}")


PALETTES: Final = {
    palette.name: palette
    for palette in (
        Palette("dark", _DARK),
        Palette("light", _LIGHT),
        Palette("high-contrast", _CONTRAST),
        Palette("ansi", _ANSI, ansi=True),
    )
}
"""Every theme by name."""


class Look(NamedTuple):
    """Independent display settings: palette, glyphs and time zone."""

    palette: Palette = PALETTES["dark"]
    glyphs: Glyphs = UNICODE
    zone: tzinfo = UTC
    """Time zone of displayed times."""


def textual_theme(palette: Palette) -> Theme:
    """Textual theme with the same colors, for the stock widgets (prompt, palette)."""
    if palette.ansi:
        return BUILTIN_THEMES["ansi-dark"]
    colors = {name: f"#{value}" for name, value in palette.colors.items() if " " not in value}
    return Theme(
        name=f"tracetui-{palette.name}", dark=palette.name != "light", primary=colors["accent"],
        accent=colors["accent"], foreground=colors["text"], background=colors["bg"], surface=colors["surface"],
        panel=colors["raised"], error=colors["status.error"], success=colors["status.ok"],
        warning=colors["status.warn"],
    )  # fmt: skip
