"""How fast the files of agents are counted and read, beside a loop that only decodes their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from tests.bench.data import BIG, TextGenerator, cached_folder
from tests.bench.listing import interleaved
from tests.bench.table import Row, median
from tests.formats import inspect_build, opencode_build
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import RunRef
from tracetui.sources.archive import Archive
from tracetui.sources.local import LocalSource

_BEGIN: Final = datetime(2026, 3, 2, 9, 15, tzinfo=UTC)
LONG: Final = 3_000
SHORT: Final = 150
"""Characters of the longest texts in a session, about."""
_THREAD: Final = "019cadd4-5620-7001-8000-000000000001"


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """Counting and reading a long session of each format; sizes are divided by `scale`."""
    for name, make in (WRITERS | SMALL).items():
        folder = make(5_000 // scale)
        (path,) = _runs(folder)
        ways: dict[str, Callable[[], None]] = {
            "decode": partial(_decode, folder),
            "count": partial(_count, folder),
            "read": partial(_read, path),
        }
        times = interleaved(ways, rounds)
        decoded, counted, read = (median(times[way]) for way in ("decode", "count", "read"))
        size = sum(map(len, _contents(folder))) / 1e6
        speeds = f"{size / counted * 1000:.0f} MB/s; orjson.loads a line: {size / decoded * 1000:.0f} MB/s"
        yield Row(f"count {name}, {size:.0f} MB", counted / decoded, COUNTING.get(name, 3), "×", speeds)
        yield Row(f"read {name}, {size:.0f} MB", read / decoded, READING.get(name, 3), "×", "")
    for name, make in SMALL.items():
        regular = make(1_000 // scale)
        irregular = _with_unknown_fields(regular)
        times = interleaved({"regular": partial(_count, regular), "irregular": partial(_count, irregular)}, rounds)
        ratio = median(times["irregular"]) / median(times["regular"])
        yield Row(f"count {name}, an unknown field in every 10th record", ratio, 1.5, "×", "of a regular session")


def _with_unknown_fields(folder: Path) -> Path:
    """The session in `folder`, with a field in every tenth record that no schema has."""

    def write(copy: Path) -> None:
        for path in folder.rglob("*.jsonl"):
            lines = path.read_bytes().splitlines()
            lines[::10] = [line[:-1] + b',"unheard_of":1}' for line in lines[::10]]
            (copy / path.name).write_bytes(b"\n".join(lines) + b"\n")

    return cached_folder(f"{folder.name}-unknown", write)


def codex(calls: int, most: int = LONG) -> Path:
    """A rollout of so many calls, with outputs of a few kB."""

    def write(folder: Path) -> None:
        generator = TextGenerator("codex", most)
        with (folder / f"rollout-2026-03-02T09-15-00-{_THREAD}.jsonl").open("wb") as file:
            file.writelines(rollout(generator, calls))

    return cached_folder(f"codex-2-{calls}-{most}", write)


def claude(calls: int, most: int = LONG) -> Path:
    """A session of Claude Code of so many calls, with outputs of a few kB, each told twice as it does."""

    def write(folder: Path) -> None:
        with (folder / f"{_THREAD}.jsonl").open("wb") as file:
            file.writelines(session(TextGenerator("claude", most), calls))

    return cached_folder(f"claude-2-{calls}-{most}", write)


def atif(calls: int) -> Path:
    """A trajectory of so many calls, with outputs of a few kB: one document."""

    def write(folder: Path) -> None:
        generator = TextGenerator("atif")
        steps = [_step(generator, number) for number in range(1, calls + 1)]
        agent = {"name": "gardener", "version": "1", "model_name": BIG}
        document = {"schema_version": "ATIF-v1.7", "session_id": _THREAD, "agent": agent, "steps": steps}
        (folder / "trajectory.json").write_bytes(orjson.dumps(document))

    return cached_folder(f"atif-{calls}", write)


def otlp(calls: int) -> Path:
    """A trace of so many calls, with outputs of a few kB and what was said before in each: a span a line."""

    def write(folder: Path) -> None:
        with (folder / "traces.jsonl").open("wb") as file:
            file.writelines(_spans(TextGenerator("otlp"), calls))

    return cached_folder(f"otlp-{calls}", write)


def pi(calls: int, most: int = LONG) -> Path:
    """A session of pi of so many calls, with outputs of a few kB."""

    def write(folder: Path) -> None:
        with (folder / f"2026-03-02T09-15-00-000Z_{_THREAD}.jsonl").open("wb") as file:
            file.writelines(_entries(TextGenerator("pi", most), calls))

    return cached_folder(f"pi-2-{calls}-{most}", write)


def copilot(calls: int, most: int = LONG) -> Path:
    """A session of Copilot of so many calls, a turn each, with outputs of a few kB."""

    def write(folder: Path) -> None:
        with (folder / "events.jsonl").open("wb") as file:
            file.writelines(_events(TextGenerator("copilot", most), calls))

    return cached_folder(f"copilot-2-{calls}-{most}", write)


def opencode(calls: int) -> Path:
    """A database with a session of so many calls, with outputs of a few kB, each told twice as opencode does."""

    def write(folder: Path) -> None:
        generator = TextGenerator("opencode")
        with opencode_build.database(folder / "opencode.db") as db:
            db.execute("BEGIN")
            writer = opencode_build.Writer(db)
            writer.session("ses_1", 1, "Prune")
            for number in range(calls):
                asked, ident = f"msg_{number - number % 8:06}a", f"msg_{number:06}b"
                if number % 8 == 0:
                    writer.user(asked, "ses_1", 2 + number, generator.text(300))
                writer.answer(ident, "ses_1", 2.1 + number, asked, end=2.9 + number)
                output, arguments = generator.text(3_000), {"command": generator.text(80)}
                call = opencode_build.call(
                    "bash", arguments, output, 2.3 + number, exit=int(number % 8 == 5), output=output
                )
                writer.step(ident, "ses_1", 2.2 + number, 2.9 + number, opencode_build.text(generator.text(80)), call)
            db.execute("COMMIT")

    return cached_folder(f"opencode-{calls}", write)


def inspect(calls: int) -> Path:
    """A log of so many calls, fifty in a sample, with outputs of a few kB: an archive, packed as Inspect does."""

    def write(folder: Path) -> None:
        generator = TextGenerator("inspect")
        samples = [_sample(generator, number) for number in range(max(1, calls // 50))]
        members = inspect_build.members(inspect_build.head("bench"), samples)
        data = inspect_build.archive(members, inspect_build.ZSTANDARD, frame=1 << 20)
        (folder / "log.eval").write_bytes(data)

    return cached_folder(f"inspect-{calls}", write)


def _small(make: Callable[[int, int], Path], calls: int) -> Path:
    """A session of small records and many calls."""
    return make(3 * calls, SHORT)


WRITERS: Final[dict[str, Callable[[int], Path]]] = {
    "codex": codex,
    "claude-code": claude,
    "atif": atif,
    "otlp": otlp,
    "inspect": inspect,
    "opencode": opencode,
    "pi": pi,
    "copilot": copilot,
}
SMALL: Final[dict[str, Callable[[int], Path]]] = {
    f"{name}, small records": partial(_small, make)
    for name, make in {"codex": codex, "claude-code": claude, "pi": pi, "copilot": copilot}.items()
}
COUNTING: Final = {"otlp": 2.5, "opencode": 3.5, **dict.fromkeys(SMALL, 4.5)}
"""Where counting may take more than 3 times as long as decoding: each attribute of a span is an object of objects; each
part of a message is a row of a database; each small record is a span.
"""
READING: Final = {**dict.fromkeys(("codex", "claude-code", "pi", "copilot"), 3.5), **dict.fromkeys(SMALL, 4.5)}
"""The same for the full read."""


def _sample(generator: TextGenerator, number: int) -> dict[str, Any]:
    log, conversation = inspect_build.EventLog(str(number)), [inspect_build.SYSTEM, inspect_build.QUESTION]
    log.begin("agent", "agent", "gardener")
    for call in range(50):
        ident, arguments, output = f"call_{call}", {"command": generator.text(80)}, generator.text(3_000)
        completion = inspect_build.answer(generator.text(80), [inspect_build.asked("bash", ident, **arguments)])
        refs = {"input": [], "input_refs": [[0, len(conversation)]]}
        tools = {"tools": [{"name": "bash", "description": generator.text(400)}], "tool_choice": "auto", "config": {}}
        sent = {"request": {"model": BIG}, "response": {"text": generator.text(200)}, "call_refs": [[0, 2]]}
        log.add("model", "agent", model=BIG, **refs, **tools, output=completion, call=sent, completed=log.time(0.5))
        log.begin(ident, "tool", "bash", "agent")
        log.add("tool", "agent", id=ident, function="bash", arguments=arguments, result=output, events=[])
        log.end(ident)
        answer = {"role": "tool", "content": output, "tool_call_id": ident, "function": "bash"}
        conversation += [completion["choices"][0]["message"], answer]
    log.end("agent")
    shared = {"messages": conversation, "calls": conversation[:2]}
    return inspect_build.sample(f"s{number}", events=log.events, messages=conversation, events_data=shared)


def _events(generator: TextGenerator, calls: int) -> Iterator[bytes]:
    log: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": _THREAD, "copilotVersion": "1.0.102", "context": {"cwd": "/home/ada/orchard"}}),
        ("user.message", {"content": "Prune"}),
    ]
    for number in range(1, calls + 1):
        ident, api, arguments = f"call_{number}", f"chatcmpl-{number}", {"command": generator.text(80)}
        usage: dict[str, Any] = {"inputTokens": 1200, "outputTokens": 85, "cacheReadTokens": 900, "cost": 1.0}
        usage |= {"model": BIG, "apiCallId": api, "duration": 60, "finishReason": "tool_calls"}
        paid = {"accounting": {"sourceSessionId": _THREAD, "sequence": number}}
        asked = {"toolCallId": ident, "name": "bash", "arguments": arguments, "type": "function"}
        message = {"content": generator.text(80), "toolRequests": [asked], "apiCallId": api, "model": BIG}
        ran = {"success": True, "shellExecution": {"exitCode": 0}, "result": {"content": generator.text(3_000)}}
        log += [
            ("assistant.turn_start", {"turnId": str(number)}),
            ("session.usage_record", {"usage": usage | paid}),
            ("assistant.message", message),
            ("tool.execution_start", {"toolCallId": ident, "toolName": "bash", "arguments": arguments}),
            ("tool.execution_complete", {"toolCallId": ident} | ran),
            ("assistant.turn_end", {"turnId": str(number)}),
        ]
    log.append(("session.shutdown", {"shutdownType": "routine", "modelMetrics": {}}))
    last: str | None = None
    for place, (kind, data) in enumerate(log):
        event = {"type": kind, "data": data, "id": generator.uid(), "timestamp": stamp(place), "parentId": last}
        last = str(event["id"])
        yield orjson.dumps(event) + b"\n"


def _entries(generator: TextGenerator, calls: int) -> Iterator[bytes]:
    head = {"type": "session", "version": 3, "id": _THREAD, "timestamp": stamp(0), "cwd": "/home/ada/orchard"}
    yield orjson.dumps(head) + b"\n"
    last: str | None = None
    for number in range(calls):
        ident, cost = f"call_{number}", {"input": 0.0003, "output": 0.0002, "cacheRead": 0.0001, "total": 0.0006}
        usage = {"input": 300, "output": 85, "cacheRead": 900, "cacheWrite": 0, "totalTokens": 1285, "cost": cost}
        call = {"type": "toolCall", "id": ident, "name": "bash", "arguments": {"command": generator.text(80)}}
        thought = {"type": "thinking", "thinking": generator.text(80), "thinkingSignature": "reasoning_content"}
        asked = {"role": "user", "content": [{"type": "text", "text": generator.text(300)}]}
        response = {"role": "assistant", "content": [thought, call], "provider": "acme", "model": BIG, "usage": usage}
        record = {"role": "toolResult", "toolCallId": ident, "toolName": "bash", "isError": number % 8 == 5}
        answer = record | {"content": [{"type": "text", "text": generator.text(3_000)}]}
        talk = [*([asked] if number % 8 == 0 else []), response | {"stopReason": "toolUse"}, answer]
        for message in talk:
            entry = {"type": "message", "id": generator.uid()[:13], "parentId": last, "timestamp": stamp(number)}
            last = str(entry["id"])
            yield orjson.dumps(entry | {"message": message}) + b"\n"


def _spans(generator: TextGenerator, calls: int) -> Iterator[bytes]:
    """Children before what is above them; each call of the model is given the answers to the last two."""
    asked: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": "Prune"}]}]
    for number in range(1, calls + 1):
        text, output = generator.text(80), generator.text(3_000)
        call = {
            "type": "tool_call",
            "id": f"c{number}",
            "name": "exec_command",
            "arguments": {"cmd": generator.text(30)},
        }
        answer = {"role": "assistant", "parts": [{"type": "text", "content": text}, call], "finish_reason": "stop"}
        yield _span(
            2 * number,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "acme",
                "gen_ai.request.model": BIG,
                "gen_ai.input.messages": orjson.dumps(asked).decode(),
                "gen_ai.output.messages": orjson.dumps([answer]).decode(),
                "gen_ai.usage.input_tokens": 1200,
                "gen_ai.usage.output_tokens": 85,
            },
        )
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "exec_command",
            "gen_ai.tool.call.id": "c",
        }
        yield _span(2 * number + 1, attributes | {"gen_ai.tool.call.result": output})
        part = {"type": "tool_call_response", "id": f"c{number}", "response": output}
        asked = [*asked[:1], *asked[1:][-2:], answer, {"role": "tool", "parts": [part]}]
    yield _span(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "gardener"})


def _span(number: int, attributes: Mapping[str, str | int]) -> bytes:
    kept = [
        {"key": key, "value": {f"{'int' if type(v) is int else 'string'}Value": str(v)}}
        for key, v in attributes.items()
    ]
    span: dict[str, Any] = {"traceId": _THREAD.replace("-", ""), "spanId": f"{number:016x}", "name": "span", "kind": 1}
    if number > 1:
        span["parentSpanId"] = f"{1:016x}"
    start = 1_772_442_900_000_000_000 + number * 1_000_000
    span |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 900_000), "attributes": kept, "status": {}}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "orchard"}}]}
    scopes = [{"scope": {"name": "gardener"}, "spans": [span]}]
    return orjson.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}) + b"\n"


def _step(generator: TextGenerator, number: int) -> dict[str, Any]:
    ident = f"call_{number}"
    call = {"tool_call_id": ident, "function_name": "bash", "arguments": {"command": generator.text(80)}}
    metrics = {"prompt_tokens": 1200, "completion_tokens": 85, "cached_tokens": 900, "cost_usd": 0.003}
    return {
        "step_id": number,
        "timestamp": "2026-03-02T09:15:00.000Z",
        "source": "agent",
        "message": generator.text(80),
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": ident, "content": generator.text(3_000)}]},
        "metrics": metrics,
    }


def session(
    generator: TextGenerator, calls: int, thread: str = _THREAD, *, images: int = 0, size: int = 0
) -> Iterator[bytes]:
    """The lines of a session of Claude Code; the last `images` calls give an image of `size` bytes each."""
    last: str | None = None
    line = 0
    for number in range(calls):
        ident, output = f"toolu_{number}", generator.text(3_000)
        use = {"type": "tool_use", "id": ident, "name": "Bash", "input": {"command": generator.text(80)}}
        thought = {"type": "thinking", "thinking": "", "signature": "c2VhbA" * 60}
        answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": ident, "content": output}
        answer["is_error"] = number % 8 == 5
        extra: dict[str, Any] = {"toolUseResult": {"stdout": output, "stderr": "", "interrupted": False}}
        if number >= calls - images:
            source = {"type": "base64", "media_type": "image/png", "data": image(size)}
            answer["content"], extra = [{"type": "image", "source": source}], {}
        records: list[tuple[str, Any, dict[str, Any]]] = [
            ("assistant", _response(number, thought), {}),
            ("assistant", _response(number, use), {}),
            ("user", {"role": "user", "content": [answer]}, extra),
        ]
        if number % 8 == 0:
            records.insert(0, ("user", {"role": "user", "content": generator.text(300)}, {}))
        for kind, message, more in records:
            node = {"parentUuid": last, "isSidechain": False, "type": kind, "message": message, "uuid": generator.uid()}
            last, line = str(node["uuid"]), line + 1
            place = {"timestamp": stamp(line), "cwd": "/home/ada/orchard", "sessionId": thread}
            yield orjson.dumps(node | place | {"version": "2.1.197", "gitBranch": "main"} | more) + b"\n"


def stamp(line: int) -> str:
    """When a line was written: 1.3 s after the one before."""
    when = _BEGIN + timedelta(milliseconds=1300 * line)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def image(size: int) -> str:
    """Base64 of about so many bytes."""
    return "iVBORw0KGgoAAAANSUhEUgAAB9AAAAPoCAYAAACGXmWqAAAAGXRFWHRTb2Z0d2FyZQBB" * (size // 70)


def _response(number: int, block: dict[str, Any]) -> dict[str, Any]:
    cached = {"cache_creation_input_tokens": 900, "cache_read_input_tokens": 9_000}
    usage = {"input_tokens": 9, "output_tokens": 90} | cached
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": BIG, "content": [block]}
    return message | {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage}


def rollout(
    generator: TextGenerator, calls: int, thread: str = _THREAD, *, images: int = 0, size: int = 0
) -> Iterator[bytes]:
    """The lines of a rollout of Codex; the last `images` calls give an image of `size` bytes each."""
    for line, (kind, payload) in enumerate(_records(generator, calls, thread, calls - images, size)):
        yield orjson.dumps({"timestamp": stamp(line), "type": kind, "payload": payload}) + b"\n"


def _records(
    generator: TextGenerator, calls: int, thread: str, drawn: int, size: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    first = {"id": thread, "timestamp": stamp(0), "cwd": "/home/ada/orchard", "cli_version": "0.169.0"}
    yield "session_meta", first | {"base_instructions": {"text": generator.text(20_000)}}
    yield "event_msg", {"type": "task_started", "turn_id": "t"}
    yield "turn_context", {"turn_id": "t", "cwd": "/home/ada/orchard", "model": BIG}
    prompt = generator.text(60)
    yield "response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    for number in range(1, calls + 1):
        ident, text, result_text = f"call_{number}", generator.text(80), generator.text(3_000)
        usage = {"input_tokens": 1200, "cached_input_tokens": 900, "output_tokens": 85, "total_tokens": 1285}
        total = {name: count * number for name, count in usage.items()}
        item = {"type": "AgentMessage", "id": f"msg_{number}", "content": [{"type": "Text", "text": text}]}
        yield "event_msg", {"type": "item_completed", "turn_id": "t", "item": item}
        content = [{"type": "output_text", "text": text}]
        yield "response_item", {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
        arguments = orjson.dumps({"cmd": f"grep -n {generator.text(30)}"}).decode()
        asked = {"type": "function_call", "name": "exec_command", "call_id": ident, "arguments": arguments}
        yield "response_item", asked
        yield "token_usage_record", {"turn_id": "t", "usage": usage, "thread_token_usage": total}
        ran = {
            "type": "CommandExecution",
            "id": ident,
            "status": "completed",
            "aggregated_output": result_text,
            "exit_code": 0,
        }
        yield "event_msg", {"type": "item_completed", "turn_id": "t", "item": ran}
        output: Any = f"Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{result_text}"
        if number > drawn:
            output = [{"type": "input_image", "image_url": f"data:image/png;base64,{image(size)}"}]
        yield "response_item", {"type": "function_call_output", "call_id": ident, "output": output}
        info = {"total_token_usage": total, "last_token_usage": usage}
        yield "event_msg", {"type": "token_count", "info": info}
    yield "event_msg", {"type": "task_complete", "turn_id": "t"}


def _decode(folder: Path) -> None:
    for data in _contents(folder):
        for line in data.split(b"\n"):
            if line:
                orjson.loads(line)


def _contents(folder: Path) -> Iterator[bytes]:
    """What is in the files; of archives, in their members; of databases, in the columns that hold JSON."""
    for path in folder.rglob("*.json*"):
        yield path.read_bytes()
    for path in folder.rglob("*.eval"):
        with LocalSource().open(str(path)) as file:
            archive = Archive(file)
            yield from map(archive.read, archive.members)
    for path in folder.rglob("*.db"):
        with LocalSource().open(str(path)) as file, file.database() as db:
            for table in ("message", "part"):
                yield from (data.encode() for (data,) in db.execute(f"SELECT data FROM {table}"))


def _count(folder: Path) -> None:
    assert any(entry.runs for entry in scan(LocalSource(), [str(folder)], deep=True))


def _runs(folder: Path) -> list[RunRef]:
    """The first run of each file that holds any."""
    return [next(iter(entry.runs)).ref for entry in scan(LocalSource(), [str(folder)], deep=False) if entry.runs]


def _read(ref: RunRef) -> None:
    assert read_run(LocalSource(), ref).spans
