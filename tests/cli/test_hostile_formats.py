"""Sessions full of escapes, carriage returns and markup: what commands print of any format is only text."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from tests import hostile
from tests.cli.run import Cli
from tests.shared import SEARCHES
from tracetui.formats import registry
from tracetui.text import UNSAFE

CONTROLS: Final = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
"""What a terminal acts upon, but for the end of a line."""
EVERY: Final = 1 if SEARCHES else 2
"""Of so many cases of a format, one is printed in every way; of all others the text is shown."""
RUNS: Final = 6 if SEARCHES else 1
"""Runs of each case that are printed."""
LEAST: Final = 3
"""Attacks that are seen at least, of those that differ once they are harmless."""


def harmless(out: bytes) -> str:
    """The output as text, when nothing in it acts."""
    match = CONTROLS.search(out)
    assert match is None, out[max(0, match.start() - 80) : match.end() + 80]
    text = out.decode("utf-8")
    unsafe = UNSAFE.search(text.replace("\n", ""))
    assert unsafe is None, unsafe
    return text


@pytest.mark.search
@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_commands_print_only_text(cli: Cli, tmp_path: Path, name: str) -> None:
    """Of the cases of a format, with attacks in their texts."""
    seen, everything = 0, ""
    folders = hostile.write_cases(tmp_path / "hostile", [name])[name]
    parent = str(folders[0].parent)
    for arguments in (["ls"], ["doctor"], ["grep", "owned"]):
        everything += harmless(cli(*arguments, parent).out)
    listed = json.loads(cli("ls", parent, "--json").out)["runs"]
    for number, folder in enumerate(folders):
        runs: list[dict[str, Any]] = [run for run in listed if run["address"].startswith(f"{folder}/")]
        for run in [run for run in runs if run["format"] == name][:RUNS]:
            address = run["address"]
            result = cli("show", address)
            assert result.status == 0, result.err
            everything += harmless(result.out)
            seen += 1
            if number % EVERY == 0:
                harmless(cli("show", address, "--json").out)
                harmless(cli("export", address).out)
        for run, other in pairwise(runs[: RUNS + 1]):
            everything += harmless(cli("diff", run["address"], other["address"]).out)
    assert seen, f"no run of {name} can be read any more"
    assert sum(word in everything for word in ("owned", "[red]", "[bold [/bold", "passwd", "<202E>")) >= LEAST
