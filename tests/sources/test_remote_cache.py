"""Cached bytes of remote files never differ from the file: a model of a file that changes in every way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as some

from tests.shared import examples
from tracetui.sources.remote import RemoteCache

LONG_AGO = 1_000_000_000
Change = tuple[str, int, int]


def read(cache: RemoteCache, data: bytes, mtime: int, offset: int, size: int) -> bytes:
    """Read as `RemoteFile` does, from a file with these bytes."""
    stat = cache.observe("f", len(data), mtime)
    doubt = cache.probe("f", stat)
    if doubt is not None:
        pieces = [data[start : start + length] for start, length in (doubt.head, doubt.tail)]
        cache.resolve("f", stat, *pieces)
    kept = cache.cached("f", stat, offset, size)
    got, at = b"", offset
    for start, piece in kept:
        assert start >= at
        cache.store("f", stat, at, data[at:start])
        got += data[at:start] + piece
        at = start + len(piece)
    cache.store("f", stat, at, data[at : offset + size])
    return got + data[at : offset + size]


@settings(max_examples=examples(300))
@given(
    some.lists(
        some.tuples(
            some.sampled_from(["append", "truncate", "replace", "patch", "nothing"]),
            some.integers(0, 200_000),
            some.integers(0, 200_000),
        ),
        max_size=12,
    ),
    some.sampled_from([1_000, 100_000, 1 << 22]),
)
def test_cached_bytes_equal_the_file(changes: list[Change], limit: int) -> None:
    cache = RemoteCache(limit)
    data, mtime = bytes(100_000), LONG_AGO
    for number, (how, first, last) in enumerate(changes, 1):
        fresh = bytes([number]) * (first + 1)
        if how == "append":
            data += fresh
        elif how == "truncate":
            data = data[: first % (len(data) + 1)]
        elif how == "replace":  # a rewritten document is longer, shorter or as long, and ends differently
            data = fresh + b"}" * 600
        elif how == "patch" and data:
            at = first % len(data)
            data = data[:at] + bytes([number]) + data[at + 1 :]
        mtime += how != "nothing"
        assert read(cache, data, mtime, last % (len(data) + 1), first) == data[last % (len(data) + 1) :][:first]


@given(some.integers(1, 300_000), some.integers(1, 5_000))
def test_a_log_costs_only_its_new_frames(size: int, more: int) -> None:
    cache = RemoteCache()
    data = bytes(range(256)) * (size // 256 + 1)
    read(cache, data, LONG_AGO, 0, len(data))
    longer = data + b"x" * more
    stat = cache.observe("f", len(longer), LONG_AGO + 1)
    doubt = cache.probe("f", stat)

    assert doubt is not None
    assert doubt.head[1] <= 512
    assert sum(doubt.tail) == len(data)
    cache.resolve("f", stat, longer[doubt.head[0] :][: doubt.head[1]], longer[doubt.tail[0] :][: doubt.tail[1]])
    edge = min(4096, len(data))
    assert cache.cached("f", stat, 0, edge) == [(0, data[:edge])]
    assert b"".join(piece for _, piece in cache.cached("f", stat, len(data) - edge, edge)) == data[-edge:]


def test_memory_is_bounded() -> None:
    cache = RemoteCache(100_000)
    for number in range(200):
        name = f"f{number}"
        stat = cache.observe(name, 5_000, LONG_AGO)
        cache.store(name, stat, 0, bytes(5_000))

    kept = sum(
        len(cache.cached(f"f{number}", cache.observe(f"f{number}", 5_000, LONG_AGO), 0, 5_000)) for number in range(200)
    )
    assert 10 <= kept <= 20


def test_the_least_recently_used_goes_first() -> None:
    cache = RemoteCache(4_000)
    stats = {name: cache.observe(name, 1_000, LONG_AGO) for name in "abcde"}
    for name in "abcd":
        cache.store(name, stats[name], 0, bytes(1_000))
    cache.cached("a", stats["a"], 0, 1)
    cache.store("e", stats["e"], 0, bytes(1_000))
    assert [name for name in "abcde" if not cache.cached(name, stats[name], 0, 1_000)] == ["b"]
