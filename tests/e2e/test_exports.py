"""Exported pages in Chromium: they fit, follow the theme, print, work without script, and no content of them acts."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from tests import hostile
from tests.browser import Page, browser, missing
from tests.shared import PATIENCE, SEARCHES
from tracetui import demo

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser"),
    pytest.mark.asyncio(loop_scope="module"),
]
NOW: Final = datetime(2024, 1, 15, 10, 0, tzinfo=UTC)
FAILED: Final = "runs/researcher-0690e0f0-e1bf-4d65-ac52-89138f446e8d.html"
NESTED: Final = "runs/weekly_report-report-001.html"
DIFF: Final = "diffs/researcher-e4417b8b-2ffe-4057-a4c5-dc3a4ad80818.html"
PAGES: Final = ("index.html", "triage.html", "tasks.html", FAILED, NESTED, DIFF)
WIDTHS: Final = (400, 1280, 1920) if SEARCHES else (400, 1280)
"""Pixels: of a telephone, and the fewest and more that a large window has."""
CANARY: Final = (
    '<script>window.canary=1</script><img src="https://canary.example/i" onerror="window.canary=2">'
    "<svg onload=window.canary=3><iframe src=javascript:parent.canary=4></iframe><base href=https://canary.example/>"
    '"><a href="javascript:window.canary=5" id=x style="background:url(https://canary.example/s)">x</a>'
    "</pre></span></a></summary></details></style></title></script><!--<link rel=stylesheet href=//canary.example>"
)
"""Markup that would run a script, or load something, in every place of a page."""


def export(traces: Path, site: Path, *options: str) -> Path:
    """The site of a folder, written by the real program."""
    command = [sys.executable, "-m", "tracetui", "export", str(traces), "--site", str(site), *options]
    home = {name: str(site.parent / "home") for name in ("HOME", "XDG_STATE_HOME")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **home})
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the built-in samples."""
    folder = tmp_path_factory.mktemp("site")
    demo.write(folder / "traces", NOW)
    return export(folder / "traces", folder / "site")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab() -> AsyncIterator[Page]:
    """The only tab of a browser."""
    async with browser() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def page(tab: Page) -> Page:
    """The tab as it was when it was new."""
    await tab.send("Emulation.setScriptExecutionDisabled", value=False)
    await tab.send("Emulation.clearDeviceMetricsOverride")
    await tab.send("Emulation.setEmulatedMedia", features=[])
    await tab.send("Page.navigate", url="about:blank")
    tab.requests.clear()
    tab.errors.clear()
    return tab


async def visit(page: Page, path: Path, fragment: str = "") -> None:
    await page.send("Page.navigate", url="about:blank")
    await page.open(path.as_uri() + fragment)


async def colors(page: Page, scheme: str) -> str:
    """The background in a color scheme."""
    await page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    color = await page.value("getComputedStyle(document.body).backgroundColor")
    assert isinstance(color, str)
    return color


@pytest.mark.search
async def test_pages_fit_at_every_width_in_both_themes(page: Page, site: Path) -> None:
    for name in PAGES:
        for width in WIDTHS:
            await page.resize(width, 900)
            await visit(page, site / name)
            for scheme in ("light", "dark"):
                await colors(page, scheme)
                await page.value("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
                wide = await page.value("document.documentElement.scrollWidth")
                assert wide <= width, f"{name} is {wide} px wide in a window of {width}"
        assert await colors(page, "light") != await colors(page, "dark")
    assert page.errors == []


async def test_numbers_keep_their_units(page: Page, site: Path) -> None:
    await page.resize(400, 900)
    for name in PAGES:
        await visit(page, site / name)
        broken = await page.value(
            "[...document.querySelectorAll('.time, .tokens, .number, .axis span')].filter(cell => "
            "cell.getClientRects().length && cell.getClientRects()[0].height > "
            "1.9 * parseFloat(getComputedStyle(cell).lineHeight)).map(cell => cell.textContent)"
        )
        assert broken == [], name


async def test_without_script_a_page_reads_and_unfolds(page: Page, site: Path) -> None:
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    await page.resize(1280, 4000)
    await visit(page, site / FAILED)
    assert await page.value("document.querySelector('.tools')") is None
    text = await page.value("document.body.innerText")
    assert "search timed out after 30s" in text
    assert "EV subsidies 2024" in text
    assert await page.value("document.querySelectorAll('svg.bar rect').length") == 11
    x, y = await page.value(
        "(box => [box.x + 30, box.y + 5])(document.querySelector('#step-2 > summary .step').getBoundingClientRect())"
    )
    assert not await page.value("document.getElementById('step-2').open")
    await page.click(x, y)
    await page.until("document.getElementById('step-2').open")


async def test_search_hides_other_steps_and_folds_and_links_work(page: Page, site: Path) -> None:
    await visit(page, site / NESTED)
    await page.value("document.querySelectorAll('.tools button')[1].click()")
    assert await page.value("document.querySelectorAll('details[open]').length") == 0
    await page.type("/")
    await page.type("generate")
    await page.until("document.querySelector('output').textContent.startsWith('1 of ')")
    visible = "[...document.querySelectorAll('.row')].filter(row => row.checkVisibility()).map(row => row.id)"
    assert await page.value(f"{visible}.length") == 3  # the step and what it is in
    await visit(page, site / FAILED)
    await page.value("document.querySelectorAll('.tools button')[1].click()")
    await page.value("document.querySelector('a[href=\"#step-11\"]').click()")
    await page.until("document.getElementById('step-11').open && scrollY > 0")
    await page.value("document.querySelector('a[href*=\"triage.html#\"]').click()")
    await page.until("location.pathname.endsWith('/triage.html') && document.readyState === 'complete'")
    assert await page.value("document.getElementById(location.hash.slice(1)).tagName") == "H2"


async def test_pages_print(page: Page, site: Path) -> None:
    for name in PAGES:
        await visit(page, site / name)
        printed = await page.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        pdf = base64.b64decode(printed["data"])
        assert pdf.startswith(b"%PDF")
        assert re.search(rb"/Type\s*/Page\b", pdf), name


@pytest.mark.search
async def test_nothing_in_a_trace_acts_in_a_page(page: Page, tmp_path: Path) -> None:
    if SEARCHES:
        hostile.write(tmp_path / "corpus", NOW)
    for cases in hostile.write_cases(tmp_path / "markup").values():
        for case in () if SEARCHES else cases[1:]:
            shutil.rmtree(case)
    hostile.prefix(tmp_path / "markup", CANARY)
    seen = 0
    for name, every in (*([("corpus", 12)] if SEARCHES else []), ("markup", 1)):  # no text of the corpus is markup
        site = export(tmp_path / name, tmp_path / f"{name}-site", "--no-redact")
        for path in sorted(site.rglob("*.html"))[::every]:
            page.requests.clear()
            await page.open(path.as_uri())
            assert await page.value("typeof window.canary") == "undefined", path.name
            assert page.requests == [path.as_uri()], path.name
            assert await page.value("document.querySelectorAll('img, iframe, base, link, script').length") == 1
            seen += b"canary.example" in path.read_bytes()
    assert page.errors == []
    assert seen > 20, "the markup isn't in the pages"


async def test_the_policy_would_stop_what_got_into_a_page(page: Page, site: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged.html"
    forged.write_bytes((site / FAILED).read_bytes().replace(b"<main>", b"<main>" + CANARY.encode()))
    await visit(page, forged)
    assert await page.value("typeof window.canary") == "undefined"
    assert page.errors, "nothing was refused: this test proves nothing"
