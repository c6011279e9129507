"""The kernel of the hash exchange, compared with plain Python, for single and packed columns."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_sources import SOURCES, kernels_of

from workbench import compiled
from workbench.compiled.machinery.codes import MOST_PACKED

U64 = 2**64 - 1
GROUPS = 128
KINDS = {1: np.uint8, 2: np.int16, 4: np.float32, 8: np.int64}
GUARD = 16
"""Places in front of a target's room and behind it that must stay as they are."""


@pytest.fixture(autouse=True, scope="module", params=SOURCES)
def _kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    with kernels_of(request.param):
        yield


def target_of(key: int, hashed: bool, targets: int, groups: int = GROUPS) -> int:
    h = key & U64
    if not hashed:  # splitmix64
        h = (h + 0x9E3779B97F4A7C15) & U64
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & U64
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & U64
        h ^= h >> 31
    return h % groups * targets // groups


class Exchange:
    """Columns of random values, and for each target memory whose every place tells whether it was written."""

    def __init__(
        self, rows: int, rooms: list[int], widths: list[int], hashed: bool, seed: int, groups: int = GROUPS
    ) -> None:
        drawn = np.random.default_rng(seed)
        self.hashed = hashed
        self.groups = groups
        self.keys = drawn.integers(-(2**63), 2**63 - 1, rows)
        self.columns = [drawn.integers(0, 100, rows).astype(KINDS[width]) for width in widths]
        self.begins = drawn.integers(0, 9, len(rooms))
        self.limits = self.begins + rooms
        self.memory = [
            [np.full(GUARD + limit + GUARD, 101, column.dtype) for limit in self.limits] for column in self.columns
        ]

    def spread(self, start: int, packed: bool) -> tuple[int, list[int]]:
        ends = self.begins.copy()
        row = compiled.spread(
            self.keys,
            self.hashed,
            start,
            self.groups,
            ends,
            self.limits,
            np.array([column.ctypes.data for column in self.columns], np.int64),
            np.array([part[GUARD:].ctypes.data for parts in self.memory for part in parts], np.int64),
            np.array([column.itemsize for column in self.columns], np.int64),
            packed,
        )
        return row, ends.tolist()

    def check(self, start: int, packed: bool) -> None:
        """Rows go one by one to their targets until one of these is full, and nothing is written elsewhere."""
        rows_of: list[list[int]] = [[] for _ in self.limits]
        rooms = (self.limits - self.begins).tolist()
        row = start
        while row < len(self.keys) and all(len(rows) < room for rows, room in zip(rows_of, rooms, strict=True)):
            rows_of[target_of(int(self.keys[row]), self.hashed, len(rooms), self.groups)].append(row)
            row += 1
        ends = [int(begin) + len(rows) for begin, rows in zip(self.begins, rows_of, strict=True)]
        assert self.spread(start, packed) == (row, ends)
        for column, parts in zip(self.columns, self.memory, strict=True):
            for part, begin, end, limit, rows in zip(parts, self.begins, ends, self.limits, rows_of, strict=True):
                assert part[GUARD + begin : GUARD + end].tolist() == column[rows].tolist()
                assert set(part[: GUARD + begin].tolist()) == {101}
                assert set(part[GUARD + limit :].tolist()) == {101}


@given(
    st.integers(0, 1200),
    st.lists(st.one_of(st.integers(0, 40), st.integers(0, 1300)), min_size=1, max_size=MOST_PACKED + 1),
    st.lists(st.sampled_from(sorted(KINDS)), max_size=4),
    st.booleans(),
    st.integers(0, 20),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_rows_go_to_the_targets_of_their_keys_until_one_is_full(rows, rooms, widths, hashed, start, packed, seed):
    Exchange(rows, rooms, widths, hashed, seed).check(min(start, rows), packed)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("targets", range(1, MOST_PACKED + 2))
def test_columns_of_every_width_are_spread_over_blocks_and_a_rest(targets, hashed, packed):
    Exchange(2_503, [2_503] * targets, [8, 4, 2, 1, 8], hashed, seed=targets).check(0, packed)
    Exchange(4_999, [4_999] * targets, [1, 2, 4, 8], hashed, seed=targets).check(3, packed)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize(("groups", "targets"), [(5, 3), (300, 2), (300, 300), (1_000, 129), (32_767, 257)])
def test_any_number_of_key_groups_is_spread_over_any_number_of_targets(groups, targets, hashed):
    Exchange(2_503, [2_503] * targets, [8, 1], hashed, seed=groups, groups=groups).check(0, packed=True)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("room", [*range(18), 511, 512, 513])
def test_nothing_is_written_behind_a_room_that_one_target_fills(room, packed):
    exchange = Exchange(600, [room, 600], [8, 4, 2, 1], hashed=True, seed=room)
    exchange.keys[:] = 0
    exchange.check(0, packed)


PROGRAM = """
import numpy as np
from workbench.compiled import packs_at_once, spread
told = [packs_at_once()]
for kind in (np.uint8, np.int16, np.float32, np.int64):
    column, out, ends = np.arange(40).astype(kind), np.zeros((2, 40), kind), np.zeros(2, np.int64)
    sources, destinations = np.array([column.ctypes.data]), np.array([part.ctypes.data for part in out])
    spread(np.arange(40), 0, 0, 128, ends, np.full(2, 40), sources, destinations, np.array([column.itemsize]), 1)
    told.append([part[:end].astype(int).tolist() for part, end in zip(out, ends)])
print(told)
"""


@pytest.mark.slow
@pytest.mark.parametrize("_kernels", ["numba"], indirect=True)
def test_a_processor_that_cannot_pack_at_once_writes_the_same(tmp_path: Path):
    plain = {
        "WORKBENCH_KERNELS": "numba",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | plain, capture_output=True, text=True, check=True
    )
    to_each = [[row for row in range(40) if target_of(row, False, 2) == target] for target in (0, 1)]
    assert ast.literal_eval(ran.stdout) == [False, *[to_each] * 4]
