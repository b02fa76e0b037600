"""What reaches the terminal from hostile traces: the sequences that the program sends for good ones, and plain text."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests import hostile
from tests.e2e.judge import leaked, sequences
from tests.shared import PATIENCE, SEARCHES, SHARED, needs_shared
from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
COPIES = ("y", "y", "y", "p", "y", "l")
WALK = (
    *("down", "down", "enter", "down", "t", "down", ">", ">", ">", ">", ">", ">", "3", "G", "l", *COPIES),
    *("/", "o", "w", "n", "enter", "n", "escape", "escape", "escape", "escape", "end", "enter"),
    *("r", "escape", "escape", "W", ">", ">", "b", "b", "!", "!"),
    *("ctrl+p", "c", "l", "i", "c", "k", "escape", "escape", "?", "escape"),
)


def driven(folder: Path) -> bytes:
    """Everything that the program writes from its start to its end."""
    with Terminal(*TRACETUI, str(folder), size=(140, 45)) as terminal:
        terminal.expect("failed")
        terminal.wait_quiet()
        terminal.type(*WALK)
        terminal.resize(90, 30)
        terminal.wait_quiet()
        terminal.type("escape", "escape", "escape", "q", "q", "q")
        assert terminal.wait_exit() == 0
        return terminal.output


def copied(output: bytes) -> list[bytes]:
    """What was put on the clipboard."""
    return [base64.b64decode(data) for data in re.findall(rb"\x1b]52;c;([^\x07]*)\x07", output)]


def test_our_own_hostile_runs(samples: Path, tmp_path: Path) -> None:
    hostile.write(tmp_path, NOW)
    for path in tmp_path.rglob("*"):
        if path.is_file() and os.fsencode(path.name).isascii() and path.name.isprintable() and path.suffix != ".db":
            path.unlink()  # only the hostile copies remain
    good, bad = driven(samples), driven(tmp_path)
    assert sequences(bad) <= sequences(good)
    assert leaked(bad) == leaked(good) == []
    assert len(copied(bad)) <= len(COPIES) // 2
    assert not any(re.search(b"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text) for text in copied(bad))


@needs_shared
@pytest.mark.search
@pytest.mark.shared
def test_the_shared_corpus(tmp_path: Path) -> None:
    """The classes of attacks upon terminals, with the checker that comes with them; then the corpus as a whole."""
    assert SHARED is not None
    corpus = tmp_path / "corpus"
    tools = SHARED / "tools"
    subprocess.run([sys.executable, str(tools / "hostile.py"), str(corpus)], check=True, capture_output=True)
    home = {"PATH": os.environ.get("PATH", ""), "HOME": str(tmp_path)}
    leaks = findings(tools / "ptycheck.py", corpus, CLASSES, home)
    assert len(leaks) == len(CLASSES) + 1
    leaking = [name for name in CLASSES if leaks.get(name)]
    if leaking:  # what leaks does so each time; on a busy machine what was read may end within a sequence
        leaks |= findings(tools / "ptycheck.py", corpus, leaking, home)
    assert {name: lines for name, lines in leaks.items() if lines} == {}


CLASSES = ("escape", "unicode", "markup", "ids", "whole") if SEARCHES else ("escape", "whole")
"""What the other classes attack, our own hostile runs do as well."""


def findings(checker: Path, corpus: Path, classes: Sequence[str], home: dict[str, str]) -> dict[str, list[str]]:
    """What the checker says of our program on these classes of the corpus, and on the good runs."""
    report = corpus.parent / "report.json"
    walk = "down*4 enter ~0.2 down t down > > > > 3 l / C N R enter n esc ~0.2 y l esc ~0.2 esc ~0.2 ? esc ~0.2 end"
    command = f"{sys.executable} -m tracetui {{dir}}"
    options = ["--cls", ",".join(classes), "--keys", walk, "--quit", "q", "--json", str(report)]
    check = [sys.executable, str(checker), "--cmd", command, "--corpus", str(corpus), *options]
    subprocess.run(check, check=False, timeout=10 * PATIENCE, stdin=subprocess.DEVNULL, capture_output=True, env=home)
    return {name: result["findings"] for name, result in json.loads(report.read_text()).items()}
