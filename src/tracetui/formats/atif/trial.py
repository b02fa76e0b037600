"""What Harbor tells of the trial that a trajectory is of: ``result.json`` in the folder above that of the trajectory.

Facts: the models of Harbor. It is written after the trajectory, when the trial was verified.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.document import Whole, whole
from tracetui.formats.scalars import mapping, number, word
from tracetui.model import PREVIEW
from tracetui.sources.base import File, LinkLost

RESULT: Final = "../result.json"
_OWN: Final = frozenset({"verifier_result", "exception_info", "trial_name"})
"""Fields by which it is known."""
_LARGEST: Final = 1 << 20


def has_trial(file: File) -> bool:
    """Whether a trajectory is where Harbor puts those of its trials."""
    return re.split(r"[/\\]", file.path)[-2:-1] == ["agent"]


def result_of(file: File) -> tuple[dict[str, Any], Whole | None]:
    """The result of the trial, and the version of its file; nothing where there is none. Raises `LinkLost`."""
    if not has_trial(file):
        return {}, None
    try:
        with file.other(RESULT) as other:
            if other.stat.size > _LARGEST:
                return {}, Whole(other.stat, None)
            data = other.read_all()
            version = whole(other, data)
    except LinkLost:
        raise
    except OSError:
        return {}, None
    try:
        result = mapping(decode(data)[0])
    except FormatError:  # it may be written just now
        return {}, version
    return (result if _OWN & result.keys() else {}), version


def outcome_of(result: dict[str, Any]) -> str:
    """How a trial went: what ended it, and its rewards (``reward 0.5``)."""
    rewards = mapping(mapping(result.get("verifier_result")).get("rewards"))
    told = [f"{name} {value:g}" for name, found in rewards.items() if (value := number(found)) is not None]
    ended = word(mapping(result.get("exception_info")).get("exception_type"))
    return " · ".join([*([ended] if ended else ()), *told])[:PREVIEW]
