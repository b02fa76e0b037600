"""A site has a page for every run, links that lead somewhere, a limit, and no secrets; it is never among traces."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.canaries import CANARY, SHAPED
from tests.cli.run import Cli, write_traces
from tests.views.test_masking import secret_trace
from tracetui.export import site as sites


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line in a folder that holds ``traces``, with no directory of the user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_traces(tmp_path / "traces")
    return Cli(capsysbinary)


def pages_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_every_link_leads_somewhere_within_the_site(cli: Cli) -> None:
    listed = cli("ls", "traces", "--json").data["runs"]
    result = cli("export", "traces", "--site", "out/site")
    assert result.status == 0
    site = Path("out/site")
    pages = pages_of(site)
    assert f"wrote {len(pages)} pages to out/site" in result.err
    assert len([name for name in pages if name.startswith("runs/")]) == len(listed)
    assert any(name.startswith("diffs/") for name in pages)
    for name, page in pages.items():
        for link in re.findall('href="([^"]*)"', page):
            path, _, anchor = link.partition("#")
            target = (site / name).parent / unquote(path) if path else site / name
            assert ":" not in link
            assert target.resolve().is_relative_to(site.resolve())
            there = target.read_text()
            assert not anchor or f'id="{anchor}"' in there, f"{name}: {link}"
    for run in listed:
        assert any(run["address"].rpartition("/")[2] in page for page in pages.values())


def test_runs_and_their_causes_lead_to_each_other(cli: Cli) -> None:
    cli("export", "traces", "--site", "site")
    pages = pages_of(Path("site"))
    linked = {name for name, page in pages.items() if name.startswith("runs/") and "triage.html#" in page}
    assert linked
    for name in linked:
        assert f'href="{name}"' in pages["triage.html"]
        assert f'href="{name}"' in pages["index.html"]


def test_a_web_server_can_read_a_site(cli: Cli) -> None:
    cli("export", "traces", "--site", "site")
    assert {path.stat().st_mode & 0o777 for path in Path("site").rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in (Path("site"), *Path("site").glob("*/")) if path.is_dir()} == {
        0o755
    }


def test_a_site_is_never_among_traces_nor_over_other_files(cli: Cli, tmp_path: Path) -> None:
    before = sorted((tmp_path / "traces").rglob("*"))
    (tmp_path / "link").symlink_to("traces")
    for place in ("traces/site", "traces", "link/site", "traces/../traces/site"):
        result = cli("export", "traces", "--site", place)
        assert (result.status, "never written to" in result.err) == (2, True), place
    assert sorted((tmp_path / "traces").rglob("*")) == before
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine").write_text("mine")
    assert cli("export", "traces", "--site", "site").status == 2
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == ["mine"]
    assert cli("export", "traces", "--site", "site", "--force").status == 0
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "runs").symlink_to(tmp_path / "traces")
    assert cli("export", "traces", "--site", "inner", "--force").status == 2
    assert sorted((tmp_path / "traces").rglob("*")) == before


@pytest.mark.parametrize("options", [("--to", "x.html"), ("--as", "md"), ("--full",), ("--tasks",)])
def test_a_site_rejects_the_options_of_a_document(cli: Cli, options: tuple[str, ...]) -> None:
    assert cli("export", "traces", "--site", "site", *options).status == 2
    assert not Path("site").exists()


def test_the_index_counts_runs_beyond_the_limit(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "MAX_PAGES", 3)
    total = len(cli("ls", "traces", "--json").data["runs"])
    cli("export", "traces", "--site", "few")
    pages = pages_of(Path("few"))
    written = [name for name in pages if name.startswith("runs/")]
    assert len(written) == 3
    assert all("triage.html#" in pages[name] for name in written), "failed runs come first"
    assert f"3 of {total} runs have pages (limit), failed runs first." in pages["index.html"]


def test_a_full_site_counts_its_omitted_pages(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("export", "traces", "--site", "all")
    full = pages_of(Path("all"))
    monkeypatch.setattr(sites, "MAX_BYTES", 100_000)
    cli("export", "traces", "--site", "small")
    small = pages_of(Path("small"))
    assert small.keys() == full.keys(), "no link leads nowhere"
    stubs = [name for name, page in small.items() if "Left out: the site has reached its limit" in page]
    assert stubs
    assert f"{len(stubs)} pages were left out" in small["index.html"]


def test_no_secret_is_in_a_site(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    secret_trace(tmp_path / "secrets")
    named = f"session-{SHAPED['aws']}"
    lines = f'{{"kind":"session_start","session_id":"s9","cwd":"/srv","agent":"{named}"}}\n'
    (tmp_path / "secrets" / "other.ccpa-trace.jsonl").write_text(lines)
    assert cli("export", "secrets", "--site", "site").status == 0
    pages = pages_of(Path("site"))
    assert all(CANARY not in page and CANARY not in name for name, page in pages.items())
    assert cli("export", "secrets", "--site", "exact", "--no-redact").status == 0
    assert any(CANARY in page for page in pages_of(Path("exact")).values())
    assert "Not redacted" in pages_of(Path("exact"))["index.html"]


def test_tasks_are_a_document(cli: Cli) -> None:
    page = cli("export", "traces", "--tasks", "--as", "html").text
    assert "<h1>Tasks of traces</h1>" in page
    assert 'href="#task-1"' in page
    assert 'id="task-1"' in page
    assert cli("export", "traces", "--tasks").text.startswith("# Tasks of traces")
    assert cli("export", "traces", "--tasks", "--as", "json").data["schema"] == "tracetui/tasks/1"


SESSION = b"""\
{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","timestamp":"2026-03-01T09:00:00.000Z",\
"message":{"role":"user","content":"hello"}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","timestamp":"2026-03-01T09:00:05.000Z",\
"message":{"id":"msg_1","role":"assistant","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"hi"}]}}
"""


def test_exports_and_sites_have_the_state_that_the_list_has(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name, lines in (("answered", SESSION), ("asked", SESSION.partition(b"\n")[0] + b"\n")):
        (folder / f"{name}.jsonl").write_bytes(lines)
        os.utime(folder / f"{name}.jsonl", (1_772_355_605, 1_772_355_605))
    states = {run["address"]: run["state"] for run in cli("ls", "sessions", "--json").data["runs"]}
    assert sorted(states.values()) == ["done", "interrupted"]
    cli("export", "sessions", "--site", "site")
    pages = pages_of(Path("site"))
    for address, state in states.items():
        assert re.search(rf"state\W+{state}\b", cli("export", address).text)
        assert re.search(rf"<dd>{state}\b", cli("export", address, "--as", "html").text)
        assert any(state in page for name, page in pages.items() if name.startswith("runs/"))
        assert re.search(rf">\S {state}<", pages["index.html"])  # no status beside it: none was recorded
