"""Labels for runs, spans, lists, numbers, times and parse coverage, equal on every screen.

Also status, outcome and scores of a run, with their signs and styles; and rows for panes without content: empty lists,
no matches, files that can't be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from math import floor
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui import text
from tracetui.analysis import spending
from tracetui.analysis.liveness import CurrentState, State, current_state, state_of_summary
from tracetui.formats import registry
from tracetui.masking import clean, clean_lines, one_line, prose
from tracetui.model import (
    Ledger,
    Operation,
    Outcome,
    Problem,
    RunRef,
    RunState,
    RunSummary,
    Score,
    Span,
    Status,
    StatusSource,
)
from tracetui.model.ledger import Kinds
from tracetui.model.span import PREVIEW
from tracetui.store.facts import total_tokens
from tracetui.text import Clean, age, cells, duration, grouped, pad, size, tokens, truncate_middle, wrap
from tracetui.views.glyphs import UNICODE, Glyphs, status_glyph
from tracetui.views.rows import Line, ListRows, Piece

if TYPE_CHECKING:
    from tracetui.analysis.arrangement import Arrangement


SHORT: Final = 20
"""Cells of an id beside a name."""
_HEAD: Final = 8
_RANDOM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}", re.I)
"""A UUID or an OpenTelemetry trace id: its head is distinctive."""


def run_label(run: RunSummary) -> Clean:
    """The name and label of a run: ``errors_task bad #2``."""
    return clean(" ".join(filter(None, (run.name, run.label))) or run.id, 200)


def short_id(ident: str, size: int = SHORT) -> Clean:
    """An id in at most `size` cells: the head of a random id, both ends of others."""
    cleaned = clean(ident, 200)
    if _RANDOM.fullmatch(cleaned):
        return Clean(cleaned[:_HEAD])
    return truncate_middle(cleaned, size)


def short_names(runs: Iterable[RunSummary]) -> dict[RunRef, str]:
    """Short names for the runs of a list: the shortest unique head of a random id, at least eight characters; other ids
    in full. Runs with the same id share a name.
    """
    ids = {run.ref: run.id for run in runs}
    ordered = sorted(set(ids.values()))
    shared = [0, *(_shared(first, second) for first, second in pairwise(ordered)), 0]
    heads = {ident: max(_HEAD, 1 + max(shared[i : i + 2])) for i, ident in enumerate(ordered)}
    return {ref: ident[: heads[ident]] if _RANDOM.fullmatch(ident) else ident for ref, ident in ids.items()}


def _shared(first: str, other: str) -> int:
    """Length of the common prefix of two ids."""
    return next((i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b), min(len(first), len(other)))


MAX_QUERY: Final = 200
"""Cells of a query in the title of a list."""


def filter_badge(query: str) -> list[Piece]:
    """The query of a filtered list, for its title."""
    return [Piece(Clean(" ")), Piece(Clean(f" f {one_line(query, MAX_QUERY)} "), "hit")]


def arrangement_title(arrangement: Arrangement, query: str, *, ungrouped: str, sort: str = "") -> Line:
    """The title of a list: how it is sorted, grouped and filtered.

    `ungrouped`: the default group. `sort`: a description of the sort order.
    """
    parts = [(sort or arrangement.sort) + (" reversed" if arrangement.reverse else "")]
    if arrangement.group not in (ungrouped, "none"):
        parts.append(f"by {arrangement.group}")
    if arrangement.failures:
        parts.append("failures only")
    if arrangement.new:
        parts.append("new only")
    title = Piece(Clean(" · ".join(parts)), "sec")
    return (title, *filter_badge(query)) if query else (title,)


def errors_inside(run: RunSummary) -> Clean:
    """How many spans failed in a run that did not fail itself: ``3 errors inside``."""
    return Clean(f"{text.quantity(run.errors or 0, 'error')} inside")


COPIES: Final = Clean("copied calls count in the original")
"""After the counts of a run of which another run counts a part."""


def number(value: float | None, glyphs: Glyphs = UNICODE) -> Clean:
    """A number as `tracetui.text.number` formats it; ``—`` for None."""
    return glyphs.missing if value is None else text.number(value)


def start_label(summary: RunSummary, *, now: float | None = None, zone: tzinfo = UTC) -> Clean:
    """The start of a run: ``13:09:22Z, 3m ago``, with the date unless it is today; empty if unknown."""
    start = summary.started_at
    text = clock(start, summary.time_zone, now=now, zone=zone)
    if start is None or now is None or summary.time_zone is None or not text:
        return text
    return Clean(f"{text}, {_ago(now - start)}")


def clock(at: float | None, time_zone: str | None, *, now: float | None = None, zone: tzinfo = UTC) -> Clean:
    """A time on the clock of `zone` (``Z`` for UTC), with the date unless it is that of `now`.

    A naive time (`time_zone` None) is printed as recorded, and labeled. Empty for None.
    """
    if at is None:
        return Clean("")
    naive = time_zone is None
    try:
        when = datetime.fromtimestamp(at, UTC if naive else zone)
        today = now is not None and datetime.fromtimestamp(now, zone).date() == when.date()
    except (OverflowError, ValueError, OSError):
        return Clean("time out of range")
    text = when.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
    return Clean(f"{text} local, zone unknown" if naive else f"{text}Z" if zone is UTC else text)


def _ago(seconds: float) -> str:
    label = age(max(0.0, seconds))
    return label if label == "now" else f"{label} ago"


BLANK: Final = Piece(Clean(" "))
_CELLS: Final = 5
_TAKES_TEXT: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.EMBEDDINGS})
_PROSE: Final = re.compile(r"[\w][^\"'{}\[\]=:/\\|;$<>`]*")
"""Arguments that read as words, not as code, path or JSON: shown in quotes."""


_DATED: Final = re.compile(r"[-@]20\d\d-?\d\d-?\d\d(?!\d)")
"""The date in a model version."""
_NAME_SHARE, _NAME_LEAST = 0.45, 15
"""Share of the cell for a name beside a truncated argument, and its minimum."""


class Columns(NamedTuple):
    """Cells of each column, separated by blanks; 0 for a hidden column."""

    number: int
    what: int
    tokens: int
    time: int
    bar: int


def token_cell(number: int | None, glyphs: Glyphs) -> Piece:
    """A number of tokens, ``—`` for None."""
    return Piece(pad(glyphs.missing if number is None else tokens(number), _CELLS, right=True), "sec")


def time_cell(elapsed: float | None, style: str, glyphs: Glyphs) -> Piece:
    """A duration in ms, ``—`` for None."""
    if elapsed is None:
        return Piece(pad(glyphs.missing, _CELLS, right=True), "dim")
    return Piece(pad(duration(elapsed), _CELLS, right=True), style)


NO_TEXT: Final = Clean("no text recorded")
"""Instead of the text of a message."""


def preview_text(span: Span, limit: int = 400) -> Clean:
    """The preview of a span on one line, with ``…`` if its text is longer; a message as prose."""
    line = prose if span.operation in (Operation.CHAT, Operation.MESSAGE) else one_line
    return line(f"{span.preview}…" if len(span.preview) >= PREVIEW else span.preview, limit)


def prompt_text(run: RunSummary, limit: int = 200) -> Clean:
    """The title of a run, else its prompt, as prose."""
    return prose(run.title or run.prompt, limit)


def argument(span: Span) -> Clean:
    """The input of a span on one line; empty if its header has none."""
    text = preview_text(span, 200)
    if span.operation is Operation.HOOK and text.startswith(span.name):  # ``PostToolUse`` of ``PostToolUse:Bash``
        text = Clean(text[len(span.name) :].lstrip(":"))
    if text and span.operation in _TAKES_TEXT and _PROSE.fullmatch(text):
        return Clean(f'"{text}"')
    return text


def short_model(model: str) -> Clean:
    """A model without provider, ``claude-`` and date: ``sonnet-4`` for ``anthropic/claude-sonnet-4-20250514``."""
    full = one_line(model, 120)
    name = full.rpartition("/")[2].rpartition("anthropic.")[2]
    return Clean(_DATED.sub("", name).removeprefix("claude-") or full)


def short_name(span: Span) -> Clean:
    """The name of a span; a model in short, without its version date."""
    name = one_line(span.name, 120)
    if span.operation is not Operation.CHAT:
        return name
    return short_model(name) if span.name == span.model else Clean(_DATED.sub("", name) or name)


def name_beside(span: Span, argument_text: Clean, room: int) -> Clean:
    """The name of a span in `room` cells, truncated in the middle to leave room for the argument, which tells calls
    apart.
    """
    name = short_name(span)
    if not argument_text or cells(name) + 1 + cells(argument_text) <= room:
        return name
    return truncate_middle(name, max(_NAME_LEAST, int(room * _NAME_SHARE)))


_NAMED: Final = 3
"""Maximum kinds and versions to name."""
_KIND_NAME: Final = 40
_BYTES: Final = " of bytes"
"""Dropped first if the width is small."""


def ledger_text(ledger: Ledger, *, glyphs: Glyphs = UNICODE, width: int | None = None) -> Clean:
    """``parsed 99.2 % of bytes · unknown kinds 3 (weather ×2 …) · torn lines 1 · writer version 2.1.197``.

    Zero counts are left out. A small `width` shortens the lists.
    """
    line = Clean("")
    for most, unit in ((_NAMED, _BYTES), (2, _BYTES), (1, _BYTES), (1, ""), (0, _BYTES), (0, "")):
        line = _ledger_text(ledger, glyphs, most, unit)
        if width is None or cells(line) <= width:
            break
    return line


def _ledger_text(ledger: Ledger, glyphs: Glyphs, most: int, unit: str) -> Clean:
    parts = [f"parsed {share(ledger.share, glyphs)}{unit}" if ledger.share is not None else "coverage unknown"]
    for noun, counted in (("kinds", ledger.kinds), ("fields", ledger.fields)):
        if counted:
            named = f" ({_commonest(counted, glyphs, most)})" if most else ""
            parts.append(f"unknown {noun} {grouped(len(counted))}{named}")
    if ledger.torn:
        parts.append(f"torn lines {grouped(ledger.torn)}")
    if ledger.writers:
        parts.append(_writers(ledger.writers, most))
    return Clean(f" {glyphs.dot} ".join(parts))


def share(part: float | None, glyphs: Glyphs = UNICODE) -> str:
    """A share in percent, rounded down to a tenth: ``100 %`` only for all."""
    return glyphs.missing if part is None else "100 %" if part == 1 else f"{floor(part * 1000) / 10:.1f} %"


def _commonest(counted: Kinds, glyphs: Glyphs, most: int) -> str:
    ranked = sorted(counted, key=lambda item: (-item[1], item[0]))
    named = [f"{one_line(name, _KIND_NAME)} {glyphs.times}{grouped(count)}" for name, count in ranked[:most]]
    return ", ".join(named) + (f" {glyphs.cut}" if len(ranked) > most else "")


def _writers(writers: tuple[str, ...], most: int) -> str:
    """The latest versions."""
    if not most:
        return text.quantity(len(writers), "writer version")
    named = ", ".join(one_line(writer, _KIND_NAME) for writer in writers[-most:])
    more = len(writers) - most
    return f"writer version{'s' if len(writers) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")


def empty(roots: Sequence[str], stage: str, query: str, have_runs: bool) -> list[Line]:
    """An empty run list: scanning, filtered, or no traces."""
    if have_runs:
        headline = [Piece(Clean("No runs match "), "text bold"), Piece(one_line(query or "the filter", 60), "hit")]
        return [(), tuple(headline), (), (*_key("Esc", " clear the filter"),)]
    if stage:
        return [(), (Piece(Clean("scanning …"), "dim"),)]
    count = len(registry.names())
    return [
        (),
        (Piece(Clean("No traces in "), "text bold"), Piece(clean(", ".join(roots), 200), "sec")),
        (),
        (Piece(Clean(f"Searched for {count} formats by content."), "sec"),),
        (Piece(Clean("Hidden directories and symlinks are skipped."), "sec"),),
        (),
        (*_key("tracetui demo", "    open the built-in samples"),),
        (*_key("tracetui doctor", "  show how each file was classified"),),
        (*_key("q", "                quit"),),
    ]


def no_hits(query: str, files: int) -> list[Line]:
    """A finished search without hits."""
    return [
        (),
        (Piece(Clean("No matches for "), "text bold"), Piece(one_line(query, 60), "hit")),
        (),
        (Piece(Clean(f"Searched inputs, outputs, messages and errors in {text.quantity(files, 'file')}."), "sec"),),
        (Piece(Clean("Case-insensitive unless you type a capital."), "sec"),),
        (),
        (*_key("&", "    search again"),),
        (*_key("Esc", "  back"),),
    ]


def broken(problem: Problem, width: int, note: Clean) -> list[Line]:
    """An unreadable run."""
    location = f"{problem.reason}, {problem.where}" if problem.where else problem.reason
    lines: list[Line] = [
        (),
        (Piece(note, "status.warn bold"), Piece(Clean(" ")), Piece(one_line(location, 300), "status.warn")),
    ]
    lines += [(Piece(part, "sec"),) for part in wrap(clean(problem.path), max(10, width - 2))]
    return [*lines, (), _key("tracetui doctor", " show how each file was classified")]


def _key(key: str, label: str) -> tuple[Piece, Piece]:
    return Piece(Clean(key), "key bold"), Piece(Clean(label), "sec")


def excerpt_rows(
    data: bytes, offset: int, at: int | None, file_size: int, *, width: int, glyphs: Glyphs = UNICODE
) -> tuple[ListRows, int]:
    """(Rows, row of the mark) of `data`, which begins at byte `offset` of a file of `file_size` bytes."""
    lines: list[Line] = []
    extent = f"bytes {grouped(offset)} to {grouped(offset + len(data))} of {size(file_size)}"
    lines.append((Piece(Clean(extent if data else "empty file"), "dim"),))
    before, after = (data, b"") if at is None else (data[:at], data[at:])
    lines += _text(before, "text", width)
    marked = len(lines) - 1
    if at is not None:
        here = Piece(Clean(f"{glyphs.end} byte {grouped(offset + at)}: reading stopped here"), "status.error bold")
        lines.append((here,))
        marked = len(lines) - 1
        lines += _text(after, "dim", width)
    return ListRows(lines, marks={marked: "status.error"} if at is not None else None), marked if at is not None else 0


def _text(data: bytes, style: str, width: int) -> list[Line]:
    if not data:
        return []
    text = data.decode("utf-8", "backslashreplace")
    return [(Piece(part, style),) for line in clean_lines(text) for part in wrap(line, max(1, width))]


# ---- scores and outcomes


WRONG_ANSWER = Clean("wrong answer")
WRONG_STYLE = "status.warn"
UNGRADED = Clean("ungraded")
_HIDDEN = (Status.OK, Status.UNKNOWN)
"""Statuses that say less than a wrong answer."""
_VERDICTS = {True: Clean("passed"), False: Clean("failed")}
_LONGEST = 40
"""Characters of a value that is text."""


_INDECISIVE: Final = re.compile(
    r"\A(?:(?:[a-z_]\w*\.)+(?=[A-Z]))?(?:(?:RuntimeError|Exception|Error)(?: \[\w+\])?: (?=\S))?|\[Errno -?\d+\] "
)
"""The module of an exception, a type that says nothing, and the number of a system error."""
_TRACEBACK: Final = "Traceback (most recent call last)"


def deciding_excerpt(error: str) -> Clean:
    """A type or message of an error, its deciding words first: of a traceback the last line."""
    if error.startswith(_TRACEBACK):
        error = error.rstrip()
        error = error[error.rfind("\n") + 1 :]
    return Clean(_INDECISIVE.sub("", prose(error, 240)))


def run_sign(run: RunSummary, status: Status, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Sign and style of a run that is shown with this status: a wrong answer and an ungraded run have their own."""
    if run.is_ungraded and not run.failed:
        return glyphs.ungraded, WRONG_STYLE
    if run.is_wrong and status in _HIDDEN:
        return glyphs.wrong, WRONG_STYLE
    return status_glyph(status, glyphs)


def status_word(run: RunSummary) -> Clean:
    """The status of a run; ``wrong answer`` where it ended well, or nothing says how, and its outcome is failed;
    ``ungraded`` where it did not fail.
    """
    if run.is_ungraded and not run.failed:
        return UNGRADED
    return WRONG_ANSWER if run.is_wrong and run.status in _HIDDEN else Clean(run.status.value)


_UNENDED: Final = (Status.UNKNOWN, Status.RUNNING)
"""Statuses without an end: the state of a run says more."""


def state_word(run: RunSummary, now: float) -> Clean:
    """The state of a run that isn't followed, at `now` (UTC seconds); empty where its status says it."""
    state = state_of_summary(run, now).state
    return Clean("" if state in (None, RunState.ENDED, run.status.value) else state)


def ending_texts(run: RunSummary, now: float) -> list[Clean]:
    """The status and the state of a run that isn't followed; a state alone where the trace records no end."""
    status, state = status_word(run), state_word(run, now)
    if state and state_replaces_status(run):
        return [state]
    return [word for word in (status, state) if word]


def state_replaces_status(run: RunSummary) -> bool:
    """Whether the status of a run says less than its state: the trace records no end, and no wrong answer is known."""
    return run.status in _UNENDED and status_word(run) == run.status.value


def outcome_word(run: RunSummary, glyphs: Glyphs = UNICODE) -> Clean:
    """``passed``, ``ungraded``, ``wrong answer``, or ``failed`` of an error; ``—`` without an outcome."""
    if run.outcome is None:
        return glyphs.missing
    return WRONG_ANSWER if run.is_wrong else Clean(run.outcome.value)


def value_of(score: Score, glyphs: Glyphs = UNICODE) -> Clean:
    """The value of a score as recorded, else whether it passed."""
    if isinstance(score.value, str):
        return one_line(score.value, _LONGEST)
    if score.value is None and score.passed is not None:
        return _VERDICTS[score.passed]
    return number(score.value, glyphs)


def tokens_label(run: RunSummary) -> Clean:
    """All tokens of a run: ``84.1k``, ``≥84k`` if an output was cut off, ``—`` if not recorded."""
    return tokens(total_tokens(run), at_least=run.usage is not None and run.usage.output_at_least)


def cost_text(spent: spending.Spending) -> Clean:
    """The cost: ``~$0.12`` if estimated; empty where nothing was used, ``—`` if no price is known."""
    if spent.usd is None and not spent.tokens:
        return Clean("")
    return text.cost(spent.usd, estimated=spent.estimated)


def run_cost(run: RunSummary) -> Clean:
    """The cost of a run; ``copied`` where other runs count all that it used."""
    if run.usage is None and run.counts_in is not None:
        return Clean("copied")
    return cost_text(spending.of_run(run))


def spending_text(spent: spending.Spending) -> str:
    """Tokens and cost of many runs: ``1.2M tok  ~$3.40``."""
    parts = [f"{text.tokens(spent.tokens)} tok"] if spent.tokens else []
    return "  ".join([*parts, *([cost_text(spent)] if spent.usd else [])])


def score_cell(run: RunSummary, glyphs: Glyphs = UNICODE) -> Clean:
    """``✓ 1``, ``⊗ 0`` for a wrong answer, ``0.5`` without an outcome, ``⊗ 2/3`` where several decide; ``—``: none."""
    scores = run.deciding_scores
    if not scores:
        return glyphs.missing
    value = value_of(scores[0], glyphs) if len(scores) == 1 else _share(scores)
    sign, _ = outcome_sign(run, glyphs)
    return Clean(f"{sign} {value}") if sign else value


def _share(scores: list[Score]) -> Clean:
    """How many of the scores that can pass did; the number of scores if none can."""
    verdicts = [score.passed for score in scores if score.passed is not None]
    return Clean(f"{sum(verdicts)}/{len(verdicts)}" if verdicts else f"{len(scores)} scores")


def outcome_sign(run: RunSummary, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Sign and style of an outcome; no sign without one."""
    if run.outcome is None:
        return Clean(""), "dim"
    if run.outcome is Outcome.PASSED:
        return glyphs.ok, "status.ok"
    if run.is_ungraded:
        return glyphs.ungraded, WRONG_STYLE
    return (glyphs.wrong, WRONG_STYLE) if run.is_wrong else (glyphs.error, "status.error")


def score_line(score: Score) -> Clean:
    """``reward 0 failed (result.json rewards.reward; pass rule reward>=0.9)``, then why."""
    passed = f" {_VERDICTS[score.passed]}" if score.passed is not None and score.value is not None else ""
    origin = "; ".join(one_line(part, 160) for part in (score.source, score.rule) if part)
    reason = f": {one_line(score.reason, 240)}" if score.reason else ""
    return Clean(f"{one_line(score.name, 60)} {value_of(score)}{passed}{f' ({origin})' if origin else ''}{reason}")


# ---- standing


StateOf = Callable[[RunSummary], State]
"""Returns the liveness state of a run."""

_SIGNS: Final = {
    RunState.RUNNING: (Status.RUNNING, "status.running"),
    RunState.QUIET: (Status.RUNNING, "status.running"),
    RunState.STALLED: (Status.RUNNING, "status.warn"),
    RunState.WAITING: (Status.PAUSED, "status.paused"),
    RunState.DONE: (Status.OK, "sec"),
    RunState.INTERRUPTED: (Status.CANCELLED, "sec"),
}
"""For the state of a session: the status that the sign is for, and the style."""
_STATE_LABELS: Final = {RunState.STALLED: State.STALLED.value, RunState.WAITING: "waiting for you"}
"""Words of the screen, where they differ."""


_SOURCES: Final = {
    StatusSource.EXPLICIT: "recorded",
    StatusSource.POLICY: "from a recorded limit violation",
    StatusSource.EXIT: "from a nonzero exit code",
    StatusSource.DERIVED: "inferred from the last event",
    None: "no reason recorded",
}


def source_label(status: Status, source: StatusSource | None) -> Clean:
    """The source of a status."""
    if status is Status.RUNNING and source is StatusSource.DERIVED:
        return Clean("inferred: no end record yet")
    return Clean(_SOURCES[source])


class Standing(NamedTuple):
    """The displayed state of a run."""

    status: Status
    """Status that the sign is for."""
    sign: Clean
    style: str
    label: Clean
    """``ok``, ``wrong answer``, ``stalled?``, ``~running: Bash 3m``, ``stalled? Bash, 37m``, ``~waiting for you``."""
    by_last_event: bool
    """Whether it is inferred from the last event: the state of a session or of an open call."""
    basis: Clean
    """The source of the state or status: ``recorded``, ``inferred from the last event``."""

    def says_status(self, run: RunSummary) -> bool:
        """Whether the status of the run says more than its state: a trace that recorded none has no second answer."""
        return not self.by_last_event or run.status_source not in (None, StatusSource.DERIVED)

    @property
    def short_label(self) -> str:
        """The label without the open call."""
        return re.split(r": |(?<=\?) ", self.label, maxsplit=1)[0]


StandingOf = Callable[[RunSummary, Glyphs], Standing]


def standing_of(run: RunSummary, state: State, now: float | None, glyphs: Glyphs = UNICODE) -> Standing:
    """The displayed state of a run with that liveness; without `now`, from its status alone."""
    current = current_state(run, state, now=now) if now is not None else None
    if current is not None and current.state in _SIGNS and current.by_last_event:
        status, style = _SIGNS[current.state]
        sign = run_sign(run, status, glyphs)[0]
        label = session_label(current, sign="~" if run.is_session else "")
        return Standing(status, sign, style, label, True, Clean(_SOURCES[StatusSource.DERIVED]))
    status = status_now(run, state)
    label = status_word(run) if state is State.ENDED else Clean(state.value)
    return Standing(status, *run_sign(run, status, glyphs), label, False, source_label(run.status, run.status_source))


def status_now(run: RunSummary, state: State) -> Status:
    """The status to show: running or unknown for a run without an end record."""
    if state is State.ENDED:
        return run.status
    return Status.UNKNOWN if state is State.UNKNOWN else Status.RUNNING


def session_label(current: CurrentState, *, sign: str = "~") -> Clean:
    """The state of a session: ``~running: Bash 3m``. The sign marks it as inferred, as it does times."""
    state = current.state or RunState.UNKNOWN
    word = _STATE_LABELS.get(state, state.value)
    if not current.call:
        return Clean(f"{sign}{word}")
    colon, comma = ("", ",") if word.endswith("?") else (":", "")
    since = f"{comma} {text.age(current.ms / 1000)}" if current.ms is not None else ""
    return Clean(f"{sign}{word}{colon} {one_line(current.call, 30)}{since}")
