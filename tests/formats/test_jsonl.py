"""The reader of JSON lines: what it takes when, and when it reads a file from its start again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from tracetui.formats.agent_log import Conversation
from tracetui.formats.base import Chunk
from tracetui.formats.jsonl import Line, LogReader, skim
from tracetui.formats.schema import Schema
from tracetui.model import LAST_LINE, Header, RunBody, Span
from tracetui.sources.local import LocalSource


class Step(msgspec.Struct, tag_field="type", tag="step"):
    other_fields: ClassVar = ""
    id: str = ""

    def take(self, session: Session, line: Line) -> None:
        session.put(Span(id=self.id, name="step", at=line.packed()))


class End(msgspec.Struct, tag_field="type", tag="end"):
    def take(self, session: Session, line: Line) -> None:
        session.ended = True


class Bomb(msgspec.Struct, tag_field="type", tag="bomb"):
    def take(self, session: Session, line: Line) -> None:
        session.put(Span(id="half", name="half done"))
        if Session.explodes:
            raise MemoryError


class Other(msgspec.Struct):
    def take(self, session: Session, line: Line) -> None:
        session.problem(line, "unknown")


class Session(Conversation):
    explodes = False
    settled = has_status = False

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        record.take(self, line)

    def header(self) -> Header:
        return Header(id="x", name="x", ended=self.ended)

    def run_body(self) -> RunBody:
        return RunBody()


SCHEMA = Schema[Any](Step | End | Bomb, Other)


def step(ident: str) -> bytes:
    return b'{"type":"step","id":"%s"}\n' % ident.encode()


class Log:
    """A file that is written, and a reader of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader = LogReader(SCHEMA, Session)
        self._now = 1_700_000_000

    def write(self, data: bytes, *, anew: bool = False) -> None:
        with self.path.open("wb" if anew else "ab") as file:
            file.write(data)
        self._now += 1
        os.utime(self.path, (self._now, self._now))

    def more(self) -> Chunk:
        with LocalSource().open(str(self.path)) as file:
            return self.reader.more(file)

    def ids(self) -> list[str]:
        chunks = [self.more()]
        while not chunks[-1].done:
            chunks.append(self.more())
        return [span.id for chunk in chunks for span in chunk.spans]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log.jsonl")


def test_each_line_is_taken_once(log: Log) -> None:
    log.write(step("a") + b"\n  \n" + step("b"))
    assert log.ids() == ["a", "b"]
    assert log.more() == Chunk()
    log.write(step("c"))
    assert log.ids() == ["c"]


def test_a_complete_record_without_newline_is_taken_once(log: Log) -> None:
    log.write(step("a") + step("b").rstrip())
    assert log.ids() == ["a", "b"]
    log.write(b" \n" + step("c"))
    chunk = log.more()
    assert [span.id for span in chunk.spans] == ["c"]
    assert not chunk.reset


def test_an_incomplete_line_waits(log: Log) -> None:
    log.write(step("a") + step("b")[:9])
    chunk = log.more()
    assert [span.id for span in chunk.spans] == ["a"]
    assert not chunk.problems
    assert chunk.header is not None
    assert [(problem.where, problem.lost) for problem in chunk.header.unfinished] == [(LAST_LINE, 9)]
    log.write(step("b")[9:])
    chunk = log.more()
    assert [span.id for span in chunk.spans] == ["b"]
    assert chunk.header is not None
    assert not chunk.header.unfinished


def test_an_incomplete_line_after_the_end_is_damage(log: Log) -> None:
    log.write(b'{"type":"end"}\n{"type":')
    assert [problem.reason[:7] for problem in log.more().problems] == ["cut off"]
    assert log.more() == Chunk()
    log.write(b'"step","id":"a"}\n')
    chunk = log.more()
    assert chunk.reset  # the problem no longer holds
    assert [span.id for span in chunk.spans] == ["a"]
    assert not chunk.problems


@pytest.mark.parametrize("other", [step("x"), step("x") + step("y") + step("z"), step("x") + step("b")], ids=len)
def test_a_rewritten_file_is_read_from_its_start(log: Log, other: bytes) -> None:
    log.write(step("a") + step("b"))
    log.more()
    log.write(other, anew=True)
    chunk = log.more()
    assert chunk.reset
    assert chunk.spans[0].id == "x"


def test_a_taken_line_that_becomes_another_one_is_taken_back(log: Log) -> None:
    log.write(step("a") + step("b").rstrip())
    log.more()
    log.write(b"x\n")
    chunk = log.more()
    assert chunk.reset
    assert [span.id for span in chunk.spans] == ["a"]
    assert [problem.where for problem in chunk.problems] == ["line 2"]


def test_after_an_exception_within_a_record_the_file_is_read_from_its_start(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(step("a"))
    assert log.ids() == ["a"]
    log.write(b'{"type":"bomb"}\n' + step("b"))
    monkeypatch.setattr(Session, "explodes", True)
    for _ in range(2):
        with pytest.raises(MemoryError):
            log.more()
    monkeypatch.setattr(Session, "explodes", False)
    chunk = log.more()
    assert chunk.reset
    assert [span.id for span in chunk.spans] == ["a", "half", "b"]


def test_long_logs_come_in_chunks(log: Log) -> None:
    log.write(b"".join(step(str(number)) for number in range(60_000)))
    chunks = [log.more()]
    while not chunks[-1].done:
        chunks.append(log.more())
    assert [span.id for chunk in chunks for span in chunk.spans] == [str(number) for number in range(60_000)]
    assert not any(chunk.reset for chunk in chunks)


@pytest.mark.parametrize("size", [300_000, 3_000_000])
def test_lines_longer_than_a_block(log: Log, size: int) -> None:
    long = b'{"type":"step","id":"%s"}' % (b"l" * size)
    log.write(step("a") + long + b"\n" + step("b") + long[:-3])
    assert [len(ident) for ident in log.ids()] == [1, size, 1]
    log.write(long[-3:])
    assert log.ids() == ["l" * size]


def test_bytes_before_a_record(log: Log) -> None:
    log.write(b"\xef\xbb\xbf" + step("a") + b"\0\0\0" + step("b") + b"\0\0\n")
    chunk = log.more()
    assert [span.id for span in chunk.spans] == ["a", "b"]
    reasons = [(problem.where, problem.reason) for problem in chunk.problems]
    assert reasons == [
        ("line 2", "read leniently: 3 NUL bytes before the record"),
        ("line 3", "2 NUL bytes and no record"),
    ]


def test_the_list_stage_takes_the_head_and_the_tail(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(step("a") + b"".join(step(str(number)) for number in range(20_000)) + step("z"))
    monkeypatch.setattr(Session, "settled", property(lambda self: self.records >= 3))
    monkeypatch.setattr(Session, "has_status", True)
    with LocalSource().open(str(log.path)) as file:
        session = Session(file)
        skim(file, SCHEMA, session)
    ids = [span.id for span in session.collect()]
    assert ids[:3] == ["a", "0", "1"]
    assert ids[-1] == "z"
    assert len(ids) < 5_000
