"""What is exported says what happened, can be sent on, and has no secrets in it."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path

import pytest

from tests import hostile
from tests.canaries import CANARY, SHAPED
from tests.claude_sessions import bash, write_session
from tests.cli.run import Cli
from tests.cli.test_files import write as write_file
from tests.shared import SEARCHES, SHARED, needs_shared
from tests.views.test_masking import secret_trace
from tracetui.errors import NotWritten, UsageError
from tracetui.export.document import write

FORMS = ("md", "html", "json")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """The command line in an empty folder, with no directory of the user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Cli(capsysbinary)


@pytest.fixture(scope="session")
def secret_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples of every format with secrets in every text."""
    plain, folder = hostile._is_word, tmp_path_factory.mktemp("secrets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "ATTACKS", tuple(f" {secret} " for secret in SHAPED.values()))
        patch.setattr(hostile, "_hostile_path", lambda path, number: path.with_name(f"twin-{path.name}"))
        patch.setattr(hostile, "_is_word", lambda value, key: " " not in value or plain(value, key))
        hostile.write(folder, datetime(2026, 11, 21, 10, 0, tzinfo=UTC))
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("twin-"):
            path.unlink()
    return folder


@pytest.fixture
def secrets(secret_samples: Path, tmp_path: Path) -> Path:
    """A copy of the samples with secrets, beside a session with each kind of secret."""
    folder = shutil.copytree(secret_samples, tmp_path / "traces")
    secret_trace(folder)
    return folder


@pytest.mark.search
def test_no_command_leaks_a_secret(cli: Cli, secrets: Path) -> None:
    exact = cli("ls", str(secrets), "--json").data["runs"]
    exact = exact[:: 1 if SEARCHES else 4]
    assert len({run["format"] for run in exact}) == 5
    addresses = [run["address"] for run in exact]
    leaking = [address for address in addresses if CANARY.encode() in cli("show", address, "--json").out]
    assert len(leaking) > len(addresses) / 2  # otherwise there is nothing to see here

    ways = [("ls", str(secrets)), ("ls", str(secrets), "--json", "--redact")]
    ways += [("export", str(secrets), "--as", form) for form in FORMS]
    per_run = [("show",), ("show", "--json", "--redact"), ("show", "--raw", "--redact"), ("export", "--full")]
    per_run += [("export", "--as", form) for form in FORMS]
    for address, *commands in zip(addresses, cycle(per_run), cycle([*per_run[3:], *per_run[:3]]), strict=False):
        ways += [(command, address, *options) for command, *options in commands]
    for other in addresses[1:4]:
        ways += [("diff", addresses[0], other), ("diff", addresses[0], other, "--json", "--redact")]
        ways += [("export", "--diff", addresses[0], other, "--as", form) for form in FORMS]
    for way in ways:
        result = cli(*way)
        assert result.status == 0, way
        assert CANARY.encode() not in result.out, way
        if way[-1] in ("--redact", "json") and "--raw" not in way:
            json.loads(result.out)


@pytest.mark.search
def test_redacted_json_has_the_structure_of_the_exact_one(cli: Cli, secrets: Path) -> None:
    for run in cli("ls", str(secrets), "--json").data["runs"][:: 3 if SEARCHES else 6]:
        exact = cli("show", run["address"], "--json").data
        masked = cli("show", run["address"], "--json", "--redact").data
        assert _shape(masked) == _shape(exact)


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return [(len(value)), [_shape(inner) for inner in value.values()]]
    return [_shape(inner) for inner in value] if isinstance(value, list) else type(value) if value is None else None


@needs_shared
@pytest.mark.shared
def test_no_secret_of_the_hostile_corpus_leaks(cli: Cli, tmp_path: Path) -> None:
    assert SHARED is not None
    subprocess.run([sys.executable, str(SHARED / "tools" / "hostile.py"), str(tmp_path / "c")], check=True, timeout=120)
    folder = tmp_path / "c" / "traces"
    for number in range(4):
        path = str(folder / f"sec-{number}.json")
        assert CANARY.encode() in cli("show", path, "--json").out
        for way in (
            ("show", path),
            ("show", path, "--json", "--redact"),
            *(("export", path, "--as", form) for form in FORMS),
        ):
            assert CANARY.encode() not in cli(*way).out


@pytest.mark.parametrize("form", FORMS)
def test_masked_values_are_counted_and_masking_is_optional(cli: Cli, tmp_path: Path, form: str) -> None:
    path = secret_trace(tmp_path).path
    masked, exact = cli("export", path, "--as", form), cli("export", path, "--as", form, "--no-redact")
    assert CANARY in exact.text
    if form == "json":
        assert masked.data["masked"]["AWS key"] > 0
        assert exact.data["masked"] is None
    else:
        assert re.search(r"[0-9]+ values masked", masked.text)
        assert "Not redacted: this document may contain secrets" in exact.text.replace("&#58;", ":")


def test_the_same_export_twice_is_the_same(cli: Cli, tmp_path: Path) -> None:
    path = secret_trace(tmp_path).path
    assert cli("export", path).out == cli("export", path).out


class Page(HTMLParser):
    """Which elements a page is made of, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


OURS = {
    "a", "b", "body", "br", "dd", "details", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "head", "header", "html",
    "main", "meta", "p", "pre", "rect", "script", "span", "style", "summary", "svg", "table", "td", "th", "title", "tr",
}  # fmt: skip
ATTRIBUTES = {
    "aria-hidden", "charset", "class", "content", "data-label", "height", "href", "http-equiv", "id", "lang", "name",
    "open", "preserveaspectratio", "viewbox", "width", "x", "y",
}  # fmt: skip
MARKUP = (
    "<script>alert(1)</script><img src=x onerror=y> </pre></td></details> `` ``` \n```\n# not a heading [a](http://x) |"
)


def test_content_cannot_become_part_of_a_page(cli: Cli, tmp_path: Path) -> None:
    path = _session(tmp_path, MARKUP)
    page = Page()
    text = cli("export", path, "--as", "html", "--full").text
    page.feed(text)
    assert page.open == []
    assert page.elements <= OURS
    assert page.attributes <= ATTRIBUTES
    assert text.count("<script") == 1
    assert all(link.startswith("#") for link in re.findall('href="([^"]*)"', text))


def test_content_cannot_end_its_place_in_markdown(cli: Cli, tmp_path: Path) -> None:
    text = cli("export", _session(tmp_path, MARKUP), "--full").text
    fence, outside = "", []
    for line in text.split("\n"):
        if fence and line == fence:
            fence = ""
        elif not fence and (match := re.match("(`{3,})", line)):
            fence = match[1]
        elif not fence:
            outside.append(line)
    assert fence == ""
    prose = "\n".join(outside)
    assert "<script" not in prose
    assert "<img" not in prose
    assert not re.search(r"(?<!\\)\[a", prose)
    assert not re.search("^# not a", prose, re.MULTILINE)


def test_a_run_is_exported_with_its_failure(cli: Cli, tmp_path: Path) -> None:
    text = cli("export", _session(tmp_path, "what happened")).text
    assert text.index("## Timeline") < text.index("## Failures") < text.index("## Redaction")
    assert "no such file" in text


def _session(folder: Path, text: str) -> str:
    lines = [
        {"kind": "session_start", "session_id": "s1", "cwd": "/srv"},
        {"kind": "user_prompt", "text": text},
        {
            "kind": "assistant_turn",
            "blocks": [
                {"type": "text", "text": text},
                {"type": "tool_use", "id": "t1", "name": f"Read {text}", "input": {"a": text}},
            ],
            "stop_reason": "tool_use",
        },
        {"kind": "tool_result", "tool_use_id": "t1", "content": f"no such file {text}", "is_error": True},
        {"kind": "session_end", "reason": "error"},
    ]
    path = folder / "session.ccpa-trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


# ---- files


def test_an_export_is_a_file_for_its_owner_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    path = secret_trace(tmp_path / "traces").path
    result = cli("export", path, "--to", "out.html")
    assert result.status == 0
    assert result.out == b""
    assert result.err.startswith("tracetui: wrote out.html")
    file = tmp_path / "out.html"
    assert file.read_bytes().startswith(b"<!DOCTYPE html>")
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "traces"]


def test_nothing_is_written_over_or_among_traces(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    path = secret_trace(folder).path
    before = sorted(folder.iterdir())
    (tmp_path / "there.md").write_text("mine")
    (tmp_path / "link").symlink_to(folder)
    assert cli("export", path, "--to", "there.md").status == 2
    for place in ("traces/x.md", "link/x.md", "traces/../traces/x.md"):
        assert cli("export", "traces", "--to", place).status == 2
    assert (tmp_path / "there.md").read_text() == "mine"
    assert sorted(folder.iterdir()) == before
    assert cli("export", path, "--to", "there.md", "--force").status == 0
    assert (tmp_path / "there.md").read_text() != "mine"


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begin"
        raise UsageError("no more")

    with pytest.raises(UsageError):
        write(str(tmp_path / "a.md"), pieces())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from tracetui.errors import NotWritten\nfrom tracetui.export.document import write\n"
        f"try: write({str(tmp_path / 'a.md')!r}, [b'x' * 100_000])\n"
        "except NotWritten as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "can't be written" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


def test_an_unwritable_destination_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="can't be written"):
        write(str(tmp_path / "none" / "a.md"), [b"x"])
    with pytest.raises(UsageError, match="is a directory"):
        write(str(tmp_path), [b"x"])
    (tmp_path / "link.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(UsageError, match="already exists"):
        write(str(tmp_path / "link.md"), [b"x"])
    assert not (tmp_path / "elsewhere.md").exists()


def test_the_document_of_a_run_lists_files_and_findings(cli: Cli) -> None:
    steps = [write_file("src/a.py", "one\ntwo\n"), bash("git push -f origin main"), bash("rm -rf /tmp/x")]
    write_session(Path("runs/one.jsonl"), steps)
    for form in ("md", "html"):
        assert cli("export", "runs/one.jsonl", "--to", f"one.{form}").status == 0
    text = Path("one.md").read_text()
    files, findings = text.partition("## Files")[2].partition("## Findings")[::2]
    assert "src/a.py" in files
    assert "push-force" in findings
    assert "/tmp/x" not in findings.partition("## ")[0]
    assert 'id="findings"' in Path("one.html").read_text()
