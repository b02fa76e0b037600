"""Sends a directory of traces through everything that reads them, and says what is wrong.

Nothing may raise, hang or take much memory, and the list stage, the count and the full read must agree. A format whose
own exception was caught at the boundary (`tracetui.formats.guard`) is a finding as well: of the built-in ones each
raises `FormatError` on purpose or nothing.
"""

from __future__ import annotations

import builtins
import io
import re
import resource
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import quote

import msgspec

import tracetui
from tracetui import cli, testing
from tracetui.errors import TracetuiError
from tracetui.export.json import run_document
from tracetui.export.text import run_lines
from tracetui.formats import registry
from tracetui.formats.guard import check_fields
from tracetui.live.load import Reader
from tracetui.live.scan import ScannedFile, scan
from tracetui.model import Operation, Problem, Run, RunRef, RunSummary, Unread
from tracetui.model.ledger import kinds_of
from tracetui.model.tally import NAME_LENGTH
from tracetui.sources.local import LocalSource
from tracetui.testing import hostile
from tracetui.testing.reading import plain

MOST_SECONDS: Final = 5.0
"""Of this thread's own time, for one step: the machine may be busy."""
MOST_BYTES: Final = 1 << 30
MOST_RUNS: Final = 12
MOST_BODIES: Final = 200
COMMANDS: Final = ("ls", "ls --json", "doctor", "doctor --json", "triage --json", "stats --json")
_EXCEPTIONS: Final = "|".join(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, OSError)
)
_CAUGHT: Final = re.compile(rf"(?:{_EXCEPTIONS}|ValidationError|DecodeError|EncodeError)\b|needs more memory")
"""How `guard.problem_of` words an exception that no format may raise."""


ENVIRONMENT: Final = {"TZ": "UTC", "XDG_STATE_HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
"""What the commands run in: no settings and no verdicts of the user."""


class Hang(KeyboardInterrupt):
    """Too long; a kind of Ctrl-C, which the boundary around formats lets pass."""


def findings(root: Path, *, commands: bool = False) -> Iterator[str]:
    """What is wrong with how the traces below `root` are read, a sentence each."""
    before = _peak()
    steps: list[Callable[[], Iterator[str]]] = [lambda: _stages(root), lambda: _api(root)]
    if commands:
        steps += [lambda command=command: _command((*command.split(), str(root))) for command in COMMANDS]  # type: ignore[misc]
    for step in steps:
        try:
            with _limited():
                yield from list(step())
        except Hang as error:
            yield f"hang: over {MOST_SECONDS:g} s at {_place(error)}"
        except Exception as error:
            yield f"{type(error).__name__} at {_place(error)}: {str(error)[:300]!a}"
    grown = _peak() - before
    if grown > MOST_BYTES:
        yield f"memory: {grown >> 20} MB more"


@contextmanager
def _limited() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise Hang

    old = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _place(error: BaseException) -> str:
    """The innermost line of ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tracetui" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


# ---- what is judged


def _stages(root: Path) -> Iterator[str]:
    """The list stage, the count and the full read of every file."""
    source = LocalSource()
    quick = {entry.path: entry for entry in scan(source, [str(root)], deep=False)}
    deep = {entry.path: entry for entry in scan(source, [str(root)], deep=True)}
    if quick.keys() != deep.keys():
        yield f"files: {quick.keys() ^ deep.keys()} in one stage only"
    for path, counted in deep.items():
        listed, name = quick.get(path, counted), Path(path).name
        if not _is_sound(path):
            continue
        yield from (f"{name}: {text}" for text in _listing_findings(listed, counted, deep))
        for first, second in zip(listed.runs, counted.runs, strict=False):
            yield from (f"{name} ({second.ref.format}): {text}" for text in _summaries(first, second))
        for summary in counted.runs[:MOST_RUNS]:
            yield from (f"{name} ({summary.ref.format}): {text}" for text in _full_read(summary))
        with source.open(path) as file, suppress(OSError):
            yield from (f"{name}: {text}" for text in ([] if counted.skipped else registry.scores(file)[1]))


def _is_sound(path: str) -> bool:
    """False for a damaged database: the answer depends on which of its indexes is asked."""
    with Path(path).open("rb") as file:
        if not hostile.is_database(file.read(100)):
            return True
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)) as connection:
            connection.text_factory = bytes
            rows = connection.execute("PRAGMA integrity_check").fetchall()
            return all(row[0] == b"ok" or b"NULL value" in row[0] for row in rows)
    except (sqlite3.Error, UnicodeDecodeError):  # the latter: of the text of an error
        return False


def _listing_findings(listed: ScannedFile, counted: ScannedFile, every: dict[str, ScannedFile]) -> Iterator[str]:
    yield from _caught((*listed.problems, *counted.problems))
    if counted.kind == "problem" and listed.kind == "listed":
        return  # what is damaged lies between the parts that the list stage reads
    if (listed.format, listed.kind, listed.part_of) != (counted.format, counted.kind, counted.part_of):
        yield f"the list says {_class(listed)}, the count {_class(counted)}"
    refs = [run.ref for run in listed.runs], [run.ref for run in counted.runs]
    if refs[0] != refs[1]:
        yield f"the list has the runs {_keys(refs[0])}, the count {_keys(refs[1])}"
    if len(set(refs[1])) != len(refs[1]):
        yield f"two runs share an address: {_keys(refs[1])}"
    main = every.get(counted.part_of)
    if counted.part_of and (main is None or main.kind == "ignored"):
        yield f"part of {Path(counted.part_of).name}, which is {'not there' if main is None else main.reason}"
    ledger = counted.ledger
    if ledger.size is not None and not 0 <= ledger.lost <= ledger.size:
        yield f"ledger: {ledger}"


def _class(entry: ScannedFile) -> str:
    return f"{entry.kind} {entry.format} {entry.reason or [problem.reason for problem in entry.problems]}"[:200]


def _keys(refs: list[RunRef]) -> str:
    return f"{len(refs)}: {[ref.key for ref in refs]!a:.200}"


def _caught(problems: tuple[Problem, ...]) -> Iterator[str]:
    """Problems that are bugs of a format."""
    for problem in problems:
        if _CAUGHT.match(problem.reason):
            yield f"the format raised {problem.reason[:300]!a}"
        if not isinstance(problem.reason, str) or not isinstance(problem.where, str):
            yield f"a problem that is no text: {problem!a}"


def _summaries(listed: RunSummary, counted: RunSummary) -> Iterator[str]:
    try:
        check_fields(listed)
        check_fields(counted)
        if not counted.ref.path.endswith(".eval"):  # whose members repeat each other, and contradict if one is changed
            testing.check_quick(listed, counted, "summary")
    except (AssertionError, TypeError, ValueError) as error:
        yield str(error)


def _full_read(summary: RunSummary) -> Iterator[str]:
    reader = Reader(LocalSource(), summary.ref)
    reader.catch_up()
    run = reader.build()
    problems = run.problems if reader.failure is None else (*run.problems, reader.failure)
    yield from _caught(tuple(problems))
    full = msgspec.structs.replace(run.summary, modified_at=summary.modified_at)
    if plain(full) != plain(summary):
        yield f"the count and the full read differ: {_difference(plain(summary), plain(full))}"
    yield from _unread(run)
    yield from _bodies(run)
    b"".join(run_document(run, None))
    list(run_lines(run))
    if reader.failure is None and (reader.read() or reader.fresh or reader.reset):
        yield f"read again it differs: {reader.fresh[:5]!a}, reset {reader.reset}, failure {reader.failure}"


def _unread(run: Run) -> Iterator[str]:
    """What is not understood is counted, and is no more than there is (of hostile values the place may be unknown)."""
    size, unread = run.summary.size, run.summary.unread or Unread()
    unknown = [span.name[:NAME_LENGTH] for span in run.spans if span.operation is Operation.UNKNOWN]
    if unread.kinds != kinds_of((name, 1) for name in unknown):
        yield f"{len(unknown)} spans of unknown kinds, and in the ledger {unread.kinds!a:.200}"
    if size is not None and unread.size > size:
        yield f"{unread.size} of {size} bytes are lost"


def _bodies(run: Run) -> Iterator[str]:
    for item in (run.summary, run.body, *run.problems, *run.spans):
        check_fields(item)
    for span in run.spans[:MOST_BODIES]:
        body = run.load(span)
        check_fields(body)
        problem = body.attributes.get("problem")
        if isinstance(problem, str) and _CAUGHT.match(problem):
            yield f"the body of {span.id!a:.60} raised {problem[:300]!a}"


def _difference(counted: Any, full: Any) -> str:
    names = [name for name in {**counted, **full} if counted.get(name) != full.get(name)]
    return "; ".join(f"{name} is {counted.get(name)!a:.160} and {full.get(name)!a:.160}" for name in names)


def _api(root: Path) -> Iterator[str]:
    """``tracetui.load``, as those use it who have no command line."""
    for path in sorted(root.rglob("*"))[:MOST_RUNS]:
        if path.is_file():
            with suppress(TracetuiError):
                tracetui.load(path)
    yield from ()


def _command(arguments: tuple[str, ...]) -> Iterator[str]:
    old = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in old)
    try:
        status = cli.main(arguments)
    finally:
        sys.stdout, sys.stderr = old
    if status not in (0, 1):
        yield f"`tracetui {' '.join(arguments[:-1])}` ends with {status}"


_VARYING: Final = (
    (re.compile(r"^[^:]*?(?=: | \()"), "FILE"),
    (re.compile(r"/[^\s:]+"), "PATH"),
    (re.compile(r"'[^']*'|\"[^\"]*\""), "TEXT"),
    (re.compile(r"\d+(\.\d+)?"), "N"),
)


def same_finding(text: str) -> str:
    """What findings of one cause have in common."""
    for pattern, short in _VARYING:
        text = pattern.sub(short, text)
    return text[:120]
