"""What graders leave: output of test runners and reports of checks, for formats whose runs are graded by tests.

Two questions: which check failed first, and how; and if no test ran, why. Only output that names the reason counts as
evidence. Facts: pytest's terminal output and exit codes, the Common Test Report Format (CTRF), messages of shells, pip,
uv, apt, npm, curl, wget, git and Docker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from tracetui.formats.scalars import child, mapping, natural, sequence, text
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Who

MOST_BYTES: Final = 1 << 20
"""Bytes of a grader's log that are read: the last ones of a longer log."""
_LONGEST: Final = 2_000
"""Characters of a line that are looked at."""

# ---- whether a test ran

_RAN: Final = re.compile(
    r"^=+ .*\b\d+ (?:passed|failed|skipped|xfailed|xpassed)\b.* =+$"  # pytest, in full
    r"|^\d+ (?:passed|failed)\b.* in \d"  # pytest -q
    r"|^(?:PASSED|FAILED|XFAIL|SKIPPED) \S"
    r"|\S+::\S+ (?:PASSED|FAILED|SKIPPED)\b"
    r"|^\S+\.py [.FsxXE]*[.FsxX][.FsxXE]*\s+\[ *\d+%\]$"
    r"|^Ran [1-9]\d* tests? in "  # unittest
    r"|^test result: (?:ok|FAILED)\. "  # cargo
    r"|^(?:--- (?:PASS|FAIL|SKIP): |ok  \t|FAIL\t)"  # go
    r"|^(?:not )?ok \d+\b"  # TAP
    r"|^\s*Tests: .*\b\d+ (?:passed|failed)|^\s*Tests {2,}\d+ (?:passed|failed)"  # jest, vitest
    r"|^Tests run: [1-9]"  # JUnit of Maven
    r"|^\d+ examples?, \d+ failures?"  # RSpec
    r"|^\s*\d+ (?:passing|failing)\b"  # Mocha
    r"|^E {2,}\S|^(?:\w+\.)*AssertionError\b"
)
"""A line that only a test that ran can have caused."""
_ERRORS_ONLY: Final = re.compile(r"^=+ (?:\d+ warnings?, )?\d+ errors?\b.* in \d|^=+ no tests ran\b|^no tests ran in ")
_COLLECTING: Final = re.compile(r"^_+ ERROR collecting (\S+)|^ERROR (\S+\.py)(?: - |$)|^ERROR collecting (\S+)")
_E_LINE: Final = re.compile(r"^E {1,12}(\S.*)$")
_FRAME: Final = re.compile(r"^(\S+?\.py):(\d+): (?:in |\w+(?:Error|Exception)\b)|^\s*File \"([^\"]+)\", line (\d+)")
_TEST_FILE: Final = re.compile(r"(?:^|[/\\])(?:tests?|conftest\.py|test_[^/\\]*|[^/\\]*_test\.py)(?:[/\\]|$)")
_INSTALLED: Final = re.compile(r"site-packages|dist-packages|[/\\]lib[/\\]python|importlib|^<|_pytest")

_TOOLS: Final = (
    r"(?:uvx?|pytest|py\.test|pip3?|pipx|python[\d.]*|tox|nox|poetry|pdm|hatch|conda|mamba"
    r"|micromamba|node|npm|npx|pnpm|yarn"
    r"|bun|deno|jest|vitest|mocha|go|gotestsum|cargo|rustc|mvn|gradle|java|javac|dotnet|ruby|bundle"
    r"|rspec|phpunit|composer"
    r"|curl|wget|git|apt|apt-get|apk|dnf|yum|bash|sh|make|cmake|ctest|timeout|jq|unzip|tar|docker|sudo)"
)
_REASONS: Final[Sequence[tuple[Who, re.Pattern[str]]]] = (
    (
        Who.GRADER,
        re.compile(
            rf"(?:^|: ){_TOOLS}: (?:command )?not found$"  # bash, dash
            rf"|\bcommand not found: {_TOOLS}$"  # zsh
            rf"|^env: .?{_TOOLS}.?: No such file or directory"
            rf"|\bexec: \\?\"?{_TOOLS}\\?\"?: executable file not found"
            rf"|\bNo module named '?\"?(?:pytest|_pytest|pip|uv|tox|nox|unittest2|nose|pytest_\w+)\b"
        ),
    ),
    (
        Who.GRADER,
        re.compile(
            r"^ERROR: (?:file or directory not found|not found): "
            r"|\bcan't open file '?[^']*\btest[^']*'?: \[Errno 2\]"
            r"|^(?:/bin/)?(?:ba|da|z)?sh: (?:\d+: "
            r"|line \d+: )?\S*\btests?\b\S*: (?:No such file or directory|not found|Permission denied)"
            r"|^\S*\btest\S*\.sh: line \d+: \S*\btests?/\S*: (?:No such file or directory|Permission denied)"
            r"|^(?:cp|cat|chmod|cd|ls|source|python3?|bash): .*\btests?/\S*: No such file or directory"
            r"|^pytest: error: |^ERROR: usage: pytest|^ImportError while loading conftest"
            r"|^INTERNALERROR>|\bunrecognized arguments: "
        ),
    ),
    (
        Who.GRADER,
        re.compile(
            r"^ERROR: (?:Could not find a version that satisfies|No matching distribution|Could not install packages"
            r"|ResolutionImpossible|Failed building wheel|Could not build wheels)"
            r"|^error: externally-managed-environment|^error: (?:subprocess-exited-with-error"
            r"|metadata-generation-failed)"
            r"|\bNo solution found when resolving|^\s*(?:error: |× )?Failed to (?:download|fetch"
            r"|build|resolve|install|prepare)\b"
            r"|^failed to download |^E: (?:Unable to locate package|Unable to fetch|Failed to fetch"
            r"|Could not get lock|Sub-process)"
            r"|^npm (?:ERR!|error) (?:code )?\S|^error Couldn't find package"
        ),
    ),
    (
        Who.GRADER,
        re.compile(
            r"^curl: \((?:[5-7]|28|35|5[126]|60|22)\) |^wget: unable to resolve|^wget: .*failed"
            r"|\bfailed: Temporary failure in name resolution"
            r"|\bCould not resolve (?:host|proxy)\b|\bTemporary failure in name resolution\b"
            r"|\bName or service not known\b"
            r"|\bNetwork is unreachable\b|\bMax retries exceeded with url\b|\bFailed to establish a new connection\b"
            r"|\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN)\b|\bCouldn't connect to server\b|\bdns error: "
        ),
    ),
)
"""Lines that say why no test could run, the closest reasons first."""
_ENVIRONMENT: Final = re.compile(
    r"Cannot connect to the Docker daemon|Error response from daemon|No such container|is the docker daemon running"
    r"|docker(?: |-)compose .*(?:failed|exited)|Docker compose command failed|toomanyrequests: |manifest unknown"
    r"|pull access denied|OCI runtime|no space left on device|No space left on device"
    r"|(?i:failed to (?:build|pull|start|create) (?:the )?(?:docker )?(?:image|container|sandbox|environment))"
    r"|(?i:\bsandbox (?:not found|was not found|timeout|error|is not running|terminated))|ImagePullBackOff|OOMKilled"
)


def is_environment(message: str) -> bool:
    """Whether an error message is one of the sandbox, its image or its host."""
    return _ENVIRONMENT.search(message[:_LONGEST]) is not None


def why_no_test_ran(log: str, place: str) -> Evidence | None:
    """Return why no test ran, by the output of the grader; None if a test ran, or if the output does not say why.

    `place` is the file of the output. A collection that failed in code outside of the tests says nothing of the kind:
    that is the agent's own code.
    """
    lines = [line[:_LONGEST].rstrip() for line in log.split("\n")]
    collecting = next((number for number, line in enumerate(lines) if _COLLECTING.match(line)), None)
    ran = _RAN.search
    if any(ran(line) for line in lines if collecting is None or not line.startswith("E ")):
        return None
    if collecting is not None:
        return _failed_collection(lines, collecting, place)
    for number in range(len(lines) - 1, -1, -1):  # the last thing that went wrong stopped it
        if _ENVIRONMENT.search(lines[number]):
            return _quote(lines[number], place, number, Who.ENVIRONMENT)
    for who, reason in _REASONS:
        for number in range(len(lines) - 1, -1, -1):
            if reason.search(lines[number]):
                return _quote(lines[number], place, number, who)
    for number, line in enumerate(lines):
        if _ERRORS_ONLY.match(line) and "error" not in line:
            return _quote(line.strip("= "), place, number, Who.GRADER)
    return None


def _failed_collection(lines: Sequence[str], at: int, place: str) -> Evidence | None:
    frames = [match[1] or match[3] for line in lines[at:] if (match := _FRAME.match(line))]
    own = [path for path in frames if not _INSTALLED.search(path)]
    if own and not _TEST_FILE.search(own[-1]):
        return None
    number = next((i for i in range(at, len(lines)) if _E_LINE.match(lines[i])), at)
    match = _E_LINE.match(lines[number])
    return _quote(match[1] if match else lines[number].strip("_= "), place, number, Who.GRADER)


_SCRIPT_LINE: Final = re.compile(
    r"^(?:[^:\n]+: (?:(?:-c|eval): )?line \d+: (?=[^:\n]+: |syntax error|unexpected)"  # bash
    r"|[^:\n]+: \d+: (?=[^:\n]+: (?:not found|Permission denied|No such file)|Syntax error)"  # dash
    r"|[^:\n]+:\d+: (?=(?:command not found|permission denied|no such file or directory): ))+"  # zsh
)
"""What shells print before a message: their name or that of the script, whatever its suffix, and the line in it."""


def _quote(line: str, place: str, number: int, who: Who) -> Evidence:
    """The line without the place in the script that it begins with: it is the same reason wherever it stands."""
    return Evidence(_SCRIPT_LINE.sub("", line.strip())[:EVIDENCE_LIMIT], f"{place} line {number + 1}", who)


# ---- the first check that failed

_MAIN_E: Final = re.compile(r"^E {2,}(\S.*)$")
_TYPE: Final = re.compile(
    r"^((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Failed|Exit|Interrupt|Warning|NotFound|Timeout\w*))(?::\s*(.*))?$"
)
_HEADING: Final = re.compile(r"^_{3,} (?:ERROR at \w+ of )?(\S.*?) _{3,}$")
_LINE: Final = re.compile(r"^>\s+(\S.*)$")
_NAMED_FAILURE: Final = re.compile(r"^FAILED (\S+)(?: - (.*))?$")


def first_failed_check(report: Any, place: str) -> Evidence | None:
    """Return the first failed check of a CTRF report, with its assertion; None without one."""
    for number, test in enumerate(map(mapping, sequence(child(report, "results").get("tests")))):
        if test.get("status") == "failed":
            name = plain_name(text(test.get("name")) or "")
            trace = text(test.get("trace")) or ""
            message = (text(test.get("message")) or "").strip()
            kind, assertion = _assertion(trace.split("\n")) or (None, message.split("\n")[0])
            return Evidence(assertion[:EVIDENCE_LIMIT], f"{place} results.tests[{number}]", check=name, type=kind)
    return None


def first_failure(log: str, place: str) -> Evidence | None:
    """Return the first failed test in the output of pytest, or of a Python program that raised; None without one."""
    lines = [line[:_LONGEST].rstrip() for line in log.split("\n")]
    at = next((i for i, line in enumerate(lines) if _MAIN_E.match(line)), None)
    if at is not None:
        begin = next((i for i in range(at, -1, -1) if _HEADING.match(lines[i])), None)
        name = "" if begin is None else (_HEADING.match(lines[begin]) or [""] * 2)[1]
        failure = _assertion(lines[at if begin is None else begin :])
        if failure is not None:
            return Evidence(
                failure[1][:EVIDENCE_LIMIT], f"{place} line {at + 1}", check=plain_name(name), type=failure[0]
            )
    for number, line in enumerate(lines):
        if match := _NAMED_FAILURE.match(line):
            kind, assertion = _typed(match[2] or "")
            return Evidence(
                assertion[:EVIDENCE_LIMIT], f"{place} line {number + 1}", check=plain_name(match[1]), type=kind
            )
    return _raised(lines, place)


def _raised(lines: Sequence[str], place: str) -> Evidence | None:
    """The exception that ends the last traceback."""
    begin = next((i for i in range(len(lines) - 1, -1, -1) if lines[i].startswith("Traceback (most recent")), None)
    for number in range(len(lines) if begin is None else begin + 1, len(lines)):
        if match := _TYPE.match(lines[number]):
            source = lines[number - 1].strip() if match[1] == "AssertionError" and not match[2] else ""
            return Evidence((match[2] or source)[:EVIDENCE_LIMIT], f"{place} line {number + 1}", type=match[1])
    return None


def _assertion(lines: Sequence[str]) -> tuple[str | None, str] | None:
    """(Type, text) of the exception in a pytest report of one test; of a bare assertion its source."""
    source = ""
    for line in lines:
        if match := _LINE.match(line):
            source = match[1]
        elif match := _MAIN_E.match(line):
            kind, assertion = _typed(match[1])
            if kind in (None, "AssertionError") and (not assertion or assertion.startswith("assert ")):
                assertion = source or assertion
                kind = "AssertionError"
            return kind, assertion
    return None


def _typed(line: str) -> tuple[str | None, str]:
    match = _TYPE.match(line)
    return (match[1], match[2] or "") if match else (None, line)


def plain_name(name: str) -> str:
    """A test without its file and parameters: ``tests/test_a.py::TestB::test_c[1-2]`` is ``test_c``."""
    return name.partition("[")[0].rpartition("::")[2].rpartition(".")[2].strip()[:120]


def counts_no_test(report: Any) -> bool:
    """Whether a CTRF report says itself that no test ran."""
    results = child(report, "results")
    return natural(child(results, "summary").get("tests")) == 0 and not sequence(results.get("tests"))
