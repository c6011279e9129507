"""Where Spark runs: in this process's JVM, in several JVMs of this machine, or on a cluster of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.errors import SettingError

OFFERED = ("local[*]", "local[2]", "local-cluster[2,1,1024]")
"""Masters of this machine, as controls and completions offer them; others can be written."""
_THREADS = re.compile(r"local(\[(\*|[1-9]\d{0,3})(,\s*[1-9]\d?)?\])?")
_JVMS = re.compile(r"local-cluster\[\s*([1-9]\d?)\s*,\s*([1-9]\d?)\s*,\s*([1-9]\d{1,6})\s*\]")
_STANDALONE = re.compile(r"spark://[\w.\-\[\]:]+:\d{1,5}(,[\w.\-\[\]:]+:\d{1,5})*")
_HERE = re.compile(r"spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
_LEAST_MB = 512
"""Spark refuses executors of less than about 450 MB."""


@dataclass(frozen=True, slots=True)
class Master:
    """A master URL that a session can be made for.

    Source: Spark's master URLs.

    Attributes:
        url: as Spark writes it.
        executor_mb: memory of each executor, where the URL says it; None: Spark's default.
        starts_executors: executors are JVMs that this process starts.
        here: everything runs on this machine.

    Example:
        >>> Master.of("local-cluster[2,1,1024]").executor_mb
        1024
        >>> Master.of("spark://127.0.0.1:7077").here
        True
    """

    url: str
    executor_mb: int | None
    starts_executors: bool
    here: bool

    @staticmethod
    def of(text: str) -> Master:
        """Parse a master URL.

        Raises:
            SettingError: none of the kinds that there are, or executors with too little memory.
        """
        if _THREADS.fullmatch(text):
            return Master(text, None, False, True)
        if jvms := _JVMS.fullmatch(text):
            memory = int(jvms[3])
            if memory < _LEAST_MB:
                raise SettingError(
                    f"spark={text!r} gives each executor {memory} MB, and Spark needs {_LEAST_MB}: write "
                    f"local-cluster[{jvms[1]},{jvms[2]},1024]"
                )
            return Master(text, memory, True, True)
        if _STANDALONE.fullmatch(text):
            return Master(text, None, False, bool(_HERE.fullmatch(text)))
        raise SettingError(
            f"spark={text!r} is not a supported master: write local[*], local-cluster[2,1,1024] "
            "(2 executors of 1 core and 1024 MB on this machine) or spark://HOST:7077, or pass a SparkSession"
        )
