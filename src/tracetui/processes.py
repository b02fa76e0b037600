"""Starting other processes, which never run code that lies in the current folder, and end with this one."""

from __future__ import annotations

import os
import sys
from typing import Final

PARENT: Final = "TRACETUI_PARENT"
"""Environment variable: id of the process that the started one ends with (`end_with_parent`)."""
_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def own_command(module: str = "tracetui") -> list[str]:
    """Return the command that runs a module with this Python.

    Without ``-P``, ``-m`` looks for modules in the current folder first. ``-I`` would do more than is wanted: packages
    of the user and `PYTHONPATH` are theirs to choose.
    """
    inherited = ["-I"] if sys.flags.isolated else ["-P"]
    return [sys.executable, *inherited, "-m", module]


def program_path(name: str) -> str | None:
    """Return the absolute path of a program on `PATH`; None if there is none.

    Empty and relative entries of `PATH` don't count: they mean the current folder, which may hold traces. A `name`
    with a slash is a path already.
    """
    if os.sep in name:
        return name
    import shutil  # most commands start no program

    folders = [folder for folder in os.get_exec_path() if os.path.isabs(folder)]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


def with_parent(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process that is to end with this one."""
    return {**environment, PARENT: str(os.getpid())}


def end_with_parent() -> None:
    """Let this process be killed when the one named by `PARENT` ends, even by a signal or while this one is stopped.

    Does nothing without that variable, and where the system isn't Linux.
    """
    parent = os.environ.pop(PARENT, None)
    if parent is None or sys.platform != "linux":
        return
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if str(os.getppid()) != parent:  # it ended before
        os._exit(1)
