"""``tracetui triage``, and the exit status for CI."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.night import Night
from tracetui.store.judgement import CauseRef, Verdict
from tracetui.store.sidecar import Sidecar

TITLE = "HTTP 503: upstream is down · weather"


def test_people_get_a_table_and_a_sentence(cli: Cli) -> None:
    result = cli("triage", "traces")

    assert result.status == 0
    assert [line.split()[0] for line in result.text.splitlines()] == ["ID", "F-2672", "F-9495", "F-19db"]
    assert result.text.splitlines()[2].endswith(f"—        traces/paprika/stuck-9.json              {TITLE}")
    assert result.err == "tracetui: 3 of 10 runs failed, 1 unreadable · 3 causes\n"


def test_scripts_get_the_whole_of_it(cli: Cli) -> None:
    data = cli("triage", "traces", "--json").data

    assert list(data) == ["schema", "counts", "causes", "new_causes", "signatures", "next"]
    assert data["signatures"] == data["causes"]
    assert data["schema"] == "tracetui/triage/1"
    assert data["next"] == "tracetui show traces/penelope/refund/test_result.json"
    assert (
        data["causes"][1].items()
        >= {
            "id": "F-9495",
            "title": TITLE,
            "count": 1,
            "runs": ["traces/paprika/stuck-9.json"],
            "first_seen": "2026-03-02T10:00:00Z",
            "last_seen": "2026-03-02T10:00:00Z",
            "agents": ["planner"],
            "wasted_ms": 5000.0,
            "wasted_tokens": 158,
            "example": "traces/paprika/stuck-9.json",
            "verdict": None,
            "contrast": None,
        }.items()
    )


def test_a_query_takes_the_id_and_the_text_of_a_cause(cli: Cli) -> None:
    for cause in cli("triage", "traces", "--json").data["causes"]:
        for value in (cause["id"], f'"{cause["title"]}"'):
            for key in ("cause", "signature", "sig"):
                runs = cli("ls", "traces", "--json", "-q", f"{key}:{value}").data["runs"]
                assert sorted(run["address"] for run in runs) == sorted(cause["runs"])
    assert len(cli("ls", "traces", "--json", "-q", "cause:*503*").data["runs"]) == 1


def test_verdicts_are_printed_and_the_next_undecided_cause_is_named(cli: Cli) -> None:
    first = cli("triage", "traces", "--json").data["causes"][0]
    sidecar = Sidecar()
    digest = digest_of(cli, first["id"])
    sidecar.judge(CauseRef(digest, first["id"], first["title"]), Verdict.FLAKY)
    data = cli("triage", "traces", "--json").data

    assert [cause["verdict"] for cause in data["causes"]] == ["flaky", None, None]
    assert data["next"] == "tracetui show traces/paprika/stuck-9.json"
    assert "  flaky    " in cli("triage", "traces").text


def digest_of(cli: Cli, ident: str) -> str:
    """The digest behind a short id."""
    from tracetui.analysis.triage import groups
    from tracetui.live.scan import scan
    from tracetui.sources.local import LocalSource

    runs = [run for entry in scan(LocalSource(), ["traces"], deep=True) for run in entry.runs]
    return next(group.digest for group in groups(runs) if group.id == ident)


def test_an_unreadable_line_of_the_sidecar_is_reported(cli: Cli) -> None:
    sidecar = Sidecar()
    Path(sidecar.path).parent.mkdir(parents=True)
    Path(sidecar.path).write_text("junk\n")
    result = cli("triage", "traces", "--json")

    assert result.status == 0
    assert f"tracetui: {sidecar.path}: line 1: " in result.err


def test_a_text_of_a_trace_passes_the_gate_and_its_secrets_are_masked(cli: Cli) -> None:
    path = Path("traces/paprika/stuck-9.json")
    key = "sk-proj-" + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
    path.write_text(path.read_text().replace("upstream is down", f"\\u001b[2J no key {key}"))
    text = cli("triage", "traces").text

    assert "\x1b" not in text
    assert "no key" in text
    assert key not in text
    assert key not in cli("triage", "traces", "--json", "--redact").text


def test_without_a_failure_there_is_only_the_sentence(cli: Cli) -> None:
    result = cli("triage", "traces/lattice", "--fail-on", "error")

    assert (result.status, result.text) == (0, "")
    assert result.err == "tracetui: 0 of 2 runs failed\n"
    assert cli("triage", "traces/lattice", "--json").data["causes"] == []


def test_without_a_run_the_status_is_one(cli: Cli) -> None:
    Path("empty").mkdir()

    assert cli("triage", "empty").status == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["ls", "traces"], 3),
        (["ls", "traces/lattice"], 0),
        (["ls", "traces", "-q", "status:ok"], 1),
        (["triage", "traces", "--json"], 3),
        (["show", "traces/paprika/stuck-9.json"], 3),
        (["show", "traces/paprika/stuck-9.json/1/name"], 3),
        (["show", "traces/lattice/weather.jsonl#seoul-1"], 0),
    ],
)
def test_a_failed_run_can_fail_a_build(cli: Cli, arguments: list[str], status: int) -> None:
    assert cli(*arguments, "--fail-on", "error").status == status
    assert cli(*arguments).status == 0


def test_a_signature_is_the_same_wherever_the_traces_lie(cli: Cli) -> None:
    before = cli("triage", "traces", "--json").data["causes"]
    shutil.move("traces", "elsewhere")
    after = cli("triage", "elsewhere", "--json").data["causes"]

    assert [cause["id"] for cause in after] == [cause["id"] for cause in before]


def test_five_hundred_failures_fit_on_a_screen(cli: Cli, tmp_path: Path) -> None:
    night = tmp_path / "night"
    night.mkdir()
    Night(night).fill(500, 20)
    result = cli("triage", "night")

    assert len(result.text.splitlines()) == 13
    assert result.err == "tracetui: 500 of 520 runs failed · 12 causes\n"
    assert json.loads(cli("triage", "night", "--json").out)["counts"]["failed"] == 500


def test_shared_features_of_a_signature_have_an_example(cli: Cli) -> None:
    folder = Path("night")
    folder.mkdir()
    Night(folder, seed=3).fill(48, 20)

    causes = cli("triage", "night", "--json").data["causes"]
    exported = cli("export", "night", "--as", "json").data["causes"]
    pages = [cli("export", "night", "--as", form).text for form in ("md", "html")]

    assert [cause["contrast"] for cause in exported] == [cause["contrast"] for cause in causes]
    first = next(
        cause for cause in causes if cause["title"].startswith("KeyError") and cause["title"].endswith(" · update")
    )["contrast"]["findings"][0]
    assert "tool update" in first["features"]
    assert (first["in"], first["of"], first["in_others"], first["of_others"]) == (4, 4, 0, 20)
    assert json.loads(cli("show", first["example"], "--json").out)["name"] == "update"
    assert all("shared by these runs" in page for page in pages)
    assert re.search(r"\| tool update\S* .*\| +4/4 \| +0/20 \| night/", pages[0])
    assert re.search(r"<td[^>]*>4/4</td>", pages[1])


def test_the_next_command_holds_the_name_of_a_file_as_one_word(cli: Cli) -> None:
    Path("odd").mkdir()
    name = "odd/a; touch $(echo pwned) 'b.json"
    Path("traces/paprika/stuck-9.json").rename(name)
    for arguments in (["triage", "odd", "--json"], ["export", "odd", "--as", "json"]):
        assert shlex.split(cli(*arguments).data["next"]) == ["tracetui", "show", name]


def test_a_build_fails_on_causes_without_a_verdict(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "ci" / "verdicts.jsonl"
    missing = cli("triage", "traces", "--fail-on", "new")
    unnamed = cli("triage", "traces", "--verdicts", str(file))
    assert (missing.status, unnamed.status) == (2, 2)
    assert "--fail-on new needs a verdict file" in missing.err
    assert "no verdict file" in unnamed.err

    sidecar = Sidecar(file=file)
    causes = cli("triage", "traces", "--json").data["causes"]
    for cause in causes[1:]:
        sidecar.judge(CauseRef(cause["digest"], cause["id"], cause["title"]), Verdict.KNOWN)
    before = file.read_bytes()
    result = cli("triage", "traces", "--json", "--verdicts", str(file), "--fail-on", "new")
    assert (result.status, result.data["new_causes"]) == (3, [causes[0]["id"]])
    assert [cause["verdict"] for cause in result.data["causes"]] == [None, "known", "known"]
    assert [cause["new"] for cause in result.data["causes"]] == [True, False, False]

    sidecar.judge(CauseRef(causes[0]["digest"]), Verdict.IGNORE)
    every = cli("triage", "traces", "--verdicts", str(file), "--fail-on", "new")
    assert (every.status, "  ignore  " in every.text) == (1, True)  # 1: a file is unreadable
    assert cli("triage", "traces/penelope", "--verdicts", str(file), "--fail-on", "new").status == 0
    assert cli("triage", "traces", "--verdicts", str(file), "--fail-on", "new", "--fail-on", "error").status == 3
    assert file.read_bytes().startswith(before)
    assert file.read_bytes().count(b"\n") == 3


def test_a_list_fails_on_causes_of_its_runs_without_a_verdict(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    missing, unnamed = cli("ls", "traces", "--fail-on", "new"), cli("ls", "traces", "--verdicts", str(file))
    assert (missing.status, missing.out, unnamed.status, unnamed.out) == (2, b"", 2, b"")
    sidecar = Sidecar(file=file)
    causes = cli("triage", "traces", "--json").data["causes"]
    for cause in causes:
        if cause["title"] != TITLE:
            sidecar.judge(CauseRef(cause["digest"], cause["id"], cause["title"]), Verdict.KNOWN)
    before = file.read_bytes()
    options = ("--verdicts", str(file), "--fail-on", "new")

    assert cli("ls", "traces", *options).status == 3
    assert cli("ls", "traces", "--verdicts", str(file)).status == 0
    assert cli("ls", "traces/penelope", *options).status == 0
    assert cli("ls", "traces", "-q", "verdict:known", *options).status == 1  # 1: a file is unreadable
    undecided = cli("ls", "traces", "-q", "status:error verdict:none", "--json", *options)
    assert (undecided.status, [run["id"] for run in undecided.data["runs"]]) == (3, ["stuck-9"])
    assert file.read_bytes() == before

    sidecar.judge(CauseRef(next(cause["digest"] for cause in causes if cause["title"] == TITLE)), Verdict.IGNORE)
    assert cli("ls", "traces/paprika/stuck-9.json", *options).status == 0
    result = cli("show", "traces/paprika/stuck-9.json", "--fail-on", "new")
    assert (result.status, "tracetui ls or triage" in result.err) == (2, True)


def test_merged_and_split_causes_of_a_verdict_file_apply(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    sidecar = Sidecar(file=file)
    first, other, third = (
        CauseRef(cause["digest"], cause["id"]) for cause in cli("triage", "traces", "--json").data["causes"]
    )
    sidecar.merge(first, other)
    sidecar.split(third, "text")
    data = cli("triage", "traces", "--json", "--verdicts", str(file)).data

    assert data["counts"]["causes"] == 2
    merged = next(cause for cause in data["causes"] if cause["digest"] == other.digest)
    assert (merged["count"], merged["merged"]) == (2, [first.digest])
    assert len(merged["variants"]) == 2
