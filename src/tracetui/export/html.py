"""Blocks as one HTML file: no script, nothing loaded from anywhere, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from tracetui.export.page import Block, Facts, Heading, Prose, Table

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
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { padding: .8rem; overflow-x: auto; background: var(--code); white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.45 ui-monospace, monospace; }
pre .add { background: var(--add); } pre .rem { background: var(--rem); }
summary { cursor: pointer; color: var(--dim); }
""".strip()
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_SIGNS: Final = {"+": "add", "-": "rem"}


def html(blocks: Iterable[Block], title: str) -> Iterator[bytes]:
    """The document, block by block."""
    yield _bytes(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
    )
    for block in blocks:
        yield _bytes("".join(_block(block)) + "\n")
    yield b"</body>\n</html>\n"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    elif isinstance(block, Prose):
        yield f"<p>{escape(block.text)}</p>"
    elif isinstance(block, Facts):
        yield "<table>"
        for label, lines in block.rows:
            yield f"<tr><th>{escape(label)}</th><td>{'<br>'.join(map(escape, lines))}</td></tr>\n"
        yield "</table>"
    elif isinstance(block, Table):
        yield f"<table>\n{_row(block.heading, block.numbers, 'th')}"
        yield from (_row(row, block.numbers, "td") for row in block.rows)
        yield "</table>"
    else:
        pre = "\n".join(map(_changed if block.kind == "diff" else escape, block.lines))
        made = f"<pre>{pre}</pre>"
        yield f"<details><summary>{escape(block.title)}</summary>\n{made}</details>" if block.title else made


def _row(cells: Iterable[str], numbers: frozenset[int], tag: str) -> str:
    made = (f"<{tag}{' class=number' if i in numbers else ''}>{escape(cell)}</{tag}>" for i, cell in enumerate(cells))
    return f"<tr>{''.join(made)}</tr>\n"


def _changed(line: str) -> str:
    kind = _SIGNS.get(line.lstrip()[:1])
    return escape(line) if kind is None else f'<span class="{kind}">{escape(line)}</span>'
