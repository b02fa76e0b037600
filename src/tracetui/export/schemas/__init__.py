"""The shape of all JSON output: docs/schemas/ is generated from it, and the types of the functions that make the values
are these. docs/json.md says what the fields mean.

A schema admits fields that it doesn't name, since new ones may appear within a schema number; words of open lists
(operations, relations, kinds) are any text, those of closed lists are enumerated.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.export.schemas import reports, runs

DOCUMENTS: Final[dict[str, Any]] = {
    "audit": reports.Audit,
    "blame": reports.Blame,
    "cache": runs.Cache,
    "context": reports.Context,
    "context-stats": runs.ContextStats,
    "diff": reports.Diff,
    "doctor": runs.Doctor,
    "files": reports.Files,
    "formats": runs.Formats,
    "gate": reports.Gate,
    "grep": (runs.Hit, runs.GrepProblem, runs.GrepEnd),
    "replays": reports.Replays,
    "run": runs.RunDocument,
    "runs": runs.Runs,
    "span": runs.Span,
    "stats": runs.Stats,
    "tail": (runs.RunEvent, runs.SpanEvent, runs.ResetEvent, runs.EndEvent, runs.ProblemEvent),
    "tasks": reports.Tasks,
    "triage": reports.Triage,
}
"""The type of each document by name, of line-wise output the types of its lines."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document `name`, a key of `DOCUMENTS`."""
    types = DOCUMENTS[name] if isinstance(DOCUMENTS[name], tuple) else (DOCUMENTS[name],)
    references, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    root = references[0] if len(references) == 1 else {"anyOf": list(references)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tracetui:{name}:1",
        "title": f"tracetui {name}",
        **root,
        "$defs": dict(sorted(components.items())),
    }
