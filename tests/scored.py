"""A tiny format whose files say what a run was evaluated as: one JSON document a run, with the fields of `Header`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tracetui.formats import registry
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.model import (
    Body,
    FirstError,
    Header,
    Operation,
    Problem,
    RunBody,
    RunRef,
    RunSummary,
    Score,
    Span,
    Status,
    StatusSource,
)
from tracetui.model.tally import Tally, summary_of
from tracetui.sources.base import File

MARK = b'{"scored":'
LONG_AGO = 1_700_000_000


class Scored:
    """The format; see `tracetui.formats.base.Format`."""

    name = "scored"
    title = "Scored runs of the tests"

    def sniff(self, file: File) -> int:
        return CERTAIN if file.head.startswith(MARK) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        header, spans = _decoded(file)
        tally = Tally()
        for span in spans:
            tally.add(span)
        yield summary_of(RunRef(self.name, file.path), header, tally if deep else None, modified_at=file.stat.mtime)

    def open(self, file: File, ref: RunRef) -> Scored:
        return self

    def more(self, file: File) -> Chunk:
        header, spans = _decoded(file)
        return Chunk(spans=spans, header=header, body=RunBody(), reset=True)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return Body()


def _decoded(file: File) -> tuple[Header, list[Span]]:
    document: dict[str, Any] = json.loads(file.read(0, 1 << 20))["scored"]
    scores = tuple(msgspec.convert(score, Score) for score in document.pop("scores", ()))
    status = Status(document.pop("status", "ok"))
    cause = FirstError(document.pop("error"), "RuntimeError") if "error" in document else None
    source = StatusSource.EXPLICIT
    header = Header(
        name="agent", agent="agent", status=status, status_source=source, scores=scores, error=cause, **document
    )
    span = Span(
        id="1", name="search", operation=Operation.EXECUTE_TOOL, step=1, is_step=True, model="gpt", duration_ms=5.0
    )
    return header, [span]


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process read the format."""
    monkeypatch.setitem(registry.BUILT_IN, "scored", f"{__name__}:Scored")


def write_run(folder: Path, ident: str, *, scores: Iterable[dict[str, Any]] = (), **fields: Any) -> Path:
    """Write the file of one run, which didn't change just now."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{ident}.json"
    path.write_bytes(MARK + json.dumps({"id": ident, "scores": [*scores], **fields}).encode() + b"}")
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def reward(value: float, *, passed: bool | None) -> dict[str, Any]:
    """A score as a Harbor trial has it."""
    source = "result.json verifier_result.rewards.reward"
    rule = "" if passed is None else "1 passed, 0 failed"
    return {"name": "reward", "value": value, "passed": passed, "source": source, "rule": rule}
