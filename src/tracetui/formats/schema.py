"""Typed records: a format declares each kind of record once, as a msgspec Struct; this decodes records into them.

Strict decoding is fast: it accepts only fields of the schema, of their declared types. If it fails,
`loosen` converts the record field by field, replaces values of other types by their defaults and counts unknown and
mistyped fields, as ``KIND.FIELD``. Long texts and arguments are declared `msgspec.Raw` and decoded where they are used.

A Struct that has a class variable ``other_fields`` (names of fields that aren't used, between blanks) is closed: its
unknown fields are counted under its tag, else under its class variable ``counted_as``, else under its name. Any other
Struct is open: its unknown fields are ignored here. All are shown in the detail of the span.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, reduce
from math import inf
from operator import or_
from sys import float_info
from types import UnionType
from typing import Annotated, Any, Final, Generic, TypeVar, Union, get_args, get_origin

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import STRUCTS, decode, skippable
from tracetui.model.ledger import MORE_KINDS, Kinds, kinds_of
from tracetui.model.tally import NAME_LENGTH

NULL: Final = msgspec.Raw(b"null")
Natural = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""A whole number that can count something: not negative, and exact in JavaScript (below 2⁵³)."""
Integer = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A whole number of at most 64 bits."""
Finite = Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]
"""A number that is neither infinite nor NaN."""
Loose = bool | int | float | str | list[Any] | None
"""Types accepted instead of an object without being counted as mistyped: ``Details | Loose``."""

Unknown = dict[str, int]
"""How often each unknown or mistyped field was met, by ``KIND.FIELD``."""

_MOST: Final = 1_000
"""Unknown fields that are counted apart; any beyond are counted together."""
_UNIONS: Final = (Union, UnionType)
_T = TypeVar("_T")
_MISSING: Final = object()


def _decoder(kinds: Callable[[], Any]) -> Callable[[Any], Any]:
    """A decoder of a type. One thread at a time makes one: see `STRUCTS`."""
    with STRUCTS:
        return msgspec.json.Decoder(kinds()).decode


class Schema(Generic[_T]):
    """Decodes records into one of the Structs `kinds`, chosen by tag.

    A record of another kind, or of none, becomes `other`, a Struct without a tag.
    """

    def __init__(
        self,
        kinds: Any,
        other: type[_T] | None = None,
        older: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        """`kinds` is a Struct or a union of tagged ones; `older` makes the current layout of a record of an older one,
        and returns any other record unchanged.
        """
        self._kinds, self._older = kinds, older
        self._type = Annotated[kinds, msgspec.Meta(extra={"other": other})] if other is not None else kinds

    @cached_property
    def strict(self) -> Callable[[bytes], _T]:
        """Decodes a record of which all fields are in the schema and typed as declared, else raises `ValueError` or
        `RecursionError`. Skips the checks of `tracetui.formats.decode.skippable`.
        """
        return _decoder(lambda: _closed(self._kinds))  # made on first use: it takes a millisecond

    @cached_property
    def open(self) -> Callable[[bytes | msgspec.Raw], _T]:
        """The same for a record that may have other fields too, which it ignores."""
        return _decoder(lambda: self._kinds)

    def decode(self, data: bytes, unknown: Unknown) -> tuple[_T | None, Any, str | None]:
        """The record in `data`; else None and the value there; and a note if it had to be read leniently.

        Raises `FormatError` for invalid JSON.
        """
        try:
            if not data.isascii() or len(data) > 4000:
                skippable(data)
            return self.strict(data), None, None
        except (ValueError, RecursionError):
            return self.decode_loosely(data, unknown)

    def decode_loosely(self, data: bytes, unknown: Unknown) -> tuple[_T | None, Any, str | None]:
        """`decode` for data that `strict` refused."""
        value, note = decode(data)
        if not isinstance(value, dict):
            return None, value, note
        current = self._current(value)
        return self._part_of_schema(current, data if note is None and current is value else None, unknown), None, note

    def _current(self, record: dict[str, Any]) -> dict[str, Any]:
        return record if self._older is None else self._older(record)

    @cached_property
    def many(self) -> Callable[[Any], list[_T]]:
        """The same for a list of records."""
        return _decoder(lambda: list[_closed(self._kinds)])  # type: ignore[misc]

    def convert(self, value: Any, unknown: Unknown) -> _T:
        """Convert `value`, decoded JSON, to a record; the default record if it is not an object."""
        value = self._current(value) if isinstance(value, dict) else {}
        try:
            data = msgspec.json.encode(value)
        except (ValueError, RecursionError):  # lone surrogates, depth
            data = None
        return self._part_of_schema(value, data, unknown)

    def _part_of_schema(self, value: dict[str, Any], data: bytes | None, unknown: Unknown) -> _T:
        """The record that `value` is; faster where `data`, the same as strict JSON, has no mistyped fields."""
        try:
            if data is not None:
                record = self.open(data)
                _count_names(value, self._type, unknown)
                return record
        except (ValueError, RecursionError):
            pass
        loosened: _T = loosen(value, self._type, unknown)
        return loosened


class Field(Generic[_T]):
    """Decodes one undecoded field (`msgspec.Raw`)."""

    def __init__(self, kind: Any) -> None:
        self._type = kind

    @cached_property
    def strict(self) -> Callable[[Any], _T]:
        """Decodes values of the declared type. Raises `ValueError` or `RecursionError` for any other."""
        return _decoder(lambda: _closed(self._type))

    def value(self, raw: msgspec.Raw, unknown: Unknown | None = None) -> _T:
        """The value; a mistyped one becomes the default and is counted in `unknown`."""
        try:
            return self.strict(raw)
        except (ValueError, RecursionError):
            loosened: _T = loosen(plain(raw), self._type, {} if unknown is None else unknown)
            return loosened


def plain(raw: Any) -> Any:
    """Decode a `msgspec.Raw`, None if that fails; return any other value unchanged."""
    if not isinstance(raw, msgspec.Raw):
        return raw
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        pass
    try:
        return decode(bytes(raw))[0]
    except FormatError:
        return None


def raw_of(value: Any) -> msgspec.Raw:
    """Encode decoded JSON; `NULL` if it is nested too deeply."""
    try:
        return msgspec.Raw(json.dumps(value).encode())
    except (RecursionError, ValueError, TypeError):
        return NULL


def tag_of(record: msgspec.Struct | type[msgspec.Struct]) -> str:
    """The tag of a record, or of a Struct; empty for a Struct without one."""
    return record.__struct_config__.tag or ""  # type: ignore[return-value]


def loosen(value: Any, kind: Any, unknown: Unknown) -> Any:
    """`value`, decoded JSON, as `kind`: each field that has the declared type, defaults for all others."""
    loosened = _loose(value, kind, unknown)
    return _default(kind) if loosened is _MISSING else loosened


# ---- lenient conversion


def _loose(value: Any, kind: Any, unknown: Unknown) -> Any:
    """The value as `kind`, or `_MISSING` if it has another type."""
    members = _members(kind)
    kinds = members.kinds
    if isinstance(value, dict):
        struct = members.struct_for(value)
        if struct is not None:
            return _record(value, struct, unknown)
    elif isinstance(value, list):
        item = next((get_args(member)[0] for member in kinds if get_origin(member) is list and get_args(member)), Any)
        if item is not Any and msgspec.Raw not in kinds:
            items = [_loose(element, item, unknown) for element in value]
            return [_default(item) if element is _MISSING else element for element in items]
    if msgspec.Raw in kinds:
        raw = raw_of(value)
        return _MISSING if raw is NULL and value is not None else raw
    if isinstance(value, float) and not -inf < value < inf:
        return _MISSING
    if Any in kinds:
        return value
    scalars = [member for member in kinds if not (isinstance(member, type) and issubclass(member, msgspec.Struct))]
    if not scalars:
        return _MISSING
    try:
        return msgspec.convert(value, reduce(or_, scalars))
    except (ValueError, TypeError, RecursionError, OverflowError):
        return _MISSING


def _record(value: dict[str, Any], struct: type[msgspec.Struct], unknown: Unknown) -> Any:
    shape = _shape(struct)
    given: dict[str, Any] = {}
    for name, member in value.items():
        field = shape.fields.get(name)
        if field is None:
            if shape.names is not None and name not in shape.names:
                count(unknown, f"{shape.kind}.{name}")
            continue
        converted = _loose(member, field[1], unknown)
        if converted is not _MISSING:
            given[field[0]] = converted
        elif member is not None and shape.names is not None:
            count(unknown, f"{shape.kind}.{name}")
    for name, kind in shape.required.items():
        if name not in given:
            given[name] = _default(kind)
    return struct(**given)


def _count_names(value: Any, kind: Any, unknown: Unknown) -> None:
    """Count the unknown fields of a value in which none is mistyped."""
    members = _members(kind)
    kinds = members.kinds
    if isinstance(value, dict):
        struct = members.struct_for(value)
        if struct is None:
            return
        shape = _shape(struct)
        if shape.names is not None and not value.keys() <= shape.names:
            for name in value:
                if name not in shape.names:
                    count(unknown, f"{shape.kind}.{name}")
        for name, inner in shape.structs.items():
            if name in value:
                _count_names(value[name], inner, unknown)
    elif isinstance(value, list):
        for member in kinds:
            if get_origin(member) is list and get_args(member):
                for item in value:
                    _count_names(item, get_args(member)[0], unknown)


def count(unknown: Unknown, name: str) -> None:
    """Count one unknown field."""
    name = name[:NAME_LENGTH]
    if name not in unknown and len(unknown) >= _MOST:
        name = MORE_KINDS
    unknown[name] = unknown.get(name, 0) + 1


class _Shape:
    """The fields of a Struct, for `_record`."""

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        config, declared = struct.__struct_config__, msgspec.structs.fields(struct)
        self.kind = str(config.tag or getattr(struct, "counted_as", None) or struct.__name__.lower())
        self.fields = {
            declared_field.encode_name: (declared_field.name, declared_field.type) for declared_field in declared
        }
        self.required = {
            declared_field.name: declared_field.type for declared_field in declared if declared_field.required
        }
        self.structs = {
            declared_field.encode_name: declared_field.type
            for declared_field in declared
            if _has_struct(declared_field.type)
        }
        names: str | None = getattr(struct, "other_fields", None)
        self.names = None if names is None else frozenset((*names.split(), *self.fields, config.tag_field or ""))


def _has_struct(kind: Any) -> bool:
    """Whether a value of that type may contain Structs."""
    members = _members(kind)
    kinds, other = members.kinds, members.other
    items = [get_args(member)[0] for member in kinds if get_origin(member) is list and get_args(member)]
    return other is not None or any(map(_is_struct, kinds)) or any(map(_has_struct, items))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@cache
def _shape(struct: type[msgspec.Struct]) -> _Shape:
    return _Shape(struct)


class _Members:
    """The types of a union, and the Struct for objects of other kinds."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.kinds, other = _find_members(kind)
        self.other: type[msgspec.Struct] | None = other
        structs: list[type[msgspec.Struct]] = [member for member in self.kinds if _is_struct(member)]
        self._untagged = next((member for member in structs if member.__struct_config__.tag_field is None), None)
        self._tag_field: str | None = next((member.__struct_config__.tag_field for member in structs), None)
        self._by_tag = {member.__struct_config__.tag: member for member in structs}

    def struct_for(self, value: dict[str, Any]) -> type[msgspec.Struct] | None:
        """The Struct for an object: that of its tag, or the only one."""
        if self._untagged is not None or self._tag_field is None:
            return self._untagged or self.other
        tag = value.get(self._tag_field)
        return (self._by_tag.get(tag) if isinstance(tag, str | int) else None) or self.other


_MEMBERS: Final[dict[int, _Members]] = {}
"""By the identity of the type, because not all of them are hashable."""


def _members(kind: Any) -> _Members:
    members = _MEMBERS.get(id(kind))
    if members is None or members.kind is not kind:
        members = _MEMBERS[id(kind)] = _Members(kind)
    return members


def _find_members(kind: Any) -> tuple[tuple[Any, ...], Any]:
    if get_origin(kind) in _UNIONS:
        parts = [_find_members(member) for member in get_args(kind)]
        other = next((member for _, member in parts if member is not None), None)
        return tuple(member for members, _ in parts for member in members), other
    if get_origin(kind) is Annotated:
        inner, *metas = get_args(kind)
        extra = next((meta.extra for meta in metas if isinstance(meta, msgspec.Meta) and meta.extra), None)
        if extra is not None:
            return _find_members(inner)[0], extra["other"]
    return (kind,), None


def _default(kind: Any) -> Any:
    """The default of a required field."""
    members = _members(kind)
    kinds, other = members.kinds, members.other
    if type(None) in kinds:
        return None
    for member in (other, *kinds):
        if isinstance(member, type) and issubclass(member, msgspec.Struct):
            return _record({}, member, {})
        if get_origin(member) is list:
            return []
    return NULL if msgspec.Raw in kinds else get_origin_type(kinds[0])()


def get_origin_type(kind: Any) -> Any:
    """The class behind ``Annotated[int, …]`` or ``dict[str, int]``."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return get_origin(kind) or kind


# ---- closed Structs


def tagged(*kinds: Any, other: Any) -> Any:
    """A union of tagged Structs, and `other` for objects of any other kind, as the type of a field."""
    return Annotated[reduce(or_, kinds), msgspec.Meta(extra={"other": other})]


def _closed(kind: Any) -> Any:
    """The type with each Struct that has ``other_fields`` replaced by one that refuses unknown fields."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *metas = get_args(kind)
        metas = [meta for meta in metas if not (isinstance(meta, msgspec.Meta) and meta.extra)]
        return Annotated[_closed(inner), *metas] if metas else _closed(inner)
    if origin in _UNIONS:
        return reduce(or_, map(_closed, get_args(kind)))
    if origin is list and get_args(kind):
        return list[_closed(get_args(kind)[0])]  # type: ignore[misc]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _closed_struct(kind)
    return kind


@cache
def _closed_struct(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    config, declared = kind.__struct_config__, msgspec.structs.fields(kind)
    fields: list[Any] = []
    for declared_field in declared:
        closed = _closed(declared_field.type)
        if closed is not declared_field.type and closed != declared_field.type:
            fields.append(
                (declared_field.name, closed)
                if declared_field.required
                else (declared_field.name, closed, _field_default(declared_field))
            )
    names: str | None = getattr(kind, "other_fields", None)
    if names is None and not fields:
        return kind
    own = {declared_field.encode_name for declared_field in declared}
    extra = sorted({*(names or "").split()} - own - {config.tag_field or ""})
    renamed = {declared_field.name: declared_field.encode_name for declared_field in declared}
    fields += [(f"unused_{i}", msgspec.Raw, NULL) for i in range(len(extra))]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        bases=(kind,),
        rename={**renamed, **{f"unused_{i}": name for i, name in enumerate(extra)}},
        tag=config.tag,
        tag_field=config.tag_field,
        forbid_unknown_fields=names is not None,
        kw_only=True,
        gc=False,
    )


def _field_default(field: Any) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return field.default


# ---- unknown fields of records without a Struct

_SHAPES: Final = 4_096
"""Key sets that are remembered."""

keys_of: Final[Callable[[bytes | memoryview], Mapping[str, Any]]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""Decode the field names of an object, but not the values."""


class Fields:
    """The fields of each kind of record, names between blanks; ignores other kinds.

    `common` are the fields of every kind. Caches comparisons only, so an instance can be a constant.
    """

    def __init__(self, kinds: Mapping[str, str], common: str = "") -> None:
        shared = frozenset(common.split())
        self._kinds = {kind: shared.union(names.split()) for kind, names in kinds.items()}
        self._shapes: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def count(self, unknown: Unknown, kind: str, names: Iterable[str]) -> None:
        """Count in `unknown` the unknown fields of a record of that kind."""
        shape = kind, tuple(names)
        counted = self._shapes.get(shape)
        if counted is None:
            fields = self._kinds.get(kind)
            others = () if fields is None else [name for name in shape[1] if name not in fields]
            counted = tuple([f"{kind}.{name}"[:NAME_LENGTH] for name in others])
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            self._shapes[shape] = counted
        for name in counted:
            count(unknown, name)


def unknown_fields(*parts: Unknown) -> Kinds:
    """All of them added up, for `Header.fields`."""
    return kinds_of(item for part in parts for item in part.items()) if any(parts) else ()
