"""``tracetui cache``: where the cache of runs is, and how large; ``cache clear`` empties it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tracetui.cli.output import complain, write_bytes, write_lines
from tracetui.export.json import encode
from tracetui.store.run_cache import Storage, Usage
from tracetui.store.settings import load_cache_limit
from tracetui.text import Clean, exact

HELP = "show or clear the run cache"
EXAMPLES = """\
tracetui caches the result of each file, so that unchanged files aren't read again; see docs/cache.md.

examples:
  tracetui cache
  tracetui cache clear
  tracetui ls traces/ --no-cache        read every file
"""
SCHEMA = "tracetui/cache/1"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``cache``."""
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help="show (default) or clear")
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/cache/1, see docs/json.md")


def run(args: argparse.Namespace) -> int:
    """Print the usage; exit status 1 if clearing failed. Raises `UsageError` for invalid settings."""
    limit = load_cache_limit()
    storage = Storage("", limit=limit)
    cleared = args.action != "clear" or storage.clear()
    usage = storage.usage()
    storage.close()
    if args.json:
        write_bytes([encode({"schema": SCHEMA, **usage._asdict(), "limit": limit}), b"\n"])
    else:
        write_lines(_lines(usage, limit))
    if storage.trouble:
        complain(exact(f"the cache {storage.path} isn't used: {storage.trouble}"))
    return 0 if cleared else 1


def _lines(usage: Usage, limit: int) -> Iterator[Clean]:
    yield exact(f"path    {usage.path}")
    yield Clean(f"size    {usage.size / 1e6:,.1f} MB of at most {limit / 1e6:,.0f} MB")
    yield Clean(f"files   {usage.rows:,}")
    lookups = usage.hits + usage.misses
    share = f" ({usage.hits / lookups:.0%} of {lookups:,} lookups)" if lookups else ""
    yield Clean(f"hits    {usage.hits:,}{share}")
