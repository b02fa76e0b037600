"""The diff of two steps as sections: messages, values and statuses. Nothing is truncated.

Pure: a worker computes it, and `tracetui.views.diff.text` renders it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from tracetui.analysis.values import lookalike_note, value_text
from tracetui.diff.align import Hunk, Piece, TextDiff, text_diff
from tracetui.diff.comparison import Diff, Divergence, Row
from tracetui.diff.step import ContextDiff, Difference, Kind, MessageChange, MessagePair, StateDiff, message_pairs
from tracetui.diff.values import INPUT, OUTPUT, STATUS, Change, equal
from tracetui.masking import one_line
from tracetui.model import Body, Message, Part, Reasoning, Text, ToolCall, ToolResult
from tracetui.store.address import span_title
from tracetui.text import Clean

KIND_LABELS: Final = {
    Kind.SAME: "same",
    Kind.INPUT: "input≠",
    Kind.OUTPUT: "output≠",
    Kind.STATUS: "status≠",
    Kind.ONLY_A: "only A",
    Kind.ONLY_B: "only B",
    Kind.MOVED: "moved",
}
"""Labels of the row kinds."""


# ---- locations


def step_label(diff: Diff, row: Row) -> Clean:
    """The step of a row: ``step 4 search``."""
    span = diff.span_b(row) or diff.span_a(row)
    if span is None:
        return Clean("")
    return one_line(span_title(diff.a if row.b is None else diff.b, span), 80)


def difference_label(diff: Diff, first: Divergence, description: str = "") -> Clean:
    """The first difference, in `words` if they are known: ``step 4 gpt-4o · system prompt changed``."""
    path = f" {one_line(first.path, 80)}" if first.path else ""
    return Clean(f"{step_label(diff, diff.rows[first.row])} · {description or f'{KIND_LABELS[first.kind]}{path}'}")


CHANGES: Final = "changes"
CONTEXT: Final = "context"
PREVIOUS: Final = "previous call"
STATE: Final = "state"

Texts = tuple[str | None, str | None]
"""The texts of A and of B; None on the side without one."""


class Sign(StrEnum):
    """The change of a message or value."""

    SAME = "same"
    EDITED = "edited"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"


_CHANGE_SIGNS: Final = {
    MessageChange.KEPT: Sign.SAME,
    MessageChange.NEW: Sign.ADDED,
    MessageChange.DROPPED: Sign.REMOVED,
    MessageChange.EDITED: Sign.EDITED,
    MessageChange.MOVED: Sign.MOVED,
}
_SIGNS: Final = {"added": Sign.ADDED, "removed": Sign.REMOVED, "changed": Sign.EDITED}
_IN_MESSAGE: Final = re.compile(r"(?:messages|input_context)?\[(\d+)\]")
CACHE_BREAK: Final = "prompt cache breaks here"
NOISE: Final = "only ignored differences"


class Section:
    """A message or value of A beside that of B. The texts are compared on first access."""

    def __init__(
        self, sign: Sign, label: str, texts: Callable[[], Texts], *, path: str = "", side: str = "", note: str = ""
    ) -> None:
        self.sign, self.label, self.side, self.note = sign, label, side, note
        self.path = path or label
        self.texts = texts

    @cached_property
    def compared(self) -> TextDiff:
        """All lines of both texts."""
        a, b = self.texts()
        if a is None or b is None:
            lines = tuple((Piece(line, True),) for line in ((a if b is None else b) or "").split("\n"))
            sides = (lines, ()) if b is None else ((), lines)
            return TextDiff([Hunk(False, 0, 0, *sides)] if (a, b) != (None, None) else [])
        return text_diff(a, b)

    @property
    def differs(self) -> bool:
        """Whether the texts differ."""
        return self.sign is not Sign.SAME


class Look(msgspec.Struct, frozen=True):
    """The diff of two steps, contexts or states."""

    tab: str
    tabs: tuple[str, ...]
    """The tabs with content."""
    sections: tuple[Section, ...] = ()
    context: ContextDiff | None = None
    """The diff of the messages, on a tab about messages."""
    about: str = ""
    """A description, if the tab isn't enough; not cleaned."""
    notes: tuple[str, ...] = ()
    """Caveats, as sentences; not cleaned."""
    sides: tuple[str, str] = ("A", "B")
    """Labels of both sides; not cleaned."""

    @property
    def bounded(self) -> bool:
        """Whether a text was too large for a minimal diff."""
        return any(section.compared.bounded for section in self.sections if section.differs)


# ---- one pair of steps


def step_sections(a: Body | None, b: Body | None, difference: Difference, *, raw: bool = False) -> list[Section]:
    """Everything that differs between two steps, with context. For a step of one run only, everything.

    `raw`: values as recorded instead of messages.
    """
    if raw:
        a, b = (None if body is None else _without_messages(body) for body in (a, b))
    if a is None or b is None:
        return list(_one_sided(a, b))
    input_changes = _by_side(difference.changes, INPUT)
    output_changes = _by_side(difference.changes, OUTPUT)
    ended = [change for change in difference.changes if change not in input_changes and change not in output_changes]
    sections = [*_side(INPUT, (a.input, b.input), (a.input_messages, b.input_messages), input_changes)]
    sections += _side(OUTPUT, (a.output, b.output), (a.output_messages, b.output_messages), output_changes)
    return sections + [_changed(change) for change in ended]


def _without_messages(body: Body) -> Body:
    """A body with values as recorded; messages only where nothing else is recorded."""
    input_messages = body.input_messages if body.input is None else ()
    output_messages = body.output_messages if body.output is None else ()
    return replace(body, input_messages=input_messages, output_messages=output_messages)


def _by_side(changes: Iterable[Change], side: str) -> list[Change]:
    return [change for change in changes if change.side == side]


def _side(
    side: str, values: tuple[Any, Any], messages: tuple[Sequence[Message], Sequence[Message]], changes: list[Change]
) -> list[Section]:
    """The input or the output side: by messages if any, else by values."""
    inside = [change for change in changes if _message_of(change) is not None]
    others = [_changed(change) for change in changes if change not in inside]
    if (all(messages) or inside) and (inside or side == INPUT or values == (None, None)):
        places = {_message_of(change) for change in inside}
        by_message = message_sections(*messages, side=side, differing=places if inside or not others else None)
        seen = {section.path for section in by_message if section.differs}
        others += [_changed(change) for change in inside if not seen.intersection(_messages(change))]  # call ids
        if not inside and any(section.differs for section in by_message):
            by_message = [_quiet(section) for section in by_message]
        first_inside = bool(inside) and changes[0] is inside[0]
        return [*by_message, *others] if first_inside else [*others, *by_message]
    sections = [_changed(change) for change in changes]
    a, b = values
    if not sections and values != (None, None):
        note = "" if equal(*values) else NOISE
        if a is None or b is None:  # some traces don't record the input of a failed step
            note, values = f"not recorded in {'A' if a is None else 'B'}", (b if a is None else a,) * 2
        texts = partial(_both_texts, *values)
        sections.append(Section(Sign.SAME, side, texts, side=side, note=note))
    return sections


def _both_texts(a: Any, b: Any) -> Texts:
    return text_of_value(a), text_of_value(b)


def _message_of(change: Change) -> str | None:
    """The message of a change: its path in B, else in A."""
    match = _IN_MESSAGE.match(change.path)
    return match.group(1) + ("" if change.path_b is not None else "a") if match else None


def _messages(change: Change) -> list[str]:
    """The paths of the message of a change, in A and in B."""
    matches = (_IN_MESSAGE.match(path) for path in (change.path_a, change.path_b) if path is not None)
    return [f"messages[{match.group(1)}]" for match in matches if match is not None]


def _quiet(section: Section) -> Section:
    """A message with only ignored differences."""
    if not section.differs:
        return section
    return Section(Sign.SAME, section.label, section.texts, path=section.path, side=section.side, note=NOISE)


def _changed(change: Change) -> Section:
    note = f"was {change.path_a}" if change.path_a and change.path_b and change.path_a != change.path_b else ""
    if change.path_a is not None and change.path_b is not None:
        note = " · ".join(filter(None, (note, lookalike_note(change.a, change.b))))
    if change.noise:
        note = f"{note} · usually ignored: {change.noise}".removeprefix(" · ")
    sign = Sign.EDITED if change.path_a is None and change.path_b is None else _SIGNS[change.word]
    is_whole = not change.path or change.side == STATUS
    if sign is Sign.EDITED and is_whole and (change.a is None or change.b is None):
        sign = Sign.ADDED if change.a is None else Sign.REMOVED  # not recorded on the other side

    def texts() -> Texts:
        a = None if sign is Sign.ADDED else text_of_value(change.a)
        return a, None if sign is Sign.REMOVED else text_of_value(change.b)

    return Section(sign, change.path or change.side, texts, side=change.side, note=note)


def _one_sided(a: Body | None, b: Body | None) -> Iterator[Section]:
    """Everything about a step of one run only."""
    body = a if a is not None else b
    if body is None:
        return
    sign = Sign.REMOVED if b is None else Sign.ADDED

    def section(label: str, side: str, text: Callable[[], str]) -> Section:
        return Section(sign, label, lambda: (text(), None) if b is None else (None, text()), side=side)

    for side, value, messages in (
        (INPUT, body.input, body.input_messages),
        (OUTPUT, body.output, body.output_messages),
    ):
        if messages:
            for i, message in enumerate(messages):
                yield section(_label(i, message), side, lambda message=message: text_of_message(message))  # type: ignore[misc]
        elif isinstance(value, dict):
            for name, item in value.items():
                yield section(str(name), side, lambda item=item: text_of_value(item))  # type: ignore[misc]
        elif value is not None:
            yield section(side, side, lambda value=value: text_of_value(value))  # type: ignore[misc]


# ---- messages


def message_sections(
    a: Sequence[Message],
    b: Sequence[Message],
    *,
    side: str = INPUT,
    differing: set[str | None] | None = None,
    pairs: Sequence[MessagePair] | None = None,
    break_at: int | None = None,
) -> list[Section]:
    """A section per message of either side. An edited message that is not among `differing` (positions in B, if given)
    has only ignored differences. From position `break_at` of B on, nothing is reusable from a cache.
    """
    sections: list[Section] = []
    for pair in message_pairs(a, b) if pairs is None else pairs:
        left = None if pair.a is None else a[pair.a]
        right = None if pair.b is None else b[pair.b]
        sign = _CHANGE_SIGNS[pair.change]
        note = ""
        if sign is Sign.EDITED and differing is not None and str(pair.b) not in differing:
            sign, note = Sign.SAME, NOISE
        elif pair.a is not None and pair.b is not None and pair.a != pair.b and sign is not Sign.SAME:
            note = f"was messages[{pair.a}]"
        if sign is Sign.EDITED and left is not None and right is not None:
            before, after = text_of_message(left), text_of_message(right)
            note = " · ".join(filter(None, (note, lookalike_note(before, after) if before != after else "")))
        if break_at is not None and break_at == pair.b:
            note, break_at = f"{note} · {CACHE_BREAK}".removeprefix(" · "), None
        place, message = (pair.b, right) if right is not None else (pair.a, left)
        assert place is not None
        assert message is not None
        texts = _texts_of(left, right)
        sections.append(Section(sign, _label(place, message), texts, path=f"messages[{place}]", side=side, note=note))
    return sections


def _texts_of(left: Message | None, right: Message | None) -> Callable[[], Texts]:
    return lambda: (None if left is None else text_of_message(left), None if right is None else text_of_message(right))


def _label(place: int, message: Message) -> str:
    named = f" ({message.name})" if message.name else ""
    return f"messages[{place}] {message.role}{named}"


def text_of_message(message: Message) -> str:
    """The whole text of a message; not cleaned."""
    return "\n".join(map(_text_of_part, message.parts))


def _text_of_part(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Reasoning):
        return f"(thought) {part.text}"
    if isinstance(part, ToolCall):
        return f"→ {part.name} {text_of_value(part.arguments)}"
    if isinstance(part, ToolResult):
        head = " ".join(filter(None, (part.name, "→", "(error)" if part.is_error else "")))
        return f"{head} {text_of_value(part.content)}"
    return f"[{part.kind}] {text_of_value(part.data)}"


def context_sections(a: Sequence[Message], b: Sequence[Message], difference: ContextDiff) -> list[Section]:
    """The messages of two model calls, with a note where the prompt cache breaks."""
    return message_sections(a, b, pairs=difference.pairs, break_at=difference.break_at)


# ---- state


def state_sections(difference: StateDiff) -> list[Section]:
    """The values of the accumulated state: changed ones first."""
    sections = [_changed(replace(change, side="")) for change in difference.changes]
    left, right = difference.a or {}, difference.b or {}
    for name in left:
        if name in right and equal(left[name], right[name]):
            value = left[name]
            sections.append(Section(Sign.SAME, str(name), lambda value=value: (text_of_value(value),) * 2))  # type: ignore[misc]
    return sections


def text_of_value(value: Any) -> str:
    """A text unchanged, any other value as indented JSON; not cleaned."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, default=repr, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        return value_text(value)
