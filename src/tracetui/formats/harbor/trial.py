"""What ``result.json`` and ``verifier/ctrf.json`` say about a trial, and how that completes the run of its agent log.

Facts: the models of Harbor (``TrialResult``, ``StepResult``, ``TimingInfo``, ``ExceptionInfo``, ``VerifierResult``,
``AgentContext``) and the Common Test Report Format (CTRF).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.formats.bodies import changed, rendered
from tracetui.formats.scalars import (
    between,
    child,
    mapping,
    moment,
    natural,
    number,
    sequence,
    task_key,
    text,
    version,
    word,
)
from tracetui.model import (
    PREVIEW,
    REASON_LIMIT,
    Body,
    Criterion,
    Error,
    FirstError,
    Header,
    Operation,
    Problem,
    RunBody,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Usage,
    excerpt,
)
from tracetui.model.run import EVIDENCE_LIMIT, Evidence, Score, Who

RESULT: Final = "result.json"
CHECKS: Final = "verifier/ctrf.json"
VERIFIER_LOGS: Final = ("verifier/test-stdout.txt", "verifier/test-stderr.txt")
HARNESS_LOG: Final = "trial.log"
AGENT_PHASE: Final = "trial:agent_execution"
"""Id of the span that holds the spans of the agent log."""
HEADLINE: Final = "reward"
"""The reward that Harbor's own viewer shows as the result; what ``reward.txt`` holds has this name."""
_PHASES: Final = ("environment_setup", "agent_setup", "agent_execution", "verifier")
_AGENT_RESULT: Final = "agent_result"
_DETAILS: Final = {"agent_execution": _AGENT_RESULT, "verifier": "verifier_result"}
"""The field with what came of a phase."""
_EXCEPTION: Final = "exception_info"
_CANCELLED: Final = "CancelledError"
_BY_TYPE: Final = (
    (Who.ENVIRONMENT, re.compile(r"AgentSetup|Environment|Sandbox|Docker|Image|Container")),
    (Who.AGENT, re.compile(r"Agent|NonZeroAgent|ApiKey|ContextLength|OutputLength")),
    (Who.GRADER, re.compile(r"Verifi|Reward|AddTests|DownloadVerifier|TestsUpload")),
)
"""Who failed, by how the names of Harbor's exceptions begin; of others by the phase in which they occurred."""
_BY_PHASE: Final = {
    "environment_setup": Who.ENVIRONMENT, "agent_setup": Who.ENVIRONMENT, "verifier": Who.GRADER,
}  # fmt: skip
_MET: Final = {"passed": True, "failed": False}
_PASSED: Final[dict[Any, bool]] = {1: True, 0: False}
_RULE: Final = "1 passed, 0 failed"
_CHECKSUM: Final = 8
"""Characters of the checksum that distinguish one version of a task from the next."""


class PhaseRef(msgspec.Struct, frozen=True, gc=False):
    """`Span.at` of a phase: its name."""

    name: str


class Phase(msgspec.Struct, frozen=True):
    """One phase of a trial, or one step of a trial of several steps, with its record."""

    name: str
    started_at: float
    duration_ms: float | None
    record: dict[str, Any]

    @property
    def id(self) -> str:
        """Id of its span."""
        return f"trial:{self.name}"


class Trial:
    """A trial, or one step of it: `step` is its name, None for the trial itself."""

    def __init__(
        self,
        result: dict[str, Any],
        checks: Any,
        step: str | None = None,
        notes: tuple[tuple[str, str], ...] = (),
        logs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`checks` is the decoded CTRF report, None where there is none; `notes` say what could not be read.

        `logs` are the texts of the verifier and the harness, by path in the trial.
        """
        self.result, self.checks, self.step, self.notes, self.logs = result, checks, step, notes, logs
        self.steps = [mapping(step_result) for step_result in sequence(result.get("step_results"))]
        self._record = result
        if step is not None:
            self._record = next((step_result for step_result in self.steps if step_result.get("step_name") == step), {})

    @property
    def id(self) -> str | None:
        """The id of the trial, else its name."""
        return word(self.result.get("id")) or word(self.result.get("trial_name"))

    # ---- how it went

    @cached_property
    def _exception(self) -> dict[str, Any]:
        """The exception of the trial, else the first one of its steps: there Harbor records those that it handled."""
        records = (self._record, *self.steps) if self.step is None else (self._record,)
        return next((exception for record in records if (exception := child(record, _EXCEPTION))), {})

    @cached_property
    def _has_ended(self) -> bool:
        ended = self._record.get("finished_at") or self._record.get("verifier_result")
        return bool(self._exception or ended or (self.step is not None and self._record.get("agent_result")))

    @cached_property
    def _failed_phase(self) -> Phase | None:
        """The phase in which the exception occurred: the last one that had begun."""
        when = moment(self._exception.get("occurred_at"))
        begun = [phase for phase in self.phases if when is not None and phase.started_at <= when]
        return max(begun, key=lambda phase: phase.started_at, default=None)

    @cached_property
    def _error(self) -> Error | None:
        return _error_in({_EXCEPTION: self._exception})

    @cached_property
    def _first_error(self) -> FirstError | None:
        error, phase = self._error, self._failed_phase
        if error is None:
            return None
        if phase is None:
            return FirstError(error.message, error.type)
        return FirstError(error.message, error.type, phase.id, _title(phase.name), Operation.OTHER)

    @cached_property
    def _culprit(self) -> Who | None:
        """Who the exception is of; None without one, or if the trial was cancelled."""
        from tracetui.formats.grading import is_environment  # its patterns take 10 ms to compile

        error = self._error
        if error is None or _status_of(error) is not Status.ERROR:
            return None
        by_type = next((who for who, begins in _BY_TYPE if begins.match(error.type or "")), None)
        if by_type is not None:
            return by_type
        if is_environment(error.message):
            return Who.ENVIRONMENT
        phase = self._failed_phase or max(self.phases, key=lambda run_phase: run_phase.started_at, default=None)
        return _BY_PHASE.get(phase.name, Who.AGENT) if phase is not None else Who.AGENT

    @cached_property
    def _rewards(self) -> dict[str, Any]:
        return child(child(self._record, "verifier_result"), "rewards")

    @cached_property
    def _not_graded(self) -> Evidence | None:
        """Why the verifier did not grade; None if it did, or if nothing says that it did not."""
        from tracetui.formats.grading import counts_no_test, why_no_test_ran

        if not self._has_ended or any(number(value) != 0 for value in self._rewards.values()):
            return None
        error = self._error
        if error is not None and self._culprit in (Who.GRADER, Who.ENVIRONMENT) and not self.criteria:
            message = ": ".join(filter(None, (error.type, error.message)))
            return Evidence(message[:EVIDENCE_LIMIT], f"{RESULT} {_EXCEPTION}", self._culprit, type=error.type)
        if self.criteria:
            return None
        reasons = (why_no_test_ran(self.logs[place], place) for place in self._verifier_logs)
        reason = next(filter(None, reasons), None)
        if reason is None and counts_no_test(self.checks):
            return Evidence("0 tests", f"{self._in_step}{CHECKS} results.summary.tests", Who.GRADER)
        return reason

    @property
    def _in_step(self) -> str:
        return in_step(self.step)

    @property
    def _verifier_logs(self) -> list[str]:
        return [place for name in VERIFIER_LOGS if (place := self._in_step + name) in self.logs]

    @cached_property
    def _first_failed(self) -> Evidence | None:
        """The first check that failed."""
        from tracetui.formats.grading import first_failed_check, first_failure

        evidence = first_failed_check(self.checks, self._in_step + CHECKS)
        logs = () if evidence is not None else self._verifier_logs
        return evidence or next(filter(None, (first_failure(self.logs[place], place) for place in logs)), None)

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The rewards of the verifier; those that did not pass give the failed checks as the reason."""
        rewards, scores, missing = self._rewards, list[Score](), self._not_graded
        if missing is not None and not rewards:
            return (Score.ungraded(HEADLINE, missing),)
        where = f"{RESULT} {'verifier_result' if self.step is None else f'step_results[{self.step}]'}.rewards"
        for name, recorded in rewards.items():
            value = recorded if isinstance(recorded, bool | str) else number(recorded)
            if value is None:
                continue
            if missing is not None:
                source = f"{where}.{name}"[: 2 * PREVIEW]
                scores.append(Score.ungraded(name[:PREVIEW], missing, value=value, source=source))
                continue
            passed = value if isinstance(value, bool) else _PASSED.get(value)
            scores.append(
                Score(
                    name=name[:PREVIEW],
                    value=value[:PREVIEW] if isinstance(value, str) else value,
                    passed=passed,
                    source=f"{where}.{name}"[: 2 * PREVIEW],
                    rule="" if isinstance(value, bool) else _RULE,
                    reason="" if passed else self._reason,
                    evidence=self._first_failed if passed is False else None,
                )
            )
        return tuple(scores)

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """The checks of the verifier."""
        tests = sequence(child(self.checks, "results").get("tests"))
        return tuple(
            Criterion(name, _MET.get(str(test.get("status"))), _evidence(test))
            for test in map(mapping, tests)
            if (name := text(test.get("name")))
        )

    @cached_property
    def _failed_checks(self) -> list[Criterion]:
        return [check for check in self.criteria if check.met is False]

    @cached_property
    def _checks_phrase(self) -> str:
        failed = len(self._failed_checks)
        return f"{failed} of {len(self.criteria)} checks failed" if failed else ""

    @cached_property
    def _reason(self) -> str:
        if not self._failed_checks:
            return ""
        checks = (f"{check.text}: {check.evidence}" if check.evidence else check.text for check in self._failed_checks)
        return f"{self._checks_phrase}: {'; '.join(checks)}"[:REASON_LIMIT]

    @cached_property
    def _evaluation(self) -> str:
        """The rewards and the checks that failed, in one phrase."""
        rewards = (f"{score.name} {score.value:g}" for score in self.scores if isinstance(score.value, float))
        return " · ".join(filter(None, (*rewards, self._checks_phrase)))[:PREVIEW]

    @cached_property
    def _phrase(self) -> str:
        """The result in one phrase: the exception, then the evaluation."""
        ended = None if self._error is None else self._error.type
        return " · ".join(filter(None, (ended, self._evaluation)))[:PREVIEW]

    # ---- when it was

    @cached_property
    def _times(self) -> tuple[float | None, float | None]:
        """Start and duration; None where the trial does not record both ends."""
        start, end = moment(self._record.get("started_at")), moment(self._record.get("finished_at"))
        if self.step is not None:
            start = moment(child(self._record, "agent_execution").get("started_at"))
            ends = (moment(child(self._record, name).get("finished_at")) for name in ("agent_execution", "verifier"))
            end = max((time for time in ends if time is not None), default=None)
        duration = between(start, end)
        return (None, None) if duration is None else (start, duration)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that have begun, then the steps; none where the trial does not record its own times."""
        if self._times[0] is None:
            return ()
        phases = (self._phase(name) for name in _PHASES)
        steps = self.steps if self.step is None else ()
        return tuple(
            filter(None, (*phases, *(_step_phase(number, step_result) for number, step_result in enumerate(steps, 1))))
        )

    def _phase(self, name: str) -> Phase | None:
        times, field = child(self._record, name), _DETAILS.get(name)
        start = moment(times.get("started_at"))
        if start is None:
            return None
        record = {**times, **({field: self._record[field]} if field is not None and field in self._record else {})}
        if name == "verifier" and self.checks is not None:
            record[CHECKS] = self.checks
        return Phase(name, start, between(start, moment(times.get("finished_at"))), record)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The phases as spans."""
        return tuple(map(self._span, self.phases))

    def _span(self, phase: Phase) -> Span:
        failure = self._error if phase is self._failed_phase else _error_in(phase.record)
        status = Status.UNKNOWN if phase.duration_ms is None else Status.OK
        return Span(
            id=phase.id,
            name=_title(phase.name),
            status=status if failure is None else _status_of(failure),
            status_source=StatusSource.DERIVED if failure is None else StatusSource.EXPLICIT,
            started_at=phase.started_at,
            duration_ms=phase.duration_ms,
            error=failure,
            preview=self._evaluation if phase.name == "verifier" else "",
            at=PhaseRef(phase.name),
        )

    def phase_body(self, at: PhaseRef) -> Body:
        """The body of a phase. Raises `FormatError` if the trial has no such phase any more."""
        phase = next((begun_phase for begun_phase in self.phases if begun_phase.name == at.name), None)
        if phase is None:
            raise changed()
        traceback = text(self._exception.get("exception_traceback")) if phase is self._failed_phase else None
        return Body(attributes=phase.record, raw=rendered(phase.record), traceback=traceback)

    # ---- the run

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """What the trial decides, by the names that `Header` and `RunSummary` share."""
        facts: dict[str, Any] = {"result": self._phrase, "excused": self._culprit in (Who.GRADER, Who.ENVIRONMENT)}
        if self._error is not None:
            status = _status_of(self._error)
            facts |= {"status": status, "status_word": self._error.type, "status_source": StatusSource.EXPLICIT}
        elif self._has_ended:
            facts |= {"status": Status.OK, "status_word": None, "status_source": StatusSource.EXPLICIT}
        if self._times[0] is not None:
            facts |= {"started_at": self._times[0], "duration_ms": self._times[1], "time_zone": "UTC"}
        if (trial := word(self.result.get("trial_name"))) is not None:
            facts["trial"] = trial[:PREVIEW]
        if (task := self._task) is not None:
            facts |= {"task": task, "repeats": task_key("harbor", task)}
        if self.step is not None:
            facts["parent"] = self.id
        return facts

    @cached_property
    def _task(self) -> str | None:
        """Name of the task, with the version by its checksum: another version is another task."""
        name, checksum = text(self.result.get("task_name")), text(self.result.get("task_checksum"))
        if name is None:
            return None
        task = name[:PREVIEW] if checksum is None else f"{name[:PREVIEW]}@{checksum[:_CHECKSUM]}"
        return task if self.step is None else f"{task}/{self.step[:PREVIEW]}"

    @property
    def _name(self) -> str | None:
        """Name of the run: that of its step, else that of its task."""
        name = self.step or text(self.result.get("task_name"))
        return name[:PREVIEW] if name else None

    def _completed(self, run: Header | RunSummary) -> dict[str, Any]:
        """Facts of the trial, and those that the agent log may state itself, which then count: all but the name.

        A printed log without an id is named after its file.
        """
        return self._facts | {
            "id": (self.id if run.id.endswith(".txt") else None) or run.id,
            "name": self._name or run.name,
            "agent": run.agent or word(child(self.result, "agent_info").get("name")),
            "source": run.source or text(self.result.get("source")),
        }

    @cached_property
    def usage(self) -> Usage | None:
        """Usage as the agent reported it to Harbor, that of all steps; cached input is part of the input."""
        records = (self._record,) if self._record.get(_AGENT_RESULT) or self.step is not None else self.steps
        return sum((_usage(child(record, _AGENT_RESULT)) for record in records), start=Usage()) or None

    def header(self, header: Header) -> Header:
        """The header of the agent log, completed."""
        error = self._first_error or header.error
        completed = self._completed(header)
        return replace(header, **completed, is_session=False, error=error, scores=self.scores, headline=HEADLINE)

    def summary(self, run: RunSummary) -> RunSummary:
        """The summary of the agent log, completed: equals that of the whole run with `header` and `spans`."""
        error = self._first_error or run.first_error
        completed = run.replace(**self._completed(run), is_session=False, last=None, first_error=error)
        completed = completed.with_scores(self.scores, HEADLINE)
        if not run.deep:
            return completed
        return completed.replace(
            usage=run.usage or self.usage,
            spans=(run.spans or 0) + len(self.spans),
            errors=(run.errors or 0) + sum(span.status is Status.ERROR for span in self.spans),
            problems=run.problems + len(self.notes),
        )

    def body(self, body: RunBody) -> RunBody:
        """The body of the agent log's run, completed."""
        attributes = body.attributes | {RESULT: self.result} | ({} if self.checks is None else {CHECKS: self.checks})
        attributes |= self.logs
        return replace(
            body, criteria=body.criteria or self.criteria, attributes=attributes, error=self._error or body.error
        )

    def problems(self, path: str) -> Iterator[Problem]:
        """What of the trial could not be read, as problems of the run at `path`."""
        return (Problem(path, where, reason) for where, reason in self.notes)

    def opening(self, name: str, size: int) -> Header:
        """The header of a trial without an agent log that can be read."""
        agent = child(self.result, "agent_info")
        configured = child(child(self.result, "config"), "agent")
        called = word(agent.get("name")) or word(configured.get("name"))
        return Header(
            id=self.id or name,
            name=called or name,
            agent=called,
            model=word(child(agent, "model_info").get("name")) or word(configured.get("model_name")),
            ended=self._has_ended,
            tells_calls=False,
            tells_steps=False,
            writer=version(agent.get("version")),
            size=size,
        )


def _step_phase(number: int, record: dict[str, Any]) -> Phase | None:
    """A step of a trial of several steps, from the start of its agent to the end of its verifier."""
    agent, verifier = child(record, "agent_execution"), child(record, "verifier")
    start = moment(agent.get("started_at"))
    if start is None:
        return None
    end = moment(verifier.get("finished_at")) or moment(agent.get("finished_at"))
    return Phase(f"step {number} {text(record.get('step_name')) or ''}"[:PREVIEW], start, between(start, end), record)


def _error_in(record: dict[str, Any]) -> Error | None:
    """The exception that a record holds."""
    exception = child(record, _EXCEPTION)
    if not exception:
        return None
    message = text(exception.get("exception_message")) or ""
    return Error(excerpt(message.strip()), word(exception.get("exception_type")))


def _status_of(error: Error) -> Status:
    return Status.CANCELLED if error.type == _CANCELLED else Status.ERROR


def _usage(used: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=natural(used.get("n_input_tokens")),
        output_tokens=natural(used.get("n_output_tokens")),
        cache_read_tokens=natural(used.get("n_cache_tokens")),
        cost_usd=number(used.get("cost_usd")),
    )


def in_step(step: str | None) -> str:
    """The folder of a step in that of its trial; empty for the trial itself."""
    return "" if step is None else f"steps/{step}/"


def _title(name: str) -> str:
    return name.replace("_", " ")


def _evidence(test: dict[str, Any]) -> str:
    """Why a check failed: its message, and the assertion of a pytest traceback (lines that begin with ``E``)."""
    message = (text(test.get("message")) or "").strip()
    lines = (text(test.get("trace")) or "").split("\n")
    assertion = next((line[1:].strip() for line in lines if line.startswith("E  ")), "")
    return ": ".join(dict.fromkeys(filter(None, (message, assertion))))[:REASON_LIMIT]
