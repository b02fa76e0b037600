"""What processes use, and functions that run in a process of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

_CALL: Final = """
import importlib, json, sys, time
from tests.bench.process import memory
function = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
wall, cpu = time.perf_counter(), time.process_time()
result = function(*sys.argv[3:])
print(json.dumps([result, time.perf_counter() - wall, time.process_time() - cpu, memory(peak=True)]))
"""


class Took(NamedTuple):
    """The result of a function, seconds, seconds of CPU time, and the most memory (MB) that its process held."""

    result: Any
    seconds: float
    cpu: float
    peak: float


def in_own_process(function: Callable[..., Any], *arguments: object) -> Took:
    """Call a module's function with strings in a fresh process; its result is one that JSON can hold."""
    command = [sys.executable, "-c", _CALL, function.__module__, function.__name__, *map(str, arguments)]
    return Took(*json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout))


def memory(pid: int | str = "self", *, peak: bool = False) -> float:
    """Memory (MB) that a process holds, or the most that it ever held; 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    match = re.search(rf"{'VmHWM' if peak else 'VmRSS'}:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(match[1]) / 1024 if match else 0.0


class Usage:
    """The processor time of a process since this was made, as /proc tells."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._began, self._cpu_before = time.perf_counter(), self._cpu()

    @property
    def cpu(self) -> float:
        """Seconds of CPU time."""
        return self._cpu() - self._cpu_before

    @property
    def cores(self) -> float:
        """Cores that were kept busy."""
        return self.cpu / (time.perf_counter() - self._began)

    def _cpu(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
