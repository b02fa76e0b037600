"""Which session wrote a line or made a commit: by the commits in the logs, by lines, by file and time.

The index has keyed hashes of lines and the steps that wrote them, no text. No evidence is no answer; sessions between
which the evidence can't decide are named as candidates.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from posixpath import basename
from typing import Final, NamedTuple

import msgspec

from tracetui.analysis.files import normalize
from tracetui.analysis.written_lines import KEY_BYTES, WrittenFile, WrittenLines, has_information, line_hash
from tracetui.model import RunRef, RunSummary
from tracetui.sources.git import BlamedLine, Commit, CommitLine

COMMIT_SECONDS: Final = 180
"""A ``git commit`` in a log and a commit with its subject are the same within this time."""
LATE_SECONDS: Final = 120
"""Clocks differ: a line may be written so long after its commit."""
_DAY: Final = 86_400
_WINDOW: Final = 45 * _DAY
"""Older writings aren't evidence for a commit."""
_FILE_WINDOW: Final = 3 * 3_600
_HALF_AGE: Final = 12 * 3_600
"""A writing of this age before the commit weighs half."""
LEAST_SHARE: Final = 0.4
"""Part of the lines of a commit that its session wrote or removed at least."""
LEAST_MARGIN: Final = 0.8
"""Part of the weight of the first two sessions that the first has at least."""
_LEAST_LINES, _LEAST_PART = 3, 0.2
"""A line of an undecided commit has a session that wrote so many lines of the commit, or that part of them."""
_MOST_CANDIDATES: Final = 5


class Rung(StrEnum):
    """The evidence of an answer, strongest first."""

    COMMIT = "commit"
    """The log of the session has the ``git commit``, or its checkpoint names the commit."""
    LINES = "lines"
    """The session wrote the lines."""
    FILE = "file"
    """Only this session changed the files shortly before."""


class Step(NamedTuple):
    """A step of a session."""

    run: RunRef
    span: str
    at: float
    """UTC seconds."""


class Answer(msgspec.Struct, frozen=True):
    """Who wrote a line or made a commit."""

    step: Step | None = None
    """None: no evidence, or several candidates."""
    rung: Rung | None = None
    candidates: tuple[Step, ...] = ()
    """The sessions between which the evidence can't decide."""
    weights: tuple[float, ...] = ()
    """Weights of the candidates, or of the answer among all sessions; their sum is at most 1."""


NOBODY: Final = Answer()


class LineAnswer(msgspec.Struct, frozen=True):
    """A line with its answer."""

    path: str
    number: int
    text: str
    answer: Answer
    commit: Commit | None
    """None: not committed."""
    is_moved: bool = False


class _Entry(NamedTuple):
    at: float
    session: int
    span: str
    file: int
    is_added: bool


class _SessionCommit(NamedTuple):
    """A commit in a log."""

    begin: float
    end: float
    session: int
    span: str
    hash: str


class LineIndex:
    """The lines and commits of sessions. Add runs oldest first, after `relate`."""

    def __init__(self, key: bytes | None = None) -> None:
        """`key` of the hashes of the lines that are added; None: a new one."""
        self.key = key or secrets.token_bytes(KEY_BYTES)
        self._entries: dict[bytes, list[_Entry]] = {}
        self._commits: dict[bytes, list[_SessionCommit]] = {}
        """By subject."""
        self._changes: list[_Entry] = []
        """A change of a file each, whether or not its lines are recorded."""
        self._runs: list[RunRef] = []
        self._files: list[WrittenFile] = []
        self._numbers: dict[WrittenFile, int] = {}
        self._moves: list[tuple[int, int, float]] = []
        """(File, the one whose path it got, UTC seconds)."""
        self._at_path: dict[str, dict[int, float]] = {}
        self._known: dict[tuple[str, float, str], RunRef] = {}
        """The first run with a call, by id, time and path: resumed sessions have copies of those before."""
        self._parents: dict[RunRef, RunRef] = {}
        self.oldest: float | None = None
        """Start of the oldest session: UTC seconds."""

    def relate(self, runs: Iterable[RunSummary]) -> None:
        """Take in which runs were started by others: they are one conversation."""
        runs = [*runs]
        by_id = {run.id: run.ref for run in runs}
        for run in runs:
            if run.parent is not None and (parent := by_id.get(run.parent)) is not None and parent != run.ref:
                self._parents[run.ref] = parent

    @property
    def sessions(self) -> int:
        """Number of sessions."""
        return len(self._runs)

    @property
    def entries(self) -> int:
        """Number of indexed lines."""
        return sum(map(len, self._entries.values()))

    def add(self, summary: RunSummary, written: WrittenLines) -> None:
        """Add the lines and commits of a run."""
        session = len(self._runs)
        self._runs.append(summary.ref)
        self._at_path.clear()
        if summary.started_at is not None:
            self.oldest = min(summary.started_at, self.oldest or summary.started_at)
        for commit in written.commits:
            if self._is_new(summary.ref, (commit.span, commit.begin, "")):
                session_commit = _SessionCommit(commit.begin, commit.end, session, commit.span, commit.name)
                self._commits.setdefault(commit.subject, []).append(session_commit)
        files = [self._file(file) for file in written.files]
        for move in written.moves:
            self._moves.append((files[move.source], files[move.target], move.at))
        for writing, added, removed in written.lines():
            if not self._is_new(summary.ref, (writing.span, writing.at, written.files[writing.file].path)):
                continue
            entry = _Entry(writing.at, session, writing.span, files[writing.file], True)
            self._changes.append(entry)
            for line in added:
                self._entries.setdefault(line, []).append(entry)
            entry = entry._replace(is_added=False)
            for line in removed:
                self._entries.setdefault(line, []).append(entry)

    def _is_new(self, ref: RunRef, call: tuple[str, float, str]) -> bool:
        """Whether no earlier run has this call, else they are one conversation."""
        first = self._known.setdefault(call, ref)
        if first != ref:
            self._parents.setdefault(ref, first)
        return first == ref

    def _file(self, file: WrittenFile) -> int:
        if file not in self._numbers:
            self._numbers[file] = len(self._files)
            self._files.append(file)
        return self._numbers[file]

    def _hash(self, line: str) -> bytes:
        return line_hash(line, self.key)

    # ---- evidence

    def conversation(self, session: RunRef | int) -> RunRef:
        """The run that started the others of a conversation."""
        ref, seen = self._runs[session] if isinstance(session, int) else session, set[RunRef]()
        while (parent := self._parents.get(ref)) is not None and ref not in seen:
            seen.add(ref)
            ref = parent
        return ref

    def step(self, entry: _Entry | _SessionCommit) -> Step:
        """The step of an entry."""
        return Step(self._runs[entry.session], entry.span, entry.at if isinstance(entry, _Entry) else entry.begin)

    def makers(self, commit: Commit) -> list[_SessionCommit]:
        """The ``git commit`` calls that made a commit: the one with its hash, or those with its subject, then."""
        keys = self._hash(commit.hash), self._hash(commit.subject)
        candidates = [candidate for key in keys for candidate in self._commits.get(key, ())]
        if same := [candidate for candidate in candidates if candidate.hash and commit.hash.startswith(candidate.hash)]:
            return same
        times = (commit.authored_at, commit.committed_at)
        return [
            candidate
            for candidate in candidates
            if any(candidate.begin - COMMIT_SECONDS <= time <= candidate.end + COMMIT_SECONDS for time in times)
        ]

    def writers(self, path: str, text: str, begin: float, end: float) -> tuple[list[_Entry], bool]:
        """(Who wrote a line that was there at `end`, latest first; whether in that path, or only a file of that name).

        A line that was removed since isn't there.
        """
        entries = [entry for entry in self._entries.get(self._hash(text), ()) if begin <= entry.at <= end]
        for fits in (self._is_path, self._is_name):
            if standing := _standing(entry for entry in entries if fits(entry, path)):
                return standing, fits == self._is_path
        return [], True

    def removers(self, path: str, text: str, begin: float, end: float) -> list[_Entry]:
        """Who removed a line from that path, latest first."""
        entries = self._entries.get(self._hash(text), ())
        return sorted(
            (
                entry
                for entry in entries
                if not entry.is_added and begin <= entry.at <= end and self._is_path(entry, path)
            ),
            reverse=True,
        )

    def changers(self, path: str, begin: float, end: float) -> list[_Entry]:
        """Who changed a file, latest first."""
        return sorted(
            (entry for entry in self._changes if begin <= entry.at <= end and self._is_path(entry, path)),
            reverse=True,
        )

    def _is_path(self, entry: _Entry, path: str) -> bool:
        """Whether a file was at that path of the repository (whose root is the run's), or moved there later."""
        return entry.at <= self._files_at(path).get(entry.file, float("-inf"))

    def _files_at(self, path: str) -> dict[int, float]:
        """The files at a path of the repository, and the ones that moved there until a time."""
        if path not in self._at_path:
            files = {number: float("inf") for number, file in enumerate(self._files) if _names(file, path)}
            for source, target, at in sorted(self._moves, key=lambda move: move[2], reverse=True):
                if at <= files.get(target, float("-inf")):
                    files.setdefault(source, at)
            self._at_path[path] = files
        return self._at_path[path]

    def _is_name(self, entry: _Entry, path: str) -> bool:
        return basename(self._files[entry.file].path) == basename(path)


def _names(file: WrittenFile, path: str) -> bool:
    """Whether the path of a trace is that of the repository."""
    return path in (file.relative, file.path) or ("/" in path and file.path.endswith(f"/{path}"))


def _standing(entries: Iterable[_Entry]) -> list[_Entry]:
    """The additions that no later removal took back, latest first."""
    standing: list[_Entry] = []
    for entry in sorted(entries):
        if entry.is_added:
            standing.append(entry)
        elif standing:
            standing.pop()
    return standing[::-1]


# ---- commits


class CommitBlame:
    """The answers for a commit and its lines. `commit` is None for lines that aren't committed."""

    def __init__(
        self, index: LineIndex, commit: Commit | None, added: Sequence[CommitLine], removed: Sequence[CommitLine] = ()
    ) -> None:
        self._index = index
        self._removed = removed
        self.commit = commit
        self._begin, self._end = _window(commit)
        self._authored = self._end if commit is None else commit.authored_at + LATE_SECONDS
        """Later writings are evidence for the session of the commit only: a rebase between other commits isn't one."""
        self._added = {
            (line.path, text): index.writers(line.path, text, self._begin, self._end)
            for line in added
            if has_information(text := normalize(line.text))
        }
        self._removed_texts = {normalize(line.text) for line in removed}
        self._lines_of: Counter[RunRef] = Counter()
        """By conversation, the lines of the commit that it wrote in their paths."""
        for writers, is_path in self._added.values():
            if is_path:
                self._lines_of.update({index.conversation(entry.session) for entry in writers})
        self.answer = self._answer(added, removed)
        self._decided = None if self.answer.step is None else index.conversation(self.answer.step.run)

    def line(self, path: str, text: str) -> Answer:
        """Return the answer for a line that the commit added."""
        key = normalize(text)
        if (self.commit is not None and self.commit.is_by_bot) or not has_information(key):
            return NOBODY
        writers, is_path = self._added.get((path, key)) or self._index.writers(path, key, self._begin, self._end)
        if not writers or not is_path:
            return NOBODY
        latest = self._latest(writers)
        if self._decided is not None and (entry := latest.get(self._decided)) is not None:
            rung = Rung.COMMIT if self.answer.rung is Rung.COMMIT else Rung.LINES
            return Answer(self._index.step(entry), rung, weights=(1.0,))
        then = self._latest([entry for entry in writers if entry.at <= self._authored])
        return self._choice([entry for ref, entry in then.items() if self._is_supported(ref)])

    def origin(self, path: str, text: str) -> Answer:
        """Return the answer for a line that the commit moved here by hand: who wrote it where the commit removes it."""
        key = normalize(text)
        if key not in self._removed_texts or not has_information(key) or (self.commit and self.commit.is_by_bot):
            return NOBODY
        writers = [
            self._index.writers(removed.path, key, float("-inf"), self._end)
            for removed in self._removed
            if normalize(removed.text) == key and removed.path != path
        ]
        entries = [entry for standing, is_path in writers if is_path for entry in standing]
        return self._choice([*self._latest(entries).values()])

    def _is_supported(self, conversation: RunRef) -> bool:
        lines = self._lines_of[conversation]
        return lines >= _LEAST_LINES or lines >= _LEAST_PART * len(self._added)

    def _latest(self, writers: Sequence[_Entry]) -> dict[RunRef, _Entry]:
        latest: dict[RunRef, _Entry] = {}
        for entry in writers:
            latest.setdefault(self._index.conversation(entry.session), entry)
        return latest

    def _choice(self, entries: Sequence[_Entry]) -> Answer:
        """The only session, or the candidates."""
        steps = tuple(self._index.step(entry) for entry in entries[:_MOST_CANDIDATES])
        if len(steps) == 1:
            return Answer(steps[0], Rung.LINES, weights=(1.0,))
        weights = _weights([_age_weight(self._end, entry) for entry in entries[:_MOST_CANDIDATES]])
        return Answer(candidates=steps, weights=weights) if steps else NOBODY

    def _answer(self, added: Sequence[CommitLine], removed: Sequence[CommitLine]) -> Answer:
        commit = self.commit
        if commit is not None and commit.is_by_bot:
            return NOBODY
        calls = (
            {}
            if commit is None
            else {self._index.conversation(call.session): call for call in self._index.makers(commit)}
        )
        if len(calls) == 1:
            return Answer(self._index.step(*calls.values()), Rung.COMMIT, weights=(1.0,))
        by_lines = self._by_lines(removed)
        if by_lines.step is not None or commit is None:
            return by_lines
        if len(calls) > 1:
            return Answer(candidates=tuple(self._index.step(call) for call in calls.values()))
        by_file = self._by_file(commit, {line.path for line in (*added, *removed)})
        return by_file if by_file.step is not None and not by_lines.candidates else by_lines

    def _by_lines(self, removed: Sequence[CommitLine]) -> Answer:
        removed_by = {
            (line.path, text): self._index.removers(line.path, text, self._begin, self._end)
            for line in removed
            if has_information(text := normalize(line.text))
        }
        weights: dict[RunRef, float] = defaultdict(float)
        lines: Counter[RunRef] = Counter()
        steps: dict[RunRef, _Entry] = {}
        evidence = [(writers, 1.0 if is_path else 0.3) for writers, is_path in self._added.values()]
        evidence += [(removers, 0.5) for removers in removed_by.values()]
        for entries, factor in evidence:
            latest = self._latest(entries)
            for number, (conversation, entry) in enumerate(latest.items()):
                last = 1.0 if number == 0 else 0.3
                weights[conversation] += factor * last * _age_weight(self._end, entry) / len(latest)
                lines[conversation] += 1
                steps[conversation] = max(entry, steps.get(conversation, entry))
        if not weights:
            return NOBODY
        order = sorted(weights, key=lambda ref: weights[ref], reverse=True)[:2]
        total = len(self._added) + len(removed_by)
        parts = _weights([weights[ref] for ref in order])
        if lines[order[0]] / total >= LEAST_SHARE and parts[0] >= LEAST_MARGIN:
            return Answer(self._index.step(steps[order[0]]), Rung.LINES, weights=parts[:1])
        if (
            len(order) > 1
            and sum(bool(entries) for entries, _ in evidence) / total >= LEAST_SHARE
            and (parts[0] < LEAST_MARGIN)
        ):
            return Answer(candidates=tuple(self._index.step(steps[ref]) for ref in order), weights=parts)
        return NOBODY

    def _by_file(self, commit: Commit, paths: set[str]) -> Answer:
        steps: dict[RunRef, _Entry] = {}
        files: Counter[RunRef] = Counter()
        for path in paths:
            entries = self._index.changers(path, commit.authored_at - _FILE_WINDOW, commit.authored_at + LATE_SECONDS)
            latest = self._latest(entries)
            files.update([*latest])
            for conversation, entry in latest.items():
                steps[conversation] = max(entry, steps.get(conversation, entry))
        if len(steps) != 1:
            return NOBODY
        ((conversation, entry),) = steps.items()
        if files[conversation] * 2 <= len(paths):
            return NOBODY
        return Answer(self._index.step(entry), Rung.FILE, weights=(1.0,))


def _window(commit: Commit | None) -> tuple[float, float]:
    """The time in which the lines of a commit were written: UTC seconds."""
    if commit is None:
        return float("-inf"), float("inf")
    end = max(commit.authored_at, min(commit.committed_at, commit.authored_at + _DAY)) + LATE_SECONDS
    return end - _WINDOW, end


def _age_weight(end: float, entry: _Entry) -> float:
    return 1.0 if end == float("inf") else 1 / (1 + max(0.0, end - entry.at) / _HALF_AGE)


def _weights(values: Sequence[float]) -> tuple[float, ...]:
    total = sum(values) or 1.0
    return tuple(value / total for value in values)


# ---- files

Changes = Callable[[Commit], tuple[Sequence[CommitLine], Sequence[CommitLine]]]
"""Returns the lines that a commit added and removed."""


def blame_commit(
    index: LineIndex, commit: Commit, added: Sequence[CommitLine], removed: Sequence[CommitLine]
) -> tuple[Answer, list[LineAnswer]]:
    """Return the answer for a commit, and those for the lines that it added."""
    blame = CommitBlame(index, commit, added, removed)
    return blame.answer, [_answer_line(blame, line, line.path, line.path) for line in added]


def _answer_line(
    blame: CommitBlame, line: BlamedLine | CommitLine, path: str, then: str, *, is_moved: bool = False
) -> LineAnswer:
    """The answer for a line; `then`: the path of its file in the commit."""
    answer = blame.line(then, line.text)
    if answer is NOBODY and (origin := blame.origin(then, line.text)) is not NOBODY:
        answer, is_moved = origin, True
    return LineAnswer(path, line.number, line.text, answer, blame.commit, is_moved)


def blame_lines(
    index: LineIndex, path: str, lines: Sequence[BlamedLine | CommitLine], unmoved: Mapping[int, str], changes: Changes
) -> list[LineAnswer]:
    """Return the answers for lines of a file as it is now; a `CommitLine` isn't committed.

    `unmoved`: by number, the hash of the commit that git names if it doesn't follow moved lines.
    """
    blames: dict[str, CommitBlame] = {}
    fresh = CommitBlame(index, None, [line for line in lines if isinstance(line, CommitLine)])
    answers = []
    for line in lines:
        if isinstance(line, CommitLine):
            answers.append(_answer_line(fresh, line, path, path))
            continue
        name = line.commit.hash
        if name not in blames:
            blames[name] = CommitBlame(index, line.commit, *changes(line.commit))
        is_moved = line.path != path or unmoved.get(line.number, name) != name
        answers.append(_answer_line(blames[name], line, path, line.path, is_moved=is_moved))
    return answers
