"""What is known of files on another machine: their stats, and bytes that need not be sent again.

SFTP tells size and modification time (whole seconds), neither inode nor ctime. So:

* **Stat.** Device and inode are 0. `ctime_ns` is 0 while the second of the modification time may still go on, because
  then a later change may leave the stat as it is, and `mtime` plus one second when that is certainly over: the file
  was seen unchanged for `SETTLED_SECONDS`, or is so old that no clock is so wrong. Who watches a folder sees this one
  more change, and reads again what may have been read too early.
* **Same stat.** What was read once comes from memory.
* **It grew.** It is taken for a log that was appended to if `PROBE` bytes before its old end, and `PROBE` bytes of its
  head (others each time), are still what they were; then its head and its old end are kept, and the rest is read when
  it is asked for. A document that was written anew fails this: where it ended, it now goes on. What a format hashes to
  know a file again may come from what is kept; a rewrite that spares all the probed bytes shows some growths later.
* **Anything else changed.** All of it is forgotten; so is, when its second is over, what was read before. A file that
  was seen to grow like a log is spared that, and the change of `ctime_ns`: reading all of it again would cost too much.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from threading import Lock
from typing import Final

import msgspec

from tracetui.sources.base import HEAD_SIZE, MOVING_SECONDS, Stat

LIMIT: Final = 32 << 20
"""Bytes kept of all files together."""
SETTLED_SECONDS: Final = 2.0
CLOCKS_APART: Final = 3600.0
"""Seconds by which the clock of the other machine may be wrong without harm."""
PROBE: Final = 512
EDGE: Final = HEAD_SIZE
"""Bytes kept of the head and of the old end of a file that grew."""
_SECOND: Final = 1_000_000_000
Span = tuple[int, int]
"""Offset and size."""


class Doubt(msgspec.Struct, frozen=True):
    """What must be read again before anything that is kept of a file may be used; answered with `Recall.settle`."""

    head: Span
    tail: Span


class _Known:
    """One file."""

    __slots__ = ("asked", "changed", "doubt", "is_log", "over", "pieces", "probed", "seen", "starts", "stat")

    def __init__(self, stat: Stat, now: float) -> None:
        self.stat = stat
        self.seen = now
        """When it was first seen in this state."""
        self.asked = 0.0
        """When what is known was asked for."""
        self.changed: float | None = None
        """When it was last seen to have changed."""
        self.is_log = False
        self.over = False
        """What was read before the second of its time was over has been forgotten."""
        self.doubt: Doubt | None = None
        self.probed = 0
        self.starts: list[int] = []
        self.pieces: dict[int, bytes] = {}

    def forget(self) -> int:
        freed = sum(map(len, self.pieces.values()))
        self.starts, self.pieces, self.doubt = [], {}, None
        return freed

    def kept(self, offset: int, size: int) -> list[tuple[int, bytes]]:
        """What is kept of a range, in order."""
        found = []
        first = max(0, bisect_right(self.starts, offset) - 1)
        for start in self.starts[first : bisect_left(self.starts, offset + size)]:
            data = self.pieces[start][max(0, offset - start) : offset + size - start]
            if data:
                found.append((max(start, offset), data))
        return found

    def put(self, offset: int, data: bytes) -> None:
        if offset not in self.pieces:
            self.starts.insert(bisect_left(self.starts, offset), offset)
        self.pieces[offset] = data


class Recall:
    """Shared by all threads that read from one machine."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._files: dict[str, _Known] = {}
        self._holding: OrderedDict[str, _Known] = OrderedDict()
        """Files of which bytes may be kept, those last that were used last."""
        self._size = 0
        self._ahead = 0.0

    def saw(self, path: str, size: int, mtime: int, *, watched: bool = False, asked: float | None = None) -> Stat:
        """Take in what was told of a file, when that was `asked` for (monotonic; None: just now); its stat as known.

        Only who watches is told that a second is over.
        """
        now = time.monotonic()
        asked = now if asked is None else asked
        stat = Stat(0, 0, size, mtime * _SECOND)
        with self._lock:
            known = self._files.get(path)
            if known is None:
                known = self._files[path] = _Known(self._dated(stat), now)
                known.asked = asked
                return known.stat
            before = known.stat
            if asked < known.asked:  # what was asked for later is known already
                return before
            known.asked = asked
            same = (before.size, before.mtime_ns) == (size, mtime * _SECOND)
            if same:
                if not (before.ctime_ns or known.is_log or known.over) and now - known.seen >= SETTLED_SECONDS:
                    self._size -= known.forget()
                    known.over = True
                if known.over and watched:
                    known.stat = _over(before)
                return known.stat
            known.seen = known.changed = now
            known.over = False
            self._ahead = mtime - time.time()  # it was written since we last looked: this is the time over there
            stat = self._dated(stat)
            self._doubt(known, stat)
            known.stat = stat
            return stat

    def _dated(self, stat: Stat) -> Stat:
        return _over(stat) if time.time() + self._ahead - stat.mtime > CLOCKS_APART else stat

    def _doubt(self, known: _Known, stat: Stat) -> None:
        """What a new stat means for the bytes that are kept."""
        before = known.stat
        grew = stat.size > before.size and stat.mtime_ns >= before.mtime_ns
        if known.doubt is not None or not known.pieces or not grew:
            self._size -= known.forget()
            known.is_log = False
            return
        head = known.kept(0, min(EDGE, before.size))
        tail = known.kept(max(0, before.size - EDGE), min(EDGE, before.size))
        self._size -= known.forget()
        if not (head and tail) or head[0][0] != 0 or tail[-1][0] + len(tail[-1][1]) != before.size:
            known.is_log = False
            return
        for offset, data in (*head, *tail):
            known.put(offset, data)
        self._tidy(known)
        self._size += sum(map(len, known.pieces.values()))
        first = known.probed % max(1, len(head[0][1]))
        size = min(PROBE, len(head[0][1]) - first)
        known.probed = first + size
        last = min(PROBE, before.size)
        known.doubt = Doubt((first, size), (before.size - last, last))

    def _tidy(self, known: _Known) -> None:
        """Cut what two pieces both hold: head and end of a short file are the same bytes."""
        end = 0
        for start in list(known.starts):
            data = known.pieces[start]
            if start < end:
                del known.pieces[start]
                known.starts.remove(start)
                data = data[end - start :]
                start = end
                if not data:
                    continue
                known.put(start, data)
            end = start + len(data)

    def doubt(self, path: str, stat: Stat) -> Doubt | None:
        """What must be read before `kept` gives anything of that version of the file."""
        with self._lock:
            known = self._files.get(path)
            return known.doubt if known is not None and known.stat == stat else None

    def settle(self, path: str, stat: Stat, head: bytes, tail: bytes) -> None:
        """Answer the doubt with the bytes that are there now."""
        with self._lock:
            known = self._files.get(path)
            if known is None or known.stat != stat or known.doubt is None:
                return
            doubt, known.doubt = known.doubt, None
            now = [(doubt.head[0], head), (doubt.tail[0], tail)]
            spans = (doubt.head, doubt.tail)
            known.is_log = all(_joined(known.kept(*span)) == data for span, (_, data) in zip(spans, now, strict=True))
            if not known.is_log:
                self._size -= known.forget()

    def kept(self, path: str, stat: Stat, offset: int, size: int) -> list[tuple[int, bytes]]:
        """What need not be read again of a range, in order: (offset, bytes)."""
        with self._lock:
            known = self._files.get(path)
            if known is None or known.stat != stat or known.doubt is not None:
                return []
            if path in self._holding:
                self._holding.move_to_end(path)
            return known.kept(offset, size)

    def keep(self, path: str, stat: Stat, offset: int, data: bytes) -> None:
        """Keep bytes that were read, if they are still of the version that is known."""
        with self._lock:
            known = self._files.get(path)
            if known is None or known.stat != stat or known.doubt is not None or len(data) * 4 > self._limit:
                return
            if not data or known.kept(offset, len(data)):
                return
            known.put(offset, data)
            self._size += len(data)
            self._holding[path] = known
            self._holding.move_to_end(path)
            while self._size > self._limit:
                _, other = self._holding.popitem(last=False)
                self._size -= other.forget()

    def is_moving(self, path: str, mtime: float) -> bool:
        """True if it changed lately: it was seen to, or its time says so by the clock over there, as far as known."""
        with self._lock:
            known = self._files.get(path)
            if known is not None and known.changed is not None:
                return time.monotonic() - known.changed < MOVING_SECONDS
            return time.time() + self._ahead - mtime < MOVING_SECONDS


def _over(stat: Stat) -> Stat:
    """The stat of a file whose last second is over."""
    return msgspec.structs.replace(stat, ctime_ns=stat.mtime_ns + _SECOND)


def _joined(pieces: list[tuple[int, bytes]]) -> bytes:
    return b"".join(data for _, data in pieces)
