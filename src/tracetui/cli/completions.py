"""``tracetui completions``: words for the shell's tab key, made from the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tracetui.cli.output import write_lines
from tracetui.text import Clean

HELP = "print completions for a shell"
SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
examples:
  tracetui completions bash > ~/.local/share/bash-completion/completions/tracetui
  tracetui completions zsh > ~/.zfunc/_tracetui
  tracetui completions fish > ~/.config/fish/completions/tracetui.fish
"""

_BASH = """\
# completions of tracetui for bash; made by: tracetui completions bash
_tracetui() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words
  case ${{COMP_WORDS[1]}} in
{cases}
    *) words='{top}' ;;
  esac
  [[ $COMP_CWORD -gt 1 || $current == -* ]] || words+=' {commands}'
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
}}
complete -o filenames -F _tracetui tracetui
"""
_ZSH = """\
#compdef tracetui
# completions of tracetui for zsh; made by: tracetui completions zsh
local -a options
case $words[2] in
{cases}
  *) options=({top}) ;;
esac
(( CURRENT > 2 )) || compadd -- {commands}
compadd -- $options
_files
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``completions``."""
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print the completions."""
    made = {"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]
    write_lines(map(Clean, made()))
    return 0


def _actions(name: str | None) -> Iterator[tuple[list[str], list[str], str]]:
    """Flags, choices and help of every option and positional of a command."""
    from tracetui.cli.parser import parser_of

    for action in parser_of(name)._actions:
        yield list(action.option_strings), [str(choice) for choice in action.choices or ()], action.help or ""


def _words(name: str | None) -> str:
    """Every option of a command, and what its positionals may be."""
    words = [word for flags, choices, _ in _actions(name) for word in (flags or choices)]
    return " ".join(words)


def _bash() -> Iterator[str]:
    from tracetui.cli.parser import COMMANDS

    cases = "\n".join(f"    {name}) words='{_words(name)}' ;;" for name in COMMANDS)
    yield _BASH.format(cases=cases, top=_words(None), commands=" ".join(COMMANDS)).removesuffix("\n")


def _zsh() -> Iterator[str]:
    from tracetui.cli.parser import COMMANDS

    cases = "\n".join(f"  {name}) options=({_words(name)}) ;;" for name in COMMANDS)
    yield _ZSH.format(cases=cases, top=_words(None), commands=" ".join(COMMANDS)).removesuffix("\n")


def _fish() -> Iterator[str]:
    from tracetui.cli.parser import COMMANDS, _module

    yield "# completions of tracetui for fish; made by: tracetui completions fish"
    for name in COMMANDS:
        yield f"complete -c tracetui -n __fish_use_subcommand -a {name} -d {_quoted(_module(name).HELP)}"
    for command in (None, *COMMANDS):
        when = "__fish_use_subcommand" if command is None else f"'__fish_seen_subcommand_from {command}'"
        for flags, choices, words in _actions(command):
            long = [f"-l {flag[2:]}" for flag in flags if flag.startswith("--")]
            short = [f"-s {flag[1:]}" for flag in flags if not flag.startswith("--")]
            values = [f"-x -a {_quoted(' '.join(choices))}" if flags else f"-a {_quoted(' '.join(choices))}"]
            parts = [*short, *long, *(values if choices else [])]
            if parts:
                yield " ".join(["complete -c tracetui -n", when, *parts, "-d", _quoted(words)])


def _quoted(words: str) -> str:
    return "'" + words.replace("'", "\\'") + "'"
