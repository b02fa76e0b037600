"""The app: the only layer that knows Textual."""

import os

# Textual paints 60 times a second at most: what follows a key, such as a preview, would wait for up to two periods.
os.environ.setdefault("TEXTUAL_FPS", "240")
