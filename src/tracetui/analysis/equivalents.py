"""Errors that libraries word differently and that one change fixes: a table, and the lookup in it.

Add a row where another library says the same; tests/analysis/test_cause.py has an example of every row.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from tracetui.analysis.normalize import MAX_SHAPES, Normalized, contains_any


class Equivalent(NamedTuple):
    """One kind of error."""

    title: str
    type: str
    """Pattern of exception names."""
    text: str
    """Pattern of messages, in lower case."""
    codes: frozenset[str] = frozenset()
    """Status and error codes that say the same. With any other code it is another error."""
    unless: str = r"(?!)"
    """Pattern of texts that sound alike and need another fix."""
    port: bool = False
    """The port distinguishes causes."""


TABLE: Final = (
    Equivalent(
        "connection refused",
        r"ConnectionRefusedError",
        r"connection refused|econnrefused|actively refused|connect call failed",
        codes=frozenset({"61", "111", "10061"}),
        port=True,
    ),
    Equivalent(
        "rate limited",
        r"(?i)rate_?limit\w*|Throttl\w+|TooManyRequests\w*",
        r"rate[ _-]?limit(?!er)|too many requests|throttl(?:ed|ing)",
        codes=frozenset({"429"}),
        unless=r"quota|billing|insufficient|credit",
    ),
    Equivalent(
        "context too long",
        r"Context(?:Window|Length)Exceeded\w*",
        r"maximum context length|context[ _](?:length|window)[ _](?:is )?exceeded|(?:prompt|input) is too long"
        r"|exceeds? the (?:available |maximum )?(?:context|maximum number of tokens)",
        codes=frozenset({"400", "413"}),
    ),
    Equivalent("GPU out of memory", r"CudaOutOfMemory\w*", r"\b(?:cuda|hip|gpu|mps)\b.{0,40}out of memory"),
    Equivalent(
        "out of memory",
        r"_?(?:Array)?MemoryError|OutOfMemoryError",
        r"out of memory|cannot allocate memory|unable to allocate|\benomem\b|bad_alloc|\boomkilled\b",
        codes=frozenset({"12"}),
    ),
    Equivalent(
        "timed out",
        r"\w*Time(?:d)?[oO]ut(?:Error|Exception|Expired)?",
        r"\btimed[ -]out\b|\be(?:socket)?timedout\b|deadline exceeded|\btimeout (?:of )?\S+ exceeded",
        codes=frozenset({"60", "110", "10060", "-32001"}),
        unless=r"queuepool|gateway time-?out|lock (?:wait )?time",
    ),
)
_COMPILED: Final = [(row, re.compile(row.type), re.compile(row.text), re.compile(row.unless)) for row in TABLE]
_STEMS: Final = (
    "refused",
    "call failed",
    "limit",
    "many requests",
    "throttl",
    "context",
    "long",
    "exceed",
    "memory",
    "alloc",
    "enomem",
    "oom",
    "timed",
)
"""One of them is in every text that fits a row."""
_PORT: Final = re.compile(r"\bport[=: ]+(\d{1,5})\b|[\w\].]:(\d{2,5})(?![\w]|[:.]\d)")


@lru_cache(maxsize=1024)
def _rows_of(kind: str | None) -> frozenset[Equivalent]:
    return frozenset(row for row, of_type, *_ in _COMPILED if kind and of_type.fullmatch(kind))


def find_equivalent(kind: str | None, text: str, normal: Normalized) -> str | None:
    """Return the title of the row that an error fits, with its port where that matters; None if it fits none.

    `kind` and `text` are unwrapped (`analysis.unwrap`), `normal` is the normalized text.
    """
    row = _find_row(kind, normal.shape, normal.template.codes)
    if row is None:
        return None
    port = _PORT.search(text) if row.port else None
    return f"{row.title} (port {port[1] or port[2]})" if port else row.title


@lru_cache(maxsize=MAX_SHAPES)
def _find_row(kind: str | None, text: str, codes: tuple[str, ...]) -> Equivalent | None:
    if kind is not None and kind.startswith("exit "):
        return None
    lower, by_type = text.lower(), _rows_of(kind)
    if not by_type and not contains_any(lower, _STEMS):
        return None
    for row, _, of_text, unless in _COMPILED:
        fits = row in by_type or of_text.search(lower)
        if fits and row.codes.issuperset(codes) and not unless.search(lower):
            return row
    return None
