"""What a ``git`` command does. Facts from the manual pages of git 2.45."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tracetui.analysis.effects.vocabulary import Flag, Kind, names
from tracetui.analysis.effects.words import Arguments

if TYPE_CHECKING:
    from tracetui.analysis.effects.shell import Program

_GLOBAL_VALUES: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_VALUES: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "push": ("o", frozenset({"--push-option", "--repo", "--receive-pack", "--exec"})),
    "clone": ("obcju", frozenset({"--depth", "--branch", "--origin", "--reference", "--config", "--jobs", "--filter"})),
    "fetch": ("jo", frozenset({"--depth", "--deepen", "--shallow-since", "--jobs"})),
    "pull": ("sXj", frozenset({"--depth", "--strategy", "--strategy-option"})),
    "commit": ("mFCct", frozenset({"--message", "--file", "--author", "--date", "--fixup", "--trailer"})),
    "worktree": ("bB", frozenset({"--reason"})),
    "restore": ("s", frozenset({"--source"})),
    "checkout": ("bB", frozenset({"--orphan", "--conflict"})),
    "switch": ("cC", frozenset({"--orphan", "--conflict"})),
    "clean": ("e", frozenset({"--exclude"})),
    "init": ("b", frozenset({"--initial-branch", "--template"})),
    "tag": ("mFu", frozenset({"--message", "--file"})),
    "remote": ("tm", frozenset()),
}
_CHANGES: Final = names(
    "commit add merge rebase cherry-pick revert am apply stash mv rm checkout restore reset switch clean pull tag"
)
"""Commands that change the repository that they work in."""
_RECORDED: Final = names("commit merge rebase cherry-pick revert am tag init stash switch checkout pull")


def run_git(program: Program) -> None:
    """Add the effects of one ``git`` command."""
    at, directory = 0, None
    words = program.words
    while at < len(words) and words[at].text.startswith("-"):
        option = words[at].text
        if option == "-C" and at + 1 < len(words):
            directory = words[at + 1].text
        at += 2 if option in _GLOBAL_VALUES else 1
    if at >= len(words):
        return
    name = words[at].text
    short, long = _VALUES.get(name, ("", frozenset()))
    inside = program.within(directory)
    arguments = Arguments.parse(words[at + 1 :], short, long)
    if handler := _HANDLERS.get(name):
        handler(inside, arguments)
    elif name == "filter-branch" or name == "filter-repo":
        _discard(inside, name, arguments)
    elif name in _RECORDED:
        inside.add(Kind.VCS, name)
    if name in _CHANGES and inside.place.is_outside(inside.place.directory) and inside.place.is_known:
        inside.add(Kind.EDIT, ".", Flag.NO_CONTENT)


def _discard(program: Program, name: str, arguments: Arguments) -> None:
    program.add(Kind.VCS, " ".join((name, *arguments.texts)), Flag.DISCARD)


def _push(program: Program, arguments: Arguments) -> None:
    operands = arguments.operand_texts
    remote = operands[0] if operands else "origin"
    if arguments.has("--dry-run", "-n"):
        program.net(remote)
        return
    is_forced = arguments.has(
        "--force", "-f", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "-d", "--prune"
    ) or any(refspec.startswith(("+", ":")) for refspec in operands[1:])
    flags = (Flag.PUSH, Flag.FORCE) if is_forced else (Flag.PUSH,)
    program.add(Kind.VCS, " ".join(("push", *operands)), *flags)
    program.net(remote)


def _fetch(program: Program, arguments: Arguments) -> None:
    remote = next(iter(arguments.operand_texts), "origin")
    if not remote.startswith((".", "/", "~", "file://")):
        program.net(remote)


def _clone(program: Program, arguments: Arguments) -> None:
    if not arguments.operands:
        return
    source = arguments.operands[0]
    url = source.text
    is_url = "://" in url or "@" in url.partition("/")[0] or url.startswith("$") or ":" in url.partition("/")[0]
    if is_url and not url.startswith("file://"):
        program.net(url)
    if len(arguments.operands) > 1:
        program.add(Kind.WRITE, arguments.operands[1].text, Flag.NO_CONTENT, word=arguments.operands[1])
    else:
        name = url.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
        program.add(Kind.WRITE, name or ".", Flag.NO_CONTENT, word=source)


def _reset(program: Program, arguments: Arguments) -> None:
    if arguments.has("--hard", "--merge", "--keep"):
        _discard(program, "reset", arguments)


def _checkout(program: Program, arguments: Arguments) -> None:
    paths = arguments.after_dashes
    if paths or arguments.has("-f", "--force", "--ours", "--theirs") or "." in arguments.operand_texts:
        _discard(program, "checkout", arguments)
    else:
        program.add(Kind.VCS, "checkout")


def _restore(program: Program, arguments: Arguments) -> None:
    is_index_only = arguments.has("--staged", "-S") and not arguments.has("--worktree", "-W")
    if arguments.operands and not is_index_only:
        _discard(program, "restore", arguments)


def _switch(program: Program, arguments: Arguments) -> None:
    if arguments.has("-f", "--force", "--discard-changes"):
        _discard(program, "switch", arguments)


def _clean(program: Program, arguments: Arguments) -> None:
    if arguments.has("-f", "--force") and not arguments.has("-n", "--dry-run"):
        _discard(program, "clean", arguments)
        program.add(Kind.DELETE, next(iter(arguments.operand_texts), "."), Flag.NO_CONTENT, is_pattern=True)


def _stash(program: Program, arguments: Arguments) -> None:
    if arguments.operand_texts[:1] in (["drop"], ["clear"]):
        _discard(program, "stash", arguments)
    else:
        program.add(Kind.VCS, "stash")


def _branch(program: Program, arguments: Arguments) -> None:
    if arguments.has("-D") or (arguments.has("-d", "--delete") and arguments.has("-f", "--force")):
        _discard(program, "branch", arguments)


def _worktree(program: Program, arguments: Arguments) -> None:
    if len(arguments.operands) < 2:
        return
    command, *paths = arguments.operands
    if command.text == "add":
        program.add(Kind.WRITE, paths[0].text, Flag.NO_CONTENT, word=paths[0])
    elif command.text == "remove":
        if arguments.has("-f", "--force"):
            _discard(program, "worktree", arguments)
        program.add(Kind.DELETE, paths[0].text, Flag.NO_CONTENT, word=paths[0])


def _reflog(program: Program, arguments: Arguments) -> None:
    if arguments.operand_texts[:1] in (["expire"], ["delete"]):
        _discard(program, "reflog", arguments)


def _gc(program: Program, arguments: Arguments) -> None:
    if arguments.value("--prune"):
        _discard(program, "gc", arguments)


def _update_ref(program: Program, arguments: Arguments) -> None:
    if arguments.has("-d", "--delete"):
        _discard(program, "update-ref", arguments)


def _tag(program: Program, arguments: Arguments) -> None:
    if arguments.has("-d", "--delete"):
        _discard(program, "tag", arguments)
    else:
        program.add(Kind.VCS, "tag")


def _remove(program: Program, arguments: Arguments) -> None:
    if not arguments.has("--cached", "-n", "--dry-run"):
        for path in arguments.operands:
            program.add(Kind.DELETE, path.text, word=path)


def _move(program: Program, arguments: Arguments) -> None:
    if len(arguments.operands) > 1:
        *sources, target = arguments.operands
        program.move(sources, target)


def _init(program: Program, arguments: Arguments) -> None:
    program.add(Kind.WRITE, next(iter(arguments.operand_texts), "."), Flag.NO_CONTENT)


def _config(program: Program, arguments: Arguments) -> None:
    is_read = arguments.has("--get", "--get-all", "--get-regexp", "--list", "-l")
    if arguments.has("--global", "--system") and not is_read and len(arguments.operands) > 1:
        program.add(Kind.EDIT, "/etc/gitconfig" if arguments.has("--system") else "~/.gitconfig")


def _submodule(program: Program, arguments: Arguments) -> None:
    if arguments.operand_texts[:1] in (["update"], ["add"]):
        program.net("origin")


def _remote(program: Program, arguments: Arguments) -> None:
    if arguments.operand_texts[:1] in (["update"], ["prune"], ["show"]):
        program.net("origin")


def _lfs(program: Program, arguments: Arguments) -> None:
    if arguments.operand_texts[:1] in (["pull"], ["fetch"], ["push"]):
        program.net("origin")


def _apply(program: Program, arguments: Arguments) -> None:
    if not arguments.has("--check", "--stat", "--numstat", "--cached"):
        program.add(Kind.EDIT, ".", Flag.NO_CONTENT, is_pattern=True)


_HANDLERS: Final[Mapping[str, Callable[[Program, Arguments], None]]] = {
    "push": _push,
    "fetch": _fetch,
    "pull": _fetch,
    "ls-remote": _fetch,
    "clone": _clone,
    "reset": _reset,
    "checkout": _checkout,
    "restore": _restore,
    "switch": _switch,
    "clean": _clean,
    "stash": _stash,
    "branch": _branch,
    "worktree": _worktree,
    "reflog": _reflog,
    "gc": _gc,
    "update-ref": _update_ref,
    "tag": _tag,
    "rm": _remove,
    "mv": _move,
    "init": _init,
    "config": _config,
    "submodule": _submodule,
    "remote": _remote,
    "lfs": _lfs,
    "apply": _apply,
}
