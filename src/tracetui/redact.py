"""Masks secrets: keys, passwords and tokens, by the name of the field that holds them and by how they look.

The structure stays: a value becomes another text, JSON stays JSON. What holds no secret is returned itself, the same
object, after one cheap look. `tracetui.redact_rules` says what counts as a secret; docs/redaction.md tells the user.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec
import orjson

from tracetui.redact_rules import (
    CUT_AT,
    NAME,
    SHAPES,
    Found,
    Looked,
    Named,
    assigned,
    assignments,
    look,
    named,
    shaped,
    tail,
)

MASK: Final = "••••••••"
ASCII_MASK: Final = "********"

_MASKED: Final = re.compile(r"(?:•{8}|\*{8})(?:[0-9a-f]{4})?")
_PASSES: Final = 3
"""A secret that another one touched may be told only when that is masked."""
_PAIR: Final = re.compile(r'"(?:name|key|header)":"([^"\\]{1,80})"')
_SCHEMA: Final = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"})
_KEYS: Final = ("name", "key", "header")


class Redactor:
    """Masks secrets and counts what it masked. May be used by several threads.

    With a `key`, a mask ends in four hex digits that are the same for the same secret, and say nothing of it to
    whoever lacks the key: two secrets that differ can be told apart. Without, every mask is the same.
    """

    def __init__(self, key: bytes | None = None, *, mask: str = MASK) -> None:
        self._key, self._mask = key, mask
        self.counts: Counter[str] = Counter()
        """How many were masked, by rule."""

    # ---- what is masked

    def text(self, text: str, *, cut: bool = False) -> str:
        """`text` with every secret in it masked. With `cut` also the beginning of one at its end."""
        here = look(text)
        if here is None:
            return self._cut(text) if cut else text
        made = self._document(text)
        if made is None:
            made = self._plain(here)
        return self._cut(made) if cut else made

    def header(self, text: str) -> str:
        """A short text that its reader may have cut at its end."""
        return self.text(text, cut=len(text) >= CUT_AT or text.endswith("…"))

    def value(self, value: Any) -> Any:
        """`value` with every secret in it masked: mappings, sequences and structs of any depth."""
        if isinstance(value, str):
            return self.text(value)
        return self._walk(value) if _suspicious(value) else value

    def raw(self, data: bytes) -> bytes:
        """A source record. JSON is written anew where something in it was masked."""
        text = data.decode("utf-8", "surrogateescape")
        made = self.text(text)
        return data if made is text else made.encode("utf-8", "surrogateescape")

    def mask(self, secret: str) -> str:
        """What stands for a secret."""
        if self._key is None:
            return self._mask
        digest = blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=2)
        return self._mask + digest.hexdigest()

    # ---- texts

    def _plain(self, here: Looked) -> str:
        for _ in range(_PASSES):
            before = here
            for shape in SHAPES:
                here = here.after(self._replace(here.text, shaped(shape, here)))
            here = here.after(self._replace(here.text, assigned(here)))
            if here is before:
                break
        return here.text

    def _cut(self, text: str) -> str:
        found = tail(text)
        return text if found is None else self._replace(text, [found])

    def _replace(self, text: str, found: Iterable[Found]) -> str:
        pieces: list[str] = []
        done = 0
        for start, end, rule, quoted in found:
            if is_mask(text[start:end]):
                continue
            mask = self._count(text[start:end], rule)
            pieces += (text[done:start], f'"{mask}"' if quoted else mask)
            done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def _document(self, text: str) -> str | None:
        """A text that is a JSON document, masked as such; None where it is none, or nothing was found in it so."""
        ends = text.strip()[:1] + text.strip()[-1:]
        if ends not in ("{}", "[]"):
            return None
        try:
            value = orjson.loads(text)
        except ValueError:
            return None
        made = self._walk(value)
        if made is value:
            return None
        return _written(made, text)

    def _count(self, secret: str, rule: str) -> str:
        self.counts[rule] += 1
        return self.mask(secret)

    # ---- values

    def _walk(self, root: Any) -> Any:
        frames = [_Frame([root], Named.OPEN)]
        while True:
            frame = frames[-1]
            if not frame.todo:
                frames.pop()
                made = frame.made(self)
                if not frames:
                    return made[0]
                frames[-1].done.append(made)
                continue
            child, name = frame.todo.pop()
            if _is_container(child):
                frames.append(_Frame(child, name))
            else:
                frame.done.append(self._leaf(child, name))

    def _leaf(self, value: Any, name: Named) -> Any:
        if isinstance(value, str):
            return self._count(value, NAME) if name and _is_secret(value) else self.text(value)
        if name is Named.ALL and isinstance(value, int | float) and not isinstance(value, bool):
            return self._count(str(value), NAME)
        return self.raw(value) if isinstance(value, bytes) else value


class _Frame:
    """A container on the way: what of it is still to be masked (the last first), and what of it is done."""

    __slots__ = ("children", "container", "done", "names", "todo")

    def __init__(self, container: Any, name: Named) -> None:
        self.container = container
        self.done: list[Any] = []
        self.names: list[Any] | None = None
        if isinstance(container, list | tuple):
            self.children = list(container)
            self.todo = [(child, name) for child in reversed(self.children)]
            return
        fields = _fields(container)
        self.names, self.children = list(fields), list(fields.values())
        self.todo = list(reversed([*_judged(fields, name)]))

    def made(self, redactor: Redactor) -> Any:
        """The container, or another with what was masked in it."""
        same = all(map(_is, self.done, self.children))
        if self.names is None:
            return self.container if same else type(self.container)(self.done)
        if isinstance(self.container, msgspec.Struct):
            return self.container if same else type(self.container)(**dict(zip(self.names, self.done, strict=True)))
        names = [redactor.text(name) if isinstance(name, str) else name for name in self.names]
        if same and all(map(_is, names, self.names)):
            return self.container
        return dict(zip(_unique(names), self.done, strict=True))


def _is(a: object, b: object) -> bool:
    return a is b


def _unique(names: list[Any]) -> Iterator[Any]:
    """Names that were told apart before they were masked."""
    seen: Counter[Any] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} {seen[name]}"


def _fields(container: Any) -> Mapping[Any, Any]:
    if isinstance(container, msgspec.Struct):
        return {name: getattr(container, name) for name in container.__struct_fields__}
    return container  # type: ignore[no-any-return]


def _judged(fields: Mapping[Any, Any], around: Named) -> Iterator[tuple[Any, Named]]:
    """Every value of a mapping, with what its name says of it (`around`: what was said of the mapping itself)."""
    spoken = next((fields[key] for key in _KEYS if isinstance(fields.get(key), str)), "") if "value" in fields else ""
    for key, value in fields.items():
        name = max(around, named(key)) if isinstance(key, str) else around
        if key == "value" and spoken:
            name = max(name, named(spoken))
        if key == "token" and "logprob" in fields:
            name = around
        yield value, Named.OPEN if name and _is_schema(value) else name


def _is_schema(value: Any) -> bool:
    """Whether a value describes a field instead of being one (the parameters of a tool)."""
    if not isinstance(value, Mapping):
        return False
    kind = value.get("type")
    return (isinstance(kind, str) and kind in _SCHEMA) or "$ref" in value or "anyOf" in value


def _is_container(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping | msgspec.Struct)


def _is_secret(value: str) -> bool:
    return any(map(str.isalnum, value)) and not is_mask(value)


def is_mask(text: str) -> bool:
    """Whether a text is a mask, and nothing else."""
    return _MASKED.fullmatch(text) is not None


def masks(text: str) -> Iterator[tuple[int, int]]:
    """Where masks are in a text."""
    return (match.span() for match in _MASKED.finditer(text)) if "••••" in text or "****" in text else iter(())


def _suspicious(value: Any) -> bool:
    """One scan over all of a value: whether there is anything to look at closely."""
    if not _is_container(value):
        return isinstance(value, bytes)
    try:
        data = msgspec.json.encode(value, enc_hook=repr)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return True
    here = look(data)
    return here is not None and (
        "escape" in here.signs
        or any(next(shaped(shape, here), None) is not None for shape in SHAPES)
        or next(assignments(here), None) is not None
        or ('"value":' in here.low and any(named(name) for name in _PAIR.findall(here.text)))
    )


def _written(value: Any, like: str) -> str:
    """JSON text of `value`, indented and ended as another text was."""
    option = orjson.OPT_INDENT_2 if "\n" in like.strip() else 0
    try:
        made = orjson.dumps(value, option=option).decode()
    except TypeError:  # lone surrogates cannot come from JSON that orjson read, depth can
        made = json.dumps(value, ensure_ascii=False)
    return made + ("\n" if like.endswith("\n") else "")
