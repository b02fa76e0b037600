"""Helpers for tests of other machines."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.sources.sshd import Sshd, missing


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One server for all tests."""
    if missing():
        pytest.skip(missing())
    sshd = Sshd(tmp_path_factory.mktemp("there"))
    yield sshd
    sshd.stop()


@pytest.fixture
def there(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """The server as the host ``there`` of the user's config."""
    monkeypatch.setenv("PATH", f"{server.path}{os.pathsep}{os.environ['PATH']}")
    (server.folder / "calls").unlink(missing_ok=True)
    yield server
    server.trust((server.folder / "host_key.pub").read_text())
    server.connect_to(server.port)
