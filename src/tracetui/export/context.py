"""The context of a run as tables and as JSON (``tracetui/context/1``, docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from msgspec.structs import asdict

from tracetui.analysis.context import Account, Break, Call, Ledger, total
from tracetui.export.schemas import reports as schemas
from tracetui.export.table import Column, TextTable
from tracetui.masking import masked_line
from tracetui.model import RunSummary
from tracetui.redact import Redactor
from tracetui.text import Clean, count, grouped, tokens
from tracetui.views.context import basis_of, cause_label, content_label, file_label, headline, share_label, usd_label

CONTEXT: Final = "tracetui/context/1"

# ---- tables

_ACCOUNT: Final = (
    Column("TIMES", right=True, leaves=6),
    Column("ENTERED", right=True),
    Column("CARRIED", right=True),
    Column("SHARE", right=True),
    Column("NOW", right=True, leaves=5),
    Column("COST", right=True),
    Column("NEW", right=True, leaves=4),
    Column("CARRY", right=True, leaves=3),
    Column("BREAKS", right=True, leaves=2),
)
_BREAK: Final = (
    Column("CALL", right=True),
    Column("STEP", right=True, leaves=3),
    Column("MISSED", right=True),
    Column("KEPT", right=True, leaves=4),
    Column("COST", right=True),
    Column("BASIS", leaves=2),
    Column("CAUSE"),
    Column("LOST", leaves=1),
)
_CALL: Final = (
    Column("CALL", right=True),
    Column("INPUT", right=True),
    Column("GREW", right=True),
    Column("READ", right=True),
    Column("WRITTEN", right=True),
    Column("UNCACHED", right=True, leaves=3),
    Column("NOT RECORDED", right=True, leaves=2),
    Column("COST", right=True),
    Column("BREAK", leaves=4),
    Column("BROUGHT IN", least=24, leaves=1),
)


def title(run: RunSummary, ledger: Ledger, redactor: Redactor) -> Clean:
    """Name and totals of a run."""
    model = f" · {masked_line(run.model, redactor, 60)}" if run.model else ""
    return Clean(f"{masked_line(run.name, redactor, 80)}{model} · {headline(ledger)}")


def content_table(ledger: Ledger, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """One content a row, most carried first, and their sum."""
    rows = [
        (*_account_cells(account, ledger), Clean(basis_of(account)), content_label(account.content, redactor))
        for account in ledger.contents()
    ]
    sums = _account_cells(total(ledger.accounts()), ledger)
    rows.append((Clean(""), *sums[1:], Clean("recorded"), Clean("all")))
    return TextTable((*_ACCOUNT, Column("BASIS", leaves=1), Column("CONTENT")), rows).lines(width)


def file_table(ledger: Ledger, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """One file a row, most carried first."""
    rows = [(*_account_cells(account, ledger), file_label(account.file or "", redactor)) for account in ledger.files()]
    return TextTable((*_ACCOUNT, Column("FILE", least=20, middle=True)), rows).lines(width)


def _account_cells(account: Account, ledger: Ledger) -> tuple[Clean, ...]:
    totals = ledger.totals
    usd = (account.usd, account.usd_new, account.usd_carry, account.usd_breaks)
    return (
        count(account.times),
        tokens(account.entered),
        tokens(account.carried),
        share_label(account.carried, totals.input),
        tokens(account.now),
        *(usd_label(None if totals.usd is None else part) for part in usd),
    )


def break_table(ledger: Ledger, width: int | None, steps: Callable[[str], int | None]) -> Iterator[Clean]:
    """One break a row; `steps` returns the number of a span's step."""
    calls = {call.number: call for call in ledger.calls}
    rows = [
        (
            count(missed.call),
            count(steps(calls[missed.call].span)),
            tokens(missed.missed),
            tokens(missed.kept),
            usd_label(missed.usd),
            Clean(missed.basis),
            cause_label(missed),
            Clean(missed.where),
        )
        for missed in ledger.breaks
    ]
    return TextTable(_BREAK, rows).lines(width)


def call_table(ledger: Ledger, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """One model call a row."""
    rows = [
        (
            count(call.number),
            grouped(call.input),
            Clean(f"{call.growth:+,}"),
            _exact(call.read),
            _exact(call.written),
            grouped(call.uncached),
            grouped(call.not_recorded),
            usd_label(call.usd),
            Clean("") if call.missed is None else cause_label(call.missed),
            arrivals(call, redactor),
        )
        for call in ledger.calls
    ]
    return TextTable(_CALL, rows).lines(width)


def _exact(number: int | None) -> Clean:
    return Clean("—") if number is None else grouped(number)


def arrivals(call: Call, redactor: Redactor) -> Clean:
    """``Read results ≈3,871, replies 812``: the texts that entered; ``≈`` marks estimates."""
    parts = [
        f"{content_label(text.content, redactor)} {'' if text.exact else '≈'}{grouped(text.tokens)}"
        for text in call.brought(by_file=False)
    ]
    return Clean(", ".join(parts))


# ---- JSON


def context_value(run: RunSummary, ledger: Ledger, redactor: Redactor | None = None) -> schemas.Context:
    """``tracetui/context/1``, with names masked if `redactor` is given."""

    def name(text: str | None) -> str | None:
        return text if text is None or redactor is None else redactor.header(text)

    totals, calls = ledger.totals, {call.number: call for call in ledger.calls}
    sums = asdict(totals) | {"usd_carry": totals.usd_carry, "unpriced_calls": totals.unpriced}
    return {
        "schema": CONTEXT,
        "run": run.ref.address,
        "id": run.id,
        "totals": cast("schemas.ContextTotals", _fields(schemas.ContextTotals, sums)),
        "contents": [_account(account, ledger, name) for account in ledger.accounts()],
        "files": [_account(account, ledger, name) | {"content": None} for account in ledger.files()],
        "breaks": [_break(missed, calls[missed.call], name) for missed in ledger.breaks],
        "calls": [_call(call, name) for call in ledger.calls],
    }


_Name = Callable[[Any], Any]
"""Masks a text; None stays None."""


def _fields(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the fields of an object."""
    return {field: values[field] for field in kind.__annotations__}


def _account(account: Account, ledger: Ledger, name: _Name) -> schemas.ContextShare:
    totals = ledger.totals
    values = asdict(account) | {
        "content": name(account.content),
        "file": name(account.file),
        "share": account.carried / totals.input if totals.input else None,
        "usd_carry": account.usd_carry,
        "basis": basis_of(account),
    }
    if totals.usd is None:
        values |= dict.fromkeys(("usd", "usd_new", "usd_carry", "usd_breaks"))
    return cast("schemas.ContextShare", _fields(schemas.ContextShare, values))


def _break(missed: Break, call: Call, name: _Name) -> schemas.CacheBreak:
    values = asdict(missed) | {
        "call": call.id,
        "number": call.number,
        "span": call.span,
        "cause": name(missed.cause),
        "reported": name(missed.reported),
        "broke_at": name(missed.broke_at),
        "idle_s": missed.idle,
        "ttl_s": missed.cache_seconds,
        "ttl_recorded": missed.cache_known,
    }
    return cast("schemas.CacheBreak", _fields(schemas.CacheBreak, values))


def _call(call: Call, name: _Name) -> schemas.ContextCall:
    values = asdict(call) | {
        "call": call.id,
        "model": name(call.model),
        "uncached": call.uncached,
        "by": {name(content): size for content, size in call.by.items()},
        "note": call.note or None,
        "arrivals": [
            {"content": name(text.content), "file": name(text.file), "tokens": text.tokens, "recorded": text.exact}
            for text in call.arrivals
        ],
        "missed": 0 if call.missed is None else call.missed.missed,
    }
    return cast("schemas.ContextCall", _fields(schemas.ContextCall, values))
