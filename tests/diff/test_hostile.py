"""Any two runs can be compared and printed, whatever is in them."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests import hostile
from tests.shared import SEARCHES, SHARED, needs_shared
from tracetui import load_all
from tracetui.analysis.diff_description import describe
from tracetui.diff.comparison import Comparison
from tracetui.export.diff import diff_document, diff_lines, pair_line
from tracetui.model import Run
from tracetui.text import UNSAFE

LONG = 5_000
"""Steps of a run that is odd for its length only; two of 20,000 took as long as the 350 others."""
EVERY = 1 if SEARCHES else 2
"""Of so many runs, one is compared."""
LARGE = 1 << (30 if SEARCHES else 20)
"""Bytes of a file that is odd for its size only; six of them took four fifths of the time of all."""


def check(runs: list[Run]) -> None:
    """Compare every run with itself and with the one after the next, and print that."""
    for place, a in enumerate(runs):
        for b in (a, runs[(place + 2) % len(runs)]):
            comparison = Comparison(a, b)
            *_, diff = comparison.steps()

            description = describe(diff, comparison.messages)
            lines = [*diff_lines(diff, comparison.messages, description), pair_line(diff, description)]
            data = b"".join(diff_document(diff, comparison.changes, description))

            assert diff.same or a is not b
            assert not any(UNSAFE.search(line) for line in lines)
            assert not UNSAFE.search(data.decode().replace("\n", ""))
            assert len(json.loads(data)["rows"]) == len(diff.rows)


@pytest.mark.search
def test_attacks_in_every_string_are_compared_and_printed(tmp_path: Path) -> None:
    hostile.write(tmp_path, datetime(2026, 1, 1, tzinfo=UTC))

    runs = load_all(tmp_path)

    assert len(runs) > 50
    check(runs[::EVERY])


@pytest.mark.search
@needs_shared
@pytest.mark.shared
def test_the_hostile_corpus_is_compared_and_printed(tmp_path: Path) -> None:
    script = str(SHARED / "tools" / "hostile.py")  # type: ignore[operator]
    subprocess.run([sys.executable, script, str(tmp_path / "corpus")], capture_output=True, timeout=120, check=True)

    runs = load_all(tmp_path / "corpus" / "traces")

    assert len(runs) > 200
    check([run for run in runs[::EVERY] if len(run.spans) < LONG and Path(run.summary.ref.path).stat().st_size < LARGE])
