"""Single values of traces, taken for what they say and nothing more."""

from __future__ import annotations

import math
from typing import Any


def number(value: Any) -> float | None:
    """`value` as a float if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None
