"""Outlines of runs: what statistics count, reused from earlier readings of unchanged files (`store.run_cache`)."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from tracetui.formats import registry
from tracetui.live.load import FileCaches, read_run
from tracetui.live.scan_cache import Dependencies, Packing, dependencies_of, folder_key, is_transient, version
from tracetui.model import Body, Operation, Problem, Run, RunBody, RunRef, RunSummary, Span, Status, Usage
from tracetui.model.blocks import Blocks
from tracetui.sources.base import LinkLost, Source
from tracetui.sources.observed import Answer, Observations, ObservedSource, Question, ask
from tracetui.store.run_cache import Page, Storage

MOST_SPANS = 50_000
"""Longer runs are read again: reading them back from the cache takes as long."""


class _SpanOutline(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The fields of a span that statistics use."""

    name: str
    operation: Operation
    status: Status
    status_word: str | None
    started_at: float | None
    duration_ms: float | None
    usage: Usage | None
    owner: str | None
    nested_graph: bool
    model: str | None
    note: str


class _Outline(msgspec.Struct, frozen=True, gc=False, array_like=True):
    dependencies: Dependencies
    summary: RunSummary
    spans: tuple[_SpanOutline, ...]
    sizes: tuple[int, ...]
    problems: tuple[Problem, ...]


class _Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A page: the outline of one run, which is decoded only if it is asked for."""

    name: str
    outline: msgspec.Raw


class Outlines:
    """Reads outlines, and stores those that it had to read. A context manager. Used by one thread."""

    def __init__(self, source: Source, roots: list[str], limit: int) -> None:
        """Use the user's cache, of at most `limit` bytes; 0: none."""
        self._source, self._file_caches = source, FileCaches()
        self._storage = Storage(f"{version(None)} outlines", roots, limit=limit) if limit else None
        self._rows, self._outlines = Packing(_Row), Packing(_Outline)
        self._folder: str | None = None
        self._stored: dict[str, tuple[int, msgspec.Raw]] = {}
        """Page and outline, by name."""
        self._answers: dict[Question, Answer] = {}
        self._new: list[Page] = []

    def __enter__(self) -> Outlines:
        return self

    def __exit__(self, *error: object) -> None:
        if self._storage is not None:
            self._flush()
            self._storage.close()

    def read(self, ref: RunRef) -> Run:
        """Return summary, problems and spans of a run, as far as statistics need them: the spans may have no ids and
        texts, the run no bodies. Raises `LinkLost`.
        """
        cache = self._file_caches.for_run(ref)
        if self._storage is None or is_transient(ref.path) or ref.format not in registry.BUILT_IN:
            return read_run(self._source, ref, cache)
        folder = folder_key(self._source, ref.path)
        name = "\n".join((ref.path.rpartition("/")[2], ref.format, ref.key or ""))
        if folder != self._folder:
            self._flush()
            pages = self._storage.pages(folder).items()
            rows = ((page, row) for page, data in pages if (row := self._rows.unpack(data)) is not None)
            self._folder, self._stored = folder, {row.name: (page, row.outline) for page, row in rows}
        stored = self._stored.get(name)
        found = None if stored is None else self._outlines.unpack(bytes(stored[1]))
        if found is not None and found.summary.ref == ref and found.dependencies.hold(self._ask):
            return _run_of(found)
        began, seen = time.time_ns(), Observations()
        run = read_run(ObservedSource(self._source, seen), ref, cache)
        dependencies = dependencies_of(seen, began)
        if dependencies is not None and len(run.spans) <= MOST_SPANS:
            outline = self._outlines.pack(_outline_of(run, dependencies))
            data = None if outline is None else self._rows.pack(_Row(name, msgspec.Raw(outline)), folder)
            if data is not None:
                self._new.append(Page(folder, data, replaces=() if stored is None else (stored[0],)))
        return run

    def _flush(self) -> None:
        if self._new and self._storage is not None:
            self._storage.put(self._new)
        self._new = []

    def _ask(self, question: Question) -> Answer:
        if question not in self._answers:
            try:
                self._answers[question] = ask(self._source, question)
            except LinkLost:
                raise
            except OSError:
                return None
        return self._answers[question]


def _outline_of(run: Run, dependencies: Dependencies) -> _Outline:
    fields = _SpanOutline.__struct_fields__
    spans = tuple(_SpanOutline(*[getattr(span, name) for name in fields]) for span in run.spans)
    return _Outline(dependencies, run.summary, spans, tuple(run.sizes), run.problems)


def _run_of(outline: _Outline) -> Run:
    fields = _SpanOutline.__struct_fields__
    spans = Blocks(Span(id="", **dict(zip(fields, _values(one), strict=True))) for one in outline.spans)
    return Run(
        summary=outline.summary,
        body=RunBody(),
        spans=spans,
        depths=Blocks((0,) * len(spans)),
        sizes=Blocks(outline.sizes),
        steps=Blocks(),
        problems=outline.problems,
        index={},
        load=_no_body,
    )


def _values(span: _SpanOutline) -> tuple[Any, ...]:
    return msgspec.structs.astuple(span)


def _no_body(span: Span) -> Body:
    raise AssertionError("an outline has no bodies")
