"""A reader who sees masked text only learns nothing about a secret by asking for it, character by character."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.claude_sessions import bash, write_session
from tests.cli.run import HERE, Cli
from tests.cli.test_mcp import in_process  # noqa: F401 - fixture
from tests.export.test_document import cli  # noqa: F401 - fixture
from tests.ui.conftest import Opener, opened, until  # noqa: F401 - fixture
from tracetui.cli.mcp import Commands
from tracetui.sources import local
from tracetui.store import query

SECRET = "Zx9Qw7Vk2Hj5"
KEYED = ("", "prompt:", "error:", "cmd:", "cause:", "name:", "touched:", "result:", "task:")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Runs with a secret in prompt, command, result, name and error, and one with an unreadable record."""
    folder = tmp_path / "traces"
    steps = [bash(f"mysql --password={SECRET} -e x > /tmp/password={SECRET}", f"password={SECRET}")]
    session = write_session(folder / "one.jsonl", steps)
    session.write_text(session.read_text().replace('"Go"', f'"Log in with password={SECRET} now"') + "{broken\n")
    stuck = (HERE / "traces" / "paprika" / "stuck-9.json").read_text()
    assert "HTTP 503" in stuck
    stuck = stuck.replace("HTTP 503", f"password={SECRET} HTTP 503").replace('"planner"', f'"token={SECRET}"')
    (folder / "stuck.json").write_text(stuck)
    (folder / "notes.txt").write_text(f"password={SECRET}")
    return folder


def answers(cli: Cli, guess: str, folder: Path, key: str) -> list[tuple[int, str, str]]:  # noqa: F811
    """Status, output and messages of all commands with a query or a pattern, without the guess itself."""
    asked = f'--query={key}"{guess}"'
    ways: list[tuple[str, ...]] = [("ls", asked, "--json", "--redact"), ("tasks", asked, "--json", "--redact")]
    ways += [(command, asked, "--json") for command in ("files", "audit", "stats")]
    ways += [("grep", asked, "--json", "--redact", "now")]
    if not key:
        ways += [("grep", "--json", "--redact", *options, guess) for options in ((), ("-i",), ("-e",), ("--names",))]
    results = [cli(*way, str(folder)) for way in ways]
    return [
        (result.status, result.text.replace(guess, "GUESS"), result.err.replace(guess, "GUESS")) for result in results
    ]


@pytest.fixture
def confined(traces: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The traces, for a process that may read nothing else."""
    monkeypatch.setattr(local, "_allowed", lambda: (str(traces),))
    return traces


@pytest.mark.parametrize("key", KEYED)
def test_no_answer_depends_on_a_character_of_a_secret(cli: Cli, confined: Path, key: str) -> None:  # noqa: F811
    for length in (3, len(SECRET)):
        right, wrong = SECRET[:length], SECRET[: length - 1] + "#"
        assert answers(cli, right, confined, key) == answers(cli, wrong, confined, key), (key, right)


def test_the_owner_finds_runs_by_exact_text(cli: Cli, traces: Path) -> None:  # noqa: F811
    for key in ("", "prompt:", "cmd:"):
        assert len(cli("ls", "--json", f"--query={key}{SECRET}", str(traces)).data["runs"]) >= 1, key
    assert cli("ls", "--json", f"--query=error:{SECRET}", str(traces)).data["runs"]


@pytest.mark.usefixtures("in_process")
async def test_calls_of_an_agent_read_no_character(traces: Path) -> None:
    masked, exact = (Commands([str(traces)], exact=exact) for exact in (False, True))

    async def runs(commands: Commands, query: str) -> int:
        answer = await commands.answer("ls", [f"--query={query}"], [str(traces)], ["runs"], 0, 10_000)
        return len(answer["data"]["runs"])

    counts = {await runs(masked, f'"password={SECRET[:2]}{letter}"') for letter in "9aZ#"}
    assert counts == {0}
    assert await runs(exact, f'"password={SECRET[:3]}"')


async def test_filters_and_completions_in_a_browser_match_masked_text(
    confined: Path,
    opened: Opener,  # noqa: F811
) -> None:
    async with opened(confined) as (app, pilot):
        runs = [*app.store.runs.values()]
        for word in (SECRET, f"prompt:{SECRET}", f"error:{SECRET}", f"name:{SECRET}", f'agent:"token={SECRET}"'):
            assert query.for_runs(word).select(runs), word
            assert query.for_runs(word, app.query_context()).select(runs) == [], word
        offers = query.complete(f"name:token={SECRET[:3]}", 13, query.RUN_KEYS, runs, app.query_context())
        assert offers == []
        assert query.complete(f"name:token={SECRET[:3]}", 13, query.RUN_KEYS, runs)
        for run in runs:
            app.main.enter(run.ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            steps = app.main.steps
            steps.filter(SECRET[:4], 0.0)
            assert steps.span_count == 0
