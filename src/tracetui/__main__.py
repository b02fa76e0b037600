"""``python -m tracetui``."""

import os
import sys

# Python has imported these two, and tracetui/__init__.py, before the current folder is taken off the path: nothing else
# may be imported there, as a file of that name in the current folder would run.


def leave_current_folder() -> None:
    """Take the current folder off the module path, where ``python -m tracetui`` puts it first.

    It stays if tracetui itself lies there, or if the user's `PYTHONPATH` names it.
    """
    if sys.flags.safe_path:
        return
    package_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        if sys.path[0] == os.getcwd() and not os.path.samefile(sys.path[0], package_parent):
            del sys.path[0]
    except OSError:  # the current folder was removed
        return


if __name__ == "__main__":
    leave_current_folder()
    from tracetui.cli import main

    raise SystemExit(main())
