"""Full-text search finds the same as a search of decoded values, and reports what it could not read."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.canaries import CANARY, SHAPED
from tests.live.sessions import Session, paprika
from tests.shared import examples
from tracetui import load_all
from tracetui.analysis import search as search_of_runs
from tracetui.analysis.search import Hit, Needle, Options
from tracetui.demo import write
from tracetui.errors import UsageError
from tracetui.export import json as export
from tracetui.live import search as search_of_files
from tracetui.live.scan import scan
from tracetui.live.search import Item, Outcome, grep, grep_runs
from tracetui.model import Problem, Run, RunRef
from tracetui.model.build import Ownership, ownership
from tracetui.redact import Redactor
from tracetui.sources.local import LocalSource

Place = tuple[str, str | None]
EVERYTHING = Options(repeats=True)
OWN_WORDS = re.compile(
    r"stopped: |session ended: |exit \d+$|ended after \d|goal not met$|(States|Says) .*: (Turns|No turn)"
)
"""Errors and findings that a format composed of several values: no record contains them."""


class Texts(dict[Place, list[str]]):
    """The texts of each place; too many to be printed when a test fails."""

    def __repr__(self) -> str:
        return f"<texts of {len(self)} places>"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    write(folder, datetime(2026, 11, 21, 12, tzinfo=UTC))
    return folder


@pytest.fixture(scope="module")
def runs(samples: Path) -> list[Run]:
    return load_all(samples)


@pytest.fixture(scope="module")
def texts(runs: list[Run]) -> Texts:
    """The texts of every run and span in ``show --json``, except for words added by formats."""
    return Texts(
        {
            place: sorted(text for text in set(leaves(value)) if not OWN_WORDS.match(text))
            for run in runs
            for place, value in places(run, {run.summary.ref for run in runs})
        }
    )


def places(run: Run, searched: set[RunRef]) -> Iterator[tuple[Place, Any]]:
    address, owners = run.summary.ref.address, ownership(run, searched)
    for position, span in enumerate(run.spans):
        if owners[position] is Ownership.LISTED:
            continue
        value = export.span_document(run, position)
        derived = {name for name in value["attributes"] if name.startswith("tracetui.")} - {"tracetui.traceback"}
        attributes = {name: below for name, below in value["attributes"].items() if name not in derived}
        yield (address, span.id), [value["input"], value["output"], value["error"], attributes]
    body = export.run_body_value(run.body)
    kept = {name: body[name] for name in body if name not in ("last_user", "last_assistant", "totals")}
    yield (address, None), kept


def leaves(value: Any) -> Iterator[str]:
    """All texts, but for the roles and ids of messages, which are no content."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves([*value.values()])
    elif isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        yield from leaves([item for name, item in fields.items() if name not in ("role", "id", "finish_reason")])


def hits_of(items: Iterator[Item]) -> list[Hit]:
    return [item for item in items if isinstance(item, Hit)]


def search(folder: Path, pattern: str, options: Options = EVERYTHING, **how: bool) -> list[Hit]:
    return hits_of(grep(LocalSource(), [str(folder)], Needle(pattern, **how), options))


@settings(max_examples=examples(20))
@given(which=st.integers(0, 100_000), at=st.integers(0, 100_000), size=st.integers(1, 12))
def test_a_search_of_the_samples_finds_the_texts_of_the_values(
    samples: Path, texts: Texts, which: int, at: int, size: int
) -> None:
    known = sorted({text for values in texts.values() for text in values if text})
    text = known[which % len(known)]
    needle = text[at % len(text) :][:size]

    hits = search(samples, needle)

    wanted = {place for place, values in texts.items() if any(needle in value for value in values)}
    assert {(hit.ref.address, hit.span) for hit in hits} >= wanted
    assert all(needle.startswith(hit.match) or hit.match == needle for hit in hits)


def test_a_search_finds_nothing_outside_values(samples: Path, texts: Texts) -> None:
    for needle in ("refund", "timed out", "東京"):
        wanted = {place for place, values in texts.items() if any(needle in value for value in values)}
        assert {(hit.ref.address, hit.span) for hit in search(samples, needle)} == wanted


def test_every_hit_has_the_address_of_its_value(samples: Path, runs: list[Run]) -> None:
    by_address = {run.summary.ref.address: run for run in runs}
    hits = search(samples, "e", Options())
    assert len({hit.kind for hit in hits}) == 5
    for hit in hits:
        run = by_address[hit.ref.address]
        value: Any = export.run_body_value(run.body)
        if hit.span is not None:
            value = export.span_document(run, run.index[hit.span])
        value = json.loads(export.encode(value))
        for key in hit.keys:
            value = value[key]
        assert hit.match in str(value).split("\n")[hit.line - 1]
        assert hit.before + hit.match + hit.after in str(value)


# ---- what JSON may look like

CHARACTERS = st.text(st.sampled_from('ab\\"/\n\t é東😀<\x01\ufffdkKsſİ'), min_size=1, max_size=12)
VALUES = st.recursive(CHARACTERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CHARACTERS, inner))


@given(value=VALUES, nested=st.integers(0, 2), ascii_only=st.booleans(), slashes=st.booleans(), data=st.data())
def test_bytes_that_hold_it_are_never_passed_over(
    value: Any, nested: int, ascii_only: bool, slashes: bool, data: st.DataObject
) -> None:
    texts = [text for text in leaves({"value": value}) if text]
    if not texts:
        return
    text = data.draw(st.sampled_from(texts))
    begin = data.draw(st.integers(0, len(text) - 1))
    needle = text[begin : begin + data.draw(st.integers(1, 8))]
    written = json.dumps(value, ensure_ascii=ascii_only)
    for _ in range(nested):
        written = json.dumps({"arguments": written}, ensure_ascii=data.draw(st.booleans()))
    if slashes:
        written = written.replace("/", "\\/")
    if data.draw(st.booleans()):
        written = re.sub(r"(\\\\)|\\u(\w{4})", lambda match: match[1] or f"\\u{match[2].upper()}", written)

    assert Needle(needle).may_match(written.encode())
    assert Needle(needle.swapcase(), ignore_case=True).may_match(written.encode())
    assert Needle(re.escape(needle), regex=True).may_match(written.encode())


@pytest.mark.parametrize(
    ("needle", "written"),
    [
        ("timeout", rb'"\u0074imeout"'),
        ("timeout", rb'"{\"a\": \"tim\\u0065out\"}"'),
        ("résumé", rb'"r\u00e9sum\u00E9"'),
        ("😀", rb'"\uD83D\ude00"'),
        ("😀", '"😀"'.encode()),
        ('say "hi"', rb'"say \"hi\""'),
        ('say "hi"', rb'"{\"a\": \"say \\\"hi\\\"\"}"'),
        ("a/b", rb'"a\/b"'),
        ("C:\\x", rb'"C:\\x"'),
        ("one\ntwo", rb'"one\ntwo"'),
        ("one\ntwo", rb'"one\u000Atwo"'),
    ],
)
def test_every_way_to_write_a_text_counts(needle: str, written: bytes) -> None:
    assert Needle(needle).may_match(written)
    assert not Needle(needle).may_match(b'"something else: \\u0041\\n\\"\\/"')


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("timeout", r'"\u0074imeout"'),
        ("résumé", r'"r\u00e9sum\u00E9"'),
        ("😀 ok", r'"\uD83D\ude00 ok"'),
        ('say "hi"', r'"say \"hi\""'),
        ("a/b", r'"a\/b"'),
        ("C:\\x", r'"C:\\x"'),
        ("one\ntwo", r'"one\ntwo"'),
        ("one\ntwo\té", r'"one\u000Atwo\t\u00e9"'),
    ],
)
def test_a_text_is_found_in_values_that_are_json(tmp_path: Path, pattern: str, written: str, levels: int) -> None:
    assert json.loads(written) == pattern
    value = f'{{"answer": {written}}} …'  # no JSON to the end: it is shown as text
    for _ in range(levels - 1):
        value = f"log: {json.dumps(value)}"
    item = {"type": "message", "id": "m", "role": "user", "content": [{"type": "input_text", "text": value}]}
    (tmp_path / "run.json").write_text(json.dumps({"items": [item]}))
    hits = search(tmp_path, pattern, Options())
    assert len(hits) == 1
    assert hits[0].match in value
    swapped = search(tmp_path, pattern.swapcase(), Options(), ignore_case=True)
    assert [hit.address for hit in swapped] == [hits[0].address]


def test_other_escapes_do_not_match(tmp_path: Path) -> None:
    needle = Needle("timeout")
    assert [*needle.matches(r"\u0074ime \u0074imeou \time")] == []
    assert [*Needle("a/b").matches(r"a\b a\\b")] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("KISS", "ki\u017f\u017f"), ("KELVIN", "\u212aelvin"), ("ÄRGER", "ärger"), ("istanbul", "İstanbul")],
)
def test_case_is_ignored_in_every_alphabet(pattern: str, text: str) -> None:
    needle = Needle(pattern, ignore_case=True)
    assert needle.may_match(json.dumps(text).encode())
    assert needle.may_match(json.dumps(text, ensure_ascii=False).encode())
    assert [match.group() for match in needle.matches(text)] == [text]


def test_a_regular_expression_is_prefiltered_by_its_required_text() -> None:
    needle = Needle(r"timed out after \d+s", regex=True)
    assert not needle.may_match(b'"timed in after 3s"')
    assert needle.may_match(b'"timed out after 3s"')
    assert Needle("(?i)timed", regex=True).may_match(b'"TIMED"')
    assert Needle("a|b", regex=True).may_match(b'"b"')
    assert Needle("colou?r", regex=True).may_match(b'"color"')


@pytest.mark.parametrize(("pattern", "regex"), [("", False), ("(", True), ("a{99999999999999}", True)])
def test_an_invalid_pattern_is_a_usage_error(pattern: str, regex: bool) -> None:
    with pytest.raises(UsageError):
        Needle(pattern, regex=regex)


# ---- files


def test_a_match_across_two_pieces_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    session.step("x" * 5000 + "needle" + "y" * 5000)
    size = session.path.stat().st_size
    data = session.path.read_bytes()
    for piece in (data.index(b"needle") + 3, 1000, size, size - 1):
        monkeypatch.setattr(search_of_files, "PIECE", piece)
        assert [hit.match for hit in search(tmp_path, "needle")] == ["needle"]
        items = list(grep(LocalSource(), [str(tmp_path)], Needle("nothing")))
        assert [item for item in items if item is not None] == [Outcome.PASSED]


def test_lines_of_a_value_are_hits_of_their_own_and_bounded(tmp_path: Path) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    session.step(f"no\n{'a' * 999} needle needle {'b' * 999}\nno\nthe needle\n")

    hits = search(tmp_path, "needle", Options())

    assert [(hit.line, hit.match) for hit in hits] == [(2, "needle"), (4, "needle")]
    assert all(len(hit.before) <= search_of_runs.BEFORE and len(hit.after) <= search_of_runs.AFTER for hit in hits)
    assert (hits[1].before, hits[1].after) == ("the ", "")


def test_repeated_model_inputs_are_reported_once(samples: Path) -> None:
    once, everything = (search(samples, "refund", options) for options in (Options(), EVERYTHING))

    assert 0 < len(once) < len(everything)
    assert {hit.ref for hit in once} == {hit.ref for hit in everything}


def test_names_of_fields_are_searched_on_request(samples: Path) -> None:
    assert search(samples, "endpoint_id") == []
    assert search(samples, "endpoint_id", Options(names=True))[0].keys[-1] == "endpoint_id"


def test_torn_and_unreadable_files_are_problems(tmp_path: Path) -> None:
    paprika(tmp_path / "whole.json", "whole")
    torn = paprika(tmp_path / "torn.json", "torn")
    (tmp_path / "torn.json").write_bytes(torn[:-40])
    (tmp_path / "notes.txt").write_text("found 1")
    (tmp_path / "link.json").symlink_to("whole.json")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")

    items = list(grep(LocalSource(), [str(tmp_path)], Needle("found 1")))

    assert {Path(hit.ref.path).name for hit in items if isinstance(hit, Hit)} == {"whole.json"}
    assert {Path(item.path).name for item in items if isinstance(item, Problem)} == {"torn.json", "link.json"}
    outcomes = [item for item in items if isinstance(item, Outcome)]
    assert sorted(outcomes) == sorted([*[Outcome.FAILED] * 2, *[Outcome.FOREIGN] * 2, Outcome.SEARCHED])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_a_problem(tmp_path: Path) -> None:
    paprika(tmp_path / "closed.json", "closed")
    (tmp_path / "closed.json").chmod(0)

    items = list(grep(LocalSource(), [str(tmp_path)], Needle("found 1")))

    assert [type(item) for item in items] == [Problem, Outcome]


def test_a_file_that_went_is_a_problem_and_the_rest_is_searched(tmp_path: Path) -> None:
    for name in ("a", "b"):
        paprika(tmp_path / f"{name}.json", name)
    refs = [run.ref for file in scan(LocalSource(), [str(tmp_path)], deep=False) for run in file.runs]
    (tmp_path / "a.json").unlink()

    items = list(grep_runs(LocalSource(), sorted(refs), Needle("found 1")))

    assert isinstance(items[0], Problem)
    assert [hit.ref.path for hit in items if isinstance(hit, Hit)] == [str(tmp_path / "b.json")]
    assert [item for item in items if isinstance(item, Outcome)] == [Outcome.FAILED, Outcome.SEARCHED]


def test_only_the_given_runs_of_a_file_are_searched(samples: Path, runs: list[Run]) -> None:
    refs = [run.summary.ref for run in runs]
    some = refs[::2]
    needle = Needle("refund")

    hits = hits_of(grep_runs(LocalSource(), some, needle))
    assert {hit.ref for hit in hits} <= {*some}
    alone = [hit for ref in some for hit in hits_of(grep_runs(LocalSource(), [ref], needle))]
    assert {(hit.span, hit.path) for hit in hits if hit.span} == {(hit.span, hit.path) for hit in alone if hit.span}
    assert {hit.ref for hit in hits_of(grep_runs(LocalSource(), refs, needle))} == {
        hit.ref for hit in search(samples, "refund")
    }


def test_only_wanted_runs_are_searched(samples: Path) -> None:
    hits = search(samples, "refund", Options(wanted=lambda run: run.ref.key == "rag-002"))

    assert {hit.ref.key for hit in hits} == {"rag-002"}


def test_a_secret_is_found_but_not_shown(tmp_path: Path) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    secret = "hunter2-correct-horse"
    session.answer(session.call("login", api_key=secret, user="ada"), f"the user is ada\nAPI_KEY={secret}")

    masked = search(tmp_path, secret, Options(redactor=Redactor()))
    exact = search(tmp_path, secret, Options())

    assert [hit.keys for hit in masked] == [hit.keys for hit in exact] != []
    assert all(hit.match == secret for hit in exact)
    assert not any(secret in hit.before + hit.match + hit.after for hit in masked)
    (ada, *_) = [hit for hit in search(tmp_path, "ada", Options(redactor=Redactor())) if hit.keys[-1] == "user"]
    assert (ada.before, ada.match, ada.after) == ("", "ada", "")


def test_a_secret_that_names_its_own_field_is_not_shown(tmp_path: Path) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    secret = SHAPED["provider"]
    session.answer(session.call(f"login {secret}", **{secret: secret}), "done")

    for names in (False, True):
        hits = search(tmp_path, CANARY, Options(names=names, redactor=Redactor()))
        assert len(hits) > names
        assert not any(CANARY in hit.name + hit.before + hit.match + hit.after for hit in hits)


def test_an_expression_that_takes_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_of_runs, "MAX_SECONDS", 0.1)
    needle = Needle(r"(a|aa)+b", regex=True)
    with pytest.raises(UsageError, match="took more than"):
        list(needle.matches("a" * 200 + "c"))
    assert [match.group() for match in needle.matches("aaab")] == ["aaab"]


@pytest.mark.parametrize("pattern", [r"(a+)+", r"(?:.*\n)+", r"(\w+\s)+x", r"\p{L}++", r"(?i)A"])
def test_expressions_of_every_kind_are_searched(pattern: str) -> None:
    assert list(Needle(pattern, regex=True).matches("a a\na x"))


def test_a_hit_shows_what_its_step_did(tmp_path: Path) -> None:
    session = Session(tmp_path / "s.ccpa-trace.jsonl")
    session.answer(session.call("Edit", file_path="src/parser.py", old_string="a\nb", new_string="lexer"), "edited")
    session.answer(session.call("login", api_key="hunter2-correct-horse"), "the lexer is in")

    hits = search(tmp_path, "lexer", Options(redactor=Redactor()))
    actions = {hit.name: hit.action[1] for hit in hits if hit.action is not None}
    edit = actions["Edit"]
    assert (edit.verb, edit.object, edit.added, edit.removed) == ("edited", "parser.py", 1, 2)
    assert "hunter2" not in actions["login"].object


def test_attributes_that_every_record_repeats_match_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    common = {"sessionId": "s", "cwd": "/home/me/parser", "version": "2.1.0", "timestamp": "2026-11-21T09:00:00Z"}
    prompts = [
        {"type": "user", "uuid": f"u{n}", "message": {"role": "user", "content": "Hi"}, **common} for n in (1, 2, 3)
    ]
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))

    assert [hit.path for hit in search(tmp_path, "me/parser", Options()) if hit.span] == ["attributes.cwd"]
    assert len([hit for hit in search(tmp_path, "me/parser", EVERYTHING) if hit.span]) == 3
