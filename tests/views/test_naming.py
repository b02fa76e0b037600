"""What runs are run_label in few cells."""

from __future__ import annotations

import pytest

from tests.views.build import make_run
from tracetui.views.labels import run_label, short_id


@pytest.mark.parametrize(
    ("ident", "short"),
    [
        ("0690e0f0-1c2d-4e5f-8061-728394a5b6c7", "0690e0f0"),
        ("7ca37ce130c1114bb21acc6c5c9e4170", "7ca37ce1"),
        ("3P4v9cvsFh7HtyEfYEbj3a/bad_epoch_2", "3P4v9cvsF…ad_epoch_2"),
        ("ses_e0720a666ffegqQTSZNtdSbWy6", "ses_e0720…SZNtdSbWy6"),
        ("root-1", "root-1"),
        ("", ""),
    ],
)
def test_ids_are_cut_so_that_they_tell_runs_apart(ident: str, short: str) -> None:
    assert short_id(ident) == short
    assert len(short_id(ident, 9)) <= 9


def test_a_run_is_called_by_its_name_and_label() -> None:
    assert run_label(make_run([], name="errors_task", label="bad #2").summary) == "errors_task bad #2"
    assert run_label(make_run([], name="work").summary) == "work"
    assert run_label(make_run([], name="").summary) == make_run([]).summary.id
