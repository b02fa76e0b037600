"""Comparing runs: aligning steps, comparing texts, and how long it takes until there is something to see."""

from __future__ import annotations

import copy
import difflib
import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.bench import data, diff_screen, references
from tests.bench.table import Reference, Row, median, timed
from tracetui import load
from tracetui.diff.align import align, text_diff
from tracetui.diff.comparison import Comparison
from tracetui.model import Body, Header, Operation, Run, RunRef, Span, Status
from tracetui.model.build import RunBuilder

Step = tuple[str, str]
_TOOLS = ("search", "fetch", "read")


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about comparisons; sizes are divided by `scale`."""
    chance = random.Random(1)
    for share in (2, 30):
        yield _alignment(5_000 // scale, share, rounds, chance)
    for share in (2, 30):
        yield _texts(1_700 // scale, share, rounds, chance)
    yield _first_hunk(5_000 // scale, rounds)
    yield from _large(20_000 // scale, chance)
    yield from diff_screen.rows(scale, rounds)


def _alignment(count: int, percent: int, rounds: int, chance: random.Random) -> Row:
    steps = [_step(chance) for _ in range(count)]
    a, b = _run(steps), _run(_edited(steps, percent / 100, chance, lambda: _step(chance)))
    x, right = ([(span.operation, span.name, span.preview) for span in run.spans] for run in (a, b))
    took = cpu_ms(lambda: align(a, b), rounds)
    other = cpu_ms(lambda: difflib.SequenceMatcher(None, x, right, autojunk=False).get_opcodes(), rounds)
    reference = Reference("difflib, which pairs nothing that changed,", other)
    return timed(f"align {count} steps, {percent} % changed", took, 2, reference)


def _texts(count: int, percent: int, rounds: int, chance: random.Random) -> Row:
    tokens = data.TextGenerator(f"diff {count}").text(60 * count).split()
    lines = [" ".join(tokens[i : i + 9]) for i in range(0, len(tokens), 9)]
    other = [_reworded(line, chance) if chance.random() < percent / 100 else line for line in lines]
    a, b = "\n".join(lines), "\n".join(other)
    took = cpu_ms(lambda: text_diff(a, b), rounds)
    base = cpu_ms(lambda: difflib.SequenceMatcher(None, lines, other, autojunk=False).get_opcodes(), rounds)
    size = f"two messages of {len(a) // 1000} kB"
    return timed(f"{size}, {percent} % of lines changed", took, 7, Reference("difflib, lines only,", base))


def _reworded(line: str, chance: random.Random) -> str:
    tokens = line.split()
    tokens[chance.randrange(len(tokens))] = "changed"
    return " ".join(tokens)


def _first_hunk(count: int, rounds: int) -> Row:
    folder = data.cached_folder(f"replay-{count}", lambda folder: _write_replay(folder, count))
    a, b = load(folder / "a.json"), load(folder / "b.json")

    def until_seen() -> None:
        first = next(difference.first for difference in Comparison(a, b).steps() if difference.first is not None)
        text_diff(str(first.a), str(first.b))

    took = cpu_ms(until_seen, rounds)
    total_ms = cpu_ms(lambda: list(Comparison(a, b).steps()), 1)
    what = f"first difference of two runs of {count} steps"
    return timed(what, took, 50, references.decoding(), f"all of it: {total_ms:.0f} ms")


def _write_replay(folder: Path, count: int) -> None:
    original = data.record(data.TextGenerator("replay"), 1, steps=count)
    replay = copy.deepcopy(original)
    replay.update(record_id="replay", replay_of=original["record_id"])
    chance = random.Random(2)
    for step in replay["steps"]:
        step.update(timestamp="2027-01-01T00:00:00Z", duration_ms=0.0)
        if chance.random() < 0.02:
            step["output_data"] = {"text": f"changed {chance.random()}"}
    for name, value in (("a", original), ("b", replay)):
        (folder / f"{name}.json").write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def _large(count: int, chance: random.Random) -> Iterator[Row]:
    """Two runs that have nothing in common: the worst that can be aligned."""
    a, b = (_run([_step(chance) for _ in range(count)]) for _ in range(2))
    began = time.perf_counter()
    steps = Comparison(a, b).steps()
    next(steps)
    first = (time.perf_counter() - began) * 1000
    slowest, last = 0.0, time.perf_counter()
    for _ in steps:
        now = time.perf_counter()
        slowest, last = max(slowest, now - last), now
    what = f"{count} steps against {count} others"
    detail = f"longest wait for the next: {slowest * 1000:.0f} ms"
    yield timed(f"{what}, first result", first, 500, references.decoding(), detail)
    gc.collect()
    tracemalloc.start()
    align(a, b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bits = count * count / 8
    yield Row(f"{what}, memory", (peak + bits) / 1e6, 300, "MB", f"{bits / 1e6:.0f} MB of it: table of comparisons")


def _step(chance: random.Random) -> Step:
    return chance.choice(_TOOLS), f"{chance.getrandbits(64):016x}"


def _edited(steps: Sequence[Step], share: float, chance: random.Random, new: Callable[[], Step]) -> list[Step]:
    """A third of the changes drop a step, a third replace one, a third add one."""
    edited: list[Step] = []
    for step in steps:
        turn = chance.random() / share * 3
        edited += [] if turn < 1 else [new()] if turn < 2 else [step, new()] if turn < 3 else [step]
    return edited


def _run(steps: Sequence[Step]) -> Run:
    builder = RunBuilder(RunRef("bench", "/bench"), lambda span: Body(input={"q": span.preview}, output=span.preview))
    operation: dict[str, Any] = dict.fromkeys(_TOOLS, Operation.EXECUTE_TOOL)
    spans = [
        Span(id=f"s{i}", name=name, operation=operation[name], step=i, is_step=True, status=Status.OK, preview=preview)
        for i, (name, preview) in enumerate(steps)
    ]
    builder.add(spans, header=Header(id="bench", name="bench"))
    return builder.build()


def cpu_ms(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds, the median of so many rounds after one that only warms up."""
    times = []
    for number in range(rounds + 1):
        gc.collect()
        began = time.process_time()
        work()
        if number:
            times.append((time.process_time() - began) * 1000)
    return median(times)
