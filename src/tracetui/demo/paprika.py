"""Paprika: ExecutionRecords (v1) and event files (v0), as the runtime writes them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tracetui.demo.files import pretty, put, uid, zulu

# ---- a small runtime

Json = dict[str, Any]

PROMPT_OVERHEAD = 1900
"""Tokens that the tool descriptions take in every call."""


@dataclass
class Execution:
    """One run of an agent. Each method is an action of the agent and takes its duration in milliseconds."""

    name: str
    """Its name in this module, from which its ids derive."""
    start: str
    """First digits of its id."""
    agent: str
    started: datetime
    question: str
    system: str = "You answer with sources. Say what you could not find."
    provider: str = "openai"
    model: str = "gpt-4o"
    version: str | None = "2.3.0"
    limits: Json | None = None
    legacy: bool = False
    schema: str = "1.0"
    replay_of: str | None = None
    extensions: Json = field(default_factory=dict)
    steps: list[Json] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    status: str = "success"
    output: Any = None
    error: str | None = None
    violation: Json | None = None

    def __post_init__(self) -> None:
        self.clock = self.started
        self.messages = [{"role": "system", "content": self.system}, {"role": "user", "content": self.question}]

    @property
    def ident(self) -> str:
        """The run's id."""
        return uid(self.name + (self.replay_of or ""), self.start)

    @property
    def ended(self) -> datetime:
        """When the last step ended."""
        return self.clock

    def think(self, text: str, ms: float, call: tuple[str, Json] | None = None) -> None:
        """Ask the model; it answers `text`, and may ask for a tool."""
        request = {"messages": copy.deepcopy(self.messages), "temperature": 0.2}
        answer: Json = {"role": "assistant", "content": text}
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1], ensure_ascii=False)}
            answer["tool_calls"] = [{"id": f"call_{len(self.steps) + 1}", "type": "function", "function": function}]
        prompt = PROMPT_OVERHEAD + sum(len(json.dumps(message)) for message in self.messages) // 4
        completion = 12 + len(json.dumps(answer)) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        self.messages.append(answer)
        self._step(
            ms,
            step_type="llm_call",
            provider=self.provider,
            model=self.model,
            input_data=request,
            input_hash=input_hash({"provider": self.provider, "model": self.model, "input": request}),
            output_data={"choices": [{"message": answer}], "usage": usage},
            token_usage=usage,
            duration_ms=ms,
            side_effect="pure",
            error=None,
        )

    def use(self, tool: str, args: Json, output: Any, ms: float) -> None:
        """Call a tool."""
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        self.messages.append({"role": "tool", "tool_call_id": f"call_{len(self.steps)}", "content": text})
        self._step(ms, **_tool(tool, args), output_data=output, duration_ms=ms, side_effect=None, error=None)

    def breaks(self, tool: str, args: Json, error: str, ms: float, *, logged: bool = False) -> None:
        """Call a tool that raises: the run ends. Only if `logged`, the step records its error and duration."""
        stated = {"duration_ms": ms, "error": error} if logged else {"duration_ms": None, "error": None}
        self._step(ms, **_tool(tool, args), output_data=None, side_effect=None, **stated)
        self.status, self.error = "error", error

    def refused(self, policy: str, message: str, details: Json, *, next_index: bool = False) -> None:
        """A policy stops the run. ``max_steps`` takes the index of the call that it refused."""
        self.violation = {"policy_name": policy, "message": message, "details": details}
        self._step(0, step_type="policy_violation", **self.violation, index=len(self.steps) + next_index)
        self.status, self.error = "policy_violation", message

    def other(self, kind: str, ms: float, **fields: Any) -> None:
        """A step of a kind that schema 1.0 does not know."""
        self._step(ms, step_type=kind, **fields)

    def answers(self, output: Any) -> Execution:
        """The run ends well."""
        self.output = output
        return self

    def _step(self, ms: float, *, index: int | None = None, **fields: Any) -> None:
        number = len(self.steps) + 1 if index is None else index
        event = uid(f"{self.ident}/{len(self.steps)}")
        self.steps.append({"step_index": number, "timestamp": zulu(self.clock), "event_id": event, **fields})
        self.clock += timedelta(milliseconds=ms + 4)


def _tool(tool: str, args: Json) -> Json:
    return {
        "step_type": "tool_call",
        "tool_name": tool,
        "args": args,
        "input_hash": input_hash({"name": tool, "args": args}),
    }


def input_hash(value: Any) -> str:
    """Paprika's hash of a call: the first 16 hex digits of SHA-256 over its sorted, compact, ASCII JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def replay(
    original: Execution,
    start: str,
    started: datetime,
    *,
    mismatch_at: int = 0,
    changed: Callable[[Json], Json] | None = None,
) -> Execution:
    """A replay of `original`: recorded outputs at once, no tokens. At step `mismatch_at` the input is `changed`."""
    run = copy.copy(original)
    run.start, run.started, run.clock, run.replay_of, run.steps = start, started, started, original.ident, []
    for step in original.steps[: mismatch_at or None]:
        again = {**step, "timestamp": zulu(run.clock), "event_id": uid(f"{run.ident}/{len(run.steps)}")}
        if "duration_ms" in again:
            again["duration_ms"] = 0.0
        if "token_usage" in again:
            again["token_usage"] = None
        run.steps.append(again)
        run.clock += timedelta(milliseconds=1.5)
    if mismatch_at and changed is not None:
        _diverge(run, changed)
    return run


def _diverge(run: Execution, changed: Callable[[Json], Json]) -> None:
    """The last step differs from the recording, which ends the run."""
    last = run.steps[-1]
    request = changed(copy.deepcopy(last["input_data"]))
    got = input_hash({"provider": last["provider"], "model": last["model"], "input": request})
    expected = last["input_hash"]
    last.update(input_data=request, input_hash=got, output_data=None, duration_ms=None)
    run.status, run.output = "error", None
    run.error = f"Replay mismatch at step {last['step_index']}: expected input_hash={expected}, got input_hash={got}"


def record(run: Execution) -> Json:
    """The ExecutionRecord of a run."""
    calls = [step for step in run.steps if step["step_type"] == "llm_call"]
    tools = sum(step["step_type"] == "tool_call" for step in run.steps)
    usages = [step["token_usage"] for step in calls if step["token_usage"]]
    totals = {name: sum(usage[name] for usage in usages) for name in _USAGE}
    return {
        "schema_version": run.schema,
        "record_id": run.ident,
        "parent_record_id": None,
        "replay_of": run.replay_of,
        "agent": {"name": run.agent, "version": run.version},
        "execution": {
            "started_at": zulu(run.started),
            "ended_at": zulu(run.ended),
            "duration_ms": (run.ended - run.started).total_seconds() * 1000,
            "status": run.status,
            "termination_reason": None,
        },
        "policy": {"config": run.limits, "violation": run.violation},
        "totals": {"step_count": len(calls) + tools, "llm_calls": len(calls), "tool_calls": tools, **totals},
        "environment": {"python": "3.12.7", "host": "runner-04"},
        "steps": run.steps,
        "input": {"args": [], "kwargs": {"question": run.question}},
        "output": run.output,
        "error": run.error,
        "extensions": run.extensions,
    }


_USAGE = ("total_tokens", "prompt_tokens", "completion_tokens")


def event_file(run: Execution) -> Json:
    """The v0 event file of a run."""
    first = {"agent_name": run.agent, "input_args": {"args": [], "kwargs": {"question": run.question}}}
    events = [_event(run, "start", run.started, 0, "run_start", first)]
    for step in run.steps:
        events += _step_events(run, step)
    tokens = sum(step["token_usage"]["total_tokens"] for step in run.steps if step.get("token_usage"))
    last = {"status": run.status, "output": run.output, "error": run.error, "total_tokens": tokens}
    events.append(_event(run, "end", run.ended, len(run.steps), "run_end", last))
    return {
        "run_id": run.ident,
        "agent_name": run.agent,
        "started_at": zulu(run.started),
        "ended_at": zulu(run.ended),
        "events": events,
        "metadata": {"replay_of": run.replay_of} if run.replay_of else {},
    }


def _event(run: Execution, seed: str, time: datetime, index: int, kind: str, fields: Json) -> Json:
    ident = uid(f"{run.ident}/{seed}")
    base = {"event_id": ident, "timestamp": zulu(time), "run_id": run.ident, "step_index": index}
    return {**base, "event_type": kind, **fields}


def _step_events(run: Execution, step: Json) -> list[Json]:
    """The start of a call, and its end where it came to one."""
    kind, index, at = step["step_type"], step["step_index"], datetime.fromisoformat(step["timestamp"])
    if kind == "policy_violation":
        fields = {name: step[name] for name in ("policy_name", "message", "details")}
        return [_event(run, f"{index}v", at, index, kind, fields)]
    asked = ("provider", "model", "input_data") if kind == "llm_call" else ("tool_name", "args")
    begin = {name: step[name] for name in (*asked, "input_hash")}
    events = [_event(run, f"{index}a", at, index, f"{kind}_start", begin)]
    if step["output_data"] is not None:
        results = ("output_data", "token_usage") if kind == "llm_call" else ("output_data",)
        end = {name: step[name] for name in (*results, "duration_ms")}
        after = at + timedelta(milliseconds=step["duration_ms"])
        events.append(_event(run, f"{index}b", after, index, f"{kind}_end", end))
    return events


# ---- the runs

RESEARCH: Json = {"max_steps": 20, "max_tokens": 50_000, "max_repeat_hashes": 4}
TIMEOUT = "TimeoutError: search timed out after 30s"


def today(now: datetime) -> list[Execution]:
    """The runs of the last hours, newest first."""
    return [_subsidies(now), _compare(now), _too_many_steps(now), _batteries(now), _triage(now), _changed_hash(now)]


def last_night(now: datetime) -> list[Execution]:
    """The nightly batch, and older runs that a runtime before 1.0 wrote."""
    night = now - timedelta(hours=9)
    return [
        _timeout(night, "rail", "b07c55", "How much freight moved by rail in 2024?", "rail freight 2024 tonne-km"),
        _heat_pumps(night + timedelta(minutes=4)),
        _timeout(night + timedelta(minutes=7), "wind", "8be0a9", "Offshore wind tenders in 2025?", "tender results"),
        _over_budget(night + timedelta(minutes=11)),
        _repeats(night + timedelta(minutes=16)),
        _fixer(night + timedelta(minutes=20)),
        _newer_schema(night + timedelta(minutes=41)),
        _old_triage(night - timedelta(days=1)),
        _old_failure(night - timedelta(days=1, minutes=9)),
        _old_violation(night - timedelta(days=1, minutes=14)),
    ]


def diverging_input(request: Json) -> Json:
    """The change before a replay: the system prompt asks for two sources."""
    request["messages"][0]["content"] += " Give at least two sources for every number."
    return request


def _hits(*titles: str) -> list[Json]:
    return [
        {"title": title, "url": f"https://example.org/{i}", "score": 0.92 - i / 10} for i, title in enumerate(titles)
    ]


def _subsidies(now: datetime) -> Execution:
    run = Execution(
        "subsidies",
        "0690e0f0",
        "researcher",
        now - timedelta(minutes=3, seconds=48),
        "What is left of the EV and heat-pump subsidies in Germany for 2025?",
        limits=RESEARCH,
    )
    first, german = {"query": "EV subsidies 2024", "top_k": 5}, {"query": "EV subsidies DE", "top_k": 5}
    run.think("Plan the search: first the European overview, then the German programmes, then budgets.", 1900)
    run.use("search", first, _hits("EU overview of purchase grants", "Who still pays a bonus?"), 600)
    run.use("search", german, _hits("Umweltbonus ended in December 2023", "Förderung für Wärmepumpen"), 700)
    run.think("The purchase bonus ended. KfW 442 pays for chargers; I need its budget.", 3200, ("search", german))
    again = {"query": "KfW 442 remaining budget", "top_k": 5}
    for ms in (520, 510, 560, 510):
        run.use("search", again, [], ms)
    page = "bmwk.de/foerderung/elektromobilitaet"
    run.use("fetch", {"url": f"https://{page}"}, "<h1>Förderung der Elektromobilität</h1><p>Stand: Oktober…</p>", 1400)
    last: Json = {"query": "KfW 442 budget", "region": "DE", "timeout_s": 30, "api_key": "demo" * 10}
    run.think("The ministry's page has no figures. One more search, with the region.", 2600, ("search", last))
    run.breaks("search", last, TIMEOUT, 30_000, logged=True)
    return run


def _compare(now: datetime) -> Execution:
    run = Execution(
        "compare",
        "5a4be7c2",
        "researcher",
        now - timedelta(minutes=9, seconds=50),
        "Compare EV subsidies in France, Norway and the Netherlands.",
        limits=RESEARCH,
    )
    run.think("Three countries: search each, read the official page, then compare.", 2100)
    for country, title in (
        ("France", "Bonus écologique 2025"),
        ("Norway", "Elbil: mva-fritak"),
        ("Netherlands", "SEPP"),
    ):
        query = {"query": f"EV purchase subsidy {country}", "top_k": 5}
        run.use("search", query, _hits(title, f"{country}: charging and tax"), 640)
        run.use("fetch", {"url": f"https://example.org/{country.lower()}"}, f"{title}: amounts, income limits …", 1850)
        run.think(f"{country}: noted amount, income limit and end date.", 4200)
    run.use("calculator", {"expression": "4000 / 1.00"}, 4000, 3)
    run.think("France pays up to €4,000 by income; Norway waives VAT up to 500,000 kr; SEPP has ended.", 9400)
    return run.answers({"answer": "France pays most; Norway waives VAT; the Dutch scheme is closed.", "sources": 6})


def _too_many_steps(now: datetime) -> Execution:
    run = Execution(
        "sprint plan",
        "31f2c8",
        "planner",
        now - timedelta(minutes=23),
        "Plan the next sprint from the open issues.",
        limits={"max_steps": 10, "max_tokens": None, "max_repeat_hashes": None},
        model="gpt-4o-mini",
    )
    run.think("List the open issues, estimate each, then fill two weeks.", 2400, ("list_issues", {"state": "open"}))
    run.use("list_issues", {"state": "open"}, [{"id": n, "title": t} for n, t in enumerate(_ISSUES, 118)], 900)
    for number, title in enumerate(_ISSUES[:4], 118):
        run.think(f"#{number} {title}: about two days.", 5200, ("estimate", {"issue": number}))
        run.use("estimate", {"issue": number}, {"days": 2, "confidence": 0.6}, 7600)
    run.refused("max_steps", "Step limit exceeded: 11 > 10", {"current": 11, "limit": 10}, next_index=True)
    return run


_ISSUES = ("Login fails on Safari", "Export keeps the wrong time zone", "Slow list with 10k rows", "Dark theme", "i18n")


def _batteries(now: datetime) -> Execution:
    run = Execution(
        "batteries",
        "d20b6e",
        "researcher",
        now - timedelta(minutes=51),
        "What did battery packs cost per kWh in 2024?",
        limits=RESEARCH,
    )
    query = {"query": "battery pack price per kWh 2024", "top_k": 5}
    run.think("One number with a source will do.", 1400, ("search", query))
    run.use("search", query, _hits("Pack prices fell to $115/kWh", "LFP under $60 at cell level"), 710)
    run.use("fetch", {"url": "https://example.org/0"}, "Average pack price: $115/kWh, down 20 % on 2023.", 1330)
    run.think("The average pack cost $115 per kWh in 2024, 20 % less than the year before.", 3900)
    return run.answers({"answer": "$115/kWh", "sources": 1})


def _triage(now: datetime) -> Execution:
    run = Execution(
        "triage",
        "47c0da",
        "support-triage",
        now - timedelta(hours=1, minutes=20),
        "Ticket 8841: „Rechnung doppelt abgebucht“",
        model="claude-sonnet-4-6",
        provider="anthropic",
    )
    ticket = {"ticket": 8841}
    run.think("A double charge. Look at the account first.", 1700, ("get_account", ticket))
    run.use("get_account", ticket, {"customer": "Jörg Müller", "plan": "Team", "charges": [4900, 4900]}, 240)
    run.think(
        "Two equal charges on one day: refund one, tell the customer.", 2300, ("refund", {**ticket, "cents": 4900})
    )
    run.use("refund", {**ticket, "cents": 4900}, {"ok": True, "id": "re_2291"}, 820)
    run.think("Erstattung über 49,00 € ist veranlasst. 返金済み。", 1900)
    return run.answers({"action": "refunded", "priority": "normal"})


def _changed_hash(now: datetime) -> Execution:
    """Somebody edited the recorded arguments: the hash is that of the original ones."""
    run = Execution(
        "edited",
        "9d13aa",
        "researcher",
        now - timedelta(hours=3),
        "Which cities have congestion charges?",
        limits=RESEARCH,
    )
    query = {"query": "congestion charge cities", "top_k": 5}
    run.think("Search once, then list.", 1500, ("search", query))
    run.use("search", query, _hits("London, Stockholm, Singapore, Milan", "New York's plan"), 690)
    run.steps[-1]["args"] = {**query, "top_k": 50}
    run.think("London, Stockholm, Gothenburg, Milan, Singapore and New York.", 3100)
    return run.answers({"answer": "Six cities.", "sources": 2})


def _timeout(started: datetime, name: str, start: str, question: str, query: str) -> Execution:
    run = Execution(name, start, "researcher", started, question, limits=RESEARCH)
    run.think("Start broad, then narrow to official statistics.", 1800, ("search", {"query": query, "top_k": 5}))
    run.use("search", {"query": query, "top_k": 5}, _hits("Yearly statistics", "Press release"), 650)
    run.think("The release names a table. Search for it.", 2200)
    run.breaks("search", {"query": f"{query} table", "timeout_s": 30}, TIMEOUT, 30_000)
    return run


def _heat_pumps(started: datetime) -> Execution:
    run = Execution(
        "heat pumps", "7e41d9", "researcher", started, "Heat-pump prices by country, installed?", limits=RESEARCH
    )
    for country in ("Sweden", "Poland", "Italy"):
        query = {"query": f"heat pump installed price {country}", "top_k": 3}
        run.think(f"Next: {country}.", 1600, ("search", query))
        run.use("search", query, _hits(f"{country}: air-to-water, 8 kW"), 730)
    run.think("Installed 8 kW air-to-water: Sweden €11k, Poland €9k, Italy €12k.", 6100)
    return run.answers({"answer": "€9k to €12k", "sources": 3})


def _over_budget(started: datetime) -> Execution:
    limits = {"max_steps": None, "max_tokens": 12_000, "max_repeat_hashes": None}
    run = Execution("digest", "f6a082", "digest", started, "Summarise yesterday's 40 incident reports.", limits=limits)
    for number in (1, 2, 3, 4):
        text = f"Incident {number}: " + "the queue filled, the worker restarted, nothing was lost. " * (18 * number)
        run.use("read_report", {"id": number}, text, 90)
        run.think(f"Report {number}: a full queue, a restart, no loss.", 5400)
    used = sum(step["token_usage"]["total_tokens"] for step in run.steps if step["step_type"] == "llm_call")
    run.refused("max_tokens", f"Token budget exceeded: {used} > 12000", {"current": used, "limit": 12_000})
    return run


def _repeats(started: datetime) -> Execution:
    limits = {"max_steps": 30, "max_tokens": None, "max_repeat_hashes": 3}
    run = Execution(
        "poller", "2c77f4", "deployer", started, "Deploy build 5512 and wait until it is healthy.", limits=limits
    )
    run.use("deploy", {"build": 5512, "env": "staging"}, {"id": "dep_88", "state": "queued"}, 1300)
    for _ in range(4):
        run.use("deploy_status", {"id": "dep_88"}, {"state": "queued", "position": 1}, 310)
    repeated = run.steps[-1]["input_hash"]
    message = f"Input hash {repeated[:8]}... repeated 4 times (limit: 3)"
    run.refused("max_repeat_hashes", message, {"hash": repeated, "count": 4, "limit": 3})
    return run


def _fixer(started: datetime) -> Execution:
    """A long run: thirty calls, and one tool error that it recovered from."""
    run = Execution(
        "flaky test", "bb5e10", "fixer", started, "Fix the flaky test in tests/test_queue.py.", model="o4-mini"
    )
    run.think("Run the test until it fails, then read what differs.", 4800)
    for attempt in range(1, 19):
        failed = attempt in (7, 15)
        result: Json = {"exit_code": int(failed), "stdout": _pytest(attempt, failed)}
        run.use("run_tests", {"path": "tests/test_queue.py", "seed": attempt}, result, 8200 + 130 * attempt)
        if attempt % 3 == 0:
            run.think(f"Seed {attempt}: {'fails' if failed else 'passes'}. On.", 2900)
    run.breaks(
        "apply_patch", {"path": "src/queue.py", "patch": "@@ -88 +88 @@"}, "hunk 1 did not apply", 40, logged=True
    )
    run.status, run.error = "success", None
    patch = "@@ -86,3 +86,4 @@\n     def get(self):\n+        self._sync()\n         return self._items.popleft()\n"
    run.use("apply_patch", {"path": "src/queue.py", "patch": patch}, "patched", 60)
    for seed in (7, 15):
        result = {"exit_code": 0, "stdout": _pytest(seed, False)}
        run.use("run_tests", {"path": "tests/test_queue.py", "seed": seed}, result, 8900)
    run.think("The queue was read before it had synced. Both seeds pass now.", 5200)
    return run.answers({"patch": patch, "verified": [7, 15]})


def _pytest(seed: int, failed: bool) -> str:
    last = "FAILED tests/test_queue.py::test_order - assert [2, 1] == [1, 2]\n" if failed else ""
    return f"random seed {seed}\n{last}{'1 failed, 11 passed' if failed else '12 passed'} in 8.{seed:02d}s\n"


def _newer_schema(started: datetime) -> Execution:
    """A minor version that has a step type and fields which 1.0 doesn't know."""
    run = Execution("memory", "64aa9b", "assistant", started, "What did I promise Ana last week?", schema="1.2")
    run.extensions = {"tenant": "acme", "tags": ["nightly"]}
    items = [{"id": "m-19", "text": "Send Ana the Q3 numbers by Friday"}]
    run.other("memory_read", 35, store="personal", query="promise Ana", items=items, duration_ms=35)
    run.think("You promised Ana the Q3 numbers by Friday.", 1900)
    return run.answers("You promised Ana the Q3 numbers by Friday.")


def _old(name: str, start: str, agent: str, started: datetime, question: str, **more: Any) -> Execution:
    return Execution(name, start, agent, started, question, model="gpt-4-turbo", legacy=True, **more)


def _old_triage(started: datetime) -> Execution:
    run = _old("old triage", "1b9f33", "support-triage", started, "Ticket 8790: cannot reset password")
    run.think("Check whether mails to this address bounce.", 1500, ("mail_log", {"ticket": 8790}))
    run.use("mail_log", {"ticket": 8790}, [{"status": "bounced", "to": "ana@example.org"}], 410)
    run.think("The address bounces. Ask for another one.", 2000)
    return run.answers({"action": "ask_address"})


def _old_failure(started: datetime) -> Execution:
    run = _old("old failure", "aa20c7", "support-triage", started, "Ticket 8781: export is empty")
    run.think("Re-run the export for this account.", 1300, ("export", {"account": 311}))
    run.breaks("export", {"account": 311}, "ConnectionError: warehouse refused the connection", 2100)
    return run


def _old_violation(started: datetime) -> Execution:
    run = _old("old violation", "5de8b1", "planner", started, "Book rooms for the offsite.")
    for day in ("Mon", "Tue", "Wed"):
        run.use("find_room", {"day": day, "people": 14}, [], 500)
    run.refused("max_steps", "Step limit exceeded: 4 > 3", {"current": 4, "limit": 3}, next_index=True)
    return run


# ---- files


def write(folder: Path, now: datetime) -> None:
    """Write about twenty runs: successful, timed out, stopped by a policy, and replays of them."""
    runs = [*today(now), *last_night(now)]
    named = {run.name: run for run in runs}
    runs += _replays(named, now)
    for run in runs:
        legacy = run.legacy
        place = folder / "paprika" / ("v0" if legacy else "") / f"{run.ident}.json"
        put(place, pretty(event_file(run) if legacy else record(run)), run.ended)


def _replays(named: dict[str, Execution], now: datetime) -> list[Execution]:
    """Replays end as soon as they begin: every answer comes from the recording."""
    exact = replay(named["heat pumps"], "a91f03", now - timedelta(hours=2, minutes=10))
    legacy = replay(named["old triage"], "c3d9e1", now - timedelta(hours=8))
    drifted = replay(named["batteries"], "e4417b", now - timedelta(minutes=14), mismatch_at=4, changed=diverging_input)
    return [exact, legacy, drifted]
