"""Two live jobs side by side on a served page: one page, common axes, and separate controls."""

from __future__ import annotations

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium, opened

import workbench as wb

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]


def test_two_settings_side_by_side_differ_in_words_and_are_tuned_one_by_one():
    numbers = wb.Stream.from_table(pa.table({"n": range(600_000)}), rate=500.0).key_by("n").aggregate(count=wb.count())
    both = wb.compare(numbers.sink_to(wb.DiscardSink()), a={"buffer_timeout": "100ms"}, b={"buffer_timeout": "0ms"})
    pages = wb.serve()
    try:
        with chromium() as browser:
            page = opened(browser, f"{pages.url}&compare=compared-a,compared-b")
            page.get_by_text("compared-b: p50").first.wait_for()
            sliders = page.get_by_role("slider", name="Buffer timeout", exact=True)
            sliders.nth(1).wait_for()
            assert sliders.count() == 2
            sliders.nth(1).focus()
            sliders.nth(1).press("End")
            page.get_by_text("buffer_timeout disabled").wait_for()
            assert both["a"].status()["buffer_timeout"] == "100ms"
            assert page.problems == []
    finally:
        pages.stop()
        both.cancel()
