"""Build the documentation site without a warning, from docs/, screenshots/ and the changelog, and check every link."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = ROOT / "build" / "pages"
SITE: Final = ROOT / "build" / "site"
LOADED: Final = {"script", "img", "iframe", "source", "video", "audio", "embed", "object"}
"""Elements whose address a browser requests without a click; so does ``link``, by its relationship."""


def main() -> int:
    """Copy the pages, build them, check the result; 1 if the site has a fault."""
    copy_pages()
    if subprocess.call(["zensical", "build", "--strict", "--clean"], cwd=ROOT):  # noqa: S607 - of the environment
        return 1
    faults = sorted(check(SITE))
    for fault in faults:
        print(fault, file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    print(f"site: {pages} pages in {SITE.relative_to(ROOT)}, {len(faults)} faults")
    return 1 if faults else 0


def copy_pages() -> None:
    """Write build/pages: docs/, and what its pages find in the folder above."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "screenshots", PAGES / "screenshots")
    for page in PAGES.glob("*.md"):
        page.write_text(page.read_text("utf-8").replace("](../", "]("), "utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (PAGES / "CHANGELOG.md").write_text(changelog.replace("](docs/", "]("), "utf-8")


class _Page(HTMLParser):
    """The ids and links of a page, and the addresses that a browser requests on its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.requests: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids.update(value for name, value in values.items() if name in ("id", "name"))
        for name in {"href", "src", "data", "poster"} & values.keys():
            loaded = tag in LOADED or (tag == "link" and values.get("rel") not in ("canonical", "next", "prev"))
            (self.requests if loaded else self.links).append(values[name])


def check(site: Path) -> Iterator[str]:
    """Yield every link to a missing page, file or heading, and every request to another host."""
    pages = {path: _Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name}: requests {address}" for address in page.requests if urlsplit(address).netloc)
        for link in (*page.links, *page.requests):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name.name == "404.html":
                continue
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{name}: {link} doesn't exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: {link} has no such heading"
    for path in site.rglob("*.css"):
        for address in re.findall(r"url\([\"']?((?:https?:)?//[^)\"']+)", path.read_text("utf-8")):
            yield f"{path.relative_to(site)}: requests {address}"


if __name__ == "__main__":
    sys.exit(main())
