"""Export a run, a comparison or a triage as Markdown, HTML or JSON, secrets masked unless the caller opts out.

Input is exact (`tracetui.model.masked.unmasked`); a `redactor` masks it on the way, and the document ends with the
number of masked values.

Exports are written atomically: private to their owner unless for a site, never in a trace directory, never over another
file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import Final, Literal, TypeAlias, TypeVar

from tracetui.analysis.context_feed import ledger_of
from tracetui.analysis.diff_description import Changes, DiffDescription, describe
from tracetui.analysis.links import links_of
from tracetui.analysis.navigation import errors, is_session
from tracetui.analysis.tasks import Matrix
from tracetui.diff.comparison import Comparison, Diff
from tracetui.errors import NotWritten, UsageError
from tracetui.export import diff as differences
from tracetui.export.diff import diff_document, diff_tree
from tracetui.export.effects import effects_blocks
from tracetui.export.json import Masked, encode, run_document
from tracetui.export.page import (
    NO_PAGES,
    Block,
    Code,
    Facts,
    Heading,
    Link,
    Pages,
    Prose,
    Table,
    anchors,
    cut_lines,
    ended,
    html,
    markdown,
    masked_note,
    run_tree,
    without_empty,
)
from tracetui.export.story import story_blocks, story_page
from tracetui.export.tasks import tasks_report, tasks_value
from tracetui.export.text import facts, one_span_lines, title
from tracetui.export.triage import Shared, Triage, triage_report, triage_value
from tracetui.masking import one_line
from tracetui.model import Operation, Run, RunSummary
from tracetui.model.masked import masked
from tracetui.redact import Redactor
from tracetui.store.address import span_label, span_title
from tracetui.text import Clean, exact, grouped, tokens
from tracetui.views.context import sentences, share_label, usd_label
from tracetui.views.context_page import bands_of, content_rows, panel_title
from tracetui.views.labels import run_sign
from tracetui.views.links import link_text, other_steps, step_text

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o600


def write(
    path: str, pieces: Iterable[bytes], *, roots: Sequence[str] = (), replace: bool = False, mode: int = _MODE
) -> int:
    """Write `pieces` to a file of this `mode` and return the number of bytes.

    Raises `UsageError` if `path` is inside one of `roots` (open trace directories, or files, which count as their
    directories), or exists and `replace` is False; `NotWritten` if writing fails. No partial file remains.
    """
    wanted = path
    above, name = os.path.split(path)
    folder = os.path.realpath(above or os.curdir)  # `link/..` is the parent of the link's target
    path = os.path.join(folder, name)
    check_outside(folder, roots)
    if not name or os.path.isdir(path):
        raise UsageError(f"{wanted} is a directory; name a file in it")
    if not replace and os.path.lexists(path):
        raise UsageError(f"{wanted} already exists; choose another name")
    temporary = os.path.join(folder, f".{name[:100]}.{token_hex(4)}.tmp")
    try:
        size = _write(temporary, pieces, mode)
        _publish(temporary, path, replace=replace)
    except FileExistsError:
        raise UsageError(f"{wanted} already exists; choose another name") from None
    except OSError as error:
        raise NotWritten(f"{wanted} can't be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    with suppress(OSError):  # not supported by every file system; the file is complete anyway
        _sync_directory(folder)
    return size


def create_directory(path: str, *, roots: Sequence[str] = ()) -> None:
    """Create a directory that a web server can read; one that is there stays as it is.

    Raises `UsageError` if `path` is inside one of `roots` (see `write`), `NotWritten` if creating it fails.
    """
    folder = os.path.realpath(path)
    check_outside(path, roots)
    try:
        if not os.path.isdir(folder):
            os.makedirs(folder)
            os.chmod(folder, 0o755)  # noqa: S103 - a web server reads it
    except OSError as error:
        raise NotWritten(f"{path} can't be created: {error.strerror or error}") from None


def check_outside(path: str, roots: Sequence[str]) -> None:
    """Raise `UsageError` if the directory `path`, which needn't exist, is inside one of `roots` (see `write`)."""
    folder = os.path.realpath(path)
    for root in roots:
        for place in _directories_of(root):
            if any(os.path.samefile(place, at) for at in (Path(folder), *Path(folder).parents) if os.path.isdir(at)):
                raise UsageError(f"{place} contains traces and is never written to; choose another directory")


def _directories_of(root: str) -> Iterator[str]:
    """The directory `root`, or those that contain the file: that of a link, and that of its target."""
    if os.path.isdir(root):
        yield root
    elif os.path.lexists(root):
        yield from dict.fromkeys((os.path.dirname(root) or os.curdir, os.path.dirname(os.path.realpath(root))))


def _write(path: str, pieces: Iterable[bytes], mode: int) -> int:
    descriptor = os.open(path, _CREATE, _MODE)
    os.fchmod(descriptor, mode)
    with os.fdopen(descriptor, "wb") as file:
        size = sum(file.write(piece) for piece in pieces)
        file.flush()
        os.fsync(file.fileno())
    return size


def _publish(temporary: str, path: str, *, replace: bool) -> None:
    """Rename the finished file. Raises `FileExistsError` if the name was taken meanwhile."""
    if replace:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError from None
        os.rename(temporary, path)


def _sync_directory(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- reports as blocks

MOST_LINES: Final = 200
"""Lines of a failing step in Markdown, unless the full ones are requested."""
MOST_FAILURES: Final = 50
"""Failing steps in detail, likewise."""
MOST_LINKS: Final = 50
"""Links between steps in a page."""
_LATER: Final = frozenset(
    ("id", "address", "parent", "trial", "task", "total", "system", "input", "output", "error", "tags", "attributes")
)
"""Facts that a page has below its timeline."""

Links: TypeAlias = Sequence[tuple[str, Sequence[Link]]]
"""Labeled links to other pages of a site."""


def run_page(run: Run, *, full: bool = False, links: Links = (), redactor: Redactor | None = None) -> Iterator[Block]:
    """A run as a page: what happened, the failed steps, the timeline with steps that unfold, files and findings,
    and further facts.

    `redactor` masks the names in its context; None: they stay exact.
    """
    glyph, style = run_sign(run.summary, run.summary.status)
    yield Heading(1, Clean(f"{glyph} {title(run)}"), style=style)
    recorded = [fact for fact in facts(run) if fact.lines]
    prompt = one_line(run.summary.prompt, 300)
    prompt_facts = [("prompt", [prompt])] if prompt and not run.body.goal else []
    yield Facts([*links, *prompt_facts, *(fact for fact in recorded if fact.label not in _LATER)])
    yield from _failed_steps(run)
    yield from _step_links(run)
    if run.spans:
        yield Heading(2, Clean("Timeline"), "timeline")
        yield run_tree(run, full=full)
    yield from effects_blocks(run, anchors=True)
    yield from _context(run, redactor, "context")
    yield Heading(2, Clean("Run"), "run")
    yield Facts([fact for fact in recorded if fact.label in _LATER])


def _context(run: Run, redactor: Redactor | None, anchor: str = "") -> Iterator[Block]:
    """What fills the context of the run: the sentences, and the contents with their costs."""
    ledger = ledger_of(run)
    if not ledger.calls:
        return
    totals = ledger.totals
    yield Heading(2, Clean("Context"), anchor)
    yield Prose(panel_title(ledger, run.summary))
    for sentence in sentences(ledger, redactor):
        yield Prose(sentence)
    rows = content_rows(ledger, bands_of(ledger, redactor), redactor, opened=frozenset(), sort="cost")
    cells = []
    for row in rows:
        account, priced = row.account, totals.usd is not None
        share = share_label(account.usd, totals.usd) if priced else share_label(account.carried, totals.input)
        usd = usd_label(account.usd if priced else None)
        cells.append((row.name, share, usd, tokens(account.entered), tokens(account.carried), tokens(account.now)))
    yield Table(("content", "share", "cost", "entered", "carried", "now"), cells)


def _failed_steps(run: Run) -> Iterator[Block]:
    failed = errors(run)
    if not failed:
        return
    names = anchors(run)
    yield Heading(2, Clean("Failures"), "failures")
    rows = []
    for position in (run.index[span_id] for span_id in failed[:MOST_FAILURES]):
        span = run.spans[position]
        link = Link(one_line(span_title(run, span), 120) or Clean("—"), names[position])
        rows.append((link, ended(span), one_line(span.preview, 120)))
    yield Table(("step", "error", "argument"), rows)
    yield from _more_note(len(failed) - MOST_FAILURES, "failed steps; the timeline marks them")


def _step_links(run: Run, *, as_text: bool = False) -> Iterator[Block]:
    """The links between steps; except `as_text`, they lead to the steps of the page."""
    links = links_of(run)
    if not links:
        return
    names = anchors(run)

    def leads(span_id: str) -> Link | Clean:
        label = step_text(run, span_id)
        return label if as_text else Link(label, names[run.index[span_id]])

    yield Heading(2, Clean("Links"), "" if as_text else "links")
    rows = []
    for link in links[:MOST_LINKS]:
        others = other_steps(link, link.source.span)
        rows.append((leads(link.source.span), link_text(run, link), leads(others[0]) if others else Clean("")))
    yield Table(("step", "link", "to"), rows)
    yield from _more_note(len(links) - MOST_LINKS, "links (`tracetui show` prints them)")


def run_report(run: Run, *, full: bool = False, redactor: Redactor | None = None) -> Iterator[Block]:
    """A run as text: facts, timeline or story, and its failing steps with their contents (`full`: every step)."""
    yield Heading(1, title(run))
    yield Facts([fact for fact in facts(run) if fact.lines])
    if is_session(run):
        yield Heading(2, Clean("Story"))
        yield from story_blocks(run, full=full)
    else:
        yield Heading(2, Clean("Timeline"))
        yield run_tree(run, full=full, contents=False)
    yield from effects_blocks(run)
    yield from _context(run, redactor)
    failed = [run.index[span_id] for span_id in errors(run)]
    positions = range(len(run.spans)) if full else failed[:MOST_FAILURES]
    yield from _step_links(run, as_text=True)
    if positions:
        yield Heading(2, Clean("Steps" if full else "Failures"))
    for position in positions:
        yield from _step(run, position, most=None if full else MOST_LINES)
    if not full:
        yield from _more_note(len(failed) - MOST_FAILURES, "failed steps (export with --full)")


def _more_note(number: int, noun: str) -> Iterator[Block]:
    if number > 0:
        yield Prose(Clean(f"… and {grouped(number)} more {noun}"))


def diff_report(
    diff: Diff, changes: Changes, description: DiffDescription, *, links: Links = (), as_tree: bool = False
) -> Iterator[Block]:
    """A comparison: the first difference, the changes in words, and every step that differs, in a page as a tree."""
    yield Heading(1, differences.heading(diff, description))
    yield Facts([*links])
    yield Code(list(differences.run_lines(diff)))
    for line in differences.verdict_lines(diff, description):
        yield Prose(line)
    if description.phrases:
        yield Heading(2, Clean("What changed"))
        yield Code(list(differences.phrase_lines(diff, description)))
    first = differences.first_change(diff, changes)
    changed = list(differences.word_lines(first)) if first is not None else []
    if changed:
        yield Code(cut_lines(changed), kind="diff")
    yield Prose(differences.summary_line(diff))
    notes = list(differences.aside_lines(diff))
    if notes:
        yield Heading(2, Clean("Run-level differences"))
        yield Code(notes)
    if as_tree and diff.rows:
        yield Heading(2, Clean(f"Steps (aligned by {diff.by})"), "steps")
        yield diff_tree(diff, changes, description)
    elif not diff.same:
        yield Heading(2, Clean("Steps"))
        yield Code(list(differences.step_lines(diff, changes, description)), kind="diff")


def _step(run: Run, position: int, most: int | None) -> Iterator[Block]:
    """One step; for a failure also the model call before it, which requested it."""
    span = run.spans[position]
    label = one_line(span_label(run, span), 80)
    number = f"{label[:1].upper()}{label[1:]}: " if label else ""
    yield Heading(3, Clean(f"{number}{one_line(span.name or '(no name)', 120)}"))
    yield Prose(exact(f"{run.summary.ref.address}/{span.id}"))
    yield _code(run, position, most)
    if most is not None and span.operation is not Operation.CHAT:
        before = next((i for i in range(position - 1, -1, -1) if run.spans[i].operation is Operation.CHAT), None)
        if before is not None:
            yield _code(run, before, most, title=Clean("Preceding model call"))


def _code(run: Run, position: int, most: int | None, title: Clean = Clean("")) -> Code:  # noqa: B008 - a text
    lines = list(one_span_lines(run, position))
    hidden = 0 if most is None else len(lines) - most
    if hidden > 0 and most is not None:
        half = most // 2
        lines = [*lines[:half], Clean(f"… {hidden} more lines (export with --full) …"), *lines[-half:]]
    return Code(lines, title)


# ---- documents as bytes

Form: TypeAlias = Literal["md", "html", "json"]
FORMS: Final[tuple[Form, ...]] = ("md", "html", "json")


def form_of(path: str) -> Form:
    """The document format for a file extension; Markdown for an unknown one."""
    end = path.rpartition(".")[2].lower()
    return "html" if end in ("html", "htm") else "json" if end == "json" else "md"


_F = TypeVar("_F", bound=str)


def form_among(path: str, forms: Sequence[_F]) -> _F:
    """The one of these formats that a file extension names. Raises `UsageError` for another extension."""
    end = path.rpartition(".")[2].lower()
    for form in forms:
        if form == ("html" if end == "htm" else end):
            return form
    *most, last = (".xml (JUnit)" if form == "xml" else f".{form}" for form in forms)
    raise UsageError(f"{path}: name a file that ends in {', '.join(most)} or {last}")


def new_redactor(*, compared: bool = False) -> Redactor:
    """A redactor for a document. In a comparison, different secrets get different masks."""
    return Redactor(compared=compared)


def export_run(
    run: Run, form: Form, redactor: Redactor | None, *, full: bool = False, links: Links = ()
) -> Iterator[bytes]:
    """Export one run. JSON always contains every step; the other formats with `full`."""
    masked_run = run if redactor is None else masked(run, redactor)
    if form == "json":
        return run_document(masked_run, None, masked=_counts(redactor))
    if form == "html" and is_session(masked_run):
        return _session_page(masked_run, redactor, full=full, links=links)
    blocks = (
        run_page(masked_run, full=full, links=links, redactor=redactor)
        if form == "html"
        else run_report(masked_run, full=full, redactor=redactor)
    )
    return page_of(blocks, form, redactor, title(masked_run))


def _session_page(run: Run, redactor: Redactor | None, *, full: bool, links: Links) -> Iterator[bytes]:
    """The story of a session; its files, context and further facts are a fold at its end."""
    facts_ = Facts([fact for fact in facts(run) if fact.lines])
    more = without_empty(
        chain(_step_links(run), effects_blocks(run, anchors=True), _context(run, redactor, "context"), [facts_])
    )
    flat_links = [link for _, group in links for link in group]
    return (piece.encode("utf-8", "replace") for piece in story_page(run, more, redactor, links=flat_links, full=full))


def export_diff(
    a: Run,
    b: Run,
    form: Form,
    redactor: Redactor | None,
    *,
    relation: str | None = None,
    strict: bool = False,
    links: Links = (),
) -> Iterator[bytes]:
    """Export a comparison of two runs."""
    runs = (a, b) if redactor is None else (masked(a, redactor), masked(b, redactor))
    comparison = Comparison(*runs, relation=relation, strict=strict)
    result = comparison.result()
    sentence = describe(result, comparison.messages)
    if form == "json":
        return diff_document(result, comparison.changes, sentence, masked=_counts(redactor))
    blocks = diff_report(result, comparison.messages, sentence, links=links, as_tree=form == "html")
    return page_of(blocks, form, redactor, "Comparison")


def export_triage(
    triage: Triage,
    shared: Shared,
    place: str,
    form: Form,
    redactor: Redactor | None,
    *,
    next_command: str,
    pages: Pages = NO_PAGES,
) -> Iterator[bytes]:
    """Export a triage that `triage_of` built with the same `redactor`, with the contrast of each cause."""
    if form == "json":
        counts, value = _counts(redactor), triage_value(triage, shared, redactor, next_command=next_command)
        return iter([encode({**value, "masked": counts()}), b"\n"])
    return page_of(triage_report(triage, place, shared, redactor, pages), form, redactor, f"Triage of {place}")


def export_tasks(
    matrix: Matrix, place: str, form: Form, redactor: Redactor | None, *, pages: Pages = NO_PAGES
) -> Iterator[bytes]:
    """Export the tasks of `place` and their trials. JSON is that of ``tracetui tasks`` without the run trees."""
    if form == "json":
        counts, value = _counts(redactor), tasks_value(matrix, {}, (), redactor)
        return iter([encode({**value, "masked": counts()}), b"\n"])
    return page_of(tasks_report(matrix, place, redactor, pages), form, redactor, f"Tasks of {place}")


def file_name(run: RunSummary | None, form: Form) -> str:
    """A file name of ASCII letters, digits, ``-`` and ``_``, whatever the trace contains."""
    name = "triage" if run is None else f"{run.agent or run.name or 'run'}-{run.id}"
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in name[:80])
    return f"{plain.strip('-') or 'run'}.{form}"


def page_of(blocks: Iterable[Block], form: Form, redactor: Redactor | None, name: str) -> Iterator[bytes]:
    """Write blocks as Markdown or HTML; the document ends with the redaction section."""
    document = chain(without_empty(blocks), masked_note(redactor))
    return html(document, name) if form == "html" else markdown(document)


def _counts(redactor: Redactor | None) -> Masked:
    """A callable that returns the number of masked values so far, by rule."""
    return lambda: None if redactor is None else dict(sorted(redactor.counts.items()))
