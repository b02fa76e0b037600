"""No view of a run of any format shows a secret that is known only by what stands around it; the ways out do."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests import hostile
from tests.canaries import CANARY
from tests.cli.run import Cli
from tests.cli.test_mcp import in_process  # noqa: F401 - fixture
from tests.cli.test_secrets import events_of as follow
from tests.export.test_document import FORMS, cli  # noqa: F401 - fixture
from tests.shared import SEARCHES
from tests.ui.conftest import Opener, opened, press, settle, text_of, until  # noqa: F401 - fixture
from tracetui.analysis.tasks import as_trials
from tracetui.cli.mcp import Commands
from tracetui.cli.tail import _write_json, _write_text
from tracetui.export.json import Lines
from tracetui.model import RunSummary
from tracetui.redact import MASK, Redactor
from tracetui.ui.app import TraceApp

TEXTS = (
    f" login failed: password={CANARY}a1 (try 3) ",
    f' rejected [{{"name":"X-Api-Key","value":"{CANARY}b2"}}] by the proxy ',
    f' {{"error": {{"message": "bad key", "api_key": "{CANARY}c3", "code": "E401"}}}} ',
    f' rejected {{"p\\u0061ssword": "{CANARY}d4", "error": "no"}} ',
    f" invalid settings\n- name: DB_PASSWORD\n  value: {CANARY}e5\n",
    f" curl -u me:{CANARY}f6 https://db.example/ ",
    f' {{"detail": "{{\\"client_secret\\": \\"{CANARY}g7\\"}}"}} ',
)
FORMATS = ("ccpa", "claude-code", "hypergraph", "latticeflow", "otlp", "paprika", "penelope", "codex", "inspect")

EVERY = 1 if SEARCHES else 3
"""Of so many cases of each format, one is written."""
RUNS = 6 if SEARCHES else 3
"""Runs of each format of which commands print something."""
FILES, STEPS = (3, 4) if SEARCHES else (2, 2)
"""How many files of each format are opened, and how many steps of each."""
FOLDER_WAYS: tuple[tuple[str, ...], ...] = (
    *((command,) for command in ("ls", "triage", "tasks", "stats", "audit", "files")),
    *((command, "--json", "--redact") for command in ("ls", "triage")),
    ("grep", "-e", "[a-z]{3}", "-m", "5"),
    ("grep", "--json", "--redact", "-e", "[a-z]{3}"),
    *(("export", "--as", form) for form in FORMS),
    ("export", "--site", "site"),
)
EACH = 1 if SEARCHES else 4
"""Of so many commands for folders, each format is tried with one."""
SCREENS = {"MainScreen", "TriageScreen", "TasksScreen", "HitsScreen", "RunTreeScreen"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of each format with secrets in all texts for people, and in the names and values of all mappings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "ATTACKS", TEXTS)
        written = hostile.write_cases(tmp_path_factory.mktemp("secrets"), FORMATS, every=EVERY)
    return {name: folders[0].parent for name, folders in written.items()}


@pytest.fixture(params=FORMATS)
def traces(request: pytest.FixtureRequest, cases: dict[str, Path]) -> Path:
    return cases[request.param]


def addresses(cli: Cli, folder: Path) -> list[str]:  # noqa: F811
    return [run["address"] for run in cli("ls", str(folder), "--json").data["runs"]]


@pytest.mark.search
def test_no_command_prints_a_secret(cli: Cli, traces: Path, tmp_path: Path) -> None:  # noqa: F811
    """Each format is tried with every command for runs, and in turn with some of those for folders."""
    runs = addresses(cli, traces)
    ways = [(*way, str(traces)) for way in FOLDER_WAYS[FORMATS.index(traces.name) % EACH :: EACH]]
    ways += [("export", run, "--as", form) for run, form in zip(runs[:RUNS], cycle(("md", "json")), strict=False)]
    for run in runs[:RUNS]:
        ways += [("show", run), ("context", run)]
    for run in runs[:RUNS:2]:
        ways += [("show", run, "--json", "--redact"), ("show", run, "--raw", "--redact")]
        ways += [("context", run, "--json", "--redact")]
    comparisons = (("diff",), ("diff", "--json", "--redact"), ("export", "--as", "html", "--diff"))
    ways += [(*command, runs[0], run) for run, command in zip(cycle(runs[1:4]), comparisons, strict=False)]
    for way in ways:
        result = cli(*way)
        assert result.status == 0 or "--site" not in way, result.err
        assert CANARY not in result.text + result.err, (way, excerpt_of(result.text + result.err))
    for path in (tmp_path / "site").rglob("*.html"):
        assert CANARY not in path.read_text(), path


def excerpt_of(text: str) -> str:
    place = text.index(CANARY)
    return text[max(0, place - 200) : place + 40]


def test_the_ways_out_show_every_text(cli: Cli, traces: Path) -> None:  # noqa: F811
    runs = addresses(cli, traces)
    for command, option in (("show", "--json"), ("show", "--raw"), ("export", "--no-redact")):
        assert any(CANARY in cli(command, run, option).text for run in runs), (command, option)


@pytest.mark.usefixtures("in_process")
async def test_agents_see_no_secret_but_exactly(cases: dict[str, Path]) -> None:
    folder = str(cases["otlp"])
    masked, exact = (Commands([folder], exact=exact) for exact in (False, True))
    run = (await masked.answer("ls", [], [folder], ["runs"], 0, 100_000))["data"]["runs"][0]["address"]
    calls = (("ls", [folder]), ("triage", [folder]), ("tasks", [folder]), ("show", [run]), ("diff", [run, run]))
    for command, arguments in (*calls, ("grep", ["login failed", folder])):
        answer = json.dumps(await masked.answer(command, [], arguments, [], 0, 1_000_000))
        assert CANARY not in answer, (command, excerpt_of(answer))
    assert "login failed" in answer
    assert CANARY in json.dumps(await exact.answer("show", [], [run], [], 0, 1_000_000))


async def test_tail_prints_no_secret(cases: dict[str, Path], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ways = {"exact": _write_json(None), "masked": _write_json(Redactor()), "text": _write_text(Lines(), Redactor())}
    printed = dict.fromkeys(ways, "")
    for name in ("ccpa", "claude-code", "otlp"):
        for event in follow(cases[name]):
            for way, write in ways.items():
                write(event)
                printed[way] += capsysbinary.readouterr().out.decode()
    assert CANARY in printed["exact"]
    assert CANARY not in printed["masked"], excerpt_of(printed["masked"])
    assert CANARY not in printed["text"], excerpt_of(printed["text"])


class Seen:
    """Presses keys in an app, and collects the text of each screen and each copy."""

    def __init__(self, app: TraceApp, pilot: Pilot[int], monkeypatch: pytest.MonkeyPatch) -> None:
        self._app, self._pilot = app, pilot
        self.copied: list[str] = []
        self.screens: dict[str, set[str]] = {}
        """Texts by the class of the screen."""
        monkeypatch.setattr(app, "copy", self.copied.append)

    async def see(self, *keys: str) -> None:
        for key in keys:
            await press(self._pilot, key)
            self.screens.setdefault(type(self._app.screen).__name__, set()).add(text_of(self._app))

    async def leave(self) -> None:
        await press(self._pilot, *["escape"] * 3, "home")

    def check(self) -> None:
        leaks = [excerpt_of(text) for texts in self.screens.values() for text in texts if CANARY in text]
        assert not leaks
        assert self.copied
        assert not [text for text in self.copied if CANARY in text]
        assert any(MASK in text for text in self.screens["MainScreen"])


@pytest.mark.search
@pytest.mark.parametrize("name", FORMATS)
async def test_no_view_of_a_run_shows_or_copies_a_secret(
    name: str,
    cases: dict[str, Path],
    opened: Opener,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(cases[name], size=(160, 40)) as (app, pilot):
        seen = Seen(app, pilot, monkeypatch)
        see = seen.see
        await see("w")
        for ref in [*{ref.path: ref for ref in app.store.runs}.values()][:FILES]:  # of each file one
            app.main.enter(ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            await see("t", "z", "R", "t", "y", "y")
            for _ in range(min(STEPS, len(app.main.steps.rows))):
                for tab in app.main.detail.tabs:
                    app.main.detail.choose(tab)
                    await see("w")
                app.main.steps.action_move(1)
            await press(pilot, "3")
            await see("j", "y", "y", "G", "y", "y")
            await seen.leave()
        seen.check()


@pytest.mark.search
async def test_no_view_of_many_runs_shows_or_copies_a_secret(
    cases: dict[str, Path],
    opened: Opener,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runs of all formats are in one app, whose screens are long enough for most of them."""
    folder = cases[FORMATS[0]].parent
    assert {path.parent for path in cases.values()} == {folder}
    async with opened(folder, size=(160, 200)) as (app, pilot):
        assert {ref.format for ref in app.store.runs} >= {*FORMATS} - {"inspect"}
        seen = Seen(app, pilot, monkeypatch)
        see, leave = seen.see, seen.leave
        await see("T", "enter", "j", "y", "y", "2", "j", "y", "y", "3", "j", "y", "y")
        await leave()
        await see("M", "enter", "j", "y", "y")
        await leave()
        for screen in "AHiCL":
            await see(screen, "j", "y", "y")
            await leave()
        await see("ampersand", *"login", "enter", "j", "enter", "y", "y")
        await leave()
        await see("space", "j", "space", "d", "j", "enter", "j", "y", "y")
        await leave()
        by_format: dict[str, list[RunSummary]] = {run.ref.format: [] for run in app.store.runs.values()}
        for run in app.store.runs.values():
            by_format[run.ref.format].append(run)
        app.show_run_tree(as_trials([run for runs in by_format.values() for run in runs[:2]]), title=TEXTS[0])
        await pilot.pause()
        await settle(pilot)
        await see("j", "y", "y", "j", "y", "y")
        seen.check()
        assert seen.screens.keys() >= SCREENS, seen.screens.keys()
