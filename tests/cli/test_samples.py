"""Every file of the real samples: what it is taken for, and what is read in it. Nothing is dropped silently.

``TRACETUI_GOLDEN=1`` writes the expected lines anew: read the diff.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.run import HERE
from tests.shared import SHARED, needs_shared, settled
from tracetui.cli import main
from tracetui.cli.reading import Listing, listing_of
from tracetui.model import RunSummary
from tracetui.sources.base import HIDDEN_FOLDER
from tracetui.sources.local import LocalSource
from tracetui.store.relations import Relations

pytestmark = needs_shared
GOLDEN: Final = HERE / "golden" / "samples.jsonl"
OWN: Final = {
    "atif": "atif",
    "ccpa": "ccpa",
    "claude-code": "claude-code",
    "claude-stream-json": "claude-code",
    "codex": "codex",
    "copilot-cli": "copilot",
    "gemini-cli": "gemini",
    "hypergraph": "hypergraph",
    "inspect-ai": "inspect",
    "latticeflow": "latticeflow",
    "opencode": "opencode",
    "opencode-2": "opencode",
    "otel-otlp-json": "otlp",
    "paprika": "paprika",
    "penelope": "penelope",
    "pi": "pi",
    "swe-agent": "swe-agent",
    "mini-swe-agent": "swe-agent",
    "qwen-code": "qwen",
    "google-adk": "google-adk",
    "openhands": "openhands",
    "openhands-v1": "openhands",
    "codex-exec-json": "codex-exec",
    "hf-sts": "hf-sts",
    "langgraph": "langgraph",
    "langgraph-sqlite": "langgraph",
    "mlflow": "mlflow",
    "antigravity": "antigravity",
    "cursor": "cursor",
}
"""Whose files are in a folder of the samples; those of all other folders are of formats that are not read."""
MIXED: Final = frozenset({"cases", "context-cases", "effects", "terminal-bench"})
"""Folders with files of several formats."""
ALIKE: Final = {
    "other-coding-agents/agent-sessions-fixtures/antigravity/": "antigravity",
    "other-coding-agents/agent-sessions-fixtures/cursor/": "cursor",
    "other-coding-agents/agent-sessions-fixtures/openclaw/": "pi",
    "other-coding-agents/agent-sessions-fixtures/qwen/": "qwen",
    "hf-sts/pi-with-harness.jsonl": "pi",
}
"""Files that are written as another program's are."""
TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All samples, as ``samples`` in the working directory."""
    assert SHARED is not None
    folder = tmp_path_factory.mktemp("all")
    for log in settled(SHARED / "samples", folder / "samples").rglob("*-wal"):
        if not log.stat().st_size:  # left behind by somebody who looked into the database: it says nothing
            log.unlink()
            log.with_name(log.name.removesuffix("-wal") + "-shm").unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(folder)
    yield Path("samples")
    os.chdir(before)


@pytest.fixture(scope="module")
def listing(samples: Path) -> Listing:
    """Everything that is read in them."""
    return listing_of(LocalSource(), [str(samples)], None, deep=True)


@pytest.fixture(scope="module")
def diagnosis(samples: Path) -> dict[str, Any]:
    """What ``doctor --json`` says of them."""
    output, errors = BytesIO(), StringIO()
    with redirect_stdout(TextIOWrapper(output, write_through=True)) as text, redirect_stderr(errors):
        assert main(["doctor", str(samples), "--json"]) == 0
        report: dict[str, Any] = json.loads(output.getvalue())
        text.detach()
    assert errors.getvalue() == ""
    return report


def files_in(folder: Path) -> list[str]:
    """Every file below a folder, found without the program's help."""
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def test_every_file_is_accounted_for(samples: Path, diagnosis: dict[str, Any]) -> None:
    files = diagnosis["files"]
    hidden = tuple(f"{file['path']}/" for file in files if file["reason"] == HIDDEN_FOLDER)

    expected = [path for path in files_in(samples) if not (hidden and path.startswith(hidden))]
    assert sorted(file["path"] for file in files if file["reason"] != HIDDEN_FOLDER) == expected
    counts = Counter(file["class"] for file in files)
    assert {*counts} <= {"listed", "problem", "ignored"}
    assert {name: diagnosis[name] for name in counts} == counts
    assert diagnosis["seen"] == len(files)
    for file in files:
        assert (file["runs"] > 0) == (file["class"] == "listed"), file
        assert file["class"] != "problem" or file["problems"], file
        assert file["class"] != "ignored" or file["reason"], file


def test_no_format_takes_what_is_anothers(diagnosis: dict[str, Any]) -> None:
    for file in diagnosis["files"]:
        claims = {name for name, score in file["scores"].items() if score}
        path = file["path"].removeprefix("samples/")
        if path.split("/")[0] in MIXED:
            continue
        alike = {name for start, name in ALIKE.items() if path.startswith(start)}
        assert claims <= {OWN.get(path.split("/")[0]), *alike}, file


def test_samples_are_read_as_agreed(listing: Listing, diagnosis: dict[str, Any]) -> None:
    lines = [file_facts(file) for file in diagnosis["files"] if file["class"] != "listed"]
    relations = Relations(listing.runs)
    lines += [run_facts(run, relations) for run in listing.runs]
    lines.sort(key=lambda line: (line["file"], str(line.get("run")), line.get("id", "")))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if os.environ.get("TRACETUI_GOLDEN"):
        GOLDEN.write_text(text)

    expected = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    known = {line["file"] for line in expected}  # samples may have been added since
    assert [line for line in lines if line not in expected and line["file"] in known] == []
    assert [line for line in expected if line not in lines] == []


def test_the_list_and_the_diagnosis_agree(listing: Listing, diagnosis: dict[str, Any]) -> None:
    runs = Counter(run.ref.path for run in listing.runs)

    assert runs == {file["path"]: file["runs"] for file in diagnosis["files"] if file["runs"]}
    assert all(run.deep for run in listing.runs)
    assert sorted((problem.path, problem.where, problem.reason) for problem in listing.problems) == sorted(
        (problem["path"], problem["where"], problem["reason"])
        for file in diagnosis["files"]
        for problem in file["problems"]
    )


def file_facts(file: dict[str, Any]) -> dict[str, Any]:
    """A file in which no run was found."""
    return {"file": file["path"], "class": file["class"], "reason": file["reason"] or file["problems"][0]["reason"]}


def run_facts(run: RunSummary, relations: Relations) -> dict[str, Any]:
    """What is agreed on of a run. What is None is left out."""
    used = run.usage
    original = relations.original(run.ref)
    facts = {
        "file": run.ref.path,
        "format": run.ref.format,
        "run": run.ref.key,
        "id": run.id,
        "name": run.name,
        "agent": run.agent,
        "prompt": run.prompt,
        "status": run.status.value,
        "steps": run.steps,
        "spans": run.spans,
        "calls": run.llm_calls,
        "tools": run.tool_calls,
        "errors": run.errors,
        "problems": run.problems,
        "tokens": None if used is None else [getattr(used, name) for name in TOKENS],
        "cost": None if used is None else used.cost_usd,
        "writer": run.writer,
        "relation": relations.relation(run.ref),
        "original": None if original is None else original.address,
        "parent": run.parent,
    }
    return {name: value for name, value in facts.items() if value is not None}
