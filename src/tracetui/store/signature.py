"""What made a run fail, in a form in which failures of one cause are equal.

A signature is who failed at what, the type of the error, and its text with everything taken out that differs from one
time to the next. Names of agents, tools and types are never touched: another tool is another cause.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from tracetui.model import FirstError, Operation, RunSummary, Status

MOST_READ: Final = 4_000
"""Characters of a text that are looked at: of a longer one its beginning and its end."""
MOST_KEPT: Final = 500
"""Characters of a normalised text, likewise."""
UNSETTLED: Final = "<text>"
"""Stands for a text that is made to be normalised again and again."""
_MOST_PASSES: Final = 12
_CUT: Final = " … "
_KINDS: Final = ("n", "id", "hex", "path", "url", "ip", "time", "quoted", "text")

_UNITS: Final = "[kKMGT]i?[bB]|[kKMGTx%]|bytes?|px|st|nd|rd|th|tok(?:ens?)?"
_TIMES: Final = "ns|us|µs|ms|sec(?:onds?|s)?|min(?:ute)?s?|hrs?|hours?|days?|weeks?"
_NUMBER: Final = r"(?:\d{1,3}(?:[,_]\d{3}){1,9}(?!\d)|\d+)(?:\.\d+){0,9}(?:[eE][-+]?\d+)?"
_LATIN: Final = "\u00c0-\u024f"
_NAME: Final = rf"\w.@+~{_LATIN}-"
"""What names of files are made of."""
_PIECES: Final = rf"""
    (?P<kept><(?:{"|".join(_KINDS)})> | (?<!\w)[A-Za-z]+(?=[\ ,;)]|:\ |\.?$))
  | (?P<url>(?<!\w)[A-Za-z][A-Za-z0-9+.-]{{1,15}}://[^\s"'`<>]*[^\s"'`<>.,;:!?)\]}}])
  | (?P<uuid>(?<![\w-])[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?![\w-]))
  | (?P<time>(?<![\w.:])(?:
        \d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?(?:Z|UTC|[-+]\d\d:?\d\d))?)?
      | \d{{1,3}}:\d\d(?::\d\d)?(?:[.,]\d+)?
      | [-+]?(?:{_NUMBER}(?:{_TIMES}|[smhd])(?![A-Za-z])){{1,9}}
      | [-+]?{_NUMBER}\ (?:{_TIMES})
    )(?!\w))
  | (?P<ip>
        (?<![\w.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d{{1,5}})?(?!\w|\.\d)
      | \[[0-9a-fA-F]{{0,4}}:[0-9a-fA-F:.]{{1,40}}\](?::\d+)?
    )
  | (?P<number>(?<![\w.])[-+]?{_NUMBER}(?:\ ?(?:{_UNITS}))?(?!\w|[-.]\w))
  | (?P<path>(?<![{_NAME}/\\])(?:
        (?:[A-Za-z]:|~|\.{{1,2}})?[/\\](?:[{_NAME}]+[/\\])*[{_NAME}]*[\w{_LATIN}~]
      | [{_NAME}]+(?:[/\\][{_NAME}]+)+(?:[/\\][\w{_LATIN}~-]+|\.[A-Za-z]\w{{0,7}})
    )[/\\]?)
  | (?P<word>(?<!\w)[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*)
"""
_QUOTED: Final = r"""
  | (?P<quoted>
        "[^"]*" | `[^`]*` | “[^“”]*” | ‘[^‘’]*’ | «[^«»]*»
      | (?<![\w'])'(?:[^']|(?<=\w)'(?=\w))*'(?!\w)
    )
"""
_PROSE: Final = re.compile(_PIECES + _QUOTED, re.VERBOSE | re.ASCII)
_DATA: Final = re.compile(_PIECES, re.VERBOSE | re.ASCII)
"""For JSON, in which everything is quoted."""
_IS_DATA: Final = re.compile(r"""[\[{]\s*["'{]""")
_SOME: Final = re.compile(r"""[\d"'`“‘«/\\<]|_\w{16}|\s\s|[^\S ]|^\s|\s$""")
"""Found in every text that is not its own normalised form."""
_PLACED: Final = re.compile(f"<(?:{'|'.join(_KINDS)})>")
_WHOLE_NUMBER: Final = re.compile(_NUMBER, re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]+|(?=\w*\d)[0-9a-fA-F]{7,}", re.ASCII)
_LETTERS: Final = re.compile(r"[A-Za-z]{2,12}_[A-Za-z0-9]{16,}")
"""An id without a digit: ``call_AbCdEf…``."""
_ALIKE: Final = re.compile(r"<(?:n|id|hex)>")


class Normalised(NamedTuple):
    """A text without what differs each time, and what that was: (kind, original), in order."""

    text: str
    replaced: tuple[tuple[str, str], ...] = ()


def normalise(text: str) -> Normalised:
    """`text` without what differs each time: ``<n>`` for a number with its unit, ``<id>`` for a word with digits in it,
    ``<hex>``, ``<time>``, ``<path>``, ``<url>``, ``<ip>``, ``<quoted>``.

    White space is one blank. What is normalised already stays as it is. The work is bounded, whatever the text.
    """
    return _normalised(_ends(text, MOST_READ))


@lru_cache(maxsize=4096)
def _normalised(text: str) -> Normalised:
    replaced: list[tuple[str, str]] = []
    before, passes = None, 0
    while text != before and (_SOME.search(_PLACED.sub("x", text)) or len(text) > MOST_KEPT):
        if passes == _MOST_PASSES:
            return Normalised(UNSETTLED, (("text", text),))
        before, text = text, _pass(text, replaced)
        passes += 1
    return Normalised(text, tuple(replaced))


def _pass(text: str, replaced: list[tuple[str, str]]) -> str:
    """`text` normalised once. What takes the place of something may be part of something larger: so once is not all."""

    def place(match: re.Match[str]) -> str:
        found, kind = match.group(), _kind(match)
        if kind is None:
            return found
        replaced.append((kind, found))
        return f"<{kind}>"

    text = " ".join(text.split())
    pieces = _DATA if _IS_DATA.match(text) else _PROSE
    return _ends(pieces.sub(place, text), MOST_KEPT)


def _kind(match: re.Match[str]) -> str | None:
    """What a piece of text is, None if it stays."""
    kind = match.lastgroup
    if kind == "time" and _HEX.fullmatch(match.group()):
        return "hex"  # it only looks like so many days
    if kind == "word":
        return _kind_of_word(match.group())
    return {"kept": None, "uuid": "id", "number": "n"}.get(kind or "", kind)


def _kind_of_word(word: str) -> str | None:
    if _WHOLE_NUMBER.fullmatch(word):
        return "n"
    if _HEX.fullmatch(word):
        return "hex"
    return "id" if any(map(str.isdecimal, word)) or _LETTERS.fullmatch(word) else None


def _ends(text: str, most: int) -> str:
    """At most so many characters of a text: of its beginning twice as many as of its end."""
    if len(text) <= most:
        return text
    tail = (most - len(_CUT)) // 3
    return text[: most - len(_CUT) - tail] + _CUT + text[-tail:]


Key = tuple[str | None, Operation | None, str | None, str | None, str]


class Signature(msgspec.Struct, frozen=True):
    """What made a run fail: which agent at what kind of work, with which tool or node, and how it says so."""

    agent: str | None
    operation: Operation | None
    name: str | None
    """Of the tool, node, model or policy."""
    type: str | None
    text: str
    """The text of the error, normalised; without the type where it begins with it."""

    @property
    def key(self) -> Key:
        """Failures with equal keys have one cause. Numbers and ids are alike in it: an id may happen to be a number."""
        return self.agent, self.operation, self.name, self.type, _ALIKE.sub("<>", self.text)

    @property
    def digest(self) -> str:
        """32 hexadecimal digits of the key: the same on every machine."""
        return _digest(self.key)

    @property
    def title(self) -> str:
        """Type, place and text in one line; not cleaned."""
        where = f"{self.type} in {self.name}" if self.type and self.name not in (None, self.type) else ""
        what = where or self.type or self.name or ""
        text = "" if self.text == self.type else self.text
        return ": ".join(filter(None, (what, text))) or "failed"


def signature_of(run: RunSummary) -> Signature | None:
    """The signature of a failed run, None for any other. Only the deep pass knows all that is in it."""
    if run.status is not Status.ERROR:
        return None
    return _signature(run.agent, run.first_error or _SILENT, run.status_word)


def digest_of(run: RunSummary) -> str | None:
    """`Signature.digest` of a run, None if it did not fail; remembered of many runs, for queries that ask of all."""
    if run.status is not Status.ERROR:
        return None
    return _digest_of(run.agent, run.first_error or _SILENT, run.status_word)


@lru_cache(maxsize=1 << 15)
def _digest_of(agent: str | None, error: FirstError, status_word: str | None) -> str:
    return _signature(agent, error, status_word).digest


def _signature(agent: str | None, error: FirstError, status_word: str | None) -> Signature:
    text = normalise(_said(error)).text or normalise(status_word or "").text
    name = error.name
    if name is not None and error.operation in _LABELLED:
        name = normalise(name).text
    return Signature(agent, error.operation, name, error.type, text)


_SILENT: Final = FirstError("")
_LABELLED: Final = frozenset({Operation.OTHER, Operation.INVOKE_WORKFLOW, Operation.TURN, Operation.MESSAGE})
"""What has a label rather than a name: ``attempt 2``, ``[item 12]``."""


def _said(error: FirstError) -> str:
    if not error.type or not error.message.startswith(error.type):
        return error.message
    rest = error.message[len(error.type) :]
    return rest.lstrip(": ") if rest[:1] in ("", ":", " ") else error.message


@lru_cache(maxsize=4096)
def _digest(key: Key) -> str:
    return blake2b(json.dumps(key).encode(), digest_size=16).hexdigest()


def names_of(digests: list[str]) -> list[str]:
    """Short ids of signatures: ``F-`` and the first four digits, more of those that would be taken for each other."""
    size, names = 4, dict.fromkeys(digests, "")
    while missing := [digest for digest, name in names.items() if not name]:
        heads: dict[str, int] = {}
        for digest in names:
            heads[digest[:size]] = heads.get(digest[:size], 0) + 1
        for digest in missing:
            if heads[digest[:size]] == 1 or size >= len(digest):
                names[digest] = f"F-{digest[:size]}"
        size += 1
    return [names[digest] for digest in digests]
