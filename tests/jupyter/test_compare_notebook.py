"""The notebook that compares the architectures, run from top to bottom in a real kernel."""

from pathlib import Path

import executed
import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks/03_architectures.ipynb"


@pytest.mark.slow
def test_each_failure_does_what_the_text_says(tmp_path):
    notebook = executed.read(NOTEBOOK)
    for cell in notebook.cells:  # the same story in a tenth of the time
        for long, short in (
            ("90_000", "12_000"),
            ("at=32000", "at=4000"),
            ("at=30000,records=9000,rest=500ms", "at=3000,records=9000,rest=1s"),
            ("wakes=10000", "wakes=2000"),
        ):
            cell.source = cell.source.replace(long, short)
    executed.execute(notebook, tmp_path)
    shown = {cell.id: cell.get("outputs", []) for cell in notebook.cells}
    race, slow, zombie = (shown[f"race-{place:02}"][-1]["data"] for place in (4, 7, 9))
    last = race["text/html"].split("<tr")[7 + 1]  # the titles, and seven architectures
    assert ">snapshots<" in last
    assert "✓</b> exactly once" in last
    assert "roots timed out and were replayed needlessly" in slow["text/plain"]
    assert zombie["text/plain"].count("What its replaced task tried when it woke up") == 7
    assert "transactions: table[0] woke up" in shown["race-10"][0]["text"]
    assert "which end with records and not with a batch" in shown["race-13"][0]["text"]
