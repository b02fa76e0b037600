"""What is the same for every test, whoever runs them, when and where: the environment, and what Hypothesis may do."""

from __future__ import annotations

import atexit
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

KEPT = ("PATH", "HOME", "TMPDIR", "CI", "VIRTUAL_ENV", "TRACETUI_FUZZ", "TRACETUI_GOLDEN")
KEPT_BEGINNINGS = ("PYTEST_", "TEXTUAL_SNAPSHOT_", "PYTHON", "PIP_", "LD_", "GIT_")
"""What tools need. All else may change what the program does: places, colours, editors, the size of the screen."""

for name in [name for name in os.environ if name not in KEPT and not name.startswith(KEPT_BEGINNINGS)]:
    del os.environ[name]
os.environ.update(LANG="C.UTF-8", TZ="UTC")
time.tzset()
os.umask(0o022)
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
    signal.signal(number, signal.SIG_DFL)  # who is started in the background, or to outlive a login, ignores some

CACHES = Path(tempfile.mkdtemp(prefix="tracetui-tests-"))
"""The caches of all tests: the user's own is neither read nor written."""
atexit.register(shutil.rmtree, CACHES, ignore_errors=True)
os.environ["XDG_CACHE_HOME"] = str(CACHES)
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a cache of its own, which is empty."""
    folder = CACHES / str(next(_numbers))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    yield
    shutil.rmtree(folder, ignore_errors=True)


settings.register_profile(
    "any-machine",
    max_examples=examples(50),
    deadline=None,
    derandomize="CI" in os.environ,  # what blocks somebody's change shall be a fault in it; the rest is found elsewhere
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any-machine")
