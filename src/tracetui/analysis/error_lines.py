"""Finds the lines of an output that state an error.

Whatever prints an error puts the same kinds of lines around its statement: progress before it, margins, excerpts of the
source, stacks, data of the call and advice after it. They are known by their form, not by who prints them.
"""

from __future__ import annotations

import re
from typing import Final

_MARGIN: Final = re.compile(r"^[│╷╵╭╰]─?[ \t]?", re.MULTILINE)
_ASIDE: Final = re.compile(
    r"^[ \t]*(?:at (?!line )\S.*|from \S+:\d+:in .*|#\d+ .*|\.\.\. \d+ more"
    r"|>? *\d* *\|(?:\s.*)?|--> .*|[-=_*~^ ]{4,}|>>> .*)$\n?",
    re.MULTILINE,
)
"""A frame of a stack, an excerpt of the source, or a rule."""
_STATES: Final = re.compile(
    r"^(?:fatal|error|FATAL ERROR|ERROR|Error|E|\[ERROR\]|npm ERR!|[a-z][\w-]*: \(\d+\)|[A-Z]\w*Error)"
    r"(?:\[\w+\])?:? \S",
    re.MULTILINE,
)
_STATED: Final = re.compile(
    r"(?i:error|exception|fail|reject|traceback|goroutine|fatal|panic|denied|invalid|cannot|not |no |exit)|: "
)
_WARNING: Final = re.compile(
    r"^(?:(?i:warn(?:ing)?)\b|\(node:\d+\)|remote: |hint: |note: |npm (?:warn|WARN)).*\n[ \t]*", re.MULTILINE
)
_DETAIL: Final = re.compile(r"\s|(?!Expected|Received|Actual)[A-Z_]\w*(?: \w+)?: ?|\*{3}|[`']|(?i:error|fatal)\b")
_TOOL: Final = re.compile(r"[\w./-]+: ")
_NAMES: Final = re.compile(r"^(?!expect\().*?(?:['\"`‘“/_=@]|[a-z]\.[a-z]|[a-z][A-Z]|\w-\w+-\w|\b[A-Z][A-Z]+\b)")
"""Of a line that names what is wrong: others are headings."""
_SENTENCE: Final = 4
"""Words of a line that says what is wrong."""


def without_progress(text: str) -> str:
    """The text from the first line that states an error, without margins; all of it where an earlier one may."""
    if _MARGIN.match(text):
        text = _MARGIN.sub("", text).strip()
    while (warning := _WARNING.match(text)) is not None and warning.end() < len(text):
        text = text[warning.end() :]
    states = _STATES.search(text)
    if states is None or _STATED.search(_ASIDE.sub("", text[: states.start()])):
        return text
    return text[states.start() :]


def statement(text: str) -> str:
    """The first statement, without what is indented below it, what repeats its tool, and paragraphs after it.

    A heading that names nothing is stated by what follows. The items of a list stand in any order.
    """
    first, *rest = (_ASIDE.sub("", text).strip() or text).split("\n")
    if first.rstrip().endswith(":"):
        return " ".join([first, *sorted(set(map(str.strip, rest)))])
    if not rest or first.rstrip().endswith((",", "(", "[", "{")):
        return " ".join([first, *rest])
    names = _NAMES.search(first)
    if not names:
        return "\n".join([first, *rest])
    if len(first.split()) < _SENTENCE:
        return "\n".join([first, *rest]).partition("\n\n")[0]
    tool = _TOOL.match(first)
    lines = [first]
    for line in rest:
        if not line.strip() or _DETAIL.match(line) or (tool and line.startswith(tool[0])):
            break
        lines.append(line)
    return "\n".join(lines)
