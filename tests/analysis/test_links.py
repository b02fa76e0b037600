"""Links between steps: what they say, and what they don't."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.desk import DATED, FAILED, INVENTED, LOOKUP, MODIFY, OTHER_CARD, PASSED, REPEATED, Call, write_trial
from tests.shared import SHARED
from tracetui.analysis.links import (
    MAX_LINKS,
    Kind,
    Part,
    StepLink,
    is_changing,
    is_refused,
    links_at,
    links_of,
    origin_of,
    passed_trials,
    text_at,
    trial_links,
)
from tracetui.analysis.run_tree import run_tree
from tracetui.analysis.tasks import as_trials
from tracetui.analysis.writings import Match, Writings, value_in
from tracetui.cli.reading import listing_of, source_of
from tracetui.live.load import read_run
from tracetui.model import Body, Operation, Run, Span, Status
from tracetui.views.links import link_text

FORMATS = Path(__file__).parents[1] / "formats"


def read(path: Path) -> Run:
    return next(runs_in(path))


def trial(folder: Path, *calls: Call, name: str = "run__0", passed: bool = False, task: str = "t") -> Run:
    return read(write_trial(folder, name, calls, passed=passed, task=task))


def of_kind(links: list[StepLink], kind: Kind) -> list[StepLink]:
    return [link for link in links if link.kind is kind]


# ---- failed and refused calls


def test_a_refused_call_names_its_argument_and_the_call_that_changed_it(tmp_path: Path) -> None:
    links = links_of(trial(tmp_path, LOOKUP, MODIFY, REPEATED))
    (named,), (changed,) = of_kind(links, Kind.NAMED), of_kind(links, Kind.CHANGED)
    assert (named.source.span, named.source.quote, named.targets[0].part) == ("4.1", "W2417", Part.OUTPUT)
    assert (changed.source.span, changed.targets[0].span, changed.targets[0].quote) == ("4.1", "3.1", "W2417")


def test_a_call_that_was_not_refused_has_no_such_link(tmp_path: Path) -> None:
    links = links_of(trial(tmp_path, LOOKUP, MODIFY, MODIFY))
    assert not of_kind(links, Kind.CHANGED)
    assert not of_kind(links, Kind.NAMED)


def test_a_refused_change_changed_nothing(tmp_path: Path) -> None:
    assert not of_kind(links_of(trial(tmp_path, LOOKUP, REPEATED, REPEATED)), Kind.CHANGED)


@pytest.mark.parametrize(
    ("output", "refused"),
    [
        ("Error: no seats", True),
        ({"error": "no seats"}, True),
        (["", "", {"Failed": 1}], True),
        ({"trip": "Error: no seats"}, False),
        ("no error", False),
        (None, False),
    ],
)
def test_a_refused_answer_begins_with_its_word(output: Any, refused: bool) -> None:
    span = Span(id="1", name="book_trip", operation=Operation.EXECUTE_TOOL, status=Status.OK)
    assert is_refused(span, Body(output=output)) is refused


def test_a_read_changes_nothing(tmp_path: Path) -> None:
    assert not of_kind(links_of(trial(tmp_path, LOOKUP, LOOKUP, REPEATED)), Kind.CHANGED)


def test_created_id_counts_only_if_the_answer_names_it(tmp_path: Path) -> None:
    booked = ("book_trip", {"user_id": "mia_3668", "card": "card_481"}, "done")
    silent = ("book_trip", {"user_id": "mia_3668", "card": "card_481"}, "Error: no seats")
    naming = ("book_trip", {"user_id": "mia_3668", "card": "card_481"}, "Error: card_481 not found")
    assert not of_kind(links_of(trial(tmp_path / "a", booked, silent)), Kind.CHANGED)
    (changed,) = of_kind(links_of(trial(tmp_path / "b", booked, naming)), Kind.CHANGED)
    assert changed.source.quote == "card_481"


@pytest.mark.parametrize("name", ["modify_items", "updateOrder", "mcp__shop__cancel_order", "Edit", "apply_patch"])
def test_names_of_tools_that_change(name: str) -> None:
    assert is_changing(name)


@pytest.mark.parametrize("name", ["get_order", "settings_of", "search", "Read", "addressbook", ""])
def test_names_of_tools_that_change_nothing(name: str) -> None:
    assert not is_changing(name)


# ---- numbers without origin


def test_a_number_in_no_earlier_text_has_no_origin(tmp_path: Path) -> None:
    (link,) = of_kind(links_of(trial(tmp_path, *FAILED)), Kind.NO_ORIGIN)
    assert (link.source.span, link.source.quote, link.targets) == ("5.1", "77", ())


def test_sums_and_other_writings_have_an_origin(tmp_path: Path) -> None:
    paid = ("set_payment", {"sum": 255, "difference": 49, "budget": 1250}, "done")
    assert not of_kind(links_of(trial(tmp_path, LOOKUP, paid)), Kind.NO_ORIGIN)


# ---- the origin of a value


def test_the_origin_of_a_value_is_its_first_appearance(tmp_path: Path) -> None:
    origin = origin_of(trial(tmp_path, *FAILED), "4.1", "card_481")
    assert (origin.first.kind, origin.first.match) == (Kind.ORIGIN, Match.EXACT)
    assert [end.span for end in origin.places] == ["2.1", "3.1", "4.1"]
    assert origin.first.targets == origin.places[:1]


def test_the_origin_is_in_another_writing(tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED)
    first = [origin_of(run, span, value).first for span, value in (("3.1", "W2417"), ("4.1", "1250"), ("6.1", DAY))]
    assert [(link.match, link.targets[0].span, link.targets[0].quote) for link in first] == [
        (Match.ID, "1", "W-2417"),
        (Match.NUMBER, "1", "1,250.00"),
        (Match.DAY, "1", "May 20th"),
    ]


DAY = "2026-05-20"


def test_a_sum_leads_to_both_numbers(tmp_path: Path) -> None:
    first = origin_of(trial(tmp_path, LOOKUP, OTHER_CARD), "3.1", "255").first
    assert first.match is Match.SUM
    assert {end.quote for end in first.targets} == {"152", "103"}


def test_a_difference_leads_to_both_numbers(tmp_path: Path) -> None:
    first = origin_of(trial(tmp_path, LOOKUP, ("set_fee", {"fee": 49}, "done")), "3.1", "49").first
    assert first.match is Match.DIFFERENCE
    assert [end.quote for end in first.targets] == ["152", "103"]


def test_two_sums_in_one_text_are_no_origin(tmp_path: Path) -> None:
    prices: Call = ("get_prices", {}, "[10, 40, 20, 30]")
    first = origin_of(trial(tmp_path, prices, ("set_fee", {"fee": 50}, "done")), "3.1", "50").first
    assert (first.kind, first.match, first.targets) == (Kind.NO_ORIGIN, Match.NONE, ())


def test_later_texts_are_no_origin(tmp_path: Path) -> None:
    origin = origin_of(trial(tmp_path, LOOKUP, INVENTED, ("get_fee", {}, "77")), "3.1", "77")
    assert origin.first.kind is Kind.NO_ORIGIN
    assert [end.span for end in origin.places] == ["3.1", "4.1"]


def test_origin_lists_the_texts_that_were_not_searched(tmp_path: Path) -> None:
    from tracetui.model.masked import masked
    from tracetui.redact import Redactor

    secret: Call = ("get_key", {}, "key: sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    run = masked(trial(tmp_path, secret, INVENTED), Redactor())
    assert "1 text with masked secrets" in origin_of(run, "3.1", "77").hidden


# ---- writings


@pytest.mark.parametrize(
    ("value", "text", "match"),
    [
        ("1250", "costs $1,250.00 in all", Match.NUMBER),
        ("1250", "12500 or 1250.5 or 01250 or x1250", None),
        ("255", "255.0", Match.NUMBER),
        ("2024-05-20", "on 20 May 2024", Match.DATE),
        ("2024-05-20", "05/20/2024", Match.DATE),
        ("2024-05-20", "the 20th of May", Match.DAY),
        ("2024-05-20", "2024-05-21", None),
        ("May 20, 2024", "20240520", Match.DATE),
        ("QX7LKB", "qx7-lkb", Match.ID),
        ("#W123", "W123", Match.ID),
        ("QX7LKB", "QX7LKBZ", None),
        ("/app/a.py", "in /app/a.py: error", Match.EXACT),
        ("word", "WORD", None),
        ("", "anything", None),
    ],
)
def test_a_value_matches_its_writings(value: str, text: str, match: Match | None) -> None:
    place = Writings(value).find(text)
    assert (None if place is None else place.match) == match
    assert place is None or text[place.start : place.start + len(place.quote)] == place.quote


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("QX7LKB", "QX7LKB"),
        ("Your order W2417 is late", "W2417"),
        ("arrives May 20, 2024 at noon", "May 20, 2024"),
        ("no value here at all", None),
        ("  ", None),
    ],
)
def test_the_value_of_a_row(text: str, value: str | None) -> None:
    assert value_in(text) == value


# ---- trials


def test_a_failed_trial_links_to_what_all_passed_trials_did(tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED, name="t__0")
    passed = [trial(tmp_path, *PASSED, name=f"t__{i}", passed=True) for i in (1, 2)]
    (link,) = trial_links(run, passed)
    assert (link.source.span, link.source.quote, link.match) == ("3.1", "card_481", Match.ARGUMENT)
    assert [(end.run, end.quote) for end in link.targets] == [(run.summary.ref, "card_377") for run in passed]


def test_trials_are_compared_as_in_their_run_tree(tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED, name="t__0")
    passed = [trial(tmp_path, *PASSED, name=f"t__{i}", passed=True) for i in (1, 2)]
    runs = {trial_run.summary.ref: trial_run for trial_run in (run, *passed)}
    tree = run_tree(as_trials(run.summary for run in runs.values()), runs.get)
    (link,) = trial_links(run, passed)
    own = [step for branch in tree.path(0) if branch.runs == (0,) for (step,) in branch.steps]
    assert run.index[link.source.span] in own
    fork = tree.first_fork
    assert fork is not None
    other = next(side.branch for side in fork.sides if 0 not in side.branch.runs)
    assert [passed[0].index[end.span] for end in link.targets] == list(other.steps[0])


def test_a_call_that_all_passed_trials_made_and_this_run_never(tmp_path: Path) -> None:
    run = trial(tmp_path, LOOKUP, DATED, name="t__0")
    passed = [trial(tmp_path, *PASSED, name=f"t__{i}", passed=True) for i in (1, 2)]
    (link,) = trial_links(run, passed)
    assert (link.source.quote, link.targets[0].quote, link.match) == ("set_date", "modify_items", Match.CALL)


def test_calls_of_only_some_passed_trials_make_no_link(tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED, name="t__0")
    passed = [trial(tmp_path, *calls, name=f"t__{i}", passed=True) for i, calls in ((1, PASSED), (2, (LOOKUP, DATED)))]
    assert trial_links(run, passed) == []


def test_one_passed_trial_is_not_enough(tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED, name="t__0")
    passed = trial(tmp_path, *PASSED, name="t__1", passed=True)
    assert trial_links(run, [passed]) == []
    assert passed_trials(run.summary, [run.summary, passed.summary]) == []


def test_trials_are_those_of_the_same_task_that_passed(tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED, name="t__0")
    same = [trial(tmp_path, *PASSED, name=f"t__{i}", passed=True).summary for i in (1, 2)]
    failed = trial(tmp_path, *PASSED, name="t__3").summary
    other = trial(tmp_path, *PASSED, name="o__1", passed=True, task="other").summary
    assert passed_trials(run.summary, [run.summary, *same, failed, other]) == same
    assert passed_trials(same[0], [run.summary, *same]) == []


# ---- sub-agents


@pytest.mark.parametrize(
    ("folder", "call"),
    [
        ("claude_code/agents", "Agent"),
        ("claude_code/plain", "Agent"),
        ("codex/threads", "spawn_agent"),
        ("inspect/document", "tide"),
        ("otlp/openai_agents", "Botanist"),
    ],
)
def test_an_error_in_a_sub_agent_links_to_the_call_in_its_parent(folder: str, call: str) -> None:
    links = [
        (run, link) for run in runs_in(FORMATS / folder / "input") for link in of_kind(links_of(run), Kind.SUB_AGENT)
    ]
    assert call in {link.targets[0].quote for _, link in links}
    for run, link in links:
        inside, parent = run.index[link.source.span], run.index[link.targets[0].span]
        assert parent < inside < parent + run.sizes[parent]
        assert link in links_at([link], link.targets[0].span)


# ---- all samples


def runs_in(folder: Path) -> Iterator[Run]:
    with source_of([str(folder)]) as source:
        for summary in listing_of(source, [str(folder)], None, deep=False).runs:
            yield read_run(source, summary.ref)


def assert_literal(run: Run) -> None:
    for link in links_of(run):
        for end in (link.source, *link.targets):
            assert end.quote in text_at(run, end), (run.summary.ref.address, link)


@pytest.mark.parametrize("name", sorted(folder.name for folder in FORMATS.iterdir() if folder.is_dir()))
def test_every_quote_is_literally_at_both_ends_in_the_cases(name: str) -> None:
    for run in runs_in(FORMATS / name):
        assert_literal(run)


@pytest.mark.skipif(SHARED is None, reason="no shared samples")
@pytest.mark.parametrize("name", ["claude-code", "copilot-cli", "openhands-v1", "otel-otlp-json", "terminal-bench"])
def test_every_quote_is_literally_at_both_ends_in_the_samples(name: str) -> None:
    assert SHARED is not None
    for run in runs_in(SHARED / "samples" / name):
        assert_literal(run)


@pytest.mark.parametrize("phrase", ["cause", "root", "because", "%"])
def test_links_name_no_cause(phrase: str, tmp_path: Path) -> None:
    run = trial(tmp_path, *FAILED, name="t__0")
    passed = [trial(tmp_path, *PASSED, name=f"t__{i}", passed=True) for i in (1, 2)]
    links = [*links_of(run), *trial_links(run, passed), origin_of(run, "4.1", "1250").first]
    assert links
    assert not any(phrase in link_text(run, link).lower() for link in links)


# ---- bounds


def test_time_for_links_grows_with_the_number_of_steps_only(tmp_path: Path) -> None:
    def seconds(steps: int) -> float:
        calls: list[Call] = [
            ("modify_items" if i % 10 else "get_order", {"order_id": f"W{i:05}"}, f"done {i} " + "x" * 300)
            for i in range(steps)
        ]
        failed = ("modify_items", {"order_id": "W00011"}, "Error: W00011 is not pending")
        run = trial(tmp_path, *calls, failed, name=f"t__{steps}")
        began = time.process_time()
        changed = of_kind(links_of(run), Kind.CHANGED)
        taken = time.process_time() - began
        assert [link.targets[0].span for link in changed] == ["13.1"]
        return taken

    assert seconds(5_000) < 30 * seconds(500)  # 100 times if each step were compared with each other


def test_links_are_bounded(tmp_path: Path) -> None:
    assert len(links_of(trial(tmp_path, LOOKUP, MODIFY, *[REPEATED] * 150))) == MAX_LINKS
