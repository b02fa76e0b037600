"""No view shows a secret of an error, of a call or of a result, whichever text it composes or cuts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.run import Cli
from tests.export.test_document import cli  # noqa: F401 - fixture
from tests.redact.corpus import PROMISED
from tests.secrets_corpus import Sample, sample
from tracetui import masking
from tracetui.analysis.run_tree import run_tree
from tracetui.analysis.tasks import as_trials
from tracetui.analysis.triage import CauseOrder, groups
from tracetui.live.jobs import TreeResult, run_tree_job
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import Run, RunRef, RunSummary
from tracetui.model.masked import unmasked
from tracetui.redact import Redactor
from tracetui.sources.local import LocalSource
from tracetui.store.judgement import Judgement
from tracetui.views.run_tree import TreeRows
from tracetui.views.triage import QueueRows, cause_rows

ERRORS = (
    sample("assigned", "login failed: password=«hex64» (try 3)"),
    sample("id", "login failed for password=3fa85f64-5717-4562-b3fc-«hex32»"),
    sample("header list", 'rejected [{"name":"X-Api-Key","value":"«hex64»"}]'),
    sample("json list", '[{"name":"X-Api-Key","value":"«hex64»"}]'),
    sample("escaped name", 'rejected {"p\\u0061ssword": "«hex64»", "error": "no"}'),
    sample("yaml", "invalid settings\n- name: DB_PASSWORD\n  value: «hex64»\n"),
    sample("message in json", '{"error": {"message": "bad key", "api_key": "«hex64»", "code": "E401"}}'),
    *(promised for promised in PROMISED if promised.name.startswith("promised") and promised.name.endswith("error")),
)


def write_run(folder: Path, error: str, name: str = "run") -> None:
    """A failed run whose tool call, result and error have the text."""
    spans: list[dict[str, Any]] = [
        {
            "name": "execute_tool login",
            "attributes": {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "login",
                "gen_ai.tool.call.arguments": json.dumps({"text": error}),
                "gen_ai.tool.call.result": error,
            },
            "events": [
                {"name": "exception", "attributes": {"exception.type": "LoginError", "exception.message": error}}
            ],
            "status": {"code": 2, "message": error},
            "parent": True,
        },
        {
            "name": "invoke_agent a",
            "attributes": {"gen_ai.operation.name": "invoke_agent"},
            "status": {"code": 2, "message": error},
        },
    ]
    made = []
    for number, span in enumerate(spans, 1):
        made.append(
            {
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                "spanId": f"00f067aa0ba902b{number}",
                "parentSpanId": "00f067aa0ba902b2" if span.get("parent") else "",
                "name": span["name"],
                "startTimeUnixNano": "1790000000000000000",
                "endTimeUnixNano": "1790000001000000000",
                "attributes": [
                    {"key": key, "value": {"stringValue": value}} for key, value in span["attributes"].items()
                ],
                "events": [
                    {
                        "timeUnixNano": "1790000001000000000",
                        "name": event["name"],
                        "attributes": [
                            {"key": key, "value": {"stringValue": value}} for key, value in event["attributes"].items()
                        ],
                    }
                    for event in span.get("events", ())
                ],
                "status": span["status"],
            }
        )
    document = {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}
    (folder / f"{name}.json").write_text(json.dumps(document))


def runs_in(folder: Path) -> list[RunSummary]:
    return [run for file in scan(LocalSource(), [str(folder)], deep=True) for run in file.runs]


@pytest.fixture(params=ERRORS, ids=lambda error: error.name)
def error(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    made: Sample = request.param
    write_run(tmp_path, made.text)
    return made


def test_no_command_prints_a_secret(error: Sample, tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    write_run(tmp_path, f"then {error.text}", "other")
    run, other = runs_in(tmp_path)
    folder, address = str(tmp_path), run.ref.address
    commands = (
        ("ls", folder),
        ("ls", "--json", "--redact", folder),
        ("show", address),
        ("show", "--json", "--redact", address),
        ("triage", folder),
        ("triage", "--json", "--redact", folder),
        ("grep", "e", folder),
        ("grep", "--json", "--redact", "e", folder),
        ("export", folder, "--as", "html"),
        *(("export", address, "--full", "--as", form) for form in ("md", "html", "json")),
        *((command, folder) for command in ("tasks", "files", "audit", "stats")),
        ("context", address),
        ("diff", address, other.ref.address),
        ("diff", "--json", "--redact", address, other.ref.address),
    )
    for command in commands:
        output = cli(*command)
        assert not error.leaks(output.text + output.err), command


def test_no_row_shows_or_copies_a_secret(error: Sample, tmp_path: Path) -> None:
    runs = runs_in(tmp_path)
    (group,) = groups(runs)
    listed = {run.ref: run for run in runs}
    order = CauseOrder([group])
    queue = QueueRows(order, listed, lambda _: Judgement(), unfolded={group.digest}, now=0.0)
    cause = cause_rows(group, runs[0], Judgement(), None, width=200, now=0.0)
    (trial,) = as_trials(runs)
    tree = run_tree([trial], {run.ref: read_run(LocalSource(), run.ref) for run in runs}.get, texts=False)
    for rows in (queue, cause, TreeRows(tree, {}, ())):
        for index in range(len(rows)):
            text = "".join(piece.text for piece in rows.line(index, 200))
            assert not error.leaks(text), text
            assert not error.leaks(masking.mask(rows.plain(index)))


def test_the_names_beside_an_error_stay(tmp_path: Path) -> None:
    short = ERRORS[0].text.removesuffix(" (try 3)")
    for number, text in enumerate((short, f"HTTP 429 rate limit: {short}")):
        write_run(tmp_path, text, f"run-{number}")
    titles = sorted(masking.excerpt(group.title) for group in groups(runs_in(tmp_path)))
    assert [(title.split(":")[0], title.split()[-1]) for title in titles] == [
        ("HTTP 429 rate limit", "login"),
        ("LoginError", "login"),
    ]


def test_the_tree_of_runs_has_masked_bodies_and_reads_on_with_exact_ones(error: Sample, tmp_path: Path) -> None:
    trials = as_trials(runs_in(tmp_path))
    loaded: dict[RunRef, Run] = {}
    for _ in range(2):
        job = run_tree_job(trials, loaded=loaded, redactor=Redactor())
        assert [*job.work(LocalSource())]
        result = None if job.result is None else job.result()
        assert isinstance(result, TreeResult)
        loaded = {run.summary.ref: run for run in result.tree.runs}
        for run in result.tree.runs:
            assert not any(error.leaks(repr(masking.record(run.load(span).raw))) for span in run.spans)
            assert not any(error.leaks(repr(replace(run.load(span), raw=b""))) for span in run.spans)
            assert any(error.leaks(repr(unmasked(run).load(span))) for span in run.spans)


@pytest.mark.parametrize("part", [4, 8])
def test_masked_search_tells_nothing_about_a_secret(part: int, tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    secret = sample("search", "login with password=«hex64» failed")
    write_run(tmp_path, secret.text)
    guess = secret.bodies[0][:part]
    assert guess in cli("grep", "--json", guess, str(tmp_path)).text
    assert cli("grep", "--json", "--redact", guess, str(tmp_path)).text.count("\n") == 1  # the end
