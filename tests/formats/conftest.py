"""What tests of several formats need."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def case(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the input of a case of the module's format: ``CASES / NAME / input``."""
    folder = tmp_path / "input"
    shutil.copytree(request.module.CASES / request.param / "input", folder)
    return folder
