"""The nodes tab."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracetui.model import Body, Error, Header, Operation, Run, RunRef, Span, Status
from tracetui.model.build import RunBuilder
from tracetui.views import stack
from tracetui.views.detail.tabs import has_nodes, node_rows, tab_names
from tracetui.views.glyphs import ASCII, UNICODE
from tracetui.views.rows import width_of


def graph_run() -> Run:
    builder = RunBuilder(RunRef("x", "x.db", "r"), lambda span: Body())
    nodes = [("embed", 10.0, Status.OK), ("generate", 90.0, Status.OK), ("generate", None, Status.ERROR)]
    spans = [
        Span(
            id=str(i), name=name, operation=Operation.NODE, is_step=True, step=i, status=status, duration_ms=ms,
            error=Error("504") if status is Status.ERROR else None,
        )
        for i, (name, ms, status) in enumerate(nodes)
    ]  # fmt: skip
    builder.add(spans, header=Header(id="r", name="rag", status=Status.ERROR))
    return builder.build()


def test_a_row_for_each_node_with_its_numbers_and_a_way_to_its_first_execution() -> None:
    rows = node_rows(graph_run(), width=100)
    lines = ["".join(piece.text for piece in rows.line(i, 100)) for i in range(len(rows))]
    generate = next(i for i, line in enumerate(lines) if "generate" in line and rows.selectable(i))
    assert lines[generate].split()[:5] == ["✗" if "✗" in lines[generate] else "□", "generate", "2", "1", "·"]
    assert "90%" in lines[generate]
    assert stack.target(rows, generate) == "1"


def test_only_graph_runs_have_the_tab() -> None:
    run = graph_run()
    assert has_nodes(run)
    assert "nodes" in tab_names(run, run.spans[0], None)


@given(width=st.integers(1, 200), ascii_only=st.booleans())
def test_rows_keep_to_the_width(width: int, ascii_only: bool) -> None:
    rows = node_rows(graph_run(), width=width, glyphs=ASCII if ascii_only else UNICODE)
    assert all(width_of(rows.line(i, width)) <= width for i in range(len(rows)))
