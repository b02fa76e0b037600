"""What a newcomer relies on: links lead somewhere, words exist, the lock is complete and holds no address."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

import tracetui
from tracetui.cli.parser import parser_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DEV = runpy.run_path(str(ROOT / "dev.py"), run_name="dev")
WORDS = {*DEV["WORDS"], "build", "check", "lint", "format", "lock"}


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "dev.py"), *arguments], check=False, capture_output=True, text=True
    )


def test_every_link_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))]
    assert links
    assert [(page.name, link) for page, link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_file_of_the_architecture_exists() -> None:
    """A name of a file alone is in the folder named before it in its row."""
    table = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("\n## ")[0]
    rows = [
        row.split(" | ")[1] for row in table.splitlines() if row.count(" | ") == 1 and not row.startswith("to change")
    ]
    missing, source = [], ROOT / "src" / "tracetui"
    for row in rows:
        folder = source
        for name in re.findall(r"`([\w/]+(?:\.(?:py|tcss)|/\w+))`", row):
            path = source / name if (source / name).exists() else folder / name
            missing += [] if path.exists() or "NAME" in name else [name]
            folder = path if path.is_dir() else path.parent
    assert len(rows) > 20
    assert missing == []


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"({name})" not in index} == set()


def test_help_names_every_word() -> None:
    named = set(re.findall(r"^    python3 dev\.py (\w+)", dev("help").stdout, re.MULTILINE))
    assert named == WORDS


def test_make_knows_the_same_words() -> None:
    line = re.search(r"^WORDS = (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line is not None
    assert {*line[1].split(), "run"} == WORDS


def test_an_unknown_word_is_wrong_usage() -> None:
    done = dev("tset")
    assert done.returncode == 2
    assert "tset" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_readme_begins_with_a_sentence_two_commands_and_the_picture() -> None:
    first = (ROOT / "README.md").read_text("utf-8").partition("\n\nRequires")[0]
    title, sentence, commands, picture = first.split("\n\n")
    assert (title, sentence.count(". "), commands.count("\n")) == ("# tracetui", 0, 4)
    assert re.fullmatch(r"!\[.+\]\(screenshots/demo\.gif\)", picture, re.DOTALL)


def test_the_moving_picture_takes_20_seconds_and_less_than_3_megabytes() -> None:
    path = ROOT / "screenshots" / "demo.gif"
    with Image.open(path) as picture:
        frames = [frame.info["duration"] for frame in ImageSequence.Iterator(picture)]
    assert 18_000 <= sum(frames) <= 22_000
    assert path.stat().st_size < 3_000_000


def test_the_readme_and_ci_run_the_same_tests() -> None:
    assert "python3 dev.py test" in (ROOT / "README.md").read_text("utf-8")
    assert "python3 dev.py test" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("name", ["build.txt", "dev.txt", "site.txt", "stores.txt"])
def test_the_lock_pins_everything_with_hashes_and_no_address(name: str) -> None:
    lock = (ROOT / "requirements" / name).read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", lock, flags=re.MULTILINE))
    assert all(re.match(r"\n?[\w.-]+==[\w.]+ \\\n( +--hash=sha256:[0-9a-f]{64})", entry) for entry in entries)
    assert not re.search(r"://|--index|--find-links|@ ", lock)


def test_the_lock_is_that_of_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "dev.txt").read_text("utf-8"), re.MULTILINE))
    assert {re.split(r"[<>=! ]", name)[0] for name in wanted} - pinned == set()


def test_lowest_versions_are_the_lower_bounds_of_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lowest = (ROOT / "requirements" / "lowest.txt").read_text("utf-8")
    assert lowest == DEV["lowest_versions"](project)
    pins = re.findall(r"^([\w.\[\]-]+)==[\w.]+$", lowest, re.MULTILINE)
    assert {"textual", "clickhouse-connect", "mcp"} <= {*pins}
    assert len(pins) == lowest.count("\n") - 2


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_actions_and_grant_little(path: Path) -> None:
    text = path.read_text("utf-8")
    uses = re.findall(r"uses: (\S+)(.*)", text)

    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action, _ in uses)
    assert all(re.fullmatch(r" # v[\d.]+", version) for _, version in uses)
    assert "\npermissions:\n  contents: read\n" in text  # of every job that names no others
    assert text.count("runs-on:") == text.count("timeout-minutes:")
    assert "secrets." not in text
    assert "\t" not in text
    assert all(not (len(line) - len(line.lstrip())) % 2 for line in text.splitlines())


def test_workflow_scripts_exist() -> None:
    scripts = {
        word for path in WORKFLOWS for word in re.findall(r"[\w./]+\.py\b(?!thon)|\.ci/run", path.read_text("utf-8"))
    }
    assert {name for name in scripts if not (ROOT / name).is_file()} == set()
    assert {"dev.py", "scripts/try_install.py", ".ci/run"} <= scripts


def test_container_copies_what_the_wheel_needs_and_drops_root() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = {name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for name in line.split()}

    assert {name for name in copied if not (ROOT / name).exists() or f"!{name}" not in ignored} == set()
    assert {"pyproject.toml", "README.md", "LICENSE", "src", "share"} <= copied
    assert text.rindex("\nUSER 1000\n") > text.rindex("\nRUN ")


def test_committed_version_is_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/tracetui/__init__.py"


def test_mcp_registry_metadata_starts_the_server_of_this_version() -> None:
    server = json.loads((ROOT / "server.json").read_text("utf-8"))
    (package,) = server["packages"]
    assert server["version"] == package["version"] == tracetui.__version__
    assert len(server["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert (package["registryType"], package["identifier"], package["transport"]) == (
        "pypi",
        "tracetui",
        {"type": "stdio"},
    )
    command, traces = package["packageArguments"]
    assert command["value"] == "mcp"
    assert parser_of("mcp").parse_args(["x"]).paths == ["x"]
    assert traces["isRequired"]


def test_hooks_are_commands_that_exist() -> None:
    entries = re.findall(
        r"^  entry: tracetui (\w+)(.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"), re.MULTILINE
    )
    assert [command for command, _ in entries] == ["triage", "audit"]
    for command, options in entries:
        parser_of(command).parse_args([*options.split(), "traces", "--fail-on", "error"])


def test_site_navigation_has_every_page_once() -> None:
    pages = re.findall(r'"([\w-]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8"))
    assert sorted(pages) == sorted([*(page.name for page in (ROOT / "docs").glob("*.md")), "CHANGELOG.md"])


def test_site_check_finds_missing_targets_and_requests(tmp_path: Path) -> None:
    check = runpy.run_path(str(ROOT / "scripts" / "build_site.py"), run_name="site")["check"]
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text('<h2 id="here">x</h2>')
    (tmp_path / "index.html").write_text(
        '<a href="page/#here">x</a><a href="page/#gone">x</a><a href="lost/">x</a><a href="https://example.org">x</a>'
        '<img src="https://example.org/a.png"><link rel="stylesheet" href="//example.org/a.css">'
    )
    (tmp_path / "style.css").write_text("a { background: url(https://example.org/b.png) }")

    assert sorted(check(tmp_path)) == [
        "index.html: lost/ doesn't exist",
        "index.html: page/#gone has no such heading",
        "index.html: requests //example.org/a.css",
        "index.html: requests https://example.org/a.png",
        "style.css: requests https://example.org/b.png",
    ]
