"""Search one run for a text: in its inputs, outputs, messages and errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from tracetui.analysis.effects.actions import Action, action_of
from tracetui.errors import UsageError
from tracetui.model import Body, Operation, Problem, Run, RunBody, RunRef, RunSummary, Span, quote_key
from tracetui.model.build import Ownership, ownership
from tracetui.model.masked import masked_body, masked_span
from tracetui.redact import MASK, Redactor
from tracetui.store.address import step_number

# ---- pattern


_SIMPLE: Final = {'"': '"', "\\": "", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""Characters with a short escape, and the text after its backslashes."""
_FOLDED: Final = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}
"""Non-ASCII letters equal to an ASCII letter when case is ignored."""
_ESCAPED_ROOM: Final = 64
"""Longest encoding of a character in bytes: a surrogate pair after the backslashes of JSON in JSON in JSON."""
MIN_ANCHOR: Final = 3
MAX_SECONDS: Final = 2.0
"""Time limit of a regular expression on one text."""
_ASCII: Final = re.compile("[\x20-\x7f]+")


class Needle:
    """A text or regular expression to search for, the same for every file. Immutable.

    JSON can encode a value in many ways: any character as ``\\u…`` (in either case), ``/`` as ``\\/``, and all of that
    again for JSON inside a string. `may_match` allows for all of them: it may have false positives, but never false
    negatives.
    """

    def __init__(self, pattern: str, *, regex: bool = False, ignore_case: bool = False, blind: bool = False) -> None:
        """`regex`: in the syntax of Python's `re` and more, ``^`` and ``$`` at every line. Raises `UsageError`.

        `blind`: `may_match` tells nothing about bytes, since which files are read must not depend on their secrets.
        """
        if not pattern:
            raise UsageError("empty search pattern")
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self.blind: Final = blind
        self._find = (_expression if regex else _literal)(pattern, flags)
        self._plain = pattern if not regex and not ignore_case else None
        self._escaped = None if regex else _Escaped(pattern, flags)
        required = _required(pattern, flags) if regex else pattern
        self._scan = _Scan(required, fold=ignore_case)
        self.overlap: Final = _ESCAPED_ROOM * (len(required) + 1)
        """Bytes by which consecutive pieces of a file must overlap to miss no match."""

    def may_match(self, data: bytes) -> bool:
        """Whether the needle may occur in JSON text (a file, or a piece of it) once decoded."""
        return self.blind or self._scan.may_match(data)

    def matches(self, text: str) -> Iterator[Match]:
        """Yield the non-empty matches in decoded text; of a plain pattern in text that is JSON, also as it is escaped.

        Raises `UsageError` for an expression that exceeds `MAX_SECONDS`.
        """
        is_plain = False
        try:
            for match in () if self._plain is not None and self._plain not in text else self._find(text):
                if match.start() < match.end():
                    is_plain = True
                    yield match
            if not is_plain and self._escaped is not None:
                yield from self._escaped.matches(text)
        except TimeoutError as error:
            raise UsageError(
                f"the expression took more than {MAX_SECONDS:g} s on a text of {len(text)} characters; "
                "avoid nested repeats"
            ) from error


class Match(Protocol):
    """A match, like `re.Match`."""

    def start(self) -> int: ...
    def end(self) -> int: ...
    def group(self) -> str: ...


class _Escaped:
    """A plain pattern as it stands in a value that is JSON text itself, of any number of levels."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern, self._flags = pattern, flags
        self._has_short = not _SIMPLE.keys().isdisjoint(pattern)

    @cached_property
    def _find(self) -> Callable[[str], Iterator[Match]]:
        fold = bool(self._flags & re.IGNORECASE)
        forms = (_case_forms(c) if fold else [c] for c in self._pattern)
        ways = (dict.fromkeys(writing for c in same for writing in (re.escape(c), *_escapes(c))) for same in forms)
        return re.compile("".join(f"(?:{'|'.join(writings)})" for writings in ways), self._flags).finditer

    def matches(self, text: str) -> Iterator[Match]:
        if "\\" in text and (self._has_short or "\\u" in text):
            yield from self._find(text)


def _case_forms(c: str) -> list[str]:
    """A character, and those that are equal to it when case is ignored."""
    return [c, *(form for form in (c.lower(), c.upper()) if len(form) == 1), *_FOLDED.get(c.lower(), "")]


def _literal(text: str, flags: int) -> Callable[[str], Iterator[Match]]:
    return re.compile(re.escape(text), flags).finditer


def _expression(pattern: str, flags: int) -> Callable[[str], Iterator[Match]]:
    """Compile an expression with a library that supports timeouts and releases the GIL."""
    import regex  # 20 ms, and most searches are for plain text

    try:
        expression = regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError) as error:
        raise UsageError(f"invalid regular expression: {error}; without -e the pattern is plain text") from error
    return partial(expression.finditer, timeout=MAX_SECONDS, concurrent=True)


class _Scan:
    """Prefilter on raw bytes: searches for the longest part of the text that is usually not escaped."""

    def __init__(self, text: str, *, fold: bool) -> None:
        self._text, self._fold = text, fold
        anchor = _anchor(text, fold=fold)
        self._anchor = (anchor.lower() if fold else anchor).encode()
        self._complete = anchor == text
        self._odd = tuple(odd.encode() for c in sorted({*anchor.lower()}) for odd in _FOLDED.get(c, "") if fold)
        if fold:
            unusual = {*anchor.lower(), *anchor.upper(), *"".join(_FOLDED.get(c, "") for c in anchor.lower())}
        else:
            unusual = {*anchor, *(c for c in text if c.isascii() and not _is_variable(c))}
        self._escapes = re.compile(rb"\\u(?:" + b"|".join(sorted(_hex(c)[0] for c in unusual)) + rb")")
        """Escapes that are optional, or part of the anchor: without any, the anchor occurs literally or not at all."""

    @cached_property
    def _near(self) -> re.Pattern[bytes]:
        """All usual encodings of the text."""
        return re.compile(b"".join(_forms(c, plain=not _is_variable(c)) for c in self._text), re.DOTALL)

    @cached_property
    def _far(self) -> re.Pattern[bytes]:
        """All encodings of the text."""
        return re.compile(b"".join(_forms(c) for c in self._text), re.DOTALL)

    def may_match(self, data: bytes) -> bool:
        if self._fold:
            data = data.lower()
        if data.find(self._anchor) >= 0:
            return self._complete or self._fold or self._near.search(data) is not None or self._escaped(data)
        return self._escaped(data) or any(odd in data for odd in self._odd)

    def _escaped(self, data: bytes) -> bool:
        """Whether the text may occur with optional escapes."""
        first = data.find(b"\\")  # instant; most files with a backslash are scanned once more
        if first < 0 or self._escapes.search(data, first) is None:
            return False
        return self._fold or self._far.search(data) is not None


def _is_variable(c: str) -> bool:
    """Whether a character is usually escaped, or encoded in varying bytes."""
    return c in _SIMPLE or c < " " or c == "\ufffd" or "\ud800" <= c <= "\udfff"


def _anchor(text: str, *, fold: bool) -> str:
    """Return the longest part that is usually literal: of ASCII if long enough, as many writers escape other
    characters.
    """
    runs = [*_runs(text, fold=fold)]
    plain = max((part for run in runs for part in _ASCII.findall(run)), key=len, default="")
    return plain if len(plain) >= MIN_ANCHOR else max(runs, key=len)


def _runs(text: str, *, fold: bool) -> Iterator[str]:
    """Yield the parts of the text that are usually literal."""
    begin = 0
    for i, c in enumerate(text):
        if _is_variable(c) or (fold and c > "\x7f" and (c.lower() != c or c.upper() != c or c.casefold() != c)):
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def _forms(c: str, *, plain: bool = False) -> bytes:
    """Return a pattern of all encodings of a character; `plain`: literal, or escaped if not ASCII."""
    raw = re.escape(c.encode("utf-8", "surrogatepass"))
    if plain and c.isascii():
        return raw
    ways = [raw, *(writing.encode() for writing in _escapes(c))]
    if c == "\ufffd" or "\ud800" <= c <= "\udfff":
        ways.append(rb"[\x80-\xff]{1,4}")  # bytes that are not UTF-8, or half a character
    return b"(?:" + b"|".join(ways) + b")"


def _escapes(c: str) -> list[str]:
    """Return patterns of the escapes of a character, after any number of backslashes."""
    ways = ["".join(rf"\\+u{unit.decode()}" for unit in _hex(c))]
    if c in _SIMPLE:
        ways.append((r"\\*" if c in '"/' else r"\\+") + re.escape(_SIMPLE[c]))
    return ways


def _hex(c: str) -> list[bytes]:
    """Return patterns of the digits after ``\\u``, in either case: one, or two for a surrogate pair."""
    units = c.encode("utf-16-be", "surrogatepass").hex()
    digits = [f"[{d}{d.upper()}]" if d.isalpha() else d for d in units]
    return ["".join(digits[i : i + 4]).encode() for i in range(0, len(digits), 4)]


def _required(pattern: str, flags: int) -> str:
    """Return the longest text contained in every match of an expression; empty if not obvious."""
    parser = re._parser  # type: ignore[attr-defined]
    try:
        tree = parser.parse(pattern, flags)
    except (re.error, RecursionError, OverflowError):
        return ""  # valid for `regex` only
    if tree.state.flags & re.IGNORECASE and not flags & re.IGNORECASE:
        return ""  # an inline flag
    literals = [""]
    for kind, value in tree.data:
        if kind is parser.LITERAL:
            literals[-1] += chr(value)
        else:
            literals.append("")
    return max(literals, key=len)


# ---- hits


Keys = tuple[str | int, ...]
BEFORE: Final = 60
"""Characters of a line shown before a match, at most."""
AFTER: Final = 160
"""Characters shown after a match, and of the match itself."""
TICK: Final = 32
"""Spans without a hit after which a search yields."""
_METADATA_FIELDS: Final = frozenset({"role", "id", "finish_reason"})
"""Fields of our own structs that are not content."""


class Kind(StrEnum):
    """The kind of field that contains a text."""

    ERROR = "error"
    INPUT = "input"
    OUTPUT = "output"
    MESSAGE = "message"
    ATTRIBUTE = "attribute"


class Options(msgspec.Struct, frozen=True):
    """Options of a search: which texts count as hits."""

    names: bool = False
    """Also match names of fields, not only values."""
    repeats: bool = False
    """Also match inputs that an earlier step of the run already showed."""
    wanted: Callable[[RunSummary], bool] | None = None
    """Filters runs by their list-stage summary; None: all."""
    redactor: Redactor | None = None
    """Masks the text of hits. The search itself is exact, but that of a blind needle: it searches the masked text.
    None: hits are exact too.
    """


PLAIN: Final = Options()


class Hit(msgspec.Struct, frozen=True):
    """One line of one value that matches. Its texts are not cleaned."""

    ref: RunRef
    span: str | None
    """Id of the span; None for the run itself."""
    step: int | None
    name: str
    """Name of the span; empty for the run."""
    action: tuple[Span, Action] | None
    """The span and what it did, as a story shows them: masked. None for the run itself."""
    kind: Kind
    keys: tuple[str | int, ...]
    """Path of the value in ``show --json``: ``("input", "messages", 3, "content")``."""
    line: int
    """Line number within the value, from 1."""
    before: str
    """Text before the match in that line, at most `BEFORE` characters."""
    match: str
    after: str

    @property
    def path(self) -> str:
        """The value's path in short: ``input.messages[3].content``."""
        parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.keys)
        return "".join(parts).removeprefix(".")

    @property
    def address(self) -> str:
        """The address of the whole value, as ``tracetui show`` takes it."""
        parts = [*([] if self.span is None else [self.span]), *map(str, self.keys)]
        return "/".join((self.ref.address, *map(quote_key, parts)))


def hits_in(
    run: Run, needle: Needle, options: Options = PLAIN, listed: Container[RunRef] = ()
) -> Generator[Hit | Problem | None, None, bool]:
    """Search a run, but for spans of other runs in `listed`. Return False if a part of it was unreadable, after a
    problem.
    """
    redactor, is_readable = options.redactor, True
    seen = _SearchedTexts()
    for number, (span, owner) in enumerate(zip(run.spans, ownership(run, listed), strict=True)):
        if owner is Ownership.LISTED:
            continue
        body = run.load(span)
        if (problem := _unreadable(run, span, body)) is not None:
            yield problem
            is_readable = False
        if redactor is not None and needle.blind:
            span, body = masked_span(span, redactor), masked_body(body, redactor)
        masked = _MaskedStep(span, body, None if needle.blind else redactor)
        yield from _hits(run, span, span_fields(span, body), needle, options, seen, masked)
        if not number % TICK:
            yield None
    body_of_run = masked_body(run.body, redactor) if redactor is not None and needle.blind else run.body
    of_run = _MaskedRun(body_of_run, None if needle.blind else redactor)
    yield from _hits(run, None, run_fields(body_of_run), needle, options, seen, of_run)
    return is_readable


class _MaskedRun:
    """The fields of the run itself as hits show them, masked only once there is a hit. `redactor` None: as they are."""

    def __init__(self, body: RunBody, redactor: Redactor | None) -> None:
        self._body, self._redactor = body, redactor

    @cached_property
    def texts(self) -> dict[Keys, str] | None:
        """The masked text of every leaf; None: as it is."""
        if self._redactor is None:
            return None
        fields = run_fields(masked_body(self._body, self._redactor))
        return {keys: text for field in fields for keys, text in leaves(field.value, field.keys)}

    @property
    def step(self) -> tuple[Span, Action] | None:
        return None


class _MaskedStep:
    """The same of a span."""

    def __init__(self, span: Span, body: Body, redactor: Redactor | None) -> None:
        self._span, self._body, self._redactor = span, body, redactor

    @cached_property
    def _masked(self) -> tuple[Span, Body]:
        redactor = self._redactor
        return (
            (self._span, self._body)
            if redactor is None
            else (masked_span(self._span, redactor), masked_body(self._body, redactor))
        )

    @cached_property
    def texts(self) -> dict[Keys, str] | None:
        if self._redactor is None:
            return None
        return {keys: text for field in span_fields(*self._masked) for keys, text in leaves(field.value, field.keys)}

    @cached_property
    def step(self) -> tuple[Span, Action]:
        """The span and what it did."""
        return self._masked[0], action_of(*self._masked)


def _unreadable(run: Run, span: Span, body: Body) -> Problem | None:
    if body.raw or body.attributes.keys() != {"problem"}:
        return None
    return Problem(run.summary.ref.path, f"span {span.id}", str(body.attributes["problem"]))


def _hits(
    run: Run,
    span: Span | None,
    fields: Iterable[Field],
    needle: Needle,
    options: Options,
    seen: _SearchedTexts,
    masked_item: _MaskedStep | _MaskedRun,
) -> Iterator[Hit]:
    """Yield the hits in one span, or (None) in the run's own fields; `seen` tracks the texts searched in the run so
    far.

    Each text is reported once per span. Repeated inputs and texts are reported at their first occurrence, unless
    `repeats` is set.
    """
    span_texts: set[str] = set()
    redactor = options.redactor
    for field in fields:
        value = field.value if options.repeats or not field.is_repeated else seen.new(field.value)
        for keys, text in leaves(value, field.keys, names=options.names):
            if next(needle.matches(text), None) is None:
                continue
            is_repeat = text in span_texts or (text in seen.texts and (field.is_repeated or span is None))
            if field.kind is Kind.ATTRIBUTE and span is not None:  # every record has the envelope of its session
                is_repeat = is_repeat or (keys, text) in seen.attributes
                seen.attributes.add((keys, text))
            if is_repeat and not options.repeats:
                continue
            span_texts.add(text)
            visible = text
            if redactor is not None and options.names and text == keys[-1]:
                visible = redactor.text(text)
            elif masked_item.texts is not None:
                visible = masked_item.texts.get(keys, MASK)
            for line in _lines(visible, needle):
                yield Hit(
                    ref=run.summary.ref,
                    span=None if span is None else span.id,
                    step=None if span is None else step_number(run, span),
                    name="" if span is None else span.name if redactor is None else redactor.header(span.name),
                    action=masked_item.step,
                    kind=field.kind,
                    keys=keys,
                    line=line.number,
                    before=line.before,
                    match=line.match,
                    after=line.after,
                )
    seen.texts |= span_texts


class _SearchedTexts:
    """Texts searched in a run."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        """Texts with hits."""
        self.attributes: set[tuple[Keys, str]] = set()
        """Attributes of spans with hits."""
        self._given: tuple[Any, ...] = ()

    def new(self, values: Any) -> Any:
        """Return the inputs of a call, with None for messages identical to those of the previous call."""
        if not isinstance(values, tuple):
            return values
        before, self._given = {id(value) for value in self._given}, values or self._given
        return tuple(None if id(value) in before else value for value in values)


class _Line(NamedTuple):
    number: int
    before: str
    match: str
    after: str


def _lines(text: str, needle: Needle) -> Iterator[_Line]:
    """Yield the matching lines of a text, or its beginning if masking hides the match."""
    end, number, counted = -1, 1, 0
    for match in needle.matches(text):
        start = match.start()
        if start < end:
            continue  # in a line already reported
        number += text.count("\n", counted, start)
        counted = start
        begin = text.rfind("\n", 0, start) + 1
        newline = text.find("\n", start)
        stop = min(match.end(), start + AFTER)
        last = max(stop, len(text) if newline < 0 else newline)
        end = len(text) if newline < 0 else newline + 1
        before, after = text[max(begin, start - BEFORE) : start], text[stop : min(last, stop + AFTER)]
        yield _Line(number, before, text[start:stop], after)
    if end < 0:
        yield _Line(1, "", "", text.partition("\n")[0][:AFTER])


class Field(NamedTuple):
    """One field of a span or run; `is_repeated`: mostly repeats earlier content, like the context of a model call."""

    kind: Kind
    keys: Keys
    value: Any
    is_repeated: bool = False


def span_fields(span: Span, body: Body) -> Iterator[Field]:
    """Yield the fields of a span: its error first, as the output usually repeats it."""
    passed_on = span.operation is not Operation.EXECUTE_TOOL
    yield Field(Kind.ERROR, ("error",), span.error)
    yield Field(Kind.ERROR, ("attributes", "tracetui.traceback"), body.traceback)
    yield Field(Kind.INPUT, ("input",), body.input, passed_on)
    yield Field(Kind.OUTPUT, ("output",), body.output)
    input_keys: Keys = ("input",) if body.input is None else ("attributes", "gen_ai.input.messages")
    output_keys: Keys = ("output",) if body.output is None else ("attributes", "gen_ai.output.messages")
    yield Field(Kind.MESSAGE, input_keys, body.input_messages, passed_on)
    yield Field(Kind.MESSAGE, output_keys, body.output_messages)
    yield Field(Kind.ATTRIBUTE, ("attributes",), body.attributes)


def run_fields(body: RunBody) -> Iterator[Field]:
    """Yield the fields of the run itself."""
    yield Field(Kind.ERROR, ("error",), body.error)
    yield Field(Kind.INPUT, ("input",), body.input)
    yield Field(Kind.OUTPUT, ("output",), body.output)
    for name in ("system_prompt", "goal", "reason", "criteria", "metrics", "findings", "limits", "attributes"):
        yield Field(Kind.ATTRIBUTE, (name,), getattr(body, name))


def leaves(value: Any, keys: Keys, *, names: bool = False) -> Iterator[tuple[Keys, str]]:
    """Yield every text and number of a value in order, without recursion, and with `names` also field names."""
    todo: list[tuple[Keys, Any]] = [(keys, value)]
    while todo:
        at, item = todo.pop()
        if isinstance(item, str):
            yield at, item
        elif isinstance(item, dict):
            if names:
                yield from (((*at, name), name) for name in item if isinstance(name, str))
            todo.extend(((*at, str(name)), below) for name, below in reversed(item.items()))
        elif isinstance(item, list | tuple):
            todo.extend(((*at, i), item[i]) for i in range(len(item) - 1, -1, -1))
        elif isinstance(item, msgspec.Struct):
            fields = [name for name in item.__struct_fields__ if name not in _METADATA_FIELDS]
            todo.extend(((*at, name), getattr(item, name)) for name in reversed(fields))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield at, _digits(item)


def _digits(number: float) -> str:
    try:
        return str(number)
    except ValueError:  # Python's limit of digits
        return ""
