"""Queries in plain PySpark, as Spark's documentation teaches them, watched in a real JupyterLab.

Their subjects are those of the programming guide (Apache License 2.0): words from a socket, a join of impressions and
clicks, and a count by user with ``transformWithState``.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from browsing import CHROMIUM
from live_notebook import live_notebook

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
    pytest.mark.skipif(not os.environ.get("WORKBENCH_CLUSTERS"), reason="'make clusters' runs it: two minutes"),
]

START = """%load_ext workbench
import socket, threading, time
import workbench as wb
from workbench.spark.session import session
spark = session("local[2]")
spark.conf.set("spark.sql.shuffle.partitions", "2")
spark.conf.set("spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
server = socket.create_server(("127.0.0.1", 0))
def speak():
    connection, _ = server.accept()
    while True:
        connection.sendall(b"to be or not to be\\n" * 20)
        time.sleep(0.2)
threading.Thread(target=speak, daemon=True).start()"""
WORDS = """from pyspark.sql import functions as f
host, port = server.getsockname()
lines = spark.readStream.format("socket").option("host", host).option("port", port).load()
counts = lines.select(f.explode(f.split("value", " ")).alias("word")).groupBy("word").count()
words = counts.writeStream.queryName("words").outputMode("complete").format("memory").start()"""
JOIN = """rates = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
shown = rates.selectExpr("value AS ad", "timestamp AS shown_at").withWatermark("shown_at", "5 seconds")
clicks = rates.where("value % 3 = 0").selectExpr("value AS clicked", "timestamp AS clicked_at")
clicks = clicks.withWatermark("clicked_at", "5 seconds")
near = f.expr("ad = clicked AND clicked_at BETWEEN shown_at AND shown_at + INTERVAL 10 SECONDS")
clicked = shown.join(clicks, near).writeStream.queryName("clicked").format("memory").start()"""
STATE = """import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

class CountByUser(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        before = self.count.get()
        n = (before[0] if before else 0) + sum(len(frame) for frame in rows)
        self.count.update((n,))
        yield pd.DataFrame({"user": [key[0]], "n": [n]})

    def close(self):
        pass

users = rates.selectExpr("value % 5 AS user").groupBy("user").transformWithStateInPandas(
    CountByUser(), outputStructType="user BIGINT, n BIGINT", outputMode="Update", timeMode="None")
counted = users.writeStream.queryName("users").outputMode("update").format("memory").start()"""
FAIL = """@f.udf("int")
def inverse(value):
    return 1 // (value - value)
failing = rates.select(inverse("value")).writeStream.queryName("failing").format("memory").start()
wb.watch(failing)"""
CELLS = [START, WORDS, "%stream watch words", JOIN, STATE, "wb.watch(spark)", FAIL]
WATCHED = 2, 5, 6
"""The cells with a picture."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with live_notebook(tmp_path_factory, CELLS) as lab:
        for cell in range(len(CELLS)):
            lab.run(cell)
        yield lab
        lab.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")


def picture(lab: Any, cell: int) -> str:
    outputs = "window.jupyterapp.shell.currentWidget.content.widgets[cell].model.outputs"
    found = lab.page.evaluate(
        f"cell => {outputs}.toJSON().map(o => o.data?.['text/html'] ?? o.traceback?.join() ?? '').join('')", cell
    )
    return "".join(found)


def test_words_of_a_socket_are_seen(lab: Any) -> None:
    lab.until(lambda: picture(lab, WATCHED[0]).count("<title>batch") >= 5, "batches of the words")
    html = picture(lab, WATCHED[0])
    assert "<b>words</b>: RUNNING" in html
    assert "TextSocketV2" in html
    assert "stateStoreSave" in html
    assert "the query has no watermark" in html
    assert "took longest" in html


def test_all_queries_of_a_session_are_seen_with_their_event_time_and_state(lab: Any) -> None:
    def together() -> str:
        return picture(lab, WATCHED[1])

    lab.until(lambda: all(f"<b>{name}</b>: RUNNING" in together() for name in ("words", "clicked", "users")), "all")
    lab.until(lambda: "symmetricHashJoin" in together(), "the state of the join")
    lab.until(lambda: "transformWithStateInPandas" in together(), "the state of the users")
    lab.until(lambda: together().count("<polyline") >= 2, "the watermark and the newest event time")
    assert "RateStreamV2" in together()


def test_the_error_of_a_query_is_a_sentence(lab: Any) -> None:
    lab.until(lambda: "<b>failing</b>: FAILED" in picture(lab, WATCHED[2]), "the failure")
    assert "ZeroDivisionError: integer division or modulo by zero" in picture(lab, WATCHED[2])


def test_the_page_had_no_problem(lab: Any) -> None:
    assert not lab.problems
