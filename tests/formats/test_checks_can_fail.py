"""The conformance checks notice what they are there for: each is shown a format with one fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from tracetui import testing
from tracetui.formats.base import NO, Chunk, Format, Reader
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
            yield item.replace(steps=99 if deep else None)


class Guessing(Paprika):
    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for item in super().summarize(file, deep=deep):
            assert isinstance(item, RunSummary)
            yield item if deep else item.replace(steps=99)


class Deferring(Paprika):
    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for item in super().summarize(file, deep=deep):
            assert isinstance(item, RunSummary)
            yield item if deep else item.replace(status_word=None)


class Dropping(Paprika):
    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return msgspec.structs.replace(super().body(file, ref, span), attributes={})


class Choosy(Paprika):
    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        body = super().body(file, ref, span)
        known = {name: value for name, value in body.attributes.items() if "unknown" not in name}
        return msgspec.structs.replace(body, attributes=known)


class Faulty(Reader):
    """A reader that `alter` gives the chunks of another one to, and how many came before."""

    def __init__(self, reader: Reader, alter: Callable[[Chunk, int], Chunk]) -> None:
        self._reader, self._alter = reader, alter
        self._calls = 0

    def more(self, file: File) -> Chunk:
        chunk = self._alter(self._reader.more(file), self._calls)
        self._calls += 1
        return chunk


class Stuck(Paprika):
    def open(self, file: File, ref: RunRef) -> Reader:
        return Faulty(super().open(file, ref), lambda chunk, calls: Chunk() if calls else chunk)


class Trusting(Paprika):
    def open(self, file: File, ref: RunRef) -> Reader:
        def alter(chunk: Chunk, calls: int) -> Chunk:
            return msgspec.structs.replace(
                chunk,
                spans=[msgspec.structs.replace(span, duration_ms=span.duration_ms + 0) for span in chunk.spans],  # type: ignore[operator]
            )

        return Faulty(super().open(file, ref), alter)


class Placeless(Paprika):
    """Takes every step for one of an unknown kind, and does not say how long it is."""

    def open(self, file: File, ref: RunRef) -> Reader:
        def alter(chunk: Chunk, calls: int) -> Chunk:
            spans = [msgspec.structs.replace(span, operation=Operation.UNKNOWN, at="somewhere") for span in chunk.spans]
            return msgspec.structs.replace(chunk, spans=spans)

        return Faulty(super().open(file, ref), alter)


class Eager(Stuck):
    """Reads a cut file as an empty run, and never again."""

    def open(self, file: File, ref: RunRef) -> Reader:
        whole = file.read(0, file.stat.size).rstrip().endswith(b"}\n}") or file.stat.size > 5_000
        return super().open(file, ref) if whole else Silent()


class Silent(Reader):
    def more(self, file: File) -> Chunk:
        return Chunk()


class Forgetful(Paprika):
    """Says that something came, and does not say that all before it is void."""

    def open(self, file: File, ref: RunRef) -> Reader:
        def alter(chunk: Chunk, calls: int) -> Chunk:
            return msgspec.structs.replace(chunk, spans=[]) if calls else chunk

        return Faulty(super().open(file, ref), alter)


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (Blind(), testing.check_sniff),
        (Miscounting(), testing.check_summaries),
        (Guessing(), testing.check_summaries),
        (Deferring(), testing.check_summaries),
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
