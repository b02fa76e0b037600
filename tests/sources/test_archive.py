"""Zip archives: members by every method, false claims, contradictions, archives without a central directory."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from struct import pack_into

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.inspect_build import DEFLATED, STORED, ZSTANDARD, archive
from tests.shared import examples
from tracetui.errors import FormatError
from tracetui.sources import archive as archives
from tracetui.sources.archive import Archive
from tracetui.sources.base import File, Stat
from tracetui.sources.local import LocalFile, LocalSource

TEXT = b'{"tide": "high"}' * 1000
_LISTED_SIZE = 24
"""Where an entry of the list has the size of its member."""


def opened(folder: Path, data: bytes) -> File:
    path = folder / "some.zip"
    path.write_bytes(data)
    return LocalSource().open(str(path))


def reason(folder: Path, data: bytes, name: str = "a") -> str:
    """Why a member cannot be read."""
    with opened(folder, data) as file, pytest.raises(FormatError) as failed:
        Archive(file).read(name)
    assert failed.value.where == name
    return failed.value.reason


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_members_are_read_by_every_method_and_in_several_frames(tmp_path: Path, method: int) -> None:
    with opened(tmp_path, archive({"a": TEXT, "b/c": b"", "d": b"last"}, method)) as file:
        loaded = Archive(file)
        assert {name: loaded.read(name) for name in loaded.members} == {"a": TEXT, "b/c": b"", "d": b"last"}
        assert loaded.damage is None


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_foreign_archives_are_read_except_unsupported_methods(tmp_path: Path, method: int) -> None:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w", method) as zip_file:
        zip_file.comment = b"PK\5\6 is no end" * 100
        zip_file.writestr("ä", TEXT)
        with zip_file.open("large", "w", force_zip64=True) as stream:
            stream.write(TEXT)
    with LocalSource().open(str(path)) as file:
        archive = Archive(file)
        assert set(archive.members) == {"ä", "large"}
        if method == zipfile.ZIP_LZMA:
            with pytest.raises(FormatError, match="unsupported compression method"):
                archive.read("ä")
        else:
            assert archive.read("ä") == archive.read("large") == TEXT


def test_more_members_than_a_plain_list_can_count_are_read(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as zip_file:
        for number in range(66_000):
            zip_file.writestr(zipfile.ZipInfo(f"{number}"), b"x")
    with LocalSource().open(str(path)) as file:
        archive = Archive(file)
        assert len(archive.members) == 66_000
        assert archive.read("65999") == b"x"


def test_the_last_of_several_members_of_one_name_counts(tmp_path: Path) -> None:
    with opened(tmp_path, archive([("a", b"first"), ("a", b"second")])) as file:
        assert Archive(file).read("a") == b"second"


def test_names_are_only_names(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "/etc/passwd", "a\x00b", "C:\\x"]
    with opened(tmp_path, archive(dict.fromkeys(names, b"x"))) as file:
        assert [Archive(file).read(name) for name in names] == [b"x"] * 4
    assert [path.name for path in tmp_path.rglob("*")] == ["some.zip"]


def test_a_member_with_an_extreme_compression_ratio_is_not_read(tmp_path: Path) -> None:
    data = archive({"a": bytes(64 << 20), "b": bytes(1 << 20)}, ZSTANDARD, frame=1 << 26)
    assert reason(tmp_path, data) == "not read: compression ratio above 1000"
    with opened(tmp_path, data) as file:
        assert Archive(file).read("b") == bytes(1 << 20)


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_member_does_not_become_larger_than_it_claims(tmp_path: Path, method: int) -> None:
    data = bytearray(archive({"a": bytes(64 << 20)}, method))
    at = data.rindex(b"PK\1\2") + _LISTED_SIZE
    pack_into("<L", data, at, 1000)
    assert reason(tmp_path, bytes(data)).startswith("broken: checksum mismatch")
    pack_into("<L", data, at, archives.MAX_MEMBER + 1)
    assert reason(tmp_path, bytes(data)) == f"not read: {archives.MAX_MEMBER + 1} bytes, more than 192 MiB"


def test_members_in_the_same_place_are_not_read(tmp_path: Path) -> None:
    """A bomb of a few kB that unpacks to much more: each member is in every one before it."""
    data = bytearray(archive({"a": TEXT, "b": TEXT}, STORED))
    second = data.rindex(b"PK\1\2")
    pack_into("<L", data, second + 42, 0)  # where it is
    assert reason(tmp_path, bytes(data), "a") == reason(tmp_path, bytes(data), "b")
    assert reason(tmp_path, bytes(data)) == "not read: overlaps with other members"


def test_members_that_contradict_the_directory_are_reported(tmp_path: Path) -> None:
    whole = archive({"a": TEXT}, STORED)
    entry = whole.rindex(b"PK\1\2")
    assert reason(tmp_path, whole.replace(b"high", b"HIGH", 1)).startswith("broken")
    assert reason(tmp_path, whole, "b") == "no such member in the archive"
    encrypted = bytearray(whole)
    encrypted[entry + 8] |= 1
    assert reason(tmp_path, bytes(encrypted)) == "not read: encrypted"
    elsewhere = bytearray(whole)
    pack_into("<L", elsewhere, entry + 42, 7)
    assert reason(tmp_path, bytes(elsewhere)) == "not at its offset in the archive"
    pack_into("<L", elsewhere, entry + 42, len(whole))
    assert reason(tmp_path, bytes(elsewhere)) == "truncated: the archive ends first"


def test_an_archive_without_its_list_is_read_from_the_members_themselves(tmp_path: Path) -> None:
    whole = archive({"a": b"one", "b": TEXT}, listed=False)
    with opened(tmp_path, whole) as file:
        loaded = Archive(file)
        assert (loaded.read("a"), loaded.read("b")) == (b"one", TEXT)
        assert loaded.damage is not None
    with opened(tmp_path, whole[:-1]) as file:  # the last one is cut off
        assert list(Archive(file).members) == ["a"]
    with opened(tmp_path, b"PK\3\4") as file, pytest.raises(FormatError):
        Archive(file)


@settings(max_examples=examples(150))
@given(st.data())
def test_any_bytes_raise_only_format_errors(data: st.DataObject) -> None:
    whole = bytearray(archive({"a": TEXT[:300], "b": b"x"}, data.draw(st.sampled_from([STORED, DEFLATED, ZSTANDARD]))))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    file = Held(bytes(whole[: cut or None]))
    try:
        loaded = Archive(file)
    except FormatError:
        return
    for name in loaded.members:
        with suppress(FormatError):
            loaded.read(name)


class Held(LocalFile):
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        super().__init__("held.zip")
        self._data = data
        self._stat = Stat(1, 1, len(data), 1)

    def read(self, offset: int, size: int) -> bytes:
        assert offset >= 0
        assert size >= 0
        return self._data[offset : offset + size]
