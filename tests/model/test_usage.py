"""Counts of tokens are added up without losing any."""

from __future__ import annotations

from tracetui.model import Usage


def test_a_total_that_only_one_states_is_that_of_both() -> None:
    assert Usage(10, 4, 14) + Usage(3, 2) == Usage(13, 6, 19)
    assert Usage(3, 2) + Usage(10, 4, 14) + Usage(1) == Usage(14, 6, 20)
    assert Usage() + Usage(10, 4, 15) == Usage(10, 4, 15)
    assert Usage(1, 2) + Usage(3, 4) == Usage(4, 6)
    assert Usage(total_tokens=5) + Usage(cost_usd=0.5) == Usage(total_tokens=5, cost_usd=0.5)
