"""What is judged of a program's output to a terminal: sequences, characters, and what it did not put back."""

from __future__ import annotations

import re
from typing import Final

from tests.terminal import Terminal

_MODE: Final = re.compile(rb"\x1b\[\?([\d;]+)([hl])|\x1b\[([<>])\d*u")
_SEQUENCE: Final = re.compile(
    rb"\x1b\[([<-?]*)([0-9;:]*)([ -/]*)([@-~])|\x1b([]PX^_])(.*?)(?:\x07|\x1b\\)|\x1b([ -/]*[0-~])", re.S
)


def leftovers(terminal: Terminal) -> list[str]:
    """What the program changed in the terminal and did not put back."""
    modes, kitty = {"25": True, "7": True}, 0
    for match in _MODE.finditer(terminal.output):
        if match[1]:
            modes |= dict.fromkeys(match[1].decode().split(";"), match[2] == b"h")
        else:
            kitty = kitty + 1 if match[3] == b">" else max(0, kitty - 1)
    changed = [f"mode {name}" for name, on in modes.items() if on != (name in ("25", "7"))]
    if kitty:
        changed.append("kitty keys")
    if terminal.modes != terminal.modes_before:
        changed.append("termios")
    return changed


def sequences(output: bytes) -> set[str]:
    """The kinds of escape sequences in an output: what differs in numbers only is one kind."""
    kinds = set()
    for match in _SEQUENCE.finditer(output):
        if match[4]:
            number = match[2].decode() if match[4] in b"hlnctruq" or match[3] else ""
            kinds.add(f"CSI {match[1].decode()}{match[3].decode()}{match[4].decode()} {number}".strip())
        elif match[5]:
            kinds.add(f"string {match[5].decode()}{match[6][:3].decode('latin-1')}")
        else:
            kinds.add(f"ESC {match[7].decode()}")
    return kinds


def leaked(output: bytes) -> list[str]:
    """Characters in an output, outside of escape sequences, that no terminal should be sent."""
    text = _SEQUENCE.sub(b"", output).decode("utf-8", "surrogateescape")
    unsafe = (
        "[^\t\n\r -~\u00a0-\U000e0fff]|[\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    )
    return sorted({f"U+{ord(character):04X}" for character in re.findall(unsafe, text)})
