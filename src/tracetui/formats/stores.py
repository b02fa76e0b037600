"""Files that programs are known to write, and that no format reads: stores of other agents, companions of sessions.

Stores have many files and are named once, by the folder that they have in common. Facts: real files of LangGraph
1.2.24, Google ADK 2.13, OpenHands 1.58 and OpenAI Agents 0.24; published sources of the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple


class Store(NamedTuple):
    """Traces of a program that are not read."""

    holds: str
    """What is in it: ``Goose sessions``."""
    path: str = ""
    """The folder of all its files; empty for a file that is a store of its own."""


_FOLDERS: Final = (
    ("LangGraph server state", re.compile(r"(?:.*?/)?\.langgraph_api(?=/.)")),
    ("Cline tasks", re.compile(r".*?(?=/[^/]+/(?:api_conversation_history|ui_messages)\.json$)")),
    ("OpenHands conversations", re.compile(r".*?(?=/[^/]+/events/event-\d+-[^/]*\.json$)")),
    ("OpenHands conversations", re.compile(r".*?(?=/[^/]+/base_state\.json$)")),
)
"""By what they hold: the folder of a store, in the paths of its files."""
_FILES: Final = (("Cursor chats", re.compile(r".*/Cursor/.*/state\.vscdb")),)
"""The same of stores that are one file each."""
_TABLES: Final[tuple[tuple[str, dict[str, frozenset[str]]], ...]] = (
    ("Goose sessions", {"sessions": frozenset(), "messages": frozenset({"content_json"})}),
    ("Crush sessions", {"sessions": frozenset(), "messages": frozenset({"parts", "session_id"})}),
    ("Google ADK sessions", {"sessions": frozenset({"app_name"}), "events": frozenset({"invocation_id"})}),
    ("Google ADK sessions", {"sessions": frozenset({"app_name"}), "events": frozenset({"event_data"})}),
    ("OpenAI Agents sessions", {"agent_sessions": frozenset(), "agent_messages": frozenset({"message_data"})}),
)
"""By what they hold: the tables of a database, and columns of these."""
STORE_TABLES: Final = frozenset(name for _, tables in _TABLES for name in tables)
"""Tables whose columns distinguish stores."""
_COMPANIONS: Final = (
    ("describes a sub-agent of Claude Code", re.compile(r".*/agent-[^/]+\.meta\.json")),
    ("journal of a workflow of Claude Code", re.compile(r".*/subagents/(?:.*/)?journal\.jsonl")),
    ("prompts typed into Claude Code or Codex", re.compile(r".*/\.(?:claude|codex)/history\.jsonl")),
    ("tasks to do of a Claude Code session", re.compile(r".*/\.claude/(?:todos|tasks)/.*\.json")),
    ("index of Claude Code sessions", re.compile(r".*/sessions-index\.json")),
)
"""By what they are: files beside sessions that do not record what agents did."""


def store_of(path: str) -> Store | None:
    """The store that a file belongs to, by its path."""
    whole = path.replace("\\", "/")
    for holds, folder in _FOLDERS:
        if match := folder.match(whole):
            return Store(holds, path[: match.end()])
    return next((Store(holds) for holds, name in _FILES if name.fullmatch(whole)), None)


def store_of_tables(columns: Mapping[str, Collection[str]]) -> Store | None:
    """The store that a database is, by the columns of its tables: several programs have tables of the same names."""
    for holds, tables in _TABLES:
        if all(name in columns and names <= {*columns[name]} for name, names in tables.items()):
            return Store(holds)
    return None


def companion_of(path: str) -> str | None:
    """What a file is that some program writes beside its sessions: ``describes a sub-agent of Claude Code``."""
    whole = f"/{path}".replace("\\", "/")
    return next((description for description, name in _COMPANIONS if name.fullmatch(whole)), None)
