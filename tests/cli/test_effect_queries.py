"""Queries about what runs did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.claude_sessions import REFUSED, Step, bash, write_session
from tests.cli.run import Cli
from tests.cli.test_files import write
from tracetui.analysis.audit import RULES
from tracetui.store.query.run_keys import AUDIT_RULES


def test_the_query_language_knows_the_rules_of_the_audit() -> None:
    assert (*RULES,) == AUDIT_RULES


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("touched:src/a.py", {"one", "two"}),
        ("wrote:a.py", {"one"}),
        ("deleted:a.py", {"two"}),
        ("read:notes.md", {"two"}),
        ("net:docs.shop.example", {"one"}),
        ("cmd:'rm src'", {"two"}),
        ("does:push-force", {"one"}),
        ("does:denied", {"two"}),
        ("-does:push", {"two"}),
        ("wrote:b.py", set()),
        ("touched:a.py does:delete", {"two"}),
    ],
)
def test_runs_are_found_by_what_they_did(cli: Cli, query: str, ids: set[str]) -> None:
    steps = [write("src/a.py", "one\n"), bash("git push -f"), bash("curl https://docs.shop.example/api")]
    write_session(Path("runs/one.jsonl"), steps)
    read = Step("Read", {"file_path": "/home/dev/shop/notes.md"}, "     1\tnote\n")
    refused = Step("Write", {"file_path": "/home/dev/shop/b.py", "content": "x\n"}, REFUSED, True)
    write_session(Path("runs/two.jsonl"), [read, bash("rm src/a.py"), refused])
    assert {run["id"] for run in cli("ls", "runs", "-q", query, "--json").data["runs"]} == ids


def test_an_unknown_rule_is_an_error(cli: Cli) -> None:
    write_session(Path("runs/one.jsonl"), [bash("ls")])
    result = cli("ls", "runs", "-q", "does:pushforce")
    assert result.status == 2
    assert "push-force" in result.err
