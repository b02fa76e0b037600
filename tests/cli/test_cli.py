"""How the commands behave: where they look, how they end, what they say."""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import tracetui
from tests.cli.run import LONG_AGO, Cli
from tests.shared import ROOT
from tracetui.analysis import prices
from tracetui.errors import NothingReadable, UsageError
from tracetui.formats import registry
from tracetui.model import Status
from tracetui.store.judgement import Verdict
from tracetui.store.sidecar import Sidecar

FORMATS = ROOT / "tests" / "formats"


def test_without_a_terminal_the_bare_command_prints_the_list_and_a_sentence(cli: Cli) -> None:
    result = cli("traces")

    assert result.status == 0
    assert result.out == cli("ls", "traces").out
    assert b"\x1b" not in result.out
    assert result.err == "tracetui: 3 of 10 runs failed, 1 unreadable · 3 causes · tracetui triage traces\n"


def test_the_default_directory(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree("traces/paprika", tmp_path / "home" / ".paprika" / "traces")
    paths = [run["path"] for run in cli("ls", "--json").data["runs"]]
    assert {str(Path(path).parent) for path in paths} == {str(tmp_path / "home" / ".paprika" / "traces")}
    assert cli("show", "plan-7/2/output").status == 0

    monkeypatch.setenv("PAPRIKA_TRACE_DIR", "traces/penelope")
    assert [run["id"] for run in cli("ls", "--json").data["runs"]] == ["refund-3"]
    assert [run["id"] for run in cli("ls", "--json", "--trace-dir", "traces/lattice").data["runs"]] != ["refund-3"]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["ls", "nowhere"], 1, "no readable run in nowhere: No such file or directory"),
        (["ls", "empty"], 1, "no traces in empty ("),
        (["ls", "empty"], 1, "`tracetui demo`"),
        (["empty"], 1, "no traces in empty"),
        (["ls"], 2, "no path given, and ~/.paprika/traces doesn't exist; `tracetui --help`"),
        (["ls", "traces/paprika/cut.json"], 1, "cut off"),
        (["show", "traces/paprika/cut.json"], 1, "cut off"),
        (["show", "traces/notes.txt"], 1, "no format claims it"),
        (["show", "nothing-like-it", "--trace-dir", "traces"], 1, "no run 'nothing-like-it' in traces"),
        (["show", "traces/nowhere.json"], 1, "no such file: traces/nowhere.json"),
        (["show", "plan", "--trace-dir", "traces"], 2, "traces/paprika/plan-7.json"),
        (["show", "bump-2", "--trace-dir", "traces"], 2, "ambiguous"),
        (["show", "traces/daily.db"], 2, "contains 3 runs"),
        (["show", "traces"], 2, "choose one"),
        (["show", "traces/paprika/plan-7.json/9/output"], 2, "no '9' in the run"),
        (["show", "traces/paprika/plan-7.json/2/nope"], 2, "no 'nope' in"),
        (["show", "traces/paprika/plan-7.json", "--state", "1"], 2, "no accumulated state after step 1"),
        (["show", "traces/paprika/plan-7.json/2/output", "--raw"], 2, "leave out the field"),
        (["show", "traces/paprika/plan-7.json", "--raw", "--json"], 2, "`tracetui show --help`"),
        (["show"], 2, "required: ADDRESS"),
        (["ls", "--nope"], 2, "`tracetui ls --help`"),
        (["ls", "traces", "--format", "nope"], 2, "`tracetui formats`"),
        (["--theme", "pink"], 2, "high-contrast"),
    ],
)
def test_errors_are_one_sentence_with_the_next_step(cli: Cli, arguments: list[str], status: int, sentence: str) -> None:
    Path("empty").mkdir()
    result = cli(*arguments)

    assert result.status == status
    assert result.err.startswith("tracetui: ")
    assert result.err.count("tracetui: ") == 1
    assert sentence in result.err


def test_an_unreadable_directory_is_still_valid_json(cli: Cli) -> None:
    result = cli("ls", "traces/paprika/cut.json", "--json")

    assert result.status == 1
    assert result.data["runs"] == []
    assert result.data["problems"][0]["where"] == "byte 700"


def test_relations_in_the_list(cli: Cli) -> None:
    runs = {run["address"]: run for run in cli("ls", "traces", "--json").data["runs"]}

    copy = runs["traces/paprika/plan-7-again.json"]
    assert (copy["relation"], copy["replay_of_address"]) == ("replay", "traces/paprika/plan-7.json")
    student = runs["traces/ccpa/bump/student.ccpa-trace.jsonl"]
    assert (student["relation"], student["id"]) == ("student", "bump-2")
    assert student["replay_of_address"] == "traces/ccpa/bump/teacher.ccpa-trace.jsonl"
    assert runs["traces/daily.db#nightly-2%2Frag"]["parent"] == "nightly-2"


def test_problems_inside_listed_runs_are_among_the_problems(cli: Cli) -> None:
    problems = cli("ls", "traces/ccpa", "--json").data["problems"]

    assert [(problem["path"], problem["where"]) for problem in problems] == [
        ("traces/ccpa/bump/student.ccpa-trace.jsonl", "line 3")
    ]


def test_every_address_that_is_listed_opens_the_run_that_it_stands_for(cli: Cli) -> None:
    for run in cli("ls", "traces", "--json").data["runs"]:
        opened = cli("show", run["address"], "--json").data

        assert {name: opened["run"][name] for name in run} == run
        assert len(opened["spans"]) == run["spans"]
        assert len(opened["steps"]) == run["steps"]
        assert len(opened["problems"]) == run["problems"]


def test_parts_of_an_address(cli: Cli) -> None:
    assert cli("show", "traces/paprika/plan-7.json/2/output").text == "14 °C, rain ␛[31m\n"
    assert cli("show", "traces/paprika/plan-7.json/2/output", "--json").out == b'"14 \xc2\xb0C, rain \\u001b[31m"\n'
    assert cli("show", "traces/paprika/plan-7.json/input/kwargs/city").text == "Zürich\n"
    assert cli("show", "plan-7/2", "--trace-dir", "traces").text.startswith("weather · execute_tool · 44ms\n")
    assert cli("show", "stuck", "--trace-dir", "traces").status == 0
    assert cli("show", "traces/daily.db#nightly-1/1/output/answer").text == "30 days\n"
    state = cli("show", "traces/daily.db#nightly-1/vector/1", "--state", "0").text
    assert state == "2\n"


def test_the_state_after_a_step_that_is_not_there_is_that_of_the_one_before(cli: Cli) -> None:
    last = cli("show", "traces/daily.db#nightly-1", "--state", "1", "--json").data
    assert cli("show", "traces/daily.db#nightly-1", "--state", "99", "--json").data == last
    early = cli("show", "traces/daily.db#nightly-1", "--state", "-1")
    assert (early.status, early.out) == (2, b"")
    assert "no step up to -1" in early.err


def test_raw_is_the_exact_source(cli: Cli) -> None:
    path = Path("traces/paprika/plan-7.json")
    assert cli("show", str(path), "--raw").out == path.read_bytes()
    step = cli("show", f"{path}/2", "--raw").out
    assert step in path.read_bytes()
    assert json.loads(step)["tool_name"] == "weather"
    row = cli("show", "traces/lattice/weather.jsonl#seoul-1", "--raw").out
    assert json.loads(row.split(b"\n")[0]) == json.loads(
        Path("traces/lattice/weather.jsonl").read_text().split("\n")[0]
    )
    rows = cli("show", "traces/daily.db#nightly-1", "--raw").text
    run, *steps = documents(rows)
    assert (run["id"], run["inputs_data"]) == ("nightly-1", '{"query": "refund"}')
    assert [row["node_name"] for row in steps] == ["embed", "answer"]


def documents(text: str) -> list[Any]:
    """JSON documents that follow each other."""
    values, rest = [], text.lstrip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        values.append(value)
        rest = rest[end:].lstrip()
    return values


def test_the_python_interface_reads_the_run_that_is_named(cli: Cli) -> None:
    assert tracetui.load("traces/daily.db", "nightly-1").summary.id == "nightly-1"
    assert tracetui.load("traces/paprika/plan-7.json").summary.status == "ok"
    with pytest.raises(UsageError, match=r"contains 3 runs \(nightly-1, .*pass the id of one"):
        tracetui.load("traces/daily.db")
    with pytest.raises(NothingReadable):
        tracetui.load("traces/notes.txt")


def test_every_file_is_counted_once(cli: Cli) -> None:
    diagnosis = cli("doctor", "traces", "--json").data

    assert (
        diagnosis["listed"] + diagnosis["problem"] + diagnosis["ignored"]
        == diagnosis["seen"]
        == len(diagnosis["files"])
        == 11
    )
    assert {file["path"]: file["class"] for file in diagnosis["files"]}["traces/notes.txt"] == "ignored"
    assert all(file["runs"] or file["reason"] or file["problems"] for file in diagnosis["files"])
    assert cli("doctor", "traces", "traces/paprika", "--json").data["listed"] == diagnosis["listed"]


def test_the_ledger_of_a_directory_is_the_sum_of_its_files(cli: Cli) -> None:
    session = Path("traces/drift.jsonl")
    lines = [
        b'{"v":1,"kind":"session_start","session_id":"s","ts":"2026-05-12T08:20:00Z","actor":"apr-code"}',
        b'{"v":1,"kind":"gale","strength":9}',
        b'{"v":1,"kind":"user_prompt","turn":0,"text":"Hello","gust":1}',
        b'{"v":1,"kind":"gale"}',
        b'{"v":1,"kind":"assis',
        b'{"v":1,"kind":"session_end","turn":1,"stop_reason":"end_turn"}',
    ]
    session.write_bytes(b"\n".join(lines) + b"\n")
    diagnosis = cli("doctor", "traces", "--json").data
    files = {file["path"]: file["ledger"] for file in diagnosis["files"]}

    lost = sum(len(lines[i]) for i in (1, 3, 4))
    size = session.stat().st_size
    assert files["traces/drift.jsonl"] == {
        "bytes": size,
        "understood_bytes": size - lost,
        "understood": (size - lost) / size,
        "unknown_kinds": {"gale": 2},
        "unknown_fields": {"user_prompt.gust": 1},
        "torn_lines": 1,
        "writers": ["schema 1"],
    }
    assert files["traces/notes.txt"] is None
    ledgers = [ledger for ledger in files.values() if ledger is not None]
    read = [Path(file["path"]) for file in diagnosis["files"] if file["class"] != "ignored"]
    assert (
        diagnosis["ledger"]["bytes"]
        == sum(ledger["bytes"] for ledger in ledgers)
        == sum(path.stat().st_size for path in read)
    )
    assert diagnosis["ledger"]["understood_bytes"] == sum(ledger["understood_bytes"] for ledger in ledgers)
    assert diagnosis["ledger"]["unknown_kinds"] == {"gale": 2}
    assert diagnosis["ledger"]["torn_lines"] == sum(ledger["torn_lines"] for ledger in ledgers)
    assert cli("doctor", "traces").text.splitlines()[-1].startswith("parsed ")
    run = cli("show", "traces/drift.jsonl", "--json").data["run"]
    assert (run["ledger"], run["writer"]) == (files["traces/drift.jsonl"], "schema 1")


def test_a_forced_format_is_asked_for_every_file(cli: Cli) -> None:
    result = cli("ls", "traces/penelope", "--format", "ccpa", "--json")

    assert result.status == 1
    assert result.data["problems"]


def test_a_plug_in_that_cannot_be_loaded_is_listed_with_the_reason(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = EntryPoint("broken-one", "no_such_module:Format", registry.GROUP)
    monkeypatch.setattr(registry, "_plugins", lambda: {plugin.name: plugin})

    *_, last = cli("formats", "--json").data["formats"]

    assert (last["name"], last["title"], last["origin"]) == ("broken-one", None, "no_such_module:Format")
    assert "no_such_module" in last["broken"]
    assert "broken: " in cli("formats").text


def test_nothing_in_the_directory_changes(cli: Cli) -> None:
    def state() -> list[tuple[str, int, int]]:
        return sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in Path("traces").rglob("*"))

    before = state()
    for arguments in (["ls", "traces"], ["show", "traces/daily.db#nightly-1"], ["doctor", "traces"]):
        cli(*arguments)

    assert state() == before


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").text == f"tracetui {tracetui.__version__}\n"
    for command in ([], ["ls"], ["show"], ["doctor"], ["completions"]):
        result = cli(*command, "--help")
        assert result.status == 0
        assert "examples:" in result.text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_hold_every_command_and_option(cli: Cli, shell: str) -> None:
    script = cli("completions", shell).text

    for word in ("ls", "show", "doctor", "formats", "demo", "completions", "trace-dir", "json", "state", "theme"):
        assert word in script


def test_themes_are_those_of_the_app() -> None:
    from tracetui.store.settings import THEMES
    from tracetui.ui.theme import PALETTES

    assert tuple(PALETTES) == THEMES


def test_a_sub_agent_is_shown_as_a_run(cli: Cli, tmp_path: Path) -> None:
    events = [
        {"type": "span_begin", "span_id": "S/1", "name": "helper", "span_type": "agent"},
        {"type": "message_event", "id": "q", "span_id": "S/1", "item": _message("user", "input_text", "Find it")},
        {"type": "compaction", "id": "c", "span_id": "S/1", "strategy": "trim", "tokens_before": 9, "tokens_after": 4},
        {"type": "message_event", "id": "a", "span_id": "S/1", "item": _message("assistant", "output_text", "Here")},
        {"type": "span_end", "span_id": "S/1"},
        {"type": "message_event", "id": "u", "item": _message("user", "input_text", "Thanks")},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"FORMAT": "open_responses", "items": [], "events": events}))

    data = cli("show", f"{path}/S%2F1", "--json").data

    assert data["schema"] == "tracetui/run/1"
    fields = {name: data["run"][name] for name in ("address", "id", "agent", "status", "steps", "input", "output")}
    assert fields == {
        "address": f"{path}/S%2F1",
        "id": "S/1",
        "agent": "helper",
        "status": "ok",
        "steps": 1,
        "input": "Find it",
        "output": "Here",
    }
    assert [span["id"] for span in data["spans"]] == ["q", "c", "a"]
    assert data["steps"] == [{"number": 1, "span": "q"}]
    text = cli("show", f"{path}/S%2F1").text
    assert text.startswith("helper\nstatus     ok")
    assert "trim: 9 → 4 tokens" in text
    assert cli("show", f"{path}/S%2F1/output").text == "Here\n"
    assert cli("show", f"{path}/S%2F1/1", "--json").data["id"] == "q"


def _message(role: str, part: str, text: str) -> dict[str, Any]:
    return {"type": "message", "id": "", "role": role, "status": "completed", "content": [{"type": part, "text": text}]}


def test_ls_lists_only_what_a_query_asks_for(cli: Cli) -> None:
    everything = cli("ls", "traces", "--json").data
    failed = cli("ls", "traces", "-q", "status:error", "--json")

    assert failed.status == 0
    assert failed.data["runs"] == [run for run in everything["runs"] if run["status"] == "error"] != []
    unreadable = {"traces/paprika/cut.json"}
    assert {problem["path"] for problem in failed.data["problems"]} & unreadable == unreadable  # it may be one of them
    assert cli("ls", "traces", "--query", "status:error").text.count("\nerror") == len(failed.data["runs"])


def test_queries_filter_by_verdict_note_and_relation(cli: Cli) -> None:
    failed = [run for run in tracetui.load_all("traces") if run.summary.status is Status.ERROR]
    Sidecar().judge(failed[0].summary, Verdict.FLAKY)
    Sidecar().note(failed[0].summary, "the proxy was down")

    def addresses(query: str) -> list[str]:
        return [run["address"] for run in cli("ls", "traces", "-q", query, "--json").data["runs"]]

    assert addresses("verdict:flaky") == addresses("note:proxy") == [failed[0].summary.ref.address]
    assert len(addresses("status:error verdict:none")) == len(failed) - 1
    assert failed[0].summary.ref.address in addresses(
        f"sig:{cli('triage', 'traces', '--json').data['causes'][0]['id'][:2]}"
    )
    originals = {run["replay_of_address"] for run in cli("ls", "traces", "--json").data["runs"]} - {None}
    assert set(addresses("has:replay")) == originals != set()


def test_a_query_that_fits_nothing_says_so(cli: Cli) -> None:
    result = cli("ls", "traces", "-q", "agent:nobody")

    assert (result.status, result.err) == (0, "tracetui: 0 of 11 runs match agent:nobody\n")


def test_a_wrong_query_is_wrong_usage_and_points_at_the_column(cli: Cli) -> None:
    result = cli("ls", "nowhere", "-q", "status:error dur>soon")

    assert (result.status, result.out) == (2, b"")
    assert result.err == (
        "tracetui: `dur` doesn't take `soon`; write a duration such as `250ms`, `5s`, `2m` or `1h30m`\n"
        "  status:error dur>soon\n"
        "                   ^\n"
    )


def test_where_no_place_is_named_it_says_what_traces_there_are(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects, sessions = tmp_path / "home/.claude/projects/p", tmp_path / "elsewhere/sessions"
    for folder in (projects, sessions):
        folder.mkdir(parents=True)
    shutil.copy(next((FORMATS / "claude_code/session/input").rglob("*.jsonl")), projects / "a.jsonl")
    (projects / "b.jsonl").write_text("{}")
    (tmp_path / "home/.claude/history.jsonl").write_text("{}")

    for arguments in ((), ("ls",), ("show", "0690"), ("doctor",)):
        result = cli(*arguments)
        assert (result.status, result.out) == (2, b"")
        assert f"{tmp_path}/home/.claude/projects  (Claude Code session, 2 files)" in result.err
        assert "elsewhere" not in result.err

    shutil.copy(next((FORMATS / "codex/bare/input").rglob("*.jsonl")), sessions)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PAPRIKA_TRACE_DIR", "gone")
    message = cli("ls").err
    assert "$PAPRIKA_TRACE_DIR (gone) doesn't exist" in message
    assert f"{sessions}  (Codex rollout, 1 file)" in message


def test_a_run_of_several_models_costs_in_the_list_what_it_costs_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = {"input_tokens": 10_000, "output_tokens": 1_000}
    lines = [
        {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "Hello"}},
        *(
            {
                "type": "assistant",
                "uuid": model,
                "parentUuid": "u",
                "sessionId": "s",
                "message": {"id": model, "role": "assistant", "model": model, "content": [], "usage": used},
            }
            for model in ("claude-sonnet-4-5", "claude-haiku-4-5")
        ),
    ]
    Path("two").mkdir()
    Path("two/s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def costs() -> tuple[float | None, float | None]:
        (listed,) = cli("ls", "two", "--json").data["runs"]
        return listed["estimated_cost_usd"], cli("show", "two/s.jsonl", "--json").data["run"]["estimated_cost_usd"]

    assert costs() == (None, None)  # estimates are off
    monkeypatch.setenv(prices.SWITCH, "on")
    listed, alone = costs()
    assert listed == alone is not None


def test_a_last_line_that_is_cut_off_is_a_problem_in_every_command(cli: Cli, tmp_path: Path) -> None:
    path = next((tmp_path / "traces" / "ccpa").rglob("*.jsonl"))
    data = path.read_bytes().rstrip(b"\n")
    path.write_bytes(data[: data.rfind(b"\n") + 20])
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert '"where":"last line"' in cli("ls", "--json", str(path)).text
    document = cli("show", "--json", str(path)).data
    assert "last line" in json.dumps(document)
    assert "cut off: 19 bytes" in cli("show", str(path)).text
    assert "torn lines 2" in cli("doctor", str(path)).text
