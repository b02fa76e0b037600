"""Runs one fuzzer for a while, and keeps a small directory that shows each finding."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from tests.fuzz import judge, mutate

SHRINK_SECONDS: Final = 8.0
"""Of the processor, for one finding."""
COMMANDS_EVERY: Final = 6
"""The commands read everything again, so they run for one directory of so many."""


class Finding(msgspec.Struct):
    """What is wrong, and how to see it."""

    text: str
    change: str
    number: int
    """Of the directory, with which the seed makes it again."""
    folder: Path | None = None
    count: int = 1


class Report(msgspec.Struct):
    """What one run of a fuzzer came to."""

    tried: int = 0
    findings: dict[str, Finding] = {}


def fuzz(
    mode: str,
    *,
    seed: int,
    seconds: float,
    only: str | None = None,
    keep: Path | None = None,
    first: int = 0,
    most: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Try directories until `seconds` of processor time, or `most` of them, are over.

    Directory `number` is the same for the same seed. Findings are kept below `keep`, as small as they get.
    """
    report = Report()
    end = time.process_time() + seconds
    number = first
    while time.process_time() < end and (most is None or report.tried < most):
        with TemporaryDirectory(prefix="tracetui-fuzz-") as name:
            root = Path(name).resolve() / "traces"
            change = make(root, mode, seed, number, only)
            report.tried += 1
            commands = number % COMMANDS_EVERY == 0
            for text in dict.fromkeys(judge.findings(root, commands=commands)):
                kind = judge.same_finding(text)
                if kind in report.findings:
                    report.findings[kind].count += 1
                    continue
                finding = report.findings[kind] = Finding(text, change, number)
                say(f"{number}: {text}\n    after {change}")
                if keep is not None:
                    finding.folder = keep / f"{mode}-{seed}-{number}-{len(report.findings)}"
                    began = time.process_time()
                    shrink(root, finding.folder, kind, commands=commands)
                    end += time.process_time() - began
                    say(f"    kept in {finding.folder}")
        number += 1
    return report


def make(root: Path, mode: str, seed: int, number: int, only: str | None) -> str:
    """Write directory `number`; what was changed in it."""
    random = Random(f"{seed} {number} {only or ''}")
    cases = mutate.build(root, random, only)
    return f"{' + '.join(cases)}: {mutate.CHANGES[mode](root, random)}"


# ---- making a finding small


def shrink(root: Path, folder: Path, kind: str, *, commands: bool) -> None:
    """Copy `root` to `folder` and leave out files and records as long as there is still a finding of that kind."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root, folder, copy_function=shutil.copy2)
    end = time.process_time() + SHRINK_SECONDS

    def fails() -> bool:
        return any(judge.same_finding(text) == kind for text in judge.findings(folder, commands=commands))

    for path in mutate.files_below(folder):
        _without(path, None, fails)
    for path in mutate.files_below(folder):
        data = path.read_bytes()
        if time.process_time() > end or b"\0" in data[:64]:
            continue
        size = max(1, data.count(b"\n") // 2)
        while size and time.process_time() < end:
            for shorter in _shorter(path.read_bytes(), size):
                if time.process_time() > end or _without(path, shorter, fails):
                    break
            else:
                size //= 2


def _shorter(data: bytes, size: int) -> Iterator[bytes]:
    lines = data.splitlines(keepends=True)
    for begin in range(0, len(lines), size):
        if len(lines) > size:
            yield b"".join(lines[:begin] + lines[begin + size :])


def _without(path: Path, shorter: bytes | None, fails: Callable[[], bool]) -> bool:
    """Whether it still fails with the file `shorter`, or without it; else the file stays as it was."""
    data, before = path.read_bytes(), path.stat()
    if shorter is None:
        path.unlink()
    else:
        path.write_bytes(shorter)
        mutate.set_old(path)
    if fails():
        return True
    path.write_bytes(data)
    mutate.set_old(path)
    path.chmod(before.st_mode)
    return False
