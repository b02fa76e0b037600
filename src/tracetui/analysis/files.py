"""What agents changed, by file: edits, lines, last writer, and whether the lines still stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from posixpath import basename
from typing import Final, NamedTuple

import msgspec

from tracetui.analysis.effects import CHANGES, Certainty, Edit, Effect, Flag, Kind, Outcome, RunEffects
from tracetui.analysis.values import value_text
from tracetui.model import Problem, RunRef, RunSummary

_MOST_TRIED: Final = 100
"""Files by which a repository is recognized."""
_MOST_MOVES: Final = 8
"""Moves of a file in a row that are followed."""
MAX_SHOWN: Final = 200_000
"""Characters of a file that is remembered from a call that read it."""
_NUMBERED: Final = re.compile(r"[^\S\n]*1(→|\t|\||: )")
"""The first of numbered lines, with the mark after the number."""


class State(StrEnum):
    """What became of the lines that agents wrote."""

    AS_WRITTEN = "as written"
    CHANGED = "changed"
    GONE = "gone"
    NOT_LOOKED_AT = "not looked at"
    """The file isn't in the repository that the user named, or can't be read."""
    NOT_RECORDED = "not recorded"
    """The trace doesn't have the lines: the shell wrote them."""


class Change(msgspec.Struct, frozen=True):
    """One change of a file, done or tried, or (kind `READ`) what a call showed of it."""

    run: RunRef
    span: str
    at: float | None
    """Start of the call: UTC seconds."""
    effect: Effect
    output: str = ""
    """What a call that read the file returned."""
    net: dict[str, int] = {}
    """Lines without white space: how often it really added each, or removed it (below zero), as far as is recorded."""

    @property
    def is_done(self) -> bool:
        """Whether it counts."""
        return self.effect.outcome is Outcome.DONE

    @property
    def is_read(self) -> bool:
        """Whether it only showed the file."""
        return self.effect.kind is Kind.READ


class FileHistory(msgspec.Struct, frozen=True, dict=True):
    """A file that agents changed."""

    path: str
    """Normalized path, absolute if the traces have working directories."""
    relative: str | None
    """The path beneath the root of its run; None for a file outside of it."""
    root: str
    changes: tuple[Change, ...]
    """Done and tried, oldest first."""
    text: FileText
    """The text after the last change, and the lines of the agents in it."""

    @property
    def done(self) -> list[Change]:
        """The changes that count."""
        return [change for change in self.changes if change.is_done]

    @cached_property
    def added(self) -> int | None:
        """Lines; None if no change records them. If only some do, at least so many."""
        return _total(change.effect.added for change in self.done)

    @cached_property
    def removed(self) -> int | None:
        """As `added`."""
        return _total(change.effect.removed for change in self.done)

    @property
    def last(self) -> Change:
        """The last change that counts."""
        return self.done[-1]

    @property
    def runs(self) -> int:
        """Number of runs that changed it."""
        return len({change.run for change in self.done})

    @property
    def is_deleted(self) -> bool:
        """Whether the last change removed it."""
        return self.last.effect.kind in (Kind.DELETE, Kind.MOVE)

    @property
    def is_outside(self) -> bool:
        """Whether it is outside the root of its run."""
        return any(Flag.OUTSIDE in change.effect.flags for change in self.changes)

    @property
    def certainty(self) -> Certainty:
        """How the changes are known: the least certain counts."""
        order = list(Certainty)
        return max((change.effect.certainty for change in self.done), key=order.index)


class FileState(msgspec.Struct, frozen=True):
    """The state of a file, and how many of the agents' lines stand."""

    state: State
    standing: int | None = None
    total: int | None = None


class FileChanges:
    """Collects the changes of many runs."""

    def __init__(self) -> None:
        self._changes: dict[str, list[Change]] = {}
        self._roots: dict[str, str] = {}

    def add(self, summary: RunSummary, effects: RunEffects) -> None:
        """Add the changes of a run."""
        for call in effects.calls:
            for effect in call.effects:
                output = ""
                if (
                    effect.kind is Kind.READ
                    and effect.outcome is Outcome.DONE
                    and effect.certainty is Certainty.RECORDED
                ):
                    output = value_text(call.output)
                    if len(output) > MAX_SHOWN or _NUMBERED.match(output) is None:
                        continue
                elif effect.kind not in CHANGES or Flag.NO_CONTENT in effect.flags:
                    continue
                change = Change(summary.ref, call.span.id, call.span.started_at, effect, output)
                self._changes.setdefault(effect.target, []).append(change)
                if effects.root:
                    self._roots.setdefault(effect.target, effects.root)

    @property
    def tried(self) -> int:
        """Number of changes that were not done, or are not known to be."""
        return sum(not change.is_done for changes in self._changes.values() for change in changes if not change.is_read)

    def histories(self) -> list[FileHistory]:
        """The files with a change that counts, by path."""
        histories = []
        for path, changes in sorted(self._changes.items()):
            if any(change.is_done and not change.is_read for change in changes):
                histories.append(self._history(path))
        return histories

    def _ordered(self, path: str) -> list[Change]:
        """The changes of a file, oldest first."""
        changes = self._changes.get(path, ())
        return sorted(changes, key=lambda change: (change.at is None, change.at or 0.0))

    def _text_before(self, move: Change, depth: int) -> FileText:
        """The text of the file that a call moved, before that."""
        text, source = FileText(), move.effect.moved_from or ""
        for change in self._ordered(source) if depth < _MOST_MOVES else ():
            if change.span == move.span and change.run == move.run and change.effect.kind is Kind.MOVE:
                break
            if change.is_read:
                text.show(change.output)
            elif change.is_done:
                text.apply(change, self._moved_text(change, depth + 1))
        return text

    def _moved_text(self, change: Change, depth: int = 0) -> FileText | None:
        return None if change.effect.moved_from is None else self._text_before(change, depth)

    def _history(self, path: str) -> FileHistory:
        return _history(path, self._roots.get(path, ""), self._ordered(path), self._moved_text)


def _history(
    path: str, root: str, changes: Sequence[Change], moved_text: Callable[[Change], FileText | None]
) -> FileHistory:
    text = FileText()
    counted: list[Change] = []
    for change in changes:
        if change.is_read:
            text.show(change.output)
        else:
            counted.append(text.apply(change, moved_text(change)) if change.is_done else change)
    return FileHistory(path, relative_to(root, path), root, tuple(counted), text)


def _total(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def relative_to(root: str, path: str) -> str | None:
    """The path beneath the root of a run; None for one outside of it."""
    below = root.rstrip("/") + "/"
    if root and path.startswith(below):
        return path.removeprefix(below)
    return None if path.startswith(("/", "~", "..")) else path


class FileText:
    """The text of a file as far as its changes are recorded."""

    def __init__(self) -> None:
        self._content: str | None = None
        self._outputs: list[str] = []
        """What calls that read the file returned since."""
        self.lines: Counter[str] = Counter()
        """Lines of the agents that should stand, without white space."""
        self.fragments: set[str] = set()
        """Those among them that may be parts of lines: the file around them isn't recorded."""

    def show(self, output: str) -> None:
        """Take the text that a call returned, if that is all of the file."""
        self._outputs.append(output)

    @property
    def content(self) -> str | None:
        """The text; None if not all of it is known."""
        while self._outputs:
            if (content := shown_text(self._outputs.pop())) is not None:
                self.content = content
        return self._content

    @content.setter
    def content(self, content: str | None) -> None:
        self._content, self._outputs = content, []

    def apply(self, change: Change, moved: FileText | None = None) -> Change:
        """Apply a change, and return it with the lines that it really changed. `moved`: what a move brought here."""
        effect, edit = change.effect, change.effect.edit
        if moved is not None:
            self.content, self.lines, self.fragments = moved.content, moved.lines.copy(), {*moved.fragments}
            return change
        if effect.kind is Kind.DELETE or effect.kind is Kind.MOVE:
            self.content, self.lines = None, Counter()
            return change
        before, self.content = self.content, None
        if edit is None:
            return change
        if edit.kind is Kind.WRITE and edit.new is not None:
            if before is None:
                self.lines = Counter()
            else:  # count what differs from what is known
                edit = Edit(edit.path, edit.kind, old=before, new=edit.new)
                effect = msgspec.structs.replace(effect, edit=edit)
            self.content = edit.new
            net = net_of(before or "", edit.new or "")
        else:
            self.content = None if before is None else apply_edit(before, edit)
            if before is not None and self.content is not None:
                net = net_of(before, self.content)
            else:
                net = net_of(edit.old or "", edit.new or "") if edit.patch is None else net_lines(edit.patch)
                if edit.old and edit.new:  # it may begin and end within a line
                    ends = edit.new.split("\n")
                    self.fragments |= {normalize(ends[0]), normalize(ends[-1])} - {""}
        for text, number in net.items():
            self.lines[text] = max(0, self.lines[text] + number)
        return msgspec.structs.replace(change, effect=effect, net=net)


def apply_edit(content: str, edit: Edit) -> str | None:
    """Return the text after an edit; None if the edit doesn't fit it."""
    if edit.old is not None and edit.new is not None:
        if edit.old == "":
            return None  # inserted somewhere
        return content.replace(edit.old, edit.new, -1 if edit.replaces_all else 1) if edit.old in content else None
    for old, new in _hunks(edit.lines):
        if not old or old not in content:
            return None
        content = content.replace(old, new, 1)
    return content


def _hunks(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The text before and after each hunk of a patch."""
    old: list[str] = []
    new: list[str] = []
    for line in (*lines, "@@"):
        if line.startswith("@@"):
            if old or new:
                yield "\n".join(old), "\n".join(new)
            old, new = [], []
            continue
        if not line.startswith("+"):
            old.append(line[1:])
        if not line.startswith("-"):
            new.append(line[1:])


def normalize(line: str) -> str:
    """A line without white space, by which lines are compared."""
    return "".join(line.split())


def net_of(before: str, after: str) -> dict[str, int]:
    """The lines without white space that differ between two texts: how often each is added, or removed (below zero)."""
    begin = before.rfind("\n", 0, _common(before, after)) + 1
    before, after = before[begin:], after[begin:]
    backward = before[::-1], after[::-1]
    end = backward[0].rfind("\n", 0, _common(*backward)) + 1
    before, after = before[: len(before) - end], after[: len(after) - end]
    return _net(Counter(after.split("\n")), Counter(before.split("\n")))


def _common(text: str, other: str) -> int:
    """Number of equal characters at the beginning."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def net_lines(lines: Sequence[str]) -> dict[str, int]:
    """As `net_of`, of the lines of a diff."""
    added = Counter(line[1:] for line in lines if line.startswith("+"))
    return _net(added, Counter(line[1:] for line in lines if line.startswith("-")))


def _net(added: Counter[str], removed: Counter[str]) -> dict[str, int]:
    net: dict[str, int] = {}
    for line in {**removed, **added}:
        if (number := added[line] - removed[line]) and (text := normalize(line)):
            net[text] = net.get(text, 0) + number
    return {text: number for text, number in net.items() if number}


def shown_text(text: str) -> str | None:
    """The whole text of a file in the output of a tool that reads it, with numbered lines from 1; else None."""
    first = _NUMBERED.match(text)
    mark = "" if first is None else first[1]
    lines: list[str] = []
    rest = text
    for number, rest in enumerate(text.split("\n") if mark else (), 1):
        before, _, line = rest.partition(mark)
        if line == rest or before.strip() != str(number):
            break
        lines.append(line.removeprefix(" ") if mark == "|" else line)
    else:
        rest = ""
    if not lines or (rest.strip() and not rest.lstrip().startswith("<")):
        return None
    return "\n".join((*lines, ""))


# ---- the state of a file

Look = Callable[[FileHistory], "bytes | None"]
"""Returns the content of a file now; None if it is gone. Raises `OSError` if it is not looked at."""
ReadFile = Callable[[str], "bytes | None"]
"""Returns the content of a file at a path in a repository, otherwise like `Look`."""


def standing_roots(root: str, histories: Sequence[FileHistory], read: ReadFile, *, is_named: bool) -> set[str]:
    """The roots of runs that the repository at `root` stands for: those with the same name; if none has it, all if the
    user named the repository (`is_named`), else the only one, if half of its files or more are in the repository.
    """
    roots = {history.root for history in histories if history.root}
    same_name = {candidate for candidate in roots if basename(candidate.rstrip("/")) == basename(root.rstrip("/"))}
    if same_name or is_named or len(roots) != 1:
        return same_name or (roots if is_named else set())
    inside = [file.relative for file in histories if file.relative is not None and not file.is_deleted][:_MOST_TRIED]
    present = sum(_is_there(read, path) for path in inside)
    return roots if inside and present * 2 >= len(inside) else set()


def _is_there(read: ReadFile, path: str) -> bool:
    try:
        return read(path) is not None
    except OSError:
        return False


def repository_path(root: str, standing: Collection[str], run_root: str, path: str) -> str | None:
    """The path in the repository at `root`, which stands for the roots `standing`, of a path in a trace; None if it is
    elsewhere.
    """
    below = root.rstrip("/") + "/"
    if path.startswith(below):
        return path.removeprefix(below)
    return relative_to(run_root, path) if not run_root or run_root in standing else None


def repository_look(root: str, read: ReadFile, standing: Collection[str]) -> Look:
    """Return a `Look` into the repository at `root`, which stands for these roots of runs."""

    def look(history: FileHistory) -> bytes | None:
        place = repository_path(root, standing, history.root, history.path)
        if place is None:
            raise OSError("not in the repository")
        return read(place)

    return look


def state_of(history: FileHistory, look: Look | None) -> FileState:
    """Compare what agents wrote with the file now; without `look` nothing is looked at."""
    if any(character in history.path for character in "$`*?"):  # a pattern, not a file
        return FileState(State.NOT_RECORDED)
    if look is None or history.is_outside:
        return FileState(State.NOT_LOOKED_AT if _has_lines(history) else State.NOT_RECORDED)
    try:
        data = look(history)
    except OSError:
        return FileState(State.NOT_LOOKED_AT)
    if data is None:
        return FileState(State.GONE)
    if not _has_lines(history):
        return FileState(State.NOT_RECORDED)
    now = [text for line in data.decode("utf-8", "replace").split("\n") if (text := normalize(line))]
    lines, then = Counter(now), history.text
    standing = sum(
        min(number, lines[text] or (number if text in then.fragments and any(text in line for line in lines) else 0))
        for text, number in then.lines.items()
    )
    total = then.lines.total()
    if then.content is not None:
        is_same = now == [text for line in then.content.split("\n") if (text := normalize(line))]
    else:
        is_same = standing == total
    return FileState(State.AS_WRITTEN if is_same else State.CHANGED, standing, total)


def _has_lines(history: FileHistory) -> bool:
    """Whether the traces have the lines that were written last."""
    if history.is_deleted:
        return True
    return history.text.lines.total() > 0 or history.text.content is not None


class FilesReport(NamedTuple):
    """Files with their states, and what could not be read."""

    files: Sequence[tuple[FileHistory, FileState]]
    tried: int
    """Changes that were denied or failed, or whose outcome isn't recorded."""
    problems: Sequence[Problem] = ()

    @property
    def is_one_project(self) -> bool:
        """Whether all runs have the same root, so that relative paths are unique."""
        return len({history.root for history, _ in self.files if history.root}) <= 1

    def name(self, history: FileHistory) -> str:
        """The path that is shown: relative to the root if all runs share it."""
        return history.relative if self.is_one_project and history.relative is not None else history.path
