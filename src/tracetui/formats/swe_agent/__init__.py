"""Trajectories of SWE-agent (``.traj``) and mini-swe-agent (``.traj.json``): one JSON document a run.

Both programs write the whole document again after each step. `tracetui.formats.swe_agent.run` has the sources.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import top_names
from tracetui.formats.document import DocumentReader, summary
from tracetui.formats.swe_agent.run import Reading, Trace, body_of, header_of, run_body
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
_LASTS: Final = ("last_mini_run.traj.json", "last_single_run.traj.json", "last_swebench_single_run.traj.json")
_MINI: Final = re.compile(rb'[^\\]"(?:mini-swe-agent-1|mini_version"|minisweagent\.)')
_PROMPTS: Final = re.compile(rb"```mswea_bash_command|(?:COMPLETE_TASK_AND_SUBMIT|MINI_SWE_AGENT)_FINAL_OUTPUT")
"""Text of mini-swe-agent's own prompts."""
_OWN: Final = frozenset(
    b"attempts environment history info instance_id messages replay_config trajectory trajectory_format".split()
)


class SweAgent:
    """The format; see `tracetui.formats.base.Format`."""

    name = "swe-agent"
    title = "SWE-agent trajectory"
    home_variables = ("MSWEA_GLOBAL_CONFIG_DIR", "XDG_CONFIG_HOME")

    def sniff(self, file: File) -> int:
        head = file.head
        if head.lstrip()[:1] == b"[":
            return LIKELY if b'"role"' in head and _PROMPTS.search(head) else NO
        names = _OWN.intersection(all_names := frozenset(top_names(head)))
        if b"trajectory" in names:
            return _score(head, b'"action"', b'"observation"', b'"response"', b'"thought"')
        if names & {b"messages", b"info"} and _MINI.search(head):
            return CERTAIN
        if len(names) < len(all_names):
            return NO
        if b"history" in names:
            return _score(head, b'"role"', b'"agent"', b'"action"', b'"thought"')
        is_begun = b"info" in names and b'"instance_cost"' in head
        return LIKELY if is_begun or (b"messages" in names and _PROMPTS.search(head)) else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        data = file.read_all()
        chunk = _read(file, data) if deep else Chunk(header=header_of(Trace(data, file.path), file, len(data)))
        yield summary(RunRef(self.name, file.path), file, chunk, deep=deep)

    def open(self, file: File, ref: RunRef) -> Reader:
        return DocumentReader(_read)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From data of the reader; `raw` has the exact bytes, or a rendering if the file is not strict JSON."""
        return body_of(span.at)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        """The last runs of mini-swe-agent, in its configuration; other runs are where the user wants them."""
        usual = home / ("Library/Application Support" if sys.platform == "darwin" else ".config")
        usual = PurePath(environ.get("XDG_CONFIG_HOME") or usual)
        folder = PurePath(environ.get("MSWEA_GLOBAL_CONFIG_DIR") or usual / "mini-swe-agent")
        return [folder / name for name in _LASTS]


def _score(head: bytes, *fields: bytes) -> int:
    """How surely records with those fields are meant, of which the head may hold only the first."""
    present = sum(name in head for name in fields)
    return CERTAIN if present == len(fields) else LIKELY if present > 1 and len(head) >= HEAD_SIZE else NO


def _read(file: File, data: bytes) -> Chunk:
    """The whole run."""
    trace = Trace(data, file.path)
    reading = Reading(trace)
    header, body = header_of(trace, file, len(data)), run_body(trace, reading)
    return Chunk(spans=reading.spans, header=header, body=body, problems=trace.outline.problems)
