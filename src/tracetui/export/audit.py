"""An audit as a table, as JSON (``tracetui/audit/1``), SARIF 2.1.0, JUnit XML and Markdown.

Commands and targets are masked in all of them, before anything is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from tracetui.analysis.audit import RULES, Audit, Finding, Rule, Severity
from tracetui.export.json import encode, problem_value
from tracetui.export.junit import Suite
from tracetui.export.page import Block, Heading, Prose, Table, markdown, masked_note
from tracetui.export.schemas import reports as schemas
from tracetui.export.table import Column, TextTable
from tracetui.masking import clean, masked_line, one_line
from tracetui.model import Problem, RunRef, quote_key
from tracetui.redact import Redactor
from tracetui.text import Clean, exact, grouped, quantity

AUDIT: Final = "tracetui/audit/1"
SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
Form: TypeAlias = Literal["sarif", "xml", "md", "json"]
FORMS: Final[tuple[Form, ...]] = ("sarif", "xml", "md", "json")
_MAX_TARGETS: Final = 3
"""Targets of a rule that a line names."""
_MAX_ROWS: Final = 500
"""Findings of a rule that a document lists."""
_COLUMNS: Final = (
    Column("RULE"),
    Column("SEVERITY", leaves=2),
    Column("DONE", right=True),
    Column("TRIED", right=True),
    Column("RUNS", right=True, leaves=1),
    Column("WHAT", 200, least=20),
)


class AuditReport(NamedTuple):
    """An audit, with the rules of ``--fail-on`` and what could not be read."""

    audit: Audit
    fail_on: Collection[str] = frozenset()
    problems: Sequence[Problem] = ()
    version: str = ""
    """Of this program."""
    lines: Mapping[tuple[RunRef, str], int] = MappingProxyType({})
    """Line of the record in its file, from 1, by run and span, where known; for SARIF."""


def export_audit(report: AuditReport, form: Form) -> Iterator[bytes]:
    """Write an audit as a document with its own redactor."""
    redactor = Redactor()
    if form == "json":
        value = audit_value(report, redactor)
        return iter([encode({**value, "masked": dict(sorted(redactor.counts.items()))}), b"\n"])
    if form == "sarif":
        return iter([encode(sarif(report, redactor)), b"\n"])
    if form == "xml":
        return iter([junit(report, redactor)])
    return markdown(chain(audit_blocks(report, redactor), masked_note(redactor)))


def address_of(finding: Finding) -> str:
    """The address of the call, or of the run."""
    run = finding.run.address
    return run if finding.span is None else f"{run}/{quote_key(finding.span)}"


# ---- JSON


def audit_value(report: AuditReport, redactor: Redactor) -> schemas.Audit:
    """``tracetui/audit/1``: findings worst first, the runs with their permission modes, and counts of effects."""
    audit = report.audit
    return {
        "schema": AUDIT,
        "findings": [_finding_value(finding, redactor) for finding in audit.sorted()],
        "runs": [{"run": run.run.address, "root": run.root or None, "modes": [*run.modes]} for run in audit.runs],
        "effects": {outcome.value: number for outcome, number in sorted(audit.outcomes.items())},
        "allowed": audit.allowed,
        "problems": [problem_value(problem) for problem in report.problems],
    }


def _finding_value(finding: Finding, redactor: Redactor) -> schemas.AuditFinding:
    return {
        "rule": finding.rule.name,
        "severity": finding.rule.severity.value,
        "run": finding.run.address,
        "span": finding.span,
        "target": redactor.text(finding.target),
        "command": None if finding.command is None else redactor.text(finding.command),
        "certainty": finding.certainty.value,
        "outcome": finding.outcome.value,
        "folded": finding.is_folded,
    }


# ---- text


def audit_lines(report: AuditReport, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """A line per rule with findings."""
    rows = [_rule_row(rule, findings, redactor) for rule, findings in _by_rule(report.audit)]
    return TextTable(_COLUMNS, rows).lines(width) if rows else iter(())


def _by_rule(audit: Audit) -> Iterator[tuple[Rule, list[Finding]]]:
    for rule in RULES.values():
        if findings := audit.of_rule(rule):
            yield rule, findings


def _rule_row(rule: Rule, findings: Sequence[Finding], redactor: Redactor) -> tuple[Clean, ...]:
    unfolded = [finding for finding in findings if not finding.is_folded]
    done = sum(finding.is_done for finding in unfolded)
    return (
        Clean(rule.name),
        Clean(rule.severity),
        Clean(grouped(done) if done else "·"),
        Clean(grouped(len(unfolded) - done) if len(unfolded) > done else "·"),
        Clean(grouped(len({finding.run for finding in findings}))),
        _targets(findings, redactor),
    )


def _targets(findings: Sequence[Finding], redactor: Redactor) -> Clean:
    """The most frequent targets, and the number of others."""
    counts = Counter(masked_line(finding.what, redactor, 80) for finding in findings if not finding.is_folded)
    names = [f"{name} ×{number}" if number > 1 else name for name, number in counts.most_common(_MAX_TARGETS)]
    if len(counts) > _MAX_TARGETS:
        names.append(f"{len(counts) - _MAX_TARGETS} others")
    if folded := sum(finding.is_folded for finding in findings):
        names.append(f"{folded} in temporary folders folded")
    return Clean(" · ".join(names))


def summary(report: AuditReport) -> list[Clean]:
    """Sentences about the findings, the permission modes and what was left out."""
    audit = report.audit
    serious = [item for item in audit.findings if item.rule.severity is Severity.ERROR and not item.is_folded]
    done = [finding for finding in serious if finding.is_done]
    runs = len({finding.run for finding in done})
    effects = audit.outcomes.total()
    findings = f"{quantity(len(done), 'serious finding')} in {quantity(runs, 'run')}" if done else "no serious finding"
    tried = f", {len(serious) - len(done)} more tried" if len(serious) > len(done) else ""
    sentences = [f"{findings}{tried} · {quantity(effects, 'effect')} recorded in {quantity(len(audit.runs), 'run')}"]
    modes = [f"{mode or 'not recorded'} {number}" for mode, number in audit.modes.most_common()]
    sentences.append(f"permission modes: {', '.join(modes)}" if modes else "")
    sentences.append(f"{quantity(audit.allowed, 'finding')} allowed" if audit.allowed else "")
    return [one_line(sentence, 400) for sentence in sentences if sentence]


# ---- Markdown


def audit_blocks(report: AuditReport, redactor: Redactor) -> Iterator[Block]:
    """The summary, then the findings of each rule."""
    yield Heading(1, Clean("Audit"))
    yield from map(Prose, summary(report))
    yield Prose(Clean("Effects are recorded in traces, not observed: a trace can claim what never happened."))
    for rule, findings in _by_rule(report.audit):
        yield Heading(2, Clean(f"{rule.name} ({rule.severity}): {rule.title}"))
        rows = [_document_row(finding, redactor) for finding in findings[:_MAX_ROWS]]
        yield Table(("outcome", "target", "command", "certainty", "step"), rows)
        if len(findings) > _MAX_ROWS:
            yield Prose(Clean(f"{grouped(len(findings) - _MAX_ROWS)} more"))
    for problem in report.problems:
        yield Prose(masked_line(f"not read: {problem.path}: {problem.reason}", redactor, 300))


def _document_row(finding: Finding, redactor: Redactor) -> tuple[Clean, ...]:
    return (
        Clean(f"{finding.outcome}, folded" if finding.is_folded else finding.outcome),
        masked_line(finding.target, redactor, 200),
        masked_line(finding.command or "", redactor, 200),
        Clean(finding.certainty),
        exact(address_of(finding), 300),
    )


# ---- SARIF


def sarif(report: AuditReport, redactor: Redactor) -> dict[str, Any]:
    """SARIF 2.1.0: a result per finding. Those that were only tried are informational; folded ones are suppressed.

    The location is the file of the trace, and the line of the record where known; the logical location the address of
    the call.
    """
    order = {name: number for number, name in enumerate(RULES)}
    driver = {
        "name": "tracetui",
        "version": report.version,
        "rules": [
            {
                "id": rule.name,
                "shortDescription": {"text": rule.title},
                "defaultConfiguration": {"level": rule.severity.value},
            }
            for rule in RULES.values()
        ],
    }
    results = [
        _result(finding, report.lines.get((finding.run, finding.span or "")), order[finding.rule.name], redactor)
        for finding in report.audit.sorted()
    ]
    notifications = [
        {
            "level": "warning",
            "message": {"text": clean(redactor.header(f"{problem.path}: {problem.where}: {problem.reason}"))},
        }
        for problem in report.problems
    ]
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notifications}
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, line: int | None, index: int, redactor: Redactor) -> dict[str, Any]:
    target = clean(redactor.header(finding.target))
    counts = finding.counts
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.run.path.encode("utf-8", "surrogateescape"))}}
    if line is not None:
        place["region"] = {"startLine": line}
    location = {
        "physicalLocation": place,
        "logicalLocations": [{"fullyQualifiedName": exact(address_of(finding))}],
    }
    result: dict[str, Any] = {
        "ruleId": finding.rule.name,
        "ruleIndex": index,
        "kind": "fail" if counts or finding.is_folded else "informational",
        "level": finding.rule.severity.value if counts or finding.is_folded else "none",
        "message": {"text": f"{finding.rule.title}: {target} ({finding.outcome}, as recorded)"},
        "locations": [location],
        "partialFingerprints": {"ruleAndTarget/v1": finding.fingerprint},
        "properties": {"certainty": finding.certainty.value, "outcome": finding.outcome.value},
    }
    if finding.command is not None:
        result["properties"]["command"] = clean(redactor.header(finding.command))
    if finding.is_folded:
        result["suppressions"] = [{"kind": "external", "justification": "in a temporary folder or the agent's own"}]
    return result


# ---- JUnit


def junit(report: AuditReport, redactor: Redactor) -> bytes:
    """JUnit XML: a test case per rule. A rule of ``--fail-on`` with a finding that counts is a failure."""
    suite = Suite("tracetui audit")
    for rule in RULES.values():
        findings = report.audit.of_rule(rule)
        lines = [_line(finding, redactor) for finding in findings[:_MAX_ROWS]]
        counted = sum(finding.counts for finding in findings)
        if rule.name in report.fail_on and counted:
            message = f"{quantity(counted, 'finding')}: {rule.title}"
            suite.failed(rule.name, rule.severity.value, message, lines)
        else:
            suite.passed(rule.name, lines)
    return suite.document(summary(report))


def _line(finding: Finding, redactor: Redactor) -> Clean:
    target = masked_line(finding.command or finding.target, redactor, 300)
    return Clean(f"{finding.outcome}: {target} ({exact(address_of(finding), 300)})")
