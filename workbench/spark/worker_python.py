"""The Python that Spark's workers run: checked before a query starts, because Spark tells of it in a trace of Java."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from workbench.errors import SettingError

_PACKAGES = ("pyarrow", "pandas", "workbench")
"""That workers import."""
_PROBE = (
    "import sys; from importlib.util import find_spec; "
    "print('%d.%d' % sys.version_info[:2], *[name for name in sys.argv[1:] if find_spec(name) is None])"
)
_PATIENCE_S = 60


def check_worker_python(program: str) -> None:
    """Reject a Python that cannot run the workbench's part of a query.

    Args:
        program: with which a session starts its workers, and the readers of sources on this machine.

    Raises:
        SettingError: it does not run here, has another version than this one, or lacks a package.

    Example:
        >>> check_worker_python(sys.executable)
    """
    found = shutil.which(program)
    if found is not None and _is_this(Path(found)):
        return
    here = "{}.{}".format(*sys.version_info)
    if found is None:
        fact = "does not exist on this machine"
    else:
        version, missing = _asked(found)
        if not version:
            fact = "does not run on this machine"
        elif version != here:
            fact = f"is Python {version}, and this process is Python {here}"
        elif missing:
            fact = f"has no package {' and no package '.join(missing)}"
        else:
            return
    named = program if found in (None, program) else f"{program} ({found})"
    raise SettingError(
        f"the workers of the Spark session run {named}, which {fact}: stop the session, set "
        f"PYSPARK_PYTHON={sys.executable} in the environment, and create the session again"
    )


def _is_this(found: Path) -> bool:
    """Whether it is the Python of this environment; environments of one Python differ in their folders only."""
    this = Path(sys.executable)
    return found.parent == this.parent and found.resolve() == this.resolve()


def _asked(program: str) -> tuple[str, list[str]]:
    """Its version, empty if it does not run, and the packages that it lacks."""
    try:
        answer = subprocess.run(
            [program, "-c", _PROBE, *_PACKAGES], capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "", []
    version, *missing = answer.stdout.split() or [""]
    return version, missing
