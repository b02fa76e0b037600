"""What holds of every comparison: a run is itself, the mirror, the rows rebuild B, one change is reported as one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.diff.build import STEPS, VALUES, Step, kinds, node, run_of
from tests.shared import examples
from tracetui.diff.align import align
from tracetui.diff.comparison import Comparison, Diff, compare
from tracetui.diff.noise import Noise
from tracetui.diff.step import Kind
from tracetui.diff.values import changes_of
from tracetui.model import Operation

HASHED = st.booleans()
SINGLE = {Kind.ONLY_A: Kind.ONLY_B, Kind.ONLY_B: Kind.ONLY_A}


@given(STEPS, HASHED)
def test_a_run_does_not_differ_from_itself(steps: list[Step], hashed: bool) -> None:
    run, copy = run_of(steps, hashed=hashed), run_of(steps, hashed=hashed, ident="b")

    for diff in (compare(run, run), compare(run, copy)):
        assert diff.first is None
        assert diff.complete
        assert kinds(diff) == ["same"] * len(steps)
        assert [(row.a, row.b) for row in diff.rows] == [(i, i) for i in range(len(steps))]


@given(STEPS, STEPS, HASHED)
def test_the_other_way_round_is_the_mirror(left: list[Step], right: list[Step], hashed: bool) -> None:
    a, b = run_of(left, hashed=hashed), run_of(right, hashed=hashed, ident="b")

    there = {(row.kind, row.a, row.b) for row in compare(a, b).rows}
    back = {(SINGLE.get(row.kind, row.kind), row.b, row.a) for row in compare(b, a).rows}

    assert there == back


@given(STEPS, STEPS, HASHED)
def test_the_rows_make_b_of_a(left: list[Step], right: list[Step], hashed: bool) -> None:
    a, b = run_of(left, hashed=hashed), run_of(right, hashed=hashed, ident="b")

    diff = compare(a, b)

    restored = [right[row.b] if row.kind is not Kind.SAME else _same(left[row.a], right[row.b]) for row in _of_b(diff)]
    assert restored == right
    assert sorted(row.a for row in diff.rows if row.a is not None) == list(range(len(left)))


@given(STEPS, STEPS, HASHED)
def test_running_counts_equal_those_of_the_rows(left: list[Step], right: list[Step], hashed: bool) -> None:
    a, b = run_of(left, hashed=hashed), run_of(right, hashed=hashed, ident="b")

    for diff in Comparison(a, b).steps():
        assert diff.counts == {kind: sum(row.kind is kind for row in diff.rows) for kind in Kind}
        assert diff.downstream == sum(row.downstream for row in diff.rows)
        assert list(diff.flagged) == [i for i, row in enumerate(diff.rows) if row.flags]
        assert list(diff.independent) == _independent(diff)


def _independent(diff: Diff) -> list[int]:
    if diff.first is None:
        return []
    rows = list(enumerate(diff.rows[: diff.compared]))[diff.first.row + 1 :]
    return [i for i, row in rows if row.kind is not Kind.SAME and not (row.downstream or row.noise)]


def _of_b(diff: Diff) -> list[Any]:
    """The rows with a step of B, checked to be all of them in order."""
    rows = [row for row in diff.rows if row.b is not None]
    assert [row.b for row in rows] == list(range(len(diff.b.spans)))
    return rows


def _same(a: Step, b: Step) -> Step:
    """The step of A, where it is as good as that of B: a model call by another name, white space."""
    noise = Noise()
    assert a.operation is b.operation
    assert a.name == b.name or a.operation is Operation.CHAT
    assert a.failed == b.failed
    assert not changes_of([a.input, a.output], [b.input, b.output], noise)
    return b


@given(STEPS, STEPS, STEPS, STEPS, HASHED)
def test_common_ends_are_paired(
    head: list[Step], left: list[Step], right: list[Step], tail: list[Step], hashed: bool
) -> None:
    only_a, only_b = Step(name="fetch", input="in A"), Step(name="fetch", input="in B")
    a = run_of([*head, only_a, *left, only_a, *tail], hashed=hashed)
    b = run_of([*head, only_b, *right, only_b, *tail], hashed=hashed, ident="b")

    pairs = {(pair.a, pair.b) for pair in align(a, b).pairs}

    size_a, size_b = len(a.spans), len(b.spans)
    assert {(i, i) for i in range(len(head))} <= pairs
    back = range(1, len(tail) + 1)
    assert {(size_a - i, size_b - i) for i in back} <= pairs


# ---- exactly one change


@given(STEPS, st.data(), HASHED)
def test_an_added_step_is_reported_as_one_added_step(steps: list[Step], data: st.DataObject, hashed: bool) -> None:
    place = data.draw(st.integers(0, len(steps)))
    added = data.draw(st.builds(Step, st.just(Operation.EXECUTE_TOOL), st.just("search"), VALUES, VALUES))
    a, b = run_of(steps, hashed=hashed), run_of([*steps[:place], added, *steps[place:]], hashed=hashed, ident="b")

    more, less = compare(a, b), compare(b, a)

    assert sorted(kinds(more)) == ["only_b"] + ["same"] * len(steps)
    assert sorted(kinds(less)) == ["only_a"] + ["same"] * len(steps)


@given(STEPS, st.data(), HASHED, st.sampled_from(["input", "output", "status"]))
def test_an_edited_step_is_reported_as_edited(steps: list[Step], data: st.DataObject, hashed: bool, what: str) -> None:
    assume(steps)
    place = data.draw(st.integers(0, len(steps) - 1))
    before = steps[place]
    changes: dict[str, dict[str, Any]] = {
        "input": {"input": {"q": "something else entirely"}},
        "output": {"output": {"text": "something else entirely"}},
        "status": {"failed": not before.failed},
    }
    after = before._replace(**changes[what])
    a, b = run_of(steps, hashed=hashed), run_of([*steps[:place], after, *steps[place + 1 :]], hashed=hashed, ident="b")

    diff = compare(a, b)

    assert kinds(diff) == ["same"] * place + [what] + ["same"] * (len(steps) - place - 1)
    assert diff.first is not None
    assert diff.first.row == place


@settings(max_examples=examples(100))
@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=10, unique=True), st.data(), HASHED)
def test_a_moved_step_is_recognized(numbers: list[int], data: st.DataObject, hashed: bool) -> None:
    steps = [Step(input={"q": number}, output=number) for number in numbers]
    origin = data.draw(st.integers(0, len(steps) - 1))
    target = data.draw(st.integers(0, len(steps) - 1))
    assume(abs(origin - target) > 1)
    other = [step for step in steps if step is not steps[origin]]
    other.insert(target, steps[origin])

    diff = compare(run_of(steps, hashed=hashed), run_of(other, hashed=hashed, ident="b"))

    assert sorted(kinds(diff)) == ["moved"] + ["same"] * (len(steps) - 1)
    row = next(row for row in diff.rows if row.kind is Kind.MOVED)
    assert (row.a, row.b) == (origin, target)


# ---- graphs


@settings(max_examples=examples(25))
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_an_added_node_is_one_added_node(names: list[str], data: st.DataObject) -> None:
    nodes = [node(name, {"x": i}, {"y": i}) for i, name in enumerate(names)]
    added = node("extra", {"x": "new"}, {"y": "new"})
    place = data.draw(st.integers(0, len(nodes)))
    a, b = run_of(nodes), run_of([*nodes[:place], added, *nodes[place:]], ident="b")
    assume(len(set(names)) == len(names))  # of a node that comes again, the same superstep is the same step

    assert sorted(kinds(compare(a, b))) == ["only_b"] + ["same"] * len(nodes)


# ---- values


def rebuilt(a: Any, b: Any) -> bool:
    """Whether the changes name every value that differs: without one, the values are equal."""
    changes = changes_of(a, b, Noise(strict=True))
    return bool(changes) or _plain(a) == _plain(b)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else (type(value).__name__, value)


@given(VALUES, VALUES)
def test_values_without_changes_are_equal(a: Any, b: Any) -> None:
    assert rebuilt(a, b)
    assert changes_of(a, a, Noise(strict=True)) == []


@given(VALUES, VALUES)
def test_changes_of_values_are_mirrored(a: Any, b: Any) -> None:
    there = {(change.path_a, change.path_b, repr(change.a), repr(change.b)) for change in changes_of(a, b, Noise())}
    back = {(change.path_b, change.path_a, repr(change.b), repr(change.a)) for change in changes_of(b, a, Noise())}

    assert there == back


@pytest.mark.parametrize("depth", [1_200])  # deeper than Python may call
def test_values_of_any_depth_are_compared(depth: int) -> None:
    def deep(leaf: str) -> Any:
        value: Any = leaf
        for _ in range(depth):
            value = [value]
        return value

    (change,) = changes_of(deep("x"), deep("y"), Noise())

    assert (change.a, change.b) == ("x", "y")
    assert change.path == "[0]" * depth
