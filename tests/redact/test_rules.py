"""How many secrets of a corpus the rules mask, and how many look-alikes they leave alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.redact.corpus import LOOKALIKES, OTHERS, PROMISED, held_out
from tests.secrets_corpus import Sample
from tests.test_secrets_corpus import masked_texts
from tracetui.redact import MASK, Excerpt, Redactor

PROMISED_MASKED, ALL_MASKED, LEFT_ALONE = 0.97, 0.85, 0.97
HALVES = pytest.mark.parametrize("held", [False, True], ids=["tuned", "held out"])


def half(samples: Sequence[Sample], *, held: bool) -> list[Sample]:
    return [sample for sample in samples if held_out(sample) is held]


def leaking(samples: Sequence[Sample]) -> list[str]:
    """The samples of which a part is left in any way in which a text is shown."""
    return [sample.name for sample in samples if any(map(sample.leaks, masked_texts(sample.text)))]


@HALVES
def test_promised_secrets_are_masked(held: bool) -> None:
    samples = half(PROMISED, held=held)
    assert len(samples) > 200
    assert all(sample.bodies for sample in samples)
    leaks = leaking(samples)
    assert len(leaks) <= (1 - PROMISED_MASKED) * len(samples), leaks


@HALVES
def test_most_secrets_of_any_kind_are_masked(held: bool) -> None:
    samples = half((*PROMISED, *OTHERS), held=held)
    leaks = leaking(samples)
    assert len(leaks) <= (1 - ALL_MASKED) * len(samples), leaks


@HALVES
def test_lookalikes_are_left_alone(held: bool) -> None:
    samples = half(LOOKALIKES, held=held)
    assert len(samples) > 70
    masked = [sample.name for sample in samples if Redactor().text(sample.text) != sample.text]
    assert len(masked) <= (1 - LEFT_ALONE) * len(samples), masked


@pytest.mark.parametrize(
    ("part", "whole", "masked"),
    [
        ("4711", "password=4711", "••••••••"),
        ("4711", "password=4711 in room 4711", "••••••••"),
        ("room 12", "password=4711 in room 12", "room 12"),
        ("no <id> for a1b2", '[{"name": "X-Api-Key", "value": "a1b2"}] no c3 for a1b2', "no <id> for ••••••••"),
        ("hunter22", "p\\u0061ssword: hunter22", "••••••••"),
    ],
)
def test_what_is_cut_out_of_a_text_is_cut_out_of_its_masked_text(part: str, whole: str, masked: str) -> None:
    assert Redactor().excerpt(Excerpt(part, whole)) == masked


def test_every_command_on_the_page_has_its_secret_masked() -> None:
    page = (Path(__file__).parents[2] / "docs" / "redaction.md").read_text()
    section = page.partition("## By command")[2].partition("\nEscape")[0]
    commands = [text.replace("…", "Zx9Qw7Vk2Hj5") for text in re.findall(r"`([^`]*…[^`]*)`", section)]
    assert len(commands) > 20
    assert not [command for command in commands if "Zx9Qw7Vk2Hj5" in Redactor().text(command)]


@pytest.mark.parametrize(
    "text", ["cmd --password {} > out.txt", "deploy --api-key {} -> done", "setx API_TOKEN {} > nul"]
)
def test_the_value_of_an_option_is_masked_before_a_redirection(text: str) -> None:
    assert Redactor().text(text.format("Zx9Qw7Vk2Hj5LmNo")) == text.format(MASK)
