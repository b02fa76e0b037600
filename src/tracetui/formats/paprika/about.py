"""The *Run* tab of a Paprika record: input and output, limits and how near the run came, totals recounted."""

from __future__ import annotations

import re
from collections import Counter
from os.path import basename, splitext
from typing import Any, Final

from tracetui.formats.paprika.fields import value_of, whole
from tracetui.formats.paprika.messages import messages_in, messages_out
from tracetui.formats.paprika.record import Record, Skim
from tracetui.formats.paprika.run import CALLS, error_of, text_of
from tracetui.formats.scalars import mapping, number, string
from tracetui.model import Limit, Problem, RunBody, Total
from tracetui.model import text_of as message_text
from tracetui.model.build import Tally

ID_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def run_body(record: Record, tally: Tally) -> RunBody:
    """What the record says about the run as a whole."""
    fields = record.fields
    calls = [step for step in record.steps if step.step_type == "llm_call"]
    first = messages_in(value_of(calls[0].input_data)) if calls else ()
    last = messages_in(value_of(calls[-1].input_data)) if calls else ()
    answers = messages_out(value_of(calls[-1].output_data)) if calls else ()
    return RunBody(
        input=fields.get("input"),
        output=fields.get("output"),
        error=None if fields.get("error") is None else error_of(fields["error"]),
        limits=_limits(fields, record.steps, tally),
        totals=_totals(mapping(fields.get("totals")), tally),
        system_prompt=_first_text(first, "system", "developer"),
        last_user=_first_text(reversed(last), "user"),
        last_assistant=_first_text((*answers, *reversed(last)), "assistant"),
        attributes=record.attributes,
    )


def id_problems(record: Record, path: str, name: str) -> list[Problem]:
    """What is wrong with the record's id, which should be its file name and a safe one (``InvalidRunIdError``)."""
    ident = record.facts.record_id
    if not ident:
        return [Problem(path, name, "no id: the file name stands for it")]
    if not ID_PATTERN.fullmatch(ident):
        return [Problem(path, name, f"the id {ident[:80]!r} breaks the pattern {ID_PATTERN.pattern}")]
    if ident != splitext(basename(path))[0]:
        return [Problem(path, name, f"the id {ident[:80]!r} differs from the file name")]
    return []


def _first_text(messages: Any, *roles: str) -> str | None:
    return next((text for one in messages if one.role in roles and (text := message_text(one))), None)


def _totals(declared: dict[str, Any], tally: Tally) -> tuple[Total, ...]:
    usage = tally.usage
    counted = {
        "step_count": tally.steps,
        "llm_calls": tally.llm_calls,
        "tool_calls": tally.tool_calls,
        "total_tokens": usage.total_tokens,
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
    }
    return tuple(
        Total(name, whole(declared[name]) if whole(declared[name]) is not None else number(declared[name]), count)
        for name, count in counted.items()
        if name in declared
    )


def _limits(fields: dict[str, Any], steps: list[Skim], tally: Tally) -> tuple[Limit, ...]:
    """The configured limits with how far the run came, and the violated one with what the record says of it."""
    policy = mapping(fields.get("policy"))
    config = mapping(policy.get("config"))
    reached = _reached(steps, tally)
    limits = {
        name: Limit(name, number(value), reached.get(name)) for name, value in config.items() if value is not None
    }
    violation = mapping(policy.get("violation"))
    if violation:
        name = string(violation.get("policy_name")) or "policy"
        limits[name] = _violated(violation, limits.get(name, Limit(name, None, reached.get(name))))
    return tuple(limits.values())


def _violated(violation: dict[str, Any], known: Limit) -> Limit:
    """A limit with the numbers that the violation states, ``{current, limit}`` or ``{hash, count, limit}``."""
    details = mapping(violation.get("details"))
    stated = [number(details.get(name)) for name in ("limit", "current", "count")]
    current = stated[2] if stated[1] is None else stated[1]
    return Limit(
        known.name,
        known.limit if stated[0] is None else stated[0],
        known.current if current is None else current,
        True,
        text_of(violation.get("message")),
        violation.get("details"),
    )


def _reached(steps: list[Skim], tally: Tally) -> dict[str, float | None]:
    repeats = Counter(step.input_hash for step in steps if step.input_hash and step.step_type in CALLS)
    total = tally.usage.total_tokens
    return {
        "max_steps": float(tally.steps),
        "max_tokens": None if total is None else float(total),
        "max_repeat_hashes": float(max(repeats.values(), default=0)),
    }
