"""A file system that applies the permissions of an ordinary user to root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION_3 = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def unprivileged() -> Iterator[None]:
    """Let the modes of files and folders hold for this thread, and the threads that it starts, even for root.

    The test is skipped if root cannot give its privileges up.
    """
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("only Linux lets a thread of root give privileges up")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, of capabilities 0 to 31 and of the others
    if libc.capget(header, sets) != 0:
        pytest.skip("the capabilities of this thread cannot be read")
    effective = sets[0]
    sets[0] = effective & ~_OVERRIDES
    if libc.capset(header, sets) != 0:
        pytest.skip("the capabilities of this thread cannot be changed")
    try:
        yield
    finally:
        sets[0] = effective
        assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
