"""What a run wrote, for blame: keyed hashes of its lines and the steps that wrote them, no text.

Paths, ids of calls and names of commits are as in the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

import msgspec

from tracetui.analysis.effects import Call, Kind, Outcome, RunEffects
from tracetui.analysis.files import FileChanges
from tracetui.analysis.values import value_text
from tracetui.model import Run

KEY_BYTES: Final = 16
HASH_BYTES: Final = 6
"""Two of a million lines have the same hash with a probability of 0.2 %."""
_MOST_COPIES: Final = 3
"""A change counts equal lines so often at most."""
_LEAST_CHARACTERS: Final = 6
_ONLY_KEYWORDS: Final = re.compile(
    r"""(?: [\W\d_]+ |
    endfunction | interface | undefined | continue | function | override | default | finally | package | endfor |
    except | import | rescue | return | select | static | struct | switch | await | begin | break | catch | const
    | defer | endif | error | false | raise | super | throw | until | using | while | yield | case | done | elif |
    else | esac | func | goto | loop | none | null | pass | self | test | then | this | true | type | void | when
    | with | and | end | eof | err | for | let | new | nil | not | try | use | var | do | fi | if | in | is | or
    )*+""",
    re.VERBOSE,
)
"""Longer words come first: the repetition doesn't go back."""
_RESULT: Final = re.compile(r"^\[[^\]\n]{1,300} ([0-9a-f]{7,64})\] (.{1,1000})$", re.MULTILINE)
"""The line that ``git commit`` prints."""
_MESSAGE: Final = re.compile(
    r"""\bcommit\b[^\n;|&]{0,400}?\s(?:-[a-z]*m|--message)[ =]?\s*(["'])([^\n]{1,1000}?)(?:\1|$)""", re.M
)
_QUOTED_HEAD: Final = re.compile(r"""\bcommit\b[^\n;|&]{0,400}?\$\(cat <<-?\s*['"]?\w+['"]?\n([^\n]{1,1000})""")
"""A message in a here document."""


class WrittenFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a run changed."""

    path: str
    """As in the trace."""
    relative: str | None
    """Beneath the root of the run."""


class Writing(msgspec.Struct, frozen=True, array_like=True):
    """A change of a file. Its hashes follow those of the writing before: first of added, then of removed lines."""

    span: str
    at: float
    """UTC seconds."""
    file: int
    added: int
    removed: int


class Moving(msgspec.Struct, frozen=True, array_like=True):
    """A file of `WrittenLines` that got the path of another; UTC seconds."""

    source: int
    target: int
    at: float


class Commitment(msgspec.Struct, frozen=True, array_like=True):
    """A ``git commit`` in a log, or a commit that the source of the run records. Times are UTC seconds."""

    span: str
    begin: float
    end: float
    subject: bytes
    """Its hash; that of `name` where the source records the commit."""
    name: str
    """The beginning of the hash that git printed, or all of it; empty if it isn't recorded."""


class WrittenLines(msgspec.Struct, frozen=True, array_like=True):
    """What a run wrote."""

    files: tuple[WrittenFile, ...] = ()
    writings: tuple[Writing, ...] = ()
    hashes: bytes = b""
    """`HASH_BYTES` each."""
    commits: tuple[Commitment, ...] = ()
    moves: tuple[Moving, ...] = ()

    def lines(self) -> Iterator[tuple[Writing, list[bytes], list[bytes]]]:
        """Yield each writing with the hashes of the lines that it added and removed."""
        hashes = [self.hashes[at : at + HASH_BYTES] for at in range(0, len(self.hashes), HASH_BYTES)]
        at = 0
        for writing in self.writings:
            middle, end = at + writing.added, at + writing.added + writing.removed
            yield writing, hashes[at:middle], hashes[middle:end]
            at = end


def has_information(line: str) -> bool:
    """Whether a line without white space has more than punctuation and keywords: braces and ``return nil`` don't."""
    return len(line) >= _LEAST_CHARACTERS and _ONLY_KEYWORDS.fullmatch(line.casefold()) is None


def line_hash(text: str, key: bytes) -> bytes:
    """The hash of a line without white space, or of the subject of a commit."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES, key=key).digest()


def written_lines(run: Run, effects: RunEffects, key: bytes) -> WrittenLines:
    """Return what a run wrote; `key` is that of the index."""
    changes = FileChanges()
    changes.add(run.summary, effects)
    files: list[WrittenFile] = []
    writings: list[Writing] = []
    hashes: list[bytes] = []
    for history in changes.histories():
        for change in history.done:
            if change.at is None:
                continue
            net = {line: number for line, number in change.net.items() if has_information(line)}
            added = [line_hash(line, key) for line, number in net.items() for _ in range(min(number, _MOST_COPIES))]
            removed = [line_hash(line, key) for line, number in net.items() for _ in range(min(-number, _MOST_COPIES))]
            writings.append(Writing(change.span, change.at, len(files), len(added), len(removed)))
            hashes += added + removed
        files.append(WrittenFile(history.path, history.relative))
    numbers = {file.path: number for number, file in enumerate(files)}
    moves = [
        Moving(numbers[effect.moved_from], numbers[effect.target], call.span.started_at)
        for call in effects.calls
        for effect in call.effects
        if effect.moved_from in numbers and effect.target in numbers and effect.outcome is Outcome.DONE
        if call.span.started_at is not None
    ]
    commits = [*_recorded(run, key), *(commit for call in effects.calls for commit in _commits(call, key))]
    return WrittenLines(tuple(files), tuple(writings), b"".join(hashes), tuple(commits), tuple(moves))


def _recorded(run: Run, key: bytes) -> Iterator[Commitment]:
    """The commits that the source of a run records, each at the last step before it was made."""
    starts = [(span.started_at, span.id) for span in run.spans if span.started_at is not None]
    for name, at in run.body.commits:
        _, span = max(((start, ident) for start, ident in starts if start <= at), default=(at, ""))
        if span:
            yield Commitment(span, at, at, line_hash(name, key), name)


def _commits(call: Call, key: bytes) -> Iterator[Commitment]:
    is_commit = any(effect.kind is Kind.VCS and effect.target.startswith("commit") for effect in call.effects)
    if not is_commit or call.outcome in (Outcome.DENIED, Outcome.FAILED) or call.span.started_at is None:
        return
    begin = call.span.started_at
    end = begin + (call.span.duration_ms or 0.0) / 1_000
    subjects = {match[2].strip(): match[1] for match in _RESULT.finditer(value_text(call.output)[:200_000])}
    if not subjects and call.outcome is Outcome.DONE and (command := call.command):
        matches = [*_MESSAGE.finditer(command), *_QUOTED_HEAD.finditer(command)]
        subjects = {match[match.lastindex or 1].strip(): "" for match in matches}
    for subject, name in subjects.items():
        yield Commitment(call.span.id, begin, end, line_hash(subject, key), name)
