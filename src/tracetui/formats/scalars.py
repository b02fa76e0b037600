"""Single values of traces, taken for what they say and nothing more."""

from __future__ import annotations

import math
from typing import Any, Final

LENGTH: Final = 120
"""Characters of a version."""


def version(*values: Any) -> str | None:
    """The first of `values` that says a version: a text with something in it."""
    return next((value[:LENGTH] for value in values if isinstance(value, str) and value), None)


def layout(value: Any) -> str | None:
    """``schema 2``: the version of how records are laid out, for a writer that does not tell its own."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    return f"schema {str(value)[:LENGTH]}"


def number(value: Any) -> float | None:
    """`value` as a float if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None
