"""The arguments of a program: options with their values, and operands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tracetui.analysis.effects.shell_words import Word


class Arguments(NamedTuple):
    """Parsed arguments. Short options are apart: ``-uf`` is ``-u`` and ``-f``."""

    texts: list[str]
    options: dict[str, list[Word]]
    """Options and their values; an empty list without one."""
    operands: list[Word]
    after_dashes: list[Word]
    """The operands after ``--``."""

    @classmethod
    def parse(cls, words: Sequence[Word], short: str = "", long: Collection[str] = ()) -> Arguments:
        """Parse the words. `short` are the letters, `long` the names (``--depth``) of options with a value."""
        options: dict[str, list[Word]] = {}
        operands: list[Word] = []
        after: list[Word] = []
        at = 0
        while at < len(words):
            word = words[at]
            text = word.text
            at += 1
            if text == "--":
                after = [*words[at:]]
                break
            if text.startswith("--"):
                name, equals, value = text.partition("=")
                if equals:
                    options.setdefault(name, []).append(word._replace(text=value))
                elif name in long and at < len(words):
                    options.setdefault(name, []).append(words[at])
                    at += 1
                else:
                    options.setdefault(name, [])
            elif text.startswith("-") and len(text) > 1 and not word.text[1:].isdigit():
                for i, letter in enumerate(text[1:], 2):
                    values = options.setdefault(f"-{letter}", [])
                    if letter not in short:
                        continue
                    if text[i:]:
                        values.append(word._replace(text=text[i:]))
                        break
                    if at < len(words):
                        values.append(words[at])
                        at += 1
            elif not (text.startswith("-") and len(text) > 1):
                operands.append(word)
        return cls([word.text for word in words], options, [*operands, *after], after)

    @property
    def operand_texts(self) -> list[str]:
        """The operands as text."""
        return [word.text for word in self.operands]

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(name in self.options for name in names)

    def values(self, *names: str) -> list[Word]:
        """The values of these options."""
        return [value for name in names for value in self.options.get(name, ())]

    def value(self, *names: str) -> Word | None:
        """The first value of these options."""
        return next(iter(self.values(*names)), None)
