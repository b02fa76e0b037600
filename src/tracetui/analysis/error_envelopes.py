"""Opens the envelopes in which SDKs, tools and programs print one error, and cuts what they add to it.

An envelope names how an error got here, never what is wrong: the call of a cloud SDK, the response of a provider, the
gateway before it, the step of a build. What is added after it is advice, links, places in the input and data of the
call. Both differ between libraries and versions; what is left is equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

_Open = Callable[[re.Match[str]], str]


def _text(match: re.Match[str]) -> str:
    return match["said"]


def _with_code(match: re.Match[str]) -> str:
    """The error's own code as its type; the operation only where the message says nothing itself."""
    operation = f" ({match['operation']})" if len(match["said"].split()) < _FEW_WORDS else ""
    return f"{match['code']}: {match['said']}{operation}"


def _with_status(match: re.Match[str]) -> str:
    text = match["said"]
    return f"Error code: {match['status']} - {text}" if text.startswith("{") else f"code {match['status']}: {text}"


def _killed(match: re.Match[str]) -> str:
    return f"{match['how']}: {match['program']}"


_KILLED: Final = (
    r"(?:\S+: )?line \d+: +\d+ (?P<how>Killed|Segmentation fault|Aborted|Terminated|Bus error|Illegal instruction"
    r"|Floating point exception)(?: +\(core dumped\))? +(?P<program>\S+).*"
)


def _after_status(match: re.Match[str]) -> str:
    return f"Exit code {match['status']}\n{match['said']}"


def _composed(match: re.Match[str]) -> str:
    """Without the environment: the last line of what Docker said."""
    output = next((text for text in (match["stderr"], match["stdout"]) if text.strip() not in ("", "None")), "")
    last = output.strip().rpartition("\n")[2].strip()
    return ": ".join(filter(None, (f"docker compose failed with exit status {match['status']}", last)))


_COMPOSE: Final = (
    r"Docker compose command failed for environment .*?\. Command: .*?\. Return code: (?P<status>-?\d+)\. "
    r"Stdout: (?P<stdout>.*?)\. Stderr: (?P<stderr>.*?)\.?\s*"
)
"""What Harbor reports of an environment that did not start."""
_FEW_WORDS: Final = 4
_TYPES: Final = r"(?:(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception): )*"
_ENVELOPES: Final[tuple[tuple[str, re.Pattern[str], _Open], ...]] = tuple(
    (mark, re.compile(pattern, re.DOTALL), opened)
    for mark, pattern, opened in (
        (
            " when calling the ",
            rf"{_TYPES}An error occurred \((?P<code>\w+)\) when calling the (?P<operation>\w+) operation"
            r"(?: \(reached max retries: \d+\))?: (?P<said>.*)",
            _with_code,
        ),
        ("Exception - ", rf"{_TYPES}\w+Exception - (?P<said>.*)", _text),
        (
            "Error fetching from ",
            r"\[\w+ Error\]: Error fetching from \S+: \[(?P<status>[45]\d\d) [^\]]*\] (?P<said>.*)",
            _with_status,
        ),
        (
            "{",
            rf"{_TYPES}(?:[A-Z][A-Za-z' ]{{0,60}}[:.] )*(?i:\(?(?:status|code)\W+)?(?P<status>[45]\d\d)\)?"
            r"[A-Za-z_ .:-]{0,40}(?P<said>\{.*)",
            _with_status,
        ),
        (
            "from daemon: ",
            r"(?:[^\n]*\n)?(?:docker: |ERROR: )?Error response from daemon: (?P<said>.*)",
            _text,
        ),
        ("pull access denied", r"(?P<said>pull access denied for [^,\n]+),.*", _text),
        ("rror: ", r"(?:\w+(?:\.|::))+Error: (?P<said>.*)", _text),
        ("rror [", r"(?P<said>\w*Error) \[(?:ERR_[A-Z_]+|\w+Error)\](?P<rest>: .*)", lambda m: m["said"] + m["rest"]),
        ("suite failed to run", r"\s*(?:● )?Test suite failed to run\s+(?P<said>.*)", _text),
        (": line ", _KILLED, _killed),
        ("invalid character", r"(?:json|yaml|toml): (?P<said>.*)", _text),
        ("sh: fork: ", r"-?\w*sh: fork: (?:retry: )?(?P<said>.*)", _text),
        (".exceptions.", r"(?:\w+\.)+exceptions\.\w+: (?P<said>[45]\d\d .*)", _text),
        ("tool_use_error>", r"<tool_use_error>(?P<said>.*)</tool_use_error>", _text),
        ("FATAL:  ", r"(?:.*[:)] )?FATAL:  (?P<said>[^\n]*).*", _text),
        ("from server (", r"Error from server \(\w+\): (?P<said>.*)", _text),
        (".go:1", r"[EWIF]\d{4} [\d:.]+\s+\d+ \S+\.go:\d+\] (?P<said>.*)", _text),
        ("CMake Error at ", r"CMake Error at \S+:\d+ \(\w+\):\s+(?P<said>.*)", _text),
        ("Cloning into ", r"Cloning into [^\n]*\n(?P<said>.*)", _text),
        ("CONFLICT (", r".*?(?P<said>CONFLICT \([^)\n]*\): [^\n]*?)(?: in [^\n]*)?(?:\n.*)?", _text),
        ("FAILED ", r"(?s:.*?\n)?(?P<said>FAILED \S+::\S+ - [^\n]*)(?:\n\d+ failed.*)?", _text),
        ("ERROR ", r"ERROR \S+\.py - (?P<said>ModuleNotFoundError: [^\n]*).*", _text),
        ("E   ", r"(?:(?!E  ).*?\n)?E {2,}(?P<said>(?!assert)\S[^\n]*).*", _text),
        ("Exit code 1", r"(?P<said>.*)\nExit code (?P<status>\d+)", _after_status),
        ("Permission denied", r"(?:\S*/)?\w*sh: (?P<said>\S*/\S*: Permission denied)", _text),
        ("Docker compose command failed", _COMPOSE, _composed),
        ("docker: ", r"docker: (?P<said>.*)", _text),
        (":1", r"\S*:\d+:in [`'][^'\n]*': (?P<said>.*) \(\w+(?:::\w+)*\)(?:\n.*)?", _text),  # Ruby
        ("rror in ", r"Error in [^\n]*? ?: +(?P<said>[^\n]*)(?:\n.*)?", _text),  # R
        ("start container process: ", r".*start container process: (?P<said>.*?)(?:: unknown\.?)?", _text),
        ("failed to solve: ", r"(?:ERROR: |error: )?(?:failed to \w+: )*failed to solve: (?P<said>.*)", _text),
        (
            "Failed to execute goal ",
            r"\[ERROR\] Failed to execute goal [^\n]*?: (?P<said>(?:error: |Could not find artifact)[^\n]*)",
            _text,
        ),
        ("SQLITE_", r"(?:[\w.]+: )*SQLITE_[A-Z]+(?:_[A-Z]+)*: (?P<said>.*)", _text),
        ("rror near line ", r"(?:Parse|Runtime) error near line \d+: (?P<said>.*)", _text),
        ("in prepare, ", r"(?:Error: )?in prepare, (?P<said>.*)", _text),
        ("MCP error -32000: ", r"(?:\w+: )?MCP error -32000: (?P<said>.*)", _text),
        (
            "line: ",
            r"(?:Error: )?Error\((?P<said>\"[^\n]*\"), line: \d+, column: \d+\)",
            lambda m: m["said"].strip('"'),
        ),
        ("No matching distribution", r".*?(?P<said>No matching distribution found for [^\n]+).*", _text),
        (
            "Os { ",
            r"(?P<pre>.*?)Os \{ code: (?P<errno>\d+), kind: \w+, message: \"(?P<said>[^\"]*)\" \}.*",
            lambda m: f"{m['said']} (os error {m['errno']})",
        ),
    )
)
_MAX_ENVELOPES: Final = 3


def open_envelopes(text: str, shape: bytes) -> str:
    """The text inside of all envelopes; `shape` is the masked text."""
    for _ in range(_MAX_ENVELOPES):
        before = text
        for pattern, opened in _envelopes_in(shape):
            if match := pattern.fullmatch(text):
                text = opened(match)
        if text == before:
            break
        shape = masked(text)
    return text


_DIGITS: Final = bytes.maketrans(b"0123456789", b"1111111111")
MAX_PLANS: Final = 4096


def masked(text: str) -> bytes:
    """The same for texts that differ in ids only: the key of what may have to be done with them.

    A mark is in every masked text of which it is in the text itself.
    """
    return text.encode(errors="surrogatepass").translate(_DIGITS, b"abcdef")


@lru_cache(maxsize=MAX_PLANS)
def _envelopes_in(shape: bytes) -> tuple[tuple[re.Pattern[str], _Open], ...]:
    return tuple((pattern, opened) for mark, pattern, opened in _BY_MARK if mark in shape)


_BY_MARK: Final = tuple((masked(mark), pattern, opened) for mark, pattern, opened in _ENVELOPES)


EDITS: Final[tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]] = (
    (("tool_use_error>",), re.compile(r"</?tool_use_error>"), ""),
    (
        ("eplace", "old"),
        re.compile(
            r"(?P<what>(?i:string to replace|old_?string)[^:\n]{0,80}not found[^:\n]{0,40})(?:\.?\s*\n\s*String:|:).*",
            re.DOTALL,
        ),
        r"\g<what>",
    ),
    (("String:",), re.compile(r"(?:\n\s*|(?<=to true\. ))String:.*", re.DOTALL), ""),
    (
        ("old_str",),
        re.compile(
            r"(?P<name>old_str(?:ing)?) [`'\"].*[`'\"](?P<rest> (?:did not|in lines|in |not |was ).*)", re.DOTALL
        ),
        r"\g<name>\g<rest>",
    ),
    (
        ("ailed to find",),
        re.compile(
            r"(?P<what>(?i:failed to find (?:expected lines|context))(?: '[^'\n]*')?(?: in \S+?)?):?\s*\n.*", re.DOTALL
        ),
        r"\g<what>",
    ),
    (("<<<<<",), re.compile(r"\s*<{5,} SEARCH\b.*", re.DOTALL), ""),
    (("```",), re.compile(r"```.*?(?:```|$)", re.DOTALL), "<quoted>"),
)
"""What tools that edit files say after what is wrong: the text that they looked for. Entries as in `CUTS`."""
_ADVICE: Final = re.compile(
    r"\n[╔║].*|[,;] (?:try|please|see|either|consider) .*|(?:(?<=[.!?;:])\s+|\n\s*)(?:[×✗╰─>│|=\s]*)"
    r"(?:[Uu]sage|Current working|On instance|exit status \d+$|Please|Try|Use"
    r"|Add a|See|Visit|Run|Refer|Check|Hint|hint|Note|note|Help"
    r"|For (?:more|further|help|documentation)"
    r"|To (?:install|see|fix|add|use|resolve|avoid|learn|set|list|request)|If you|You (?:can|may|could|might)|Did you"
    r"|Make sure|Consider|Perhaps|It looks like|Looks like|Read more|Learn more|Stopping at|Another \w+ process"
    r"|Is the|Require stack|A complete log|This error|Contact)\b.*",
    re.DOTALL,
)
_PLACE: Final = re.compile(
    r" (?:(?:at|in) \S+(?: on)? line \d+\.?|\([^()\s]+, line \d+\))$"
    r"|(?:,? \(?(?:at |in \"[^\"\n]*\", |in '[^'\n]*', |: )?|: )\bline:? \d+,? ?(?:column|col):? \d+"
    r"(?: \(char \d+\))?\)?(?::\n.*)?",
    re.DOTALL,
)
_PLACES: Final = re.compile(r" \([^()\n]*: /[^()\n]*\)")
_EXCERPT: Final = re.compile(r"(['\"])(?:(?!\1)[^\n]){0,80}\1?\.\.\.")
_NUMBERS: Final = re.compile(r"(?<=[(\[])\d+,(?: ?\d+,?)*(?=[)\]])")
_LIST: Final = re.compile(r"(?<=:)(?:\n[ \t]+\S[^\n]*)+")
_IDS: Final = re.compile(r"(?<= )(?:[a-z]+_(?=\w*[A-Z\d])\w+)(?:, [a-z]+_\w+)*$")
_METHOD: Final = re.compile(r"\b(?:\w+\.|<locals>\.)+(?=[a-z]\w*\(\) (?:missing|got|takes))")
_REQUEST: Final = re.compile(r"\s*\bRequest[ -]?Id: ?\S+|\s+Time: ?\d\S+")
_ORGANIZATION: Final = re.compile(r"(?<=organization )[`']?org[-_]\w+[`']?")
_PHRASE: Final = re.compile(r"(?<=returned error: [45]\d\d) [A-Z][A-Za-z -]+$")
_TOKEN: Final = re.compile(r"(Unexpected token) '?(\S)'?(?:, .* is not valid JSON| in JSON at position \d+)")
_VALUE: Final = re.compile(
    r"^'[^'\n]*'(?= is not (?:of type|valid under|one of) )|(?<=pathspec )'[^'\n]*'"
    r"|(?:(?<=remote ref )|(?<=ecksum of ref ))\S+"
)
_DIALED: Final = re.compile(
    r": (?:Get|Post|Put|Head|Delete) \"[^\"\n]*\": dial unix.*|\nlocation searched: .*", re.DOTALL
)
_TAILS: Final = re.compile(r" -> \[Help \d+\]| without sending a response|\n\w+: Error is not recoverable: exiting now")
_CURVED: Final = re.compile(r"[‘’](?!s )")
CUTS: Final[tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]] = (
    (("‘",), _CURVED, "'"),
    ((".",), re.compile(r"^(?:[a-z_]\w*\.)+(?=[A-Z]\w+: )"), ""),
    (("<class '",), re.compile(r"^<class '[\w.]+'>: "), ""),
    (("<local",), re.compile(r"(?<=<local)\d+(?=>)"), ""),
    (("organization ",), _ORGANIZATION, "<id>"),
    (("[Help ", "without sending", "not recoverable"), _TAILS, ""),
    (("Unexpected token",), _TOKEN, r"\1 \2 in JSON"),
    (("'@'",), re.compile(r"(?<=')@'[^'\n]*'"), ""),
    (("' is not ", "pathspec ", "remote ref ", "of ref "), _VALUE, "<quoted>"),
    (("dial unix", "location searched"), _DIALED, ""),
    (("returned error: ",), _PHRASE, ""),
    ((":SIG",), re.compile(r"(?<=\d):(?=SIG)"), ": "),
    ((": /",), _PLACES, ""),
    (("line",), _PLACE, ""),
    (("...",), _EXCERPT, "<quoted>"),
    (("(1",), re.compile(r" \(\d+:\d+\):?(?=\s|$)"), ""),
    (("https:", "http:"), re.compile(r" \([^()\n]*https?://[^()\s]*\)"), ""),
    (("(1", "[1"), _NUMBERS, "<n>"),
    ((":\n",), _LIST, " <quoted>"),
    (("_",), _IDS, "<id>"),
    (("() ",), _METHOD, ""),
    (("Request",), _REQUEST, ""),
    ((". ", "\n", "! ", "? ", "; ", ", "), _ADVICE, ""),
)
"""(Marks, one of which is in every text with an addition, its pattern, what stands for it), in their order."""


def cut_addition(pattern: re.Pattern[str], instead: str, text: str) -> str:
    """A text without one kind of addition. Of an exceeded quota the link says which provider: it stays."""
    return text if pattern is _ADVICE and "current quota" in text else pattern.sub(instead, text).strip()


ERRNO: Final = {
    "EPERM": (1, "Operation not permitted"),
    "ENOENT": (2, "No such file or directory"),
    "EAGAIN": (11, "Resource temporarily unavailable"),
    "EACCES": (13, "Permission denied"),
    "EBUSY": (16, "Device or resource busy"),
    "EEXIST": (17, "File exists"),
    "EXDEV": (18, "Invalid cross-device link"),
    "ENOTDIR": (20, "Not a directory"),
    "EISDIR": (21, "Is a directory"),
    "EMFILE": (24, "Too many open files"),
    "EFBIG": (27, "File too large"),
    "EROFS": (30, "Read-only file system"),
    "EPIPE": (32, "Broken pipe"),
    "ENAMETOOLONG": (36, "File name too long"),
    "ENOTEMPTY": (39, "Directory not empty"),
    "ELOOP": (40, "Too many levels of symbolic links"),
}
"""Name: number and message of Linux, as `errno(3)` lists them."""
_ERRNO_MESSAGES: Final = dict(ERRNO.values())
_NAMED_ERRNO: Final = re.compile(
    rf"(?P<name>{'|'.join(ERRNO)}): [a-z][a-z -]*(?:, (?P<call>\w+))?(?: (?P<operand>'[^'\n]*'))?(?: -> '[^'\n]*')?"
)
_NUMBERED_ERRNO: Final = re.compile(r"\[Errno (?P<number>\d+)\] [^:\n]*(?:: (?P<operand>.*))?")
_RUST_ERRNO: Final = re.compile(r"(?P<operand>.*: )?[A-Z][a-z -]+ \(os error (?P<number>\d+)\)")
_GO_ERRNO: Final = re.compile(
    rf"(?:\w+) (?P<operand>/\S*|\S+/\S*|\S+\.\w+): (?P<words>{'|'.join(_ERRNO_MESSAGES.values())})", re.IGNORECASE
)
_SHELL_ERRNO: Final = re.compile(
    r"(?P<tool>(?!error:|fatal:)[a-z][\w.-]*): (?P<doing>cannot [a-z]+(?: [a-z]+)* )?"
    r"(?P<operand>'[^'\n]*[/.][^'\n]*'|[^'\n:]*[/.][^'\n:]*): "
    rf"(?:Cannot \w+: )?(?P<words>{'|'.join(_ERRNO_MESSAGES.values())})"
)
"""``cat: data/a.csv: No such file or directory``"""
_BY_MESSAGE: Final = {message.lower(): number for number, message in _ERRNO_MESSAGES.items()}
ERRNO_MARKS: Final = (
    "[Errno ",
    "(os error ",
    *(f"{name}: " for name in ERRNO),
    *(w[1:] for w in _ERRNO_MESSAGES.values()),
)
_ANYWHERE: Final = frozenset({24, 30, 32, 39, 17, 16, 11, 21, 20})
"""The operand does not matter, or some libraries leave it out."""


def system_error(text: str) -> str | None:
    """``[Errno 2] No such file or directory: '…'`` for what Node, Rust and Go print otherwise; else None."""
    if match := _SHELL_ERRNO.fullmatch(text):
        return f"{match['tool']}: {match['doing'] or ''}<path>: {match['words']}"
    if match := _NAMED_ERRNO.fullmatch(text):
        number = ERRNO[match["name"]][0]
    elif match := _GO_ERRNO.fullmatch(text):
        number = _BY_MESSAGE[match["words"].lower()]
    elif (match := _NUMBERED_ERRNO.fullmatch(text)) or (match := _RUST_ERRNO.fullmatch(text)):
        number = int(match["number"])
    else:
        return None
    if number not in _ERRNO_MESSAGES:
        return None
    operand = (match["operand"] or "").strip(" :'\"")
    named = "" if number in _ANYWHERE or not operand else f": '{operand}'"
    return f"[Errno {number}] {_ERRNO_MESSAGES[number]}{named}"


_STATUS: Final = re.compile(
    r"(?:code (?P<coded>[45]\d\d)(?: code \d+| [A-Za-z_][\w.\[\]]*)*:|(?:HTTP )?(?P<plain>[45]\d\d):?) "
    r"(?!(?:failed|passed|skipped|[a-z]+s)\b)(?P<said>\S.*)",  # else the number counts things
    re.DOTALL,
)
_INNER: Final = re.compile(r"[A-Z_. :]*code [45]\d\d(?: code \d+| [A-Za-z_][\w.\[\]]*)*: (?P<said>.*)", re.DOTALL)
_REASONS: Final = re.compile(r"(?:; [A-Z][A-Z_]+)+$")
_SENTENCE: Final = 4
"""Words of a message that says more than its status and codes."""


def status_text(text: str) -> str | None:
    """``code 404: The model …`` of a status, codes that only some SDKs show, and a message; else None."""
    match = _STATUS.fullmatch(text)
    if match is None:
        return None
    message = match["said"]
    if inner := _INNER.fullmatch(message):
        message = inner["said"]
    if len(message.split()) < _SENTENCE:
        return None
    return f"code {match['coded'] or match['plain']}: {_REASONS.sub('', message)}"
