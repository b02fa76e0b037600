"""Unknown fields of records that are not decoded into declared Structs (see `tracetui.formats.schema` for those).

Programs add fields all the time: how many there are, and where, says how far a trace is from what was known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from tracetui.formats.schema import Unknown, count
from tracetui.model.ledger import Kinds, kinds_of
from tracetui.model.tally import NAME_LENGTH

_SHAPES: Final = 4_096
"""Key sets that are remembered."""

keys_of: Final[Callable[[bytes | memoryview], Mapping[str, Any]]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""The names of the fields of an object as it is written, without decoding what is in them."""


class Fields:
    """The fields that are known of each kind of record, names between blanks; other kinds are not looked at.

    `common` are those that records of every kind have. Only what was compared is remembered, so that a `Fields` is as
    good as a constant.
    """

    def __init__(self, kinds: Mapping[str, str], common: str = "") -> None:
        shared = frozenset(common.split())
        self._known = {kind: shared.union(names.split()) for kind, names in kinds.items()}
        self._shapes: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def count(self, unknown: Unknown, kind: str, names: Iterable[str]) -> None:
        """Count in `unknown` the fields of a record of that kind that are not known."""
        shape = kind, tuple(names)
        found = self._shapes.get(shape)
        if found is None:
            known = self._known.get(kind)
            found = (
                () if known is None else tuple(f"{kind}.{name}"[:NAME_LENGTH] for name in shape[1] if name not in known)
            )
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            self._shapes[shape] = found
        for name in found:
            count(unknown, name)


def unknown_fields(*parts: Unknown) -> Kinds:
    """All of them added up, for `Header.fields`."""
    return kinds_of(item for part in parts for item in part.items()) if any(parts) else ()
