"""The page of a session: its story as one HTML file without a script.

It has the rows of the story on the screen (`views.timeline.story`), each with its contents in a fold: failures, edits
and plans are open, the rest is folded. Replies are Markdown, in which trace text can't become a link, an image or HTML.
The content security policy allows only the page's own style, by its hash.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from tracetui.analysis.effects import CHANGES, Outcome, RunEffects, edits_of, run_effects
from tracetui.analysis.effects.actions import Action, action_of
from tracetui.analysis.navigation import CALLS, IDLE_SECONDS, is_lane, is_prompt
from tracetui.analysis.statistics import estimate_of
from tracetui.export.page import (
    MAX_NESTED,
    MAX_READ,
    MAX_WRITTEN,
    Block,
    Code,
    Heading,
    Link,
    Prose,
    anchors,
    block_html,
    cut_lines,
    masked_sentence,
)
from tracetui.export.text import title, value_lines
from tracetui.masking import clean, clean_lines, one_line
from tracetui.model import Body, Operation, Reasoning, Run, Span, Status
from tracetui.model.span import text_of
from tracetui.redact import Redactor
from tracetui.text import Clean, cost, duration, exact, grouped, quantity, tokens
from tracetui.views.glyphs import UNICODE
from tracetui.views.labels import clock, ending_texts, errors_inside, run_sign, short_model
from tracetui.views.rows import Piece
from tracetui.views.timeline.chart import tokens_of
from tracetui.views.timeline.story import Entry, StoryRows, turn_label
from tracetui.views.timeline.work import reads_pieces, step_pieces

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_ROOM: Final = 400
"""Cells of a row before it is cut with ``…``; the page wraps it."""
_LINE: Final = 90
"""Cells of a row as text."""
_MAX_HEAD, _MAX_TAIL = 3_000, 1_000
"""Rows from the start and from the end."""
_MAX_REPLY: Final = 20_000
"""Characters of a reply or a prompt."""
_OPEN_LINES: Final = 60
"""Changed lines of the largest edit that is open."""
_MAX_PROMPTS: Final = 200
_DIFF_SIGNS: Final = {"+": "a", "-": "r"}


def story_page(
    run: Run, blocks: Iterable[Block], redactor: Redactor | None, *, links: Sequence[Link] = (), full: bool = False
) -> Iterator[str]:
    """Write a session as HTML, row by row; `blocks` are further facts, in a fold at the end.

    The run is masked before. `full`: all rows and contents, uncut.
    """
    yield _head(title(run))
    effects = run_effects(run)
    rows = StoryRows(run)
    rows = rows.refold(rows.all_folds)
    yield from _summary(run, rows, effects, links)
    page = _Page(run, rows, full=full)
    yield from page.prompts()
    yield from page.story()
    label = "files, context and facts"
    yield f'<details class="more"><summary><span class="g dim">·</span><span class="fold">{label}</span></summary>\n'
    for block in blocks:
        yield from block_html(block)
    yield "</details>\n"
    steps = f"{quantity(len(run.spans), 'record')}, all shown or folded" if not page.left_out else page.left_out
    yield (
        f"<footer>Made by tracetui from {steps}. {escape(masked_sentence(redactor))} ~ marks estimates. "
        "This page has no script and loads nothing.</footer>\n</body></html>\n"
    )


def story_blocks(run: Run, *, full: bool = False) -> Iterator[Block]:
    """The rows of a session below its prompts, as text. The run is masked before. `full`: all rows, uncut."""
    rows = StoryRows(run)
    rows = rows.refold(rows.all_folds)
    page = _Page(run, rows, full=full, room=None if full else _LINE)
    lines: list[Clean] = []
    before = None
    for entry in page.listed:
        if entry.what != "turn" or entry.depth:
            lines.append(page.text(entry))
            continue
        if lines:
            yield Code(lines)
            lines = []
        if before is not None and (idle := page.idle(before, entry)):
            yield Prose(idle)
        yield Heading(3, Clean(f"{entry.number}. {page.prompt(entry, 300)}"))
        before = entry
    if lines:
        yield Code(lines)
    if page.left_out:
        yield Prose(Clean(page.left_out))


@lru_cache(1)
def _style() -> tuple[str, str]:
    """The style, and its hash for the policy."""
    folder = files(__package__)
    palette = folder.joinpath("page.css").read_text("utf-8").partition("* { box-sizing")[0]
    style = palette + folder.joinpath("story.css").read_text("utf-8")
    return style, b64encode(sha256(style.encode()).digest()).decode()


def _head(name: Clean) -> str:
    style, digest = _style()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">\n'
        f"<title>{escape(name)} · tracetui</title>\n<style>{style}</style></head><body>\n"
    )


def _summary(run: Run, rows: StoryRows, effects: RunEffects, links: Sequence[Link]) -> Iterator[str]:
    summary = run.summary
    sign, style = run_sign(summary, summary.status)
    heading = one_line(summary.prompt, 300) or title(run)
    link_html = "".join(f' · <a href="{link.href}">{escape(link.text)}</a>' for link in links)
    began = clock(summary.started_at, summary.time_zone)
    yield (
        f'<p class="top"><span class="brand">tracetui</span> · <span class="m">{escape(title(run))}</span> · session '
        f'<span class="m">{escape(exact(summary.id, 80))}</span>{f" · {began}" if began else ""}{link_html}</p>\n'
        f"<h1>{escape(heading)}</h1>\n"
    )
    first, *more = ending_texts(summary, time.time())
    lead = [f'<span class="{_class(style)}">{escape(sign)} {escape(first)}</span>', *map(escape, more)]
    if summary.failed and summary.first_error is not None:
        lead.append(escape(one_line(summary.first_error.text, 200)))
    elif summary.errors:
        lead.append(escape(errors_inside(summary)))
    yield f'<p class="lead">{" · ".join(lead)}</p>\n<dl class="facts">'
    yield from (
        f"<div><dt>{name}</dt><dd>{value}{f' <small>{more}</small>' if more else ''}</dd></div>"
        for name, value, more in _facts(run, rows, effects)
    )
    yield "</dl>\n"


def _facts(run: Run, rows: StoryRows, effects: RunEffects) -> Iterator[tuple[str, str, str]]:
    """Label, value and addition of each figure that is recorded."""
    summary, work = run.summary, rows.work_time
    if work.worked > 0:
        yield "worked", duration(work.worked * 1000), f"of {duration(work.total * 1000)}"
    used, estimate = tokens_of(summary.usage), estimate_of(run)
    usd = summary.usage.cost_usd if summary.usage is not None else None
    spent = cost(usd) if usd is not None else cost(estimate.usd, estimated=True) if estimate is not None else ""
    counted = f"{tokens(used)} tokens" if used is not None else ""
    if spent or counted:
        yield ("cost", spent, counted) if spent else ("tokens", counted.removesuffix(" tokens"), "")
    done = [effect for call in effects.calls if call.outcome is Outcome.DONE for effect in call.effects]
    changed = [effect for effect in done if effect.kind in CHANGES]
    if changed:
        added = sum(effect.added or 0 for effect in changed)
        removed = sum(effect.removed or 0 for effect in changed)
        signs = f'<span class="add">+{grouped(added)}</span> <span class="rem">−{grouped(removed)}</span>'
        yield "files", grouped(len({effect.target for effect in changed})), signs
    commands = [call for call in effects.calls if call.command is not None]
    if commands:
        failed = sum(call.span.status is Status.ERROR for call in commands)
        yield "commands", grouped(len(commands)), f"{grouped(failed)} failed" if failed else ""
    if agents := sum(is_lane(run, i) for i in range(len(run.spans))):
        yield "agents", grouped(agents), ""
    if summary.model:
        yield "model", escape(short_model(summary.model)), ""


class _Page:
    """The rows of a story, written one by one."""

    def __init__(self, run: Run, rows: StoryRows, *, full: bool, room: int | None = None) -> None:
        """`room`: cells of a row before it is cut with ``…``; None: so many that a page wraps it."""
        self._run, self._rows, self._full, self._room = run, rows, full, room or _ROOM
        self._anchors = anchors(run)
        self._read, self._written = (MAX_READ, MAX_WRITTEN)
        self._skipped = 0
        self._called: set[int] = set()
        self.left_out = ""
        """How many contents were left out, in words; empty: none."""

    @property
    def listed(self) -> Iterator[Entry]:
        """The rows within the limits; counts the others."""
        entries = self._rows.entries
        limited = not self._full and len(entries) > _MAX_HEAD + _MAX_TAIL
        for index, entry in enumerate(entries):
            heads = entry.what == "lane" or (entry.what == "turn" and not entry.depth)
            if limited and _MAX_HEAD <= index < len(entries) - _MAX_TAIL and not heads:
                self._skipped += 1
            else:
                yield entry
        if self._skipped:
            note = f"contents of {quantity(self._skipped, 'row')} left out (size limit; export with --full)"
            self.left_out = f"{quantity(len(self._run.spans), 'record')}; {note}"

    def prompts(self) -> Iterator[str]:
        """The list of prompts."""
        turns = [entry for entry in self._rows.entries if entry.what == "turn" and not entry.depth]
        if len(turns) < 2:
            return
        count = f"{quantity(len(turns), 'prompt')}"
        more = f", the first {grouped(_MAX_PROMPTS)}" if len(turns) > _MAX_PROMPTS else ""
        yield f'<nav aria-label="Prompts"><span class="dim">{count}{more}</span><ol>\n'
        for entry in turns[:_MAX_PROMPTS]:
            yield (
                f'<li><span>{entry.number}</span><a href="#p{entry.number}">{escape(self.prompt(entry, 160))}</a>'
                f'<i></i><span class="t">{self._time(entry)}</span></li>\n'
            )
        yield "</ol></nav>\n"

    def prompt(self, entry: Entry, limit: int) -> Clean:
        return turn_label(self._run.spans[entry.position], limit)

    def _time(self, entry: Entry) -> Clean:
        seconds = self._rows.seconds_worked(entry)
        return duration(seconds * 1000) if seconds else Clean("")

    def story(self) -> Iterator[str]:
        """All turns with their rows."""
        before = None
        open_lanes: list[int] = []
        for entry in self.listed:
            while open_lanes and open_lanes[-1] >= entry.depth:
                open_lanes.pop()
                yield "</div></details>\n"
            if entry.what == "turn" and not entry.depth:
                yield from self._turn_head(entry, before)
                before = entry
                continue
            if entry.what == "lane" and len(open_lanes) < MAX_NESTED:
                open_lanes.append(entry.depth)
                summary = f"{self._call_anchor(entry)}{self._line(entry)}"
                yield f'<details {self._id(entry)}><summary>{summary}</summary><div class="agentbox">\n'
            else:
                yield from self._row(entry)
        yield "</div></details>\n" * len(open_lanes) + ("</section>\n" if before is not None else "")
        if self.left_out:
            yield f'<p class="cut">… {self.left_out.partition("; ")[2]} …</p>\n'

    def _turn_head(self, entry: Entry, before: Entry | None) -> Iterator[str]:
        """The idle time before a turn, and its prompt."""
        if before is not None:
            yield "</section>\n"
            if idle := self.idle(before, entry):
                yield f'<div class="idle">{idle}</div>\n'
        span = self._run.spans[entry.position]
        summary = self._run.summary
        facts = [clock(span.started_at, summary.time_zone, now=summary.started_at), self._time(entry)]
        text = self.prompt(entry, 300)
        yield (
            f'<section id="p{entry.number}"><div class="prompt" {self._id(entry)}><div class="who">'
            f"<span>{'user' if is_prompt(span) else ''}</span>"
            f'<span class="t">{" · ".join(filter(None, facts))}</span></div><h2>{escape(text)}</h2>'
        )
        if is_prompt(span) and (body := self._body(span)) is not None:
            prompt = "\n".join(map(text_of, body.input_messages)).strip()
            if len(prompt) > len(text) or "\n" in prompt:
                yield '<details><summary><span class="g"></span><span class="fold dim">whole prompt</span></summary>'
                yield f"{_markdown(prompt, self._full)}</details>"
        yield "</div>\n"

    def idle(self, before: Entry, entry: Entry) -> Clean:
        """The idle time between two turns; empty if there is none."""
        seconds = self._rows.seconds_between(before, entry)
        return Clean(f"idle {duration(seconds * 1000)}" if seconds is not None and seconds >= IDLE_SECONDS else "")

    def _id(self, entry: Entry) -> str:
        return f'id="{self._anchors[entry.position]}"'

    def _call_anchor(self, lane: Entry) -> str:
        """The anchor of the call of a sub-agent, which has no row of its own, at its first lane."""
        call = self._run.parent(lane.position)
        if call is None or call in self._called or self._run.spans[call].operation not in CALLS:
            return ""
        self._called.add(call)
        return f'<a id="{self._anchors[call]}"></a>'

    def _row(self, entry: Entry) -> Iterator[str]:
        span = self._run.spans[entry.position]
        if entry.what == "records":
            yield from self._records(entry)
            return
        body = self._body(span)
        if span.operation is Operation.CHAT and body is not None and span.status is not Status.ERROR:
            reply = "\n\n".join(filter(None, map(text_of, body.output_messages))).strip()
            if reply:
                html = _markdown(reply, self._full)
                self._written -= len(html)
                yield f'<div class="say" {self._id(entry)}>{html}</div>\n'
                return
        action = action_of(span, body) if span.operation is Operation.EXECUTE_TOOL else None
        inside = "".join(self._inside(entry, span, body, action))
        self._written -= len(inside)
        line = self._line(entry, action)
        if not inside:
            yield f'<div class="row" {self._id(entry)}>{line}</div>\n'
            return
        changed = (action.added or 0) + (action.removed or 0) if action is not None else 0
        opens = 0 < changed <= _OPEN_LINES or (action is not None and bool(action.todos))
        state = " open" if opens or span.status is Status.ERROR else ""
        yield f"<details {self._id(entry)}{state}><summary>{line}</summary>{inside}</details>\n"

    def _body(self, span: Span) -> Body | None:
        """The body of a span, within the limits."""
        if not self._full and min(self._read, self._written) <= 0:
            self._skipped += 1
            return None
        body = self._run.load(span)
        self._read -= len(body.raw)
        return body

    def _line(self, entry: Entry, action: Action | None = None) -> str:
        """Glyph, words and time of a row."""
        glyph, _, *pieces = self._pieces(entry, action)
        return (
            f'<span class="g {_class(glyph.style)}">{escape(glyph.text)}</span>'
            f'<span class="fold">{"".join(map(_piece, pieces))}</span><span class="t">{self._time(entry)}</span>'
        )

    def _pieces(self, entry: Entry, action: Action | None = None) -> list[Piece]:
        span = self._run.spans[entry.position]
        if entry.what == "reads":
            paths = [self._run.spans[i].preview for i in self._rows.reads(entry)]
            return reads_pieces(span, paths, self._room, UNICODE)
        if entry.what == "span":
            return step_pieces(span, action or action_of(span), self._room, UNICODE)
        return self._rows.sentence(entry, self._room)

    def text(self, entry: Entry) -> Clean:
        """Time, glyph and words of a row."""
        span = self._run.spans[entry.position]
        indent = "  " * min(max(0, entry.depth - 1), MAX_NESTED)
        if entry.what == "records":
            return Clean(f"{'':8}{indent}· {_record_text(entry)}")
        body = self._body(span) if entry.what == "span" and span.operation is Operation.EXECUTE_TOOL else None
        pieces = self._pieces(entry, action_of(span, body) if body is not None else None)
        return Clean(f"{self._time(entry):>6}  {indent}{''.join(piece.text for piece in pieces)}".rstrip())

    def _records(self, entry: Entry) -> Iterator[str]:
        names = [one_line(f"{span.name} {span.preview}", 160) for span in (self._run.spans[i] for i in entry.records)]
        lines = "<br>".join(map(escape, names[:_MAX_PROMPTS])) + ("<br>…" if len(names) > _MAX_PROMPTS else "")
        yield (
            f'<details {self._id(entry)}><summary><span class="g dim">·</span><span class="fold dim">'
            f'{_record_text(entry)}</span><span class="t"></span></summary>'
            f'<div class="in sec">{lines}</div></details>\n'
        )

    def _inside(self, entry: Entry, span: Span, body: Body | None, action: Action | None) -> Iterator[str]:
        """The contents of a row."""
        if entry.what == "reads":
            paths = (one_line(self._run.spans[i].preview, 300) for i in self._rows.reads(entry))
            yield f'<div class="in sec m">{"<br>".join(map(escape, paths))}</div>'
            return
        if body is None:
            return
        if span.operation is Operation.CHAT:
            parts = [part for message in body.output_messages for part in message.parts]
            thought = "\n\n".join(part.text for part in parts if isinstance(part, Reasoning)).strip()
            yield f'<div class="think">{_markdown(thought, self._full)}</div>' if thought else ""
            if span.error is not None:
                yield self._pre(clean_lines(span.error.text), "fail")
            return
        if action is not None and action.todos:
            state = {"done": "done", "now": "now", "open": "open"}
            items = (
                f'<li class="{state[todo.state]}">{escape(one_line(todo.text, 300))}</li>' for todo in action.todos
            )
            yield f'<ul class="todo">{"".join(items)}</ul>'
            return
        failed = span.status is Status.ERROR
        edits = edits_of(body.input) if action is not None and not failed else []
        for edit in edits:
            lines = self._cut([clean(line) for line in edit.lines])
            yield f'<div class="diff"><table>{"".join(map(_diff_row, lines))}</table></div>'
        if edits:
            return
        if body.input is not None:
            command = (
                [Clean(f"$ {line}") for line in clean_lines(action.object)] if action and action.verb == "ran" else None
            )
            yield self._pre(command or value_lines(body.input), "")
        if span.error is not None:
            yield self._pre(clean_lines(span.error.text), "fail")
        elif body.output is not None:
            yield self._pre(value_lines(body.output), "fail" if failed else "")

    def _pre(self, lines: Sequence[Clean], style: str) -> str:
        text = "\n".join(map(escape, self._cut(lines)))
        return f"<pre{f' class={style}' if style else ''}>{text}</pre>" if text.strip() else ""

    def _cut(self, lines: Sequence[Clean]) -> Sequence[Clean]:
        return lines if self._full else cut_lines(lines)


def _record_text(entry: Entry) -> str:
    """``2 hooks and 1 record of the program``."""
    hooks, others = entry.hooks, len(entry.records) - entry.hooks
    counts: list[str] = [quantity(hooks, "hook")] if hooks else []
    counts += [f"{quantity(others, 'record')} of the program"] if others else []
    return " and ".join(counts)


def _typed(line: Clean) -> Clean:
    return Clean(f"$ {line}")


def _class(style: str) -> str:
    """The classes of a style: ``status.error bold`` as ``status-error bold``."""
    return style.replace(".", "-")


def _piece(piece: Piece) -> str:
    return f'<span class="{_class(piece.style)}">{escape(piece.text)}</span>'


def _diff_row(line: Clean) -> str:
    kind = _DIFF_SIGNS.get(line[:1], "")
    sign = {"a": "+", "r": "−"}.get(kind, "")
    if line.startswith("@@"):
        return "<tr><td></td><td></td><td>…</td></tr>"
    text = line[1:] if line[:1] in "+- " else line
    return f'<tr class="{kind}"><td></td><td>{sign}</td><td>{escape(text)}</td></tr>'


@lru_cache(1)
def _parser() -> MarkdownIt:
    """Markdown without HTML, links, images and character references: trace text gets none of them."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["link", "image", "autolink", "entity", "html_block", "html_inline", "reference"])


def _markdown(text: str, full: bool) -> str:
    """A text as HTML; of a long one the beginning, with ``…``."""
    cut = not full and len(text) > _MAX_REPLY
    lines = clean_lines(text[:_MAX_REPLY] if cut else text)
    parser = _parser()
    parsed = parser.parse("\n".join(lines))
    for token in parsed:
        token.attrs, token.info = {}, ""
    return str(parser.renderer.render(parsed, parser.options, {})) + ("<p>…</p>" if cut else "")
