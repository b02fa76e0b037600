"""The commands and their options. Completions and the documentation are made from these parsers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final, NoReturn

from tracetui.cli.output import complain
from tracetui.errors import UsageError, nearest

COMMANDS: Final = (
    "ls",
    "show",
    "grep",
    "triage",
    "stats",
    "tasks",
    "gate",
    "diff",
    "export",
    "tail",
    "doctor",
    "formats",
    "demo",
    "completions",
)
"""Names of the modules in this package that are commands."""
_QUERY: Final = ("-q", "--query")
THEMES: Final = ("dark", "light", "high-contrast", "ansi")

EXAMPLES: Final = """\
examples:
  tracetui                              open $PAPRIKA_TRACE_DIR, else ~/.paprika/traces
  tracetui traces/ runs.db              open a folder and a file
  tracetui ls traces/ --json            every run as data
  tracetui show traces/0690.json/3      step 3 of one run
  tracetui show 0690 --json             a run by the beginning of its id
  cat run.jsonl | tracetui show -       a trace from standard input
  tracetui triage traces/               the failed runs by what made them fail
  tracetui tail traces/ --newest        follow the newest run
  tracetui demo                         built-in sample runs
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence with the next step. What `epilog` returns ends its help."""

    def __init__(self, prog: str, description: str, epilog: Callable[[], str | None]) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._epilog = epilog

    def format_help(self) -> str:
        self.epilog = self._epilog()
        return super().format_help()

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """As argparse does it; what was probably meant ends the sentence."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            like = nearest(str(value), [str(choice) for choice in action.choices or ()])
            if like is not None:
                error.message += f" (did you mean {like!r}?)"
            raise

    def error(self, message: str) -> NoReturn:
        complain(UsageError(f"{message}; `{self.prog} --help` shows the usage"))
        raise SystemExit(2)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of the command that `argv` begins with, else of the app; ``run`` is what to call with them."""
    name, argv = _command(argv)
    module = _module(name or "app")
    parser, words = parser_of(name), _queries_joined(_addresses_last(argv))
    args = parser.parse_args(words) if "--" in words else parser.parse_intermixed_args(words)  # which drops the `--`
    args.run = module.run
    return args


def _command(argv: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The command that `argv` names, None for the app, and the other words. Options may precede the command.

    Raises `UsageError` for a word that is neither a command nor a path but much like a command.
    """
    at = _first_word(argv)
    word = argv[at] if at < len(argv) else ""
    if word in COMMANDS and not {"-h", "--help", "--version"} & set(argv[:at]):
        return word, [*argv[:at], *argv[at + 1 :]]
    like = nearest(word, COMMANDS) if word.isidentifier() and not os.path.lexists(word) else None
    if like is not None:
        raise UsageError(f"there is no command and no path {word!r}; did you mean `tracetui {like}`?")
    return None, argv


def _first_word(argv: Sequence[str]) -> int:
    """Where the first word stands that is no option of the app and no value of one."""
    if not argv or not argv[0].startswith("-"):
        return 0
    takes_value = {flag: action.nargs != 0 for action in parser_of(None)._actions for flag in action.option_strings}
    at = 0
    while at < len(argv) and argv[at].partition("=")[0] in takes_value:
        at += 2 if takes_value.get(argv[at]) else 1
    return at


def _addresses_last(argv: Sequence[str]) -> list[str]:
    """Parts of standard input (``-/3``, ``-#RUN``) moved to the end, where they are not taken for options."""
    addresses = [word for word in argv if word.startswith(("-/", "-#"))]
    return [word for word in argv if word not in addresses] + (["--", *addresses] if addresses else [])


def _queries_joined(argv: Sequence[str]) -> list[str]:
    """``-q`` and the word after it as one: a query that begins with ``-`` (``-tag:known``) is no option then."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] in _QUERY and "--" not in words and not word.startswith("--"):
            words[-1] = f"--query={word}"
        else:
            words.append(word)
    return words


def parser_of(name: str | None) -> Parser:
    """The parser of a command; None for the app's own."""
    module = _module(name or "app")
    parser = Parser(
        prog="tracetui" if name is None else f"tracetui {name}",
        description=module.HELP,
        epilog=_commands_help if name is None else lambda: getattr(module, "EXAMPLES", None),
    )
    module.arguments(parser)
    return parser


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Where to look: PATH…, --trace-dir and --format."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders and files with traces; - for standard input")
    add_place(parser)


def add_paths_and_runs(parser: argparse.ArgumentParser) -> None:
    """As `add_paths`; addresses and ids of runs are taken too."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="folders, files, and addresses or ids of runs; - for standard input"
    )
    add_place(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """--trace-dir and --format."""
    parser.add_argument("--trace-dir", metavar="DIR", action="append", default=[], help="the same as PATH")
    parser.add_argument("--format", metavar="NAME", help="read every file as this format (see: tracetui formats)")


def add_redact(parser: argparse.ArgumentParser) -> None:
    """--redact."""
    parser.add_argument(
        "--redact", action="store_true", help="mask secrets also in what is exact without it (--json, --raw)"
    )


def roots(args: argparse.Namespace) -> list[str]:
    """The places to look in: those named, else ``$PAPRIKA_TRACE_DIR``, else ``~/.paprika/traces``.

    Raises `UsageError`, with what else is found on this machine, if none was named and that is not there.
    """
    places = named(args)
    if places:
        return places
    from tracetui.cli.default import default_place, homes, is_there, nowhere

    if not is_there(default_place()):
        raise nowhere(homes())
    return [default_place()]


def named(args: argparse.Namespace) -> list[str]:
    """The places that were named: PATH… and --trace-dir."""
    return [*getattr(args, "paths", ()), *args.trace_dir]


def _module(name: str) -> ModuleType:
    return import_module(f"tracetui.cli.{name}")


def _commands_help() -> str:
    """Names every command, and loads each: only for who asks for help."""
    lines = [f"  {name:<12} {_module(name).HELP}" for name in COMMANDS]
    return "commands (each has its own --help):\n" + "\n".join(lines) + "\n\n" + EXAMPLES + _environment_help()


def _environment_help() -> str:
    """The environment variables, those that the formats know among them."""
    from tracetui.formats.homes import variables

    told = {
        "PAPRIKA_TRACE_DIR": "what is opened where no PATH is named",
        ", ".join(variables()): "where other programs keep their traces, which are offered where that is not there",
        "TRACETUI_PRICES=off": "estimate no cost (estimates need: pip install tracetui[prices])",
        "NO_COLOR": "draw with the terminal's own colours",
    }
    return "\nenvironment:\n" + "\n".join(f"  {name}\n      {words}" for name, words in told.items()) + "\n"
