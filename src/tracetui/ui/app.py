"""The application: owns the engine, the store and the services, and opens the screens."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, ClassVar, Final

from rich.console import RenderableType
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.binding import Binding
from textual.events import Event, InputEvent
from textual.message import Message
from textual.screen import Screen

from tracetui import masking
from tracetui.analysis import prices
from tracetui.live.engine import Engine
from tracetui.live.mailbox import Calls, Mail
from tracetui.masking import clean_lines, mask, one_line
from tracetui.model import PassRule, Run, RunRef, RunSummary
from tracetui.processes import program_path
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.sources.local import LocalSource, is_confined
from tracetui.sources.locations import DATABASES
from tracetui.store import address
from tracetui.store.facts import NO_EFFECTS, ContextUse, EffectFacts
from tracetui.store.store import Store
from tracetui.text import quantity
from tracetui.ui import config
from tracetui.ui.base_app import HostApp, run_to_exit
from tracetui.ui.commands import COMMANDS as TABLE
from tracetui.ui.commands import RUNS, Command, allowed_in_browser
from tracetui.ui.screens.base import BaseScreen, RunsScreen
from tracetui.ui.screens.main import MainScreen
from tracetui.ui.services.causes import Causes
from tracetui.ui.services.contexts import ContextService
from tracetui.ui.services.exports import Exporter
from tracetui.ui.services.findings import Assessments, Comparisons, JobService
from tracetui.ui.services.links import LinkService
from tracetui.ui.services.liveness import LivenessTracker
from tracetui.ui.services.verdicts import Verdicts
from tracetui.ui.state import MainState, SearchTarget, first_state
from tracetui.ui.terminal.driver import CroppedUpdate
from tracetui.ui.terminal.safety import notification
from tracetui.ui.terminal.throttle import GarbageCollector, PaintThrottle
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.labels import start_label

if TYPE_CHECKING:
    from tracetui.analysis.tasks import Trial
    from tracetui.live.jobs import TreeResult
    from tracetui.store.query import Context
    from tracetui.ui.state import TasksState
    from tracetui.ui.triage_state import TriageState
    from tracetui.ui.widgets.prompt import Filter

FIRST_MAIL_SECONDS: Final = 0.06
"""Longest wait of the first paint for content."""
OPENING_SECONDS: Final = 0.05
"""Panes of a new screen report their sizes for so long."""


class MailWaiting(Message):
    """The engine's mailbox is no longer empty."""


class EffectsWanted(Message):
    """A query asks what runs did that aren't read yet."""


class ContextsWanted(Message):
    """A query asks how runs used the context window that aren't read yet."""


class TraceApp(HostApp):
    """tracetui in a terminal."""

    BINDINGS: ClassVar = [Binding("ctrl+p", "command_palette", "palette", show=False, priority=True)]
    """Opens the palette from every screen and prompt, instead of Textual's own one."""

    def __init__(
        self,
        engine: Engine,
        roots: Sequence[str],
        *,
        palette: str = "dark",
        glyphs: Glyphs = UNICODE,
        zone: tzinfo | None = None,
        commands: Sequence[Command] = TABLE,
        state: MainState | None = None,
        slow: bool = False,
        notify: bool = False,
        rule: PassRule | None = None,
        today: bool = False,
    ) -> None:
        """`notify`: ring the terminal's bell when a run fails. `today`: start with the *today* page.

        `rule`: which score makes a run pass.
        """
        super().__init__(commands, palette=palette, glyphs=glyphs, zone=zone)
        self.throttle = PaintThrottle(slow=slow)
        self.garbage = GarbageCollector()
        self.engine = engine
        self.roots = list(roots)
        self.store = Store(rule)
        self.verdicts = Verdicts(roots)
        self.causes = Causes(self.store, engine, self.verdicts, self.set_timer, self._causes_changed, self._is_listing)
        self.liveness = LivenessTracker(self.store, lambda: self.clock())
        self.assessments = Assessments(engine)
        self.links = LinkService(self.store, engine, self._links_changed)
        self.comparisons = Comparisons(self.store, lambda: not self.stage)
        self.surveys = JobService(self.store, engine)
        self.contexts = ContextService(self.store, engine, self.surveys, roots, lambda: self.clock())
        self.exporter = Exporter(engine, self.store.claims, self.roots)
        self.main = MainScreen(commands, state)
        self.stage, self.seen, self.total = "list", 0, None
        self.listed = self.preloaded = False
        self.waiting_search = ""
        self._notify, self._starts_today = notify, today
        self._mail_due = self._frame_pending = self._wants_effects = self._wants_contexts = False
        self._sent_before: float | None = None
        """Bytes sent before the frame for arrived data that is not painted yet; None without one."""
        self._opening, self._painted, self._opened = True, False, False
        self._read_ahead_for: RunRef | None = None
        """Run for which the likely partner was read ahead last."""
        if is_confined():
            from tracetui.store.query import MaskedFacts

            self.masked_facts = MaskedFacts(masking.current() or Redactor())
        self._triage_state: TriageState | None = None
        """State of the last triage, restored when it opens again."""
        self._tasks_state: TasksState | None = None
        """State of the last task matrix, likewise."""

    def get_default_screen(self) -> MainScreen:
        return self.main

    def on_mount(self) -> None:
        self._receive_first_mail()
        self.engine.bind(self._wake)
        if self._starts_today:
            self.action_today()

    def _wake(self) -> None:
        self.post_message(MailWaiting())

    def open_screen(self, screen: Screen[None]) -> None:
        self._opening = True
        self.push_screen(screen)
        self.set_timer(OPENING_SECONDS, self.finish_opening)

    def finish_opening(self) -> None:
        if self._opening:
            self._opening = False
            if self._frame_pending and self.is_running:
                self.screen.refresh()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Paint; while the screen opens, only full frames.

        Every pane reports its size then, and each report would repaint most of the screen: five times the bytes.
        """
        if self._opening and renderable is not None:
            self._frame_pending = not isinstance(renderable, LayoutUpdate)
            if self._frame_pending:
                return
        super()._display(
            screen, CroppedUpdate.from_update(renderable) if isinstance(renderable, ChopsUpdate) else renderable
        )
        self.garbage.frame_painted()
        if renderable is not None:
            self.frame_painted()

    def frame_painted(self) -> None:
        """After the first frame: begin what would have slowed it down."""
        if not self._painted:
            self._painted = True
            self.engine.first_painted()
            self.set_timer(OPENING_SECONDS, self._first_screen_opened)

    def _first_screen_opened(self) -> None:
        self._opened = True
        self.finish_opening()
        self._causes_changed()

    def _receive_first_mail(self) -> None:
        """Fill the first paint: rows, the run under the cursor and its detail.

        Waits `FIRST_MAIL_SECONDS` at most: painting an empty frame first would take longer.
        """
        end = time.monotonic() + FIRST_MAIL_SECONDS
        while self.engine.wait(end - time.monotonic()):
            self._receive_mail()
            if self.main.ready_to_paint:
                break

    async def on_event(self, event: Event) -> None:
        if isinstance(event, InputEvent):
            self.engine.key()
            self.garbage.key()
        await super().on_event(event)

    def on_mail_waiting(self) -> None:
        """Apply the engine's mail: answers to keys at once, the rest throttled to the terminal's speed."""
        lag = self._driver_stat("lag_seconds")
        wait = 0.0 if self.engine.urgent else self.throttle.delay(time.monotonic(), lag)
        if wait <= 0:
            self._receive_mail()
        elif not self._mail_due:
            self._mail_due = True
            self.set_timer(wait, self._receive_mail)

    def _driver_stat(self, name: str) -> float:
        """A statistic of `TerminalDriver`; 0 under another driver."""
        return float(getattr(self._driver, name, 0.0))

    def _receive_mail(self) -> None:
        self._mail_due = False
        self.throttle.record_frame(time.monotonic())
        if self._sent_before is None:
            self._sent_before = self._driver_stat("sent_bytes")
            self.call_after_refresh(self._record_bytes)
        self.pause_scan()
        mail = self.engine.collect()
        if mail.failure is not None:
            raise mail.failure
        if mail.files or mail.total is not None:
            self.stage, self.seen, self.total = mail.stage, mail.seen, mail.total
        with self.batch_update():
            self._apply(mail)
            for screen in self.screen_stack:
                if isinstance(screen, BaseScreen) and screen is not self.main:
                    screen.receive(mail)
            self.main.receive(mail)

    def _record_bytes(self) -> None:
        before, self._sent_before = self._sent_before, None
        if before is not None:
            self.throttle.record_bytes(int(self._driver_stat("sent_bytes") - before))

    def _apply(self, mail: Mail) -> None:
        """Update the store and the services."""
        store, now = self.store, self.clock()
        self.liveness.watching = mail.watching or self.liveness.watching
        if mail.files:
            store.apply(mail.files, now)
        if mail.listed:
            store.end_scan()
        for (ref, _), (span, body) in mail.bodies.items():
            store.cache_body(ref, span, body)
        for run in mail.runs.values():
            store.cache(run)
            if run.complete and (run.spans or not run.problems):  # else its file may just have moved away
                store.put(run.summary, now)
        mail.runs.update({run.summary.ref: run for run in store.recounted()})
        failed = store.newly_failed()
        if self.listed and self._notify and failed:
            self._notify_failed(failed)
        if not self.listed and not self.stage:
            self.listed = True
            self.engine.run_when_idle(self._preload)
        self.surveys.receive(mail)
        has_effects = mail.progress is not None and mail.progress is self.surveys.effects and mail.progress.finished
        if self.contexts.receive(mail) or has_effects:
            self.main.runs.rearrange()
        for callback in mail.callbacks:
            callback()
        if self.comparisons.receive(mail):
            self.main.runs.redraw_rows()
        if self.assessments.receive(mail, self.main.run_view.run):
            self.main.run_view.show_assessment()

    def _notify_failed(self, failed: Sequence[RunRef]) -> None:
        """Notify of failed runs."""
        runs = [run for ref in failed if (run := self.store.runs.get(ref)) is not None and run.parent is None]
        if runs:
            first = runs[0]
            more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
            cause = first.first_error.text if first.first_error is not None else first.result
            self.send(notification(one_line(f"{first.name} failed{more}: {cause}", 120)))

    def _preload(self) -> None:
        """Import, in a thread, the modules of the first comparison, triage, task matrix and filter, and the prices."""
        import tracetui.analysis.links
        import tracetui.live.differ
        import tracetui.store.query
        import tracetui.ui.screens.diff
        import tracetui.ui.screens.tasks
        import tracetui.ui.screens.triage  # noqa: F401

        self.preloaded = True
        gc.freeze()  # modules and counted runs stay: collecting garbage need not visit them

        def price() -> Callable[[], None]:
            prices.load()
            return self.runs_changed

        if prices.wanted() and prices.installed():
            self.engine.run_in_background(price)

    # ---- navigation between screens

    def _back_to_main(self) -> list[BaseScreen]:
        """Close and return the screens above the main screen."""
        above = [screen for screen in self.screen_stack[1:] if isinstance(screen, BaseScreen)]
        for screen in self.screen_stack[:0:-1]:
            self.close_screen(screen)
        return above

    def visit(
        self, ref: RunRef, span: str | None, target: SearchTarget | None = None, *, follow: bool | None = None
    ) -> None:
        self.main.go_to(ref, span, self._back_to_main(), target, follow=follow)

    def read_main_run(self) -> None:
        if self.main.state.ref is not None:
            self.engine.open(self.main.state.ref)

    def read_ahead(self, ref: RunRef) -> None:
        store = self.store
        if not self.preloaded or ref == self._read_ahead_for or ref not in store.runs or store.opened(ref) is None:
            return
        self._read_ahead_for, other = ref, self.comparisons.likely_partner(ref)
        if other is not None and store.opened(other) is None:
            self.engine.differ.read_ahead(other)

    def reopen(self, origin: Sequence[Hashable]) -> None:
        for screen in origin:
            if isinstance(screen, BaseScreen) and (restored := screen.recreate()) is not None:
                self.push_screen(restored)

    def filter_query(self) -> str:
        return self.main.state.arrangement.query

    def query_context(self) -> Context:
        from tracetui.analysis.triage import QueryContext
        from tracetui.formats import registry
        from tracetui.store import query

        store = self.store
        context: Context = QueryContext(
            self.verdicts.sidecar,
            lambda: store.runs.values(),
            lambda: store.relations,
            self.liveness.run_state,
            registry.names,
            self._effects_of,
            self._context_use,
        )
        return context if self.masked_facts is None else query.BlindContext(context, self.masked_facts)

    def _effects_of(self, run: RunSummary) -> EffectFacts:
        """What a run did, for queries; asks for runs to be read if that isn't known. Any thread may call it."""
        facts, is_current = self.surveys.facts_of(run)
        if not is_current and not self._wants_effects:
            self._wants_effects = True
            self.post_message(EffectsWanted())
        return facts or NO_EFFECTS

    def _context_use(self, run: RunSummary) -> ContextUse:
        """How a run used the context window, as `_effects_of`."""
        use, is_stale = self.contexts.use(run)
        if is_stale and not self._wants_contexts:
            self._wants_contexts = True
            self.post_message(ContextsWanted())
        return use

    def on_effects_wanted(self) -> None:
        """Read runs for a query, unless they are being read."""
        self._wants_effects = False
        if self.surveys.find_facts(self.roots):
            self.main.say("reading runs for this query")

    def on_contexts_wanted(self) -> None:
        """Read the contexts of runs for a query, unless they are being read."""
        self._wants_contexts = False
        if self.contexts.find([*self.store.runs.values()]):
            self.main.say("reading runs for this query")

    def filtered_runs(self) -> list[RunSummary]:
        from tracetui.store import query

        text, runs = self.filter_query(), self.store.runs.values()
        return query.parse_prefix(text, self.query_context())[0].select(runs) if text else list(runs)

    def pick_query(self, on_pick: Callable[[str], None]) -> None:
        from tracetui.store import query
        from tracetui.ui.screens.lists import FacetsScreen

        runs = list(self.store.runs.values())
        facets = query.facets(query.RUN_KEYS, runs, self.query_context())
        self.push_screen(FacetsScreen(facets, len(runs), on_pick, self.commands))

    def filter_runs(self, key: str, value: str | None) -> None:
        from tracetui.store import query

        self._back_to_main()
        if self.main.state.level:
            self.main.focus_pane(RUNS)
        self.main.filter_runs(f"{key}:{'none' if value is None else query.quoted(mask(value))}")

    def runs_changed(self) -> None:
        self.main.runs.rearrange()

    def verdicts_changed(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, RunsScreen):
                screen.verdicts_changed(decided=False)

    def _is_listing(self) -> bool:
        return self.stage == "list" or not self._opened

    def _causes_changed(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, RunsScreen):
                screen.causes_changed()

    def _links_changed(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, RunsScreen):
                screen.links_changed()

    def compare(self, a: RunRef, b: RunRef, spans: tuple[str | None, str | None] | None = None) -> None:
        from tracetui.ui.screens.diff import DiffScreen

        loaded = self.comparisons.loaded_runs(a, b)
        self.open_screen(DiffScreen(self.comparisons.request(a, b), loaded, self.commands, spans))

    def show_run_tree(
        self,
        trials: Sequence[Trial],
        *,
        title: str,
        selected: RunRef | None = None,
        by_chance: float = 0.0,
        merged: TreeResult | None = None,
    ) -> None:
        from tracetui.ui.screens.run_tree import RunTreeScreen
        from tracetui.ui.state import RunTreeState

        first = trials[0].run.ref if trials else None
        state = RunTreeState(
            selected=selected if any(t.run.ref == selected for t in trials) else first, by_chance=by_chance
        )
        self.push_screen(RunTreeScreen(trials, self.commands, state, title=title, result=merged))

    def compare_with_original(self, ref: RunRef) -> str:
        partners = self.comparisons.partners(self.store.runs[ref])
        if isinstance(partners, str):
            return partners
        original, replays = partners
        if len(replays) == 1:
            self.compare(original, replays[0])
        else:
            from tracetui.ui.screens.lists import ReplaysScreen

            self.push_screen(ReplaysScreen(self.store.runs[original], replays, self.commands))
        return ""

    def compare_inputs(self, run: Run, span: str) -> str:
        from tracetui.diff.step import previous_call
        from tracetui.ui.screens.diff import ContextScreen

        before = previous_call(run, run.index[span])
        if before is None:
            return "first model call of its agent: no earlier context"
        self.push_screen(ContextScreen(Calls(run.summary.ref, run.spans[before].id, span), run, self.commands))
        return ""

    def show_context(self, run: Run, span: str | None = None) -> None:
        from tracetui.ui.context_state import ContextState
        from tracetui.ui.screens.context import RunContextScreen

        ref = run.summary.ref
        self.push_screen(RunContextScreen(ref, self.commands, ContextState(ref=ref, span=span)))

    def search_cost(self) -> str:
        runs = map(self.store.runs.__getitem__, self.main.runs.refs() if self.engine.has_database else ())
        spans = [run.spans or 0 for run in runs if run.ref.path.startswith(DATABASES)]
        return f" ({quantity(sum(spans), 'span')} of the database)" if spans else ""

    def search_runs(self, text: str) -> None:
        from tracetui.ui.screens.lists import HitsScreen

        if self.stage == "list":
            self.waiting_search = text
            self.main.say("list still loading; the search starts when it is complete")
            return
        search = self.surveys.search
        if text and (search is None or text != search.text):
            from tracetui.views.list.tables import HitRows

            started, zone = self.clock(), self.look.zone
            rows = HitRows(
                self.store.runs.get,
                glyphs=self.look.glyphs,
                start_of=lambda run: start_label(run, now=started, zone=zone),
                standing=self.liveness.status_of,
            )
            self.surveys.begin_search(text, self.main.runs.refs(), rows)
        if self.surveys.search is not None:
            self.push_screen(HitsScreen(self.surveys.search, self.commands))

    def show_statistics(self, refs: Sequence[RunRef], of: str) -> None:
        from tracetui.live.jobs import statistics_job
        from tracetui.store.claims import NO_SHARES
        from tracetui.ui.screens.lists import StatisticsScreen

        shares = self.store.claims.shares(refs) if len(refs) > 1 else NO_SHARES  # a single run has all that it did
        job = statistics_job(refs, self.store.rule, self.store.relations.inherited_tasks, shares)
        self.push_screen(StatisticsScreen(job, of, self.commands))
        self.surveys.ask(job)

    def show_contrast(self, refs: Sequence[RunRef], of: str) -> None:
        from tracetui.ui.screens.lists import ContrastScreen

        self.push_screen(ContrastScreen(tuple(refs), of, self.commands))
        if not self.surveys.has_contrast(refs):
            self.surveys.contrast(refs)

    def show_effects(self, pane: str, refs: Sequence[RunRef], of: str) -> None:
        from tracetui.ui.screens.effects import SCREENS

        self.push_screen(SCREENS[pane](pane, refs, of, self.commands))

    def show_blame(self, ref: RunRef, span: str, path: str | None = None) -> None:
        from tracetui.live.blame import Subject
        from tracetui.ui.screens.effects import BlameScreen

        self.push_screen(BlameScreen(Subject(ref, span, path), self.commands))

    def action_today(self) -> None:
        """Open the *today* page."""
        from tracetui.ui.screens.today import TodayScreen

        self.open_screen(TodayScreen(self.commands))

    def action_live(self) -> None:
        """Open the dashboard of live runs."""
        from tracetui.ui.screens.today import LiveScreen

        self.open_screen(LiveScreen(self.commands))

    def action_triage(self) -> None:
        """Open the triage in its last state."""
        from tracetui.ui.screens.triage import TriageScreen

        self.push_screen(TriageScreen(self.commands, self._triage_state))

    def save_triage(self, state: TriageState) -> None:
        self._triage_state = state
        self.main.runs.verdicts_changed()

    def action_tasks(self) -> None:
        """Open the task matrix in its last state."""
        from tracetui.ui.screens.tasks import TasksScreen

        self.push_screen(TasksScreen(self.commands, self._tasks_state))

    def save_tasks(self, state: TasksState) -> None:
        self._tasks_state = state

    def run_filter(self) -> Filter:
        return self.main.runs.filter()

    # ---- services for the screens

    def rescan(self) -> None:
        self.store.begin_scan()
        self.engine.rescan()

    def edit(self, text: str) -> None:
        """Open a cleaned copy of `text` in $EDITOR, in a private directory; never the trace itself."""
        chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            name, *options = shlex.split(chosen)
        except ValueError:  # an open quote, or only spaces
            name, options = chosen, []
        program = program_path(name)
        if program is None:
            if isinstance(self.screen, BaseScreen):
                self.screen.say(f"there is no editor {one_line(name)!r} on PATH; set EDITOR", "status.warn")
            return
        with tempfile.TemporaryDirectory(prefix="tracetui-") as directory:
            path = os.path.join(directory, "detail.txt")
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as copy:
                copy.write("\n".join(clean_lines(text)))
            with self.suspend(), suppress(OSError):  # the path isn't that of a program
                subprocess.run([program, *options, path], check=False)  # noqa: S603 — the user's own editor, no shell
        self.refresh()


def run_app(
    paths: Sequence[str],
    *,
    format: str | None = None,
    theme: str | None = None,
    ascii_glyphs: bool = False,
    target: str | None = None,
    source: Source | None = None,
    follow: bool = False,
    newest: bool = False,
    sole: bool = False,
    notify: bool = False,
    slow: bool = False,
    events: bool = True,
    rule: PassRule | None = None,
    served: str | None = None,
    cached: bool = False,
    today: bool = False,
) -> int:
    """Run the application on these files and directories until the user quits; returns the exit status.

    `target`: address to open. `newest`: open the newest run instead; `sole`: the run if it is the only one. `today`:
    start with the *today* page. `follow`: follow the opened run, by default the newest. `events`: False polls. `rule`
    wins over that of the settings.
    `served`: the user is in a browser and may ``read``, or also ``write``.
    `cached`: use the user's cache of runs.
    """
    settings = config.load()
    commands = config.bind_keys(settings)
    if served is not None:
        commands = tuple(command for command in commands if allowed_in_browser(command, write=served == "write"))
    source = source or LocalSource()
    with_ascii = ascii_glyphs or settings.ascii
    masking.choose(ascii_glyphs=with_ascii)
    engine = Engine(
        source, paths, only=format, events=events, cache_limit=config.cache_limit(settings) if cached else 0
    )
    engine.start()
    wanted = address.parse(target, source.is_file) if target is not None else None
    app = TraceApp(
        engine,
        paths,
        palette="ansi" if "NO_COLOR" in os.environ else theme or settings.theme,
        glyphs=ASCII if with_ascii else UNICODE,
        zone=UTC if settings.time == "utc" else None,
        commands=commands,
        state=first_state(config.load_arrangement(settings, paths), wanted, follow=follow, newest=newest, sole=sole),
        slow=slow,
        notify=notify,
        rule=rule or config.rule(settings),
        today=today,
    )

    def cleanup() -> None:
        engine.stop()
        if served != "read":
            config.save_arrangement(app.main.state.arrangement, paths)

    return run_to_exit(app, cleanup)
