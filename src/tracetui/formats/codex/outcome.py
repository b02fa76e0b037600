"""How a tool call went: what its output says, what the events say that come beside it, and what both mean together."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from tracetui.formats.codex.records import text_in
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import child, number, string, whole, word
from tracetui.model import MESSAGE_LIMIT, Error, Status, StatusSource
from tracetui.model.status import plain_word, status_of

_HEADER_LIMIT: Final = 1000
_CODE: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,9})$", re.MULTILINE)
_OUTPUT: Final = re.compile(r"^Output:$\n?", re.MULTILINE)
_WRITTEN: Final = re.compile(r"(?:Chunk ID: |Exit code: |Wall time: |Process exited with code )")


class Outcome(msgspec.Struct, frozen=True):
    """What is known of how a call went; each field None where nobody said."""

    answered: bool = False
    failed: bool | None = None
    """A status or error field says so."""
    code: int | None = None
    """Exit code of the command."""
    word: str | None = None
    declined: bool = False
    message: str = ""
    started_at: float | None = None
    duration_ms: float | None = None

    def and_then(self, later: Outcome) -> Outcome:
        """This, and what is said later; an event knows better than an output, so that what it says stays."""
        return Outcome(
            self.answered or later.answered,
            later.failed if self.failed is None else self.failed or bool(later.failed),
            later.code if self.code is None else self.code,
            later.word or self.word,
            self.declined or later.declined,
            self.message or later.message,
            self.started_at if later.started_at is None else later.started_at,
            self.duration_ms if later.duration_ms is None else later.duration_ms,
        )

    @property
    def status(self) -> tuple[Status, StatusSource]:
        """What it means."""
        if self.declined:
            return Status.CANCELLED, StatusSource.EXPLICIT
        if self.failed:
            return Status.ERROR, StatusSource.EXPLICIT
        if self.code:
            return Status.ERROR, StatusSource.EXIT
        if not self.answered:
            return Status.RUNNING, StatusSource.DERIVED
        if self.failed is False:
            return Status.OK, StatusSource.EXPLICIT
        return Status.OK, StatusSource.DERIVED if self.code is None else StatusSource.EXIT

    @property
    def error(self) -> Error | None:
        """Why it failed, None if it did not."""
        if self.status[0] is not Status.ERROR:
            return None
        kind = f"exit {self.code}" if self.code else None
        return Error(_cut(self.message) or kind or self.word or "failed", kind)


def of_output(payload: dict[str, Any]) -> Outcome:
    """What a ``…_output`` says: its ``success``, or the exit code that its writer puts before the text."""
    output = payload.get("output")
    success = output.get("success") if isinstance(output, dict) else payload.get("success")
    failed = not success if isinstance(success, bool) else None
    text = text_in(output)
    code, message = _exit(text)
    return Outcome(answered=True, failed=failed, code=code, message=message[-MESSAGE_LIMIT * 4 :])


def _exit(text: str) -> tuple[int | None, str]:
    """The exit code that stands before an output, and the output."""
    if text[:1] == "{":
        inner = decode_value(text) if len(text) < 1 << 20 else None
        code = whole(child(inner, "metadata").get("exit_code"))
        return (None, text) if code is None or inner is None else (code, text_in(inner.get("output")))
    if not _WRITTEN.match(text):
        return None, text
    head = text[:_HEADER_LIMIT]
    begin = _OUTPUT.search(head)
    found = _CODE.search(head, 0, begin.start() if begin else len(head))
    return (int(found[1]) if found else None), text[begin.end() :] if begin else text


def of_event(payload: dict[str, Any]) -> Outcome:
    """What an event says of the same call: the item of ``item_completed``, ``exec_command_end`` and their like."""
    told = payload.get("item") if isinstance(payload.get("item"), dict) else payload
    assert isinstance(told, dict)
    result = told.get("result")
    problem = told.get("error")
    if isinstance(result, dict) and "Err" in result:
        problem = result["Err"]
    status = word(told.get("status"))
    failed = _failed(told, status, problem, result)
    message = string(told.get("stderr")) or string(told.get("aggregated_output")) or string(told.get("stdout")) or ""
    if failed and not message:
        message = text_in(problem) or string(child(told, "error").get("message")) or _result_text(result)
    return Outcome(
        answered=_ends(payload, status),
        failed=failed,
        code=whole(told.get("exit_code")),
        word=status,
        declined=status is not None and plain_word(status) in ("declined", "denied"),
        message=message[-MESSAGE_LIMIT * 4 :],
        started_at=_seconds(payload.get("started_at_ms")),
        duration_ms=_duration(payload, told),
    )


def _result_text(result: Any) -> str:
    ok = child(result, "Ok") or result
    return text_in(ok.get("content")) if isinstance(ok, dict) else text_in(result)


def _failed(told: dict[str, Any], status: str | None, problem: Any, result: Any) -> bool | None:
    """Whether a field says that it failed; None where none says anything."""
    success = told.get("success")
    flags = [success is False, problem is not None and problem is not False]
    flags += [child(result, "Ok").get("isError") is True, isinstance(result, dict) and result.get("isError") is True]
    meant = Status.UNKNOWN if status is None else status_of(status)
    if any(flags) or meant is Status.ERROR:
        return True
    return False if success is True or meant is Status.OK else None


def _ends(payload: dict[str, Any], status: str | None) -> bool:
    """Whether the call is over when this is written."""
    kind = word(payload.get("type")) or ""
    if kind.endswith(("_begin", "_request", "item_started", "_delta")):
        return False
    return status is None or status_of(status) is not Status.RUNNING


def _seconds(milliseconds: Any) -> float | None:
    found = number(milliseconds)
    return found / 1000 if found else None


def _duration(payload: dict[str, Any], told: dict[str, Any]) -> float | None:
    """Milliseconds: from its beginning to its end, else as it says itself."""
    begin, end = number(payload.get("started_at_ms")), number(payload.get("completed_at_ms"))
    if begin and end and end >= begin:
        return number(end - begin)
    took = child(told, "duration")
    seconds, nanos = number(took.get("secs")), number(took.get("nanos"))
    return None if seconds is None else number(seconds * 1000 + (nanos or 0) / 1e6)


def _cut(message: str) -> str:
    message = message.strip()
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"
