"""Finds process-wide mutable state: what two runs, two threads or two tests would share without saying so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

CACHES: Final = frozenset({"cache", "lru_cache", "cached"})
MUTATORS: Final = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem", "popleft"}
    | {"remove", "setdefault", "sort", "update"}
)


def process_state(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each cached function, and of each module or class variable that a function changes."""
    tree = ast.parse(source)
    bodies: list[ast.Module | ast.ClassDef] = [tree, *_classes(tree)]
    shared = {name for body in bodies for name in _assigned(body)}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(_last_name(decorator) in CACHES for decorator in function.decorator_list):
                yield function.lineno, function.name
            changed = [
                (getattr(node, "lineno", function.lineno), name)
                for node in ast.walk(function)
                for name in _changed(node)
                if name in shared
            ]
            own = _local_names(function) if changed else set()
            yield from ((line, name) for line, name in changed if name not in own)


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _assigned(body: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Names that a module or class assigns, or imports."""
    for node in body.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (name.asname or name.name for name in node.names)


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    names = {argument.arg for argument in every}
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    declared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    return (names | stored) - declared


def _changed(node: ast.AST) -> Iterator[str]:
    """Names of variables that a statement or call changes; an attribute counts by the name of the class before it."""
    if isinstance(node, ast.Global):
        yield from node.names
    elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        yield from _owners(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        yield from _owners(node.func.value)


def _owners(value: ast.expr) -> Iterator[str]:
    """The variable itself, and a variable of a class reached as ``self.name`` or ``cls.name``."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "cls":
        yield value.attr


def _last_name(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
