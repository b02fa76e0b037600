"""What keeps the main screen true while agents work: it follows, ticks, tells silence, and says what failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracetui.live.mail import Mail, Watching
from tracetui.model import Run, RunRef, RunSummary
from tracetui.text import Clean
from tracetui.ui.commands import RUNS, Command
from tracetui.ui.controllers.arranging import SHARE
from tracetui.ui.terminal.wall import notification
from tracetui.ui.widgets.frame import GOING, Vitals
from tracetui.ui.widgets.lines import LineBar
from tracetui.views.arrange import moment
from tracetui.views.liveness import UNKNOWN_MS, Liveness, State, liveness, summary_state
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, Piece
from tracetui.views.silence import arrival_counts, sentence, strip

if TYPE_CHECKING:
    from tracetui.ui.screens.main import MainScreen

TICK_SECONDS: Final = 1.0
SLOW_TICKS: Final = 5
"""On a slow line what only time changes is drawn anew every so many ticks."""
AGE_TICKS: Final = 30
"""Ticks after which ages are drawn anew."""

_KEPT: Final = "; shown is what was read of it"


class Live:
    """Belongs to the main screen, as its actions do."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        screen.steps.stands = self.state_of
        self.watching = Watching()
        self.notify = False
        """Whether the terminal rings when a run fails."""
        self.newest = False
        """Follow the newest run as soon as it is known which one that is."""
        self.strip = LineBar("raised", id="strip")
        self._opened: tuple[RunRef, bool] | None = None
        self._explained: Line | None = None
        """What was said of the state of the open run; it is kept true."""
        self._listed = self._preloaded = False
        self._missing = False
        """Whether the open run is not listed any more."""
        self._ticks = 0
        self._counted = (-1, 0)
        self._count_after = 0.0
        self._stands: tuple[tuple[Run, int, float], Liveness] | None = None
        self._standing: Counter[State] = Counter()

    # ---- what arrives

    def take(self, mail: Mail) -> None:
        """Take in what is known of the directory and of open runs."""
        screen, store, now = self._screen, self._screen.store, self._screen.app.clock()
        self.watching = mail.watching or self.watching
        screen.app.engine.follow(screen.steps.following)  # the pane itself lets go: by a key, the wheel, another run
        if mail.found:
            store.apply(mail.found, now)
        if mail.listed:
            store.end_scan()
        for (ref, _), (span, body) in mail.bodies.items():
            store.keep_body(ref, span, body)
        for run in mail.runs.values():
            store.keep(run)
            if run.complete:
                store.put(run.summary, now)
        failed = store.newly_failed()
        if self._listed and failed:
            self._tell(failed)
        if not self._listed and not screen.app.stage:
            self._listed = True
            screen.app.engine.later(self._preload)
        if screen.said is self._explained:
            self.explain()
        missing = bool(screen.level) and screen.ref is not None and screen.ref not in store.runs
        if missing and not self._missing:
            screen.said = ()  # what a key said before must not hide it
        self._missing = missing

    def _tell(self, failed: list[RunRef]) -> None:
        """A run failed: ring, if that is wanted."""
        runs = [run for ref in failed if (run := self._screen.store.runs.get(ref)) is not None and run.parent is None]
        if self.notify and runs:
            first = runs[0]
            more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
            cause = first.first_error.words if first.first_error is not None else first.outcome
            self._screen.app.send(notification(one_line(f"{first.name} failed{more}: {cause}", 120)))

    # ---- following

    def follow(self, on: bool) -> None:
        """Keep the newest step in view, or no longer."""
        screen = self._screen
        if screen.steps.run is None:
            return
        if on:
            screen.steps.attach()
            screen.show_detail()
        else:
            screen.steps.detach()
        screen.app.engine.follow(on)
        screen.refresh_frame()

    def entered(self, ref: RunRef, *, follow: bool = False) -> None:
        """A run is being opened: it is followed if it is still going, or if that is wanted in any case."""
        self._opened = ref, follow
        run = self._screen.steps.run
        if run is not None and run.summary.ref == ref:
            self.shown(run)

    def shown(self, run: Run) -> None:
        """A state of the run is shown: if it was opened just now, begin to follow."""
        if self._opened is None or self._opened[0] != run.summary.ref or not run.complete:
            return
        _, wanted = self._opened
        self._opened = None
        if wanted or self.state_of(run).state in GOING:
            self.follow(True)

    def listed(self) -> None:
        """The list was arranged: once all runs are in it, nothing moves the cursor any more but the reader."""
        self._go_to_newest()
        complete = self._listed and self._screen.arranging.whole
        self._screen.runs.chosen |= complete
        self._screen.runs.complete |= complete

    def _go_to_newest(self) -> None:
        """Open the newest run and follow it, once all are listed; as long as there is none, the first that comes."""
        screen = self._screen
        if self.newest and screen.app.stage != "list" and (runs := screen.store.runs):
            ref = max(runs.values(), key=lambda run: (moment(run), run.parent is None)).ref
            if screen.arranging.has_come_to(ref):
                self.newest = False
                screen.runs.chosen = True
                screen.runs.move_to_key(ref)
                screen.actions.enter(ref, follow=True)

    def reading(self) -> None:
        """The reader moves within the detail: it does not go to the next step under their eyes."""
        if self._screen.steps.following:
            self.follow(False)

    def moved(self) -> None:
        """The cursor of the steps moved: away from the newest one means that it is no longer followed."""
        steps = self._screen.steps
        if steps.following and not steps.at_newest:
            self.follow(False)
        steps.passed(steps.position)

    def worded(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The commands in the words that hold now: what F does while a run is followed, and after."""
        steps = self._screen.steps
        word = "stop following" if steps.following else "follow again" if steps.detached else ""
        if not word or self._screen.pane == RUNS:
            return commands
        return [one._replace(title=word, hint=2) if one.id == "follow" else one for one in commands]

    def _preload(self) -> None:
        """Load what the first comparison and the first filter take, so that they are on the screen at once. In a thread
        of its own.
        """
        import tracetui.live.comparing.differ
        import tracetui.ui.controllers.filtering
        import tracetui.ui.screens.diff  # noqa: F401

        self._preloaded = True

    # ---- the clock

    def start(self) -> None:
        """Begin to tick."""
        self._screen.set_interval(TICK_SECONDS, self.tick)

    def tick(self) -> None:
        """Draw anew what changes with time alone: what lasts, what is silent, how old things are."""
        self._ticks += 1
        screen = self._screen
        if self._preloaded:
            screen.comparing.look_ahead()
        if self._ticks % SLOW_TICKS and screen.app.pace.is_slow(time.monotonic()):
            return
        now = screen.app.clock()
        if screen.said is self._explained:
            self.explain()
        if screen.app.verdicts.refresh():
            screen.judged_elsewhere()
        aged = self._ticks % AGE_TICKS == 0
        if aged:
            screen.arranging.soon()
        else:
            screen.runs.tick(now)
        going = screen.steps.run is not None and self.state_of(screen.steps.run).state is not State.ENDED
        if going or aged:
            screen.steps.tick(now, aged=aged)
        if going:
            self.show_strip()
        if self._standing != self._count() or going:
            screen.refresh_frame()

    # ---- silence

    def state_of(self, run: Run) -> Liveness:
        """How an open run stands now. Found out once a second at most: it takes a look at every span."""
        screen, now = self._screen, self._screen.app.clock()
        changed_at = screen.store.changed_at(run.summary)
        known = (run, int(now), changed_at)
        if self._stands is None or self._stands[0] != known:
            pulse = screen.store.pulses.get(run.summary.ref)
            arrivals = tuple(pulse.arrivals) if pulse is not None else ()
            self._stands = known, liveness(run, now=now, arrivals=arrivals, changed_at=changed_at)
        return self._stands[1]

    def state_in_list(self, run: RunSummary) -> State:
        """How a run of the list stands now."""
        store = self._screen.store
        seen = run.ref in store.pulses
        return summary_state(run, now=self._screen.app.clock(), changed_at=store.changed_at(run), seen=seen)[0]

    def vitals(self) -> Vitals:
        """How things stand at this moment."""
        summary = self._screen.summary
        state = self.state_in_list(summary) if summary is not None else State.ENDED
        if self._screen.steps.run is not None and state is not State.ENDED:
            state = self.state_of(self._screen.steps.run).state
        return Vitals(self.watching, self._count(), state)

    def _count(self) -> Counter[State]:
        """How many top-level runs of which the trace tells no end stand how.

        Counted anew each second and when the store has changed, but for a small part of the time at most.
        """
        store, now = self._screen.store, int(self._screen.app.clock())
        began = time.monotonic()
        if self._counted != (store.revision, now) and began >= self._count_after:
            self._counted = store.revision, now
            runs = (store.runs[ref] for ref in store.unended)
            self._standing = Counter(
                self.state_in_list(run) for run in runs if run.parent is None and self._may_go_on(run)
            )
            counted = time.monotonic()
            self._count_after = counted + SHARE * (counted - began)
        return self._standing

    def _may_go_on(self, run: RunSummary) -> bool:
        """False, at once, for a run of which nothing was heard for so long that nobody knows."""
        store = self._screen.store
        return run.modified_at > self._screen.app.clock() - UNKNOWN_MS / 1000 or run.ref in store.pulses

    def is_going(self, run: RunSummary) -> bool:
        """Whether a run of the list goes on, as far as anybody can tell."""
        return self._may_go_on(run) and self.state_in_list(run) in GOING

    def show_strip(self) -> None:
        """Show how long the open run has been silent, where it may still be going on; else no strip."""
        screen = self._screen
        run = screen.steps.run if screen.level else None
        stands = self.state_of(run) if run is not None else None
        lost = bool(self.watching.lost)  # of a run that cannot be reached nobody knows how silent it is
        shown = stands is not None and stands.state in GOING and not lost
        if shown != self.strip.display:
            self.strip.display = shown
        if run is not None and stands is not None and shown:
            pulse = screen.store.pulses.get(run.summary.ref)
            counts = arrival_counts(pulse.arrivals if pulse else (), screen.app.clock())
            self.strip.show(*strip(stands, screen.size.width, screen.app.look.glyphs, per_minute=counts))

    def sentence(self, width: int) -> Line:
        """What is to be said before anything else: the link is lost, or the open run waits for too long."""
        screen = self._screen
        if self.watching.lost:
            return (
                Piece(Clean("connection lost  "), "status.error bold"),
                Piece(one_line(self.watching.lost, 120), "text"),
                Piece(Clean("  ·  what is shown is what was read before; trying again"), "sec"),
            )
        run = screen.steps.run if screen.level else None
        if run is None:
            return ()
        if run.summary.ref not in screen.store.runs:
            return (Piece(self._lost(run.summary.ref), "status.warn bold"), Piece(Clean(_KEPT), "sec"))
        return sentence(self.state_of(run), run, width, screen.app.look.glyphs, now=screen.app.clock())

    def _lost(self, ref: RunRef) -> Clean:
        """Why an open run is not listed any more."""
        store = self._screen.store
        if ref.path in store.problems:
            return one_line(f"its file cannot be read any more: {store.problems[ref.path][0].reason}", 200)
        others = any(other.path == ref.path for other in store.runs)
        return Clean("its file does not hold it any more" if others else "its file is gone")

    def explain(self) -> None:
        """Say why the open run counts as running, quiet or stalled; until the next key it is kept true."""
        run = self._screen.steps.run
        if run is None:
            self._screen.say("no run is open")
            return
        stands = self.state_of(run)
        self._screen.say(f"{stands.state}: {stands.reason}")
        self._explained = self._screen.said
