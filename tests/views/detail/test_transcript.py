"""Messages as people read them."""

from __future__ import annotations

from tests.views.build import check_rows, texts
from tracetui.model import Blob, Message, Reasoning, Text, ToolCall, ToolResult
from tracetui.views.detail.transcript import last_reply, transcript

TALK = (
    Message("system", (Text("You are careful."),)),
    Message("user", (Text("Compare EV subsidies\nin DE and FR."),)),
    Message(
        "assistant",
        (Reasoning("The bonus ended early."), Text("I look it up."), ToolCall("c1", "search", {"query": "KfW 442"})),
        finish_reason="tool_use",
    ),
    Message("tool", (ToolResult("c1", "timed out", is_error=True, name="search"),)),
    Message("user", (Blob("image", {"url": "a.png"}),)),
    Message("assistant"),
)


def test_a_conversation() -> None:
    assert texts(transcript(TALK, width=60), 60) == [
        "system    ▎ You are careful.",
        "user      ▎ Compare EV subsidies",
        "          ▎ in DE and FR.",
        "∴ thought ▎ The bonus ended early.",
        "assistant ▎ I look it up.",
        '          ▎ → search { query: "KfW 442" }',
        "          ▎ stop: tool_use",
        "tool      ▎ search → ✗ timed out",
        'user      ▎ ▸ image: { url: "a.png" }',
        "assistant ▎ —",
    ]


def test_roles_have_their_colour_on_name_and_bar() -> None:
    rows = transcript(TALK, width=60)
    assert [piece.style for piece in rows.line(1, 60)][:2] == ["role.user bold", "role.user"]
    assert [piece.style for piece in rows.line(3, 60)][:2] == ["role.reasoning bold", "role.reasoning"]
    assert "status.error" in {piece.style for piece in rows.line(7, 60)}


def test_a_long_message_folds_and_opens() -> None:
    long = Message("tool", (ToolResult("c", "\n".join(f"line {i}" for i in range(51))),))
    rows = transcript([long], width=60)
    assert texts(rows, 60)[-1] == "          ▎ ▸ 39 more lines"
    fold = rows.fold(0)
    assert fold is not None
    opened = transcript([long], width=60, opened=frozenset({fold.key}))
    assert texts(opened, 60)[-1] == "          ▎ line 50"
    assert opened.key(5) == rows.key(5)


def test_of_a_long_conversation_the_latest_come_first() -> None:
    talk = [Message("user", (Text(f"message {i}"),)) for i in range(100)]
    rows = transcript(talk, width=60)
    assert len(rows) == 21
    assert texts(rows, 60)[:2] == ["▸ 80 earlier messages: user", "user      ▎ message 80"]
    assert "message 3\n" in rows.plain(0)
    fold = rows.fold(0)
    assert fold is not None
    opened = transcript(talk, width=60, opened=frozenset({fold.key}))
    assert len(opened) == 100
    assert opened.index(rows.key(1)) == 80


def test_a_hostile_transcript_fits_any_width() -> None:
    hostile = Message(
        "\x1b]0;x\x07", (Text("\u202e" * 50), ToolCall(None, "\x9b", {"\x00": [1]}), ToolResult(None, []))
    )
    for width in range(1, 80):
        check_rows(transcript([*TALK, hostile], width=width), width)


def test_new_messages_are_marked_and_earlier_ones_folded() -> None:
    roles = ["system", "user", "assistant", "assistant", "tool", "assistant"]
    messages = [Message(role, (Text(f"said {i}"),)) for i, role in enumerate(roles)]
    earlier = messages[:5]
    assert last_reply(earlier) == 2
    assert last_reply(messages[:2]) == 0
    rows = transcript(messages, width=50, new=range(2, 5))
    assert texts(rows, 50) == [
        "▸ 2 earlier messages: system, user · + new",
        "+ assistant ▎ said 2",
        "+ assistant ▎ said 3",
        "+ tool      ▎ said 4",
        "  assistant ▎ said 5",
    ]
    fold = rows.fold(0)
    assert fold is not None
    rows = transcript(messages, width=50, new=range(2, 5), opened=frozenset({fold.key}))
    assert texts(rows, 50)[:2] == ["  system    ▎ said 0", "  user      ▎ said 1"]
    check_rows(rows, 12)
