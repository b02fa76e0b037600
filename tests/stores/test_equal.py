"""A trace from the store is shown as the same trace from a file, but for what the exporter does not store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.shared import SEARCHES
from tests.stores.conftest import Server, Store, make

SAMPLES = Path(__file__).parents[1] / "formats" / "otlp"
FILES = sorted(SAMPLES.glob("*/input/*"))
NOT_STORED = {
    "flags",
    "droppedAttributesCount",
    "droppedEventsCount",
    "droppedLinksCount",
    "schemaUrl",
    "scope.flavour",
}
"""Fields and attributes of scopes that no column is for."""
LISTS = {"web.parts", "garden.parts", "orchard.parts", "greenhouse.parts", "tools", "greenhouse.shape"}
"""Lists and maps of no convention: a ``Map`` stores their JSON, and ``JSON`` divides maps."""
SCHEMAS = {False: "map", True: "json", None: "either"}
"""Each file is stored in one of the variants of the schema; in both in ``python3 dev.py fuzz suite``."""


def requests_in(path: Path) -> list[dict[str, Any]]:
    """The requests of a file that a collector can read."""
    text = path.read_text(errors="replace")
    try:
        return [json.loads(text)]
    except ValueError:
        requests = []
        for line in text.splitlines():
            try:
                requests.append(json.loads(line))
            except ValueError:
                continue
        return requests


def comparable(value: Any) -> Any:
    """A document of ``show --json`` without addresses and without what is not stored."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if not isinstance(value, dict):
        return value
    lost = {*NOT_STORED, *LISTS, "address", "path"}
    kept = {
        key: comparable(item) for key, item in value.items() if key not in lost and not key.startswith(tuple(LISTS))
    }
    if kept.get("code") == "STATUS_CODE_ERROR":  # a number in the protocol, which JSON may have by its name
        kept["code"] = 2
    return kept


def test_there_are_samples() -> None:
    assert len(FILES) > 10


@pytest.mark.search
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
@pytest.mark.parametrize("typed", [False, True] if SEARCHES else [None], ids=SCHEMAS.get)
def test_show_is_equal_from_a_file_and_from_the_store_and_agrees_with_the_list(
    path: Path, typed: bool | None, server: Server, cli: Cli
) -> None:
    store = make(server, typed=FILES.index(path) % 2 == 0 if typed is None else typed)
    store.write(requests_in(path))
    in_file = {run["id"]: run["address"] for run in cli("ls", str(path), "--json").data["runs"]}
    in_file.pop("f6" * 16, None)  # its names are in snake case, which a collector does not read
    listed = {run["id"]: run for run in cli("ls", store.url, "--json").data["runs"]}

    assert listed
    assert listed.keys() >= in_file.keys()
    for ident, run in listed.items():
        assert run["address"] == f"{store.url}/{ident}"
        document = cli("show", run["address"], "--json").data
        assert {key: document["run"][key] for key in run if key in document["run"]} == {
            key: run[key] for key in run if key in document["run"]
        }
        if ident in in_file:
            assert comparable(document) == comparable(cli("show", in_file[ident], "--json").data)


def test_an_id_a_prefix_and_a_part_name_a_run(map_store: Store, cli: Cli) -> None:
    map_store.write(requests_in(SAMPLES / "genai" / "input" / "greenhouse.otlp.jsonl"))
    run = cli("show", f"{map_store.url}/{'a1' * 16}", "--json").data

    assert cli("show", f"{map_store.url}#a1a1", "--json").data == run
    assert cli("show", "a1a1", "--trace-dir", map_store.url, "--json").data == run
    assert (
        cli("show", f"{map_store.url}/{'a1' * 16}/{run['spans'][0]['id']}/name").text.strip() == run["spans"][0]["name"]
    )
    assert cli("show", f"{map_store.url}/{'99' * 16}").status == 1


def test_raw_is_the_row(map_store: Store, cli: Cli) -> None:
    map_store.write(requests_in(SAMPLES / "genai" / "input" / "greenhouse.otlp.jsonl"))
    row = cli("show", f"{map_store.url}/{'a1' * 16}/1", "--raw").data

    assert row["TraceId"] == "a1" * 16
    assert isinstance(row["SpanAttributes"]["gen_ai.usage.input_tokens"], str)


def test_the_newest_are_listed(map_store: Store, cli: Cli) -> None:
    map_store.write(requests_in(SAMPLES / "genai" / "input" / "greenhouse.otlp.jsonl"))

    assert [run["id"] for run in cli("ls", map_store.url, "--limit", "1", "--json").data["runs"]] == ["b2" * 16]
    assert cli("ls", map_store.url, "--limit", "0").status == 2
