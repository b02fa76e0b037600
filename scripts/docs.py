"""Write the generated parts of docs/ from the code; with ``--check``, fail if one is stale.

A generated part is between ``<!-- generated: NAME -->`` and ``<!-- end -->``; everything else is written by hand.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tracetui.store.query import Table

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
STEPLOG: Final = DOCS / "examples" / "steplog"
PART: Final = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Update every page, or only report stale ones."""
    stale = []
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        fresh = PART.sub(lambda match: f"{match[1]}\n{PARTS[match[2]]()}\n{match[3]}", text)
        if fresh != text:
            stale.append(page.name)
            if "--check" not in arguments:
                page.write_text(fresh, "utf-8")
    if not stale:
        print("docs: up to date")
    elif "--check" in arguments:
        print(f"docs: stale: {', '.join(stale)}; `python3 dev.py docs` writes them", file=sys.stderr)
        return 1
    else:
        print(f"docs: wrote {', '.join(stale)}")
    return 0


def cli() -> str:
    """The help of every command, as the program prints it."""
    from tracetui.cli.parser import COMMANDS, parser_of

    os.environ.update(COLUMNS="100", NO_COLOR="1")
    helps = [parser_of(name).format_help() for name in (None, *COMMANDS)]
    titles = ["", *(f"## tracetui {name}\n\n" for name in COMMANDS)]
    return "\n".join(f"{title}```\n{text}```\n" for title, text in zip(titles, helps, strict=True))


def formats() -> str:
    """The built-in formats, with the docstring of each module."""
    from tracetui.formats import registry

    rows = ["| `--format` | name | reads |", "|---|---|---|"]
    for name in registry.BUILT_IN:
        found = registry.load(name)
        about = " ".join((sys.modules[type(found).__module__].__doc__ or "").split("\n\n")[0].split())
        rows.append(f"| `{name}` | {found.title} | {_cell(about.partition(': ')[2] or about)} |")
    return "\n".join(rows) + "\n"


def words() -> str:
    """Every status with its words."""
    from tracetui.model import Status
    from tracetui.model.span import STATUS_BY_WORD

    rows = ["| status | words |", "|---|---|"]
    for status in Status:
        found = sorted(word for word, meaning in STATUS_BY_WORD.items() if meaning is status)
        rows.append(f"| **{status}** | {', '.join(f'`{word}`' for word in found)} |")
    return "\n".join(rows) + "\n"


def keys() -> str:
    """Every command of the app, group by group, as the help screen has them."""
    from tracetui.ui.commands import COMMANDS, GROUPS, shown

    sections = []
    for group, title in GROUPS.items():
        rows = [f"## {title}\n", "| keys | what it does | in | command |", "|---|---|---|---|"]
        for command in (one for one in COMMANDS if one.group == group):
            pressed = " ".join(f"`{_cell(shown(key))}`" for key in command.keys)
            rows.append(f"| {pressed} | {_cell(command.help)} | {_where(command.panes)} | {command.id} |")
        sections.append("\n".join(rows) + "\n")
    return "\n".join(sections)


def _where(panes: frozenset[str]) -> str:
    """The panes in words: whole screens by their names."""
    from tracetui.ui.commands import DIFF, EVERYWHERE, LISTS, MAIN, RUN, TRIAGE

    if panes == EVERYWHERE:
        return "every pane"
    names = []
    for name, screen in (
        ("the main screen", MAIN),
        ("an open run", RUN),
        ("the triage", TRIAGE),
        ("a comparison", DIFF),
        ("lists", LISTS),
    ):
        if screen <= panes:
            names.append(name)
            panes -= screen
    return ", ".join([*names, *sorted(panes)])


def query_kinds() -> str:
    """What may stand after a key of each kind."""
    from tracetui.store.query.keys import ABOUT_KINDS

    rows = ["| kind | what follows the key |", "|---|---|"]
    return "\n".join([*rows, *(f"| {kind} | {_cell(about)} |" for kind, about in ABOUT_KINDS.items())]) + "\n"


def query_runs() -> str:
    """Every key that asks for runs."""
    from tracetui.store.query import RUN_KEYS

    return _query_keys(RUN_KEYS)


def query_spans() -> str:
    """Every key that asks for spans."""
    from tracetui.store.query import SPAN_KEYS

    return _query_keys(SPAN_KEYS)


def _query_keys(table: Table[Any]) -> str:
    rows = ["| key | kind | asks for |", "|---|---|---|"]
    told = {key.about for key in table.keys}
    for key in table.keys:
        names = " ".join(f"`{name}`" for name in (key.name, *key.aliases))
        special = {name: fact.about for name, fact in key.facts.items() if fact.about not in told}
        facts = "".join(f"<br>`{key.name}:{name}`: {about}" for name, about in special.items())
        rows.append(f"| {names} | {key.kind} | {_cell(key.about)}{_cell(facts)} |")
    return "\n".join(rows) + "\n"


def example() -> str:
    """The example format, as its file has it."""
    return f"```python\n{(STEPLOG / 'tracetui_steplog.py').read_text('utf-8')}```\n"


def package() -> str:
    """What makes it a package."""
    return f"```toml\n{(STEPLOG / 'pyproject.toml').read_text('utf-8')}```\n"


def performance() -> str:
    """What one run of the benchmarks measured, from the file that ``dev.py bench --save`` wrote."""
    saved = json.loads((DOCS / "performance.json").read_text("utf-8"))
    first, last = saved["load"]
    head = f"Measured on {saved['date']} at {saved['commit']} ({saved['options']}): {saved['machine']},"
    rows = [
        f"{head} load {first} at the beginning, {last} at the end.\n",
        "| what | measured | limit | remark |",
        "|---|---|---|---|",
    ]
    for row in saved["rows"]:
        value, limit = (f"{_number(row[name])} {row['unit']}".strip() for name in ("value", "limit"))
        rows.append(
            f"| {_cell(row['what'].strip())} | {value if row['met'] else f'**{value}**'} | {limit} | {row['detail']} |"
        )
    return "\n".join(rows) + "\n"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PARTS: Final[dict[str, Callable[[], str]]] = {
    "cli": cli,
    "example": example,
    "formats": formats,
    "keys": keys,
    "package": package,
    "performance": performance,
    "query-kinds": query_kinds,
    "query-runs": query_runs,
    "query-spans": query_spans,
    "words": words,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
