#!/usr/bin/env python3
"""Every chore of this repository in one word; needs nothing but Python 3.11 or newer.

    python3 dev.py demo         open the app on built-in sample data
    python3 dev.py test         run the tests (what follows goes to pytest: `test tests/model -k sizes`)

    python3 dev.py check        everything CI runs: test, lint
    python3 dev.py lint         format, lint, strict types, layer contracts, stale docs
    python3 dev.py format       format the code and mend what lint can mend
    python3 dev.py golden       rewrite expected files (then read the diff)
    python3 dev.py snapshots    approve the screens as they are now (then read the diff)
    python3 dev.py screenshots  take screenshots/*.svg from the real app
    python3 dev.py docs         write the generated parts of docs/
    python3 dev.py fuzz …       read mutated traces: `fuzz ids`, bytes, cases or suite, --seed, --seconds, --format;
                                or mutated input: `fuzz settings`, verdicts, mcp, serve or answers (of stores)
    python3 dev.py bench …      measure, and compare with the targets; --save for the docs, --compare COMMIT
    python3 dev.py build        build wheel and sdist into dist/, check them, try the wheel in an empty environment
    python3 dev.py site         build the documentation site into build/site/, strict, and check its links
    python3 dev.py stores       install the real ClickHouse engine and an S3 server (200 MB), which some tests need
    python3 dev.py lock         choose new versions: writes requirements/*.txt from pyproject.toml
    python3 dev.py run …        run any command in the environment: `run tracetui ls traces`

The first word makes `.venv` from requirements/dev.txt (versions pinned, hashes checked), which takes half a minute;
later ones find it there. Delete `.venv` whenever you like.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "made-from.sha256"
REQUIREMENTS = ROOT / "requirements"
LOCK = REQUIREMENTS / "dev.txt"
STORES = REQUIREMENTS / "stores.txt"
TOOLS = {"build": REQUIREMENTS / "build.txt", "site": REQUIREMENTS / "site.txt"}
"""Words that need more packages, which they install first."""
LOWEST = REQUIREMENTS / "lowest.txt"

LOCK_HEAD = """\
# Every package that {} need, pinned, with the hashes of all its files.
# Written by `python3 dev.py lock` from pyproject.toml; install with `pip install --require-hashes -r`.
"""
LOWEST_HEAD = """\
# The lowest version of every package that pyproject.toml admits; `python scripts/try_install.py --lowest` tries them.
# Written by `python3 dev.py lock` from pyproject.toml.
"""
INSTALL = "python -m pip --disable-pip-version-check install --quiet --require-hashes -r {}"
LINTS = {
    "format": "ruff format --check .",
    "lint": "ruff check .",
    "types": "mypy",
    "layers": "lint-imports --no-cache",
    "docs": "python scripts/docs.py --check",
}
WORKERS = min(4, (os.cpu_count() or 1) + 2)
"""Processes that run tests: two more than cores, since many tests wait for files, servers and terminals."""
WORDS = {
    "demo": "tracetui demo",
    "test": f"pytest -n {WORKERS} --dist worksteal",
    "golden": "pytest tests/formats tests/cli tests/docs",
    "snapshots": "pytest tests/ui --snapshot-update",
    "screenshots": "python scripts/screenshots.py",
    "docs": "python scripts/docs.py",
    "fuzz": "python -m tests.fuzz",
    "bench": "python -m tests.bench",
    "site": "python scripts/build_site.py",
    "stores": INSTALL.format(STORES),
    "run": "",
}


def main(arguments: list[str]) -> int:
    """Do what the first word says; the exit code is that of the tool behind it."""
    word, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if word in ("help", "-h", "--help"):
        print(__doc__)
        return 0
    if word == "lock":
        return lock()
    if word not in (*WORDS, "build", "check", "lint", "format"):
        print(f"dev.py: there is no word {word!r}; `python3 dev.py help` lists them", file=sys.stderr)
        return 2
    make_environment()
    if word == "check":
        return main(["test"]) or main(["lint"])
    if word == "lint":
        return lint()
    if word in TOOLS and run(INSTALL.format(TOOLS[word])):
        return 1
    if word == "build":
        return build()
    if word == "format":
        return run("ruff format .") or run("ruff check --fix .")
    return run(WORDS[word], *rest, golden=word == "golden")


def lint() -> int:
    """Run every linter, also after one has failed, and name those that did."""
    failed = [name for name, command in LINTS.items() if run(command)]
    print(f"lint: {', '.join(failed)} failed" if failed else "lint: all is well", flush=True)
    return 1 if failed else 0


def build() -> int:
    """Build wheel and sdist, check their metadata, and try the wheel as a user would."""
    for path in (ROOT / "dist").glob("*"):
        path.unlink()
    if run("python -m hatchling build -t sdist -t wheel"):
        return 1
    wheel, sdist = *(ROOT / "dist").glob("*.whl"), *(ROOT / "dist").glob("*.tar.gz")
    return run("twine check --strict", str(wheel), str(sdist)) or run("python scripts/try_install.py", str(wheel))


def run(command: str, *more: str, golden: bool = False) -> int:
    """Run `command` in the environment, from the top of the repository."""
    words = [*command.split(), *more]
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", "VIRTUAL_ENV": str(VENV)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each started program would compile everything again
    if golden:
        environment["TRACETUI_GOLDEN"] = "1"
    tool = BIN / words[0] if words else PYTHON
    if os.name != "nt" and tool.exists():
        words[:1] = [str(tool)]
    return subprocess.call(words or [str(PYTHON)], cwd=ROOT, env=environment)


def make_environment() -> None:
    """Make `.venv` if it is missing, or was made from another lock, other metadata or another Python."""
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted and PYTHON.exists():
        return
    print("Making .venv from requirements/dev.txt (once, about half a minute) …", file=sys.stderr, flush=True)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for hint, *command in (
        ("on Debian and Ubuntu, `apt install python3-venv`", sys.executable, "-m", "venv", "--clear", str(VENV)),
        ("is the package index reachable?", *pip, "--require-hashes", "-r", str(LOCK)),
        ("see above", *pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)),
    ):
        if subprocess.call(command) != 0:
            raise SystemExit(f"dev.py: could not make .venv; {hint}")
    STAMP.write_text(wanted)


def fingerprint() -> str:
    """What an environment is made from: the lock, the package's own metadata, this Python."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    parts = (LOCK.read_bytes(), repr(project).encode(), sys.version.encode(), str(ROOT).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def lock() -> int:
    """Resolve pyproject.toml into requirements/*.txt, with pip-tools in a separate environment."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    groups = project["dependency-groups"]
    LOWEST.write_text(lowest_versions(project["project"]))
    wanted = [*project["project"]["dependencies"], *chain.from_iterable(extras), *groups["dev"]]
    flags = "-q --upgrade --generate-hashes --strip-extras --no-header --no-emit-options --no-emit-index-url"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.check_call([sys.executable, "-m", "venv", str(folder / "venv")])
        python = folder / "venv" / BIN.name / PYTHON.name
        subprocess.check_call([str(python), "-m", "pip", "install", "-q", "pip-tools"])
        compiler = [str(python), "-m", "piptools", "compile", *flags.split(), "--no-emit-find-links"]
        compiler += ["--no-emit-trusted-host", "--allow-unsafe"]
        for target, packages, users in (
            (LOCK, wanted, "the app and its tests"),
            (STORES, ["-c dev.txt", *groups["stores"]], "the tests of ClickHouse and object stores"),
            (TOOLS["build"], ["-c dev.txt", *groups["build"]], "the checks of a distribution"),
            (TOOLS["site"], ["-c dev.txt", *groups["site"]], "the tools of the documentation site"),
        ):
            (folder / "pyproject.toml.in").write_text("\n".join(packages))
            subprocess.check_call([*compiler, "-o", target.name, "pyproject.toml.in"], cwd=folder)
            pinned = (folder / target.name).read_text().replace("-r pyproject.toml.in", "pyproject.toml")
            target.write_text(LOCK_HEAD.format(users) + pinned)
    return 0


def lowest_versions(project: dict[str, Any]) -> str:
    """The text of requirements/lowest.txt: a pin of each lower bound in ``[project]``."""
    packages = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    return LOWEST_HEAD + "".join(f"{package.split(',')[0].replace('>=', '==')}\n" for package in sorted(packages))


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - this is where an older Python is told
        sys.exit(f"dev.py: needs Python 3.11 or newer, this is {sys.version.split()[0]}")
    sys.exit(main(sys.argv[1:]))
