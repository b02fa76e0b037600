"""Tokens as the trace tells them, wherever it does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.views.build import make_run, texts
from tracetui.model import Body, Operation, Span, Usage
from tracetui.views.detail.tabs import recorded_usage, tab_rows

USED = {"input_tokens": 345, "cache_read_input_tokens": 12_000}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"message": {"usage": USED}, "line 2": {"message": {"usage": dict(USED)}}}, {"message.usage": USED}),
        ({"llm.token_count.prompt": 7, "other": 1}, {"llm.token_count.prompt": 7}),
        ({"metrics": {"prompt_tokens": 50, "cost": 1}}, {"metrics.prompt_tokens": 50}),
        ({"usage": None, "tokens": "", "model": "m", "list": [{"usage": 1}]}, {}),
        ({}, {}),
    ],
)
def test_usual_names_are_found_and_repetitions_are_not(attributes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert recorded_usage(attributes) == expected


def test_deep_and_many_attributes_are_bounded() -> None:
    deep: Any = {}
    for _ in range(50_000):
        deep = {"a": deep}
    assert recorded_usage({"x": deep}) == {}
    assert len(recorded_usage({"usage": deep, "x": {"usage": {"b": deep}}})) == 2
    assert len(recorded_usage({f"tokens{i}": i for i in range(100_000)})) < 20


def test_the_overview_shows_recorded_and_normalized_usage() -> None:
    span = Span(
        id="a",
        name="m",
        operation=Operation.CHAT,
        usage=Usage(input_tokens=12_345, output_tokens=5, cache_read_tokens=12_000),
    )
    body = Body(attributes={"message": {"usage": USED}})
    text = "\n".join(texts(tab_rows(make_run([span]), span, body, "overview", width=100)))
    assert "in 12.3k  out 5  cache read 12.0k" in text
    assert "input above includes cached tokens" in text
    assert "recorded { input_tokens: 345, cache_read_input_tokens: 12000" in text
    unrecorded = "\n".join(texts(tab_rows(make_run([span]), span, Body(), "overview", width=100)))
    assert "normalized" not in unrecorded
