"""Two runs compared: which step of the one is which of the other, where they first went differently, and how.

Pure functions of `tracetui.model`. Bodies are loaded one pair at a time and not kept.
"""
