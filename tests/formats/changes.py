"""What may be otherwise in a trace: some value, somewhere in it."""

from __future__ import annotations

import random
from typing import Any, Final

VALUES: Final[tuple[Any, ...]] = (
    None,
    "",
    "x",
    "completed",
    "failed",
    "user",
    "assistant",
    0,
    1,
    -1,
    2.5,
    True,
    False,
    [],
    {},
    ["x"],
)
"""What a value may become."""


def somewhere(value: Any, chance: random.Random) -> tuple[Any, Any]:
    """(container, key) of some value in it; of a new one where there is none."""
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        one = stack.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one))
        places += [(one, key) for key in keys]
        stack += [one[key] for key in keys if isinstance(one[key], dict | list)]
    return chance.choice(places or [(value, "type")])
