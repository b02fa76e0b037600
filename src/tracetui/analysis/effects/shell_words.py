"""Words of a shell command line: simple commands with redirections and here documents, in the order of execution.

One pass over hostile text, without a grammar and without back-tracking, so its time is linear. Commands in ``$( )``,
backticks, process substitutions and subshells are commands too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from tracetui.analysis.effects.vocabulary import names

MAX_BYTES: Final = 64 << 10
MAX_COMMANDS: Final = 2_000
MAX_DEPTH: Final = 50
"""Nested substitutions and subshells."""


class NotParsed(Exception):
    """The text is longer or deeper than the limits."""


class Word(NamedTuple):
    """A word without its quotes. Expansions stay as written."""

    text: str
    start: int
    stop: int
    literal: bool = True
    """Nothing in it is expanded: no variable, substitution or glob."""
    quoted: bool = False
    nested: tuple[int, int] = (0, 0)
    """The slice of the commands in its substitutions."""


class Redirection(NamedTuple):
    """``2> file``."""

    operator: str
    target: Word


class Heredoc(NamedTuple):
    """The text given to a command: a here document, or a here string."""

    body: str
    literal: bool


class Command(NamedTuple):
    """A simple command."""

    words: list[Word]
    assignments: list[Word]
    redirections: list[Redirection]
    heredocs: list[Heredoc]
    scope: tuple[int, ...]
    """The subshells and substitutions that it is in."""
    is_piped: bool
    """Its input is the output of the command before it."""
    start: int
    stop: int


_KEYWORDS: Final = names("if then elif else fi while until do done { } ! time coproc esac")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\n]{0,200}\])?\+?=")
_REDIRECTION: Final = re.compile(r"(?:\d{1,3}|&|\{\w{1,30}\})?(<<<|<<-?|>>|>\||>&|<>|<&|>|<)")
_BLANK: Final = " \t\r"
_BREAKS: Final = frozenset(" \t\r\n;&|()<>")
_PLAIN: Final = re.compile(r"[^\s;&|()<>\\'\"$`*?\[]+")
_PLAIN_QUOTED: Final = re.compile(r'[^"\\$`]+')
_SUBJECT: Final = re.compile(r"\bin\b")
_NAME: Final = re.compile(r"[ \t]*[\w.:-]+[ \t]*(?:\([ \t]*\))?")
_ANSI: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b", "a": "\a"}


def parse_commands(text: str) -> list[Command]:
    """Return the simple commands of a command line. Raises `NotParsed` beyond the limits, and nothing else."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise NotParsed
    parser = _Parser(text)
    parser.parse_list("", ())
    return parser.commands


class _Open:
    """The simple command that is being read."""

    def __init__(self, start: int, *, is_piped: bool) -> None:
        self.words: list[Word] = []
        self.assignments: list[Word] = []
        self.redirections: list[Redirection] = []
        self.heredocs: list[Heredoc] = []
        self.start, self.is_piped = start, is_piped

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.assignments or self.redirections or self.heredocs)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.end = text, 0, len(text)
        self.commands: list[Command] = []
        self._scopes = self._depth = self._groups = 0
        self._has_arithmetic_end = True
        """The rest of the text may have a ``))``."""

    # ---- lists of commands

    def parse_list(self, closing: str, scope: tuple[int, ...]) -> None:
        """Read commands up to and with `closing`: ``)``, a backtick, or nothing for the end of the text."""
        self._depth += 1
        self._groups += 1
        if self._depth > MAX_DEPTH or self._groups > MAX_COMMANDS:
            raise NotParsed
        pending: list[tuple[str, bool, bool, list[Heredoc]]] = []
        command = _Open(self.at, is_piped=False)
        in_case = False
        while self.at < self.end:
            character = self.text[self.at]
            if character in _BLANK:
                self.at += 1
                continue
            if closing and character == closing and not (in_case and closing == ")"):
                break
            if command.is_empty:
                command.start = self.at
            if character == "\\" and self.text.startswith("\n", self.at + 1):
                self.at += 2
            elif character == "#" and self._is_word_start():
                self._skip_line()
            elif character in "\n;&|" and not self.text.startswith("&>", self.at):
                is_pipe = character == "|" and not self.text.startswith("||", self.at)
                self._close(command, scope)
                command = _Open(self.at, is_piped=is_pipe)
                self._skip_separator(character)
                if character == "\n" and pending:
                    self._read_heredocs(pending, scope)
                    pending = []
            elif character == "(" and self._skip_arithmetic():
                pass
            elif character == "(":
                self.at += 1
                if command.words and self._at_blank_then(")"):  # f() { …; }
                    command = _Open(self.at, is_piped=False)
                    continue
                self._close(command, scope)
                self.parse_list(")", self._inner(scope))
                command = _Open(self.at, is_piped=False)
            elif character == ")":  # the pattern of a case, or one too many
                self.at += 1
                command = _Open(self.at, is_piped=False)
            elif redirection := _REDIRECTION.match(self.text, self.at, self.end):
                self._redirect(redirection, command, pending, scope)
            else:
                word = self._word(scope)
                if word is None:
                    self.at += 1
                elif self._is_keyword(word, command):
                    if word.text == "case":
                        in_case = True
                        self._skip_subject()
                    elif word.text in ("for", "select"):
                        self._loop(scope)
                    elif word.text == "[[":
                        self._skip_test(scope)
                    elif word.text == "function":
                        name = _NAME.match(self.text, self.at, self.end)
                        self.at = name.end() if name else self.at
                    in_case = in_case and word.text != "esac"
                    command = _Open(self.at, is_piped=command.is_piped)
                elif not command.words and not word.quoted and _ASSIGNMENT.match(word.text):
                    command.assignments.append(word)
                    if word.text.endswith("=") and self.text.startswith("(", self.at):  # an array
                        self.at += 1
                        self._array(scope)
                else:
                    command.words.append(word)
        self._close(command, scope)
        self.at += 1 if closing and self.at < self.end else 0
        self._depth -= 1

    def _inner(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        self._scopes += 1
        return (*scope, self._scopes)

    def _close(self, command: _Open, scope: tuple[int, ...]) -> None:
        if command.is_empty:
            return
        if len(self.commands) >= MAX_COMMANDS:
            raise NotParsed
        stop = max(
            word.stop for word in (*command.words, *command.assignments, *(r.target for r in command.redirections))
        )
        self.commands.append(
            Command(
                command.words,
                command.assignments,
                command.redirections,
                command.heredocs,
                scope,
                command.is_piped,
                command.start,
                stop,
            )
        )

    def _is_word_start(self) -> bool:
        return self.at == 0 or self.text[self.at - 1] in " \t\r\n;&|()`"

    def _skip_line(self) -> None:
        end = self.text.find("\n", self.at, self.end)
        self.at = self.end if end < 0 else end

    def _skip_separator(self, character: str) -> None:
        self.at += 1
        if (
            character != "\n"
            and self.at < self.end
            and self.text[self.at] in (character + "&" if character == "|" else character)
        ):
            self.at += 1

    def _at_blank_then(self, character: str) -> bool:
        """Skip blanks and `character`, if it follows them."""
        at = self.at
        while at < self.end and self.text[at] in _BLANK:
            at += 1
        if not self.text.startswith(character, at):
            return False
        self.at = at + 1
        return True

    def _skip_arithmetic(self) -> bool:
        """Skip ``(( … ))``."""
        if not self.text.startswith("((", self.at) or not self._has_arithmetic_end:
            return False
        end = self.text.find("))", self.at + 2, self.end)
        if end < 0:
            self._has_arithmetic_end = False
            return False
        self.at = end + 2
        return True

    def _is_keyword(self, word: Word, command: _Open) -> bool:
        if word.quoted or command.words or command.assignments:
            return False
        return word.text in _KEYWORDS or word.text in ("for", "select", "case", "function", "[[")

    def _skip_subject(self) -> None:
        """Skip the subject of a ``case``."""
        end = _SUBJECT.search(self.text, self.at, min(self.end, self.at + 200))
        self.at = end.end() if end else self.at

    def _loop(self, scope: tuple[int, ...]) -> None:
        """Read ``NAME in WORD …`` of a loop; substitutions in the list are commands."""
        words: list[Word] = []
        start = self.at
        while self.at < self.end and self.text[self.at] not in "\n;)":
            if self.text[self.at] in _BLANK:
                self.at += 1
                continue
            if self.text.startswith("((", self.at) and self._skip_arithmetic():
                continue
            word = self._word(scope)
            if word is None:
                self.at += 1
            else:
                words.append(word)
        if words:
            name = words[0]._replace(text=f"{words[0].text}=$", literal=False)  # unknown from here on
            self.commands.append(Command([], [name], [], [], scope, False, start, self.at))

    def _array(self, scope: tuple[int, ...]) -> None:
        while self.at < self.end and self.text[self.at] != ")":
            if self._word(scope) is None:
                self.at += 1
        self.at += 1

    def _skip_test(self, scope: tuple[int, ...]) -> None:
        """Skip the words up to ``]]``."""
        while self.at < self.end:
            word = self._word(scope)
            if word is None:
                self.at += 1
            elif word.text == "]]":
                return

    # ---- redirections

    def _redirect(
        self,
        match: re.Match[str],
        command: _Open,
        pending: list[tuple[str, bool, bool, list[Heredoc]]],
        scope: tuple[int, ...],
    ) -> None:
        operator = match[1]
        if operator in ("<", ">") and self.text.startswith("(", match.end()) and match[0] == operator:
            start, first = self.at, len(self.commands)
            self.at = match.end() + 1
            self.parse_list(")", self._inner(scope))
            text = self.text[start : self.at]
            command.words.append(Word(text, start, self.at, False, False, (first, len(self.commands))))
            return
        self.at = match.end()
        while self.at < self.end and self.text[self.at] in _BLANK:
            self.at += 1
        target = self._word(scope)
        if target is None:
            return
        if operator in ("<<", "<<-"):
            pending.append((target.text, operator == "<<-", not target.quoted, command.heredocs))
        elif operator == "<<<":
            command.heredocs.append(Heredoc(target.text, target.literal))
        elif operator == "<&" or (operator == ">&" and (target.text.isdigit() or target.text == "-")):
            return
        else:
            command.redirections.append(Redirection(operator, target))

    def _read_heredocs(self, pending: Sequence[tuple[str, bool, bool, list[Heredoc]]], scope: tuple[int, ...]) -> None:
        for tag, strips_tabs, expands, heredocs in pending:
            lines: list[str] = []
            start = self.at
            stop = self.at
            while self.at < self.end:
                newline = self.text.find("\n", self.at, self.end)
                line_end = self.end if newline < 0 else newline
                line = self.text[self.at : line_end]
                stop, self.at = self.at, min(line_end + 1, self.end)
                if (line.lstrip("\t") if strips_tabs else line).rstrip(" \t\r") == tag:
                    break
                lines.append(line)
                stop = self.at
            heredocs.append(Heredoc("\n".join(lines), not expands))
            if expands:
                after = self.at
                self._substitutions(start, stop, scope)
                self.at = after

    def _substitutions(self, start: int, stop: int, scope: tuple[int, ...]) -> None:
        """Read the commands in the substitutions of a text."""
        end, self.end, self.at = self.end, stop, start
        while self.at < self.end:
            character = self.text[self.at]
            if character == "\\":
                self.at += 2
            elif not (character in "$`" and self._expansion(scope)):
                self.at += 1
        self.end = end

    # ---- words

    def _word(self, scope: tuple[int, ...]) -> Word | None:
        """Read a word; None if there is none here."""
        start, first = self.at, len(self.commands)
        pieces: list[str] = []
        is_literal, is_quoted = True, False
        while self.at < self.end:
            character = self.text[self.at]
            if character in _BREAKS or (character == "`" and self._closes_backtick):
                break
            if plain := _PLAIN.match(self.text, self.at, self.end):
                pieces.append(plain[0])
                self.at = plain.end()
            elif character == "\\":
                if not self.text.startswith("\n", self.at + 1):
                    pieces.append(self.text[self.at + 1 : self.at + 2])
                    is_quoted = True
                self.at += 2
            elif character == "'":
                end = self.text.find("'", self.at + 1, self.end)
                end = self.end if end < 0 else end
                pieces.append(self.text[self.at + 1 : end])
                self.at, is_quoted = end + 1, True
            elif character == '"' or self.text.startswith('$"', self.at):
                self.at += 1 if character == '"' else 2
                is_literal &= self._double_quoted(pieces, scope)
                is_quoted = True
            elif self.text.startswith("$'", self.at):
                self._ansi_quoted(pieces)
                is_quoted = True
            elif character in "$`":
                before = self.at
                if not self._expansion(scope):
                    self.at += 1
                pieces.append(self.text[before : self.at])
                is_literal = False
            else:
                is_literal &= character not in "*?["
                pieces.append(character)
                self.at += 1
        self.at = min(self.at, self.end)
        if self.at == start:
            return None
        text = "".join(pieces)
        is_literal |= text == "["  # the command
        return Word(text, start, self.at, is_literal, is_quoted, (first, len(self.commands)))

    _closes_backtick = False

    def _double_quoted(self, pieces: list[str], scope: tuple[int, ...]) -> bool:
        """Read up to the closing quote; return whether nothing in it is expanded."""
        is_literal = True
        while self.at < self.end:
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                break
            if character == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                pieces.append(following if following in '\\"$`' else "" if following == "\n" else f"\\{following}")
                self.at += 2
            elif character in "$`" and not (character == "`" and self._closes_backtick):
                before = self.at
                if not self._expansion(scope):
                    self.at += 1
                pieces.append(self.text[before : self.at])
                is_literal = False
            elif plain := _PLAIN_QUOTED.match(self.text, self.at, self.end):
                pieces.append(plain[0])
                self.at = plain.end()
            else:  # a backtick that ends the substitution
                break
        return is_literal

    def _ansi_quoted(self, pieces: list[str]) -> None:
        self.at += 2
        while self.at < self.end and self.text[self.at] != "'":
            if self.text[self.at] == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                pieces.append(_ANSI.get(following, f"\\{following}"))
                self.at += 2
            else:
                pieces.append(self.text[self.at])
                self.at += 1
        self.at += 1

    def _expansion(self, scope: tuple[int, ...]) -> bool:
        """Skip ``$NAME``, ``${…}``, ``$(…)`` or a backtick expression, reading commands; False if there is none."""
        text, at = self.text, self.at
        if text[at] == "`":
            self.at += 1
            outer, self._closes_backtick = self._closes_backtick, True
            self.parse_list("`", self._inner(scope))
            self._closes_backtick = outer
            return True
        if text.startswith("((", at + 1):
            self.at += 1
            if self._skip_arithmetic():
                return True
            self.at = at
        if text.startswith("(", at + 1):
            self.at += 2
            outer, self._closes_backtick = self._closes_backtick, False
            self.parse_list(")", self._inner(scope))
            self._closes_backtick = outer
            return True
        if not text.startswith("{", at + 1):
            return False
        self.at += 2
        while self.at < self.end:
            character = text[self.at]
            if character == "}":
                self.at += 1
                break
            if character == "\\":
                self.at += 2
            elif character == "$" and text.startswith(("$(", "${"), self.at):
                self._depth += 1
                if self._depth > MAX_DEPTH:
                    raise NotParsed
                self._expansion(scope)
                self._depth -= 1
            else:
                self.at += 1
        return True
