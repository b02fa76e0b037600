"""The list of runs while the originals of forks come and go: copied records count where they occur first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.live.test_lister import Gated, collect, listing
from tests.shared import ROOT
from tracetui.live.mailbox import Mail
from tracetui.model import RunSummary

FORKS = ROOT / "tests" / "formats" / "claude_code" / "fork" / "input" / "projects" / "-home-ada-ash"


def runs_of(mail: Mail) -> list[RunSummary]:
    return [run for one in mail.found for run in one.runs]


@pytest.mark.parametrize("comes", [True, False])
def test_a_fork_is_counted_again_when_its_original_comes_or_goes(tmp_path: Path, comes: bool) -> None:
    source = Gated()
    found: dict[str, tuple[RunSummary, ...]] = {}
    for path in FORKS.glob("*.jsonl"):
        shutil.copy(path, tmp_path / path.name)
    original = next(FORKS.glob("f0*.jsonl"))
    fork = next(FORKS.glob("f1*.jsonl")).name

    def counted(mail: Mail) -> bool:
        found.update({one.path: one.runs for one in mail.found if one.runs and one.runs[0].deep})
        return str(tmp_path / fork) in found and mail.stage == ""

    if comes:
        (tmp_path / original.name).unlink()
    with listing(tmp_path, source) as (_, mailbox):
        collect(mailbox, counted)
        (before,) = found[str(tmp_path / fork)]
        source.watched.clear()
        if comes:
            shutil.copy(original, tmp_path / "coming")
            (tmp_path / "coming").rename(tmp_path / original.name)
        else:
            (tmp_path / original.name).unlink()
        mails = collect(mailbox, lambda mail: any(run.id == before.id and run != before for run in runs_of(mail)))
    after = next(run for run in runs_of(mails[-1]) if run.id == before.id and run != before)
    assert before.usage is not None
    assert after.usage is not None
    counts, copies = (before, after) if comes else (after, before)
    assert counts.usage is not None
    assert copies.usage is not None
    assert (counts.usage.output_tokens or 0) > (copies.usage.output_tokens or 0)
    assert (counts.replay_of, copies.replay_of) == (None, original.stem)
