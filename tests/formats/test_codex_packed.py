"""Codex packs rollouts that were not used for long: they are read like unpacked ones."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from tests.formats.codex_build import encoded, message, meta
from tests.formats.test_codex_threads import read
from tests.live.test_lister import Gated, collect, listing
from tests.shared import ROOT, needs_shared, sample, settled
from tracetui.analysis.search import Hit, Needle
from tracetui.cli import main
from tracetui.live.load import Reader
from tracetui.live.scan import scan
from tracetui.live.search import grep
from tracetui.model import RunSummary
from tracetui.sources import file_views
from tracetui.sources.base import File
from tracetui.sources.local import LocalSource

CASES = ROOT / "tests" / "formats" / "codex"
SOURCE = LocalSource()


def pack(path: Path, *, frames: int = 1) -> Path:
    """The file packed, and gone."""
    data, target = path.read_bytes(), path.with_name(path.name + ".zst")
    size = len(data) // frames + 1
    target.write_bytes(b"".join(zstandard.compress(data[i : i + size]) for i in range(0, len(data), size)))
    stat = path.stat()
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    path.unlink()
    return target


def summaries(folder: Path, *, deep: bool = True) -> dict[str, tuple[object, ...]]:
    """What is listed, by id."""
    runs = [run for file in scan(SOURCE, [str(folder)], deep=deep) for run in file.runs]
    assert len({run.id for run in runs}) == len(runs)
    return {run.id: _facts(run) for run in runs}


def _facts(run: RunSummary) -> tuple[object, ...]:
    counts = run.steps, run.spans, run.llm_calls, run.errors, run.usage, run.first_error, run.problems, run.ledger
    return run.name, run.status, run.started_at, run.prompt, run.parent, run.replay_of, run.model, counts


def check_same(folder: Path, target: Path) -> None:
    """All rollouts of a folder are read packed as they are, thread by thread."""
    folder = settled(folder, target)
    quick, deep = summaries(folder, deep=False), summaries(folder)
    paths = sorted(folder.rglob("rollout-*.jsonl"))
    bodies = {path.name: [_body(path, span.id) for span in read(path).spans] for path in paths}
    assert paths
    for number, path in enumerate(paths):
        pack(path, frames=1 + number % 3)
    assert (summaries(folder, deep=False), summaries(folder)) == (quick, deep)
    for path in sorted(folder.rglob("*.zst")):
        run = read(path)
        assert [_body(path, span.id) for span in run.spans] == bodies[path.name.removesuffix(".zst")]


def _body(path: Path, span: str) -> object:
    run = read(path)
    row = run.span(span)
    assert row is not None
    return run.load(row).raw


@pytest.mark.parametrize("case", ["turns", "threads", "old"])
def test_packed_rollouts_are_read_as_they_were(tmp_path: Path, case: str) -> None:
    check_same(CASES / case / "input", tmp_path / "there")


@needs_shared
def test_real_rollouts_are_read_as_they_were(tmp_path: Path) -> None:
    folder = settled(sample("codex", "generated-0.169.0"), tmp_path / "there")
    before = summaries(folder)
    for path in sorted(folder.rglob("rollout-*.jsonl")):
        pack(path)
    assert summaries(folder) == before


def test_a_rollout_that_is_there_twice_is_listed_once(tmp_path: Path) -> None:
    folder = settled(CASES / "threads" / "input", tmp_path / "there")
    before = summaries(folder)
    for path in sorted(folder.rglob("rollout-*.jsonl")):
        kept = shutil.copy(path, path.with_suffix(".kept"))
        pack(path)
        os.rename(kept, path)
    assert summaries(folder) == before
    files = {file.path: file for file in scan(SOURCE, [str(folder)], deep=False)}
    assert all(files[path].part_of for path in files if path.endswith(".zst"))


def test_words_in_a_packed_rollout_are_found(tmp_path: Path) -> None:
    folder = settled(CASES / "turns" / "input", tmp_path / "there")
    needle = Needle("orchard", ignore_case=True)
    before = [(hit.ref.path, hit.span) for hit in grep(SOURCE, [str(folder)], needle) if isinstance(hit, Hit)]
    for path in sorted(folder.rglob("rollout-*.jsonl")):
        pack(path)
    after = [(hit.ref.path, hit.span) for hit in grep(SOURCE, [str(folder)], needle) if isinstance(hit, Hit)]
    assert before
    assert [(path.removesuffix(".zst"), span) for path, span in after] == before


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"(\xb5/\xfdnot a frame at all", "broken: cannot be decompressed"),
        (b'{"type": "session_meta"}', "broken: not a Zstandard file despite its name"),
        (zstandard.compress(encoded([meta()]) + b" " * (64 << 20)), "not read: decompresses to more than"),
    ],
    ids=["broken", "plain", "bomb"],
)
def test_undecodable_file_is_a_problem(
    tmp_path: Path, data: bytes, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rollout-2026-03-02T09-15-00-019cadd4-5620-7001-8000-000000000001.jsonl.zst"
    path.write_bytes(data)
    os.utime(path, (1_760_000_000, 1_760_000_000))
    (scanned,) = scan(SOURCE, [str(path)], deep=True)
    assert scanned.kind == "problem"
    assert scanned.problems[0].reason.startswith(reason)
    main(["doctor", str(tmp_path), "--json"])
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["class"], file["problems"][0]["reason"].startswith(reason)) == ("problem", True)


def test_only_the_beginning_of_a_packed_file_without_a_trace_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(
        json.dumps({"move": number, "score": f"{number * 7919 % 1000}"}) + "\n" for number in range(200_000)
    )
    (tmp_path / "games.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))
    monkeypatch.setattr(file_views, "_unpack", lambda file: pytest.fail("all of it is unpacked"))
    (file,) = scan(SOURCE, [str(tmp_path)], deep=True)
    assert file.kind == "ignored"


def test_a_packed_rollout_is_unpacked_once_for_the_bodies_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = settled(CASES / "turns" / "input", tmp_path / "there")
    path = next(folder.rglob("rollout-*.jsonl"))
    path.write_bytes(path.read_bytes() + encoded([message("assistant", "long " * 20_000)]))
    path = pack(path)
    (file,) = scan(SOURCE, [str(path)], deep=True)
    *_, run = Reader(SOURCE, file.runs[0].ref).steps(lambda: None)
    unpacked: list[str] = []
    unpack = file_views._unpack

    def noted(file: File) -> bytes:
        unpacked.append(file.path)
        return unpack(file)

    monkeypatch.setattr(file_views, "_unpack", noted)
    assert all(run.load(span).raw for span in run.spans)
    assert len(unpacked) == 1


def test_a_rollout_that_is_packed_while_it_is_listed_stays(tmp_path: Path) -> None:
    folder = settled(CASES / "turns" / "input", tmp_path / "there")
    path = next(folder.rglob("rollout-*.jsonl"))
    data, target = path.read_bytes(), path.with_name(path.name + ".zst")
    with listing(folder, Gated()) as (_, mailbox):
        collect(mailbox, lambda mail: any(run.deep for file in mail.files for run in file.runs))
        (tmp_path / "packed").write_bytes(zstandard.compress(data))
        (tmp_path / "packed").rename(target)
        collect(mailbox, lambda mail: any(file.part_of == str(path) for file in mail.files))
        path.unlink()
        collect(mailbox, lambda mail: any(file.runs and file.path == str(target) for file in mail.files))
