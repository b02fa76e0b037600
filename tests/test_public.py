"""The public surface of the package, as a list: a change of it is a change of the contract (docs/json.md)."""

from __future__ import annotations

import inspect

import tracetui
from tracetui import plugin, testing

PLUGIN = """
    CERTAIN COPIED INHERITED NO NULL PREVIEW Blob Body Chunk Composed Entry Error Field File Finite FirstError Forking
    Format FormatError Header Homed Integer Line Link LogFormat LogReader Loose Message Natural Operation Part Problem
    Reader Reasoning Resumable Rows Run RunBody RunRef RunSummary Schema Score Span Stat Status StatusSource Text
    ToolCall ToolResult Usage counted is_file_name kind_of listed message_body moment record_on records_at row skim
    status_of task_key
"""
TESTING = """
    Growing cases check_expected check_format check_growth check_hostile check_ledger check_nothing_lost check_sniff
    check_summaries check_unknown_fields claimed copied read_run
"""


def test_public_names_are_these() -> None:
    assert tracetui.__all__ == ["__version__", "load", "load_all"]
    assert sorted(plugin.__all__) == sorted(PLUGIN.split())
    assert sorted(testing.__all__) == sorted(TESTING.split())


def test_parameters_of_public_functions_are_these() -> None:
    functions = {tracetui: ["load", "load_all"], testing: ["check_format", "read_run"]}
    parameters = {
        name: list(inspect.signature(vars(module)[name]).parameters)
        for module in functions
        for name in functions[module]
    }
    assert parameters == {
        "load": ["path", "run"],
        "load_all": ["path"],
        "check_format": ["fmt", "cases_dir", "seed"],
        "read_run": ["fmt", "ref"],
    }


def test_the_facade_has_no_names_besides_its_list() -> None:
    assert {name for name in vars(plugin) if not name.startswith("__")} == {*plugin.__all__}
