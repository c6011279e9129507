"""Stable hashes of key values: the same number in every process, on every platform, in every version.

They decide which key group a key belongs to, and checkpoints rely on that: a change here breaks every checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from workbench.compiled.machinery.compiled import BYTES_IN, HASHES, HASHES_IN, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FNV_OFFSET = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(nogil=True)  # type: ignore[untyped-decorator]
def mixed(h: np.uint64) -> np.uint64:
    """Mix the bits so that each depends on all bits of `h`: the finalizer of SplitMix64."""
    h = (h ^ (h >> _S30)) * _M1
    h = (h ^ (h >> _S27)) * _M2
    return h ^ (h >> _S31)


@compiled(INTS_IN, HASHES)
def hash_ints(values: Int64s, out: Hashes) -> None:
    """The finalizer of SplitMix64: every input bit affects every output bit."""
    for i in range(len(values)):
        out[i] = mixed(np.uint64(values[i]) + GAMMA)


@compiled(INTS_IN, BYTES_IN, HASHES)
def hash_bytes(offsets: Int64s, data: Bytes, out: Hashes) -> None:
    """FNV-1a over the bytes ``data[offsets[i]:offsets[i + 1]]``, then the finalizer of SplitMix64."""
    for i in range(len(out)):
        h = _FNV_OFFSET
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * _FNV_PRIME
        out[i] = mixed(h)


@compiled(HASHES_IN, HASHES)
def mix_hashes(hashes: Hashes, into: Hashes) -> None:
    """Combine the hashes of a further key column with those of the columns before it; the order of columns matters."""
    for i in range(len(hashes)):
        into[i] = mixed((into[i] * GAMMA) ^ hashes[i])
