"""Uncollected mail is bounded."""

from __future__ import annotations

from tracetui.live.mailbox import Mail
from tracetui.model import Body, Operation, RunRef, Span
from tracetui.store.store import OPEN_BODIES


def test_only_the_latest_bodies_wait() -> None:
    ref, mail = RunRef("ccpa", "a.jsonl"), Mail()
    spans = [Span(id=str(i), name="chat", operation=Operation.CHAT) for i in range(3 * OPEN_BODIES)]
    for span in spans:
        mail.put_body(ref, span, Body())
    assert [span for span, _ in mail.bodies.values()] == spans[-OPEN_BODIES:]
