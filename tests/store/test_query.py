"""What queries find: among runs made for it, among any runs, and among the samples."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.build import make_summary
from tracetui import demo
from tracetui.live.scan import scan
from tracetui.model import FirstError, Outcome, RunRef, RunSummary, Score, Status, Usage
from tracetui.redact import ASCII_MASK, MASK
from tracetui.sources.local import LocalSource
from tracetui.store import query
from tracetui.store.facts import NO_CONTEXT, NO_EFFECTS, ContextUse, EffectFacts
from tracetui.store.relations import Relations

NOW = datetime(2026, 11, 21, 12, 0).timestamp()
HOUR = 3600.0
RUNS = [
    make_summary(
        "a1", status=Status.ERROR, status_word="max_turns", model="gpt-4o", models=("gpt-4o", "gpt-4o-mini"),
        tools=("Bash", "Read"), started_at=NOW - HOUR, duration_ms=7_500.0, usage=Usage(9_000, 3_000, cost_usd=0.25),
        first_error=FirstError("search timed out after 30s", "TimeoutError"), steps=2, errors=1, spans=9, llm_calls=2,
        tool_calls=4, tags=("nightly",), source="langgraph", result="gave up", replay_of="b2", relation="replay",
    ),
    make_summary(
        "b2", status=Status.OK, status_word="completed", model="claude", models=("claude",), tools=(), nodes=("plan",),
        started_at=NOW - 30 * HOUR, duration_ms=400.0, usage=Usage(0, 0), steps=12, errors=0, prompt="Write a *poem*",
        agent="writer", problems=2, label="[item 3]", task="poems/1", trial="epoch 2", outcome=Outcome.PASSED,
        scores=(Score("reward", 1.0, True), Score("Word Count", 12, None)),
    ),
    make_summary(
        "c3", status=Status.RUNNING, started_at=None, modified_at=NOW - 3 * HOUR, agent=None, prompt="", parent="a1",
    ),
]  # fmt: skip


EFFECTS = EffectFacts(
    ("/shop/a.py", "/shop/old.py"), ("/shop/a.py",), ("/shop/b.py",), ("/shop/old.py",), ("origin",), ("git push -f",),
    ("push-force", "push"),
)  # fmt: skip


class People(query.TraceContext):
    """What people said of the runs above."""

    def verdict(self, run: RunSummary) -> str | None:
        return {"a1": "flaky"}.get(run.id)

    def tags(self, run: RunSummary) -> Sequence[str]:
        return ("Mine",) if run.id == "b2" else ()

    def has_tags(self) -> bool:
        return True

    def effects(self, run: RunSummary) -> EffectFacts:
        return EFFECTS if run.id == "a1" else NO_EFFECTS

    def context_use(self, run: RunSummary) -> ContextUse:
        return ContextUse(151_000, 12_000, 6_000, ("idle",)) if run.id == "a1" else NO_CONTEXT

    def note(self, run: RunSummary) -> str | None:
        return {"a1": "the proxy was down"}.get(run.id)

    def cause(self, run: RunSummary) -> Sequence[str]:
        return {"a1": ("TimeoutError: timed out after <time>", "F-3a9c")}.get(run.id, ())


def ids(text: str, runs: list[RunSummary] = RUNS) -> str:
    relations = Relations(runs)
    matcher = query.for_runs(text, People(lambda: relations), now=NOW)
    return " ".join(run.id for run in matcher.select(runs))


CASES = [
    ("", "a1 b2 c3"),
    ("status:error", "a1"),
    ("status:ERR*", "a1"),
    ("status:max-turns", "a1"),
    ("status:ok,running", "b2 c3"),
    ("-status:ok", "a1 c3"),
    ("status!=ok", "a1 c3"),
    ("outcome:passed", "b2"),
    ("outcome:failed", ""),
    ("outcome:ungraded", ""),
    ("who:grader", ""),
    ("outcome:none", "a1 c3"),
    ("score:reward", "b2"),
    ("score:REW*", "b2"),
    ("score:none", "a1 c3"),
    ("score:reward<0.5", ""),
    ("score:reward>=1", "b2"),
    ("score:reward=1", "b2"),
    ("score!=reward", "a1 c3"),
    ("score:reward!=0", "b2"),
    ("score:'word count>10'", "b2"),
    ("score:accuracy=C", ""),
    ("has:score", "b2"),
    ("task:poems/1", "a1 b2"),
    ("task:poem*", "a1 b2"),
    ("task:none", "c3"),
    ("trial:'epoch 2'", "b2"),
    ("agent:writer", "b2"),
    ("agent:write", ""),
    ("agent:researcher", "a1 c3"),
    ("model:gpt*", "a1"),
    ("model:gpt-4o-mini", "a1"),
    ("model:none", "c3"),
    ('model:"none"', ""),
    ("tool:bash", "a1"),
    ("tool:?ash,x", "a1"),
    ("node:plan", "b2"),
    ("format:any", "a1 b2 c3"),
    ("tag:nightly", "a1"),
    ("tag:mine", "b2"),
    ("tag:none", "c3"),
    ("source:langgraph", "a1"),
    ("relation:replay", "a1"),
    ("error:timed", "a1"),
    ('error:"timed out"', "a1"),
    ("error:TimeoutError", "a1"),
    ("error=TimeoutError", "a1"),
    ("error=timed", ""),
    ("error:*30s", "a1"),
    ("error:search*after", ""),
    ("cause:out", "a1"),
    ('cause:"timed out"', "a1"),
    ("cause:TIMEOUT*time>", "a1"),
    ("cause=timed", ""),
    ("cause:f-3a", "a1"),
    ("cause=F-3a9c", "a1"),
    ("cause:3a9c", ""),
    ("-cause:out", "b2 c3"),
    ("has:cause", "a1"),
    ("verdict:flaky", "a1"),
    ("verdict:none", "b2 c3"),
    ("note:proxy", "a1"),
    ("sig:f-3a", "a1"),
    ("signature=F-3a9c", "a1"),
    ("signature=F-3a", ""),
    ("name:Researcher", "a1 b2 c3"),
    ("name:3]", ""),
    ("3]", "b2"),
    ("prompt:poem", "b2"),
    ('prompt:"a *"', "b2"),
    ("result:gave", "a1"),
    ("path:/traces/b", "b2"),
    ("path:*.json", "a1 b2 c3"),
    ("id:A", "a1"),
    ("id:1", ""),
    ("original:b2", "a1"),
    ("parent:a1", "c3"),
    ("dur>5s", "a1"),
    ("dur<1", "b2"),
    ("dur<=400ms", "b2"),
    ("dur:7.5s", "a1"),
    ("-dur>5s", "b2 c3"),
    ("tokens>10k", "a1"),
    ("tokens:0", "b2"),
    ("tokens>=0", "a1 b2"),
    ("in>8.9k out<=3k", "a1"),
    ("cost>$0.2", "a1"),
    ("steps<3", "a1"),
    ("steps:2,12", "a1 b2"),
    ("spans>1", "a1"),
    ("calls>1 tool_calls>3", "a1"),
    ("errors>0", "a1"),
    ("problems>1", "b2"),
    ("touched:old.py", "a1"),
    ("wrote:a.py", "a1"),
    ("wrote:old.py", ""),
    ("read=/shop/b.py", "a1"),
    ("read:b.py deleted:old net:origin", "a1"),
    ('cmd:"push -f"', "a1"),
    ("does:push-force", "a1"),
    ("does:none", "b2 c3"),
    ("has:deleted", "a1"),
    ("context>150k", "a1"),
    ("missed>10k grew>5k", "a1"),
    ("grew>6k", ""),
    ("break:idle", "a1"),
    ("break:none", "b2 c3"),
    ("since:2h", "a1"),
    ("since:today", "a1"),
    ("since:10:30", "a1"),
    ("until:2026-11-20", "b2"),
    ("until:2026-11-21", "a1 b2"),
    ("before:2026-11-21", "b2"),
    ("before:2026-11-21T10:00", "b2"),
    ("on:yesterday", "b2"),
    ("on:2026-11", "a1 b2"),
    ("on:2025", ""),
    ("since:1h30m", "a1"),
    ("is:running", "c3"),
    ("is:waiting", ""),
    ("state:running", "c3"),
    ("state:ended,paused", "a1 b2"),
    ("is:failed,ok", "a1 b2"),
    ("is:child", "c3"),
    ("is:replay", "a1"),
    ("has:original", "a1"),
    ("has:replay", "b2"),
    ("has:error", "a1"),
    ("has:errors", "a1"),
    ("has:tokens", "a1 b2"),
    ("has:cost", "a1"),
    ("has:verdict", "a1"),
    ("has:note", "a1"),
    ("has:tag", "a1 b2"),
    ("has:tool", "a1"),
    ("has:problems", "b2"),
    ("timed out", "a1"),
    ('"out timed"', ""),
    ("!timed", "b2 c3"),
    ("GPT !error", ""),
    ("nightly", "a1"),
    ("gpt or writer", "a1 b2"),
    ("(gpt or writer) steps>3", "b2"),
    ("!(gpt or writer)", "c3"),
    ("status:error or status:ok tokens:0", "a1 b2"),
    ("*", "b2"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_query_selects_runs(text: str, expected: str) -> None:
    assert ids(text) == expected


def test_every_key_is_tested_above() -> None:
    used = " ".join(text for text, _ in CASES)
    assert [key.name for key in query.RUN_KEYS.keys if not any(name in used for name in (key.name, *key.aliases))] == []


def test_while_somebody_types_what_stands_before_the_fault_counts() -> None:
    for text, understood in {
        "status:error dur>": "status:error",
        "status:error (tool:bash": "status:error",
        "status:error -(": "status:error",
        'error:"tim': "",
        "status:error or": "status:error",
        "status:error stauts:x more": "status:error",
        ")": "",
        "status:error": "status:error",
    }.items():
        parsed, error = query.parse_prefix(text, now=NOW)
        assert (parsed.text.strip(), error is None) == (understood, understood == text), text
    spans, error = query.parse_span_prefix("dur>5s tool:")
    assert (spans.text.strip(), error is not None and error.unfinished) == ("dur>5s", True)


# ---- any runs, any query

WORDS = st.sampled_from(["a", "bash", "timed", "none", "Ä", ""])
SUMMARIES = st.builds(
    make_summary,
    WORDS,
    status=st.sampled_from(Status),
    status_word=st.none() | WORDS,
    model=st.none() | WORDS,
    models=st.none() | st.tuples(WORDS),
    tools=st.none() | st.lists(WORDS, max_size=2).map(tuple),
    duration_ms=st.none() | st.sampled_from([0.0, 5_000.0, float("nan"), float("inf")]),
    usage=st.none() | st.builds(Usage, st.none() | st.integers(0, 9)),
    steps=st.none() | st.integers(0, 3),
    started_at=st.none() | st.sampled_from([0.0, NOW, -1e18, float("nan")]),
    time_zone=st.sampled_from(["UTC", None]),
    first_error=st.none() | st.builds(FirstError, WORDS, st.none() | WORDS),
    parent=st.none() | WORDS,
)
TERMS = st.sampled_from(
    ["status:ok", "status:none", "model:a", "model:none", "tool:b*", "dur>=5s", "dur:0", "tokens<5", "steps:1,2",
     "since:1h", "before:2000", "error:timed", "has:error", "is:child", "timed", "ä", '""', "verdict:none", "id:a"]
)  # fmt: skip
QUERIES = st.recursive(
    TERMS,
    lambda inner: (
        inner.map(lambda text: f"!({text})")
        | st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) ({pair[1]})")
        | st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) or ({pair[1]})")
    ),
    max_leaves=5,
)


def chosen(text: str, runs: list[RunSummary]) -> list[int]:
    """Positions of the runs that a query finds."""
    selected = set(map(id, query.for_runs(text, now=NOW).select(runs)))
    return [i for i, run in enumerate(runs) if id(run) in selected]


@given(QUERIES, st.lists(SUMMARIES, max_size=8))
def test_select_equals_matching_each_run(text: str, runs: list[RunSummary]) -> None:
    matcher = query.for_runs(text, now=NOW)
    assert matcher.select(iter(runs)) == [run for run in runs if matcher.matches(run)]


@given(QUERIES, QUERIES, st.lists(SUMMARIES, max_size=8))
def test_not_and_or_are_those_of_logic(a: str, b: str, runs: list[RunSummary]) -> None:
    everything = range(len(runs))
    assert chosen(f"!({a})", runs) == [i for i in everything if i not in chosen(a, runs)]
    assert chosen(f"!(({a}) or ({b}))", runs) == chosen(f"!({a}) !({b})", runs)
    assert chosen(f"!(({a}) ({b}))", runs) == chosen(f"!({a}) or !({b})", runs)
    assert chosen(f"({a}) ({b})", runs) == chosen(f"({b}) ({a})", runs)


@given(QUERIES, st.lists(st.tuples(st.booleans(), SUMMARIES), max_size=12), st.data())
def test_cached_columns_change_no_result(text: str, many: list[tuple[bool, RunSummary]], data: st.DataObject) -> None:
    columns: query.Columns[RunSummary] = query.Columns()
    matcher = query.for_runs(text, now=NOW)
    runs: list[RunSummary] = []
    for drop, run in many:
        if drop and runs:
            runs.pop(data.draw(st.integers(0, len(runs) - 1)))
        runs.append(msgspec.structs.replace(run))
        assert matcher.select(runs, columns) == matcher.select(runs)


def test_free_words_find_what_they_always_found() -> None:
    """The filter of old: every blank-separated word anywhere in the text, ``!word`` nowhere."""
    runs = [
        make_summary(f"{i}", prompt=prompt) for i, prompt in enumerate(["max_steps(10)", "a|b", "C:\\x", "it's 5%"])
    ]
    for number, text in enumerate(["max_steps(10)", "a|b", "c:\\x", "it's 5%"]):
        assert ids(text, runs) == str(number)
        assert str(number) not in ids("!" + text.split()[0], runs)


# ---- the samples


@cache
def samples() -> list[RunSummary]:
    with tempfile.TemporaryDirectory() as folder:
        demo.write(Path(folder), datetime.fromtimestamp(NOW, UTC))
        return [run for file in scan(LocalSource(), [folder], deep=True) for run in file.runs]


def test_the_samples_have_something_for_most_keys() -> None:
    relations = Relations(samples())
    context = query.TraceContext(lambda: relations)
    silent = {"verdict", "note", "cause", "tag", "source", "cost", "problems", "outcome", "score", "task", "trial"}
    silent |= {"touched", "wrote", "read", "deleted", "net", "cmd", "does"}
    silent |= {"context", "missed", "grew", "break"}
    empty = [
        key.name
        for key in query.RUN_KEYS.keys
        if key.kind is not query.Kind.FACT
        and key.name not in silent
        and key.kind is not query.Kind.TIME
        and not query.for_runs(f"has:{key.name}", context).select(samples())
    ]
    assert empty == []


def test_a_facet_counts_what_its_term_finds() -> None:
    facets = query.facets(query.RUN_KEYS, samples())
    assert {
        "status",
        "state",
        "outcome",
        "agent",
        "model",
        "tool",
        "node",
        "format",
        "verdict",
        "score",
        "task",
        "who",
    } >= {facet.key for facet in facets} - {
        "tag",
        "source",
    }
    assert facets[0].key == "status"
    for facet in facets:
        counts = [count for _, count in facet.values]
        assert counts == sorted(counts, reverse=True)
        for value, count in facet.values:
            assert len(query.for_runs(facet.term(value)).select(samples())) == count, facet.term(value)


@pytest.mark.parametrize("mask", [MASK, ASCII_MASK])
def test_a_mask_stands_for_the_secret_that_it_hides(mask: str) -> None:
    runs = [make_summary(agent, agent=agent) for agent in ("bot sk-live-1234", "bot [a-z]*", "cat sk-live-1234")]
    for text, expected in {
        f'agent:"bot {mask}"': ["bot sk-live-1234", "bot [a-z]*"],
        f'agent:"bot [a-z]{mask}"': ["bot [a-z]*"],
        f'agent:"b?t {mask}"': [],
        f"agent:{mask}1234": ["bot sk-live-1234", "cat sk-live-1234"],
    }.items():
        assert [run.agent for run in query.for_runs(text).select(runs)] == expected, text


def test_the_lack_of_a_verdict_can_be_picked() -> None:
    facets = {facet.key: facet for facet in query.facets(query.RUN_KEYS, RUNS, People())}
    assert facets["verdict"].values == [(None, 2), ("flaky", 1)]
    assert facets["verdict"].term(None) == "verdict:none"
    assert "verdict" not in {facet.key for facet in query.facets(query.RUN_KEYS, RUNS)}


def test_values_that_mean_the_same_are_one_facet() -> None:
    runs = [make_summary(str(i), tools=(tool,)) for i, tool in enumerate(["Bash", "bash", "Bash", "a b", "none"])]
    facet = next(facet for facet in query.facets(query.RUN_KEYS, runs) if facet.key == "tool")
    assert facet.values == [("Bash", 3), ("a b", 1), ("none", 1)]
    assert [facet.term(value) for value, _ in facet.values] == ["tool:Bash", 'tool:"a b"', 'tool:"none"']


@given(st.lists(SUMMARIES, max_size=8), st.sampled_from(["b", "bash", "o", "er", "none", "re", "ä"]))
def test_facets_with_a_prefix_are_those_that_begin_with_it(runs: list[RunSummary], prefix: str) -> None:
    every = {facet.key: facet.values for facet in query.facets(query.RUN_KEYS, runs, People())}
    facets = {facet.key: facet.values for facet in query.facets(query.RUN_KEYS, runs, People(), prefix)}
    beginning = {
        key: [pair for pair in values if (pair[0] or "").lower().startswith(prefix)] for key, values in every.items()
    }
    assert facets == {key: values for key, values in beginning.items() if values}


def test_a_word_asks_runs_only_for_what_it_may_become() -> None:
    class Counting(query.TraceContext):
        def verdict(self, run: RunSummary) -> str | None:
            asked.append("verdict")
            return None

        def tags(self, run: RunSummary) -> Sequence[str]:
            asked.append("tags")
            return ()

    asked: list[str] = []
    query.complete("res", 3, query.RUN_KEYS, RUNS, Counting())
    assert asked == []
    query.complete("rea", 3, query.RUN_KEYS, RUNS, Counting())
    assert asked == ["verdict"] * len(RUNS)


@pytest.mark.parametrize("text", ["since:25:00", "since:9:60", "on:24:00"])
def test_a_time_of_day_that_no_clock_shows_is_wrong(text: str) -> None:
    with pytest.raises(query.QueryError, match=r"doesn.t take"):
        query.for_runs(text + " x", People())


def test_some_of_many_choices_are_shown() -> None:
    with pytest.raises(query.QueryError, match=r"use agent, .* …$"):
        query.for_runs("has:xyzzy", People())


def offered(text: str, runs: list[RunSummary] = RUNS, **more: Any) -> list[str]:
    """What the text may become."""
    completions = query.complete(text, len(text), query.RUN_KEYS, runs, People(), **more)
    return [text[: completion.start] + completion.text + text[completion.end :] for completion in completions]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ["status:", "outcome:", "verdict:"]),
        ("score:", ["score:reward", 'score:"Word Count"']),
        ("task:", ["task:poems/1"]),
        ("sta", ["status:", "state:"]),
        ("state:", ["state:ended", "state:running"]),
        ("-ta", ["-tag:"]),
        ("a (to", ["a (tool:", "a (tokens>", "a (tool_calls>"]),
        ("dur", ["dur>", "dur<"]),
        ("dur>", ["dur>1s", "dur>10s", "dur>1m"]),
        ("status:", ["status:completed", "status:error", "status:max_turns"]),
        ("status:o", ["status:ok", "status:completed", "status:error"]),
        ("status:error,", ["status:error,completed"]),
        ("x tool:b", ["x tool:Bash"]),
        ('tool:"b', ["tool:Bash"]),
        ("verdict:", ["verdict:none", "verdict:flaky", "verdict:real", "verdict:known", "verdict:ignore"]),
        ("relation:st", ["relation:student"]),
        ("who:", ["who:none", "who:agent", "who:grader"]),
        ("does:pipe", ["does:pipe-to-shell"]),
        ("status:canc", ["status:cancelled"]),
        ("error:", ["error:TimeoutError"]),
        ("sig:", ["sig:F-3a9c"]),
        ("has:or", ["has:original"]),
        ("is:", ["is:running", "is:failed"]),
        ("a o", ["a outcome:", "a original:", "a output_tokens>", "a on:", "a or "]),
        ("nigh", ["tag:nightly"]),
    ],
)
def test_completions(text: str, first: list[str]) -> None:
    assert offered(text)[: len(first)] == first


def test_completion_in_the_middle_leaves_the_rest() -> None:
    completions = query.complete("stat tool:bash", 4, query.RUN_KEYS, RUNS)
    assert [(completion.text, completion.start, completion.end) for completion in completions] == [
        ("status:", 0, 4),
        ("state:", 0, 4),
    ]


@given(st.text("sta:tool\"'(),!- >*dur\n", max_size=20), st.integers(-3, 25))
def test_completions_fit_into_any_text(text: str, cursor: int) -> None:
    for completion in query.complete(text, cursor, query.RUN_KEYS, RUNS):
        assert 0 <= completion.start <= completion.end <= len(text)


def test_completed_values_are_found() -> None:
    for key in (key for key in query.RUN_KEYS.keys if key.kind is query.Kind.NAME):
        for completion in query.complete(f"{key.name}:", len(key.name) + 1, query.RUN_KEYS, samples()):
            selected = query.for_runs(f"{key.name}:{completion.text}").select(samples())
            assert len(selected) == int(completion.hint), (key.name, completion)


def test_a_run_of_another_file_is_no_other_run() -> None:
    twice = [make_summary("x"), make_summary("x")]
    assert len(query.for_runs("id:x").select(twice)) == 2
    moved = msgspec.structs.replace(twice[0], ref=RunRef("any", "/else.json"))
    assert query.for_runs("path:else").select([*twice, moved]) == [moved]


@pytest.mark.parametrize("steps", [0, 1, 2, 99])
def test_facts_computed_ahead_are_used(steps: int) -> None:
    runs = [make_summary(f"run-{number}") for number in range(9_000)]
    asked: list[RunSummary] = []

    def hay(run: RunSummary) -> str:
        asked.append(run)
        return str(query.RUN_KEYS.hay(run))

    columns: query.Columns[RunSummary] = query.Columns()
    ahead = columns.ahead("", hay, runs)
    for _ in zip(range(steps), ahead, strict=False):
        pass
    columns.begin(runs)
    assert columns.get("", hay, runs) == [query.RUN_KEYS.hay(run) for run in runs]
    assert len(asked) == len(runs)  # nothing is asked twice
    assert list(ahead) == []


def test_repetitions_are_asked_for_by_what_they_are() -> None:
    runs = [make_summary(name, repeats="task", started_at=NOW + i) for i, name in enumerate(("one", "two", "three"))]
    runs.append(make_summary("fork", replay_of="two", relation="fork", repeats="task"))

    assert ids("is:repeat", runs) == ids("relation:repeat", runs) == "two three"
    assert ids("has:repeats", runs) == "one"
    assert ids("is:replay", runs) == ids("relation:fork", runs) == "fork"
    assert ids("has:replay", runs) == "two"


def test_a_student_is_no_replay() -> None:
    teacher = make_summary("teacher")
    runs = [teacher, make_summary("pupil", replay_of="teacher", relation="student")]
    runs.append(make_summary("again", replay_of="teacher"))
    assert ids("is:replay", runs) == ids("relation:replay", runs) == "again"
    assert ids("is:student", runs) == ids("relation:student", runs) == "pupil"
    assert ids("has:original", runs) == "pupil again"


@pytest.mark.parametrize("status", [Status.OK, Status.CANCELLED, Status.UNKNOWN, Status.RUNNING])
def test_only_a_run_that_failed_has_an_error(status: Status) -> None:
    """A call that failed inside a run that went on is no cause, and is not shown as one."""
    cause = FirstError("search timed out", "TimeoutError", "s1", "search")
    kinds = {"ended": status, "failed": Status.ERROR}
    runs = [make_summary(name, status=kind, first_error=cause, errors=1) for name, kind in kinds.items()]

    for text in ("error:timed", "error=TimeoutError", "has:error", "timed out"):
        assert ids(text, runs) == "failed", text
    for text in ("errors>0", "has:errors", "-has:error errors=1"):
        assert "ended" in ids(text, runs), text
