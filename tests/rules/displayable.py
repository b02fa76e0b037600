"""A plugin of mypy: where text of a trace would be taken for ours, in a call of `Clean`, `Masked` or `exact`.

Such a call may hold no field in which a trace may say anything. Local names are followed to their
assignments; parts that are literals, numbers, members of an enumeration or `Clean` already are ours. The plugin doesn't
follow a plain `str` through parameters and results of our functions, nor `Clean` through our classes outside the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from mypy import nodes, patterns
from mypy.checker import TypeChecker
from mypy.errorcodes import ErrorCode
from mypy.plugin import FunctionContext, Plugin
from mypy.types import (
    Instance,
    LiteralType,
    NoneType,
    TupleType,
    Type,
    TypeVarType,
    UnionType,
    get_proper_type,
)

UNMASKED: Final = ErrorCode("unmasked", "Text of a trace is taken for ours", "tracetui")
GATE: Final = "tracetui.text."
MODEL: Final = ("tracetui.model.", "tracetui.redact.")
OURS: Final = ("tracetui.",)
SAFE: Final = frozenset({f"{GATE}Clean", f"{GATE}Masked", "builtins.int", "builtins.float", "builtins.bool"})
"""Types whose values can't hold a character that a trace chooses, unless it is clean."""
ITERABLES: Final = frozenset(
    {
        *(f"builtins.{name}" for name in ("list", "tuple", "set", "frozenset", "map", "filter", "reversed", "dict")),
        *(f"typing.{name}" for name in ("Iterable", "Sequence", "Iterator", "Generator", "Collection", "Mapping")),
    }
)
CASTS: Final = {f"{GATE}Clean": MODEL, f"{GATE}Masked": OURS, f"{GATE}exact": OURS}
"""What makes text displayable without masking it, and where the classes are whose fields it may not take."""
FILLERS: Final = frozenset({"append", "extend", "insert", "add", "update", "appendleft", "setdefault"})
ELSEWHERE: Final = frozenset(
    {"node", "info", "analyzed", "names", "imports", "original_def", "impl", "unanalyzed_items"}
)
"""Attributes of nodes that lead to other places of the program than the parts of the node."""
FREE_TEXTS: Final = frozenset(
    {
        *("prompt", "preview", "note", "message", "text", "reason", "result", "headline", "title", "trial"),
        *("status_word", "outcome_source", "name", "agent", "label", "model", "source", "task", "tools", "tags"),
        *("command", "target", "subject", "exact", "whole"),
    }
)
"""Fields of the model with text of a trace, in which anything can stand; ids and addresses are shown as they are."""


def is_safe(kind: Type | None) -> bool:
    """Whether all values of a type are ours, numbers or clean."""
    kind = get_proper_type(kind)
    if isinstance(kind, LiteralType | NoneType):
        return True
    if isinstance(kind, UnionType | TupleType):
        return all(map(is_safe, kind.items))
    if isinstance(kind, TypeVarType):
        return is_safe(kind.upper_bound)
    if not isinstance(kind, Instance):
        return False
    if kind.last_known_value is not None or kind.type.is_enum or kind.type.fullname in SAFE:
        return True
    return kind.type.fullname in ITERABLES and all(map(is_safe, kind.args[:2]))


class Sources:
    """What each variable of a file is assigned or filled with; None where that isn't an expression."""

    def __init__(self, file: nodes.MypyFile) -> None:
        self.of: dict[nodes.SymbolNode, list[nodes.Expression | None]] = defaultdict(list)
        for node in _nodes_in(file):
            for target, value in _assignments(node):
                self._assign(target, value)

    def _assign(self, target: nodes.Node | None, value: nodes.Expression | None) -> None:
        match target:
            case nodes.TupleExpr() | nodes.ListExpr():
                values: list[nodes.Expression | None] = [value] * len(target.items)
                if isinstance(value, nodes.TupleExpr) and len(value.items) == len(target.items):
                    values = [*value.items]
                for item, part in zip(target.items, values, strict=True):
                    self._assign(item, part)
            case nodes.StarExpr():
                self._assign(target.expr, value)
            case nodes.IndexExpr():
                self._assign(target.base, value)
            case nodes.NameExpr() if target.node is not None:
                self.of[target.node].append(value)
            case nodes.Var():
                self.of[target].append(value)


def _nodes_in(file: nodes.MypyFile) -> Iterator[nodes.Node]:
    """All nodes of a file. The traversers of mypy are compiled and can't be subclassed."""
    seen: set[nodes.Node] = set()
    rest: list[object] = [file]
    while rest:
        node = rest.pop()
        if isinstance(node, list | tuple):
            rest.extend(node)
        elif isinstance(node, nodes.Node) and node not in seen:
            seen.add(node)
            yield node
            names = _attributes(type(node))  # type: ignore[arg-type]  # of typeshed's `Hashable`
            rest.extend(getattr(node, name) for name in names - ELSEWHERE)


@cache
def _attributes(kind: type[nodes.Node]) -> frozenset[str]:
    """The names of a node's attributes, in a compiled mypy or not."""
    listed = ("__mypyc_attrs__", "__slots__")
    return frozenset(name for base in kind.__mro__ for names in listed for name in getattr(base, names, ()))


def _assignments(node: nodes.Node) -> Iterator[tuple[nodes.Node | None, nodes.Expression | None]]:
    """The variables that a node sets, each with its source."""
    match node:
        case nodes.AssignmentStmt():
            yield from ((target, node.rvalue) for target in node.lvalues)
        case nodes.OperatorAssignmentStmt():
            yield node.lvalue, node.rvalue
        case nodes.AssignmentExpr():
            yield node.target, node.value
        case nodes.ForStmt():
            yield node.index, node.expr
        case nodes.GeneratorExpr() | nodes.DictionaryComprehension():
            yield from zip(node.indices, node.sequences, strict=True)
        case nodes.WithStmt():
            yield from zip(node.target, node.expr, strict=True)
        case nodes.CallExpr(callee=nodes.MemberExpr(name=name, expr=filled)) if name in FILLERS:
            yield from ((filled, value) for value in node.args)
        case nodes.Argument():
            yield node.variable, None
        case patterns.AsPattern():
            yield node.name, None
        case patterns.StarredPattern():
            yield node.capture, None
        case patterns.MappingPattern():
            yield node.rest, None


class Parts:
    """Finds the parts of an expression that are text of a trace."""

    def __init__(self, checker: TypeChecker, sources: Sources, owners: tuple[str, ...]) -> None:
        self._owners = owners
        self._checker = checker
        self._sources = sources.of
        self._followed: set[nodes.SymbolNode] = set()

    def foreign(self, value: nodes.Expression | None) -> Iterator[nodes.Expression]:
        """The fields with text of a trace that an expression may hold."""
        if value is None or self._is_ours(value):
            return
        if isinstance(value, nodes.MemberExpr) and value.name in FREE_TEXTS and self._holds_traces(value.expr):
            yield value
        else:
            for part in self._inner(value):
                yield from self.foreign(part)

    def _holds_traces(self, owner: nodes.Expression) -> bool:
        kind = get_proper_type(self._type_of(owner))
        kinds = map(get_proper_type, kind.items) if isinstance(kind, UnionType) else [kind]
        classes = [kind.type for kind in kinds if isinstance(kind, Instance)]
        return any(owner.fullname.startswith(self._owners) and not owner.is_enum for owner in classes)

    def _type_of(self, value: nodes.Expression) -> Type | None:
        try:
            return self._checker.lookup_type(value)
        except KeyError:  # it is checked later
            return None

    def _is_ours(self, value: nodes.Expression) -> bool:
        if isinstance(value, nodes.StrExpr | nodes.IntExpr | nodes.FloatExpr):
            return True
        return is_safe(self._type_of(value))

    def _inner(self, value: nodes.Expression) -> list[nodes.Expression | None]:
        """What an expression consists of."""
        match value:
            case nodes.OpExpr():
                return [value.left, value.right]
            case nodes.ConditionalExpr():
                return [value.if_expr, value.else_expr]
            case nodes.IndexExpr():
                return [value.base]
            case nodes.ListExpr() | nodes.TupleExpr() | nodes.SetExpr():
                return [*value.items]
            case nodes.DictExpr():
                return [part for pair in value.items for part in pair]
            case nodes.StarExpr():
                return [value.expr]
            case nodes.AssignmentExpr():
                return [value.value]
            case nodes.GeneratorExpr():
                return [value.left_expr]
            case nodes.ListComprehension() | nodes.SetComprehension():
                return [value.generator.left_expr]
            case nodes.DictionaryComprehension():
                return [value.key, value.value]
            case nodes.NameExpr() if value.node in self._sources:
                if value.node in self._followed:
                    return []
                self._followed.add(value.node)
                return self._sources[value.node]
            case nodes.CallExpr(callee=nodes.MemberExpr() as callee):
                return [callee.expr, *value.args]
            case nodes.CallExpr():
                return [*value.args]
        return []


class MaskingPlugin(Plugin):
    """Reports the casts; a file's sources are read once."""

    _file: nodes.MypyFile | None = None
    _sources: Sources

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return partial(self._cast, CASTS[fullname]) if fullname in CASTS else None

    def _cast(self, owners: tuple[str, ...], context: FunctionContext) -> Type:
        checker = context.api
        assert isinstance(checker, TypeChecker)
        if checker.tree is not self._file:
            self._file, self._sources = checker.tree, Sources(checker.tree)
        for value in context.args[0][:1] if context.args else []:
            for part in Parts(checker, self._sources, owners).foreign(value):
                place = f"line {part.line}, column {part.column + 1}"
                context.api.fail(f"Text of a trace is taken for ours: {place}", context.context, code=UNMASKED)
        return context.default_return_type


def plugin(version: str) -> type[Plugin]:
    """What mypy calls with its version."""
    return MaskingPlugin
