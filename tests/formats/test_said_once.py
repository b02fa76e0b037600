"""What the list says of a run is what is said of it when it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formats.test_conformance import every_case
from tracetui import load_all
from tracetui.export.json import read_run_value, run_value
from tracetui.model import RunBody
from tracetui.model.summary import FIELDS


def test_no_field_is_in_both_the_summary_and_the_body_of_a_run() -> None:
    assert not {*RunBody.__struct_fields__} & {*FIELDS}


@every_case
def test_ls_and_show_say_the_same(name: str, case: Path) -> None:
    for run in load_all(str(case / "input")):
        listed, opened = run_value(run.summary, None), read_run_value(run, None)
        own = {"estimated_cost_usd"}  # call by call, of a run that was read
        assert {key: opened[key] for key in listed if key not in own} == {
            key: value for key, value in listed.items() if key not in own
        }, name


@pytest.mark.parametrize("case", ["atif/turns", "otlp/genai", "claude_code/session", "paprika/newer"])
def test_an_opened_run_has_the_tags_that_its_list_has(case: str) -> None:
    runs = load_all(str(Path(__file__).parent / case / "input"))

    assert any(read_run_value(run, None)["tags"] for run in runs)
