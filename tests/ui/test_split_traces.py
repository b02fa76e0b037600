"""A trace that several files hold: the list says of each run that it is a part, and it counts once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.formats.test_otlp import TRACE, request, span
from tests.shared import settled
from tests.ui.conftest import Opener
from tests.ui.test_repeats import relationship_of
from tracetui.model import RunRef


async def test_the_list_marks_split_traces(opened: Opener, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    for name, spans in (("a.jsonl", [span(3, 2, 2, 3), span(2, 1, 1, 4)]), ("b.jsonl", [span(1, None, 0, 9)])):
        (made / name).write_text("".join(json.dumps(request(span)) + "\n" for span in spans))
    folder = settled(made, tmp_path / "traces")
    async with opened(folder) as (app, _):
        labels = [relationship_of(app, RunRef("otlp", str(folder / name), TRACE))[0] for name in ("a.jsonl", "b.jsonl")]
        assert labels == ["part 2/2", "part 1/2"]
        assert app.store.overview.runs == 1
