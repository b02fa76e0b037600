"""Compare two runs: align their steps, find the first difference, and describe what differs.

Pure functions of `tracetui.model`. Bodies are loaded one pair at a time and not cached.
"""
