"""Fields of a trajectory, whose types nobody may trust: the value if it is what was asked for, else nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.formats.decode import strict
from tracetui.formats.scalars import mapping, number, sequence, whole, word
from tracetui.model import MESSAGE_LIMIT, Error, Status, StatusSource, Usage

_TIME_LIMIT: Final = 64
_FLAGS: Final = ("is_error", "tool_result_is_error")


class At(msgspec.Struct, frozen=True, gc=False):
    """Where a span is told: by a step, one call in it, or a whole trajectory."""

    place: tuple[int, int, int] | None = None
    """Offset, size and checksum of its bytes; None where the file is not strict JSON, or no record tells it."""
    value: Any = None
    """The record itself where there is no `place`."""
    path: str | None = None
    """The file, where it is not that of the run; relative to its folder."""
    call: int | None = None
    """Which of the step's calls."""
    whole: bool = False
    """It is told by a trajectory, not by a step."""

    @property
    def size(self) -> int:
        """Its bytes, 0 where there is no `place`."""
        return 0 if self.place is None else self.place[1]


class Record(msgspec.Struct, frozen=True):
    """A decoded value and where it is in its file."""

    value: Any
    place: tuple[int, int, int] | None = None


def moment(value: Any) -> tuple[float | None, str | None]:
    """An ISO 8601 time as (seconds since the epoch, zone); a naive one has no zone and is read as if it were UTC."""
    if not isinstance(value, str) or len(value) > _TIME_LIMIT:
        return None, None
    try:
        found = datetime.fromisoformat(value.strip())
        zone = None if found.tzinfo is None else "UTC"
        return (found.replace(tzinfo=UTC) if zone is None else found).timestamp(), zone
    except (ValueError, OverflowError):
        return None, None


def text_in(content: Any) -> str:
    """The text of a message or a result: text itself, or the texts of its parts; also as it is written."""
    if isinstance(content, msgspec.Raw):
        content = strict(bytes(content))
    if isinstance(content, str):
        return content
    texts = [mapping(part).get("text") for part in sequence(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def rendered(value: Any) -> bytes:
    """A JSON rendering of `value`, empty where it is nested too deeply to be written."""
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b""


def is_copied(step: dict[str, Any]) -> bool:
    """Whether a step repeats one of another trajectory, only so that the context is complete."""
    return step.get("is_copied_context") is True


def usage_of(metrics: Any) -> Usage | None:
    """What one step used; ATIF counts cached input as part of the prompt, as `Usage` does."""
    said = mapping(metrics)
    if not said:
        return None
    used = Usage(
        input_tokens=whole(said.get("prompt_tokens")),
        output_tokens=whole(said.get("completion_tokens")),
        cache_read_tokens=whole(said.get("cached_tokens")),
        cost_usd=number(said.get("cost_usd")),
    )
    if extra := mapping(said.get("extra")):
        written, thought = extra.get("cache_creation_input_tokens"), extra.get("reasoning_tokens")
        thought = extra.get("reasoning_output_tokens") if thought is None else thought
        used = replace(used, cache_creation_tokens=whole(written), reasoning_tokens=whole(thought))
    return used or None


def declared_of(final: Any, before: Usage) -> Usage | None:
    """What a trajectory says that it used as a whole, without what was `before`."""
    said = mapping(final)
    tokens = (whole(said.get(f"total_{name}_tokens")) for name in ("prompt", "completion", "cached"))
    known = (before.input_tokens, before.output_tokens, before.cache_read_tokens)
    given, made, read = (
        None if count is None else max(0, count - (past or 0)) for count, past in zip(tokens, known, strict=True)
    )
    cost = number(said.get("total_cost_usd"))
    cost = None if cost is None else max(0.0, cost - (before.cost_usd or 0.0))
    return Usage(input_tokens=given, output_tokens=made, cache_read_tokens=read, cost_usd=cost) or None


def unsaid(declared: Usage, counted: Usage) -> Usage:
    """Those of the declared numbers that no step tells: often the cost."""
    pairs = zip(msgspec.structs.astuple(declared), msgspec.structs.astuple(counted), strict=True)
    return Usage(*(said if known is None else None for said, known in pairs))


def total(used: Sequence[Usage]) -> Usage:
    """The sum of what was used, each number over those that tell it."""
    columns = zip(*map(msgspec.structs.astuple, used), strict=True)
    known = ([value for value in column if value is not None] for column in columns)
    return Usage(*(sum(values) if values else None for values in known))


def failure_in(extras: Iterable[Any], content: Any) -> tuple[Status | None, StatusSource | None, Error | None]:
    """What fields outside the schema say of how something went, each None where they say nothing; `content` says why.

    ATIF has no field for that; converters write these into ``extra``. Nothing is guessed from text.
    """
    fine: StatusSource | None = None
    for extra in extras:
        if not extra or not isinstance(extra, dict):
            continue
        error, kind, code = extra.get("error"), word(extra.get("error_type")), whole(extra.get("exit_code"))
        message = word(error) or word(mapping(error).get("message"))
        flags = [extra[name] for name in _FLAGS if isinstance(extra.get(name), bool)]
        if message or kind or mapping(error) or any(flags):
            kind = kind or word(mapping(error).get("type"))
            return Status.ERROR, StatusSource.EXPLICIT, Error((message or _reason(content))[:MESSAGE_LIMIT], kind)
        if code:
            return Status.ERROR, StatusSource.EXIT, Error(_reason(content), f"exit {code}")
        fine = StatusSource.EXPLICIT if flags else StatusSource.EXIT if code is not None else fine
    return (Status.OK, fine, None) if fine else (None, None, None)


def _reason(content: Any) -> str:
    """The beginning of a text, of a message, or of several."""
    texts = map(text_in, content) if isinstance(content, list) else (text_in(content),)
    return "\n".join(filter(None, texts)).strip()[:MESSAGE_LIMIT]
