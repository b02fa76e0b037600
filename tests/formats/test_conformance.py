"""Every format keeps what `tracetui.testing` checks, on every case below ``tests/formats/<name>/``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.shared import SEARCHES
from tracetui import testing
from tracetui.formats import registry
from tracetui.formats.base import Format

HERE = Path(__file__).parent
VARIANTS = 120 if SEARCHES else 8
"""Values that are replaced in each case. ``python3 dev.py fuzz cases`` tries 120, and goes on with other seeds."""
STOPS = 40 if SEARCHES else 2
"""Reads of each file while it grows; ``python3 dev.py fuzz cases`` reads 8 times, databases 40 times."""


def cases_of(name: str) -> list[Path]:
    """The cases of a format; none while its module is not there."""
    module = registry.BUILT_IN[name].partition(":")[0]
    if not find_spec(module):
        return []
    cases = testing.cases(HERE / name.replace("-", "_"))
    assert cases, f"{name} has no cases"
    return cases


CASES = [pytest.param(name, case, id=f"{name}-{case.name}") for name in registry.BUILT_IN for case in cases_of(name)]
every_case = pytest.mark.parametrize(("name", "case"), CASES)
BROKEN = [
    pytest.param(name, case, id=f"{name}-{case.name}")
    for name in registry.BUILT_IN
    for case in cases_of(name)[:: 1 if SEARCHES else 2]
]
"""Every case, or in the suite half of those of each format."""


def load(name: str) -> Format:
    return registry.load(name)


@every_case
def test_sniff_claims_its_own_files_and_nobody_claims_them_more_surely(name: str, case: Path) -> None:
    testing.check_sniff(load(name), case)


@every_case
def test_both_stages_of_summarize_agree_with_the_whole_run(name: str, case: Path) -> None:
    testing.check_summaries(load(name), case)


@every_case
def test_unknown_records_are_counted(name: str, case: Path) -> None:
    testing.check_ledger(load(name), case)


@every_case
def test_reads_what_expected_json_holds(name: str, case: Path) -> None:
    testing.check_expected(load(name), case)


@pytest.mark.search
@every_case
def test_followed_is_read_afresh(name: str, case: Path) -> None:
    testing.check_growth(load(name), case, stops=STOPS)


@pytest.mark.search
@pytest.mark.parametrize(("name", "case"), BROKEN)
def test_broken_files_become_problems(name: str, case: Path) -> None:
    testing.check_hostile(load(name), case, count=VARIANTS)


@every_case
def test_every_value_of_the_source_is_shown(name: str, case: Path) -> None:
    testing.check_nothing_lost(load(name), case)


@every_case
def test_fields_that_the_format_does_not_know_are_shown(name: str, case: Path) -> None:
    testing.check_unknown_fields(load(name), case)
