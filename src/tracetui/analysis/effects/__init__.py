"""What agents did to the world: effects of tool calls, from the log alone.

A trace can claim what never happened; nothing here is checked against the world.
"""

from tracetui.analysis.effects.calls import Call, RunEffects, is_bypass, run_effects
from tracetui.analysis.effects.edits import edits_of
from tracetui.analysis.effects.text_diff import compare
from tracetui.analysis.effects.tools import call_effects
from tracetui.analysis.effects.vocabulary import CHANGES, Certainty, Edit, Effect, Flag, Kind, Outcome

__all__ = [
    "CHANGES",
    "Call",
    "Certainty",
    "Edit",
    "Effect",
    "Flag",
    "Kind",
    "Outcome",
    "RunEffects",
    "call_effects",
    "compare",
    "edits_of",
    "is_bypass",
    "run_effects",
]
