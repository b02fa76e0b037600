"""The public contract, letter by letter. ``TRACETUI_GOLDEN=1`` writes the expected files anew: read the diff."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.run import HERE, Cli

CASES = {
    "ls.txt": ["ls", "traces"],
    "ls.json": ["ls", "traces", "--json"],
    "triage.json": ["triage", "traces", "--json"],
    "doctor.txt": ["doctor", "traces"],
    "doctor.json": ["doctor", "traces", "--json"],
    "formats.txt": ["formats"],
    "paprika.txt": ["show", "traces/paprika/stuck-9.json"],
    "paprika.json": ["show", "traces/paprika/stuck-9.json", "--json"],
    "ccpa.txt": ["show", "traces/ccpa/bump/teacher.ccpa-trace.jsonl"],
    "ccpa.json": ["show", "traces/ccpa/bump/student.ccpa-trace.jsonl", "--json"],
    "hypergraph.txt": ["show", "traces/daily.db#nightly-1"],
    "hypergraph.json": ["show", "traces/daily.db#nightly-2", "--json"],
    "hypergraph-state.txt": ["show", "traces/daily.db#nightly-1", "--state", "1"],
    "latticeflow.txt": ["show", "traces/lattice/weather.jsonl#seoul-1"],
    "latticeflow.json": ["show", "traces/lattice/weather.jsonl#team%2Foslo %232", "--json"],
    "penelope.txt": ["show", "traces/penelope/refund/test_result.json"],
    "penelope.json": ["show", "traces/penelope/refund/test_result.json", "--json"],
    "diff.txt": ["diff", "traces/ccpa/bump/student.ccpa-trace.jsonl"],
    "diff.json": ["diff", "traces/daily.db#nightly-1", "traces/daily.db#nightly-2", "--json"],
    "span.txt": ["show", "traces/paprika/stuck-9.json/2"],
    "span.json": ["show", "traces/paprika/stuck-9.json/4", "--json"],
}

ERRORS = {"ls.txt": "tracetui: 3 of 10 runs failed\n"}
"""Standard error, if there is any: where a run has an outcome, `ls` says how many failed."""


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_agreed(cli: Cli, name: str) -> None:
    result = cli(*CASES[name])
    expected = HERE / "golden" / name
    if os.environ.get("TRACETUI_GOLDEN"):
        expected.write_bytes(result.out)

    assert result.status == 0
    assert result.err == ERRORS.get(name, "")
    if name.endswith(".json"):
        assert result.data == json.loads(expected.read_bytes())
    assert result.out == expected.read_bytes()
