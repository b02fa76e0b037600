"""What is let pass between two runs of the same thing, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from tracetui.diff.noise import Noise
from tracetui.diff.values import INPUT, OUTPUT, changes_of

UUID, OTHER = "0192f0e0-1111-4000-8000-000000000001", "0192f0e0-2222-4000-8000-000000000002"


def kinds(a: Any, b: Any, side: str = OUTPUT, **options: Any) -> tuple[int, dict[str, int]]:
    noise = Noise(**options)
    return len(changes_of(a, b, noise, side=side)), dict(noise.counts)


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ({"command": "ls "}, {"command": "  ls\n"}, "white space at ends"),
        ({"timestamp": "2026-01-01T10:00:00Z"}, {"timestamp": "2026-01-02T11:00:00.5+00:00"}, "times"),
        ({"completed_at": None}, {"completed_at": "2026-01-02T11:00:00+00:00"}, "times"),
        ({}, {"completed_at": "2026-01-02T11:00:00+00:00"}, "times"),
        ({"created": 1_700_000_000}, {"created": 1_700_000_099}, "times"),
        ({"text": "at 2026-01-01 10:00:00 done"}, {"text": "at 2026-01-02 11:30:00 done"}, "times"),
        ({"completed": "2026-01-02T11:00:00Z"}, {"completed": "2026-01-02T12:00:00Z"}, "times"),
        ({"duration_ms": 4}, {"duration_ms": 0.0}, "durations"),
        ({"working_start": 4}, {"working_start": 0.5}, "durations"),
        ({"id": f"for_tool_{UUID}"}, {"id": f"for_tool_{OTHER}"}, "ids"),
        ({"usage": {"prompt_tokens": 3}}, {"usage": None}, "token counts"),
        ({"usage": {"prompt_tokens": 3}}, {}, "token counts"),
        ({"id": "toolu_01A"}, {"id": "toolu_01B"}, "ids"),
        ({"text": f"see {UUID} there"}, {"text": f"see {OTHER} there"}, "ids"),
        ({"session": "<SESSION>"}, {"session": "abc-7"}, "masked values"),
        ({"path": "${CWD}/x.py"}, {"path": "/home/me/x.py"}, "masked values"),
        ({"cwd": "/a"}, {"cwd": "/b"}, "working directory"),
        ({"retry_not_before": "2026-01-01T10:00:00Z"}, {"retry_not_before": "2026-01-02T11:00:00Z"}, "times"),
        ({"retry_not_before": None}, {"retry_not_before": "2026-01-02T11:00:00Z"}, "times"),
        ({"sampled_delay": 0.41}, {"sampled_delay": 0.52}, "durations"),
        ({"arguments": '{"a":1,"b":[2]}'}, {"arguments": '{"b": [2], "a": 1}'}, "JSON formatting"),
        ({"text": '["x",  "y"]'}, {"text": '["x","y"]'}, "JSON formatting"),
        ({"n": 1}, {"n": 1.0}, "number formats"),
        ([1, 2], [1.0, 2], "number formats"),
        ({"arguments": '{"n": 1}'}, {"arguments": '{"n": 1.0}'}, "number formats"),
        ({"a": 1, "b": None}, {"a": 1}, "empty fields"),
        (
            {"id": "c1", "name": "Bash", "input": {"command": "ls -l"}},
            {"id": "c1", "name": "Bash", "input": {"command": "ls  -l"}},
            "white space in commands",
        ),
        (
            {"function": {"name": "bash", "arguments": '{"cmd":"a;\\n\\n b"}'}},
            {"function": {"name": "bash", "arguments": '{"cmd":"a;\\nb"}'}},
            "white space in commands",
        ),
    ],
)
def test_noise_is_let_pass_and_counted(a: Any, b: Any, kind: str) -> None:
    assert kinds(a, b) == (0, {kind: 1})
    assert kinds(b, a) == (0, {kind: 1})
    changes, counted = kinds(a, b, strict=True)
    assert changes > 0
    assert counted == {}
    assert all(change.noise == kind for change in changes_of(a, b, Noise(strict=True)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"timeout_ms": 30}, {"timeout_ms": 60}),
        ({"max_tokens": 30}, {"max_tokens": 60}),
        ({"day": "2026-01-01"}, {"day": "2026-01-02"}),
        ({"since": "2026-01-01T00:00:00Z"}, {"since": "2026-02-01T00:00:00Z"}),
        ({"order_id": "A17"}, {"order_id": "B22"}),
        ({"doc": UUID}, {"doc": OTHER}),
        ({"command": "ls -l"}, {"command": "ls  -l"}),
        ({"ok": True}, {"ok": 1}),
        ({"n": None}, {"n": 0}),
        ({"n": 1}, {"n": "1"}),
        ({"text": '{"a": 1, "a": 2}'}, {"text": '{"a": 2}'}),
        ({"text": "{not json}"}, {"text": "{not  json}"}),
        ({"text": '{"a": [1]}'}, {"text": '{"a": [1, 2]}'}),
        ({"text": '{"a": "1"}'}, {"text": '{"a": 1}'}),
        ({"text": "[1]"}, {"text": '{"0": 1}'}),
        ({"since": "{}"}, {"since": "[]"}),
        ({"name": "Bash", "input": {"command": "echo 'a b'"}}, {"name": "Bash", "input": {"command": "echo 'a  b'"}}),
        ({"name": "Bash", "input": {"command": "ls a"}}, {"name": "Bash", "input": {"command": "ls\na"}}),
        (
            {"name": "Bash", "input": {"command": "cat <<E\na b\nE"}},
            {"name": "Bash", "input": {"command": "cat <<E\na  b\nE"}},
        ),
        ({"name": "Write", "input": {"command": "a b"}}, {"name": "Write", "input": {"command": "a  b"}}),
    ],
)
def test_requested_values_are_no_noise(a: Any, b: Any) -> None:
    changes, counted = kinds(a, b, side=INPUT)

    assert changes == 1
    assert counted == {}


def test_durations_are_noise_except_in_inputs() -> None:
    noise = Noise()
    assert changes_of({"time": 0.5}, {"time": 0.7}, noise, side=OUTPUT, recorded=True) == []
    assert noise.counts == {"durations": 1}
    assert kinds({"time": 30}, {"time": 60}, side=INPUT) == (1, {})


def test_names_made_from_ids_were_not_requested() -> None:
    assert kinds({"id": f"for_tool_{UUID}"}, {"id": f"for_tool_{OTHER}"}, side=INPUT) == (0, {"ids": 1})


def test_an_id_corresponds_to_one_id_only() -> None:
    noise = Noise()

    assert noise.kind_of("id", "call_1a", "call_9a")
    assert noise.kind_of("id", "call_1a", "call_9a")
    assert not noise.kind_of("id", "call_1a", "call_9b")
    assert not noise.kind_of("id", "call_1b", "call_9a")


def test_an_id_of_an_output_is_noise_in_later_inputs() -> None:
    noise = Noise()

    assert not noise.kind_of("order", UUID, OTHER, is_input=True)
    assert noise.kind_of("order", UUID, OTHER)
    assert noise.kind_of("order", UUID, OTHER, is_input=True)


def test_all_white_space_in_the_commands_of_an_imitation_is_its_own() -> None:
    """As the program that records them compares them."""
    a = {"name": "Bash", "input": {"command": "ls -l\n  /tmp"}}
    b = {"name": "Bash", "input": {"command": "ls  -l /tmp"}}

    assert kinds(a, b, imitates=True) == (0, {"white space in commands": 1})
    assert kinds(a, b)[0] == 1


def test_a_rejected_id_has_no_counterpart() -> None:
    noise = Noise()

    assert noise.kind_of("id", "call_1a", "call_9a")
    assert not noise.kind_of("id", "call_1b", "call_9a")
    assert noise.kind_of("id", "call_1b", "call_9b")


def test_the_working_directory_of_the_runs_is_the_same_place() -> None:
    assert kinds({"f": "/home/a/x.py"}, {"f": "/srv/b/x.py"}, folders=("/home/a", "/srv/b")) == (
        0, {"working directory": 1},
    )  # fmt: skip
    assert kinds({"f": "/home/a/x.py"}, {"f": "/srv/b/y.py"}, folders=("/home/a", "/srv/b"))[0] == 1


def test_null_equals_missing_unless_strict() -> None:
    assert kinds({"a": None}, {}) == (0, {"empty fields": 1})
    assert kinds({"a": None}, {}, strict=True)[0] == 1


@pytest.mark.parametrize(
    ("a", "b", "paths"),
    [
        (
            {"m": [{"role": "user", "c": "x"}, {"role": "tool", "c": "y"}]},
            {"m": [{"role": "user", "c": "x"}, {"role": "tool", "c": "z"}]},
            ["m[1].c"],
        ),
        ([1, 2, 3, 4], [1, 3, 4], ["[1]"]),
        ([{"t": "a"}, {"t": "b"}], [{"t": "new"}, {"t": "a"}, {"t": "b"}], ["[0]"]),
        ({"a b": 1, 'q"': 2}, {"a b": 2, 'q"': 3}, ['["a b"]', '["q\\""]']),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}, []),
        ("old", "new", [""]),
    ],
)
def test_paths_locate_changes(a: Any, b: Any, paths: list[str]) -> None:
    assert [change.path for change in changes_of(a, b, Noise())] == paths
