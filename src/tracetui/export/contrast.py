"""The contrast of two sets of runs as JSON: the field `contrast` of a triage (docs/json.md)."""

from __future__ import annotations

from typing import Any

from tracetui.analysis.contrast import Contrast, Finding
from tracetui.model import quote_key
from tracetui.redact import Redactor


def contrast_value(found: Contrast, redactor: Redactor | None = None) -> dict[str, Any]:
    """The findings, strongest first. Text is exact, or masked by `redactor`."""
    return {"findings": [_finding(one, redactor) for one in found.findings], "note": found.note or None}


def _finding(found: Finding, redactor: Redactor | None) -> dict[str, Any]:
    words = [feature.words for feature in found.features]
    return {
        "features": words if redactor is None else [redactor.header(text) for text in words],
        "in": found.in_a,
        "of": found.of_a,
        "in_others": found.in_b,
        "of_others": found.of_b,
        "p": found.p,
        "example": address_of(found),
    }


def address_of(found: Finding) -> str:
    """The address of the example: a run, or a step in it."""
    ref, span = found.example
    return ref.address if span is None else f"{ref.address}/{quote_key(span)}"
