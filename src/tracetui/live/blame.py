"""The index of blame: a job that reads the sessions, and keeps what each wrote in the run cache.

The pages have hashes with a key of this user's cache, no text. An unchanged session isn't read again.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final

import msgspec

from tracetui.analysis.blame import LineIndex
from tracetui.analysis.effects import run_effects
from tracetui.analysis.written_lines import KEY_BYTES, WrittenLines, line_hash, written_lines
from tracetui.live.effects import oldest_first
from tracetui.live.jobs import Job, Step, read_steps
from tracetui.live.scan_cache import Reading, RunValues, version
from tracetui.model import Problem, RunSummary
from tracetui.sources.base import Source
from tracetui.store.run_cache import Page, Storage

_PARTS: Final = ("analysis",)
"""Of this package: they decide what is in the pages, beside the readers."""


class _Page(msgspec.Struct, frozen=True, array_like=True):
    written: WrittenLines
    problems: tuple[Problem, ...]


def _key(roots: Sequence[str], limit: int) -> bytes:
    """The key of the user's cache; a new one if there is none, or nothing can be stored."""
    new = secrets.token_bytes(KEY_BYTES)
    if not limit:
        return new
    with closing(Storage("blame key", roots, limit=limit)) as storage:
        if not storage.pages(""):
            storage.put([Page("", new)])
        return next(iter(storage.pages("").values()), new)


def index_job(runs: Sequence[RunSummary], roots: Sequence[str], limit: int) -> Job:
    """Return a job that indexes the lines of runs below `roots`; its result is the `LineIndex`, None until it is done.

    New results are problems. The cache takes at most `limit` bytes; 0: it isn't used.
    """
    wanted = oldest_first(runs)
    index: LineIndex | None = None

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal index
        key = _key(roots, limit)
        lines = LineIndex(key)
        lines.relate(runs)
        with RunValues(_Page, source, roots, limit, f"{version(None, *_PARTS)} {line_hash('', key).hex()}") as pages:
            for summary in wanted:
                page = pages.find(summary.ref)
                if isinstance(page, Reading):
                    page = yield from _read(page, summary, key)
                if page is not None:
                    lines.add(summary, page.written)
                yield Step(() if page is None else page.problems, done=1)
        index = lines

    return Job("blame", len(wanted), work, lambda: index)


def _read(reading: Reading, summary: RunSummary, key: bytes) -> Generator[Step, None, _Page | None]:
    run = yield from read_steps(reading.source, summary.ref, reading.cache)
    if run is None:
        return None
    page = _Page(written_lines(summary, run_effects(run), key), run.problems)
    reading.store(page)
    return page


def build_index(
    source: Source, runs: Sequence[RunSummary], roots: Sequence[str], limit: int, problems: list[Problem]
) -> LineIndex:
    """Run `index_job` to its end; add what can't be read to `problems`. Raises `LinkLost`."""
    job, known = index_job(runs, roots, limit), set(problems)
    with closing(job.work(source)) as steps:
        for step in steps:
            problems += [one for one in step.new if isinstance(one, Problem) and one not in known]
    index = None if job.result is None else job.result()
    assert isinstance(index, LineIndex)
    return index
