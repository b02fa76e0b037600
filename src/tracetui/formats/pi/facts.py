"""What a session says about itself, by its records."""

from __future__ import annotations

import re
from typing import Final

from tracetui.formats.fields import Strange
from tracetui.formats.pi.records import FINAL, Record, kind_of, message_of, spoken, text_in
from tracetui.formats.pi.spans import stopped
from tracetui.formats.scalars import moment, text, word
from tracetui.model import PREVIEW, FirstError, Operation, Status

_COMMAND: Final = re.compile(r"/[\w:.-]*")
"""A command that an early version took for a prompt."""


class Facts:
    """The first, and sometimes the last, that was said of each."""

    def __init__(self) -> None:
        self.strange: Strange = {}
        """Fields that are not known."""
        self.head: Record | None = None
        """The first record of kind ``session``."""
        self.extent: tuple[int, int] | None = None
        """Where that is."""
        self.original: str | None = None
        """Path of the session that this one comes from, as it was on the machine that wrote it."""
        self.forked: bool | None = None
        """Whether it begins with copies of that one's entries; None while no entry tells."""
        self.copying = False
        self.created: float | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.told_model: str | None = None
        self.used_model: str | None = None
        self.prompt: str | None = None
        """The beginning of the first prompt."""
        self.command: str | None = None
        """The first command that was taken for one."""
        self.title: str | None = None
        """The name that the user gave it."""
        self.word: str | None = None
        """The stop reason of the last response, if that was the last that was said and done."""
        self.status: Status | None = None
        self.failure: FirstError | None = None
        self.last_user: str | None = None
        self.last_assistant: str | None = None

    def copy(self) -> Facts:
        """Facts that go on from here without changing these."""
        made = Facts.__new__(Facts)
        made.__dict__.update(self.__dict__)
        made.strange = dict(self.strange)
        return made

    @property
    def model(self) -> str | None:
        """The model that answered first, else the first that was chosen."""
        return self.used_model or self.told_model

    @property
    def known(self) -> bool:
        """Whether nothing that comes later changes what the beginning of the session tells."""
        named = self.prompt is not None and self.used_model is not None
        return named and self.head is not None and self.forked is not None

    def begin(self, record: Record) -> None:
        """Take in the first record, which is about the session as a whole."""
        self.head = record
        self.created = self.first = moment(record.get("timestamp"))
        self.original = text(record.get("parentSession")) or text(record.get("branchedFrom"))
        self.told_model = self.told_model or word(record.get("modelId"))

    def take(self, record: Record, ident: str | None) -> None:
        """Take in one entry; `ident` is the id of its span, None where that is not known."""
        kind = kind_of(record)
        self.time(moment(record.get("timestamp")))
        if kind == "model_change":
            self.told_model = self.told_model or word(record.get("modelId"))
        elif kind == "session_info":
            self.title = text(record.get("name"))
        elif kind == "message":
            self._said(record)
        self.end(record, ident)

    def time(self, when: float | None) -> None:
        """The next entry was written then."""
        if when is None:
            return
        if self.forked is None:
            self.forked = self.copying = self.original is not None and self.created is not None and when < self.created
            if self.first is None or (when < self.first and not self.forked):  # v1 writes the first record late
                self.first = when
        elif self.copying and self.created is not None:
            self.copying = when < self.created
        self.last = when

    def end(self, record: Record, ident: str | None) -> bool:
        """How the session stands after this entry: as its last response does, unless something came after it.

        False if this entry tells nothing of that.
        """
        kind = kind_of(record)
        message = message_of(record)
        role = "user" if kind in ("custom_message", "branch_summary") else message.get("role")
        if kind not in ("message", "custom_message", "branch_summary") or role == "bashExecution":
            return False
        self.word = self.status = self.failure = None
        reason = word(message.get("stopReason"))
        if role != "assistant" or reason not in FINAL:
            return True
        self.word = reason
        self.status, _, error = stopped(message)
        if error is not None:
            name = word(message.get("model")) or "assistant"
            self.failure = FirstError(error.message, error.type, ident, name, Operation.CHAT)
        return True

    def _said(self, record: Record) -> None:
        message = message_of(record)
        role = message.get("role")
        said = text_in(message.get("content")).strip() if role in ("user", "assistant") else ""
        if role == "user" and said:
            self.asked(said)
            self.last_user = said
        elif role == "assistant":
            self.answers(word(message.get("model")), text(message.get("stopReason")))
            self.last_assistant = said or self.last_assistant

    def asked(self, said: str) -> None:
        """Somebody wrote this."""
        said = spoken(said)
        if _COMMAND.fullmatch(said[: PREVIEW + 1]):
            self.command = self.command or said[:PREVIEW]
        else:
            self.prompt = self.prompt or said[:PREVIEW]

    def answers(self, model: str | None, reason: str | None) -> None:
        """A model gave an answer."""
        if reason not in ("aborted", "error"):
            self.used_model = self.used_model or model
