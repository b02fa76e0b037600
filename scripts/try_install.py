"""Install a wheel or sdist in an empty environment, and try what a user does first.

    python scripts/try_install.py dist/* [--lowest] [--every-python]

Standard library only. With ``--lowest``, every dependency has its lowest version (requirements/lowest.txt); with
``--every-python``, each supported Python of this machine is tried, on the path or of pyenv, and missing ones are named.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LOWEST: Final = ROOT / "requirements" / "lowest.txt"
SHARED: Final = (
    "share/man/man1/tracetui.1",
    "share/bash-completion/completions/tracetui",
    "share/zsh/site-functions/_tracetui",
    "share/fish/vendor_completions.d/tracetui.fish",
)
START_SECONDS: Final = 60
"""Longest wait for the first screen, on a machine that does other work."""


def main() -> int:
    """Try each distribution; the first failure raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("distributions", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--lowest", action="store_true", help="with the lowest versions of all dependencies")
    parser.add_argument("--every-python", action="store_true", help="on each supported Python of this machine")
    args = parser.parse_args()
    for python in pythons() if args.every_python else [sys.executable]:
        for path in args.distributions:
            with tempfile.TemporaryDirectory() as folder:
                try_distribution(path.resolve(), python, Path(folder), lowest=args.lowest)
    return 0


def pythons() -> list[str]:
    """The supported Pythons of this machine, of each minor version the first that runs."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    supported = [
        name.rpartition(" ")[2] for name in classifiers if name.startswith("Programming Language :: Python :: 3.")
    ]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    usable = []
    for version in supported:
        on_path = shutil.which(f"python{version}")
        candidates = [*([on_path] if on_path else []), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
        running = [path for path in candidates if not subprocess.run([path, "-c", ""], capture_output=True).returncode]
        if not running:
            print(f"Python {version}: not on this machine", flush=True)
        usable += running[:1]
    return usable


def try_distribution(path: Path, python: str, folder: Path, *, lowest: bool) -> None:
    """Install the distribution `path` into an environment of `python` in `folder`, and use it from there."""
    environment = folder / "environment"
    subprocess.check_call([python, "-m", "venv", str(environment)])
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.check_call([*pip, *(("-c", str(LOWEST)) if lowest else ()), str(path)])
    tracetui = str(environment / "bin" / "tracetui")

    def output(*arguments: str) -> str:
        return subprocess.check_output([tracetui, *arguments], cwd=folder, env=variables(folder), text=True)

    version = output("--version").split()[1]
    assert version in path.name, f"{path.name} installs version {version}"
    assert [name for name in SHARED if not (environment / name).is_file()] == []
    output("demo", "--write", "traces")
    runs = json.loads(output("ls", "traces", "--json"))["runs"]
    assert len(runs) > 10
    assert json.loads(output("triage", "traces", "--json"))["causes"]
    open_demo(tracetui, folder)
    version = subprocess.check_output([str(environment / "bin" / "python"), "--version"], text=True).strip()
    print(f"{path.name}: installs and opens on {version}{', lowest versions' * lowest}", flush=True)


def variables(folder: Path) -> dict[str, str]:
    """Variables of a user without settings, whose home is `folder`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return inherited | {"HOME": str(folder), "TERM": "xterm-256color", "XDG_CACHE_HOME": str(folder / "cache")}


def open_demo(tracetui: str, folder: Path) -> None:
    """Open ``tracetui demo`` in a pseudo-terminal until it lists runs, then quit with a key."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    app = subprocess.Popen(
        [tracetui, "demo"], cwd=folder, env=variables(folder), stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    try:
        screen = b""
        deadline = time.monotonic() + START_SECONDS
        while b" runs" not in screen:
            ready, _, _ = select.select([controller], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"`tracetui demo` didn't list runs: {screen[-2000:]!r}"
            try:
                screen += os.read(controller, 65536)
            except OSError:  # Linux: the app has ended
                raise SystemExit(f"`tracetui demo` ended: {screen.decode(errors='replace')[-2000:]}") from None
        os.write(controller, b"q")
        while app.poll() is None:
            assert time.monotonic() < deadline, "`tracetui demo` didn't quit"
            if select.select([controller], [], [], 0.1)[0]:
                try:
                    os.read(controller, 65536)
                except OSError:  # Linux: the other end is closed
                    break
        assert app.wait(START_SECONDS) == 0
    finally:
        app.kill()
        os.close(controller)


if __name__ == "__main__":
    sys.exit(main())
