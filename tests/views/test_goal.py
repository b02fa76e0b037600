"""Turns of a conversation with a goal, and the panels of a run, drawn from the built-in samples."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tracetui import demo, load
from tracetui.model import Body, Run
from tracetui.views.detail.run import SameFailure, panel_rows
from tracetui.views.goal import TurnRows, first_turn, goal_sentence, has_turns
from tracetui.views.rows import Rows


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    demo.write(folder, datetime(2026, 11, 21, 10, tzinfo=UTC))
    return folder


@pytest.fixture(scope="module")
def run(samples: Path) -> Run:
    return load(samples / "penelope" / "appeal" / "test_result.json")


def bodies(run: Run) -> dict[str, Body]:
    return {step.span: run.load(run.spans[run.index[step.span]]) for step in run.steps}


def text(rows: Rows, width: int = 70) -> list[str]:
    return ["".join(piece.text for piece in rows.line(i, width)).rstrip() for i in range(len(rows))]


def test_a_turn_shows_both_sides_and_the_criteria_that_name_it(run: Run) -> None:
    assert has_turns(run)
    lines = text(TurnRows(run, bodies(run), width=70, height=40))
    assert lines[0].split() == ["1", "penelope", "▎", "My", "claim", "was", "rejected.", "Why?", "·", "3.7s"]
    assert any("target ▎ You can appeal." in line for line in lines)
    assert any("✗ HTTP 502 from target" in line for line in lines)
    assert any(line.endswith("2  3.7s") and "Until when" in line for line in lines)


def test_the_cursor_starts_at_the_first_turn_of_an_unmet_criterion(run: Run) -> None:
    assert first_turn(run) == "3"
    rows = TurnRows(run, {}, width=70, height=40)
    at = rows.index("3")
    assert at is not None
    assert rows.selectable(at)
    assert [rows.selectable(i) for i in rows.block(at)].count(True) == 1
    assert rows.index("3.1") == at  # a call is in its turn


def test_long_messages_fold_only_without_room(run: Run) -> None:
    loaded = bodies(run)
    assert not any("more lines" in line for line in text(TurnRows(run, loaded, width=28, height=200)))
    assert any("more lines" in line for line in text(TurnRows(run, loaded, width=28, height=3)))


def test_an_answer_takes_the_cells_below_the_columns_of_its_turn(run: Run) -> None:
    lines = text(TurnRows(run, bodies(run), width=70, height=40))
    assert "       target ▎ I'm sorry to hear that. Could you give me the number?" in lines


def test_the_sentence_counts_criteria_and_names_failed_turns(run: Run) -> None:
    text = "".join(piece.text for piece in goal_sentence(run))
    assert text == "1 of 3 criteria met in 5 of 8 turns · score 0.32 of 0.70 needed · error in turn 4"


def test_other_runs_have_no_turns(samples: Path) -> None:
    run = load(samples / "paprika" / "0690e0f0-e1bf-4d65-ac52-89138f446e8d.json")
    assert not has_turns(run)


def test_panels_come_before_the_facts(samples: Path) -> None:
    from tracetui.analysis.assessment import assess

    run = load(samples / "paprika" / "0690e0f0-e1bf-4d65-ac52-89138f446e8d.json")
    lines = text(panel_rows(run, width=70, assessment=assess(run, run.load))[0])
    heads = [line.split("─")[0].strip() for line in lines if "──" in line and not line.startswith((" ", "■", "policy"))]
    names = ["Context", "Tools", "Limits and loops", "Coverage", "Facts"]
    positions = [next(i for i, head in enumerate(heads) if head.startswith(name)) for name in names]
    assert positions == sorted(positions)
    assert any(line.startswith("■ search") and " 96%" in line for line in lines)


def test_panels_beside_turns_omit_empty_panels_and_tab_contents(run: Run) -> None:
    from tracetui.analysis.assessment import assess
    from tracetui.analysis.triage import groups

    (group,) = groups([run.summary])
    lines = text(panel_rows(run, width=62, assessment=assess(run, run.load), same=SameFailure(group, [run.summary]))[0])
    assert "tool                     calls  err" in lines
    assert "■ send_message_to_target     5    1" in lines
    assert not any(line.startswith(("Facts", "Same failure")) for line in lines)
