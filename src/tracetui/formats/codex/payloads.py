"""What the records of a Codex rollout have in common: payloads, their parts, and the argument that a call is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from tracetui.formats.bodies import as_json
from tracetui.formats.decode import decode_value
from tracetui.formats.scalars import mapping
from tracetui.formats.schema import Integer, Loose
from tracetui.model import PREVIEW, Usage

if TYPE_CHECKING:
    from tracetui.formats.codex.session import Session

_LABELS: Final = ("message", "reason", "thread_name", "text", "user_facing_hint", "model", "status")
"""Fields that may be the preview of a record."""
_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
COMMON: Final = "id internal_chat_message_metadata_passthrough metadata "
"""Fields that any payload may have."""
ARGUMENTS: Final = (
    "cmd", "command", "query", "path", "file_path", "pattern", "url", "message", "prompt", "input", "task_name",
)  # fmt: skip
"""Arguments that distinguish one call from the next, the most specific first."""


# ---- parts of records


class Part(Struct, gc=False):
    text: str | None = None


Texts = str | list[Part | str] | None


class Content(Struct, gc=False, rename={"is_error": "isError"}):
    """A content, output, error or result that is an object."""

    content: Texts = None
    text: Texts = None
    message: str | None = None
    success: bool | None = None
    is_error: bool | None = None


Contents = str | list[Part | str] | Content | None
Scalar = bool | int | float


class Result(Content, gc=False, rename={"is_error": "isError", "ok": "Ok", "err": "Err"}):
    """The result of a tool; ``Ok`` or ``Err`` where it is a `Result` of Rust."""

    ok: Content | Loose = None
    err: Contents | Scalar = None


class Counts(Struct, gc=False, frozen=True):
    """Tokens, in the order of the fields of `Usage`. Cached input is within the input, reasoning within the output."""

    input_tokens: Integer | None = None
    output_tokens: Integer | None = None
    total_tokens: Integer | None = None
    cached_input_tokens: Integer | None = None
    cache_write_input_tokens: Integer | None = None
    reasoning_output_tokens: Integer | None = None

    def usage(self) -> Usage | None:
        """None if there are no tokens."""
        numbers = astuple(self)
        return Usage(*numbers) if any(numbers) else None

    def minus(self, before: Counts | None) -> Counts:
        """The difference to an earlier total; a total that became smaller started again."""
        now, then = astuple(self), () if before is None else astuple(before)
        if not then or any((a or 0) < (b or 0) for a, b in zip(now, then, strict=True)):
            return self
        return Counts(*(None if a is None else a - (b or 0) for a, b in zip(now, then, strict=True)))


def text_in(content: Any) -> str:
    """The text of a message's or an output's content: text itself, or the texts of its parts."""
    if type(content) is str:
        return content
    if type(content) is list:
        if len(content) == 1 and type(content[0]) is Part:
            return content[0].text or ""
        texts = [part.text if isinstance(part, Part) else part for part in content]
        return "\n".join([text for text in texts if text is not None])
    if isinstance(content, Content):
        return text_in(content.text if content.content is None else content.content)
    return ""


def object_in(text: str, limit: int) -> dict[str, Any]:
    """The JSON object that a text is; an empty one for any other text, and for one of more than `limit` characters."""
    return mapping(decode_value(text)) if text[:1] == "{" and len(text) < limit else {}


def call_preview(value: Any) -> str:
    """The argument that distinguishes a call from the next one."""
    if isinstance(value, str):
        touched = _FILE.search(value[:4096])
        return (touched[1] if touched else value.lstrip().partition("\n")[0])[:PREVIEW]
    if not isinstance(value, dict):
        return "" if value is None else as_json(value)
    for name in ARGUMENTS:
        argument = value.get(name)
        if isinstance(argument, list) and argument and all(isinstance(part, str) for part in argument):
            shell = len(argument) == 3 and argument[1] in ("-lc", "-c")
            return (argument[2] if shell else " ".join(part[:PREVIEW] for part in argument[:PREVIEW]))[:PREVIEW]
        if isinstance(argument, str) and argument:
            return argument[:PREVIEW]
    return as_json(value) if value else ""


# ---- payloads


class Payload(Struct, gc=False):
    """The payload of a record. A kind that is not interpreted is a separate row."""

    counted_as: ClassVar[str] = ""
    """The kind of a record without a tag."""

    def kind(self) -> str:
        """The kind of the record."""
        return self.__struct_config__.tag or self.counted_as  # type: ignore[return-value]

    def label(self) -> str:
        """The preview of a separate row."""
        values = (getattr(self, name, None) for name in _LABELS)
        return next((value for value in values if isinstance(value, str) and value), "")

    def threads(self) -> list[str]:
        """The threads of agents that a call began."""
        return []

    def take(self, session: Session) -> None:
        """Interpret the record."""
        session.add_record()


def variants_of(base: Any, tags: Mapping[str, str | None], **attributes: Any) -> list[Any]:
    """Kinds of payloads that differ from `base` in their tag only, each with its `other_fields`; None: any."""
    return [
        msgspec.defstruct(
            tag,
            [],
            bases=(base,),
            tag=tag,
            namespace=attributes if names is None else attributes | {"other_fields": COMMON + names},
            gc=False,
        )
        for tag, names in tags.items()
    ]
