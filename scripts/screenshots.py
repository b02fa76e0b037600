"""Take the pictures in screenshots/ from the real app: *.png and demo.gif need Pillow and the font DejaVu Sans Mono.

The samples are written as of a fixed moment and shown at that moment, so that the same program takes the same pictures.
What is judged in a picture is judged in that picture only. What the app exports in one is kept beside it; of exported
pages, Chromium takes pictures where it is installed. Names after the command take only those.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent.parent))  # of the tests' server
import recording
from painting import COLORS, Piece, painter
from rich.color import Color as RichColor
from rich.terminal_theme import TerminalTheme
from tests.sources.sshd import Sshd, missing
from textual.pilot import Pilot
from textual.strip import Strip

from tracetui import cli, demo, masking, redact
from tracetui.demo import ccpa
from tracetui.live.engine import Engine
from tracetui.sources.base import Source
from tracetui.sources.local import LocalSource
from tracetui.sources.locations import open_source
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.base import BaseListScreen
from tracetui.ui.screens.diff import DiffScreen
from tracetui.ui.screens.lists import FacetsScreen, StatisticsScreen
from tracetui.ui.screens.run_tree import RunTreeScreen
from tracetui.ui.screens.today import LiveScreen
from tracetui.ui.screens.triage import TriageScreen

TARGET: Final = Path(__file__).resolve().parent.parent / "screenshots"
NOW: Final = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
PATIENCE: Final = 30.0
AGO: Final = 3600
"""How many seconds before the picture folders changed; files did when their runs ended."""
AGENTS: Final = "agents"
AGENT_STEPS: Final = 19
"""Pauses of the agent at work before the picture of it is taken."""
AGENT_PACE: Final = 4.0
"""How much longer than in the demo its steps take."""
SILENCE: Final = 221.0
"""Seconds from its last step to the picture."""
QUIET: Final = 0.25
REPLAY: Final = ("g", *"jjj")
"""Keys that go to a replay which went another way than its original."""
SIGNATURE: Final = ("T", "j")
"""Keys that go to a failure signature of three runs which have something in common."""
REVIEWED: Final = (
    "T",
    *"vr",
    "l",
    "a",
    *"the index is slow at night",
    "enter",
    "t",
    *"vendor",
    "enter",
    *"vf",
    ".",
    "k",
    "k",
)
"""Keys that judge three signatures, and come back to the second one, which is unfolded."""
ALL_REVIEWED: Final = ("T", *"vrvf..vrvk.vr...vivfvrvi")
"""Keys that give every signature a verdict."""
BACKSPACES: Final = ("backspace",) * len("md")


class Shot(NamedTuple):
    """One picture: what is opened, which keys are pressed, which tab of the detail is shown."""

    name: str
    root: str = "traces"
    keys: tuple[str, ...] = ()
    tab: str = ""
    size: tuple[int, int] = (120, 40)
    palette: str = "dark"
    growing: bool = False
    """An agent writes meanwhile below `AGENTS`, step by step, and then no more."""
    over_ssh: bool = False
    """The root is on another machine, which is a server on this one."""
    makes: tuple[str, ...] = ()
    """The files that are written in it."""


SHOTS: Final = (
    Shot("main"),
    Shot("run", keys=("enter",)),
    Shot("tree", root="traces/latticeflow/trip.json", keys=("enter", "t")),
    Shot("goal", root="traces/penelope/appeal", keys=("enter",), tab="goal"),
    Shot("nodes", keys=("f", *"support_batch", "enter", "enter"), tab="nodes"),
    Shot("messages", root="traces/ccpa", keys=("enter", "g", "j", "j", "j"), tab="messages"),
    Shot("light", keys=("enter",), palette="light"),
    Shot("live", root=AGENTS, keys=("enter",), growing=True),
    Shot("ssh", root=AGENTS, keys=("enter",), growing=True, over_ssh=True),
    Shot("dashboard", root=".", keys=("L",), growing=True),
    Shot("columns", keys=("W",)),
    Shot("narrow", keys=("enter",), size=(80, 24)),
    Shot("replay", keys=REPLAY),
    *(Shot("diff", keys=(*REPLAY, "D"), size=size) for size in ((80, 24), (120, 40), (200, 60))),
    Shot("context", keys=(*REPLAY, "D", "c"), tab="context"),
    Shot("filter", keys=("f", *"status:error tool:s", "tab")),
    Shot("pick", keys=("P",)),
    Shot("hits", keys=("&", *"timeout", "enter")),
    *(Shot("triage", keys=SIGNATURE, size=size) for size in ((80, 24), (120, 40))),
    Shot("judging", keys=REVIEWED),
    Shot("statistics", keys=("S",), tab="tool"),
    Shot("tasks", root="trials", keys=("M",)),
    Shot("forks", root="trials", keys=("M", "f", *"task:refund-late", "enter", "enter")),
    Shot(
        "export",
        keys=(*ALL_REVIEWED, "x", "enter", "x", *BACKSPACES, *"html", "enter"),
        makes=("triage.md", "triage.html"),
    ),
)


class PageShot(NamedTuple):
    """A picture of an exported page: its file, the arguments of ``tracetui export`` that write it, the window."""

    name: str
    arguments: tuple[str, ...]
    size: tuple[int, int]


PAGES: Final = (
    PageShot("run.html", ("traces/paprika/0690e0f0-e1bf-4d65-ac52-89138f446e8d.json",), (1280, 1400)),
    PageShot("triage.html", ("traces",), (480, 900)),
)


class Still(TraceApp):
    """The app at the moment of the samples, and some seconds later."""

    later = 0.0

    def clock(self) -> float:
        return NOW.timestamp() + self.later


def main(names: Collection[str]) -> int:
    """Take every picture anew, or only those of these names."""
    TARGET.mkdir(exist_ok=True)
    os.environ["TZ"] = "UTC"
    time.tzset()
    draw = painter()
    with mock.patch.object(redact, "token_bytes", bytes), samples() as folder:
        masking.choose(ascii_glyphs=False)
        for shot in SHOTS:
            if (names and shot.name not in names) or (shot.over_ssh and missing()):
                continue
            os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(dir=folder, prefix="state-")
            stem = f"{shot.name}-{shot.size[0]}x{shot.size[1]}"
            svg, strips = asyncio.run(take(shot))
            TARGET.joinpath(stem + ".svg").write_text(svg, "utf-8")
            if draw is not None:
                draw(pieces(strips), shot.size).quantize(COLORS).save(TARGET / (stem + ".png"), optimize=True)
            for name in shot.makes:
                TARGET.joinpath(name).write_bytes(Path(name).read_bytes())
            print(f"screenshots/{stem}")
        if not names or "demo" in names:
            record()
        for page in (page for page in PAGES if not names or page.name in names):
            take_page(page)
    if draw is None:
        print("no PNG: they need Pillow and the font DejaVu Sans Mono", file=sys.stderr)
    return 0


def take_page(shot: PageShot) -> None:
    """Export a page unless a picture of the app has made it, and take a picture of it."""
    page = TARGET / shot.name
    if shot.name not in {name for app_shot in SHOTS for name in app_shot.makes}:
        cli.main(["export", *shot.arguments, "--to", str(page), "--force"])
        page.chmod(0o644)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print(f"no picture of {shot.name}: it needs Chromium", file=sys.stderr)
        return
    width, height = shot.size
    picture = page.with_name(f"{page.stem}-page-{width}x{height}.png")
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    print(f"screenshots/{picture.stem}")


@contextmanager
def samples() -> Iterator[str]:
    """Be in a folder that holds the samples as ``traces``."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        demo.write(Path(folder) / "traces", NOW)
        demo.SETS["trials"](Path(folder) / "trials", NOW)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def settle_folders(root: Path) -> None:
    """Give all folders an old time of change."""
    for path in root.rglob("*"):
        if path.is_dir():
            os.utime(path, (NOW.timestamp() - AGO,) * 2)


async def take(shot: Shot) -> tuple[str, list[Strip]]:
    """The screen of one picture, as SVG and as strips."""
    settle_folders(Path("traces"))
    with places(shot) as (source, root, agents):
        return await take_at(shot, source, root, list(work(agents)) if shot.growing else [])


@contextmanager
def places(shot: Shot) -> Iterator[tuple[Source, str, Path]]:
    """Context: the source of a picture, its root, and the folder in which an agent writes."""
    if not shot.over_ssh:
        yield LocalSource(), shot.root, Path(AGENTS)
        return
    server = Sshd(Path("server").resolve())
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{server.path}{os.pathsep}{path}"
    try:
        (server.home / shot.root).mkdir()
        with closing(open_source([f"there:{shot.root}"])) as source:
            yield source, f"there:{shot.root}", server.home / shot.root
    finally:
        os.environ["PATH"] = path
        server.stop()


async def take_at(shot: Shot, source: Source, root: str, states: list[State]) -> tuple[str, list[Strip]]:
    """The screen of a picture of `root`, while an agent writes `states`."""
    engine = Engine(source, [root])
    engine.start()
    app = Still(engine, [root], palette=shot.palette)
    try:
        async with app.run_test(size=shot.size) as pilot:
            await settle(app, pilot)
            if shot.tab and not shot.keys:
                raise ValueError(f"{shot.name}: a tab needs an open run")
            for key in shot.keys:
                await pilot.press(key)
                await settle(app, pilot)
            if shot.tab and app.screen is app.main and not app.main.detail.choose(shot.tab):
                raise ValueError(f"{shot.name}: no tab {shot.tab}, but {app.main.detail.tabs}")
            await choose(app, pilot, shot.tab)
            await settle(app, pilot, shot.tab)
            if shot.makes:
                await wait(pilot, lambda: all(map(os.path.exists, shot.makes)), "what is exported")
                await pilot.pause(QUIET)  # it is said when it is written
            for path, data, seconds in states:
                await write(app, pilot, path, data, seconds)
            if states:
                app.later += SILENCE
                app.main.tick()
                await settle(app, pilot)
            svg = re.sub(r"terminal-\d+-", "terminal-", app.export_screenshot(title="tracetui"))
            return svg, app.screen._compositor.render_strips()
    finally:
        engine.stop()


State = tuple[Path, bytes, float]
"""A file, what it holds, and how many seconds after the first one."""


def work(folder: Path) -> list[State]:
    """Let an agent work below a folder; how its file was at each pause. It is left as it was at the first."""
    states: list[State] = []
    seconds = 0.0

    def rest(pause: float) -> bool:
        nonlocal seconds
        path = next(folder.rglob("*.jsonl"))
        states.append((path, path.read_bytes(), seconds))
        seconds += pause * AGENT_PACE
        return len(states) > AGENT_STEPS

    ccpa.work(folder, rest, lambda: NOW)
    states[0][0].write_bytes(states[0][1])
    return states[1:]


async def write(app: Still, pilot: Pilot[int], path: Path, data: bytes, seconds: float) -> None:
    """Let a file hold more, and wait until the app has taken it in at the moment when it came."""
    app.later = seconds
    with path.open("ab") as file:
        file.write(data[path.stat().st_size :])
    pulses = app.store.pulses
    await wait(pilot, lambda: any(pulse.changed_at == app.clock() for pulse in pulses.values()), "what was written")
    await pilot.pause(QUIET)  # it comes twice: to the list, and to the open run


async def choose(app: TraceApp, pilot: Pilot[int], by: str) -> None:
    """Let statistics tell of what is asked for."""
    screen = app.screen
    while isinstance(screen, StatisticsScreen) and screen.by.value != by:
        await pilot.press(">")


async def settle(app: TraceApp, pilot: Pilot[int], tab: str = "") -> None:
    """Wait until everything is known and shown, in a comparison also its tab."""

    def settled() -> bool:
        if app.stage or not app.main.settled or not app.liveness.watching.mode:
            return False
        screen = app.screen
        if isinstance(screen, DiffScreen):
            look = screen.change.compared
            return screen.settled and (not tab or (look is not None and look.tab == tab))
        if isinstance(screen, RunTreeScreen):
            return screen.settled
        return surveyed(app)

    await wait(pilot, settled, "the samples")
    await pilot.pause()


def surveyed(app: TraceApp) -> bool:
    """Whether what is asked of many runs is answered."""
    screen, surveys = app.screen, app.surveys
    answered = surveys.latest is not None and surveys.latest.finished
    if isinstance(screen, TriageScreen):
        group, ref = screen.queue.group, screen.queue.run
        known = group is not None and surveys.contrast_of(group.runs) is not None
        return answered and known and ref is not None and app.store.opened(ref) is not None
    return answered or not isinstance(screen, BaseListScreen) or isinstance(screen, FacetsScreen | LiveScreen)


async def wait(pilot: Pilot[int], there: Callable[[], bool], what: str) -> None:
    """Wait until something is there."""
    end = time.monotonic() + PATIENCE
    while not there():
        await pilot.pause(0.01)
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not there yet")


def pieces(strips: list[Strip]) -> Iterator[list[Piece]]:
    """The cells of a screen."""
    theme = TerminalTheme((16, 19, 26), (220, 225, 234), [(0, 0, 0)] * 8)
    for strip in strips:
        row = []
        for text, style, _ in strip:
            ink, ground = colors(style.color if style else None, style.bgcolor if style else None, theme)
            if style is not None and style.reverse:
                ink, ground = ground, ink
            row.append(Piece(text, ink, ground, style is not None and bool(style.bold)))
        yield row


def run_recorded(root: str) -> int:
    """Run the app on `root` in this terminal, at the moment that the file `recording.CLOCK` says."""

    class Recorded(TraceApp):
        def clock(self) -> float:
            return NOW.timestamp() + float(Path(recording.CLOCK).read_text() or 0)

    masking.choose(ascii_glyphs=False)
    engine = Engine(LocalSource(), [root])
    engine.start()
    try:
        Recorded(engine, [root], palette="dark").run()
    finally:
        engine.stop()
    return 0


def record() -> None:
    """Record the moving picture, in the folder of the samples."""
    draw = painter()
    if draw is None:
        return
    states = list(work(Path(recording.AGENT)))
    settle_folders(Path("traces"))
    recording.record(draw, states, TARGET / "demo.gif")


def colors(
    ink: RichColor | None, ground: RichColor | None, theme: TerminalTheme
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Both colours of a cell as numbers."""
    front = ink.get_truecolor(theme) if ink is not None else theme.foreground_color
    back = ground.get_truecolor(theme, foreground=False) if ground is not None else theme.background_color
    return (front[0], front[1], front[2]), (back[0], back[1], back[2])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--app"]:
        with mock.patch.object(redact, "token_bytes", bytes):
            sys.exit(run_recorded(sys.argv[2]))
    sys.exit(main(sys.argv[1:]))
