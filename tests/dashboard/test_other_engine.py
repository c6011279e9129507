"""The control that runs a job's pipeline again on Spark; a query in this process takes the place of Spark's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from bokeh.events import ButtonClick
from query_here import run_here

import workbench as wb
from workbench.dashboard.contract.job_on_spark import RESUME
from workbench.dashboard.shown.view import View

ROWS = 300


def doubled() -> Any:
    numbers = wb.Stream.from_table(pa.table({"n": list(range(ROWS))}))
    return numbers.map(lambda row: {"n": 2 * row["n"]}).sink_to(wb.TableSink("doubled"))


def shown_until(view: Any, words: str) -> str:
    """The HTML of the picture once these words are in it."""
    picture = view.parts["controls"].elsewhere.on_spark.picture
    deadline = time.monotonic() + 60
    while words not in picture.html and time.monotonic() < deadline:
        view.easel.background.settle()  # as the view does while an action runs
        time.sleep(0.02)
    return str(picture.html)


def test_a_job_of_the_kernel_runs_again_on_spark_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    masters: list[object] = []
    gate = run_here(monkeypatch)
    monkeypatch.setattr(
        "workbench.spark.jobs.launch.query_session", lambda given, partitions, several: masters.append(given)
    )
    job = doubled().run("there-and-back", parallelism=2)
    while job.recorder.latest() is None:
        time.sleep(0.01)
    view = View(job, job.recorder.frames(), "controls")
    view.update(job.recorder.latest())
    control: Any = view.parts["controls"]
    control.elsewhere.master.value = "local-cluster[2,1,1024]"
    control.elsewhere.run_again._trigger_event(ButtonClick(control.elsewhere.run_again))
    assert "there-and-back" in shown_until(view, "RUNNING")
    there = wb.job("there-and-back")
    assert (job.over, there.engine, masters) == (True, "spark", ["local-cluster[2,1,1024]"])
    gate.release(1_000)
    assert there.wait("120s") == "FINISHED"
    assert "FINISHED" in shown_until(view, "FINISHED")
    back = there.run_again()
    assert back.wait("60s") == "FINISHED"
    assert sorted(there.table()["n"].to_pylist()) == sorted(back.table()["n"].to_pylist()) == list(range(0, 600, 2))


def settled(view: Any, done: Callable[[], object]) -> None:
    """Show what actions have found, as the view does, until something is so."""
    deadline = time.monotonic() + 60
    while not done() and time.monotonic() < deadline:
        view.easel.background.settle()
        time.sleep(0.02)
    assert done()


def test_the_batches_of_the_job_on_spark_are_tuned_where_those_of_the_kernel_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = run_here(monkeypatch)
    job = doubled().run("tuned-there", parallelism=2)
    while job.recorder.latest() is None:
        time.sleep(0.01)
    view = View(job, job.recorder.frames(), "controls")
    followed: list[Any] = []
    view.easel.follow = followed.append
    control: Any = view.parts["controls"]
    on_spark = control.elsewhere.on_spark
    hidden = on_spark._instead_of
    assert (on_spark.model.visible, {one.visible for one in hidden}) == (False, {True})
    assert not any(one.stylesheets for one in hidden)  # one that says how it is displayed would not be hidden
    control.elsewhere.run_again._trigger_event(ButtonClick(control.elsewhere.run_again))
    assert "A batch begins as soon as the previous one has finished" in shown_until(view, "RUNNING")
    assert (on_spark.model.visible, {one.visible for one in hidden}) == (True, {False})
    there = wb.job("tuned-there")
    interval, size = on_spark.sliders["checkpoint_interval"], on_spark.sliders["batch_size"]
    settled(view, lambda: "in force: <b>disabled</b>" in interval._note.html)
    assert "the query starts again from its last batch" in interval._effect.html
    gate.release()
    settled(view, lambda: there.status()["batches"] == 1)
    query = there.query
    interval.slider.value = 3  # a step: 2s
    settled(view, lambda: "✓" in interval.answer._piece.html)
    assert "disabled → 2s: the query has started again at batch 1" in interval.answer._piece.html
    assert (query.isActive, there.query.isActive, there.status()["checkpoint_interval"]) == (False, True, "2s")
    size.exact.value = "no number"
    settled(view, lambda: "✗" in size.answer._piece.html)
    assert "batch_size is &#x27;no number&#x27;: write a whole number above zero" in size.answer._piece.html
    on_spark.pause._trigger_event(ButtonClick(on_spark.pause))
    settled(view, lambda: on_spark.pause.label == RESUME)
    assert there.state == "SUSPENDED"
    on_spark.back._trigger_event(ButtonClick(on_spark.back))
    settled(view, lambda: followed)
    [back] = followed
    assert (back.engine, back.wait("60s")) == ("kernel", "FINISHED")
    on_spark.leave()
    assert (on_spark.model.visible, {one.visible for one in hidden}, on_spark.picture.html) == (False, {True}, "")


def test_what_cannot_run_again_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    gate = run_here(monkeypatch)
    job = doubled().run("refusing", engine="spark")
    with pytest.raises(wb.errors.SettingError, match="unknown engine 'sparc'"):
        job.run_again(engine="sparc")
    gate.release(1_000)
    assert job.wait("120s") == "FINISHED"
    numbers = wb.Stream.from_table(pa.table({"n": [1]})).map(lambda row: row)
    outside = numbers.sink_to(wb.ParquetSink(tmp_path / "files")).run("outside", engine="spark")
    with pytest.raises(wb.errors.JobError, match=r"cannot run a second time: its sink .* writes outside the job"):
        outside.run_again()
    outside.cancel()
    here = doubled().run("here")
    with pytest.raises(wb.errors.SettingError, match="Spark has its own fault tolerance"):
        here.run_again("acks", engine="spark")
    here.cancel()
