"""What is asked of many runs at once: a search of all their texts, statistics, what failed runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui.errors import UsageError
from tracetui.model import Problem, RunRef, Status
from tracetui.text import grouped
from tracetui.views import masking

if TYPE_CHECKING:
    from tracetui.live.mail import Mail
    from tracetui.live.surveying.surveyed import Job, Survey
    from tracetui.store.contrast import Contrast
    from tracetui.ui.screens.main import MainScreen
    from tracetui.views.hits import HitRows

GREP_ASK: Final = "search in all runs that are shown: text, or /regular expression/; small letters match any case"
SLASHES: Final = 2


class Wanted(NamedTuple):
    """What somebody typed to search for."""

    pattern: str
    regex: bool
    ignore_case: bool

    @classmethod
    def of(cls, text: str) -> Wanted:
        """``/…/`` is a regular expression; where no letter is a capital, case does not matter."""
        regex = len(text) > SLASHES and text[0] == text[-1] == "/"
        return cls(text[1:-1] if regex else text, regex, text == text.lower())


class Search:
    """A search of all runs: what it found so far."""

    def __init__(self, words: str, job: Job, rows: HitRows, runs: int) -> None:
        self.words, self.job, self.rows, self.runs = words, job, rows, runs
        self.problems: list[Problem] = []
        self.survey: Survey | None = None
        self.cursor: int | None = None

    def take(self, survey: Survey) -> None:
        """Take in what was found since."""
        self.survey = survey
        self.problems += [one for one in survey.new if isinstance(one, Problem)]
        self.rows.extend(one for one in survey.new if not isinstance(one, Problem))


class Surveying:
    """Belongs to the main screen, as its actions do; remembers what was asked last."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self.search: Search | None = None
        self.latest: Survey | None = None
        self.contrasts: dict[Sequence[RunRef], Contrast] = {}
        """What runs share that others lack, as far as it is known, by the runs."""
        self._contrast: tuple[Sequence[RunRef], Job] | None = None
        self._job: Job | None = None
        """What is being done, or was done last."""
        self._told_apart: set[Sequence[RunRef]] = set()
        """The runs of which all is known that they share."""

    def take(self, mail: Mail) -> None:
        """Take in what was found out."""
        survey = mail.survey
        if survey is None:
            return
        self.latest = survey
        if self.search is not None and survey.job is self.search.job:
            self.search.take(survey)
        if self._contrast is not None and survey.job is self._contrast[1]:
            self.contrasts[self._contrast[0]] = survey.result
            if survey.finished:
                self._told_apart.add(self._contrast[0])

    def is_told_apart(self, refs: Sequence[RunRef]) -> bool:
        """Whether all is known that runs share; else what is known of it may change."""
        return tuple(refs) in self._told_apart

    def is_asked(self, refs: Sequence[RunRef]) -> bool:
        """Whether that is known, or being found out."""
        return self.is_told_apart(refs) or (self._job is not None and self._contrast == (tuple(refs), self._job))

    def comparing(self, refs: Sequence[RunRef]) -> str:
        """How far the comparison of these runs is, in words; nothing once it has ended."""
        survey = self.latest
        if self.is_told_apart(refs):
            return ""
        if survey is None or self._contrast is None or self._contrast != (tuple(refs), survey.job):
            return "comparing …"
        if survey.lost:
            return f"compared no further: {survey.lost}"
        return f"comparing, {grouped(survey.done)} of {grouped(survey.total)} runs read"

    def contrast(self, refs: Sequence[RunRef]) -> Job:
        """Begin to find out what runs share that others, which may be compared with them, lack."""
        from tracetui.live.surveying.jobs import contrast_job
        from tracetui.store.contrast import comparable

        runs = self._screen.store.runs
        job = contrast_job(refs, comparable(runs.values(), refs), original=self._screen.store.relations.original)
        self._contrast = tuple(refs), job
        self.ask(job)
        return job

    def ask(self, job: Job) -> None:
        """Do a job in place of the one before."""
        self.latest, self._job = None, job
        self._screen.app.engine.survey(job)

    def stop(self) -> None:
        """Nobody waits for the job any more."""
        self.latest = self._job = None
        self._screen.app.engine.stop_survey()

    # ---- commands

    def do_grep(self, argument: str) -> None:
        last = f"; nothing: {self.search.words} again" if self.search is not None else ""
        self._screen.ask_for(GREP_ASK + last, "", self.search_for)

    def search_for(self, text: str) -> None:
        """Search, and show what is found; what was searched for last is not searched anew."""
        if text and (self.search is None or text != self.search.words):
            self._begin(text)
        if self.search is not None:
            self.show_search()

    def _begin(self, text: str) -> None:
        from tracetui.live.surveying.grep import Options
        from tracetui.live.surveying.jobs import grep_job
        from tracetui.live.surveying.needle import Needle
        from tracetui.views.hits import HitRows

        screen, wanted = self._screen, Wanted.of(text)
        try:
            needle = Needle(wanted.pattern, regex=wanted.regex, ignore_case=wanted.ignore_case)
        except UsageError as error:
            screen.say(str(error), "status.warn")
            self.search = None
            return
        refs = screen.runs.refs()
        job = grep_job(refs, needle, Options(redactor=masking.current()))
        self.search = Search(text, job, HitRows(screen.store.runs.get, glyphs=screen.app.look.glyphs), len(refs))
        self.ask(job)

    def show_search(self) -> None:
        """Open the list of what was found."""
        from tracetui.ui.screens.hits import HitsScreen

        if self.search is not None:
            self._screen.app.push_screen(HitsScreen(self.search, self._screen.app.commands))

    def do_statistics(self, argument: str) -> None:
        screen = self._screen
        if screen.level and screen.ref is not None:
            run = screen.store.runs.get(screen.ref)
            self.count([screen.ref], f"run {run.id}" if run is not None else "this run")
        else:
            self.count(self.in_scope(), "all runs that are shown" if screen.runs.arrangement.words else "all runs")

    def do_ledger(self, argument: str) -> None:
        from tracetui.views.ledger import ledger_words
        from tracetui.views.silence import FRAME

        screen, refs = self._screen, self.in_scope()
        uncounted = sum(not screen.store.runs[ref].deep for ref in refs)
        more = f" · {grouped(uncounted)} of {grouped(len(refs))} not counted yet" if uncounted else ""
        room = screen.size.width - len(more) - FRAME
        screen.say(ledger_words(screen.store.ledger(refs), glyphs=screen.app.look.glyphs, width=room) + more)

    def do_contrast(self, argument: str) -> None:
        screen = self._screen
        marked = [ref for ref in screen.comparing.marked if ref in screen.store.runs]
        failed = [ref for ref in self.in_scope() if screen.store.runs[ref].status is Status.ERROR]
        if not marked and not failed:
            screen.say("no run failed, and none is marked: Space marks runs", "status.warn")
        elif marked:
            self.tell_apart(marked, f"{len(marked)} marked run{'s' if len(marked) != 1 else ''}")
        else:
            self.tell_apart(failed, f"the {len(failed)} failed runs")

    def tell_apart(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the list of what these runs share that others lack; `of` says in words which they are."""
        from tracetui.ui.screens.contrast import ContrastScreen

        self._screen.app.push_screen(ContrastScreen(tuple(refs), of, self._screen.app.commands))
        if not self.is_told_apart(refs):
            self.contrast(refs)

    def count(self, refs: Sequence[RunRef], of: str) -> None:
        """Open the statistics of these runs; `of` says in words which they are."""
        from tracetui.live.surveying.jobs import statistics_job
        from tracetui.ui.screens.statistics import StatisticsScreen

        job = statistics_job(refs)
        self._screen.app.push_screen(StatisticsScreen(job, of, self._screen.app.commands))
        self.ask(job)

    def in_scope(self) -> Sequence[RunRef]:
        """The runs that a question about many runs is about: those that the list shows."""
        return self._screen.runs.refs()
