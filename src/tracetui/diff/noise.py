"""Classify insignificant differences of two runs: ids, times, durations, token counts.

A `Noise` classifies pairs of values of one comparison and counts the ignored ones by kind. It tracks which id of A
corresponds to which id of B: an id with two counterparts is a difference. Ids of tool calls are recognized by their
position (`tracetui.diff.values`), not their form.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")

IDS: Final = "ids"
TIMES: Final = "times"
DURATIONS: Final = "durations"
TOKENS: Final = "token counts"
SPACE: Final = "white space at ends"
FOLDERS: Final = "working directory"
MASKED: Final = "masked values"
PLACES: Final = "positions"
EMPTY: Final = "empty fields"
JSON_FORM: Final = "JSON formatting"
NUMBER_FORM: Final = "number formats"
COMMANDS: Final = "white space in commands"
HASHES: Final = "input hashes"
RECORDS: Final = "how it was recorded"
ENVELOPE: Final = "envelope"
WORDINGS: Final = "a model's own words"
NOTES: Final = "notes of the program"

_TOKEN_FIELDS: Final = frozenset({
    "usage", "token_usage", "prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens",
    "cached_tokens", "reasoning_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "num_prompt_tokens",
    "num_completion_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "input_context_tokens",
    "cost", "cost_usd", "total_cost",
})  # fmt: skip
_TIME_FIELD: Final = re.compile(
    r"(?:.*_)?(?:timestamp|ts|time|created|updated|started|completed|date)(?:_?ms|_utc)?|\w+_at"
    r"|(?:.*[a-z])?(?:Timestamp|Time|At)"
    r"|(?:.*_)?retry_(?:not_before|after)|(?:.*[a-z])?[rR]etry(?:NotBefore|After)"
)
_DURATION_FIELD: Final = re.compile(
    r"(?:.*_)?(?:duration|elapsed|latency|took|(?:execution|working|wall)_time|working_start"
    r"|(?:sampled|retry|backoff)_delay)(?:_?(?:ms|s|seconds|ns))?"
    r"|(?:.*[a-z])?(?:Duration|Latency)"
)
ID_FIELD: Final = re.compile(r"(?:.*_)?(?:u?u?id|ids|fingerprint)|(?:.*[a-z])?(?:Id|ID)s?")
ENVELOPE_FIELD: Final = re.compile(
    r"(?:.*_)?version|(?:.*[a-z])?Version|user_?[tT]ype|(?:.*_)?parent_?uuid|(?:.*[a-z])?Uuid|promptSource|entrypoint"
    r"|originator|git_?[bB]ranch|gitCommit|git_commit|commit_hash|hostname|slug|service_?[tT]ier|permissionMode"
)
"""Record fields about the program, its account and its surroundings: ``version``, ``userType``, ``parentUuid``."""
_FOLDER_FIELD: Final = re.compile(r"cwd(?:_\w+)?|(?:current_)?working_dir(?:ectory)?")
_PLACE_FIELDS: Final = frozenset({"step_index", "turn", "turn_number", "superstep", "index", "sequence_number"})

_UUID: Final = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_TAGGED: Final = (
    rf"\w{{1,32}}[_-]{_UUID}|"
    r"(?:toolu|call|msg|chatcmpl|resp|req|run|evt|event|sess|session|fc|rs)[_-][0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*"
)
_TAGGED_ID: Final = re.compile(_TAGGED)
_MADE_ID: Final = re.compile(rf"{_UUID}|{_TAGGED}|[0-9a-f]{{16,64}}|[0-9A-HJKMNP-TV-Z]{{26}}")
_TIME: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_WHOLE_TIME: Final = re.compile(_TIME)
_IN_TEXT: Final = re.compile(rf"(?P<time>{_TIME})|(?<![\w-])(?P<id>{_UUID}|toolu_\w+|call_\w+|chatcmpl-\w+)(?![\w-])")
_MASK: Final = re.compile(r"<[A-Z][A-Z0-9_-]*>|\$\{CWD\}")
_COMMAND_FIELDS: Final = frozenset({"command", "cmd"})
_SHELL_WORD: Final = re.compile(r"""\n|(?:\\[^\n]|'[^']*'|"(?:\\.|[^"\\])*"|[^\s\\'"])+|['"\\]""", re.DOTALL)
_WORD: Final = re.compile(r"\w(?:[\w.:/+=-]*\w)?")


_ID_LENGTH: Final = 200
_MENTIONED: Final = 3
"""Minimum length of an id recognized in running text."""
_CACHED_ITEMS: Final = 20_000
_CACHED_BYTES: Final = 1 << 16


class Noise:
    """The noise classifier of one comparison; with `strict` it ignores nothing.

    `folders` are the working directories of A and B, if recorded. `imitates`: B repeats A in its own words, so
    white space in its shell commands is insignificant.

    Ids that are equal in A and B correspond too. Tracking them is costly, so it starts only when the first call has a
    different id in B (`renamed`): the caller then restarts with `tracking`.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        folders: tuple[str, str] | None = None,
        imitates: bool = False,
        tracking: bool = False,
    ) -> None:
        self.strict, self.tracking = strict, tracking
        self.counts: Counter[str] = Counter()
        self.renamed = False
        """Whether a call had a different id in B."""
        self.envelope: dict[str, None] = {}
        """The names of the ignored envelope fields."""
        self.ignored_pairs: Cache[tuple[Any, ...], Counter[str]] = Cache()
        """Cache: pairs of encoded items that differ only by noise, with its counts."""
        self.consistent: Cache[bytes, bool] = Cache()
        """Cache: encoded items with call ids that correspond to themselves."""
        self.canonical: Cache[tuple[bytes, str, int], bytes] = Cache()
        """Cache: canonical forms of encoded items."""
        self._folders = folders if folders and folders[0] != folders[1] and all(folders) else None
        self._imitates = imitates
        self._ids: dict[Any, Any] = {}
        self._back: dict[Any, Any] = {}

    def fork(self) -> Noise:
        """A copy with the same id correspondence and zero counts."""
        made = Noise(strict=self.strict, folders=self._folders, imitates=self._imitates, tracking=self.tracking)
        made.renamed, made._ids, made._back = self.renamed, dict(self._ids), dict(self._back)
        return made

    def restart(self) -> Noise:
        """A fresh classifier that also tracks call ids that are equal in A and B."""
        return Noise(strict=self.strict, folders=self._folders, imitates=self._imitates, tracking=True)

    def kind_of(
        self,
        field: str,
        a: Any,
        b: Any,
        *,
        is_input: bool = False,
        recorded: bool = False,
        call: bool = False,
        command: bool = False,
    ) -> str | None:
        """The kind of noise of two unequal values under the name `field`; None if they differ significantly.

        `is_input`: values of a step's input, where an id is significant unless the runs generated it before.
        `recorded`: record fields, with ids of the recording. `call`: the position of a tool call id. `command`: shell
        arguments.
        """
        if call and type(a) is type(b) and isinstance(a, str | int):
            return IDS if self.same_call(a, b) else None
        if (
            command
            and field in _COMMAND_FIELDS
            and isinstance(a, str)
            and isinstance(b, str)
            and self._same_command(a, b)
        ):
            return SPACE if a.strip() == b.strip() else COMMANDS
        field = field.removesuffix(" (end)")
        if recorded and field == "timestamp":  # in any writing
            return TIMES
        if recorded and field == "time" and _number_or_none(a) and _number_or_none(b):  # in arguments it is significant
            return TIMES if _is_epoch_time(a) and _is_epoch_time(b) else DURATIONS
        return IDS if recorded and ID_FIELD.fullmatch(field) else self._kind(field, a, b, is_input)

    def ignores(self, kind: str | None) -> bool:
        """Whether a difference of that kind (None: significant) is ignored; counts it if so."""
        if kind is None or self.strict:
            return False
        self.counts[kind] += 1
        return True

    def same_call(self, a: Any, b: Any) -> bool:
        """Record that call id `a` corresponds to `b`; False if that contradicts an earlier pair."""
        if not self._same_id(a, b):
            return False
        self.renamed |= a != b
        return True

    def counterpart(self, a: Any) -> Any:
        """The id in B that corresponds to `a`; None if unknown."""
        return self._ids.get(a)

    def _kind(self, field: str, a: Any, b: Any, is_input: bool) -> str | None:
        if field in _TOKEN_FIELDS and (_no_text(a) and _no_text(b)):
            return TOKENS
        if field in _PLACE_FIELDS and type(a) is int and type(b) is int:
            return PLACES
        if isinstance(a, str) and isinstance(b, str):
            return self._text(field, a, b, is_input)
        if _time_or_none(a) and _time_or_none(b) and _TIME_FIELD.fullmatch(field):
            return TIMES
        numbers = _number_or_none(a) and _number_or_none(b)
        if numbers and _DURATION_FIELD.fullmatch(field):
            return DURATIONS
        return TIMES if numbers and _TIME_FIELD.fullmatch(field) and _is_epoch_time(a) and _is_epoch_time(b) else None

    def _text(self, field: str, a: str, b: str, is_input: bool) -> str | None:
        if a.strip() == b.strip():
            return SPACE
        if _FOLDER_FIELD.fullmatch(field):
            return FOLDERS
        if _WHOLE_TIME.fullmatch(a) and _WHOLE_TIME.fullmatch(b):
            return TIMES if _TIME_FIELD.fullmatch(field) else None
        if len(a) <= _ID_LENGTH and len(b) <= _ID_LENGTH and _MADE_ID.fullmatch(a) and _MADE_ID.fullmatch(b):
            generated = a in self._ids or not is_input or (_TAGGED_ID.fullmatch(a) and _TAGGED_ID.fullmatch(b))
            return IDS if generated and self._same_id(a, b) else None
        if self._folders is not None and a.replace(self._folders[0], "\0") == b.replace(self._folders[1], "\0"):
            return FOLDERS
        if _is_masked_form(a, b) or _is_masked_form(b, a):
            return MASKED
        return self._embedded_noise(a, b)

    def _same_id(self, a: str, b: str) -> bool:
        """Record that two ids correspond; False if one already corresponds to another."""
        if self._ids.get(a, b) != b or self._back.get(b, a) != a:
            return False
        self._ids[a], self._back[b] = b, a
        return True

    def _same_command(self, a: str, b: str) -> bool:
        """Whether two shell commands differ only in insignificant white space."""
        if self._imitates:
            return a.split() == b.split()
        if "<<" in a or "<<" in b:  # white space is significant in a here-document
            return False
        return _shell_words(a) == _shell_words(b)

    def _embedded_noise(self, a: str, b: str) -> str | None:
        """The kind of noise of two texts that differ only in embedded times and ids."""
        left, right = _IN_TEXT.sub(_placeholder, a), _IN_TEXT.sub(_placeholder, b)
        if left.strip() != right.strip():
            return IDS if self._mentions(a, b) else None
        matches = list(zip(_IN_TEXT.finditer(a), _IN_TEXT.finditer(b), strict=True))
        ids = [(x.group(), y.group()) for x, y in matches if x["id"] and x.group() != y.group()]
        if not all(self._same_id(x, y) for x, y in ids):
            return None
        return IDS if ids else TIMES

    def _mentions(self, a: str, b: str) -> bool:
        """Whether two texts differ only in corresponding call ids."""
        if not self.renamed:
            return False

        def replaced(match: re.Match[str]) -> str:
            word = match.group()
            other = self._ids.get(word) if len(word) >= _MENTIONED and not word.isalpha() else None
            return other if isinstance(other, str) else word

        return _WORD.sub(replaced, a).strip() == b.strip()


def without_noise(field: str, value: Any, *, command: bool = False) -> Any:
    """Replace a text or number in the input of a step by a stand-in for everything that a `Noise` lets pass for it.

    `field` is the name that it is under; `command`: it is in the arguments of a shell.
    """
    if isinstance(value, str):
        return _text_without_noise(field, value, command)
    if isinstance(value, bool) or value is None:
        return value
    if field in _TOKEN_FIELDS:
        return f"\0{TOKENS}"
    if field in _PLACE_FIELDS and isinstance(value, int):
        return f"\0{PLACES}"
    if _DURATION_FIELD.fullmatch(field):
        return f"\0{DURATIONS}"
    return f"\0{TIMES}" if _is_epoch_time(value) and _TIME_FIELD.fullmatch(field) else value


def _text_without_noise(field: str, text: str, command: bool) -> str:
    if command and field in _COMMAND_FIELDS:
        return text.strip() if "<<" in text else "\0".join(_shell_words(text))
    if _FOLDER_FIELD.fullmatch(field):
        return f"\0{FOLDERS}"
    if _WHOLE_TIME.fullmatch(text):
        return f"\0{TIMES}" if _TIME_FIELD.fullmatch(field) else text
    if len(text) <= _ID_LENGTH and _MADE_ID.fullmatch(text.strip()):
        return f"\0{IDS}" if _TAGGED_ID.fullmatch(text.strip()) else text
    return _IN_TEXT.sub(_placeholder, text)


class Cache(dict[_K, _V]):
    """A dictionary that is cleared when full and ignores large keys."""

    def put(self, key: _K, value: _V, size: int) -> None:
        """Cache `value`; `size` is the size of the key in bytes."""
        if size > _CACHED_BYTES:
            return
        if len(self) >= _CACHED_ITEMS:
            self.clear()
        self[key] = value


def _shell_words(command: str) -> list[str]:
    """The words and newlines of a shell command, without other white space."""
    tokens = _SHELL_WORD.findall(command.replace("\\\n", " ").strip())
    return [word for i, word in enumerate(tokens) if word != "\n" or tokens[i - 1] != "\n"]


def _placeholder(match: re.Match[str]) -> str:
    return "\0t" if match["time"] else "\0i"


def _is_masked_form(masked: str, plain: str) -> bool:
    """Whether `masked` is `plain` with parts replaced by placeholders such as ``<SESSION>``."""
    pieces = _MASK.split(masked, 20)
    if len(pieces) == 1:
        return False
    place = len(pieces[0])
    if not plain.startswith(pieces[0]):
        return False
    for piece in pieces[1:-1]:
        place = plain.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    return len(plain) - place >= len(pieces[-1]) and plain.endswith(pieces[-1])


def _no_text(value: Any) -> bool:
    return not isinstance(value, str)


def _number_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _time_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _WHOLE_TIME.fullmatch(value) is not None)


def _is_epoch_time(value: Any) -> bool:
    """Whether a number can be a time since the epoch (seconds or finer)."""
    return value is None or value > 100_000_000
