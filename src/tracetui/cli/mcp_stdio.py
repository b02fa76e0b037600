"""Standard input and output of ``tracetui mcp``: every line gets an answer, also one that is no message.

As released, the server of the package drops such lines without a word, and reads lines of any length.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from io import TextIOWrapper
from typing import Any, Final, cast

import mcp_types as types
from anyio import AsyncFile, to_thread
from anyio.abc import ObjectSendStream
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

MAX_LINE: Final = 4 << 20
"""Characters of a message."""
_NO_JSON: Final = -32700
_NO_REQUEST: Final = -32600  # codes of the JSON-RPC 2.0 specification, section 5.1


_Mistake = tuple[str | int | None, int, str]
"""The id of the request, as far as known, an error code, and the reason."""


class Lines:
    """The lines of standard input; those that are no messages are answered at once and left out."""

    def __init__(self) -> None:
        self._input = TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
        self.answers: ObjectSendStream[SessionMessage] | None = None
        """Where errors go; set before the first line is read."""

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await to_thread.run_sync(self._input.readline, MAX_LINE):
            error: _Mistake | None = (
                None if len(line) < MAX_LINE else (None, _NO_REQUEST, f"longer than {MAX_LINE >> 20} MB")
            )
            while len(line) == MAX_LINE and not line.endswith("\n"):
                line = await to_thread.run_sync(self._input.readline, MAX_LINE)
            error = error or mistake(line)
            if error is None:
                yield line
            elif line.strip() and self.answers is not None:
                request, code, reason = error
                problem = types.JSONRPCError(
                    jsonrpc="2.0", id=request, error=types.ErrorData(code=code, message=reason)
                )
                await self.answers.send(SessionMessage(problem))


def mistake(line: str) -> _Mistake | None:
    """Return the id of a line that is no message, as far as it has one, an error code and the reason; else None."""
    try:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValueError, RecursionError):
        pass
    else:
        return None
    try:
        value = json.loads(line)  # reads lone surrogates, too
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _id_of(value), _NO_REQUEST, "a string has half of a surrogate pair, which is no text"
    except (ValueError, RecursionError):
        return None, _NO_JSON, "no JSON"
    return _id_of(value), _NO_REQUEST, "no JSON-RPC 2.0 message"


def _id_of(value: object) -> str | int | None:
    number = value.get("id") if isinstance(value, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


async def serve(server: MCPServer[Any]) -> None:
    """Answer until standard input ends; calls that then still run end with it."""
    lines = Lines()
    low = server._lowlevel_server
    async with stdio_server(stdin=cast("AsyncFile[str]", lines)) as (requests, answers):
        lines.answers = answers
        await low.run(requests, answers, low.create_initialization_options())
