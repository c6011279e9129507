"""The notebook that goes through checkpoints step by step, run from top to bottom in a real kernel."""

from pathlib import Path

import executed
import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks/02_checkpoints_step_by_step.ipynb"


@pytest.mark.slow
def test_the_pictures_are_those_of_the_text(tmp_path):
    notebook = executed.read(NOTEBOOK)
    executed.execute(notebook, tmp_path)
    shown = [data["text/plain"] for data in executed.data(notebook)]
    assert "holds offset: 5" in shown[0]
    assert "even: total=6" in shown[0]
    assert "odd: total=9" in shown[0]
    assert "(CREATED)" in shown[2]
    assert "even: total=6" in shown[3]
    assert "odd: total=9" in shown[3]
    assert "held back" in shown[8]
    sums = next(text for text in shown if text.startswith("alignment | careless"))
    assert "sum[1] odd: total=8 | total=20" in sums  # on the right, the 5 and the 7 are in the sum already
    assert "{'alignment': {'even': 40, 'odd': 32}, 'careless': {'even': 54, 'odd': 44}}" in shown[-2]
