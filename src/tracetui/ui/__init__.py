"""The terminal app: the only layer that imports Textual."""

import os

# At Textual's default of 60 frames a second, the response to a key could wait for two frames, 33 ms.
os.environ.setdefault("TEXTUAL_FPS", "1000")
