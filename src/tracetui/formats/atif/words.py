"""What a trajectory begins with: the prompt by which people know it again, when it was, and which model answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tracetui.formats.atif.fields import is_copied, moment, text_in
from tracetui.formats.scalars import mapping, word


class Opening(NamedTuple):
    """What the first steps tell; copied ones do not count."""

    prompt: str = ""
    """The whole of it."""
    started_at: float | None = None
    zone: str | None = "UTC"
    model: str | None = None


def opening_of(steps: Iterable[Any], model: str | None = None) -> Opening:
    """The first real prompt, time and model (if not `model`); no more steps are asked for than that takes."""
    prompt = wrapped = ""
    when: float | None = None
    zone: str | None = "UTC"
    for step in map(mapping, steps):
        if is_copied(step):
            continue
        if when is None and (told := moment(step.get("timestamp")))[0] is not None:
            when, zone = told
        text = text_in(step.get("message")).strip() if not prompt and step.get("source") == "user" else ""
        if text and not is_wrapped(text):
            prompt = text
        wrapped = wrapped or text
        model = model or word(step.get("model_name"))
        if prompt and when is not None and model:
            break
    return Opening(prompt or wrapped, when, zone, model)


def is_wrapped(text: str) -> bool:
    """Whether a text is one element, ``<environment_context>…</environment_context>``: no person typed that."""
    name = text[1 : text.find(">")] if text.startswith("<") else ""
    return name.replace("_", "").replace("-", "").isalnum() and text.endswith(f"</{name}>")
