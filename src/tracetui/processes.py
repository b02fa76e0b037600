"""Starting other processes, which never run code that lies in the current folder, and end with this one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
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


def leave_current_folder() -> None:
    """Take the current folder off the module path, where ``python -m tracetui`` puts it first.

    It stays if tracetui itself lies there, or if the user's `PYTHONPATH` names it.
    """
    if sys.flags.safe_path:
        return
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with suppress(OSError):  # the current folder was removed
        if sys.path[0] == os.getcwd() and not os.path.samefile(sys.path[0], here):
            del sys.path[0]


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
