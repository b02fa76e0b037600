"""Every call into a format ends in a result or a problem, whatever the format does; the traces beside stay listed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path, PurePath
from typing import Any, Final

import pytest

import tracetui
from tests.cli.run import Cli
from tests.docs.conftest import ROOT
from tracetui.analysis.search import Needle
from tracetui.errors import FormatError
from tracetui.export.snippets import fork
from tracetui.formats import programs, registry
from tracetui.formats.base import CERTAIN, Chunk
from tracetui.formats.guard import problem_of
from tracetui.live.scan import ScannedFile, part_folders_of, scan
from tracetui.live.search import Outcome, grep_runs
from tracetui.model import Body, Header, Problem, Run, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.base import File
from tracetui.sources.local import LocalSource

GOOD: Final = (
    '{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"sessionId":"s","message":{"content":"x"}}'
)
METHODS: Final = (
    "sniff", "summarize", "half", "open", "more", "body", "whole_of", "parts_in", "home_variables", "homes", "fork"
)  # fmt: skip
NAME: Final = "odd"
SRC: Final = ROOT / "src" / "tracetui"


class Untellable(Exception):
    """One that fails to say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Bare(FormatError):
    def __init__(self) -> None:
        Exception.__init__(self)

    where = reason = 5  # type: ignore[assignment]


FAILURES: Final[tuple[Callable[[], BaseException], ...]] = (
    ValueError, KeyError, AssertionError, MemoryError, RecursionError, OSError, StopIteration, SystemExit, Untellable,
    Bare, lambda: FormatError("torn", "line 1"), lambda: UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"),
)  # fmt: skip
WRONG: Final = (None, 5, "\ud800", [3], object(), b"x", {"a": 1}, [None])


class Odd:
    """A format that does in one of its methods what it should not, and behaves in all others."""

    name = title = NAME
    misbehaves = ""
    how: Callable[[], Any] = staticmethod(lambda: None)

    def _do(self, method: str, right: Any) -> Any:
        return type(self).how() if self.misbehaves == method else right

    def sniff(self, file: File) -> int:
        return int(CERTAIN) if not file.name.endswith(".odd") else self._do("sniff", CERTAIN)

    def summarize(self, file: File, *, deep: bool) -> Iterator[RunSummary | Problem]:
        ref = RunRef(self.name, file.path, "1")
        return self._do("summarize", self._runs(ref))  # type: ignore[no-any-return]

    def _runs(self, ref: RunRef) -> Iterator[RunSummary | Problem]:
        builder = RunBuilder(ref, lambda span: Body())
        builder.add([Span(id="s", name="step")], header=Header(id="run-1", name="run"))
        yield builder.build(modified_at=0.0, moving=False).summary
        if self.misbehaves == "half":
            yield self._do("half", None)

    def open(self, file: File, ref: RunRef) -> Any:
        return self._do("open", self)

    def more(self, file: File) -> Chunk:
        return self._do("more", Chunk(spans=[Span(id="s", name="step")], header=Header(id="run-1", name="run")))  # type: ignore[no-any-return]

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return self._do("body", Body(input="hello"))  # type: ignore[no-any-return]

    def whole_of(self, file: File) -> str | None:
        return self._do("whole_of", None)  # type: ignore[no-any-return]

    def parts_in(self, path: str) -> Sequence[str]:
        return self._do("parts_in", ["parts"])  # type: ignore[no-any-return]

    @property
    def home_variables(self) -> Sequence[str]:
        return self._do("home_variables", ["ODD_HOME"])  # type: ignore[no-any-return]

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return self._do("homes", [home])  # type: ignore[no-any-return]

    def fork(self, run: Run, span: Span) -> str | None:
        return self._do("fork", "code")  # type: ignore[no-any-return]


class Plugged(Odd):
    """It claims its own files alone."""

    def sniff(self, file: File) -> int:
        return super().sniff(file) if file.name.endswith(".odd") else 0


def _raise(failure: Callable[[], BaseException]) -> Callable[[], Any]:
    def raise_failure() -> Any:
        raise failure()

    return raise_failure


HOW: Final[dict[str, Callable[[], Any]]] = {
    **{f"raises {failure!a}": _raise(failure) for failure in FAILURES},
    **{f"returns {value!a}": partial(copy, value) for value in WRONG},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path = tmp_path / "mixed"
    tmp_path.mkdir()
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "bad.odd").write_text("a needle")
    return tmp_path


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Odd]]:
    """The format, installed as that of another package would be."""

    class Installed(Plugged):
        pass

    point = EntryPoint(NAME, "tests:Installed", registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Installed)
    monkeypatch.setattr(registry, "_plugins", lambda: {NAME: point})
    _forget()
    yield Installed
    _forget()


def _forget() -> None:
    registry.load.cache_clear()
    registry.formats.cache_clear()


def by_name(folder: Path) -> dict[str, ScannedFile]:
    return {Path(entry.path).name: entry for entry in scan(LocalSource(), [str(folder)], deep=True)}


@pytest.mark.parametrize("method", METHODS)
def test_every_fault_of_a_plug_in_is_a_problem_of_its_file(folder: Path, odd: type[Odd], method: str) -> None:
    for name, behavior in HOW.items():
        odd.misbehaves, odd.how = method, staticmethod(behavior)
        try:
            _check_all_uses(folder, method, behavior)
        except Exception as error:
            error.add_note(f"where {method} {name}")
            raise


def _check_all_uses(folder: Path, method: str, behavior: Callable[[], Any]) -> None:
    right = _is_right(method, behavior)

    entries = by_name(folder)

    assert [entry.kind for entry in entries.values() if entry.path.endswith("good.jsonl")] == ["listed"]
    bad = entries["bad.odd"]
    if method in ("sniff", "summarize", "whole_of"):
        assert right or (bad.kind == "problem" and all(problem.reason for problem in bad.problems))
    else:
        assert len(bad.runs) == 1
        assert bool(bad.problems) == (method in ("half", "parts_in") and not right)

    runs = tracetui.load_all(folder)
    assert any(run.summary.prompt == "x" for run in runs)
    for run in runs:
        if run.summary.ref.format != NAME:
            continue
        assert right or bool(run.problems) == (method in ("open", "more"))
        for span in run.spans:
            body = run.load(span)
            assert right or ("problem" in body.attributes) == (method == "body")
            if method == "fork" and not right:
                with pytest.raises((FormatError, OSError)):
                    fork(run, 0)
            else:
                assert fork(run, 0) is None or right or fork(run, 0) == "code"
        part_folders_of(run.summary.ref.path, run.summary.ref.format)
    refs = [run.summary.ref for run in runs]
    assert any(isinstance(result, Outcome) for result in grep_runs(LocalSource(), refs, Needle("needle")))

    programs.variables()
    programs.homes(LocalSource(), {}, folder)
    fault = programs.fault(registry.load(NAME), {}, folder)
    assert right or bool(fault) == (method in ("homes", "home_variables"))


def _is_right(method: str, behavior: Callable[[], Any]) -> bool:
    """Whether what is returned is what that method may return."""
    try:
        value = behavior()
    except BaseException:
        return False
    if method in ("whole_of", "fork"):
        return value is None or isinstance(value, str)
    if method in ("parts_in", "home_variables"):
        return isinstance(value, dict)
    return method == "sniff" and value == 5


@pytest.mark.parametrize("method", METHODS)
def test_commands_report_a_fault_and_continue(
    cli: Cli, folder: Path, odd: type[Odd], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.misbehaves, odd.how = method, staticmethod(_raise(lambda: ValueError("odd\x1b[31m thing")))
    place = str(folder)

    for command in (["ls"], ["ls", "--json"], ["doctor"], ["doctor", "--json"], ["triage"], ["stats"]):
        result = cli(*command, place)
        assert result.status == 0, (command, result)
        assert "\x1b" not in result.text
    if method in ("sniff", "summarize", "half", "whole_of", "parts_in", "open", "more"):
        listed = cli("ls", place).text if method not in ("open", "more") else cli("show", f"{place}/bad.odd").text
        assert "ValueError: odd" in listed or "problem" in listed
    if method in ("sniff", "summarize", "half", "whole_of", "parts_in"):
        assert "ValueError: odd" in cli("doctor", place).text
    assert cli("grep", "needle", place).status in (0, 1, 2)
    assert ("broken" in cli("formats").text) == (method in ("homes", "home_variables"))


def test_a_format_that_fails_to_sniff_hides_no_file_of_another(cli: Cli, folder: Path, odd: type[Odd]) -> None:
    odd.sniff = lambda self, file: 1 // 0  # type: ignore[method-assign]
    (folder / "notes.txt").write_text("mine")

    assert by_name(folder)["good.jsonl"].kind == "listed"
    assert by_name(folder)["notes.txt"].kind == "problem"
    files = {Path(file["path"]).name: file for file in cli("doctor", str(folder), "--json").data["files"]}
    assert files["good.jsonl"]["class"] == "listed"
    assert "ZeroDivisionError" in files["good.jsonl"]["problems"][0]["reason"]


@pytest.mark.parametrize("value", ["name", 5], ids=str)
def test_a_run_of_a_plug_in_has_fields_of_the_right_types(folder: Path, odd: type[Odd], value: Any) -> None:
    spans = [Span(id=value, name="step")]
    odd.more = lambda *_: Chunk(spans=spans)  # type: ignore[method-assign]
    (run,) = [run for run in tracetui.load_all(folder) if run.summary.ref.format == NAME]
    assert bool(run.problems) == (value == 5)


def test_a_plug_in_that_ends_the_program_when_it_is_loaded_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: EntryPoint) -> Any:
        raise SystemExit(3)

    monkeypatch.setattr(EntryPoint, "load", load)
    monkeypatch.setattr(registry, "_plugins", lambda: {NAME: EntryPoint(NAME, "x:y", registry.GROUP)})
    _forget()
    try:
        assert NAME not in [known.name for known in registry.formats()]
    finally:
        _forget()


def test_problems_are_text_whatever_the_exception_holds() -> None:
    for error in (Untellable(), OSError(1, 2), MemoryError(), Bare()):
        problem = problem_of("a", error)
        assert problem.reason
        assert isinstance(problem.where + problem.reason, str)


def test_nothing_but_the_guard_calls_a_format() -> None:
    """Going by the names of the methods, and of variables that hold formats."""
    only_formats_have = {"sniff", "summarize", "whole_of", "parts_in", "fork"}
    ambiguous, holders = (
        {"open", "more", "body", "homes"},
        {"fmt", "form", "chosen", "candidate", "format", "_format", "only", "_reader"},
    )
    engines = ("formats/sqlite.py",)  # a reader of readers, which formats call
    free = ("testing/", *engines, *(f"formats/{path.name}/" for path in (SRC / "formats").iterdir()))
    called = re.compile(rf"\.\s*(?:{'|'.join(only_formats_have | ambiguous)})\b")
    for path in SRC.rglob("*.py"):
        where, code = path.relative_to(SRC).as_posix(), path.read_text()
        if where.startswith((*free, "diff/")) or where == "formats/guard.py":  # a diff gets runs, never a format
            continue
        for node in ast.walk(ast.parse(code)) if called.search(code) else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner, method = ast.unparse(node.func.value), node.func.attr
            foreign = method in only_formats_have or (method in ambiguous and owner.rpartition(".")[2] in holders)
            assert not foreign or owner == "guard", f"{where}:{node.lineno}: {ast.unparse(node)}"


# ---- our own formats


HOSTILE: Final = ("\ud800", "a\0b", "..", ".", "", "../../x", "/etc/passwd", "x" * 5000, "\udcff", "a\\b")


@pytest.mark.parametrize("ident", HOSTILE, ids=ascii)
def test_an_id_that_is_no_name_of_a_file_ends_nothing(cli: Cli, tmp_path: Path, ident: str) -> None:
    tmp_path = tmp_path / "mixed"
    tmp_path.mkdir()
    (tmp_path / "good.jsonl").write_text(GOOD)
    part = {"id": "prt_1", "messageID": ident, "sessionID": "ses_1", "type": "text", "text": "x"}
    (tmp_path / "prt_1.json").write_text(json.dumps(part))
    (tmp_path / "prt_2.json").write_text(json.dumps(part | {"sessionID": ident, "id": ident}))
    message = {"id": ident, "sessionID": ident, "role": "user", "time": {}}
    (tmp_path / "msg_1.json").write_text(json.dumps(message))
    session = {"id": ident, "title": "t", "time": {}, "projectID": ident, "parentID": ident}
    (tmp_path / "ses_1.json").write_text(json.dumps(session))
    line = json.loads(GOOD) | {"agentId": ident, "isSidechain": True, "sessionId": "good"}
    (tmp_path / "agent-a1.jsonl").write_text(json.dumps(line))
    (tmp_path / "agent-a2.jsonl").write_text(json.dumps(line | {"sessionId": ident}))

    for command in ("ls", "doctor", "triage", "stats", "ls --json", "grep needle"):
        result = cli(*command.split(), str(tmp_path))
        assert result.status == (1 if command.startswith("grep") else 0), (command, result)
    assert any(run.summary.ref.path.endswith("good.jsonl") for run in tracetui.load_all(tmp_path))
    for entry in scan(LocalSource(), [str(tmp_path)], deep=False):
        assert entry.kind in ("listed", "ignored"), entry


def test_a_part_larger_than_memory_is_a_problem_of_its_run(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD)
    path = tmp_path / "prt_1.json"
    path.write_text('{"id":"prt_1","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"')
    with path.open("r+b") as file:
        file.truncate(1 << 60 if _is_sparse(file) else 1 << 20)
    result = cli("doctor", str(tmp_path), "--json")
    assert result.status == 0
    files = {Path(file["path"]).name: file for file in result.data["files"]}
    assert files["good.jsonl"]["class"] == "listed"
    assert files["prt_1.json"]["class"] == "problem"


def _is_sparse(file: Any) -> bool:
    try:
        file.truncate(1 << 60)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x/\ud800/y", "../\0"])
def test_a_path_that_cannot_be_is_an_oserror(tmp_path: Path, path: str) -> None:
    (tmp_path / "a").write_text("x")
    source = LocalSource()
    file = source.open(str(tmp_path / "a"))
    with pytest.raises(OSError, match="name"):
        file.other(path)
    with pytest.raises(OSError, match="name"):
        source.open(path).read(0, 1)
    with pytest.raises(OSError, match="name"):
        source.list(path)
    assert not file.folder(path).entries
    assert file.sibling(path) is None
    assert not source.is_file(path)
    assert all(entry.failed for entry in source.walk(path))
