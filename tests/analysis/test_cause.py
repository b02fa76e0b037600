"""Causes: noise never changes them, and what tells failures apart always does."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analysis.cause_families import halves
from tests.analysis.cause_pairs import DIFFERENT_CAUSES, SAME_CAUSE, Failure
from tests.analysis.measured_pairs import LATER, PAIRS, REPORTS
from tests.analysis.output_pairs import PAIRS as OUTPUTS
from tests.shared import examples
from tracetui.analysis.cause import (
    BY_TEXT,
    TABLE,
    Cause,
    failure_of,
    find_equivalent,
    old_digest_of,
    previous_digest_of,
    shared_cause,
    short_ids,
)
from tracetui.analysis.error_shapes import host_name
from tracetui.analysis.error_text import (
    MAX_TEXT,
    PLACEHOLDER,
    ErrorText,
    Normalized,
    Template,
    normalize,
    template_of,
    unwrap,
)
from tracetui.model import FirstError, Operation, Outcome, RunRef, RunSummary, Score, Status

TOOL = Operation.EXECUTE_TOOL
WORDS = st.text("acefgijlnopqruvz", min_size=1, max_size=9)  # of which no unit is made
TROUBLE = st.text("ab 1'\"`<n>/\\.:-_“”@~+*=()[]{}é\n\t", max_size=40)
HEX = st.text("0123456789abcdef", min_size=7, max_size=40).filter(lambda text: any(map(str.isdigit, text)))
NUMBERS = st.integers(-(10**12), 10**12).map(str) | st.floats(0, 1e6).map(lambda number: f"{number:.3f}")
GROUPED = st.integers(0, 10**12).map(lambda number: f"{number:,}")
IDS = st.uuids().map(str) | HEX | HEX.map("req_{}".format) | HEX.map("call-{}".format)
WRAPS = st.sampled_from(["{}", "({})", "[{}]", "{},", "{}.", "={}", "#{}", "'{}'", "({}):"])
UNITS = st.sampled_from(["{}ms", "{}%", "{} seconds", "{} MB", "{}s ago", "{} tokens"])
PATHS = st.lists(WORDS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
FRAGMENTS = st.sampled_from(
    [*" .:-_/()'=", "0x", "://", " HTTP ", "status ", "exit code ", "[Errno ", "job-", "req_", "ORA-", "utf-", " ms",
     "d", "e-", "s", " MB", " rows", " (", " Not Found", ": ", "T", "base ", "-32", "404", "1234", "12", "7", "host='"]
)  # fmt: skip
"""Parts of texts in which a number may or may not be noise."""
NOISE = st.one_of(
    st.tuples(st.sampled_from([NUMBERS | GROUPED, IDS, NUMBERS | IDS]), WRAPS),
    st.tuples(st.just(NUMBERS | GROUPED), UNITS),
    st.tuples(st.sampled_from([PATHS, PATHS.map("https://host{}".format)]), st.sampled_from(["{}", "({})", "'{}'"])),
)
IDENTITY = st.sampled_from(
    [
        ("HTTP {}", ["400", "401", "404", "500", "503"]),
        ("status code {}", ["400", "401", "404", "500", "503"]),
        ("[Errno {}] open", ["2", "13", "28"]),
        ("exit status {}", ["1", "2", "127", "137"]),
        ("exited with code {}", ["1", "2", "127", "137"]),
        ("killed by signal {}", ["9", "11", "15"]),
        ("SQLSTATE[{}]", ["23505", "23503", "42P01"]),
        ("No module named '{}'", ["pandas", "numpy", "a.b"]),
        ("KeyError: '{}'", ["a", "b", "user_id"]),
        ("{}: boom", ["ValueError", "TypeError", "LookupError"]),
        ("connect ECONNREFUSED 127.0.0.1:{}", ["5432", "6379", "8080"]),
        ("cannot read {}", ["src/a.py", "src/b.py"]),
        ("error[{}]: no", ["E0382", "E0499"]),
    ]
)


def failed(message: str = "boom", **more: Any) -> RunSummary:
    """A run that failed in a tool."""
    fields: dict[str, Any] = {"type": "ValueError", "span": "s", "name": "search", "operation": TOOL, **more}
    agent, word = fields.pop("agent", "planner"), fields.pop("word", "error")
    error = FirstError(message, **fields)
    ref = RunRef("any", "run.json")
    return RunSummary.of(
        ref=ref, id="a", name="a", agent=agent, status=Status.ERROR, status_word=word, first_error=error
    )


def cause_of(message: str = "boom", **more: Any) -> Cause:
    """The cause of such a run."""
    failure = failure_of(failed(message, **more))
    assert failure is not None
    return failure.cause


def cause(failure: Failure) -> Cause:
    """The cause of a failure of the table."""
    kind, message = (None, failure) if isinstance(failure, str) else failure
    return cause_of(message, type=kind)


@pytest.mark.parametrize(("failure", "other"), SAME_CAUSE)
def test_these_have_one_cause(failure: Failure, other: Failure) -> None:
    assert cause(failure).key == cause(other).key
    assert cause(failure).digest == cause(other).digest


@pytest.mark.parametrize(("failure", "other"), DIFFERENT_CAUSES)
def test_these_have_two_causes(failure: Failure, other: Failure) -> None:
    assert cause(failure).key != cause(other).key
    assert cause(failure).digest != cause(other).digest


@pytest.mark.parametrize(
    "pairs",
    [PAIRS[::2], PAIRS[1::2], LATER, REPORTS, OUTPUTS],
    ids=["rules", "set aside", "later", "reports", "outputs"],
)
def test_pairs_are_grouped_as_a_triager_would(pairs: list[tuple[str, bool, str, str]]) -> None:
    merged = [cause_of(a, type=None).key == cause_of(b, type=None).key for _, _, a, b in pairs]
    labels = [same for _, same, _, _ in pairs]
    right = sum(map(min, merged, labels))

    wrong = [pair[2:] for pair, same, group in zip(pairs, labels, merged, strict=True) if same != group]
    assert right / sum(merged) >= 0.95, wrong
    assert right / sum(labels) >= 0.95, wrong


@pytest.mark.parametrize("pairs", halves(), ids=["rules", "set aside"])
def test_families_of_errors_are_grouped_by_cause(pairs: list[tuple[str, bool, str, str]]) -> None:
    merged = [cause_of(a, type=None).key == cause_of(b, type=None).key for _, _, a, b in pairs]
    labels = [same for _, same, _, _ in pairs]
    right = sum(map(min, merged, labels))

    assert right / sum(merged) >= 0.95
    assert right / sum(labels) >= 0.85


def test_a_compose_that_failed_is_one_cause_of_the_environment() -> None:
    message = (
        "Docker compose command failed for environment {0}. Command: docker compose -p {0} up -d. Return code: {1}. "
        "Stdout: None. Stderr: None. "
    )

    first, second, other = (
        cause_of(message.format(name, status), type="RuntimeError")
        for name, status in (("fix-git", 1), ("build-linux", 1), ("fix-git", 17))
    )

    assert first.key == second.key != other.key
    assert "docker compose failed with exit status 1" in first.title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "Command '['git', 'push']' returned non-zero exit status 128.",
            "returned non-zero exit status 128 · git push",
        ),
        (
            "TimeoutError: locator.click: Timeout 9ms exceeded.\nCall log:\n  - waiting for locator('#a')",
            "timed out · lo",
        ),
        (
            "HTTPStatusError: Server error '502 Bad Gateway' for url 'https://a.example/x'",
            "HTTP 502 Bad Gateway · a.exam",
        ),
        ("npm error notarget No matching version found for left-pad@9.9.9.", "found for left-pad@<n>"),
        ("1 validation error for Plan\na\n  Field required [type=missing, input_value={}]", "Plan: a missing"),
        ("make: *** [Makefile:3: test] Error 2", "make test: exit status 2"),
        ("KeyError: '/v1/items'", "KeyError: /v1/items · search"),
        ('RuntimeError: "no plan yet"', "RuntimeError: no plan yet · search"),
        ('pods "a-b" is forbidden: User "ci" cannot get it', "pods 'a-b' is forbidden: User 'ci' cannot get it"),
        ("connect ECONNREFUSED 10.0.0.1:5432", "connection refused (port 5432)"),
        ("dial tcp: lookup db.example on 10.0.0.2:53: no such host", "host not found · db.example"),
        ("ExceptionGroup('x', [KeyError('b'), ValueError('a')])", "KeyError: b; ValueError: a"),
    ],
)
def test_a_title_names_what_decides(text: str, title: str) -> None:
    assert title in cause_of(text, type=None).title


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("API.Example.com", "api.example.com"),
        ("worker4040.internal", "worker<n>.internal"),
        ("ip-10-0-3-4.ec2.internal", "ip-<n>-<n>-<n>-<n>.ec2.internal"),
        ("s3.example", "s3.example"),
        *[(host, "") for host in ("localhost", "127.0.0.1", "[::1]", "")],
    ],
)
def test_a_host_is_named_without_the_digits_of_its_pool(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("Command 'npm ci' returned non-zero exit status 1.", "0e1a220d09941ca74bfd817d25ae1bdc977008a4"),
        ("Command 'pytest -q' returned non-zero exit status 1.", "0e1a220d09941ca74bfd817d25ae1bdc977008a4"),
        ("read ECONNRESET", "3e7dd3a227af2650f1e0c535d86c5c2b58bf01a5"),
        ("java.lang.OutOfMemoryError: Metaspace", "978a648dacaeed23fd5d60578537ad97e70ef90d"),
        (
            "Cannot connect to host db.example:80 [Connect call failed ('10.0.0.1', 80)]",
            "903c51540b089f0bdb57d95fe8c01f9d70707c72",
        ),
        ("no shape here", None),
    ],
)
def test_the_cause_of_a_recognized_shape_had_another_digest_before(text: str, digest: str | None) -> None:
    assert previous_digest_of(failed(text, type=None)) == digest


EXAMPLES = {
    "connection refused": [("", "connect ECONNREFUSED ::1"), ("ConnectionRefusedError", "")],
    "rate limited": [("", "Rate limit reached"), ("ThrottlingException", ""), ("", "Too Many Requests")],
    "context too long": [("", "prompt is too long"), ("ContextWindowExceededError", "")],
    "GPU out of memory": [("", "CUDA out of memory."), ("", "HIP error: out of memory")],
    "out of memory": [("MemoryError", ""), ("", "std::bad_alloc"), ("", "spawn ENOMEM"), ("", "OOMKilled")],
    "address in use": [
        ("", "listen EADDRINUSE: address already in use 0.0.0.0"),
        ("", "Bind failed: port is already allocated"),
    ],
    "connection reset": [("ConnectionResetError", ""), ("", "read ECONNRESET"), ("", "Connection reset by peer")],
    "host not found": [("", "getaddrinfo ENOTFOUND"), ("gaierror", "[Errno -2] Name or service not known")],
    "name resolution failed": [("", "getaddrinfo EAI_AGAIN"), ("", "[Errno -3] Temporary failure in name resolution")],
    "quota exceeded (OpenAI)": [
        ("", "insufficient_quota: You exceeded your current quota"),
        ("", "insufficient_quota"),
    ],
    "quota exceeded (Google)": [
        ("", "RESOURCE_EXHAUSTED: You exceeded your current quota"),
        ("", "You exceeded your current quota, head to: https://ai.google.dev/"),
    ],
    "disk full": [("", "[Errno 28] No space left on device: '/tmp/a'"), ("", "npm ERR! code ENOSPC")],
    "overloaded": [
        ("OverloadedError", ""),
        ("", "overloaded_error: Overloaded"),
        ("", "Repeated 529 Overloaded errors"),
    ],
    "rate limited (Google)": [("ResourceExhausted", ""), ("", "RESOURCE_EXHAUSTED: Resource exhausted.")],
    "timed out": [("ReadTimeout", ""), ("", "context deadline exceeded"), ("", "timeout of 5000ms exceeded")],
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.title)
def test_every_row_of_the_table_of_equivalents_has_examples(row: Any) -> None:
    for kind, text in EXAMPLES[row.title]:
        assert equivalent(kind or None, text) == row.title
    for code in row.codes:
        assert equivalent(None, EXAMPLES[row.title][0][1] or "MemoryError", code) in (row.title, None)
    assert equivalent("exit 1", EXAMPLES[row.title][0][1]) is None
    assert equivalent(EXAMPLES[row.title][0][0] or None, EXAMPLES[row.title][0][1], "418") is None


def equivalent(kind: str | None, text: str, *codes: str) -> str | None:
    """The row of a text in which these codes stay."""
    return find_equivalent(ErrorText(kind, text), Normalized(text, text, Template("", (), codes)))


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("tool exploded: connection reset", "tool exploded: connection reset"),
        ("Token budget exceeded: 12,600 > 500.5", "Token budget exceeded: <n> > <n>"),
        ("429: retry in 2m30s, at 08:00:01.5 or 2026-03-02T08:00:00.1Z.", "429: retry in <time>, at <time> or <time>."),
        ("took 30 seconds, 10 MB, 3.5%, -5", "took <time>, <n>, <n>, <n>"),
        ("got input_hash=ba208452ed1c7cfa, 0x7fde", "got input_hash=<hex>, <hex>"),
        ("model gpt-4o in step2_search, int64", "model gpt-4o in step2_search, int64"),
        ("run 6f1c8a5e-0000-4000-8000-000000000001 of call_AbCdEfGhIjKlMnOpQr", "run <id> of <id>"),
        ("[Errno 2] No such file: '/tmp/a b.txt'", "[Errno 2] No such file: <quoted>"),
        ("open /srv/x/y.txt, ~/a, src/b/c or C:\\d\\e", "open <path>, <path>, src/b/c or C:<path>"),
        ("read/write or input/output, N/A", "read/write or input/output, N/A"),
        ("cannot reach 10.0.0.1:8080 (see https://a.b/c?d=1).", "cannot reach <ip> (see <url>)."),
        ("can't open users' data 'file one' or “two”", "can't open users' data <quoted> or <quoted>"),
        ("job-7 of worker_12, ORA-00942, utf-8", "job-<n> of worker_<n>, ORA-00942, utf-8"),
        ("returned 404 rows, error 5 times, code 5", "returned <n> rows, error <n> times, code 5"),
        ("连接超时30秒", "连接超时<n>秒"),
        ("two\n  lines\t", "two lines"),
    ],
)
def test_a_text_loses_its_noise(text: str, normalized: str) -> None:
    assert normalize(text).text == normalized


def test_the_noise_is_returned_in_order() -> None:
    normalized = normalize("'a b' after 30s, 5 > 4: HTTP 502")

    assert normalized.text == "<quoted> after <time>, <n> > <n>: HTTP 502"
    assert normalized.replaced == (("quoted", "'a b'"), ("time", "30s"), ("n", "5"), ("n", "4"))
    assert normalized.template.codes == ("502",)


@settings(max_examples=examples(1000))
@given(st.lists(st.one_of(FRAGMENTS, HEX, HEX.map(str.upper), NUMBERS, IDS, TROUBLE), max_size=12).map("".join))
@example("returned 404 rows of 1234567abc, 0x1234567 or 12e34567-5s")
@example("12d34567d ago at 1234567e-3, utf-1234567 and ORA-009421")
@example("1234567abc://x abcdef12://y (401) 1ABCDEF23")
@example("failed with exit code 7654321 (job-42)")
def test_a_text_of_a_familiar_shape_is_normalized_as_any_other(text: str) -> None:
    text = " ".join(text.split())
    alone, normalized = template_of(text), normalize(text)

    assert (normalized.text, normalized.template.codes) == (alone.text, alone.codes)
    assert normalized.replaced == tuple((kind, text[start:end]) for kind, start, end in alone.noise)


def test_texts_that_differ_in_ids_and_numbers_share_a_template() -> None:
    first, other = (
        normalize(f"row {row} of job-{job} at /srv/{job}/x.py: exit code 3, id {digest}")
        for row, job, digest in ((12, 7, "9f3a2b7c"), (34, 8, "4c0ffee1"))
    )

    assert first.template is other.template
    assert first.text == "row <n> of job-<n> at <path>: exit code 3, id <hex>"
    assert [kind for kind, _ in other.replaced] == ["n", "n", "path", "hex"]
    assert [value for _, value in other.replaced] == ["34", "8", "/srv/8/x.py", "4c0ffee1"]
    assert normalize("exit code 4, id 4c0ffee1").text == "exit code 4, id <hex>"


@settings(max_examples=examples(500))
@given(st.text() | TROUBLE | TROUBLE.map(lambda text: text * 40))
def test_a_normalized_text_stays_as_it_is(text: str) -> None:
    once = normalize(text).text

    assert normalize(once).text == once
    assert normalize(once).replaced == ()
    assert len(once) <= MAX_TEXT


@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_other_noise_is_the_same_cause(sentence: list[str], data: st.DataObject) -> None:
    places = [data.draw(NOISE) for _ in sentence]

    def text() -> str:
        return " ".join(
            f"{word} {wrap.format(data.draw(kind))}" for word, (kind, wrap) in zip(sentence, places, strict=True)
        )

    assert cause_of(text()).key == cause_of(text()).key


@given(st.data(), IDENTITY)
def test_another_identity_token_is_another_cause(data: st.DataObject, template: tuple[str, list[str]]) -> None:
    form, values = template
    first, other = data.draw(st.permutations(values))[:2]
    kind, wrap = data.draw(NOISE)

    def key(value: str) -> object:
        noise = wrap.format(data.draw(kind))
        before = "" if form.startswith(("{}", "KeyError")) else "in a loop: "
        return cause_of(f"{before}{form.format(value)} (reading {noise})", type=None).key

    assert key(first) == key(first)
    assert key(first) != key(other)


@given(st.text(), st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_another_tool_is_another_cause_and_another_agent_is_not(message: str, names: list[str]) -> None:
    first, other = names

    assert cause_of(message, name=first).key != cause_of(message, name=other).key
    assert cause_of(message, agent=first).key == cause_of(message, agent=other).key
    chat = Operation.CHAT
    assert cause_of(message, operation=chat, name=first).key == cause_of(message, operation=chat, name=other).key


def test_another_kind_of_work_is_another_cause() -> None:
    assert cause_of(operation=TOOL).key != cause_of(operation=Operation.NODE).key


@example("TimeoutError('x')")
@given(st.text() | TROUBLE)
def test_an_unwrapped_error_unwraps_to_itself(text: str) -> None:
    once = unwrap(None, text)
    if once.frame is None and not once.text.startswith("[Errno"):
        twice = unwrap(once.type, once.text)
        assert twice.text == once.text or twice.type == once.type


@pytest.mark.parametrize(
    ("kind", "text", "unwrapped"),
    [
        ("TimeoutError", "TimeoutError: boom", ErrorText("TimeoutError", "boom")),
        ("ToolException", "ValueError: boom", ErrorText("ToolException", "ValueError: boom")),
        ("error", "a.b.ValueError: boom", ErrorText("ValueError", "boom")),
        (None, "ValueError", ErrorText("ValueError", "")),
        (None, "RuntimeError('a\\'b\\nc')", ErrorText("RuntimeError", "a'b\nc")),
        (None, "FileNotFoundError(2, 'No such file')", ErrorText(None, "[Errno 2] No such file")),
        (None, '{"error": {"code": 502, "message": "down", "type": "proxy"}}', ErrorText(None, "code 502 proxy: down")),
        (None, "{'ok': False}", ErrorText(None, "{'ok': False}")),
        (
            None,
            'Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    g()\nValueError: no\nmore',
            ErrorText("ValueError", "no\nmore", "f in b.py"),
        ),
        (
            None,
            'failed: Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    g(',
            ErrorText(None, "failed:", "f in b.py"),
        ),
    ],
)
def test_an_error_is_unwrapped(kind: str | None, text: str, unwrapped: ErrorText) -> None:
    assert unwrap(kind, text) == unwrapped


def test_a_failure_without_a_text_has_the_word_of_the_trace() -> None:
    silent = failed(word="wall_timeout").replace(first_error=None)
    failure = failure_of(silent)

    assert failure is not None
    assert failure.cause == Cause(text="wall_timeout")
    assert failure_of(silent.replace(status=Status.OK)) is None


def test_an_error_counts_before_a_wrong_answer() -> None:
    score = Score("reward", 0.0, False, "result.json reward")
    scored = {"scores": (Score("speed", 1, True), score), "outcome": Outcome.FAILED, "task": "t"}
    wrong = failed().replace(status=Status.OK, outcome_source="result.json reward (rule)", **scored)
    failure, both = failure_of(wrong), failure_of(failed().replace(**scored))

    assert failure is not None
    assert both is not None
    assert failure.cause == Cause(type="reward", part=("t",), wrong=True)
    assert not both.cause.wrong


def test_a_title_prints_what_all_failures_share() -> None:
    def title(*texts: str, kind: str | None = None) -> str:
        failures = [failure for text in texts if (failure := failure_of(failed(text, type=kind))) is not None]
        titles = {shared_cause(failures[0].cause, failure).title for failure in (failures, failures[::-1])}
        assert len(titles) == 1
        return titles.pop()

    assert title("503 Service Unavailable") == "503 Service Unavailable · search"
    assert title("Step 9 > 8 of run 1234567", "Step 12 > 8 of run 7654321") == "Step <n> > 8 of run <n> · search"
    assert title("run abcdef12 is gone", "run 12345678 is gone").startswith("run <")
    same = title("timed out after 3s", "timed out after 3s", kind="ReadTimeout")
    assert same == "ReadTimeout: timed out after 3s · search"
    assert title("timed out after 3s", "deadline exceeded") == "timed out · search"


def test_a_cause_is_split_by_what_varies() -> None:
    first, other = (failure_of(failed(f"no row {number} of /a/b")) for number in (3, 4))
    assert first is not None
    assert other is not None
    assert first.cause.key == other.cause.key
    assert first.part("1").key != other.part("1").key
    assert first.part("2").key == other.part("2").key
    assert first.part("1").title == "ValueError: no row <n> of <path> = 3 · search"
    refused = failure_of(failed("connection refused"))
    assert refused is not None
    assert refused.part(BY_TEXT) == refused.plain
    assert first.part("9").part == ("9", "")


def test_the_text_of_a_failure_is_that_of_the_trace() -> None:
    failure = failure_of(failed("no row 3 of /a/b"))
    assert failure is not None
    assert failure.text == "ValueError: no row 3 of /a/b"
    assert PLACEHOLDER.findall(failure.plain.text) == ["<n>", "<path>"]


def test_digests_are_the_same_on_every_machine() -> None:
    assert old_digest_of(failed("after 30s", type="TimeoutError")) == "f11192943e39ec6996d9c4e4064c5b6f"
    assert cause_of("after 30s").digest == "3c8e26bdb3b04e0592e8e1dfee62f89a80bfe9bc"
    assert cause_of("half of a pair: \ud800").digest != cause_of("half of a pair: \udfff").digest


def test_ambiguous_ids_are_longer() -> None:
    digests = ["3a9c" + "0" * 28, "3a9c" + "1" * 28, "ffff" + "0" * 28]

    assert short_ids(digests) == ["F-3a9c0", "F-3a9c1", "F-ffff"]
    assert short_ids(digests[::-1]) == ["F-ffff", "F-3a9c1", "F-3a9c0"]


@pytest.mark.parametrize(
    "piece",
    [
        *["a@", "'a", "“", "1:", "1.", "a/", "a-", "[:", ":", "1,", "100,", "1_000", "\\", "0", "/.", "~"],
        *["http://", "_", "a:/", "1h", "12345678-1234-", "'", "<n", "'1", "\"'`", "+1", "1e+", "a+b://"],
        *["1-", "0.0.", "a.", "A", "a(", "KeyError('", "*", "@", "=(", "{'a':'", '"error":"', "(a.B)", " 'a"],
        *["' ", " \t", "\n    at ", 'File "a", line 1, in ', "Traceback (most recent call last):\n"],
        *["Error: ", "panicked at '", "thread 'a' panicked at ", "\n\t", "\n", "Caused by: a.", "remote: \n", "\n|"],
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    began = time.process_time()
    cause_of(piece * (100_000 // len(piece)) + "x", type=None)

    assert time.process_time() - began < 2
