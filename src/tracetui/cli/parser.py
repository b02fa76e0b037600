"""Parsers of the command line. Completions and docs/cli.md are generated from them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Final, NoReturn

from tracetui.cli.output import complain
from tracetui.errors import UsageError, nearest
from tracetui.model import PassRule
from tracetui.sources.local import LocalSource
from tracetui.sources.locations import CHECKPOINTS, DATABASES, is_remote
from tracetui.store.settings import load_traces

if TYPE_CHECKING:
    from tracetui.formats.programs import Home

COMMANDS: Final = (
    "ls",
    "show",
    "grep",
    "triage",
    "stats",
    "context",
    "tasks",
    "gate",
    "files",
    "audit",
    "blame",
    "diff",
    "export",
    "tail",
    "doctor",
    "cache",
    "formats",
    "serve",
    "mcp",
    "demo",
    "completions",
)
"""The commands: modules of this package."""
_QUERY: Final = ("-q", "--query")

EXAMPLES: Final = """\
examples:
  tracetui                              open $PAPRIKA_TRACE_DIR, else ~/.paprika/traces, else *today*
  tracetui traces/ runs.db              open a directory and a file
  tracetui ls traces/ --json            every run as JSON
  tracetui show traces/0690.json/3      step 3 of one run
  tracetui show 0690 --json             a run by a prefix of its id
  cat run.jsonl | tracetui show -       a trace from standard input
  tracetui triage traces/               failed runs grouped by cause
  tracetui tail traces/ --newest        follow the newest run
  tracetui clickhouse://host:8123/otel  traces that a collector stores in ClickHouse
  tracetui entire://PATH                sessions in the Entire checkpoints of a git repository
  tracetui demo                         built-in sample runs
"""


_USUAL_OPTIONS: Final = {"-o": "--to", "--out": "--to", "--output": "--to", "-f": "--follow"}
"""What other programs call our options."""


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors that name the next step. The result of `epilog` ends its help."""

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
        """As argparse, with a suggestion at the end of the message."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            suggestion = nearest(str(value), [str(choice) for choice in action.choices or ()])
            if suggestion is not None:
                error.message += f" (did you mean {suggestion!r}?)"
            raise

    def error(self, message: str) -> NoReturn:
        _, unrecognized, arguments = message.partition("unrecognized arguments: ")
        option = arguments.split(maxsplit=1)[0].partition("=")[0] if unrecognized else ""
        if option.startswith("-"):
            options = [*self._option_string_actions]
            usual = _USUAL_OPTIONS.get(option)
            suggestion = usual if usual in options else nearest(option, options)
            message = f"no option {option}" + (f"; did you mean {suggestion}?" if suggestion else "")
        complain(UsageError(f"{message}; `{self.prog} --help` shows usage"))
        raise SystemExit(2)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a command, or of the app if `argv` names none; ``args.run(args)`` executes it."""
    name, argv = _command(argv)
    module = _module(name or "app")
    parser, argv = parser_of(name), _queries_joined(_addresses_last(argv))
    args = parser.parse_args(argv) if "--" in argv else parser.parse_intermixed_args(argv)  # which drops the `--`
    args.run = module.run
    return args


def without_passwords(argv: Sequence[str]) -> list[str]:
    """Return the arguments without the passwords in addresses of databases, which the source then finds."""
    if not any(scheme in word for word in argv for scheme in DATABASES):
        return [*argv]
    from tracetui.sources.clickhouse import take_over, take_passwords

    take_over()
    return take_passwords(argv)


def _command(argv: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The command in `argv` (None: the app) and the remaining words. Options may precede the command.

    Raises `UsageError` for a word that looks like a misspelled command and isn't a path.
    """
    at = _first_word(argv)
    word = argv[at] if at < len(argv) else ""
    if word in COMMANDS and not {"-h", "--help", "--version"} & set(argv[:at]):
        return word, [*argv[:at], *argv[at + 1 :]]
    suggestion = nearest(word, COMMANDS) if word.isidentifier() and not os.path.lexists(word) else None
    if suggestion is not None:
        raise UsageError(f"no such command or path: {word!r}; did you mean `tracetui {suggestion}`?")
    return None, argv


def _first_word(argv: Sequence[str]) -> int:
    """Index of the first word that is neither an option of the app nor the value of one."""
    if not argv or not argv[0].startswith("-"):
        return 0
    takes_value = {flag: action.nargs != 0 for action in parser_of(None)._actions for flag in action.option_strings}
    at = 0
    while at < len(argv) and argv[at].partition("=")[0] in takes_value:
        at += 2 if takes_value.get(argv[at]) else 1
    return at


def _addresses_last(argv: Sequence[str]) -> list[str]:
    """Move addresses in standard input (``-/3``, ``-#RUN``) to the end, so argparse doesn't parse them as options."""
    addresses = [word for word in argv if word.startswith(("-/", "-#"))]
    return [word for word in argv if word not in addresses] + (["--", *addresses] if addresses else [])


def _queries_joined(argv: Sequence[str]) -> list[str]:
    """Join ``-q`` and its value: a query that begins with ``-`` (``-tag:known``) isn't an option then."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] in _QUERY and "--" not in joined and not word.startswith("--"):
            joined[-1] = f"--query={word}"
        else:
            joined.append(word)
    return joined


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
    """Add PATH…, --trace-dir and --format."""
    places = "directories and files, also on other machines (host:dir) or in buckets (s3://…); - for standard input"
    parser.add_argument("paths", nargs="*", metavar="PATH", help=places)
    add_place(parser)


def add_paths_and_runs(parser: argparse.ArgumentParser) -> None:
    """As `add_paths`; PATH may also be an address or id of a run."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="directories, files, addresses or ids of runs; - for standard input",
    )
    add_place(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add --trace-dir, --format, --limit and --no-cache."""
    parser.add_argument("--trace-dir", metavar="DIR", action="append", default=[], help="the same as PATH")
    parser.add_argument("--format", metavar="NAME", help="read every file as this format (see: tracetui formats)")
    parser.add_argument(
        "--limit", metavar="N", type=positive_int, help="list the newest N runs of a database (default: 500)"
    )
    add_cache(parser)


def positive_int(text: str) -> int:
    """A number of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add --no-cache."""
    parser.add_argument("--no-cache", action="store_true", help="bypass the cache (see: tracetui cache)")


def add_query(parser: argparse.ArgumentParser) -> None:
    """Add --query."""
    parser.add_argument("-q", "--query", metavar="QUERY", help="only runs that match QUERY, see docs/query.md")


def add_redact(parser: argparse.ArgumentParser) -> None:
    """Add --redact."""
    parser.add_argument("--redact", action="store_true", help="mask secrets in exact output too (--json, --raw)")


def add_pass(parser: argparse.ArgumentParser) -> None:
    """--pass."""
    parser.add_argument(
        "--pass", dest="rule", type=PassRule.parse, metavar="EXPR",
        help="score that makes a run pass: 'reward>=0.9', 'accuracy=C'; other runs with that score fail",
    )  # fmt: skip


def add_documents(parser: argparse.ArgumentParser, description: str) -> None:
    """Add --to and --force; `description`: the help of --to."""
    parser.add_argument("--to", metavar="FILE", action="append", default=[], help=description)
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def roots(args: argparse.Namespace) -> list[str]:
    """The paths to read: those given, else `default_directory`.

    Raises `UsageError`, with the trace directories found on this machine, if none is given and the default is missing.
    """
    places = named(args)
    if places:
        return places
    default = default_directory()
    if not exists(default):
        raise no_path_error(other_directories())
    return [default]


def named(args: argparse.Namespace) -> list[str]:
    """The paths given: PATH… and --trace-dir."""
    return [*getattr(args, "paths", ()), *args.trace_dir]


# ---- the default directory

VARIABLE: Final = "PAPRIKA_TRACE_DIR"


def default_directory() -> str:
    """The setting ``traces``, else ``$PAPRIKA_TRACE_DIR``, else ``~/.paprika/traces``, whether or not it exists."""
    return chosen_directory() or os.path.join(os.path.expanduser("~"), ".paprika", "traces")


def chosen_directory() -> str | None:
    """The default directory that the user chose: a setting or a variable; None if neither is set."""
    return load_traces() or os.environ.get(VARIABLE) or None


def default_label() -> str:
    """The default directory as messages name it."""
    if chosen := load_traces():
        return f"the setting `traces` ({chosen})"
    return f"${VARIABLE} ({os.environ[VARIABLE]})" if os.environ.get(VARIABLE) else "~/.paprika/traces"


def exists(path: str) -> bool:
    """Whether a path exists; one on another machine or in a database is assumed to, and checkpoints are."""
    return path.startswith(CHECKPOINTS) or is_remote(path) or os.path.exists(path)


def other_directories() -> list[Home]:
    """The trace directories of other programs found on this machine."""
    from tracetui.formats.programs import homes  # loads every format, plug-ins included

    return homes(LocalSource(), os.environ, PurePath(os.path.expanduser("~")))


def no_path_error(others: Sequence[Home]) -> UsageError:
    """The error for a missing PATH argument and default directory; it lists the `others` that exist."""
    problem = f"no path given, and {default_label()} doesn't exist; "
    if not others:
        return UsageError(f"{problem}`tracetui --help` shows examples, `tracetui demo` opens samples")
    listed = "".join(f"\n  {home.path}  ({home.title}, {home.counted})" for home in others)
    return UsageError(f"{problem}found on this machine:{listed}")


# ---- help


def _module(name: str) -> ModuleType:
    return import_module(f"tracetui.cli.{name}")


def _commands_help() -> str:
    """The list of commands. Loads every command module, so only --help calls it."""
    lines = [f"  {name:<12} {_module(name).HELP}" for name in COMMANDS]
    return "commands (each has its own --help):\n" + "\n".join(lines) + "\n\n" + EXAMPLES + _environment_help()


def _environment_help() -> str:
    """The environment variables, as help shows them."""
    lines = (f"  {name}\n      {text}" for name, text in environment_variables().items())
    return "\nenvironment:\n" + "\n".join(lines) + "\n"


def environment_variables() -> dict[str, str]:
    """The environment variables with their meaning, including those of the formats."""
    from tracetui.formats.programs import variables

    return {
        "PAPRIKA_TRACE_DIR": "directory to open when no PATH is given",
        ", ".join(variables()): "trace directories of other programs, offered when there is no default directory",
        "TRACETUI_WITHIN": "directories and files to read, separated by colons; nothing else is opened",
        "TRACETUI_PRICES=off": "disable cost estimates (they need: pip install tracetui[prices])",
        "CLICKHOUSE_USER, CLICKHOUSE_PASSWORD, NETRC": "login of clickhouse:// addresses, see docs/stores.md",
        "NO_COLOR": "use the terminal's own colors",
    }
