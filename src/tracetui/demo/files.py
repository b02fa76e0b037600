"""Write sample files with reproducible times and ids."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def put(path: Path, data: bytes, modified: datetime) -> None:
    """Write `data` to `path`, creating directories, with modification time `modified`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    touch(path, modified)


def touch(path: Path, modified: datetime) -> None:
    """Set the modification time of `path`."""
    seconds = int(modified.timestamp())
    os.utime(path, (seconds, seconds))


def pretty(value: Any) -> bytes:
    """JSON as pydantic writes it: indented by two spaces, unescaped."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode()


def zulu(time: datetime) -> str:
    """``2026-03-01T09:00:00.123456Z``."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def uid(seed: str, start: str = "") -> str:
    """A UUID (version 4) derived from `seed`, with `start` as its first digits."""
    digits = start + hashlib.sha256(seed.encode()).hexdigest()
    return str(uuid.UUID(hex=digits[:32], version=4))
