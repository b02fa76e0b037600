"""The context of a run: what fills the input of its calls, what carrying it costs, and why the cache was missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from textual import events, on
from textual.app import ComposeResult

from tracetui import masking
from tracetui.analysis.context import Call, Ledger
from tracetui.analysis.context_feed import RunContext
from tracetui.live.mailbox import Mail
from tracetui.masking import clean, one_line
from tracetui.model import RunRef
from tracetui.model.run import quote_key
from tracetui.store.address import step_number
from tracetui.text import Clean, grouped, quantity
from tracetui.ui import context_state as states
from tracetui.ui import layout
from tracetui.ui.base_app import HostApp
from tracetui.ui.commands import BREAKS, CALL, CONTENTS, RIVER, Command
from tracetui.ui.context_state import ContextState
from tracetui.ui.panes.context import Breaks, Contents, OneCall, River
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box, LineBar
from tracetui.views.context import NO_CALLS
from tracetui.views.context_page import Band, bands_of, call_title, legend_of_marks, panel_title, sentence, split_lines
from tracetui.views.diff.steps import name_of
from tracetui.views.rows import Line, Piece

_NARROW_RIVER: Final = 11
"""Rows of the river on a narrow screen."""
_LEAST_RIVER: Final = 9
_CALL_ROWS: Final = 5
"""Rows of the pane of the call, where it isn't beside another."""


_LIST_ROWS: Final = 18
"""Rows of the pane of the call beside the contents: each text that entered has its own."""


class RunContextScreen(BaseScreen):
    """River, breaks, contents and call of a run. Renders a `ContextState`; grows with the run."""

    AUTO_FOCUS = ""
    app: HostApp
    state: ContextState

    def __init__(self, ref: RunRef, commands: Sequence[Command], state: ContextState | None = None) -> None:
        """Begin in a state in which the page was left."""
        self.river, self.breaks, self.contents, self.call = River(), Breaks(), Contents(), OneCall()
        views: dict[str, LineView] = {
            RIVER: self.river, BREAKS: self.breaks, CONTENTS: self.contents, CALL: self.call,
        }  # fmt: skip
        super().__init__(commands, views, state or ContextState(ref=ref))
        self._ref = ref
        self._split, self._legend = LineBar("bg", id="split"), LineBar("bg", id="legend")
        self._body = Box(*views.values(), id="context")
        self._run_context: RunContext | None = None
        self._bands: Sequence[Band] = ()
        self._rows = ""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield self._split
        yield self._legend
        yield self._body
        yield self._footer

    def on_mount(self) -> None:
        self.app.engine.enter(self._ref)
        self._arrange_panes()
        self.view.focus()
        self.call_after_refresh(self._refresh_context)

    def on_screen_resume(self) -> None:
        self._refresh_context()

    # ---- the state

    def become(self, state: ContextState) -> None:
        """Replace the state and render the changes."""
        before, self.state = self.state, state
        if (state.pane, state.zoom) != (before.pane, before.zoom):
            self._arrange_panes()
            self.set_focus(self.view)
        if state.call != before.call:
            self._show_call()
        if (state.unfolded, state.sort) != (before.unfolded, before.sort):
            self._show_contents()
            self._arrange_panes()

    def pane_focused(self, name: str) -> None:
        super().pane_focused(name)
        self._arrange_panes()

    def step_back(self) -> None:
        following = states.go_back(self.state)
        if following is None:
            self.leave()
        else:
            self.become(following)

    def recreate(self) -> RunContextScreen:
        return RunContextScreen(self._ref, self.commands, self.state)

    # ---- data

    def receive(self, mail: Mail) -> None:
        if self._ref in mail.runs or self._ref in mail.contexts:
            self._refresh_context()

    def _refresh_context(self) -> None:
        """Show the context as far as it is read, and request that of a newer state of the run."""
        run = self.app.store.opened(self._ref)
        if run is None:
            self.app.engine.open(self._ref)
        context = self.app.assessments.context_of(run) if run is not None else None
        if context is not None and context is not self._run_context:
            self._run_context = context
            self._bands = bands_of(context.ledger, masking.current())
            self._show_contents()
            self._show_call()
            self._arrange_panes()
        elif context is None:
            self.river.show_message(Clean("reading the context …"))
        self.refresh_frame()

    @property
    def settled(self) -> bool:
        """Whether the context of the latest state of the run is shown."""
        context = self._run_context
        return context is not None and context.is_complete and context.run is self.app.store.opened(self._ref)

    @property
    def _ledger(self) -> Ledger | None:
        return self._run_context.ledger if self._run_context is not None else None

    @property
    def selected(self) -> Call | None:
        """The call under the cursor."""
        ledger = self._ledger
        return states.current_call(self.state, ledger.calls) if ledger is not None else None

    def _show_contents(self) -> None:
        if self._ledger is not None:
            state = self.state
            self.contents.show_contents(self._ledger, self._bands, unfolded=state.unfolded, sort=state.sort)

    def _show_call(self) -> None:
        """Show the selected call in all panes."""
        ledger, call, context = self._ledger, self.selected, self._run_context
        if ledger is None or context is None:
            return
        if call is None:
            self.river.show_message(NO_CALLS if context.is_complete else Clean("no model call yet"))
            self.breaks.show_breaks(ledger, None)
            self.call.show_call(None, (), Clean(""), 0)
            return
        chain = states.conversation(call, ledger.calls)
        self.river.title = self._agent(call, ledger)
        self.river.show_calls(chain, self._bands, call.number)
        self.breaks.show_breaks(ledger, call.number)
        span = context.run.span(call.span)
        step = None if span is None else step_number(context.run, span)
        title = call_title(call, step, self.app.look.zone, self.app.look.glyphs)
        self.call.show_call(call, self._bands, title, len(ledger.calls))
        self.refresh_frame()

    def _agent(self, call: Call, ledger: Ledger) -> Line:
        """Whose conversation the river shows, if there are several; else what its marks mean."""
        agents = dict.fromkeys(other.agent for other in ledger.calls)
        if len(agents) < 2 or self._run_context is None:
            return legend_of_marks(ledger, self.app.look.glyphs)
        span = None if call.agent is None else self._run_context.run.span(call.agent)
        name = one_line(span.name, 40) if span is not None else Clean("main")
        number = f"{[*agents].index(call.agent) + 1} of {len(agents)}"
        return (
            Piece(name, "sec"),
            Piece(Clean(f" {number} "), "dim"),
            Piece(Clean("]a"), "key bold"),
            Piece(Clean(" next"), "dim"),
        )

    # ---- layout

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self._arrange_panes()

    def _arrange_panes(self) -> None:
        """Lay out the panes for the zoom and the size."""
        size, state = self.app.size, self.state
        narrow, wide = size.width < layout.NARROW, size.width >= layout.WIDE
        below = state.pane if state.pane != RIVER else CONTENTS
        hides_breaks = not self._has_breaks and state.pane != BREAKS
        for name, view in self.views.items():
            is_shown = name in (RIVER, below) if narrow else name != BREAKS or not hides_breaks
            is_shown = is_shown and (self._has_calls or name == RIVER)
            view.display = name == state.zoom if state.zoom is not None else is_shown
        is_alone = state.zoom is not None
        shapes = {"wide": wide and not is_alone, "narrow": narrow and not is_alone, "alone": is_alone}
        self.apply_classes(shapes | {"unbroken": hides_breaks})
        self.river.styles.height = _NARROW_RIVER if narrow and not is_alone else "1fr"
        lines = self._split_lines()
        self._split.display, self._legend.display = bool(lines) and not narrow, bool(lines)
        height = size.height - layout.FRAME - 2 * bool(lines)
        wanted = self.contents.wanted_height
        contents = max(6, min(wanted, height - _CALL_ROWS - _LEAST_RIVER))
        rows = f"1fr {min(max(wanted, _LIST_ROWS), height // 2)}" if wide else f"1fr {contents} {_CALL_ROWS}"
        if rows != self._rows:
            self._rows = self._body.styles.grid_rows = rows

    @property
    def _has_breaks(self) -> bool:
        """False once the calls are read and no cache was missed: the sentence says so, and the river gets the room."""
        return self._ledger is None or bool(self._ledger.breaks)

    @property
    def _has_calls(self) -> bool:
        """False once the steps are read and no call records its tokens: the river's message is all there is to say."""
        return self._run_context is None or not self._run_context.is_complete or bool(self._run_context.ledger.calls)

    def reachable(self) -> Sequence[str]:
        if not self._has_calls:
            return [RIVER]
        return [name for name in self.views if name != BREAKS or self._has_breaks]

    def _split_lines(self) -> Sequence[Line]:
        ledger = self._ledger
        return () if ledger is None else split_lines(ledger, self.app.size.width - 4, self.app.look.glyphs)

    # ---- the frame

    def refresh_frame(self) -> None:
        context, width, glyphs = self._run_context, self.app.size.width, self.app.look.glyphs
        run = self.app.store.summary(self._ref)
        left: list[Piece] = [Piece(Clean("tracetui"), "accent bold"), Piece(Clean("  "))]
        if run is not None:
            left += [Piece(clean(run.name, 40), "text bold"), Piece(Clean(f" {name_of(run)} {glyphs.path} "), "sec")]
        left.append(Piece(Clean("context"), "text bold"))
        right: Line = ()
        if context is not None and run is not None:
            model = one_line(run.model, 30) if run.model and width >= layout.NARROW else ""
            parts = filter(None, (model, panel_title(context.ledger, run)))
            right = (Piece(Clean(f" {glyphs.dot} ".join(parts)), "sec"),)
        self._header.show(tuple(left), right)
        self._sentence.show(self.status_message or self._summary())
        lines = self._split_lines()
        if lines:
            self._split.show(lines[0])
            self._legend.show(lines[1])
        self.refresh_footer()

    @property
    def idle_commands(self) -> frozenset[str]:
        if self._run_context is None or not self._has_calls:
            return frozenset(command.id for command in self.commands) - {"back", "quit"}
        command_ids = super().idle_commands
        if not self._run_context.ledger.breaks:
            command_ids |= {"next-break"}
        row = self.contents.row
        return command_ids if row is not None and (row.unfolds or row.depth) else command_ids | {"unfold-content"}

    def _summary(self) -> Line:
        context = self._run_context
        if context is None or not self._has_calls:  # the river's message says why
            return ()
        spans = len(context.run.spans)
        done = "" if context.is_complete else f"reading, {grouped(context.done)} of {quantity(spans, 'span')}"
        return sentence(context.ledger, masking.current(), done=done)

    # ---- the cursor

    @property
    def ref(self) -> RunRef:
        return self._ref

    def copyable(self, what: str) -> str | None:
        call = self.selected
        if what == "address" and call is not None:
            return f"{self._ref.address}/{quote_key(call.span)}"
        return super().copyable(what)

    @on(LineView.Moved, f"#{BREAKS}")
    def _break_moved(self, message: LineView.Moved) -> None:
        if isinstance(message.key, int) and self.pane == BREAKS:
            self.become(replace(self.state, call=message.key))

    @on(River.Stepped)
    def _stepped(self, message: River.Stepped) -> None:
        self.action_call(message.step)

    # ---- commands

    def _select(self, state: ContextState | None, message: str) -> None:
        if state is None:
            self.say(message, "status.warn")
        else:
            self.become(state)

    def action_call(self, step: int) -> None:
        """Go to the next call of the conversation, or the one before."""
        if self._ledger is not None and (state := states.step_call(self.state, self._ledger.calls, step)) is not None:
            self.become(state)

    def action_break(self, step: int) -> None:
        """Go to the next cache break, or the one before."""
        if self._ledger is not None:
            state = states.step_break(self.state, self._ledger.calls, step)
            self._select(state, "no later breaks" if step > 0 else "no earlier breaks")

    def action_conversation(self, step: int) -> None:
        """Go to the conversation of the next agent, or the one before."""
        if self._ledger is not None:
            self._select(states.step_conversation(self.state, self._ledger.calls, step), "no more agents")

    def action_sort(self) -> None:
        """Sort the contents by the next column."""
        self.become(states.sort_by_next(self.state))

    def action_unfold_content(self) -> None:
        """Unfold or fold the content under the cursor."""
        row = self.contents.row
        if row is not None and (row.unfolds or row.depth):
            self.become(replace(self.state, unfolded=self.state.unfolded ^ {row.key[:1]}))

    def action_open(self) -> None:
        """Go to the step of the call under the cursor."""
        call = self.selected
        if call is not None:
            self.app.visit(self._ref, call.span)

    def action_same(self, what: str, step: int) -> None:
        """Go to the next model call, or the one before."""
        self.action_call(step)

    def action_context(self) -> None:
        """Compare the input of the call under the cursor with that of the previous call."""
        call, context = self.selected, self._run_context
        if call is not None and context is not None and (reason := self.app.compare_inputs(context.run, call.span)):
            self.say(reason, "status.warn")

    def action_context_page(self) -> None:
        """It is open."""

    def action_reread(self) -> None:
        """Read the run again."""
        self.app.engine.open(self._ref, reload=True)
        self.say("re-reading the run")
