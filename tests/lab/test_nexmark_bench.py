"""The benchmark Nexmark: its events by the public definition, and the comparison with DuckDB."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.cli import main
from workbench.lab.bench import peers
from workbench.lab.bench.measuring.measure import Meter, Result
from workbench.lab.bench.measuring.peers import read_line
from workbench.lab.bench.measuring.shared_tables import SharedTable, share
from workbench.lab.bench.nexmark import beside, patterns
from workbench.lab.bench.nexmark import measuring as nexmark
from workbench.lab.bench.nexmark.answers import ANSWERS
from workbench.lab.bench.nexmark.events import BASE_US, events
from workbench.lab.bench.nexmark.queries import Q


def test_events_have_the_public_shares_and_hot_keys() -> None:
    tables = events(50_000)
    assert [tables[name].num_rows for name in ("person", "auction", "bid")] == [1_000, 3_000, 46_000]
    assert tables["auction"]["id"].to_pylist() == list(range(1_000, 4_000))
    auctions = tables["bid"]["auction"].to_numpy()
    hot = (auctions - 1_000) % 100 == 0
    assert 0.48 < hot.mean() < 0.53
    times = tables["bid"]["dateTime"].cast("int64").to_numpy()
    assert times.min() >= BASE_US
    assert (np.diff(times) > 0).all()
    assert tables["bid"].equals(events(50_000)["bid"])
    assert not tables["bid"].equals(events(50_000, seed=2)["bid"])


def test_every_query_has_its_answer() -> None:
    assert ANSWERS.keys() == Q.keys()


@pytest.mark.parametrize("name", ["q3", "q4", "q6", "q9", "q12", "q13", "q15", "q18", "q19", "q20", "q21", "q22"])
def test_the_rows_of_a_query_are_those_of_duckdb(name: str) -> None:
    rows, exact = nexmark.compared(name, events(20_000))
    assert rows > 0
    assert exact


def test_wrong_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "q2", ANSWERS["q2"].replace("123", "124"))
    assert nexmark.compared("q2", events(20_000))[1] is False


def test_a_line_says_what_was_measured() -> None:
    with Meter() as meter:
        pass
    line = json.loads(nexmark.Measured("q5", 7, meter.result("nexmark", {"query": "q5", "p": 2}, 20, True)).to_json())
    assert line["config"] == {"query": "q5", "p": 2}
    assert (line["events"], line["rows"], line["checked"]) == (20, 7, True)


def of_script(peer: str, query: str, eps_cpu_s: int, **config: object) -> Result:
    figures = {"eps": 1, "eps_core": 1, "checked": True, "rss_mb": 1, "cores": 2, "events": 1, "seconds": 1.0}
    return Result(
        workload="nexmark",
        config={"query": query, "p": 1, **config},
        eps_cpu_s=eps_cpu_s,
        load1=0.1,
        peer=peer,
        **figures,
    )


def test_the_least_ratio_and_the_median_are_told() -> None:
    results = [of_script("workbench", query, 1_200) for query in ("q0", "q1", "q2")]
    for query, speed in (("q0", 100), ("q1", 300), ("q2", 200)):
        results.append(of_script("flink_sql", query, speed, reading="included"))
    results.append(of_script("flink_sql", "q2", 600, reading="subtracted"))
    assert beside.summaries(results) == [
        "3 queries beside flink_sql, reading included: 4.0x at the least (q1), 6.0x in the median",
        "1 queries beside flink_sql, reading subtracted: 2.0x at the least (q2), 2.0x in the median",
    ]


SCRIPT = """
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["PEER_DATA"]) / sys.argv[1]
work = json.loads((folder / "work.json").read_text())
bids = (folder / work["tables"]["bid"]["file"]).read_text().splitlines()
assert len(bids) == 9200 and bids[0].count(",") == len(work["tables"]["bid"]["columns"]) - 1, bids[0]
assert work["tables"]["auction"]["columns"]["expires"] == "TIMESTAMP(3)"
print(json.dumps({"workload": "nexmark", "skipped": "q99: no such query"}))
for query, text in work["queries"].items():
    assert not text.endswith(";") and "count_char" not in text
    print(json.dumps(dict(peer="other", workload="nexmark", eps=1000, eps_core=500, eps_cpu_s=1000, checked=True,
        rss_mb=1, cores=2, events=work["events"][query], seconds=1, load1=0.5,
        config={"query": query, "p": 1, "reading": "included"})))
"""


def test_scripts_get_the_same_events_and_stand_beside_us(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.py").write_text(SCRIPT)
    options = ["--peers", str(tmp_path), "--peer", "other", "--rows", "10000", "--repeats", "1"]
    assert main(["bench", "nexmark", "--query", "q2", "--query", "q14", *options]) == 0
    printed = capsys.readouterr()
    assert "other.py nexmark: skipped: q99: no such query" in printed.err
    assert [line.split()[-1] for line in printed.out.splitlines() if " other " in line] == ["exact", "exact"]
    assert "2 queries beside other, reading included:" in printed.out


STAND_IN = """
import contextlib, types
from datetime import datetime
ran = []
class Environment:
    create = staticmethod(lambda settings: Environment())
    def get_config(self): return types.SimpleNamespace(set=lambda name, value: None)
    def execute_sql(self, text): ran.append(text)
    def sql_query(self, text):
        if "broken" in text: raise RuntimeError("a trace\\nno such column")
        scan = "+- TableSourceScan(table=[[c, d, bid, project=[a, b]]], fields=[a, b])"
        plan = f"== Optimized Execution Plan ==\\n{scan}"
        return types.SimpleNamespace(explain=lambda: plan, text=text,
            execute=lambda: types.SimpleNamespace(collect=lambda: contextlib.nullcontext([(1, datetime(2015, 7, 15))])),
            get_schema=lambda: types.SimpleNamespace(get_field_data_types=lambda: [1, 2]))
    def create_temporary_table(self, name, sink): pass
    def create_statement_set(self):
        def execute():
            heavy = "count" in str(texts)
            sum(range(20_000_000 if heavy else 1_000_000))
            return types.SimpleNamespace(wait=lambda: None)
        texts = []
        return types.SimpleNamespace(add_insert=lambda sink, table: texts.append(table.text), execute=execute)
class Schema:
    new_builder = from_fields = build = lambda *given: Schema()
class TableDescriptor:
    for_connector = schema = build = lambda *given: TableDescriptor()
class EnvironmentSettings:
    in_streaming_mode = staticmethod(lambda: None)
Table, TableEnvironment = None, Environment
"""


def test_the_script_for_flink_subtracts_what_reading_costs(tmp_path: Path) -> None:
    """With a stand-in for the package: a query, what only reads the same columns, and a query that fails."""
    (tmp_path / "pyflink").mkdir()
    (tmp_path / "pyflink" / "table.py").write_text(STAND_IN)
    texts = {"q1": "SELECT count(*) FROM bid", "q2": "SELECT a, b FROM bid", "q3": "broken"}
    bids = SharedTable(events(1_000)["bid"], "dateTime", 4)
    rows = pa.table({"n": [1], "t": pa.array([1_436_918_400_000_000], pa.timestamp("us"))})
    share(tmp_path / "work", {"bid": bids}, texts, dict.fromkeys(texts, 1_000), {"q1": rows, "q2": rows.slice(1)})
    script = Path(peers.__file__).with_name("flink_sql.py")
    environment = {**os.environ, "PEER_DATA": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, script, "work", "0"], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert lines[-1]["skipped"] == "q3: no such column"
    assert [line["checked"] for line in lines[:-1] if line["config"]["reading"] == "included"] == [True, False]
    included, subtracted = lines[:2]
    assert [line["config"] for line in lines[:2]] == [
        {"query": "q1", "p": 1, "reading": reading} for reading in ("included", "subtracted")
    ]
    assert read_line(json.dumps(included)) is not None
    assert subtracted["eps_cpu_s"] > included["eps_cpu_s"] > 0


def test_patterns_stand_beside_plain_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "patterns", "--rows", "5000", "--repeats", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if " workbench " in line] == ["exact"] * 5
    assert len([line for line in lines if " python " in line]) == 1
    assert lines[-1].startswith("1 queries beside python: ")


def test_a_low_bid_meets_the_first_high_one_of_its_bidder_within_ten_seconds() -> None:
    second = 1_000_000
    bids = pa.table(
        {
            "bidder": [1, 1, 2, 1, 1, 1, 1],
            "price": [5, 6, 20_000_000, 30_000_000, 40_000_000, 7, 50_000_000],
            "dateTime": pa.array([at * second for at in (0, 1, 2, 9, 10, 11, 21)], pa.timestamp("us")),
        }
    )
    expected = [(1, 5, 30_000_000), (1, 6, 30_000_000)]
    assert patterns.in_python(bids) == expected
    stream = wb.Stream.from_table(bids, event_time="dateTime", out_of_orderness="1s")
    assert sorted(tuple(row.values()) for row in patterns.low_high(stream).collect().to_pylist()) == expected


def test_pattern_queries_are_written_for_other_systems(tmp_path: Path) -> None:
    patterns.write(tmp_path / "work", 1_000)
    work = json.loads((tmp_path / "work" / "work.json").read_text())
    assert list(work["queries"]) == ["q0", "q1", "q2", "q3"]
    assert "MATCH_RECOGNIZE" in work["queries"]["q3"]
    [first, *_] = work["answers"]["q1"]
    assert [type(value) for value in first] == [int, int, str, str, int]
    assert re.fullmatch(r"2015-07-15 00:00:0\d\.\d{3}", first[2])
    assert work["tables"]["bid"]["event_time"] == "dateTime"
