"""What the screens offer to compare a run with."""

from __future__ import annotations

from tracetui.live.scan import ScannedFile
from tracetui.model import RunRef, RunSummary
from tracetui.store.store import Store
from tracetui.ui.commands import COMMANDS
from tracetui.ui.services.findings import Comparisons


def repetition(path: str) -> RunSummary:
    return RunSummary.of(RunRef("any", path), id=path, name="triage", repeats="triage the inbox", started_at=1.0)


def test_a_comparison_is_offered_once_the_list_is_complete() -> None:
    store = Store()
    store.apply([ScannedFile(path=name, format="any", runs=(repetition(name),)) for name in ("a", "b")], 0.0)
    stage = "list"
    comparisons = Comparisons(store, lambda: not stage)

    def is_offered() -> bool:
        available = comparisons.available_commands(COMMANDS, RunRef("any", "b"))
        return any(command.id == "diff-original" for command in available)

    assert not is_offered(), "finding relations in a list that grows takes longer than reading it"
    stage = ""
    assert is_offered()
