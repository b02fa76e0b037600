"""Whoever follows, searches and triages runs of any format sees no secret of theirs, nor one that somebody noted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.canaries import CANARY, SHAPED
from tests.cli.run import Cli
from tests.export.test_document import FORMS, cli, secret_samples, secrets  # noqa: F401 - fixtures
from tests.shared import SEARCHES
from tracetui.analysis.triage import Group, groups
from tracetui.cli.tail import _write_json, _write_text
from tracetui.export.json import Lines
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.live.tail import Tail
from tracetui.model import RunSummary
from tracetui.model.run import Event, SpanChanged
from tracetui.redact import MASK, Redactor
from tracetui.sources.local import LocalSource
from tracetui.store.judgement import CauseRef, Verdict
from tracetui.store.sidecar import Sidecar

SECONDS = 60.0
SOURCE = LocalSource()
PATTERNS: tuple[tuple[str, *tuple[list[str], ...]], ...] = (
    ("[a-z]{3}", [], ["--json", "--redact"]),
    (CANARY, [], ["--json", "--redact"], ["-l"], ["-c"]),
    *([("sk-|AKIA|hf_|@db", [], ["--json", "--redact"])] if SEARCHES else ()),
)
"""What is searched for, each with lists of options."""
NOTE = f"ask ops: {SHAPED['aws']}, password={CANARY}1 or {SHAPED['url']}"


def runs_in(folder: Path) -> list[RunSummary]:
    return [run for entry in scan(SOURCE, [str(folder)], deep=True) for run in entry.runs]


def events_of(folder: Path) -> Iterator[Event]:
    """What is told of all runs of a folder, until each of their spans was."""
    missing = {(run.ref, span.id) for run in runs_in(folder) for span in read_run(SOURCE, run.ref).spans}
    deadline = time.monotonic() + SECONDS
    with closing(Tail(SOURCE, [str(folder)], from_start=True)) as tail:
        while missing:
            assert time.monotonic() < deadline, missing
            for event in tail.events(1.0):
                yield event
                if isinstance(event, SpanChanged):
                    missing.discard((event.run.summary.ref, event.run.spans[event.position].id))


@pytest.fixture
def few(secrets: Path) -> Path:  # noqa: F811
    """One file of each format is left."""
    for folder in [secrets, *(path for path in secrets.rglob("*") if path.is_dir())]:
        for path in sorted(file for file in folder.iterdir() if file.is_file())[1:]:
            path.unlink()
    return secrets


def test_tail_tells_no_secret(few: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ways = {
        "exact": _write_json(None),
        "data": _write_json(Redactor()),
        "text": _write_text(Lines(), Redactor()),
    }
    outputs = dict.fromkeys(ways, "")
    formats = set()
    for event in events_of(few):
        if isinstance(event, SpanChanged):
            formats.add(event.run.summary.ref.format)
        for name, write in ways.items():
            write(event)
            outputs[name] += capsysbinary.readouterr().out.decode()
    assert len(formats) >= 5
    assert CANARY in outputs["exact"]
    assert CANARY not in outputs["data"]
    assert CANARY not in outputs["text"]
    assert MASK in outputs["data"]
    assert MASK in outputs["text"]


@pytest.mark.search
def test_grep_tells_no_secret(cli: Cli, few: Path) -> None:  # noqa: F811
    assert len({run["format"] for run in cli("ls", str(few), "--json").data["runs"]}) == 5
    for pattern, *ways in PATTERNS:
        search = "grep", "-m", "20", "-e", pattern, str(few)
        assert CANARY in cli(*search, "--json").text
        for options in ways:
            result = cli(*search, *options)
            finds_secrets_only = "--redact" in options and pattern == CANARY  # what is masked is not searched
            assert result.status == (1 if finds_secrets_only else 0)
            assert CANARY not in result.text.replace(f'"pattern":"{CANARY}"', ""), options
            assert CANARY not in result.err.replace(f"{CANARY!r}", ""), options


@pytest.fixture
def failed(secrets: Path) -> list[Group]:  # noqa: F811
    """The signatures of runs with secrets in their errors; somebody noted secrets about each, and about their runs."""
    sidecar = Sidecar(roots=[str(secrets)])
    runs = {run.ref: run for run in runs_in(secrets)}
    failures = groups(runs.values())
    for group in failures:
        cause = CauseRef(group.digest, group.id, group.title.exact)
        subjects: list[RunSummary | CauseRef] = [cause, *(runs[ref] for ref in group.runs)]
        for subject in subjects:
            sidecar.judge(subject, Verdict.KNOWN)
            sidecar.note(subject, NOTE)
            sidecar.tag(subject, SHAPED["github"])
    return failures


def test_triage_tells_no_secret(cli: Cli, secrets: Path, failed: list[Group]) -> None:  # noqa: F811
    assert any(CANARY in group.title.exact for group in failed)
    exact = cli("triage", str(secrets), "--json")
    assert len(exact.data["causes"]) == len(failed)
    assert CANARY in exact.text
    for options in ([], ["--json", "--redact"]):
        result = cli("triage", str(secrets), *options)
        assert MASK in result.text
        assert CANARY not in result.text + result.err, options


@pytest.mark.parametrize("form", FORMS)
def test_the_export_of_a_triage_tells_no_secret(cli: Cli, secrets: Path, failed: list[Group], form: str) -> None:  # noqa: F811
    exact = cli("export", str(secrets), "--as", form, "--no-redact").text
    assert exact.count(CANARY) > 2 * len(failed)  # titles, and notes
    exported = cli("export", str(secrets), "--as", form).text
    assert "ask ops: " in exported
    assert MASK in exported
    assert CANARY not in exported
