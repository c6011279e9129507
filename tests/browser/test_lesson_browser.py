"""A lesson is played in JupyterLab, from its blank notebook to the solved one; ``make play`` plays all."""

from __future__ import annotations

import pytest
from browsing import CHROMIUM, chromium, jupyter
from lab_front import Front
from play import Player, dress

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

BROKEN = """# A lesson that fails

```python
import sys

print("a warning", file=sys.stderr)
```

```python
1 / 0
```

```python
from IPython.display import HTML

HTML("<svg width='5000' height='90' style='max-width: none'><circle r='9'/></svg>")
```

```python
print("3 of 4 done")
```
"""


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    place = tmp_path_factory.mktemp("lessons")
    home, root = place / "home", place / "notebooks"
    home.mkdir()
    root.mkdir()
    with chromium() as browser, jupyter(home, root) as url:
        front = Front(browser.new_page(viewport={"width": 1400, "height": 1000}), url, root)
        dress(front, "dark")
        yield Player(front)
        front.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll().then(() => null)")


def test_the_first_lesson_goes_from_blank_to_solved_without_a_fault(player):
    played = player.play("01")
    assert played.faults == []


def test_a_lesson_with_faults_is_told(player):
    faults = "\n".join(player.play("02", BROKEN).faults)
    for told in (
        "cell 1: a warning",
        "cell 2: ZeroDivisionError: division by zero",
        "cell 3: 1 pictures cut off at the right",
        "cell 3: 1 pictures without a text",
        "it ends with '3 of 4 done",
    ):
        assert told in faults
