"""Rules that no linter checks for us: foreign text as markup, dangerous names, and where screens are closed.

Textual reads markup in most strings that it is given: ``[@click=…]`` in a tool's name would become a button. Text that
is not written in our source therefore goes in as `Content` or `Text`, which are never parsed, or with ``markup=False``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

EVERYWHERE: Final = None
MARKUP_CALLS: Final[dict[str, int | None]] = {
    **dict.fromkeys(("Static", "Label", "Button", "Checkbox", "RadioButton", "Collapsible", "Placeholder"), EVERYWHERE),
    **dict.fromkeys(("Tab", "TabPane", "Option", "Selection", "Tooltip", "notify", "SystemCommand"), EVERYWHERE),
    **dict.fromkeys(("add_option", "add_column", "add_row", "add_leaf", "set_label"), EVERYWHERE),
    "Hit": 1,
    "DiscoveryHit": 0,
}
"""Calls whose strings Textual reads as markup, and which of the positional arguments that is."""
MARKUP_KEYWORDS: Final = frozenset(
    {"label", "prompt", "title", "content", "message", "tooltip", "help", "display", "match_display"}
)
MARKUP_ATTRIBUTES: Final = frozenset({"border_title", "border_subtitle", "tooltip"})
"""Attributes whose strings Textual reads as markup."""
SAFE_CALLS: Final = frozenset({"Content", "Text", "escape"})
"""What makes text of a string without reading markup in it, or takes the meaning from its brackets."""
FORBIDDEN_CALLS: Final = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "splitlines": "splits at characters that are content",
    "Markdown": "opens links on a click",
    "from_markup": "reads markup",
    "open_url": "opens what a trace names",
    "sleep": "waits for a time, not for a state",
}
LEAVING_CALLS: Final = frozenset({"pop_screen", "dismiss", "switch_screen", "pop_until_active", "_pop_to_screen"})
"""Calls that take away whichever screen is the active one."""
FORBIDDEN_MODULES: Final = frozenset({"pickle", "marshal", "shelve", "webbrowser", "cloudpickle"})


def markup(source: str) -> Iterator[str]:
    """Strings that are not literals and reach an API that reads markup, as ``line: what``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func) in MARKUP_CALLS and not _is_off(node):
            yield from (_said(value, _name(node.func)) for value in _texts(node) if _may_be_foreign(value))
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.attr for target in targets if isinstance(target, ast.Attribute)}
            if names & MARKUP_ATTRIBUTES and _may_be_foreign(node.value):
                yield _said(node.value, names.pop())


def forbidden(source: str, *, may_open: bool = False) -> Iterator[str]:
    """Names that have no place in the program, as ``line: why``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = _name(node.func)
            if name in FORBIDDEN_CALLS:
                yield f"{node.lineno}: {name} {FORBIDDEN_CALLS[name]}"
            if isinstance(node.func, ast.Name) and name == "open" and not may_open:
                yield f"{node.lineno}: open outside of sources"
            if any(word.arg == "shell" and not _is_constant(word.value, False) for word in node.keywords):
                yield f"{node.lineno}: shell runs text as a command"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (
                f"{node.lineno}: import of {module}" for module in modules if module.split(".")[0] in FORBIDDEN_MODULES
            )


def leaving(source: str) -> Iterator[str]:
    """Calls that close a screen without looking whether it is still the active one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func) in LEAVING_CALLS:
            yield f"{node.lineno}: {_name(node.func)}; `close_screen` of the app closes screens"


def _texts(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that are read as markup."""
    place = MARKUP_CALLS[_name(call.func)]
    positional = call.args if place is EVERYWHERE else call.args[place : place + 1]
    return [*positional, *(word.value for word in call.keywords if word.arg in MARKUP_KEYWORDS)]


def _may_be_foreign(value: ast.expr) -> bool:
    """False for what is certainly written in our source, is no text, or is text that is never parsed."""
    if isinstance(value, ast.Constant | ast.Lambda):
        return False
    if isinstance(value, ast.Call):
        return _name(value.func) not in SAFE_CALLS
    if isinstance(value, ast.IfExp):
        return _may_be_foreign(value.body) or _may_be_foreign(value.orelse)
    return isinstance(value, ast.JoinedStr | ast.BinOp | ast.Name | ast.Attribute | ast.Subscript | ast.Starred)


def _is_off(call: ast.Call) -> bool:
    return any(word.arg == "markup" and _is_constant(word.value, False) for word in call.keywords)


def _is_constant(value: ast.expr, expected: object) -> bool:
    return isinstance(value, ast.Constant) and value.value is expected


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _said(value: ast.expr, where: str) -> str:
    return f"{value.lineno}: {ast.unparse(value)[:60]} reaches {where} as markup"
