"""``%stream compare`` with a job and a fault, in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import workbench as wb

ROWS = 2_000


@pytest.fixture
def cells(shell: InteractiveShell) -> Iterator[InteractiveShell]:
    """With a job that counts by key."""
    numbers = wb.Stream.from_table(pa.table({"k": np.arange(ROWS) % 5}), rate=8_000)
    counts = numbers.key_by("k").aggregate(c=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
    job = counts.run("woken", buffer_timeout="10ms", at_end="hold")
    yield shell
    for each in (job, *wb.jobs().values()):
        if not each.over:
            each.cancel()


def test_a_zombie_gets_nowhere_and_the_job_goes_on(cells: InteractiveShell) -> None:
    result = cells.run_cell(
        "%stream compare woken transactions:coalesce=100 snapshots zombie:at=500,wakes=300 checkpoint_interval=50ms"
    )
    result.raise_error()
    compared = result.result
    assert list(compared) == ["reference", "transactions", "snapshots"]
    assert set(compared.wait("60s").values()) == {"FINISHED"}
    for lane, refused in (("transactions", "its write was refused"), ("snapshots", "its report was dropped")):
        events = [event.text for event in compared[lane].recorder.latest().events]
        assert any("stands still on purpose after record 500, and is replaced" in text for text in events)
        assert any("woke up after it was replaced" in text and refused in text for text in events)
    assert compared.table()["observed"].to_pylist() == ["exactly-once"] * 3
    assert compared.table()["refused"].to_pylist()[1] == 1
    assert not wb.job("woken").over
