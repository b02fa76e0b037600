"""`show` with links of steps and origins of values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.desk import LOOKUP, write_desk, write_trial

FORMATS = Path(__file__).parents[1] / "formats"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capsysbinary)


def test_show_has_the_links_of_a_run(cli: Cli, tmp_path: Path) -> None:
    run = str(write_desk(tmp_path))
    links = cli("show", run, "--json").data["links"]
    assert [(link["kind"], link["from"]["span"], link["quote"]) for link in links] == [
        ("named", "4.1", "W2417"),
        ("changed", "4.1", "W2417"),
        ("no_origin", "5.1", "77"),
    ]
    assert links[1]["to"] == [{"run": None, "span": "3.1", "part": "input", "quote": "W2417"}]
    assert cli("show", f"{run}/links", "--json").data == links
    assert cli("show", f"{run}/4.1/links", "--json").data == links[:2]
    assert cli("show", f"{run}/links/0/quote", "--json").data == "W2417"


def test_passed_trials_are_read_from_the_trace_dir(cli: Cli, tmp_path: Path) -> None:
    run = str(write_desk(tmp_path))
    (link,) = cli("show", f"{run}/3.1/links", "--json", "--trace-dir", str(tmp_path)).data
    assert (link["kind"], link["quote"], link["match"]) == ("trials", "card_481", "another argument")
    assert {end["run"] for end in link["to"]} == {
        str(tmp_path / f"change-order__{i}" / "agent" / "trajectory.json") for i in (1, 2)
    }


def test_a_passed_run_is_not_compared_with_trials(cli: Cli, tmp_path: Path) -> None:
    write_desk(tmp_path)
    run = str(tmp_path / "change-order__1" / "agent" / "trajectory.json")
    assert cli("show", f"{run}/links", "--json", "--trace-dir", str(tmp_path)).data == []


def test_origin_of_a_value(cli: Cli, tmp_path: Path) -> None:
    run = str(write_desk(tmp_path))
    origin = cli("show", f"{run}/4.1", "--origin", "1250", "--json").data
    assert origin["link"]["match"] == "same number"
    assert [(end["span"], end["quote"]) for end in origin["places"]] == [("1", "1,250.00"), ("4.1", "1250")]
    assert cli("show", f"{run}/4.1", "--origin", "1250").text.startswith(
        "1250 first in [1] user (same number: 1,250.00)"
    )


def test_origin_needs_a_step(cli: Cli, tmp_path: Path) -> None:
    run = str(write_desk(tmp_path))
    result = cli("show", run, "--origin", "1250")
    assert result.status == 2
    assert "ADDRESS/STEP" in result.err


def test_quotes_of_links_are_masked(cli: Cli, tmp_path: Path) -> None:
    taken = ("update_key", {"key": SECRET, "id": "K-2417"}, "done")
    repeated = ("update_key", {"key": SECRET, "id": "K-2417"}, f"Error: {SECRET} of K-2417 is in use")
    run = str(write_trial(tmp_path, "t__0", (LOOKUP, taken, repeated), passed=False))
    assert SECRET in cli("show", f"{run}/links", "--json").text
    masked = cli("show", f"{run}/links", "--json", "--redact")
    assert SECRET not in masked.text
    assert {link["quote"] for link in masked.data} == {"K-2417"}


def test_reports_and_pages_have_the_links_between_a_failure_in_a_sub_agent_and_its_call(cli: Cli) -> None:
    run = str(next(FORMATS.glob("claude_code/agents/input/projects/-home-ada-elm/e1*.jsonl")))
    links = cli("show", f"{run}/links", "--json").data
    (link,) = (link for link in links if link["kind"] == "sub_agent")
    called = link["to"][0]["span"]
    assert cli("show", f"{run}/{called}/links", "--json").data == [link]
    assert "called by \\[1\\] Agent" in cli("export", run).text
    page = cli("export", run, "--as", "html").text
    assert "called by [1] Agent" in page
    (section,) = re.findall(r'id="links">.*?</table>', page, re.DOTALL)
    anchors = re.findall(r'href="#([^"]+)"', section)
    assert anchors
    assert all(page.count(f'id="{anchor}"') == 1 for anchor in anchors)
