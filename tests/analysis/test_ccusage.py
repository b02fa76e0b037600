"""Tokens by model are those of ccusage's rules: a call counts once, by the ids of its message and its request."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.sessions import Session, home
from tests.shared import SHARED, needs_shared
from tracetui.analysis.statistics import By, Statistics
from tracetui.cli.reading import listing_of
from tracetui.live.load import FileCaches, read_run
from tracetui.sources.local import LocalSource

Tokens = dict[str, list[int]]
FIELDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def by_rules(folder: Path) -> Tokens:
    """The tokens of each model by ccusage's rules, but of the last record of a message: the first lacks output."""
    calls: dict[tuple[Any, Any], tuple[str, dict[str, Any]]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            message = record.get("message") or {}
            if record.get("type") == "assistant" and message.get("usage"):
                calls[message.get("id"), record.get("requestId")] = message["model"], message["usage"]
    tokens: Tokens = defaultdict(lambda: [0] * len(FIELDS))
    for model, usage in calls.values():
        for i, name in enumerate(FIELDS):
            tokens[model][i] += usage.get(name) or 0
    return {model: counts for model, counts in tokens.items() if any(counts)}


def by_tracetui(folder: Path) -> Tokens:
    source, statistics, caches = LocalSource(), Statistics(By.MODEL), FileCaches()
    listing = listing_of(source, [str(folder)], None, deep=True)
    for run in listing.runs:
        statistics.add(listing.claims.mark(read_run(source, run.ref, caches.for_run(run.ref))))
    tokens: Tokens = {}
    for row in statistics.rows():
        read, written = row.usage.cache_read_tokens or 0, row.usage.cache_creation_tokens or 0
        counts = [(row.usage.input_tokens or 0) - read - written, row.usage.output_tokens or 0, written, read]
        tokens |= {row.name: counts} if any(counts) else {}
    return tokens


def test_a_home_counts_as_ccusage_counts_it(tmp_path: Path) -> None:
    projects = home(tmp_path, 1_800_000_000.0)
    Session("cccc", model="claude-opus-4-1-20250805").prompt("x").answer().write(tmp_path, 1_800_000_000.0, 10)
    assert by_tracetui(projects) == by_rules(projects)
    assert len(by_rules(projects)) == 2


@needs_shared
@pytest.mark.parametrize("name", ["generated-2.1.197", "real_projects"])
def test_samples_count_as_ccusage_counts_them(name: str) -> None:
    assert SHARED is not None
    folder = SHARED / "samples" / "claude-code" / name
    assert by_tracetui(folder) == by_rules(folder)
