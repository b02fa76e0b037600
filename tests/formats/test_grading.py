"""Why no test ran, and the first check that failed, from what graders print."""

import pytest

from tracetui.formats.grading import first_failure, plain_name, why_no_test_ran
from tracetui.model import Who

RAN = "tests/test_a.py F [100%]\nE   AssertionError: File /app/a.txt does not exist\n=== 1 failed in 0.17s ===\n"


@pytest.mark.parametrize(
    ("log", "who", "text", "line"),
    [
        ("ok\n/tests/test.sh: line 19: uvx: command not found\n", Who.GRADER, "uvx: command not found", 2),
        ("/tests/run.sh: 7: pytest: not found\n", Who.GRADER, "pytest: not found", 1),
        ("/usr/bin/python3: No module named pytest\n", Who.GRADER, "/usr/bin/python3: No module named pytest", 1),
        (
            "ERROR: No matching distribution found for pytest==8.4\n",
            Who.GRADER,
            "ERROR: No matching distribution found for pytest==8.4",
            1,
        ),
        (
            "curl: (6) Could not resolve host: astral.sh\n",
            Who.GRADER,
            "curl: (6) Could not resolve host: astral.sh",
            1,
        ),
        (
            "ERROR: file or directory not found: /tests/test_outputs.py\n",
            Who.GRADER,
            "ERROR: file or directory not found: /tests/test_outputs.py",
            1,
        ),
        (
            "Error response from daemon: No such container: 4f\n",
            Who.ENVIRONMENT,
            "Error response from daemon: No such container: 4f",
            1,
        ),
        (
            "___ ERROR collecting test_a.py ___\ntests/test_a.py:1: in <module>\n"
            "E   ModuleNotFoundError: No module named 'chess'\n=== 1 error in 0.1s ===\n",
            Who.GRADER,
            "ModuleNotFoundError: No module named 'chess'",
            3,
        ),
    ],
)
def test_output_without_a_test_that_ran_says_why(log: str, who: Who, text: str, line: int) -> None:
    evidence = why_no_test_ran(log, "verifier/test-stdout.txt")
    assert evidence is not None
    assert (evidence.who, evidence.text, evidence.place) == (who, text, f"verifier/test-stdout.txt line {line}")


@pytest.mark.parametrize(
    "prefix",
    [
        "/tests/run-tests: line 12: ",
        "x: line 3: ",
        "bash: line 1: ",
        "/bin/bash: line 1: run: line 3: ",
        "my tests/run all: line 3: ",
        "bash: -c: line 1: ",
        "",
    ],
)
def test_a_reason_is_the_same_wherever_it_stands_in_a_script(prefix: str) -> None:
    evidence = why_no_test_ran(f"{prefix}uvx: command not found\n", "log")
    assert evidence is not None
    assert evidence.text == "uvx: command not found"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("/tests/run: 7: pytest: not found", "pytest: not found"),
        ("run:3: command not found: uvx", "command not found: uvx"),
        ("E: Unable to locate package: line 3", "E: Unable to locate package: line 3"),
    ],
)
def test_the_place_in_the_script_is_that_of_its_shell(line: str, text: str) -> None:
    evidence = why_no_test_ran(line, "log")
    assert evidence is not None
    assert evidence.text == text


@pytest.mark.parametrize(
    "log",
    [
        "",
        "score 0\n",
        "solve.sh: line 3: ffmpeg: command not found\n",
        "curl: (7) Failed to connect\n" + RAN,
        "/tests/test.sh: line 1: jq: command not found\n" + RAN,
        "___ ERROR collecting test_a.py ___\n/app/solution.py:3: in <module>\nE   SyntaxError: invalid syntax\n",
    ],
)
def test_without_evidence_nothing_is_said(log: str) -> None:
    assert why_no_test_ran(log, "log") is None


def test_the_first_failure_is_the_assertion_of_the_first_failed_test() -> None:
    log = "____ test_size[1] ____\n>   assert size < MAX\nE   assert 5 < 4\n\n/t.py:3: AssertionError\n" + RAN
    failure = first_failure(log, "log")
    assert failure is not None
    assert (failure.check, failure.type, failure.text) == ("test_size", "AssertionError", "assert size < MAX")


def test_a_plain_name_has_no_file_and_no_parameters() -> None:
    assert plain_name("tests/test_a.py::TestB::test_c[1-2]") == "test_c"
