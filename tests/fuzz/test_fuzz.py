"""A short run of each fuzzer, and proof that they find what they are to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz import judge, mutate, surfaces
from tests.fuzz.campaign import fuzz, make, shrink
from tests.fuzz.values import TraceFile
from tracetui.formats import registry
from tracetui.formats.base import Chunk
from tracetui.formats.claude_code import ClaudeCode
from tracetui.formats.claude_code.parts import RunReader
from tracetui.formats.decode import records_in
from tracetui.model import Problem, RunRef, RunSummary
from tracetui.sources.base import SHARED, File

SEED = 28
"""One that soon makes directories in which the planted bugs show; others take longer."""
SECONDS = 1.0
"""Of the processor, at most: what is not tried in that time here is tried by ``python3 dev.py fuzz``."""


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in judge.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("mode", [*mutate.CHANGES])
def test_nothing_is_found(mode: str, tmp_path: Path) -> None:
    report = fuzz(mode, seed=11, seconds=SECONDS, most=40, keep=tmp_path)
    assert report.tried
    assert not report.findings, [finding.text for finding in report.findings.values()]


@pytest.mark.parametrize("name", [*surfaces.SURFACES])
def test_nothing_is_found_beside_traces(name: str) -> None:
    assert surfaces.fuzz(name, seed=11, seconds=SECONDS, most=40) == []


def test_a_planted_bug_beside_traces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracetui.store.settings.read_own_file", lambda path: 1 / 0)
    assert surfaces.fuzz("settings", seed=11, seconds=SECONDS, most=3)


@pytest.mark.parametrize("name", [*registry.BUILT_IN])
def test_there_are_ids_to_change_in_every_format_and_the_judge_is_content_before(name: str, tmp_path: Path) -> None:
    """Also in archives, in databases and in packed files; and what is saved unchanged is read as before."""
    ids = 0
    for case in mutate.cases_of(name)[:2]:
        root = tmp_path / case.name
        mutate.copy(case, root)
        assert not list(judge.findings(root))
        for path in mutate.files_below(root):
            file = TraceFile(path)
            ids += sum(value.names_an_id for value in file.values())
            file.save()
        assert not list(judge.findings(root))
    assert ids >= 3


@pytest.mark.parametrize("mode", [*mutate.CHANGES])
def test_a_seed_makes_the_same_directories(mode: str, tmp_path: Path) -> None:
    trees = []
    for name in ("one", "other"):
        descriptions = [make(tmp_path / name / str(number), mode, 5, number, None) for number in range(8)]
        trees.append(
            (
                descriptions,
                {str(p.relative_to(tmp_path / name)): p.read_bytes() for p in mutate.files_below(tmp_path / name)},
            )
        )
    assert trees[0] == trees[1]
    assert len(set(trees[0][0])) == 8


# ---- the fuzzers would fail


class _Planted(ClaudeCode):
    """A format with a bug."""

    def sniff(self, file: File) -> int:
        return super().sniff(file)


class _RaisesForIds(_Planted):
    """As where an id became the name of a file."""

    def whole_of(self, file: File) -> str | None:
        for record in records_in(file.head, 200):
            "".join(value for value in record.values() if isinstance(value, str)).encode()
        return super().whole_of(file)


class _Miscounts(_Planted):
    def summarize(self, file: File, *, deep: bool) -> Iterator[RunSummary | Problem]:
        for item in super().summarize(file, deep=deep):
            wrong = deep and isinstance(item, RunSummary) and item.spans is not None
            yield item.replace(spans=(item.spans or 0) + 1) if wrong else item  # type: ignore[union-attr]


class _HangingReader(RunReader):
    def read(self, file: File, seconds: float) -> Chunk:
        while True:
            pass


class _Hangs(_Planted):
    def open(self, file: File, ref: RunRef) -> RunReader:
        return _HangingReader()


class _LosesFiles(_Planted):
    """Each of its files is a part of another one, unless asked whether that is one itself."""

    def whole_of(self, file: File) -> str | None:
        others = (entry.path for entry in file.folder().entries if entry.path != file.path)
        return next(others, None) if SHARED in file.memo else None


BUGS = {
    _RaisesForIds: "UnicodeEncodeError",
    _Miscounts: "the count and the full read differ: spans",
    _Hangs: "hang: over",
    _LosesFiles: "which is part of another",
}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type[_Planted]], None]]:
    """Puts a format in the place of the one for Claude Code."""

    def forget() -> None:
        registry.load.cache_clear()
        registry.formats.cache_clear()

    def plant(bug: type[_Planted]) -> None:
        monkeypatch.setitem(registry.BUILT_IN, "claude-code", f"{__name__}:{bug.__name__}")
        forget()

    yield plant
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(("bug", "text"), BUGS.items(), ids=[bug.__name__.strip("_") for bug in BUGS])
def test_a_planted_bug_is_found(
    bug: type[_Planted],
    text: str,
    planted: Callable[[type[_Planted]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted(bug)
    monkeypatch.setattr(judge, "MOST_SECONDS", 0.3 if bug is _Hangs else judge.MOST_SECONDS)
    tries = (fuzz("ids", seed=SEED, seconds=60.0, most=1, only="claude-code", first=number) for number in range(1, 300))
    assert any(text in finding.text for report in tries for finding in report.findings.values())


def test_a_finding_is_kept_as_small_as_it_gets(planted: Callable[[type[_Planted]], None], tmp_path: Path) -> None:
    planted(_Miscounts)
    root = tmp_path / "traces"
    for case in mutate.cases_of("claude-code")[:2]:
        mutate.copy(case, root / case.name)
    before = sum(path.stat().st_size for path in mutate.files_below(root))
    shrink(root, tmp_path / "kept", judge.same_finding(next(judge.findings(root))), commands=False)
    assert any("spans" in text for text in judge.findings(tmp_path / "kept"))
    assert len(mutate.files_below(tmp_path / "kept")) == 1
    assert sum(path.stat().st_size for path in mutate.files_below(tmp_path / "kept")) < before
