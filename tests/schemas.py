"""Checks output against the schemas of docs/schemas/, here without fields that a schema doesn't name."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"


def schema_errors(output: bytes, name: str | None = None) -> list[str]:
    """The first violations in the documents of `output`; `name` is that of their schema, if they don't name it."""
    errors = []
    for document in documents(output):
        validator = validator_of(name or document["schema"].split("/")[1])
        errors += [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(document)]
    return errors[:5]


def documents(output: bytes) -> list[Any]:
    """The documents that a command printed: one, or one after the other."""
    decoder, text = json.JSONDecoder(), output.decode().rstrip()
    values, position = [], 0
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        values.append(value)
        while text[position : position + 1].isspace():
            position += 1
    return values


@cache
def validator_of(name: str) -> Draft202012Validator:
    """The validator of a document."""
    schema = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(closed(schema))


def closed(schema: Any) -> Any:
    """A schema that allows only the fields that it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {"additionalProperties": False} if "properties" in schema and schema.get("type") == "object" else {}
    return {key: closed(value) for key, value in schema.items()} | rest
