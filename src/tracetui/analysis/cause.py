"""Finds the cause of a failed run, in a form that is equal for failures that one change fixes.

A cause is independent of who failed: agent, model, format and task are facts about its runs. Errors are compared by the
tool or node they happened in, their type, their text without its noise and the frame that raised; wrong answers by
scorer and task.

Verdicts keep applying when the rules change. Texts of which the shape is recognized (`analysis.error_shapes`) were
grouped by their unwrapped and normalized text before, and `previous_digest_of` still is that cause. Verdicts of version
0.1 were given under yet another digest; its algorithm (`old_digest_of`) is frozen. Nothing but the lookup of these
verdicts uses the two, and a change would lose them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import Final, NamedTuple

import msgspec

from tracetui.analysis.error_shapes import host_name, read_error, without_own_type
from tracetui.analysis.error_text import (
    MAX_SHAPES,
    PLACEHOLDER,
    SEPARATOR,
    ErrorText,
    Noise,
    Normalized,
    Template,
    contains_any,
    joined,
    normalize,
    originals,
    unwrap,
)
from tracetui.model import CUT, MESSAGE_HEAD, FirstError, Operation, Outcome, RunSummary, Score, Status, Who
from tracetui.model.run import Evidence
from tracetui.redact import Excerpt
from tracetui.store.sidecar import Sidecar

# ---- errors that libraries word differently and that one change fixes
#
# Add a row where another library says the same; tests/analysis/test_cause.py has an example of every row.


class Equivalent(NamedTuple):
    """One kind of error."""

    title: str
    type: str
    """Pattern of exception names."""
    text: str
    """Pattern of messages, in lower case."""
    codes: frozenset[str] = frozenset()
    """Status and error codes that say the same. With any other code it is another error."""
    unless: str = r"(?!)"
    """Pattern of texts that sound alike and need another fix."""
    port: bool = False
    """The port distinguishes causes."""
    host: bool = False
    """The host distinguishes causes, where the text names one."""
    added: bool = False
    """Verdicts were given before the row existed (`previous_digest_of`)."""


TABLE: Final = (
    Equivalent(
        "connection refused",
        r"ConnectionRefusedError",
        r"connection refused|econnrefused|actively refused|connect call failed",
        codes=frozenset({"61", "111", "10061"}),
        port=True,
        host=True,
    ),
    Equivalent(
        "connection refused", r"(?!)", r"couldn't connect to server|\d was refused", port=True, host=True, added=True
    ),
    Equivalent("timed out", r"(?!)", r"client\.timeout exceeded", added=True),
    Equivalent(
        "address in use",
        r"(?!)",
        r"address already in use|\beaddrinuse\b|port is already allocated",
        codes=frozenset({"48", "98", "10048"}),
        port=True,
        added=True,
    ),
    Equivalent(
        "connection reset",
        r"ConnectionResetError",
        r"connection[ _]reset|\beconnreset\b",
        codes=frozenset({"54", "104", "10054"}),
        host=True,
        added=True,
    ),
    Equivalent(
        "host not found",
        r"(?!)",
        r"\benotfound\b|name or service not known|nodename nor servname|getaddrinfo failed|name_not_resolved"
        r"|no such host|(?:could not|unable to) resolve host|could not translate host name",
        codes=frozenset({"-2", "8", "11001"}),
        host=True,
        added=True,
    ),
    Equivalent(
        "name resolution failed",
        r"(?!)",
        r"\beai_again\b|temporary failure in name resolution",
        codes=frozenset({"-3"}),
        added=True,
    ),
    Equivalent(
        "quota exceeded (Google)",
        r"(?!)",
        r"resource_?exhausted\b.*exceeded your current quota|exceeded your current quota.*(?:google|gemini)",
        codes=frozenset({"429"}),
        added=True,
    ),
    Equivalent(
        "quota exceeded (OpenAI)",
        r"(?!)",
        r"insufficient_quota|exceeded your current quota",
        codes=frozenset({"429"}),
        added=True,
    ),
    Equivalent("overloaded", r"OverloadedError", r"\boverloaded\b", codes=frozenset({"529"}), added=True),
    Equivalent(
        "rate limited (Google)",
        r"ResourceExhausted",
        r"\bresource[ _]exhausted\b",
        codes=frozenset({"429"}),
        unless=r"quota|billing|larger than|message size",
        added=True,
    ),
    Equivalent(
        "rate limited",
        r"(?i)rate_?limit\w*|Throttl\w+|TooManyRequests\w*",
        r"rate[ _-]?limit(?!er)|too many requests|throttl(?:ed|ing)",
        codes=frozenset({"429"}),
        unless=r"quota|billing|insufficient|credit",
    ),
    Equivalent(
        "context too long",
        r"Context(?:Window|Length)Exceeded\w*",
        r"maximum context length|context[ _](?:length|window)[ _](?:is )?exceeded|(?:prompt|input) is too long"
        r"|exceeds? the (?:available |maximum )?(?:context|maximum number of tokens)",
        codes=frozenset({"400", "413"}),
    ),
    Equivalent(
        "disk full",
        r"(?!)",
        r"no space left on device|\benospc\b|not enough space on the disk",
        codes=frozenset({"28", "112"}),
        added=True,
    ),
    Equivalent("GPU out of memory", r"CudaOutOfMemory\w*", r"\b(?:cuda|hip|gpu|mps)\b.{0,40}out of memory"),
    Equivalent(
        "out of memory",
        r"_?(?:Array)?MemoryError|OutOfMemoryError",
        r"out of memory|cannot allocate memory|unable to allocate|\benomem\b|bad_alloc|\boomkilled\b",
        codes=frozenset({"12"}),
    ),
    Equivalent(
        "timed out",
        r"\w*Time(?:d)?[oO]ut(?:Error|Exception|Expired)?",
        r"\btimed[ -]out\b|\be(?:socket)?timedout\b|deadline exceeded|\btimeout (?:of )?\S+ exceeded",
        codes=frozenset({"60", "110", "10060", "-32001"}),
        unless=r"queuepool|gateway time-?out|lock (?:wait )?time",
    ),
)
OF_CHECKS: Final = (
    Equivalent(
        "expected file does not exist",
        r"FileNotFoundError|NoSuchFileException|NotADirectoryError",
        r"\bno such file or directory\b|\benoent\b"
        r"|(?:<path>|\b(?:file|path|output|script|directory|folder|document|binary)\b|[\w-]\.[a-z]\w{0,5}\b).{0,60}"
        r"\b(?:do(?:es)?(?:n't| not) exist|not found|(?:is|was|are) missing|not (?:been )?created|not exist|missing)\b"
        r"|\bmissing (?:required |expected |output )*(?:file|output)\b"
        r"|^assert [^=<>]*\b(?:exists|is_file|isfile|is_dir|isdir)\(",
        unless=r"\b(?:module|command|key|column|attribute|function|class|package)\b.{0,20}not found",
    ),
)
"""Ways in which checks word the same failure: what the agent was to make is not there."""
_COMPILED: Final = [(row, re.compile(row.type), re.compile(row.text), re.compile(row.unless)) for row in TABLE]
_STEMS: Final = (
    "refused",
    "call failed",
    "connect to server",
    "in use",
    "already allocated",
    "limit",
    "many requests",
    "throttl",
    "context",
    "long",
    "exceed",
    "memory",
    "alloc",
    "enomem",
    "oom",
    "timed",
    "reset",
    "overloaded",
    "resource",
    "quota",
    "not known",
    "nodename",
    "getaddrinfo",
    "no such host",
    "resolve",
    "host name",
    "again",
    "name resolution",
    "space",
    "enospc",
)
"""One of them is in every text that fits a row of `TABLE`."""
_OF_CHECKS: Final = [(row, re.compile(row.type), re.compile(row.text), re.compile(row.unless)) for row in OF_CHECKS]
_PORT: Final = re.compile(r"\bport[=: ]+(\d{1,5})\b|[\w\].:]:(\d{2,5})(?![\w]|[:.]\d)|', (\d{2,5})[,)]")
_HOST: Final = re.compile(
    r"\bhost='([^']+)'|://(?:[^/\s@'\"]*@)?([^/\s:'\"?#)]+)"
    r"|\b[Cc]onnection to ([A-Za-z][\w-]*(?:\.[\w-]+)+)|\b(?:connecting to|connect to host|server at"
    r"|dial tcp:?(?! lookup)|lookup|resolve host(?: address)?:?|Failed to resolve|host name|ENOTFOUND"
    r"|ECONNREFUSED|ECONNRESET|ETIMEDOUT)\s[\"']?([A-Za-z][\w-]*(?:\.[\w-]+)*)(?=[\s:,\"')]|\.?$)"
)
_OLD_PORT: Final = re.compile(r"\bport[=: ]+(\d{1,5})\b|[\w\].:]:(\d{2,5})(?![\w]|[:.]\d)")
_CONNECTING: Final = re.compile(r"(?<!API)Connect\w*Time")
_CONNECT_TIMEOUT: Final = re.compile(r"\bconnect timeout=|ConnectTimeoutError")
_MEMORY: Final = re.compile(
    r"Java heap space|GC overhead limit|Metaspace|Direct buffer memory|native thread|array size"
)


@lru_cache(maxsize=1024)
def _rows_of(kind: str | None) -> frozenset[Equivalent]:
    return frozenset(row for row, of_type, *_ in _COMPILED if kind and of_type.fullmatch(kind))


def find_equivalent(error: ErrorText, normal: Normalized) -> str | None:
    """Return the title of the row that an error fits, with what refines it; None if it fits none.

    `normal` is its normalized text. The port and host of a connection and the subject of an error refine a row.
    """
    row = _find_row(error.type, normal.shape, normal.template.codes)
    return None if row is None else _refined(row, error, normal.shape)


def _refined(row: Equivalent, error: ErrorText, shape: str) -> str:
    title, by_host, names_host = _title_of(row.title, error.type, shape, by_host=row.host)
    if row.port and (port := _PORT.search(error.text)):
        title = f"{title} (port {next(filter(None, port.groups()))})"
    host = error.host
    if names_host and not host and (named := _HOST.search(error.text)):
        host = host_name(next(filter(None, named.groups())))
    subject = error.subject and normalize(error.subject).text
    return SEPARATOR.join(filter(None, (title, subject, host if by_host else "")))


@lru_cache(maxsize=MAX_SHAPES)
def _title_of(title: str, kind: str | None, shape: str, *, by_host: bool) -> tuple[str, bool, bool]:
    """The title of a row for errors of one shape, whether hosts distinguish them, and whether their texts name one."""
    if title == "timed out" and (_CONNECTING.search(kind or "") or _CONNECT_TIMEOUT.search(shape)):
        title, by_host = "timed out connecting", True  # any other is about how long an answer may take
    elif title == "out of memory" and (memory := _MEMORY.search(shape)):
        title = f"{title} ({memory.group()})"
    return title, by_host, by_host and _HOST.search(shape) is not None


def _old_title(row: Equivalent, text: str) -> str:
    port = _OLD_PORT.search(text) if row.port else None
    return f"{row.title} (port {port[1] or port[2]})" if port else row.title


@lru_cache(maxsize=MAX_SHAPES)
def _find_row(kind: str | None, text: str, codes: tuple[str, ...], *, old: bool = False) -> Equivalent | None:
    if kind is not None and kind.startswith("exit "):
        return None
    lower, by_type = text.lower(), _rows_of(kind)
    if not by_type and not contains_any(lower, _STEMS):
        return None
    for row, _, of_text, unless in _COMPILED:
        if old and row.added:
            continue
        fits = row in by_type or of_text.search(lower)
        if fits and row.codes.issuperset(codes) and not unless.search(lower):
            return row
    return None


MAX_LEAVES: Final = 6
"""Different exceptions of a group that are named."""
DIGEST_LENGTH: Final = 40
"""Hexadecimal digits of a digest. Ids of version 0.1 had 32 (`old_digest_of`)."""
BY_TEXT: Final = "text"
"""Splits a cause of equivalent errors by their texts."""

_NAMED: Final = frozenset(
    {Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.NODE, Operation.ROUTE, Operation.POLICY, Operation.HOOK}
)
"""Work with a name that is part of a cause. That of a model call is the model, that of an agent the agent."""
_MAX_FAILURES: Final = 1 << 17
"""Cached failures: those of the largest directories, which are grouped again whenever a run changes."""
_ALIKE: Final = re.compile(r"<(?:n|id|hex)>")
"""An id may happen to be a number."""


class Cause(msgspec.Struct, frozen=True, gc=False):
    """The cause of a failure; two failures with equal keys have one cause."""

    operation: Operation | None = None
    name: str | None = None
    """Name of the tool, node, policy or hook."""
    type: str | None = None
    """Type of the error; of a wrong answer the scorer."""
    text: str = ""
    """Normalized text of the error; empty of a wrong answer."""
    frame: str | None = None
    """The last frame of its traceback in user code."""
    part: tuple[str, ...] = ()
    """Sets it apart from the cause that it is a part of: the task of a wrong answer, a value that the user split by."""
    wrong: bool = False
    """It is a wrong answer: `text` is that of the check that failed first, `name` the check if it only asserts."""
    who: Who = Who.AGENT
    ungraded: bool = False
    """It is no failure: why runs were not graded."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for failures of one cause."""
        text, frame = (
            _ALIKE.sub("<>", value) if value and "<" in value else value for value in (self.text, self.frame)
        )
        key = self.operation, self.name, self.type, text, frame, self.part, self.wrong
        return (*key, "ungraded") if self.ungraded else key

    @property
    def digest(self) -> str:
        """`DIGEST_LENGTH` hexadecimal digits of the key, the same on every machine."""
        return _digest(self.key)

    @property
    def title(self) -> str:
        """Type and text in one line, then the tool; not cleaned."""
        if self.wrong:
            check = ": ".join(filter(None, (self.name, self.text)))
            return " · ".join(["wrong answers", self.type or "", *filter(None, (check,)), *self.part])
        text = "" if self.text == self.type else self.text
        title = ": ".join(filter(None, (self.type, text)))
        if self.part:
            title += f" = {self.part[-1]}"
        if self.name and self.name != self.type:
            title = f"{title} · {self.name}" if title else self.name
        return (title or "failed") + (f" ({self.frame})" if self.frame else "")


class Failure(msgspec.Struct, frozen=True, gc=False):
    """How one run failed, or why it was not graded.

    Its texts are exact, since they identify the cause. `excerpt` makes them displayable.
    """

    cause: Cause
    plain: Cause
    """The same without the table of equivalents."""
    digest: str
    """Digest of `cause`."""
    whole: str = ""
    """The text that the trace recorded; that of the cause is a part of it."""
    source: str = ""
    """The text of `plain` with its noise."""
    noise: Noise = ()
    """Where the placeholders of that text are in `source`."""
    changed: bool = False
    """Its cause had another digest before (`previous_digest_of`)."""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """(Kind, original) of every placeholder in the text of `plain`, in their order."""
        return originals(self.source, self.noise)

    def part(self, split: str) -> Cause:
        """The cause of this failure after its cause was split by `BY_TEXT` or the number of a placeholder, from 1."""
        if split == BY_TEXT:
            return self.plain
        number = int(split) if split.isdecimal() else 0
        value = self.values[number - 1][1] if 0 < number <= len(self.values) else ""
        return msgspec.structs.replace(self.cause, part=(split, value))

    def excerpt(self, part: str) -> Excerpt:
        """One of its texts, as a part of what the trace recorded: the text, and the names beside it."""
        cause, plain = self.cause, self.plain
        names = cause.type, plain.type, cause.name, plain.name, plain.frame, *(plain.part if plain.wrong else ())
        texts = names if cause is plain else (*names, cause.text)
        return Excerpt(part, "\n".join(dict.fromkeys(filter(None, (*texts, self.whole)))))

    @property
    def text(self) -> str:
        """Type and text of this very failure, in one line."""
        values = iter(self.values)
        text = PLACEHOLDER.sub(lambda match: next(values)[1], self.plain.text) if self.noise else self.plain.text
        return ": ".join(filter(None, (self.plain.type, text)))


def failure_of(run: RunSummary) -> Failure | None:
    """Return how a run failed, or why it was not graded; else None. Only the deep pass knows every error and score.

    Why it was not graded counts before an error, an error before a wrong answer.
    """
    shared = run.shared
    if shared.outcome is Outcome.UNGRADED and (evidence := run.evidence) is not None:
        return _not_graded(evidence)
    if shared.status is Status.ERROR and not shared.excused:
        return _failure_of(run.head.first_error or _SILENT, shared.status_word)
    if shared.outcome is Outcome.FAILED:
        score = deciding_score(run)
        return _wrong_answer(score.name, shared.task or "", score.evidence)
    return None


def digests_of(run: RunSummary, decisions: Sidecar | None = None) -> tuple[str, ...]:
    """The digests under which a failed or ungraded run is judged, the closest first; empty of any other.

    The first is that of its cause after merges and splits. Then come the cause before them, that of rules before, and
    the signature of version 0.1 where `decisions` have any.
    """
    failure = failure_of(run)
    if failure is None:
        return ()
    cause = failure.cause
    if decisions is None or not (decisions.regrouped or decisions.has_old_digests):
        own = (failure.digest,) if not cause.wrong else of_wrong_answer(cause)
        previous = previous_digest_of(run) if decisions is not None and decisions.has_causes else None
        return own if previous is None else (*own, previous)
    part = failure.part(split) if (split := decisions.split_part(cause.digest)) else cause
    digests = dict.fromkeys([decisions.merged_into(part.digest), part.digest, cause.digest])
    if cause.wrong:
        digests |= dict.fromkeys(of_wrong_answer(cause))
    if (previous := previous_digest_of(run)) is not None:
        digests |= dict.fromkeys([decisions.merged_into(previous), previous])
    old = old_digest_of(run) if decisions.has_old_digests else None
    return (*digests, old) if old is not None else (*digests,)


def cause_digest(run: RunSummary, decisions: Sidecar | None = None) -> str | None:
    """The digest of the group of a failed run: of a wrong answer that of its heading; None if it did not fail."""
    failure = failure_of(run)
    if failure is not None and failure.cause.wrong:
        return msgspec.structs.replace(failure.cause, part=()).digest  # of the heading
    return digests_of(run, decisions)[0] if failure is not None else None


def deciding_score(run: RunSummary) -> Score:
    """The score that made a run fail."""
    failed = [score for score in run.head.scores if score.passed is False]
    named = (score for score in failed if run.outcome_source.startswith(score.source or score.name))
    return next(named, failed[0] if failed else Score("outcome"))


@lru_cache(maxsize=_MAX_FAILURES)
def _failure_of(error: FirstError, status_word: str | None) -> Failure:
    read, changed = read_error(error.type, error.message)
    if read.leaves:
        read = _without_group(read.leaves)
    normal = _normal(read, status_word)
    changed = changed or normal.source.startswith(("/", "~"))
    row = _find_row(read.type, normal.shape, normal.template.codes)
    equivalent = None
    if row is None:
        typed, read = read, without_own_type(read)
        changed = changed or typed != read
    else:
        equivalent = _refined(row, read, normal.shape)
        changed = changed or row.added or equivalent != _old_title(row, read.text)
    if read.subject or read.host:
        normal = joined(normal, *map(normalize, filter(None, (read.subject, read.host))))
    frame = read.frame and _FILE_NUMBER.sub("<n>", _frame(read.frame))
    changed = changed or (frame is not None and frame != _frame(read.frame or ""))
    noise = normal.template.noise
    cause, plain, digest, places = _causes(*_where(error), read.type, normal.text, frame, equivalent)
    noise = noise if len(noise) == places else ()
    return Failure(cause, plain, digest, error.message, normal.source, noise, changed)


def _without_group(leaves: Sequence[ErrorText]) -> ErrorText:
    """The only exception of a group if all are alike, else their names, in any order and number."""
    named: dict[str, ErrorText] = {}
    for leaf in leaves:
        normal = _normal(leaf, None)
        row = _find_row(leaf.type, normal.shape, normal.template.codes)
        label = (
            (without_own_type(leaf).type, normal.text, leaf.subject)
            if row is None
            else (_refined(row, leaf, normal.shape),)
        )
        named.setdefault(": ".join(filter(None, label)), leaf)
    names = sorted(named)
    if len(names) == 1:
        return named[names[0]]
    more = [f"and {len(names) - MAX_LEAVES} more"] if len(names) > MAX_LEAVES else []
    return ErrorText("ExceptionGroup", "; ".join([*names[:MAX_LEAVES], *more]))


def _normal(error: ErrorText, status_word: str | None) -> Normalized:
    normal = normalize(error.text)
    if not normal.text:
        return normalize(status_word or "")
    if normal.text == "<quoted>":
        return normalize(normal.source[1:-1])
    if normal.text == "<path>" and error.type == "KeyError":
        return Normalized(normal.source, normal.source, Template(normal.source, ()))
    return normal


def _where(error: FirstError) -> tuple[Operation | None, str | None]:
    return (error.operation, error.name) if error.operation in _NAMED else (None, None)


def previous_digest_of(run: RunSummary) -> str | None:
    """The digest of the cause of a run before shapes of errors were recognized; None if it is that of today."""
    failure = failure_of(run)
    if failure is None or not failure.changed:
        return None
    return _previous_digest(run.head.first_error or _SILENT, run.shared.status_word)


@lru_cache(maxsize=4096)
def _previous_digest(error: FirstError, status_word: str | None) -> str:
    unwrapped = unwrap(error.type, error.message)
    normal = normalize(unwrapped.text)
    if not normal.text:
        normal = normalize(status_word or "")
    frame = unwrapped.frame and _frame(unwrapped.frame)
    row = _find_row(unwrapped.type, normal.shape, normal.template.codes, old=True)
    equivalent = None if row is None else _old_title(row, unwrapped.text)
    return _causes(*_where(error), unwrapped.type, normal.text, frame, equivalent)[2]


_FILE_NUMBER: Final = re.compile(r"(?<=[A-Za-z_])\d{3,}(?=\.\w+$)")
"""Of a generated file: ``cell_1234.py``."""


@lru_cache(maxsize=4096)
def _frame(frame: str) -> str:
    return normalize(frame).text


@lru_cache(maxsize=4096)
def _causes(
    operation: Operation | None,
    name: str | None,
    kind: str | None,
    text: str,
    frame: str | None,
    equivalent: str | None,
) -> tuple[Cause, Cause, str, int]:
    """The cause, the one without the table of equivalents, its digest, and the number of placeholders in the text."""
    plain = Cause(operation, name, kind, text, frame)
    cause = plain if equivalent is None else Cause(operation, name, None, equivalent)
    return cause, plain, cause.digest, len(PLACEHOLDER.findall(text))


_OF_MODULES: Final = frozenset({"ModuleNotFoundError", "ImportError", "SyntaxError"})
"""Types of exceptions that say all, whichever check meets them."""


@lru_cache(maxsize=4096)
def _wrong_answer(scorer: str, task: str, evidence: Evidence | None) -> Failure:
    """By scorer, by what the first failed check says, and by task."""
    plain = Cause(type=scorer, part=(task,), wrong=True)
    if evidence is None or not (evidence.text or evidence.check):
        return Failure(plain, plain, plain.digest, "" if evidence is None else evidence.text)
    normal = normalize(evidence.text)
    asserts = evidence.type in (None, "AssertionError")
    text = normal.text if asserts else ": ".join(filter(None, (evidence.type, normal.text)))
    plain = msgspec.structs.replace(
        plain, name=None if evidence.type in _OF_MODULES else evidence.check or None, text=text
    )
    noise = normal.template.noise if asserts else ()
    equivalent = _find_row_of_checks(evidence.type, normal.text)
    if equivalent is None and not asserts:
        equivalent = find_equivalent(ErrorText(evidence.type, evidence.text), normal)
    cause = plain if equivalent is None else msgspec.structs.replace(plain, name=None, text=equivalent)
    return Failure(cause, plain, cause.digest, evidence.text, normal.source if asserts else "", noise)


def _find_row_of_checks(kind: str | None, text: str) -> str | None:
    lower = text.lower()
    for row, of_type, of_text, unless in _OF_CHECKS:
        if (of_type.fullmatch(kind or "") or of_text.search(lower)) and not unless.search(lower):
            return row.title
    return None


def of_wrong_answer(cause: Cause) -> tuple[str, ...]:
    """The digests under which a wrong answer is judged: its own, that without its check, that of task and scorer."""
    plain = msgspec.structs.replace(cause, name=None)
    return tuple(dict.fromkeys((cause.digest, plain.digest, msgspec.structs.replace(plain, text="").digest)))


@lru_cache(maxsize=4096)
def _not_graded(evidence: Evidence) -> Failure:
    error, _ = read_error(evidence.type, evidence.text.removeprefix(f"{evidence.type}: "))
    normal = normalize(error.text)
    cause = Cause(type=error.type, text=normal.text, who=evidence.who, ungraded=True)
    noise = normal.template.noise
    places = len(PLACEHOLDER.findall(normal.text))
    noise = noise if len(noise) == places else ()
    return Failure(cause, cause, cause.digest, evidence.text, normal.source, noise)


_SILENT: Final = FirstError("")


@lru_cache(maxsize=1 << 15)
def _digest(key: tuple[object, ...]) -> str:
    return blake2b(json.dumps(key).encode(), digest_size=DIGEST_LENGTH // 2).hexdigest()


def shared_cause(cause: Cause, failures: Sequence[Failure]) -> Cause:
    """`cause` as these failures of it share it, in any order: with a placeholder only where their texts differ."""
    plain = failures[0].plain
    if any(failure.plain is not failure.cause for failure in failures) and not _alike(failures):
        return cause
    return msgspec.structs.replace(plain, text=_shared_text(failures), part=cause.part)


def _alike(failures: Sequence[Failure]) -> bool:
    """Whether all of these have one cause even without the table of equivalents."""
    plain = {id(failure.plain): failure.plain for failure in failures}  # few objects, shared by many failures
    return len({cause.key for cause in plain.values()}) == 1


def _shared_text(failures: Sequence[Failure]) -> str:
    text = min({failure.plain.text for failure in failures})
    first = failures[0].values
    if len({len(failure.noise) for failure in failures}) > 1 or not first:
        return text
    same = [*range(len(first))]
    for failure in failures:
        values = failure.values
        same = [i for i in same if values[i][1] == first[i][1]]
        if not same:
            return text
    places = count()

    def fill(match: re.Match[str]) -> str:
        place = next(places)
        return first[place][1] if place in same else match.group()

    return PLACEHOLDER.sub(fill, text)


def short_ids(digests: Sequence[str], prefix: str = "F-") -> list[str]:
    """Short ids of causes: `prefix` and the first four digits, more of those that would be mistaken for each other."""
    size, names = 4, dict.fromkeys(digests, "")
    while missing := [digest for digest, name in names.items() if not name]:
        heads: dict[str, int] = {}
        for digest in names:
            heads[digest[:size]] = heads.get(digest[:size], 0) + 1
        for digest in missing:
            if heads[digest[:size]] == 1 or size >= len(digest):
                names[digest] = f"{prefix}{digest[:size]}"
        size += 1
    return [names[digest] for digest in digests]


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
_OLD_ALIKE: Final = re.compile(r"<(?:n|id|hex)>")


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
    return _old_digest(run.agent, run.first_error or FirstError(""), run.status_word)


@lru_cache(maxsize=1 << 15)
def _old_digest(agent: str | None, error: FirstError, status_word: str | None) -> str:
    text = _normalize(_message(error)) or _normalize(status_word or "")
    name = error.name
    if name is not None and error.operation in _LABELED:
        name = _normalize(name)
    key = agent, error.operation, name, error.type, _OLD_ALIKE.sub("<>", text)
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
