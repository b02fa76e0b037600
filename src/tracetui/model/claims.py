"""Claims: responses and calls that can lie in several runs, and count once.

A provider gives each response and call an id. Forks, resumed sessions, moved folders and backups copy records with
their ids, so that the same response lies in several files. A summary has a table of the claims of its run; the store
decides which run counts each (`tracetui.store.claims`).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Container
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.model.span import COPIED, COUNTS_HERE, Operation, Span, Status, Usage

_SHORT: Final = 16
"""Characters below which an id isn't unique in the world."""
_KINDS: Final = 256
"""Kinds of claims that a table tells apart; further models are one kind."""


class ClaimKind(NamedTuple):
    """What the claims of many spans have in common."""

    operation: Operation
    """`CHAT` of a response, `EXECUTE_TOOL` of a call; another call of the provider for a response has neither."""
    model: str | None
    tier: str | None
    """As in `Span`."""
    failed: bool = False
    is_step: bool = False


class Claim(NamedTuple):
    """A response or call that counts once over all runs."""

    key: int
    """64 bits, equal in all copies."""
    usage: Usage | None
    kind: ClaimKind


def claim_of(span: Span) -> Claim | None:
    """The claim of a span; None if its format declares none, or if it counts elsewhere by its own trace."""
    key = key_of(span)
    if key is None or counts_elsewhere(span):
        return None
    kind = _kind(span.operation, span.model, span.tier, span.status is Status.ERROR, span.is_step)
    return Claim(key, span.usage, kind)


_kind: Final = lru_cache(maxsize=_KINDS)(ClaimKind)
"""The kind with these values: one object for the claims of a run."""


def key_of(span: Span) -> int | None:
    """The key that a span has in common with its copies; None without one.

    A short id (``m1``, the eight digits of pi) counts together with what was said and what it cost.
    """
    claim = None if span.claim is None else short_claim(span.claim)
    if isinstance(claim, str):
        claim = hash_of("\n".join((claim, span.model or "", span.name, span.preview, repr(span.usage))))
    return claim


def short_claim(claim: str | int) -> str | int:
    """The claim in the least memory: the key of an id that is unique in the world."""
    return hash_of(claim) if isinstance(claim, str) and len(claim) >= _SHORT else claim


def hash_of(ident: str) -> int:
    """64 bits for an id, equal in all processes."""
    return int.from_bytes(blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def counts_elsewhere(span: Span) -> bool:
    """Whether another run, or another file of the run, counts the span, as its own trace shows."""
    return span.taken_over and COUNTS_HERE not in span.notes


def is_among(span: Span, keys: Container[int]) -> bool:
    """Whether the span has one of these keys, and counts in its run as far as its own trace shows."""
    return span.claim is not None and key_of(span) in keys and not counts_elsewhere(span)


def as_copy(span: Span) -> Span:
    """The span as a copy, whose usage counts in another run."""
    notes = [COPIED, *(note for note in span.notes if note not in (COPIED, COUNTS_HERE))]
    return replace(span, usage=None, note=" · ".join(notes))


class ClaimColumns(msgspec.Struct):
    """The claims of a run in the order of its spans, field by field: a long run has hundreds of thousands."""

    keys: array[int] = msgspec.field(default_factory=lambda: array("Q"))
    usages: list[Usage | None] = []
    kinds: list[ClaimKind] = []

    def __len__(self) -> int:
        return len(self.kinds)

    def add(self, claim: Claim) -> None:
        """Add a claim."""
        self.keys.append(claim.key)
        self.usages.append(claim.usage)
        self.kinds.append(claim.kind)

    def with_others(self, count: int, others: ClaimColumns) -> ClaimColumns:
        """The first `count` claims, and all others."""
        keys, usages, kinds = self.keys[:count], self.usages[:count], self.kinds[:count]
        return ClaimColumns(keys + others.keys, usages + others.usages, kinds + others.kinds)

    def packed(self, origin: str | None) -> bytes:
        """The packed table of the claims; empty without any, and without an origin: the id of the first record."""
        if not self and origin is None:
            return b""
        order = sorted(range(len(self)), key=self.keys.__getitem__)
        numbers_of: dict[ClaimKind, int] = {}
        numbers = bytearray()
        for index in order:
            kind = self.kinds[index]
            if kind not in numbers_of and not (_is_text(kind.model) and len(numbers_of) < _KINDS - 4 * len(Operation)):
                kind = kind._replace(model=None, tier=None)
            numbers.append(numbers_of.setdefault(kind, len(numbers_of)))
        keys = array("Q", map(self.keys.__getitem__, order))
        if sys.byteorder == "big":
            keys.byteswap()
        origin_key = None if origin is None else hash_of(origin)
        usages = tuple([self.usages[index] for index in order])
        return _encode(ClaimTable(origin_key, keys.tobytes(), tuple(numbers_of), bytes(numbers), usages))


class ClaimKeys(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The keys of a table, which are unpacked without the rest of it."""

    origin: int | None = None
    """The key of the first record of the run, equal in all copies of its beginning."""
    packed: bytes = b""
    """Eight bytes a claim, little endian, ascending: independent of the order in which files were read."""

    @property
    def keys(self) -> array[int]:
        """The keys of the claims."""
        keys = array("Q", self.packed)
        if sys.byteorder == "big":
            keys.byteswap()
        return keys


class ClaimTable(ClaimKeys, frozen=True, gc=False, array_like=True):
    """All claims of one run."""

    kinds: tuple[ClaimKind, ...] = ()
    numbers: bytes = b""
    """For each claim the number of its kind, from 0."""
    usages: tuple[Usage | None, ...] = ()

    def claims(self) -> list[Claim]:
        """The claims, by key."""
        rows = zip(self.keys, self.usages, self.numbers, strict=True)
        return [Claim(key, usage, self.kinds[number]) for key, usage, number in rows]


_encode: Final = msgspec.msgpack.Encoder().encode
unpack_keys: Final = msgspec.msgpack.Decoder(ClaimKeys).decode
unpack_claims: Final = msgspec.msgpack.Decoder(ClaimTable).decode


def _is_text(name: str | None) -> bool:
    """Whether a name can be stored: without lone surrogates."""
    return name is None or name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)
