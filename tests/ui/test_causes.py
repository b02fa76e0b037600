"""The same causes with the same counts in the header, the sentence after `e`, the list's groups and the triage."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.formats.test_harbor import CASES, put, recorded, trial
from tests.night import Night
from tests.ui.conftest import NOW, Opener, line, press, settle, text_of, until
from tests.ui.test_triage import triage
from tracetui.analysis.triage import CAUSE_CHOICES, Group
from tracetui.masking import one_line
from tracetui.store.judgement import Judgement
from tracetui.store.sidecar import Sidecar
from tracetui.ui.app import TraceApp
from tracetui.ui.screens import triage as triage_screen
from tracetui.ui.screens.main import MainScreen
from tracetui.ui.services import causes
from tracetui.ui.widgets import line_view
from tracetui.views.list.runs import RunRows


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """The samples, a night of failures in three formats, and wrong answers."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "night").mkdir()
    Night(folder / "night").fill(24, 6)
    shutil.copytree(samples, folder / "samples")
    for number, reward in enumerate((0.0, 0.0, 1.0)):
        task = {"task_name": "flights", "trial_name": f"flights__{number}"}
        result = {**recorded(), **task, "verifier_result": {"rewards": {"reward": reward}}}
        trial(folder / "trials" / f"{number}", result)
    return folder


def listed_causes(app: TraceApp) -> list[tuple[str, int]]:
    """The group headings of the list."""
    rows = app.main.runs.rows
    assert isinstance(rows, RunRows)
    items = [rows.item(i) for i in range(len(rows))]
    return [item for item in items if isinstance(item, tuple) and item[0] not in ("not failed", "unreadable")]


async def group_by_cause(app: TraceApp, pilot: Pilot[int]) -> None:
    while app.main.state.arrangement.group != "cause":
        await press(pilot, "b")


async def check_walk(app: TraceApp, pilot: Pilot[int], causes: Sequence[Group]) -> None:
    """`e` names the cause of every run that it opens, with its number of runs."""
    await press(pilot, "e")
    seen = set()
    for _ in range(3):
        ref = app.main.state.ref
        (group,) = [cause for cause in causes if ref in cause.runs]
        assert f"{group.id} {len(group.runs)}×" in line(app, 1)
        seen.add(ref)
        await press(pilot, "escape", "j", "e")
    assert len(seen) == 3


async def test_header_walk_list_and_triage_show_the_same_causes(opened: Opener, mixed: Path) -> None:
    async with opened(mixed, size=(160, 40)) as (app, pilot):
        sentence, status = line(app, 1), line(app, 0)
        screen = await triage(app, pilot)
        causes = [*screen.queue.groups]
        assert f"{len(causes)} causes" in sentence
        common = max(causes, key=lambda group: len(group.runs))
        match = re.search(r"most common: (.*) \((\d+) runs\)", sentence)
        assert match is not None
        title = match[1].rstrip("…")
        assert (title, int(match[2])) == (one_line(common.title.exact, 200)[: len(title)], len(common.runs))
        failed = re.search(r"(\d+) of (\d+) failed", sentence)
        assert failed is not None
        assert f"{failed[1]} of {failed[2]} runs failed" in line(app, 0)
        assert f"{failed[2]} runs" in status
        await press(pilot, "escape")
        await group_by_cause(app, pilot)
        assert listed_causes(app) == [(f"{cause.id} {cause.title.exact}", len(cause.runs)) for cause in causes]
        await check_walk(app, pilot, causes)


async def test_a_merge_changes_all_of_them(opened: Opener, mixed: Path) -> None:
    async with opened(mixed, size=(160, 40)) as (app, pilot):
        screen = await triage(app, pilot)
        first, second = [group for group in screen.queue.groups if not group.tasks][:2]
        screen.queue.move_to_key(second.digest)
        await press(pilot, "space")
        screen.queue.move_to_key(first.digest)
        await press(pilot, "=")
        causes = [*screen.queue.groups]
        merged = next(group for group in causes if group.digest == first.digest)
        assert len(merged.runs) == len(first.runs) + len(second.runs)
        await press(pilot, "escape")
        await settle(pilot)
        assert f"{len(causes)} causes" in line(app, 1)
        await group_by_cause(app, pilot)
        assert listed_causes(app) == [(f"{group.id} {group.title.exact}", len(group.runs)) for group in causes]


async def test_many_runs_are_grouped_in_a_thread(opened: Opener, mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(mixed) as (app, pilot):
        screen = await triage(app, pilot)
        digests = [group.digest for group in screen.queue.groups]
        await press(pilot, "escape")
    monkeypatch.setattr(causes, "MANY", 1)
    async with opened(mixed) as (app, pilot):
        assert isinstance(app.screen, MainScreen)
        screen = await triage(app, pilot)
        assert [group.digest for group in screen.queue.groups] == digests
        await press(pilot, "v", "k")
        assert "1 of" in text_of(app)


async def test_many_causes_are_sorted_in_a_thread(
    opened: Opener, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triage_screen, "MANY", 1)
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        runs = [len(group.runs) for group in screen.queue.groups]
        await press(pilot, "comma", "semicolon")
        await until(pilot, lambda: [len(group.runs) for group in screen.queue.groups] == sorted(runs), what="the order")
        await press(pilot, "semicolon", "comma", "b")
        await until(pilot, lambda: "by kind" in text_of(app) and bool(screen.queue.order.places), what="kinds")
        assert "errors in execute_tool" in text_of(app)


async def test_a_key_looks_only_at_judged_causes(opened: Opener, mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    of_causes = Sidecar.of_causes

    def counted(sidecar: Sidecar, *digests: str | None) -> Judgement:
        asked.extend(filter(None, digests))
        return of_causes(sidecar, *digests)

    async with opened(mixed, size=(120, 10)) as (app, pilot):
        screen = await triage(app, pilot)
        out_of_view = {group.digest for group in [*screen.queue.groups][8:]}
        assert out_of_view
        monkeypatch.setattr(line_view, "MAX_TICKS", 0)  # the minimap shows causes that are out of view
        monkeypatch.setattr(Sidecar, "of_causes", counted)
        await press(pilot, "v", "k", "k", "j")
        assert f"1 of {len(screen.queue.groups)} causes reviewed" in text_of(app)
        await press(pilot, "u", "k")
        assert f"0 of {len(screen.queue.groups)} causes reviewed" in text_of(app)
        assert asked
        assert out_of_view.isdisjoint(asked)


async def test_causes_sort_and_group_by_the_keys_of_the_list(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        await press(pilot, "comma")
        runs = [len(group.runs) for group in screen.queue.groups]
        assert runs == sorted(runs, reverse=True)
        assert "most runs first" in text_of(app)
        await press(pilot, "semicolon")
        assert [len(group.runs) for group in screen.queue.groups] == sorted(runs)
        await press(pilot, "b")
        assert "by kind" in text_of(app)
        assert "errors in execute_tool" in text_of(app)
        await press(pilot, "b", "b", "b", "v", "k")
        assert screen.state.arrangement.group == "verdict"
        assert "to review" in text_of(app)
        await press(pilot, "escape", "T")
        await until(pilot, lambda: bool(screen.queue.groups), what="T")
        assert "by verdict" in text_of(app)


async def test_the_title_has_every_sort_order_of_causes(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        await triage(app, pilot)
        titles = []
        for _ in CAUSE_CHOICES.sorts:
            await press(pilot, "comma")
            titles.append(next(re.finditer(r"Causes (most|latest|newest|by) [a-z ]+", text_of(app)))[0].strip())
        assert len({*titles}) == len(CAUSE_CHOICES.sorts)
        assert titles[-2:] == ["Causes by id", "Causes most time lost first"]


async def test_new_causes_are_marked_and_can_be_seen_alone(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        every = [*screen.queue.groups]
        new = [group for group in every if group.is_new(NOW.timestamp())]
        assert 0 < len(new) < len(every)
        assert f"{len(new)} new since yesterday" in text_of(app)
        await press(pilot, "exclamation_mark")
        assert [*screen.queue.groups] == new
        assert f"{len(new)}/{len(every)}" in text_of(app)
        assert f"0 of {len(every)} causes reviewed" in text_of(app)
        await press(pilot, "escape")
        assert [*screen.queue.groups] == every


async def test_wrong_answers_with_several_verdicts_are_reviewed(opened: Opener, tmp_path: Path) -> None:
    for number, task in enumerate(("x", "y")):
        named = {"task_name": task, "trial_name": f"{task}__{number}", "verifier_result": {"rewards": {"reward": 0.0}}}
        trial(tmp_path / f"{number}", {**recorded(), **named})
    async with opened(tmp_path) as (app, pilot):
        screen = await triage(app, pilot)
        await press(pilot, "enter", "j", "v", "r")
        assert "all reviewed" not in text_of(app)
        await press(pilot, "v", "k")
        assert "all reviewed" in text_of(app)
        (heading,) = screen.queue.groups
        assert {screen.judgement_of(task).verdict for task in heading.tasks} == {"real", "known"}
        await press(pilot, "k")
        assert "1 of 1 cause reviewed" in text_of(app)


async def test_the_failed_checks_of_a_task_are_read_in_full(opened: Opener, tmp_path: Path) -> None:
    for number in range(2):
        shutil.copytree(CASES / "checks" / "input", tmp_path / f"{number}")
        result = {**recorded(), "trial_name": f"prune-roses__{number}", "id": f"trial-{number}"}
        put(tmp_path / f"{number}" / "result.json", result)
    async with opened(tmp_path) as (app, pilot):
        screen = await triage(app, pilot)
        (heading,) = screen.queue.groups
        (task,) = heading.tasks
        assert "test_roses_have_three_buds" in task.reasons[0]
        await press(pilot, "l", "j")
        cause_text = " ".join(screen.cause.rows.plain(row) for row in range(len(screen.cause.rows)))
        assert " ".join(cause_text.split()).startswith(f"{task.name} 0 of 2 passed {one_line(task.reasons[0], 600)}")
        await press(pilot, "k")
        assert task.name not in screen.cause.rows.plain(0)


async def test_a_filter_leaves_each_cause_as_old_as_it_is(opened: Opener, samples: Path) -> None:
    async with opened(samples) as (app, pilot):
        screen = await triage(app, pilot)
        night = next(group for group in screen.queue.groups if len(group.runs) == 3)
        await press(pilot, "f", *"id", "colon", *app.store.runs[night.runs[0]].id[:8], "enter")
        await until(pilot, lambda: [group.runs for group in screen.queue.groups] == [night.runs[:1]], what="a run")
        (filtered,) = screen.queue.groups
        assert filtered.starts == night.starts[-1:]
        assert filtered.appeared == night.appeared == night.starts[0] < filtered.starts[0]
