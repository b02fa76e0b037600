"""A pi session while its records come in: its rows, its tree of entries, and its metadata.

An entry names the one that it follows; one that names an earlier one begins a new branch. The last entry is the leaf:
the path to it is the live branch, all else is abandoned until an entry goes back to it. No record says how a session
ended: it can always be continued, and stands as its last response does.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tracetui.formats.agent_log import CHAT, EXPLICIT, Call, Conversation, Made, Row
from tracetui.formats.fields import unknown_fields
from tracetui.formats.jsonl import Line, Place
from tracetui.formats.labels import folder_of
from tracetui.formats.lines import record_on
from tracetui.formats.pi.originals import copies_of, original_of
from tracetui.formats.pi.records import ABANDONED, Assistant, Begin, Content, text_in
from tracetui.formats.scalars import between, layout, moment
from tracetui.model import COPIED, COUNTED_COPY, PREVIEW, FirstError, Header, RunBody, Span
from tracetui.sources.base import File

AGENT: Final = "pi"
BRANCH: Final = "branch:"
"""Before the id of the first entry of an abandoned branch: the id of its span."""
_OURS: Final = ("l", BRANCH)
"""How ids begin that are made here, of the number of a line or of an entry."""
_COMMAND: Final = re.compile(r"/[\w:.-]*")
"""A command, which early versions recorded as a prompt."""
_FREE: Final = 50_000
"""So many entries may be abandoned and taken up again in any session, and `_EACH` more for each entry that it has."""
_EACH: Final = 8


class Node(Struct, gc=False):
    """An entry in the tree: the one that it follows, the latest row of the conversation, and the row of its own."""

    parent: str | None
    top: Row | None
    own: str | None
    gone: bool = False
    """It is abandoned."""
    branches: tuple[Branch, ...] = ()
    """Branches that left after it."""


class Branch(Struct):
    """An abandoned branch: its span, and how many spans and responses are in it."""

    row: Span
    spans: int = 0
    responses: int = 0


class Session(Conversation):
    """One session; see `tracetui.formats.jsonl.Session`."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.begin: Begin | None = None
        self.extent: Place | None = None
        self._head: bytes = b""
        self.original: str | None = None
        """Path of the session that this one comes from, as it was on the machine that wrote it."""
        self.forked: bool | None = None
        """Whether it begins with copies of that one's entries; None while no entry shows it."""
        self.copying = False
        self.copies = copies_of(file, None)
        self.created: float | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.chosen_model: str | None = None
        self.used_model: str | None = None
        self.prompt: str | None = None
        self.command: str | None = None
        """The first command that was recorded as a prompt."""
        self.title: str | None = None
        self.last_prompt: Content = None
        self.last_answer: Content = None
        """The last response that has text."""
        self.final: Assistant | None = None
        """The last response, if its stop reason is final and no message came after it."""
        self._final_id: str | None = None
        self._timed = self._stood = True
        self.nodes: dict[str, Node] = {}
        self.leaf: str | None = None
        self._moves_left = _FREE
        self._is_worn = False
        """There were so many returns to earlier entries that branches are not followed any more."""
        self._rows: dict[str, Span] = {}
        """Rows of the conversation by id."""
        self._branches: dict[str, Branch] = {}
        """Abandoned branches by the ids of their spans."""
        self._root_branches: list[Branch] = []
        """Branches that left before the first entry."""
        self._below: dict[str, list[Call]] = {}
        """Calls of a response by its id."""
        self._own: str | None = None

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        self.records += 1
        when = moment(record.timestamp)
        if self.begin is None and isinstance(record, Begin):
            self._start(record, when, line)
            return
        ident: str | None = record.id
        if not ident or ident in self.nodes:  # v1, or written twice
            ident = None
        else:
            parent = record.parent_id
            if parent is not UNSET and parent != self.leaf:
                self._follow(parent, ident, line)
        if when is not None:
            self._time(when)
        self._own, number = None, f"l{line.number}"
        record.take(self, self.ident_of(ident, number), when, line)
        if ident is not None:
            self.nodes[ident] = Node(self.leaf, self.top, self._own)
            self._moves_left += _EACH
            self.leaf = ident

    def _start(self, record: Begin, when: float | None, line: Line) -> None:
        """Take the first record, which is about the session as a whole."""
        self.begin, self.extent, self._head = record, line.place, line.data
        self.created = self.first = when
        self.original = record.parent_session or record.branched_from or None
        self.chosen_model = self.chosen_model or record.model_id or None
        if not self.skipped:
            self.copies = copies_of(self.file, self.original)

    def _time(self, when: float) -> None:
        """The next entry was written then (seconds since the epoch)."""
        created = self.created
        if self.forked is None:
            self.forked = self.copying = self.original is not None and created is not None and when < created
            if self.first is None or (when < self.first and not self.forked):  # v1 writes the first record late
                self.first = when
        elif self.copying and created is not None:
            self.copying = when < created
        self.last, self._timed = when, True

    def user_prompt(self, prompt: str) -> None:
        """Take a prompt or command of the user."""
        if _COMMAND.fullmatch(prompt[: PREVIEW + 1]):
            self.command = self.command or prompt[:PREVIEW]
        else:
            self.prompt = self.prompt or prompt[:PREVIEW]

    def go_on(self, final: Assistant | None = None, ident: str | None = None) -> None:
        """Take a message: a response with a final stop reason, or any other one."""
        self.final, self._final_id, self._stood = final, None if self.skipped else ident, True

    # ---- rows

    def ident_of(self, ident: str | None, other: str) -> str:
        """The id of a span: `ident`, or `other` if another span has that, or may come to have it."""
        if not ident or ident in self.nodes or ident in self.calls or ident.startswith(_OURS):
            return other
        return ident

    def add(self, span: Span) -> Span:
        """Give out a row of the conversation."""
        if self.copying:
            span = self.copied(span)
        self._own = span.id
        self._rows[span.id] = span
        self.put(span)
        return span

    def called(self, response: Span) -> None:
        """Remember the calls of a response."""
        if self.waiting:
            self._below[response.id] = list(self.waiting)

    def copied(self, span: Span) -> Span:
        """The span; the usage of a copy counts in the session that it was copied from, if that has it."""
        if not self.copying:
            return span
        if span.usage is None or span.id in self.copies:
            return replace(span, note=span.note or COPIED, usage=None)
        return replace(span, note=span.note or COUNTED_COPY)

    def counts_elsewhere(self, ident: str | None) -> bool:
        """Whether an entry was copied from another session that counts it."""
        return self.copying and ident in self.copies

    # ---- branches

    def _follow(self, parent: str | None, ident: str, line: Line) -> None:
        """Entry `ident` follows `parent` (None: nothing), which need not be the latest one."""
        if self._is_worn or (parent is not None and parent not in self.nodes):
            return
        left, back, fork = self._path(parent)
        self._moves_left -= len(left) + len(back)
        if self._moves_left < 0:
            self._is_worn = True
            self.problem(line, "too many returns to earlier entries: what this line abandons is not shown as abandoned")
        self.settle()
        self.notes = None
        if left:
            self._abandon(left, fork, ident)
        for one in back:
            self.nodes[one].gone = False
            for span in self._rows_at(one):
                self._move(span, None)
        self.leaf = parent
        self.top = None if parent is None else self.nodes[parent].top
        if self.top is not None:
            self.top = self._rows.get(self.top.id, self.top)

    def _path(self, to: str | None) -> tuple[list[str], list[str], str | None]:
        """Entries to abandon and to take up again, in order, and the last one that both branches have."""
        back: list[str] = []
        left: list[str] = []
        fork, at = to, self.leaf
        while fork is not None and self.nodes[fork].gone:
            back.append(fork)
            fork = self.nodes[fork].parent
        while at is not None and at != fork:
            left.append(at)
            at = self.nodes[at].parent
        return left[::-1], back[::-1], fork

    def _abandon(self, left: list[str], fork: str | None, follower: str) -> None:
        spans = [span for entry in left for span in self._rows_at(entry)]
        branch = self._branches.get(BRANCH + left[0])
        for entry in left:
            self.nodes[entry].gone = True
        if not spans:
            return
        if branch is None:
            asked = next((span.preview for span in spans if span.name == "user"), "")
            at = Made((("went_back_to", fork), ("went_on_with", follower)))
            branch = Branch(Span(id=BRANCH + left[0], name="abandoned branch", preview=asked, at=at))
            self._branches[branch.row.id] = branch
            if fork is None:
                self._root_branches.append(branch)
            else:
                node = self.nodes[fork]
                node.branches = (*node.branches, branch)
        for span in spans:
            self._move(span, branch.row.id)

    def _rows_at(self, entry: str) -> list[Span]:
        """The rows that an entry stands for: its own, and the branches that left after it."""
        node = self.nodes[entry]
        own = None if node.own is None else self._rows.get(node.own)
        return [*([] if own is None else [own]), *(branch.row for branch in node.branches)]

    def _move(self, span: Span, to: str | None) -> None:
        """Put a row into a branch, or back into the conversation, with the step numbers that follow from it."""
        is_response = span.operation is CHAT
        self._count(span.parent_id, -1, is_response=is_response)
        self._count(to, 1, is_response=is_response)
        branch = self._branches.get(span.id)
        if branch is not None:
            branch.row = replace(branch.row, parent_id=to)
            self.emit(branch.row)
            return
        note = span.note or ABANDONED if to is not None else "" if span.note == ABANDONED else span.note
        if is_response:
            self.steps += 1 if to is None else -1
        step = self.steps if is_response and to is None else None
        span = replace(span, parent_id=to, note=note, step=step, is_step=step is not None)
        self._rows[span.id] = span
        self.emit(span)
        for call in self._below.get(span.id, ()):
            if call.parent_id == span.id:
                call.step = step
                self.emit(call)

    def _count(self, ident: str | None, more: int, *, is_response: bool) -> None:
        """Add `more` rows to a branch."""
        branch = None if ident is None else self._branches.get(ident)
        if branch is None:
            return
        branch.spans += more
        branch.responses += more * is_response
        responses = "1 response" if branch.responses == 1 else f"{branch.responses} responses"
        branch.row = replace(branch.row, note=responses if branch.spans else "taken up again")
        self.emit(branch.row)

    # ---- the session as a whole

    @property
    def settled(self) -> bool:
        """No later record changes the summary of the beginning."""
        named = self.prompt is not None and self.used_model is not None
        return named and self.begin is not None and self.forked is not None

    @property
    def stands(self) -> bool:
        """The records since `skip` show the status of the session and its last time."""
        return self._timed and self._stood

    def skip(self, left_out: bytes) -> None:
        super().skip(left_out)
        self._timed = self._stood = False

    def header(self) -> Header:
        """The header."""
        begin, final, error = self.begin or Begin(), self.final, None
        status, _, failure = (None, None, None) if final is None else final.outcome()
        if final is not None and failure is not None:
            error = FirstError(failure.message, failure.type, self._final_id, final.model or "assistant", CHAT)
        cwd = begin.cwd or None
        original, path = original_of(self.file, self.original)
        return Header(
            id=begin.id or self.file.name.removesuffix(".jsonl"),
            name=folder_of(cwd) or AGENT,
            agent=AGENT,
            model=self.used_model or self.chosen_model,
            status=status,
            status_word=None if final is None else final.stop_reason,
            status_source=None if final is None else EXPLICIT,
            ended=final is not None,
            error=error,
            started_at=self.first,
            duration_ms=between(self.first, self.last) or None,
            replay_of=original if self.forked else None,
            replay_of_path=path if self.forked else None,
            relation="fork" if self.forked else None,
            parent=None if self.forked else original,
            prompt=self.prompt or self.command or "",
            source=cwd[:PREVIEW] if cwd is not None else None,
            writer=layout(begin.version),
            size=self.file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """The last messages, and the metadata."""
        attributes: dict[str, Any] = record_on(self._head) or {}
        if self.title is not None:
            attributes["session_info.name"] = self.title
        return RunBody(
            last_user=text_in(self.last_prompt).strip() or None,
            last_assistant=text_in(self.last_answer).strip() or None,
            attributes=attributes,
            extent=self.extent,
        )
