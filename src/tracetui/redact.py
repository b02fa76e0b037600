"""Mask secrets (keys, passwords, tokens), recognized by field name and by form.

The structure is preserved: a value becomes another text, JSON stays JSON. Values without secrets are returned as the
same object after one cheap scan. `tracetui.redact_shapes` and `redact_rules` define the rules; docs/redaction.md is for
users.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from secrets import token_bytes
from threading import Lock
from typing import Any, Final

import msgspec
import orjson

from tracetui.redact_rules import COLOR, ScannedText, SecretMatch, find_signs, finders, scan, truncated_secret
from tracetui.redact_shapes import CUT_AT, FIELD_RULE, NameClass, classify_name, compiled, is_label, is_placeholder
from tracetui.text import Masked

MASK: Final = "••••••••"
ASCII_MASK: Final = "********"

_MASKED: Final = re.compile(r"(?:•{8}|\*{8})(?: \(secret \d{1,6}\))?")
_WORD: Final = r"<[a-z]+>|[\w+/.~$@%!#&*^?;-]{2,}|[0-9]"
"""A placeholder, or what a secret may consist of."""
_PASSES: Final = 3
"""A secret adjacent to another may be recognizable only after that is masked."""
_BETWEEN: Final = "\t"
_BLANK: Final = "\ue000"
"""Stands for a space inside a command argument; `_BETWEEN` separates arguments."""
_MOST_ARGUMENTS: Final = 500
_SCHEMA: Final = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"})
_KEYS: Final = ("name", "key", "header", "Name", "Key")
_VALUES: Final = ("value", "Value")
_JWK: Final = frozenset({"d", "k", "p", "q", "dp", "dq", "qi"})
"""Private members of a JSON web key (RFC 7517)."""
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_LARGE: Final = 30_000
"""Minimum bytes of JSON for the check whether it consists of few texts."""
_FEW: Final = 2_000
_SHORT: Final = 10_000
"""Most characters of a text that is kept with its secrets masked, lest it be masked for every call and view."""
_MOST_KNOWN: Final = 1_000
_PARTS: Final = 16
"""Number of parts into which texts are split when one of them contains a sign."""


class Excerpt(msgspec.Struct, frozen=True, gc=False):
    """A text that was cut out of a text of a trace, or composed of parts of it.

    What shows a secret in `whole` by its name or form may be missing in the part. So this is no `str`: only
    `Redactor.excerpt` makes a text of it that functions of `tracetui.text` accept.
    """

    exact: str
    """Not masked: for identity, order and exact output."""
    whole: str


class Redactor:
    """Masks secrets and counts the masked values. Thread-safe.

    `compared`: masks of equal secrets have equal numbers, from the first secret that was masked:
    ``•••••••• (secret 2)``. Otherwise all masks are equal.
    """

    def __init__(self, *, compared: bool = False, mask: str = MASK) -> None:
        self._mask = mask
        self._key = token_bytes(16) if compared else None
        self._numbers: dict[bytes, int] = {}
        """The number of each secret, by its keyed hash."""
        self._lock = Lock()
        self._known: dict[str, tuple[str, list[str]]] = {}
        """Short texts, masked, with the rules of their secrets: every call of a model repeats the conversation."""
        self.counts: Counter[str] = Counter()
        """Number of masked values by rule."""

    # ---- interface

    def text(self, text: str, *, cut: bool = False) -> Masked:
        """Mask every secret in `text`; with `cut` also a truncated secret at its end."""
        scanned = scan(text)
        masked = text if scanned is None else self._mask_text(scanned)
        return Masked(self._cut(masked) if cut else masked)

    def header(self, text: str) -> Masked:
        """Mask a header text, which may be truncated."""
        return self.text(text, cut=len(text) >= CUT_AT or text.endswith("…"))

    def excerpt(self, excerpt: Excerpt) -> Masked:
        """Mask a text as a part of another: words that the masked `whole` has not, or has less often, are masked.

        Placeholders (``<id>``) stay.
        """
        part, whole = excerpt.exact, excerpt.whole
        header = self.header(whole)
        if header is whole or not part:
            return self.header(part)
        exact, masked = (Counter(compiled(_WORD).findall(text)) for text in (whole, header))

        def mask_word(match: re.Match[str]) -> str:
            word = match[0]
            return word if word[0] == "<" or (word in header and masked[word] >= exact[word]) else self.mask(word)

        return self.header(compiled(_WORD).sub(mask_word, part))

    def value(self, value: Any) -> Any:
        """Mask every secret in a value: mappings, sequences and structs of any depth."""
        if isinstance(value, str):
            return self.text(value)
        contents = _contents(value)
        if contents is None:
            return value
        names, doubtful = contents
        return self._walk(value, doubtful) if doubtful or any(map(classify_name, names)) else value

    def raw(self, data: bytes) -> bytes:
        """Mask a source record. JSON is re-encoded if something was masked."""
        if not find_signs(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        masked = self.text(text)
        return data if masked is text else masked.encode("utf-8", "surrogateescape")

    def mask(self, secret: str) -> str:
        """The mask of a secret."""
        if self._key is None:
            return self._mask
        digest = blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, digest_size=16).digest()
        with self._lock:
            number = self._numbers.setdefault(digest, len(self._numbers) + 1)
        return f"{self._mask} (secret {number})"

    # ---- texts

    def _mask_text(self, scanned: ScannedText) -> str:
        """Mask a text with signs of secrets."""
        masked = self._document(scanned.text)
        return self._plain(scanned) if masked is None else masked

    def _plain(self, scanned: ScannedText) -> str:
        """Mask a text that is no document."""
        text = scanned.text
        known = self._known.get(text)
        if known is None:
            rules: list[str] = []
            known = self._mask_plain(scanned, rules), rules
            if len(text) <= _SHORT:
                if len(self._known) >= _MOST_KNOWN:  # more, if two threads add at once
                    self._known.clear()
                self._known[text] = known
        masked, rules = known
        self.counts.update(rules)
        return masked if rules else text

    def _mask_plain(self, scanned: ScannedText, matched: list[str]) -> str:
        """Mask a text that is no document, and append the rules of its secrets to `matched`."""
        if "escape" in scanned.signs:
            text = self._escaped(scanned.text, matched)
            scanned = scanned.after(text)
        finds = finders(scanned.signs)
        text = scanned.text
        if not finds:
            return text
        plain, colors = split_colors(text) if "color" in scanned.signs else (text, [])
        scanned = first = scanned.after(plain)
        for _ in range(_PASSES):
            before = scanned
            for find in finds:
                scanned = scanned.after(self._replace(scanned.text, find(scanned), matched, colors))
            if scanned is before:
                break
        return text if scanned is first else join_colors(scanned.text, colors)

    def _escaped(self, text: str, matched: list[str]) -> str:
        """Mask what is a secret only after letters and quotes that are written as ``\\u0061`` are decoded."""
        decoded, places = decode_letters(text)
        scanned = scan(decoded) if places else None
        if scanned is None:
            return text
        matches = sorted(match for find in finders(scanned.signs) for match in find(scanned))
        return self._replace(text, (SecretMatch(places[a], places[b], rule) for a, b, rule, _ in matches), matched)

    def _cut(self, text: str) -> str:
        secret = truncated_secret(text)
        if secret is None:
            return text
        rules: list[str] = []
        masked = self._replace(text, [secret], rules)
        self.counts.update(rules)
        return masked

    def _replace(
        self, text: str, secrets: Iterable[SecretMatch], matched: list[str], colors: list[tuple[int, str]] | None = None
    ) -> str:
        """Replace the secrets by masks, and append their rules to `matched`; `colors` move along."""
        pieces: list[str] = []
        edits: list[tuple[int, int, int]] = []
        last_end = 0
        for start, end, rule, quoted in secrets:
            if is_mask(text[start:end]) or start < last_end:
                continue
            mask = self.mask(text[start:end])
            matched.append(rule)
            pieces += (text[last_end:start], f'"{mask}"' if quoted else mask)
            edits.append((start, end, len(pieces[-1])))
            last_end = end
        if colors and edits:
            move_colors(colors, edits)
        return "".join((*pieces, text[last_end:])) if pieces else text

    def _document(self, text: str) -> str | None:
        """Mask a text as a JSON document; None if it is none, or has duplicate keys."""
        ends = text.strip()[:1] + text.strip()[-1:]
        if ends not in ("{}", "[]"):
            return None
        try:
            value = orjson.loads(text)
        except ValueError:
            return None
        masked = self.value(value)
        if masked is not value:
            return _encode_like(masked, text)
        return text if _has_every_field(value, text) else None

    def _count(self, secret: str, rule: str) -> str:
        self.counts[rule] += 1
        return self.mask(secret)

    def arguments(self, values: list[Any], scanned: ScannedText) -> list[Any]:
        """Mask command arguments that other arguments mark as secret; `done` are the arguments so far."""
        masked = self._plain(scanned).split(_BETWEEN)
        if len(masked) != len(values):
            return values
        exact = scanned.text.split(_BETWEEN)
        return [
            new.replace(_BLANK, " ") if new != old else argument
            for argument, old, new in zip(values, exact, masked, strict=True)
        ]

    # ---- values

    def _walk(self, root: Any, doubtful: Mapping[str, ScannedText]) -> Any:
        """Mask `root`; only its `doubtful` texts can contain secrets."""
        frames = [_Frame([root], NameClass.OPEN)]
        while True:
            frame = frames[-1]
            if not frame.todo:
                frames.pop()
                masked = frame.made(self, doubtful)
                if not frames:
                    return masked[0]
                frames[-1].done.append(masked)
                continue
            child, name = frame.todo.pop()
            if isinstance(child, list | tuple | Mapping | msgspec.Struct):
                frames.append(_Frame(child, name))
            else:
                frame.done.append(self._leaf(child, name, doubtful))

    def _leaf(self, value: Any, name: NameClass, doubtful: Mapping[str, ScannedText]) -> Any:
        if isinstance(value, str):
            if name and _is_secret(value) and not (name is NameClass.TEXT and is_label(value)):
                return self._count(value, FIELD_RULE)
            scanned = doubtful.get(value)
            return value if scanned is None else self._mask_text(scanned)
        if name is NameClass.ALL and isinstance(value, int | float) and not isinstance(value, bool):
            return self._count(str(value), FIELD_RULE)
        return self.raw(value) if isinstance(value, bytes) else value


# ---- escapes

_ESCAPED_LETTER: Final = r"u00([2-7][0-9a-fA-F])(?<=\\u00..)"
_MOST_ESCAPES: Final = 8
"""Backslashes before an escaped letter in JSON in JSON."""


def decode_letters(text: str) -> tuple[str, list[int]]:
    """A text with its escaped ASCII characters decoded, and the position of each character (and the end) in `text`.

    No positions if none is escaped.
    """
    pieces: list[str] = []
    places: list[int] = []
    copied = 0
    for match in compiled(_ESCAPED_LETTER).finditer(text):
        end = match.start()
        first = max(copied, end - _MOST_ESCAPES)
        start = first + len(text[first:end].rstrip("\\"))
        pieces += (text[copied:start], chr(int(match[1], 16)))
        places += range(copied, start + 1)
        copied = match.end()
    if not places:
        return text, places
    places += range(copied, len(text) + 1)
    return "".join((*pieces, text[copied:])), places


def split_colors(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Split a text into plain text and escape sequences, each with its position in the plain text."""
    pieces: list[str] = []
    colors: list[tuple[int, str]] = []
    copied = length = 0
    for match in compiled(COLOR).finditer(text):
        pieces.append(text[copied : match.start()])
        length += match.start() - copied
        colors.append((length, match.group()))
        copied = match.end()
    return ("".join((*pieces, text[copied:])), colors) if colors else (text, colors)


def move_colors(colors: list[tuple[int, str]], edits: list[tuple[int, int, int]]) -> None:
    """Move escape sequences according to edits of the text: (start, end, new length)."""
    shift = number = 0
    for index, (place, sequence) in enumerate(colors):
        while number < len(edits) and edits[number][1] <= place:
            start, end, length = edits[number]
            shift += length - (end - start)
            number += 1
        if number < len(edits) and edits[number][0] < place:
            place = edits[number][0] + edits[number][2]
        colors[index] = (place + shift, sequence)


def join_colors(text: str, sequences: list[tuple[int, str]]) -> str:
    """The inverse of `split_colors`."""
    pieces: list[str] = []
    copied = 0
    for place, sequence in sequences:
        pieces += (text[copied:place], sequence)
        copied = place
    return "".join((*pieces, text[copied:]))


# ---- values


class _Frame:
    """A container being masked: the remaining children (last first) and the finished ones."""

    __slots__ = ("children", "container", "done", "names", "todo")

    def __init__(self, container: Any, name: NameClass) -> None:
        self.container = container
        self.done: list[Any] = []
        self.names: list[Any] | None = None
        if isinstance(container, list | tuple):
            self.children = list(container)
            self.todo = [(child, name) for child in reversed(self.children)]
            if pair := pair_name(container):
                self.todo[0] = (self.children[1], max(name, classify_name(pair)))
            return
        fields = _fields(container)
        self.names, self.children = list(fields), list(fields.values())
        self.todo = list(reversed([*_classify(fields, name)]))

    def made(self, redactor: Redactor, doubtful: Mapping[str, ScannedText]) -> Any:
        """The masked container; the same object if nothing changed."""
        same = all(map(_is, self.done, self.children))
        if self.names is None:
            line = command_line(self.container)
            if line in doubtful:
                self.done = redactor.arguments(self.done, doubtful[line])
                same = all(map(_is, self.done, self.children))
            return self.container if same else type(self.container)(self.done)
        if isinstance(self.container, msgspec.Struct):
            return self.container if same else type(self.container)(**dict(zip(self.names, self.done, strict=True)))
        names = [redactor.text(name) if name in doubtful else name for name in self.names]
        if same and all(map(_is, names, self.names)):
            return self.container
        return dict(zip(_unique(names), self.done, strict=True))


def pair_name(container: Any) -> str:
    """The name in a pair of name and value, as lists of headers have them; empty if a list is no such pair."""
    if len(container) != 2 or not isinstance(container[0], str) or not isinstance(container[1], str):
        return ""
    return container[0] if not container[1].isalpha() or len(container[1]) >= 16 else ""


def command_line(container: Any) -> str:
    """A list of command arguments as one line; empty if the list isn't one."""
    if not 1 < len(container) < _MOST_ARGUMENTS or not all(isinstance(argument, str) for argument in container):
        return ""
    if not any(argument[:1] == "-" for argument in container):
        return ""
    return _BETWEEN.join(argument.replace(" ", _BLANK).replace(_BETWEEN, _BLANK) for argument in container)


def _is(a: object, b: object) -> bool:
    return a is b


def _unique(names: list[Any]) -> Iterator[Any]:
    """Number names that became equal by masking."""
    seen: Counter[Any] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} {seen[name]}"


def _fields(container: Any) -> Mapping[Any, Any]:
    if isinstance(container, msgspec.Struct):
        return msgspec.structs.asdict(container)
    return container  # type: ignore[no-any-return]


def _value_names(fields: Mapping[Any, Any]) -> Iterator[str]:
    """The texts that name the ``value`` of a mapping."""
    return (fields[key] for key in _KEYS if isinstance(fields.get(key), str))


def _has_value(fields: Mapping[Any, Any]) -> bool:
    return any(name in fields for name in _VALUES)


def _classify(fields: Mapping[Any, Any], around: NameClass) -> Iterator[tuple[Any, NameClass]]:
    """Every value of a mapping with the class of its name (`around`: the class of the mapping itself)."""
    value_name = next(_value_names(fields), "") if _has_value(fields) else ""
    for key, value in fields.items():
        name = max(around, classify_name(key)) if isinstance(key, str) else around
        if key in _JWK and "kty" in fields:
            name = NameClass.TEXT
        if key in _VALUES and value_name:
            name = max(name, classify_name(value_name))
        if key == "token" and "logprob" in fields:
            name = around
        yield value, NameClass.OPEN if name and _is_schema(value) else name


def _is_schema(value: Any) -> bool:
    """Whether a value is the schema of a field (as in tool parameters)."""
    if not isinstance(value, Mapping):
        return False
    kinds = value.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return all(isinstance(kind, str) and kind in _SCHEMA for kind in kinds) or "$ref" in value or "anyOf" in value


def _is_secret(value: str) -> bool:
    return any(map(str.isalnum, value)) and not is_mask(value) and not is_placeholder(value)


def is_mask(text: str) -> bool:
    """Whether a text is exactly a mask."""
    return _MASKED.fullmatch(text) is not None


def masks(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the masks in a text."""
    return (match.span() for match in _MASKED.finditer(text)) if "••••" in text or "****" in text else iter(())


def _contents(value: Any) -> tuple[set[str], dict[str, ScannedText]] | None:
    """The names of all fields in a value, and its doubtful texts; None if one scan finds no sign of secrets.

    Scanning the JSON is fastest, except for few long texts: those are scanned once each, since a body contains messages
    twice (recorded and normalized).
    """
    try:
        data = msgspec.json.encode(value, enc_hook=repr)
    except (ValueError, TypeError, RecursionError, OverflowError):
        data = None
    contents = _collect(value, _FEW) if data is None or len(data) > _LARGE else None
    if contents is None:
        if data is not None and not find_signs(data, encoded=True):
            return None
        contents = _collect(value, sys.maxsize)
    names, texts = contents or (set(), [])
    return names, _doubtful([*dict.fromkeys((*names, *texts))])


def _collect(root: Any, most: int) -> tuple[set[str], list[str]] | None:
    """The names of all fields in a value (also of name/value lists), and all texts, each once.

    None if there are more than `most` values.
    """
    names: set[Any] = set()
    texts: list[str] = []
    seen: set[int] = set()
    todo = [root]
    for value in todo:  # grows
        kind = type(value)
        if kind in _NUMBERS or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, bytes):
            texts.append(value.decode("utf-8", "surrogateescape"))
        elif kind is list or kind is tuple or isinstance(value, list | tuple):
            todo += value
            line = command_line(value)
            if line:
                texts.append(line)
            if pair := pair_name(value):
                names.add(pair)
        elif isinstance(value, Mapping | msgspec.Struct):
            fields = _fields(value)
            names.update(fields)
            todo += fields.values()
            if "kty" in fields:
                names.add("private_key")
            if _has_value(fields):
                names.update(_value_names(fields))
        if len(todo) > most:
            return None
    return {name for name in names if isinstance(name, str)}, texts


def _doubtful(texts: list[str]) -> dict[str, ScannedText]:
    """The texts with signs of secrets, and these signs. If there are none, one scan suffices."""
    doubtful: dict[str, ScannedText] = {}
    groups = [texts]
    for group in groups:  # grows
        if len(group) > 1:
            if find_signs("\0".join(group).encode("utf-8", "surrogatepass")):
                size = -(-len(group) // _PARTS)
                groups += (group[start : start + size] for start in range(0, len(group), size))
        elif group and (scanned := scan(group[0])) is not None:
            doubtful[group[0]] = scanned
    return doubtful


def _has_every_field(value: Any, text: str) -> bool:
    """Whether a decoded document has all fields of its text; of duplicate keys only the last is decoded."""
    return len(_FIELD.findall(text)) == len(_FIELD.findall(orjson.dumps(value).decode()))


_FIELD: Final = re.compile(r'"\s*+:')


def _encode_like(value: Any, like: str) -> str:
    """JSON text of `value`, indented and terminated like another text."""
    option = orjson.OPT_INDENT_2 if "\n" in like.strip() else 0
    try:
        encoded = orjson.dumps(value, option=option).decode()
    except TypeError:  # lone surrogates cannot come from JSON that orjson read, depth can
        encoded = json.dumps(value, ensure_ascii=False)
    return encoded + ("\n" if like.endswith("\n") else "")
