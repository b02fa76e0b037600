"""The type checker rejects text of a trace on its way to the display unless a redactor made it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.shared import ROOT

HEADER = """\
from tracetui import masking, text
from tracetui.model import Run, RunSummary
from tracetui.redact import Excerpt, Redactor
from tracetui.text import Clean, Masked, clean, clean_lines, exact, one_line
from tracetui.views.rows import Piece

def show(run: RunSummary, whole: Run, cut: Excerpt, redactor: Redactor) -> None:
    name = run.name
    names = [f'{span.name} ' for span in whole.spans]
    found: list[str] = []
    for span in whole.spans:
        error = span.error
        found.append(error.message if error else '')
    ours = 'run' if names else 'runs'
"""
REJECTED = (
    "Piece(run.prompt or '')",
    "Piece(clean(run.name))",
    "Piece(one_line(run.name, 80))",
    "Piece(clean_lines(run.name)[0])",
    "Piece(one_line(run.name[:20]))",
    "Piece(one_line(f'{run.name} {run.agent}'))",
    "Piece(one_line(redactor.text(run.name)[:20] + run.name))",
    "Piece(one_line(cut))",
    "Piece(exact(cut))",
    "Piece(masking.one_line(cut))",
    "Piece(one_line(cut.whole))",
    "Piece(Clean(run.name))",
    "Piece(Clean(f'{whole.spans[0].name}: 2'))",
    "Piece(Clean(error.message if error else ''))",
    "Piece(Clean(name))",
    "Piece(Clean(' '.join(names)))",
    "Piece(Clean(', '.join(reversed(found))))",
    "Piece(Clean(str(run.name)[:20].strip() + '…'))",
    "Piece(exact(name))",
    "Piece(text.exact(f'{run.ref.address} {names[0]}'))",
    "Piece(one_line(Masked(name)))",
)
ACCEPTED = (
    "Piece(masking.one_line(run.name))",
    "Piece(one_line(redactor.header(run.name), 80))",
    "Piece(masking.masked_line(run.name, redactor))",
    "Piece(one_line(redactor.excerpt(cut)))",
    "Piece(masking.excerpt(cut))",
    "Piece(exact(run.ref.address))",
    "Piece(one_line(Clean('ours')))",
    "Piece(Clean(f'{len(names)} {ours}: {masking.one_line(run.name)}'))",
    "Piece(Clean(', '.join(masking.one_line(label) for label in names)))",
    "Piece(exact(f'{run.id} {run.ref.format}'))",
)


def test_raw_text_of_a_trace_is_no_displayable_text(tmp_path: Path) -> None:
    """Whole, cut and composed."""
    snippet = tmp_path / "snippet.py"
    snippet.write_text(HEADER + "".join(f"    {line}\n" for line in (*REJECTED, *ACCEPTED)))
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    command = [sys.executable, "-m", "mypy", *options, str(snippet)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    first = HEADER.count("\n") + 1
    lines = {
        int(number) - first
        for number in re.findall(r"snippet\.py:(\d+): error: .*\[(?:arg-type|unmasked)\]", done.stdout)
    }
    assert lines == {*range(len(REJECTED))}, done.stdout
