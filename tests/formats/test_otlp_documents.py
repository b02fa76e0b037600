"""OTLP JSON that is indented: one request as a document, or several one after the other in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_otlp import FORMAT, request, span
from tests.formats.test_otlp_growing import in_trace, spans
from tracetui.cli import main
from tracetui.formats.decode import decode
from tracetui.formats.otlp import files as documents
from tracetui.live.load import FileCaches, Reader, read_run
from tracetui.model import Problem, RunSummary
from tracetui.sources.local import LocalSource
from tracetui.testing.reading import MTIME, Follower

SOURCE = LocalSource()
REQUESTS = [request(record) for record in spans()]


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    os.utime(path, (MTIME, MTIME))
    return path


def listed(path: Path) -> tuple[list[RunSummary], list[Problem]]:
    with SOURCE.open(str(path)) as file:
        assert FORMAT.sniff(file) == 100
        items = list(FORMAT.summarize(file, deep=True))
    runs = [item for item in items if isinstance(item, RunSummary)]
    return runs, [item for item in items if isinstance(item, Problem)]


def facts(run: RunSummary) -> tuple[Any, ...]:
    return run.id, run.name, run.status, run.usage, run.spans, run.llm_calls, run.errors, run.first_error, run.prompt


@pytest.mark.parametrize("between", ["\n", "", "\n\n", "\r\n"])
@pytest.mark.parametrize("indent", [1, 2, "\t"])
def test_documents_one_after_the_other_are_read_as_lines_are(tmp_path: Path, between: str, indent: int | str) -> None:
    text = between.join(json.dumps(request, indent=indent) for request in REQUESTS)
    text = text.replace("\n", "\r\n") if between == "\r\n" else text
    runs, problems = listed(put(tmp_path / "pretty.json", text))
    lines, _ = listed(put(tmp_path / "lines.jsonl", "".join(json.dumps(request) + "\n" for request in REQUESTS)))
    assert problems == []
    assert [facts(run) for run in runs] == [facts(run) for run in lines]
    assert len(runs) == 3
    for run, line in zip(runs, lines, strict=True):
        pretty, plain = read_run(SOURCE, run.ref), read_run(SOURCE, line.ref)
        assert facts(pretty.summary) == facts(run)
        bodies = [[document.load(span) for span in document.spans] for document in (pretty, plain)]
        assert [body.attributes for body in bodies[0]] == [body.attributes for body in bodies[1]]
        assert all(json.loads(body.raw)["spanId"] for body in bodies[0])


@pytest.mark.parametrize("text", [json.dumps(REQUESTS[0], indent=0), json.dumps({"a": REQUESTS}, indent=2)])
def test_one_document_is_one_however_it_is_indented(tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "one.json", text)
    with SOURCE.open(str(path)) as file:
        (line,) = documents.documents(file)
    assert (line.offset, line.number, line.data, line.whole) == (0, 1, text.encode(), True)


def test_documents_are_separated_wherever_the_chunks_of_a_read_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(json.dumps(request, indent=2) for request in REQUESTS)
    path = put(tmp_path / "pretty.json", text)
    for size in (1, 7, 100):
        monkeypatch.setattr(documents, "BLOCK", size)
        with SOURCE.open(str(path)) as file:
            cut = list(documents.documents(file))
        assert [json.loads(line.data) for line in cut] == REQUESTS
        for line in cut:
            assert text.encode()[line.offset :].startswith(line.data)
            assert line.number == text[: line.offset].count("\n") + 1


def test_a_broken_document_is_a_problem_with_its_place(tmp_path: Path) -> None:
    texts = [json.dumps(request, indent=2) for request in REQUESTS]
    broken = texts[1].replace('"name":', '"name"')
    runs, problems = listed(put(tmp_path / "pretty.json", "\n".join([texts[0], broken, *texts[2:]])))
    assert len(runs) == 3
    (problem,) = problems
    assert problem.where == f"line {texts[0].count(chr(10)) + 2}"
    assert problem.lost == len(broken)
    runs, problems = listed(put(tmp_path / "torn.json", "\n".join([*texts, texts[0][:100]])))
    assert [(problem.torn, problem.lost) for problem in problems] == [(True, 100)]


def test_each_document_is_decoded_once_for_all_its_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [in_trace(trace, record) for trace in range(100, 140) for record in spans()[:3]]
    path = put(tmp_path / "one.json", json.dumps(request(*records), indent=2))
    runs, _ = listed(path)
    assert len(runs) == 40
    decoded: list[int] = []

    def noted(data: bytes) -> Any:
        decoded.append(len(data))
        return decode(data)

    monkeypatch.setattr("tracetui.formats.otlp.files.decode", noted)
    monkeypatch.setattr("tracetui.formats.otlp.files.settled", lambda stat: True)  # the file was written just now
    shared = FileCaches()
    for run in runs:
        reader = Reader(SOURCE, run.ref, cache=shared.for_run(run.ref))
        *_, whole = reader.steps(lambda: None)
        assert whole.summary.spans == run.spans == 3
    assert len(decoded) == 1


def test_documents_that_are_appended_are_followed(tmp_path: Path) -> None:
    path = put(tmp_path / "pretty.json", json.dumps(REQUESTS[0], indent=2) + "\n")
    (run,), _ = listed(path)
    follower = Follower(FORMAT, run.ref)
    follower.read()
    for document in REQUESTS[1:3]:
        with path.open("a") as file:
            file.write(json.dumps(document, indent=2) + "\n")
        follower.read()
        follower.check("after another document")


def test_fields_of_spans_that_the_protocol_does_not_know_are_counted(tmp_path: Path) -> None:
    strange = [{**record, "gale": 1} for record in spans()[:3]]
    text = "".join(json.dumps(request) + "\n" for request in (request(*strange), *REQUESTS[3:]))
    runs, _ = listed(put(tmp_path / "lines.jsonl", text))
    assert [run.ledger.fields for run in runs] == [(("span.gale", 3),), (), ()]
    assert [read_run(SOURCE, run.ref).summary.ledger for run in runs] == [run.ledger for run in runs]


def test_the_traces_of_a_conversation_are_found_by_its_id(tmp_path: Path) -> None:
    names = ({"gen_ai.conversation.id": "talk-7"}, {"session.id": "talk-7"}, {"thread": "talk-7"})
    requests = [
        request(in_trace(trace, span(1, None, 0, 90, attributes=attributes)))
        for trace, attributes in enumerate(names, 1)
    ]
    path = put(tmp_path / "lines.jsonl", "".join(json.dumps(request) + "\n" for request in requests))
    runs, _ = listed(path)
    assert [run.tags for run in runs] == [("talk-7",), ("talk-7",), ()]
    code = main(["ls", str(path), "--query", "tag:talk-7", "--json"])
    assert code == 0
