"""Exports to files, and code snippets for the clipboard, made in background threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from tracetui.errors import TracetuiError
from tracetui.model import Problem, Run, RunRef, RunSummary, Span
from tracetui.text import size

if TYPE_CHECKING:
    from tracetui.analysis.audit import Audit
    from tracetui.live.engine import Engine
    from tracetui.live.mailbox import Compare
    from tracetui.store.claims import Claims
    from tracetui.ui.services.verdicts import Verdicts

T = TypeVar("T")


class Dialog(Protocol):
    """Prompt, status line and clipboard of a screen."""

    def say(self, text: str, style: str = "sec") -> None: ...
    def ask_for(self, label: str, value: str, answer: Callable[[str], None]) -> None: ...
    def copy(self, text: str, what: str) -> None: ...


class Exporter:
    """Exports runs, comparisons and the triage to files that the user names."""

    def __init__(self, engine: Engine, claims: Claims, roots: Sequence[str]) -> None:
        self._engine, self._claims, self._roots = engine, claims, roots
        self._failed_paths: dict[str, str] = {}
        """Last failed path of each kind of export: the default of the next prompt."""

    def export_run(self, run: RunSummary, dialog: Dialog) -> None:
        """Export a run."""
        from tracetui.export.document import export_run, file_name, form_of, new_redactor

        share = self._claims.share(run.ref)

        def pieces(path: str) -> Iterable[bytes]:
            return export_run(share.mark(self._engine.read(run.ref)), form_of(path), new_redactor())

        self._export("this run", file_name(run, "md"), pieces, dialog)

    def export_diff(self, ask: Compare, dialog: Dialog) -> None:
        """Export a comparison."""
        from tracetui.export.document import export_diff, form_of, new_redactor

        shares = self._claims.shares((ask.a, ask.b))

        def pieces(path: str) -> Iterable[bytes]:
            a, b = (share.mark(self._engine.read(ref)) for ref, share in shares.items())
            redactor = new_redactor(compared=True)
            return export_diff(a, b, form_of(path), redactor, relation=ask.relation, strict=ask.strict)

        self._export("this comparison", "comparison.md", pieces, dialog)

    def export_triage(self, runs: Sequence[RunSummary], verdicts: Verdicts, dialog: Dialog) -> None:
        """Export the triage of runs."""
        from tracetui.export.document import export_triage, file_name, form_of, new_redactor
        from tracetui.export.triage import next_command, triage_of

        roots = ", ".join(self._roots)

        def pieces(path: str) -> Iterable[bytes]:
            redactor = new_redactor()
            triage = triage_of(runs, verdicts.causes, redactor)
            shared = self._engine.shared_features(runs, triage.groups)
            following = next_command(triage, self._roots)
            return export_triage(triage, shared, roots, form_of(path), redactor, next_command=following)

        self._export("the triage", file_name(None, "md"), pieces, dialog)

    def export_audit(self, audit: Audit, problems: Sequence[Problem], dialog: Dialog) -> None:
        """Export the findings of an audit."""
        import tracetui
        from tracetui.export.audit import FORMS, AuditReport, export_audit
        from tracetui.export.document import form_among

        def pieces(path: str) -> Iterable[bytes]:
            form = form_among(path, FORMS)
            lines = self._engine.record_lines(audit.findings) if form == "sarif" else {}
            report = AuditReport(audit, problems=problems, version=tracetui.__version__, lines=lines)
            return export_audit(report, form)

        self._export("the audit", "audit.md", pieces, dialog, ".md, .sarif, .xml (JUnit) or .json")

    def _export(
        self,
        what: str,
        name: str,
        pieces: Callable[[str], Iterable[bytes]],
        dialog: Dialog,
        forms: str = ".md, .html or .json",
    ) -> None:
        """Prompt for a path and write the export."""
        from tracetui.export.document import write

        def done(path: str, written: int) -> None:
            self._failed_paths.pop(what, None)
            dialog.say(f"wrote {path}, {size(written)}, readable by you only; secrets masked")

        def answer(path: str) -> None:
            path = os.path.expanduser(path.strip())
            if path:
                self._failed_paths[what] = path
                dialog.say(f"writing {path}")
                self._make_in_background(
                    lambda: write(path, pieces(path), roots=self._roots), lambda written: done(path, written), dialog
                )

        name = self._failed_paths.get(what, name)
        dialog.ask_for(f"export {what} to: {forms}; secrets masked", name, answer)

    def copy_step(self, ref: RunRef, span: str, name: str, dialog: Dialog) -> None:
        """Copy a step as ``curl``, ``fixture``, ``test`` or ``fork``."""
        form = _FORMS[name]

        def make() -> str | None:
            run = self._engine.read(ref)
            step = run.span(span)
            return form.make(run, step) if step is not None else None

        def copy(text: str | None) -> None:
            if text is None:
                dialog.say(form.unavailable or "step no longer in the run", "status.warn")
            else:
                dialog.copy(text, form.what)

        self._make_in_background(make, copy, dialog)

    def _make_in_background(self, make: Callable[[], T], then: Callable[[T], None], dialog: Dialog) -> None:
        """Call `make` in a thread, then `then` in the event loop; shows expected errors."""

        def work() -> Callable[[], None]:
            try:
                result = make()
            except (TracetuiError, OSError) as error:
                message = str(error)
                return lambda: dialog.say(message, "status.error")
            return lambda: then(result)

        self._engine.run_in_background(work)


class _Form(NamedTuple):
    """Form of a copied step."""

    make: Callable[[Run, Span], str | None]
    what: str
    unavailable: str = ""
    """Message if the step doesn't have this form."""


def _curl(run: Run, span: Span) -> str | None:
    from tracetui.export.document import new_redactor
    from tracetui.export.snippets import curl

    return curl(span, run.load(span), new_redactor())


def _fixture(run: Run, span: Span) -> str | None:
    from tracetui.export.document import new_redactor
    from tracetui.export.snippets import fixture

    return fixture(run, run.index[span.id], new_redactor())


def _test(run: Run, span: Span) -> str | None:
    from tracetui.export.document import new_redactor
    from tracetui.export.snippets import pytest_stub

    return pytest_stub(run, run.index[span.id], new_redactor())


def _fork(run: Run, span: Span) -> str | None:
    from tracetui.export.snippets import fork

    return fork(run, run.index[span.id])


_FORMS: Final = {
    "curl": _Form(_curl, "the curl command", "curl works on model calls only; ]m jumps to the next"),
    "fixture": _Form(_fixture, "the fixture"),
    "test": _Form(_test, "the test stub"),
    "fork": _Form(_fork, "the code", "resuming from a step isn't supported for this format"),
}
