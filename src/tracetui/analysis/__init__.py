"""Analyses of many runs: tasks and their trials, the tree of their steps, gates, and the statistics behind them.

Pure functions of `tracetui.model` and `tracetui.diff`; callers load the runs.
"""
