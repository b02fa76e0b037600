"""Blocks as Markdown. Foreign text can neither end its place nor become markup or a link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tracetui.export.page import Block, Code, Facts, Heading, Prose, Table

_SPECIAL: Final = re.compile(r"[\\`*_\[\]#|<>~&$@!]|:(?=//)|(?<=www)\.")
_LIST: Final = re.compile(r"^(\d*)([-+=.)])")
"""What would begin a list."""
_TICKS: Final = re.compile("`+")


def markdown(blocks: Iterable[Block]) -> Iterator[bytes]:
    """The document, block by block."""
    for block in blocks:
        yield "\n".join((*_block(block), "", "")).encode("utf-8", "replace")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {_inline(block.text)}"
    elif isinstance(block, Prose):
        yield _LIST.sub(r"\1\\\2", _inline(block.text))
    elif isinstance(block, Facts):
        yield from ("| | |", "|---|---|")
        for label, lines in block.rows:
            yield f"| **{_inline(label)}** | {'<br>'.join(map(_inline, lines))} |"
    elif isinstance(block, Table):
        yield _row(block.heading)
        yield "|" + "|".join("---:" if i in block.numbers else "---" for i in range(len(block.heading))) + "|"
        yield from map(_row, block.rows)
    else:
        yield from _code(block)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_inline, cells))} |"


def _code(block: Code) -> Iterator[str]:
    text = "\n".join(block.lines)
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    if block.title:
        yield f"<details><summary>{_inline(block.title)}</summary>\n"
    yield f"{fence}{block.kind or 'text'}"
    yield text
    yield fence
    if block.title:
        yield "\n</details>"


def _inline(text: str) -> str:
    """Text on one line, every character that Markdown acts upon escaped."""
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    """As a character reference where a backslash would still leave a mention, a link or a tag to other readers."""
    found = match.group()
    return f"&#{ord(found)};" if found in "<>&@:.|`" else f"\\{found}"
