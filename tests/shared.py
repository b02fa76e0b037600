"""Material that lies beside some checkouts (real samples, hostile corpora, drivers) and is absent from others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE: Final = 60.0
"""Seconds after which something is not going to happen any more: a limit, never a wait. Busy machines are slow."""
_BESIDE = ROOT.parent / "shared"
SHARED: Path | None = _BESIDE if (_BESIDE / "samples").is_dir() else None
"""The folder beside the repository, None where there is none."""

SEARCHES: Final = "TRACETUI_FUZZ" in os.environ
"""Whether random searches take all of their seeds: ``python3 dev.py fuzz suite``."""


def seeds(count: int) -> range:
    """The seeds of a random search: all of `count`, or in the suite a few of them."""
    return range(count if SEARCHES else max(1, count // 6))


def examples(count: int) -> int:
    """The Hypothesis examples of a test: ten times `count`, or in the suite a part of it."""
    return count * 10 if SEARCHES else max(2, count // 4)


needs_shared = pytest.mark.skipif(SHARED is None, reason="the shared samples and tools are not beside this checkout")


def sample(*parts: str) -> Path:
    """A real file among the shared samples. Only for tests marked `needs_shared`."""
    assert SHARED is not None
    return SHARED.joinpath("samples", *parts)


def settled(folder: Path, to: Path) -> Path:
    """A copy of `folder` at `to` that nobody has written for long: a fresh checkout's files look as if they moved."""
    shutil.copytree(folder, to)
    for path in to.rglob("*"):
        os.utime(path, (1_760_000_000, 1_760_000_000))
    return to
