"""What a newcomer relies on: links lead somewhere, words exist, the lock is complete and holds no address."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DEV = runpy.run_path(str(ROOT / "dev.py"), run_name="dev")
WORDS = {*DEV["WORDS"], "check", "lint", "format", "lock"}


def dev(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "dev.py"), *words], check=False, capture_output=True, text=True)


def test_every_link_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))]
    assert links
    assert [(page.name, link) for page, link in links if "://" not in link and not (page.parent / link).exists()] == []


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


def test_the_readme_and_ci_run_the_same_tests() -> None:
    assert "python3 dev.py test" in (ROOT / "README.md").read_text("utf-8")
    assert "python3 dev.py test" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_lock_pins_everything_with_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", lock, flags=re.MULTILINE))
    assert all(re.match(r"\n?[\w.-]+==[\w.]+ \\\n( +--hash=sha256:[0-9a-f]{64})", entry) for entry in entries)
    assert not re.search(r"://|--index|--find-links|@ ", lock)


def test_the_lock_is_that_of_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "dev.txt").read_text("utf-8"), re.MULTILINE))
    assert {re.split(r"[<>=! ]", name)[0] for name in wanted} - pinned == set()
