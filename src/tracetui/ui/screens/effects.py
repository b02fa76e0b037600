"""The screens *files* (what agents changed) and *audit* (risky effects), with the step under the cursor below."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

from msgspec.structs import replace
from textual import on

from tracetui.analysis.arrangement import Arrangement, Choices
from tracetui.analysis.audit import Audit, Finding
from tracetui.analysis.files import FileHistory
from tracetui.errors import TracetuiError
from tracetui.live.blame import FileBlame, Subject, file_job
from tracetui.live.effects import EffectsResult
from tracetui.live.jobs import Job, JobProgress
from tracetui.live.mailbox import Mail
from tracetui.masking import one_line
from tracetui.model import RunRef
from tracetui.store.query import parse_prefix
from tracetui.text import Clean, grouped, quantity
from tracetui.ui.commands import AUDIT, BLAME, FILES, Command
from tracetui.ui.screens.lists import ArrangedScreen, PreviewScreen
from tracetui.ui.widgets.frame import with_hints
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.blame import blame_heading, blame_rows, blame_sentence, blame_totals
from tracetui.views.effects import (
    FILE_SORTS,
    RULE_SORTS,
    EffectRows,
    People,
    Place,
    audit_heading,
    audit_rows,
    audit_sentence,
    audit_totals,
    file_diff,
    file_rows,
    files_heading,
    files_sentence,
    files_totals,
)
from tracetui.views.labels import arrangement_title, short_names
from tracetui.views.rows import Line, ListRows, Piece, width_of

_PROGRAM: Final = 14
"""Cells of the name of the program in the header, and of gaps."""
_R = TypeVar("_R")
"""The result of the job of a screen."""


class EffectsView(LineView):
    """Rows that unfold."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.toggled: frozenset[Hashable] = frozenset()
        """Keys of rows whose fold isn't the default."""

    @property
    def _fold(self) -> tuple[Hashable, bool] | None:
        """The key of the fold under the cursor, and whether it is open."""
        rows = self.rows
        if not isinstance(rows, EffectRows) or (key := rows.fold(self.position)) is None:
            return None
        return key, rows.parent(self.position + 1) == self.position

    @property
    def unfolds(self) -> bool:
        return self._fold is not None and not self._fold[1]

    def _toggle(self, *, open_: bool) -> bool:
        if self._fold is None or self._fold[1] is open_:
            return False
        key, _ = self._fold
        self.toggled = self.toggled ^ {key}
        return True

    async def action_fold(self) -> None:
        """Fold the row under the cursor, or go to the one that it is below."""
        rows = self.rows
        parent = rows.parent(self.position) if isinstance(rows, EffectRows) else None
        if self._toggle(open_=False):
            await self.report(self.Moved(self, self.cursor))
        elif parent is not None:
            self.move_to(parent)
        else:
            await super().action_fold()

    async def action_unfold(self) -> None:
        """Show what is below the row under the cursor."""
        if self._toggle(open_=True):
            await self.report(self.Moved(self, self.cursor))
        else:
            await super().action_unfold()

    @property
    def place(self) -> Place | None:
        """Where the row under the cursor leads."""
        return self.rows.place(self.position) if isinstance(self.rows, EffectRows) else None


class FilesView(EffectsView):
    """The rows of files."""

    sorts: ClassVar[Mapping[str, str]] = {name: name for name in FILE_SORTS}


class AuditView(EffectsView):
    """The rows of findings."""

    sorts: ClassVar[Mapping[str, str]] = {name: name for name in RULE_SORTS}


class SavedEffects(NamedTuple):
    """What a screen of effects keeps when it is recreated."""

    toggled: frozenset[Hashable] = frozenset()
    cursor: Hashable = None
    arrangement: Arrangement | None = None
    """None: the usual one."""


_UNCHANGED: Final = SavedEffects()


class EffectsScreen(PreviewScreen, Generic[_R]):
    """What runs did, as rows that lead to steps."""

    view_type: ClassVar[type[EffectsView]] = EffectsView

    def __init__(
        self,
        pane: str,
        refs: Sequence[RunRef],
        of: str,
        commands: Sequence[Command],
        saved: SavedEffects = _UNCHANGED,
    ) -> None:
        """`of`: which runs these are, in words."""
        self.effects = self.view_type(id=pane)
        super().__init__(pane, pane.capitalize(), commands, self.effects)
        self.effects.toggled = saved.toggled
        self._refs, self._of, self._go_to = tuple(refs), of, saved.cursor
        self._names = short_names(())
        self._moved = False
        """Whether the user moved the cursor; until then it stays on the first row."""
        self._job: Job | None = None
        self._progress: JobProgress | None = None
        """The progress of the job, until it has some that of the job before."""

    # ---- data

    def on_mount(self) -> None:
        super().on_mount()
        runs = self.app.store.runs
        self._names = short_names(runs.values())

    def on_screen_resume(self) -> None:
        """Read, or read on after another screen."""
        if self._is_reading:
            self.begin()

    def begin(self, *, reread: bool = False) -> None:
        """Have the runs read."""
        runs, surveys = self.app.store.runs, self.app.surveys
        listed = [runs[ref] for ref in self._refs if ref in runs]
        self._job = surveys.find_effects(listed, self.app.roots, reread=reread)
        if surveys.effects is not None:
            self._progress = surveys.effects

    def receive(self, mail: Mail) -> None:
        if mail.progress is not None and mail.progress.job is self._job:
            self._progress = mail.progress
            self.show_rows()
        place = self.effects.place
        if place is not None and (place[0] in mail.runs or place in mail.bodies):
            self._show_preview()

    @property
    def _is_reading(self) -> bool:
        progress = self._progress
        return progress is None or progress.job is not self._job or not progress.finished

    @property
    def _result(self) -> _R | None:
        progress = self._progress
        return progress.result if progress is not None else None

    @property
    def _people(self) -> People:
        return People(self.app.store.runs.get, self._names, self.app.clock())

    def show_rows(self) -> None:
        result = self._result
        if result is not None and (rows := self.rows_of(result)) is not None and len(rows):
            first = next((rows.key(index) for index in range(len(rows)) if rows.selectable(index)), None)
            key = self._go_to if self._go_to is not None else None if self._moved else first
            self.list.show(rows, key=key, title=self.title_line(), heading=lambda width: [self.heading(width)])
            if self.list.cursor == self._go_to:
                self._go_to = None
        else:
            message = "reading …" if self._is_reading else self.empty_message
            line: Line = (Piece(Clean(message), "dim"),)
            self.list.show(ListRows([line], headings=[0]), title=self.title_line(), heading=lambda width: [])
        self._lay_out()
        self._load_preview()
        self.refresh_frame()

    # ---- hooks

    @property
    def empty_message(self) -> str:
        """What an empty list says."""
        return "nothing recorded"

    def title_line(self) -> Line:
        """How the rows are sorted and filtered."""
        return ()

    def rows_of(self, result: _R) -> EffectRows:
        """The rows of a result."""
        raise NotImplementedError

    def heading(self, width: int) -> Line:
        """The column headings."""
        raise NotImplementedError

    # ---- the preview

    @property
    def _has_preview(self) -> bool:
        return self.effects.place is not None

    def _load_preview(self) -> None:
        """Show the step under the cursor; read its run first if necessary."""
        place = self.effects.place
        if place is None or not self._preview.display or (self._previewed is not None and self._previewed[0] == place):
            return
        self._previewed = place, False
        if self.app.store.opened(place[0]) is None:
            self.app.engine.open(place[0])
            self.app.engine.enter(place[0])
        self._show_preview()

    def _show_preview(self) -> None:
        place, store = self.effects.place, self.app.store
        run = store.opened(place[0]) if place is not None else None
        if place is None or run is None or self._previewed == (place, True):
            return
        span = run.span(place[1]) if place[1] is not None else None
        body = store.body(place[0], span) if span is not None else None
        if place[1] is not None and span is None:
            return  # not read yet
        if span is not None and body is None:
            self.app.engine.load_body(run, span)
            return
        self._previewed = place, True
        self._preview.show_span(run, span, body)
        self._lay_out()

    @on(LineView.Moved)
    def _row_moved(self, message: LineView.Moved) -> None:
        if message.view is self.list:
            self._moved = True
            self.show_rows()

    # ---- commands

    @property
    def ref(self) -> RunRef | None:
        place = self.effects.place
        return None if place is None else place[0]

    def action_open(self) -> None:
        """Open the step under the cursor."""
        if self.effects.place is not None:
            self.app.visit(*self.effects.place)

    def action_blame(self) -> None:
        """Show who wrote the lines of the file of the step under the cursor."""
        place = self.effects.place
        if place is None or place[1] is None:
            self.say("no step under the cursor", "status.warn")
        else:
            self.app.show_blame(place[0], place[1], self.blame_path)

    @property
    def blame_path(self) -> str | None:
        """The file of the row under the cursor; None: that of its step."""
        return None

    def action_files(self) -> None:
        """Show the files of the same runs."""
        self._switch(FILES)

    def action_audit(self) -> None:
        """Show the findings in the same runs."""
        self._switch(AUDIT)

    def _switch(self, pane: str) -> None:
        if pane != self.pane and self.leave():
            self.app.show_effects(pane, self._refs, self._of)

    def action_reread(self) -> None:
        """Read the runs again."""
        self.begin(reread=True)

    def recreate(self) -> EffectsScreen[_R]:
        return type(self)(self.pane, self._refs, self._of, self.commands, self.saved_state)

    @property
    def saved_state(self) -> SavedEffects:
        """What the screen keeps when it is recreated."""
        return SavedEffects(self.effects.toggled, self.effects.cursor)

    # ---- the frame

    def path(self) -> tuple[Line, Line]:
        left = (Piece(Clean(f"{self.pane}  "), "text bold"), Piece(one_line(f"of {self._of}", 60), "sec"))
        if self._result is None:
            return left, ()
        room = self.app.size.width - width_of(left) - _PROGRAM
        totals = self.totals(self._result, room)
        return left, totals if width_of(totals) <= room else ()

    def totals(self, result: _R, room: int) -> Line:
        """Numbers for the header, in `room` cells."""
        raise NotImplementedError

    def sentence(self, result: _R) -> Line:
        """The result in a sentence."""
        raise NotImplementedError

    def unread(self, result: _R) -> int:
        """Number of files that can't be read."""
        return 0

    def summary(self) -> Line:
        progress, result = self._progress, self._result
        pieces = [*self.sentence(result)] if result is not None else []
        if progress is None or self._is_reading:
            done = f"{grouped(progress.done)} of {quantity(progress.total, 'run')}" if progress is not None else "…"
            pieces.append(Piece(Clean(f"{'   ' if pieces else ''}reading {done}"), "status.running"))
        elif progress.lost:
            pieces.append(Piece(one_line(f"{'  ·  ' if pieces else ''}{progress.lost}", 200), "status.warn"))
        elif result is not None and (unread := self.unread(result)):
            pieces.append(Piece(Clean(f"  ·  {grouped(unread)} unreadable"), "status.warn"))
        if self.effects.place is None:
            return tuple(pieces)
        pieces.append(Piece(Clean("  ·  "), "dim"))
        return with_hints(pieces, self.hints, self.app.size.width)

    hints: Sequence[tuple[str, str]] = (("↵", "open the step"),)


class RecordedScreen(EffectsScreen[EffectsResult], ArrangedScreen):
    """A screen of the effects of runs. A query shows the rows of runs that match it, and those that have its words."""

    usual_order = ""
    """The first of the sort orders, in words."""

    def __init__(
        self,
        pane: str,
        refs: Sequence[RunRef],
        of: str,
        commands: Sequence[Command],
        saved: SavedEffects = _UNCHANGED,
    ) -> None:
        super().__init__(pane, refs, of, commands, saved)
        self.choices = Choices((*self.view_type.sorts,), ("none",))
        self.arrangement = saved.arrangement or Arrangement(sort=self.choices.sorts[0], group="none")
        self._matching: tuple[object, EffectsResult] | None = None
        """The part of the result that was shown last, and what decided it."""

    def receive(self, mail: Mail) -> None:
        super().receive(mail)
        if mail.progress is not None and mail.progress.job is not self._job and mail.progress.finished:
            self._matching = None  # the filter may have waited for what the runs did
            self.show_rows()

    def matching(self, result: EffectsResult) -> EffectsResult:
        """The part of the result that the filter shows."""
        text, key = self.arrangement.query, (id(result), self.arrangement.query, self.app.store.revision)
        if not text:
            return result
        if self._matching is not None and self._matching[0] == key:
            return self._matching[1]
        runs, query = self.app.store.runs, parse_prefix(text, self.app.query_context())[0]
        matched = {ref for ref in self._refs if ref in runs and query.matches(runs[ref])}

        def shows(refs: Iterable[RunRef], *texts: str) -> bool:
            return not matched.isdisjoint(refs) or query.matches_text(" ".join(one_line(text, 400) for text in texts))

        files, audit = result.files, result.audit
        part = result._replace(
            files=files._replace(
                files=[
                    (history, state)
                    for history, state in files.files
                    if shows((change.run for change in history.changes), history.path)
                ]
            ),
            audit=Audit(
                [finding for finding in audit.findings if shows((finding.run,), finding.rule.name, finding.what)],
                audit.runs,
                audit.allowed,
            ),
        )
        self._matching = key, part
        return part

    def title_line(self) -> Line:
        sort = self.arrangement.sort
        sort = self.usual_order if sort == self.choices.sorts[0] else f"by {sort}"
        return arrangement_title(self.arrangement, self.arrangement.query, ungrouped="none", sort=sort)

    def action_filter(self) -> None:
        """Ask which rows to show."""

        def apply(query: str) -> None:
            self.show_arrangement(replace(self.arrangement, query=query))

        filtered = self.app.run_filter()._replace(apply=apply, count_matches=self.count)
        self.ask_filter(self.arrangement.query, filtered)

    def sentence(self, result: EffectsResult) -> Line:
        number, total, noun = self.count()
        if self.arrangement.query and not number:
            return (Piece(Clean(f"0 of {grouped(total)} {noun}"), "sec"),)
        return self.sentence_of(self.matching(result))

    def sentence_of(self, result: EffectsResult) -> Line:
        """The part of the result that is shown, in a sentence."""
        raise NotImplementedError

    def step_back(self) -> None:
        if self.arrangement.query:
            self.show_arrangement(replace(self.arrangement, query=""))
        else:
            super().step_back()

    @property
    def saved_state(self) -> SavedEffects:
        return super().saved_state._replace(arrangement=self.arrangement)

    def items(self, result: EffectsResult) -> Collection[object]:
        """The files or findings of a result."""
        raise NotImplementedError

    def count(self) -> tuple[int, int, str]:
        """(Items that the filter shows, all of them, what they are)."""
        result = self._result
        if result is None:
            return 0, 0, self.noun
        return len(self.items(self.matching(result))), len(self.items(result)), self.noun

    noun = ""
    """What the items are, in the plural."""

    @property
    def empty_message(self) -> str:
        is_filtered = self.arrangement.query and self._result is not None and self.count()[1]
        return "nothing matches the filter  ·  Esc clears it" if is_filtered else self.empty

    empty = "nothing recorded"

    def unread(self, result: EffectsResult) -> int:
        return len({problem.path for problem in result.files.problems})


class FilesScreen(RecordedScreen):
    """Files that agents changed, by folder; a file unfolds to its edits."""

    view_type = FilesView
    noun, empty = "files", "no file changed"
    usual_order = "by folder"
    hints = (("↵", "open the step"), ("d", "all edits"), ("l", "edits"), ("B", "blame"), ("U", "audit"))
    _diff_of: FileHistory | None = None
    """The file whose edits the preview shows."""

    @property
    def blame_path(self) -> str | None:
        key = self.list.cursor
        path = key[0] if isinstance(key, tuple) else key
        return path if isinstance(path, str) else None

    def action_file_diff(self) -> None:
        """Show all edits of the file under the cursor as one diff, or the step again."""
        self._shows_diff, self._diff_of, self._previewed = not self._shows_diff, None, None
        self._preview.show_empty()
        self._load_preview()

    _shows_diff = False

    def _load_preview(self) -> None:
        result, path = self._result, self.blame_path
        if not self._shows_diff or result is None:
            super()._load_preview()
            return
        history = next((history for history, _ in result.files.files if history.path == path), None)
        if history is None or history is self._diff_of or not self._preview.display:
            return
        self._diff_of = history
        width = max(20, self._preview.outer_size.width - 2)
        lines = file_diff(history, self._people, width, self.app.look.glyphs)
        title = (Piece(one_line(history.path, 100), "sec"), Piece(Clean("  all edits"), "dim"))
        self._preview.show_empty()
        self._preview.show(ListRows(lines), title=title, keep=False)
        self._lay_out()

    def _show_preview(self) -> None:
        if not self._shows_diff:
            super()._show_preview()

    def rows_of(self, result: EffectsResult) -> EffectRows:
        files, toggled, glyphs = self.matching(result).files, self.effects.toggled, self.app.look.glyphs
        return file_rows(files, toggled, self._people, glyphs, self.arrangement)

    def items(self, result: EffectsResult) -> Collection[object]:
        return result.files.files

    def heading(self, width: int) -> Line:
        return files_heading(width, self.arrangement.sort)

    def totals(self, result: EffectsResult, room: int) -> Line:
        return files_totals(result.files, result.runs)

    def sentence_of(self, result: EffectsResult) -> Line:
        return files_sentence(result.files)


class AuditScreen(RecordedScreen):
    """Findings by rule, worst first."""

    view_type = AuditView
    noun, empty = "findings", "no findings"
    usual_order = "worst first"
    hints = (("↵", "open the step"), ("]r", "next finding"), ("Space", "allow"))

    def rows_of(self, result: EffectsResult) -> EffectRows:
        audit, toggled, glyphs = self.matching(result).audit, self.effects.toggled, self.app.look.glyphs
        return audit_rows(audit, toggled, self._people, self._is_allowed, glyphs, self.arrangement)

    def items(self, result: EffectsResult) -> Collection[object]:
        return result.audit.findings

    @property
    def idle_commands(self) -> frozenset[str]:
        command_ids = super().idle_commands
        if self._finding is None:
            command_ids |= {"allow"}
        return command_ids if self.app.verdicts.can_undo else command_ids | {"undo"}

    def action_export(self) -> None:
        """Write the findings that are shown to a file."""
        result = self._result
        if result is None:
            self.say("nothing is read yet", "status.warn")
            return
        audit = self.matching(result).audit
        findings = [finding for finding in audit.findings if not self._is_allowed(finding)]
        audit = Audit(findings, audit.runs, len(audit.findings) - len(findings))
        self.app.exporter.export_audit(audit, result.files.problems, self)

    def _is_allowed(self, finding: Finding) -> bool:
        return self.app.verdicts.allows(finding)

    def heading(self, width: int) -> Line:
        return audit_heading(width, self.arrangement.sort)

    def totals(self, result: EffectsResult, room: int) -> Line:
        return audit_totals(result.audit, room)

    def sentence_of(self, result: EffectsResult) -> Line:
        return audit_sentence(result.audit, self._is_allowed)

    def action_open(self) -> None:
        """Open the step of a finding; unfold or fold a rule."""
        rows = self.list.rows
        if isinstance(rows, EffectRows) and (key := rows.fold(self.list.position)) is not None:
            self.effects.toggled = self.effects.toggled ^ {key}
            self.show_rows()
        else:
            super().action_open()

    def action_finding(self, step: int) -> None:
        """Go to the next finding, past rules that are folded."""
        rows = self.list.rows
        if not isinstance(rows, EffectRows):
            return
        at = self.list.position + step
        while 0 <= at < len(rows) and rows.parent(at) is None:
            at += step
        if 0 <= at < len(rows):
            self.list.move_to(at)
        else:
            self.say("no more unfolded findings" if step > 0 else "no earlier unfolded findings", "status.warn")

    @property
    def _finding(self) -> Finding | None:
        """The finding under the cursor."""
        key, result = self.list.cursor, self._result
        if result is None or not isinstance(key, tuple) or len(key) != 5:
            return None
        wanted = key[:4]
        return next(
            (
                finding
                for finding in result.audit.findings
                if (finding.rule.name, finding.run, finding.span, finding.target) == wanted
            ),
            None,
        )

    def action_allow(self) -> None:
        """Allow the rule and target of the finding under the cursor, or no longer."""
        finding = self._finding
        if finding is None:
            self.say("no finding under the cursor  ·  l unfolds a rule", "status.warn")
            return
        allow = not self._is_allowed(finding)
        try:
            self.app.verdicts.allow(finding, is_allowed=allow)
        except TracetuiError as error:
            self.say(str(error), "status.error")
            return
        self.show_rows()
        target = one_line(finding.target, 60)
        self.say(f"{finding.rule.name} on {target} {'allowed' if allow else 'not allowed'}  ·  u undo")

    def action_undo(self) -> None:
        """Undo the last change of the verdict file."""
        try:
            undone = self.app.verdicts.sidecar.undo()
        except TracetuiError as error:
            self.say(str(error), "status.error")
            return
        self.show_rows()
        self.say(undone or "nothing to undo")


class BlameScreen(EffectsScreen[FileBlame]):
    """The lines of a file in the repository of the current folder, with the sessions that wrote them."""

    hints = (("↵", "open the step"), ("A", "files"))

    def __init__(self, subject: Subject, commands: Sequence[Command], cursor: Hashable = None) -> None:
        super().__init__(BLAME, (subject.run,), "this run", commands, SavedEffects(cursor=cursor))
        self._subject = subject

    def begin(self, *, reread: bool = False) -> None:
        runs = [*self.app.store.runs.values()]
        self._job = file_job(self._subject, runs, self.app.roots, self.app.engine.cache_limit)
        self.app.surveys.ask(self._job)

    def rows_of(self, result: FileBlame) -> EffectRows:
        if self._go_to is None and not self._moved:
            here = (self._subject.run, self._subject.span)
            steps = ((line.number, line.answer.step) for line in result.lines)
            self._go_to = next((number for number, step in steps if step is not None and step[:2] == here), None)
        return blame_rows(result.lines, self._people, self.app.look.glyphs)

    @property
    def empty_message(self) -> str:
        return "no lines"

    def heading(self, width: int) -> Line:
        return blame_heading(width)

    def totals(self, result: FileBlame, room: int) -> Line:
        return blame_totals(result.lines, result.sessions)

    def sentence(self, result: FileBlame) -> Line:
        return blame_sentence(result.lines)

    def path(self) -> tuple[Line, Line]:
        left, right = super().path()
        name = self._result.path if self._result is not None else self._subject.path or ""
        return (left[0], Piece(one_line(name, 100), "sec")), right

    def recreate(self) -> BlameScreen:
        return BlameScreen(self._subject, self.commands, self.effects.cursor)


SCREENS = {FILES: FilesScreen, AUDIT: AuditScreen}
