"""``tracetui audit``."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tests.canaries import CANARY
from tests.claude_sessions import REFUSED, Step, bash, write_session
from tests.cli.run import Cli

RISKY = [
    bash("git push --force origin main"),
    bash("rm -rf build", REFUSED, is_error=True),
    bash("cat .env"),
    bash("cp a /tmp/a && cp a /etc/a"),
    Step("WebFetch", {"url": "https://docs.shop.example/api"}),
]


def rules(cli: Cli, *arguments: str) -> list[tuple[str, str]]:
    """Rule and outcome of each finding that isn't folded."""
    findings = cli("audit", "runs", "--json", *arguments).data["findings"]
    return [(finding["rule"], finding["outcome"]) for finding in findings if not finding["folded"]]


def test_people_get_a_line_per_rule_worst_first(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), RISKY, mode="bypassPermissions")
    result = cli("audit", "runs")
    assert result.status == 0
    assert result.text.splitlines() == [
        "RULE               SEVERITY  DONE  TRIED  RUNS  WHAT",
        "push-force         error        1      ·     1  git push --force origin main",
        "secret-read        error        1      ·     1  /home/dev/shop/.env",
        "permission-bypass  error        1      ·     1  bypassPermissions",
        "delete             warning      ·      1     1  /home/dev/shop/build",
        "write-outside      warning      1      ·     1  /etc/a · 1 in temporary folders folded",
        "push               note         1      ·     1  push origin main",
        "network            note         2      ·     1  origin · https://docs.shop.example/api",
        "denied             note         ·      1     1  rm -rf build",
    ]
    assert result.err.splitlines() == [
        "tracetui: 3 serious findings in 1 run · 12 effects recorded in 1 run",
        "tracetui: permission modes: bypassPermissions 1",
    ]


def test_scripts_get_every_finding_with_its_call(cli: Cli) -> None:
    path = write_session(Path("runs/one.jsonl"), RISKY)
    value = cli("audit", "runs", "--json").data
    assert value["schema"] == "tracetui/audit/1"
    assert value["findings"][0] == {
        "rule": "push-force",
        "severity": "error",
        "run": str(path),
        "span": "one-t0",
        "target": "push origin main",
        "command": "git push --force origin main",
        "certainty": "parsed",
        "outcome": "done",
        "folded": False,
    }
    assert value["effects"] == {"denied": 2, "done": 10}
    assert value["runs"] == [{"run": str(path), "root": "/home/dev/shop", "modes": []}]


@pytest.mark.parametrize(
    ("condition", "status"),
    [("push-force", 3), ("error", 3), ("kill,push", 3), ("delete", 0), ("denied", 3), ("kill", 0), ("pushed", 2)],
)
def test_only_findings_that_were_done_fail(cli: Cli, condition: str, status: int) -> None:
    write_session(Path("runs/one.jsonl"), RISKY)
    assert cli("audit", "runs", "--fail-on", condition).status == status


def test_without_a_condition_nothing_fails(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), RISKY)
    assert cli("audit", "runs").status == 0
    assert cli("audit", "nowhere").status == 1


def test_an_unknown_rule_is_named_with_the_nearest(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), RISKY)
    assert "did you mean 'push-force'?" in cli("audit", "runs", "--fail-on", "push-forced").err
    assert cli("audit", "runs", "--allow", "pushes:*").status == 2


def test_allowed_findings_are_left_out_and_counted(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), RISKY)
    allow = ("--allow", "network:https://docs.shop.example/*", "--allow", "push-force")
    assert ("push-force", "done") not in rules(cli, *allow)
    assert rules(cli, *allow).count(("network", "done")) == 1
    assert cli("audit", "runs", "--json", *allow).data["allowed"] == 2
    assert cli("audit", "runs", "--fail-on", "push-force", *allow).status == 0


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (bash("rm a"), "done"),
        (bash("rm a", "rm: a: No such file", is_error=True), "failed"),
        (bash("rm a && make", "make: error", is_error=True), "maybe"),
        (bash("rm a", REFUSED, is_error=True), "denied"),
        (bash("rm a", "bash: permission denied", is_error=True), "failed"),
        (bash("rm a", None), "unknown"),
    ],
)
def test_outcomes_are_distinguished(cli: Cli, step: Step, outcome: str) -> None:
    write_session(Path("runs/one.jsonl"), [step])
    assert ("delete", outcome) in rules(cli)


def test_a_call_works_where_the_previous_one_left_the_shell(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [bash("cd src", directory="/home/dev/shop/src"), bash("rm ../a")])
    (finding,) = cli("audit", "runs", "--json").data["findings"]
    assert (finding["rule"], finding["target"]) == ("delete", "/home/dev/shop/a")


def test_secrets_are_masked_and_a_secret_read_names_the_file_only(cli: Cli) -> None:
    steps = [bash(f"curl -H 'Authorization: Bearer {CANARY}' https://shop.example && cat .env")]
    write_session(Path("runs/one.jsonl"), steps)
    documents = [f"out.{ending}" for ending in ("sarif", "xml", "md", "json")]
    result = cli("audit", "runs", "--json", *(word for path in documents for word in ("--to", path)))
    assert CANARY not in result.text
    assert all(CANARY not in Path(path).read_text() for path in documents)
    secret = next(finding for finding in result.data["findings"] if finding["rule"] == "secret-read")
    assert (secret["target"], secret["command"]) == ("/home/dev/shop/.env", None)


def test_sarif_has_a_result_per_finding(cli: Cli) -> None:
    path = write_session(Path("runs/one.jsonl"), RISKY)
    cli("audit", "runs", "--to", "audit.sarif")
    (run,) = json.loads(Path("audit.sarif").read_text())["runs"]
    levels = {(result["ruleId"], result["kind"], result["level"]) for result in run["results"]}
    assert ("push-force", "fail", "error") in levels
    assert ("delete", "informational", "none") in levels
    first = run["results"][0]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(path)
    region = first["locations"][0]["physicalLocation"]["region"]
    assert '"git push' in path.read_text().splitlines()[region["startLine"] - 1]
    assert first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == f"{path}/one-t0"
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"]
    assert [result["ruleId"] for result in run["results"] if "suppressions" in result] == ["write-outside"]


def test_junit_has_a_case_per_rule_and_failures_for_conditions(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), RISKY)
    assert cli("audit", "runs", "--to", "audit.xml", "--fail-on", "push-force,delete").status == 3
    suite = Xml.parse("audit.xml").getroot()[0]
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["push-force"]
    assert (suite.get("tests"), suite.get("failures")) == ("16", "1")


def test_sarif_has_the_structure_of_its_schema(cli: Cli) -> None:
    """Required properties, enumerations and bounds of SARIF 2.1.0 (OASIS) for the objects that are written."""
    steps = [bash("git push -f"), bash("rm -rf build /tmp/x"), bash("git push", REFUSED, is_error=True)]
    write_session(Path("runs/a b.jsonl"), steps, mode="bypassPermissions")
    cli("audit", "runs", "--to", "audit.sarif")
    document = json.loads(Path("audit.sarif").read_text())
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    assert set(run) <= {"tool", "invocations", "results", "columnKind"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(rules) == len(set(rules))
    levels = ("none", "note", "warning", "error")
    assert all(
        rule["defaultConfiguration"]["level"] in levels and rule["shortDescription"]["text"] for rule in driver["rules"]
    )
    assert all(isinstance(invocation["executionSuccessful"], bool) for invocation in run["invocations"])
    assert run["results"]
    for result in run["results"]:
        assert result["message"]["text"]
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["kind"] in ("notApplicable", "pass", "fail", "review", "open", "informational")
        assert result["level"] in levels
        assert result["kind"] == "fail" or result["level"] == "none"  # 3.27.10
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        assert all(suppression["kind"] in ("inSource", "external") for suppression in result.get("suppressions", ()))
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert uri == "runs/a%20b.jsonl"
        assert all(place["fullyQualifiedName"] for place in location["logicalLocations"])
