"""The same environment and Hypothesis settings for every test, on any machine."""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.shared import examples

INHERITED = ("PATH", "HOME", "TMPDIR", "CI", "VIRTUAL_ENV", "TRACETUI_FUZZ", "TRACETUI_GOLDEN")
INHERITED_PREFIXES = ("PYTEST_", "TEXTUAL_SNAPSHOT_", "PYTHON", "PIP_", "LD_", "GIT_")
"""Variables that tools need. Any other may change the program: paths, colors, editors, the size of the screen."""

for name in [name for name in os.environ if name not in INHERITED and not name.startswith(INHERITED_PREFIXES)]:
    del os.environ[name]
os.environ.update(LANG="C.UTF-8", TZ="UTC")
time.tzset()
os.umask(0o022)
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
    signal.signal(number, signal.SIG_DFL)  # a process in the background, or under nohup, ignores some

CACHES = Path(tempfile.mkdtemp(prefix="tracetui-tests-"))
"""The caches of all tests, instead of the user's own."""
atexit.register(shutil.rmtree, CACHES, ignore_errors=True)
os.environ["XDG_CACHE_HOME"] = str(CACHES)
_numbers = itertools.count()
LONGEST_ID = 200
"""Characters or bytes of a parameter's value that stand in a test's id."""
GC_THRESHOLD = 20_000
"""New objects before a garbage collection. Python's own 700 cost 7 % of the time of the UI tests, this 4 %."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without garbage collection, which takes a third of the time among so many lasting objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(GC_THRESHOLD)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its argument: every worker sends the ids of all tests, and a value may have megabytes."""
    return argname if isinstance(val, str | bytes) and len(val) > LONGEST_ID else None


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test an empty cache of its own."""
    folder = CACHES / str(next(_numbers))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    yield
    shutil.rmtree(folder, ignore_errors=True)


settings.register_profile(
    "any-machine",
    max_examples=examples(50),
    deadline=None,
    derandomize="CI" in os.environ,  # a failure must come from the change; `dev.py fuzz suite` searches at random
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any-machine")
