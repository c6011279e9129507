"""Spark's errors in one sentence: what failed, and in whose function."""

from __future__ import annotations

import re
from typing import Any

_OURS = re.compile(r"^workbench\.errors\.\w+: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception)): (.+)$", re.MULTILINE)
_TRACED = re.compile(r"Traceback \(most recent call last\):\n(?: .*\n)+(\w+(?:\.\w+)*)(?:: (.+))?$", re.MULTILINE)
"""An exception may have any name."""
_JAVA = re.compile(r"^Caused by: (?:\w+\.)*(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)
_MEMORY = re.compile(r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|exited with code 52\b")
"""An executor ends with code 52 when it has run out of memory."""
_GONE = re.compile(
    r"connect to the Java server|Answer from Java side is empty|SparkContext\.dagScheduler\(\)\" is null"
)
"""A JVM that runs out of memory stops its Spark context first."""
_CRASHED = "Python worker exited unexpectedly"
_LOST = re.compile(r"(ExecutorLostFailure[^\n]*|Lost executor[^\n]*)")


SHORT_OF_MEMORY = (
    "a JVM of Spark ran out of memory: give it more (WORKBENCH_SPARK_MEMORY=4g in the environment, more megabytes in "
    "local-cluster[...], or spark.driver.memory and spark.executor.memory of your own session), or use smaller records"
)
_ENDED_PYTHON = (
    "a Python process of Spark ended in the middle of a batch: the system may have killed it because memory ran out "
    "(let functions hold less at a time), or native code crashed"
)
_IMPATIENT = (
    "a Python process did not start within the ten seconds that Spark waits, as happens on a busy machine: start the "
    "query again"
)
_AGAIN = "run the pipeline again with resume=True, without the former session"
_OUT_OF_MEMORY = 52
_DYING_S = 2.0


def is_impatience(text: str) -> bool:
    """Whether a Python process took longer to start than the ten seconds that Spark waits, which cannot be changed.

    Example:
        >>> is_impatience("org.apache.spark.SparkException: Python worker failed to connect back.")
        True
    """
    return "Python worker failed to connect back" in text


def sentence_of(text: str) -> str:
    """The cause, taken from the text of an error of Spark.

    Example:
        >>> sentence_of("[STREAM_FAILED] ...\\nworkbench.errors.RecordError: map(f) failed: 0\\n at org.apache")
        'map(f) failed: 0'
    """
    if ours := _OURS.findall(text):
        return str(ours[-1])
    if _MEMORY.search(text):
        return SHORT_OF_MEMORY
    if is_impatience(text):
        return _IMPATIENT
    if _CRASHED in text:
        return _ENDED_PYTHON
    if lost := _LOST.search(text):
        return f"an executor was lost: {lost[1]}"
    python = [each for each in _PYTHON.findall(text) if not each[0].startswith("py4j.")]
    if told := python or _TRACED.findall(text) or _JAVA.findall(text):
        kind, said = told[-1]
        return f"{kind}: {said}" if said else str(kind)
    return text.partition("\n")[0]


def is_gone(error: Exception) -> bool:
    """Whether an error says that Spark's JVM has ended, or is about to."""
    return (
        isinstance(error, ConnectionError)
        or type(error).__name__ == "Py4JNetworkError"
        or _GONE.search(str(error)) is not None
    )


def exit_code(session: Any) -> int | None:
    """The exit code of a session's JVM, if this process started it and it has ended or is about to; else None."""
    try:
        return int(session.sparkContext._gateway.proc.wait(_DYING_S))
    except Exception:  # noqa: BLE001  it has not ended, or is not this process's
        return None


def failure_of(error: Exception | None, session: Any) -> str:
    """The cause of a query's failure, possibly the end of its session's JVM; empty if there is no error."""
    if error is None:
        return ""
    return sentence_of_question(error, exit_code(session) if is_gone(error) else None)


def sentence_of_question(error: Exception, code: int | None = None) -> str:
    """Why a request to Spark's JVM was not answered.

    Args:
        error: raised by the request.
        code: the exit code of the JVM; None: not known, or it is still running.

    Example:
        >>> sentence_of_question(ConnectionRefusedError(111, "Connection refused"))
        'the JVM of Spark has ended: run the pipeline again with resume=True, without the former session'
    """
    if is_gone(error):
        if code == _OUT_OF_MEMORY:
            return f"{SHORT_OF_MEMORY}; then {_AGAIN}"
        return f"the JVM of Spark has ended: {_AGAIN}"
    return sentence_of(str(error)) or type(error).__name__
