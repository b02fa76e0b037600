"""A document as a sequence of blocks, and the two languages it is written in: Markdown and HTML.

Text in blocks has passed the gate; the writers escape it. Trace text can neither end its block nor become markup or a
link. The HTML is one file that loads nothing: its content security policy allows only its own style and script, by
hash, and without the script everything is readable. It follows the reader's light or dark theme.

Steps are a tree that folds, with bars on a time axis: ``<details>`` and inline SVG, or aligned text. Documents are
written as they are made, so one of any size takes little memory.

Time and size are bounded; omitted steps are counted.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec

from tracetui.analysis.navigation import errors, initial_folds
from tracetui.export.json import moment
from tracetui.export.text import messages_lines, short, value_lines
from tracetui.masking import clean, clean_lines, one_line
from tracetui.model import Body, Message, Run, RunRef, Span, Status, quote_key
from tracetui.redact import Redactor
from tracetui.text import Clean, cells, duration, grouped, pad, quantity, tokens
from tracetui.views.glyphs import bar_style, kind
from tracetui.views.timeline.chart import Chart

# ---- trees


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


# ---- trees as HTML


def tree_html(tree: Tree) -> Iterator[str]:
    """Write a tree as HTML, step by step."""
    columns = {"has-time": tree.timed, "has-tokens": tree.counted, "has-bar": bool(tree.axis)}
    yield f'<div class="{" ".join(["tree", *(name for name, is_shown in columns.items() if is_shown)])}">\n'
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
    return f"<pre>{''.join(map(_changed_line, lines))}</pre>"


def _changed_line(line: str) -> str:
    kind, text = _SIGNS.get(line.lstrip()[:1], ""), escape(line) or " "
    if not kind:
        return f"<span>{text}</span>"
    pattern, tag = _CHANGED[kind]
    marked = pattern.sub(rf"<{tag}>\1</{tag}>", text)
    return f'<span class="{kind}">{marked}</span>'


def _style(name: str) -> str:
    return name.replace(".", "-")


# ---- trees as text


def tree_text(tree: Tree) -> Iterator[str]:
    """Write a tree as aligned text of at most 100 cells: number, step, argument or error, time, tokens."""
    for step in tree.steps:
        if not isinstance(step, Step):
            yield step
            continue
        numbers = (f"  {step.time:>6}" if tree.timed else "") + (f" {step.tokens:>6}" if tree.counted else "")
        detail = " · ".join(part for part in (step.note, step.argument) if part)
        indent = "  " * min(step.depth, _INDENTED)
        text = Clean(f"{step.number:>4} {indent}{step.glyph} {step.name}  {detail}")
        yield f"{pad(text, _TEXT_WIDTH - len(numbers))}{numbers}".rstrip()


# ---- blocks


class Heading(NamedTuple):
    """A title (level 1), section heading (2) or subheading (3)."""

    level: int
    text: Clean
    anchor: str = ""
    """Target of a `Link`: ASCII letters, digits and ``-``."""
    style: str = ""
    """Color of its first character, a glyph: ``status.error``."""


class Link(NamedTuple):
    """A cell or line that leads to a heading or step of the document, or of another page of the site."""

    text: Clean
    anchor: str
    page: str = ""
    """Relative path of the other page."""

    @property
    def href(self) -> str:
        """The URL, without special characters of HTML and Markdown."""
        return quote(self.page) + (f"#{self.anchor}" if self.anchor else "")


class Styled(NamedTuple):
    """A cell in the color of its meaning: ``status.error``."""

    text: Clean
    style: str


Cell: TypeAlias = Clean | Link | Styled


class Prose(NamedTuple):
    """A paragraph."""

    text: Clean


class Facts(NamedTuple):
    """Labeled values of one or more lines."""

    rows: Sequence[tuple[str, Sequence[Cell]]]


class Table(NamedTuple):
    """A table; the columns in `numbers` are right-aligned. Columns without any value aren't written."""

    heading: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int] = frozenset()


class Code(NamedTuple):
    """Preformatted lines; with a title they are collapsible."""

    lines: Sequence[Clean]
    title: Clean = Clean("")
    kind: str = ""
    """Language of the lines: ``diff`` or empty."""


Pages: TypeAlias = Mapping[RunRef, str]
"""The page of each run in a site, relative to the page that links to it."""
NO_PAGES: Final[Pages] = {}


def run_link(ref: RunRef, pages: Pages) -> Clean | Link:
    """The address of a run, with a link to its page if it has one."""
    address = clean(ref.address)
    return Link(address, "", pages[ref]) if ref in pages else address


Block: TypeAlias = Heading | Prose | Facts | Table | Code | Tree


def masked_note(redactor: Redactor | None) -> Iterator[Block]:
    """The redaction section, which ends every document."""
    yield Heading(2, Clean("Redaction"))
    yield Prose(masked_sentence(redactor))


def masked_sentence(redactor: Redactor | None) -> Clean:
    """The number of masked values, as a sentence."""
    if redactor is None:
        return Clean("Not redacted: this document may contain secrets.")
    total = sum(redactor.counts.values())
    if not total:
        return Clean("No secrets detected. Only known patterns are checked; review before sharing.")
    rules = ", ".join(f"{count} by {rule}" for rule, count in sorted(redactor.counts.items()))
    return Clean(f"{quantity(total, 'value')} masked: {rules}.")


def without_empty(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks, empty ones and empty columns dropped."""
    for block in blocks:
        if not isinstance(block, Facts | Table) or block.rows:
            yield _without_empty_columns(block) if isinstance(block, Table) else block


def _without_empty_columns(table: Table) -> Table:
    used = [i for i in range(len(table.heading)) if any(_text(row[i]) for row in table.rows)]
    if len(used) == len(table.heading):
        return table
    numbers = frozenset(at for at, i in enumerate(used) if i in table.numbers)
    return Table([table.heading[i] for i in used], [[row[i] for i in used] for row in table.rows], numbers)


def _text(cell: Cell) -> Clean:
    return cell.text if isinstance(cell, Link | Styled) else cell


# ---- Markdown

_PLACEHOLDERS: Final = "n|id|path|url|time|ip|hex|quoted|word|size|date|email|name|host|user|value"
_SPECIAL: Final = re.compile(
    rf"(?:<(?:{_PLACEHOLDERS})>)+"
    r"|https?://[\w./?=%#&+,:~-]+|[\\`*\[\]|~$@]|<(?=[\w/!?])|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])|!(?=\[)"
    r"|#(?=\d)|:(?=//)|(?<!\w):(?=[\w+-]+:)|(?<=www)\."
)
"""Text that Markdown, or a site that shows it, would read as markup, a mention, a link or an emoji."""
_LIST: Final = re.compile(r"^(\d+(?=[.)])|(?=[-+=#>]))")
"""Text that Markdown would read as the start of a list, a heading or a quotation."""
_TICKS: Final = re.compile("`+")
_PADDED: Final = 48
"""Cells to which a column is padded at most, so that a table reads well as text too."""


def markdown(blocks: Iterable[Block]) -> Iterator[bytes]:
    """Write the blocks as Markdown, piece by piece."""
    for block in blocks:
        yield "\n".join((*_markdown_block(block), "", "")).encode("utf-8", "replace")


def _markdown_block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        anchor = f'<a id="{block.anchor}"></a>' if block.anchor else ""
        yield f"{'#' * block.level} {anchor}{_inline(block.text)}"
    elif isinstance(block, Prose):
        yield _LIST.sub(r"\1\\", _inline(block.text))
    elif isinstance(block, Facts):
        for label, lines in block.rows:
            yield f"- **{_inline(label)}:** " + "  \n  ".join(map(_markdown_line, lines))
    elif isinstance(block, Table):
        yield from _markdown_table(block)
    elif isinstance(block, Tree):
        yield from _fenced(tree_text(block), "text")
    else:
        if block.title:
            yield f"**{_inline(block.title)}**\n"
        yield from _fenced(block.lines, block.kind or "text")


def _markdown_line(line: Cell) -> str:
    """A line of a list item: it can't begin another list or a heading."""
    return _LIST.sub(r"\1\\", _markdown_cell(line))


def _markdown_table(table: Table) -> Iterator[str]:
    rows = [[_inline(title) for title in table.heading], *([*map(_markdown_cell, row)] for row in table.rows)]
    widths = [min(_PADDED, max(3, *(cells(Clean(row[i])) for row in rows))) for i in range(len(table.heading))]
    lines = [_markdown_row(row, widths, table.numbers) for row in rows]
    rules = [f"{'-' * (width - 1)}:" if i in table.numbers else "-" * width for i, width in enumerate(widths)]
    yield from (lines[0], f"| {' | '.join(rules)} |", *lines[1:])


def _markdown_row(row: Sequence[str], widths: Sequence[int], numbers: frozenset[int]) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
        fill = " " * (width - cells(Clean(cell)))
        padded.append(fill + cell if i in numbers else cell + fill)
    return f"| {' | '.join(padded)} |"


def _markdown_cell(cell: Cell) -> str:
    return f"[{_inline(cell.text)}]({cell.href})" if isinstance(cell, Link) else _inline(_text(cell))


def _fenced(lines: Iterable[str], kind: str) -> Iterator[str]:
    text = "\n".join(lines)
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{kind}", text, fence)


def _inline(text: str) -> str:
    """Text on one line, with every character that Markdown would act on escaped."""
    single = {sign for sign in "$~" if text.count(sign) == 1}  # only pairs are markup
    return _SPECIAL.sub(lambda match: match.group() if match.group() in single else _escaped(match), text)


def _escaped(match: re.Match[str]) -> str:
    """Code for a varying part such as ``<n>`` and for an address; a character reference where a backslash would still
    leave a mention, a link or a tag to some renderers.
    """
    text = match.group()
    return f"`{text}`" if len(text) > 1 else f"&#{ord(text)};" if text in "<&@:.|`" else f"\\{text}"


# ---- HTML

_UNITS: Final = re.compile(r"(?<=\d) (?=\d{3}\b|(?:k?B|MB|GB|TB|tok|tokens?)\b)")
"""Blanks between a number and its unit, or inside a number: no line ends there."""
_MAX_SHORT: Final = 12
"""Characters of the longest text that isn't broken, such as the id of a cause or a duration."""


@lru_cache(1)
def _head() -> tuple[str, str]:
    """The head of a page up to its title, and the script that ends its body."""
    style, script = (files(__package__).joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    style_hash, script_hash = (b64encode(sha256(code.encode()).digest()).decode() for code in (style, script))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<style>{style}</style>\n"
    )
    return head, f"<script>{script}</script>\n"


def html(blocks: Iterable[Block], title: str) -> Iterator[bytes]:
    """Write the blocks as an HTML document, piece by piece."""
    head, script = _head()
    name = escape(title)
    yield _bytes(
        f"{head}<title>{name}</title>\n</head>\n<body>\n<header><b>tracetui</b><span>{name}</span></header>\n<main>\n"
    )
    for block in blocks:
        yield from map(_bytes, block_html(block))
        yield b"\n"
    yield _bytes(f"</main>\n{script}</body>\n</html>\n")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def block_html(block: Block) -> Iterator[str]:
    """Write a block as HTML."""
    if isinstance(block, Heading):
        anchor = f' id="{block.anchor}"' if block.anchor else ""
        yield f"<h{block.level}{anchor}>{_heading_text(block)}</h{block.level}>"
    elif isinstance(block, Prose):
        yield f"<p>{_html_text(block.text)}</p>"
    elif isinstance(block, Facts):
        yield "<dl>\n"
        for label, lines in block.rows:
            yield f"<dt>{escape(label)}</dt><dd>{'<br>'.join(map(_html_cell, lines))}</dd>\n"
        yield "</dl>"
    elif isinstance(block, Table):
        heads = (f"<th{_class_of(block, i, title)}>{escape(title)}</th>" for i, title in enumerate(block.heading))
        yield f"<table>\n<tr>{''.join(heads)}</tr>\n"
        yield from (_html_row(block, row) for row in block.rows)
        yield "</table>"
    elif isinstance(block, Tree):
        yield from tree_html(block)
    else:
        pre = pre_html(block.lines, block.kind)
        yield f"<details><summary>{escape(block.title)}</summary>\n{pre}</details>" if block.title else pre


def _heading_text(heading: Heading) -> str:
    text = _html_text(heading.text)
    if not heading.style:
        return text
    glyph, _, rest = text.partition(" ")
    return f'<span class="{heading.style.replace(".", "-")}">{glyph}</span> {rest}'


def _html_row(table: Table, row: Sequence[Cell]) -> str:
    html_cells = []
    for i, cell in enumerate(row):
        label = f' data-label="{escape(table.heading[i])}"' if i else ""
        html_cells.append(f"<td{_class_of(table, i, _text(cell))}{label}>{_html_cell(cell)}</td>")
    return f"<tr>{''.join(html_cells)}</tr>\n"


def _class_of(table: Table, column: int, text: str) -> str:
    if column in table.numbers:
        return " class=number"
    return " class=short" if len(text) <= _MAX_SHORT else ""


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f'<a href="{cell.href}">{_html_text(cell.text)}</a>'
    if isinstance(cell, Styled):
        return f'<span class="{cell.style.replace(".", "-")}">{_html_text(cell.text)}</span>'
    return _html_text(cell)


def _html_text(text: str) -> str:
    return escape(_UNITS.sub("\xa0", text))


MAX_HEAD: Final = 3_000
MAX_TAIL: Final = 1_000
MAX_FAILED: Final = 500
"""Steps listed from the start, from the end, and failed ones between them."""
MAX_READ: Final = 24_000_000
"""Characters of contents that are read for a document."""
MAX_WRITTEN: Final = 6_000_000
"""Characters of contents that are written; further steps have none. Half of them are for failed steps alone."""
MAX_LINES: Final = 120
MAX_SIZE: Final = 8_000
"""Lines and characters of a section."""
MAX_SECTIONS: Final = 30
_ROLES: Final = frozenset({"user", "assistant", "system", "tool"})
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9-]")


def run_tree(run: Run, *, full: bool = False, contents: bool = True) -> Tree:
    """The steps of a run with their bars, and with contents unless `contents` is False. `full`: all, uncut."""
    chart = Chart(run)
    axis = [Clean("0"), duration(chart.total_ms / 2), duration(chart.total_ms)] if chart.total_ms > 0 else []
    timed = any(span.duration_ms is not None for span in run.spans)
    return Tree(_steps(run, chart, full=full, contents=contents), axis, timed, chart.has_tokens)


def anchors(run: Run) -> list[str]:
    """The anchor of each span: ``step-3`` if the number is unique, else ``span-`` and its position from 1."""
    names, used = [], set[str]()
    for position, span in enumerate(run.spans):
        anchor = f"step-{span.step}" if span.is_step and span.step is not None else ""
        if not anchor or anchor in used or _NOT_IN_IDS.search(anchor):
            anchor = f"span-{position + 1}"
        used.add(anchor)
        names.append(anchor)
    return names


def ended(span: Span) -> Clean:
    """How a span ended: its error, its status unless ok, or its note."""
    message = span.error.text if span.error is not None else ""
    if span.status in (Status.OK, Status.UNKNOWN):
        return one_line(span.note, 80)
    if span.status is Status.ERROR and message:
        return one_line(message, 160)
    return one_line(f"{span.status.value}: {message}" if message else span.status.value, 160)


def _steps(run: Run, chart: Chart, *, full: bool, contents: bool) -> Iterator[Step | Clean]:
    failed = [run.index[span_id] for span_id in errors(run)]
    positions = range(len(run.spans)) if full else _selected(len(run.spans), failed)
    allowance = _Allowance(set(failed[:MAX_FAILED]), limited=not full)
    names, folds = anchors(run), initial_folds(run)
    first = _first_error(run, failed)
    before = -1
    for position in positions:
        if position > before + 1:
            yield _gap(position - before - 1)
        before = position
        sections = allowance.sections(run, position) if contents else ()
        yield _step(run, chart, position, names[position], sections, folds, first)
    if len(run.spans) > before + 1:
        yield _gap(len(run.spans) - before - 1)
    if allowance.skipped:
        yield Clean(f"… contents of {quantity(allowance.skipped, 'step')} left out (size limit; export with --full) …")


def _gap(number: int) -> Clean:
    return Clean(f"… {quantity(number, 'more step')} (export with --full) …")


def _selected(number: int, failed: Sequence[int]) -> Sequence[int]:
    if number <= MAX_HEAD + MAX_TAIL:
        return range(number)
    return sorted({*range(MAX_HEAD), *failed[:MAX_FAILED], *range(number - MAX_TAIL, number)})


def _first_error(run: Run, failed: Sequence[int]) -> int | None:
    error = run.summary.first_error
    if error is not None and error.span is not None and error.span in run.index:
        return run.index[error.span]
    return failed[0] if failed else None


def _step(
    run: Run,
    chart: Chart,
    position: int,
    anchor: str,
    sections: Sequence[Section],
    folds: frozenset[str],
    first_error: int | None,
) -> Step:
    span = run.spans[position]
    glyph, style = kind(span)
    extent, total = chart.extent(position), chart.tokens(position)
    bar = None
    if extent is not None and chart.total_ms > 0:
        start, end = extent
        length = 0.0 if end is None else end - start
        bar = Bar(start / chart.total_ms, length / chart.total_ms, bar_style(span), thin=run.sizes[position] > 1)
    return Step(
        position,
        position + run.sizes[position],
        run.depths[position],
        anchor,
        Clean(str(span.step)) if span.is_step and span.step is not None else Clean(""),
        glyph,
        style,
        one_line(span.name or "(no name)", 80),
        one_line(span.preview, 120),
        ended(span),
        duration(span.duration_ms) if span.duration_ms is not None else Clean(""),
        tokens(total) if total is not None else Clean(""),
        bar,
        sections,
        span.status is Status.ERROR,
        (run.sizes[position] > 1 and span.id not in folds) or position == first_error,
    )


# ---- contents


class _Allowance:
    """Contents of steps until the limits of a document are reached; `failed` steps have a part of their own."""

    def __init__(self, failed: set[int], *, limited: bool) -> None:
        self._failed, self._limited = failed, limited
        self._read = {True: MAX_READ, False: MAX_READ}
        self._written = {True: MAX_WRITTEN // 2, False: MAX_WRITTEN // 2}
        self.skipped = 0
        """Steps without contents because of the limits."""

    def sections(self, run: Run, position: int) -> Sequence[Section]:
        """The contents of a span; empty once the limits are reached."""
        kind = position in self._failed
        if self._limited and min(self._read[kind], self._written[kind]) <= 0:
            self.skipped += 1
            return ()
        body = run.load(run.spans[position])
        sections = list(span_sections(run, position, body, full=not self._limited))
        self._read[kind] -= len(body.raw) + _size(sections)
        if self._limited:
            sections = _cut_sections(sections)
        self._written[kind] -= _size(sections)
        return sections


def _size(sections: Iterable[Section]) -> int:
    return sum(len(line) + 1 for section in sections for line in section.lines)


def span_sections(run: Run, position: int, body: Body, *, full: bool) -> Iterator[Section]:
    """The contents of a span. Unless `full`, a model call has only the messages since the last reply."""
    span = run.spans[position]
    yield Section(Clean(""), list(_about(run, span)))
    if span.error is not None:
        yield Section(Clean("error"), clean_lines(span.error.text), "error")
    if body.traceback:
        yield Section(Clean("traceback"), clean_lines(body.traceback), "error")
    messages = body.input_messages if full else _new_messages(body.input_messages)
    if len(messages) < len(body.input_messages):
        before = len(body.input_messages) - len(messages)
        yield Section(Clean(f"… {grouped(before)} earlier messages, in earlier steps (export with --full) …"), ())
    yield from _messages_or_value(Clean("input"), messages, body.input)
    yield from _messages_or_value(Clean("output"), body.output_messages, body.output)
    for name in ("bindings", "checks", "links", "state", "attributes"):
        value = getattr(body, name)
        if value not in ((), {}, None):
            yield Section(Clean(name), value_lines(value))


def _about(run: Run, span: Span) -> Iterator[Clean]:
    details = [one_line(span.status_word, 80)] if span.status_word else []
    details += [Clean(span.status_source.label)] if span.status_source else []
    status = span.status.value + (f" ({', '.join(details)})" if details else "")
    yield Clean(f"{span.operation.value} · {status}")
    if (when := moment(span.started_at, zone=run.summary.time_zone)) is not None:
        yield Clean(f"started {when}")
    if span.usage:
        yield Clean(f"usage {short(msgspec.structs.asdict(span.usage))}")
    if span.input_hash:
        yield Clean(f"hash {one_line(span.input_hash, 200)}")
    yield clean(f"{run.summary.ref.address}/{quote_key(span.id)}")


def _new_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages after the last one of the model: the steps before have the others."""
    last = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :] or messages[-1:]


def _messages_or_value(title: Clean, messages: tuple[Message, ...], value: object) -> Iterator[Section]:
    if not messages and value is not None:
        yield Section(title, value_lines(value))
    for message in messages:
        role, *lines = messages_lines([message])
        kind = f"role.{message.role}" if message.role in _ROLES else ""
        yield Section(Clean(f"{title} · {role[1:-1]}"), lines, kind)


def _cut_sections(sections: Sequence[Section]) -> list[Section]:
    parts = [section._replace(lines=cut_lines(section.lines)) for section in sections[:MAX_SECTIONS]]
    if len(sections) > MAX_SECTIONS:
        more = grouped(len(sections) - MAX_SECTIONS)
        parts.append(Section(Clean(f"… {more} more parts (export with --full) …"), ()))
    return parts


def cut_lines(lines: Sequence[Clean]) -> Sequence[Clean]:
    """The first and last of too many or too long lines, and between them how many are left out."""
    if len(lines) <= MAX_LINES and sum(map(len, lines)) <= MAX_SIZE:
        return lines
    head = _take(lines)
    tail = _take(lines[len(head) :][::-1])[::-1]
    hidden = len(lines) - len(head) - len(tail)
    between = [Clean(f"… {quantity(hidden, 'more line')} (export with --full) …")]
    return [*head, *(between if hidden else []), *tail]


def _take(lines: Sequence[Clean]) -> list[Clean]:
    taken: list[Clean] = []
    room = MAX_SIZE // 2
    for line in lines[: MAX_LINES // 2]:
        if room <= 0:
            break
        cut = f"{line[:room]} … [{quantity(len(line), 'character')}; export with --full]"
        taken.append(line if len(line) <= room else Clean(cut))
        room -= len(line)
    return taken
