"""docs/writing-a-format.md: its example is a package that installs, is found, and conforms."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tracetui.formats.base import Format
from tracetui.testing import check_format

ROOT = Path(__file__).parents[2]
STEPLOG = ROOT / "docs" / "examples" / "steplog"


@pytest.fixture
def steplog(monkeypatch: pytest.MonkeyPatch) -> Format:
    monkeypatch.syspath_prepend(str(STEPLOG))
    from tracetui_steplog import Steplog

    return Steplog()


@pytest.fixture(scope="module")
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


def python(site: Path, code: str) -> str:
    """What `code` prints where the example is installed."""
    paths = os.pathsep.join((str(site), str(ROOT / "src")))
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True, text=True
    ).stdout


def test_the_example_conforms(steplog: Format) -> None:
    check_format(steplog, STEPLOG / "cases")


def test_an_installed_format_is_found(site: Path) -> None:
    names = python(site, "from tracetui.formats import registry; print(*registry.names())")
    assert names.split()[-1] == "steplog"


def test_an_installed_format_is_used(site: Path) -> None:
    case = STEPLOG / "cases" / "hello" / "input" / "hello.steplog.jsonl"
    code = f"import tracetui; run = tracetui.load({str(case)!r}).summary; print(run.ref.format, run.status, run.errors)"
    assert python(site, code).split() == ["steplog", "ok", "1"]


def test_without_it_the_file_is_nobodys() -> None:
    names = python(ROOT, "from tracetui.formats import registry; print(*registry.names())")
    assert "steplog" not in names
