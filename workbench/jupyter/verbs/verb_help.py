"""What ``%stream help`` and ``%stream?`` show: all verbs, or one of them."""

from __future__ import annotations

from collections.abc import Iterable

_ABOUT_AT = 38
_EXAMPLES = {
    "set": ("set buffer_timeout=5ms checkpoint_interval=1s", "set delays speed=max", "set parallelism=4"),
    "state": ("state aggregate JFK",),
    "seek": ("seek 2013-07-01T06:00",),
    "savepoint": ("savepoint delays before-fix",),
    "run-on": ("run-on delays spark", "run-on delays kernel"),
    "watch": ("watch query", "watch spark"),
    "fail": ("fail delays aggregate[1]",),
}


def overview(verbs: Iterable[tuple[str, str]]) -> str:
    """All verbs, each with its usage and one line of help."""
    return "\n".join(
        [
            "Control the jobs of this kernel. You can omit NAME when it is clear which job you mean.",
            "",
            *(_entry(usage, about) for usage, about in verbs),
            "",
            "Examples:",
            "",
            *(f"  %stream {example}" for examples in _EXAMPLES.values() for example in examples),
            "",
            "Each verb has a Python equivalent: wb.job('delays').pause(), .tune(speed='max'), "
            ".savepoint('before-fix').",
            "%%stream? shows how to start a job.",
        ]
    )


def one_verb(verb: str, usage: str, about: str) -> str:
    """One verb, with its examples.

    Example:
        >>> print(one_verb("stop", "stop [NAME]", "end the job"))
        %stream stop [NAME]
          end the job
    """
    return "\n".join([f"%stream {usage}", f"  {about}", *(f"  %stream {text}" for text in _EXAMPLES.get(verb, ()))])


def _entry(usage: str, about: str) -> str:
    """After a long usage, the help of a verb starts on a new line."""
    line = f"  %stream {usage}"
    return f"{line:<{_ABOUT_AT}}{about}" if len(line) < _ABOUT_AT else f"{line}\n{'':<{_ABOUT_AT}}{about}"
