"""What a source records about a file beside its content (`Facts`), as part of the run in it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tracetui.formats.base import Chunk, Format, Reader
from tracetui.model import Body, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.sources.base import FACTS, Facts, File


def with_facts(fmt: Format, file: File) -> Format:
    """The format to read `file` with: `fmt`, with the facts of the source if it has any."""
    facts = file.memo.get(FACTS)
    return fmt if facts is None else WithFacts(fmt, facts)


class WithFacts:
    """A format, for one file."""

    def __init__(self, fmt: Format, facts: Facts) -> None:
        self.name, self.title = fmt.name, fmt.title
        self._format, self._facts = fmt, facts

    def sniff(self, file: File) -> int:
        return self._format.sniff(file)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        for item in self._format.summarize(file, deep=deep):
            yield item.replace(tags=(*item.tags, *self._facts.tags)) if isinstance(item, RunSummary) else item

    def open(self, file: File, ref: RunRef) -> Reader:
        return FactsReader(self._format.open(file, ref), self._facts)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return self._format.body(file, ref, span)


class FactsReader:
    """Reads a run, and adds the facts to its header and body."""

    def __init__(self, reader: Reader, facts: Facts) -> None:
        self._reader, self._facts = reader, facts
        self._begun = False

    def more(self, file: File) -> Chunk:
        facts = file.memo.get(FACTS, self._facts)
        chunk = self._reader.more(file)
        header, body = chunk.header, chunk.body
        if header is not None:
            header = replace(header, tags=(*header.tags, *facts.tags))
        if body is not None or chunk.reset or not self._begun:
            body = body or RunBody()
            body = replace(body, attributes={**body.attributes, **facts.attributes})
        self._begun = True
        return replace(chunk, header=header, body=body)
