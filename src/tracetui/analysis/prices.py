"""Estimates the cost of model calls from public prices, with the library ``genai-prices``.

The library is an optional extra (``tracetui[prices]``), imported for the first estimate. It ships its price list;
nothing is downloaded. ``TRACETUI_PRICES=off`` in the environment turns estimates off.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from math import isfinite
from typing import Any, Final

import msgspec

from tracetui.model import RunSummary, Usage

SWITCH: Final = "TRACETUI_PRICES"
EXTRA: Final = "tracetui[prices]"
_MODULE: Final = "genai_prices"
_MAX_NAME: Final = 120
_HOUR: Final = 3600
"""Time-dependent prices vary by day or by hour."""
_TIER: Final = 8000
"""Thresholds of prices by size are multiples of this many tokens."""
_MILLION: Final = 1_000_000
_NAMES: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens")
"""The library's field names. They mean the same as in `Usage`: input includes cached input."""
_FACTORS: Final = (
    ("batch", "", 0.5),
    ("flex", "", 0.5),
    ("priority", "gpt-5", 2.0),
    ("fast", "claude-opus-4-6", 6.0),
    ("fast", "claude-opus-4-7", 6.0),
    ("fast", "claude-opus", 2.0),
    ("us", "claude", 1.1),
)
"""Multiples of the listed price, which the library lacks: by word of `Span.tier` and a part of the model's name.

From the price pages of Anthropic and OpenAI. A tier that isn't here counts at the listed price.
"""


def wanted() -> bool:
    """Whether the user allows estimates."""
    return os.environ.get(SWITCH, "").lower() != "off"


@cache
def installed() -> bool:
    """Whether the library is installed. Doesn't import it."""
    from importlib.util import find_spec

    return find_spec(_MODULE) is not None


def loaded() -> bool:
    """Whether a price is available at once: a call was priced, so no thread imports the library or its list."""
    return _cost_of_call.cache_info().currsize > 0 or not (wanted() and installed())


def load() -> None:
    """Import the library and its price list, which takes a while, if estimates are wanted: it does so for a price."""
    of_call("gpt-4o", Usage(1, 1))


def origin() -> str:
    """The source of the estimates: ``genai-prices 0.2.3``. Requires the library."""
    from genai_prices import __version__

    return f"genai-prices {__version__}"


def of_call(model: str | None, usage: Usage | None, at: float | None = None, tier: str | None = None) -> float | None:
    """Estimate the cost of one call in US dollars, with the prices of time `at` (UTC seconds; None: now).

    `tier` as in `Span`. None if the trace has the cost or no tokens, for a model without a listed price, or without the
    library.
    """
    return _of_calls(model, usage, at, 1, tier)


class Rates(msgspec.Struct, frozen=True, gc=False):
    """US dollars for a token of one call: uncached input, cache reads, writes for 5 minutes and an hour, output."""

    input: float
    read: float
    write: float
    write_1h: float
    output: float

    def scaled(self, factor: float) -> Rates:
        """All of them times `factor`."""
        return Rates(
            self.input * factor, self.read * factor, self.write * factor, self.write_1h * factor, self.output * factor
        )


def rates(model: str | None, size: int, at: float | None = None, tier: str | None = None) -> Rates | None:
    """The prices of a call with `size` input tokens at time `at` (UTC seconds; None: now); `tier` as in `Span`.

    None without the library or a listed price. Without a price for cached tokens, they cost as much as others.
    """
    if not model or not wanted() or not installed():
        return None
    hour = int(at // _HOUR) if at is not None and isfinite(at) else None
    listed = _rates(model[:_MAX_NAME], -(-size // _TIER) * _TIER or _TIER, hour)
    return listed if listed is None or tier is None else listed.scaled(_factor_of(model, tier))


@lru_cache(1 << 12)
def _rates(model: str, size: int, hour: int | None) -> Rates | None:
    """The prices for calls of up to `size` tokens: the prices of calls that have nothing but one kind of tokens."""
    plain, answered, read, write, hourly = (
        _cost_of_call(model, hour, *tokens)
        for tokens in (
            (size, 0, None, None, None),
            (size, _MILLION, None, None, None),
            (size, 0, size, None, None),
            (size, 0, None, size, None),
            (size, 0, None, size, size),
        )
    )
    if plain is None:
        return None
    uncached, read, write, hourly = ((plain if cost is None else cost) / size for cost in (plain, read, write, hourly))
    return Rates(uncached, read, write, hourly, 0.0 if answered is None else (answered - plain) / _MILLION)


def takes_reading(run: RunSummary) -> bool:
    """Whether an estimate needs the whole run: it used several models, and a summary has no usage per model."""
    if not run.models or run.models == (run.model,) or run.model_usage:
        return False
    return run.usage is not None and run.usage.cost_usd is None and wanted() and installed()


def of_summary(run: RunSummary) -> float | None:
    """Estimate the cost of a run from its summary in US dollars: by the average call of each model and size.

    None as in `of_call`, and if a model reports usage only with others (`takes_reading`). Models without a listed price
    count nothing, as in `statistics.estimate_of`.
    """
    if run.model_usage and run.usage is not None and run.usage.cost_usd is None:
        costs = [
            _of_calls(usage.model, usage.usage, run.started_at, usage.calls, usage.tier) for usage in run.model_usage
        ]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None
    if run.models and run.models != (run.model,):
        return None
    return _of_calls(run.model, run.usage, run.started_at, run.llm_calls or 1)


def _of_calls(
    model: str | None, usage: Usage | None, at: float | None, calls: int, tier: str | None = None
) -> float | None:
    """Prices depend on the size of a call: price one average call, then multiply."""
    if usage is None or not model or usage.cost_usd is not None or not wanted() or not installed():
        return None
    if not usage.input_tokens and not usage.output_tokens:
        return None
    hour = int(at // _HOUR) if at is not None and isfinite(at) else None
    counts = usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_creation_tokens
    tokens = [_share(count, calls) for count in (*counts, usage.cache_write_1h_tokens)]
    cost = _cost_of_call(model[:_MAX_NAME], hour, *tokens)
    return None if cost is None else cost * calls * _factor_of(model, tier)


def _share(count: int | None, calls: int) -> Decimal | int | None:
    """The share of one call, rounded down to a thousandth so that cached tokens never exceed the input."""
    return count if count is None or calls == 1 else Decimal(count * 1000 // calls).scaleb(-3)


@lru_cache(1 << 10)
def _price_of(model: str, hour: int | None) -> Any:
    """The library's price of a model at an hour; None if it has none."""
    from genai_prices import Usage as LibraryUsage
    from genai_prices import calc_price

    provider, _, rest = model.rpartition("/")
    for name, by in ((model, None), (rest, provider)) if provider else ((model, None),):
        with suppress(LookupError, ValueError, ArithmeticError, OSError):
            when = None if hour is None else datetime.fromtimestamp(hour * _HOUR, UTC)
            usage = LibraryUsage(input_tokens=1)
            return calc_price(usage, name, provider_id=by, genai_request_timestamp=when).model_price
    return None


@lru_cache(1 << 14)
def _cost_of_call(model: str, hour: int | None, *tokens: Decimal | int | None) -> float | None:
    """The cost of one call, tokens in the order of `_NAMES`; None without a price, or for numbers the library rejects.

    Cached, as lists add up the same runs whenever they are arranged, and the library takes 0.2 ms a call.
    """
    from genai_prices import Usage as LibraryUsage

    price = _price_of(model, hour)
    if price is None:
        return None
    counts = dict(zip(_NAMES, tokens, strict=True))
    if getattr(price, "cache_write_1h_mtok", None) is None:
        del counts["cache_write_1h_tokens"]
    with suppress(LookupError, ValueError, ArithmeticError):
        cost = float(price.calc_price(LibraryUsage(**counts))["total_price"])
        return cost if isfinite(cost) else None
    return None


def _factor_of(model: str, tier: str | None) -> float:
    """The price of a tier as a multiple of the listed one; 1 where none is published."""
    factor = 1.0
    for name in () if tier is None else tier.split():
        factor *= next((factor for word, pattern, factor in _FACTORS if word == name and pattern in model), 1.0)
    return factor
