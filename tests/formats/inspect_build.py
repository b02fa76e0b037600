"""Makes the logs of the Inspect cases: ``python -m tests.formats.inspect_build``.

They are one small story, of agents that look up tides, as each version of Inspect wrote logs. `archive` packs members
as Inspect does, also by Zstandard in several frames, which Python's own `zipfile` cannot write.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from struct import pack
from typing import Any

import zstandard

CASES = Path(__file__).parent / "inspect"
MODEL = "acme/tern-2"
FRAME = 4096
STORED, DEFLATED, ZSTANDARD = 0, 8, 93
Members = Mapping[str, Any]


# ---- archives


def packed(data: bytes, method: int, frame: int = FRAME) -> bytes:
    """`data` as a member of that method holds it; by Zstandard in frames of so many bytes."""
    if method == ZSTANDARD:
        frames = [data[i : i + frame] for i in range(0, len(data), frame)] or [b""]
        return b"".join(zstandard.ZstdCompressor().compress(frame) for frame in frames)
    if method == DEFLATED:
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        return squeeze.compress(data) + squeeze.flush()
    return data


def archive(
    members: Members | Iterable[tuple[str, Any]], method: int = DEFLATED, *, listed: bool = True, frame: int = FRAME
) -> bytes:
    """An archive of these members: bytes as they are, anything else as JSON. Without its list unless `listed`."""
    body, directory = b"", b""
    pairs = list(members.items() if isinstance(members, Mapping) else members)
    for name, value in pairs:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        inner, label = packed(data, method, frame), name.encode()
        header = (20, 0x800, method, 0, 0x5A21, zlib.crc32(data), len(inner), len(data), len(label), 0)
        entry = pack("<4sH5H3L2H3H2L", b"PK\1\2", 20, *header, 0, 0, 0, 0, len(body))
        directory += entry + label
        body += pack("<4s5H3L2H", b"PK\3\4", *header) + label + inner
    end = pack("<4s4H2LH", b"PK\5\6", 0, 0, len(pairs), len(pairs), len(directory), len(body), 0)
    return body + directory + end if listed else body


# ---- parts of all logs


def usage(given: int, output: int, read: int | None = None) -> dict[str, Any]:
    """Tokens, as Inspect counts: what came from a cache is not among those that went in."""
    cached = {} if read is None else {"input_tokens_cache_read": read}
    return {"input_tokens": given, "output_tokens": output, "total_tokens": given + output + (read or 0), **cached}


def head(eval_id: str, **more: Any) -> dict[str, Any]:
    """What every log says of its eval."""
    return {
        "eval_id": eval_id,
        "run_id": "runOfTuesday",
        "created": "2026-03-02T09:00:00+00:00",
        "task": "tides",
        "task_id": "taskOfTides",
        "task_version": 0,
        "dataset": {"name": "harbours", "samples": 2, "sample_ids": ["dover", "brest"], "shuffled": False},
        "model": MODEL,
        "config": {"epochs": 1, "message_limit": 12},
        "tags": ["coast", "nightly"],
        "packages": {"inspect_ai": "0.3.285"},
        **more,
    }


PLAN = {"name": "plan", "steps": [{"solver": "react", "params": {"name": "pilot"}}], "config": {"temperature": 0.5}}


class EventLog:
    """Events, one second after the other, each with an id of its own."""

    def __init__(self, prefix: str, minute: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self._prefix, self._minute = prefix, minute

    def time(self, later: float = 0.0) -> str:
        """A moment some seconds after the last event."""
        return f"2026-03-02T09:{self._minute:02d}:{len(self.events) + later:09.6f}+00:00"

    def add(self, event: str, span: str | None = None, **fields: Any) -> None:
        """One event."""
        ident = f"{self._prefix}e{len(self.events)}"
        base = {"uuid": ident, "timestamp": self.time(), "working_start": len(self.events) * 0.75, "event": event}
        self.events.append({**base, **({} if span is None else {"span_id": span}), **fields})

    def begin(self, ident: str, kind: str, name: str, parent: str | None = None) -> None:
        """The beginning of a span."""
        above = {} if parent is None else {"parent_id": parent}
        self.add("span_begin", ident, id=ident, type=kind, name=name, **above)

    def end(self, ident: str) -> None:
        """The end of a span."""
        self.add("span_end", ident, id=ident)


def asked(tool: str, ident: str, **arguments: Any) -> dict[str, Any]:
    """A call that a message asks for."""
    return {"id": ident, "function": tool, "arguments": arguments, "type": "function"}


def answer(text: str, calls: Iterable[Any] = (), *, used: Any = None, stop: str = "stop") -> dict[str, Any]:
    """What a model said."""
    listed = list(calls)
    message = {"id": f"a{len(text)}", "content": text, "source": "generate", "role": "assistant", "model": MODEL}
    choice = {"message": {**message, **({"tool_calls": listed} if listed else {})}, "stop_reason": stop}
    return {"model": MODEL, "choices": [choice], "completion": text, "usage": used or usage(100, 20, 40), "time": 0.5}


SYSTEM = {"id": "m0", "role": "system", "content": "attachment://5ea5"}
QUESTION = {"id": "m1", "role": "user", "content": "When is high water at Dover?", "source": "input"}
CALLED = {
    "id": "m2",
    "role": "assistant",
    "content": "I look it up.",
    "tool_calls": [asked("tide", "c1", port="Dover")],
}
ANSWERED = {"id": "m3", "role": "tool", "content": "11:32", "tool_call_id": "c1", "function": "tide"}


def agent(prefix: str = "") -> list[dict[str, Any]]:
    """Events of a sample in which an agent calls a tool, that one another agent, and a score is given."""
    log = EventLog(prefix)
    log.begin("s-init", "init", "init")
    log.add("sample_init", "s-init", sample={"input": QUESTION["content"], "target": "11:32"}, state={"messages": []})
    log.end("s-init")
    log.begin("s-all", "solvers", "solvers")
    log.begin("s-react", "solver", "react", "s-all")
    log.begin("s-pilot", "agent", "pilot", "s-react")
    call = {"request": {"model": "tern-2"}, "response": {"id": "r1"}, "call_refs": [[0, 1]], "call_key": "messages"}
    base = {"model": MODEL, "input": [], "tools": [{"name": "tide"}], "tool_choice": "auto", "config": {}}
    said = answer("I look it up.", [asked("tide", "c1", port="Dover")], stop="tool_calls")
    log.add("model", "s-pilot", **base, input_refs=[[0, 2]], output=said, call=call, completed=log.time(0.5))
    log.begin("s-tide", "tool", "tide", "s-pilot")
    given = {"id": "c1", "function": "tide", "arguments": {"port": "Dover"}, "type": "function"}
    done = {"completed": log.time(6.0), "working_time": 5.5, "agent_span_id": "s-almanac", "events": []}
    log.add("tool", "s-pilot", **given, result="attachment://7a61", **done)
    log.begin("s-almanac", "agent", "almanac", "s-tide")
    log.add("model", "s-almanac", **base, input_refs=[[1, 2]], output=answer("11:32"), cache="write", retries=2)
    log.add("sandbox", "s-almanac", action="exec", cmd="tides --port dover", result=3, output="no such port\n")
    log.add("store", "s-almanac", changes=[{"op": "add", "path": "/found", "value": "11:32"}])
    log.end("s-almanac")
    log.end("s-tide")
    log.add("model", "s-pilot", **base, input_refs=[[0, 4]], output=answer("It is at 11:32."), cache="read")
    log.end("s-pilot")
    log.end("s-react")
    log.end("s-all")
    log.begin("s-scorers", "scorers", "scorers")
    log.begin("s-match", "scorer", "match", "s-scorers")
    score = {"value": "C", "answer": "11:32", "explanation": "as in the almanac"}
    log.add("score", "s-match", score=score, target="11:32", intermediate=False, scorer="match")
    log.end("s-match")
    log.end("s-scorers")
    return log.events


def every_kind() -> list[dict[str, Any]]:
    """Events of a sample that was cut off: one of each kind, spans side by side, a kind from the future."""
    log = EventLog("k", minute=5)
    log.begin("left", "agent", "left")
    log.begin("right", "watch", "right")
    base = {"model": MODEL, "tools": [], "tool_choice": "none", "config": {"max_tokens": 16}}
    log.add("model", "left", **base, input=[QUESTION], output=answer("On the l", stop="max_tokens"), role="grader")
    failed = {"error": "RateLimitError: try again", "traceback": "Traceback: line 7", "output": {"model": MODEL}}
    log.add("model", "right", **base, input=[QUESTION], **failed)
    for tool, kind in (("tide", "timeout"), ("moon", "parsing")):
        log.begin(f"s-{tool}", "tool", tool, "left")
        error = {"type": kind, "message": f"{tool} did not answer"}
        log.add("tool", "left", id=tool, function=tool, arguments={"port": "Brest"}, result="", error=error, events=[])
        log.end(f"s-{tool}")
    log.add("approval", "left", message="may it?", call=asked("sink", "c9"), approver="human", decision="reject")
    log.add("approval", "right", message="may it?", call=asked("wait", "c8"), approver="auto", decision="approve")
    log.add("compaction", "right", type="summary", tokens_before=9000, tokens_after=1200)
    log.add("info", "right", source="pilot", data={"depth": 4.5})
    log.add("logger", "right", message={"level": "warning", "message": "shoal ahead", "created": 1.5, "lineno": 7})
    log.add("input", "right", input="go on", input_ansi="\x1b[1mgo on\x1b[0m")
    log.add("state", "right", changes=[{"op": "add", "path": "/messages/0", "value": QUESTION}])
    log.add("interrupt", "right", source="user_cancel", interrupted="generate")
    log.add("checkpoint", "right", checkpoint_id=3)
    log.add("score_edit", "right", score_name="match", edit={"value": "P"})
    log.add("weather", "right", wind={"knots": 31})
    log.end("left")
    log.add("sample_limit", type="message", message="Exceeded message limit: 12", limit=12)
    log.add("span_end", "nowhere", id="nowhere")
    log.add("error", error={"message": "ValueError('no tide')", "traceback": "Traceback: line 9", "traceback_ansi": ""})
    return log.events


def sample(ident: str, epoch: int = 1, **fields: Any) -> dict[str, Any]:
    """A sample of an agent's run, complete and correct."""
    used = {MODEL: usage(200, 40, 80)}
    return {
        "id": ident,
        "epoch": epoch,
        "input": QUESTION["content"],
        "target": "11:32",
        "messages": [{**SYSTEM, "content": "You pilot ships."}, QUESTION, CALLED, ANSWERED],
        "output": answer("It is at 11:32."),
        "scores": {"match": {"value": "C", "answer": "11:32", "explanation": "as in the almanac"}},
        "metadata": {"sea": "channel"},
        "store": {"found": "11:32"},
        "events": agent(f"{ident}{epoch}"),
        "model_usage": used,
        "started_at": "2026-03-02T09:00:01.000000+00:00",
        "completed_at": "2026-03-02T09:00:25.500000+00:00",
        "total_time": 24.5,
        "working_time": 20.25,
        "uuid": f"uuid-{ident}-{epoch}",
        "error_retries": [],
        "attachments": {"5ea5": "You pilot ships.", "7a61": "11:32 at springs"},
        "events_data": {
            "messages": [SYSTEM, QUESTION, CALLED, ANSWERED],
            "calls": [{"role": "user", "content": "wire"}],
        },
        **fields,
    }


ERROR = {
    "message": "RuntimeError('the almanac is gone')",
    "traceback": "Traceback: line 3",
    "traceback_ansi": "\x1b[31mT",
}


def cut_off(ident: str, **fields: Any) -> dict[str, Any]:
    """A sample that a limit ended."""
    fields = {"attachments": {}, "events_data": {"messages": [], "calls": []}, **fields}
    limit: dict[str, Any] = {
        "limit": {"type": "message", "limit": 12},
        "scores": {"match": {"value": "I"}, "f1": {"value": 0.25}},
    }
    return sample(
        ident, events=every_kind(), input=[QUESTION], model_usage={MODEL: usage(100, 20, 40)}, **limit, **fields
    )


def retried(ident: str, epoch: int = 1) -> dict[str, Any]:
    """A sample that failed twice, and a third time for good."""
    log = EventLog("r", minute=2)
    log.begin("s-try", "agent", "pilot")
    given = {"model": MODEL, "input": [], "input_refs": [[0, 2]], "tools": [], "tool_choice": "none", "config": {}}
    log.add("model", "s-try", **given, output=answer("attachment://7a61", used=usage(30, 3)))
    log.add("error", error=ERROR)
    attempts = [{**ERROR, "events": log.events}, {**ERROR, "message": "TimeoutError('fog')", "events": None}]
    shared: dict[str, Any] = {"events_data": {"messages": [SYSTEM, QUESTION], "calls": []}}
    ended = EventLog("f", minute=3)
    ended.add("error", error=ERROR)
    return sample(
        ident, epoch, events=ended.events, error=ERROR, error_retries=attempts, scores={}, model_usage={}, **shared
    )


def summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What Inspect says of a sample in short."""
    names = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "started_at", "completed_at")
    fields = {name: sample[name] for name in (*names, "total_time", "working_time", "uuid") if name in sample}
    error, limit = sample.get("error"), sample.get("limit")
    if error:
        fields["error"] = error["message"]
    if limit:
        fields["limit"] = limit["type"]
    return {**fields, "retries": len(sample.get("error_retries") or ()), "completed": True, "message_count": 4}


def ended(spec: dict[str, Any], samples: Iterable[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """What a log says of an eval that is over."""
    spent = [table for record in samples for table in record["model_usage"].values()]
    names = {name for table in spent for name in table}
    totals = {name: sum(table.get(name, 0) for table in spent) for name in sorted(names)}
    metrics = {"accuracy": {"name": "accuracy", "value": 0.5, "params": {}}}
    return {
        "version": 2,
        "status": "success",
        "eval": spec,
        "plan": PLAN,
        "results": {"total_samples": 2, "completed_samples": 2, "scores": [{"name": "match", "metrics": metrics}]},
        "stats": {
            "started_at": "2026-03-02T09:00:00+00:00",
            "completed_at": "2026-03-02T09:00:30+00:00",
            "model_usage": {MODEL: totals} if totals else {},
        },
        **more,
    }


def members(spec: dict[str, Any], samples: list[dict[str, Any]], *, over: bool = True, **more: Any) -> dict[str, Any]:
    """The members of an archive, in the order in which Inspect writes them; without its end unless it is `over`."""
    contents: dict[str, Any] = {"_journal/start.json": {"version": 2, "eval": spec, "plan": PLAN}}
    for number, record in enumerate(samples, 1):
        contents[f"samples/{record['id']}_epoch_{record['epoch']}.json"] = record
        contents[f"_journal/summaries/{number}.json"] = [summary(record)]
    if over:
        contents["summaries.json"] = [summary(record) for record in samples]
        contents["reductions.json"] = [{"scorer": "match", "samples": [{"value": 1.0, "sample_id": "dover"}]}]
        contents["header.json"] = ended(spec, samples, **more)
    return contents


def in_pieces(members: dict[str, Any], size: int = 7) -> dict[str, Any]:
    """The members of a sample in pieces of `size` items, as logs of huge samples have them since 2026."""
    below = f"samples/{members['id']}_epoch_{members['epoch']}"
    names = list(members["attachments"])
    numbered = json.dumps(members)
    for number, name in enumerate(names):
        numbered = numbered.replace(f"attachment://{name}", f"attachment://{number}")
    renumbered = json.loads(numbered)
    left_out = ("messages", "events", "attachments", "events_data", "metadata")
    shell = {name: value for name, value in renumbered.items() if name not in left_out}
    parts = {
        "messages": renumbered["events_data"]["messages"],
        "events": renumbered["events"],
        "calls": renumbered["events_data"]["calls"],
        "attachments": [members["attachments"][name] for name in names],
    }
    members_by_name = {
        f"{below}/sample.json": {**shell, "message_refs": [[0, 4]]},
        f"{below}/metadata.json": members["metadata"],
    }
    for part, items in parts.items():
        for begin in range(0, len(items), size):
            members_by_name[f"{below}/{part}/{begin}.json"] = items[begin : begin + size]
    return {**members_by_name, f"{below}/skeleton.json": {"version": 1}, f"{below}/events/stats.json": {"chunks": []}}


def early() -> dict[str, Any]:
    """A log of 2024: steps instead of spans, events within events, texts under ``tc://``, one score without a name."""
    log = EventLog("")
    state = {"messages": [{"role": "user", "content": "tc://ab12"}], "completed": False}
    log.add("sample_init", sample={"input": "tc://ab12", "target": "yes", "id": 7}, state=state)
    log.add("step", action="begin", type="solver", name="generate")
    base: dict[str, Any] = {"model": "acme/tern-1", "tools": [], "tool_choice": "none", "config": {}}
    said = answer("tc://cd34", used=usage(50, 2))
    log.add("model", **base, input=[{"role": "user", "content": "tc://ab12"}], output=said)
    inner = EventLog("n", minute=1)
    inner.add("model", **base, input=[], output=answer("Springs.", used=usage(10, 1)))
    inner.add("subtask", name="recall", input={"what": "tides"}, result="none", events=[{"event": "info", "data": "x"}])
    log.add("tool", id="c1", function="moon", arguments={"day": 2}, result="full", events=inner.events)
    log.add("step", action="end", type="solver", name="generate")
    log.add("step", action="end", type="solver", name="no such step")
    log.add("step", action="begin", type="scorer", name="match")
    log.add("score", score={"value": 1, "answer": "yes"}, target="yes")
    for event in log.events + inner.events:  # neither had ids, nor time since the beginning
        event.pop("uuid")
        event.pop("working_start")
    transcript = {"events": log.events, "content": {"ab12": "Is it springs?", "cd34": "Yes, it is."}}
    whole = {
        "id": 7,
        "epoch": 1,
        "input": "Is it springs?",
        "target": "yes",
        "messages": [QUESTION],
        "score": {"value": 1},
    }
    spec = head("", task_id="taskOfOld", packages={"inspect_ai": "0.3.41.dev123+g9ad2119a"}, tags=None)
    del spec["eval_id"], spec["run_id"]
    samples = [{**whole, "output": answer("Yes, it is."), "metadata": {}, "store": {}, "transcript": transcript}]
    header = {"version": 2, "status": "success", "eval": spec, "plan": PLAN, "stats": {"model_usage": {}}}
    return {**header, "samples": samples}


def document() -> dict[str, Any]:
    """A log as one document: two epochs, a retried sample, one that was cut off."""
    spec = head("evalOfDocument", config={"epochs": 2, "message_limit": 12})
    samples = [sample("dover"), sample("dover", 2), retried("brest"), cut_off("brest", epoch=2)]
    return {**ended(spec, samples), "samples": samples}


def write(case: str, name: str, data: bytes) -> None:
    """One file of a case."""
    folder = CASES / case / "input"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main() -> None:
    """Write all cases."""
    stamp = "2026-03-02T09-00-00-00-00_tides"
    samples = [sample("dover"), retried("brest")]
    written = members(head("evalOfZstd"), samples)
    write("archive", f"{stamp}_zstd.eval", archive(written, ZSTANDARD))
    cut = [sample("dover", 1), cut_off("brest")]
    write("archive", f"{stamp}_deflate.eval", archive(members(head("evalOfDeflate"), cut), DEFLATED))
    write("going", f"{stamp}_going.eval", archive(members(head("evalGoing"), [sample("dover")], over=False), ZSTANDARD))
    fault = {"message": "OSError('no sea')", "traceback": "Traceback: line 1", "traceback_ansi": ""}
    none = members(head("evalOfNone"), [], status="error", error=fault)
    write("going", f"{stamp}_failed.eval", archive(none, STORED))
    huge = members(head("evalOfPieces"), [sample("dover")])
    parts = in_pieces(huge.pop("samples/dover_epoch_1.json"))
    write("pieces", f"{stamp}_pieces.eval", archive({**parts, **huge}))
    write("document", f"{stamp}_document.json", json.dumps(document(), indent=1).encode())
    write("early", "early.json", json.dumps(early(), indent=1).encode())


if __name__ == "__main__":
    main()
