"""The man page, written from the parsers as docs/cli.md is."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from typing import Final

EXIT_STATUS: Final = {
    "0": "success",
    "1": "nothing readable; with --fail-on also: a file or format could not be read",
    "2": "wrong usage",
    "3": "a run meets a condition of --fail-on",
}
FILES: Final = {
    "~/.config/tracetui/config.toml": "settings",
    "~/.local/state/tracetui/verdicts.jsonl": "verdicts, notes, tags and marks",
    "~/.local/state/tracetui/list.json": "arrangement of the list",
    "~/.cache/tracetui/runs.sqlite": "cache of runs",
}


def man_page() -> str:
    """``tracetui(1)``, in the man macros that groff and mandoc read."""
    import tracetui
    from tracetui.cli.parser import COMMANDS, EXAMPLES, environment_variables, parser_of

    app = parser_of(None)
    lines = [
        r".\" Written by `python3 dev.py docs` from the parsers; don't edit.",
        f'.TH TRACETUI 1 "" "tracetui {tracetui.__version__}" "User Commands"',
        ".SH NAME",
        rf"tracetui \- {_text((app.description or '').partition(':')[0])}",
        ".SH SYNOPSIS",
        *_usage(app),
        ".br",
        r".B tracetui \fICOMMAND\fR [\fIOPTION\fR ...] [\fIPATH\fR ...]",
        ".SH DESCRIPTION",
        _text(app.description or ""),
        ".SH OPTIONS",
        *_arguments(app),
        ".SH COMMANDS",
    ]
    for name in COMMANDS:
        parser = parser_of(name)
        lines += [f".SS {_text(name)}", _text(parser.description or ""), ".PP", *_usage(parser), *_arguments(parser)]
        lines += _epilog(parser)
    lines += [".SH ENVIRONMENT", *_definitions(environment_variables().items())]
    lines += [".SH FILES", *_definitions(FILES.items())]
    lines += [".SH EXIT STATUS", *_definitions(EXIT_STATUS.items())]
    lines += [".SH EXAMPLES", *_preformatted(EXAMPLES.splitlines()[1:])]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """`text` as roff prints it literally, on one line."""
    escaped = (
        " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("^", r"\(ha")
    )
    return re.sub(r"^[.']", r"\\&\g<0>", escaped.replace("`", r"\(ga").replace("~", r"\(ti"))


def _usage(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The synopsis of a command: its name in bold, the rest as argparse writes it."""
    words = parser.format_usage().split()[1:]
    name = parser.prog.split()
    yield rf".B {_text(parser.prog)} \fR{_text(' '.join(words[len(name) :]))}"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every argument that the help shows, but ``--help``."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS and action.dest != "help":
            text = formatter._expand_help(action) if action.help else ""
            yield from _definitions([(formatter._format_action_invocation(action), text)])


def _definitions(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Terms in bold with their explanations."""
    for term, text in pairs:
        yield from (".TP", f".B {_text(term)}", _text(text) or r"\&")


def _epilog(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Notes as paragraphs, examples as they are."""
    parser.format_help()  # sets the epilog
    for block in (parser.epilog or "").rstrip().split("\n\n"):
        if block.startswith("examples:"):
            yield from (".PP", "Examples:", *_preformatted(block.splitlines()[1:]))
        elif block:
            yield from (".PP", _text(block))


def _preformatted(lines: Iterable[str]) -> Iterator[str]:
    """Lines that keep their spaces."""
    yield ".nf"
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        yield indent + r"\ ".join(_text(part) if part else "" for part in line.strip().split(" "))
    yield ".fi"
