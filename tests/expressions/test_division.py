"""Floating-point division by a constant gives the same result as integer division, for every bigint."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_sources import SOURCES, kernels_of

from workbench import compiled
from workbench.compiled.machinery.codes import DIVISOR_MAX
from workbench.expressions import compile_expression

BIGINTS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-(2**51) + 1, 2**51 - 1)
DIVISORS = st.one_of(st.integers(1, 1_000), st.integers(1, DIVISOR_MAX))
SCHEMA = pa.schema({"n": pa.int64()})


def parts(value: int, divisor: int) -> tuple[int, int]:
    """Quotient towards zero and remainder, in whole numbers of any size."""
    quotient = abs(value) // abs(divisor) * (1 if (value < 0) == (divisor < 0) else -1)
    return quotient, value - quotient * divisor


@pytest.fixture(autouse=True, scope="module", params=SOURCES)
def _kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    with kernels_of(request.param):
        yield


@settings(max_examples=300)
@given(divisor=DIVISORS, values=st.lists(SMALL, max_size=40), factors=st.lists(st.integers(0, 2**51), max_size=10))
@example(divisor=DIVISOR_MAX, values=[2**51 - 1, 1 - 2**51], factors=[])
@example(divisor=3, values=[], factors=[2**51 // 3, 1, 0])
def test_the_kernel_divides_towards_zero(divisor: int, values: list[int], factors: list[int]) -> None:
    near = [factor % (2**51 // divisor) * divisor + by for factor in factors for by in (-1, 0, 1)]
    numbers = np.array([value for value in values + near if abs(value) < 2**51], np.int64)
    out = np.empty_like(numbers)
    expected = [parts(value, divisor) for value in numbers.tolist()]
    assert compiled.divide_by(numbers, divisor, 0, out)
    assert out.tolist() == [quotient for quotient, _ in expected]
    assert compiled.divide_by(numbers, divisor, 1, out)
    assert out.tolist() == [remainder for _, remainder in expected]


@pytest.mark.parametrize("large", [2**51, -(2**51), 2**63 - 1, -(2**63)])
def test_the_kernel_refuses_what_it_may_get_wrong(large: int) -> None:
    assert not compiled.divide_by(np.array([1, large, 2]), 3, 0, np.empty(3, np.int64))


@settings(max_examples=200)
@given(
    divisor=st.one_of(DIVISORS, BIGINTS.filter(bool), st.just(2**51 + 1)),
    values=st.lists(st.one_of(st.none(), SMALL, BIGINTS), min_size=1, max_size=20),
    offset=st.integers(0, 3),
)
def test_expressions_divide_every_bigint(divisor: int, values: list[int | None], offset: int) -> None:
    batch = pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA).slice(offset)
    kept = values[offset:]
    literal = max(divisor, 1 - 2**63)  # the digits of the smallest one are no literal
    quotients = compile_expression(f"n DIV {literal}", SCHEMA)(batch)
    remainders = compile_expression(f"n % {literal}", SCHEMA)(batch)
    for column in (quotients, remainders):
        column.validate(full=True)
        assert column.type == pa.int64()
    expected = [None if value is None else parts(value, literal) for value in kept]
    overflow = 2**63  # the smallest number over -1 has no quotient, but a remainder
    assert quotients.to_pylist() == [None if both is None or both[0] == overflow else both[0] for both in expected]
    assert remainders.to_pylist() == [None if both is None else both[1] for both in expected]
