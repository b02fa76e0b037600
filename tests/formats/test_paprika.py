"""Paprika: what the conformance suite cannot know."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.shared import examples, needs_shared, sample
from tracetui import testing
from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.paprika import HUGE, SLICE, CanonicalInputs, Paprika, canonical, check
from tracetui.model import FirstError, Limit, Operation, Run, RunRef, RunSummary, Span, Status, StatusSource
from tracetui.sources.local import LocalFile

FORMAT = Paprika()
CASES = Path(__file__).parent / "paprika"


def call(index: int, **more: Any) -> dict[str, Any]:
    """A model call."""
    return {
        "step_index": index,
        "timestamp": "2026-03-02T08:00:00.100000Z",
        "event_id": f"e{index}",
        "step_type": "llm_call",
        "provider": "openai",
        "model": "gpt-4o",
        "input_data": {"messages": [{"role": "user", "content": "hi"}]},
        "input_hash": "ba208452ed1c7cfa",
        "output_data": {"choices": [{"message": {"role": "assistant", "content": "hello"}}]},
        "token_usage": {"prompt_tokens": 12, "completion_tokens": 8, "total_tokens": 20},
        "duration_ms": 150.0,
        "side_effect": "pure",
        "error": None,
        **more,
    }


def tool(index: int, **more: Any) -> dict[str, Any]:
    """A tool call."""
    return {
        "step_index": index,
        "timestamp": "2026-03-02T08:00:00.300000Z",
        "event_id": f"e{index}",
        "step_type": "tool_call",
        "tool_name": "search",
        "args": {"query": "AI trends"},
        "input_hash": "cc5151dd63fe2a90",
        "output_data": ["a", "b"],
        "duration_ms": 45.0,
        "side_effect": None,
        "error": None,
        **more,
    }


def record(steps: list[Any], **more: Any) -> dict[str, Any]:
    """A whole record, in the order in which it is written."""
    return {
        "schema_version": "1.0",
        "record_id": "run",
        "parent_record_id": None,
        "replay_of": None,
        "agent": {"name": "researcher", "version": None},
        "execution": {
            "started_at": "2026-03-02T08:00:00Z",
            "ended_at": "2026-03-02T08:00:02Z",
            "duration_ms": 2000.0,
            "status": "success",
            "termination_reason": None,
        },
        "policy": {"config": {"max_steps": 10, "max_tokens": None, "max_repeat_hashes": 3}, "violation": None},
        "totals": {"step_count": 2, "llm_calls": 1, "tool_calls": 1, "total_tokens": 20},
        "environment": None,
        "steps": steps,
        "input": {"args": [], "kwargs": {"question": "What is AI?"}},
        "output": {"answer": "much"},
        "error": None,
        "extensions": {},
    } | more


def put(folder: Path, value: Any, name: str = "run.json", *, indent: int | None = 2) -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=indent), encoding="utf-8")
    return str(path)


def read(path: str) -> Run:
    return testing.read_run(FORMAT, RunRef("paprika", path))


def listed(path: str, *, deep: bool = False) -> RunSummary:
    """The summary of the file, with detection before it as in the program."""
    with LocalFile(path) as file:
        assert FORMAT.sniff(file) == CERTAIN
        (summary,) = FORMAT.summarize(file, deep=deep)
    assert isinstance(summary, RunSummary)
    return summary


# ---- the hash


def input_hash(value: Any) -> str:
    """The hash of a tool's input as the document states it."""
    checked = check({"input_hash": "", "args": value})
    assert checked is not None
    return dict(checked.expected)["documented"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"messages": [{"role": "user", "content": "hi"}]}, "19e21ad5462e808b"),
        (
            {"provider": "openai", "model": "gpt-4o", "input": {"messages": [{"role": "user", "content": "hi"}]}},
            "ba208452ed1c7cfa",
        ),
        ({"name": "search", "args": {"query": "AI trends"}}, "cc5151dd63fe2a90"),
        ({"args": {"query": "東京"}, "name": "search"}, "ddeaf48f9a8eed5e"),
    ],
)
def test_the_hash_is_that_of_the_runtime(value: Any, expected: str) -> None:
    assert input_hash(value) == expected


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.sampled_from("\x7f\x00é\ud800"),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_the_input_hash_is_that_of_json_dumps(value: Any) -> None:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert input_hash(value) == hashlib.sha256(text.encode()).hexdigest()[:16]


@given(st.lists(JSON_VALUES, max_size=3))
def test_undecoded_inputs_are_written_as_json_dumps_writes_them(messages: list[Any]) -> None:
    inputs = CanonicalInputs()
    for value in ({"n": 0.5, "messages": messages, "ab\x7fé": None}, {"messages": messages[:1]}, messages, *messages):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        raw = msgspec.Raw(json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass"))
        assert canonical(raw) == text
        assert inputs.conversation(raw) == text


def test_both_recipes_are_tried_and_the_one_that_fits_is_named() -> None:
    wrapped, bare = check(call(1)), check(call(1, input_hash="19e21ad5462e808b"))
    neither, none = check(tool(1, input_hash="0" * 16)), check(tool(1, input_hash=None))
    assert wrapped is not None
    assert wrapped.matches == "runtime"
    assert bare is not None
    assert bare.matches == "documented"
    assert neither is not None
    assert neither.matches is None
    assert dict(neither.expected)["runtime"] == "cc5151dd63fe2a90"
    assert none is None


def test_numbers_are_hashed_as_python_writes_them(tmp_path: Path) -> None:
    args = {"a": 1.0, "b": 1e22, "c": 10**30, "d": 0.1, "e": -0.0}
    stored = input_hash({"name": "search", "args": args})
    run = read(put(tmp_path, record([tool(1, args=args, input_hash=stored)])))
    assert run.load(run.spans[0]).checks[0].matches == "runtime"


# ---- versions


@pytest.mark.parametrize("version", ["2.0", "2", 2, 3.1, "10.4.1"])
@pytest.mark.parametrize("deep", [False, True])
def test_a_newer_major_version_is_refused_with_a_reason(tmp_path: Path, version: Any, deep: bool) -> None:
    path = put(tmp_path, record([call(1)], schema_version=version))
    with pytest.raises(FormatError, match="newer than the supported"):
        listed(path, deep=deep)
    with pytest.raises(FormatError, match="newer"):
        read(path)


@pytest.mark.parametrize("version", ["1.0", "1.99", None, "one"])
def test_other_versions_are_read(tmp_path: Path, version: Any) -> None:
    assert listed(put(tmp_path, record([call(1)], schema_version=version))).status is Status.OK


def test_a_cut_file_says_where_it_ends(tmp_path: Path) -> None:
    text = json.dumps(record([call(1)]))[:700]
    with pytest.raises(FormatError) as caught:
        read(put(tmp_path, text))
    assert caught.value.where == "byte 700"
    assert "cut off" in caught.value.reason


# ---- failures


def test_the_failing_step_is_the_last_call_without_output(tmp_path: Path) -> None:
    steps = [call(1), tool(2, output_data=None, duration_ms=None)]
    execution = record([])["execution"] | {"status": "error"}
    run = read(put(tmp_path, record(steps, execution=execution, error="TimeoutError: no answer")))
    assert run.summary.first_error == FirstError(
        "TimeoutError: no answer", "TimeoutError", "s1", "search", Operation.EXECUTE_TOOL
    )
    assert run.spans[1].status is Status.ERROR
    assert run.spans[1].status_source is StatusSource.DERIVED
    assert run.spans[0].status is Status.OK
    assert run.summary.errors == 1


def test_a_call_that_returned_nothing_did_not_fail(tmp_path: Path) -> None:
    execution = record([])["execution"] | {"status": "error"}
    run = read(put(tmp_path, record([tool(1, output_data=None)], execution=execution, error="bad answer")))
    assert run.spans[0].status is Status.OK
    assert run.summary.first_error == FirstError("bad answer")


def test_a_tool_error_that_the_run_recovered_from_does_not_fail_it(tmp_path: Path) -> None:
    summary = listed(put(tmp_path, record([tool(1, error="ValueError: x"), call(2)])), deep=True)
    assert (summary.status, summary.errors) == (Status.OK, 1)
    assert summary.first_error == FirstError("ValueError: x", "ValueError", "s0", "search", Operation.EXECUTE_TOOL)


def test_a_failed_run_without_a_failed_call_tells_why_it_ended(tmp_path: Path) -> None:
    execution = {"started_at": "2026-03-02T08:00:00Z", "ended_at": "2026-03-02T08:00:02Z", "status": "Timeout"}
    ended = execution | {"termination_reason": "no answer for 60 s"}
    summary = listed(put(tmp_path, record([call(1)], execution=ended)), deep=True)
    assert (summary.status, summary.first_error) == (Status.ERROR, FirstError("no answer for 60 s"))
    summary = listed(put(tmp_path, record([tool(1, error="ValueError: x")], execution=ended)), deep=True)
    assert summary.first_error == FirstError("ValueError: x", "ValueError", "s0", "search", Operation.EXECUTE_TOOL)
    assert listed(put(tmp_path, record([call(1)], execution=execution)), deep=True).first_error is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TimeoutError: slow", "TimeoutError"),
        ("httpx.ReadTimeout: slow", "httpx.ReadTimeout"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("tool exploded: connection reset", None),
        ("An Error: x", None),
        ("Replay mismatch at step 3: expected input_hash=a", None),
    ],
)
def test_an_error_has_a_type_only_where_its_text_has_the_plain_form(
    tmp_path: Path, text: str, expected: str | None
) -> None:
    run = read(put(tmp_path, record([tool(1, error=text)])))
    assert run.spans[0].error is not None
    assert (run.spans[0].error.message, run.spans[0].error.type) == (text, expected)


def test_a_violated_limit_shows_how_far_the_run_came() -> None:
    with testing.copied(CASES / "violation") as root:
        run = read(str(root / "run-limit.json"))
    assert (run.summary.status, run.summary.status_source) == (Status.ERROR, StatusSource.POLICY)
    limits = {limit.name: limit for limit in run.body.limits}
    details = {"current": 3, "limit": 2}
    assert limits["max_steps"] == Limit("max_steps", 2.0, 3.0, True, "Step limit exceeded: 3 > 2", details)
    assert limits["max_repeat_hashes"] == Limit("max_repeat_hashes", 3.0, 1.0)
    assert [span.is_step for span in run.spans] == [True, True, True]
    assert run.summary.first_error == FirstError(
        "Step limit exceeded: 3 > 2", "max_steps", "s2", "max_steps", Operation.POLICY
    )
    assert {total.name for total in run.body.totals if total.differs} == {"total_tokens"}


# ---- identity


@pytest.mark.parametrize(
    ("ident", "reason"),
    [("other", "differs from the file name"), ("../run", "doesn't match the pattern"), (7, "no id"), ("", "no id")],
)
def test_an_odd_id_is_noted_and_the_run_is_listed(tmp_path: Path, ident: Any, reason: str) -> None:
    run = read(put(tmp_path, record([call(1)], record_id=ident)))
    assert run.summary.id == (ident if isinstance(ident, str) and ident else "run")
    assert [reason in problem.reason for problem in run.problems] == [True]


def test_event_ids_may_repeat(tmp_path: Path) -> None:
    run = read(put(tmp_path, record([call(1, event_id="x"), call(1, event_id="x"), call(1, event_id=None)])))
    assert len(run.spans) == 3


# ---- bodies


def test_raw_is_the_exact_text_of_the_step(tmp_path: Path) -> None:
    steps = ['{ "step_type":"tool_call",\n "args" : {"q":"東"} }', '{"step_type": "x", "step_type": "llm_call"}']
    text = json.dumps(record(["@", "#"])).replace('"@"', steps[0]).replace('"#"', steps[1])
    run = read(put(tmp_path, text))
    assert [run.load(span).raw.decode() for span in run.spans] == steps


def test_a_body_of_another_version_of_the_file_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, record([call(1)]))
    run = read(path)
    put(tmp_path, record([tool(1), tool(2)]))
    with pytest.raises(FormatError, match="changed"):
        run.load(run.spans[0])


def test_very_many_steps_come_in_slices(tmp_path: Path) -> None:
    count = 2 * SLICE + 10
    path = put(tmp_path, record([tool(i, step_type="tool_call") for i in range(count)]), indent=None)
    with LocalFile(path) as file:
        first = FORMAT.open(file, RunRef("paprika", path)).more(file)
    assert (len(first.spans), first.done) == (SLICE, False)
    run = read(path)
    assert [span.step for span in run.spans] == list(range(count))
    assert run.summary.steps == count


def test_calls_of_several_slices_whose_hash_differs_are_one_problem(tmp_path: Path) -> None:
    steps = [tool(i, input_hash="0" * 16 if i % SLICE == 3 else None) for i in range(2 * SLICE)]
    path = put(tmp_path, record(steps), indent=None)
    problems = read(path).problems
    assert [problem.where for problem in problems] == ["steps[3] and 1 more"]
    assert listed(path, deep=True).problems == len(problems)


def test_a_huge_record_shows_its_first_steps_at_once(tmp_path: Path) -> None:
    steps = [tool(i, args={"query": f"{i}" * 1000}) for i in range(HUGE // 2500)]
    path = put(tmp_path, record(steps, error="x"))
    ref = RunRef("paprika", path)
    assert os.stat(path).st_size > HUGE
    file = Counting(path)
    with file:
        reader = FORMAT.open(file, ref)
        first = reader.more(file)
        assert file.count < HUGE / 4
        whole = reader.more(file)
    assert 100 < len(first.spans) < len(steps)
    assert not first.done
    assert not whole.reset
    assert [*whole.spans[: len(first.spans)]] == first.spans
    assert read(path).summary.steps == len(steps)


# ---- the list stage


class Counting(LocalFile):
    """A file that knows how many bytes were read of it."""

    count = 0

    def read(self, offset: int, size: int) -> bytes:
        data = super().read(offset, size)
        self.count += len(data)
        return data


def test_a_big_record_is_listed_from_its_two_ends(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    path = put(tmp_path, record([call(1, output_data=text), call(2, output_data=text)], error="ValueError: no"))
    file = Counting(path)
    with file:
        assert FORMAT.sniff(file) == CERTAIN
        (summary,) = FORMAT.summarize(file, deep=False)
        assert isinstance(summary, RunSummary)
        assert not summary.deep
        assert summary.prompt == "What is AI?"
        assert file.count < 10_000


def test_a_long_output_behind_the_steps_is_no_obstacle(tmp_path: Path) -> None:
    path = put(tmp_path, record([call(1)], output={"list": ["y" * 100] * 200}))
    assert not listed(path).deep


JUNK = ('"steps": [', '"steps":', "], ", "\n  ],\n", '{"error": null}', "\\", '"', "]}")


def texts() -> st.SearchStrategy[Any]:
    """Values that hold what a reader of heads and tails might mistake for a mark."""
    word = st.sampled_from(JUNK)
    return st.one_of(
        word,
        st.builds(lambda a: {"steps": [a], "error": "decoy", "input": a}, word),
        st.builds(lambda a: [[a], {"execution": {"status": "error"}}], word),
        st.none(),
    )


def fields() -> st.SearchStrategy[list[tuple[str, Any]]]:
    """The fields of a record in any order, some twice, some missing, with decoys among them."""
    failed = record([])["execution"] | {"status": "error"}
    base = record([call(1), tool(2, output_data=None, duration_ms=None)])
    other = st.one_of(
        st.tuples(st.sampled_from(["input", "output", "extensions", "environment", "tags", "zz"]), texts()),
        st.sampled_from([("execution", failed), ("error", "OSError: x"), ("replay_of", "r"), ("agent", {"name": "b"})]),
        st.sampled_from([("steps", []), ("steps", [tool(1, error="late")]), ("totals", {"total_tokens": 5})]),
    )
    return st.builds(
        lambda order, more, missing, places: arrange([(n, base[n]) for n in order if n not in missing], more, places),
        st.one_of(st.just(list(base)), st.permutations(list(base))),
        st.lists(other, max_size=3),
        st.sets(st.sampled_from(["input", "output", "error", "extensions", "totals", "replay_of"]), max_size=2),
        st.lists(st.integers(0, 20), min_size=3, max_size=3),
    )


def arrange(pairs: list[tuple[str, Any]], more: list[tuple[str, Any]], places: Iterable[int]) -> list[tuple[str, Any]]:
    for pair, place in zip(more, places, strict=False):
        pairs.insert(place, pair)
    return pairs


@settings(max_examples=examples(100))
@given(pairs=fields(), indent=st.sampled_from([None, 1, 2, 4]))
def test_the_order_of_keys_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, Any]], indent: int | None
) -> None:
    assume(not hidden(pairs))
    case = tmp_path_factory.mktemp("order")
    (case / "input").mkdir()
    shutil.copy(CASES / "exceptions.txt", case.parent)
    put(case / "input", document(pairs, indent))
    testing.check_summaries(FORMAT, case)
    path = str(case / "input" / "run.json")
    original, resorted = listed(path, deep=True), listed(put(case, json.dumps(dict(pairs))), deep=True)
    for name in ("status", "steps", "errors", "first_error", "replay_of", "agent", "prompt", "usage"):
        assert getattr(original, name) == getattr(resorted, name)


def hidden(pairs: list[tuple[str, Any]]) -> bool:
    """True if a name is given again between the steps and another array: the middle of a file is not looked at."""
    names = [name for name, _ in pairs]
    if "steps" not in names:
        return False
    first = names.index("steps")
    last = max((i for i, (_, value) in enumerate(pairs) if isinstance(value, list)), default=first)
    between = names[first + 1 : last + 1]
    return any(names.count(name) > 1 for name in between)


def document(pairs: list[tuple[str, Any]], indent: int | None) -> str:
    """A JSON object with these pairs, names given twice included."""
    inner = [f"{json.dumps(name)}: {json.dumps(value, indent=indent)}" for name, value in pairs]
    if indent is None:
        return "{" + ", ".join(inner) + "}"
    pad = " " * indent
    lines = ",\n".join(pad + item.replace("\n", "\n" + pad) for item in inner)
    return "{\n" + lines + "\n}"


def test_it_claims_no_other_objects_with_events_or_steps(tmp_path: Path) -> None:
    others: list[Any] = [{"events": [], "items": []}, {"steps": [], "graph_name": "g"}, {"x": record([])}, [record([])]]
    for value in others:
        with LocalFile(put(tmp_path, value)) as file:
            assert FORMAT.sniff(file) == NO


# ---- real files


@needs_shared
def test_both_versions_of_a_real_run_tell_the_same() -> None:
    old, new = sample("paprika", "v0"), sample("paprika", "v1")
    for name in sorted(os.listdir(new)):
        first, second = read(str(old / name)), read(str(new / name))
        for field in (
            "id",
            "agent",
            "status",
            "status_word",
            "steps",
            "llm_calls",
            "errors",
            "replay_of",
            "first_error",
        ):
            assert getattr(first.summary, field) == getattr(second.summary, field), (name, field)
        assert [outline(span) for span in first.spans] == [outline(span) for span in second.spans]
        assert not first.problems
        assert not second.problems


@needs_shared
def test_every_hash_of_the_real_runs_fits_the_runtime() -> None:
    for path in sorted(sample("paprika").glob("v*/*.json")):
        run = read(str(path))
        for span in run.spans:
            for entry in run.load(span).checks:
                assert entry.matches == "runtime", (path, span.id)


def outline(span: Span) -> tuple[Any, ...]:
    return (span.name, span.operation, span.status, span.step, span.duration_ms, span.usage, span.preview, span.error)
