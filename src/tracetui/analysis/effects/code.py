"""Effects of programs given to an interpreter (``python -c``, a here document), by the calls in their text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tracetui.analysis.effects import shell_tables as tables
from tracetui.analysis.effects.paths import Place, file_effect
from tracetui.analysis.effects.vocabulary import CHANGES, Certainty, Effect, Flag, Kind

_PATH_METHODS: Final = {"unlink": Kind.DELETE, "rmdir": Kind.DELETE, "read_text": Kind.READ, "read_bytes": Kind.READ}
_MAX_CODE: Final = 64 << 10
_MAX_CALLS: Final = 500


def code_effects(code: str, place: Place) -> Iterator[Effect | str]:
    """Yield the effects of calls in a program, and command lines that it gives to a shell."""
    for number, item in enumerate(_calls(code[:_MAX_CODE], place)):
        if number >= _MAX_CALLS:
            return
        if item is not None:
            yield item


def _calls(code: str, place: Place) -> Iterator[Effect | str | None]:
    for kind, pattern in tables.CODE:
        for match in pattern.finditer(code):
            yield _effect(Kind(kind), match[1], match[2], code, place)
    for match in tables.CODE_OPEN.finditer(code):
        kind = Kind.READ if not set(match[3] or "r") & set("wax+") else Kind.WRITE
        yield _effect(kind, match[1], match[2], code, place)
    for match in tables.CODE_PATH.finditer(code):
        yield _effect(_PATH_METHODS.get(match[2], Kind.WRITE), match[1], None, code, place)
    for match in re.finditer(r"(\w{1,60})\.(?:write_text|write_bytes)\(", code):
        yield _effect(Kind.WRITE, None, match[1], code, place)
    for match in re.finditer(r"(\w{1,60})\.unlink\(", code):
        yield _effect(Kind.DELETE, None, match[1], code, place) if match[1] != "os" else None
    for match in tables.CODE_COPY.finditer(code):
        yield _effect(Kind.WRITE, match[1], match[2], code, place)
    for match in tables.CODE_SHELL.finditer(code):
        yield match[2] if match[2] is not None else " ".join(re.findall(r"""['"]([^'"\n]*)['"]""", match[3]))
    for match in tables.CODE_ENVIRONMENT.finditer(code):
        if tables.SECRET_NAME.search(match[1]):
            yield Effect(Kind.READ, match[1], frozenset({Flag.SECRET}), certainty=Certainty.CODE)


def _effect(kind: Kind, literal: str | None, name: str | None, code: str, place: Place) -> Effect | None:
    if literal is None and name:
        literal = _value_of(name.strip(), code)
    if kind in CHANGES or kind is Kind.READ:
        if literal is None:
            if kind is Kind.READ:
                return None
            is_home = name is not None and ("expanduser" in name or "Path.home" in name)
            return Effect(kind, name or "?", frozenset({Flag.OUTSIDE} if is_home else ()), certainty=Certainty.CODE)
        return file_effect(kind, literal, place, certainty=Certainty.CODE)
    target = literal or name or "?"
    is_local = kind is Kind.NET and tables.LOCAL.match(target)
    return Effect(kind, target, frozenset({Flag.LOCAL} if is_local else ()), certainty=Certainty.CODE)


def _value_of(name: str, code: str) -> str | None:
    """The literal that was last assigned to a name."""
    if not name.isidentifier():
        return None
    pattern = rf"""(?m)^[ \t]*(?:const |let |var )?{name}\s*=\s*(?:(?:pathlib\.)?Path\()?[rf]?['"]([^'"\n]+)['"]"""
    values = re.findall(pattern, code)
    return values[-1] if values else None
