"""The parse ledger in words: what of a run or a directory was understood, and what was not."""

from __future__ import annotations

from math import floor
from typing import Final

from tracetui.model import Ledger
from tracetui.model.ledger import Kinds
from tracetui.text import Clean, cells, grouped
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line

_NAMED: Final = 3
"""Kinds and versions that are named."""
_NAME: Final = 40
_BYTES: Final = " of bytes"
"""Of what the share is told; left out where there is no room."""


def ledger_words(ledger: Ledger, *, glyphs: Glyphs = UNICODE, width: int | None = None) -> Clean:
    """``understood 99.2 % of bytes · unknown kinds 3 (weather ×2 …) · torn lines 1 · writer version 2.1.197``.

    What there is none of is left out, but for the first. For so many cells fewer kinds, fields and versions are named.
    """
    words = Clean("")
    for most, of_what in ((_NAMED, _BYTES), (2, _BYTES), (1, _BYTES), (1, ""), (0, _BYTES), (0, "")):
        words = _ledger_words(ledger, glyphs, most, of_what)
        if width is None or cells(words) <= width:
            break
    return words


def _ledger_words(ledger: Ledger, glyphs: Glyphs, most: int, of_what: str) -> Clean:
    words = [f"understood {share(ledger.share, glyphs)}{of_what}"]
    for what, counted in (("kinds", ledger.kinds), ("fields", ledger.fields)):
        if counted:
            named = f" ({_commonest(counted, glyphs, most)})" if most else ""
            words.append(f"unknown {what} {grouped(len(counted))}{named}")
    if ledger.torn:
        words.append(f"torn lines {grouped(ledger.torn)}")
    if ledger.writers:
        words.append(_writers(ledger.writers, most))
    return Clean(f" {glyphs.dot} ".join(words))


def share(part: float | None, glyphs: Glyphs = UNICODE) -> str:
    """A part of a whole, cut after the tenth of a percent: ``100 %`` only for all of it."""
    return glyphs.unsaid if part is None else "100 %" if part == 1 else f"{floor(part * 1000) / 10:.1f} %"


def _commonest(counted: Kinds, glyphs: Glyphs, most: int) -> str:
    found = sorted(counted, key=lambda one: (-one[1], one[0]))
    named = [f"{one_line(name, _NAME)} {glyphs.times}{grouped(count)}" for name, count in found[:most]]
    return ", ".join(named) + (f" {glyphs.cut}" if len(found) > most else "")


def _writers(writers: tuple[str, ...], most: int) -> str:
    """The latest ones."""
    if not most:
        return f"{grouped(len(writers))} writer version{'s' if len(writers) > 1 else ''}"
    named = ", ".join(one_line(writer, _NAME) for writer in writers[-most:])
    more = len(writers) - most
    return f"writer version{'s' if len(writers) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")
