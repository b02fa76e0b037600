"""Two JSON values compared as structures: the order of keys means nothing, items of lists are found again.

A text that is the JSON of an object or a list is compared as that.

Works without recursion, so that values of any depth can be compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.diff.calls import CALL, SHELL, Path, place_of
from tracetui.diff.noise import EMPTY, JSON_FORM, NUMBER_FORM, Noise, without_noise
from tracetui.diff.sequence import blocks_of

INPUT: Final = "input"
OUTPUT: Final = "output"
STATUS: Final = "status"


class Change(msgspec.Struct, frozen=True):
    """A value that differs. A path is None on the side that has no such value; the other side then holds None."""

    side: str
    """``input``, ``output`` or ``status``: what of the step it is in."""
    path_a: str | None
    path_b: str | None
    a: Any = None
    b: Any = None
    noise: str | None = None
    """The kind of difference that it is, where that is usually ignored."""

    @property
    def path(self) -> str:
        """Where it is: in B, else where it was in A."""
        return (self.path_b if self.path_b is not None else self.path_a) or ""

    @property
    def word(self) -> str:
        """``added``, ``removed`` or ``changed``."""
        return "added" if self.path_a is None else "removed" if self.path_b is None else "changed"


_PLAIN_KEY: Final = re.compile(r"[^\W\d][\w-]*")
_MOST_ITEMS: Final = 100_000_000
_NOTHING: Final = object()

_RAW: Final = 1 << 20
"""Bytes of an encoded item up to which its canonical form is made."""


class Work(NamedTuple):
    """Two values to compare, and where they are."""

    path_a: Path
    path_b: Path
    a: Any
    b: Any
    place: int = 0
    """Flags of their place (`tracetui.diff.calls`)."""
    raws: tuple[bytes, bytes] | None = None
    """Two items of lists that are the same but for noise, encoded."""


def changes_of(
    a: Any,
    b: Any,
    noise: Noise,
    *,
    side: str = OUTPUT,
    under: str | None = None,
    recorded: bool = False,
    aside: str | None = None,
    place: int = 0,
) -> list[Change]:
    """What differs, in the order of the values. `under` is the name of the whole in paths, `place` what it is.

    `aside` is the kind of ignored difference that all of it is.
    """
    top: Path = None if under is None else (None, under)
    return _changes(Work(top, top, a, b, place), noise, side, recorded, aside)


def _changes(first: Work, noise: Noise, side: str, recorded: bool, aside: str | None) -> list[Change]:
    judge = partial(noise.kind_of, given=side == INPUT, recorded=recorded)
    found: list[Change] = []
    todo: list[tuple[Work, str | None]] = [(first, aside)]
    while todo:
        work, kind = todo.pop()
        path_a, path_b, left, right, place, raws = work
        if left is _NOTHING or right is _NOTHING:
            kind = kind or _absence(path_a, path_b, left, right, judge)
            if not noise.passes(kind):
                found.append(_one_sided(side, path_a, path_b, left, right, kind))
        elif equal(left, right):
            if noise.tracking:
                found += _misplaced(work, side, noise)
        elif raws is not None and kind is None:
            found += _item_changes(work, noise, side, recorded)
        elif isinstance(left, dict) and isinstance(right, dict):
            kind = kind or judge(_field(path_a), left, right)
            if not noise.passes(kind):
                todo.extend((one, kind) for one in reversed(list(_members(work, noise))))
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            todo.extend((one, kind) for one in reversed(list(_items(work, noise))))
        elif not _same_scalar(left, right):
            kind = kind or judge(_field(path_a), left, right, call=bool(place & CALL), command=bool(place & SHELL))
            if noise.passes(kind):
                continue
            inside = _decoded(left, right) if kind is None else None
            if inside is not None and encoded(inside[0]) == encoded(inside[1]):
                kind = JSON_FORM
                if not noise.passes(kind):
                    inside = None
            if inside is not None:
                todo.append((Work(path_a, path_b, *inside, place), None))
            else:
                found.append(Change(side, written(path_a), written(path_b), left, right, kind))
        elif type(left) is not type(right) and not noise.passes(kind or NUMBER_FORM):
            found.append(Change(side, written(path_a), written(path_b), left, right, kind or NUMBER_FORM))
    return found


def _item_changes(work: Work, noise: Noise, side: str, recorded: bool) -> list[Change]:
    """What differs between two items that are the same but for noise, remembered: conversations repeat them."""
    assert work.raws is not None
    key = (*work.raws, work.place, side, recorded)
    if (known := noise.passed.get(key)) is not None:
        noise.counts.update(known)
        return []
    before = noise.counts.copy()
    found = _changes(work._replace(raws=None), noise, side, recorded, None)
    if not found and not noise.strict:
        noise.passed.put(key, noise.counts - before, sum(map(len, work.raws)))
    return found


# ---- calls that are not what they were


def _misplaced(work: Work, side: str, noise: Noise) -> list[Change]:
    """Ids of calls that are the same in A and B here, but stand for other calls elsewhere."""
    found: list[Change] = []
    todo: list[tuple[Path, Path, Any, int, bool]] = [
        (work.path_a, work.path_b, work.a, work.place, work.raws is not None)
    ]
    while todo:
        path_a, path_b, value, place, item = todo.pop()
        if isinstance(value, list | tuple):
            todo.extend(reversed([((path_a, i), (path_b, i), one, place, True) for i, one in enumerate(value)]))
            continue
        raw = encoded(value) if item and isinstance(value, dict) else None
        if raw is None and isinstance(value, dict):
            for key, one in reversed(value.items()):
                todo.append(((path_a, key), (path_b, key), one, place_of(key, value, path_a, place), False))
            continue
        if raw is not None and raw in noise.kept:
            continue
        ids = _call_ids(path_a, path_b, value, place)
        bad = [
            Change(side, written(left), written(right), one, one)
            for left, right, one in ids
            if not noise.same_call(one, one)
        ]
        found += bad
        if raw is not None and not bad:
            noise.kept.put(raw, True, len(raw))
    return found


def _call_ids(path_a: Path, path_b: Path, value: Any, place: int) -> Iterator[tuple[Path, Path, Any]]:
    """The ids of calls in a value, with their places."""
    todo: list[tuple[Path, Path, Any, int]] = [(path_a, path_b, value, place)]
    while todo:
        path_a, path_b, value, place = todo.pop()
        if isinstance(value, dict):
            for key, one in reversed(value.items()):
                todo.append(((path_a, key), (path_b, key), one, place_of(key, value, path_a, place)))
        elif isinstance(value, list | tuple):
            todo.extend(reversed([((path_a, i), (path_b, i), one, place) for i, one in enumerate(value)]))
        elif place & CALL and isinstance(value, str | int) and not isinstance(value, bool):
            yield path_a, path_b, value
        elif isinstance(value, str) and (inside := _json_of(value)) is not None:
            todo.append((path_a, path_b, inside, place))


# ---- texts that are JSON


def _decoded(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Two texts as what they are the JSON of, if both are an object or both a list."""
    if not (isinstance(a, str) and isinstance(b, str)):
        return None
    left = _json_of(a)
    right = None if left is None else _json_of(b)
    return (left, right) if right is not None and type(left) is type(right) else None


def _json_of(text: str) -> Any:
    """The object or list that a text is the JSON of; None if it is anything else, or has a key twice."""
    if not text.lstrip()[:1].startswith(("{", "[")):
        return None
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse(word: str) -> Any:
    raise ValueError(word)


def encoded(value: Any) -> bytes | None:
    """Encode a value as JSON with its keys in order; None where it cannot be written."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None


# ---- the parts of values


def equal(a: Any, b: Any) -> bool:
    """True if two values are certainly the same; False means that they have to be looked at."""
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


def _absence(path_a: Path, path_b: Path, a: Any, b: Any, judge: Callable[..., str | None]) -> str | None:
    """As what it means nothing that a field is not there: it would be noise, or is null."""
    there = b if a is _NOTHING else a
    path = path_b if a is _NOTHING else path_a
    field = "" if path is None or isinstance(path[1], int) else path[1]
    if not field:
        return None
    return EMPTY if there is None else judge(field, there, None)


def _one_sided(side: str, path_a: Path, path_b: Path, a: Any, b: Any, kind: str | None) -> Change:
    if a is _NOTHING:
        return Change(side, None, written(path_b), None, b, kind)
    return Change(side, written(path_a), None, a, None, kind)


def _members(work: Work, noise: Noise) -> Iterator[Work]:
    """The members of two objects; one that is named after a call is that of its counterpart."""
    path_a, path_b, a, b, place, _ = work
    renamed = {}
    if noise.renamed:
        renamed = {
            key: other for key in a if key not in b and (other := noise.counterpart(key)) in b and other not in a
        }
    for key, value in a.items():
        other = renamed.get(key, key)
        yield Work((path_a, key), (path_b, other), value, b.get(other, _NOTHING), place_of(key, a, path_a, place))
    taken = set(renamed.values())
    for key, value in b.items():
        if key not in a and key not in taken:
            yield Work((path_a, key), (path_b, key), _NOTHING, value, place_of(key, b, path_b, place))


def _items(work: Work, noise: Noise) -> Iterator[Work]:
    """Items that are the same as wholes, noise aside, are each other; between them, those of one shape."""
    path_a, path_b, a, b, place, _ = work
    raw_a, raw_b = [encoded(item) for item in a], [encoded(item) for item in b]
    keys_a = [_key(item, raw, path_a, place, noise) for item, raw in zip(a, raw_a, strict=True)]
    keys_b = [_key(item, raw, path_b, place, noise) for item, raw in zip(b, raw_b, strict=True)]
    for block in blocks_of(keys_a, keys_b, bits=_MOST_ITEMS).blocks:
        if block.same:
            for i, j in zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True):
                left, right = raw_a[i], raw_b[j]
                if left != right or left is None or noise.tracking or noise.strict:
                    raws = (left, right) if left is not None and right is not None else None
                    yield Work((path_a, i), (path_b, j), a[i], b[j], place, raws)
            continue
        i, j = block.a0, block.b0
        pairs = _alike(a[block.a0 : block.a1], b[block.b0 : block.b1])
        for left_, right_ in [*((block.a0 + x, block.b0 + y) for x, y in pairs), (block.a1, block.b1)]:
            yield from (Work((path_a, one), (path_b, one), a[one], _NOTHING, place) for one in range(i, left_))
            yield from (Work((path_a, one), (path_b, one), _NOTHING, b[one], place) for one in range(j, right_))
            if left_ < block.a1 and right_ < block.b1:
                yield Work((path_a, left_), (path_b, right_), a[left_], b[right_], place)
            i, j = left_ + 1, right_ + 1


def _alike(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[int, int]]:
    """Which item of a changed stretch became which: those of one shape, in order."""
    if len(a) == len(b) and all(_shape(x) == _shape(y) for x, y in zip(a, b, strict=True)):
        return [(i, i) for i in range(len(a))]
    found = blocks_of([_shape(item) for item in a], [_shape(item) for item in b], bits=_MOST_ITEMS)
    same = [block for block in found.blocks if block.same]
    return [pair for _, a0, a1, b0, b1 in same for pair in zip(range(a0, a1), range(b0, b1), strict=True)]


_TELLING: Final = ("type", "role", "name", "kind", "tool_name")


def _shape(item: Any) -> tuple[str, ...]:
    if isinstance(item, dict):
        return ("object", *(str(item.get(name)) for name in _TELLING))
    if isinstance(item, int | float) and not isinstance(item, bool):
        return ("number",)
    return (type(item).__name__,)


def _key(item: Any, raw: bytes | None, path: Path, place: int, noise: Noise) -> Any:
    """What identifies an item of the list at `path`, without what its place or form shows to be noise."""
    if isinstance(item, str):
        inside = _json_of(item)
        return item.strip() if inside is None else encoded(_canonical(inside, path, place))
    if isinstance(item, bool | None):
        return item, bool
    if isinstance(item, int | float):
        return item
    if raw is None or len(raw) > _RAW:
        return raw or f"{type(item).__name__} {id(item)}"
    found = noise.canonical.get(key := (raw, _field(path), place))
    if found is None:
        try:
            found = encoded(_canonical(item, path, place)) or raw
        except RecursionError:
            found = raw
        noise.canonical.put(key, found, len(raw))
    return found


def encode_without_noise(value: Any, place: int = 0, folder: str | None = None) -> bytes | None:
    """Encode the input of a step so that two inputs which differ only in noise have equal bytes.

    Returns None for a value that is too deeply nested.
    `place` has the flags of the whole value (`tracetui.diff.calls`), `folder` is the working directory of the run.
    Unlike a `Noise`, it sees one run only: any id of a call equals any other, and masked values equal only themselves.
    """

    def leaf(one: Any, path: Path, flags: int) -> Any:
        if isinstance(one, str) and folder:
            one = one.replace(folder, "\0folder")
        return without_noise(_field(path), one, command=bool(flags & SHELL))

    try:
        found = encoded(_canonical(value, None, place, leaf))
        return repr(value).encode("utf-8", "replace") if found is None else found
    except RecursionError:
        return encoded(value)


def _canonical(
    value: Any, path: Path, place: int, leaf: Callable[[Any, Path, int], Any] = lambda one, path, flags: one
) -> Any:
    """A value without what means nothing by its place or form: ids of calls, the way JSON and numbers are written.

    `leaf` replaces texts and numbers, by their path and the flags of their place.
    """
    if isinstance(value, dict):
        return {
            key: _canonical(one, (path, key), place_of(key, value, path, place), leaf)
            for key, one in value.items()
            if one is not None
        }
    if isinstance(value, list | tuple):
        return [_canonical(one, (path, i), place, leaf) for i, one in enumerate(value)]
    if place & CALL:
        return "\0call"
    if isinstance(value, str):
        inside = _json_of(value)
        if inside is not None:
            return ["\0json", _canonical(inside, path, place, leaf)]
        found = leaf(value, path, place)
        return found.strip() if isinstance(found, str) else found
    return leaf(int(value) if isinstance(value, float) and value.is_integer() else value, path, place)


def _field(path: Path) -> str:
    """The nearest name above a value."""
    while path is not None:
        if isinstance(path[1], str):
            return path[1]
        path = path[0]
    return ""


def written(path: Path) -> str:
    """A path as people write it: ``messages[12].content``, ``["odd key"].x``."""
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
