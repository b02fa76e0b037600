"""What queries find inside a run: from the headers of spans, whatever the format."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracetui import demo, load_all
from tracetui.model import Error, Operation, Span, Status, Usage
from tracetui.store import query

SPANS = [
    Span(id="r", name="researcher", operation=Operation.INVOKE_AGENT, status=Status.ERROR, duration_ms=9_000.0),
    Span(
        id="c1", name="gpt-4o", operation=Operation.CHAT, status=Status.OK, duration_ms=1_900.0, step=1, is_step=True,
        usage=Usage(2_000, 100, cost_usd=0.1), preview="plan the search", input_hash="9f0c",
    ),
    Span(
        id="t2", name="Bash", operation=Operation.EXECUTE_TOOL, status=Status.ERROR, status_word="timeout", step=2,
        error=Error("timed out", "TimeoutError"), duration_ms=5_500.0, preview="grep -rn x",
    ),
    Span(id="h3", name="PreToolUse", operation=Operation.HOOK, status=Status.ERROR, status_word="block", note="block"),
    Span(
        id="n4", name="classify", operation=Operation.ROUTE, status=Status.OK, status_word="completed",
        note="→ account_support, billing · cached", step=4,
    ),
    Span(id="n5", name="rerank", operation=Operation.NODE, status=Status.OK, status_word="cached", duration_ms=0.0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "r c1 t2 h3 n4 n5"),
        ("name:pre", "h3"),
        ("op:chat", "c1"),
        ("op:execute-tool", "t2"),
        ("status:error", "r t2 h3"),
        ("status:timeout,block", "t2 h3"),
        ("tool:bash", "t2"),
        ("model:gpt*", "c1"),
        ("agent:researcher", "r"),
        ("node:rerank,classify", "n4 n5"),
        ("dur>5s", "r t2"),
        ("-dur>=0", "h3 n4"),
        ("tokens>2k", "c1"),
        ("in:2k out<=100", "c1"),
        ("cost>0", "c1"),
        ("step>1", "t2 n4"),
        ("error:timed", "t2"),
        ("error=TimeoutError", "t2"),
        ("cached:true", "n4 n5"),
        ("cached:no dur<1s", ""),
        ("is:cached op:node", "n5"),
        ("decision:account_support", "n4"),
        ("decision:BILLING", "n4"),
        ("decision:block", "h3"),
        ("decision:none op:route", ""),
        ("has:decision", "h3 n4"),
        ("note:cached", "n4"),
        ("preview:grep", "t2"),
        ("id:c", "c1"),
        ("hash:9f", "c1"),
        ("is:step", "c1"),
        ("is:failed has:error", "t2"),
        ("plan or classify", "c1 n4"),
        ("!chat timed", "t2"),
        ("timeout", "t2"),
    ],
)
def test_query_selects_spans(text: str, expected: str) -> None:
    matcher = query.for_spans(text)
    assert " ".join(span.id for span in matcher.select(SPANS)) == expected
    assert [span for span in SPANS if matcher.matches(span)] == matcher.select(SPANS)


@pytest.mark.parametrize(
    ("text", "message"),
    [("cached:maybe", "`true` or `false`"), ("verdict:none", "no key `verdict`"), ("opp:chat", "`op`")],
)
def test_unknown_terms_are_reported(text: str, message: str) -> None:
    with pytest.raises(query.QueryError, match=message):
        query.for_spans(text)


def test_completions_inside_a_run() -> None:
    def offered(text: str) -> list[tuple[str, str]]:
        completions = query.complete(text, len(text), query.SPAN_KEYS, SPANS)
        return [(completion.text, completion.hint) for completion in completions]

    assert offered("cached:") == [("true", "2"), ("false", "4")]
    assert offered("decision:") == [("account_support", "1"), ("billing", "1"), ("block", "1")]
    assert [text for text, _ in offered("dec")] == ["decision:"]
    assert [facet.key for facet in query.facets(query.SPAN_KEYS, SPANS)] == [
        "op", "status", "tool", "model", "agent", "node", "decision",
    ]  # fmt: skip


NOTES = st.lists(st.text("→, ·acdhe", max_size=8), max_size=3).map(" · ".join)


@given(
    st.builds(Span, id=st.just("x"), name=st.text(max_size=5), note=NOTES, status_word=st.none() | st.text(max_size=6))
)
def test_any_note_can_be_asked_about(span: Span) -> None:
    for text in ("cached:true", "decision:a", "decision:none", "note:c"):
        matcher = query.for_spans(text)
        assert matcher.select([span]) == ([span] if matcher.matches(span) else [])


@cache
def samples() -> list[list[Span]]:
    with tempfile.TemporaryDirectory() as folder:
        demo.write(Path(folder), datetime(2026, 11, 21, 12, tzinfo=UTC))
        return [list(run.spans) for run in load_all(folder)]


def test_the_spans_of_the_samples_answer_to_what_is_special_about_them() -> None:
    counts: Counter[str] = Counter()
    for text in ("cached:true", "has:decision", "op:chat dur>1s", "tool:*", "model:*", "node:*", "is:failed", "step>1"):
        for spans in samples():
            counts[text] += len(query.for_spans(text).select(spans))
    assert min(counts.values()) > 0, counts


def test_a_facet_counts_what_its_term_finds() -> None:
    for spans in samples():
        for facet in query.facets(query.SPAN_KEYS, spans):
            for value, count in facet.values:
                assert len(query.for_spans(facet.term(value)).select(spans)) == count, facet.term(value)
