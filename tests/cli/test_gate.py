"""``tracetui gate``: exit statuses, its documents, and trials that do not count."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.canaries import CANARY, SHAPED
from tests.cli.run import Cli
from tests.cli.test_tasks import write_set
from tests.hostile import ATTACKS
from tests.scored import install, reward, write_run

DOCUMENTS = ("--to", "out.md", "--to", "out.html", "--to", "out.xml", "--to", "out.json")


def write_scored(folder: str, tasks: dict[str, str]) -> None:
    """Trials by task: ``p`` passed, ``f`` failed, ``?`` without an outcome, ``r`` running, ``e`` ended in an error."""
    for task, trials in tasks.items():
        for i, kind in enumerate(trials):
            scores = [reward(float(kind == "p"), passed=kind == "p")] if kind in "pf" else []
            fields = {"r": {"status": "running"}, "e": {"status": "error", "error": "no credit"}}.get(kind, {})
            write_run(Path(folder), f"{task}-{i}", scores=scores, task=task, trial=str(i), **fields)


class Page(HTMLParser):
    """The tags, ids and local links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        attributes = dict(attrs)
        self.ids |= {attributes["id"] or ""} if "id" in attributes else set()
        self.links |= {attributes["href"] or ""} if "href" in attributes else set()


# ---- exit statuses


@pytest.mark.parametrize(
    ("base", "candidate", "status", "verdict"),
    [
        ("pppp", "pppp", 0, "no_regression"),
        ("ppff", "pppp", 0, "no_regression"),
        ("pppp", "ppff", 1, "regression"),
        ("pfpf", "ffpp", 4, "inconclusive"),
    ],
)
def test_the_exit_status_is_the_verdict(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, base: str, candidate: str, status: int, verdict: str
) -> None:
    install(monkeypatch)
    write_scored("base", {f"t{i}": base for i in range(50)})
    write_scored("candidate", {f"t{i}": candidate for i in range(50)})
    result = cli("gate", "base", "candidate", "--json")
    assert (result.status, result.data["verdict"], result.err) == (status, verdict, "")


def test_an_inconclusive_gate_says_what_would_settle_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    write_scored("base", {f"t{i}": "p" for i in range(5)})
    result = cli("gate", "base", "base")
    assert result.status == 4
    assert result.text.splitlines()[:3] == [
        "Inconclusive: 5 trials can't exclude a loss of 10 points; at least 35 in each set are needed",
        "No result of the candidate could give p < 0.05: the smallest is 0.062",
        "About 13 trials of each task, in both sets, would settle it in 80 % of cases on average; in fewer if the true "
        "loss is about 5 points",
    ]


def test_nothing_to_pair_is_trouble(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    write_scored("base", {"a": "pp"})
    write_scored("other", {"b": "pp"})
    write_scored("unscored", {"a": "??"})
    Path("broken").mkdir()
    Path("broken/run.json").write_bytes(b'{"schema_version": "1.0", "record_id": "x", "agent": {"na')
    for candidate, message in (
        ("other", "none is in both sets (base: 1 task, candidate: 1 task)"),
        ("unscored", "none of 1 task in both sets has scored runs in both"),
        ("broken", "no readable run in broken"),
        ("gone", "gone"),
    ):
        result = cli("gate", "base", candidate)
        assert (result.status, result.out) == (2, b"")
        assert message in result.err


def test_a_pass_rule_sets_the_outcomes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    for i in range(8):
        write_run(Path("base"), f"a{i}", scores=[reward(0.9, passed=None)], task=f"t{i}", trial="0")
        write_run(Path("worse"), f"b{i}", scores=[reward(0.4, passed=None)], task=f"t{i}", trial="0")
    assert cli("gate", "base", "worse").status == 2
    assert cli("gate", "base", "worse", "--pass", "reward>=0.8").status == 1
    assert cli("gate", "base", "worse", "--pass", "speed>=0.8").status == 2


# ---- trials that do not count


def test_uncompared_tasks_are_counted_in_one_sentence_each(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    tasks = {f"t{i}": "pp" for i in range(8)}
    write_scored("base", {**tasks, "once": "p", "open": "p?", "old": "pp", "later": "??"})
    write_scored("candidate", {**tasks, "once": "e", "open": "pr", "new": "pf", "later": "pp"})
    Path("candidate/broken.json").write_bytes(b'{"schema_version": "1.0", "record_id": "x", "agent": {"na')
    result = cli("gate", "base", "candidate", *DOCUMENTS)
    sentences = [
        "base: 2 tasks with 1 scored trial: stability unknown",
        "base: 3 trials not rated: no outcome",
        "candidate: 2 tasks with 1 scored trial: stability unknown",
        "candidate: 1 trial not rated: still running",
        "candidate: 1 unreadable file; `tracetui doctor` lists them",
        "1 task only in the base, not compared",
        "1 task only in the candidate, not compared",
        "1 task without a scored trial in one set, not compared",
    ]
    assert result.err.splitlines()[: len(sentences)] == [f"tracetui: {sentence}" for sentence in sentences]
    rows = [line.split() for line in result.text.splitlines()[-3:]]
    assert rows == [["only", "in", "base", "old"], ["only", "in", "candidate", "new"], ["not", "scored", "later"]]
    saved = json.loads(Path("out.json").read_bytes())
    assert (saved["only_base"], saved["only_candidate"], saved["unscored"]) == (["old"], ["new"], ["later"])
    assert saved["notes"] == sentences
    assert "1 trial not rated: still running" in Path("out.md").read_text()
    assert "1 trial not rated: still running" in Path("out.html").read_text()
    suite = ElementTree.parse("out.xml").getroot()[0]
    skipped = {
        case.attrib["name"]: case[0].attrib["message"] for case in suite.iter("testcase") if case[0].tag == "skipped"
    }
    assert skipped.pop("pass rate of all tasks").startswith("Inconclusive: 18 trials can't exclude")
    assert skipped == {"old": "only in base", "new": "only in candidate", "later": "not scored"}


def test_the_list_of_tasks_counts_them_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    write_scored("runs", {"once": "p", "open": "?", "both": "pf?r"})
    Path("runs/broken.json").write_bytes(b'{"schema_version": "1.0", "record_id": "x", "agent": {"na')
    result = cli("tasks", "runs")
    assert (result.status, len(result.text.splitlines())) == (0, 4)
    assert result.err.splitlines()[1:] == [
        "tracetui: 1 task with 1 scored trial: stability unknown",
        "tracetui: 3 trials not rated: 2 no outcome, 1 still running",
        "tracetui: 1 unreadable file; `tracetui doctor` lists them",
    ]


# ---- documents


def test_documents_lead_to_the_first_difference_of_every_changed_task(cli: Cli) -> None:
    write_set("base", {f"t{i}": [True, True] for i in range(8)})
    write_set("worse", {f"t{i}": [i == 7, True] for i in range(8)} | {"new": [True]})
    result = cli("gate", "base", "worse", *DOCUMENTS)
    assert result.status == 1
    assert [line.split(",")[0] for line in result.err.splitlines()[-4:]] == [
        f"tracetui: wrote out.{form}" for form in ("md", "html", "xml", "json")
    ]

    page = Page(Path("out.html").read_text())
    anchors = {f"lower-{i}" for i in range(1, 8)}
    assert page.ids == anchors
    assert page.links == {f"#{anchor}" for anchor in anchors}
    assert not page.tags & {"img", "link", "iframe"}
    assert Path("out.html").read_text().count("<script") == 1, "the script of the page"
    assert "default-src 'none'" in Path("out.html").read_text()

    text = Path("out.md").read_text()
    assert text.startswith("# Regression: pass rate fell by 43.8 points (p = 0.016)\n")
    assert set(re.findall(r'<a id="([^"]+)">', text)) == anchors == set(re.findall(r"\[step 2\]\(#([^)]+)\)", text))
    assert "base (base) and worse (candidate): 8 tasks compared, 7 lower, 1 unchanged." in text
    assert "tracetui diff base/t0-0/test\\_result.json" not in text, "commands are verbatim"
    assert "tracetui diff base/t0-0/test_result.json worse/t0-0/test_result.json" in text

    saved = json.loads(Path("out.json").read_bytes())
    assert {**saved, "masked": {}} == cli("gate", "base", "worse", "--json").data | {"masked": {}}


def test_junit_fails_for_the_verdict_and_for_tasks_beyond_chance_only(cli: Cli) -> None:
    """Eight tasks lose one of two trials, which names no task; then one of them loses eight of eight."""
    write_set("base", {f"t{i}": [True] * (8 if i == 0 else 2) for i in range(8)})
    write_set("worse", {f"t{i}": [i == 7, True] for i in range(8)})
    write_set("broken", {f"t{i}": [False] * 8 if i == 0 else [True, True] for i in range(8)})
    write_set("few", {f"t{i}": [True] for i in range(3)})
    for candidate, failures, skipped in (("worse", 1, 0), ("broken", 2, 0), ("few", 0, 6)):
        verdict = cli("gate", "base", candidate, "--json").data
        cli("gate", "base", candidate, "--to", f"{candidate}.xml")
        suites = ElementTree.parse(f"{candidate}.xml").getroot()
        (suite,) = suites
        assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
        counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "skipped", "errors")}
        assert counts == {"tests": 9, "failures": failures, "skipped": skipped, "errors": 0}
        cases = [*suite.iter("testcase")]
        assert cases[0].attrib["name"] == "pass rate of all tasks"
        assert sorted(case.attrib["name"] for case in cases[1:]) == [f"t{i}" for i in range(8)]
        assert len([*suite.iter("failure")]) == failures
        assert len([*suite.iter("skipped")]) == skipped
        stated = {element.attrib["name"]: element.attrib["value"] for element in suite.iter("property")}
        assert stated["verdict"] == verdict["verdict"]
        assert float(stated["p"]) == pytest.approx(verdict["p"], rel=1e-5)
        ends = verdict["interval"]
        assert [float(stated[name]) for name in ("interval_low", "interval_high")] == pytest.approx(ends, rel=1e-5)
    _, failure = ElementTree.parse("broken.xml").getroot().iter("failure")
    assert failure.attrib["message"] == "passed 8 of 8 in the base, 0 of 8 in the candidate"
    assert failure.text is not None
    assert "first difference: step 2\nbase: " in failure.text
    _, _, lower, *_ = ElementTree.parse("worse.xml").getroot().iter("testcase")
    assert lower.findtext("system-out", "").startswith(
        "passed 2 of 2 in the base, 1 of 2 in the candidate, could be chance"
    )
    assert float(lower.attrib["time"]) == pytest.approx(5.2, abs=0.05)


def test_hostile_names_are_text_in_every_document(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    names = [*ATTACKS[:-1], "<script>alert(1)</script>", "]]>&<!--", "| a | [x](javascript:y) @user", "\ufffe\uffff"]
    for folder, passed in (("base", True), ("worse", False)):
        for i, name in enumerate(names):
            write_run(Path(folder), str(i), scores=[reward(float(passed), passed=passed)], task=name, trial="0")
    assert cli("gate", "base", "worse", *DOCUMENTS).status == 1
    suite = ElementTree.parse("out.xml").getroot()[0]
    cases = [case.attrib["name"] for case in suite.iter("testcase")]
    assert len(cases) == 1 + len(names)
    assert "<script>alert(1)</script>" in cases
    for form in ("md", "html", "xml", "json"):
        text = Path(f"out.{form}").read_text()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "<script>alert" not in Path("out.html").read_text() + Path("out.md").read_text()
    assert r"\[x\](javascript" in Path("out.md").read_text()


def test_secrets_are_masked_in_every_document(cli: Cli) -> None:
    write_set("base", {f"t{i}": [True] for i in range(8)})
    write_set("worse", {f"t{i}": [False] for i in range(8)})
    for path in Path().rglob("test_result.json"):
        text = path.read_text().replace('"t1"', f'"use {SHAPED["github"]}"')
        path.write_text(text.replace("Something else.", f"Something else: {SHAPED['aws']}"))
    cli("gate", "base", "worse", *DOCUMENTS)
    for form in ("md", "html", "xml", "json"):
        assert CANARY not in Path(f"out.{form}").read_text()
    assert "values masked" in Path("out.md").read_text()
    assert json.loads(Path("out.json").read_bytes())["masked"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out.txt", "name a file that ends in .md, .html, .xml (JUnit) or .json"),
        ("taken.md", "taken.md already exists; choose another name or pass --force"),
        ("base/out.md", "contains traces and is never written to"),
        ("nowhere/out.md", "can't be written"),
    ],
)
def test_a_document_that_cannot_be_written_is_trouble(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, target: str, message: str
) -> None:
    install(monkeypatch)
    write_scored("base", {f"t{i}": "pppp" for i in range(50)})
    Path("taken.md").write_text("mine")
    before = sorted(Path().rglob("*"))
    result = cli("gate", "base", "base", "--to", target)
    assert result.status == 2
    assert message in result.err
    assert sorted(Path().rglob("*")) == before
    assert Path("taken.md").read_text() == "mine"
    assert cli("gate", "base", "base", "--to", "taken.md", "--force").status == 0
    assert Path("taken.md").read_text().startswith("# No regression")


# ---- verbs and folders


def test_a_folder_with_the_name_of_the_command_is_opened_by_its_path(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    write_scored("gate", {"a": "pp"})
    named = cli("gate")
    assert named.status == 2
    assert "tracetui: gate is a command; `tracetui ./gate` opens the folder" in named.err.splitlines()
    assert "gate/a-0.json" in cli("./gate").text
