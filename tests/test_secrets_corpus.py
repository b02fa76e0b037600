"""The corpus of secrets is masked, and look-alikes are left alone, wherever a trace is shown or exported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests import secrets_outputs
from tests.cli.run import Cli
from tests.cli.test_secrets import events_of
from tests.export.test_document import cli  # noqa: F401 - fixture
from tests.secrets_corpus import LOOKALIKES, SECRETS, Sample
from tests.shared import SEARCHES
from tests.ui.conftest import Opener, opened, press, text_of  # noqa: F401 - fixtures
from tests.views.test_masking import lines_of
from tracetui import masking
from tracetui.cli.tail import _write_json, _write_text
from tracetui.export import snippets
from tracetui.export.json import Lines
from tracetui.live.load import Reader
from tracetui.model import Operation, Run, RunRef
from tracetui.redact import MASK, Redactor
from tracetui.sources.local import LocalSource
from tracetui.views.detail.tabs import tab_names, tab_rows
from tracetui.views.list.runs import RunRows
from tracetui.views.timeline.spans import SpanRows

EVERY = (*SECRETS, *secrets_outputs.SECRETS)
COLOR = re.compile(r"\x1b(?:\[[0-?]*[@-~]|\][^\x1b]*\x1b\\)")
MASKED, LEFT_ALONE = 0.95, 0.97


def masked_texts(text: str) -> list[str]:
    """The masked text, by every way that leads to it."""
    redactor = Redactor()
    body = {"messages": [{"content": text}]}
    return [
        redactor.text(text),
        redactor.text(COLOR.sub("", text)),
        COLOR.sub("", redactor.text(text)),
        str(redactor.value(body)),
        redactor.raw(json.dumps(body).encode()).decode(),
        redactor.text(json.dumps({"a": json.dumps(body)})),
    ]


def check(failed: Iterable[Sample], samples: Iterable[Sample], share: float) -> None:
    names, count = sorted({sample.name for sample in failed}), len([*samples])
    assert count >= 40
    assert len(names) <= count * (1 - share), names


GROUPS = {
    "tuned": (
        [sample for sample in SECRETS if not sample.held_out],
        [sample for sample in LOOKALIKES if not sample.held_out],
    ),
    "held out": (
        [sample for sample in SECRETS if sample.held_out],
        [sample for sample in LOOKALIKES if sample.held_out],
    ),
    "output of tools": (secrets_outputs.SECRETS, secrets_outputs.LOOKALIKES),
}


@pytest.mark.parametrize("group", GROUPS)
def test_secrets_are_masked(group: str) -> None:
    samples = GROUPS[group][0]
    check((sample for sample in samples if any(map(sample.leaks, masked_texts(sample.text)))), samples, MASKED)


@pytest.mark.parametrize("group", GROUPS)
def test_lookalikes_are_left_alone(group: str) -> None:
    samples = GROUPS[group][1]
    check((sample for sample in samples if Redactor().text(sample.text) != sample.text), samples, LEFT_ALONE)


def test_the_corpus_is_large_enough() -> None:
    assert len(SECRETS) >= 150
    assert len(LOOKALIKES) >= 150
    assert all(sample.bodies for sample in (*SECRETS, *secrets_outputs.SECRETS))


def trace_of(folder: Path, samples: Iterable[Sample], name: str = "corpus") -> RunRef:
    """A session with a tool call for every text: in its arguments, its result or its error."""
    lines: list[dict[str, object]] = [{"kind": "session_start", "session_id": name, "cwd": "/srv"}]
    for number, sample in enumerate(samples):
        given = {"command": sample.text}
        call = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": given}
        lines.append({"kind": "assistant_turn", "blocks": [call], "stop_reason": "tool_use"})
        result = {
            "kind": "tool_result",
            "tool_use_id": f"t{number}",
            "content": sample.text,
            "is_error": number % 2 == 0,
        }
        lines.append(result)
    lines.append({"kind": "session_end", "reason": "error"})
    path = folder / f"{name}.ccpa-trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RunRef("ccpa", str(path))


def drawn(ref: RunRef) -> str:
    """All lines of all panes."""
    reader = Reader(LocalSource(), ref, redactor=masking.current())
    reader.catch_up()
    run: Run = reader.build()
    lines = [*lines_of(SpanRows(run, tree=True)), *lines_of(RunRows([run.summary], now=0))]
    for span in run.spans:
        body = run.load(span)
        for tab in tab_names(run, span, body):
            lines += lines_of(tab_rows(run, span, body, tab, width=400))
    return "\n".join(lines)


SURFACES = {
    "screen": (),
    "ls": ("ls", "PATH"),
    "ls --json": ("ls", "PATH", "--json", "--redact"),
    "show": ("show", "PATH"),
    "show --json": ("show", "PATH", "--json", "--redact"),
    "show --raw": ("show", "PATH", "--raw", "--redact"),
    "diff": ("diff", "PATH", "PATH"),
    "triage": ("triage", "FOLDER"),
    "grep": ("grep", "-m", "1000", "-e", "[a-z]", "FOLDER"),
    "grep --json": ("grep", "-m", "1000", "-e", "[a-z]", "FOLDER", "--json", "--redact"),
    "export md": ("export", "PATH", "--full", "--as", "md"),
    "export html": ("export", "PATH", "--full", "--as", "html"),
    "export json": ("export", "PATH", "--full", "--as", "json"),
    "export of a diff": ("export", "--diff", "PATH", "OTHER", "--as", "md"),
    "export of a triage": ("export", "FOLDER", "--as", "html"),
    "stats": ("stats", "FOLDER", "--by", "tool"),
}


SURFACE_PARTS = 1 if SEARCHES else 2
"""Into how many parts a corpus is divided, of which each surface shows one."""


def part_of(samples: Sequence[Sample], surface: str) -> Sequence[Sample]:
    return samples[[*SURFACES].index(surface) % SURFACE_PARTS :: SURFACE_PARTS]


@pytest.mark.search
@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_shows_no_secret_of_the_corpus(cli: Cli, tmp_path: Path, surface: str) -> None:  # noqa: F811
    samples = part_of(EVERY, surface)
    ref = trace_of(tmp_path, samples)
    places = {"PATH": ref.path, "FOLDER": str(tmp_path)}
    if "OTHER" in SURFACES[surface]:
        places["OTHER"] = trace_of(tmp_path, samples[::-1], "other").path
    arguments = [places.get(word, word) for word in SURFACES[surface]]
    text = cli(*arguments).text if arguments else drawn(ref)
    assert text
    check((sample for sample in samples if sample.leaks(text)), samples, MASKED)


def test_tail_tells_no_secret_of_the_corpus(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    trace_of(tmp_path, EVERY)
    events = [*events_of(tmp_path)]
    for write in (_write_text(Lines(), Redactor()), _write_json(Redactor())):
        for event in events:
            write(event)
        text = capsysbinary.readouterr().out.decode()
        assert len(text) > 10_000
        check((sample for sample in EVERY if sample.leaks(text)), EVERY, MASKED)


def test_what_is_taken_of_a_step_has_no_secret_of_the_corpus(tmp_path: Path) -> None:
    reader = Reader(LocalSource(), trace_of(tmp_path, EVERY))
    reader.catch_up()
    run = reader.build()
    chats = [position for position, span in enumerate(run.spans) if span.operation is Operation.CHAT]
    calls = [position for position, span in enumerate(run.spans) if span.operation is Operation.EXECUTE_TOOL]
    last = run.spans[chats[-1]]
    taken = [snippets.curl(last, run.load(last), Redactor()) or ""]
    taken += [
        copy(run, position, Redactor()) for position in calls[::40] for copy in (snippets.fixture, snippets.pytest_stub)
    ]
    taken += [snippets.fixture(run, chats[-1], Redactor())]
    text = "\n".join(taken)
    assert len(text) > 10_000
    check((sample for sample in EVERY if sample.leaks(text)), EVERY, MASKED)


async def test_the_app_shows_no_secret_of_the_corpus(tmp_path: Path, opened: Opener) -> None:  # noqa: F811
    """The preview in the list, the steps, and the detail of some of them on a large screen."""
    trace_of(tmp_path, EVERY)
    async with opened(tmp_path, size=(160, 200)) as (app, pilot):
        seen = [text_of(app)]
        await press(pilot, "enter")
        seen.append(text_of(app))
        for _ in range(4):
            await press(pilot, *"jj")
            seen.append(text_of(app))
    text = "\n".join(seen)
    assert MASK in text
    check((sample for sample in EVERY if sample.leaks(text)), EVERY, MASKED)


@pytest.mark.search
@pytest.mark.parametrize("surface", ["screen", "show --json", "show --raw", "export md", "export html", "export json"])
def test_a_surface_leaves_lookalikes_alone(cli: Cli, tmp_path: Path, surface: str) -> None:  # noqa: F811
    lookalikes = part_of([sample for sample in LOOKALIKES if MASK not in sample.text], surface)
    ref = trace_of(tmp_path, lookalikes)
    arguments = [ref.path if word == "PATH" else word for word in SURFACES[surface]]
    text = cli(*arguments).text if arguments else drawn(ref)
    places = 8  # each text is in arguments, results and errors, and again in the context of what follows
    assert text.count(MASK) <= places * len(lookalikes) * (1 - LEFT_ALONE)
