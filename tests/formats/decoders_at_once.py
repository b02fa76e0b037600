"""Make decoders of the same records in four threads at once, 60 times: ``python -m tests.formats.decoders_at_once``.

A program of its own: where two threads make them at the same time, msgspec crashes the process.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import msgspec

from tracetui.formats.schema import Field, Schema

NAMES = [f"field{number}" for number in range(40)]
VALUE = dict.fromkeys(NAMES, 1)
RECORD = msgspec.json.encode({"one": VALUE, "many": [VALUE], **VALUE})


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

    threads = [threading.Thread(target=decode, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    for number in range(60):
        numbers: Any = [(name, int | None, None) for name in NAMES]
        part: Any = msgspec.defstruct(f"Part{number}", numbers)
        parts: Any = [("one", part | None, None), ("many", list[part] | None, None)]
        decode_at_once(msgspec.defstruct(f"Record{number}", [*parts, *numbers]))
