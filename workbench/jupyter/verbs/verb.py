"""One verb of ``%stream``, and the job that its words mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import workbench as wb
from workbench.errors import JobError


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb.

    Attributes:
        run: called with the job and the words after its name; its result is displayed.
        about: one line of help.
        takes: the words after the job's name, as help shows them.
        least, most: the minimum and maximum number of these words.
        flag: a word that may appear anywhere among them; the verb receives it last. Empty: there is none.
        last: optional final words, after the required ones: the word before them is then not a job's name.
    """

    run: Callable[[Any, Sequence[str]], Any]
    about: str
    takes: str = ""
    least: int = 0
    most: int = 0
    flag: str = ""
    last: tuple[str, ...] = ()

    def split(self, verb: str, words: Sequence[str], jobs: Mapping[str, Any]) -> tuple[Any, Sequence[str]]:
        """The intended job and the verb's own words; the job's name may be left out.

        Raises:
            JobError: too many or too few words, no such job, or it is unclear which job is meant.
        """
        flags = [word for word in words if word and word == self.flag]
        words = [word for word in words if word not in flags]
        if len(words) > self.most + 1:
            raise JobError(f"%stream {verb} takes {self.usage(verb)}, not {len(words)} words")
        least = self.least + (len(words) > 0 and words[-1].lower() in self.last)
        named = len(words) > self.most or (len(words) > least and words[0] in jobs)
        name, rest = (words[0], words[1:]) if named else (None, words)
        if len(rest) < self.least:
            raise JobError(f"%stream {verb} needs {self.takes}: write '%stream {self.usage(verb)}'")
        return (wb.job(name) if name is not None else default_job(verb, jobs)), [*rest, *flags[:1]]

    def usage(self, verb: str) -> str:
        """The usage, for example ``seek [NAME] TIME``."""
        return " ".join(filter(None, [verb, "[NAME]", self.takes, f"[{self.flag}]" if self.flag else ""]))


def default_job(verb: str, jobs: Mapping[str, Any]) -> Any:
    """The job that is used when none is named: the only one, or else the newest that still runs.

    Raises:
        JobError: there is no job, or several have ended and none is running.
    """
    if not jobs:
        raise JobError("there is no job yet: start one with '%%stream NAME' above a cell that ends in a stream")
    running = [job for job in jobs.values() if not job.over]
    if running:
        return running[-1]  # jobs() is in the order of their start
    if len(jobs) == 1:
        return next(iter(jobs.values()))
    raise JobError(f"no job is running: name one, '%stream {verb} NAME', from {', '.join(jobs)}")
