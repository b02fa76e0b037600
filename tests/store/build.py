"""Runs to judge."""

from __future__ import annotations

from typing import Any

from tracetui.model import RunRef, RunSummary


def make_summary(own: str = "0690e0f0", *, path: str = "", **rest: Any) -> RunSummary:
    """The summary of a failed run of an agent."""
    known = {"agent": "researcher", "started_at": 1_763_730_562.25, "prompt": "which subsidies?", **rest}
    return RunSummary.of(ref=RunRef("any", path or f"/traces/{own}.json"), id=own, name="researcher", **known)
