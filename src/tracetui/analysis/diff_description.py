"""The changes of a comparison in words: ``system prompt changed``, ``3 outputs differ``, ``search called with another
query``. The app, commands, exports and MCP use the same words.

Names are those of messages, tools and fields; every text of a trace is masked, cleaned and cut to one line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from tracetui.analysis.values import lookalike_note, value_text
from tracetui.diff.align import Piece, text_diff
from tracetui.diff.comparison import Diff, Row
from tracetui.diff.noise import ENVELOPE
from tracetui.diff.step import Difference, Kind, MessageChange, MessagePair, answer_text, message_pairs
from tracetui.diff.values import INPUT, OUTPUT, STATUS, Change, encode_without_noise
from tracetui.masking import one_line
from tracetui.model import Body, Message, Operation, RunSummary, Span, Status, Text, ToolCall, ToolResult
from tracetui.redact import MASK
from tracetui.store.address import step_number
from tracetui.text import Clean, count, grouped, quantity, truncate

Changes = Callable[[Row], Difference]
"""The differences of a row as messages (`Comparison.messages`)."""

MAX_ROWS: Final = 200
"""Differing rows that are described; later ones are counted."""
MAX_PHRASES: Final = 100
_MAX_TEXT: Final = 100_000
"""Characters of the texts whose changed words are shown."""
_QUOTE: Final = 60
_LONG_QUOTE: Final = 240
"""Cells of a quoted text, and of one that is the only quote of its phrase."""
_NAME: Final = 40
_SEGMENT: Final = re.compile(r"[^.\[\]]+")
_MESSAGE: Final = re.compile(r"messages\[(\d+)\]")
_MASKED: Final = re.compile(r"[•*]{8}(?: \(secret (\d+)\))?")
NOUNS: Final = {
    "system": "system prompt",
    "developer": "system prompt",
    "user": "user message",
    "assistant": "assistant message",
    "tool": "tool result",
}


_WORD_END: Final = re.compile(r"\S{0,40}\Z")
_WORD_START: Final = re.compile(r"[^\s.,;:!?)]{0,40}")
_PLAIN_FIELDS: Final = frozenset({"output", "content", "text", "result", "stdout"})
"""Fields whose name adds nothing to a detail."""


class Phrase(msgspec.Struct, frozen=True):
    """A change in words, and the rows of the comparison that have it."""

    kind: Kind
    singular: Clean
    """For one step: ``output differs``."""
    plural: Clean = Clean("")
    """For several steps, without their number: ``outputs differ``; empty if it is the same change in all."""
    detail: Clean = Clean("")
    """What changed in the first of the rows: ``“2023” → “2024”``."""
    rows: tuple[int, ...] = ()
    """Indices of rows; empty for a difference of the runs."""

    @property
    def text(self) -> Clean:
        """The change: ``3 outputs differ``."""
        return (
            Clean(f"{grouped(len(self.rows))} {self.plural}") if self.plural and len(self.rows) > 1 else self.singular
        )


class DiffDescription(msgspec.Struct, frozen=True):
    """A comparison in words, the first difference first."""

    phrases: tuple[Phrase, ...] = ()
    following: int = 0
    """Differing rows that follow from the first difference and aren't described."""
    rest: int = 0
    """Other differing rows that aren't described."""

    @property
    def first(self) -> Clean:
        """The first difference: ``system prompt changed``; empty if there is none."""
        return self.phrases[0].text if self.phrases else Clean("")

    def of_row(self, index: int) -> Clean:
        """The changes of a row."""
        return Clean(", ".join(phrase.singular for phrase in self.phrases if index in phrase.rows))


def describe(diff: Diff, changes: Changes) -> DiffDescription:
    """Describe a comparison, up to `MAX_ROWS` differing rows; a comparison in progress as far as it has come."""
    phrases: dict[tuple[Kind, Clean], Phrase] = {}
    following = rest = 0
    for number, index in enumerate(_differing(diff)):
        row = diff.rows[index]
        described = list(_row_phrases(diff, row, changes)) if number < MAX_ROWS else []
        for phrase in described:
            key = (phrase.kind, phrase.plural or phrase.singular)
            before = phrases.get(key)
            if before is None and len(phrases) < MAX_PHRASES:
                phrases[key] = replace(phrase, rows=(index,))
            elif before is not None and index not in before.rows:
                phrases[key] = replace(before, rows=(*before.rows, index), detail=before.detail or phrase.detail)
        following += not described and row.downstream
        rest += not described and not row.downstream
    ends = list(_ends(diff)) if diff.complete else []
    return DiffDescription((*phrases.values(), *ends), following, rest)


def ignored_counts(diff: Diff) -> list[Clean]:
    """The ignored differences by kind, with the names of the envelope fields: ``envelope 3 (version, userType)``."""
    fields = ", ".join(one_line(name, _NAME) for name in diff.envelope[:8])
    return [
        Clean(f"{kind} {grouped(number)}{f' ({fields})' if kind == ENVELOPE and fields else ''}")
        for kind, number in diff.ignored.items()
    ]


def rest_lines(description: DiffDescription) -> list[Clean]:
    """The numbers of differing steps that aren't described."""
    lines = (
        [Clean(f"{quantity(description.following, 'later step')} differ as a consequence")]
        if description.following
        else []
    )
    return lines + ([Clean(f"{quantity(description.rest, 'other step')} differ")] if description.rest else [])


def phrase_steps(diff: Diff, phrase: Phrase) -> Clean:
    """The steps of a phrase: ``step 4, 10``; those of B, else of A. Empty if none has a number."""
    numbers = dict.fromkeys(number for index in phrase.rows if (number := _number(diff, diff.rows[index])) is not None)
    if not numbers:
        return Clean("")
    first = ", ".join(map(str, [*numbers][:3]))
    return Clean(f"step {first}{', …' if len(numbers) > 3 else ''}")


def _number(diff: Diff, row: Row) -> int | None:
    span = diff.span_b(row) or diff.span_a(row)
    return None if span is None else step_number(diff.a if row.b is None else diff.b, span)


def _differing(diff: Diff) -> Iterator[int]:
    """Rows with significant differences (strict: all), the first difference first."""
    first = None if diff.first is None or diff.same else diff.first.row
    if first is None:
        return
    yield first
    for index, row in enumerate(diff.rows[: diff.compared]):
        if index != first and row.kind is not Kind.SAME and (diff.strict or not row.noise):
            yield index


# ---- one row


def _row_phrases(diff: Diff, row: Row, changes: Changes) -> Iterator[Phrase]:
    a, b = diff.span_a(row), diff.span_b(row)
    if a is None or b is None:
        span = b if a is None else a
        if span is not None:
            yield _one_sided(span, row.kind)
        return
    if row.kind is Kind.MOVED:
        yield Phrase(Kind.MOVED, Clean(f"{_name(b)} moved"))
        return
    difference = changes(row)
    bodies = diff.a.load(a), diff.b.load(b)
    own_changes = difference.changes if diff.strict else difference.significant
    for side in (INPUT, OUTPUT, STATUS):
        own = [change for change in own_changes if change.side == side]
        if not own or (side == INPUT and row.downstream and b.operation is Operation.CHAT):
            continue  # the input of a later model call contains the earlier changes
        if side == STATUS:
            yield _status(a, b, own)
        elif side == INPUT:
            yield from _inputs(a, b, *bodies, own)
        else:
            yield from _outputs(b, *bodies, own)


def _one_sided(span: Span, kind: Kind) -> Phrase:
    side = "A" if kind is Kind.ONLY_A else "B"
    preview = one_line(span.preview, 80) if span.preview else Clean("")
    if span.operation is Operation.CHAT:
        return Phrase(kind, Clean(f"model call only in {side}"), Clean(f"model calls only in {side}"), preview)
    if span.operation is Operation.EXECUTE_TOOL:
        name = _name(span)
        return Phrase(kind, Clean(f"{name} called only in {side}"), Clean(f"{name} calls only in {side}"), preview)
    name, message = _name(span), span.operation is Operation.MESSAGE
    singular, plural = (f"{name} message", f"{name} messages") if message else (name, f"{name} steps")
    return Phrase(kind, Clean(f"{singular} only in {side}"), Clean(f"{plural} only in {side}"), preview)


def _name(span: Span) -> Clean:
    return one_line(span.name or "(no name)", _NAME)


def _status(a: Span, b: Span, changes: Sequence[Change]) -> Phrase:
    name = Clean("model call") if b.operation is Operation.CHAT else _name(b)
    failed = [span.status is Status.ERROR for span in (a, b)]
    if failed[0] != failed[1]:
        side = "B" if failed[1] else "A"
        error = (b if failed[1] else a).error
        sentence = f"{name} failed only in {side}"
        return Phrase(Kind.STATUS, Clean(sentence), detail=Clean("") if error is None else one_line(error.text, 120))
    noun = "error" if all(failed) else "status"
    return Phrase(Kind.STATUS, Clean(f"{noun} of {name} differs"), detail=_values(changes[0]))


def _inputs(a: Span, b: Span, body_a: Body, body_b: Body, changes: Sequence[Change]) -> Iterator[Phrase]:
    inside, others = _split(changes)
    if inside:
        yield from _message_phrases(body_a.input_messages, body_b.input_messages, inside, b)
    if b.operation is Operation.EXECUTE_TOOL and others:
        if a.name != b.name:
            yield Phrase(Kind.INPUT, Clean(f"{_name(b)} called instead of {_name(a)}"))
            return
        sentence = f"{_name(b)} called with {_others([_field(change.path) for change in others])}"
        yield Phrase(Kind.INPUT, Clean(sentence), detail=_values(others[0]))
        return
    for field, change in _by_field(others).items():
        noun = "user message" if b.operation is Operation.MESSAGE else f"input of {_name(b)}"
        sentence = f"{noun} changed" if not field or field in (INPUT, "content", "message") else f"{field} changed"
        yield Phrase(Kind.INPUT, Clean(sentence), detail=_values(change))


def _others(fields: Sequence[str]) -> str:
    """The changed arguments: ``another query``."""
    names = [field for field in dict.fromkeys(fields) if field]
    if len(names) == 1:
        return f"another {names[0]}"
    return f"other {' and '.join(names)}" if len(names) == 2 else "other arguments"


def _outputs(b: Span, body_a: Body, body_b: Body, changes: Sequence[Change]) -> Iterator[Phrase]:
    inside, others = _split(changes)
    missing = [not body.output_messages and body.output is None for body in (body_a, body_b)]
    if missing[0] != missing[1]:
        noun = "output" if b.operation is Operation.CHAT else "result" if b.operation is Operation.EXECUTE_TOOL else ""
        noun = noun if b.operation is Operation.CHAT else f"{noun or 'output'} of {_name(b)}"
        body = body_b if missing[0] else body_a
        text = answer_text(body) or value_text(body.output)
        yield Phrase(
            Kind.OUTPUT, Clean(f"no {noun} in {'A' if missing[0] else 'B'}"), detail=_quoted(text, _LONG_QUOTE)
        )
        return
    if inside and all((body_a.output_messages, body_b.output_messages)):
        yield from _answer_phrases(body_a, body_b, inside)
    elif inside:
        others = [*inside, *others]
    name = _name(b)
    tool = b.operation is Operation.EXECUTE_TOOL
    singular, plural = (f"result of {name} differs", f"results of {name} differ")
    if b.operation is Operation.CHAT:
        singular, plural = "output differs", "outputs differ"
    elif not tool:
        singular, plural = f"output of {name} differs", f"outputs of {name} differ"
    for field, change in _by_field(others).items():
        recorded = not tool and change.path.partition(".")[0].partition("[")[0] in body_b.attributes
        if change.path == "decision":
            yield Phrase(Kind.OUTPUT, Clean(f"{name} decided otherwise"), detail=_values(change))
        elif recorded or (b.operation is Operation.CHAT and field and not inside and field not in _PLAIN_FIELDS):
            yield Phrase(Kind.OUTPUT, Clean(f"{field} changed"), detail=_values(change))
        elif b.operation is not Operation.CHAT or not inside:
            label = f"{field}: " if field and field not in _PLAIN_FIELDS else ""
            yield Phrase(Kind.OUTPUT, Clean(singular), Clean(plural), Clean(f"{label}{_values(change)}"))
            return


def _split(changes: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    """Changes inside messages, and others."""
    inside = [change for change in changes if _MESSAGE.match(change.path)]
    return inside, [change for change in changes if change not in inside]


def _by_field(changes: Sequence[Change]) -> dict[Clean, Change]:
    """The first change of each field."""
    fields: dict[Clean, Change] = {}
    for change in changes:
        fields.setdefault(_field(change.path), change)
    return fields


def _field(path: str) -> Clean:
    """The last field name of a path: ``query`` of ``arguments.queries[0].query``."""
    names = [name for name in _SEGMENT.findall(path[:1_000]) if not name.isdecimal()]
    return one_line(names[-1].removesuffix(" (end)").strip('"'), _NAME) if names else Clean("")


# ---- messages


def _message_phrases(
    a: Sequence[Message], b: Sequence[Message], changes: Sequence[Change], span: Span
) -> Iterator[Phrase]:
    """The messages of an input: changed, added, removed."""
    places = {match.group(1) for change in changes if (match := _MESSAGE.match(change.path))}
    new: list[Message] = []
    removed: list[Message] = []
    moved = False
    for pair in _replaced(message_pairs(a, b), a, b):
        left, right = (None if pair.a is None else a[pair.a]), (None if pair.b is None else b[pair.b])
        if left is not None and right is not None:
            moved |= pair.change is MessageChange.MOVED
            if pair.change is MessageChange.EDITED and str(pair.b) in places:
                sentence = Clean(f"{_noun(right)} changed")
                yield Phrase(Kind.INPUT, sentence, detail=text_change(_text(left), _text(right)))
        elif right is not None:
            new.append(right)
        elif left is not None:
            removed.append(left)
    for messages, more, verb in ((new, "more", "added"), (removed, "fewer", "removed")):
        prompts = [message for message in messages if _noun(message) == "system prompt"]
        rest = [message for message in messages if message not in prompts]
        if prompts:
            yield Phrase(Kind.INPUT, Clean(f"system prompt {verb}"), detail=_quoted(_text(prompts[0]), _LONG_QUOTE))
        if rest:
            number = "one message" if len(rest) == 1 else quantity(len(rest), "message")
            yield Phrase(Kind.INPUT, Clean(f"{number} {more}"), detail=_quoted(_text(rest[0]), _LONG_QUOTE))
    if moved:
        yield Phrase(Kind.INPUT, Clean("messages in another order"))


def _replaced(pairs: Sequence[MessagePair], a: Sequence[Message], b: Sequence[Message]) -> Iterator[MessagePair]:
    """Pair the only dropped message of a role with the only new one: all of it was edited."""
    removed = Counter(_noun(a[pair.a]) for pair in pairs if pair.a is not None and pair.b is None)
    new = Counter(_noun(b[pair.b]) for pair in pairs if pair.b is not None and pair.a is None)
    single = {noun for noun in removed if removed[noun] == 1 == new[noun]}
    dropped = {_noun(a[pair.a]): pair.a for pair in pairs if pair.a is not None and pair.b is None}
    for pair in pairs:
        if pair.b is None and pair.a is not None and _noun(a[pair.a]) in single:
            continue
        if pair.a is None and pair.b is not None and (noun := _noun(b[pair.b])) in single:
            pair = MessagePair(MessageChange.EDITED, dropped[noun], pair.b)
        yield pair


def _noun(message: Message) -> str:
    if message.parts and all(isinstance(part, ToolResult) for part in message.parts):
        return "tool result"
    return NOUNS.get(message.role) or one_line(f"{message.role} message", _NAME)


def _text(message: Message) -> str:
    """The text of a message, else its calls or results."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    texts += [value_text(part.content) for part in message.parts if isinstance(part, ToolResult)]
    return "\n".join(texts) or "\n".join(f"{call.name} {value_text(call.arguments)}" for call in _calls([message]))


def _answer_phrases(a: Body, b: Body, changes: Sequence[Change]) -> Iterator[Phrase]:
    """The answer of a model: its calls, then its text."""
    left, right = _calls(a.output_messages), _calls(b.output_messages)
    names = Counter(call.name for call in left), Counter(call.name for call in right)
    removed, new = [*(names[0] - names[1])], [*(names[1] - names[0])]
    listed = [", ".join(one_line(name, _NAME) for name in group[:3]) for group in (removed, new)]
    if removed and new:
        yield Phrase(Kind.OUTPUT, Clean(f"model calls {listed[1]} instead of {listed[0]}"))
    elif removed or new:
        yield Phrase(Kind.OUTPUT, Clean(f"model {'also calls' if new else 'does not call'} {listed[bool(new)]}"))
    else:
        yield from _called_otherwise(left, right)
    texts = answer_text(a), answer_text(b)
    if texts[0].strip() != texts[1].strip():
        yield Phrase(Kind.OUTPUT, Clean("output differs"), Clean("outputs differ"), text_change(*texts))
    elif left == right or not left:
        yield Phrase(Kind.OUTPUT, Clean("output differs"), Clean("outputs differ"), _values(changes[0]))


def _called_otherwise(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> Iterator[Phrase]:
    """Calls of the same tools with other arguments."""
    for call_a, call_b in zip(left, right, strict=False):
        a, b = call_a.arguments, call_b.arguments
        if call_a.name != call_b.name:
            yield Phrase(Kind.OUTPUT, Clean("model calls its tools in another order"))
            return
        if not (isinstance(a, dict) and isinstance(b, dict)):
            a, b = {"": a}, {"": b}
        fields = [
            name
            for name in dict.fromkeys([*a, *b])
            if encode_without_noise({name: a.get(name)}) != encode_without_noise({name: b.get(name)})
        ]
        if fields:
            others = _others([one_line(str(name), _NAME) for name in fields])
            detail = text_change(value_text(a.get(fields[0])), value_text(b.get(fields[0])))
            yield Phrase(Kind.INPUT, Clean(f"{one_line(call_b.name, _NAME)} called with {others}"), detail=detail)


def _calls(messages: Iterable[Message]) -> list[ToolCall]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


# ---- values


def _values(change: Change) -> Clean:
    """Both values of a change in a few words."""
    if change.path_a is None:
        return Clean(f"{_quoted(value_text(change.b))} only in B")
    if change.path_b is None:
        return Clean(f"{_quoted(value_text(change.a))} only in A")
    if alike := lookalike_note(change.a, change.b):
        return alike
    return text_change(value_text(change.a), value_text(change.b))


def text_change(a: str, b: str) -> Clean:
    """The first changed words of two texts: ``“2023” → “2024”``, ``“…” added``; names secrets as equal or different."""
    if max(len(a), len(b)) > _MAX_TEXT:
        return Clean(f"{count(len(a))} and {count(len(b))} characters")
    secrets = secret_note(a, b)
    a, b = (_MASKED.sub(MASK, text) for text in (a, b))
    removed: list[str] = []
    new: list[str] = []
    for hunk in text_diff(a, b).hunks:
        if not hunk.same:
            (before, kept_a), (after, kept_b) = _changed(hunk.a), _changed(hunk.b)
            removed.append(before or kept_b)
            new.append(after or kept_a)
    pairs = [(left, right) for left, right in zip(removed, new, strict=True) if left or right]
    if not pairs:
        return Clean(secrets)
    left, right = pairs[0]
    more = f", and {quantity(len(pairs) - 1, 'other place')}" if len(pairs) > 1 else ""
    more += f" · {secrets}" if secrets else ""
    if not left or not right:
        return Clean(f"{_quoted(left or right)} {'added' if right else 'removed'}{more}")
    return Clean(f"{_quoted(left)} → {_quoted(right)}{more}")


def _changed(lines: Sequence[Sequence[Piece]]) -> tuple[str, str]:
    """The changed words of the first line with some, and what remains of a word that lost a part."""
    for line in lines:
        places = [i for i, piece in enumerate(line) if piece.changed and piece.text.strip()]
        if places:
            first, last = places[0], places[-1] + 1
            inside = "".join(piece.text for piece in line[first:last])
            before = _WORD_END.search(line[first - 1].text) if first and not inside[0].isspace() else None
            after = _WORD_START.match(line[last].text) if last < len(line) and not inside[-1].isspace() else None
            head, tail = ("" if match is None else match.group() for match in (before, after))
            return f"{head}{inside}{tail}".strip(), f"{head}{tail}"
    return "", ""


def _quoted(text: str, size: int = _QUOTE) -> Clean:
    return Clean(f"“{truncate(one_line(text, 2 * size), size)}”")


def secret_note(a: str, b: str) -> str:
    """Whether the masked secrets of two texts are the same: ``same secret``; empty unless both have some."""
    left, right = (set(_MASKED.findall(text)) for text in (a, b))
    return "" if not left or not right else "same secret" if left == right else "another secret"


# ---- the runs


def _ends(diff: Diff) -> Iterator[Phrase]:
    """How both runs ended, if differently."""
    a, b = diff.a.summary, diff.b.summary
    if a.status is not b.status:
        yield Phrase(Kind.STATUS, Clean("ended differently"), detail=Clean(f"A {_end(a)} · B {_end(b)}"))


def _end(run: RunSummary) -> Clean:
    failed = run.status is Status.ERROR and run.first_error is not None
    why = f" {one_line(run.first_error.text, 200)}" if failed and run.first_error is not None else ""
    return Clean(f"{run.status.value}{why}")
