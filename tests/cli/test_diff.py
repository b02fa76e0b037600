"""``tracetui diff``: two runs, a replay and its original, every pair of a folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import LONG_AGO, Cli
from tests.formats.hypergraph_build import TO_V3, TO_V4, V2, at, database, insert

TEACHER = "traces/ccpa/bump/teacher.ccpa-trace.jsonl"
STUDENT = "traces/ccpa/bump/student.ccpa-trace.jsonl"
ORIGINAL, REPLAY = "traces/paprika/plan-7.json", "traces/paprika/plan-7-again.json"


def change(path: str, edit: Any) -> None:
    """Change a trace."""
    value = json.loads(Path(path).read_bytes())
    edit(value)
    Path(path).write_text(json.dumps(value))


def drifted(value: Any) -> None:
    """The first step of the replay gets another output."""
    value["steps"][0]["output_data"] = {"text": "something else \x1b[31m"}


def test_a_replay_is_compared_with_its_original(cli: Cli) -> None:
    result = cli("diff", REPLAY)
    same = cli("diff", ORIGINAL, REPLAY)

    assert result.status == 0
    assert result.text.startswith(f"A  {ORIGINAL}")
    assert f"B  {REPLAY}" in result.text
    assert "replay of A" in result.text
    assert same.out == result.out


def test_an_original_is_compared_with_its_only_replay(cli: Cli) -> None:
    assert cli("diff", ORIGINAL).out == cli("diff", ORIGINAL, REPLAY).out
    second = REPLAY.replace(".json", "-2.json")
    shutil.copy(REPLAY, second)
    change(second, lambda value: value.update(execution_id="plan-7-again-2"))

    ambiguous = cli("diff", ORIGINAL)

    assert ambiguous.status == 2
    assert "has 2 replays; choose one" in ambiguous.err
    assert {line.strip() for line in ambiguous.err.splitlines()[1:]} == {REPLAY, second}


def test_the_first_divergence_is_printed_first(cli: Cli) -> None:
    change(REPLAY, drifted)

    text = cli("diff", REPLAY).text

    lines = text.split("\n")
    assert lines[3].startswith("First difference: step ")
    assert "output differs" in lines[3]
    assert "\x1b" not in text
    assert "← first" in text


def test_the_contract_of_the_data(cli: Cli) -> None:
    change(REPLAY, drifted)

    data = cli("diff", REPLAY, "--json").data

    assert data["schema"] == "tracetui/diff/1"
    assert (data["a"], data["b"], data["relation"]) == (ORIGINAL, REPLAY, "replay")
    assert list(data["counts"]) == ["same", "input", "output", "status", "only_a", "only_b", "moved"]
    assert sum(data["counts"].values()) == len(data["rows"])
    first = data["first_divergence"]
    assert set(first) == {"row", "kind", "path", "a", "b"}
    row = data["rows"][first["row"]]
    assert row["kind"] == first["kind"] == "output"
    assert {"kind", "a", "b", "downstream", "changes"} <= set(row)
    assert row["changes"][0]["path"] == first["path"]
    assert {"path", "a", "b"} <= set(row["changes"][0])
    assert row["a"].startswith(f"{ORIGINAL}/")
    assert all(row["downstream"] is False for row in data["rows"][: first["row"] + 1])


def test_addresses_of_rows_lead_to_their_steps(cli: Cli) -> None:
    rows = cli("diff", REPLAY, "--json").data["rows"]

    for row in rows:
        assert cli("show", row["a"], "--json").status == 0
        assert cli("show", row["b"], "--json").status == 0


def test_a_run_has_no_differences_from_itself(cli: Cli) -> None:
    result = cli("diff", ORIGINAL, ORIGINAL, "--json")

    assert result.data["first_divergence"] is None
    assert result.data["same"] is True
    assert result.data["counts"]["same"] == len(result.data["rows"])
    assert "No differences." in cli("diff", ORIGINAL, ORIGINAL).text


def test_runs_of_different_formats_can_be_compared(cli: Cli) -> None:
    assert cli("diff", ORIGINAL, TEACHER, "--json").data["first_divergence"] is not None


def test_runs_of_a_database_by_id(cli: Cli) -> None:
    result = cli("diff", "nightly-1", "nightly-2", "--trace-dir", "traces", "--json")

    assert (result.data["a"], result.data["b"]) == ("traces/daily.db#nightly-1", "traces/daily.db#nightly-2")
    assert result.data["aligned_by"] == "superstep and node"


def test_exit_codes_as_diff_has_them(cli: Cli) -> None:
    assert cli("diff", ORIGINAL, ORIGINAL, "--exit-code").status == 0
    change(REPLAY, drifted)
    assert cli("diff", REPLAY, "--exit-code").status == 1
    assert cli("diff", REPLAY).status == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["traces/nowhere.json", ORIGINAL], 1, "no such file"),
        (["traces/lattice/weather.jsonl#seoul-1"], 2, "has neither an original nor a replay"),
        ([], 2, "takes one or two runs"),
        ([ORIGINAL, REPLAY, TEACHER], 2, "takes one or two runs"),
        ([f"{ORIGINAL}/1", REPLAY], 2, "is part of a run"),
        (["--replays", "traces", ORIGINAL], 2, "drop the addresses"),
        (["--replays", "empty"], 1, "empty"),
        (["--repeats", ORIGINAL, REPLAY], 2, "--repeats needs --replays DIR"),
    ],
)
def test_wrong_usage_is_one_sentence(cli: Cli, arguments: list[str], status: int, message: str) -> None:
    Path("empty").mkdir()

    result = cli("diff", *arguments)

    assert result.status == status
    assert result.out == b""
    assert result.err.startswith("tracetui: ")
    assert message in result.err
    assert cli("diff", *arguments, "--exit-code").status == 2


def test_a_missing_original_is_an_error(cli: Cli) -> None:
    Path(ORIGINAL).unlink()

    result = cli("diff", REPLAY)

    assert result.status == 1
    assert "original not found" in result.err


def test_nothing_is_ignored_when_asked_so(cli: Cli) -> None:
    loose, strict = (cli("diff", REPLAY, "--json", *more).data for more in ([], ["--strict"]))

    assert loose["ignored"]
    assert strict["ignored"] == {}
    assert not strict["same"]


# ---- every pair of a folder


def test_every_pair_of_a_folder_has_one_line(cli: Cli) -> None:
    result = cli("diff", "--replays", "traces")

    lines = result.text.rstrip("\n").split("\n")
    assert result.status == 0
    assert {line.split()[0] for line in lines} <= {"same", "different", "missing"}
    assert sum(REPLAY in line and ORIGINAL in line for line in lines) == 1
    assert sum(STUDENT in line and TEACHER in line for line in lines) == 1


def test_every_pair_as_data(cli: Cli) -> None:
    change(REPLAY, drifted)

    data = cli("diff", "--replays", "traces", "--json").data

    assert data["schema"] == "tracetui/replays/1"
    pairs = {pair["b"]: pair for pair in data["pairs"]}
    assert pairs[REPLAY]["a"] == ORIGINAL
    assert pairs[REPLAY]["same"] is False
    assert pairs[REPLAY]["first_divergence"]["kind"] == "output"
    assert pairs[STUDENT]["relation"] == "student"


def test_the_exit_code_of_a_folder_of_replays_serves_ci(cli: Cli) -> None:
    def status() -> int:
        return cli("diff", "--replays", "traces/paprika", "--exit-code").status

    assert status() == 2  # a file that can't be read may be a replay
    Path("traces/paprika/cut.json").unlink()
    assert status() == (0 if cli("diff", REPLAY, "--json").data["same"] else 1)
    change(REPLAY, drifted)
    assert status() == 1
    Path(ORIGINAL).unlink()
    assert status() == 2
    assert "missing" in cli("diff", "--replays", "traces/paprika").text


def write_repetitions(folder: Path) -> list[str]:
    """Three traces of one task, the last of which went differently; their addresses by time."""
    folder.mkdir()
    spans = [
        {"traceId": f"{i:032x}", "spanId": f"{i:016x}", "name": "job", "startTimeUnixNano": str(i * 10**12)}
        | {"endTimeUnixNano": str(i * 10**12 + 5 * 10**9)}
        | {"attributes": [{"key": "input.value", "value": {"stringValue": "count"}}]}
        | ({"status": {"code": 2, "message": "lost"}} if i == 3 else {})
        for i in (1, 2, 3)
    ]
    lines = [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n" for span in reversed(spans)]
    (folder / "t.otlp.jsonl").write_text("".join(lines))
    os.utime(folder / "t.otlp.jsonl", (LONG_AGO, LONG_AGO))
    return [f"{folder}/t.otlp.jsonl#{i:032x}" for i in (1, 2, 3)]


def test_runs_of_one_task_are_compared_with_the_earliest_if_that_is_asked_for(cli: Cli) -> None:
    first, second, third = write_repetitions(Path("jobs"))

    assert cli("diff", "--replays", "jobs").out == b""
    assert cli("diff", "--replays", "jobs", "--repeats", "--exit-code").status == 1
    pairs = cli("diff", "--replays", "jobs", "--repeats", "--json").data["pairs"]
    assert {(pair["a"], pair["b"], pair["relation"], pair["same"]) for pair in pairs} == {
        (first, second, "repeat", True),
        (first, third, "repeat", False),
    }


def test_a_run_alone_is_compared_with_the_first_of_its_task(cli: Cli) -> None:
    first, second, third = write_repetitions(Path("jobs"))

    assert f"A  {first}" in cli("diff", third).text
    assert "repeat of A" in cli("diff", third).text
    assert cli("diff", second, third, "--json").data["relation"] == "repeat"
    assert "has neither an original nor a replay" in cli("diff", first).err
    assert {run["repeats"] for run in cli("ls", "jobs", "--json").data["runs"]} != {None}
    assert cli("show", third, "--json").data["run"]["replay_of_address"] is None


# ---- equal runs, recorded differently


def recorded(name: str, ident: str, form: str, **more: Any) -> str:
    """A run of two calls whose ids begin with `ident`, as a replay of another with `replay_of`."""
    arguments = {"q": "EV", "top": 3}
    text = json.dumps(arguments) if form == "wide" else json.dumps(arguments, separators=(",", ":"))
    calls = [
        {"id": f"{ident}{n}", "type": "function", "function": {"name": "search", "arguments": text}} for n in (1, 2)
    ]
    messages = [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": call["id"], "content": f"result {n}"} for n, call in enumerate(calls)),
    ]
    step = {
        "step_index": 0, "step_type": "llm_call", "name": "gpt", "input_data": {"messages": messages},
        "output_data": {"text": more.pop("answer", "Done.")}, "input_hash": f"hash of {ident}",
    }  # fmt: skip
    value = {
        "schema_version": "1",
        "record_id": name,
        "agent_name": "a",
        "status": "completed",
        "steps": [step],
        **more,
    }
    path = f"traces/paprika/{name}.json"
    Path(path).write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("ident", ["pyd_ai_", "tooluse_Zx", "a8Kd02Mn", "functions.search:", "c"])
def test_other_ids_of_calls_and_other_json_in_texts_are_no_difference(cli: Cli, ident: str) -> None:
    a, b = recorded("one", "call_", "wide"), recorded("two", ident, "narrow")
    same, strict = cli("diff", a, b, "--exit-code"), cli("diff", a, b, "--exit-code", "--strict")

    assert (same.status, strict.status) == (0, 1)
    assert "No differences." in same.text
    assert "JSON formatting 2" in same.text
    assert cli("diff", b, a, "--json").data["ignored"]["ids"] == 4
    assert cli("diff", a, recorded("three", ident, "wide", answer="Gone."), "--exit-code").status == 1


def test_lookalike_values_are_distinguished(cli: Cli) -> None:
    a, b = recorded("one", "c", "wide", answer="caf\u00e9"), recorded("two", "c", "wide", answer="cafe\u0301")
    text = cli("diff", a, b).text

    assert "caf\u00e9 (NFC) → cafe\u0301 (NFD: e U+0301)" in text
    assert "(A NFC · B NFD: e U+0301)" in text


def session(actor: str, command: str, call: str) -> str:
    """A session in which one command was run."""
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
    lines: list[dict[str, Any]] = [
        {"kind": "session_start", "session_id": "shell-1", "actor": actor, "model": "m", "ts": "2026-03-03T13:01:00Z"},
        {"kind": "user_prompt", "turn": 0, "text": "List it."},
        {"kind": "assistant_turn", "turn": 1, "blocks": [use], "stop_reason": "tool_use"},
        {"kind": "tool_result", "turn": 2, "tool_use_id": call, "ok": True, "content": "a b"},
        {"kind": "session_end", "turn": 3, "stop_reason": "end_turn", "elapsed_ms": 900},
    ]
    return "".join(json.dumps({"v": 2, **line}) + "\n" for line in lines)


@pytest.mark.parametrize(("command", "status"), [("ls  -l \t/tmp", 0), ("ls -l\n/tmp", 0), ("ls -la /tmp", 1)])
def test_white_space_in_the_commands_of_a_student_is_no_difference(cli: Cli, command: str, status: int) -> None:
    folder = Path("traces/ccpa/shell")
    folder.mkdir()
    (folder / "teacher.ccpa-trace.jsonl").write_text(session("claude-code", "ls -l /tmp", "toolu_1A"))
    (folder / "student.ccpa-trace.jsonl").write_text(session("apr-code", command, "c7"))
    result = cli("diff", f"{folder}/student.ccpa-trace.jsonl", "--exit-code")

    assert result.status == status, result.text
    assert ("white space in commands 1" in result.text) is (status == 0)


def test_a_node_that_was_tried_again_at_another_time_is_the_same(cli: Cli) -> None:
    paths = []
    for name, second in (("a.db", 300.0), ("b.db", 700.0)):
        with database(Path("traces") / name, V2 + TO_V3 + TO_V4, 4) as db:
            insert(db, "runs", id="run", graph_name="fetch", status="completed", created_at=at(second),
                   completed_at=at(second + 2), node_count=1, error_count=0)  # fmt: skip
            insert(db, "attempt_series", id="s", run_id="run", node_name="get", policy_fingerprint="p", max_attempts=2,
                   opened_at=at(second), committed_superstep=0, closed_at=at(second + 2))  # fmt: skip
            tried = {
                "series_id": "s",
                "scheduled_superstep": 0,
                "started_at": at(second),
                "completed_at": at(second + 1),
            }
            insert(db, "attempt_records", **tried, attempt_number=1, status="failed", error_type="ConnectionError",
                   error_message="reset", retry_not_before=at(second + 1), sampled_delay=second / 1000)  # fmt: skip
            insert(db, "attempt_records", **tried, attempt_number=2, status="succeeded")
            insert(db, "steps", run_id="run", step_index=0, superstep=0, node_name="get", status="completed",
                   values_data={"body": "x"}, input_versions={}, created_at=at(second + 2), attempt_series_id="s",
                   completed_at=at(second + 2))  # fmt: skip
        paths.append(f"traces/{name}#run")
    result = cli("diff", *paths, "--exit-code")

    assert result.status == 0, result.text
    assert "durations" in result.text
