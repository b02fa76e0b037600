"""The triage by keys, on the built-in samples: from forty failed runs to their causes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.formats.test_harbor import recorded, trial
from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tracetui.model import RunRef
from tracetui.store.judgement import Verdict
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import CAUSE, FAILURE, QUEUE
from tracetui.ui.screens.diff import DiffScreen
from tracetui.ui.screens.triage import TriageScreen
from tracetui.views.triage import Member

NIGHT = "TimeoutError"


async def triage(app: TraceApp, pilot: Pilot[int]) -> TriageScreen:
    """The triage, opened by its key."""
    await press(pilot, "T")
    await until(pilot, lambda: isinstance(app.screen, TriageScreen) and bool(app.screen.queue.groups), what="T")
    return the_triage(app)


def the_triage(app: TraceApp) -> TriageScreen:
    assert isinstance(app.screen, TriageScreen)
    return app.screen


def lines(folder: Path) -> list[dict[str, object]]:
    """What the file of verdicts says."""
    return [json.loads(line) for line in (folder / "tracetui" / "verdicts.jsonl").read_text().splitlines()]


async def go_to_type(screen: TriageScreen, pilot: Pilot[int], kind: str) -> None:
    """Put the cursor on the signature of an error type."""
    group = next(cause for cause in screen.queue.groups if cause.texts.type.exact == kind)
    screen.queue.move_to_key(group.digest)
    await settle(pilot)


async def test_failures_are_grouped_by_cause_and_a_cause_shows_its_failure(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        night = next(group for group in screen.queue.groups if group.texts.type.exact == NIGHT)
        assert len(night.runs) == 3
        assert night.texts.name.exact == "search"
        waste = [group.wasted_ms or 0.0 for group in screen.queue.groups]
        assert waste == sorted(waste, reverse=True)
        failed = sum(len(group.runs) for group in screen.queue.groups)
        assert f"0 of {len(screen.queue.groups)} causes reviewed" in text_of(app)
        assert f"{failed} runs" in text_of(app)

        await go_to_type(screen, pilot, NIGHT)
        await until(pilot, lambda: screen.failure.run is not None and NIGHT in text_of(app), what="the failure")
        text = text_of(app)
        assert "<time> = 30s" in text
        assert "3 runs of researcher" in text
        assert "time lost 1m52s" in text
        run = screen.failure.run
        assert run is not None
        assert screen.failure.span is not None
        assert run.summary.first_error is not None
        assert screen.failure.span.id == run.summary.first_error.span


async def test_a_run_under_the_cursor_is_requested_once(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        requested: list[RunRef] = []
        request = app.engine.open

        def open_run(ref: RunRef) -> None:
            requested.append(ref)
            request(ref)

        monkeypatch.setattr(app.engine, "open", open_run)
        await go_to_type(screen, pilot, NIGHT)
        ref = screen.queue.run
        assert ref is not None
        await until(pilot, lambda: app.store.opened(ref) is not None and not app.links.is_busy, what="its links")
        await press(pilot, "v", "k", "u")
        assert requested.count(ref) == 1


async def test_the_cause_is_drawn_for_its_width(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        cause = (await triage(app, pilot)).cause
        for width in (24, 60):
            cause.styles.width = width
            await settle(pilot)
            assert ("Shared by these runs" in text_of(app)) is (width == 60)


async def test_a_verdict_holds_for_the_signature_and_the_next_one_comes(
    opened: Opener, samples: Path, own_state: Path
) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        first, second = screen.queue.groups[:2]
        await press(pilot, "v")
        assert "then" in text_of(app)
        assert "flaky" in text_of(app)
        await press(pilot, "k")
        assert screen.queue.group == second
        assert screen.judgement_of(first).verdict is Verdict.KNOWN
        assert f"{first.id} (" in text_of(app)
        assert "marked known" in text_of(app)
        await press(pilot, "full_stop")
        assert screen.judgement_of(second).verdict is Verdict.KNOWN
        said = lines(own_state)
        assert [(entry["do"], entry["verdict"], entry["signature"]) for entry in said] == [
            ("verdict", "known", first.digest),
            ("verdict", "known", second.digest),
        ]
        await press(pilot, "u")
        assert screen.judgement_of(second).verdict is None
        assert "Undone" in text_of(app)


async def test_every_verdict_has_its_key(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        first = screen.queue.groups[0]
        for key, verdict in {"r": "real", "f": "flaky", "k": "known", "i": "ignore"}.items():
            screen.queue.move_to_key(first.digest)
            await press(pilot, "v", key)
            assert screen.judgement_of(first).verdict == verdict


async def test_escape_gives_a_begun_verdict_up(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await press(pilot, "v", "escape")
        assert app.screen is screen
        assert " then" not in text_of(app).splitlines()[1]
        await press(pilot, "k")  # moves, and judges nothing
        assert screen.judgement_of(screen.queue.groups[0]).verdict is None


async def test_the_footer_names_unfold_and_undo_only_where_they_have_an_effect(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(200, 60)) as (app, pilot):
        screen = await triage(app, pilot)

        def hints() -> str:
            return text_of(app).splitlines()[-1]

        assert "l unfold" in hints()
        assert "u undo" not in hints()
        await press(pilot, "l")
        assert "l unfold" not in hints(), "it is open"
        await press(pilot, "j")
        assert isinstance(screen.queue.item, Member)
        assert "l unfold" not in hints(), "a run has nothing below it"
        await press(pilot, "v", "r")
        assert "u undo" in hints()
        await press(pilot, "u")
        assert "u undo" not in hints()
        await press(pilot, "2")
        assert "l unfold" not in hints()


async def test_runs_of_a_judged_signature_come_judged_and_their_own_verdict_wins(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await go_to_type(screen, pilot, NIGHT)
        night = screen.queue.group
        assert night is not None
        await press(pilot, "v", "f")
        judgements = [screen.judgement_of(ref) for ref in night.runs]
        assert {(judgement.verdict, judgement.source) for judgement in judgements} == {(Verdict.FLAKY, "cause")}
        await go_to_type(screen, pilot, NIGHT)
        await press(pilot, "l", "j")
        item = screen.queue.item
        assert isinstance(item, Member)
        await press(pilot, "v", "r")
        assert (screen.judgement_of(item.run).verdict, screen.judgement_of(item.run).source) == (Verdict.REAL, "run")
        assert screen.judgement_of(night).verdict is Verdict.FLAKY


async def test_after_the_verdict_on_a_run_comes_the_next_run(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await go_to_type(screen, pilot, NIGHT)
        night = screen.queue.group
        assert night is not None
        await press(pilot, "enter", "j")
        for ref in night.runs:
            item = screen.queue.item
            assert isinstance(item, Member)
            assert item.run == ref
            await press(pilot, "v", "r")
        assert screen.queue.group != night


async def test_notes_and_tags(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        first = screen.queue.groups[0]
        await press(pilot, "a", *"ask", "enter")
        assert screen.judgement_of(first).note == "ask"
        await press(pilot, "t", *"slow", "space", *"night", "enter")
        assert screen.judgement_of(first).tags == ("night", "slow")
        assert "ask" in text_of(app)
        await press(pilot, "t", *["backspace"] * 5, "enter")
        assert screen.judgement_of(first).tags == ("night",)
        await press(pilot, "a", *"x", "escape")
        assert screen.judgement_of(first).note == "ask"


async def test_a_run_is_visited_and_leaving_it_leads_back(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await go_to_type(screen, pilot, NIGHT)
        await press(pilot, "l", "j", "j")
        item = screen.queue.item
        assert isinstance(item, Member)
        await press(pilot, "enter")
        await until(pilot, lambda: app.screen is app.main and app.main.steps.run is not None, what="the run")
        assert app.main.state.ref == item.run
        assert app.main.steps.span is not None
        assert app.main.steps.span.name == "search"
        await press(pilot, "escape")
        reopened = the_triage(app)
        assert reopened.queue.item == item
        await press(pilot, "escape")
        assert app.screen is app.main
        assert not app.main.state.level


async def test_the_walk_goes_through_all_failed_runs(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        order = [ref for group in screen.queue.groups for ref in group.runs]
        seen = []
        for _ in order:
            await press(pilot, "e")
            seen.append(screen.queue.run)
        assert seen == order
        await press(pilot, "e")
        assert "no more failed runs" in text_of(app)
        await press(pilot, "E")
        assert screen.queue.run == order[-2]


async def test_a_cause_compares_its_first_run_that_has_an_original(
    opened: Opener, samples: Path, tmp_path: Path
) -> None:
    timeouts = ("8be0a99b", "b07c55fd", "0690e0f0")
    for path in (samples / "paprika").rglob("*.json"):
        if path.name.startswith((*timeouts, "d20b6eb4")):
            record = json.loads(path.read_bytes())
            record["replay_of"] = {"b07c55fd": "d20b6eb4-7f9a-4c5f-b4ea-6f948da1eb99"}.get(record["record_id"][:8])
            (tmp_path / path.name).write_text(json.dumps(record))
    async with opened(tmp_path) as (app, pilot):
        screen = await triage(app, pilot)
        await go_to_type(screen, pilot, NIGHT)
        group, relations = screen.queue.group, app.store.relations
        assert group is not None
        assert len(group.runs) == 3
        assert screen.queue.run is not None
        assert relations.original(screen.queue.run) is None
        paired = [ref for ref in group.runs if relations.original(ref) is not None]
        await press(pilot, "D")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen), what="the comparison")
        diff = app.screen
        assert isinstance(diff, DiffScreen)
        assert [diff.request.b] == paired
        assert diff.request.a == relations.original(paired[0])
        await press(pilot, "escape")
        assert app.screen is screen


async def test_the_filter_of_the_list_is_set_in_the_triage_too(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        number = len(screen.queue.groups)
        await press(pilot, "f", *"error", "colon", *NIGHT, "enter")
        await until(pilot, lambda: len(screen.queue.groups) < number, what="fewer causes")
        assert {group.texts.type.exact for group in screen.queue.groups} == {NIGHT}
        await press(pilot, "escape")
        assert app.screen is app.main
        assert app.main.state.arrangement.query == f"error:{NIGHT}"
        await press(pilot, "T", "f", *"nothing", "enter")
        await until(pilot, lambda: "No failed or ungraded runs match" in text_of(app), what="no causes")


async def test_panes_and_zoom(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        for key, name in (("2", CAUSE), ("3", FAILURE), ("tab", QUEUE), ("shift+tab", FAILURE), ("1", QUEUE)):
            await press(pilot, key)
            assert screen.pane == name
        await press(pilot, "z")
        assert not screen.cause.is_on_screen
        await press(pilot, "escape")
        assert screen.cause.is_on_screen


async def test_on_a_narrow_screen_the_queue_stands_over_the_cause_or_the_failure(opened: Opener, samples: Path) -> None:
    async with opened(samples, size=(80, 24)) as (app, pilot):
        screen = await triage(app, pilot)
        assert screen.queue.is_on_screen
        assert screen.cause.is_on_screen
        assert not screen.failure.is_on_screen
        await press(pilot, "3")
        assert screen.failure.is_on_screen
        assert screen.queue.is_on_screen


async def test_verdicts_are_in_the_list_and_outlive_the_program(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await go_to_type(screen, pilot, NIGHT)
        await press(pilot, "v", "k", "escape")
        assert "known" in text_of(app)
    async with opened(samples) as (app, pilot):
        assert "known" in text_of(app)
        await press(pilot, "f", *"verdict:known", "enter")
        errors = [app.store.runs[ref].first_error for ref in app.main.runs.refs()]
        types = {error.type for error in errors if error is not None}
        assert types == {NIGHT}
        assert len(app.main.runs.refs()) == 3


async def test_a_verdict_in_the_list_goes_on_to_the_next_failed_run(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        before = app.main.state.ref
        assert before is not None
        await press(pilot, "v", "r")
        assert app.main.state.ref != before
        assert app.main.state.ref is not None
        assert app.store.runs[app.main.state.ref].status.value == "error"
        assert app.verdicts.judgement(app.store.runs[before]).verdict is Verdict.REAL


async def test_a_mark_is_set_and_visited(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "enter", "j")
        marked, span = app.main.state.ref, app.main.steps.span
        assert span is not None
        await press(pilot, "m", "b", "escape", "G")
        assert app.main.state.ref != marked
        await press(pilot, "apostrophe", "b")
        await until(pilot, lambda: app.main.steps.span is not None and app.main.steps.span.id == span.id, what="mark")
        assert app.main.state.ref == marked
        await press(pilot, "escape", "apostrophe", "z")
        assert "no mark z" in text_of(app)


async def test_verdicts_of_another_instance_appear(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot), opened(samples) as (other, other_pilot):
        screen = await triage(app, pilot)
        first = screen.queue.groups[0]
        await triage(other, other_pilot)
        await press(other_pilot, "v", "i")
        decided = f"1 of {len(screen.queue.groups)} causes reviewed"
        await until(pilot, lambda: decided in text_of(app), what="the other's verdict")
        assert screen.judgement_of(first).verdict is Verdict.IGNORE


async def test_the_first_verdict_of_another_instance_appears_in_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot), opened(samples) as (_, other_pilot):
        assert app.verdicts.is_empty
        await press(other_pilot, "v", "i")
        await until(pilot, lambda: re.search(r"\bignore\b", text_of(app)) is not None, what="the other's verdict")


async def test_nothing_failed(opened: Opener, tmp_path: Path, samples: Path) -> None:
    passed = next(run for run in (samples / "paprika").glob("*.json") if '"error"' not in run.read_text())
    (tmp_path / passed.name).write_bytes(passed.read_bytes())
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "T")
        assert "No failed runs" in text_of(app)
        await press(pilot, "v", "r", "enter", "e", "a", "escape")
        assert isinstance(app.screen, TriageScreen | type(app.main))


async def test_an_interrupted_contrast_is_restarted(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "T")
        screen, surveys = app.screen, app.surveys
        assert isinstance(screen, TriageScreen)
        await until(pilot, lambda: any(len(group.runs) > 1 for group in screen.queue.groups), what="a signature")
        repeated = next(group for group in screen.queue.groups if len(group.runs) > 1)
        screen.queue.move_to_key(repeated.digest)
        await until(pilot, lambda: surveys.has_contrast(repeated.runs), what="all that they share")
        assert surveys.progress(repeated.runs) == ""

        surveys._compared.clear()  # as if somebody had left before
        surveys.stop()
        assert "comparing" in surveys.progress(repeated.runs)
        screen.show_cause()
        await until(pilot, lambda: surveys.has_contrast(repeated.runs), what="all that they share, found out anew")


async def test_the_row_of_a_run_has_its_tags_and_its_note(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await press(pilot, "T", "l", "j", "a", *"ask Ana", "enter", "t", *"slow", "enter")
        assert "#slow  ask Ana" in text_of(app)


# ---- merging, splitting, and verdicts on several


async def test_causes_are_merged_split_and_joined_by_keys(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        first, second, *others = screen.queue.groups
        await press(pilot, "space", "j", "=")
        merged = next(group for group in screen.queue.groups if group.digest == second.digest)
        assert len(screen.queue.groups) == len(others) + 1
        assert {*merged.runs} == {*first.runs, *second.runs}
        assert f"1 merged into {second.id}" in line(app, 1)
        screen.queue.move_to_key(second.digest)
        await press(pilot, "|")
        assert len(screen.queue.groups) == len(others) + 2
        await press(pilot, "u", "u")
        assert len(screen.queue.groups) == len(others) + 2

        group = next(cause for cause in screen.queue.groups if len(cause.runs) == 2 and "<n>" in cause.title.exact)
        screen.queue.move_to_key(group.digest)
        await press(pilot, "|")
        assert line(app, 1).split() == ["split", group.id, "by:", "1"]
        assert "1 <n> (2 values)" in text_of(app)
        await press(pilot, "enter")
        parts = [cause for cause in screen.queue.groups if cause.split_of == group.digest]
        assert sorted(ref for part in parts for ref in part.runs) == sorted(group.runs)
        assert len(parts) == 2
        screen.queue.move_to_key(parts[0].digest)
        await press(pilot, "|")
        assert group in screen.queue.groups


async def test_a_verdict_is_given_to_all_marked_causes_and_undone_at_once(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await press(pilot, "space", "j", "space", "v", "k")
        assert "2 rows marked known" in line(app, 1)
        assert [screen.judgement_of(group).verdict for group in screen.queue.groups[:3]] == ["known", "known", None]
        assert screen.state.marked == ()
        await press(pilot, "u")
        assert [screen.judgement_of(group).verdict for group in screen.queue.groups[:3]] == [None, None, None]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_row_of_a_task_shows_all_numbers(opened: Opener, tmp_path: Path, size: tuple[int, int]) -> None:
    for number, task in enumerate(("airline__changes-of-bookings-without-a-reason-00017",) * 2):
        rewards = {"verifier_result": {"rewards": {"reward": 0.0}}}
        trial(tmp_path / f"{number}", {**recorded(), "task_name": task, "trial_name": f"{task}__{number}", **rewards})
    async with opened(tmp_path, size=size) as (app, pilot):
        screen = await triage(app, pilot)
        await press(pilot, "l", "j")
        group, row = (screen.queue.strip_at(y).text[:-1].rstrip() for y in (2, screen.queue.position + 2))
        assert "  0 of 2 passed" in row
        assert row.split()[-3:] == group.split()[-3:]  # runs, lost and last


async def test_a_verdict_on_wrong_answers_goes_to_their_tasks(opened: Opener, tmp_path: Path) -> None:
    for number, task in enumerate(("x", "x", "y")):
        rewards = {"verifier_result": {"rewards": {"reward": 0.0}}}
        trial(tmp_path / f"{number}", {**recorded(), "task_name": task, "trial_name": f"{task}__{number}", **rewards})
    async with opened(tmp_path) as (app, pilot):
        screen = await triage(app, pilot)
        (heading,) = screen.queue.groups
        x, y = heading.tasks
        assert "wrong answers · reward" in text_of(app)
        await press(pilot, "v", "r")
        assert "Mark 2 tasks real?" in text_of(app)
        await press(pilot, "escape")
        assert screen.judgement_of(x).verdict is None
        await press(pilot, "v", "r", "enter")
        assert "2 tasks marked real" in line(app, 1)
        await press(pilot, "u", "l", "j")
        assert "0 of 2 passed" in text_of(app)
        await press(pilot, "v", "f")
        assert screen.judgement_of(x).verdict == "flaky"
        assert screen.queue.cursor == y.digest
        screen.queue.move_to_key(heading.digest)
        await press(pilot, "v", "k")
        assert (screen.judgement_of(x).verdict, screen.judgement_of(y).verdict) == ("flaky", "known")
        assert "1 task marked known" in line(app, 1)
        screen.queue.move_to_key(x.digest)
        await press(pilot, "l", "j")
        assert screen.queue.run == x.runs[0]
        await press(pilot, "h")
        assert screen.queue.cursor == x.digest


async def test_the_next_ungraded_run_is_reached_whatever_is_folded(opened: Opener, tmp_path: Path) -> None:
    for name, stdout in (("wrong", "1 failed in 0.1s"), ("lost", "t.sh: line 1: uvx: command not found")):
        result = recorded() | {"trial_name": name, "verifier_result": {"rewards": {"reward": 0.0}}}
        folder = trial(tmp_path / name, result).parent.parent
        (folder / "verifier").mkdir()
        (folder / "verifier" / "test-stdout.txt").write_text(stdout)
    async with opened(tmp_path) as (app, pilot):
        screen = await triage(app, pilot)
        assert "1 of 2 runs failed  ⊖ 1 ungraded" in text_of(app)
        assert "1 failure by the agent  ·  1 run not graded" in text_of(app)
        await press(pilot, "]", "g")
        assert isinstance(screen.queue.item, Member)
        assert screen.queue.item.run.path.endswith("lost/agent/trajectory.json")
        assert "ungraded run 1 of 1" in text_of(app)
        await press(pilot, "]", "g")
        assert "no more ungraded runs" in text_of(app)
