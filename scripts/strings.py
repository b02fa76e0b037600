"""The user-visible strings of the program, found in its source: what a reviewer of words reads as a diff."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGES: Final = ("cli", "ui", "views", "export", "analysis", "store", "sources", "live", "formats", "errors.py")
"""Parts of `tracetui` whose strings reach a screen, a file or standard error."""
WORDS: Final = re.compile(r"[A-Za-z]{2}.* .*[A-Za-z]|^[A-Z][a-z]+$", re.DOTALL)
"""A phrase, or a capitalized word."""
STYLE: Final = re.compile(r"^[a-z.]+ (bold|dim|underline)$")
NOT_TEXT: Final = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|CREATE|DELETE|PRAGMA|WITH|ATTACH|BEGIN|DROP)\b"  # database statements
    r"|\(\?|\\b|\[\^"  # patterns
    r"|^[<#.@]|^\{(?!\})|\{ \w+: "  # markup and style sheets; ``{}`` is a value
    r"|[\da-f]{6}|^(black|default|green|red|blue|bright_\w+) "  # colors
)
TYPES: Final = ("TypeVar", "compile", "cast", "NewType", "ParamSpec", "getLogger")
"""Calls with strings that nobody sees."""


def visible_strings(package: Path) -> str:
    """All user-visible strings below `package` (the folder of `tracetui`), by module; ``{}`` is a value put in."""
    lines = []
    for name in PACKAGES:
        path = package / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            tree = ast.parse(file.read_text("utf-8"))
            strings = sorted({*_strings(tree, _hidden(tree))})
            if strings:
                lines += ["", f"# {file.relative_to(package)}", *strings]
    return "\n".join(lines[1:]) + "\n"


def _hidden(tree: ast.AST) -> set[ast.AST]:
    """Docstrings, annotations, and arguments of calls whose strings are no text."""
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in TYPES:
            hidden |= {part for argument in node.args for part in ast.walk(argument)}
        elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            hidden |= {*ast.walk(node.annotation)}
        elif isinstance(node, ast.JoinedStr):
            hidden |= {part for value in node.values for part in ast.walk(value) if isinstance(part, ast.JoinedStr)}
    return hidden


def _strings(tree: ast.AST, hidden: set[ast.AST]) -> Iterator[str]:
    within = {value for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if node in hidden or node in within:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if WORDS.search(text) and not STYLE.search(text) and not NOT_TEXT.search(text):
            yield " ".join(text.split())
