"""A document as a sequence of blocks, and the two languages it is written in: Markdown and HTML.

Text in blocks has passed the gate; the writers escape it. Trace text can neither end its block nor become markup or a
link. The HTML is one file without scripts or external resources, and follows the reader's light or dark theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple, TypeAlias

from tracetui.redact import Redactor
from tracetui.text import Clean


class Heading(NamedTuple):
    """A title (level 1), section heading (2) or subheading (3)."""

    level: int
    text: Clean
    anchor: str = ""
    """Target of a `Link`: ASCII letters, digits and ``-``."""


class Link(NamedTuple):
    """A cell that leads to a heading of the document."""

    text: Clean
    anchor: str


class Prose(NamedTuple):
    """A paragraph."""

    text: Clean


class Facts(NamedTuple):
    """Labeled values of one or more lines."""

    rows: Sequence[tuple[str, Sequence[Clean]]]


class Table(NamedTuple):
    """A table; the columns in `numbers` are right-aligned."""

    heading: Sequence[str]
    rows: Sequence[Sequence[Clean | Link]]
    numbers: frozenset[int] = frozenset()


class Code(NamedTuple):
    """Preformatted lines; with a title they are collapsible."""

    lines: Sequence[Clean]
    title: Clean = Clean("")
    kind: str = ""
    """Language of the lines: ``diff`` or empty."""


Block: TypeAlias = Heading | Prose | Facts | Table | Code


def masked_note(redactor: Redactor | None) -> Iterator[Block]:
    """The redaction section, which ends every document."""
    yield Heading(2, Clean("Redaction"))
    yield Prose(masked_words(redactor))


def masked_words(redactor: Redactor | None) -> Clean:
    """The number of masked values, as a sentence."""
    if redactor is None:
        return Clean("Not redacted: this document may contain secrets.")
    total = sum(redactor.counts.values())
    if not total:
        return Clean("No secrets detected. Only known patterns are checked; review before sharing.")
    rules = ", ".join(f"{count} by {rule}" for rule, count in sorted(redactor.counts.items()))
    return Clean(f"{total} value{'' if total == 1 else 's'} masked: {rules}.")


def without_empty(blocks: Iterable[Block]) -> list[Block]:
    """Blocks, empty ones dropped."""
    return [block for block in blocks if not isinstance(block, Facts | Table) or block.rows]


# ---- Markdown

_SPECIAL: Final = re.compile(r"[\\`*_\[\]#|<>~&$@!]|:(?=//)|(?<=www)\.")
_LIST: Final = re.compile(r"^(\d*)([-+=.)])")
"""Text that Markdown would read as the start of a list."""
_TICKS: Final = re.compile("`+")


def markdown(blocks: Iterable[Block]) -> Iterator[bytes]:
    """Write the blocks as Markdown, piece by piece."""
    for block in blocks:
        yield "\n".join((*_markdown_block(block), "", "")).encode("utf-8", "replace")


def _markdown_block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        anchor = f'<a id="{block.anchor}"></a>' if block.anchor else ""
        yield f"{'#' * block.level} {anchor}{_inline(block.text)}"
    elif isinstance(block, Prose):
        yield _LIST.sub(r"\1\\\2", _inline(block.text))
    elif isinstance(block, Facts):
        yield from ("| | |", "|---|---|")
        for label, lines in block.rows:
            yield f"| **{_inline(label)}** | {'<br>'.join(map(_inline, lines))} |"
    elif isinstance(block, Table):
        yield _markdown_row(block.heading)
        yield "|" + "|".join("---:" if i in block.numbers else "---" for i in range(len(block.heading))) + "|"
        yield from map(_markdown_row, block.rows)
    else:
        yield from _markdown_code(block)


def _markdown_row(cells: Iterable[str | Link]) -> str:
    return f"| {' | '.join(map(_markdown_cell, cells))} |"


def _markdown_cell(cell: str | Link) -> str:
    return f"[{_inline(cell.text)}](#{cell.anchor})" if isinstance(cell, Link) else _inline(cell)


def _markdown_code(block: Code) -> Iterator[str]:
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
    """Text on one line, every Markdown special character escaped."""
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    """A character reference where a backslash would still leave a mention, a link or a tag to some renderers."""
    found = match.group()
    return f"&#{ord(found)};" if found in "<>&@:.|`" else f"\\{found}"


# ---- HTML

_STYLE: Final = """
:root { color-scheme: light dark; --bg: #fbfbf9; --ink: #1d2530; --dim: #566170; --line: #cfd3d8; --code: #eff0ee;
  --add: #dcf2f4; --rem: #fdeae2; --mask: #7c3f99; }
@media (prefers-color-scheme: dark) { :root { --bg: #10131a; --ink: #dce1ea; --dim: #95a0b1; --line: #2f3744;
  --code: #181c25; --add: #0f2f36; --rem: #3a1d1b; --mask: #c9a0dc; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 600; overflow-wrap: normal; }
td:first-child { min-width: 8ch; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
pre { padding: .8rem; overflow-x: auto; background: var(--code); white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.45 ui-monospace, monospace; }
pre .add { background: var(--add); } pre .rem { background: var(--rem); }
summary { cursor: pointer; color: var(--dim); }
@media (max-width: 32rem) { body { margin: 1rem auto; padding: 0 .6rem; font-size: 13px; } h1 { font-size: 1.5rem; }
  th, td { padding-right: .5rem; } }
""".strip()
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_SIGNS: Final = {"+": "add", "-": "rem"}


def html(blocks: Iterable[Block], title: str) -> Iterator[bytes]:
    """Write the blocks as an HTML document, piece by piece."""
    yield _bytes(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
    )
    for block in blocks:
        yield _bytes("".join(_html_block(block)) + "\n")
    yield b"</body>\n</html>\n"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _html_block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        anchor = f' id="{block.anchor}"' if block.anchor else ""
        yield f"<h{block.level}{anchor}>{escape(block.text)}</h{block.level}>"
    elif isinstance(block, Prose):
        yield f"<p>{escape(block.text)}</p>"
    elif isinstance(block, Facts):
        yield "<table>"
        for label, lines in block.rows:
            yield f"<tr><th>{escape(label)}</th><td>{'<br>'.join(map(escape, lines))}</td></tr>\n"
        yield "</table>"
    elif isinstance(block, Table):
        yield f"<table>\n{_html_row(block.heading, block.numbers, 'th')}"
        yield from (_html_row(row, block.numbers, "td") for row in block.rows)
        yield "</table>"
    else:
        pre = "\n".join(map(_changed if block.kind == "diff" else escape, block.lines))
        made = f"<pre>{pre}</pre>"
        yield f"<details><summary>{escape(block.title)}</summary>\n{made}</details>" if block.title else made


def _html_row(cells: Iterable[str | Link], numbers: frozenset[int], tag: str) -> str:
    made = (
        f"<{tag}{' class=number' if i in numbers else ''}>{_html_cell(cell)}</{tag}>" for i, cell in enumerate(cells)
    )
    return f"<tr>{''.join(made)}</tr>\n"


def _html_cell(cell: str | Link) -> str:
    return f'<a href="#{cell.anchor}">{escape(cell.text)}</a>' if isinstance(cell, Link) else escape(cell)


def _changed(line: str) -> str:
    kind = _SIGNS.get(line.lstrip()[:1])
    return escape(line) if kind is None else f'<span class="{kind}">{escape(line)}</span>'
