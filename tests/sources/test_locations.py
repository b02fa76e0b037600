"""Command-line paths: local ones and remote ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tracetui.errors import NothingReadable, UsageError
from tracetui.sources.locations import MultiHostSource, host_of, open_source, parent
from tracetui.sources.ssh import Host, RemotePath, explain_failure, join, parse_remote_path


@pytest.mark.parametrize(
    ("word", "host", "path"),
    [
        ("box:traces", Host("box"), "traces"),
        ("box:", Host("box"), "."),
        ("box:/srv/t", Host("box"), "/srv/t"),
        ("box:~/t", Host("box"), "t"),
        ("box:~", Host("box"), "."),
        ("box:a:b", Host("box"), "a:b"),
        ("me@box.example:t/a.json", Host("box.example", "me"), "t/a.json"),
        ("[::1]:t", Host("::1"), "t"),
        ("me@[fe80::1%eth0]:t", Host("fe80::1%eth0", "me"), "t"),
        ("ssh://box/srv/t", Host("box"), "/srv/t"),
        ("ssh://box", Host("box"), "."),
        ("ssh://box/", Host("box"), "/"),
        ("ssh://box/~/t", Host("box"), "t"),
        ("ssh://box/~", Host("box"), "."),
        ("ssh://me@box:2222/srv/t", Host("box", "me", 2222), "/srv/t"),
        ("ssh://me@[::1]:2222/t", Host("::1", "me", 2222), "/t"),
    ],
)
def test_a_place_elsewhere(word: str, host: Host, path: str) -> None:
    assert parse_remote_path(word) == RemotePath(host, path)


@pytest.mark.parametrize("word", ["traces", "./a:b", "/srv/a:b", "a/b:c", "", ".", "-"])
def test_a_path_here(word: str) -> None:
    assert host_of(word) is None


@pytest.mark.parametrize(
    "word",
    [
        "-oProxyCommand=id:t",
        "ssh://-oProxyCommand=id/t",
        "ssh://-l@box/t",
        "-l@box:t",
        "a b:t",
        "$(id):t",
        "ssh://box;id/t",
        "ssh://box\n/t",
        "box\n:t",
        ":t",
        "@box:t",
        "a@b@box:t",
        "ssh:///t",
        "ssh://box:x/t",
        "ssh://box:0/t",
        "ssh://box:65536/t",
        "ssh://[::1/t",
        "ssh://[-oX]/t",
        "[::1]x:t",
        "ssh://[::1]x/t",
        "box:~other/t",
        "ssh://b\u00f6x/t",
    ],
)
def test_an_invalid_host_is_refused(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = tmp_path / "called"
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ntouch {called}\n")
    (tmp_path / "ssh").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises((UsageError, NothingReadable)):
        open_source([word]).__enter__().walk(word).__next__()
    assert not called.exists()


@given(some.text(max_size=12), some.text(max_size=12))
def test_no_word_reaches_ssh_as_an_option(first: str, last: str) -> None:
    for word in (f"{first}:{last}", f"ssh://{first}/{last}", f"{first}@{last}:x", f"ssh://{first}@{last}"):
        try:
            place = parse_remote_path(word)
        except UsageError:
            continue
        if place is not None:
            command = place.host.arguments()
            assert command[-3] == "--"
            assert not command[-2].startswith("-")
            assert " " not in command[-2]
            assert "\n" not in command[-2]


@pytest.mark.parametrize(
    ("folder", "name", "path"),
    [
        ("box:", "a", "box:a"),
        ("box:t", "a", "box:t/a"),
        ("box:t/", "a", "box:t/a"),
        ("box:/", "a", "box:/a"),
        ("[::1]:", "a", "[::1]:a"),
        ("ssh://box", "a", "ssh://box/~/a"),
        ("ssh://box/", "a", "ssh://box/a"),
        ("ssh://box/~", "a", "ssh://box/~/a"),
        ("ssh://box/t", "a:b", "ssh://box/t/a:b"),
    ],
)
def test_a_name_in_a_folder(folder: str, name: str, path: str) -> None:
    assert join(folder, name) == path
    there, here = parse_remote_path(parent(path)), parse_remote_path(folder)
    assert there is not None
    assert here is not None
    assert there.path == (here.path.rstrip("/") or "/")


def test_local_paths_take_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box:traces").mkdir()
    (tmp_path / "box:traces" / "a.json").write_text("{}")
    (tmp_path / "b:c#d.json").write_text("{}")

    assert host_of("box:traces") is None
    assert host_of("box:traces/a.json/3") is None
    assert host_of("b:c#d.json") is None
    assert host_of("box:other") == Host("box")
    assert host_of("ssh://box/traces") == Host("box")
    with open_source(["box:traces"]) as source:
        assert [entry.path for entry in source.walk("box:traces")] == ["box:traces/a.json"]
        assert source.is_file("box:traces/a.json")
        assert source.local_path("box:traces/a.json") == "box:traces/a.json"


def test_a_path_in_a_trace_leads_to_no_other_machine() -> None:
    with MultiHostSource(["."]) as source:
        assert not source.is_file("box:secret")
        assert not source.is_folder("ssh://box/secret")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
            "host key of",
        ),
        (
            "No ED25519 host key is known for box and you have requested strict checking.\nHost key …\n",
            "not a known host",
        ),
        ("box: Permission denied (publickey).\r\n", "ssh-add"),
        ("subsystem request failed on channel 0\n", "does not offer SFTP"),
        ("ssh: Could not resolve hostname box: Name or service not known\n", "Could not resolve"),
        ("", "it is so"),
    ],
)
def test_why_there_is_no_connection(output: str, expected: str) -> None:
    said = explain_failure(Host("box", "me", 22), "it is so", output)

    assert expected in said
    assert "\n" not in said
    assert "ssh -p 22 me@box" in said or "sshd_config" in said


def test_output_of_ssh_passes_the_text_gate() -> None:
    assert "\x1b" not in explain_failure(Host("box"), "x", "\x1b]0;title\x07 no\n")
