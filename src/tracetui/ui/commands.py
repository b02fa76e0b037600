# ruff: noqa: E501 — a table reads best with one command a line
"""The command table: keys, title, help and action of every command.

Source of the panes' Textual bindings, the footer, the help screen, docs/keys.md, the palette and the user's keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

RUNS, STEPS, DETAIL, FACTS = "runs", "steps", "detail", "facts"
"""Panes of the main screen, in the order of their numbers."""
PHRASES, PAIRS, CHANGE, SIDES = "phrases", "pairs", "change", "sides"
"""Panes of a comparison."""
REPLAYS: Final = "replays"
"""Pane of the replays of a run."""
QUEUE, CAUSE, FAILURE = "queue", "cause", "failure"
"""Panes of the triage."""
TASKS: Final = "tasks"
"""Pane of the task matrix."""
MAIN: Final = frozenset({RUNS, STEPS, DETAIL, FACTS})
DIFF: Final = frozenset({PHRASES, PAIRS, CHANGE, SIDES})
TRIAGE: Final = frozenset({QUEUE, CAUSE, FAILURE})
FACETS, HITS, FINDINGS, STATISTICS = "facets", "hits", "findings", "statistics"
"""Panes of the filter values, the search hits, the contrast and the statistics."""
TREE: Final = "tree"
"""Pane of the run tree."""
TODAY: Final = "today"
"""Pane of the *today* page."""
LIVE: Final = "live"
"""Pane of the live runs."""
FILES, AUDIT, BLAME = "files", "audit", "blame"
"""Panes of the changed files, of the audit, and of the lines of a file."""
EFFECTS: Final = frozenset({FILES, AUDIT, BLAME})
RIVER, BREAKS, CONTENTS, CALL = "river", "breaks", "contents", "call"
"""Panes of the context of a run."""
CONTEXT: Final = frozenset({RIVER, BREAKS, CONTENTS, CALL})
LISTS: Final = frozenset({REPLAYS, FACETS, HITS, FINDINGS, STATISTICS, TASKS, TREE, TODAY, LIVE}) | EFFECTS
EVERYWHERE: Final = MAIN | DIFF | TRIAGE | LISTS | CONTEXT
RUN: Final = frozenset({STEPS, DETAIL, FACTS})
RUNS_AND_DETAIL: Final = frozenset({RUNS, STEPS, DETAIL})


class Command(NamedTuple):
    """One user command."""

    id: str
    keys: tuple[str, ...]
    """Textual key names, or sequences (``]t``). ``m*`` is ``m`` and any letter, which becomes the action's argument."""
    title: str
    """A word or two for the footer and the palette."""
    help: str
    """One sentence."""
    action: str
    """Textual action, run by the first of the focused pane, its containers, its screen and the app that has it."""
    panes: frozenset[str] = EVERYWHERE
    hint: int = 0
    """Priority in the footer, 1 first; 0: not in the footer."""
    group: str = "look"


COMMANDS: Final = (
    Command("open", ("enter",), "open", "Open what is under the cursor: a run, then its detail; unfold a folded row.", "open", hint=1, group="go"),
    Command("back", ("escape",), "back", "Back to where you came from.", "back", hint=9, group="go"),
    Command("quit", ("q",), "quit", "Back; from the run list, quit.", "leave", hint=12, group="go"),
    Command("interrupt", ("ctrl+c",), "copy or quit", "Copy the mouse selection; without one, quit the program.", "interrupt", group="go"),
    Command("end-now", ("ctrl+q",), "quit now", "Quit the program.", "quit", group="go"),
    Command("down", ("j", "down"), "down", "Move down.", "move(1)", group="move"),
    Command("up", ("k", "up"), "up", "Move up.", "move(-1)", group="move"),
    Command("page-down", ("pagedown", "ctrl+f"), "page down", "Move a page down.", "page(1)", group="move"),
    Command("page-up", ("pageup", "ctrl+b"), "page up", "Move a page up.", "page(-1)", group="move"),
    Command("half-down", ("ctrl+d",), "half a page down", "Move half a page down.", "page(0.5)", group="move"),
    Command("half-up", ("ctrl+u",), "half a page up", "Move half a page up.", "page(-0.5)", group="move"),
    Command("top", ("g", "home"), "top", "Go to the first row.", "edge(False)", group="move"),
    Command("end", ("G", "end"), "end", "Go to the last row.", "edge(True)", group="move"),
    Command("fold", ("h", "left"), "fold", "Fold, or go to the parent; scroll left where nothing folds.", "fold", EVERYWHERE - {TASKS, TREE} - CONTEXT, group="fold"),
    Command("unfold", ("l", "right"), "unfold", "Unfold, or go to the first child; scroll right where nothing folds.", "unfold", RUN | DIFF | TRIAGE | EFFECTS, hint=7, group="fold"),
    Command("scroll-right", ("l", "right"), "scroll right", "Scroll right; h scrolls left.", "unfold", LISTS - {TASKS, TREE} - EFFECTS, group="fold"),
    Command("previous-cell", ("h", "left"), "previous trial", "Go to the previous trial of the task.", "fold", frozenset({TASKS}), group="move"),
    Command("next-cell", ("l", "right"), "trial", "Go to the next trial of the task.", "unfold", frozenset({TASKS}), hint=2, group="move"),
    Command("previous-call", ("h", "left"), "previous call", "Go to the previous model call of the conversation.", "call(-1)", CONTEXT, group="move"),
    Command("next-call", ("l", "right"), "next call", "Go to the next model call of the conversation.", "call(1)", CONTEXT, hint=4, group="move"),
    Command("open-run", ("o",), "open run", "Open the run under the cell cursor.", "open_run", frozenset({TASKS}), hint=3, group="go"),
    Command("tree-fold", ("h",), "fold", "Fold the branch or fork, or go to the fork above.", "fold", frozenset({TREE}), group="fold"),
    Command("tree-unfold", ("l",), "unfold", "Show the steps of the branch.", "unfold", frozenset({TREE}), hint=7, group="fold"),
    Command("fold-all", ("zM",), "fold all", "Fold everything.", "fold_all(False)", RUN | {CHANGE, QUEUE, FAILURE, TREE}, group="fold"),
    Command("unfold-all", ("zR",), "unfold all", "Unfold everything.", "fold_all(True)", RUN | {CHANGE, QUEUE, FAILURE, TREE}, group="fold"),
    Command("fold-1", ("z1",), "fold to depth 1", "Show only the top level.", "fold_to(1)", RUN, group="fold"),
    Command("fold-2", ("z2",), "fold to depth 2", "Show two levels.", "fold_to(2)", RUN, group="fold"),
    Command("fold-3", ("z3",), "fold to depth 3", "Show three levels.", "fold_to(3)", RUN, group="fold"),
    Command("next-error", ("e",), "next error", "Next error in this run; past the last one, the first of the next failed run.", "error(1)", MAIN | TRIAGE, hint=2, group="find"),
    Command("previous-error", ("E",), "previous error", "Previous error, across runs.", "error(-1)", MAIN | TRIAGE, group="find"),
    Command("next-ungraded", ("]g",), "next ungraded", "Next ungraded run: one that its grader did not grade.", "ungraded(1)", MAIN | TRIAGE, group="find"),
    Command("previous-ungraded", ("[g",), "previous ungraded", "Previous ungraded run.", "ungraded(-1)", MAIN | TRIAGE, group="find"),
    Command("next-bar", ("]h",), "next bar", "First run of the next bar of the histogram (minutes, hours or days).", "bar(1)", frozenset({RUNS}), group="find"),
    Command("previous-bar", ("[h",), "previous bar", "First run of the previous bar of the histogram.", "bar(-1)", frozenset({RUNS}), group="find"),
    Command("search", ("/",), "search", "Search in the focused pane.", "search", hint=3, group="find"),
    Command("next-hit", ("n",), "next hit", "Next hit of the search.", "hit(1)", MAIN | TRIAGE | LISTS | CONTEXT, group="find"),
    Command("previous-hit", ("N",), "previous hit", "Previous hit of the search.", "hit(-1)", MAIN | TRIAGE | LISTS | CONTEXT, group="find"),
    Command("next-difference", ("n",), "next change", "Next difference, across steps; next hit during a search.", "difference(1)", DIFF, hint=1, group="find"),
    Command("previous-difference", ("N",), "previous change", "Previous difference; previous hit during a search.", "difference(-1)", DIFF, group="find"),
    Command("next-divergent", ("]d",), "next step", "Next differing step; in a context diff, the next model call.", "divergent(1)", DIFF, hint=2, group="find"),
    Command("previous-divergent", ("[d",), "previous step", "Previous differing step; in a context diff, the previous model call.", "divergent(-1)", DIFF, group="find"),
    Command("next-finding", ("]r",), "next finding", "Next finding of the audit.", "finding(1)", RUN | {AUDIT}, hint=2, group="find"),
    Command("previous-finding", ("[r",), "previous finding", "Previous finding of the audit.", "finding(-1)", RUN | {AUDIT}, group="find"),
    Command("next-fork", ("]f",), "next fork", "Next fork.", "fork(1)", frozenset({TREE}), hint=2, group="find"),
    Command("previous-fork", ("[f",), "previous fork", "Previous fork.", "fork(-1)", frozenset({TREE}), group="find"),
    Command("next-decisive", ("]d",), "next decisive fork", "Next decisive fork.", "fork(1, True)", frozenset({TREE}), group="find"),
    Command("previous-decisive", ("[d",), "previous decisive fork", "Previous decisive fork.", "fork(-1, True)", frozenset({TREE}), group="find"),
    Command("next-trial", ("right", ">"), "next trial", "Select the trial to the right.", "trial(1)", frozenset({TREE}), hint=3, group="find"),
    Command("previous-trial", ("left", "<"), "previous trial", "Select the trial to the left.", "trial(-1)", frozenset({TREE}), group="find"),
    Command("next-break", ("]k",), "next break", "Next cache break.", "break(1)", CONTEXT, hint=2, group="find"),
    Command("previous-break", ("[k",), "previous break", "Previous cache break.", "break(-1)", CONTEXT, group="find"),
    Command("next-conversation", ("]a",), "next agent", "Conversation of the next agent, at its first call.", "conversation(1)", CONTEXT, group="find"),
    Command("previous-conversation", ("[a",), "previous agent", "Conversation of the previous agent.", "conversation(-1)", CONTEXT, group="find"),
    Command("filter", ("f",), "filter", "Filter runs or steps by a query: words, status:error, dur>5s …; Tab completes.", "filter", frozenset({RUNS, STEPS, TASKS, QUEUE, TODAY, FILES, AUDIT}), hint=4, group="find"),
    Command("pick", ("P",), "pick a filter", "Pick a filter from the values that occur, with their counts.", "facets", frozenset({RUNS}), group="find"),
    Command("pick-value", ("space",), "pick", "Select or deselect the value.", "pick", frozenset({FACETS}), hint=2, group="find"),
    Command("grep", ("&",), "grep all runs", "Search inputs, outputs, messages and errors of all listed runs.", "grep", MAIN, group="find"),
    Command("statistics", ("S",), "statistics", "Calls, errors, time and tokens by tool, model, agent, task, project, day and others.", "statistics", MAIN | TRIAGE, group="go"),
    Command("today", ("H",), "today", "Show running, waiting and failed runs of today, and spending.", "today", MAIN, group="go"),
    Command("live", ("L",), "live runs", "Watch all running runs at once: open call, silence, last lines and cost of each.", "live", MAIN | {TODAY}, hint=10, group="go"),
    Command("files", ("A",), "files", "List the files that agents changed, and whether their lines still stand.", "files", MAIN | TRIAGE | {AUDIT, BLAME}, group="go"),
    Command("audit", ("U",), "audit", "List forced pushes, deletions, secrets read and other risky effects.", "audit", MAIN | TRIAGE | {FILES, BLAME}, group="go"),
    Command("blame", ("B",), "blame", "Show the session that wrote each line of the file of this row or step.", "blame", RUN | {FILES, AUDIT}, hint=6, group="go"),
    Command("contrast", ("C",), "contrast", "Contrast failed (or marked) runs with passed ones.", "contrast", MAIN | TRIAGE, hint=8, group="go"),
    Command("context-page", ("K",), "context", "Show what fills the context of the run, what carrying it costs, and why the cache was missed.", "context_page", MAIN, hint=9, group="go"),
    Command("failures", ("!",), "failures only", "Toggle failed runs only.", "arrange('failures')", frozenset({RUNS}), hint=5, group="find"),
    Command("new-causes", ("!",), "new only", "Toggle causes whose first run started in the last 24 hours.", "arrange('new')", frozenset({QUEUE}), hint=5, group="find"),
    Command("mark", ("space",), "mark", "Mark or unmark the run; d compares two marked runs or opens the tree of more, C contrasts them with the others.", "mark", frozenset({RUNS}), group="list"),
    Command("unfold-content", ("space",), "unfold", "Unfold or fold the content under the cursor: its files.", "unfold_content", frozenset({CONTENTS}), hint=3, group="fold"),
    Command("sort", (",",), "sort", "Sort by the next column; in the timeline, by duration.", "sort", frozenset({RUNS, STEPS, TASKS, QUEUE, STATISTICS, TODAY, FILES, AUDIT}) | CONTEXT, hint=8, group="list"),
    Command("sort-reverse", (";",), "reverse", "Reverse the order.", "arrange('reverse')", frozenset({RUNS, TASKS, QUEUE, STATISTICS, TODAY, FILES, AUDIT}), group="list"),
    Command("group", ("b",), "group by", "Group by the next criterion: runs by day, agent, source (project), model, task, cause and others; causes by kind, agent, verdict, first day and others.", "arrange('group')", frozenset({RUNS, QUEUE, TODAY}), hint=10, group="list"),
    Command("columns", ("W",), "columns", "Choose the columns of the list and their order.", "columns", frozenset({RUNS}), group="list"),
    Command("next-tool", ("]t",), "same tool, next", "Next call of the same tool.", "same('tool', 1)", RUN, group="find"),
    Command("previous-tool", ("[t",), "same tool, previous", "Previous call of the same tool.", "same('tool', -1)", RUN, group="find"),
    Command("next-sibling", ("]s",), "next sibling", "Next span of the same parent.", "same('sibling', 1)", RUN, group="find"),
    Command("previous-sibling", ("[s",), "previous sibling", "Previous span of the same parent.", "same('sibling', -1)", RUN, group="find"),
    Command("next-model", ("]m",), "next model call", "Next model call.", "same('model', 1)", RUN | CONTEXT, group="find"),
    Command("previous-model", ("[m",), "previous model call", "Previous model call.", "same('model', -1)", RUN | CONTEXT, group="find"),
    Command("next-prompt", ("]u",), "next prompt", "Next prompt of the user.", "prompt(1)", RUN, group="find"),
    Command("previous-prompt", ("[u",), "previous prompt", "Previous prompt of the user.", "prompt(-1)", RUN, group="find"),
    Command("pane", ("tab",), "pane", "Focus the next pane.", "next_pane(1)", EVERYWHERE - LISTS, hint=11, group="look"),
    Command("projects", ("tab",), "projects", "Go to the spending by project, or back to the runs; Enter filters the list by the project.", "projects", frozenset({TODAY}), hint=7, group="look"),
    Command("pane-back", ("shift+tab",), "previous pane", "Focus the previous pane.", "next_pane(-1)", EVERYWHERE - LISTS, group="look"),
    Command("pane-1", ("1",), "runs", "Focus Runs, the list.", "pane(1)", MAIN, group="look"),
    Command("pane-2", ("2",), "steps", "Focus Steps, Turns, Story or Spans.", "pane(2)", MAIN, group="look"),
    Command("pane-3", ("3",), "detail", "Focus Detail.", "pane(3)", MAIN, group="look"),
    Command("pane-4", ("4",), "run", "Focus Run, the facts of the run; on a narrow screen, a tab of Detail.", "pane(4)", MAIN, group="look"),
    Command("diff-pane-1", ("1",), "what changed", "Focus What changed, the changes in words.", "pane(1)", DIFF, group="look"),
    Command("diff-pane-2", ("2",), "steps", "Focus Steps, the paired steps.", "pane(2)", DIFF, group="look"),
    Command("diff-pane-3", ("3",), "change", "Focus Change, the diff of the step.", "pane(3)", DIFF, group="look"),
    Command("diff-pane-4", ("4",), "both runs", "Focus Both runs.", "pane(4)", DIFF, group="look"),
    Command("triage-pane-1", ("1",), "causes", "Focus Causes.", "pane(1)", TRIAGE, group="look"),
    Command("triage-pane-2", ("2",), "cause", "Focus Cause, the facts of the selected cause.", "pane(2)", TRIAGE, group="look"),
    Command("triage-pane-3", ("3",), "failure", "Focus Failure, the steps up to the failure.", "pane(3)", TRIAGE, group="look"),
    Command("context-pane-1", ("1",), "context by call", "Focus Context by call, the river.", "pane(1)", CONTEXT, group="look"),
    Command("context-pane-2", ("2",), "breaks", "Focus Cache breaks.", "pane(2)", CONTEXT, group="look"),
    Command("context-pane-3", ("3",), "contents", "Focus Contents.", "pane(3)", CONTEXT, group="look"),
    Command("context-pane-4", ("4",), "call", "Focus Call, the call under the cursor.", "pane(4)", CONTEXT, group="look"),
    Command("side", ("s",), "side/unified", "Toggle side-by-side and unified view.", "side", DIFF, hint=3, group="look"),
    Command("context-of", ("c",), "context", "Cycle: inputs of both model calls, input against the previous call, step.", "context", DIFF, hint=4, group="look"),
    Command("ignored", ("i",), "ignored", "Toggle ignoring ids, times and counters.", "ignored", DIFF, hint=5, group="look"),
    Command("tree-texts", ("i",), "model texts", "Toggle model answers and messages as steps.", "texts", frozenset({TREE}), hint=5, group="look"),
    Command("zoom", ("z",), "zoom", "Zoom the focused pane.", "zoom", MAIN | DIFF | TRIAGE | CONTEXT, hint=6, group="look"),
    Command("tree", ("t",), "tree/timeline", "Switch story (one line per turn), timeline (one line per step) and span tree.", "tree", RUN, hint=5, group="look"),
    Command("next-tab", (">",), "next tab", "Next tab of the detail or the statistics; in the list, scroll right.", "tab(1)", MAIN | DIFF | {STATISTICS}, hint=8, group="look"),
    Command("previous-tab", ("<",), "previous tab", "Previous tab of the detail; in the list, scroll left.", "tab(-1)", MAIN | DIFF | {STATISTICS}, group="look"),
    Command("wrap", ("w",), "wrap", "Toggle line wrapping; h and l scroll long lines.", "wrap", RUN | {CHANGE}, group="look"),
    Command("raw", ("r",), "raw", "Show the source text.", "raw", RUN, group="look"),
    Command("diff-raw", ("r",), "JSON", "Toggle messages and the values as recorded.", "raw", DIFF, hint=5, group="look"),
    Command("jump", ("'",), "jump", "Jump to the span named in this row.", "jump", frozenset({DETAIL, FACTS}), hint=4, group="go"),
    Command("origin", ("O",), "origin", "Go to where the value under the cursor, or the selected text, first appears in the run.", "origin", frozenset({DETAIL}), hint=5, group="go"),
    Command("origin-back", ("ctrl+o",), "back from origin", "Return to the row from which you went to an origin or a link.", "origin_back", frozenset({STEPS, DETAIL}), group="go"),
    Command("next-appearance", ("]v",), "next appearance", "Next appearance, in the run, of the value whose origin was looked for.", "appearance(1)", frozenset({STEPS, DETAIL}), group="find"),
    Command("previous-appearance", ("[v",), "previous appearance", "Previous appearance of that value.", "appearance(-1)", frozenset({STEPS, DETAIL}), group="find"),
    Command("diff", ("d",), "diff", "Compare the two marked runs, or the marked one with this run; open the tree of more.", "diff", MAIN, group="go"),
    Command("file-diff", ("d",), "all edits", "Show all edits of the file as one diff, or its step again.", "file_diff", frozenset({FILES}), hint=4, group="go"),
    Command("diff-branch", ("d",), "diff", "Compare a trial of this branch with one of the most different branch.", "diff", frozenset({TREE}), hint=4, group="go"),
    Command("diff-original", ("D",), "diff original", "Compare with the original; on an original, with its replays.", "diff_original", MAIN | TRIAGE, hint=5, group="go"),
    Command("context", ("c",), "context", "Compare the input of this model call with that of the previous call.", "context", RUN | CONTEXT, group="go"),
    Command("follow", ("F",), "follow", "Toggle follow. Scrolling pauses; G resumes.", "follow", RUNS_AND_DETAIL, hint=6, group="go"),
    Command("ledger", ("i",), "parse coverage", "Show parse coverage and unknown records of the listed runs.", "ledger", frozenset({RUNS}), group="look"),
    Command("state", ("i",), "why this state", "Explain why the run counts as running, quiet, stalled or ended.", "explain", RUN, group="look"),
    Command("copy", ("yy",), "copy value", "Copy the selection, or the row or value under the cursor.", "copy('value')", hint=9, group="take"),
    Command("copy-path", ("yp",), "copy path", "Copy the path of the file.", "copy('path')", MAIN | TRIAGE, group="take"),
    Command("copy-place", ("yp",), "copy path", "Copy the path of the value (messages[12].content).", "copy('path')", DIFF, group="take"),
    Command("copy-address", ("yl",), "copy address", "Copy the address for `tracetui show`.", "copy('address')", group="take"),
    Command("copy-resume", ("yr",), "copy resume command", "Copy the shell command that resumes the session in its program.", "copy_resume", MAIN | {TODAY, LIVE}, group="take"),
    Command("triage", ("T",), "triage", "Open triage.", "triage", MAIN, hint=3, group="go"),
    Command("tasks", ("M",), "tasks", "Open the task matrix: the trials of each task, and their pass rates.", "tasks", MAIN | TRIAGE, hint=5, group="go"),
    Command("real", ("vr",), "verdict: real", "Mark the failure as real: needs a fix.", "verdict('real')", MAIN | TRIAGE, hint=4, group="judge"),
    Command("flaky", ("vf",), "verdict: flaky", "Mark the failure as flaky: passes and fails without a change.", "verdict('flaky')", MAIN | TRIAGE, group="judge"),
    Command("known", ("vk",), "verdict: known", "Mark the failure as known: already in your tracker.", "verdict('known')", MAIN | TRIAGE, group="judge"),
    Command("ignore", ("vi",), "verdict: ignore", "Mark the failure as not worth acting on.", "verdict('ignore')", MAIN | TRIAGE, group="judge"),
    Command("again", (".",), "repeat verdict", "Repeat the last verdict.", "verdict_again", MAIN | TRIAGE, group="judge"),
    Command("mark-cause", ("space",), "mark", "Mark or unmark the cause, for a verdict on several or a merge.", "mark_cause", frozenset({QUEUE}), group="judge"),
    Command("merge", ("=",), "merge", "Merge the marked causes into this one.", "merge", frozenset({QUEUE}), group="judge"),
    Command("split", ("|",), "split", "Split the cause by a varying part, or undo a merge or split.", "split", frozenset({QUEUE}), group="judge"),
    Command("note", ("a",), "note", "Write a note for the run or the cause.", "note", MAIN | TRIAGE, hint=7, group="judge"),
    Command("tag", ("t",), "tag", "Add or remove tags.", "tag", frozenset({RUNS}) | TRIAGE, group="judge"),
    Command("allow", ("space",), "allow", "Allow findings with this rule and target, or no longer.", "allow", frozenset({AUDIT}), hint=3, group="judge"),
    Command("undo", ("u",), "undo", "Undo the last verdict, note, tag, mark or allowed finding.", "undo", MAIN | TRIAGE | {AUDIT}, hint=8, group="judge"),
    Command("set-mark", ("m*",), "set a mark", "a–z  Set a mark here.", "set_mark", MAIN | TRIAGE, group="judge"),
    Command("go-to-mark", ("'*",), "go to a mark", "a–z  Go to that mark.", "go_to_mark", frozenset({RUNS, STEPS}) | TRIAGE, group="go"),
    Command("copy-curl", ("yc",), "copy curl", "Copy a curl command that repeats this model call.", "take('curl')", RUN, group="take"),
    Command("copy-fixture", ("yf",), "copy fixture", "Copy the step as a JSON fixture.", "take('fixture')", RUN, group="take"),
    Command("copy-test", ("yt",), "copy test stub", "Copy the step as a pytest stub.", "take('test')", RUN, group="take"),
    Command("copy-fork", ("yg",), "copy fork code", "Copy code that forks the run at this step, where the format supports it.", "take('fork')", RUN, group="take"),
    Command("export", ("x",), "export", "Export the run, diff, triage or audit as Markdown, HTML or JSON (audit: also SARIF, JUnit), secrets masked.", "export", MAIN | DIFF | TRIAGE | {AUDIT}, hint=9, group="take"),
    Command("reveal", ("R",), "reveal", "Reveal the masked value under the cursor, or mask it again.", "reveal", RUN, group="look"),
    Command("editor", ("o",), "editor", "Open a cleaned copy of this tab in $EDITOR.", "editor", RUN | DIFF, group="take"),
    Command("reread", ("ctrl+r",), "re-read", "Re-read the directory or the open run.", "reread", group="go"),
    Command("palette", ("ctrl+p", ":"), "palette", "Find a command or a run by name.", "command_palette", group="go"),
    Command("help", ("?",), "help", "Show all keys of the focused pane.", "help", hint=13, group="go"),
    Command("suspend", ("ctrl+z",), "suspend", "Suspend the program.", "suspend_process", group="go"),
)  # fmt: skip
"""In the order of the help screen."""

GROUPS: Final = {
    "go": "Open and go",
    "find": "Find and filter",
    "look": "Change the view",
    "list": "Arrange the list",
    "judge": "Review failures",
    "take": "Copy and export",
    "fold": "Fold",
    "move": "Move",
}
"""Headings of the help screen."""

KEY_LABELS: Final = {
    "enter": "↵", "escape": "Esc", "tab": "Tab", "shift+tab": "S-Tab", "pagedown": "PgDn", "pageup": "PgUp",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "home": "Home", "end": "End", "space": "Space", "ctrl+p": "^p", "ctrl+r": "^r", "ctrl+o": "^o",
    "ctrl+d": "^d", "ctrl+u": "^u", "ctrl+f": "^f", "ctrl+b": "^b", "ctrl+c": "^c", "ctrl+q": "^q", "ctrl+z": "^z",
}  # fmt: skip
"""Display names of keys."""

_NAMES: Final = {"Enter": "enter", **{name: key for key, name in KEY_LABELS.items()}}
"""Keys by display name."""

_CHARACTERS: Final = {
    "slash": "/", "question_mark": "?", "exclamation_mark": "!", "comma": ",", "semicolon": ";", "colon": ":",
    "less_than_sign": "<", "greater_than_sign": ">", "left_square_bracket": "[", "right_square_bracket": "]",
    "apostrophe": "'", "full_stop": ".",
}  # fmt: skip


_STARTS_OR_REVEALS: Final = frozenset({"editor", "suspend", "reveal", "blame"})
_WRITES: Final = frozenset({"export"})


def allowed_in_browser(command: Command, *, write: bool) -> bool:
    """Whether `tracetui serve` offers a command: none that starts a program or reveals a secret.

    Without `write`, none that writes verdicts, notes, tags, marks or documents either.
    """
    return command.id not in _STARTS_OR_REVEALS and (write or (command.group != "judge" and command.id not in _WRITES))


def key_label(key: str) -> str:
    """Display name of a key."""
    return KEY_LABELS.get(key, key)


def of_pane(pane: str, commands: Sequence[Command] = COMMANDS) -> list[Command]:
    """The commands of a pane."""
    return [command for command in commands if pane in command.panes]


def pane_names(panes: frozenset[str]) -> str:
    """The panes of a command, whole screens by one word: ``main, triage``; empty for all panes."""
    if panes == EVERYWHERE:
        return ""
    names = []
    screens = {"main": MAIN, "run": RUN, "triage": TRIAGE, "diff": DIFF, "lists": LISTS, "context": CONTEXT}
    for name, screen in screens.items():
        if screen <= panes:
            names.append(name)
            panes -= screen
    return ", ".join([*names, *sorted(panes)])


def wrong_pane(key: str, command: Command) -> str:
    """Where a key works that does nothing in a pane: ``H (today) works in: run list, open run``."""
    pane_labels = {"main": "run list, open run", "run": "open run"}
    names = (pane_labels.get(name, name) for name in pane_names(command.panes).split(", "))
    return f"{key_label(key)} ({command.title}) works in: {', '.join(names)}"


def unbound_reason(key: str, commands: Sequence[Command]) -> str:
    """What would make a key work that does nothing in a pane: ``r (reveal) works in detail``."""
    command = next((command for command in commands if key in command.keys), None)
    if command is not None:
        return wrong_pane(key, command)
    offered = {command.id for command in commands}
    missing = next((command for command in COMMANDS if key in command.keys and command.id not in offered), None)
    if missing is None:  # no command has it, or the user gave its command another key
        return f"{key_label(key)} is not bound"
    if allowed_in_browser(missing, write=True):
        return f"{key_label(key)} ({missing.title}) is off: read-only; start with --allow-write"
    return f"{key_label(key)} ({missing.title}) isn't available in a browser"


def keys_of(label: str, bound: Collection[str]) -> list[tuple[str, str | None]]:
    """The key presses, as name and character, for a key as `shown`; of several the first."""
    key = label.split()[0]
    name = _NAMES.get(key, key)
    is_named = name in _NAMES.values() or (name in bound and not (len(name) == 2 and name[0] in SEQUENCES))
    return [(character, character if len(character) == 1 else None) for character in ([name] if is_named else name)]


def match_score(text: str, command: Command) -> float:
    """How well a text matches a command, 0 for not at all: its key, the start of its title or of a word of it, any part,
    the initial letters or others in order, then the words of its help.
    """
    text, title = text.strip(), command.title.lower()
    lower = text.lower()
    if not text:
        return 1.0
    if text in command.keys:
        return 100.0
    if title.startswith(lower):
        return 90.0 + len(lower) / len(title)
    words = re.split(r"[^a-z]+", title)
    if any(word.startswith(lower) for word in words) or f" {lower}" in title:
        return 80.0
    if lower in title or lower in command.id:
        return 70.0
    if "".join(word[:1] for word in words).startswith(lower):
        return 60.0
    if all(word in f"{title} {command.help.lower()}" for word in lower.split()):
        return 40.0
    at, gaps = -1, 0
    for letter in lower.replace(" ", ""):
        index = title.find(letter, at + 1)
        if index < 0:
            return 0.0
        gaps += index - at - 1
        at = index
    return 30.0 / (1 + gaps)


def key_name(key: str, character: str | None) -> str:
    """Name of a key press in the table: its character if it has one."""
    if character is not None and character.isprintable() and character != " ":
        return character
    return _CHARACTERS.get(key, key)


ANY: Final = "*"
"""Wildcard: any character at the end of a sequence."""
SEQUENCES: Final = "[]yzvm'"
"""First keys of two-key sequences."""


class Keys:
    """Matches key presses, one at a time, with bound keys and sequences."""

    def __init__(self) -> None:
        self.pending = ""
        """First key of an incomplete sequence."""

    def press(self, key: str, bound: Collection[str]) -> tuple[str, str]:
        """Returns the completed key or sequence of `bound` and the letter matched by `ANY`; empty strings if none."""
        prefix, self.pending = self.pending, ""
        sequence = prefix + key
        if key == "escape" and prefix and prefix not in bound:
            return "", ""  # cancels the sequence only
        if sequence in bound:
            self.pending = sequence if self._begins(sequence, bound) else ""
            return sequence, ""
        if len(sequence) == 2 and sequence[0] + ANY in bound:
            return sequence[0] + ANY, key
        if self._begins(sequence, bound):
            self.pending = sequence
            return "", ""
        return self.press(key, bound) if prefix else ("", "")  # the second key starts a new sequence

    def continuing(self, bound: Iterable[str]) -> list[tuple[str, str]]:
        """(Next key, completed sequence) for each possible continuation of the pending sequence."""
        prefix = self.pending
        return [(key[1:], key) for key in bound if prefix and len(key) == 2 and key[0] == prefix]

    @staticmethod
    def _begins(sequence: str, bound: Iterable[str]) -> bool:
        return sequence in {*SEQUENCES} and any(len(key) == 2 and key[0] == sequence for key in bound)
