"""What the main screen knows of comparisons: which runs are marked, how runs are related, which replays diverged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracetui.live.comparing.compared import Calls, Compare, Survey, Verdict
from tracetui.live.mail import Mail
from tracetui.model import Operation, Run, RunRef, RunSummary
from tracetui.store.relations import COPY, has_original
from tracetui.text import Clean, one_line
from tracetui.ui.commands import Command
from tracetui.ui.screens.framed import FramedScreen
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Line, Piece
from tracetui.views.runs import Tied

if TYPE_CHECKING:
    from tracetui.diff.result import Diff
    from tracetui.ui.screens.main import MainScreen

TWO: Final = 2


class Comparing:
    """Belongs to the main screen, as its actions do."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self.marked: list[RunRef] = []
        """In the order of marking: the first one is A, the second B."""
        self.verdicts: dict[tuple[RunRef, RunRef], Verdict] = {}
        """What is known of pairs (original, replay)."""
        self._ahead: RunRef | None = None
        """The run of which the other one was asked for ahead."""

    # ---- what arrives

    def take(self, mail: Mail) -> None:
        """Take in what was found out; screens of comparisons take in the rest."""
        before = len(self.verdicts)
        for ask, answer in mail.diffs.items():
            if isinstance(ask, Survey) and isinstance(answer, Verdict):
                self.verdicts[ask.a, ask.b] = answer
        for screen in self._screen.app.screen_stack:
            if isinstance(screen, FramedScreen) and screen is not self._screen:
                screen.receive(mail)
        if len(self.verdicts) != before:
            self._screen.refresh_list()

    def look_ahead(self) -> None:
        """Have read what the run under the cursor is most likely compared with, before somebody asks for it."""
        screen = self._screen
        ref, store = screen.ref, screen.store
        if ref is None or ref == self._ahead or ref not in store.runs or store.opened(ref) is None:
            return
        self._ahead = ref
        again = store.relations.again(ref)
        other = store.relations.original(ref) or (again[0] if len(again) == 1 else None)
        if other is not None and store.opened(other) is None:
            screen.app.engine.differ.read_ahead(other)

    def learn(self, diff: Diff) -> None:
        """Two runs were compared to the end."""
        from tracetui.live.comparing.looking import verdict

        self.verdicts[diff.a.summary.ref, diff.b.summary.ref] = verdict(diff)
        self._screen.refresh_list()

    # ---- what the list tells

    def ties(self, run: RunSummary, glyphs: Glyphs) -> Tied:
        """How a run of the list is tied to others: marked, a replay that diverged, an original with replays.

        What repeats a task keeps what is told of it, and has but a sign: there may be a thousand of them.
        """
        mark = self._letter(run.ref)
        screen = self._screen
        if screen.app.stage:  # relations are found anew with every file that arrives
            return Tied(mark)
        relations = screen.store.relations
        if parts := relations.parts(run.ref):
            words = f"part {parts.index(run.ref) + 1}/{len(parts)}  "
            return Tied(mark, before=(Piece(Clean(words), "accent"),))
        original = relations.original(run.ref)
        if original is not None:
            known = self.verdicts.get((original, run.ref))
            word = " copy" if relations.relation(run.ref) == COPY else ""
            repeat = () if has_original(run) else (Piece(Clean(f"{glyphs.replay}{word} "), "dim"),)
            return Tied(mark, before=repeat, after=_short(known, glyphs) if known is not None else ())
        if has_original(run):
            return Tied(mark, after=(Piece(Clean(" not here"), "status.warn"),))
        replays = relations.again(run.ref)
        if not replays:
            return Tied(mark)
        known_ones = [self.verdicts[run.ref, one] for one in replays if (run.ref, one) in self.verdicts]
        pieces = [Piece(Clean(f"{glyphs.replay}{glyphs.times}{len(replays)}"), "accent")]
        if diverged := sum(not one.same for one in known_ones):
            pieces.append(Piece(Clean(f" {glyphs.changed}{diverged}"), "diff.chg"))
        elif len(known_ones) == len(replays):
            pieces.append(Piece(Clean(f" {glyphs.same}"), "status.ok"))
        return Tied(mark, before=(*pieces, Piece(Clean("  "))))

    def _letter(self, ref: RunRef) -> str:
        """How a marked run is marked: two are A and B, of more each is only one of them."""
        if ref not in self.marked:
            return ""
        return "AB"[self.marked.index(ref)] if len(self.marked) <= TWO else "+"

    def offered(self, commands: Sequence[Command], ref: RunRef | None) -> Sequence[Command]:
        """The commands that lead somewhere from a run: ``D`` needs another run."""
        screen = self._screen
        run = screen.store.runs.get(ref) if ref is not None else None
        if run is None or has_original(run):
            return commands
        relations = screen.store.relations
        if relations.original(run.ref) is not None or relations.again(run.ref):
            return commands
        return [command for command in commands if command.action != "diff_original"]

    # ---- commands

    def do_mark(self, argument: str) -> None:
        """Mark the run under the cursor, or take the mark off."""
        screen, ref = self._screen, self._screen.runs.ref
        if ref is None:
            return
        if ref in self.marked:
            self.marked.remove(ref)
        else:
            self.marked = [*self.marked, ref]
        screen.refresh_list()
        if len(self.marked) > TWO:
            screen.say(f"{len(self.marked)} runs are marked  ·  C says what they share that the others lack")
        elif len(self.marked) == TWO:
            screen.say("A and B are marked  ·  d compares them  ·  C says what they share")
        elif self.marked:
            screen.say("marked as A  ·  mark another with Space, or d compares with the run under the cursor")

    def do_diff(self, argument: str) -> None:
        """Compare the marked runs."""
        screen = self._screen
        pair = [ref for ref in self.marked if ref in screen.store.runs]
        here = self._here
        if len(pair) == 1 and here is not None and here != pair[0]:
            pair.append(here)
        if len(pair) == TWO:
            self.open(pair[0], pair[1])
        elif len(pair) > TWO:
            screen.say(f"{len(pair)} runs are marked: d compares two, C says what all of them share", "status.warn")
        else:
            screen.say("Space marks a run; d compares two marked ones, D one with its original", "status.warn")

    @property
    def _here(self) -> RunRef | None:
        """The run that is looked at: in the list that under the cursor, which may not be shown yet."""
        screen = self._screen
        return screen.ref if screen.level else screen.runs.ref

    def do_diff_original(self, argument: str) -> None:
        """Compare a replay with its original, or an original with its replays."""
        ref = self._here
        if ref is not None and ref in self._screen.store.runs and (said := self.compare_with_original(ref)):
            self._screen.say(said, "status.warn")

    def compare_with_original(self, ref: RunRef) -> str:
        """The same for any run; what stands against it, in words, if nothing can be compared."""
        screen = self._screen
        run = screen.store.runs[ref]
        relations = screen.store.relations
        original, replays = relations.original(run.ref), relations.again(run.ref)
        if original is not None:
            self.open(original, run.ref)
        elif has_original(run):
            return f"its original, {run.replay_of or run.replay_of_path}, is not in this directory"
        elif len(replays) == 1:
            self.open(run.ref, replays[0])
        elif replays:
            from tracetui.ui.screens.replays import ReplaysScreen

            screen.app.push_screen(ReplaysScreen(run, replays, screen.app.commands))
        else:
            return "it has no original and no replays; Space marks two runs that d compares"
        return ""

    def open(self, a: RunRef, b: RunRef) -> None:
        """Open the comparison of two runs."""
        from tracetui.ui.screens.diff import DiffScreen

        app, store = self._screen.app, self._screen.store
        known = [run for ref in (a, b) if (run := store.opened(ref)) is not None and self._is_new(run)]
        relation = store.relations.relation(b) if store.relations.original(b) == a else None
        app.open_screen(DiffScreen(Compare(a, b, relation), known, app.commands))

    def _is_new(self, run: Run) -> bool:
        """Whether a run that was read is as its file is now, as far as is known."""
        listed = self._screen.store.runs.get(run.summary.ref)
        return listed is None or listed.modified_at <= run.summary.modified_at

    def do_context(self, argument: str) -> None:
        """Compare what the model call under the cursor was given with what the one before it was given."""
        from tracetui.diff.context import previous_call
        from tracetui.ui.screens.context import ContextScreen

        screen = self._screen
        run, span = screen.steps.run, screen.steps.span
        if run is None or span is None or span.operation is not Operation.CHAT:
            screen.say("c compares contexts: go to a model call first (]m or [m)", "status.warn")
            return
        before = previous_call(run, run.index[span.id])
        if before is None:
            screen.say("this is the first model call of its agent", "status.warn")
            return
        ask = Calls(run.summary.ref, run.spans[before].id, span.id)
        screen.app.push_screen(ContextScreen(ask, run, screen.app.commands))


def _short(verdict: Verdict, glyphs: Glyphs) -> Line:
    if verdict.same:
        return (Piece(Clean(f" {glyphs.same}"), "status.ok"),)
    step = f" {one_line(verdict.step, 40)}" if verdict.step else ""
    return (Piece(Clean(f" {glyphs.changed}{step}"), "diff.chg"),)
