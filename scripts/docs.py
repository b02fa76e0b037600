"""Write the generated parts of docs/, docs/schemas/ and share/ from the code; with ``--check``, fail if any is stale.

A generated part is between ``<!-- generated: NAME -->`` and ``<!-- end -->``; the rest is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from man_page import man_page
from strings import visible_strings

if TYPE_CHECKING:
    from tracetui.store.query import Table

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
EXAMPLES: Final = DOCS / "examples"
PART: Final = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Update every page; with ``--check``, only list the stale ones."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    written = {page: page.read_text("utf-8") for page in sorted(DOCS.glob("*.md"))}
    fresh = {
        page: PART.sub(lambda match: f"{match[1]}\n{part(match[2])}\n{match[3]}", text)
        for page, text in written.items()
    }
    fresh |= {ROOT / name: make() for name, make in (SHARED | schema_files()).items()}
    stale = []
    for path, text in fresh.items():
        if text != (written.get(path) or (path.read_text("utf-8") if path.exists() else None)):
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in arguments:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
    if not stale:
        print("docs: up to date")
    elif "--check" in arguments:
        print(f"docs: stale: {', '.join(stale)}; run `python3 dev.py docs`", file=sys.stderr)
        return 1
    else:
        print(f"docs: wrote {', '.join(stale)}")
    return 0


def cli() -> str:
    """The help of every command, without examples; arguments that several commands share are explained once."""
    from tracetui.cli.parser import COMMANDS, parser_of

    app, parsers = parser_of(None), {name: parser_of(name) for name in COMMANDS}
    own = {_option(action) for action in app._actions if action.option_strings}
    users: dict[tuple[str, str], list[str]] = {}
    for name, parser in parsers.items():
        for action in parser._actions:
            if action.dest != "help":
                users.setdefault(_option(action), []).append(name)
    shared = [option for option, names in users.items() if len(names) > 1]
    explained = own.union(shared)
    table = _table(
        "argument commands meaning",
        [(option[0], ", ".join(users[option]), "" if option in own else option[1]) for option in shared],
    )
    intro = "Options without a meaning are those of `tracetui`. The sections of the commands leave all of these out."
    sections = [
        f"## tracetui\n\n```\n{_help(app, (), _notes(app))}```\n",
        f"## Shared arguments\n\n{intro}\n\n{table}",
        *(
            f"## tracetui {name}\n\n```\n{_help(parser, explained, _notes(parser))}```\n"
            for name, parser in parsers.items()
        ),
    ]
    return "\n".join(sections)


def _option(action: argparse.Action) -> tuple[str, str]:
    """How an argument is written, and its help."""
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
    value = "" if action.nargs == 0 else str(action.metavar or choices)
    return ", ".join(f"`{f'{flag} {value}'.strip()}`" for flag in action.option_strings or [""]), action.help or ""


def _help(parser: argparse.ArgumentParser, explained: Container[tuple[str, str]], notes: str) -> str:
    """The help of a command without the arguments that are explained elsewhere, ending with `notes`."""
    formatter = parser._get_formatter()
    own = [action for action in parser._actions if not action.option_strings or _option(action) not in explained]
    groups = [group for group in parser._mutually_exclusive_groups if {*group._group_actions} <= {*own}]
    formatter.add_usage(parser.usage, own, groups)
    formatter.add_text(parser.description)
    for group in parser._action_groups:
        formatter.start_section(group.title)
        formatter.add_arguments([action for action in group._group_actions if _option(action) not in explained])
        formatter.end_section()
    formatter.add_text(notes)
    return formatter.format_help()


def _notes(parser: argparse.ArgumentParser) -> str:
    """The end of a command's help, without examples, the list of commands, and the environment (docs/settings.md)."""
    parser.format_help()  # sets the epilog
    blocks = (parser.epilog or "").rstrip().split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith(("examples:", "commands ", "environment:")))


def formats() -> str:
    """The built-in formats."""
    from tracetui.formats import registry

    return _table("`--format` name", [(f"`{name}`", registry.load(name).title) for name in registry.BUILT_IN])


def secrets() -> str:
    """The kinds of secrets that are recognized by form or command, from the rules."""
    from tracetui.redact_shapes import OPTIONS, SHAPES, TOKENS

    prefixes = [(rule, ", ".join(f"`{prefix}`" for prefix in names.split())) for rule, names in sorted(TOKENS.items())]
    shapes = sorted({shape.name for shape in SHAPES} | {option.name for option in OPTIONS})
    return _table("kind prefixes", prefixes) + "\nBy other forms: " + ", ".join(shapes) + ".\n"


def status_words() -> str:
    """The words that formats use for each status."""
    from tracetui.model import Status
    from tracetui.model.span import STATUS_BY_WORD

    names = {status: sorted(word for word, meaning in STATUS_BY_WORD.items() if meaning is status) for status in Status}
    return _table(
        "status words", [(f"**{status}**", ", ".join(f"`{word}`" for word in names[status])) for status in Status]
    )


def keys() -> str:
    """Every command of the app by group, as on the help screen."""
    from tracetui.ui.commands import COMMANDS, GROUPS, key_label, pane_names

    sections = []
    for group, title in GROUPS.items():
        rows = []
        for command in (command for command in COMMANDS if command.group == group):
            pressed = " ".join(f"`{key_label(key)}`" for key in command.keys)
            panes = pane_names(command.panes)
            rows.append((pressed, f"{command.help} ({panes})" if panes else command.help, command.id))
        sections.append(f"## {title}\n\n{_table('keys action command', rows)}")
    return "\n".join(sections)


def run_list() -> str:
    """What the settings of the list accept: its sort orders, groups and columns."""
    from tracetui.analysis.arrangement import GROUPS, SORTS
    from tracetui.views.list.columns import COLUMNS

    choices = [
        (f"`{name}`", ", ".join(f"`{choice}`" for choice in names))
        for name, names in (("sort", SORTS), ("group", GROUPS))
    ]
    columns = [
        (f"`{column.name}`", column.about, f"`{column.sort}`" if column.sort else "") for column in COLUMNS.values()
    ]
    return f"{_table('setting values', choices)}\n{_table('column shows sort', columns)}"


def query_kinds() -> str:
    """The values that a key of each kind takes."""
    from tracetui.store.query.kinds import Kind

    return _table("kind value", ((kind.name.lower(), kind.value.about) for kind in Kind))


def query_runs() -> str:
    """Every query key for runs."""
    from tracetui.store.query import RUN_KEYS

    return _query_keys(RUN_KEYS)


def query_spans() -> str:
    """Every query key for spans."""
    from tracetui.store.query import SPAN_KEYS

    return _query_keys(SPAN_KEYS)


def _query_keys(table: Table[Any]) -> str:
    """The keys of a table by kind."""
    from tracetui.store.query.kinds import Kind

    explained = {key.about for key in table.keys}
    rows = []
    for kind in Kind:
        keys = [key for key in table.keys if key.kind is kind]
        rows += [(f"**{kind.name.lower()}**", "")] if keys else []
        for key in keys:
            names = " ".join(f"`{name}`" for name in (key.name, *key.aliases))
            special = {name: fact.about for name, fact in key.facts.items() if fact.about not in explained}
            facts = "".join(f"<br>`{key.name}:{name}`: {about}" for name, about in special.items())
            rows.append((names, key.about + facts))
    return _table("key matches", rows)


def example(name: str) -> str:
    """Part of the module of an example format: ``steplog:Session,span_of``, and without names its imports."""
    module, _, wanted = name.partition(":")
    text = (EXAMPLES / module / f"tracetui_{module}.py").read_text("utf-8")
    nodes = ast.parse(text).body
    first = next(i for i, node in enumerate(nodes) if not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom))
    names = wanted.split(",")
    parts = []
    for i, node in enumerate(nodes):
        named = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", None)
        if named in names if wanted else i < first:
            about = nodes[i + 1] if i + 1 < len(nodes) and isinstance(node, ast.AnnAssign) else None
            last = about if isinstance(about, ast.Expr) else node
            parts.append("\n".join(text.splitlines()[node.lineno - 1 : last.end_lineno]))
    assert len(parts) >= len(names), f"{name}: no such definition"
    return "```python\n" + ("\n\n\n" if wanted else "\n").join(parts) + "\n```\n"


def package() -> str:
    """The package metadata of the example format."""
    return f"```toml\n{(EXAMPLES / 'steplog' / 'pyproject.toml').read_text('utf-8')}```\n"


def worklog() -> str:
    """The log of the example of an agent's format."""
    path = EXAMPLES / "worklog" / "cases" / "review" / "input" / "review.worklog.jsonl"
    return f"```json\n{path.read_text('utf-8')}```\n"


def part(name: str) -> str:
    """The generated part of that name."""
    return PARTS[name]() if name in PARTS else example(name)


def performance() -> str:
    """The results of one benchmark run, as saved by ``dev.py bench --save``."""
    saved = json.loads((DOCS / "performance.json").read_text("utf-8"))
    first, last = saved["load"]
    rows = []
    for row in saved["rows"]:
        value, limit = (f"{_number(row[name])} {row['unit']}".strip() for name in ("value", "limit"))
        why = "" if row["met"] else row.get("why", "")
        rows.append((row["what"].strip(), value if row["met"] else f"**{value}**", limit, why))
    head = (
        f"{saved['date']}, commit {saved['commit']}, {saved['options']}, {saved['machine']}, load {first} to {last}: "
    )
    head += f"{sum(row['met'] for row in saved['rows'])} of {len(rows)} limits met."
    return f"{head}\n\n{_table('measurement value limit why', rows)}"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _table(titles: str, rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `titles` are one word a column."""
    head = titles.split()
    lines = [" | ".join(head), "|".join("---" for _ in head)]
    return "\n".join([*lines, *(" | ".join(cell.replace("|", "\\|") for cell in row).rstrip() for row in rows)]) + "\n"


def completions(shell: str) -> str:
    """The completions of a shell."""
    from tracetui.cli.completions import script

    return script(shell)


def schemas() -> str:
    """The schema file of each command."""
    from tracetui.export.schemas import DOCUMENTS

    return _table("document schema", [(f"`{name}`", f"[{name}.json](schemas/{name}.json)") for name in DOCUMENTS])


def schema_file(name: str) -> str:
    """The JSON Schema of a document."""
    from tracetui.export.schemas import json_schema

    return json.dumps(json_schema(name), indent=1) + "\n"


def schema_files() -> dict[str, Callable[[], str]]:
    """The schema files, by path."""
    from tracetui.export.schemas import DOCUMENTS

    return {f"docs/schemas/{name}.json": partial(schema_file, name) for name in DOCUMENTS}


PARTS: Final[dict[str, Callable[[], str]]] = {
    "cli": cli,
    "formats": formats,
    "keys": keys,
    "list": run_list,
    "package": package,
    "performance": performance,
    "query-kinds": query_kinds,
    "query-runs": query_runs,
    "query-spans": query_spans,
    "schemas": schemas,
    "secrets": secrets,
    "words": status_words,
    "worklog": worklog,
}
SHARED: Final[dict[str, Callable[[], str]]] = {
    "snapshots/strings.txt": partial(visible_strings, ROOT / "src" / "tracetui"),
    "share/man/man1/tracetui.1": man_page,
    "share/bash-completion/completions/tracetui": partial(completions, "bash"),
    "share/zsh/site-functions/_tracetui": partial(completions, "zsh"),
    "share/fish/vendor_completions.d/tracetui.fish": partial(completions, "fish"),
}
"""Files that the wheel installs beside the package."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
