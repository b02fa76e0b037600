"""JUnit XML, as CI servers read it: one suite of test cases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree as Xml

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Suite:
    """A test suite that is being composed. Characters that XML can't hold become U+FFFD."""

    def __init__(self, name: str, properties: Iterable[tuple[str, str]] = ()) -> None:
        """`name` is that of the suite; with a dot for each space it is the class of its cases."""
        self._name = name
        self._counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        self._children: list[Xml.Element] = []
        if pairs := [*properties]:
            parent = Xml.Element("properties")
            for key, value in pairs:
                Xml.SubElement(parent, "property", {"name": key, "value": _valid(value)})
            self._children.append(parent)

    def passed(self, name: str, lines: Iterable[str] = (), *, seconds: float | None = None) -> None:
        """Add a case that passed, with output."""
        case = self._case(name, seconds)
        if text := "\n".join(lines):
            Xml.SubElement(case, "system-out").text = _valid(text)

    def failed(self, name: str, kind: str, message: str, lines: Iterable[str], *, seconds: float | None = None) -> None:
        """Add a case that failed: the type of the failure, its message and its text."""
        self._counts["failures"] += 1
        attributes = {"type": kind, "message": _valid(message)}
        Xml.SubElement(self._case(name, seconds), "failure", attributes).text = _valid("\n".join(lines))

    def skipped(self, name: str, message: str) -> None:
        """Add a case that was skipped."""
        self._counts["skipped"] += 1
        Xml.SubElement(self._case(name), "skipped", {"message": _valid(message)})

    def document(self, lines: Iterable[str]) -> bytes:
        """Return the document; `lines` are the output of the suite."""
        attributes = {"name": self._name, **{key: str(number) for key, number in self._counts.items()}}
        root = Xml.Element("testsuites", attributes)
        suite = Xml.SubElement(root, "testsuite", attributes)
        suite.extend(self._children)
        Xml.SubElement(suite, "system-out").text = _valid("\n".join(lines))
        Xml.indent(root)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, "unicode")}\n'.encode()

    def _case(self, name: str, seconds: float | None = None) -> Xml.Element:
        self._counts["tests"] += 1
        time = {} if seconds is None else {"time": f"{seconds:.3f}"}
        attributes = {"classname": self._name.replace(" ", "."), "name": _valid(name), **time}
        self._children.append(Xml.Element("testcase", attributes))
        return self._children[-1]


def _valid(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
