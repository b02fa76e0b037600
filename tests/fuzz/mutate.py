"""Makes a directory of traces out of the cases of the formats, and changes it: anything in one file, or ids among all.

What is hostile to a single file comes from `tracetui.testing.hostile`, which the conformance suite uses as well.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.fuzz.values import TraceFile, Value
from tracetui import testing
from tracetui.formats import registry
from tracetui.testing import hostile
from tracetui.testing.reading import MTIME

CASES: Final = Path(__file__).parent.parent / "formats"
MOST_CASES: Final = 4
MOST_CHANGES: Final = 4
HOSTILE_IDS: Final[tuple[Any, ...]] = (
    "\ud800", "x\udcffy", "a\0b", "..", ".", "/", "/etc/passwd", "../../x", "a/b", "a\\b", "", " ", "x" * 5000,
    "é" * 130, "NaN", "0", "1", "-1", 0, -1, 7, 2**70, 1.5, True, None, [], ["a"], {}, {"id": "x"}, "line 1", "#", "%",
    "a#b", "\x1b[31m",
)  # fmt: skip


def cases_of(name: str) -> list[Path]:
    """The cases of one format."""
    return testing.cases(CASES / name.replace("-", "_"))


def build(root: Path, random: Random, only: str | None) -> list[str]:
    """Copy a few cases below `root`, most often of one format, together or in folders of their own; what was copied."""
    names = [only] if only else [random.choice([*registry.BUILT_IN])]
    if not only and random.random() < 0.2:
        names.append(random.choice([*registry.BUILT_IN]))
    cases = [case for name in names for case in cases_of(name)]
    chosen = random.sample(cases, min(len(cases), random.randint(1, MOST_CASES)))
    together = random.random() < 0.6
    for case in chosen:
        has_log = any(case.rglob("*-wal"))  # which would be taken for that of another database of the same name
        copy(case, root / case.name if has_log or not together else root)
    return [f"{case.parent.name}/{case.name}" for case in chosen]


def copy(case: Path, root: Path) -> None:
    """Copy the files of a case, which are old then, to those in `root`."""
    shutil.copytree(case / "input", root, dirs_exist_ok=True)
    _make_old(root)


def files_below(root: Path) -> list[Path]:
    """The files in a directory, in a stable order, without the logs of databases."""
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))


def set_old(path: Path) -> None:
    """Give a file the time of the conformance suite's, so that no run in it counts as running."""
    os.utime(path, (MTIME, MTIME))


def _make_old(root: Path) -> None:
    for path in root.rglob("*"):
        set_old(path)


# ---- one file, anything


def change_bytes(root: Path, random: Random) -> str:
    """Change values, records or bytes of one file."""
    path = random.choice(files_below(root))
    if random.random() < 0.3:
        description = _change_raw(path, random)
    else:
        file = TraceFile(path)
        description = "; ".join(_change_value(file, random) for _ in range(random.randint(1, MOST_CHANGES)))
        file.save()
    _make_old(root)
    return f"{path.relative_to(root)}: {description}"


def _change_value(file: TraceFile, random: Random) -> str:
    lists = [records for records in file.records if records]
    if lists and random.random() < 0.25:
        return _change_records(random.choice(lists), random)
    values = file.values()
    if not values:
        return "nothing"
    value = random.choice(values)
    if random.random() < 0.2:
        value.delete()
        return f"{value.name} deleted"
    junk = random.choice([*hostile.JUNK, *HOSTILE_IDS, random.choice(values).value])
    value.replace(junk)
    return f"{value.name} = {junk!a:.60}"


def _change_records(records: list[Any], random: Random) -> str:
    i, j = random.randrange(len(records)), random.randrange(len(records))
    match random.choice(("swap", "repeat", "delete")):
        case "swap":
            records[i], records[j] = records[j], records[i]
            return f"records {i} and {j} exchanged"
        case "repeat":
            records.insert(j, records[i])
            return f"record {i} again at {j}"
    if len(records) > 1:
        del records[i]
    return f"record {i} deleted"


def _change_raw(path: Path, random: Random) -> str:
    data = path.read_bytes()
    begin = random.randrange(len(data) + 1)
    match random.choice(("cut", "junk", "zeros", "cut out", "twice")):
        case "cut":
            changed, description = data[:begin], f"cut at {begin}"
        case "junk":
            junk = random.choice((b"\xff\xfe", b"\xc3(", b"\xed\xa0\x80", b'"', b"}", b"\\", b"\n", b"\0", b",", b"{}"))
            changed, description = data[:begin] + junk + data[begin + random.randint(0, 3) :], f"{junk!r} at {begin}"
        case "zeros":
            changed, description = data[:begin] + bytes(512) + data[begin:], f"zeros at {begin}"
        case "cut out":
            end = begin + random.randint(1, 4096)
            changed, description = data[:begin] + data[end:], f"bytes {begin} to {end} cut out"
        case _:
            changed, description = data + data, "twice"
    path.write_bytes(changed)
    return description


# ---- ids and names, among all files


def change_ids(root: Path, random: Random) -> str:
    """Exchange, repeat and replace ids, references and names of files, within and among the files."""
    descriptions = [_change_name(root, random) for _ in range(random.choice((0, 0, 1, 2)))]
    files = {path: TraceFile(path) for path in files_below(root)}
    ids = {path: [value for value in file.values() if _may_be_id(value)] for path, file in files.items()}
    ids = {path: values for path, values in ids.items() if values}
    pool = [value.value for values in ids.values() for value in values]
    pool += [name for path in files for name in (path.name, path.stem, str(path.relative_to(root)), path.parent.name)]
    touched: set[Path] = set()
    for _ in range(random.randint(1, MOST_CHANGES) if ids else 0):
        path = random.choice([*ids])
        value = random.choice(ids[path])
        new = random.choice(HOSTILE_IDS) if random.random() < 0.4 else random.choice(pool)
        same = [other for other in ids[path] if other.value == value.value and type(other.value) is type(value.value)]
        match random.choice(("one", "field", "all", "everywhere", "parent")):
            case "one":
                same = [value]
            case "field":
                same = [other for other in same if other.name == value.name]
            case "everywhere":
                same = [other for values in ids.values() for other in values if other.value == value.value]
            case "parent":  # an id of the same file: circles, and parents that come later
                same, new = [value], random.choice(ids[path]).value
        for occurrence in same:
            occurrence.replace(new)
        touched.update(path for path, values in ids.items() if any(other in same for other in values))
        descriptions.append(f"{path.relative_to(root)}: {len(same)} of {value.name}: {value.value!a:.60} = {new!a:.60}")
    for path in touched:
        files[path].save()
    _make_old(root)
    return "; ".join(descriptions)


def _may_be_id(value: Value) -> bool:
    return value.names_an_id and not (isinstance(value.value, dict | list) and value.value)


def _change_name(root: Path, random: Random) -> str:
    """Exchange the names of two files, repeat a file under another name, move it, or remove it."""
    paths = files_below(root)
    first, other = random.choice(paths), random.choice(paths)
    relative = first.relative_to(root)
    match random.choice(("exchange", "repeat", "move", "remove")):
        case "exchange":
            data, others = first.read_bytes(), other.read_bytes()
            first.write_bytes(others)
            other.write_bytes(data)
            return f"{relative} and {other.relative_to(root)} exchanged"
        case "repeat":
            copy = other.with_name(random.choice(("a-", "z-")) + first.name)
            shutil.copyfile(first, copy)
            return f"{relative} repeated as {copy.relative_to(root)}"
        case "move":
            moved = other.parent / first.name
            if not moved.exists():
                first.rename(moved)
            return f"{relative} moved to {moved.relative_to(root)}"
    if len(paths) > 1:
        first.unlink()
    return f"{relative} removed"


CHANGES: Final = {"ids": change_ids, "bytes": change_bytes}
