"""Masks secrets and cleans the text of runs and spans for display, without loading their bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final

from tracetui import text as gate
from tracetui.model import Run
from tracetui.model import masked as masking
from tracetui.redact import ASCII_MASK, MASK, Excerpt, Redactor
from tracetui.text import Clean, Masked

_screen = Redactor()
_compared = Redactor(compared=True)
_current: ContextVar[Redactor | None] = ContextVar("redactor")


def choose(*, ascii_glyphs: bool) -> Redactor:
    """Set the mask glyphs for this process, wherever `using` sets no other redactor."""
    global _screen, _compared
    _screen = Redactor(mask=ASCII_MASK if ascii_glyphs else MASK)
    _compared = Redactor(compared=True, mask=ASCII_MASK if ascii_glyphs else MASK)
    return _screen


def current() -> Redactor | None:
    """The active redactor; None if masking is off."""
    return _current.get(_screen)


def comparing() -> Redactor | None:
    """The redactor for both sides of a comparison: equal secrets have equal numbers. None if masking is off."""
    redactor = current()
    return _compared if redactor is _screen else redactor


@contextmanager
def using(redactor: Redactor | None) -> Iterator[Redactor | None]:
    """Use another redactor (None: no masking) in this context."""
    token = _current.set(redactor)
    try:
        yield redactor
    finally:
        _current.reset(token)


def mask(text: str) -> Masked:
    """Mask the secrets of a header's text. Doesn't clean it."""
    redactor = _current.get(_screen)
    return _on_screen(redactor, text) if redactor is _screen else mask_text(redactor, text)


def mask_text(redactor: Redactor | None, text: str) -> Masked:
    """Mask the secrets of a header's text by `redactor`; None: exact. Doesn't clean it."""
    return Masked(text) if redactor is None else redactor.header(text)


@lru_cache(4096)
def _on_screen(redactor: Redactor, text: str) -> Masked:
    return redactor.header(text)


def excerpt(text: Excerpt, limit: int = 500) -> Clean:
    """An excerpt on one line, with its secrets and those of the text that it is from masked."""
    redactor = current()
    masked = Masked(text.exact) if redactor is None else redactor.excerpt(text)  # type: ignore[unmasked]  # asked for
    return gate.one_line(masked, limit)


def masked_headers(run: Run) -> Run:
    """Mask the headers of a run, which a diff compares as values."""
    redactor = comparing()
    return run if redactor is None else masking.masked_headers(run, redactor)


def clean(text: str, limit: int | None = None) -> Clean:
    """`tracetui.text.clean` with secrets masked."""
    return gate.clean(mask(text), limit)


def clean_lines(text: str) -> list[Clean]:
    """`tracetui.text.clean_lines` with secrets masked."""
    return gate.clean_lines(mask(text))


def one_line(text: str, limit: int = 500) -> Clean:
    """`tracetui.text.one_line` with secrets masked."""
    return gate.one_line(mask(text), limit)


def prose(text: str, limit: int = 500) -> Clean:
    """A message on one line, without Markdown's marks of headings, emphasis and code; a colon ends a heading."""
    plain = _CODE.sub(r"\1", _MARKUP.sub(r"\1", _HEADING.sub(_titled, mask(text))))
    return one_line(plain, limit)  # masked before and after: marks may end a secret, a heading may name it


def _titled(heading: re.Match[str]) -> str:
    title = heading[1] or heading[2]
    return f"{title} " if title[-1] in ".:!?…" else f"{title}: "


_HEADING: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+(\S[^\n]{0,300}?)|\*\*([^*\n]{1,300})\*\*:?)[ \t]*\n\s*(?:[-*+][ \t]+)?(?=\S)", re.MULTILINE
)
"""A heading, or a line in bold, with a list's first mark after it."""
_MARKUP: Final = re.compile(
    r"(?<!\S)#{1,6}\s+(?=\S)|```\w*\s|\s```(?!\S)|(?<!\*)\*\*(?=\S)([^*\n]{1,300})(?<=\S)\*\*(?!\*)"
)
_CODE: Final = re.compile(r"`([^`\n]{1,300})`")


def masked_line(text: str, redactor: Redactor | None, limit: int = 500) -> Clean:
    """`tracetui.text.one_line` with secrets masked by `redactor`; None: exact."""
    return gate.one_line(mask_text(redactor, text), limit)


def record(raw: bytes) -> bytes:
    """Mask a source record."""
    redactor = current()
    return raw if redactor is None else _record(redactor, raw)


@lru_cache(2)  # panes redraw the same record
def _record(redactor: Redactor, raw: bytes) -> bytes:
    return redactor.raw(raw)
