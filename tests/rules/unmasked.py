"""Where text of a trace would be cleaned for display without its secrets masked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

GATE: Final = frozenset({"clean", "clean_lines", "one_line"})
"""Functions of `tracetui.text` that make any text displayable; those of `tracetui.masking` mask it before."""
FREE_TEXTS: Final = frozenset(
    {
        *("prompt", "preview", "note", "message", "words", "reason", "result", "headline", "title", "trial"),
        *("status_word", "outcome_source", "name", "agent", "label", "model", "source", "task", "tools", "tags"),
        *("command", "target", "subject", "exact", "whole"),
    }
)
"""Fields of the model with text of a trace, in which anything can stand; ids and addresses are shown as they are."""


def unmasked(source: str) -> Iterator[str]:
    """Calls of the gate with such a field, as ``line: call``."""
    tree = ast.parse(source)
    gates = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tracetui.text"
        for name in node.names
        if name.name in GATE
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _is_gate(node.func, gates):
            texts = _texts(node.args[0])
            if any(isinstance(text, ast.Attribute) and text.attr in FREE_TEXTS for text in texts):
                yield f"{node.lineno}: {ast.unparse(node)}"


def _is_gate(function: ast.expr, gates: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in gates
    return isinstance(function, ast.Attribute) and function.attr in GATE and ast.unparse(function.value) == "gate"


def _texts(value: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression that are shown: without tests and arguments of other calls."""
    if isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _texts(part)
    elif isinstance(value, ast.IfExp):
        yield from (*_texts(value.body), *_texts(value.orelse))
    elif isinstance(value, ast.JoinedStr):
        for piece in value.values:
            yield from _texts(piece)
    elif isinstance(value, ast.FormattedValue):
        yield from _texts(value.value)
    else:
        yield value
