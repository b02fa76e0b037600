"""The tool calls of a run with their effects, outcomes, working directories and permission modes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from tracetui.analysis.effects.edits import CONTENT, NEW, OLD, PATH, text_of
from tracetui.analysis.effects.paths import Place
from tracetui.analysis.effects.tools import call_effects, command_text, in_open_file, tool_of
from tracetui.analysis.effects.vocabulary import Effect, Kind, Outcome
from tracetui.analysis.values import value_text
from tracetui.model import Body, Operation, Run, Span, Status
from tracetui.model.span import COUNTS_HERE, plain_word
from tracetui.redact import Excerpt, Redactor

_DIRECTORIES: Final = ("cwd", "working_directory", "workingDirectory", "workdir", "work_dir", "directory", "folder")
"""Names of the working directory in records of runs and calls."""
_MODES: Final = (
    "permissionMode",
    "permission_mode",
    "approval_policy",
    "approvalMode",
    "approval_mode",
)
_ALLOW_ALL: Final = ("allowAllPermissionMode", "allow_all_permission_mode")
"""Copilot: ``on`` or ``off``."""
_MODE_FIELDS: Final = frozenset((*_MODES, *_ALLOW_ALL, "sandbox_policy"))
_BYPASS: Final = re.compile(r"bypass|danger|yolo|skip.?permissions|allow.?all|full.?access", re.IGNORECASE)
_REFUSED: Final = frozenset({"declined", "denied", "rejected", "refused", "block", "blocked", "not_approved"})
"""Status words of refused calls."""
_REFUSAL: Final = re.compile(
    r"the user doesn't want to (?:proceed|take this action)|tool use was rejected"
    r"|user (?:rejected|declined|denied|refused)"
    r"|(?:rejected|declined|denied|refused) by (?:the )?(?:user|policy|hook)"
    r"|permission to use .{1,80} (?:has been |was )?denied"
    r"|(?:requested|requests?) permissions? .{1,120} haven't granted|permission denied by|operation cancelled by user"
    r"|blocked by (?:a |the )?(?:hook|policy)|was not approved|user did not (?:approve|allow)",
    re.IGNORECASE | re.DOTALL,
)
"""How programs report a refusal to the model. ``Permission denied`` alone is an error of the operating system."""
_REJECTED: Final = "Your proposed edit has introduced new syntax error"
"""SWE-agent undoes such an edit, and records no failure."""
_TEXTS: Final = frozenset((*OLD, *NEW, *CONTENT))
_TOGETHER: Final = 50
"""Calls that are searched for secrets at once."""
_HEAD: Final = 2_000
"""Characters of an output in which a refusal is looked for."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool call that has effects."""

    span: Span
    effects: tuple[Effect, ...]
    arguments: Any
    place: Place
    outcome: Outcome
    output: Any = None
    mode: str | None = None
    """The permission mode, if recorded by then."""

    @property
    def command(self) -> str | None:
        """The shell command; None for another tool."""
        is_shell = any(effect.kind is Kind.RUN for effect in self.effects)
        command = command_text(self.arguments) if is_shell else None
        return None if command is None else command[1]


class RunEffects(msgspec.Struct, frozen=True, gc=False):
    """The calls of a run in the order of its spans."""

    calls: tuple[Call, ...]
    root: str
    """The first working directory; empty if not recorded."""
    modes: tuple[str, ...]
    """Permission modes in the order of their appearance; empty if not recorded."""


def is_bypass(mode: str) -> bool:
    """Whether an agent in that permission mode asks nobody."""
    return bool(_BYPASS.search(mode))


def run_effects(run: Run) -> RunEffects:
    """Derive the effects of all tool calls of a run. Loads the bodies of calls and prompts."""
    recorded = _levels(run.body.attributes)
    root = _directory_in(recorded) or ""
    directories: dict[str | None, str] = {}
    """By agent: each has a working directory of its own."""
    modes = dict.fromkeys(_modes_in(recorded))
    opened: dict[str | None, str] = {}
    """The file that each agent opened last, for edits without a path."""
    prompts: dict[str, None] = {}
    mode: str | None = None
    calls: list[Call] = []
    for position, span in enumerate(run.spans):
        if not _is_of_interest(span):
            continue
        body = run.load(span)
        recorded = _levels(body.attributes)
        for mode in _modes_in(recorded):
            prompts[mode] = None
        if span.operation is not Operation.EXECUTE_TOOL:
            root = root or _directory_in(recorded) or ""
            continue
        agent = _agent_of(run, position)
        place = Place(root, directories.get(agent, root))
        directories[agent] = _directory_in(recorded) or directories.get(agent, root)
        root = root or directories[agent]
        if (call := _call(span, body, place, mode, opened.get(agent) or None)) is not None:
            calls.append(call)
            if span.name in ("open", "create") and isinstance(call.arguments, Mapping) and call.outcome is Outcome.DONE:
                opened[agent] = text_of(call.arguments, PATH) or ""
    return RunEffects((*_masked_calls(calls),), root, (*(prompts | modes),))


def _call(span: Span, body: Body, place: Place, mode: str | None, opened: str | None) -> Call | None:
    """A call with its effects, with exact targets; None without effects. `opened`: what edits without a path change."""
    arguments = in_open_file(span.name, body.input, opened)
    effects = call_effects(span.name, arguments, place)
    if not effects:
        return None
    outcome = outcome_of(span, body, sum(effect.kind is Kind.RUN for effect in effects))
    effects = [msgspec.structs.replace(effect, at=span.id, outcome=outcome) for effect in effects]
    return Call(span, tuple(effects), arguments, place, outcome, body.output, mode)


def _masked_calls(calls: Sequence[Call]) -> Iterator[Call]:
    """Mask the targets of calls. Most have no secret: that is looked for in many of them at once."""
    for at in range(0, len(calls), _TOGETHER):
        batch = calls[at : at + _TOGETHER]
        arguments = [_without_texts(call.arguments) for call in batch]
        is_plain = Redactor().value(arguments) is arguments
        yield from batch if is_plain else map(_masked, batch)


def _without_texts(arguments: Any) -> Any:
    """The arguments, of a call with a path without the text of the file: that is in no target."""
    if not isinstance(arguments, Mapping) or text_of(arguments, PATH) is None:
        return arguments
    return {name: value for name, value in arguments.items() if name not in _TEXTS}


def _masked(call: Call) -> Call:
    """Mask the targets, which are made of the arguments of the call and its working directory."""
    arguments, redactor = _without_texts(call.arguments), Redactor()
    if redactor.value(arguments) is arguments:
        return call
    command = command_text(arguments)
    whole = "\n".join((value_text(arguments) if command is None else command[1], call.place.root, call.place.directory))

    def mask(target: str) -> str:
        return "/".join(redactor.excerpt(Excerpt(part, whole)) for part in target.split("/"))

    effects = tuple(
        msgspec.structs.replace(
            effect,
            target=mask(effect.target),
            moved_from=None if effect.moved_from is None else mask(effect.moved_from),
        )
        for effect in call.effects
    )
    return msgspec.structs.replace(call, effects=effects)


def outcome_of(span: Span, body: Body, commands: int = 1) -> Outcome:
    """Whether a call of so many commands happened, as recorded."""
    if span.status is Status.OK:
        is_rejected = isinstance(body.output, str) and body.output.startswith(_REJECTED)
        return Outcome.FAILED if is_rejected else Outcome.DONE
    if span.status not in (Status.ERROR, Status.CANCELLED):
        return Outcome.UNKNOWN
    if _is_refused(span, body):
        return Outcome.DENIED
    if span.status is Status.CANCELLED or commands > 1:
        return Outcome.MAYBE
    return Outcome.FAILED


def _is_refused(span: Span, body: Body) -> bool:
    if body.attributes.get("toolDenialKind") or (span.status_word and plain_word(span.status_word) in _REFUSED):
        return True
    if span.error is not None and span.error.type is not None and plain_word(span.error.type) in _REFUSED:
        return True
    texts = [span.error.message if span.error is not None else "", value_text(body.output)[:_HEAD]]
    return any(_REFUSAL.search(text[:_HEAD]) for text in texts)


def _is_of_interest(span: Span) -> bool:
    """Whether the span is a call of this run that may have effects, or a record that may have a mode or directory."""
    if span.owner is not None or (span.taken_over and COUNTS_HERE not in span.notes):
        return False
    if span.operation is Operation.EXECUTE_TOOL:
        tool = tool_of(span.name)
        return tool is None or tool.has_effect
    return span.operation in (Operation.MESSAGE, Operation.TURN) or (
        span.operation is Operation.META and any(word in span.name for word in ("context", "permission", "mode"))
    )


def _agent_of(run: Run, position: int) -> str | None:
    """Id of the agent within the run that made the call."""
    parent = run.parent(position)
    while parent is not None:
        if run.spans[parent].operation is Operation.INVOKE_AGENT:
            return run.spans[parent].id
        parent = run.parent(parent)
    return None


def _directory_in(levels: Sequence[Mapping[str, Any]]) -> str | None:
    """The working directory in a record; `levels` as returned by `_levels`."""
    for fields in levels:
        for name in _DIRECTORIES:
            value = fields.get(name)
            if isinstance(value, str) and (value.startswith(("/", "~")) or value[1:3] in (":\\", ":/")):
                return value
    return None


def _levels(attributes: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The fields of a record, and those one level below."""
    return [attributes, *[value for value in attributes.values() if type(value) is dict]]


def _modes_in(levels: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The permission modes in a record; `levels` as returned by `_levels`."""
    for fields in levels:
        if _MODE_FIELDS.isdisjoint(fields):
            continue
        for name in _MODES:
            value = fields.get(name)
            if isinstance(value, str) and value:
                yield value
        for name in _ALLOW_ALL:
            value = fields.get(name)
            if isinstance(value, str) and value:
                yield value if value == "off" else f"allow all: {value}"
        policy = fields.get("sandbox_policy")
        kind = policy.get("type", policy.get("mode")) if isinstance(policy, Mapping) else policy
        if isinstance(kind, str) and "danger" in kind:
            yield kind
