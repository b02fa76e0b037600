"""Reads errors of which the structure is known, before their noise is replaced (`analysis.error_text`).

Each reader takes one way in which programs print errors apart: exception groups, lists of validation errors, stacks,
responses, commands, package managers, git, tools that edit. It keeps what decides who has to fix what, drops data of
the single call, and names in `ErrorText.subject` and `host` what normalizing would replace.

Rule of thumb: would one fix repair both? Statuses, exit codes, names of modules, keys, commands and packages, hosts and
ports of connections tell causes apart. Versions, counts, ids, paths, quoted user data and the digits of pooled hosts
don't.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final, NamedTuple

from tracetui.analysis.error_envelopes import (
    CUTS,
    EDITS,
    ERRNO_MARKS,
    MAX_PLANS,
    cut_addition,
    masked,
    open_envelopes,
    status_text,
    system_error,
)
from tracetui.analysis.error_lines import statement, without_progress
from tracetui.analysis.error_text import MAX_INPUT, NOT_USER_CODE, ErrorText, contains_any, ends, normalize, unwrap

_MAX_SUBJECT: Final = 120
_MAX_DEPTH: Final = 3
_LONGEST: Final = 2 * MAX_INPUT
"""Characters of a text that are searched for groups, lists and stacks."""


def read_error(kind: str | None, text: str) -> tuple[ErrorText, bool]:
    """Return the error inside of all wrappings, and whether its shape was recognized; `kind` as for `unwrap`."""
    return _read(kind, text)


def _read(kind: str | None, text: str, depth: int = 0) -> tuple[ErrorText, bool]:
    if "\n" in text:
        text = without_progress(text)
    whole = ends(text, _LONGEST)
    shape = masked(whole)
    if depth < _MAX_DEPTH:
        for read_whole in _wholes_in(shape):
            if (error := read_whole(kind, whole, depth + 1)) is not None:
                return error, True
    plain = unwrap(kind, text)
    inside = open_envelopes(text, shape) if len(text) <= MAX_INPUT else text
    error = plain if inside == text else unwrap(None, inside)
    if len(error.text) > MAX_INPUT:
        error = error._replace(text=ends(error.text, MAX_INPUT))
    error = _shaped(error, shape if error.text == whole else masked(error.text))
    if "\n" in error.text:
        error = error._replace(text=statement(error.text))
    error = _message_with_status(error)
    if error.text.endswith((".", ";", ",")) and " " in error.text:
        error = error._replace(text=error.text.rstrip(".:;, "))
    if error.frame is not None:
        error = error._replace(frame=_own_frame(error.frame, text))
    return error, error != plain


def _shaped(error: ErrorText, shape: bytes) -> ErrorText:
    """The error of this masked text after all readers of its shape, in their order; one may make it fit for another."""
    is_of_database = error.type in _DB_API
    remaining: Sequence[int] = _readers_in(shape, is_of_database)
    while remaining:
        number, *remaining = remaining
        text, error = error.text, _READERS[number].read(error)
        if error.text != text:
            remaining = [index for index in _readers_in(masked(error.text), is_of_database) if index > number]
    return error


@lru_cache(maxsize=MAX_PLANS)
def _wholes_in(shape: bytes) -> tuple[_Whole, ...]:
    return tuple(read for mark, read in _WHOLE_BY_MARK if mark in shape)


@lru_cache(maxsize=MAX_PLANS)
def _readers_in(shape: bytes, is_of_database: bool) -> tuple[int, ...]:
    """The numbers of the readers with a mark in texts of this shape."""
    return tuple(
        number
        for number, marks in enumerate(_MASKED)
        if any(map(shape.__contains__, marks)) or (is_of_database and _READERS[number].read is _untyped)
    )


_OF_LANGUAGE: Final = frozenset(name for name, kind in vars(builtins).items() if isinstance(kind, type)) | {"Error"}
"""Types of exceptions that any library may raise; a type of its own says no more than a sentence."""
_CLASS_NAME: Final = re.compile(r"_?[A-Z]\w*[a-z]\w*")
_SENTENCE: Final = 4
"""Words of a text that says what is wrong."""


_DRIVEN: Final = re.compile(r"(?:Page|Locator|Frame|BrowserType|BrowserContext|Browser|ElementHandle)\.\w+: ")


def without_own_type(error: ErrorText) -> ErrorText:
    """The error without a type that only says which library or side reports it."""
    own = error.type and _CLASS_NAME.fullmatch(error.type) and error.type not in _OF_LANGUAGE
    if own and len(error.text.split()) >= _SENTENCE:
        return error._replace(type=None)
    return error


def _driven(error: ErrorText) -> ErrorText:
    """What a browser is told, as its client in JavaScript names it."""
    text = error.text
    return error._replace(text=text[0].lower() + text[1:]) if _DRIVEN.match(text) else error


def _cut(pattern: re.Pattern[str], instead: str, error: ErrorText) -> ErrorText:
    return error._replace(text=cut_addition(pattern, instead, error.text))


def _system(error: ErrorText) -> ErrorText:
    text = system_error(error.text)
    return error if text is None else error._replace(type=None, text=text)


def _message_with_status(error: ErrorText) -> ErrorText:
    """Status and message, without codes that only some SDKs show."""
    text = status_text(error.text) if error.text[:1] in ("4", "5", "c") and _STATUS_BEGINS.match(error.text) else None
    return error if text is None else error._replace(type=None, text=text)


_STATUS_BEGINS: Final = re.compile(r"(?:code )?[45]\d\d\b")


_FRAME: Final = re.compile(
    r"(?:File \"(?P<python>[^\"\n]+)\", line \d+, in (?P<name>.+)"
    r"|^\s+at (?:[^(\n]*\()?(?P<node>[^()\n]+?):\d+:\d+\)?$)",
    re.MULTILINE,
)


def _own_frame(frame: str, text: str) -> str | None:
    """No frame of a library if the stack has no other; the function around a comprehension."""
    frames = [*_FRAME.finditer(ends(text, _LONGEST))]
    if not frames:
        return frame
    own = [match for match in frames if not NOT_USER_CODE.search(match["python"] or match["node"])]
    if not own:
        return None
    named = [match for match in own if match["python"] and match["name"][:1] + match["name"][-1:] != "<>"]
    if frame.startswith(("<genexpr>", "<listcomp>", "<lambda>")) and named:
        return f"{named[-1]['name']} in {named[-1]['python'].rpartition('/')[2]}"
    return frame


# ---- whole texts: groups, lists and stacks, which unwrapping would cut


_SECTION: Final = re.compile(r"^[ |]*\+[-+]*-{6,} (?:\d+|\.\.\.) -+ *$", re.MULTILINE)
_MARGIN: Final = re.compile(r"^[ ]*(?:[|][ ]?)+|^[ ]*\+[-+]*-{6,}\s*$", re.MULTILINE)
_MEMBER: Final = re.compile(r"^\s+(?:\[?cause\]?: )?(\w*(?:Error|Exception)\b.*)$", re.MULTILINE)
_GROUP: Final = re.compile(
    r"(?:ExceptionGroup\((['\"]).*?\1, [\[(]|\d+ sub-exceptions?\)[: ]*\[)(?P<leaves>.*)[\])]", re.DOTALL
)
_LEAF: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*\((?:[^()'\"]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")*\)")


def _exception_group(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The exceptions of a group as Python prints it: ``+---------------- 1 ----------------``."""
    sections = [_MARGIN.sub("", section).strip() for section in _SECTION.split(text)[1:]]
    return _leaves((section for section in sections if section and "Exception Group Traceback" not in section), depth)


def _group_repr(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The exceptions of ``ExceptionGroup('…', [ValueError('…'), …])``."""
    group = _GROUP.search(text)
    return _leaves(_LEAF.findall(group["leaves"]), depth) if group else None


def _aggregate(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The exceptions of Node's ``AggregateError``."""
    return _leaves(_MEMBER.findall(text.partition("[errors]:")[2]), depth)


def _leaves(texts: Iterable[str], depth: int) -> ErrorText | None:
    """The exceptions of a group, those of groups in it too."""
    leaves: list[ErrorText] = []
    for text in texts:
        leaf, _ = _read(None, text, depth)
        leaves += leaf.leaves or (leaf,)
    return ErrorText("ExceptionGroup", "", leaves=tuple(leaves)) if leaves else None


_VALIDATION: Final = re.compile(r"\b\d+ validation errors? for (?P<model>[^\n]+)\n(?P<errors>.*)", re.DOTALL)
_INVALID: Final = re.compile(
    r"^(?P<field>\S[^\n]*)\n\s+(?P<message>[^\n]*?)\s*[\[(]type=(?P<kind>[\w.]+)(?=[,;)\]])", re.MULTILINE
)
_INDEX: Final = re.compile(r"(?<=[.>\s])\d+(?=[.\s]|$)")


def _pydantic(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """Model, and field and kind of every error, in any order; of an own check also what it says."""
    listed = _VALIDATION.search(text)
    if listed is None:
        return None
    errors = set()
    for error in _INVALID.finditer(listed["errors"]):
        field = _INDEX.sub("<n>", error["field"].strip().replace(" -> ", "."))
        name = error["kind"].removeprefix("value_error.")
        own = name in ("value_error", "assertion_error")
        errors.add(f"{field} {normalize(error['message']).text if own else name}")
    if not errors:
        return None
    frame = unwrap(kind, text).frame if "Traceback (" in text else None
    return ErrorText("ValidationError", f"{listed['model'].strip()}: {', '.join(sorted(errors))}", frame)


_GO_PANIC: Final = re.compile(r"panic: (?P<message>.*?)\n\s*(?:\[signal [^\n]*\n\s*)?goroutine \d+ ", re.DOTALL)
_GO_FRAME: Final = re.compile(
    r"^(?!runtime\.|panic\(|created by|testing\.)(?P<name>[\w./*()-]+?)\([^\n]*\)\n\s+(?P<path>\S+\.go):\d+",
    re.MULTILINE,
)


def _go_panic(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """What a Go program panicked with, and the first frame outside of the runtime."""
    panic = _GO_PANIC.search(text)
    frame = _GO_FRAME.search(text, panic.end()) if panic else None
    if panic is None or frame is None:
        return None
    message = panic["message"].partition(" [recovered]")[0]
    name = frame["name"].rpartition("/")[2]
    return ErrorText(None, f"panic: {message}", f"{name} in {frame['path'].rpartition('/')[2]}")


_JAVA_FRAME: Final = re.compile(
    r"^\s+at (?:[\w.$@-]*/)?(?P<class>[\w.$]+)\.(?P<name>[\w$<>]+)\((?P<file>\w+\.\w+)(?::\d+)?\)", re.MULTILINE
)
_JAVA_LIBRARY: Final = re.compile(
    r"(?:java|javax|jdk|sun|com\.sun|kotlin|scala|org\.(?:junit|springframework|apache))\."
)


def _java(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The innermost exception of a stack of Java, and its first frame outside of libraries."""
    innermost = text.rpartition("\nCaused by: ")[2]
    frames = [*_JAVA_FRAME.finditer(innermost)]
    if not frames:
        return None
    own = next((frame for frame in frames if not _JAVA_LIBRARY.match(frame["class"])), frames[0])
    message = _THREAD.sub("", innermost[: frames[0].start()].strip())
    error, _ = _read(None, message, depth)
    return error._replace(frame=f"{own['class'].rpartition('.')[2]}.{own['name']} in {own['file']}")


_THREAD: Final = re.compile(r'^Exception in thread "[^"\n]*" ')


def _java_header(kind: str | None, text: str, depth: int) -> ErrorText | None:
    head = _THREAD.match(text)
    return _read(kind, text[head.end() :], depth)[0] if head else None


_GRPC: Final = re.compile(
    r"status = StatusCode\.(?P<status>[A-Z_]+)\s+details = \"(?P<details>.*?)\"\s*(?:\n|$)", re.DOTALL
)
_GRPC_GO: Final = re.compile(r"rpc error: code = (?P<status>\w+) desc = (?P<details>.*)", re.DOTALL)


def _grpc(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """Status and details of an RPC, as grpc of Python and of Go print them."""
    call = _GRPC.search(text) or _GRPC_GO.search(text)
    if call is None:
        return None
    status = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call["status"]).upper()
    return ErrorText(None, f"gRPC {status}: {call['details'].strip()}")


# ---- parts of an unwrapped text


def host_name(host: str) -> str:
    """A host without the digits of its first label, by which machines of a pool differ; empty if it names none."""
    host = host.rpartition("@")[2].strip("[]'\"").lower()
    if not host or host in ("localhost", "0", "::1") or re.fullmatch(r"[\d.]+|[\da-f:]*:[\da-f:]*", host):
        return ""
    first, dot, rest = host.partition(".")
    return re.sub(r"(?<=[a-z_-][a-z_-])\d+|(?<=-)\d+", "<n>", first) + dot + rest


_URL_HOST: Final = r"[a-z][a-z0-9+.-]*://(?:[^/\s@'\"]*@)?(?P<host>[^/\s:'\"?#)]+)"
_RESPONSES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<status>\d{{3}}) (?:client|server) error: (?P<phrase>.*?) for url: {_URL_HOST}\S*",
        r"(?:client error|server error|redirect response) '(?P<status>\d{3}) (?P<phrase>[^']*)'"
        rf" for url '{_URL_HOST}[^']*'.*",
        rf"request failed with status code (?P<status>\d{{3}})(?P<phrase>)\s+url: {_URL_HOST}\S*",
        rf"(?P<status>\d{{3}}), message='(?P<phrase>[^']*)', url=(?:URL\()?'{_URL_HOST}[^']*'\)?",
        rf"(?:fatal: )?unable to access '{_URL_HOST}[^']*': (?P<phrase>)"
        r"the requested url returned error: (?P<status>\d{3})",
    )
)


def _response(error: ErrorText) -> ErrorText:
    """Status and host of a failed request, as any library of HTTP prints them."""
    for pattern in _RESPONSES:
        if response := pattern.search(error.text):
            phrase = response["phrase"].strip() or _phrase_of(response["status"])
            head = error.text[: response.start()]
            rest = error.text[response.end() :].partition("For more information check:")[0]
            text = f"{head}HTTP {response['status']} {phrase}{rest}".strip()
            return error._replace(type=None, text=text, host=host_name(response["host"]))
    return error


def _phrase_of(status: str) -> str:
    try:
        return HTTPStatus(int(status)).phrase
    except ValueError:
        return ""


_POOL: Final = re.compile(r"HTTPS?ConnectionPool\(host='(?P<host>[^']+)', port=(?P<port>\d+)\): ")
_CAUSED: Final = re.compile(r"Max retries exceeded with url: \S+ \(Caused by (?P<cause>.*?)\)?$", re.DOTALL)


def _pool(error: ErrorText) -> ErrorText:
    """The error below urllib3's pool of connections, and the host."""
    pool = _POOL.search(error.text)
    if pool is None:
        return error
    text = error.text[: pool.start()] + error.text[pool.end() :]
    if "refused" in text:
        text = f"{text} (port={pool['port']})"
    elif caused := _CAUSED.search(text):
        text = re.sub(r"<[\w.]+ object at \w+>(?:, |: )?", "", caused["cause"])
    return error._replace(text=text, host=host_name(pool["host"]))


_GO_REQUEST: Final = re.compile(
    rf"(?:error \w+ing [\w ]+: )?(?:Get|Post|Put|Patch|Delete|Head) \"{_URL_HOST}[^\"\n]*\": (?P<said>.*)", re.DOTALL
)
_FETCH: Final = re.compile(rf"request to {_URL_HOST}\S* failed, reason: (?P<said>.*)", re.DOTALL)
_CERTIFICATE: Final = re.compile(r"\[SSL: \w+\][^\n(]*(?=\(_ssl)")
_OF_STORE: Final = ("local issuer", "self-signed certificate in", "self signed certificate in", "unknown authority")
"""Said where the client lacks a certificate, whatever the host."""


def _tls(error: ErrorText) -> ErrorText:
    """What a request of Go or a handshake of OpenSSL failed with, and the host unless the client is to be repaired."""
    if request := _GO_REQUEST.fullmatch(error.text) or _FETCH.fullmatch(error.text):
        error = error._replace(text=request["said"], host=host_name(request["host"]))
    if handshake := _CERTIFICATE.search(error.text):
        error = error._replace(type=None, text=handshake.group().strip())
    return error._replace(host="") if contains_any(error.text, _OF_STORE) else error


_IN_QUOTES: Final = re.compile(r"(?P<quote>['\"`])(?P<status>[1-5]\d\d [A-Z][A-Za-z' -]{1,40})(?P=quote)")


def _status_in_quotes(error: ErrorText) -> ErrorText:
    """``'502 Bad Gateway'`` without quotes: what they quote is no data."""
    text = _IN_QUOTES.sub(lambda match: match["status"] if _phrase_of(match["status"][:3]) else match[0], error.text)
    return error._replace(text=text)


_REQUEST: Final = re.compile(
    r"(?:\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|fetch(?:ing)?|request(?:ing|ed)?(?: to)?|(?i:url)|from|for"
    rf"|download(?:ing)?|open(?:ing)?|navigating to|returned by|at)[\s:='\"(]+){_URL_HOST}"
)
_STATUS_WORD: Final = re.compile(r"(?<![\w.])[45]\d\d(?![\w.])")
_REFERRED: Final = re.compile(
    r"\b(?:find|see|visit|refer|docs?|documentation|help|more|learn|contact)\b", re.IGNORECASE
)


def _requested(error: ErrorText) -> ErrorText:
    """The host of the request that got a status; links to documentation are none."""
    if error.host or not (_STATUS_WORD.search(error.text) or "connect to" in error.text):
        return error
    if (request := _REQUEST.search(error.text)) is None:
        return error
    if _REFERRED.search(error.text[max(0, request.start() - 60) : request.start()]):
        return error
    return error._replace(host=host_name(request["host"]))


_POOLED: Final = re.compile(
    r"(?<![\w./@:-])(?P<name>[A-Za-z][A-Za-z_-]*[A-Za-z_-])(?P<number>\d+)(?P<domain>(?:\.[A-Za-z][\w-]*)*)"
    r"(?P<end>\.(?:internal|local|lan|corp|intra|svc|cluster|cloud|com|net|org|io|dev|example|test)\b|(?=:\d{2,5}\b))"
)


_NUMBERED: Final = re.compile(r"\d(?:\.[a-z]|:\d\d)")
"""Found in every text with a host in `_POOLED`."""


def _pooled_hosts(error: ErrorText) -> ErrorText:
    """Hosts in prose without the digits of their first label: ``worker4040.internal``."""
    if not _NUMBERED.search(error.text):
        return error
    return error._replace(text=_POOLED.sub(r"\g<name><n>\g<domain>\g<end>", error.text))


_COMMANDS: Final = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"(?P<head>Command) (?:'(?P<a>.+)'|\"(?P<b>.+)\"|(?P<c>\[.+\]))"
        r"(?P<rest> (?:returned non-zero exit status|died with|timed out after).*)",
        r"(?P<head>[Cc]ommand) '(?P<a>[^\n]+)'(?P<rest> (?:failed with exit|returned a non-zero) code.*)",
        r"(?P<head>process) [\"'](?P<a>.+?)[\"'](?P<rest> did not complete successfully.*)",
        r"(?P<head>Command failed(?: with exit code -?\d+)?)[^:\n]*: (?P<a>[^\n]+)(?P<rest>.*)",
    )
)
_SHELL: Final = re.compile(r"^(?:/\S*/)?(?:ba|z|da)?sh -l?c ")
_PROGRAM: Final = re.compile(r"^/(?:[^\s/]+/)*(?=[^\s/])")
_PATHS: Final = re.compile(r"(?<=\s)(?![-/])[\w.-]*/\S*")
"""Relative paths that a command works on."""
_ARGUMENT: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")


def _command(error: ErrorText) -> ErrorText:
    """The command that failed, of a list of arguments as of a line."""
    for pattern in _COMMANDS:
        if command := pattern.search(error.text):
            line = next(filter(None, (command[name] for name in "abc" if name in pattern.groupindex)))
            if line[:1] == "[":
                line = " ".join(a or b for a, b in _ARGUMENT.findall(line)) or line
            rest = command["rest"]
            text = error.text[: command.start()] + command["head"] + re.sub(r"^\n", ": ", rest)
            return error._replace(text=text, subject=_subject(_PATHS.sub("", _PROGRAM.sub("", _SHELL.sub("", line)))))
    return error


def _subject(text: str) -> str:
    """Deciding words on one line, without quotes: what is quoted in them decides too."""
    return " ".join(re.sub(r"['\"`]", "", text).split())[:_MAX_SUBJECT]


_MAKE: Final = re.compile(
    r"^\w*make(?:\[\d+\])?: \*\*\* \[(?:[^\]\n]*?:\d+: )?(?P<target>[^\]\n]+)\] (?P<how>[^\n]*)$\n?",
    re.MULTILINE,
)

_OWN_ERROR_OF_MAKE: Final = re.compile(r"^\w*make(?:\[\d+\])?: \*\*\* ")


def _make(error: ErrorText) -> ErrorText:
    """Target and exit status of the command that failed first; the makes around it repeat it."""
    first = _MAKE.search(error.text)
    if first is None:
        return error._replace(text=_OWN_ERROR_OF_MAKE.sub("make: ", error.text))
    line = f"make {first['target']}: {re.sub(r'^Error (?=[0-9])', 'exit status ', first['how'])}"
    return error._replace(text=f"{_MAKE.sub('', error.text[: first.start()])}{line}".strip())


_SCRIPT: Final = re.compile(
    r"^(?:(?:\S*/)?\w*sh: )?(?:(?:[\w.@+~/-]+): (?:line \d+|(?<=sh: )\d+): (?=\S[^:\n]*: |syntax error|unexpected|`)"
    r"|(?:\S*/)?\w*sh: (?=\S+: (?:command )?not found|syntax error))",
    re.MULTILINE,
)
_NO_COMMAND: Final = re.compile(
    r"(?:(?:\S*/)?zsh:(?:\d+:)? command not found: (?P<a>\S+)|(?P<b>[^\s:]+): (?:command )?not found\b"
    r"|exec: \"(?P<c>[^\"/]+)\": executable file not found in \$PATH|\bspawn (?P<d>[^\s/]+) ENOENT)"
)
_MISSING: Final = ("not found", "ENOENT")
"""One of them is in every text that `_NO_COMMAND` fits."""
_OPERAND: Final = re.compile(r"^(?P<tool>[a-z]\w*): ['‘](?P<name>[\w.-]+)['’]: ")
_EXIT: Final = re.compile(r"^Exit code 127\s+")


def _shell(error: ErrorText) -> ErrorText:
    """What a shell or script says, without its name and line; a missing command in one form."""
    text = _SCRIPT.sub("", re.sub(r"^/(?:[^\s/:]+/)*bin/(?=[\w.-]+: )", "", error.text))
    text = _OPERAND.sub(r"\g<tool>: \g<name>: ", text)
    if (
        contains_any(text, _MISSING)
        and (missing := _NO_COMMAND.search(text))
        and (missing["b"] is None or "command not found" in text or text != error.text)
    ):
        name = next(filter(None, missing.groups()))
        text = f"{text[: missing.start()]}{name}: command not found{text[missing.end() :]}"
        text = _EXIT.sub("", text)
    return error._replace(text=text)


_ASIDE_OF_GIT: Final = re.compile(r"(?<=not a git repository) \(.*|(?<=detect email address) \(got [^\n]*", re.DOTALL)
_NO_PATCH: Final = re.compile(r"(?:error: )?patch failed: \S+:\d+\nerror: \S+: (?P<said>patch does not apply)")
_REJECTED: Final = re.compile(r"! \[(?P<how>(?:remote )?rejected)\][^\n(]*(?:\((?P<why>[^)\n]+)\))?")
_USERNAME: Final = re.compile(
    r"((?:could not read (?:Username|Password)|Authentication failed) for '[^']*')(?:: .*)?", re.DOTALL
)


def _git(error: ErrorText) -> ErrorText:
    """Why a push was rejected, whatever the branch; that git lacks a login, whatever the terminal."""
    if patch := _NO_PATCH.search(error.text):
        return error._replace(text=f"git: {patch['said']}")
    error = error._replace(text=_ASIDE_OF_GIT.sub("", error.text))
    if rejected := _REJECTED.search(error.text):
        return error._replace(text=f"git push {rejected['how']}: {rejected['why'] or 'no reason'}")
    if login := _USERNAME.search(error.text):
        url = re.search(_URL_HOST, login[1])
        return error._replace(text=login[1].partition(" for ")[0], host=host_name(url["host"]) if url else error.host)
    return error


_VERSIONS: Final = re.compile(r" ?\((?:from )?versions?: (?!none\))[^()]*(?:\([^()]*\)[^()]*)*\)")
_AT_VERSION: Final = re.compile(
    r"(?P<name>(?:@[A-Za-z][\w.-]*/)?(?<![\w.-])[A-Za-z][\w.-]*)@(?!\d+\.\d+\.\d+\.\d)"
    r"[\^~<>=v]*\d+(?:\.[\dx*]+)*(?:[-+][\w.+-]+)?(?![\w@])"
)
_QUOTED_VERSION: Final = re.compile(r"`(?P<name>[\w-]+) v?\d+\.\d+[\w.+-]*(?: \([^`\n]*\))?`")
_PREVIOUS: Final = re.compile(r"due to (?:\d+ )?previous errors?(?:; \d+ warnings? emitted)?")


def _packages(error: ErrorText) -> ErrorText:
    """Packages by name, without versions, lists of versions, and counts of errors before."""
    text = _VERSIONS.sub("", error.text)
    if "`" in text:
        text = _QUOTED_VERSION.sub(r"`\g<name>`", text)
    if "@" in text:
        text = _AT_VERSION.sub(r"\g<name>@<n>", text)
    return error._replace(text=_PREVIOUS.sub("due to previous errors", text))


_OWNER: Final = re.compile(
    r"\b(held|locked|owned|acquired|blocked|used) by (?:another )?"
    r"((?:process|pid|user|session|client|owner|transaction|host)s?\b:?) ?[^\s,;()]+(?: \([^)\n]*\))?",
    re.IGNORECASE,
)
_PERSON: Final = re.compile(
    r"\b(held|locked|owned) by (?!(?:process|pid|user|session|client|owner|transaction|host|another)\b|<)"
    r"[\w.@-]+(?: \([^)\n]*\))?"
)
_LOCK_INFO: Final = re.compile(r"^\s*(?:ID|Operation|Who|Version|Created|Info):.*$\n?", re.MULTILINE)


def _lock(error: ErrorText) -> ErrorText:
    """What is locked, whoever holds it."""
    text = _OWNER.sub(r"\1 by \2 <id>", error.text)
    if "lock" in text:
        text = _PERSON.sub(r"\1 by <id>", text)
    if "Lock Info:" in text:
        text = _LOCK_INFO.sub("", text)
    return error._replace(text=text)


_POD: Final = re.compile(
    r"\b(?P<name>[a-z][a-z0-9-]*?)-(?=[a-z0-9]*\d)[a-z0-9]{6,10}-[a-z0-9]{5}(?![a-z0-9-])(?:_[\w-]+\([\w-]+\))?"
)
_USER: Final = re.compile(r'(?<=User )"(?P<name>[^"\n]*?)-(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{4,10}"')


def _pod(error: ErrorText) -> ErrorText:
    """Pods of Kubernetes by their deployment."""
    text = _USER.sub(r"\g<name>-<id>", error.text)
    return error._replace(text=_POD.sub(r"\g<name>-<id>", text))


_ACTION: Final = re.compile(r"^(?P<action>[A-Za-z]+\.\w+): (?=Timeout \d+ms exceeded|net::)")
_WAITED: Final = re.compile(
    r"waiting for (?P<target>(?:locator|getBy|get_by|selector|frame|event|internal|text|role)\S*[^\n]*)"
    rf"|^Locator: (?P<locator>[^\n]+)|navigating to \"{_URL_HOST}",
    re.MULTILINE,
)
_ANSI: Final = re.compile(r"\x1b\[[\d;]*m")
_LOG: Final = re.compile(r"\s*(?:Call log:|=+ logs =+).*", re.DOTALL)


def _browser(error: ErrorText) -> ErrorText:
    """The action of a browser, and what it waited for or where it went."""
    text = _ANSI.sub("", error.text).replace("net::ERR_CONNECTION_REFUSED", "net::ERR connection refused")
    action, waited = _ACTION.search(text), _WAITED.search(text)
    name = action["action"] if action else ""
    name = name[:1].lower() + name[1:]
    target = (waited["target"] or waited["locator"] or "") if waited else ""
    host = host_name(waited["host"]) if waited and waited["host"] else error.host
    if "Timeout" in text:
        target, host = target or host, error.host
    if action:
        text = text[action.end() :]
    subject = _subject(f"{name} {target.removesuffix(' to be visible')}")
    return error._replace(text=_LOG.sub("", text), subject=subject or error.subject, host=host)


_ASSERTED: Final = re.compile(r"\bassert (\d{3}) == (\d{3})\b|\b[Ee]xpected:? (\d+)\b(\D{1,40}?)(\d+)\b")
_WHERE: Final = re.compile(r"\n\s*\+\s+(?:where|and) [^\n]*")
"""How pytest came to a value."""
_SUMMARY: Final = re.compile(r"\n=+ [^\n=]*\bin [\d.]+m?s[^\n=]* ?=+\s*$")


def _assertion(error: ErrorText) -> ErrorText:
    """Compared statuses of HTTP as such; counts of other tests go."""

    def statuses(match: re.Match[str]) -> str:
        numbers = match[1] or match[3], match[2] or match[5]
        if not all(map(_phrase_of, numbers)) or not any(number[0] in "45" for number in numbers):
            return match[0] if match[1] else match[0].removesuffix(numbers[1]) + "<n>"
        return re.sub(r"(?<!\d)(\d{3})(?!\d)", r"status \1", match[0])

    return error._replace(text=_SUMMARY.sub("", _WHERE.sub("", _ASSERTED.sub(statuses, error.text))))


_QUOTES: Final = re.compile(r"""(?<!\w)(?:"([^"\s]*\w)"|`([^`'\s]*\w)[`'])""")
_NUMBERED_ERROR: Final = re.compile(r"\((?P<code>\d{3,5}), (?P<quote>['\"])(?P<text>.*)(?P=quote)\)", re.DOTALL)


def _quotes(error: ErrorText) -> ErrorText:
    """Names without quotes where what stands between two of them might be taken for quoted; tuples of databases."""
    text = error.text
    if text[:1] == "(" and (numbered := _NUMBERED_ERROR.fullmatch(text)):
        text = f"code {numbered['code']}: {numbered['text']}"
    if "`" in text or '"' in text:
        text = _QUOTES.sub(r"'\1\2'", text)
    return error._replace(text=text.replace(": [: ", ": "))


_DIAGNOSTIC: Final = re.compile(
    r"^(?:(?P<path>[^\s:(][^\n:(]*)(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)):? (?:- )?)?"
    r"(?:(?:fatal )?error)(?: ?(?P<code>[A-Z]+\d+)|\[(?P<id>\w+)\])?: (?P<message>[^\n]+)"
    r"(?:\n\s*--> (?P<arrow>[^\n:]+):\d+)?",
    re.MULTILINE,
)
_BUILD: Final = re.compile(
    r"^(?:(?:vet: )?(?P<go>\S+\.go):\d+:\d+:|\[ERROR\] (?P<maven>\S+):\[\d+,\d+\]) (?P<message>[^\n]+)", re.MULTILINE
)
_NO_HEADER: Final = re.compile(r"'(\S+\.\w+)' file not found")
_SYMBOL: Final = re.compile(r"^\s+symbol:\s+(.+)$", re.MULTILINE)
_NAMES: Final = re.compile(r"['\"`‘]\S|\.h\b|\w: \w|\w\.\w")
_UNLINKED: Final = re.compile(
    r"(?P<what>undefined reference to) [`'\"](?P<name>[^'\"\n]+)|(?P<missing>cannot find -l\S+?)(?=:|\s|$)"
)


def _compiler(error: ErrorText) -> ErrorText:
    """What a compiler or linker says first, and where only if it names nothing: no lines of code, no later errors."""
    if unlinked := _UNLINKED.search(error.text):
        return ErrorText(None, f"ld: {unlinked['missing'] or unlinked['what'] + ' ' + unlinked['name']}")
    for diagnostic in _DIAGNOSTIC.finditer(error.text):
        code, path = diagnostic["code"] or diagnostic["id"], diagnostic["path"] or diagnostic["arrow"]
        if code or path:
            message = _NO_HEADER.sub(r"\1: No such file or directory", diagnostic["message"])
            symbol = _SYMBOL.search(error.text, diagnostic.end())
            message = f"{message}: {symbol[1]}" if symbol else message
            return _diagnosed(f"error {code}: {message}" if code else f"error: {message}", message, path)
    if built := _BUILD.search(error.text):
        return _diagnosed(f"error: {built['message']}", built["message"], built["go"] or built["maven"])
    return error


def _diagnosed(text: str, message: str, path: str | None) -> ErrorText:
    return ErrorText(None, text, None if path is None or _NAMES.search(message) else path.rpartition("/")[2])


_PROGRESS: Final = re.compile(r"^[^\n]*\.\.\.(?: ?(?:Done|\d+%))?[ \t]*(?:\n|$)", re.MULTILINE)
_REPORTED: Final = re.compile(r"^E: [^\n]+", re.MULTILINE)
_FATAL: Final = re.compile(r"(^fatal: [^\n]+)\n.*", re.DOTALL | re.MULTILINE)
_NPM: Final = re.compile(r"^npm (?:ERR!|error)(?: |$)", re.MULTILINE)
_UNPUBLISHED: Final = re.compile(r"'(?P<name>@?[^'@\s]+)@[^'\n]*' is not in (?:this|the npm) registry")
_RESOLVING: Final = re.compile(r"^npm (?:ERR!|error) While resolving: (?P<name>@?[^@\s]+)", re.MULTILINE)
_NPM_ASIDE: Final = re.compile(
    r"^(?:While resolving: |Found: |A complete log |Fix the upstream|this command with|to accept an).*$\n?",
    re.MULTILINE,
)


def _report(error: ErrorText) -> ErrorText:
    """What apt, git and npm report, without progress before and advice after."""
    text = error.text
    if _REPORTED.search(text):
        text = _PROGRESS.sub("", text)
        if (first := _REPORTED.search(text)) is not None:
            text = text[: first.end()]
    elif _NPM.search(text):
        if unpublished := _UNPUBLISHED.search(text):
            return error._replace(text=f"npm error: E404 {unpublished['name']} is not in this registry")
        text = "npm error: " + _NPM_ASIDE.sub("", _NPM.sub("", text))
    resolving = _RESOLVING.search(error.text)
    subject = resolving["name"] if resolving else error.subject
    return error._replace(text=_FATAL.sub(r"\1", text).strip(), subject=subject)


_BAD_JSON: Final = re.compile(r"(?P<why>[A-Z][^:\n]*): line \d+ column \d+ \(char \d+\)")
_NO_MODULE: Final = re.compile(
    r"No module named '?(?P<python>[\w.]+)'?|Cannot find (?:module|package) '(?P<node>[^'\n]+)'(?! or )"
)
_GIVEN: Final = re.compile(r"(?<=time data )'[^'\n]*'")
_UNFOUND: Final = ("No module", "Cannot find")
_DEPTH: Final = re.compile(r"(?<=recursion depth exceeded) (?:while|in|during) .*")
_SELF: Final = re.compile(r"(?P<head>[A-Za-z][^:\n]{2,60}: )(?P=head)+")
_UNCAUGHT: Final = re.compile(
    r"^(?:(?:PHP )?Fatal error: +)?(?:Uncaught|Unhandled)"
    r"(?: \(in promise\)| exception[:.]?| promise rejection:?)? (?=\w)"
)
_SESSION: Final = re.compile(r"\s*(?:\(Session info: |Stacktrace:|; For documentation on this error).*", re.DOTALL)
_SQL_CODE: Final = re.compile(r"^(?:ERROR )?(?P<code>\d{4}) \(\w{5}\)(?: at line \d+)?: ")
_DB_API: Final = frozenset(
    {
        "DatabaseError", "DataError", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
        "OperationalError", "ProgrammingError",
    }
)  # fmt: skip
"""Types of PEP 249, which drivers choose by the message."""
_FOLLOWS: Final = re.compile(r"(?:code |HTTP(?: Error)? )?[45]\d\d\b|MCP error -?\d+: ")
_STATUS_FIRST: Final = re.compile(r"^(?=[45]\d\d: )")
"""Texts of which the status decides on the type."""


_STATUS_LAST: Final = re.compile(r" \((?:status(?: code)?:? (?P<status>[45]\d\d)|SQLSTATE \w{5})\)\.?$")


def _status_last(error: ErrorText) -> ErrorText:
    """No status of which the text says the phrase, and no code of SQL, which follows from it."""
    last = _STATUS_LAST.search(error.text)
    is_stated = last is not None and _phrase_of(last["status"] or "").lower() in error.text.lower()
    return error._replace(text=error.text[: last.start()]) if last and is_stated else error


_ENTRY: Final = re.compile(r"""(['"])\w+\1: \[[^\[\]{}]*\]""")


def _mapping(error: ErrorText) -> ErrorText:
    """Errors by field, in any order."""
    entries = [match.group() for match in _ENTRY.finditer(error.text)]
    listed = f"{{{', '.join(entries)}}}" == error.text.strip()
    return error._replace(text=f"{{{', '.join(sorted(entries))}}}") if listed else error


def _untyped(error: ErrorText) -> ErrorText:
    """Errors that say the same with a type of their own as without one."""
    kind, text, frame = error.type, error.text, error.frame
    if text.count(": ") > 1 and ("rror" in text or "xception" in text):
        text = _SELF.sub(r"\g<head>", text)
    if "(char " in text and (bad := _BAD_JSON.search(text)):
        return error._replace(type=None, text=f"invalid JSON: {bad['why']}")
    if "time data " in text or "recursion depth" in text:
        text = _GIVEN.sub("<quoted>", _DEPTH.sub("", text))
    if contains_any(text, _UNFOUND) and (missing := _NO_MODULE.search(text)):
        names = missing["python"], missing["node"]
        what = f"No module named '{names[0]}'" if names[0] else f"Cannot find module '{names[1]}'"
        if missing.start() == 0 or re.fullmatch(r"\S*python[\d.]*: ", text[: missing.start()]):
            return error._replace(type=None, text=what, frame=None)
    if text.startswith("Message: ") and (message := _SESSION.sub("", text[len("Message: ") :])):
        kind, text = None, message
    text = _STATUS_FIRST.sub("code ", text)
    text = _SQL_CODE.sub(r"code \g<code>: ", text)
    if kind == "ImportError":
        frame = None
    if kind in _DB_API or _FOLLOWS.match(text):
        kind = None
    return error._replace(type=kind, text=text, frame=frame)


def _uncaught(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The error that nobody handled."""
    head = _UNCAUGHT.match(text)
    return _read(kind, text[head.end() :], depth)[0] if head else None


_INNERMOST: Final = re.compile(
    r".*(?:(?:^|[\n;] ?)(?:Caused by|nested exception is):? |\n[ \t]+)(?P<said>(?:\w+\.)+\w+(?:Exception|Error)\b.*)",
    re.DOTALL,
)


def _nested(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The innermost exception of Java, without its stack."""
    innermost = _INNERMOST.fullmatch(text)
    return _read(None, innermost["said"], depth)[0] if innermost else None


_CAUSE: Final = re.compile(r"\n\s+\[cause\]: (?P<cause>.+)", re.DOTALL)


def _caused(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """The innermost cause that Node prints, without its fields."""
    cause = _CAUSE.search(text)
    return (
        None
        if cause is None
        else _read(None, re.sub(r"\s*(?:\{\n.*|\}\s*)$", "", cause["cause"], flags=re.DOTALL), depth)[0]
    )


_STATUS_BODY: Final = re.compile(r"^\s*(?:\w+(?:Error|Exception): )?(?P<status>[45]\d\d)\s+(?=\{)")


def _body(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """A status with the body of the response: ``401 {"type": "error", …}``."""
    head = _STATUS_BODY.match(text)
    return None if head is None else _read(kind, f"Error code: {head['status']} - {text[head.end() :]}", depth)[0]


_POSTGRES: Final = re.compile(r"(?:^|\n|: \()(?:psycopg[23]?|asyncpg)\.(?:errors|exceptions)\.\w+(?:: |\) )(?=[^\n])")


def _postgres(kind: str | None, text: str, depth: int) -> ErrorText | None:
    """What the server says; drivers name a class for every SQLSTATE."""
    head = _POSTGRES.search(text)
    return None if head is None else _read(None, f"ERROR: {text[head.end() :]}", depth)[0]


_Whole = Callable[[str | None, str, int], ErrorText | None]
_WHOLE: Final[tuple[tuple[str, _Whole], ...]] = (
    ("-- 1 --", _exception_group),
    ("ExceptionGroup(", _group_repr),
    ("sub-exception", _group_repr),
    ("[errors]:", _aggregate),
    (" validation error", _pydantic),
    ("\ngoroutine ", _go_panic),
    ("\tat ", _java),
    ("Exception in thread ", _java_header),
    ("StatusCode.", _grpc),
    ("rpc error: code", _grpc),
    ("[cause]: ", _caused),
    ("Caused by: ", _nested),
    ("nested exception is", _nested),
    ("\n\t", _nested),
    ("Uncaught ", _uncaught),
    ("Unhandled ", _uncaught),
    (" {", _body),
    ("psycopg", _postgres),
    ("asyncpg.", _postgres),
)
_Reader = Callable[[ErrorText], ErrorText]


class _Shape(NamedTuple):
    marks: tuple[str, ...]
    """One of them is in every text of the shape."""
    read: _Reader


_UNTYPED: Final = (
    *("(char ", "No module named ", "Cannot find module ", "Cannot find package ", "Message: ", "time data "),
    *("recursion depth", "HTTP ", "ERROR ", "MCP error ", "code 4", "404: ", *sorted(_DB_API)),
)
_READERS: Final = (
    _Shape(("ConnectionPool(",), _pool),
    _Shape((" for url", "status code ", ", message='", " returned error"), _response),
    _Shape(('": ', "_ssl", ", reason: "), _tls),
    _Shape((" exit status ", "ommand failed", "did not complete", " died with ", "' timed out", "ommand '"), _command),
    _Shape(("error: ", "error[", "error TS", "error C", ".go:", "[ERROR] ", "undefined ref", "find -l"), _compiler),
    _Shape((": *** ",), _make),
    _Shape(("': ", "’: ", ": line ", "not found", "sh: ", " ENOENT", "bin/"), _shell),
    _Shape(("E: ", "fatal: ", "npm "), _report),
    _Shape(
        ("rejected]", "could not read ", "tication failed for", "git repository", "auto-detect", "patch failed"), _git
    ),
    _Shape(("ersions: ", "@", "previous error", "`"), _packages),
    _Shape(("d by ", "Lock Info:"), _lock),
    _Shape((" pod", "User "), _pod),
    _Shape(("ms exceeded", "net::", "Call log:", "Locator: "), _browser),
    *(_Shape(marks, partial(_cut, pattern, instead)) for marks, pattern, instead in EDITS),
    _Shape(("assert ", "pected", "\n="), _assertion),
    _Shape(("'4", "'5", '"4', '"5'), _status_in_quotes),
    _Shape(("://",), _requested),
    _Shape(("`", '"', ", '"), _quotes),
    _Shape(_UNTYPED, _untyped),
    _Shape((": [",), _mapping),
    _Shape((" (status", " (SQLSTATE"), _status_last),
    _Shape(("1.", "1:11"), _pooled_hosts),
    *(_Shape(marks, partial(_cut, pattern, instead)) for marks, pattern, instead in CUTS),
    _Shape(("age.", "ocator.", "rame.", "rowser", "lementHandle."), _driven),
    _Shape(ERRNO_MARKS, _system),
)
_MASKED: Final = tuple(tuple(dict.fromkeys(map(masked, shape.marks))) for shape in _READERS)
_WHOLE_BY_MARK: Final = tuple((masked(mark), read) for mark, read in _WHOLE)
