"""Rules for every source file: no markup from traces, no dangerous names, Textual only in `ui`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from tests.rules.lint import forbidden, leaving, markup
from tests.shared import ROOT
from tracetui.formats.registry import BUILT_IN

SOURCE = ROOT / "src" / "tracetui"
FILES = sorted(SOURCE.rglob("*.py"))
UI = [path for path in FILES if path.is_relative_to(SOURCE / "ui")]
OPENING = ("sources/", "state/", "demo/", "testing/")
"""Folders whose modules open files: traces, the user's own state, and what they write themselves."""


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_the_rules_look_at_something() -> None:
    assert len(FILES) > 50
    assert UI


def test_no_foreign_text_reaches_textual_as_markup() -> None:
    assert findings(markup, UI) == []


def test_the_import_contract_names_every_format() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    named = next(contract for contract in contracts if contract["name"] == "only formats names formats")
    packages = {".".join(target.partition(":")[0].split(".")[:3]) for target in BUILT_IN.values()}

    assert named["forbidden_modules"] == sorted(packages)


def test_screens_are_closed_in_one_place() -> None:
    problems = findings(leaving, UI)

    assert [line.partition(":")[0] for line in problems] == ["ui/base_app.py"], problems


def test_no_dangerous_names() -> None:
    opening = [path for path in FILES if relative(path).startswith(OPENING)]

    assert findings(partial(forbidden, may_open=True), opening) == []
    assert findings(forbidden, [path for path in FILES if path not in opening]) == []


def findings(rule: Callable[[str], Iterable[str]], paths: Iterable[Path]) -> list[str]:
    """What a rule finds in files, each as ``path:line: reason``."""
    return [f"{relative(path)}:{problem}" for path in paths for problem in rule(path.read_text(encoding="utf-8"))]


def test_nothing_but_the_ui_imports_textual() -> None:
    headless = [
        ".".join(("tracetui", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in FILES
        if not relative(path).startswith("ui/") and path.name != "__main__.py"
    ]
    code = "import sys\nfor name in sys.argv[1:]: __import__(name)\nprint('textual' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *headless], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    "bad",
    [
        "Static(run.name)",
        "Static(f'run {name}')",
        "textual.widgets.Label('run ' + name)",
        "Static(name if ok else 'nothing')",
        "Static(str(name))",
        "self.app.notify(error.reason)",
        "self.notify(f'{path}', markup=True)",
        "pane.border_title = run.name",
        "pane.border_subtitle: str = f'{count}'",
        "widget.tooltip = clean(text)",
        "Option(label, id='x')",
        "Button(label=name)",
        "table.add_row(*cells)",
        "Hit(1.0, name, call)",
        "DiscoveryHit(Content(name), call, help=words)",
        "Tab(run.id)",
    ],
)
def test_the_lint_finds_markup(bad: str) -> None:
    assert len(list(markup(bad))) == 1


@pytest.mark.parametrize(
    "good",
    [
        "Static('ready')",
        "Static(Content(clean(name)))",
        "Static(Text(name))",
        "Static(name, markup=False)",
        "self.notify(clean(reason), markup=False)",
        "pane.border_title = Content(name)",
        "pane.border_title = 'Runs'",
        "self.title = name",
        "Hit(score, Content(name), partial(f, x), help=escape(words))",
        "store.update(runs)",
    ],
)
def test_the_lint_lets_safe_text_pass(good: str) -> None:
    assert list(markup(good)) == []


@pytest.mark.parametrize(
    "bad",
    [
        "import pickle",
        "from pickle import loads",
        "import webbrowser as w",
        "eval(text)",
        "exec(code)",
        "text.splitlines()",
        "subprocess.run(command, shell=True)",
        "subprocess.run(command, shell=flag)",
        "Markdown(text)",
        "open(path)",
        "Content.from_markup(text)",
        "time.sleep(1)",
    ],
)
def test_the_lint_finds_dangerous_names(bad: str) -> None:
    assert len(list(forbidden(bad))) == 1


def test_the_lint_lets_the_rest_pass() -> None:
    assert list(forbidden("source.open(path)\nos.open(path, flags)\nsubprocess.run(words, shell=False)")) == []
    assert list(forbidden("open(path)", may_open=True)) == []
