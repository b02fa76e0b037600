"""What a shell command does to the world, from its words alone; nothing is run.

Commands behind ``&&``, ``||`` or in an ``if`` count as run: the log has one outcome for the whole line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from posixpath import basename
from typing import Final

import msgspec

from tracetui.analysis.effects import shell_tables as tables
from tracetui.analysis.effects.code import code_effects
from tracetui.analysis.effects.git import run_git
from tracetui.analysis.effects.paths import Place, file_effect, is_secret
from tracetui.analysis.effects.shell_words import Command, NotParsed, Word, parse_commands
from tracetui.analysis.effects.vocabulary import CHANGES, Certainty, Edit, Effect, Flag, Kind, names
from tracetui.analysis.effects.words import Arguments

MAX_NESTED: Final = 6
"""Command lines in arguments of command lines (``bash -c``, ``ssh``, ``eval``)."""
MAX_EFFECTS: Final = 4_000
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PYTHON: Final = re.compile(r"python[\d.]*|pypy[\d.]*")


@lru_cache(maxsize=256)
def shell_effects(text: str, place: Place) -> tuple[Effect, ...]:
    """Return the effects of a command line.

    The range of each is that of its simple command in `text`. A text beyond the limits of `shell_words` has one effect,
    a run with the flag `NOT_PARSED`.
    """
    line = _Line(place, Certainty.PARSED)
    try:
        line.read(text)
    except NotParsed:
        marks = frozenset({Flag.NOT_PARSED})
        return (Effect(Kind.RUN, "shell", marks, range=(0, len(text)), certainty=Certainty.PATTERN),)
    return (*line.effects,)


class _Scope(msgspec.Struct):
    """The state of a shell: its directory, and the variables with known values."""

    place: Place
    variables: dict[str, str]


class _Line:
    """The reading of a command line, and of those in its arguments."""

    def __init__(
        self, place: Place, certainty: Certainty, *, depth: int = 0, effects: list[Effect] | None = None,
        evidence: tuple[int, int] | None = None, variables: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.effects: list[Effect] = [] if effects is None else effects
        self.certainty, self.depth, self.evidence = certainty, depth, evidence
        self.scopes: dict[tuple[int, ...], _Scope] = {(): _Scope(place, dict(variables or {}))}
        self.commands: list[Command] = []

    def read(self, text: str) -> None:
        """Add the effects of a text. Raises `NotParsed`."""
        if self.depth > MAX_NESTED:
            return
        self.commands = parse_commands(text)
        for number, command in enumerate(self.commands):
            if len(self.effects) > MAX_EFFECTS:
                raise NotParsed
            scope = self._scope(command.scope)
            Program(self, command, scope, number).run()

    def _scope(self, path: tuple[int, ...]) -> _Scope:
        scope = self.scopes.get(path)
        if scope is None:
            outer = self._scope(path[:-1])
            scope = self.scopes[path] = _Scope(outer.place, dict(outer.variables))
        return scope


class Program:
    """One simple command: its program, words, and where it runs."""

    def __init__(self, line: _Line, command: Command, scope: _Scope, number: int) -> None:
        self.line, self.command, self.scope, self.number = line, command, scope, number
        self.place = scope.place
        self.certainty = line.certainty
        self.flags: frozenset[Flag] = frozenset()
        self.takes_input = False
        """Its last operands come from standard input (xargs)."""
        self.name = ""
        self.words: list[Word] = []
        self._arguments: tuple[list[Word], Arguments] | None = None
        """The parsed words."""

    def within(self, directory: str | None) -> Program:
        """The same in another directory."""
        if directory is None:
            return self
        program = Program(self.line, self.command, self.scope, self.number)
        program.name, program.words, program.flags = self.name, self.words, self.flags
        program.certainty, program.place = self.certainty, self.place.enter(directory)
        return program

    # ---- effects

    @property
    def range(self) -> tuple[int, int]:
        """The characters of the command line that are the evidence."""
        return self.line.evidence or (self.command.start, self.command.stop)

    def add(
        self,
        kind: Kind,
        target: str,
        *flags: Flag,
        word: Word | None = None,
        is_pattern: bool = False,
        edit: Edit | None = None,
        moved_from: str | None = None,
    ) -> None:
        """Add an effect; a path is resolved and flagged."""
        certainty = self.certainty
        unsure = is_pattern or (word is not None and not word.literal and not _is_home(word.text))
        if certainty is Certainty.PARSED and unsure:
            certainty = Certainty.PATTERN
        effect: Effect | None
        if kind in CHANGES or kind is Kind.READ:
            effect = file_effect(kind, target, self.place, *flags, certainty=certainty)
        else:
            effect = Effect(kind, target, frozenset(flags), certainty=certainty)
        if effect is not None:
            flagged = effect.flags | self.flags
            source = None if moved_from is None else self.place.resolve(moved_from)
            effect = msgspec.structs.replace(effect, flags=flagged, range=self.range, edit=edit, moved_from=source)
            self.line.effects.append(effect)

    def move(self, sources: Sequence[Word], target: Word | None) -> None:
        """Add that files moved into a folder, or the only one to another path."""
        is_folder = len(sources) > 1 or (target is not None and target.text.endswith(("/", "/.")))
        is_known = target is not None and target.literal and all(word.literal for word in sources)
        if target is not None and not is_known:
            self.add(Kind.WRITE, target.text, word=target)
        for word in sources:
            self.add(Kind.MOVE, word.text, word=word)
            if target is not None and is_known:
                path = f"{target.text.rstrip('/')}/{basename(word.text)}" if is_folder else target.text
                self.add(Kind.WRITE, path, word=target, moved_from=word.text)

    def net(self, target: str, *flags: Flag) -> None:
        """Add a connection."""
        local = (Flag.LOCAL,) if tables.LOCAL.match(target) else ()
        self.add(Kind.NET, target, *flags, *local)

    def read_secret(self, name: str, certainty: Certainty | None = None) -> None:
        """Add the reading of a secret that isn't a file."""
        secret = frozenset({Flag.SECRET})
        self.line.effects.append(
            Effect(Kind.READ, name, secret, range=self.range, certainty=certainty or self.certainty)
        )

    def nested(
        self, text: str, *, certainty: Certainty | None = None, place: Place | None = None, shares_state: bool = False
    ) -> None:
        """Add the effects of a command line in an argument."""
        outer = self.line
        line = _Line(
            place or self.place,
            certainty or self.certainty,
            depth=outer.depth + 1,
            effects=outer.effects,
            evidence=self.range,
            variables=self.scope.variables,
        )
        line.read(text)
        if shares_state:
            self.scope.place = line.scopes[()].place

    # ---- running

    def run(self) -> None:
        """Add the effects of the command."""
        self._assign()
        self._redirect()
        words = [self._fill(word) for word in self.command.words]
        self.run_words(words)

    def run_words(self, words: Sequence[Word]) -> None:
        """Add the effects of these words as a command."""
        words = self._unwrap([*words])
        if not words:
            return
        self.name, self.words = basename(words[0].text), [*words[1:]]
        if not words[0].literal and self.certainty is Certainty.PARSED:
            self.certainty = Certainty.PATTERN
        self.add(Kind.RUN, self.name, *(self.flags & {Flag.SUDO}))
        self._secret_variables()
        handler = _PROGRAMS.get(self.name)
        if handler is not None:
            handler(self)
        elif _PYTHON.fullmatch(self.name) or self.name in tables.INTERPRETERS:
            _interpret(self)
        elif self.name in tables.SHELLS:
            _shell(self)
        self._by_table()

    def arguments(self) -> Arguments:
        """The parsed arguments."""
        if self._arguments is None or self._arguments[0] is not self.words:
            short, long = tables.VALUES.get(self.name, ""), tables.LONG_VALUES.get(self.name, ())
            self._arguments = self.words, Arguments.parse(self.words, short, long)
        return self._arguments[1]

    def _assign(self) -> None:
        for word in self.command.assignments:
            name, _, value = word.text.partition("=")
            if self.command.words:
                continue
            if word.literal:
                self.scope.variables[name] = value
            else:
                self.scope.variables.pop(name, None)

    def _fill(self, word: Word) -> Word:
        """Replace variables whose values are known."""
        if word.literal or "$" not in word.text or not self.scope.variables:
            return word
        names = self.scope.variables
        text = _VARIABLE.sub(lambda match: names.get(match[1] or match[2], match[0]), word.text)[: 4 << 10]
        return word._replace(text=text, literal="$" not in text and "`" not in text and not set("*?[") & set(text))

    def _redirect(self) -> None:
        for operator, target in self.command.redirections:
            word = self._fill(target)
            if operator == "<":
                self.add(Kind.READ, word.text, word=word)
            else:
                self.add(Kind.WRITE, word.text, word=word, edit=self.written(word.text, appends=operator == ">>"))

    def written(self, path: str, *, appends: bool) -> Edit | None:
        """The text of a here document that ``cat`` or ``tee`` writes to a file."""
        words, heredocs = self.command.words, self.command.heredocs
        if len(heredocs) != 1 or not heredocs[0].literal or not words:
            return None
        program, operands = basename(words[0].text), [word for word in words[1:] if not word.text.startswith("-")]
        if program not in ("cat", "tee") or (program == "cat" and operands):
            return None
        text = f"{heredocs[0].body}\n"
        return Edit(path, Kind.EDIT, old="", new=text) if appends else Edit(path, Kind.WRITE, new=text)

    def _unwrap(self, words: list[Word]) -> list[Word]:
        """The words of the command that wrappers (``sudo``, ``timeout 5``, ``uv run``) execute."""
        for _ in range(10):
            if not words:
                return words
            name = basename(words[0].text)
            if name in tables.RUNNERS and len(words) > 2 and words[1].text in tables.RUNNERS[name]:
                words = _after_options(words[2:], tables.RUNNERS[name][words[1].text])
                continue
            if name not in tables.WRAPPERS:
                return words
            if name == "sudo" or name == "doas":
                self.flags |= {Flag.SUDO}
            valued, rest = tables.WRAPPERS[name], words[1:]
            while rest:
                text = rest[0].text
                if text == "--":
                    rest = rest[1:]
                    break
                if name == "command" and text in ("-v", "-V"):
                    return []
                if name in ("env", "sudo", "doas") and re.match(r"\w+=", text):
                    rest = rest[1:]
                elif text.startswith("-") and len(text) > 1:
                    rest = rest[2:] if len(text) == 2 and text[1] in valued else rest[1:]
                else:
                    break
            if name in ("timeout", "gtimeout"):
                rest = rest[1:]
            if not rest:
                if name == "env":
                    self.name, self.words = "env", []
                    self.read_secret("environment")
                return []
            if name in ("xargs", "parallel"):
                self.takes_input = True
                marker = Arguments.parse(words[1 : -len(rest)], valued).value("-I")
                rest = _with_files(rest, self._listed(), marker.text if marker is not None else None)
            words = rest
        return words

    def _listed(self) -> list[str]:
        """The folders in which a ``find`` at the beginning of the pipe looks."""
        commands, number = self.line.commands, self.number
        while number and commands[number].is_piped:
            number -= 1
        words = [self._fill(word) for word in commands[number].words]
        return _folders(words[1:]) if number < self.number and words and basename(words[0].text) == "find" else []

    def _secret_variables(self) -> None:
        if self.name in ("[", "test", "export", "unset"):
            return
        for word in self.words:
            match = None if word.literal else tables.SECRET_VARIABLE.search(word.text)
            if match is not None:
                self.read_secret(match[0])
                return

    # ---- tables

    def _by_table(self) -> None:
        arguments = self.arguments()
        operands = arguments.operand_texts
        first = operands[0] if operands else ""
        second = operands[1] if len(operands) > 1 else ""
        if self._installs(first, second, arguments):
            skipped = 0 if self.name in tables.OPTION_INSTALLERS else 2 if second == "install" else 1
            self.add(Kind.INSTALL, " ".join(operands[skipped:]) or "project")
            if self.name not in tables.LOCAL_INSTALLERS:
                self.net("package index")
        elif first and first in tables.NETWORK_COMMANDS.get(self.name, ()):
            sends = (Flag.SEND,) if first in tables.SENDS else ()
            self.net(next((url for text in operands for url in tables.URL.findall(text)), self.name), *sends)
        elif self.name in tables.NETWORK:
            self._network(arguments)
        elif self.name in tables.DATABASES:
            urls = (word for word in arguments.operands if "://" in word.text)
            if (host := arguments.value("-h", "--host") or next(urls, None)) is not None:
                self.net(host.text)
        if self.name in tables.OUTPUT_OPTION and (target := arguments.value("-o", "--output")) is not None:
            self.add(Kind.WRITE, target.text, word=target)
        self._reads(arguments)

    def _installs(self, first: str, second: str, arguments: Arguments) -> bool:
        if arguments.has("--help", "--version", "--dry-run"):
            return False
        if (self.name, first, second) in tables.DOUBLE_INSTALLERS:
            return True
        if self.name in tables.OPTION_INSTALLERS:
            return arguments.has(*tables.OPTION_INSTALLERS[self.name])
        if self.name in ("yarn", "cpan", "cpanm", "easy_install") and (not first or self.name != "yarn"):
            return not arguments.has("-v")
        if self.name == "go":
            return first == "get" or (first == "install" and any("@" in text for text in arguments.operand_texts))
        return first in tables.INSTALLERS.get(self.name, ())

    def _network(self, arguments: Arguments) -> None:
        if arguments.has("--help", "--version") or (self.name in ("ssh", "git") and not self.words):
            return
        operands = arguments.operand_texts
        if self.name in ("nc", "ncat") and arguments.has("-U"):
            return
        if self.name == "gh" and _is_local_gh(self, operands):
            return
        if self.name in ("kubectl", "aws", "gcloud", "az") and operands[:1] and operands[0] in tables.LOCAL_COMMANDS:
            return
        urls = [url for word in self.words for url in tables.URL.findall(word.text)]
        hosts = urls or [match[0] for text in operands if (match := tables.HOST.match(text))]
        hosts = hosts or [text for text in operands if text.startswith("$")]
        fallback = self.name if self.name in _OWN_HOST or not operands else operands[-1]
        flags = (Flag.SEND,) if _sends(self.name, operands, arguments) else ()
        for host in dict.fromkeys(hosts or [fallback]):
            self.net(host, *flags)

    def _reads(self, arguments: Arguments) -> None:
        """Files that are read; of unknown programs only secret ones."""
        operands = arguments.operands
        if self.name in tables.READERS:
            if self.name in tables.PATTERN_FIRST and not arguments.has(
                "-e", "-f", "--regexp", "--file", "--expression"
            ):
                operands = operands[1:]
            if self.name in ("grep", "rg", "egrep", "fgrep"):
                globs = arguments.values("--include", "-g", "--glob")
                if any(is_secret(word.text) for word in globs):
                    self.read_secret("files by name", Certainty.PATTERN)
                if arguments.has("-q", "--quiet", "-c", "--count", "-l", "-L", "--files-with-matches"):
                    return
            for word in operands:
                self.add(Kind.READ, word.text, word=word)
        elif self.name not in tables.NAMES_ONLY:
            for word in self.words:
                text = word.text.rpartition("=")[2].removeprefix("@") if word.text.startswith("-") else word.text
                text = text.removeprefix("@")
                is_path = "/" in text or text.startswith(".") or "." in text
                if text and is_path and "://" not in text and len(text) < 400 and is_secret(text.partition(":")[0]):
                    self.add(Kind.READ, text.partition(":")[0], word=word)


def _is_home(text: str) -> bool:
    """Whether the only expansion in a word is the home folder or the current one."""
    for variable in ("$HOME", "${HOME}", "$PWD", "${PWD}"):
        if text.startswith(variable):
            return not set("$`*?[") & set(text[len(variable) :])
    return False


def _folders(words: Sequence[Word]) -> list[str]:
    """The folders in which ``find`` with these arguments looks."""
    return [word.text for word in takewhile(lambda word: not word.text.startswith(("-", "(", "!")), words)] or ["."]


def _with_files(words: Sequence[Word], folders: Sequence[str], marker: str | None) -> list[Word]:
    """A command with files of folders in the place of `marker`; None: after its words."""
    files = [f"{folder.rstrip('/')}/*" for folder in folders]
    if marker is None:
        return [*words, *(words[0]._replace(text=file, literal=False) for file in files)]
    filled: list[Word] = []
    for word in words:
        texts = [word.text.replace(marker, file) for file in files] if marker in word.text else []
        filled += [word._replace(text=text, literal=False) for text in texts] or [word]
    return filled


def _after_options(words: list[Word], valued: frozenset[str]) -> list[Word]:
    """The words after leading options."""
    while words and words[0].text.startswith("-"):
        if words[0].text == "--":
            return words[1:]
        words = words[2:] if words[0].text in valued else words[1:]
    return words


_OWN_HOST: Final = names(
    "gh hub glab aws az gcloud kubectl npx uvx bunx pnpx heroku vercel flyctl fly netlify wrangler"
)

# ---- programs


def _delete(program: Program) -> None:
    arguments = program.arguments()
    if program.name == "shred" and not arguments.has("-u", "--remove"):
        for word in arguments.operands:
            program.add(Kind.EDIT, word.text, word=word)
        return
    if arguments.has("--help", "--version"):
        return
    for word in arguments.operands:
        program.add(Kind.DELETE, word.text, word=word, is_pattern=program.takes_input)
    if program.takes_input and not arguments.operands:
        _unknown_target(program, Kind.DELETE)


def _unknown_target(program: Program, kind: Kind) -> None:
    """An effect on files or processes that standard input names."""
    program.line.effects.append(
        Effect(kind, "<stdin>", program.flags, range=program.range, certainty=Certainty.PATTERN)
    )


def _copy(program: Program) -> None:
    arguments = program.arguments()
    target = arguments.value("-t", "--target-directory")
    operands = arguments.operands
    if program.name == "install" and arguments.has("-d"):
        for word in operands:
            program.add(Kind.WRITE, word.text, word=word)
        return
    sources = operands
    if target is None and (len(operands) > 1 or (program.takes_input and operands)):
        *sources, target = operands
    elif target is None and program.name == "ln" and operands:
        target = operands[0]._replace(text=basename(operands[0].text))
    if program.name == "mv":
        program.move(sources, target)
    elif target is not None:
        program.add(Kind.WRITE, target.text, word=target)
    if program.name != "ln":
        for word in sources:
            if is_secret(program.place.resolve(word.text)):
                program.add(Kind.READ, word.text, word=word)


def _touch(program: Program) -> None:
    flags = (Flag.NO_CONTENT,) if program.name in ("mkdir", "mkfifo") else ()
    for word in program.arguments().operands:
        program.add(Kind.WRITE, word.text, *flags, word=word)


def _make_temporary(program: Program) -> None:
    if not program.arguments().has("-u", "--dry-run"):
        program.add(Kind.WRITE, "$TMPDIR/tmp.XXXXXX", is_pattern=True)


def _attributes(program: Program) -> None:
    arguments = program.arguments()
    skipped = 0 if arguments.has("--reference") else 1
    operands = [word for word in program.words if not re.match(r"-[A-Zrwx-]*[a-zA-Z]*$", word.text)]
    for word in operands[skipped:]:
        program.add(Kind.EDIT, word.text, Flag.NO_CONTENT, word=word)


def _tee(program: Program) -> None:
    arguments = program.arguments()
    appends = arguments.has("-a", "--append")
    for word in arguments.operands:
        program.add(Kind.WRITE, word.text, word=word, edit=program.written(word.text, appends=appends))


def _edit_in_place(program: Program) -> None:
    texts = [word.text for word in program.words]
    in_place = next((text for text in texts if re.match(r"-[nrEszp0]*i|--in-place", text)), None)
    if in_place is None:
        if program.name == "perl":
            _interpret(program)
        return
    words = [word for word in program.words if word.text != in_place and word.text]  # `-i ''` on macOS
    arguments = Arguments.parse(words, "efl" if program.name != "perl" else "eEMI", ("--expression", "--file"))
    has_script = arguments.has("-e", "-f", "-E", "--expression", "--file") or (
        program.name == "perl" and "e" in in_place
    )
    for word in arguments.operands if has_script and program.name != "perl" else arguments.operands[1:]:
        program.add(Kind.EDIT, word.text, word=word)
    if program.name == "perl" and arguments.has("-e", "-E") and arguments.operands:
        program.add(Kind.EDIT, arguments.operands[0].text, word=arguments.operands[0])


def _tar(program: Program) -> None:
    words = program.words
    if words and not words[0].text.startswith("-"):  # `tar xzf a.tgz`
        words = [words[0]._replace(text=f"-{words[0].text}"), *words[1:]]
    arguments = Arguments.parse(words, "fCXTI", ("--directory", "--file"))
    if arguments.has("-x", "--extract", "--get"):
        target = arguments.value("-C", "--directory")
        program.add(Kind.WRITE, "." if target is None else target.text, Flag.NO_CONTENT, word=target)
    elif arguments.has("-c", "--create", "-r", "-u") and (target := arguments.value("-f", "--file")) is not None:
        program.add(Kind.WRITE, target.text, word=target)


def _unpack(program: Program) -> None:
    arguments = program.arguments()
    if program.name == "unzip":
        if not arguments.has("-l", "-p", "-t", "-v", "-Z"):
            target = arguments.value("-d")
            program.add(Kind.WRITE, "." if target is None else target.text, Flag.NO_CONTENT, word=target)
    elif program.name == "zip":
        for word in arguments.operands[:1]:
            program.add(Kind.WRITE, word.text, word=word)
    elif arguments.operand_texts[:1] in (["x"], ["e"]):  # 7z
        folder = next((word for word in program.words if word.text.startswith("-o") and len(word.text) > 2), None)
        program.add(Kind.WRITE, "." if folder is None else folder.text[2:], Flag.NO_CONTENT, word=folder)
    elif arguments.operand_texts[:1] == ["a"]:
        for word in arguments.operands[1:2]:
            program.add(Kind.WRITE, word.text, word=word)


def _dd(program: Program) -> None:
    for word in program.words:
        name, _, path = word.text.partition("=")
        if name == "of" and path:
            program.add(Kind.WRITE, path, word=word)
        elif name == "if" and path:
            program.add(Kind.READ, path, word=word)


def _download(program: Program) -> None:
    arguments = program.arguments()
    if program.name == "curl":
        target = arguments.value("-o", "--output")
        if arguments.has("-O", "--remote-name") and target is None:
            program.add(Kind.WRITE, ".", Flag.NO_CONTENT, is_pattern=True)
        if arguments.has("-n", "--netrc"):
            program.add(Kind.READ, "~/.netrc")
        for name in ("-d", "--data", "--data-binary", "-F", "--form", "-T", "--upload-file"):
            value = arguments.value(name)
            path = "" if value is None else value.text.rpartition("@")[2] if "@" in value.text else ""
            if path:
                program.add(Kind.READ, path.partition(";")[0], word=value)
    else:
        target = arguments.value("-O", "--output-document", "-P", "--directory-prefix")
    if target is not None:
        program.add(Kind.WRITE, target.text, word=target)


def _transfer(program: Program) -> None:
    """``scp`` and ``rsync``."""
    arguments = program.arguments()
    operands = arguments.operands
    remote = [word for word in operands if tables.REMOTE_PATH.match(word.text)]
    if remote:
        host = remote[0].text.removeprefix("rsync://").partition(":")[0].rpartition("@")[2]
        program.net(host, *((Flag.SEND,) if operands[-1] in remote else ()))
    if operands and operands[-1] not in remote:
        program.add(Kind.WRITE, operands[-1].text, word=operands[-1])
        if program.name == "rsync" and any(text.startswith(("--delete", "--del")) for text in arguments.options):
            program.add(Kind.DELETE, operands[-1].text, word=operands[-1], is_pattern=True)
    for word in operands[:-1]:
        if word not in remote and is_secret(program.place.resolve(word.text)):
            program.add(Kind.READ, word.text, word=word)


def _kill(program: Program) -> None:
    arguments = program.arguments()
    texts = arguments.texts
    if program.name == "kill" and ({"-0", "-l", "-L"} & set(texts) or not texts) and not program.takes_input:
        return
    operands = arguments.operands
    program.add(
        Kind.KILL,
        " ".join(word.text for word in operands) or "<stdin>",
        is_pattern=program.takes_input or any(not word.literal for word in operands),
    )


def _services(program: Program) -> None:
    """Programs with a subcommand that stops processes."""
    operands = program.arguments().operand_texts
    first = operands[0] if operands else ""
    if first in tables.STOPS.get(program.name, ()) or (program.name == "tmux" and first.startswith("kill-")):
        program.add(Kind.KILL, " ".join(operands[1:]) or program.name)
    if program.name == "kubectl" and first == "get" and any("secret" in text for text in operands[1:]):
        program.read_secret("kubectl secret")


def _fuser(program: Program) -> None:
    arguments = program.arguments()
    if arguments.has("-k", "--kill"):
        program.add(Kind.KILL, " ".join(arguments.operand_texts))


def _find(program: Program) -> None:
    words, folders = program.words, _folders(program.words)
    texts = [word.text for word in words]
    if "-delete" in texts:
        for folder in folders:
            program.add(Kind.DELETE, folder, is_pattern=True)
    for at, text in enumerate(texts):
        if text not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        stop = next((i for i in range(at + 1, len(texts)) if texts[i] in (";", "+")), len(texts))
        inner = Program(program.line, program.command, program.scope, program.number)
        inner.certainty = program.certainty if program.certainty is not Certainty.PARSED else Certainty.PATTERN
        inner.flags = program.flags
        inner.run_words(_with_files(words[at + 1 : stop], folders, "{}"))


def _change_directory(program: Program) -> None:
    operands = program.arguments().operand_texts
    if program.name == "popd":
        program.scope.place = msgspec.structs.replace(program.place, is_known=False)
        return
    target = operands[0] if operands else "-" if any(word.text == "-" for word in program.words) else "~"
    program.scope.place = program.place.enter(target)


def _eval(program: Program) -> None:
    if any("$(" in word.text and _fetches(program, word) for word in program.words):
        program.add(Kind.RUN, "output as shell", Flag.PIPED)
    unsure = any(not word.literal for word in program.words)
    certainty = Certainty.PATTERN if unsure and program.certainty is Certainty.PARSED else None
    text = " ".join(word.text for word in program.words)
    program.nested(
        text if not unsure else re.sub(r"\$\(.*\)", "", text, flags=re.DOTALL), certainty=certainty, shares_state=True
    )


def _fetches(program: Program, word: Word) -> bool:
    """Whether a substitution in the word reaches another machine: its text is what a server sends."""
    commands = program.line.commands[slice(*word.nested)]
    return any(
        basename(words[0].text) in ("curl", "wget", "http", "https", "xh", "aria2c", "nc", "ncat")
        for command in commands
        if (words := command.words)
    )


def _source(program: Program) -> None:
    if any(_fetches(program, word) for word in program.words):
        program.add(Kind.RUN, "output as shell", Flag.PIPED)


def _shell(program: Program) -> None:
    words = program.words
    code = next((i for i, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word.text)), None)
    if code is not None:
        if code + 1 < len(words):
            word = words[code + 1]
            if _fetches(program, word):
                program.add(Kind.RUN, "output as shell", Flag.PIPED)
            unsure = program.takes_input or not word.literal
            certainty = Certainty.PATTERN if unsure and program.certainty is Certainty.PARSED else None
            program.nested(word.text, certainty=certainty)
        return
    scripts = [word for word in words if not word.text.startswith("-")]
    if any(_fetches(program, word) for word in scripts):
        program.add(Kind.RUN, "output as shell", Flag.PIPED)
    if not scripts or scripts[0].text == "-" or any(word.text == "-s" for word in words):
        for heredoc in program.command.heredocs:
            program.nested(heredoc.body)
        if program.command.is_piped and not program.command.heredocs:
            program.add(Kind.RUN, "input as shell", Flag.PIPED)


def _interpret(program: Program) -> None:
    words = program.words
    for i, word in enumerate(words):
        if word.text == "-m" and _PYTHON.fullmatch(program.name) and i + 1 < len(words):
            module = Program(program.line, program.command, program.scope, program.number)
            module.certainty, module.flags = program.certainty, program.flags
            if words[i + 1].text in ("pip", "pipx", "twine", "ensurepip", "poetry"):
                module.run_words(words[i + 1 :])
            elif words[i + 1].text in ("venv", "virtualenv"):
                for folder in Arguments.parse(words[i + 2 :]).operands[:1]:
                    program.add(Kind.WRITE, folder.text, Flag.NO_CONTENT, word=folder)
            return
        if word.text in ("-c", "-e", "--eval", "-E", "-r", "eval") and i + 1 < len(words):
            _code(program, words[i + 1].text)
            return
        if not word.text.startswith("-") and word.text != "eval":
            break
    has_script = any(not word.text.startswith("-") for word in words)
    if not has_script:
        for heredoc in program.command.heredocs:
            _code(program, heredoc.body)
        if program.command.is_piped and not program.command.heredocs and not words:
            previous = program.line.commands[program.number - 1]
            if previous.words and basename(previous.words[0].text) in ("curl", "wget"):
                program.add(Kind.RUN, "input as program", Flag.PIPED)


def _code(program: Program, code: str) -> None:
    for item in code_effects(code, program.place):
        if isinstance(item, str):
            program.nested(item, certainty=Certainty.CODE)
        else:
            program.line.effects.append(
                msgspec.structs.replace(item, flags=item.flags | program.flags, range=program.range)
            )


def _ssh(program: Program) -> None:
    arguments = Arguments.parse(program.words, tables.VALUES["ssh"])
    if not arguments.operands:
        return
    host = arguments.operands[0]
    at = program.words.index(host)
    command = " ".join(word.text for word in program.words[at + 1 :])
    if command:
        program.nested(command, certainty=Certainty.REMOTE, place=Place())


def _environment(program: Program) -> None:
    operands = program.arguments().operand_texts
    if not operands or any(tables.SECRET_NAME.search(name) for name in operands):
        program.read_secret(" ".join(operands) or "environment")


def _keychain(program: Program) -> None:
    operands = program.arguments().operand_texts
    first = operands[0] if operands else ""
    if (program.name, first) in tables.KEYCHAINS or (program.name == "security" and first.startswith("find-")):
        program.read_secret(" ".join((program.name, first)))
    if program.name == "aws" and (
        "secretsmanager" in operands or any(word.text == "--with-decryption" for word in program.words)
    ):
        program.read_secret("aws secrets")


def _is_local_gh(program: Program, operands: Sequence[str]) -> bool:
    """Whether a command of GitHub's program stays on this machine."""
    if operands[:2] == ["auth", "token"]:
        program.read_secret("gh auth token")
        return True
    return not operands or operands[0] in tables.LOCAL_COMMANDS or operands[:2] == ["auth", "status"]


def _sends(name: str, operands: Sequence[str], arguments: Arguments) -> bool:
    """Whether a program that talks to another machine sends it data."""
    method = arguments.value("-X", "--request", "--method")
    has_method = method is not None and method.text.upper() in ("POST", "PUT", "PATCH", "DELETE")
    if name in ("gh", "hub", "glab"):
        if operands[:1] == ["api"]:
            return has_method or arguments.has("-f", "-F", "--field", "--raw-field", "--input")
        return len(operands) > 1 and operands[1] in tables.GH_SENDS
    if name in ("http", "https", "xh") and operands and operands[0] in ("POST", "PUT", "PATCH", "DELETE"):
        return True
    if name in ("curl", "http", "https", "xh", "wget"):
        return has_method or (arguments.has(*tables.DATA_OPTIONS) and not arguments.has("-G", "--get"))
    if name in ("aws", "gsutil", "rclone", "s3cmd"):
        return bool(len(operands) > 2 and tables.BUCKET.match(operands[-1]) and not tables.BUCKET.match(operands[-2]))
    return name == "twine" and operands[:1] == ["upload"]


def _patch(program: Program) -> None:
    arguments = program.arguments()
    if not arguments.has("--dry-run"):
        program.add(
            Kind.EDIT, next(iter(arguments.operand_texts), "."), *(() if arguments.operands else (Flag.NO_CONTENT,))
        )


def _power_shell(program: Program) -> None:
    """PowerShell has its own language."""
    program.add(Kind.RUN, program.name, Flag.NOT_PARSED)


def _go(program: Program) -> None:
    operands = program.arguments().operand_texts
    if operands[:2] in (["mod", "download"], ["mod", "tidy"]):
        program.net("module proxy")


def _new_environment(program: Program) -> None:
    """``virtualenv DIR``, ``uv venv DIR``."""
    operands = program.arguments().operands
    if program.name == "uv":
        if not operands or operands[0].text != "venv":
            return
        operands = operands[1:]
    for word in operands[:1]:
        program.add(Kind.WRITE, word.text, Flag.NO_CONTENT, word=word)


def _trap(program: Program) -> None:
    """Commands that run when the shell ends."""
    operands = program.arguments().operand_texts
    if len(operands) > 1:
        program.nested(operands[0])


def _crontab(program: Program) -> None:
    if not program.arguments().has("-l"):
        program.add(Kind.EDIT, "/var/spool/cron")


def _handlers() -> Iterator[tuple[str, Callable[[Program], None]]]:
    names: dict[Callable[[Program], None], str] = {
        _delete: "rm rmdir unlink shred srm trash trash-put rimraf",
        _copy: "cp mv ln install",
        _touch: "touch mkdir mkfifo truncate",
        _make_temporary: "mktemp",
        _attributes: "chmod chown chgrp",
        _tee: "tee",
        _edit_in_place: "sed gsed perl",
        _tar: "tar bsdtar gtar",
        _unpack: "unzip zip 7z 7za 7zr",
        _dd: "dd",
        _download: "curl wget",
        _transfer: "scp rsync",
        _kill: "kill pkill killall taskkill xkill killall5",
        _services: "systemctl service launchctl docker podman docker-compose pm2 tmux kubectl",
        _fuser: "fuser",
        _find: "find",
        _change_directory: "cd pushd popd chdir",
        _eval: "eval",
        _source: "source .",
        run_git: "git",
        _ssh: "ssh",
        _environment: "printenv",
        _keychain: "security vault op pass gcloud aws",
        _patch: "patch",
        _go: "go",
        _new_environment: "virtualenv uv",
        _crontab: "crontab",
        _trap: "trap",
        _power_shell: " ".join(tables.POWERSHELL),
    }
    for handler, programs in names.items():
        yield from ((name, handler) for name in programs.split())


_PROGRAMS: Final = dict(_handlers())
