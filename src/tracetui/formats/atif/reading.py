"""Reading all trajectories of a run as one: what goes on elsewhere is put after it, sub-agents below their calls."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.atif.document import AGENTS, DEPTH, STEPS, Document, document
from tracetui.formats.atif.fields import At, declared_of, is_copied, total, unsaid
from tracetui.formats.atif.parts import CONTINUED, Folders
from tracetui.formats.atif.spans import AGENT, REF, Scope, answers_of, calls_of, refs_of, spans_of
from tracetui.formats.atif.trial import RESULT, has_trial, result_of
from tracetui.formats.atif.words import opening_of
from tracetui.formats.document import Whole, unchanged, whole
from tracetui.formats.scalars import mapping, sequence, word
from tracetui.formats.scalars import whole as whole_number
from tracetui.model import PREVIEW, Operation, Problem, Span, Status, StatusSource, Usage
from tracetui.sources.base import File, reason_of

MOST: Final = 1000
"""Files of one run."""


class Mark(msgspec.Struct, frozen=True):
    """All files of a run as they were read."""

    own: Whole
    parts: tuple[tuple[str, Whole | None], ...] = ()
    """Relative to the folder of the run's file; None for one that could not be read."""
    missing: tuple[tuple[str, str], ...] = ()
    """References to what was not there, and the files that they are in."""
    moving: bool = False
    """Somebody was writing them."""


class Told(msgspec.Struct):
    """What was read of one trajectory."""

    doc: Document
    path: str | None
    below: bool
    own: Usage = Usage()
    """What its steps used."""
    around: Usage = Usage()
    """The same with its sub-agents."""
    steps: int = 0
    copied: int = 0


class Within:
    """The sub-agents within a trajectory, by what refers to them."""

    def __init__(self, doc: Document) -> None:
        self._ids: dict[str, int] = {}
        self._sessions: dict[str, int | None] = {}
        for place, (ident, session) in enumerate(agent.ids for agent in doc.agents):
            if ident is not None:
                self._ids.setdefault(ident, place)
            if session is not None:
                self._sessions[session] = None if session in self._sessions else place

    def find(self, ref: dict[str, Any]) -> int | None:
        """The place of the one that is meant: by its own id, or where there is none by a session that is only its."""
        ident, session = word(ref.get("trajectory_id")), word(ref.get("session_id"))
        if ident is not None:
            return self._ids.get(ident)
        alone = session is not None and word(ref.get("trajectory_path")) is None
        return self._sessions.get(session or "") if alone else None


class Reading:
    """One read of all files of a run."""

    def __init__(self, file: File, data: bytes, *, placed: bool = True) -> None:
        """`placed`: the spans are to have bodies. Raises `FormatError` if the run's own file cannot be read."""
        self.doc, note = document(data, placed=placed)
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self.last: float | None = None
        """When the last step was."""
        self.told: list[Told] = []
        self._file, self._folders, self._placed = file, Folders(file), placed
        self._seen = {file.name}
        self._parts: dict[str, Whole | None] = {}
        self._missing: list[tuple[str, str]] = []
        self.result, told = result_of(file)
        """What is told of the trial that it is of."""
        if has_trial(file):
            self._parts[RESULT] = told
        self.size = len(data)
        """Bytes of all files."""
        self._agents = self._continued = 0
        if note:
            self.problems.append(Problem(file.path, "", f"read leniently: {note}"))
        self.declared = False
        """Something is known only from what a trajectory declares."""
        self.usage = self._trajectory(self.doc, Scope(lean=not placed), 0)
        """What all of them used."""

    def mark(self, own: Whole) -> Mark:
        """The cursor after this read."""
        return Mark(own, tuple(self._parts.items()), tuple(self._missing), self._file.moving)

    # ---- one trajectory

    def _trajectory(self, doc: Document, scope: Scope, depth: int) -> Usage:
        """Tell a trajectory and all in which it goes on; what they used, their sub-agents included."""
        used, steps, at = Usage(), 0, doc
        while True:
            told = Told(at, scope.path, scope.below)
            self.told.append(told)
            scope = replace(scope, model=word(mapping(at.root.get("agent")).get("model_name")) or scope.model)
            self._steps(told, scope, depth)
            used += self._used(told, used if counts_on(at, steps) else Usage())
            steps += told.steps
            ref = word(at.root.get(CONTINUED))
            found = None if ref is None else self._open(ref, scope.path, CONTINUED)
            if found is None:
                return used
            at, scope = found[0], self._continue(found[0], found[1], scope)

    def _used(self, told: Told, before: Usage) -> Usage:
        """What a trajectory used: the sum of its steps; where they do not say, what it declares without `before`."""
        declared = declared_of(told.doc.root.get("final_metrics"), before)
        missing = Usage() if declared is None else unsaid(declared, told.own)
        if not missing:
            return told.around
        self.declared = True
        used = missing + told.around
        return used if missing.cost_usd is None else replace(used, cost_usd=missing.cost_usd)

    def _continue(self, doc: Document, path: str, scope: Scope) -> Scope:
        """The row that says where a trajectory goes on."""
        self._continued += 1
        ident = f"cont-{self._continued}"
        row = Span(
            id=ident,
            name="continuation",
            operation=Operation.META,
            parent_id=scope.parent,
            status=Status.OK,
            status_source=StatusSource.DERIVED,
            preview=path[:PREVIEW],
            at=_at(doc, path),
        )
        self.spans.append(row)
        return replace(scope, prefix=f"{ident}/", path=path)

    def _steps(self, told: Told, scope: Scope, depth: int) -> None:
        doc, copied = told.doc, None
        self._odd(doc, scope)
        used: list[Usage] = []
        placed, within = set[int](), Within(doc)
        for place, record in enumerate(doc.steps):
            step = mapping(record.value)
            told.steps += 1
            if is_copied(step):
                told.copied += 1
                copied = copied or self._copied(doc, scope)
                self.spans += spans_of(record, place, replace(scope, parent=copied))
                continue
            made = spans_of(record, place, scope)
            when = made[0].started_at
            self.last = when if self.last is None or (when is not None and when > self.last) else self.last
            if made[0].usage is not None:
                used.append(made[0].usage)
            below = self._started(step, made[0].id, scope, within, placed)
            if not below:
                self.spans += made
                continue
            self.spans.append(made[0])
            for span in made[1:]:
                self.spans.append(span)
                told.around += self._refs(below.pop(span.id, []), span.id, doc, scope, depth)
            for ident, refs in below.items():
                told.around += self._refs(refs, ident, doc, scope, depth)
        for number, agent in enumerate(doc.agents):
            if number not in placed:
                told.around += self._agent(agent, scope.path, scope.parent, depth, "no call refers to it")
        told.own = total(used)
        told.around += told.own

    def _odd(self, doc: Document, scope: Scope) -> None:
        for name in (STEPS, AGENTS):
            if doc.root.get(name) is not None:
                self._problem(scope.path, name, "not read: not a list, or not of objects, or nested too deeply")
        odd = next((place for place, record in enumerate(doc.steps) if not isinstance(record.value, dict)), None)
        if odd is not None:
            self._problem(scope.path, f"steps[{odd}]", "not an object, shown as it is")

    def _copied(self, doc: Document, scope: Scope) -> str:
        """The row below which a trajectory's copies of earlier steps are."""
        count = sum(is_copied(mapping(record.value)) for record in doc.steps)
        ident = f"{scope.prefix}copied"
        row = Span(
            id=ident,
            name="copied context",
            operation=Operation.META,
            parent_id=scope.parent,
            status=Status.OK,
            status_source=StatusSource.DERIVED,
            note=f"{count} step{'s' if count > 1 else ''}",
            at=At(),
        )
        self.spans.append(row)
        return ident

    # ---- sub-agents

    def _started(
        self, step: dict[str, Any], ident: str, scope: Scope, within: Within, placed: set[int]
    ) -> dict[str, list[int | dict[str, Any]]]:
        """By the id of the span that refers to them: the places of sub-agents within, else what refers to files."""
        found: dict[str, list[int | dict[str, Any]]] = {}
        results = sequence(mapping(step.get("observation")).get("results"))
        if not any(isinstance(result, dict) and REF in result for result in results):
            return found
        answers, loose = answers_of(step)
        calls = {place: f"{ident}.{place + 1}" for place in range(len(calls_of(step)))}
        for name, results in [*((calls[place], results) for place, results in answers.items()), (ident, loose)]:
            for ref in (ref for result in results for ref in refs_of(result)):
                place = within.find(ref)
                if place is not None and place not in placed:
                    placed.add(place)
                    found.setdefault(name, []).append(place)
                elif place is None and word(ref.get("trajectory_path")) is not None:
                    found.setdefault(name, []).append(ref)
                elif place is None and (lost := word(ref.get("trajectory_id"))) is not None:
                    self._problem(scope.path, f"step {name}", f"there is no trajectory {lost[:PREVIEW]!r} within it")
        return found

    def _refs(self, refs: list[int | dict[str, Any]], parent: str, doc: Document, scope: Scope, depth: int) -> Usage:
        used = Usage()
        if depth >= DEPTH and refs:
            self._problem(scope.path, f"step {parent}", "sub-agents of sub-agents are read no deeper")
            return used
        for ref in refs:
            if isinstance(ref, int):
                used += self._agent(doc.agents[ref], scope.path, parent, depth)
                continue
            found = self._open(ref["trajectory_path"], scope.path, f"step {parent}")
            if found is not None:
                used += self._agent(found[0], found[1], parent, depth)
        return used

    def _agent(self, doc: Document, path: str | None, parent: str | None, depth: int, note: str = "") -> Usage:
        """A sub-agent, its own steps below it."""
        self._agents += 1
        ident, place = f"agent-{self._agents}", len(self.spans)
        opening = opening_of(record.value for record in doc.steps)
        span = Span(
            id=ident,
            name=(word(mapping(doc.root.get("agent")).get("name")) or AGENT)[:PREVIEW],
            operation=Operation.INVOKE_AGENT,
            parent_id=parent,
            status=Status.OK if doc.steps else Status.UNKNOWN,
            status_source=StatusSource.DERIVED,
            started_at=opening.started_at,
            preview=opening.prompt[:PREVIEW],
            note=note,
            at=_at(doc, path),
        )
        self.spans.append(span)
        used = self._trajectory(doc, Scope(f"{ident}/", ident, path, below=True, lean=not self._placed), depth + 1)
        self.spans[place] = replace(span, usage=used or None)
        return used

    # ---- files

    def _open(self, ref: str, path: str | None, where: str) -> tuple[Document, str] | None:
        """The trajectory in the file that `ref` means, and its path; None, and a problem, where there is none."""
        own = path or self._file.name
        found = self._folders.find(ref, own)
        if found is None:
            self._missing.append((ref, own))
            self._problem(path, where, f"{ref[:PREVIEW]!r} is missing: no such file is beside the trajectory")
            return None
        if found in self._seen or len(self._seen) >= MOST:
            if found != path and len(self._seen) >= MOST:
                self._problem(path, where, f"{ref[:PREVIEW]!r} is not read: the run is in too many files")
            return None
        self._seen.add(found)
        self._parts[found] = None
        try:
            with self._file.other(found) as other:
                self._file.other(found, other.stat)  # the run moves while a part of it does
                data = other.read_all()
                self._parts[found] = whole(other, data)
                self.size += len(data)
            doc, note = document(data, placed=self._placed)
        except (OSError, FormatError) as error:
            self._problem(found, getattr(error, "where", ""), getattr(error, "reason", "") or reason_of(error))
            return None
        if note:
            self._problem(found, "", f"read leniently: {note}")
        return doc, found

    def _problem(self, path: str | None, where: str, reason: str) -> None:
        place = f"{path}: {where}" if path and where else path or where
        self.problems.append(Problem(self._file.path, place, reason))


def read_again(file: File, mark: Mark) -> Mark | None:
    """The cursor to go on with if no file of the run has changed, None if they must be read again."""
    own = unchanged(file, mark.own)
    folders = Folders(file)
    if own is None or any(folders.find(ref, path) is not None for ref, path in mark.missing):
        return None
    parts: list[tuple[str, Whole | None]] = []
    for path, before in mark.parts:
        try:
            with file.other(path) as other:
                file.other(path, other.stat)
                now = unchanged(other, before)
        except OSError:
            now = None
            if before is None:  # still not to be read
                parts.append((path, None))
                continue
        if now is None:
            return None
        parts.append((path, now))
    return Mark(own, tuple(parts), mark.missing, file.moving)


def counts_on(doc: Document, steps: int) -> bool:
    """Whether what a trajectory declares is that of all files so far, before which there were so many steps."""
    said = whole_number(mapping(doc.root.get("final_metrics")).get("total_steps"))
    return steps > 0 and said == steps + len(doc.steps)


def _at(doc: Document, path: str | None) -> At:
    """Where a whole trajectory is told."""
    return At(doc.whole.place, doc.whole.value, path, whole=True)
