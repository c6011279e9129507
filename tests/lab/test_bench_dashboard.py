"""The benchmark of the dashboard: its job, its figures, and its connections to the kernel and the browser."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from workbench.cli import main
from workbench.cli.checks.check import Check
from workbench.cli.checks.machine import find_browser
from workbench.dashboard.contract.view_table import dashboard_views
from workbench.errors import SettingError
from workbench.lab.bench.looking import lab_place, looking
from workbench.lab.bench.looking.chromium import BrowserError, Chromium
from workbench.lab.bench.looking.looked import Looked, Phase, compare, p99
from workbench.lab.bench.looking.notebook_kernel import CellError, JoinedKernel, NotebookKernel
from workbench.lab.bench.works.wide import PARALLELISM, TABLE, Wide

BEFORE = Phase(seconds=4.0, events=3_000, cpu_s=2.0, feed_cpu_s=0.0, cells_ms=(1.0, 3.0))
SEEN = Phase(seconds=2.0, events=1_900, cpu_s=1.0, feed_cpu_s=0.06, cells_ms=(5.0, 4.0, 90.0))
AFTER = Phase(seconds=4.0, events=5_000, cpu_s=2.0, feed_cpu_s=0.0, cells_ms=(2.0, 4.0))


def looked(**changes: object) -> Looked:
    told = {
        "before": BEFORE, "seen": SEEN, "after": AFTER, "page": "served", "screen": (800, 600), "painted": [11],
        "received": 5_000, "browser_s": 0.5, "tuned": [(10.0, 100.0), (30.0, 300.0), (20.0, 200.0)], "checked": True,
    }  # fmt: skip
    return compare(**{**told, **changes})


def test_the_figures_with_a_page_are_compared_with_those_before_and_after_it() -> None:
    found = looked()
    assert (found.eps_alone, found.eps_seen, found.kept) == (1_000, 950, 0.95)
    assert (found.eps_cpu_s_alone, found.eps_cpu_s_seen, found.kept_cpu) == (2_000, 1_900, 0.95)
    assert found.alone_again == pytest.approx(5_000 / 3_000, abs=1e-4)
    assert (found.frames_per_s, found.bytes_per_s) == (5.5, 2_500)
    assert (found.feed_cpu, found.browser_cpu) == (0.03, 0.25)
    assert (found.in_force_ms, found.in_force_ms_max, found.shown_ms) == (20.0, 30.0, 200.0)
    assert (found.cell_ms, found.cell_ms_p99, found.cell_alone_ms, found.cell_alone_ms_p99) == (5.0, 90.0, 2.5, 4.0)
    line = json.loads(found.to_json())
    assert (line["peer"], line["workload"], line["config"], line["checked"]) == (
        "workbench",
        "W5",
        {"tasks": 40, "page": "served"},
        True,
    )
    assert "95.0% of 0.0 M events/s" in found.describe()
    assert "5.5 frames/s painted, 2 kB/s" in found.describe()
    docked = looked(page="jupyterlab", painted=[11, 7, 30])
    assert (docked.page, docked.views, docked.frames_per_s) == ("jupyterlab", 3, 3.5)
    assert "3.5 frames/s painted by the slowest of 3 views" in docked.describe()
    assert "result      WRONG" in looked(checked=False).describe()


def test_99_of_100_values_stay_below_the_percentile() -> None:
    assert p99(tuple(float(value) for value in range(200))) == 198.0
    assert p99((7.0,)) == 7.0


def test_the_wide_job_is_exact_and_a_wrong_row_is_seen() -> None:
    work = Wide()
    job = work.pipeline(limit=1_200_000).run("wide", parallelism=PARALLELISM)
    job.wait("120s")
    frame = job.recorder.latest()
    assert frame is not None
    assert (len(frame.tasks), len(frame.channels)) == (40, 256)
    rows = job.table(TABLE)
    assert work.exact(rows)
    views = rows.column("views").to_pylist()
    wrong = pa.array([views[0] + 1, *views[1:]])
    assert not work.exact(rows.set_column(rows.schema.get_field_index("views"), "views", wrong))
    assert not work.exact(rows.slice(0, 0))


def test_without_a_browser_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(looking, "find_browser", lambda: None)
    for page in looking.PLACES:
        assert main(["bench", "dashboard", "--page", page]) == 2
        assert "there is no Chromium to open the page in" in capsys.readouterr().err


def test_without_the_front_end_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    missing = Check("JupyterLab extension", ok=False, found="it is not installed", mend="run 'make install'")
    monkeypatch.setattr(lab_place, "lab_extension", lambda: [missing])
    monkeypatch.setattr(looking, "find_browser", lambda: "chromium")
    assert main(["bench", "dashboard", "--page", "jupyterlab"]) == 2
    assert "it is not installed: run 'make install'" in capsys.readouterr().err


def test_every_view_of_the_whole_dashboard_is_docked_once() -> None:
    docked = [view for column in lab_place.COLUMNS for view in column]
    assert sorted(docked) == sorted(view.name for view in dashboard_views(live=True))
    assert lab_place.LabViews.views == len(docked)


def test_an_unknown_page_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown page 'window'"):
        looking.look("window")


def test_a_kernel_answers_and_its_errors_are_told() -> None:
    with NotebookKernel() as kernel:
        kernel.run("numbers = [1, 2]")
        assert kernel.ask("numbers") == [1, 2]
        assert kernel.cell_seconds("1+1") > 0
        with pytest.raises(CellError, match="ZeroDivisionError"):
            kernel.run("1/0")
        with pytest.raises(CellError, match="NameError"):
            kernel.ask("missing")


def test_a_kernel_of_somebody_else_can_be_joined_and_stays() -> None:
    with NotebookKernel() as kernel:
        joined = JoinedKernel(Path(kernel._manager.connection_file))
        joined.run("there = 1")
        joined.close()
        assert kernel.ask("there") == 1


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM")
def test_a_browser_answers_and_its_errors_are_told() -> None:
    program = find_browser()
    assert program is not None
    with Chromium(program, (640, 480)) as page:
        page.open("data:text/html,<h1>here</h1>", "window.first = 1")
        assert page.ask("new Promise((tell) => setTimeout(() => tell(first + 1), 1))") == 2
        assert page.ask("[innerWidth, innerHeight]") == [640, 480]
        assert page.cpu_seconds() > 0
        with pytest.raises(BrowserError, match="missing"):
            page.ask("missing()")
