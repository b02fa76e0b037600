"""Rules for effects of agents: what a reviewer should look at, as recorded in the traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Final

import msgspec

from tracetui.analysis.effects import CHANGES, Call, Certainty, Effect, Flag, Kind, Outcome, RunEffects, is_bypass
from tracetui.errors import UsageError, nearest
from tracetui.model import RunRef, RunSummary
from tracetui.store.facts import EffectFacts


class Severity(StrEnum):
    """How much a rule matters, worst first; the words are those of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Rule(msgspec.Struct, frozen=True):
    """A rule. `matches` is None for rules about calls or runs as a whole."""

    name: str
    severity: Severity
    title: str
    matches: Callable[[Effect], bool] | None = None
    quotes: bool = False
    """Lists show the command, which says more than the target."""
    folds: bool = False
    """Findings in temporary folders and the agent's own are folded."""


def _flagged(flag: Flag, *kinds: Kind) -> Callable[[Effect], bool]:
    return lambda effect: flag in effect.flags and (not kinds or effect.kind in kinds)


def _kind(kind: Kind, unless: Flag | None = None) -> Callable[[Effect], bool]:
    return lambda effect: effect.kind is kind and unless not in effect.flags


_WRITES: Final = tuple(CHANGES - {Kind.DELETE})
RULES: Final = {
    rule.name: rule
    for rule in (
        Rule("push-force", Severity.ERROR, "overwrites or deletes a remote branch", _flagged(Flag.FORCE), quotes=True),
        Rule("git-discard", Severity.ERROR, "discards work in a repository", _flagged(Flag.DISCARD), quotes=True),
        Rule(
            "delete-outside", Severity.ERROR, "deletes files outside the run's root",
            _flagged(Flag.OUTSIDE, Kind.DELETE), folds=True,
        ),
        Rule("secret-read", Severity.ERROR, "reads credentials", _flagged(Flag.SECRET, Kind.READ)),
        Rule("pipe-to-shell", Severity.ERROR, "a shell runs a program's output", _flagged(Flag.PIPED), quotes=True),
        Rule("permission-bypass", Severity.ERROR, "the agent asked nobody for permission"),
        Rule("delete", Severity.WARNING, "deletes files", _kind(Kind.DELETE), folds=True),
        Rule(
            "write-outside", Severity.WARNING, "changes files outside the run's root",
            _flagged(Flag.OUTSIDE, *_WRITES), folds=True,
        ),
        Rule("kill", Severity.WARNING, "stops processes", _kind(Kind.KILL)),
        Rule("sudo", Severity.WARNING, "runs as another user", _flagged(Flag.SUDO, Kind.RUN)),
        Rule("send", Severity.WARNING, "sends data to another machine", _flagged(Flag.SEND)),
        Rule("push", Severity.NOTE, "pushes commits", _flagged(Flag.PUSH)),
        Rule("network", Severity.NOTE, "connects to another machine", _kind(Kind.NET, unless=Flag.LOCAL)),
        Rule("install", Severity.NOTE, "installs packages", _kind(Kind.INSTALL)),
        Rule("denied", Severity.NOTE, "the user or a policy refused the call"),
        Rule("not-parsed", Severity.NOTE, "a command too long, or in another language", _flagged(Flag.NOT_PARSED)),
    )
}  # fmt: skip
"""All rules by name, worst first."""


class Finding(msgspec.Struct, frozen=True):
    """A match of a rule. Texts are exact: mask them before they are shown."""

    rule: Rule
    run: RunRef
    target: str
    span: str | None = None
    """Id of the span of the call; None for a finding about the run."""
    command: str | None = None
    """The shell command of the call; None for other tools, and where only the file is named (``secret-read``)."""
    range: tuple[int, int] | None = None
    """The characters of the command that are the evidence."""
    certainty: Certainty = Certainty.RECORDED
    outcome: Outcome = Outcome.DONE
    is_folded: bool = False
    mode: str | None = None
    """The permission mode of the call, if recorded."""

    @property
    def what(self) -> str:
        """The target, or the command if that says more."""
        return self.command if self.rule.quotes and self.command is not None else self.target

    @property
    def fingerprint(self) -> str:
        """Identifies rule and target: 32 hex digits."""
        return blake2b(f"{self.rule.name}\n{self.target}".encode("utf-8", "replace"), digest_size=16).hexdigest()

    @property
    def is_done(self) -> bool:
        """Whether it counts as done, and not as tried."""
        return self.outcome is Outcome.DONE

    @property
    def counts(self) -> bool:
        """Whether ``--fail-on`` looks at it: it was done, or is a fact about the call itself; and it isn't folded."""
        return not self.is_folded and (self.is_done or self.rule.name in ("denied", "not-parsed"))


class AuditedRun(msgspec.Struct, frozen=True):
    """What the audit knows about a run as a whole."""

    run: RunRef
    root: str
    modes: tuple[str, ...]
    outcomes: Counter[Outcome]
    """Number of effects by outcome."""


class Audit(msgspec.Struct):
    """The findings in a set of runs, worst first."""

    findings: list[Finding] = []
    runs: list[AuditedRun] = []
    allowed: int = 0
    """Findings that were left out because they are allowed."""

    def add(self, summary: RunSummary, effects: RunEffects, allows: Sequence[Allow] = ()) -> None:
        """Add the findings of a run, except for allowed ones."""
        outcomes = Counter(effect.outcome for call in effects.calls for effect in call.effects)
        self.runs.append(AuditedRun(summary.ref, effects.root, effects.modes, outcomes))
        for finding in findings_of(summary.ref, effects):
            if any(allow.covers(finding) for allow in allows):
                self.allowed += 1
            else:
                self.findings.append(finding)

    @property
    def outcomes(self) -> Counter[Outcome]:
        """Number of effects by outcome."""
        return sum((run.outcomes for run in self.runs), Counter[Outcome]())

    @property
    def modes(self) -> Counter[str]:
        """Number of runs by permission mode; those without a recorded one have the key ``""``."""
        return Counter(mode for run in self.runs for mode in run.modes or ("",))

    def of_rule(self, rule: Rule) -> list[Finding]:
        """The findings of one rule."""
        return [finding for finding in self.findings if finding.rule is rule]

    def sorted(self) -> list[Finding]:
        """The findings by rule, worst first."""
        order = {name: number for number, name in enumerate(RULES)}
        return sorted(self.findings, key=lambda finding: order[finding.rule.name])


def findings_of(ref: RunRef, effects: RunEffects) -> Iterator[Finding]:
    """Yield the findings of a run, in the order of its calls."""
    for mode in effects.modes:
        if is_bypass(mode):
            yield Finding(RULES["permission-bypass"], ref, mode, mode=mode)
    for call in effects.calls:
        yield from _of_call(ref, call)


def _of_call(ref: RunRef, call: Call) -> Iterator[Finding]:
    command = call.command
    met: set[tuple[str, str]] = set()
    for effect in call.effects:
        for rule in RULES.values():
            if rule.matches is None or not rule.matches(effect) or (rule.name, effect.target) in met:
                continue
            met.add((rule.name, effect.target))
            names_file_only = rule.name == "secret-read"
            yield Finding(
                rule,
                ref,
                effect.target,
                call.span.id,
                None if names_file_only else command,
                None if names_file_only or command is None else effect.range,
                effect.certainty,
                effect.outcome,
                rule.folds and Flag.TEMPORARY in effect.flags,
                call.mode,
            )
    if call.outcome is Outcome.DENIED:
        target = command or next((effect.target for effect in call.effects), call.span.name)
        extent = None if command is None else (0, len(command))
        yield Finding(
            RULES["denied"], ref, target, call.span.id, command, extent, outcome=Outcome.DENIED, mode=call.mode
        )


def effect_facts(ref: RunRef, effects: RunEffects) -> EffectFacts:
    """Return what queries ask about a run: only what was done counts."""
    targets: dict[Kind, dict[str, None]] = {}
    commands = dict[str, None]()
    for call in effects.calls:
        for effect in call.effects:
            if effect.outcome is Outcome.DONE:
                targets.setdefault(effect.kind, {})[effect.target] = None
        if call.outcome is Outcome.DONE and call.command is not None:
            commands[call.command] = None

    def of(*kinds: Kind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(target for kind in kinds for target in targets.get(kind, ())))

    return EffectFacts(
        changed=of(*CHANGES),
        written=of(Kind.WRITE, Kind.EDIT),
        read=of(Kind.READ),
        deleted=of(Kind.DELETE),
        hosts=of(Kind.NET),
        commands=(*commands,),
        rules=tuple(dict.fromkeys(finding.rule.name for finding in findings_of(ref, effects) if finding.counts)),
    )


# ---- what is allowed, and what fails


class Allow(msgspec.Struct, frozen=True):
    """Findings that are fine: of a rule, with a target that matches a glob (``*`` also matches ``/``)."""

    rule: str
    glob: str

    @classmethod
    def parse(cls, text: str) -> Allow:
        """Parse ``RULE:GLOB``; ``RULE`` alone allows every target. Raises `UsageError` for an unknown rule."""
        rule, colon, glob = text.partition(":")
        return cls(known_rule(rule), glob if colon else "*")

    def covers(self, finding: Finding) -> bool:
        """Whether it allows the finding."""
        return finding.rule.name == self.rule and fnmatchcase(finding.target, self.glob)


def known_rule(name: str) -> str:
    """Return the name of a rule. Raises `UsageError` for another one."""
    if name in RULES:
        return name
    like = nearest(name, [*RULES])
    hint = f"; did you mean {like!r}?" if like else f"; rules: {', '.join(RULES)}"
    raise UsageError(f"no audit rule {name!r}{hint}")


def parse_conditions(texts: Sequence[str]) -> frozenset[str]:
    """Return the rules that ``--fail-on`` names, by themselves or by severity; separated by commas.

    Raises `UsageError` for an unknown one.
    """
    rules: set[str] = set()
    for name in (name.strip() for text in texts for name in text.split(",")):
        if name in [*Severity]:
            rules.update(rule.name for rule in RULES.values() if rule.severity == name)
        else:
            rules.add(known_rule(name))
    return frozenset(rules)


def failing(audit: Audit, rules: frozenset[str]) -> list[Finding]:
    """The findings that meet a condition of ``--fail-on``."""
    return [finding for finding in audit.findings if finding.rule.name in rules and finding.counts]
