"""What the palette finds: commands and runs. Everything it shows is `Content`, never markup."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from tracetui.masking import one_line
from tracetui.text import Clean
from tracetui.ui.commands import shown
from tracetui.ui.screens.base import FramedScreen
from tracetui.ui.theme import PALETTES

if TYPE_CHECKING:
    from tracetui.ui.app import TraceApp

MOST_RUNS: Final = 30


class CommandProvider(Provider):
    """Every command of the table, and the themes."""

    @property
    def _entries(self) -> list[tuple[Clean, Clean, Callable[[], object]]]:
        app: TraceApp = self.app  # type: ignore[assignment]
        screen = self.screen if isinstance(self.screen, FramedScreen) else app.main
        entries: list[tuple[Clean, Clean, Callable[[], object]]] = [
            (
                Clean(f"{command.title}  {shown(command.keys[0])}"),
                Clean(command.help),
                partial(screen.perform, command),
            )
            for command in app.commands
            if command.group not in ("move",) and screen.pane in command.panes
        ]
        entries += [
            (Clean(f"theme {name}"), Clean("Change the theme."), partial(app.use_palette, name)) for name in PALETTES
        ]
        return entries

    async def discover(self) -> Hits:
        for name, words, run in self._entries:
            yield DiscoveryHit(Content(name), run, help=escape(words))

    async def search(self, query: str) -> Hits:
        app: TraceApp = self.app  # type: ignore[assignment]
        command, _, words = query.partition(" ")
        if command == "grep" and words:
            search = partial(app.main.search_runs, words)
            yield Hit(1.0, Content(f"grep all runs for {one_line(words, 80)}"), search)
        matcher = self.matcher(query)
        for name, words, run in self._entries:
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, Content(name), run, help=escape(words))


class RunProvider(Provider):
    """Runs by a query, as the filter of the list takes it: words of the id, name, prompt, error …, ``status:error``."""

    async def search(self, query: str) -> Hits:
        from tracetui.store.query import begun

        app: TraceApp = self.app  # type: ignore[assignment]
        wanted, error = begun(query, app.query_context())
        if error is not None and not error.unfinished:
            return
        for run in wanted.select(app.store.runs.values())[:MOST_RUNS]:
            label = one_line(f"{run.status.value:<9} {run.name}  {run.id}  {run.prompt}", 160)
            yield Hit(0.5, Content(label), partial(app.main.enter, run.ref))
