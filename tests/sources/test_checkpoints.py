"""The sessions of a checkpoint branch: each once, the longest copy, with checkpoint and commit; git runs nothing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.run import Cli
from tracetui.cli.reading import served_paths, within
from tracetui.errors import NothingReadable, UsageError
from tracetui.sources import checkpoints, local
from tracetui.sources.base import FACTS
from tracetui.sources.checkpoints import BRANCH, CheckpointSource, repository
from tracetui.sources.git import command, environment
from tracetui.sources.locations import open_source, parent

ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
FIRST, SECOND = "aa0000000001", "bb0000000002"
_OWN: Final = {f"GIT_{who}_{what}": "dev@shop.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def session(name: str, prompts: Sequence[str]) -> bytes:
    """A Claude Code log with a prompt and a reply for each text."""
    lines: list[Mapping[str, Any]] = []
    for number, text in enumerate(prompts):
        base = {"sessionId": name, "isSidechain": False, "timestamp": f"2026-05-04T10:0{number}:00Z", "cwd": "/shop"}
        above = f"{name}-a{number - 1}" if number else None
        user = {
            "type": "user",
            "uuid": f"{name}-u{number}",
            "parentUuid": above,
            "message": {"role": "user", "content": text},
        }
        reply = {
            "id": f"{name}-m{number}",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "done"}],
        }
        lines += [
            base | user,
            base
            | {"type": "assistant", "uuid": f"{name}-a{number}", "parentUuid": f"{name}-u{number}", "message": reply},
        ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def copy(
    checkpoint: str, number: int, name: str, log: bytes | None, created: str = "2026-05-04T10:00:00Z"
) -> dict[str, bytes]:
    """The files of a session in a checkpoint."""
    folder = f"{checkpoint[:2]}/{checkpoint[2:]}/{number}"
    metadata = {"checkpoint_id": checkpoint, "session_id": name, "created_at": created, "agent": "Claude Code"}
    files = {f"{folder}/metadata.json": json.dumps(metadata).encode()}
    return files if log is None else files | {f"{folder}/full.jsonl": log}


class Shop:
    """A bare repository, written with git's plumbing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "--bare", ".")

    @property
    def address(self) -> str:
        return f"entire://{self.root}"

    def git(self, *arguments: str, data: bytes = b"") -> str:
        """Run git; what it prints."""
        done = subprocess.run(
            command(*arguments), cwd=self.root, env=environment() | _OWN, input=data, capture_output=True, check=True
        )
        return os.fsdecode(done.stdout.strip())

    def tree(self, files: Mapping[str, bytes]) -> str:
        """Write a tree."""
        lines: list[str] = []
        below: dict[str, dict[str, bytes]] = {}
        for path, data in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = data
            else:
                lines.append(f"100644 blob {self.git('hash-object', '-w', '--stdin', data=data)}\t{name}")
        lines += [f"040000 tree {self.tree(inner)}\t{name}" for name, inner in below.items()]
        return self.git("mktree", data="\n".join(lines).encode() + b"\n")

    def branch(self, name: str, files: Mapping[str, bytes], message: str = "x") -> str:
        """Let a branch have these files."""
        commit = self.git("commit-tree", self.tree(files), "-m", message)
        self.git("update-ref", f"refs/heads/{name}", commit)
        return commit


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capsysbinary)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    root = tmp_path / "shop.git"
    root.mkdir()
    return Shop(root)


@pytest.fixture
def filled(shop: Shop) -> Shop:
    """Two sessions; the first one in two checkpoints, and under its dated name."""
    shop.branch("main", {"a": b"a"}, f"Round totals\n\nA merge:\nEntire-Checkpoint: {SECOND}\n\nCo-Authored-By: x")
    shop.branch(BRANCH, {
        **copy(FIRST, 0, f"2026-05-04-{ONE}", session(ONE, ["Write prices"])),
        **copy(FIRST, 1, TWO, session(TWO, ["Write shelves"])),
        **copy(SECOND, 0, ONE, session(ONE, ["Write prices", "Round totals"]), "2026-05-04T11:00:00Z"),
        f"{SECOND[:2]}/{SECOND[2:]}/metadata.json": b"{}",
    })  # fmt: skip
    return shop


def test_each_session_is_listed_once_with_its_longest_copy_checkpoint_and_commit(filled: Shop, cli: Cli) -> None:
    runs = {run["id"]: run for run in cli("ls", filled.address, "--json").data["runs"]}
    commit = filled.git("rev-parse", "main")
    assert {name: run["steps"] for name, run in runs.items()} == {ONE: 2, TWO: 1}
    assert runs[ONE]["tags"] == [f"checkpoint:{SECOND}", f"commit:{commit}"]
    assert runs[TWO]["tags"] == [f"checkpoint:{FIRST}"]
    assert runs[ONE]["path"] == f"{filled.address}/{ONE}.jsonl"


def test_show_has_every_checkpoint_and_grep_reads_the_log(filled: Shop, cli: Cli) -> None:
    document = cli("show", f"{filled.address}/{ONE}.jsonl", "--json").data
    kept = json.dumps(document)
    assert f"commit:{filled.git('rev-parse', 'main')}" in document["run"]["tags"]
    assert all(word in kept for word in ('"entire"', FIRST, SECOND))
    assert "Round totals" in cli("grep", "Round totals", filled.address).text
    assert cli("stats", filled.address).status == 0
    assert cli("doctor", filled.address).status == 0


def test_blame_names_the_session_of_the_only_checkpoint_with_the_commit(filled: Shop, cli: Cli, tmp_path: Path) -> None:
    filled.git("worktree", "add", "-q", str(tmp_path / "tree"), "main")
    document = cli("blame", "HEAD", "--repo", str(tmp_path / "tree"), "--traces", filled.address, "--json").data
    assert document["commit"]["rung"] == "commit"
    assert document["commit"]["run"] == f"{filled.address}/{ONE}.jsonl"


def test_a_session_of_several_parts_is_joined(shop: Shop) -> None:
    log = session(ONE, ["a", "b"])
    half = log.index(b"\n", len(log) // 2)
    files = copy(FIRST, 0, ONE, log[:half])
    shop.branch(BRANCH, files | {f"{FIRST[:2]}/{FIRST[2:]}/0/full.jsonl.001": log[half + 1 :]})
    with CheckpointSource(shop.address) as source, source.open(f"{shop.address}/{ONE}.jsonl") as file:
        assert file.read_all() == log
        assert file.stat.size == len(log)


def test_a_new_checkpoint_is_a_new_version_of_the_file(filled: Shop) -> None:
    with CheckpointSource(filled.address) as source:
        before = {entry.path: entry.stat for entry in source.list(filled.address).entries}
        filled.branch(BRANCH, copy(SECOND, 0, ONE, session(ONE, ["a", "b", "c"])))
        (after,) = source.list(filled.address).entries
        assert after.stat != before[after.path]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b", "\x1b[31m", ".", "x" * 300, "", "a\u0000b", "c#d", 5, None], ids=repr
)
def test_a_hostile_session_id_is_no_path(shop: Shop, name: Any) -> None:
    shop.branch(BRANCH, copy(FIRST, 0, name, session(ONE, ["a"])))
    with CheckpointSource(shop.address) as source:
        paths = [entry.path for entry in source.list(shop.address).entries if entry.skipped is None]
        assert len(paths) == 1
        below = paths[0].removeprefix(f"{shop.address}/")
        assert not {"/", "#"} & set(below)
        assert below.isprintable()
        assert len(below) < 256
        with source.open(paths[0]) as file:
            assert file.memo[FACTS].tags == (f"checkpoint:{FIRST}",)
            assert file.read_all() == session(ONE, ["a"])


def test_other_names_and_links_on_the_branch_are_not_read(shop: Shop) -> None:
    blob = shop.git("hash-object", "-w", "--stdin", data=b"/etc/passwd")
    link = shop.git("mktree", data=f"120000 blob {blob}\tfull.jsonl\n120000 blob {blob}\tmetadata.json\n".encode())
    lines = [f"040000 tree {link}\t0", f"040000 tree {link}\t-x", f"040000 tree {link}\t$(touch x)"]
    for name in ("0000000001", "aa"):
        lines = [f"040000 tree {shop.git('mktree', data=chr(10).join(lines).encode() + b'%c' % 10)}\t{name}"]
    commit = shop.git("commit-tree", shop.git("mktree", data=lines[0].encode() + b"\n"), "-m", "x")
    shop.git("update-ref", f"refs/heads/{BRANCH}", commit)
    with CheckpointSource(shop.address) as source:
        assert source.list(shop.address).entries == []


def test_programs_of_the_configuration_are_not_run(filled: Shop, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "program"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    hook = filled.root / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(script.read_bytes())
    hook.chmod(0o755)
    settings = {
        "core.fsmonitor": script, "core.pager": script, "core.sshCommand": script, "gpg.program": script,
        "log.showSignature": "true", "diff.external": script, "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{script}", "protocol.ext.allow": "always",
    }  # fmt: skip
    for name, value in settings.items():
        filled.git("config", name, str(value))
    lost = filled.git("rev-parse", f"{BRANCH}:{FIRST[:2]}/{FIRST[2:]}/1/full.jsonl")
    (filled.root / "objects" / lost[:2] / lost[2:]).unlink()
    with CheckpointSource(filled.address) as source:
        listed = {entry.path: entry.skipped for entry in source.list(filled.address).entries}
        assert listed == {
            f"{filled.address}/{ONE}.jsonl": None,
            f"{filled.address}/{TWO}.jsonl": "its log isn't in this repository",
        }
        with source.open(f"{filled.address}/{ONE}.jsonl") as file:
            assert file.read_all()
    assert not ran.exists()


def test_lists_sessions_and_logs_are_bounded(filled: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_SESSIONS", 1)
    with CheckpointSource(filled.address) as source:
        entries = source.list(filled.address).entries
        assert [entry.skipped for entry in entries] == [None, "1 older sessions are not listed"]
        monkeypatch.setattr(checkpoints, "MAX_DOCUMENT", 100)
        with source.open(entries[0].path) as file, pytest.raises(OSError, match="not read"):
            file.read(0, 10)
        monkeypatch.undo()
        with source.open(entries[0].path) as file:
            assert file.read(0, 1) == b"{"
    monkeypatch.setattr(checkpoints, "MAX_OUTPUT", 100)
    with CheckpointSource(filled.address) as source, pytest.raises(OSError, match="prints more than"):
        source.connect()


def test_only_a_repository_with_the_branch_is_read(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for place, reason in (
        (shop.address, "no branch entire/checkpoints/v1"),
        (f"entire://{tmp_path}/plain", "not the root of a git repository"),
        (f"entire://{tmp_path}/missing", "not the root of a git repository"),
    ):
        with pytest.raises(NothingReadable, match=reason):
            open_source([place])
    with pytest.raises(UsageError, match="needs the path"):
        open_source(["entire://"])


def test_the_branch_of_a_remote_counts_without_an_own_one(filled: Shop) -> None:
    filled.git("update-ref", f"refs/remotes/origin/{BRANCH}", f"refs/heads/{BRANCH}")
    filled.git("update-ref", "-d", f"refs/heads/{BRANCH}")
    filled.git("pack-refs", "--all")
    with CheckpointSource(filled.address) as source:
        assert len(source.list(filled.address).entries) == 2


def test_a_linked_working_tree_names_its_repository(filled: Shop, tmp_path: Path) -> None:
    filled.git("worktree", "add", "-q", str(tmp_path / "tree"), "main")
    address = f"entire://{tmp_path}/tree"
    assert repository(f"{address}/{ONE}.jsonl/1") == repository(f"{address}#11") == parent(address) == address
    with open_source([f"{address}/{ONE}.jsonl"]) as source:
        assert source.is_file(f"{address}/{ONE}.jsonl")
        assert not source.is_file(f"{address}/{TWO}")


@pytest.fixture
def confine(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def allow(paths: str) -> None:
        monkeypatch.setenv(local.WITHIN, paths)
        local._allowed.cache_clear()

    return allow


def test_a_confined_process_reads_only_allowed_repositories(
    filled: Shop, tmp_path: Path, confine: Callable[[str], None], request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(local._allowed.cache_clear)
    filled.git("worktree", "add", "-q", str(tmp_path / "tree"), "main")
    tree = f"entire://{tmp_path}/tree"
    served = served_paths([tree], "mcp")
    assert served == [f"entire://{os.path.realpath(tmp_path)}/tree"]
    confine(within(served))
    open_source(served).close()
    assert not open_source(served).is_file(str(tmp_path / "tree" / "a"))
    confine(str(tmp_path / "tree"))
    with pytest.raises(NothingReadable, match="outside of the paths"):
        open_source([tree])
    confine(str(filled.root))
    (filled.root / "objects" / "info" / "alternates").write_text("/elsewhere\n")
    with pytest.raises(NothingReadable, match="objects of another repository"):
        open_source([filled.address])


def test_a_git_file_that_leads_to_no_repository_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text(f"gitdir: {tmp_path}/secrets\n")
    with pytest.raises(UsageError, match="not the root"):
        within(served_paths([f"entire://{tmp_path}/tree"], "mcp"))
