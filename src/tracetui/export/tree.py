"""Steps as a tree that folds, with bars on a time axis: the block `Tree`, as HTML and as aligned text.

The HTML needs no script: steps are ``<details>``, bars are inline SVG. It is written as it is made, so a tree of any
size takes little memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from tracetui.text import Clean, pad

MAX_NESTED: Final = 40
"""Depth below which steps aren't nested: browsers flatten deeper elements."""
_INDENTED: Final = 6
_SCALE: Final = 1000
_THINNEST: Final = 3
"""Width of the shortest bar, in thousandths of the axis."""
_TEXT_WIDTH: Final = 100
_SIGNS: Final = {"+": "add", "-": "rem"}
_CHANGED: Final = {"add": (re.compile(r"\{\+(.*?)\+\}"), "ins"), "rem": (re.compile(r"\[-(.*?)-\]"), "del")}


class Section(NamedTuple):
    """A part of the contents of a step: an input, a message, a change."""

    title: Clean
    lines: Sequence[Clean]
    kind: str = ""
    """``diff``, ``error`` or the style of a role (``role.user``)."""


class Bar(NamedTuple):
    """A bar on the axis: start and length as shares of it, and its style (``bar.model``); `thin` for containers."""

    start: float
    length: float
    style: str
    thin: bool = False


class Step(NamedTuple):
    """A row of a tree."""

    position: int
    end: int
    """The first position after its descendants."""
    depth: int
    anchor: str
    """Target of links: ASCII letters, digits and ``-``."""
    number: Clean
    glyph: Clean
    style: str
    name: Clean
    argument: Clean = Clean("")
    note: Clean = Clean("")
    time: Clean = Clean("")
    tokens: Clean = Clean("")
    bar: Bar | None = None
    sections: Sequence[Section] = ()
    failed: bool = False
    open: bool = False


class Tree(NamedTuple):
    """Steps in pre-order, read once. A text between them says which were left out."""

    steps: Iterable[Step | Clean]
    axis: Sequence[Clean] = ()
    """Labels from the start to the end of the time axis; empty: no bars."""
    timed: bool = True
    """Whether steps have times."""
    counted: bool = True
    """Whether steps have tokens."""


# ---- HTML


def tree_html(tree: Tree) -> Iterator[str]:
    """Write a tree as HTML, step by step."""
    columns = {"has-time": tree.timed, "has-tokens": tree.counted, "has-bar": bool(tree.axis)}
    yield f'<div class="{" ".join(["tree", *(name for name, there in columns.items() if there)])}">\n'
    if any(columns.values()):
        axis = "".join(f"<span>{escape(label)}</span>" for label in tree.axis)
        heads = '<span class="time">time</span>' if tree.timed else ""
        heads += '<span class="tokens">tokens</span>' if tree.counted else ""
        yield (
            f'<div class="line head"><span class="n">#</span><span class="step">step</span>{heads}'
            f'{f"""<span class="axis">{axis}</span>""" if axis else ""}</div>\n'
        )
    ends: list[int] = []
    for step in tree.steps:
        if not isinstance(step, Step):
            yield f'<p class="gap">{escape(step)}</p>\n'
            continue
        while ends and ends[-1] <= step.position:
            ends.pop()
            yield "</details>\n"
        yield from _step_html(step)
        if _nests(step):
            ends.append(step.end)
    yield "</details>\n" * len(ends) + "</div>"


def _nests(step: Step) -> bool:
    return step.end > step.position + 1 and step.depth < MAX_NESTED


def _step_html(step: Step) -> Iterator[str]:
    """A step; the element of one with descendants stays open."""
    line = "".join(_line_html(step))
    if not step.sections and not _nests(step):
        yield f'<div class="row" id="{step.anchor}"><div class="line{_failed(step)}">{line}</div></div>\n'
        return
    yield f'<details class="row" id="{step.anchor}"{" open" if step.open else ""}>'
    yield f'<summary class="line{_failed(step)}">{line}</summary>\n'
    if step.sections:
        body = "".join(_section_html(section) for section in step.sections)
        if _nests(step):
            yield f'<details class="fold body"><summary>contents</summary>{body}</details>\n'
        else:
            yield f'<div class="body">{body}</div>\n'
    if not _nests(step):
        yield "</details>\n"


def _failed(step: Step) -> str:
    return " failed" if step.failed else ""


def _line_html(step: Step) -> Iterator[str]:
    yield f'<a class="n" href="#{step.anchor}">{escape(step.number) or "·"}</a>'
    deeper = f"({step.depth}) " if step.depth > _INDENTED else ""
    indent = f" d{min(step.depth, _INDENTED)}" if step.depth else ""
    glyph = f'<span class="{_style(step.style)}">{escape(step.glyph)}</span>'
    argument = f' <span class="arg">{escape(step.argument)}</span>' if step.argument else ""
    note = f' <em class="note">{escape(step.note)}</em>' if step.note else ""
    yield f'<span class="step{indent}">{deeper}{glyph} <b>{escape(step.name)}</b>{argument}{note}</span>'
    if step.time:
        yield f'<span class="time">{escape(step.time)}</span>'
    if step.tokens:
        yield f'<span class="tokens">{escape(step.tokens)}</span>'
    if step.bar is not None:
        yield _bar_html(step.bar)


def _bar_html(bar: Bar) -> str:
    start = min(max(0.0, bar.start), 1.0) * _SCALE
    width = max(_THINNEST, min(bar.length, 1.0) * _SCALE)
    start = min(start, _SCALE - _THINNEST)
    place = 'y=".4" height=".2"' if bar.thin else 'y="0" height="1"'
    rect = f'<rect class="{_style(bar.style)}" x="{start:.4g}" width="{width:.4g}" {place}/>'
    return f'<svg class="bar" viewBox="0 0 {_SCALE} 1" preserveAspectRatio="none" aria-hidden="true">{rect}</svg>'


def _section_html(section: Section) -> str:
    style = f' class="{_style(section.kind)}"' if section.kind not in ("", "diff") else ""
    title = f"<h4{style}>{escape(section.title)}</h4>" if section.title else ""
    return f"{title}{pre_html(section.lines, section.kind)}" if section.lines else title


def pre_html(lines: Iterable[str], kind: str = "") -> str:
    """Preformatted lines; of a ``diff`` with changed lines and words marked."""
    if kind != "diff":
        return f"<pre>{chr(10).join(map(escape, lines))}</pre>"
    return f"<pre>{''.join(map(_changed, lines))}</pre>"


def _changed(line: str) -> str:
    kind, text = _SIGNS.get(line.lstrip()[:1], ""), escape(line) or " "
    if not kind:
        return f"<span>{text}</span>"
    words, tag = _CHANGED[kind]
    marked = words.sub(rf"<{tag}>\1</{tag}>", text)
    return f'<span class="{kind}">{marked}</span>'


def _style(name: str) -> str:
    return name.replace(".", "-")


# ---- text


def tree_text(tree: Tree) -> Iterator[str]:
    """Write a tree as aligned text of at most 100 cells: number, step, argument or error, time, tokens."""
    for step in tree.steps:
        if not isinstance(step, Step):
            yield step
            continue
        numbers = (f"  {step.time:>6}" if tree.timed else "") + (f" {step.tokens:>6}" if tree.counted else "")
        words = " · ".join(part for part in (step.note, step.argument) if part)
        indent = "  " * min(step.depth, _INDENTED)
        text = Clean(f"{step.number:>4} {indent}{step.glyph} {step.name}  {words}")
        yield f"{pad(text, _TEXT_WIDTH - len(numbers))}{numbers}".rstrip()
