"""The context of a run in words: names of contents and causes, and the sentences above every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tracetui.analysis import prices
from tracetui.analysis.context import AFTER_START, EVERYTHING, LAST_WRITE, MIDDLE, Account, Basis, Break, Ledger, Totals
from tracetui.analysis.context_hour import hour_cache
from tracetui.analysis.context_totals import ContextBy, ContextSums
from tracetui.masking import clean, masked_line, one_line
from tracetui.model.context import (
    AFTER_COMPACTION,
    ATTACHMENT,
    IMAGE,
    MEMORY,
    NOT_RECORDED,
    PROMPT,
    REPLY,
    REPORT,
    RESULT,
    START,
    SUMMARY,
    TOOL_CALL,
    Cause,
)
from tracetui.redact import Redactor
from tracetui.text import Clean, cost, duration, quantity, tokens

_LABELS: Final = {
    START: "start (system, tools)",
    MEMORY: "memory files",
    PROMPT: "prompts",
    REPLY: "replies",
    TOOL_CALL: "tool calls",
    ATTACHMENT: "attachments",
    IMAGE: "images",
    REPORT: "sub-agent reports",
    SUMMARY: "summaries",
}
_LOST: Final = {
    EVERYTHING: "all of it was lost",
    AFTER_START: "the start was kept, all after it was lost",
    MIDDLE: "a part in the middle and all after it was lost",
    LAST_WRITE: "what the previous call had written was lost",
}
_NAME: Final = 60
ERROR: Final = "median error 5 %, 9 of 10 within 24 %"
"""Of a step's texts, against its recorded growth: docs/context.md."""


def content_label(content: str, redactor: Redactor | None) -> Clean:
    """``Read results``, ``start (system, tools)``: a content as people read it."""
    if content.startswith(RESULT):
        return Clean(f"{masked_line(content.removeprefix(RESULT), redactor, _NAME)} results")
    return Clean(_LABELS.get(content, content))


def file_label(file: str, redactor: Redactor | None) -> Clean:
    """A path, masked, in one line."""
    return masked_line(file, redactor, 400)


def basis_of(account: Account) -> str:
    """How the tokens of a content are known: ``recorded``, ``estimated`` or ``rest``."""
    if account.content in (START, NOT_RECORDED, AFTER_COMPACTION):
        return "rest"
    return "recorded" if account.is_exact else "estimated"


def cause_label(missed: Break) -> Clean:
    """``idle 12m``, ``model``: the cause of a break; a reason in words of the trace is cleaned."""
    if missed.cause == Cause.IDLE and missed.idle is not None:
        return Clean(f"idle {duration(missed.idle * 1000)}")
    return one_line(missed.cause, _NAME)


def share_label(part: float | None, whole: float | None) -> Clean:
    """``42%``; ``—`` if either is unknown."""
    if part is None or not whole:
        return Clean("—")
    return Clean(f"{100 * part / whole:.0f}%")


def usd_label(usd: float | None) -> Clean:
    """``~$0.12``: every cost of the ledger is an estimate."""
    return cost(usd, estimated=usd is not None)


def headline(ledger: Ledger) -> Clean:
    """``61 calls · 3.5M input · ~$3.45``."""
    totals = ledger.totals
    money = "" if totals.usd is None else f" · {usd_label(totals.usd)} of input"
    return Clean(f"{quantity(totals.calls, 'model call')} · {tokens(totals.input)} input tokens{money}")


def worst_file(ledger: Ledger) -> Account | None:
    """The file that cost most, of those that entered more than once."""
    repeated = [file for file in ledger.files() if file.times > 1]
    return max(repeated, key=lambda file: (file.usd, file.carried), default=None)


NO_CALLS: Final = Clean("No model call of this run records its input tokens.")


def no_breaks(ledger: Ledger) -> Clean:
    """Why there are no breaks."""
    totals = ledger.totals
    if totals.read is None:
        return Clean("No cache reads recorded: breaks are unknown.")
    return Clean("No cache breaks." if totals.calls > 1 else "One call: nothing to read from a cache.")


def sentences(ledger: Ledger, redactor: Redactor | None) -> Iterator[Clean]:
    """What the context cost and why, most important first."""
    totals = ledger.totals
    if not totals.calls:
        yield NO_CALLS
        return
    if money := _money(totals):
        yield money
    yield from _breaks(ledger)
    if hour := hour_sentence(ledger):
        yield hour
    if (worst := worst_file(ledger)) is not None:
        paid = f", {usd_label(worst.usd)}" if totals.usd is not None else ""
        yield Clean(
            f"{file_label(worst.file or '', redactor)} entered {worst.times} times: {tokens(worst.entered)}{paid}."
        )
    if inherited := sum(call.inherited for call in ledger.calls):
        yield Clean(f"Inherited {tokens(inherited)} tokens from the run that this one continues.")
    if totals.calls > 1:
        yield Clean(f"Largest input {tokens(totals.most)} (call {totals.most_call}), now {tokens(totals.now)}.")
    if totals.usd is None:
        yield Clean(no_price())
    elif totals.unpriced:
        yield Clean(f"{totals.unpriced} of {totals.calls} calls have no listed price and count nothing in costs.")


def week_line(sums: ContextSums, redactor: Redactor | None) -> Clean:
    """``~$212 input: start 37%, Read 27%; breaks ~$41, idle ~$25; app.py read 14×``: what the context of many runs came
    to. Tokens instead of costs where there is no price; empty without calls.
    """
    contents, causes = sums.rows(ContextBy.CONTENT), sums.rows(ContextBy.BREAK)
    paid = sums.usd

    def amount(usd: float | None, size: int | None) -> Clean:
        return tokens(size) if paid is None else usd_label(usd or 0.0)

    parts = []
    if largest := [(row, row.share if paid is None else (row.usd or 0.0) / (paid or 1.0)) for row in contents[:2]]:
        shares = ", ".join(f"{_short_label(row.name, redactor)} {share_label(share, 1.0)}" for row, share in largest)
        parts.append(f"{amount(paid, sums.input)} input: {shares}")
    if causes:
        lost = amount(sum(row.usd or 0.0 for row in causes), sum(row.missed or 0 for row in causes))
        first = cause_name(causes[0].name)
        most = f"all {first}" if len(causes) == 1 else f"{first} {amount(causes[0].usd, causes[0].missed)}"
        parts.append(f"breaks {lost}, {most}")
    if files := [row for row in sums.rows(ContextBy.FILE) if row.count > 1]:
        name = files[0].name.replace("\\", "/").rpartition("/")[2]
        parts.append(f"{masked_line(name, redactor, _NAME)} read {files[0].count}×")
    return Clean("; ".join(parts))


def _short_label(content: str, redactor: Redactor | None) -> str:
    name = content.removeprefix(RESULT)
    return masked_line(name, None if name == content else redactor, _NAME)


def _money(totals: Totals) -> Clean | None:
    if not totals.usd:
        return None
    new, carry, breaks = (
        share_label(part, totals.usd) for part in (totals.usd_new, totals.usd_carry, totals.usd_breaks)
    )
    lost = f", {breaks} to cache breaks" if totals.breaks else ""
    return Clean(f"Of the input cost, {new} went to new text, {carry} to carrying it through later calls{lost}.")


def _breaks(ledger: Ledger) -> Iterator[Clean]:
    totals, breaks = ledger.totals, ledger.breaks
    if not breaks and (totals.read is None or totals.calls > 1):
        yield no_breaks(ledger)
    elif breaks:
        counts = Counter(missed.cause for missed in breaks)
        causes = ", ".join(f"{cause_name(cause)} ×{count}" for cause, count in counts.most_common())
        paid = "" if totals.usd_breaks is None else f" ({usd_label(totals.usd_breaks)})"
        yield Clean(f"{quantity(len(breaks), 'cache break')} missed {tokens(totals.missed)} tokens{paid}: {causes}.")


def hour_sentence(ledger: Ledger) -> Clean | None:
    """What a cache of an hour would have saved and cost; None where that is unknown, or nothing."""
    hour = hour_cache(ledger.calls)
    if hour is None:
        return None
    gain = hour.saved - hour.extra
    worth = f"{usd_label(gain)} less in all" if gain > 0 else "not worth it in this run"
    return Clean(
        f"A 1-hour cache would have saved {quantity(hour.breaks, 'idle break')}, {usd_label(hour.saved)}, and cost "
        f"{usd_label(hour.extra)} more for its writes: {worth}."
    )


def cause_name(cause: str) -> Clean:
    """A cause without its details."""
    return one_line(cause, _NAME)


def no_price() -> str:
    """Why there are no costs."""
    if not prices.wanted():
        return f"No costs: {prices.SWITCH}=off."
    if not prices.installed():
        return f"No costs: they need `pip install '{prices.EXTRA}'`."
    return "No costs: no public price for this model."


def explanation(missed: Break) -> Clean:
    """A sentence about one break: what was kept, what was lost, and how well its cause is known."""
    kept = f"Kept {tokens(missed.kept)} of {tokens(missed.cached)} cached tokens; {_LOST[missed.where]}."
    return clean(f"{kept} {_reason(missed)}")


def _reason(missed: Break) -> str:
    life = _lifetime(missed.cache_seconds)
    if missed.reported:
        return f"Recorded reason: {missed.reported}."
    if missed.cause == Cause.IDLE:
        lifetime = f"the {life} that the cache lasts" if missed.cache_known else f"{life}, the usual life of a cache"
        return f"The request came {duration((missed.idle or 0) * 1000)} after the last answer: longer than {lifetime}."
    reason = _REASONS.get(missed.cause, "")
    if missed.basis == Basis.COINCIDES:
        return f"Coincides with {_EVENTS.get(missed.cause, missed.cause)}."
    return reason or "No recorded event explains it."


def _lifetime(seconds: int) -> str:
    """``5 minutes``, ``1 hour``: how long a cache lasts."""
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return quantity(count, unit)
    return f"{seconds} seconds"


_REASONS: Final = {
    Cause.COMPACTION: "The conversation was replaced by a summary.",
    Cause.CLEARED: "The program cleared earlier tool results.",
    Cause.MODEL: "Another model was called: caches belong to a model.",
    Cause.EDITED: "The conversation went back to an earlier message.",
    Cause.THINKING_SETTING: "Thinking was switched on or off, which loses the messages.",
    Cause.THINKING_DROPPED: "Thinking of earlier turns seems to have left the context.",
    Cause.LONG_STEP: "More than 20 blocks entered: a cache lookup may not go back that far.",
}
_EVENTS: Final = {
    Cause.TOOLS: "a change of the tools",
    Cause.RESUME: "a resumed session",
    Cause.MODE: "a change of the permission mode",
    Cause.INTERRUPTED: "an interrupted request",
}
