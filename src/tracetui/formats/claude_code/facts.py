"""What a session says about itself, by its records."""

from __future__ import annotations

from typing import Any, Final

from tracetui.formats.claude_code.records import (
    FIELDS,
    SYNTHETIC,
    Record,
    blocks_of,
    command_in,
    content_of,
    is_answer,
    kind_of,
    role_of,
    spoken,
)
from tracetui.formats.fields import Strange
from tracetui.formats.scalars import mapping, moment, text, word
from tracetui.model import MESSAGE_LIMIT, PREVIEW, FirstError, Operation

EARLIER: Final = 1.0
"""Seconds by which the conversation must be older than the file, if it was copied from another."""
_NAMES: Final = {
    "sessionId": "sessionId",
    "cwd": "cwd",
    "gitBranch": "gitBranch",
    "version": "version",
    "entrypoint": "entrypoint",
    "userType": "userType",
    "slug": "slug",
}
_TITLES: Final = {
    "ai-title": "aiTitle",
    "custom-title": "customTitle",
    "agent-name": "agentName",
    "agent-setting": "agentSetting",
    "summary": "summary",
    "tag": "tag",
    "mode": "mode",
    "permission-mode": "permissionMode",
    "last-prompt": "lastPrompt",
}
"""Records that say one thing about the session, and the field that holds it: the last one holds."""


class Facts:
    """The first, and sometimes the last, that was said of each."""

    def __init__(self) -> None:
        self.named: dict[str, str] = {}
        """Fields of the envelope that were met first."""
        self.latest: dict[str, Any] = {}
        self.agent: str | None = None
        """The sub-agent whose own file this is."""
        self.version: str | None = None
        """Of the Claude Code that wrote last."""
        self.model: str | None = None
        self.prompt: str | None = None
        """The beginning of the first prompt that somebody wrote."""
        self.command: str | None = None
        """The first slash command, for a session without a prompt."""
        self.first: float | None = None
        self.last: float | None = None
        self.uuid: str | None = None
        """The first record of the conversation."""
        self.forked_from: str | None = None
        self.copied_before: float | None = None
        """What is older was copied from the session that this one goes on from."""
        self.copying = False
        self.is_fork = False
        """Its first record says, or its time does, that it was copied."""
        self.searched: dict[str, tuple[Any, ...]] = {}
        """The sessions that hold the same first record, as they were found once: all copies share it."""
        self.failure: FirstError | None = None
        """The failed call of the API that was the last thing that happened."""
        self.strange: Strange = {}
        """Fields that are not known."""
        self.last_user: str | None = None
        self.last_assistant: str | None = None

    def copy(self) -> Facts:
        """Facts that go on from here without changing these."""
        made = Facts.__new__(Facts)
        made.__dict__.update(self.__dict__)
        made.named, made.latest, made.strange = dict(self.named), dict(self.latest), dict(self.strange)
        return made

    def take(self, record: Record) -> None:
        """Take in one record."""
        for name in _NAMES:
            if name not in self.named and (value := word(record.get(name))) is not None:
                self.named[name] = value
        self.version = word(record.get("version")) or self.version
        when, kind = moment(record.get("timestamp")), kind_of(record)
        FIELDS.count(self.strange, kind, record)
        if self.first is None and not isinstance(record.get("forkedFrom"), dict):
            self.first = when
        self.last = self.last if when is None else when
        if self.uuid is None and (uuid := text(record.get("uuid"))) is not None:
            self._begin(record, uuid, when)
        if (title := _TITLES.get(kind)) is not None and isinstance(record.get(title), str):
            self.latest[title] = record[title]
        if record.get("isSidechain") is not True or self.agent is not None:
            if kind == "user":
                self._user(record)
            elif kind == "assistant":
                self._assistant(record)

    def is_copy(self, record: Record) -> bool:
        """Whether a record was copied from the session that this one goes on from."""
        if isinstance(record.get("forkedFrom"), dict):
            return True
        if not self.copying or self.copied_before is None:
            return False
        when = moment(record.get("timestamp"))
        self.copying = when is None or when < self.copied_before
        return self.copying and text(record.get("uuid")) is not None

    def _begin(self, record: Record, uuid: str, when: float | None) -> None:
        """The conversation begins. One that is older than the file came from another."""
        self.uuid = uuid
        self.forked_from = text(mapping(record.get("forkedFrom")).get("sessionId"))
        self.is_fork = isinstance(record.get("forkedFrom"), dict)
        if record.get("isSidechain") is True:
            self.agent = text(record.get("agentId"))
        if when is not None and self.first is not None and when < self.first - EARLIER:
            self.copied_before, self.copying, self.is_fork = self.first, True, True

    def _user(self, record: Record) -> None:
        content = content_of(record)
        if any(map(is_answer, blocks_of(content))):
            return
        said = spoken(content)
        role = role_of(record, said, content)
        if role == "user":
            self.failure = None
        if role == "user" and said:
            self.last_user = said
            self.prompt = said[:PREVIEW] if self.prompt is None else self.prompt
        elif role == "command" and self.command is None:
            self.command = command_in(said)[:PREVIEW]

    def _assistant(self, record: Record) -> None:
        model = word(mapping(record.get("message")).get("model"))
        if self.model is None and model != SYNTHETIC:
            self.model = model
        said = spoken(content_of(record))
        self.last_assistant = said or self.last_assistant
        failed = record.get("isApiErrorMessage") is True
        ident = text(mapping(record.get("message")).get("id")) or text(record.get("uuid"))
        kind = word(record.get("error"))
        failure = FirstError(said[:MESSAGE_LIMIT] or kind or "API error", kind, ident, "API", Operation.CHAT)
        self.failure = failure if failed else None
