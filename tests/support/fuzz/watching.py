"""Sees whatever an input touches outside of its folder: by Python's audit events, and by looking at the files around
it, since not all libraries open theirs through Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

_PATHS = {
    "os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.link": 2, "os.symlink": 2, "os.truncate": 1,
    "os.chmod": 1, "os.chown": 1, "os.utime": 1, "os.setxattr": 1, "os.removexattr": 1, "os.mkfifo": 1, "os.mknod": 1,
    "shutil.rmtree": 1, "shutil.move": 2, "shutil.chown": 1, "shutil.make_archive": 1, "shutil.unpack_archive": 2,
    "sqlite3.connect": 1, "tempfile.mkstemp": 1, "tempfile.mkdtemp": 1,
}  # fmt: skip
"""Events that change files, with how many paths they begin with."""
_NEVER = (
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.kill"),
    *("socket.connect", "socket.bind", "pickle.find_class", "ctypes.dlopen", "webbrowser.open"),
)
"""Events that nothing which is read may cause."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Listing = dict[str, tuple[object, ...]]


class Watch:
    """Watches what happens outside of a folder.

    Args:
        inside: what may be changed.
        around: looked at before and after each input, without `inside`; nothing in it may change.
        sealed: a part of it of which nothing may be read either.
    """

    def __init__(self, inside: Path, around: Path, sealed: Path) -> None:
        self._inside = os.path.realpath(inside)
        self._around = around
        self._sealed = f"{sealed}/"
        self._seen: list[str] | None = None
        sys.addaudithook(self._hear)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Gives a list that holds, after the block, what was touched."""
        before = self._listing()
        seen: list[str] = []
        self._seen = seen
        try:
            yield seen
        finally:
            self._seen = None
            after = self._listing()
            for path in sorted(before.keys() | after.keys()):
                if before.get(path) != after.get(path):
                    known = "was made" if path not in before else "is gone" if path not in after else "was touched"
                    seen.append(f"{path} {known}")

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._seen is None:
            return
        if event == "pickle.find_class" and _is_numba_at_work():
            return
        if event in _NEVER:
            self._seen.append(f"{event}{arguments!r}"[:200])
        elif event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and isinstance(flags, int) and flags & _WRITING:
                self._check(event, path)
        elif event in _PATHS:
            for path in arguments[: _PATHS[event]]:
                if isinstance(path, str | bytes | os.PathLike):
                    self._check(event, path)

    def _check(self, event: str, path: Any) -> None:
        seen, self._seen = self._seen, None  # looking at paths causes events of its own
        try:
            text = os.fsdecode(path)
            real = os.path.realpath(Path(text).parent)
            if event == "open":
                real = os.path.realpath(text)
            if "__pycache__" in text or "/workbench-state-" in text:
                return  # what was compiled is kept for the next process, and state on disk is in a temporary folder
            if real != self._inside and not real.startswith((f"{self._inside}/", "/dev/null")) and seen is not None:
                seen.append(f"{event} {text!r}"[:200])
        except ValueError:
            pass  # such a path names nothing
        finally:
            self._seen = seen

    def _listing(self) -> Listing:
        """Every file around, with what changes when it is written, replaced or read."""
        found: Listing = {}
        folders = [str(self._around)]
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.path == self._inside:
                    continue
                state = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    found[entry.path] = (state.st_ino, state.st_mode)
                else:
                    read = state.st_atime_ns if entry.path.startswith(self._sealed) else 0
                    found[entry.path] = (state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns, read)
        return found


def _is_numba_at_work() -> bool:
    """Whether numba loads a kernel that it has compiled before; what it reads is its own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("numba."):
            return True
        frame = frame.f_back
    return False


def untouched(folder: Path) -> None:
    """Let the files of a folder seem not to have been read since they were written, so that the next reading shows."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            written = path.stat().st_mtime_ns
            os.utime(path, ns=(written - 10**9, written))
