"""Finds the lines of an output that state an error.

Whatever prints an error puts the same kinds of lines around its statement: progress before it, margins, excerpts of the
source, stacks, data of the call and advice after it. They are known by their form, not by who prints them.
"""

from __future__ import annotations

import re
from typing import Final

_MARGIN: Final = re.compile(r"^[│╷╵╭╰]─?[ \t]?", re.MULTILINE)
_ASIDE: Final = re.compile(
    r"^\s*(?:at (?!line )\S.*|from \S+:\d+:in .*|#\d+ .*|\.\.\. \d+ more|>? *\d* *\|(?:\s.*)?|--> .*|[-=_*~^ ]{4,}|>>> .*)$\n?",
    re.MULTILINE,
)
"""A frame of a stack, an excerpt of the source, or a rule."""
_STATES: Final = re.compile(r"^(?:fatal|error|FATAL ERROR|ERROR|Error|E|\[ERROR\]|npm ERR!|[a-z][\w-]*: \(\d+\))(?:\[\w+\])?:? \S", re.MULTILINE)
_STATED: Final = re.compile(r"(?i:error|exception|fail|reject|fatal|panic|denied|invalid|cannot|not |no |exit)|: ")
_DETAIL: Final = re.compile(r"\s|[A-Z_]\w*(?: \w+)?: ?|\*{3}|`")
_DATUM: Final = re.compile(r"\n\s+[\w ]+: [^\n]*")
_TOOL: Final = re.compile(r"[\w./-]+: ")
_SENTENCE: Final = 4
"""Words of a line that says what is wrong."""


def without_progress(text: str) -> str:
    """The text from the first line that states an error, without margins; all of it where the first line may."""
    if _MARGIN.match(text):
        text = _MARGIN.sub("", text).strip()
    states = _STATES.search(text)
    if states is None or _STATED.search(_ASIDE.sub("", text[: states.start()])):
        return text
    return text[states.start() :]


def statement(text: str) -> str:
    """The first statement, without what is indented below it, what repeats its tool, and paragraphs after it."""
    first, *rest = (_ASIDE.sub("", text).strip() or text).split("\n")
    if first.rstrip().endswith(":"):
        return " ".join([first, *sorted(set(map(str.strip, rest)))])
    if not rest or first.rstrip().endswith((",", "(", "[", "{")):
        return " ".join([first, *rest])
    if len(first.split()) < _SENTENCE:
        return _DATUM.sub("", "\n".join([first, *rest]))
    tool = _TOOL.match(first)
    lines = [first]
    for line in rest:
        if not line.strip() or _DETAIL.match(line) or (tool and line.startswith(tool[0])):
            break
        lines.append(line)
    return "\n".join(lines)
