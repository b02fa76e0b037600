"""Write exports to the files that a command names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tracetui.cli.output import complain
from tracetui.cli.parser import default_directory
from tracetui.errors import UsageError
from tracetui.text import size


def check_new(path: str, *, force: bool) -> None:
    """Raise `UsageError` for a file that exists, unless `force`."""
    if not force and os.path.isfile(path):
        raise UsageError(f"{path} already exists; choose another name or pass --force")


def write_document(path: str, pieces: Iterable[bytes], roots: Sequence[str], *, force: bool) -> None:
    """Write a file outside the trace directories (`roots` and the default one), and say how large it is.

    Raises as `tracetui.export.write.write`.
    """
    from tracetui.export.write import write

    check_new(path, force=force)
    written = write(path, pieces, roots=[*roots, default_directory()], replace=force)
    complain(f"wrote {path}, {size(written)}")
