"""Memory of an open session of 300,000 spans.

``python -m tests.bench.memory FOLDER`` opens the session in a folder in a process of its own, and prints how much
memory (MB) it added when it was read, at the peak and afterwards. With ``--fields`` it lists the bytes per span by
field and type.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MethodType
from typing import Any, Final

import msgspec

from tests.bench import data, formats
from tests.bench.table import Row, say
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import Run, RunRef
from tracetui.sources.local import LocalSource

SPANS: Final = 300_000
LIMIT: Final = 200
_MOST_FIELDS: Final = 40


def _ccpa(calls: int, most: int) -> Path:
    return data.session_file(f"ccpa-{calls}-{most}", calls=calls, payload=most)


WRITERS: Final[dict[str, tuple[Callable[[int, int], Path], float]]] = {
    "codex": (formats.codex, 2),
    "claude-code": (formats.claude, 2.125),
    "pi": (formats.pi, 2.125),
    "copilot": (formats.copilot, 3),
    "ccpa": (_ccpa, 2),
}
"""Sessions of so many calls, and spans per call."""


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The memory of a session with small records; spans and megabytes are divided by `scale`."""
    for name, (make, spans) in WRITERS.items():
        folder = make(round(SPANS / scale / spans), formats.SHORT)
        command = [sys.executable, "-m", "tests.bench.memory", str(folder)]
        result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
        detail = (
            f"{result['settled'] * (1 << 20) / result['spans']:.0f} bytes per span; {result['peak']:.0f} MB at the peak"
        )
        yield Row(f"memory of {result['spans']} spans, {name}", result["settled"], LIMIT / scale, "MB", detail)


# ---- in a process of its own


def main() -> None:
    """Open the session and print what it took."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fields", action="store_true")
    options = parser.parse_args()
    ref = _ref(options.folder)
    for make, _ in WRITERS.values():  # everything is imported then
        read_run(LocalSource(), _ref(make(50, formats.SHORT)))
    gc.collect()
    before = _megabytes("VmRSS")
    run = read_run(LocalSource(), ref)
    gc.collect()
    settled, peak = _megabytes("VmRSS") - before, _megabytes("VmHWM") - before
    say(json.dumps({"spans": len(run.spans), "settled": settled, "peak": peak}))
    if options.fields:
        for (field, kind), (size, count) in _sizes(run):
            say(f"{size / len(run.spans):7.1f} B  {count:9} {kind:<16} {field}")


def _ref(folder: Path) -> RunRef:
    return next(entry.runs[0].ref for entry in scan(LocalSource(), [str(folder)], deep=False) if entry.runs)


def _megabytes(name: str) -> float:
    match = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def _sizes(run: Run) -> list[tuple[tuple[str, str], tuple[int, int]]]:
    """Bytes and number of the objects that a run refers to, with its reader, by field and type; the most first."""
    sizes, counts, seen = Counter[tuple[str, str]](), Counter[tuple[str, str]](), set[int]()
    todo: list[tuple[Any, str]] = [(run, "")]
    while todo:
        value, field = todo.pop()
        if id(value) in seen or isinstance(value, type) or callable(getattr(value, "__code__", None)):
            continue
        seen.add(id(value))
        name = type(value).__name__
        if not isinstance(value, msgspec.Raw):  # its size is wrong
            sizes[field, name] += sys.getsizeof(value)
            counts[field, name] += 1
        todo += _contents(value, name, field)
    return [(key, (size, counts[key])) for key, size in sizes.most_common(_MOST_FIELDS)]


def _contents(container: Any, name: str, field: str) -> Iterator[tuple[Any, str]]:
    if isinstance(container, msgspec.Struct):
        yield from ((getattr(container, key), f"{name}.{key}") for key in container.__struct_fields__)
    elif isinstance(container, dict):
        yield from ((key, f"{field} keys") for key in container)
        yield from ((item, f"{field} values") for item in container.values())
    elif isinstance(container, (list, tuple, set, frozenset)):
        yield from ((item, field) for item in container)
    elif isinstance(container, MethodType):
        yield container.__self__, name
    elif type(container).__module__.startswith("tracetui."):
        yield from ((item, f"{name}.{key}") for key, item in getattr(container, "__dict__", {}).items())
        slots = {key for kind in type(container).__mro__ for key in getattr(kind, "__slots__", ())}
        yield from ((getattr(container, key), f"{name}.{key}") for key in sorted(slots) if hasattr(container, key))


if __name__ == "__main__":
    main()
