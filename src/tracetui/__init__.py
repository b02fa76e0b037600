"""tracetui: a directory of AI-agent traces, in the terminal and as data.

>>> import tracetui
>>> run = tracetui.load("traces/0690e0f0.json")      # doctest: +SKIP
>>> run.summary.status, run.spans[0].name             # doctest: +SKIP
>>> run.load(run.spans[0]).input                      # doctest: +SKIP
"""

from __future__ import annotations

from tracetui.api import load, load_all

__version__ = "0.1.0"

__all__ = ["__version__", "load", "load_all"]
