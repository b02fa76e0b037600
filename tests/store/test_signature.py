"""Signatures: what differs from one time to the next is taken out, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracetui.model import FirstError, Operation, RunRef, RunSummary, Status
from tracetui.store.signature import MOST_KEPT, Signature, names_of, normalise, signature_of

TOOL = Operation.EXECUTE_TOOL
WORDS = st.text("acefgijlnopqruvz", min_size=1, max_size=9)  # of which no unit is made
TROUBLE = st.text("ab 1'\"`<n>/\\.:-_“”@~+é\n\t", max_size=40)
HEX = st.text("0123456789abcdef", min_size=7, max_size=40).filter(lambda text: any(map(str.isdigit, text)))
NUMBERS = st.integers(-(10**12), 10**12).map(str) | st.floats(0, 1e6).map(lambda number: f"{number:.3f}")
GROUPED = st.integers(0, 10**12).map(lambda number: f"{number:,}")
IDS = st.uuids().map(str) | HEX | HEX.map("req_{}".format) | HEX.map("call-{}".format)
WRAPS = st.sampled_from(["{}", "({})", "[{}]", "{},", "{}.", "={}", "#{}", "'{}'", "({}):"])
UNITS = st.sampled_from(["{}ms", "{}%", "{} seconds", "{} MB", "{}s ago", "{} tokens"])
LIKE = st.sampled_from([NUMBERS | GROUPED, IDS, NUMBERS | IDS])
PLACES = st.tuples(LIKE, WRAPS) | st.tuples(st.just(NUMBERS | GROUPED), UNITS)


def failed(message: str = "boom", **more: Any) -> RunSummary:
    """A failed run."""
    fields: dict[str, Any] = {"type": "TimeoutError", "span": "s", "name": "search", "operation": TOOL, **more}
    agent, word = fields.pop("agent", "planner"), fields.pop("word", "error")
    error = FirstError(message, **fields)
    ref = RunRef("any", "run.json")
    return RunSummary(ref=ref, id="a", name="a", agent=agent, status=Status.ERROR, status_word=word, first_error=error)


def signed(message: str = "boom", **more: Any) -> Signature:
    """The signature of such a run."""
    signature = signature_of(failed(message, **more))
    assert signature is not None
    return signature


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("tool exploded: connection reset", "tool exploded: connection reset"),
        ("Token budget exceeded: 12,600 > 500.5", "Token budget exceeded: <n> > <n>"),
        ("429: retry in 2m30s, at 08:00:01.5 or 2026-03-02T08:00:00.1Z.", "<n>: retry in <time>, at <time> or <time>."),
        ("took 30 seconds, 10 MB, 3.5%, -5", "took <time>, <n>, <n>, <n>"),
        ("got input_hash=ba208452ed1c7cfa, 0x7fde", "got input_hash=<hex>, <hex>"),
        ("model gpt-4o in step2_search", "model <id> in <id>"),
        ("run 6f1c8a5e-0000-4000-8000-000000000001 of call_AbCdEfGhIjKlMnOpQr", "run <id> of <id>"),
        ("[Errno 2] No such file: '/tmp/a b.txt'", "[Errno <n>] No such file: <quoted>"),
        ("open /srv/x/y.txt, ~/a, src/b/c or C:\\d\\e", "open <path>, <path>, <path> or <path>"),
        ("read/write or input/output, N/A", "read/write or input/output, N/A"),
        ("cannot reach 10.0.0.1:8080 (see https://a.b/c?d=1).", "cannot reach <ip> (see <url>)."),
        ("can't open users' data 'file one' or “two”", "can't open users' data <quoted> or <quoted>"),
        ('{"error": {"message": "Rate limit", "code": 429}}', '{"error": {"message": "Rate limit", "code": <n>}}'),
        ("连接超时30秒", "连接超时<n>秒"),
        ("two\n  lines\t", "two lines"),
    ],
)
def test_what_is_taken_out_of_a_text(text: str, normalised: str) -> None:
    assert normalise(text).text == normalised


def test_it_is_told_what_was_taken_out() -> None:
    assert normalise("'a' after 30s, 5 > 4").replaced == (("quoted", "'a'"), ("time", "30s"), ("n", "5"), ("n", "4"))


@settings(max_examples=500)
@given(st.text() | TROUBLE | TROUBLE.map(lambda text: text * 40))
def test_what_is_normalised_stays_as_it_is(text: str) -> None:
    once = normalise(text).text

    assert normalise(once) == (once, ())
    assert len(once) <= MOST_KEPT


@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_another_number_or_id_is_the_same_failure(words: list[str], data: st.DataObject) -> None:
    places = [data.draw(PLACES) for _ in words]

    def told() -> str:
        return " ".join(
            f"{word} {wrap.format(data.draw(kind))}" for word, (kind, wrap) in zip(words, places, strict=True)
        )

    assert signed(told()).key == signed(told()).key


@given(
    st.text(),
    st.sampled_from(["name", "type", "agent"]),
    st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True),
)
def test_another_tool_type_or_agent_is_another_failure(message: str, field: str, values: list[str]) -> None:
    one, other = (signed(message, **{field: value}) for value in values)

    assert one.key != other.key
    assert one.digest != other.digest


def test_another_kind_of_work_is_another_failure() -> None:
    assert signed(operation=TOOL).key != signed(operation=Operation.NODE).key


def test_an_id_may_happen_to_be_a_number() -> None:
    assert signed("run 8f3a2c1d is gone").key == signed("run 12345678 is gone").key


def test_the_type_is_said_once() -> None:
    assert signed("TimeoutError: boom") == signed("boom")
    assert signed("TimeoutErrors are bad").text == "TimeoutErrors are bad"


def test_a_failure_without_words_has_the_trace_s_own() -> None:
    silent = msgspec.structs.replace(failed(word="wall_timeout"), first_error=None)

    assert signature_of(silent) == Signature("planner", None, None, None, "wall_timeout")
    assert signature_of(msgspec.structs.replace(silent, status=Status.OK)) is None


def test_a_label_is_no_name() -> None:
    one, other = (signed(name=f"[item {number}]", operation=Operation.INVOKE_WORKFLOW) for number in (7, 12))

    assert one == other
    assert signed(name="step2", operation=TOOL) != signed(name="step3", operation=TOOL)


def test_a_signature_has_the_same_digest_on_every_machine() -> None:
    assert signed("after 30s").digest == "f11192943e39ec6996d9c4e4064c5b6f"
    assert signed("half of a pair: \ud800").digest != signed("half of a pair: \udfff").digest


def test_ids_are_longer_where_they_would_be_taken_for_each_other() -> None:
    digests = ["3a9c" + "0" * 28, "3a9c" + "1" * 28, "ffff" + "0" * 28]

    assert names_of(digests) == ["F-3a9c0", "F-3a9c1", "F-ffff"]
    assert names_of(digests[::-1]) == ["F-ffff", "F-3a9c1", "F-3a9c0"]


@pytest.mark.parametrize(
    "piece",
    [
        *[
            "a@",
            "'a",
            " 'a",
            "“",
            "1:",
            "1.",
            "a/",
            "a-",
            "[:",
            ":",
            "1,",
            "100,",
            "1_000",
            "\\",
            "0",
            "/.",
            "~",
            "http://",
        ],
        *[
            "_",
            "a:/",
            "1h",
            "12345678-1234-",
            "'",
            "' ",
            "<n",
            "'1",
            "\"'`",
            "+1",
            "1e+",
            "a+b://",
            "1-",
            "0.0.",
            " \t",
        ],
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    began = time.process_time()
    normalise(piece * (100_000 // len(piece)) + "x")

    assert time.process_time() - began < 2  # measured: at most 0.06 s
