"""Groups, top rows and distinct rows whose results change: changes, tables, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pattern_runs import Collected
from rescaled import rescaled

import workbench as wb
from workbench.api.streams.changelogs import upsert_key
from workbench.elements import Records
from workbench.errors import PlanError, SettingError
from workbench.operators.changelogs.join import RegularJoin
from workbench.operators.changelogs.row_kinds import DELETE, FIELD, INSERT, KIND, NAMES
from workbench.operators.contract.base import OperatorContext
from workbench.operators.joins.columns import JoinColumns


def sales(rate: float | None = None) -> wb.Stream:
    table = pa.table(
        {
            "item": ["a", "b", "a", "a", "b", "c"],
            "price": pa.array([5, 9, 7, None, 9, 1], pa.int64()),
            "day": ["mo", "mo", "tu", "tu", "tu", "mo"],
        }
    )
    return wb.Stream.from_table(table, rate=rate)


def rows(stream: wb.Stream, parallelism: int = 2) -> list[tuple[Any, ...]]:
    job = stream.sink_to(wb.TableSink("rows")).run("rows", parallelism=parallelism)
    assert job.wait("60s") == "FINISHED"
    return sorted((tuple(row.values()) for row in job.table("rows").to_pylist()), key=repr)


def changes(stream: wb.Stream) -> list[tuple[Any, ...]]:
    """Each change of single records, as its kind and its values."""
    seen: list[tuple[Any, ...]] = []

    def note(batch: pa.RecordBatch) -> None:
        seen.extend((NAMES[row.pop(KIND)], *row.values()) for row in batch.to_pylist())

    job = stream.sink_to(wb.CallbackSink(note)).run("changes", buffer_size=1)
    assert job.wait("60s") == "FINISHED"
    return seen


def test_a_group_is_replaced_with_each_record() -> None:
    assert changes(sales().group_by("item").aggregate(n=wb.count(), total=wb.sum("price"))) == [
        ("+I", "a", 1, 5),
        ("+I", "b", 1, 9),
        ("-U", "a", 1, 5),
        ("+U", "a", 2, 12),
        ("-U", "a", 2, 12),
        ("+U", "a", 3, 12),
        ("-U", "b", 1, 9),
        ("+U", "b", 2, 18),
        ("+I", "c", 1, 1),
    ]


def test_a_batch_changes_a_group_at_most_once() -> None:
    seen: list[int] = []
    totals = sales().group_by("item").aggregate(n=wb.count())
    job = totals.sink_to(wb.CallbackSink(lambda batch: seen.extend(batch[KIND].to_pylist()))).run("folded")
    assert job.wait("60s") == "FINISHED"
    assert seen == [0, 0, 0]


def test_groups_of_groups_take_back_what_has_changed() -> None:
    sizes = sales().group_by("item").aggregate(n=wb.count(), most=wb.max("price"))
    by_size = sizes.group_by("n").aggregate(items=wb.count(), most=wb.max("most"), least=wb.min("item"))
    assert rows(by_size) == [(1, 1, 1, "c"), (2, 1, 9, "b"), (3, 1, 7, "a")]
    assert changes(by_size)[:4] == [
        ("+I", 1, 1, 5, "a"),
        ("-U", 1, 1, 5, "a"),
        ("+U", 1, 2, 9, "a"),
        ("-U", 1, 2, 9, "a"),
    ]


def test_aggregates_of_some_records_and_of_different_values() -> None:
    totals = (
        sales()
        .group_by("day")
        .aggregate(
            all=wb.count_distinct("price"),
            dear=wb.sum("price").where("price > 5"),
            few=wb.count().where(wb.col("price") < 6),
            items=wb.count_distinct("item").where("price IS NOT NULL"),
            last=wb.max("item"),
            sold=wb.count_distinct("item").where("price > 5"),
            cheap=wb.max("item").where("price < 6"),
        )
    )
    assert rows(totals) == [("mo", 3, 9, 2, 3, "c", 1, "c"), ("tu", 2, 16, 0, 2, "b", 2, None)]


def test_windows_count_different_values_and_take_extremes_of_text() -> None:
    seconds = pa.array([at * 1_000_000 for at in range(4)], pa.timestamp("us"))
    clicks = wb.Stream.from_table(pa.table({"user": ["b", "a", "b", None], "t": seconds}), event_time="t")
    of = clicks.window(wb.tumbling("3s"))
    counted = of.aggregate(users=wb.count_distinct("user"), first=wb.min("user"), last=wb.max("user"))
    assert rows(counted.select("users", "first", "last")) == [(0, None, None), (2, "a", "b")]


def test_all_records_are_one_group_without_keys() -> None:
    assert rows(sales().group_by().aggregate(n=wb.count(), m=wb.mean("price"))) == [(6, 6.2)]


def test_the_last_and_the_first_record_of_each_key() -> None:
    assert changes(sales().key_by("item").latest_by("price")) == [
        ("+I", "a", 5, "mo"),
        ("+I", "b", 9, "mo"),
        ("-U", "a", 5, "mo"),
        ("+U", "a", 7, "tu"),
        ("-U", "b", 9, "mo"),
        ("+U", "b", 9, "tu"),
        ("+I", "c", 1, "mo"),
    ]
    assert rows(sales().key_by("item").latest_by(), 1) == [("a", None, "tu"), ("b", 9, "tu"), ("c", 1, "mo")]
    first = sales().key_by("item").earliest_by()
    assert KIND not in first.columns
    assert rows(first, 1) == [("a", 5, "mo"), ("b", 9, "mo"), ("c", 1, "mo")]
    assert rows(sales().key_by("item").earliest_by("price"))[0] == ("a", None, "tu")


def test_the_top_rows_with_and_without_their_places() -> None:
    assert rows(sales().key_by("day").top_n(2, "price", rank="place").select("day", "item", "place")) == [
        ("mo", "a", 2),
        ("mo", "b", 1),
        ("tu", "a", 2),
        ("tu", "b", 1),
    ]
    assert changes(sales().filter("day = 'mo'").key_by("day").top_n(1, "price")) == [
        ("+I", "a", 5, "mo"),
        ("-U", "a", 5, "mo"),
        ("+U", "b", 9, "mo"),
    ]
    by_text = sales().key_by("day").top_n(1, "item", "price", descending=[False, True])
    assert rows(by_text) == [("a", 5, "mo"), ("a", 7, "tu")]


def test_the_next_row_follows_one_that_is_taken_back() -> None:
    counts = sales().group_by("day", "item").aggregate(n=wb.count())
    sizes = counts.group_by("n").aggregate(groups=wb.count())  # 3 groups of 1 at first, then fewer
    assert rows(sizes) == [(1, 4), (2, 1)]
    assert rows(sizes.select(g="groups").key_by("g").top_n(1, "g")) == [(1,), (4,)]


def test_distinct_rows_come_once_and_are_no_changelog() -> None:
    days = sales().distinct("day")
    assert KIND not in days.columns
    assert sorted(days.collect()["day"].to_pylist()) == ["mo", "tu"]
    assert rows(sales().group_by("item").aggregate(n=wb.count()).distinct("n")) == [(1,), (2,), (3,)]


def test_a_changelog_is_filtered_selected_and_united() -> None:
    sizes = sales().group_by("item").aggregate(n=wb.count())
    assert rows(sizes.filter("n = 1")) == [("c", 1)]
    assert rows(sizes.select(even="n % 2 = 0")) == [(False,), (False,), (True,)]
    assert rows(sizes.union(sales().select("item", n=wb.lit(0).cast("bigint")).filter("item = 'c'"))) == [
        ("a", 3),
        ("b", 2),
        ("c", 0),
        ("c", 1),
    ]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda s: s.map(lambda row: row), "map cannot follow a changelog"),
        (lambda s: s.key_by("item").window(wb.windows.count_tumbling(2)).aggregate(n=wb.count()), "aggregate cannot"),
        (lambda s: s.sink_to(wb.ParquetSink("out")), "'out' only adds rows"),
        (lambda s: s.sink_to(wb.TableSink("t", upsert_key="n")), "the changelog is identified by item: use that key"),
        (lambda s: s.select("n").sink_to(wb.TableSink("t", upsert_key="n")), "no columns that identify a row"),
    ],
)
def test_what_takes_changes_for_records_is_refused(made: Callable[[wb.Stream], object], message: str) -> None:
    with pytest.raises(PlanError, match=message) as raised:
        made(sales().group_by("item").aggregate(n=wb.count()))
    assert raised.value.origin is not None


def test_wrong_arguments() -> None:
    with pytest.raises(PlanError, match="needs an order"):
        sales().key_by("item").top_n(2)
    with pytest.raises(PlanError, match="did you mean 'price'"):
        sales().key_by("item").latest_by("prise")
    with pytest.raises(PlanError, match="descending has 1 values for 2 columns"):
        sales().key_by("item").top_n(2, "price", "day", descending=[True])
    with pytest.raises(SettingError, match="n is 0"):
        sales().key_by("item").top_n(0, "price")
    with pytest.raises(PlanError, match="needs a window"):
        sales().group_by("item").aggregate(middle=wb.median("price"))
    with pytest.raises(PlanError, match="another name for the place"):
        sales().key_by("item").top_n(2, "price", rank="day")


def test_a_plan_says_which_state_grows_for_ever() -> None:
    sizes = sales().group_by("item").aggregate(n=wb.count())
    plan = sizes.join(sales().distinct("item", "day"), "item").sink_to(wb.DiscardSink()).explain()
    assert plan.growing == {
        "group": "the aggregates of each item",
        "group-2": "a row of each item, day",
        "join": "all records of both sides",
    }
    assert (
        "join keeps all records of both sides for ever: a window, bounds on event time, or state_ttl('1d') would"
        in repr(plan)
    )
    assert sales().group_by().aggregate(n=wb.count()).sink_to(wb.DiscardSink()).explain().growing == {}


def test_an_inner_join_is_identified_by_the_keys_of_its_sides() -> None:
    sizes = sales().group_by("item").aggregate(n=wb.count())
    highest = sales().group_by("item").aggregate(price=wb.max("price"))
    of_days = sales().group_by("item", "day").aggregate(n=wb.count())

    def key(stream: wb.Stream) -> tuple[str, ...] | None:
        return upsert_key(stream._end)

    assert key(sizes.join(highest, "item")) == ("item",)
    assert key(of_days.join(sizes, "item")) == ("item", "day")
    assert key(sizes.join(of_days, "item").select(d="day", i="item", n="n_right")) == ("i", "d")
    assert key(of_days.join(of_days, "item")) == ("item", "day", "day_right")
    assert key(of_days.join(of_days, "n")) == ("n", "item", "day", "item_right", "day_right")
    assert key(sizes.join(highest, {"n": "price"})) == ("n", "item", "item_right")
    assert key(sizes.join(sales(), "item")) is None
    assert key(of_days.join(sizes, "item", how="left")) == ("item", "day")
    assert key(of_days.join(sizes, {"n": "n"}, how="left")) is None  # a record may have several partners
    assert key(sizes.join(of_days, "item", how="left")) is None
    assert key(sizes.join(highest, "item", how="outer")) is None  # records with null as the key stay apart
    job = of_days.join(highest, "item").sink_to(wb.TableSink("kept", upsert_key=["item", "day"])).run("kept")
    assert job.wait("60s") == "FINISHED"
    kept = sorted(tuple(row.values()) for row in job.table("kept").to_pylist())
    assert kept == [("a", "mo", 1, 7), ("a", "tu", 2, 7), ("b", "mo", 1, 9), ("b", "tu", 1, 9), ("c", "mo", 1, 1)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_table_by_key_has_the_rows_of_a_left_join(parallelism: int) -> None:
    random = Random(1)
    items = [random.choice("abcdefgh") for _ in range(400)]
    days = [random.choice(["mo", "tu"]) for _ in items]
    rows = wb.Stream.from_table(pa.table({"item": items, "day": days, "n": list(range(400))}), rate=None)
    many, few = ("item", "day"), ("item",)
    of_days = rows.filter("n % 3 = 0").group_by(*many).aggregate(n=wb.count()).filter("n % 3 <> 1")
    sizes = rows.filter("n % 3 > 0").group_by(*few).aggregate(m=wb.count()).filter("m % 2 = 0")
    joined = of_days.join(sizes, "item", how="left")
    assert upsert_key(joined._end) == many
    sink = wb.TableSink("kept", upsert_key=many)
    job = joined.select(*many, "n", "m").sink_to(sink).run("kept", parallelism=parallelism, buffer_size=7)
    assert job.wait("60s") == "FINISHED"
    left = {key: n for key, n in Counter(zip(items[::3], days[::3], strict=True)).items() if n % 3 != 1}
    right = {item: m for item, m in Counter(one for at, one in enumerate(items) if at % 3).items() if m % 2 == 0}
    expected = sorted((item, day, n, right.get(item)) for (item, day), n in left.items())
    assert sorted(tuple(row.values()) for row in job.table("kept").to_pylist()) == expected
    assert {m is None for *_, m in expected} == {True, False}


def test_a_partner_that_comes_and_goes_at_once_leaves_the_record_alone() -> None:
    left = pa.schema({"k": pa.int64(), "n": pa.int64()}).append(FIELD)
    right = pa.schema({"k": pa.int64(), "m": pa.int64()}).append(FIELD)
    spec = RegularJoin(JoinColumns(("k",), ("k",), how="left"))
    join, out = spec.create([left, right]), Collected()
    join.open(OperatorContext())
    alone, pair = [[1], [10], [INSERT]], [[1, 1], [5, 5], [INSERT, DELETE]]
    for port, schema, columns in ((0, left, alone), (1, right, pair)):
        join.process(Records(pa.record_batch(columns, schema=schema), np.zeros(len(columns[0]), np.int64)), port, out)
    told = [(row["n"], row["m"], NAMES[row[KIND]]) for row in out.rows[""]]
    assert told == [(10, None, "+I"), (10, None, "-D"), (10, 5, "+I"), (10, 5, "-D"), (10, None, "+I")]


def test_every_kind_of_state_that_grows_for_ever_is_told() -> None:
    keyed, pair = sales().key_by("item"), wb.pattern("a").next("b")
    sums = {"total": wb.sum("price")}
    count = wb.windows.count_tumbling(3)
    kept = {
        "the aggregates of each item": keyed.aggregate(n=wb.count()),
        "a record of each item": keyed.reduce(lambda one, other: other),
        "a window of each item": keyed.window(count).aggregate(n=wb.count()),
        "up to 2 rows of each item": keyed.top_n(2, "price"),
        "the partial matches of each item": keyed.match(pair, n="COUNT(*)"),
        "all rows of each item": sales().over(["item"], "range", None, sums),
        "the last 5 rows of each item": sales().over(["item"], "rows", 5, sums),
        "all rows": sales().group_by("item").aggregate(price=wb.max("price")).over([], "rows", 5, sums, order="price"),
        "all records of both sides": sales().join(sales(), "item"),
    }
    for told, stream in kept.items():
        plan = stream.sink_to(wb.DiscardSink()).explain()
        assert told in plan.growing.values(), plan
        assert f"{told} for ever: " in repr(plan)
    bounded = (
        keyed.window(wb.tumbling("1h")).aggregate(n=wb.count()),
        keyed.match(pair.within("1h"), n="COUNT(*)"),
        sales().over(["item"], "range", "1h", sums),
        sales().join(sales(), "item", between=("-1h", "1h")),
        sales().window(wb.windows.count_tumbling(3)).aggregate(n=wb.count()),
        keyed.top_n(2, "price").state_ttl("1d"),
    )
    for stream in bounded:
        assert stream.sink_to(wb.DiscardSink()).explain().growing == {}


def test_groups_continue_at_another_parallelism() -> None:
    table = pa.table({"k": [at % 17 for at in range(400)], "v": [at * 7 % 23 for at in range(400)]})
    stream = wb.Stream.from_table(table, rate=40)
    counts = stream.group_by("k", "v").aggregate(n=wb.count())
    sinks = {
        "sizes": counts.group_by("k").aggregate(
            n=wb.sum("n"),
            different=wb.count_distinct("v"),
            most=wb.max("n"),
            repeated=wb.count_distinct("v").where("n > 1"),
        ),
        "top": counts.key_by("k").top_n(2, "v", rank="place"),
        "last": stream.key_by("k").latest_by("v"),
        "once": stream.distinct("v"),
    }
    first, *others = (made.sink_to(wb.TableSink(name)) for name, made in sinks.items())
    pipeline = first
    for other in others:
        pipeline += other
    job = rescaled(pipeline, "rescaled")
    pairs = Counter(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))
    values = {k: sorted((v for key, v in pairs if key == k), reverse=True) for k in range(17)}
    sizes = {k: [pairs[k, v] for v in of] for k, of in values.items()}
    assert {row.pop("k"): tuple(row.values()) for row in job.table("sizes").to_pylist()} == {
        k: (sum(of), len(of), max(of), sum(n > 1 for n in of)) for k, of in sizes.items()
    }
    assert sorted((row["k"], row["place"], row["v"]) for row in job.table("top").to_pylist()) == [
        (k, place, v) for k, of in values.items() for place, v in enumerate(of[:2], start=1)
    ]
    assert {row["k"]: row["v"] for row in job.table("last").to_pylist()} == {k: of[0] for k, of in values.items()}
    assert sorted(job.table("once")["v"].to_pylist()) == list(range(23))
