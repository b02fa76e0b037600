"""Which fields a format knows of each kind of record. Any other is shown like all are, and counted.

Programs add fields all the time: how many there are, and where, tells how far a trace is from what was known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from tracetui.model.ledger import MORE_KINDS, Kinds, kinds_of
from tracetui.model.tally import NAME_LENGTH

_MOST: Final = 1_000
"""Unknown fields of a run that are told apart: any beyond are counted together."""
_SHAPES: Final = 4_096
"""Key sets that are remembered."""

Strange = dict[str, int]
"""How often each unknown field was met, by ``KIND.FIELD``."""

keys_of: Final[Callable[[bytes | memoryview], Mapping[str, Any]]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""The names of the fields of an object as it is written, without decoding what is in them."""


class Envelope:
    """Records that are an object in an object: the field that holds it, and those of the envelope that are known."""

    def __init__(self, field: str, known: str) -> None:
        self._field, self.known = field, frozenset((field, *known.split()))
        around = [(name, msgspec.Raw, msgspec.Raw()) for name in sorted(self.known - {field})]
        inner = (field, dict[str, msgspec.Raw])
        shape = msgspec.defstruct("Shape", [inner, *around], forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(shape).decode

    def names(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the fields within, and of those around it that are not known."""
        inner = record.get(self._field)
        around = (name for name in record if name not in self.known)
        return (*inner, *around) if isinstance(inner, Mapping) else tuple(around)

    def names_on(self, data: bytes) -> tuple[str, ...]:
        """The same, of a record as it is written. Raises `ValueError` for what is no object."""
        try:
            return tuple(getattr(self._decode(data), self._field))
        except msgspec.ValidationError:
            record = keys_of(data)
            inner = bytes(record.get(self._field, b""))
            return self.names({**record, self._field: keys_of(inner) if inner[:1] == b"{" else None})


def closed(kind: type[msgspec.Struct], names: Iterable[str], **retyped: Any) -> type[msgspec.Struct]:
    """A class that decodes what `kind` does, and refuses records with other fields than those and `names`.

    Fields in `retyped` are decoded as those types instead.
    """
    config, own = kind.__struct_config__, {one.encode_name for one in msgspec.structs.fields(kind)}
    extra = sorted({*names} - own - {config.tag_field or ""})
    fields: list[Any] = [*retyped.items(), *((f"known_{i}", msgspec.Raw, msgspec.Raw()) for i in range(len(extra)))]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        bases=(kind,),
        rename={f"known_{i}": name for i, name in enumerate(extra)},
        tag=config.tag,
        tag_field=config.tag_field,
        forbid_unknown_fields=True,
        kw_only=True,
        gc=False,
    )


class Typed:
    """Typed decoding that counts unknown fields at no cost where there are none.

    `closely` decodes records of which all fields are known, `openly` any, and `count` says what is unknown in one. From
    the first such record of a run on, each is looked through.
    """

    def __init__(
        self,
        openly: Callable[[bytes], Any],
        closely: Callable[[bytes], Any],
        count: Callable[[Strange, Any, bytes], None],
    ) -> None:
        self._openly, self._closely, self._count = openly, closely, count

    def __call__(self, data: bytes, strange: Strange) -> Any:
        """The record, its unknown fields counted in `strange`. Raises what `openly` raises."""
        if not strange:
            try:
                return self._closely(data)
            except msgspec.ValidationError:
                pass
        record = self._openly(data)
        self._count(strange, record, data)
        return record


class Fields:
    """The fields that are known of each kind of record, names between blanks; other kinds are not looked at.

    `common` are those that records of every kind have. Only what was compared is remembered, so that a `Fields` is as
    good as a constant.
    """

    def __init__(self, kinds: Mapping[str, str], common: str = "") -> None:
        shared = frozenset(common.split())
        self._known = {kind: shared.union(names.split()) for kind, names in kinds.items()}
        self._shapes: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def of(self, kind: str) -> frozenset[str] | None:
        """The fields of that kind of record; None where they are not known."""
        return self._known.get(kind)

    def count(self, strange: Strange, kind: str, names: Iterable[str]) -> None:
        """Count in `strange` the fields of a record of that kind that are not known."""
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
            name = name if name in strange or len(strange) < _MOST else MORE_KINDS
            strange[name] = strange.get(name, 0) + 1


def unknown_fields(*parts: Strange) -> Kinds:
    """All of them added up, for `Header.fields`."""
    return kinds_of(item for part in parts for item in part.items()) if any(parts) else ()
