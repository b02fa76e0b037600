"""Conditions that a store may apply before it sends runs. They only narrow: a store may send more, never less."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class MayFail(msgspec.Struct, frozen=True):
    """A span failed, or records an error or exception."""


class MayBeScored(msgspec.Struct, frozen=True):
    """A span records an evaluation."""


class Mentions(msgspec.Struct, frozen=True):
    """A name or value of a span contains the text, in any case."""

    text: str
    """ASCII letters, digits and ``_`` only: no store writes these in another way."""


class LastsAtLeast(msgspec.Struct, frozen=True):
    """From its first start to its last end."""

    milliseconds: float


class StartsSince(msgspec.Struct, frozen=True):
    """No span starts before that time, but for spans without a start."""

    seconds: float
    """UTC, since the epoch."""


class StartsBefore(msgspec.Struct, frozen=True):
    """A span starts before that time, or none has a start."""

    seconds: float


class All(msgspec.Struct, frozen=True):
    """All of these; without parts, everything."""

    parts: tuple[Condition, ...]


class AnyOne(msgspec.Struct, frozen=True):
    """At least one of these."""

    parts: tuple[Condition, ...]


class EachError(msgspec.Struct, frozen=True):
    """A failed span, and at most so many of the newest runs with the same error text, numbers and ids aside."""

    most: int


Condition: TypeAlias = (
    EachError | MayFail | MayBeScored | Mentions | LastsAtLeast | StartsSince | StartsBefore | All | AnyOne
)
EVERYTHING = All(())
