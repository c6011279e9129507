"""Architectures side by side: the same faults at the same records, and their effects on results, to the record."""

from __future__ import annotations

import re
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import workbench as wb
from workbench.api.pictures.documents_table import CLAIMS, documents_rows
from workbench.api.pictures.documents_table import COLUMNS as COLUMNS_OF
from workbench.api.pictures.verdicts import COLUMNS, keeps, sentences, verdicts_html, verdicts_page
from workbench.api.running.architectures_compared import Difference, difference
from workbench.api.running.faults_by_records import parse_faults, slow_receiver, task_dies, zombie
from workbench.errors import JobError, SettingError

ROWS = 6_000


def pipeline(rate: float | None = 12_000.0) -> wb.types.Pipeline:
    table = pa.table({"k": np.arange(ROWS) % 5, "n": np.arange(ROWS)})
    numbers = wb.Stream.from_table(table, rate=rate)
    counts = numbers.key_by("k").aggregate(c=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
    return counts + numbers.rebalance().sink_to(wb.TableSink("rows"))


@pytest.fixture
def compared():
    compared = wb.compare(
        pipeline(),
        ["snapshots", wb.changelog("50ms", offset_interval="60s"), wb.at_most_once("50ms"), "at-most-once"],
        faults=["task-dies:at=900", task_dies(2_600)],
        parallelism=2,
        checkpoint_interval="50ms",
    )
    yield compared
    compared.cancel()


def test_what_is_claimed_and_what_the_same_failures_did(compared):
    assert list(compared) == ["reference", "snapshots", "changelog", "at-most-once", "at-most-once-2"]
    with pytest.raises(JobError, match="has not ended: wait"):
        compared.table()
    assert set(compared.wait("60s").values()) == {"FINISHED"}
    rows = {row["architecture"]: row for row in compared.table().to_pylist()}
    assert [(row["claimed"], row["observed"]) for row in rows.values()] == [
        ("exactly-once", "exactly-once"),
        ("exactly-once", "exactly-once"),
        ("at-least-once", "at-least-once"),
        ("at-most-once", "at-most-once"),
        ("at-most-once", "at-most-once"),
    ]
    assert [row["failures"] for row in rows.values()] == [0, 2, 2, 2, 2]
    truth = dict.fromkeys(range(5), ROWS // 5)
    for lane, job in compared.jobs.items():
        passed = np.bincount(job.table("rows")["n"].to_numpy(), minlength=ROWS)
        counts = {row["k"]: row["c"] - truth[row["k"]] for row in job.table("counts").to_pylist()}
        assert rows[lane]["lost"] == (passed == 0).sum() + (5 - len(counts))
        assert rows[lane]["doubled"] == np.maximum(passed - 1, 0).sum()
        assert rows[lane]["too_high"] == sum(max(0, more) for more in counts.values())
        assert rows[lane]["too_low"] == sum(max(0, -more) for more in counts.values())
    assert rows["snapshots"]["records_again"] > 0
    assert rows["snapshots"]["recovery_ms"] > 100  # the pause before a restart
    assert rows["at-most-once"]["records_again"] == 0
    assert rows["at-most-once"]["too_low"] > 0
    assert rows["changelog"]["records_again"] >= rows["changelog"]["too_high"] > 0
    assert any(told.startswith("at-most-once: ") and "counts too low by" in told for told in compared.verdicts)
    assert repr(compared) == "\n".join(compared.verdicts)


def test_failures_come_at_their_record_and_once():
    compared = wb.compare(pipeline(None), ["snapshots"], faults="task-dies:at=1500", checkpoint_interval=None)
    assert compared.wait("60s")["snapshots"] == "FINISHED"
    events = [event.text for event in compared["snapshots"].recorder.latest().events]
    assert len([text for text in events if "failed on purpose after record 1,500" in text]) == 1
    assert compared["reference"].recorder.latest().metrics["numRestarts"] == 0
    assert compared["snapshots"].recorder.latest().metrics["numRestarts"] == 1
    assert compared.table()["observed"].to_pylist() == ["exactly-once", "exactly-once"]


def test_a_slow_receiver_holds_its_senders_back_for_its_records():
    compared = wb.compare(
        pipeline(None),
        ["snapshots"],
        faults="slow-receiver:at=1,records=1000,rest=300ms",
        parallelism=1,
        buffer_size=1_000,
    )
    assert set(compared.wait("60s").values()) == {"FINISHED"}
    assert compared["snapshots"].recorder.latest().metrics["runningTime"] >= 300
    assert compared.table()["observed"].to_pylist() == ["exactly-once", "exactly-once"]


EVERY = [
    "snapshots",
    "stop-the-world",
    "acks",
    "micro-batches:batch_interval=100ms",
    wb.transactions(coalesce=100),
    wb.changelog("50ms", offset_interval="60s"),
    wb.at_most_once("50ms"),
]


@pytest.fixture(scope="module")
def woken():
    """A task that stands still, is replaced and wakes up, under each architecture, and a slow receiver at the end."""
    faults = [zombie(1_500, 1_000), "slow-receiver:at=3000,records=600,rest=30ms"]
    compared = wb.compare(
        pipeline(), EVERY, faults=faults, parallelism=1, checkpoint_interval="50ms", buffer_timeout="10ms"
    )
    assert set(compared.wait("120s").values()) == {"FINISHED"}
    return compared


def test_a_task_that_wakes_up_after_it_was_replaced_changes_nothing(woken):
    rows = {row["architecture"]: row for row in woken.table().to_pylist()}
    assert all(keeps(row) for row in rows.values())
    assert rows["reference"]["refused"] == 0
    for lane, job in list(woken.jobs.items())[1:]:
        told = [event.text for event in job.recorder.latest().events]
        assert (
            len([text for text in told if "stands still on purpose after record 1,500, and is replaced" in text]) == 1
        )
        (tried,) = [text for text in told if "woke up after it was replaced, with" in text]
        refused = "its write was refused: another task owns its sequencer"
        nothing_came_of_it = r": 0 of the [\d,]+ records that it sent arrived, its report was dropped"
        assert re.search(refused if lane == "transactions" else nothing_came_of_it, tried)
    assert woken["transactions"].status()["transactions"]["fenced"] == 1
    assert rows["transactions"]["refused"] == 1


def test_costs_are_those_of_the_architecture(woken):
    rows = {row["architecture"]: row for row in woken.table().to_pylist()}
    assert all(row["messages"] > row["checkpoints"] for row in rows.values())
    for lane, job in woken.jobs.items():
        size = sum(one.size_bytes for one in job.recorder.latest().checkpoints)
        assert rows[lane]["bytes"] >= size > 0
    found = woken["transactions"].status()["transactions"]
    assert rows["transactions"]["messages"] >= found["round_trips"] > 0
    assert rows["transactions"]["bytes"] >= found["written_bytes"] > 0
    assert rows["stop-the-world"]["stall_ms"] > 0
    assert rows["snapshots"]["stall_ms"] == 0


def test_the_documents_table_has_what_is_claimed_beside_what_was_observed(woken, tmp_path):
    rows = {row["architecture"]: row for row in woken.documents().to_pylist()}
    assert list(rows) == [name for name in CLAIMS if name != "spark"]
    assert rows["acks"]["system"] == "Storm, Heron"
    assert rows["acks"]["guarantee_claimed"] == "at least once"
    for row in woken.table().to_pylist()[1:]:
        observed = rows[row["architecture"]]["guarantee_observed"]
        assert observed.partition(":")[0] == row["observed"].replace("-", " ")
    assert rows["snapshots"]["guarantee_observed"] == "exactly once"
    assert rows["micro-batches"]["flow_control_observed"].endswith("waited at a time")
    assert all(
        row[f"{name}_{kind}"] for row in rows.values() for name in COLUMNS_OF for kind in ("claimed", "observed")
    )
    page = woken.save(tmp_path / "compared.html").read_text()
    assert "backpressure looks like failure" in page
    assert "a median latency above 100 ms; less than 80% of the throughput of the reference" in page
    assert page.count(">claimed</div>") == len(COLUMNS_OF)


def test_windows_are_compared_by_key_and_window():
    table = pa.table({"k": ["a", "b"] * 2_000, "t": pa.array(range(4_000), pa.timestamp("ms"))})
    numbers = wb.Stream.from_table(table, event_time="t", rate=8_000)
    windows = numbers.key_by("k").window(wb.tumbling("1s")).aggregate(c=wb.count())
    compared = wb.compare(windows, ["at-most-once"], faults="task-dies:at=1500", checkpoint_interval="50ms")
    assert compared.wait("60s")["at-most-once"] == "FINISHED"
    row = compared.table().to_pylist()[1]
    lost = 4_000 - sum(compared["at-most-once"].table()["c"].to_pylist())
    truth = {(r["k"], r["window_start"]): r["c"] for r in compared["reference"].table().to_pylist()}
    there = {(r["k"], r["window_start"]) for r in compared["at-most-once"].table().to_pylist()}
    gone = [count for key, count in truth.items() if key not in there]
    assert row["observed"] == "at-most-once"
    assert (row["lost"], row["too_low"]) == (len(gone), lost - sum(gone))
    assert lost > 0


@pytest.mark.parametrize("fault", ["task-dies:at=50", pytest.param("zombie:at=50,wakes=10", marks=pytest.mark.slow)])
def test_what_each_guarantee_allows_is_what_is_observed_to_the_record(fault):
    """In steps, so what is on its way when the task fails is the same each time."""
    rows = 100
    table = pa.table({"k": np.arange(rows) % 5, "n": np.arange(rows)})
    numbers = wb.Stream.from_table(table, rate=1_000)
    counts = numbers.key_by("k").aggregate(c=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
    compared = wb.compare(
        counts + numbers.rebalance().sink_to(wb.TableSink("rows")),
        ["snapshots", wb.acks(), wb.changelog("10ms", offset_interval="60s"), wb.at_most_once("10ms")],
        faults=fault, driver="stepping", checkpoint_interval="10ms", buffer_timeout="8ms",
        restart="fixed-delay:attempts=3,delay=0ms",
    )  # fmt: skip
    with ExitStack() as unwatched:  # frames take most of a step's time
        for lane in ("snapshots", "acks", "changelog", "at-most-once"):
            unwatched.enter_context(compared[lane].stepper.driver.unwatched())
        assert set(compared.wait("60s").values()) == {"FINISHED"}
    found = {row["architecture"]: row for row in compared.table().to_pylist()}
    assert {lane: row["observed"] for lane, row in found.items()} == {
        lane: row["claimed"] for lane, row in found.items()
    }
    told = {row["architecture"]: row["guarantee_observed"] for row in compared.documents().to_pylist()}
    for lane in ("acks", "changelog"):
        passed = np.bincount(compared[lane].table("rows")["n"].to_numpy(), minlength=rows)
        doubled, too_high = int((passed - 1).sum()), sum(compared[lane].table("counts")["c"].to_pylist()) - rows
        assert passed.min() == 1
        assert told[lane] == f"at least once: {doubled} doubled, {too_high} too high"
        audit = {row["task"]: row["records"] for row in compared[lane].audit()}
        assert doubled == too_high == audit["table[0]" if lane == "acks" else "aggregate[0]"] > 0
    lost = rows - len(compared["at-most-once"].table("rows"))
    too_low = rows - sum(compared["at-most-once"].table("counts")["c"].to_pylist())
    assert told["at-most-once"] == f"at most once: {lost} lost, {too_low} too low"
    assert too_low > lost > 0
    assert told["snapshots"] == "exactly once"


def test_values_that_differ_from_themselves_or_cannot_be_grouped_are_compared():
    values = {
        "float": pa.array([float("nan"), 1.5, None]),
        "list": pa.array([[1, 2], [], None]),
        "struct": pa.array([{"a": 1}, {"a": None}, None]),
    }
    truth = pa.table(values)
    assert difference(truth, truth, None) == Difference()
    assert difference(truth.slice(1), truth, None) == Difference(lost=1)
    halves = [pa.table({"s": pa.array([each], pa.string()).dictionary_encode()}) for each in ("a", "b")]
    both, other = pa.concat_tables(halves), pa.concat_tables(halves[::-1])
    assert difference(both, other, None) == Difference()
    assert difference(halves[0], other, None) == Difference(lost=1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9))), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)))
)
def test_differences_of_rows_are_those_of_multisets(ours, theirs):
    def table(rows):
        return pa.table(
            {"k": pa.array([k for k, _ in rows], pa.int64()), "n": pa.array([n for _, n in rows], pa.int64())}
        )

    found = difference(table(ours), table(theirs), None)
    left = list(theirs)
    doubled = 0
    for row in ours:
        if row in left:
            left.remove(row)
        else:
            doubled += 1
    assert found == Difference(len(left), doubled)
    assert difference(table(theirs), table(ours), None) == Difference(doubled, len(left))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "compare got no architecture"),
        ((["snapshots", "storm"],), "unknown fault_tolerance 'storm'"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    with pytest.raises(SettingError, match=message):
        wb.compare(pipeline(), *arguments)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ("task-lives", "unknown fault 'task-lives'"),
        ("task-dies:at=soon", "at is 'soon': write a number of records"),
        ("task-dies:at=0", "at is 0: it must be a whole number, at least 1"),
        ("zombie:wakes=0", "wakes is 0: it must be a whole number"),
        ("slow-receiver:rest=0ms", "rest is 0: write a time"),
    ],
)
def test_faults_that_cannot_be_meant_are_refused(faults, message):
    with pytest.raises(SettingError, match=message):
        wb.compare(pipeline(), ["snapshots"], faults=faults)


def test_faults_need_architectures_and_results_need_a_table():
    with pytest.raises(SettingError, match="faults are for architectures"):
        wb.compare(pipeline(), a={}, b={}, faults="task-dies")
    numbers = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
    compared = wb.compare(numbers, ["snapshots"])
    compared.wait("60s")
    with pytest.raises(JobError, match="has no TableSink"):
        compared.table()
    assert parse_faults(slow_receiver(1, 2, "3ms")) == (slow_receiver(1, 2, "3ms"),)


# verdicts ------------------------------------------------------------------------------------------------------------


def row(architecture, claimed="exactly-once", observed="exactly-once", **more):
    none = dict.fromkeys(COLUMNS, 0) | {"recovery_ms": None, "p50_ms": None, "p99_ms": None, "records_per_second": None}
    return none | {"architecture": architecture, "claimed": claimed, "observed": observed} | more


def test_a_sentence_for_each_architecture_and_one_for_the_best():
    told = sentences(
        [
            row("reference"),
            row("snapshots", failures=1, records_again=1_200, recovery_ms=25.4, records_per_second=2e6, p99_ms=20.0),
            row("transactions", failures=2, recovery_ms=4.0, records_per_second=400.0, p99_ms=90.0),
            row("acks", "at-least-once", "at-least-once", doubled=1, too_high=8_156),
            row("at-most-once", "at-most-once", "at-most-once", lost=2, too_low=7),
            row("odd", "exactly-once", "none", lost=3, doubled=4),
        ]
    )
    assert told == [
        "snapshots: each result once. After a failure it read 1,200 records again, recovered in 25 ms.",
        "transactions: each result once. After 2 failures it read 0 records again, recovered in 4 ms.",
        "acks: 1 row doubled and counts too high by 8,156.",
        "at-most-once: 2 rows lost and counts too low by 7.",
        "odd: 3 rows lost and 4 rows doubled, although it claims exactly-once.",
        "Every result exactly once: snapshots and transactions; not acks, at-most-once and odd. The lowest latency: "
        "snapshots (20.0 ms p99). The shortest recovery: transactions (4.0 ms).",
    ]
    assert sentences([row("reference"), row("a", observed="none")])[-1].startswith("None of them has every result")


def test_what_was_compared_is_shown_at_the_end_and_saved(tmp_path):
    both = wb.compare(pipeline(rate=None), ["snapshots", "stop-the-world"])
    try:
        both.wait("60s")
        page = both.save(tmp_path / "compared.html").read_text()
        assert "<li>snapshots: each result once.</li>" in page
        assert "http" not in page
        assert both._repr_mimebundle_()["text/html"] in page
        assert repr(both) == "\n".join(both.verdicts)
        table = both.table()
        assert pa.ipc.open_file(both.save(tmp_path / "compared.arrow")).read_all().equals(table)
        assert parquet.read_table(both.save(tmp_path / "compared.parquet")).equals(table)
        with pytest.raises(SettingError, match=r"saved as '.*x.csv': end the name with .html, .arrow, .parquet"):
            both.save(tmp_path / "x.csv")
        with pytest.raises(SettingError, match=r"x.html' cannot be written: No such file or directory; name another"):
            both.save(tmp_path / "no" / "x.html")
    finally:
        both.cancel()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (0, "No price in any column: changelog and snapshots."),
        (7, "Only snapshots pays no price: guarantee exactly once; latency 7.0 ms, p99 20.0 ms; throughput 990/s"),
    ],
)
def test_what_is_shown_begins_with_who_pays_no_price(wrong, told):
    paid = {"failures": 1, "records": 1_000, "messages": 5, "p50_ms": 7.0, "p99_ms": 20.0, "records_per_second": 990.0}
    rows = [
        row("reference", **paid | {"records_per_second": 1_000.0}),
        row("changelog", "at-least-once", "at-least-once" if wrong else "exactly-once", **paid, doubled=wrong),
        row("snapshots", **paid),
    ]
    documents = documents_rows(rows, {name: name for name in ("changelog", "snapshots")}, slow=False)
    shown = verdicts_html(rows, documents)
    assert shown.startswith(f"<p style='font-size:115%'><b>{told}")
    assert ("✗</b> 2 prices" in shown) is bool(wrong)
    assert "<details open" not in shown
    assert "The fault slow-receiver tries flow control." in shown


def test_names_on_the_page_are_escaped():
    page = verdicts_page([row("reference"), row("<u>")], [], "<i>")
    assert "&lt;u&gt;: each result once." in page
    assert "<u>" not in page
    assert "<i>" not in page


def test_while_they_run_the_lanes_are_shown(compared):
    assert "claims" not in repr(compared)
    assert "compared-snapshots" in repr(compared)
    assert "each result" not in repr(compared)


def test_a_jobs_pipeline_runs_again_under_other_architectures():
    job = pipeline().run("again", parallelism=2, buffer_timeout="20ms", at_end="hold", fault_tolerance="acks")
    try:
        job.tune(buffer_timeout="5ms")
        compared = wb.compare(
            job, ["snapshots", "at-most-once"], faults="task-dies:at=1500", checkpoint_interval="50ms"
        )
        assert [lane.name for lane in compared.jobs.values()] == [
            "again-reference",
            "again-snapshots",
            "again-at-most-once",
        ]
        assert set(compared.wait("60s").values()) == {"FINISHED"}
        for lane in compared.jobs.values():
            shown = lane.status()
            assert (shown["parallelism"], shown["buffer_timeout"], shown["checkpoint_interval"]) == (2, "5ms", "50ms")
        assert compared.table()["observed"].to_pylist() == ["exactly-once", "exactly-once", "at-most-once"]
        assert not job.over
    finally:
        job.cancel()


def test_a_pipeline_that_writes_outside_does_not_run_a_second_time():
    job = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.CallbackSink(print)).run("outside")
    job.wait()
    with pytest.raises(JobError, match=r"the job 'outside' cannot run a second time: its sink .* use a Tab"):
        wb.compare(job, ["snapshots"])
    assert not [name for name in wb.jobs() if name.startswith("outside-")]
