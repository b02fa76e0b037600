"""What is drawn has no secrets in it, and one key reveals one of them."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from tests.canaries import CANARY, NAMED, SHAPED
from tracetui import analysis, masking, views
from tracetui.live.engine import Engine
from tracetui.live.load import Reader, read_run
from tracetui.live.mailbox import Mail
from tracetui.model import (
    Body,
    FirstError,
    LastEvent,
    Message,
    Operation,
    Run,
    RunRef,
    RunSummary,
    Span,
    Status,
    Text,
    ToolCall,
    ToolResult,
)
from tracetui.model.masked import masked_body, masked_span, masked_summary, unmasked
from tracetui.redact import MASK, Redactor
from tracetui.sources.local import LocalSource
from tracetui.text import Clean
from tracetui.views import rows
from tracetui.views.detail.tabs import reveal_value, tab_names, tab_rows
from tracetui.views.document import ValueKey
from tracetui.views.list.runs import RunRows
from tracetui.views.rows import Piece, Rows, width_of
from tracetui.views.timeline.spans import SpanRows

SOURCE = LocalSource()
SECRETS = {**SHAPED, **NAMED}


def secret_trace(folder: Path, number: int = 0) -> RunRef:
    """A session in which every kind of secret is in every kind of place."""
    secrets = "; ".join(SHAPED.values())
    lines = [
        {"kind": "session_start", "session_id": f"s{number}", "cwd": "/srv"},
        {"kind": "user_prompt", "text": f"use {SHAPED['aws']} and {secrets}"},
        {
            "kind": "assistant_turn",
            "blocks": [
                {"type": "text", "text": f"I see {secrets}"},
                {"type": "tool_use", "id": "t1", "name": "login", "input": dict(SECRETS)},
            ],
            "stop_reason": "tool_use",
        },
        {
            "kind": "tool_result",
            "tool_use_id": "t1",
            "content": f"denied: {secrets} {json.dumps(NAMED)}",
            "is_error": True,
        },
        {"kind": "session_end", "reason": "error"},
    ]
    path = folder / f"secret{number}.ccpa-trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RunRef("ccpa", str(path))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The run as the screen gets it: bodies masked, headers exact."""
    reader = Reader(SOURCE, secret_trace(tmp_path), redactor=masking.current())
    reader.catch_up()
    return reader.build()


def lines_of(rows: Rows) -> Iterator[str]:
    for index in range(len(rows)):
        yield "".join(piece.text for piece in rows.line(index, 400))


def test_the_trace_has_secrets_in_headers_and_bodies(tmp_path: Path) -> None:
    exact = read_run(SOURCE, secret_trace(tmp_path))
    assert any(CANARY in span.preview for span in exact.spans)
    assert any(span.error is not None and CANARY in span.error.text for span in exact.spans)
    assert any(CANARY in str(exact.load(span)) for span in exact.spans)


def test_no_pane_draws_a_secret(run: Run) -> None:
    drawn = [*lines_of(SpanRows(run, tree=True)), *lines_of(SpanRows(run, tree=False))]
    drawn += lines_of(RunRows([run.summary], now=0))
    for span in run.spans:
        body = run.load(span)
        for tab in tab_names(run, span, body):
            drawn += lines_of(tab_rows(run, span, body, tab, width=200))
    assert not [line for line in drawn if CANARY in line]
    assert sum(MASK in line for line in drawn) > 10


def test_exact_values_of_a_body_are_available_on_request(run: Run) -> None:
    span = next(span for span in run.spans if span.name == "login")
    assert CANARY not in str(run.load(span).input)
    assert unmasked(run).load(span).input == SECRETS


def test_the_engine_loads_a_body_both_ways(tmp_path: Path) -> None:
    ref = secret_trace(tmp_path)
    engine = Engine(SOURCE, [str(tmp_path)])
    arrived = threading.Event()
    engine.bind(arrived.set)
    engine.first_painted()
    engine.start()
    try:
        run = _until(engine, lambda: engine.open(ref), lambda mail: next(iter(mail.runs.values()), None))
        span = next(span for span in run.spans if span.name == "login")
        body = _until(engine, lambda: engine.load_body(run, span), lambda mail: mail.bodies.get((ref, span.id)))[1]
        exact = _until(engine, lambda: engine.load_body(run, span, unmasked=True), lambda mail: mail.unmasked)
    finally:
        engine.stop()
    assert CANARY not in str(body.input)
    assert exact[2].input == SECRETS


Answer = TypeVar("Answer")


def _until(engine: Engine, ask: Callable[[], None], answer: Callable[[Mail], Answer | None]) -> Answer:
    ask()
    for _ in range(100):
        engine.wait(1)
        reply = answer(engine.collect())
        if reply is not None:
            return reply
    raise AssertionError("no answer")


CALL = ToolCall("1", "login", {"password": "a", "user": "root"})
EXACT = Body(
    input={"deep": [{"api_key": "k1", "n": 1}, {"token": "k2"}], SHAPED["aws"]: {"secret": "k3"}},
    output=f"made {SHAPED['aws']}",
    input_messages=(Message("user", (Text(f"use {SHAPED['aws']}"), CALL)),),
    output_messages=(Message("tool", (ToolResult("1", {"cookie": "c"}),)),),
)


def _keys(body: Body, tab: str, run: Run) -> list[Hashable]:
    rows = tab_rows(run, run.spans[0], body, tab, width=100)
    return [rows.key(i) for i in range(len(rows))]


def test_one_row_reveals_one_value(run: Run) -> None:
    masked = masked_body(EXACT, Redactor())
    for path, value in ((("deep", 0, "api_key"), "k1"), (("deep", 1, "token"), "k2"), ((MASK, "secret"), "k3")):
        revealed = reveal_value(masked, EXACT, ValueKey("input", path))
        assert revealed is not None
        assert {key for key in ("k1", "k2", "k3", CANARY) if key in str(revealed)} == {value}
    (output,) = _keys(masked, "output", run)
    assert reveal_value(masked, EXACT, output) == msgspec.structs.replace(masked, output=EXACT.output)


def test_one_row_reveals_one_part_of_a_message(run: Run) -> None:
    masked = masked_body(EXACT, Redactor())
    revealed = {str(body) for key in _keys(masked, "messages", run) if (body := reveal_value(masked, EXACT, key))}
    assert any(CANARY in body and "'a'" not in body for body in revealed)
    assert any("'cookie': 'c'" in body and CANARY not in body for body in revealed)


def test_a_masked_body_has_its_exact_source_record_and_does_not_count_its_secrets() -> None:
    record = SHAPED["aws"].encode()
    with_record, without_record = Redactor(), Redactor()
    masked_body(EXACT, without_record)
    assert masked_body(msgspec.structs.replace(EXACT, raw=record), with_record).raw is record
    assert with_record.counts == without_record.counts


def test_every_name_in_a_summary_and_a_header_is_masked() -> None:
    secret = f"is {SHAPED['aws']}"
    summary = RunSummary.of(
        ref=RunRef("paprika", "a.json"),
        id="a",
        name=secret,
        agent=secret,
        model=secret,
        source=secret,
        status_word=secret,
        prompt=secret,
        result=secret,
        label=secret,
        title=secret,
        last=LastEvent(Operation.EXECUTE_TOOL, "x", Status.RUNNING, secret),
        tools=("search", secret),
        models=(secret,),
        nodes=(secret,),
        tags=(secret, "plain"),
        first_error=FirstError(secret, secret, name=secret),
    )
    span = Span(id="s", name=secret, status_word=secret, model=secret, preview=secret, note=secret)

    masked = masked_summary(summary, Redactor())

    assert CANARY not in str(masked) + str(masked_span(span, Redactor()))
    assert (masked.tools, masked.tags) == (("search", f"is {MASK}"), (f"is {MASK}", "plain"))
    plain = RunSummary.of(ref=summary.ref, id="a", name="a", tools=("search",), tags=("x",))
    assert masked_summary(plain, Redactor()) is plain


def test_a_row_without_a_secret_reveals_nothing(run: Run) -> None:
    masked = masked_body(EXACT, Redactor())
    assert reveal_value(masked, EXACT, ("overview", 3)) is None
    assert reveal_value(EXACT, EXACT, _keys(EXACT, "input", run)[0]) is None


def test_masks_are_drawn_in_their_own_style() -> None:
    line = (Piece(Clean(f"a {MASK} (secret 2) b"), "dim"), Piece(Clean("c"), "text"))
    styled = rows.style_masks(line)
    assert styled == (
        Piece(Clean("a "), "dim"), Piece(Clean(f"{MASK} (secret 2)"), "mask"), Piece(Clean(" b"), "dim"), line[1],
    )  # fmt: skip
    assert width_of(styled) == width_of(line)
    assert rows.style_masks(line[1:]) == line[1:]


def test_a_thread_may_mask_otherwise() -> None:
    with masking.using(None):
        assert CANARY in masking.one_line(SHAPED["aws"])
    with masking.using(Redactor(mask="********")):
        assert masking.one_line(SHAPED["aws"]) == "********"
    assert masking.one_line(SHAPED["aws"]).startswith(MASK)


def test_ascii_masks_are_chosen_once() -> None:
    try:
        assert masking.choose(ascii_glyphs=True) is masking.current()
        assert masking.one_line(SHAPED["aws"]).startswith("********")
    finally:
        masking.choose(ascii_glyphs=False)


def test_the_model_is_not_changed(tmp_path: Path) -> None:
    exact = read_run(SOURCE, secret_trace(tmp_path))
    assert unmasked(exact) is exact
    assert isinstance(exact.spans[0], Span)


BODIES = {"assessment", "document", "sheet", "stack", "styled", "text", "transcript", "values"}
"""Views of bodies, which are masked already."""


@pytest.mark.parametrize(
    "path",
    sorted(path for package in (views, analysis) for path in Path(package.__path__[0]).rglob("*.py")),
    ids=lambda path: path.stem,
)
def test_strings_of_headers_pass_the_gate_that_masks(path: Path) -> None:
    imported = {
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "tracetui.text"
        for alias in node.names
    }
    assert path.stem in BODIES or not imported & {"clean", "clean_lines", "one_line"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("## Done\n\n- **two** `files`", "Done: two files"),
        ("## Summary\nI fixed it.\n\n**Next steps:**\n* test", "Summary: I fixed it. Next steps: test"),
        ("# All done!\n## Why\nBecause", "All done! Why: Because"),
        ("see **`a.py`**: C# and **kwargs, issue #5", "see a.py: C# and **kwargs, issue #5"),
        ("```python\nprint(1)\n```\nprinted", "print(1) printed"),
        ("**unclosed and 2 ** 3 ** 4", "**unclosed and 2 ** 3 ** 4"),
    ],
)
def test_prose_has_no_marks_of_markdown(text: str, line: str) -> None:
    assert masking.prose(text) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("password: `hunter2 horse battery`", f"password: {MASK}"),  # the mark says where it ends
        ("PASSWORD=`hunter2 horse` is set", f"PASSWORD={MASK} is set"),
        ("# password\n\nhunter2horse9", f"password: {MASK}"),  # the heading's colon shows what it is
    ],
)
def test_prose_masks_secrets_between_marks(text: str, line: str) -> None:
    assert masking.prose(text) == line
