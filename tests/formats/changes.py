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
        container = stack.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        places += [(container, key) for key in keys]
        stack += [container[key] for key in keys if isinstance(container[key], dict | list)]
    return chance.choice(places or [(value, "type")])
