"""Two JSON values compared as structures: the order of keys means nothing, items of lists are found again.

Works without recursion, so that values of any depth can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from tracetui.diff.noise import EMPTY, Noise
from tracetui.diff.sequence import blocks_of

INPUT: Final = "input"
OUTPUT: Final = "output"
STATUS: Final = "status"

Path = tuple[Any, str | int] | None
"""A place in a value: the place above it, and the key or index there; None is the whole value."""


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

Work = tuple[Path, Path, Any, Any]


def changes_of(
    a: Any,
    b: Any,
    noise: Noise,
    *,
    side: str = OUTPUT,
    under: str | None = None,
    recorded: bool = False,
    aside: str | None = None,
) -> list[Change]:
    """What differs, in the order of the values. `under` is the name of the whole in paths.

    `aside` is the kind of ignored difference that all of it is.
    """
    top: Path = None if under is None else (None, under)
    judge = partial(noise.kind_of, given=side == INPUT, recorded=recorded)
    found: list[Change] = []
    todo: list[tuple[Work, str | None]] = [((top, top, a, b), aside)]
    while todo:
        (path_a, path_b, left, right), kind = todo.pop()
        if left is _NOTHING or right is _NOTHING:
            kind = kind or _absence(path_a, path_b, left, right, judge)
            if not noise.passes(kind):
                found.append(_one_sided(side, path_a, path_b, left, right, kind))
            continue
        if equal(left, right):
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            kind = kind or judge(_field(path_a), left, right)
            if not noise.passes(kind):
                todo.extend((work, kind) for work in reversed(list(_members(path_a, path_b, left, right))))
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            items = _items(path_a, path_b, left, right, strict=noise.strict)
            todo.extend((work, kind) for work in reversed(list(items)))
        elif not _same_scalar(left, right):
            kind = kind or judge(_field(path_a), left, right)
            if not noise.passes(kind):
                found.append(Change(side, written(path_a), written(path_b), left, right, kind))
    return found


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


def _members(path_a: Path, path_b: Path, a: dict[Any, Any], b: dict[Any, Any]) -> Iterator[Work]:
    for key, value in a.items():
        yield (path_a, key), (path_b, key), value, b.get(key, _NOTHING)
    for key, value in b.items():
        if key not in a:
            yield (path_a, key), (path_b, key), _NOTHING, value


def _items(path_a: Path, path_b: Path, a: Sequence[Any], b: Sequence[Any], *, strict: bool) -> Iterator[Work]:
    """Items that are equal as a whole are each other (but, if `strict`, for white space); between them, those of one
    shape.
    """
    for block in blocks_of(_Keys(a), _Keys(b), bits=_MOST_ITEMS).blocks:
        if block.same and strict:
            same = zip(range(block.a0, block.a1), range(block.b0, block.b1), strict=True)
            yield from (((path_a, i), (path_b, j), a[i], b[j]) for i, j in same)
        pairs = [] if block.same else _alike(a[block.a0 : block.a1], b[block.b0 : block.b1])
        i, j = block.a0, block.b0
        for left, right in [*((block.a0 + x, block.b0 + y) for x, y in pairs), (block.a1, block.b1)]:
            if block.same:
                break
            yield from (((path_a, one), (path_b, one), a[one], _NOTHING) for one in range(i, left))
            yield from (((path_a, one), (path_b, one), _NOTHING, b[one]) for one in range(j, right))
            if left < block.a1 and right < block.b1:
                yield (path_a, left), (path_b, right), a[left], b[right]
            i, j = left + 1, right + 1


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
    return (type(item).__name__,)


class _Keys(Sequence[Any]):
    """The items of a list as something that can be hashed, made when it is asked for: most never are."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [_key(item) for item in self._items[place]]
        return _key(self._items[place])

    def __iter__(self) -> Iterator[Any]:
        return map(_key, self._items)


def _key(item: Any) -> Any:
    if isinstance(item, str):
        return item.strip()
    try:
        return msgspec.json.encode(item, order="deterministic")
    except (ValueError, TypeError, RecursionError, OverflowError):
        return f"{type(item).__name__} {id(item)}"


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
