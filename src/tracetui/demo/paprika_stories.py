"""What the Paprika agents of the samples did."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tracetui.demo.paprika_runtime import Execution, Json

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
    """What somebody changed before replaying: the system prompt asks for two sources."""
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
    run.breaks("search", last, TIMEOUT, 30_000, told=True)
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
    run.breaks("apply_patch", {"path": "src/queue.py", "patch": "@@ -88 +88 @@"}, "hunk 1 did not apply", 40, told=True)
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
