"""The list of runs while the originals of forks come and go: copied records count where they occur first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.live.test_lister import Gated, collect, listing
from tests.shared import ROOT
from tracetui.live.mailbox import Mail
from tracetui.model import RunSummary
from tracetui.store.claims import Claims

FORKS = ROOT / "tests" / "formats" / "claude_code" / "fork" / "input" / "projects" / "-home-ada-ash"


@pytest.mark.parametrize("comes", [True, False])
def test_a_fork_counts_differently_when_its_original_comes_or_goes(tmp_path: Path, comes: bool) -> None:
    source = Gated()
    runs_by_path: dict[str, tuple[RunSummary, ...]] = {}
    for path in FORKS.glob("*.jsonl"):
        shutil.copy(path, tmp_path / path.name)
    original = next(FORKS.glob("f0*.jsonl"))
    fork = str(tmp_path / next(FORKS.glob("f1*.jsonl")).name)

    def take(mail: Mail) -> None:
        runs_by_path.update({file.path: file.runs for file in mail.files if not file.runs or file.runs[0].deep})

    def net() -> RunSummary:
        claims = Claims(run for runs in runs_by_path.values() for run in runs)
        return claims.net(runs_by_path[fork][0])

    def counted(mail: Mail) -> bool:
        take(mail)
        return fork in runs_by_path and mail.stage == ""

    def changed(mail: Mail) -> bool:
        take(mail)
        return str(tmp_path / original.name) in {file.path for file in mail.files}

    if comes:
        (tmp_path / original.name).unlink()
    with listing(tmp_path, source) as (_, mailbox):
        collect(mailbox, counted)
        before, gross = net(), runs_by_path[fork]
        source.watched.clear()
        if comes:
            shutil.copy(original, tmp_path / "coming")
            (tmp_path / "coming").rename(tmp_path / original.name)
        else:
            (tmp_path / original.name).unlink()
        collect(mailbox, changed)
    assert runs_by_path[fork] == gross
    counts, copies = (before, net()) if comes else (net(), before)
    assert counts.usage is not None
    assert copies.usage is not None
    assert (counts.usage.output_tokens or 0) > (copies.usage.output_tokens or 0)
    assert (counts.replay_of, copies.replay_of) == (None, original.stem)
