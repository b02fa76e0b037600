"""Which files no format claims, as the list learns it."""

from __future__ import annotations

from pathlib import Path

from tracetui.live.scan import scan
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store

CHAT = '{"messages": [{"role": "user", "content": "Prune"}]}'


def test_ignored_files_are_those_that_no_format_claims(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(CHAT)
    (tmp_path / "settings.json").write_text('{"theme": "dark"}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / ".hidden.json").write_text(CHAT)
    store = Store()
    chat, settings = str(tmp_path / "chat.json"), str(tmp_path / "settings.json")

    def look() -> dict[str, str]:
        store.begin_scan()
        store.apply(scan(LocalSource(), [str(tmp_path)], deep=False), 0.0)
        store.end_scan()
        return store.ignored

    assert look() == {chat: "chat messages", settings: ""}
    (tmp_path / "settings.json").write_text("{")
    assert look() == {chat: "chat messages"}
    (tmp_path / "chat.json").unlink()
    assert look() == {}
