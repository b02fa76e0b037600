"""The example of a format in a package of its own, installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
STEPLOG = EXAMPLES / "steplog"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as pip would fill it: the example's wheel, unpacked."""
    place = tmp_path_factory.mktemp("site")
    source = shutil.copytree(STEPLOG, place / "source")
    build = "from hatchling.build import build_wheel; print(build_wheel('..'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(place / done.stdout.split()[-1]) as wheel:
        wheel.extractall(place)
    shutil.rmtree(source)
    return place
