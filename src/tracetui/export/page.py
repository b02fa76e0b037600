"""A document in blocks: what is exported is told once, and written as Markdown or HTML.

All text in blocks passed the gate; it is not escaped for either language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from tracetui.redact import Redactor
from tracetui.text import Clean


class Heading(NamedTuple):
    """A title (level 1), or that of a section (2) or of a part of one (3)."""

    level: int
    text: Clean


class Prose(NamedTuple):
    """A paragraph."""

    text: Clean


class Facts(NamedTuple):
    """Labelled values, each of one line or several."""

    rows: Sequence[tuple[str, Sequence[Clean]]]


class Table(NamedTuple):
    """Rows below headings; the columns in `numbers` are aligned at the right."""

    heading: Sequence[str]
    rows: Sequence[Sequence[Clean]]
    numbers: frozenset[int] = frozenset()


class Code(NamedTuple):
    """Lines as they are, in letters of one width. With a title they may be folded away."""

    lines: Sequence[Clean]
    title: Clean = Clean("")
    kind: str = ""
    """``diff`` where the lines are those of one."""


Block: TypeAlias = Heading | Prose | Facts | Table | Code


def masked_note(redactor: Redactor | None) -> Iterator[Block]:
    """What was masked of what stands above: the end of every document."""
    yield Heading(2, Clean("Redaction"))
    yield Prose(masked_words(redactor))


def masked_words(redactor: Redactor | None) -> Clean:
    """How much was masked, in a sentence."""
    if redactor is None:
        return Clean("Nothing was masked: this document may contain secrets.")
    total = sum(redactor.counts.values())
    if not total:
        return Clean("No secret was found. What is secret in another way was not recognised.")
    rules = ", ".join(f"{count} by {rule}" for rule, count in sorted(redactor.counts.items()))
    return Clean(f"{total} value{'' if total == 1 else 's'} masked: {rules}.")


def written(blocks: Iterable[Block]) -> list[Block]:
    """Blocks without those that are empty."""
    return [block for block in blocks if not isinstance(block, Facts | Table) or block.rows]
