"""Values as a page can read them."""

import math
import re

import pytest

from workbench.wire.values import WHOLE_MAX, plain


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 2**53, -(2**53), 2**63, 1e17], ids=str)
def test_a_number_that_a_page_cannot_read_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{number!r} is a number that a page cannot read")):
        plain({"n": [number]})


def test_the_largest_numbers_are_carried() -> None:
    assert plain((WHOLE_MAX, -WHOLE_MAX, 0.5, True)) == [2**53 - 1, 1 - 2**53, 0.5, True]
