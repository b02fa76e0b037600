"""docs/schemas/: the output of every command has the fields of its schema, and no others.

All other tests of commands check their output too (`Cli`).
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.claude_sessions import write_session
from tests.cli.run import Cli
from tests.cli.test_blame import commit
from tests.cli.test_context import write_session as write_context
from tests.cli.test_files import write
from tests.cli.test_tail import tailing
from tests.schemas import FOLDER, documents, schema_errors, validator_of
from tests.shared import SEARCHES
from tracetui import demo
from tracetui.export.schemas import DOCUMENTS
from tracetui.model import quote_key

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
COMMANDS = {
    "audit": ["audit", "samples"],
    "cache": ["cache"],
    "context": ["context", "session.jsonl"],
    "context-stats": ["stats", "session.jsonl", "--by", "content,context-file,break"],
    "diff": ["diff", "traces/daily.db#nightly-1", "traces/daily.db#nightly-2"],
    "doctor": ["doctor", "samples"],
    "files": ["files", "samples"],
    "formats": ["formats"],
    "gate": ["gate", "trials/oak-2", "trials/oak-3"],
    "grep": ["grep", "timeout", "samples"],
    "replays": ["diff", "--replays", "samples"],
    "runs": ["ls", "samples"],
    "stats": ["stats", "samples", "--by", "tool,model,task"],
    "tasks": ["tasks", "trials"],
    "triage": ["triage", "samples"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_output_has_the_fields_of_its_schema(cli: Cli, name: str) -> None:
    demo.write(Path("samples"), NOW)
    demo.SETS["trials"](Path("trials"), NOW)
    write_context()
    result = cli(*COMMANDS[name], "--json")
    assert {document["schema"] for document in documents(result.out)} == {f"tracetui/{name}/1"}
    assert schema_errors(result.out) == []


@pytest.mark.search
def test_every_sample_run_and_span_has_the_fields_of_its_schema(cli: Cli) -> None:
    demo.write(Path("samples"), NOW)
    for run in cli("ls", "samples", "--json").data["runs"][:: 1 if SEARCHES else 2]:
        result = cli("show", run["address"], "--json")
        assert schema_errors(result.out, "run") == []
        for span in result.data["spans"][:1]:
            printed = cli("show", f"{run['address']}/{quote_key(span['id'])}", "--json")
            assert schema_errors(printed.out, "run" if "schema" in printed.data else "span") == []


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_blame_has_the_fields_of_its_schema(cli: Cli) -> None:
    commit("start", "09:00", a_py="a = 1\n")
    write_session(Path("runs/one.jsonl"), [write("a.py", "a = 1\nanswer = 42\n")])
    commit("answer", "09:10", a_py="a = 1\nanswer = 42\n")
    for target in ("a.py", "HEAD"):
        result = cli("blame", target, "--repo", "repo", "--traces", "runs", "--json", "--why")
        assert schema_errors(result.out, "blame") == []


def test_events_have_the_fields_of_their_schema(cli: Cli) -> None:
    kinds = []
    with tailing("traces/paprika/stuck-9.json", "--json", "--from-start") as tail:
        while "end" not in kinds:
            line = tail.line().encode()
            assert schema_errors(line, "tail") == []
            kinds.append(documents(line)[0]["event"])
    assert {*kinds} == {"run", "span", "end"}


def test_every_document_has_a_schema_file_and_a_check() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*DOCUMENTS}
    assert {*DOCUMENTS} == {*COMMANDS, "blame", "run", "span", "tail"}


def test_a_missing_and_an_unknown_field_violate_the_strict_schema() -> None:
    assert list(validator_of("cache").iter_errors({"schema": "tracetui/cache/1"}))
    formats = {"schema": "tracetui/formats/1", "formats": []}
    assert list(validator_of("formats").iter_errors(formats)) == []
    assert list(validator_of("formats").iter_errors(formats | {"new": 1}))
