"""Where text of a trace would be taken for ours: what the type checker can't say.

`tracetui.text.clean` and its siblings take only masked text, so the type checker rejects all other ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

CASTS: Final = frozenset({"exact", "Masked"})
"""What makes text displayable without masking it: for ids, addresses, paths and what the user wrote."""
FREE_TEXTS: Final = frozenset(
    {
        *("prompt", "preview", "note", "message", "words", "reason", "result", "headline", "title", "trial"),
        *("status_word", "outcome_source", "name", "agent", "label", "model", "source", "task", "tools", "tags"),
        *("command", "target", "subject", "exact", "whole"),
    }
)
"""Fields of the model with text of a trace, in which anything can stand; ids and addresses are shown as they are."""


def unmasked(source: str) -> Iterator[str]:
    """Casts of such a field, as ``line: call``."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CASTS):
            continue
        texts = [text for argument in node.args[:1] for text in _texts(argument)]
        if any(isinstance(text, ast.Attribute) and text.attr in FREE_TEXTS for text in texts):
            yield f"{node.lineno}: {ast.unparse(node)}"


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
