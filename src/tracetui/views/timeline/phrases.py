"""The work of a turn in words: ``read ×4 → edited ripe.py → ran pytest -q ✗ → failed: exit 1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tracetui.analysis.turns import Digest, Group, is_interruption
from tracetui.masking import one_line
from tracetui.model import Operation, Run, Span, Status
from tracetui.text import Clean, truncate
from tracetui.views.glyphs import Glyphs
from tracetui.views.rows import Piece

_VERBS: Final = {
    "ran": "bash shell exec execcommand shellcommand runshellcommand localshell powershell runcommand terminal",
    "read": "read view readfile readmanyfiles viewimage notebookread ls list listdirectory cat",
    "searched": "grep glob search searchfilecontent find rg toolsearch codebasesearch filesearch",
    "searched the web": "websearch googlewebsearch",
    "fetched": "webfetch fetch",
    "edited": "edit multiedit applypatch strreplace replace strreplacebasededittool patch notebookedit",
    "wrote": "write writefile create createfile",
    "planned": "todowrite updateplan todo taskcreate taskupdate exitplanmode",
    "asked": "askuserquestion askuser question",
    "delegated": "agent task spawnagent",
}
_VERB_OF: Final = {name: verb for verb, names in _VERBS.items() for name in names.split()}
_MAX_GROUPS: Final = 5
"""More groups are merged by verb."""
_ARGUMENT: Final = 28
_ERROR: Final = 60


def verb(name: str) -> str:
    """What a tool of this name does: ``ran``, ``read``; for an unlisted tool its name."""
    return _VERB_OF.get(name.lower().replace("_", "").replace("-", ""), name)


def work_pieces(run: Run, digest: Digest, glyphs: Glyphs) -> list[Piece]:
    """The tool calls and sub-agents of a turn, in order; of many, the sums by verb."""
    named = _merge([(_verb_of(group), group) for group in digest.groups], adjacent=True)
    if len(named) > _MAX_GROUPS:
        named = _merge(named, adjacent=False)
    pieces: list[Piece] = []
    for word, group in named:
        if pieces:
            pieces.append(Piece(Clean(f" {glyphs.arrow} "), "dim"))
        pieces.append(Piece(one_line(word, 40) or glyphs.missing, "kind.agent" if group.lane else "text"))
        pieces += _extent(run, group, glyphs)
    return pieces


def _verb_of(group: Group) -> str:
    if not group.lane:
        return verb(group.name)
    return group.name if group.name == _BRANCH else f"delegated to {group.name}"


_BRANCH: Final = "abandoned branch"


def _merge(named: Sequence[tuple[str, Group]], *, adjacent: bool) -> list[tuple[str, Group]]:
    """Join the groups with the same verb."""
    found: list[tuple[str, Group]] = []
    at: dict[str, int] = {}
    for word, group in named:
        same = at.get(word)
        if same is None or (adjacent and same != len(found) - 1):
            at[word] = len(found)
            found.append((word, replace(group)))
        else:
            found[same][1].count += group.count
            found[same][1].failed += group.failed
    return found


def _extent(run: Run, group: Group, glyphs: Glyphs) -> list[Piece]:
    """The argument of a single call, the number of several; failures."""
    pieces = []
    if group.count > 1:
        pieces.append(Piece(Clean(f" {glyphs.times}{group.count}"), "sec"))
    elif not group.lane and (given := short_argument(run.spans[group.first])):
        pieces.append(Piece(Clean(f" {given}"), "sec"))
    if group.failed:
        number = str(group.failed) if group.count > 1 else ""
        pieces.append(Piece(Clean(f" {number}{glyphs.error}"), "status.error"))
    return pieces


def short_argument(span: Span) -> Clean:
    """The argument of a call in a few cells: of a path its last part."""
    text = one_line(span.preview, 200)
    if " " not in text and "/" in text and "://" not in text and not text.startswith("{"):
        text = Clean(text.rstrip("/").rsplit("/", 1)[-1])
    return truncate(text, _ARGUMENT)


def outcome_pieces(run: Run, digest: Digest, glyphs: Glyphs) -> list[Piece]:
    """How a turn ended: ``failed: 503``, ``interrupted``, ``running: Bash``, else the answer; empty without one."""
    span = run.spans[digest.last] if digest.last is not None else None
    if span is None:
        return []
    if is_interruption(span):
        return [Piece(Clean("interrupted"), "status.warn")]
    if span.status is Status.ERROR:
        words = one_line(span.error.words, _ERROR) if span.error is not None else Clean("")
        return [
            Piece(Clean("failed"), "status.error bold"),
            Piece(Clean(f": {words}" if words else ""), "status.error"),
        ]
    if span.status is Status.RUNNING:
        return [Piece(Clean(f"{glyphs.running} running: {one_line(span.name, 40)}"), "status.running bold")]
    if span.status is Status.CANCELLED:
        return [Piece(Clean("interrupted"), "status.warn")]
    answer = run.spans[digest.answer] if digest.answer is not None else None
    if answer is None or span.operation is not Operation.CHAT or not (text := one_line(answer.preview, 200)):
        return []
    return [Piece(Clean(f"“{text}”"), "dim")]
