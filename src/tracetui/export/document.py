"""An export as bytes: a run, a comparison or a triage, as Markdown, HTML or JSON, masked unless that is not wanted.

The command and the app's key call these. What is given is exact (`tracetui.model.masked.unmasked`); a `redactor` masks
it on its way, and the document ends with how much that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from secrets import token_bytes
from typing import Final, Literal, TypeAlias

from tracetui.diff.comparison import Comparison
from tracetui.export.diff import diff_document
from tracetui.export.html import html
from tracetui.export.json import Masked, encode, run_document
from tracetui.export.markdown import markdown
from tracetui.export.page import Block, masked_note, written
from tracetui.export.report import diff_report, run_report
from tracetui.export.text import title
from tracetui.export.triage import Shared, Triage, triage_report, triage_value
from tracetui.model import Run, RunSummary
from tracetui.model.masked import masked
from tracetui.redact import Redactor

Form: TypeAlias = Literal["md", "html", "json"]
FORMS: Final[tuple[Form, ...]] = ("md", "html", "json")


def form_of(path: str) -> Form:
    """The form that a file's name asks for; Markdown if it says nothing."""
    end = path.rpartition(".")[2].lower()
    return "html" if end in ("html", "htm") else "json" if end == "json" else "md"


def redactor_for(*, compared: bool = False) -> Redactor:
    """What masks a document. In one that compares, masks of different secrets differ."""
    return Redactor(token_bytes(16) if compared else None)


def export_run(run: Run, form: Form, redactor: Redactor | None, *, full: bool = False) -> Iterator[bytes]:
    """One run: how it went and why, and with `full` every step. As JSON it is always whole."""
    shown = run if redactor is None else masked(run, redactor)
    if form == "json":
        return run_document(shown, None, masked=_counts(redactor))
    return _page(run_report(shown, full=full), form, redactor, title(shown))


def export_diff(
    a: Run, b: Run, form: Form, redactor: Redactor | None, *, relation: str | None = None, strict: bool = False
) -> Iterator[bytes]:
    """Two runs compared."""
    runs = (a, b) if redactor is None else (masked(a, redactor), masked(b, redactor))
    comparison = Comparison(*runs, relation=relation, strict=strict)
    *_, found = comparison.steps()
    if form == "json":
        return diff_document(found, comparison.changes, masked=_counts(redactor))
    return _page(diff_report(found, comparison.changes), form, redactor, "Comparison")


def export_triage(
    triage: Triage, shared: Shared, place: str, form: Form, redactor: Redactor | None, *, next_command: str
) -> Iterator[bytes]:
    """A triage that `triage_of` made with the same `redactor`, and what the runs of its signatures share."""
    if form == "json":
        counts, value = _counts(redactor), triage_value(triage, shared, redactor, next_command=next_command)
        return iter([encode({**value, "masked": counts()}), b"\n"])
    return _page(triage_report(triage, place, shared, redactor), form, redactor, f"Triage of {place}")


def file_name(what: RunSummary | None, form: Form) -> str:
    """A name for the file: of plain letters, whatever the trace says."""
    words = "triage" if what is None else f"{what.agent or what.name or 'run'}-{what.id}"
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in words[:80])
    return f"{plain.strip('-') or 'run'}.{form}"


def _page(blocks: Iterable[Block], form: Form, redactor: Redactor | None, name: str) -> Iterator[bytes]:
    whole = chain(written(blocks), masked_note(redactor))
    return html(whole, name) if form == "html" else markdown(whole)


def _counts(redactor: Redactor | None) -> Masked:
    """How many were masked by the time that it is called."""
    return lambda: None if redactor is None else dict(sorted(redactor.counts.items()))
