"""The signature digests of version 0.1, for verdicts that were given under them.

This algorithm is frozen: nothing but the lookup of old verdicts uses it, and a change would lose them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from tracetui.model import CUT, MESSAGE_HEAD, FirstError, Operation, RunSummary, Status

_MAX_INPUT: Final = 4_000
_MAX_TEXT: Final = 500
_MOST_PASSES: Final = 12
_CUT: Final = " … "
_KINDS: Final = ("n", "id", "hex", "path", "url", "ip", "time", "quoted", "text")

_UNITS: Final = "[kKMGT]i?[bB]|[kKMGTx%]|bytes?|px|st|nd|rd|th|tok(?:ens?)?"
_TIMES: Final = "ns|us|µs|ms|sec(?:onds?|s)?|min(?:ute)?s?|hrs?|hours?|days?|weeks?"
_NUMBER: Final = r"(?:\d{1,3}(?:[,_]\d{3}){1,9}(?!\d)|\d+)(?:\.\d+){0,9}(?:[eE][-+]?\d+)?"
_LATIN: Final = "\u00c0-\u024f"
_NAME: Final = rf"\w.@+~{_LATIN}-"
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
_IS_DATA: Final = re.compile(r"""[\[{]\s*["'{]""")
_SOME: Final = re.compile(r"""[\d"'`“‘«/\\<]|_\w{16}|\s\s|[^\S ]|^\s|\s$""")
_PLACED: Final = re.compile(f"<(?:{'|'.join(_KINDS)})>")
_WHOLE_NUMBER: Final = re.compile(_NUMBER, re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]+|(?=\w*\d)[0-9a-fA-F]{7,}", re.ASCII)
_LETTERS: Final = re.compile(r"[A-Za-z]{2,12}_[A-Za-z0-9]{16,}")
_ALIKE: Final = re.compile(r"<(?:n|id|hex)>")


def _normalize(text: str) -> str:
    return _normalized(_ends(text, _MAX_INPUT))


@lru_cache(maxsize=4096)
def _normalized(text: str) -> str:
    before, passes = None, 0
    while text != before and (_SOME.search(_PLACED.sub("x", text)) or len(text) > _MAX_TEXT):
        if passes == _MOST_PASSES:
            return "<text>"
        before, text = text, _pass(text)
        passes += 1
    return text


def _pass(text: str) -> str:
    text = " ".join(text.split())
    pieces = _DATA if _IS_DATA.match(text) else _PROSE
    return _ends(pieces.sub(_place, text), _MAX_TEXT)


def _place(match: re.Match[str]) -> str:
    kind = _kind(match)
    return match.group() if kind is None else f"<{kind}>"


def _kind(match: re.Match[str]) -> str | None:
    kind = match.lastgroup
    if kind == "time" and _HEX.fullmatch(match.group()):
        return "hex"
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
    if len(text) <= most:
        return text
    tail = (most - len(_CUT)) // 3
    return text[: most - len(_CUT) - tail] + _CUT + text[-tail:]


def old_digest_of(run: RunSummary) -> str | None:
    """The 32 digits under which version 0.1 stored verdicts on the failure of a run; None if it has no error."""
    if run.status is not Status.ERROR:
        return None
    return _digest(run.agent, run.first_error or FirstError(""), run.status_word)


@lru_cache(maxsize=1 << 15)
def _digest(agent: str | None, error: FirstError, status_word: str | None) -> str:
    text = _normalize(_message(error)) or _normalize(status_word or "")
    name = error.name
    if name is not None and error.operation in _LABELED:
        name = _normalize(name)
    key = agent, error.operation, name, error.type, _ALIKE.sub("<>", text)
    return blake2b(json.dumps(key).encode(), digest_size=16).hexdigest()


_LABELED: Final = frozenset({Operation.OTHER, Operation.INVOKE_WORKFLOW, Operation.TURN, Operation.MESSAGE})


def _message(error: FirstError) -> str:
    message = error.message
    if message.startswith(CUT, MESSAGE_HEAD):
        message = message[:MESSAGE_HEAD]  # version 0.1 had no more of it
    if not error.type or not message.startswith(error.type):
        return message
    rest = message[len(error.type) :]
    return rest.lstrip(": ") if rest[:1] in ("", ":", " ") else message
