"""Looking for secrets: what it costs for text of many kinds, and for text that is made to be slow."""

from __future__ import annotations

import ast
import base64
import dataclasses
import json
import random
import re
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench import data
from tests.bench.table import Row, interleaved
from tests.test_redact import HOSTILE
from tracetui.redact import Redactor

_SIZE = 400_000
_WORD = re.compile(r"\w+")


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """Masking as a multiple of a search for all words of the same text, and of text that is full of secrets."""
    for name, text in texts(_SIZE // scale).items():
        took, baseline = _least(partial(_mask, text), rounds), _least(partial(_words, text), rounds)
        per_mb = took / (len(text) / 1e6)
        yield Row(f"secrets in {name}", took / baseline, LIMITS[name], "×", f"{per_mb:.0f} ms for 1 MB")
    size = 100_000 // scale
    usual = _least(partial(_mask, "DB_PASSWORD=hunter22\nPORT=80\n" * (size // 29)), rounds)
    slow = {name: _least(partial(_mask, piece * (size // len(piece))), rounds) for name, piece in HOSTILE.items()}
    worst = max(slow, key=slow.__getitem__)
    yield Row("hostile text, against text full of secrets", slow[worst] / usual, 4, "×", f"the slowest: {worst}")


LIMITS = {
    "prose": 0.5, "code": 0.5, "JSON": 1.5, "base64": 3, "a log": 0.5, "environments": 10, "JSON in JSON": 1,
}  # fmt: skip


def _mask(text: str) -> None:
    Redactor().text(text)


def _words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _least(call: Callable[[], object], rounds: int) -> float:
    """The least processor time of several calls, in milliseconds."""
    return min(interleaved({"": call}, rounds)[""])


def texts(size: int) -> dict[str, str]:
    """Text of every kind."""
    generator = data.TextGenerator("secrets")
    chance = random.Random(1)
    plain = generator.text(size)[:size]
    modules = (dataclasses, typing, ast, random, json, re)
    code = "".join(Path(str(module.__file__)).read_text() for module in modules)
    lines = [generator.text(80) for _ in range(200)]

    def repeated(line: Callable[[int], str]) -> str:
        copies: list[str] = []
        length = 0
        while length < size:
            copies.append(line(len(copies)))
            length += len(copies[-1]) + 1
        return "\n".join(copies)

    def log(number: int) -> str:
        when = f"2026-11-22T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z"
        return f"{when} INFO  app.worker[{number % 8}]: {lines[number % 200]} status=200 took={number % 97}ms"

    def row(number: int) -> dict[str, object]:
        return {
            "id": f"{chance.getrandbits(64):016x}", "name": lines[number % 200][:20], "n": number, "ok": True,
            "usage": {"input_tokens": 1200, "output_tokens": number}, "text": lines[number % 200], "path": "/src/a.py",
        }  # fmt: skip

    variables = ("HOME=/root", "PATH=/usr/bin:/bin", "API_TOKEN=$TOKEN", "LOG_LEVEL=info", "DB_PASSWORD={}", "PORT=80")
    return {
        "prose": plain,
        "code": (code * (size // len(code) + 1))[:size],
        "JSON": json.dumps([row(number) for number in range(size // 270)]),
        "base64": base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
        "a log": repeated(log),
        "environments": repeated(
            lambda number: variables[number % 6].format(base64.b64encode(chance.randbytes(9)).decode())
        ),
        "JSON in JSON": json.dumps({"a": json.dumps([row(number) for number in range(size // 300)])})[:-1],
    }
