"""A trajectory as a run: its header, what it says about itself, and its totals recounted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from tracetui.formats.atif.fields import is_copied, text_in
from tracetui.formats.atif.parts import CONTINUED
from tracetui.formats.atif.reading import Reading, Told
from tracetui.formats.atif.spans import AGENT
from tracetui.formats.atif.trial import outcome_of
from tracetui.formats.atif.words import Opening
from tracetui.formats.labels import source_in, tags_in, task_key
from tracetui.formats.scalars import layout, mapping, number, version, whole, word
from tracetui.model import PREVIEW, Header, RunBody, Total, Usage
from tracetui.sources.base import File

_TOTALS = ("input_tokens", "output_tokens", "cache_read_tokens", "cost_usd")
_NAMES = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd")


def model_of(root: dict[str, Any]) -> str | None:
    """The model that a trajectory names for all of its steps."""
    return word(mapping(root.get("agent")).get("model_name"))


def header_of(root: dict[str, Any], opening: Opening, file: File, result: dict[str, Any]) -> Header:
    """The header, from the beginning of a trajectory and the `result` of the trial that it is of.

    ATIF says of no run how it ended, and some writers write final metrics after each step: it has ended once these are
    there and the file is still.
    """
    agent, extra = mapping(root.get("agent")), root.get("extra")
    stem = file.name.removesuffix(".json") or file.name
    name = word(agent.get("name"))
    return Header(
        id=word(root.get("trajectory_id")) or word(root.get("session_id")) or stem,
        name=name or stem,
        agent=name,
        model=opening.model,
        ended=not file.moving
        and (isinstance(root.get("final_metrics"), dict) or word(root.get(CONTINUED)) is not None),
        started_at=opening.started_at,
        time_zone=opening.zone,
        repeats=task_key(name or "", opening.prompt),
        prompt=opening.prompt[:PREVIEW],
        outcome=outcome_of(result),
        tags=tags_in(root, extra, agent.get("extra")),
        source=source_in(extra, agent.get("extra")),
        writer=version(agent.get("version")) or layout(root.get("schema_version")),
    )


def counted(header: Header, reading: Reading) -> Header:
    """The header with what only all steps tell: how long it took, and what it used where not every step says."""
    duration = None
    if header.started_at is not None and reading.last is not None and reading.last > header.started_at:
        duration = (reading.last - header.started_at) * 1000
    used = reading.usage if reading.declared else None
    return replace(header, duration_ms=duration, usage=used, size=reading.size)


def run_body(reading: Reading) -> RunBody:
    """Everything that is said about the run as a whole."""
    steps = [mapping(record.value) for told in reading.told if not told.below for record in told.doc.steps]
    said = [(step.get("source"), text_in(step.get("message"))) for step in steps if not is_copied(step)]
    return RunBody(
        system_prompt=next((text for source, text in said if source == "system" and text), None),
        last_user=next((text for source, text in reversed(said) if source == "user" and text), None),
        last_assistant=next((text for source, text in reversed(said) if source == AGENT and text), None),
        totals=tuple(_totals([told for told in reading.told if not told.below])),
        attributes=reading.doc.root | ({"result.json": reading.result} if reading.result else {}),
    )


def _totals(segments: Sequence[Told]) -> Iterator[Total]:
    """What the trajectory and those in which it goes on declare, recounted.

    Some writers count sub-agents in, and some count on where a trajectory goes on: a number that is right in one of
    these readings is right. Where it is in none, the sum of the steps stands beside it.
    """
    own = around = Usage()
    steps = 0
    for number_, told in enumerate(segments):
        own, around, steps = own + told.own, around + told.around, steps + told.steps
        final = mapping(told.doc.root.get("final_metrics"))
        prefix = f"cont-{number_} " if number_ else ""
        readings = [told.own, told.around, own, around]
        for name, field in zip(_NAMES, _TOTALS, strict=True):
            declared = number(final.get(name)) if field == "cost_usd" else whole(final.get(name))
            if declared is not None:
                yield Total(f"{prefix}{name}", declared, _reading(declared, [getattr(one, field) for one in readings]))
        declared = whole(final.get("total_steps"))
        if declared is not None:
            yield Total(
                f"{prefix}total_steps", declared, _reading(declared, [told.steps, told.steps - told.copied, steps])
            )


def _reading(declared: float, counts: list[Any]) -> Any:
    """The count that agrees with what is declared (sums of cents never do exactly), else the first."""
    known = [count for count in counts if count is not None]
    return next((declared for count in known if math.isclose(count, declared, abs_tol=1e-9)), counts[0])
