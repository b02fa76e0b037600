"""``input_hash``: the fingerprint by which Paprika notices a replay that diverges and calls that repeat.

The document says: SHA-256 over the sorted, compact JSON of the input, 16 hex digits. The runtime (``adapters/llm.py``,
``adapters/tools.py``) hashes the input *wrapped* together with the provider and model, or the tool's name. Both are
tried. Written with `json.dumps`, which escapes what is not ASCII: another JSON writer gives other digits.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tracetui.model import Check

DOCUMENTED = "documented"
RUNTIME = "runtime"


def input_hash(value: Any) -> str:
    """The first 16 hex digits of the hash of `value`; empty for what is nested too deeply to be written."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    except RecursionError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(record: dict[str, Any]) -> Check | None:
    """The stored hash of a call compared with both recipes; None where the call holds none."""
    stored = record.get("input_hash")
    if not isinstance(stored, str):
        return None
    if "input_data" in record:
        bare = record["input_data"]
        wrapped = {"provider": record.get("provider"), "model": record.get("model"), "input": bare}
    elif "args" in record:
        bare = record["args"]
        wrapped = {"name": record.get("tool_name"), "args": bare}
    else:
        return None
    expected = ((RUNTIME, input_hash(wrapped)), (DOCUMENTED, input_hash(bare)))
    return Check("input_hash", stored, next((name for name, value in expected if value == stored), None), expected)
