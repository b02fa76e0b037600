"""What is asked of many runs at once, and the answers as they come."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import msgspec

from tracetui.sources.base import Source


class Step(NamedTuple):
    """A little of a job: what it brought."""

    new: tuple[Any, ...] = ()
    """What was found, to be added to what was found before."""
    done: int = 0
    """How many files or runs it finished."""
    more: bool = False
    """There is more to find than anybody wants; the job ends here."""


class Job(msgspec.Struct, frozen=True, eq=False):
    """Something that reads many runs. Each is another, though it asks the same."""

    name: str
    """``grep``, ``statistics`` or ``contrast``."""
    total: int
    """Files or runs that it is to read."""
    work: Callable[[Source], Generator[Step, None, None]]
    """Does it, a little at a time. Closing the generator ends it."""
    result: Callable[[], Any] | None = None
    """What is known so far as a whole, where that is not what was found one by one."""


class Survey(msgspec.Struct, frozen=True):
    """How far a job is."""

    job: Job
    new: tuple[Any, ...] = ()
    """What was found since the mailbox was last emptied: hits, problems."""
    result: Any = None
    """The newest whole answer of a job that has one."""
    done: int = 0
    total: int = 0
    finished: bool = False
    more: bool = False
    """It ended early: more was found than anybody wants."""
    lost: str = ""
    """It ended early: why the source could not be reached."""

    def and_then(self, step: Step) -> Survey:
        """This, and one step more."""
        return msgspec.structs.replace(self, new=self.new + step.new, done=self.done + step.done, more=step.more)

    def after(self, before: Survey | None) -> Survey:
        """This, with what nobody has taken yet of the same job."""
        if before is None or before.job is not self.job:
            return self
        return msgspec.structs.replace(self, new=before.new + self.new)
