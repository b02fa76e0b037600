"""Replays events and compares the result with a fresh read: both must be equal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.shared import PATIENCE
from tracetui.export.json import encode, event_line, run_value, span_document
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.live.tail import Tail
from tracetui.model import Run, TaskKey
from tracetui.model.run import Event
from tracetui.sources.local import LocalSource
from tracetui.store.claims import Claims
from tracetui.store.relations import Relations

_AT_ONE_TIME = ("state", "state_source", "open_call")
"""Fields of a run that depend on the clock."""


class Replay:
    """The state of a consumer of ``tail --json``."""

    def __init__(self) -> None:
        self.runs: dict[str, Any] = {}
        """The latest `summary` of every run, by address."""
        self.spans: dict[str, dict[str, Any]] = {}
        self.problems: dict[str, list[str]] = {}
        """Reasons by path."""
        self.seen: list[dict[str, Any]] = []

    def take(self, events: Iterable[Event]) -> None:
        """Take in events as they are printed."""
        for event in events:
            self.line(event_line(event, now=time.time()))

    def line(self, data: bytes) -> None:
        """Take in one line."""
        event = json.loads(data)
        self.seen.append(event)
        address = event.get("run", "")
        match event["event"]:
            case "run":
                self.runs[address] = {
                    name: value for name, value in event["summary"].items() if name not in _AT_ONE_TIME
                }
                self.spans.setdefault(address, {})
            case "span":
                self.spans[address][event["span"]["id"]] = event["span"]
            case "reset":
                self.runs.pop(address, None)
                self.spans.pop(address, None)
                self.problems.pop(address.partition("#")[0], None)
            case "problem":
                self.problems.setdefault(event["path"], []).append(event["reason"])

    def kinds(self) -> list[str]:
        """The kinds of the events so far."""
        return [event["event"] for event in self.seen]

    def known(self) -> dict[str, Any]:
        """Every run with its spans in tree order: each span before its children."""
        return {address: [self.runs[address], _in_order(self.spans[address])] for address in self.runs}


def _in_order(spans: dict[str, Any]) -> list[Any]:
    below: dict[str | None, list[Any]] = {}
    for span in spans.values():
        below.setdefault(span["parent_id"] if span["depth"] else None, []).append(span)
    ordered: list[Any] = []
    todo = list(reversed(below.get(None, [])))
    while todo:
        span = todo.pop()
        ordered.append(span)
        todo.extend(reversed(below.get(span["id"], [])))
    return ordered


def from_scratch(root: str) -> dict[str, Any]:
    """Every run below `root` with its spans, as ``ls`` and ``show`` give them now."""
    source = LocalSource()
    gross = [run for file in scan(source, [root], deep=True) for run in file.runs]
    claims = Claims(gross)
    net_runs = [*map(claims.net, gross)]
    relations = Relations(net_runs)
    replays, tasks = relations.replay_addresses(), relations.inherited_tasks
    return {
        run.ref.address: _document(claims.mark(read_run(source, run.ref)), replays[run.ref], tasks.get(run.ref))
        for run in net_runs
    }


def _document(run: Run, replay: str | None, task: TaskKey | None) -> Any:
    spans = [span_document(run, position) for position in range(len(run.spans))]
    return json.loads(encode([run_value(run.summary, replay, inherited=task), spans]))


def until(tail: Tail, replay: Replay, reached: Callable[[], bool]) -> None:
    """Apply events until that is reached."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, replay.seen[-20:]
        replay.take(tail.events(0.05))


def by_id(known: dict[str, Any]) -> dict[str, Any]:
    """The state of runs without span order, as spans are reported when they arrive."""
    return {address: [run, sorted(spans, key=lambda span: str(span["id"]))] for address, (run, spans) in known.items()}


def until_equal(
    tail: Tail, replay: Replay, root: str, seen: Callable[[dict[str, Any]], dict[str, Any]] = lambda known: known
) -> None:
    """Apply events until the state equals the disk, as far as that is `seen`."""
    deadline = time.monotonic() + PATIENCE
    while seen(replay.known()) != (expected := seen(from_scratch(root))):
        if time.monotonic() > deadline:
            assert seen(replay.known()) == expected
        replay.take(tail.events(0.05))


def grown(
    source: Path,
    folder: Path,
    seed: int,
    unwritten: dict[Path, bytes],
    may: Callable[[Path, dict[Path, bytes]], bool] = lambda path, unwritten: True,
    seen: Callable[[dict[str, Any]], dict[str, Any]] = lambda known: known,
) -> None:
    """Append what is `left` of files of `source` to files of the same names in `folder`, torn and in bursts."""
    random, replay = Random(seed), Replay()
    with closing(Tail(LocalSource(), [str(folder)], from_start=True)) as tail:
        while unwritten:
            path = random.choice([path for path in sorted(unwritten) if may(path, unwritten)])
            size = random.choice((1, 300, 4_000, 40_000))
            if random.random() < 0.5:  # a burst of whole lines
                size = unwritten[path].find(b"\n", min(size, len(unwritten[path]) - 1)) + 1 or len(unwritten[path])
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as stream:
                stream.write(unwritten[path][:size])
            unwritten[path] = unwritten[path][size:]
            if not unwritten[path]:
                del unwritten[path]
            replay.take(tail.events(0.0))
        until_equal(tail, replay, str(folder), seen)
