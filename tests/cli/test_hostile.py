"""The hostile corpus, as somebody else judges it: everything is listed or reported, and nothing is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import Cli
from tests.shared import SHARED, needs_shared

pytestmark = [needs_shared, pytest.mark.shared]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """247 bad cases among 20 good runs."""
    folder = tmp_path_factory.mktemp("hostile") / "corpus"
    assert tool(str(folder)).returncode == 0
    return folder


@pytest.fixture(scope="module")
def listed(corpus: Path) -> subprocess.CompletedProcess[bytes]:
    """The whole corpus as ``ls --json`` lists it."""
    return tracetui("ls", str(corpus / "traces"), "--json")


def tool(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    assert SHARED is not None
    script = str(SHARED / "tools" / "hostile.py")
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, timeout=120, check=False)


def tracetui(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "tracetui", *arguments], capture_output=True, timeout=120, check=False)


def test_every_case_is_classified_correctly(
    corpus: Path, listed: subprocess.CompletedProcess[bytes], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    report.write_bytes(listed.stdout)
    verdict = tool("--judge", str(corpus), str(report))

    assert listed.stderr == b""
    assert listed.returncode == 0
    assert verdict.stdout.decode().endswith("failures 0\n"), verdict.stdout.decode()


def test_every_file_is_in_one_class(cli: Cli, corpus: Path) -> None:
    diagnosis = cli("doctor", str(corpus / "traces"), "--json").data

    assert (
        diagnosis["listed"] + diagnosis["problem"] + diagnosis["ignored"]
        == diagnosis["seen"]
        == len(diagnosis["files"])
    )


def test_nothing_that_a_terminal_acts_upon_is_printed(
    cli: Cli, corpus: Path, listed: subprocess.CompletedProcess[bytes]
) -> None:
    cases = json.loads((corpus / "manifest.json").read_text())["cases"]
    forbidden = {bytes.fromhex(code) for case in cases for code in case["forbidden_hex"]}
    assert len(forbidden) > 30
    printed = [cli(command, str(corpus / "traces")).out for command in ("ls", "doctor")]
    for output in (listed.stdout, *printed):
        assert [code for code in forbidden if code in output] == []
        assert b"\x1b" not in output


def test_runs_of_the_escape_class_are_shown_whole_and_harmless(cli: Cli, corpus: Path) -> None:
    cases = json.loads((corpus / "manifest.json").read_text())["cases"]
    escapes = [case for case in cases if case["cls"] == "escape"]
    assert len(escapes) > 20
    for case in escapes:
        path = str(corpus / "traces" / case["path"])
        text, data = cli("show", path), cli("show", path, "--json")

        for done in (text, data):
            assert done.status == 0
            assert b"\x1b" not in done.out
            assert all(bytes.fromhex(code) not in done.out for code in case["forbidden_hex"])
        source = Path(path).read_bytes()
        assert all(token.encode() in data.out for token in case["show"] if token.encode() in source)


def test_nothing_was_touched(corpus: Path) -> None:
    verdict = tool("--verify", str(corpus))

    assert verdict.stdout == b"UNCHANGED\n"
