"""The conformance checks notice what they are there for: each is shown a format with one fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from tracetui import testing
from tracetui.formats.base import NO, START, Chunk, Cursor, Format
from tracetui.formats.paprika import Paprika
from tracetui.model import Body, Operation, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import File

CASE = Path(__file__).parent / "paprika" / "failed"


class Blind(Paprika):
    def sniff(self, file: File) -> int:
        return NO


class Miscounting(Paprika):
    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for item in super().summarize(file, deep=deep):
            assert isinstance(item, RunSummary)
            yield msgspec.structs.replace(item, steps=99 if deep else None)


class Guessing(Paprika):
    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for item in super().summarize(file, deep=deep):
            assert isinstance(item, RunSummary)
            yield item if deep else msgspec.structs.replace(item, steps=99)


class Dropping(Paprika):
    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return msgspec.structs.replace(super().body(file, ref, span), attributes={})


class Choosy(Paprika):
    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        body = super().body(file, ref, span)
        known = {name: value for name, value in body.attributes.items() if "unknown" not in name}
        return msgspec.structs.replace(body, attributes=known)


class Stuck(Paprika):
    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        return super().read(file, ref) if cursor is START else Chunk(cursor=cursor)


class Trusting(Paprika):
    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        chunk = super().read(file, ref, cursor)
        return msgspec.structs.replace(
            chunk,
            spans=[msgspec.structs.replace(span, duration_ms=span.duration_ms + 0) for span in chunk.spans],  # type: ignore[operator]
        )


class Placeless(Paprika):
    """Takes every step for one of an unknown kind, and does not say how long it is."""

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        chunk = super().read(file, ref, cursor)
        spans = [msgspec.structs.replace(span, operation=Operation.UNKNOWN, at="somewhere") for span in chunk.spans]
        return msgspec.structs.replace(chunk, spans=spans)


class Eager(Stuck):
    """Reads a cut file as an empty run, and never again."""

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        whole = file.read(0, file.stat.size).rstrip().endswith(b"}\n}") or file.stat.size > 5_000
        return super().read(file, ref, cursor) if whole else Chunk(cursor=file.stat)


class Forgetful(Paprika):
    """Says that something came, and does not say that all before it is void."""

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        chunk = super().read(file, ref, cursor)
        return chunk if cursor is START else msgspec.structs.replace(chunk, spans=[])


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (Blind(), testing.check_sniff),
        (Miscounting(), testing.check_summaries),
        (Guessing(), testing.check_summaries),
        (Placeless(), testing.check_ledger),
        (Dropping(), testing.check_expected),
        (Dropping(), testing.check_nothing_lost),
        (Choosy(), testing.check_unknown_fields),
        (Trusting(), testing.check_hostile),
        (Eager(), testing.check_growth),
        (Stuck(), testing.check_growth),
        (Forgetful(), testing.check_growth),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Paprika) else value.__name__,
)
def test_a_fault_is_noticed(faulty: Format, check: Callable[[Format, Path], None]) -> None:
    check(Paprika(), CASE)
    with pytest.raises(AssertionError):
        check(faulty, CASE)


def test_a_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no <case>/input"):
        testing.check_format(Paprika(), tmp_path)
