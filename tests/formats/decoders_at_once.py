"""Decode and check the same records in four threads at once, 60 times: ``python -m tests.formats.decoders_at_once``.

A program of its own: where msgspec meets a Struct in two threads at the same time, it crashes the process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from tracetui.formats.guard import check_fields
from tracetui.formats.schema import Field, Schema

NAMES = [f"field{number}" for number in range(40)]
VALUE = dict.fromkeys(NAMES, 1)
RECORD = msgspec.json.encode({"one": VALUE, "many": [VALUE], **VALUE})


def structs() -> tuple[Any, Any]:
    """A new Struct, and one that contains it."""
    numbers: Any = [(name, int | None, None) for name in NAMES]
    part: Any = msgspec.defstruct("Part", numbers)
    parts: Any = [("one", part | None, None), ("many", list[part] | None, None)]
    return part, msgspec.defstruct("Record", [*parts, *numbers])


def in_four_threads(work: Callable[[int], object]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def decode_at_once(kind: Any) -> None:
    start = threading.Barrier(4)

    def decode(number: int) -> None:
        schema = Schema[Any](kind)
        start.wait()
        if number == 0:
            schema.strict(RECORD)
        elif number == 1:
            schema.open(RECORD)
        elif number == 2:
            schema.many(b"[%b]" % RECORD)
        else:
            Field[Any](kind).strict(RECORD)

    in_four_threads(decode)


def check_at_once(part: Any, kind: Any) -> None:
    record, start = kind(one=part(**VALUE), many=[part(**VALUE)], **VALUE), threading.Barrier(4)

    def check(number: int) -> None:
        start.wait()
        check_fields(record)

    in_four_threads(check)


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    for _ in range(60):
        decode_at_once(structs()[1])
        check_at_once(*structs())
