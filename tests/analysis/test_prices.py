"""What calls cost by public prices: with the library itself, and without it."""

from __future__ import annotations

import subprocess
import sys
from math import isfinite

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import ROOT, examples
from tests.store.build import make_summary
from tests.views.build import make_run
from tracetui.analysis import prices
from tracetui.analysis.statistics import By, Statistics, estimate_of
from tracetui.model import Operation, Span, Usage
from tracetui.model.run import Header
from tracetui.model.tally import Tally, summary_of

SONNET, HAIKU = "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"
USED = Usage(input_tokens=12_345, output_tokens=678, cache_read_tokens=12_000, cache_creation_tokens=45)
CHAT = Operation.CHAT


def listed(model: str, used: Usage, provider: str | None = None) -> float:
    """What the library says of one call."""
    named = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_creation_tokens,
    }
    priced_usage = genai_prices.Usage(**{name: count for name, count in named.items() if count is not None})
    return float(genai_prices.calc_price(priced_usage, model, provider_id=provider).total_price)


def test_a_call_costs_what_the_library_says_cached_input_less() -> None:
    cost = prices.of_call(SONNET, USED)
    assert cost == pytest.approx(listed(SONNET, USED))
    assert cost == pytest.approx((300 * 3 + 12_000 * 0.3 + 45 * 3.75 + 678 * 15) / 1e6)
    uncached = prices.of_call(SONNET, Usage(USED.input_tokens, USED.output_tokens))
    assert uncached is not None and cost is not None  # noqa: PT018
    assert uncached > cost


@pytest.mark.parametrize(
    ("model", "used"),
    [
        (SONNET, None),
        (SONNET, Usage()),
        (SONNET, Usage(total_tokens=5)),
        (SONNET, Usage(10, 10, cost_usd=0.5)),
        (SONNET, Usage(10, 10, cost_usd=0.0)),
        (SONNET, Usage(10, 10, cache_read_tokens=11)),
        (SONNET, Usage(-1, 10)),
        (None, USED),
        ("", USED),
        ("nobody-sells-this", USED),
        ("openai/nobody-sells-this", USED),
        ("nobody/gpt-4o", USED),
    ],
)
def test_unknown_model_or_usage_has_no_price(model: str | None, used: Usage | None) -> None:
    assert prices.of_call(model, used) is None


def test_a_model_may_be_named_with_its_provider() -> None:
    assert prices.of_call("openai/gpt-4o", USED) == pytest.approx(listed("gpt-4o", USED, "openai"))
    assert prices.of_call("anthropic/claude-sonnet-4-5", USED) == prices.of_call("claude-sonnet-4-5", USED)


def test_prices_are_those_of_the_time() -> None:
    assert prices.of_call(SONNET, USED, 1_763_730_562.25) is not None
    for at in (float("inf"), float("nan"), -1e30, 1e30):
        assert prices.of_call(SONNET, USED, at) in (None, prices.of_call(SONNET, USED))


COUNTS = st.none() | st.integers(-1, 10**7) | st.sampled_from([2**70, 10**40])


@settings(max_examples=examples(200))
@given(
    st.sampled_from([SONNET, "gpt-4o", "a/b", "/", "gpt-5-codex/"]) | st.text(max_size=300),
    st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS),
    st.integers(0, 9),
)
def test_nothing_that_a_trace_says_is_too_much(model: str, used: Usage, calls: int) -> None:
    single = prices.of_call(model, used)
    summarized = prices.of_summary(make_summary(model=model, usage=used, llm_calls=calls))
    assert all(cost is None or (isfinite(cost) and cost >= 0) for cost in (single, summarized))
    assert (single is None) is (summarized is None)


def test_a_run_of_one_model_is_estimated_from_its_summary() -> None:
    run = make_summary(model=SONNET, models=(SONNET,), usage=USED, llm_calls=1)
    assert prices.of_summary(run) == prices.of_call(SONNET, USED, run.started_at)
    assert prices.of_summary(make_summary(model=SONNET, models=(HAIKU, SONNET), usage=USED)) is None
    assert prices.of_summary(make_summary(model=SONNET, models=(SONNET,))) is None


def test_calls_of_a_large_run_are_not_priced_as_a_large_call() -> None:
    usage, calls = Usage(input_tokens=50_000, output_tokens=100, cache_read_tokens=33_333), 30
    total = Usage(input_tokens=50_000 * calls, output_tokens=100 * calls, cache_read_tokens=33_333 * calls)
    cost, all_ = prices.of_call(SONNET, usage), prices.of_call(SONNET, total)
    assert cost is not None
    assert all_ is not None
    assert all_ > 1.5 * calls * cost, "a long prompt costs more a token: else this proves nothing"
    run = make_summary(model=SONNET, models=(SONNET,), usage=total, llm_calls=calls, started_at=None)
    assert prices.of_summary(run) == pytest.approx(calls * cost)


def test_the_list_and_the_open_run_agree_on_a_run_with_small_and_large_calls() -> None:
    sizes = [Usage(9_000, 100, None, 5_000, 2_000)] * 5 + [Usage(267_000, 3_000, None, 160_000, 60_000)] * 2
    calls = [Span(id=str(i), name="x", operation=CHAT, usage=used, model=SONNET) for i, used in enumerate(sizes)]
    run = make_run(calls)
    tally = Tally()
    tally.add_all(calls)
    summary = summary_of(run.summary.ref, Header(id="x", name="x", model=SONNET), tally)
    estimate = estimate_of(run)
    assert estimate is not None
    assert prices.of_summary(summary) == pytest.approx(estimate.usd)
    assert estimate.usd == pytest.approx(sum(listed(SONNET, used) for used in sizes))


def test_a_run_that_was_read_is_estimated_call_by_call() -> None:
    run = make_run(
        [
            Span(id="a", name="x", operation=Operation.INVOKE_AGENT, usage=Usage(9_999_999, 9_999_999), model=SONNET),
            Span(id="b", name="x", parent_id="a", operation=CHAT, usage=USED, model=SONNET),
            Span(id="c", name="x", parent_id="a", operation=CHAT, usage=USED, model=HAIKU),
            Span(id="d", name="x", parent_id="a", operation=CHAT, usage=USED, model="local"),
            Span(id="e", name="x", parent_id="a", operation=CHAT, usage=Usage(1, 1), model=HAIKU, note="inherited"),
        ]
    )
    estimate = estimate_of(run)
    assert estimate is not None
    assert estimate.usd == pytest.approx(listed(SONNET, USED) + listed(HAIKU, USED))
    assert (estimate.models, estimate.unpriced) == ((SONNET, HAIKU), ("local",))


def test_a_cost_in_the_trace_is_never_second_guessed() -> None:
    run = make_run(
        [
            Span(id="a", name="x", operation=CHAT, usage=Usage(10, 10, cost_usd=0.25), model=SONNET),
            Span(id="b", name="x", operation=CHAT, usage=USED, model=SONNET),
        ]
    )
    assert estimate_of(run) is None
    by_model = Statistics(By.MODEL)
    by_model.add(run)
    (row,) = by_model.rows()
    assert row.usage.cost_usd == 0.25
    assert row.estimated_cost_usd == pytest.approx(listed(SONNET, USED))
    assert row.cost_usd == pytest.approx(0.25 + listed(SONNET, USED))


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(prices.SWITCH, "off")
    assert prices.of_call(SONNET, USED) is None
    assert prices.loaded()


HEAD = """
import sys
from tracetui.cli import main
from tracetui.model import Usage
from tracetui.analysis import prices
"""


def apart(code: str) -> str:
    """What a program of its own prints."""
    done = subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


TRACE = "tests/formats/codex/threads/input"


def test_nothing_is_fetched() -> None:
    code = """
def forbid(event, arguments):
    assert not event.startswith(("socket.", "urllib.", "http.")), event
sys.addaudithook(forbid)
print(prices.of_call("gpt-4o", Usage(1_000_000, 0)), prices.of_call("unknown", Usage(1, 1)))
import threading
print(threading.active_count())
"""
    assert apart(code).split() == [str(listed("gpt-4o", Usage(1_000_000, 0))), "None", "1"]


def test_a_price_is_available_once_the_price_list_is_imported() -> None:
    code = """
import genai_prices
assert not prices.loaded()
prices.load()
imported = {*sys.modules}
assert prices.loaded() and prices.of_call("gpt-4o", Usage(1, 1))
assert {*sys.modules} == imported
"""
    apart(code)


def test_without_the_library_nothing_is_estimated() -> None:
    code = f"""
sys.modules["genai_prices"] = None
assert not prices.installed() and prices.loaded()
assert prices.of_call("gpt-4o", Usage(1, 1)) is None
assert main(["ls", "{TRACE}", "--json"]) == 0 and main(["show", "{TRACE}"]) in (0, 2)
assert "pydantic" not in sys.modules
"""
    assert '"estimated_cost_usd":null' in apart(code)


def test_it_is_loaded_for_whoever_asks_for_a_cost_only() -> None:
    code = f"""
assert main(["ls", "{TRACE}"]) == 0
assert "genai_prices" not in sys.modules
assert main(["stats", "{TRACE}", "--by", "model"]) == 0
assert "genai_prices" in sys.modules
"""
    assert "~$" in apart(code)
