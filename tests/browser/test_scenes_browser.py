"""Nine causes on the dashboard in a real browser: within ten seconds it says in words what changed, and why.

What it says is compared with what the runtime counts; ``-s`` shows after how many seconds both agree. With
``WORKBENCH_SHOTS`` set to a folder, each scene leaves its pictures there: before, and ten seconds after the cause,
light and dark.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest
from browsing import CHROMIUM, READY, chromium
from scenes import SCENES

import workbench as wb
from workbench.telemetry.effects.change_log import FOLLOWED_US
from workbench.telemetry.latency import RECENT_US

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

SHOTS = os.environ.get("WORKBENCH_SHOTS")
WITHIN_MS = 10_000
MARKERS_REL = 0.2
"""How far the median of the markers of a few flushes lies from that of all records, where the processor is shared."""
OPENED_S = 2.0
"""How long the page is open before something happens."""
EVERY = """const every = node => [...(node.shadowRoot ?? node).querySelectorAll("*")].flatMap(one =>
    [one, ...(one.shadowRoot ? every(one) : [])])"""
NEWS = f"""() => {{ {EVERY}
    const isWithin = one => {{
        const [own, place] = [one, one.parentNode].map(each => each.getBoundingClientRect())
        return own.bottom <= place.bottom + 1 && own.right <= place.right + 1
            && one.scrollHeight <= one.clientHeight + 1
    }}
    return every(document.body).filter(one => one.matches("p.news, p.pressure"))
        .filter(one => one.checkVisibility() && isWithin(one)).map(one => one.textContent) }}"""
"""The sentences of the head of which everything can be read."""


@pytest.fixture(scope="module")
def pages():
    pages = wb.serve()
    yield pages
    pages.stop()


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def picture(page, name, scheme="light"):
    if SHOTS is not None:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(1_000)
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS, f"{name}-{scheme}.png"))


def number(text):
    return float(text.replace(",", ""))


def bound_s(text):
    """Seconds of such a text as ``30 min 10 s``."""
    units = {"h": 3_600, "min": 60, "s": 1}
    return sum(float(size) * units[unit] for size, unit in re.findall(r"(\d+) (h|min|s)\b", text))


def check_buffer_timeout(scene, told):
    [(before, after)] = re.findall(r"buffer_timeout 1s → 5ms: latency p50 ([\d,.]+) → ([\d,.]+) ms", told)
    [change], now_us = scene.job.recorder.frames()[-1].changes, time.time_ns() // 1_000
    exact_ms = scene.latencies.usual_p50_ms(change.time_us - FOLLOWED_US, change.time_us)
    assert number(before) == pytest.approx(exact_ms, rel=MARKERS_REL)
    assert exact_ms == pytest.approx(500, rel=0.2)  # half of the timeout, and what a busy machine adds
    exact_ms = scene.latencies.p50_ms(now_us - RECENT_US, now_us)
    assert number(after) == pytest.approx(exact_ms, rel=MARKERS_REL, abs=2)


def check_checkpoint_interval(scene, told):
    [gap] = re.findall(r"checkpoint_interval 5s → 200ms: a checkpoint is taken every ([\d,.]+) ms and costs", told)
    frames = scene.job.recorder.frames()
    newest = frames[-1]
    earlier = next(one for one in frames if newest.time_us - one.time_us < 4_000_000)
    count = newest.metrics["numberOfCompletedCheckpoints"] - earlier.metrics["numberOfCompletedCheckpoints"]
    assert number(gap) == pytest.approx((newest.time_us - earlier.time_us) / 1_000 / count, rel=0.25)


def check_checkpoint_mode(scene, told):
    [(before, after)] = re.findall(
        r"checkpoint_mode exactly-once → unaligned: checkpoints took ([\d,.]+) ms and now take ([\d,.]+) ms", told
    )
    last = [one.duration_ms for one in scene.job.recorder.frames()[-1].checkpoints if one.state == "COMPLETED"][-5:]
    assert number(before) > 3 * number(after)
    assert number(after) <= 2 * max(last) + 50


def check_slow_operator(scene, told):
    assert re.search(r"sums is the cause \(\d+ % busy\): flights is back-pressured, waiting for it", told)
    [(before, after)] = re.findall(r"slow_down 400ms on sums: latency p50 ([\d,.]+) → ([\d,.]+) ms", told)
    assert number(after) > 10 * number(before)
    assert number(before) < 500


def check_failed_task(scene, told):
    [again] = re.findall(
        r"sums\[1\] was failed on purpose; .*; restored checkpoint \d+ in .*; ([\d,]+) records read", told
    )
    assert scene.job.status()["restarts"] == 1
    [restored] = [frame.restore for frame in scene.job.recorder.frames()[-1:]]
    assert f"restored checkpoint {restored.id}" in told
    assert 0 < number(again) <= 1_000 * 4  # as many as come between two checkpoints, and a little more


def check_disorder(scene, told):
    [(late, bound)] = re.findall(
        r"([\d,]+) of [\d,]+ records came too late for their windows and were dropped\. "
        r"An out-of-orderness bound of (.*?) instead of 10 s would have kept",
        told,
    )
    assert 0 < number(late) <= scene.job.status()["late_records"]
    assert bound_s(bound) == pytest.approx(1_810, abs=610)  # half an hour and ten seconds, less an open window


def check_idle_source(scene, told):
    [(split, seconds)] = re.findall(
        r"The watermark does not advance because split (\S+) of west\[0\] has been idle for (\d+) s", told
    )
    west = next(task for task in scene.job.recorder.latest().tasks if task.name == "west[0]")
    assert split in west.splits
    assert west.metrics["sourceIdleTime"] / 1_000 >= int(seconds)


def check_skew(scene, told):
    [(task, share, key)] = re.findall(
        r"(sums\[\d\]) receives (\d+) % of the records of sums, .* a second: \d+ % of them have origin = (\w+)", told
    )
    assert key == "ATL"
    rates = {
        one.name: one.metrics["numRecordsInPerSecond"]
        for one in scene.job.recorder.latest().tasks
        if "sums" in one.name
    }
    assert task == max(rates, key=rates.get)
    assert int(share) == pytest.approx(100 * rates[task] / sum(rates.values()), abs=5)


def check_rescaling(scene, told):
    [(before, after)] = re.findall(r"parallelism 1 → 2: throughput ([\d,]+) → ([\d,]+) records/s", told)
    assert number(after) > 1.4 * number(before)
    assert number(after) == pytest.approx(scene.job.status()["records_in_per_second"], rel=0.35)
    assert "rescaled, parallelism = 2, it was 1" in told


CHECKS = {name: globals()[f"check_{name}"] for name in SCENES}


@pytest.mark.parametrize("name", SCENES)
def test_within_ten_seconds_the_page_says_what_changed_and_why(pages, browser, name):
    with SCENES[name]() as scene:
        # A page that is painted takes more of the processor than the job: where latency is measured, it is open before.
        opened_s = OPENED_S if scene.latencies is None else scene.warm_s
        time.sleep(scene.warm_s - opened_s)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(60_000)
        page.goto(pages.url.replace("localhost", "127.0.0.1") + f"&job={scene.job.name}")
        page.wait_for_function(READY)
        page.wait_for_timeout(1_000 * opened_s)
        picture(page, f"{name}-before")
        before = " ".join(page.evaluate(NEWS))
        caused_s = time.monotonic()
        scene.cause()
        end_s = time.monotonic() + WITHIN_MS / 1_000
        while True:  # until what it says agrees with what the runtime counts
            told, read_s = "\n".join(page.evaluate(NEWS)), time.monotonic()
            try:
                CHECKS[name](scene, told)
                sys.stdout.write(f"{name}: {read_s - caused_s:.1f} s\n")
                break
            except (ValueError, AssertionError) as problem:
                if time.monotonic() > end_s:
                    raise AssertionError(f"the page says {told!r}") from problem
            page.wait_for_timeout(250)
        assert told != before
        if SHOTS is not None:
            page.wait_for_timeout(max(0, 1_000 * (end_s - time.monotonic())))
            for scheme in ("light", "dark"):
                picture(page, f"{name}-after", scheme)
        page.close()
