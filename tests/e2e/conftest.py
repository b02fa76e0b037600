"""The built-in samples, for the real program."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tracetui import demo


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs of every format, of years ago: an age that is told in years changes during no test."""
    folder = tmp_path_factory.mktemp("samples")
    demo.write(folder, datetime(2024, 1, 15, 10, 0, tzinfo=UTC))
    return folder
