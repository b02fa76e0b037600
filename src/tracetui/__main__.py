"""``python -m tracetui``."""

from tracetui.processes import leave_current_folder

if __name__ == "__main__":
    leave_current_folder()
    from tracetui.cli import main

    raise SystemExit(main())
