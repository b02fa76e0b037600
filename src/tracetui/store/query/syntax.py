"""The grammar of queries: a text becomes a tree of words and terms, or an error that points at a column.

::

    query  = both { ("or" | "|") both }        "or" in any case, between two parts
    both   = part { ["and"] part }
    part   = ["!" | "-"] ( "(" query ")" | term | word )
    term   = key compare value { "," value }   compare: : = != < <= > >=
    word   = anything else up to a blank

A value or word in quotes is literal: blanks, commas and stars mean themselves. The grammar
doesn't know the keys. Text that only looks like a term is a word: ``https://…``, ``std::string``, ``C:\\…``.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tracetui.errors import UsageError
from tracetui.text import cells, exact

DEEPEST: Final = 32
"""Nested parentheses."""


class QueryError(UsageError):
    """A wrong query, in one sentence with the next step.

    `column` counts characters from 0. `unfinished`: typing on at the end may make it valid. `begin` is where the
    invalid part begins; the text before it is valid.
    """

    def __init__(self, message: str, column: int, *, unfinished: bool = False, begin: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.unfinished = unfinished
        self.begin = column if begin is None else begin


class Value(msgspec.Struct, frozen=True):
    """A value of a term; literal if quoted."""

    text: str
    quoted: bool = False
    at: int = 0


class Word(msgspec.Struct, frozen=True):
    """Text to find anywhere."""

    text: str
    at: int = 0


class Term(msgspec.Struct, frozen=True):
    """A key compared with values, one of which must match. `compare` is one of ``: = < <= > >=``."""

    key: str
    compare: str
    values: tuple[Value, ...]
    at: int = 0
    end: int = 0


class Not(msgspec.Struct, frozen=True):
    """Everything that doesn't match the part."""

    part: Node


class And(msgspec.Struct, frozen=True):
    """Everything that matches all parts; without parts, everything."""

    parts: tuple[Node, ...]


class Or(msgspec.Struct, frozen=True):
    """Everything that matches one of the parts."""

    parts: tuple[Node, ...]


Node = Word | Term | Not | And | Or
EVERYTHING: Final = And(())

KEY: Final = re.compile(r"([A-Za-z][A-Za-z_]*)(:?(?:!=|<=|>=|==|[<>=])|:)(?!//|:)")
"""Matches the beginning of a term: key and comparison; ``:>`` is ``>``, ``==`` is ``=``."""
ALMOST_TERM: Final = re.compile(
    r"""(?:[-+!\[{;&|]+(?=[A-Za-z_]+[:=<>])|(?=[A-Za-z_]+::(?!:)\w))([A-Za-z][A-Za-z_]*)(?:[:=<>]|!=)"""
)
"""Matches a word that would be a term without the sign before its key, or its second colon."""
COMPARED: Final = re.compile(r"(?:!=|<=|>=|==|[:=<>])(?:\Z|[\w.$*\"'])")
"""Matches a word that is a comparison without a key."""
OR: Final = frozenset({"or", "|", "||"})
_SIGN: Final = re.compile(r"""!(?=\S)|-(?=[\w"'(])""")
_TO_BLANK: Final = re.compile(r"[^\s)]*")
_ESCAPED: Final = re.compile(r"\\([\"'\\])")
_SAFE_WORD: Final = re.compile(r"[\w.@#/+*?$%]+(?:[\w.@#/+*?$%,-]*)")
_SAFE_VALUE: Final = re.compile(r"[\w.@#/+$%:-]+")


def parse(text: str) -> Node:
    """Parse a query. Raises `QueryError`, and nothing else for any text."""
    return _Parser(text).whole()


def unparse(node: Node) -> str:
    """Return a query that parses to `node`."""
    if isinstance(node, Word):
        return node.text if plain_word(node.text) else in_quotes(node.text)
    if isinstance(node, Term):
        return node.key + node.compare + ",".join(_unparse_value(value) for value in node.values)
    if isinstance(node, Not):
        inner = unparse(node.part)
        return f"!{inner}" if isinstance(node.part, Term | Word) else f"!({inner})"
    between = " or " if isinstance(node, Or) else " "
    return between.join(f"({unparse(part)})" if isinstance(part, And | Or) else unparse(part) for part in node.parts)


def pointed(text: str, error: QueryError) -> str:
    """Return the message of `error`, with `text` and a caret below it."""
    query = exact(text)
    return f"{error.message}\n  {query}\n  {' ' * cells(exact(text[: error.column]))}^"


def plain_word(text: str) -> bool:
    """Return whether a word is literal without quotes."""
    return _SAFE_WORD.fullmatch(text) is not None and text.lower() not in (*OR, "and")


def quoted(value: str) -> str:
    """Return a value as written after a key, in quotes if needed."""
    return value if _SAFE_VALUE.fullmatch(value) and value.lower() != "none" else in_quotes(value)


def in_quotes(text: str) -> str:
    """Return text in quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unparse_value(value: Value) -> str:
    return in_quotes(value.text) if value.quoted else value.text


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._deep = 0

    def whole(self) -> Node:
        node = self._either()
        if self._at < len(self._text):
            raise QueryError("no `(` for this `)`; put it in quotes to search for it", self._at)
        return node

    def _either(self) -> Node:
        """Parse parts with ``or`` between them, up to the end or a ``)``."""
        parts = [self._both()]
        while (at := self._skip()) < len(self._text) and self._text[at] != ")":
            word = self._next_word()
            self._at = at + len(word)
            parts.append(self._both())
            if parts[-1] == EVERYTHING:
                unfinished = self._at == len(self._text)
                message = f"nothing follows `{word}`; put it in quotes to search for it"
                raise QueryError(message, at, unfinished=unfinished)
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Node:
        """Parse parts that must all match, up to an ``or``, the end or a ``)``."""
        parts: list[Node] = []
        while (at := self._skip()) < len(self._text) and self._text[at] != ")":
            word = self._next_word().lower()
            if word in OR and parts:
                break
            if (word == "and" and parts) or word == "!":
                self._at += len(word)
                continue
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else EVERYTHING

    def _part(self) -> Node:
        begin = self._at
        negated = _SIGN.match(self._text, begin) is not None
        self._at += negated
        node = self._group(begin) if self._text[self._at] == "(" else self._term(begin) or self._word(begin)
        return Not(node) if negated else node

    def _group(self, begin: int) -> Node:
        at = self._at
        self._deep += 1
        if self._deep > DEEPEST:
            raise QueryError(f"parentheses are more than {DEEPEST} deep; remove some", at, begin=begin)
        self._at += 1
        try:
            node = self._either()
        except QueryError as error:  # only the text before the parenthesis is valid
            raise QueryError(error.message, error.column, unfinished=error.unfinished, begin=begin) from None
        if self._at >= len(self._text):
            raise QueryError("`(` is not closed; add `)`", at, unfinished=True, begin=begin)
        if node == EVERYTHING:
            raise QueryError("nothing between `(` and `)`; write a word or a term", at, begin=begin)
        self._at += 1
        self._deep -= 1
        return node

    def _term(self, begin: int) -> Node | None:
        match = KEY.match(self._text, self._at)
        if match is None or (len(match[1]) == 1 and self._text.startswith("\\", match.end())):
            return None
        at, self._at = self._at, match.end()
        values = [self._value(begin, match[0])]
        while self._at < len(self._text) and self._text[self._at] == ",":
            self._at += 1
            values.append(self._value(begin, ","))
        compare = match[2].lstrip(":") or ":"
        term = Term(match[1].lower(), compare.replace("==", "=").removeprefix("!"), tuple(values), at, self._at)
        return Not(term) if compare == "!=" else term

    def _value(self, begin: int, before: str) -> Value:
        at = self._at
        if at < len(self._text) and self._text[at] in "\"'":
            return Value(self._quoted(begin), True, at)
        text = self._bare(",")
        if text.count("(") > text.count(")"):
            raise QueryError("`(` is not closed; put the value in quotes", at + text.index("("), begin=begin)
        if text.count('"') % 2:
            raise QueryError("a quote may only begin a value; quote all of it", at + text.index('"'), begin=begin)
        if not text:
            unfinished = self._skip() == len(self._text)
            raise QueryError(f"a value must follow `{before}` without a blank", at, unfinished=unfinished, begin=begin)
        return Value(text, False, at)

    def _word(self, begin: int) -> Word:
        at = self._at
        return Word(self._quoted(begin) if self._text[at] in "\"'" else self._bare(), at)

    def _quoted(self, begin: int) -> str:
        at, mark = self._at, self._text[self._at]
        end = at + 1
        while end < len(self._text) and self._text[end] != mark:
            end += 2 if self._text[end] == "\\" and self._text[end + 1 : end + 2] in (mark, "\\") else 1
        if end >= len(self._text):
            raise QueryError(f"{mark} is not closed; add another {mark}", at, unfinished=True, begin=begin)
        self._at = end + 1
        if self._at < len(self._text) and self._text[self._at] not in ",)" and not self._text[self._at].isspace():
            raise QueryError("a blank is missing after the quoted text", self._at, begin=begin)
        return _ESCAPED.sub(r"\1", self._text[at + 1 : end])

    def _bare(self, stops: str = "") -> str:
        """Read up to a blank, one of `stops`, or an unmatched ``)``."""
        at, opened = self._at, 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if character.isspace() or character in stops or (character == ")" and not opened):
                break
            opened += (character == "(") - (character == ")")
            self._at += 1
        return self._text[at : self._at]

    def _skip(self) -> int:
        """Skip blanks; return the position."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at

    def _next_word(self) -> str:
        """Return the characters up to a blank or ``)`` without reading them."""
        match = _TO_BLANK.match(self._text, self._at)
        return "" if match is None else match[0]
