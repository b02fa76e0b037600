"""The parse ledger in words: what of a run or a directory was understood, and what was not."""

from __future__ import annotations

from math import floor
from typing import Final

from tracetui.model import Ledger
from tracetui.text import Clean, grouped
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line

_KINDS: Final = 3
_WRITERS: Final = 3
_NAME: Final = 40


def ledger_words(ledger: Ledger, *, glyphs: Glyphs = UNICODE) -> Clean:
    """``understood 99.2 % of bytes · unknown kinds 3 (weather ×2 …) · torn lines 1 · writer version 2.1.197``.

    What there is none of is left out, but for the first.
    """
    words = [f"understood {share(ledger.share, glyphs)} of bytes"]
    if ledger.kinds:
        words.append(f"unknown kinds {grouped(len(ledger.kinds))} ({_kinds(ledger, glyphs)})")
    if ledger.torn:
        words.append(f"torn lines {grouped(ledger.torn)}")
    if ledger.writers:
        words.append(_writers(ledger.writers))
    return Clean(f" {glyphs.dot} ".join(words))


def share(part: float | None, glyphs: Glyphs = UNICODE) -> str:
    """A part of a whole, cut after the tenth of a percent: ``100 %`` only for all of it."""
    return glyphs.unsaid if part is None else "100 %" if part == 1 else f"{floor(part * 1000) / 10:.1f} %"


def _kinds(ledger: Ledger, glyphs: Glyphs) -> str:
    """The commonest ones."""
    most = sorted(ledger.kinds, key=lambda kind: (-kind[1], kind[0]))
    named = [f"{one_line(name, _NAME)} {glyphs.times}{grouped(count)}" for name, count in most[:_KINDS]]
    return ", ".join(named) + (f" {glyphs.cut}" if len(most) > _KINDS else "")


def _writers(writers: tuple[str, ...]) -> str:
    named = ", ".join(one_line(writer, _NAME) for writer in writers[-_WRITERS:])
    more = len(writers) - _WRITERS
    return f"writer version{'s' if len(writers) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")
