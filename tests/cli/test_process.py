"""The command as a process of its own: pipes, standard input, terminals, imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import write_traces
from tests.terminal import TRACETUI, Terminal


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder of traces."""
    write_traces(tmp_path / "traces")
    return tmp_path / "traces"


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*TRACETUI, *arguments], capture_output=True, timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_the_list_imports_no_textual(traces: Path) -> None:
    code = (
        "import sys; from tracetui.cli import main; main(['ls', sys.argv[1]]); "
        "print(sorted(name for name in sys.modules if name.split('.')[0] in "
        "('textual', 'watchfiles', 'asyncio', 'clickhouse_connect', 'urllib3')), "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(traces)], capture_output=True, timeout=60, check=False)

    assert done.stderr.decode().splitlines()[-1] == "[]"
    assert b"stuck-9" in done.stdout


def test_standard_input_is_a_trace(traces: Path) -> None:
    data = (traces / "paprika" / "plan-7.json").read_bytes()

    listed = run("ls", "-", input=data)
    assert b"  -  " in listed.stdout
    assert run("show", "-/2/output", input=data).stdout.decode() == "14 °C, rain ␛[31m\n"
    assert run("show", "-", "--raw", input=data).stdout == data
    assert run("show", "-", input=b"").returncode == 1


def test_a_database_on_standard_input(traces: Path) -> None:
    data = (traces / "daily.db").read_bytes()

    assert run("show", "-#nightly-1/1/output/answer", input=data).stdout == b"30 days\n"


def test_no_copy_of_standard_input_stays(traces: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    run("ls", "-", input=b"{}", env={**os.environ, "TMPDIR": str(scratch)})

    assert list(scratch.iterdir()) == []


def test_a_closed_pipe_is_quiet(traces: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*TRACETUI, "ls", str(traces), "--json"], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)

    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_is_an_error(traces: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*TRACETUI, "ls", str(traces)], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )

    assert done.returncode == 1
    assert done.stderr.decode().startswith("tracetui: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_a_plain_locale_is_no_obstacle(traces: Path, locale: str) -> None:
    environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    assert run("show", str(traces / "paprika" / "plan-7.json"), env=environment).returncode == 0


def on_terminal(*arguments: str, no_input: bool = False) -> tuple[int, bytes]:
    """Exit status and output of the command on a terminal; with `no_input` it has no keys to read."""
    command = ("/bin/sh", "-c", '"$@" < /dev/null', "sh") if no_input else ()
    with Terminal(*command, *TRACETUI, *arguments) as terminal:
        return terminal.wait_exit(), terminal.output


def test_onto_a_terminal_even_raw_bytes_pass_the_gate(traces: Path) -> None:
    path = traces / "esc.json"
    path.write_bytes((traces / "paprika" / "plan-7.json").read_bytes().replace(b"\\u001b", b"\x1b]0;x\x07"))
    for arguments in (["show", str(path), "--raw"], ["show", str(path)], ["ls", str(path)]):
        _, output = on_terminal(*arguments)

        assert output
        assert b"\x1b" not in output
        assert b"\x07" not in output


def test_the_app_refuses_to_start_without_keys_to_read(traces: Path) -> None:
    status, output = on_terminal(str(traces), no_input=True)

    assert status == 2
    assert b"tracetui ls" in output
    assert b"\x1b" not in output


def test_the_app_does_not_open_what_is_not_there() -> None:
    status, output = on_terminal("nowhere", no_input=True)

    assert status == 1
    assert b"no such file or directory: nowhere" in output
