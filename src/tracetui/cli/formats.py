"""``tracetui formats``: list the trace formats."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from tracetui.cli.output import write_bytes, write_lines
from tracetui.errors import PluginError
from tracetui.export.json import encode
from tracetui.formats import programs, registry
from tracetui.text import Clean, exact

HELP = "list the supported formats, plug-ins included"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``formats``."""
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/formats/1, see docs/json.md")


def run(args: argparse.Namespace) -> int:
    """Print the formats; one that fails to load is listed with the reason."""
    formats = [_describe(name) for name in registry.names()]
    if args.json:
        write_bytes([encode({"schema": "tracetui/formats/1", "formats": formats}), b"\n"])
    else:
        write_lines(_lines(formats))
    return 0


def _describe(name: str) -> dict[str, Any]:
    try:
        fmt = registry.load(name)
        title, broken = fmt.title, programs.fault(fmt, os.environ, PurePath(os.path.expanduser("~")))
    except PluginError as error:
        title, broken = None, str(error)
    return {"name": name, "title": title, "origin": registry.origin(name), "broken": broken}


def _lines(formats: list[dict[str, Any]]) -> Iterator[Clean]:
    width = max(len(item["name"]) for item in formats)
    for item in formats:
        text = f"broken: {item['broken']}" if item["broken"] else item["title"]
        yield exact(f"{item['name']:<{width}}  {text}  ({item['origin']})")
