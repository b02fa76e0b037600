"""The terms for what a tool call did: kinds, certainty and outcome of effects."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import msgspec

from tracetui.analysis.effects.text_diff import compare


def names(text: str) -> frozenset[str]:
    """A set of words, for tables."""
    return frozenset(text.split())


class Kind(StrEnum):
    """What an effect does to the world."""

    READ = "read"
    WRITE = "write"
    """A file or folder is created or written as a whole."""
    EDIT = "edit"
    """A part of a file, or its attributes, are changed."""
    DELETE = "delete"
    MOVE = "move"
    """A file leaves its path."""
    RUN = "run"
    NET = "net"
    VCS = "vcs"
    """Version control."""
    INSTALL = "install"
    KILL = "kill"
    AGENT = "agent"
    CALL = "call"
    """Any other tool."""


CHANGES = frozenset({Kind.WRITE, Kind.EDIT, Kind.DELETE, Kind.MOVE})
"""Kinds that change a file."""


class Flag(StrEnum):
    """A property of an effect that rules look at."""

    OUTSIDE = "outside"
    """The file isn't in the run's root."""
    TEMPORARY = "temporary"
    """… but in a temporary folder or the agent's own."""
    SECRET = "secret"  # noqa: S105
    FORCE = "force"
    DISCARD = "discard"
    PUSH = "push"
    SEND = "send"
    PIPED = "piped"
    """A shell runs what another program prints."""
    SUDO = "sudo"
    LOCAL = "local"
    """The other side of a connection is this machine."""
    NOT_PARSED = "not-parsed"
    NO_CONTENT = "no-content"
    """A folder, or attributes of a file: no text is written."""


class Certainty(StrEnum):
    """How an effect is known, from most to least certain."""

    RECORDED = "recorded"
    """An argument of a known tool."""
    ARGUMENTS = "arguments"
    """An argument with a known name, of an unknown tool."""
    PARSED = "parsed"
    """Literal words of a shell command."""
    PATTERN = "pattern"
    """A variable, glob, loop or list of arguments decides the target."""
    CODE = "code"
    """Found in a program that an interpreter runs."""
    REMOTE = "remote"
    """A command for another machine."""


class Outcome(StrEnum):
    """Whether the effect happened, as recorded."""

    DONE = "done"
    DENIED = "denied"
    """The user or a policy refused the call."""
    FAILED = "failed"
    MAYBE = "maybe"
    """A call of several commands, or an interrupted one, that didn't end well: this part may have happened."""
    UNKNOWN = "unknown"
    """The trace doesn't record how the call ended."""


class Edit(msgspec.Struct, frozen=True, dict=True):
    """The change of one file."""

    path: str
    kind: Kind = Kind.EDIT
    """`WRITE`: the file is written as a whole, and all lines are added."""
    moved_to: str | None = None
    old: str | None = None
    """The text that is replaced; None if the call doesn't have it."""
    new: str | None = None
    """The new text: of the file if it is written as a whole, else of the part."""
    replaces_all: bool = False
    """All places of the old text are replaced."""
    patch: tuple[str, ...] | None = None
    """The change as it is recorded, if not as texts: lines of a unified diff without headers."""

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of a unified diff without headers."""
        return compare(self.old or "", self.new or "") if self.patch is None else self.patch

    @property
    def added(self) -> int:
        """Number of added lines."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """Number of removed lines."""
        return sum(line.startswith("-") for line in self.lines)


class Effect(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that a tool call did, or tried to do, to the world."""

    kind: Kind
    target: str
    """Normalized path (absolute if the trace has a working directory), host or URL, git words, package, process.

    In a `Call` without the secrets of its arguments, which it is a part of.
    """
    flags: frozenset[Flag] = frozenset()
    at: str | None = None
    """Id of the span of the call."""
    argument: str | None = None
    """The argument with the evidence."""
    range: tuple[int, int] | None = None
    """The characters of that argument that are the evidence."""
    certainty: Certainty = Certainty.RECORDED
    outcome: Outcome = Outcome.UNKNOWN
    moved_from: str | None = None
    """The normalized path that the file had before a move."""
    edit: Edit | None = None
    """The change of the text; None if the call doesn't have it."""

    @property
    def added(self) -> int | None:
        """Lines; None if not recorded."""
        return None if self.edit is None or self.edit.kind is Kind.DELETE else self.edit.added

    @property
    def removed(self) -> int | None:
        """Lines; None if not recorded."""
        edit = self.edit
        if edit is None or edit.kind is Kind.DELETE:
            return None
        is_of_unknown = edit.kind is Kind.EDIT and edit.old is None and edit.patch is None
        return None if is_of_unknown else edit.removed
