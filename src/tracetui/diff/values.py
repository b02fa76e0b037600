"""Compare two JSON values as structures: the order of keys is ignored, items of lists are matched.

Text that is the JSON of an object or a list is compared as that value. Works without recursion, so any depth is safe.

The id of a tool call has no fixed form (``toolu_01A``, ``functions.search:0``, ``c12``), so its position decides: a
field such as ``tool_call_id`` or ``gen_ai.tool.call.id``, or the ``id`` of an object that is a call or its result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.diff.align import blocks_of
from tracetui.diff.noise import EMPTY, JSON_FORM, NUMBER_FORM, Noise, without_noise

# ---- positions of call ids and shell arguments

CALL: Final = 1
"""The position of a call id."""
SHELL: Final = 2
"""A position in the arguments of a shell."""
ARGUMENT: Final = 4
"""A position in the arguments of any tool, where field names don't make a value an id."""

Path = tuple[Any, str | int] | None
"""A position in a value: (parent path, key or index); None is the whole value."""

_FIELD: Final = re.compile(r".*(?:calls?|tooluses?|toolresults?)\d*ids?")
_CALL: Final = re.compile(
    r".*(?:tool|function)(?:calls?|uses?|results?|responses?|returns?|requests?|invocations?)"
    r"(?:parts?|outputs?|results?|responses?)?"
)
_CALL_KIND: Final = re.compile(rf"{_CALL.pattern}|.*call(?:outputs?|results?|responses?)?")
_KINDS: Final = ("type", "kind", "part_kind")
_NAMES: Final = ("name", "tool_name", "toolName")
_ARGUMENTS: Final = ("arguments", "args", "input")
SHELLS: Final = frozenset({"bash", "shell", "sh", "zsh"})
"""Names of shell tools, in lower case."""


def flags_of(key: Any, holder: dict[Any, Any], path: Path, above: int) -> int:
    """Flags of the value under `key` in `holder`; `path` and `above` are the path and flags of the holder."""
    inherited = above & (SHELL | ARGUMENT)
    if key in _ARGUMENTS and _is_call(holder, path):
        shell = any(isinstance(name := holder.get(field), str) and is_shell(name) for field in _NAMES)
        return inherited | ARGUMENT | (SHELL if shell else 0)
    if inherited & ARGUMENT or not isinstance(key, str):
        return inherited
    return inherited | CALL if (_is_call(holder, path) if key == "id" else names_call(key)) else inherited


@lru_cache(4096)
def names_call(field: str) -> bool:
    """Whether a field name denotes a call id, or several."""
    return len(field) < 200 and _FIELD.fullmatch(_plain(field)) is not None


def is_shell(tool: str) -> bool:
    """Whether a tool of that name runs shell commands."""
    return len(tool) < 8 and tool.lower() in SHELLS


def _is_call(holder: dict[Any, Any], path: Path) -> bool:
    """Whether an object is a call or its result, by its fields or its position."""
    while path is not None and isinstance(path[1], int):
        path = path[0]
    if path is not None and (path[1] == "function" or _matches(_CALL, path[1])):
        return True
    if any(isinstance(kind := holder.get(field), str) and _matches(_CALL_KIND, kind) for field in _KINDS):
        return True
    if isinstance(holder.get("function"), dict):
        return True
    return any(field in holder for field in _NAMES) and any(field in holder for field in _ARGUMENTS)


@lru_cache(4096)
def _matches(pattern: re.Pattern[str], word: Any) -> bool:
    return isinstance(word, str) and len(word) < 200 and pattern.fullmatch(_plain(word)) is not None


def _plain(word: str) -> str:
    return "".join(filter(str.isalnum, word)).lower()


# ---- changes

INPUT: Final = "input"
OUTPUT: Final = "output"
STATUS: Final = "status"


class Change(msgspec.Struct, frozen=True):
    """A value that differs. On a side without the value, path and value are None."""

    side: str
    """The part of the step: ``input``, ``output`` or ``status``."""
    path_a: str | None
    path_b: str | None
    a: Any = None
    b: Any = None
    noise: str | None = None
    """The kind of noise; None for a significant difference."""

    @property
    def path(self) -> str:
        """The path in B, else that in A."""
        return (self.path_b if self.path_b is not None else self.path_a) or ""

    @property
    def word(self) -> str:
        """``added``, ``removed`` or ``changed``."""
        return "added" if self.path_a is None else "removed" if self.path_b is None else "changed"


_PLAIN_KEY: Final = re.compile(r"[^\W\d][\w-]*")
_MOST_ITEMS: Final = 100_000_000
_NOTHING: Final = object()

_RAW: Final = 1 << 20
"""Maximum bytes of an encoded item for its canonical form."""


class ValuePair(NamedTuple):
    """Two values to compare, with their paths."""

    path_a: Path
    path_b: Path
    a: Any
    b: Any
    flags: int = 0
    """Flags of their position: `CALL`, `SHELL`, `ARGUMENT`."""
    raws: tuple[bytes, bytes] | None = None
    """The encoded values, for list items that are equal except for noise."""


def changes_of(
    a: Any,
    b: Any,
    noise: Noise,
    *,
    side: str = OUTPUT,
    under: str | None = None,
    recorded: bool = False,
    all_noise: str | None = None,
    flags: int = 0,
) -> list[Change]:
    """Compare two values; changes come in the order of the values. Paths begin with `under`, if given.

    `flags` describe the position of the whole value. With `all_noise`, every change is noise of that kind.
    """
    top: Path = None if under is None else (None, under)
    return _changes(ValuePair(top, top, a, b, flags), noise, side, recorded, all_noise)


def _changes(first: ValuePair, noise: Noise, side: str, recorded: bool, all_noise: str | None) -> list[Change]:
    judge = partial(noise.kind_of, is_input=side == INPUT, recorded=recorded)
    changes: list[Change] = []
    todo: list[tuple[ValuePair, str | None]] = [(first, all_noise)]
    while todo:
        pair, kind = todo.pop()
        path_a, path_b, left, right, flags, raws = pair
        if left is _NOTHING or right is _NOTHING:
            kind = kind or _missing_kind(path_a, path_b, left, right, judge)
            if not noise.ignores(kind):
                changes.append(_one_sided(side, path_a, path_b, left, right, kind))
        elif equal(left, right):
            if noise.tracking:
                changes += _inconsistent_ids(pair, side, noise)
        elif raws is not None and kind is None:
            changes += _item_changes(pair, noise, side, recorded)
        elif isinstance(left, dict) and isinstance(right, dict):
            kind = kind or judge(_field(path_a), left, right)
            if not noise.ignores(kind):
                todo.extend((member, kind) for member in reversed(list(_members(pair, noise))))
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            todo.extend((item, kind) for item in reversed(list(_items(pair, noise))))
        elif not _same_scalar(left, right):
            kind = kind or judge(_field(path_a), left, right, call=bool(flags & CALL), command=bool(flags & SHELL))
            if noise.ignores(kind):
                continue
            inside = _decoded(left, right) if kind is None else None
            if inside is not None and encoded(inside[0]) == encoded(inside[1]):
                kind = JSON_FORM
                if not noise.ignores(kind):
                    inside = None
            if inside is not None:
                todo.append((ValuePair(path_a, path_b, *inside, flags), None))
            else:
                changes.append(Change(side, written(path_a), written(path_b), left, right, kind))
        elif type(left) is not type(right) and not noise.ignores(kind or NUMBER_FORM):
            changes.append(Change(side, written(path_a), written(path_b), left, right, kind or NUMBER_FORM))
    return changes


def _item_changes(pair: ValuePair, noise: Noise, side: str, recorded: bool) -> list[Change]:
    """Compare two items that are equal except for noise; cached, because conversations repeat items."""
    assert pair.raws is not None
    key = (*pair.raws, pair.flags, side, recorded)
    if (cached := noise.ignored_pairs.get(key)) is not None:
        noise.counts.update(cached)
        return []
    before = noise.counts.copy()
    changes = _changes(pair._replace(raws=None), noise, side, recorded, None)
    if not changes and not noise.strict:
        noise.ignored_pairs.put(key, noise.counts - before, sum(map(len, pair.raws)))
    return changes


# ---- call ids that changed their meaning


def _inconsistent_ids(pair: ValuePair, side: str, noise: Noise) -> list[Change]:
    """Call ids that are equal here but correspond to other calls elsewhere."""
    changes: list[Change] = []
    todo: list[tuple[Path, Path, Any, int, bool]] = [
        (pair.path_a, pair.path_b, pair.a, pair.flags, pair.raws is not None)
    ]
    while todo:
        path_a, path_b, value, flags, item = todo.pop()
        if isinstance(value, list | tuple):
            todo.extend(
                reversed([((path_a, i), (path_b, i), item_value, flags, True) for i, item_value in enumerate(value)])
            )
            continue
        raw = encoded(value) if item and isinstance(value, dict) else None
        if raw is None and isinstance(value, dict):
            for key, member in reversed(value.items()):
                todo.append(((path_a, key), (path_b, key), member, flags_of(key, value, path_a, flags), False))
            continue
        if raw is not None and raw in noise.consistent:
            continue
        ids = _call_ids(path_a, path_b, value, flags)
        bad = [
            Change(side, written(left), written(right), call_id, call_id)
            for left, right, call_id in ids
            if not noise.same_call(call_id, call_id)
        ]
        changes += bad
        if raw is not None and not bad:
            noise.consistent.put(raw, True, len(raw))
    return changes


def _call_ids(path_a: Path, path_b: Path, value: Any, flags: int) -> Iterator[tuple[Path, Path, Any]]:
    """The call ids in a value, with their paths."""
    todo: list[tuple[Path, Path, Any, int]] = [(path_a, path_b, value, flags)]
    while todo:
        path_a, path_b, value, flags = todo.pop()
        if isinstance(value, dict):
            for key, member in reversed(value.items()):
                todo.append(((path_a, key), (path_b, key), member, flags_of(key, value, path_a, flags)))
        elif isinstance(value, list | tuple):
            todo.extend(reversed([((path_a, i), (path_b, i), item, flags) for i, item in enumerate(value)]))
        elif flags & CALL and isinstance(value, str | int) and not isinstance(value, bool):
            yield path_a, path_b, value
        elif isinstance(value, str) and (inside := _json_of(value)) is not None:
            todo.append((path_a, path_b, inside, flags))


# ---- texts that are JSON


def _decoded(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Two texts decoded as JSON, if both are objects or both lists."""
    if not (isinstance(a, str) and isinstance(b, str)):
        return None
    left = _json_of(a)
    right = None if left is None else _json_of(b)
    return (left, right) if right is not None and type(left) is type(right) else None


def _json_of(text: str) -> Any:
    """The JSON object or list in a text; None for anything else, or if a key occurs twice."""
    if not text.lstrip()[:1].startswith(("{", "[")):
        return None
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _refuse(word: str) -> Any:
    raise ValueError(word)


def encoded(value: Any) -> bytes | None:
    """Encode a value as JSON with sorted keys; None if it can't be encoded."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None


# ---- the parts of values


def equal(a: Any, b: Any) -> bool:
    """True if two values are certainly equal; False if they need a full comparison."""
    if a is b:
        return True
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    try:
        return bool(a == b) and msgspec.json.encode(a) == msgspec.json.encode(b)  # 1 is True for ==
    except (ValueError, TypeError, RecursionError, OverflowError):
        return False


def _same_scalar(a: Any, b: Any) -> bool:
    if type(a) is type(b):
        return bool(a == b) or (isinstance(a, float) and a != a and b != b)
    numbers = (int, float)
    return type(a) in numbers and type(b) in numbers and bool(a == b)


def _missing_kind(path_a: Path, path_b: Path, a: Any, b: Any, judge: Callable[..., str | None]) -> str | None:
    """The kind of noise of a missing field: its value is null, or noise itself."""
    value = b if a is _NOTHING else a
    path = path_b if a is _NOTHING else path_a
    field = "" if path is None or isinstance(path[1], int) else path[1]
    if not field:
        return None
    return EMPTY if value is None else judge(field, value, None)


def _one_sided(side: str, path_a: Path, path_b: Path, a: Any, b: Any, kind: str | None) -> Change:
    if a is _NOTHING:
        return Change(side, None, written(path_b), None, b, kind)
    return Change(side, written(path_a), None, a, None, kind)


def _members(pair: ValuePair, noise: Noise) -> Iterator[ValuePair]:
    """Pair the members of two objects; a key that is a call id pairs with the corresponding id."""
    path_a, path_b, a, b, flags, _ = pair
    renamed = {}
    if noise.renamed:
        renamed = {
            key: other for key in a if key not in b and (other := noise.counterpart(key)) in b and other not in a
        }
    for key, value in a.items():
        other = renamed.get(key, key)
        yield ValuePair((path_a, key), (path_b, other), value, b.get(other, _NOTHING), flags_of(key, a, path_a, flags))
    taken = set(renamed.values())
    for key, value in b.items():
        if key not in a and key not in taken:
            yield ValuePair((path_a, key), (path_b, key), _NOTHING, value, flags_of(key, b, path_b, flags))


def _items(pair: ValuePair, noise: Noise) -> Iterator[ValuePair]:
    """Pair the items of two lists: equal ones (noise ignored); between them, those of the same shape."""
    path_a, path_b, a, b, flags, _ = pair
    raw_a, raw_b = [encoded(item) for item in a], [encoded(item) for item in b]
    keys_a = [_key(item, raw, path_a, flags, noise) for item, raw in zip(a, raw_a, strict=True)]
    keys_b = [_key(item, raw, path_b, flags, noise) for item, raw in zip(b, raw_b, strict=True)]
    for block in blocks_of(keys_a, keys_b, bits=_MOST_ITEMS).blocks:
        if block.same:
            for i, j in zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True):
                left, right = raw_a[i], raw_b[j]
                if left != right or left is None or noise.tracking or noise.strict:
                    raws = (left, right) if left is not None and right is not None else None
                    yield ValuePair((path_a, i), (path_b, j), a[i], b[j], flags, raws)
            continue
        i, j = block.a0, block.b0
        pairs = _pair_by_shape(a[block.a0 : block.a1], b[block.b0 : block.b1])
        for left_, right_ in [*((block.a0 + x, block.b0 + y) for x, y in pairs), (block.a1, block.b1)]:
            yield from (ValuePair((path_a, k), (path_b, k), a[k], _NOTHING, flags) for k in range(i, left_))
            yield from (ValuePair((path_a, k), (path_b, k), _NOTHING, b[k], flags) for k in range(j, right_))
            if left_ < block.a1 and right_ < block.b1:
                yield ValuePair((path_a, left_), (path_b, right_), a[left_], b[right_], flags)
            i, j = left_ + 1, right_ + 1


def _pair_by_shape(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[int, int]]:
    """Pair the items of a changed block by shape, in order."""
    if len(a) == len(b) and all(_shape(x) == _shape(y) for x, y in zip(a, b, strict=True)):
        return [(i, i) for i in range(len(a))]
    alignment = blocks_of([_shape(item) for item in a], [_shape(item) for item in b], bits=_MOST_ITEMS)
    same = [block for block in alignment.blocks if block.same]
    return [pair for _, a0, a1, b0, b1 in same for pair in zip(range(a0, a1), range(b0, b1), strict=True)]


_TELLING: Final = ("type", "role", "name", "kind", "tool_name")


def _shape(item: Any) -> tuple[str, ...]:
    if isinstance(item, dict):
        return ("object", *(str(item.get(name)) for name in _TELLING))
    if isinstance(item, int | float) and not isinstance(item, bool):
        return ("number",)
    return (type(item).__name__,)


def _key(item: Any, raw: bytes | None, path: Path, flags: int, noise: Noise) -> Any:
    """A comparison key for a list item, without noise that its position or form reveals."""
    if isinstance(item, str):
        inside = _json_of(item)
        return item.strip() if inside is None else encoded(_canonical(inside, path, flags))
    if isinstance(item, bool | None):
        return item, bool
    if isinstance(item, int | float):
        return item
    if raw is None or len(raw) > _RAW:
        return raw or f"{type(item).__name__} {id(item)}"
    key_bytes = noise.canonical.get(key := (raw, _field(path), flags))
    if key_bytes is None:
        try:
            key_bytes = encoded(_canonical(item, path, flags)) or raw
        except RecursionError:
            key_bytes = raw
        noise.canonical.put(key, key_bytes, len(raw))
    return key_bytes


def encode_without_noise(value: Any, flags: int = 0, folder: str | None = None) -> bytes | None:
    """Encode the input of a step so that two inputs which differ only in noise have equal bytes.

    Returns None for a value that is too deeply nested.

    `flags` are those of the whole value, `folder` is the working directory of the run. Unlike a `Noise`, it sees one
    run only: any call id equals any other, and masked values equal only themselves.
    """

    def leaf(scalar: Any, path: Path, flags: int) -> Any:
        if isinstance(scalar, str) and folder:
            scalar = scalar.replace(folder, "\0folder")
        return without_noise(_field(path), scalar, command=bool(flags & SHELL))

    try:
        data = encoded(_canonical(value, None, flags, leaf))
        return repr(value).encode("utf-8", "replace") if data is None else data
    except RecursionError:
        return encoded(value)


def _canonical(
    value: Any, path: Path, flags: int, leaf: Callable[[Any, Path, int], Any] = lambda scalar, path, flags: scalar
) -> Any:
    """A value without noise of position or form: call ids, JSON formatting, number formats.

    `leaf` replaces texts and numbers, by their path and flags.
    """
    if isinstance(value, dict):
        return {
            key: _canonical(member, (path, key), flags_of(key, value, path, flags), leaf)
            for key, member in value.items()
            if member is not None
        }
    if isinstance(value, list | tuple):
        return [_canonical(item, (path, i), flags, leaf) for i, item in enumerate(value)]
    if flags & CALL:
        return "\0call"
    if isinstance(value, str):
        inside = _json_of(value)
        if inside is not None:
            return ["\0json", _canonical(inside, path, flags, leaf)]
        replaced = leaf(value, path, flags)
        return replaced.strip() if isinstance(replaced, str) else replaced
    return leaf(int(value) if isinstance(value, float) and value.is_integer() else value, path, flags)


def _field(path: Path) -> str:
    """The nearest field name above a value."""
    while path is not None:
        if isinstance(path[1], str):
            return path[1]
        path = path[0]
    return ""


def written(path: Path) -> str:
    """A path as text: ``messages[12].content``, ``["odd key"].x``."""
    steps: list[str] = []
    while path is not None:
        key = path[1]
        if isinstance(key, int):
            steps.append(f"[{key}]")
        elif _PLAIN_KEY.fullmatch(str(key)):
            steps.append(f".{key}")
        else:
            steps.append("[" + msgspec.json.encode(str(key).encode("utf-8", "replace").decode()).decode() + "]")
        path = path[0]
    return "".join(reversed(steps)).removeprefix(".")
