"""Formats that wrap the runs of others: a trial of Harbor is listed under the log of its agent, in its format."""

from __future__ import annotations

from tracetui.formats.base import Format
from tracetui.formats.harbor import logs
from tracetui.formats.harbor.files import NAME
from tracetui.sources.base import File


def main_file(file: File, chosen: Format | None) -> str | None:
    """Path of the file that lists the wrapped run which `file` is a part of; None for a file of its own.

    `chosen` is the format that claims `file`. Raises `LinkLost`, or `FormatError` if that is unknown.
    """
    return logs.main_file(file, chosen)


def wraps(name: str | None) -> bool:
    """Whether files of the format `name` make the files in their folder and below parts of one run."""
    return name == NAME
