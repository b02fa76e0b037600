"""Evaluation reports: whether the patch of a run resolved its issue. No trajectory holds that.

Facts: the SWE-bench harness writes ``report.json`` per instance, ``{INSTANCE: {"resolved", "tests_status"}}``; its
experiments repository has it in ``logs/INSTANCE/`` beside ``trajs``. SWE-agent (``swe_bench_evaluate.py``) moves the
report of all instances, lists of their ids, to ``results.json`` in its output folder, the one above that of the
trajectory; its inspector reads one beside the trajectory.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.scalars import mapping, sequence
from tracetui.model import MESSAGE_LIMIT, PREVIEW, Score
from tracetui.sources.base import File, LinkLost

_LARGEST: Final = 4 << 20
_ID: Final = re.compile(r"\w[\w.+-]{0,199}")
"""An instance id that can name a folder."""
_UNRESOLVED: Final = ("unresolved_ids", "empty_patch_ids", "completed_ids")
_COUNTED: Final = ("FAIL_TO_PASS", "PASS_TO_PASS")
"""Tests that must succeed; the harness runs others as well."""
_RULE: Final = "passed if resolved_ids lists the instance, failed if only the other lists of evaluated ones do"


def scores_of(file: File, instance: str) -> tuple[Score, ...]:
    """Whether a report beside the trajectory says that `instance` is resolved; the first that says so counts.

    A report that is missing, too large or unreadable says nothing. Raises `LinkLost`.
    """
    if not _ID.fullmatch(instance):
        return ()
    for path in ("report.json", f"../logs/{instance}/report.json", "results.json", "../results.json"):
        score = _score(path, _report(file, path), instance)
        if score is not None:
            return (score,)
    return ()


def _report(file: File, path: str) -> dict[str, Any]:
    try:
        with file.other(path) as other:
            return mapping(decode(other.read_all())[0]) if other.stat.size <= _LARGEST else {}
    except LinkLost:
        raise
    except (OSError, FormatError):
        return {}


def _score(path: str, report: dict[str, Any], instance: str) -> Score | None:
    one = mapping(report.get(instance))
    if isinstance(resolved := one.get("resolved"), bool):
        return Score("resolved", resolved, resolved, f"{path} {instance}.resolved"[:PREVIEW], reason=_failures(one))
    if instance in sequence(report.get("resolved_ids")):
        resolved = True
    elif "resolved_ids" in report and any(instance in sequence(report.get(name)) for name in _UNRESOLVED):
        resolved = False
    else:
        return None
    return Score("resolved", resolved, resolved, f"{path} resolved_ids", _RULE)


def _failures(one: dict[str, Any]) -> str:
    """The tests that should have succeeded, by the report of one instance."""
    groups = (mapping(mapping(one.get("tests_status")).get(name)) for name in _COUNTED)
    tests = [test for group in groups for test in sequence(group.get("failure")) if isinstance(test, str)]
    return f"failed tests ({len(tests)}): {', '.join(tests)}"[:MESSAGE_LIMIT] if tests else ""
