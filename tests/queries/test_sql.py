"""Queries in SQL: rows worked out by hand, plans equal to those of method chains, and errors with line and caret."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest

import workbench as wb
from workbench.errors import QueryError

_TEN = "INTERVAL '10' SECOND"


def bids() -> wb.Stream:
    """Four bids on two auctions, at 0, 5, 11 and 12 seconds."""
    return wb.Stream.from_table(
        pa.table(
            {
                "auction": [1, 1, 2, 1],
                "bidder": [7, 8, 7, 7],
                "price": [10, 20, 30, 40],
                "ts": pa.array([0, 5_000_000, 11_000_000, 12_000_000], pa.timestamp("us")),
            }
        ),
        event_time="ts",
    )


def rows(query: str, **tables: wb.Stream | pa.Table) -> list[tuple[object, ...]]:
    stream = wb.sql(query, **(tables or {"bid": bids()}))
    return in_order(tuple(_seconds(value) for value in row.values()) for row in stream.collect().to_pylist())


def in_order(found: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Sorted, with nulls at the end."""
    return sorted(found, key=lambda row: [(value is None, value or 0) for value in row])


def _seconds(value: object) -> object:
    return value.second if isinstance(value, dt.datetime) else value


def plan(stream: wb.Stream) -> str:
    return str(stream.sink_to(wb.DiscardSink()).explain(2))


# rows -------------------------------------------------------------------------------------------------------------


def test_columns_are_chosen_and_computed() -> None:
    assert rows("SELECT auction, price * 2 AS double FROM bid WHERE price > 10 AND auction = 1") == [(1, 40), (1, 80)]


def test_names_are_found_in_any_case_and_behind_the_table() -> None:
    assert rows("SELECT b.PRICE, Bidder FROM BID AS b WHERE B.price = 30") == [(30, 7)]


def test_queries_nest_and_have_names() -> None:
    query = "WITH cheap AS (SELECT price AS p FROM bid WHERE price < 30), c2 (q) AS (SELECT p + 1 FROM cheap) "
    assert rows(query + "SELECT x.* FROM (SELECT * FROM c2) AS x") == [(11,), (21,)]


def test_union_all_takes_the_names_of_its_first_side() -> None:
    stream = wb.sql("SELECT auction AS id FROM bid UNION ALL SELECT CAST(bidder AS DOUBLE) FROM bid", bid=bids())
    assert stream.columns == ["id"]
    assert sorted(stream.collect()["id"].to_pylist()) == [1, 1, 1, 2, 7, 7, 7, 8]


def test_tumbling_windows_with_aggregates_of_all_kinds() -> None:
    query = f"""
        SELECT auction, window_end, COUNT(*) AS n, SUM(price) FILTER (WHERE bidder = 7) AS of_seven,
               AVG(price) + 1, MAX(price) - MIN(price)
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), {_TEN}))
        GROUP BY auction, window_start, window_end HAVING n > 0 AND MAX(price) >= 20"""
    assert rows(query) == [(1, 10, 2, 10, 16.0, 10), (1, 20, 1, 40, 41.0, 0), (2, 20, 1, 30, 31.0, 0)]


@pytest.mark.parametrize(
    "call",
    [
        "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
        "TUMBLE(bid, ts, INTERVAL '10 seconds')",
        "TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND)",
        "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '0' SECOND)) AS w",
    ],
)
def test_the_forms_of_a_window_table_function(call: str) -> None:
    query = f"SELECT window_start, COUNT(*) FROM {call} GROUP BY window_start, window_end"
    assert rows(query) == [(0, 2), (10, 2)]


def test_hopping_windows() -> None:
    query = f"SELECT window_end, COUNT(*) FROM HOP(bid, ts, INTERVAL '5' SECOND, {_TEN}) GROUP BY 1, window_start"
    assert rows(query) == [(5, 1), (10, 2), (15, 3), (20, 2)]


def test_cumulative_windows() -> None:
    query = f"""SELECT window_start, window_end, SUM(price) FROM CUMULATE(bid, ts, INTERVAL '5' SECOND, {_TEN})
        GROUP BY window_start, window_end"""
    assert rows(query) == [(0, 5, 10), (0, 10, 30), (10, 15, 70), (10, 20, 70)]


def test_sessions_of_a_key() -> None:
    query = f"""SELECT bidder, window_start, window_end, COUNT(*)
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), {_TEN}))
        GROUP BY bidder, window_start, window_end"""
    expected = [(7, 0, 10, 1), (7, 11, 22, 2), (8, 5, 15, 1)]
    assert rows(query) == expected
    old = f"SELECT bidder, SESSION_START(ts, {_TEN}), SESSION_END(ts, {_TEN}), COUNT(*) FROM bid"
    assert rows(f"{old} GROUP BY bidder, SESSION(ts, {_TEN})") == expected


def test_sessions_of_a_computed_key() -> None:
    expected = [(0, 5, 22, 3), (1, 0, 10, 1)]
    query = f"""SELECT {{0}} AS dear, window_start, window_end, COUNT(*)
        FROM TABLE(SESSION(TABLE bid PARTITION BY {{0}}, DESCRIPTOR(ts), {_TEN}))
        GROUP BY {{0}}, window_start, window_end"""
    assert rows(query.format("CASE WHEN price = 10 THEN 1 ELSE 0 END")) == expected
    old = f"SELECT CAST(price = 10 AS INT) AS k, SESSION_START(ts, {_TEN}), SESSION_END(ts, {_TEN}), COUNT(*) FROM bid"
    assert rows(f"{old} GROUP BY k, SESSION(ts, {_TEN})") == expected


def test_rows_with_windows_and_groups_of_them() -> None:
    rows_of_windows = f"SELECT price, window_start AS s, window_end AS e FROM TUMBLE(bid, ts, {_TEN})"
    assert rows(rows_of_windows) == [(10, 0, 10), (20, 0, 10), (30, 10, 20), (40, 10, 20)]
    assert rows(f"SELECT e, SUM(price) FROM ({rows_of_windows}) GROUP BY s, e") == [(10, 30), (20, 70)]


def test_groups_of_groups_of_a_window() -> None:
    inner = f"""SELECT auction, COUNT(*) AS n, window_start AS s, window_end AS e
        FROM HOP(bid, ts, INTERVAL '5' SECOND, {_TEN}) GROUP BY auction, window_start, window_end"""
    assert rows(f"SELECT e, MAX(n), COUNT(*) FROM ({inner}) GROUP BY s, e") == [
        (5, 1, 1),
        (10, 2, 1),
        (15, 2, 2),
        (20, 1, 2),
    ]


def test_an_interval_join() -> None:
    query = """SELECT a.price, b.price AS later FROM bid a {} JOIN bid b
        ON a.auction = b.auction AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL '7' SECOND"""
    assert rows(query.format("")) == [(10, 20), (20, 40)]
    assert rows(query.format("LEFT")) == [(10, 20), (20, 40), (30, None), (40, None)]


def test_conditions_of_where_bound_an_inner_join() -> None:
    query = """SELECT a.price, b.price AS other FROM bid a, bid b
        WHERE a.auction = b.auction AND a.ts - INTERVAL '5' SECOND = b.ts AND b.price < 100"""
    assert rows(query) == [(20, 10)]


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ("", [(10, 7, 20)]),
        ("LEFT", [(10, 7, 20), (20, 8, None), (30, None, None)]),
        ("RIGHT", [(10, 7, 20), (None, 9, 40)]),
        ("FULL", [(10, 7, 20), (20, 8, None), (30, None, None), (None, 9, 40)]),
    ],
)
def test_a_window_join(side: str, expected: list[tuple[object, ...]]) -> None:
    def made(keys: list[int | None], values: list[int]) -> wb.Stream:
        times = pa.array([at * 1_000_000 for at in range(len(keys))], pa.timestamp("us"))
        return wb.Stream.from_table(pa.table({"k": keys, "v": values, "ts": times}), event_time="ts")

    query = f"""SELECT l.v, COALESCE(l.k, r.k) AS k, r.v AS other FROM TUMBLE(l, ts, {_TEN}) AS l {side} JOIN
        TUMBLE(r, ts, {_TEN}) AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end"""
    got = rows(query, l=made([7, 8, None], [10, 20, 30]), r=made([9, 7], [40, 20]))
    assert got == in_order(expected)


def test_a_join_with_a_table() -> None:
    names = pa.table({"id": [7, 9], "name": ["ann", "bob"]})
    query = "SELECT price, name FROM bid {} JOIN person ON bid.bidder = person.id"
    assert rows(query.format(""), bid=bids(), person=names) == [(10, "ann"), (30, "ann"), (40, "ann")]
    assert rows(query.format("LEFT"), bid=bids(), person=names)[1] == (20, None)


def test_event_time_travels_through_a_query() -> None:
    later = wb.sql("SELECT ts AS at, price FROM bid WHERE price > 10", bid=bids())
    query = f"SELECT window_end, COUNT(*) FROM TUMBLE(later, at, {_TEN}) GROUP BY window_start, window_end"
    assert rows(query, later=later) == [(10, 1), (20, 2)]


def test_a_join_with_the_version_of_the_time() -> None:
    seconds = [0, 4, 6, 11, 12]
    rates = wb.Stream.from_table(
        pa.table(
            {
                "who": [7, 8, 8, 7, 9],
                "rate": [2, 3, 5, 4, 9],
                "since": pa.array([at * 1_000_000 for at in seconds], pa.timestamp("us")),
            }
        ),
        event_time="since",
    )
    query = "SELECT price, rate FROM bid {} JOIN rates FOR SYSTEM_TIME AS OF bid.ts ON bidder = who AND rate > 2"
    assert rows(query.format(""), bid=bids(), rates=rates) == [(20, 3), (30, 4), (40, 4)]
    left = query.replace(" AND rate > 2", "").format("LEFT")
    assert rows(left, bid=bids(), rates=rates) == [(10, 2), (20, 3), (30, 4), (40, 4)]
    shifted = left.replace("bidder =", "auction + 7 =")
    assert rows(shifted, bid=bids(), rates=rates) == [(10, None), (20, 3), (30, None), (40, 5)]
    windows = f"SELECT window_end, SUM(rate) FROM TUMBLE(r, ts, {_TEN}) GROUP BY window_start, window_end"
    both = f"WITH r AS (SELECT ts, rate FROM bid JOIN rates FOR SYSTEM_TIME AS OF ts ON bidder = who) {windows}"
    assert rows(both, bid=bids(), rates=rates) == [(10, 5), (20, 8)]  # pairs have the time of the left record


def test_bounds_that_come_from_the_record_limit_the_state() -> None:
    ads = bids().select(person="bidder", opens="ts", until="ts + INTERVAL 5 SECONDS")
    text = "SELECT price, person FROM {} WHERE bidder = person AND ts >= opens AND ts {} until"
    for names in ("bid, ads", "ads, bid"):
        for test, expected in (("<=", [(10, 7), (20, 8), (30, 7), (40, 7), (40, 7)]), ("<", None)):
            stream = wb.sql(text.format(names, test), bid=bids(), ads=ads)
            growing = stream.sink_to(wb.DiscardSink()).explain().growing
            assert growing == ({} if expected else {"join": "all records of both sides"})
            assert rows(text.format(names, test), bid=bids(), ads=ads) == (
                expected or [(10, 7), (20, 8), (30, 7), (40, 7), (40, 7)]
            )


_ALONE = [(10, None), (20, None), (30, None)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT auction, COUNT(*), SUM(price) FROM bid GROUP BY auction", [(1, 3, 70), (2, 1, 30)]),
        ("SELECT auction FROM bid GROUP BY auction HAVING COUNT(*) > 1", [(1,)]),
        ("SELECT COUNT(*), COUNT(DISTINCT bidder), MAX(price) - MIN(price) FROM bid", [(4, 2, 30)]),
        ("SELECT COUNT(DISTINCT bidder) FILTER (WHERE price < 20) FROM bid", [(1,)]),
        (
            "SELECT price, SUM(price) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two FROM bid",
            [(10, 10), (20, 30), (30, 50), (40, 70)],
        ),
        (
            "SELECT price, COUNT(*) OVER w5 AS n FROM (SELECT * FROM bid) AS b".replace(
                "w5", "(PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW)"
            ),
            [(10, 1), (20, 2), (30, 1), (40, 2)],
        ),
        (
            "SELECT price - MIN(price) OVER (PARTITION BY bidder ORDER BY ts) AS above FROM bid",
            [(0,), (0,), (20,), (30,)],
        ),
        (
            "SELECT price, SUM(n) OVER (ORDER BY price ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two, "
            "MAX(n) OVER (ORDER BY price ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS most "
            "FROM (SELECT MAX(price) AS price, COUNT(*) AS n FROM bid GROUP BY auction)",
            [(30, 1, 1), (40, 4, 3)],
        ),
        (
            "SELECT price, SUM(price) OVER w AS s, MAX(price) OVER v AS m FROM bid WINDOW W AS (PARTITION BY auction "
            "ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), v AS (w)",
            [(10, 10, 10), (20, 30, 20), (30, 30, 30), (40, 60, 40)],
        ),
        (
            "SELECT price, COUNT(*) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n "
            "FROM (SELECT price, ts, MIN(price) OVER w AS least FROM bid WINDOW w AS (ORDER BY ts)) "
            "WINDOW w AS (ORDER BY ts)",
            [(10, 1), (20, 2), (30, 2), (40, 2)],
        ),
        ("SELECT DISTINCT auction, bidder FROM bid", [(1, 7), (1, 8), (2, 7)]),
        ("SELECT auction FROM bid UNION SELECT bidder FROM bid", [(1,), (2,), (7,), (8,)]),
        ("SELECT n, COUNT(*) FROM (SELECT COUNT(*) AS n FROM bid GROUP BY auction) GROUP BY n", [(1, 1), (3, 1)]),
        (
            "SELECT * FROM (SELECT auction, price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS n "
            "FROM bid) WHERE n <= 2",
            [(1, 20, 2), (1, 40, 1), (2, 30, 1)],
        ),
        (
            "SELECT auction, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts DESC) AS n "
            "FROM bid) WHERE n = 1 AND price > 30",
            [(1, 40)],
        ),
        ("SELECT a.price, b.price AS half FROM bid a JOIN bid b ON a.price = b.price * 2", [(20, 10), (40, 20)]),
        ("SELECT a.price, b.ts FROM bid a LEFT JOIN bid b ON a.price = b.price * 4", [(40, 0), *_ALONE]),
        ("SELECT b.price FROM bid b LEFT SEMI JOIN bid c ON b.price = c.price * 2", [(20,), (40,)]),
        ("SELECT b.price FROM bid b LEFT ANTI JOIN bid c ON b.price = c.price * 2", [(10,), (30,)]),
        (
            "SELECT n, b.auction FROM (SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction) a "
            "RIGHT JOIN (SELECT DISTINCT auction FROM bid) b ON a.auction = b.auction AND n > 1",
            [(3, 1), (None, 2)],
        ),
        (
            "SELECT auction FROM (SELECT auction, ROW_NUMBER() OVER (ORDER BY n DESC) AS place FROM "
            "(SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction)) WHERE 1 >= place",
            [(1,)],
        ),
    ],
)
def test_results_that_later_rows_change(query: str, expected: list[tuple[object, ...]]) -> None:
    assert rows(query, bid=bids()) == in_order(expected)


_PEOPLE = pa.table({"id": [7, 9, None], "city": ["Rome", "Oslo", "Bern"], "limit": [20, 40, 60]})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("bidder IN (SELECT id FROM person)", [10, 30, 40]),
        ("bidder IN (SELECT id FROM person) AND price > 10", [30, 40]),
        ("bidder NOT IN (SELECT id FROM person)", []),  # one of them is null
        ("bidder NOT IN (SELECT id FROM person WHERE id IS NOT NULL)", [20]),
        ("NOT bidder IN (SELECT id FROM person WHERE city = 'Oslo')", [10, 20, 30, 40]),
        ("NULLIF(bidder, 8) NOT IN (SELECT id FROM person WHERE city = 'Oslo')", [10, 30, 40]),
        ("NULLIF(bidder, 8) NOT IN (SELECT id FROM person WHERE city = 'Paris')", [10, 20, 30, 40]),
        ("(bidder, price) IN (SELECT id, `limit` + 10 FROM person)", [30]),
        ("EXISTS (SELECT * FROM person AS p WHERE p.id = bid.bidder AND p.city LIKE 'R%')", [10, 30, 40]),
        ("NOT EXISTS (SELECT 1 FROM person WHERE id = bidder)", [20]),
        ("EXISTS (SELECT 1 FROM person WHERE city = 'Oslo')", [10, 20, 30, 40]),
        ("price IN (SELECT `limit` FROM person WHERE id = bidder OR 1 = 1)", None),
        ("price IN (SELECT `limit` FROM person WHERE person.id = bid.bidder - 1)", [20]),
        ("price NOT IN (SELECT `limit` FROM person WHERE person.id = bid.bidder - 1)", [10, 30, 40]),
        ("auction IN (SELECT auction FROM bid GROUP BY auction HAVING COUNT(*) > 2)", [10, 20, 40]),
    ],
)
def test_conditions_on_other_rows(condition: str, expected: list[int] | None) -> None:
    people = wb.Stream.from_table(_PEOPLE)
    query = f"SELECT price FROM bid WHERE {condition}"
    if expected is None:
        with pytest.raises(QueryError, match="only by equalities"):
            wb.sql(query, bid=bids(), person=people)
    else:
        assert rows(query, bid=bids(), person=people) == [(price,) for price in expected]


def test_a_script_names_views() -> None:
    script = """CREATE TEMPORARY VIEW cheap (p, at) AS SELECT price, ts FROM bid WHERE price < 30;
        CREATE OR REPLACE VIEW dear AS SELECT p FROM cheap WHERE p > 10;
        SELECT * FROM dear;"""
    assert rows(script) == [(20,)]


# plans ------------------------------------------------------------------------------------------------------------

_CHAINS: dict[str, tuple[str, Callable[[wb.Stream], wb.Stream]]] = {
    "select": (
        "SELECT auction, price * 2 AS p FROM bid WHERE price > 10",
        lambda bid: bid.filter("price > 10").select("auction", p="price * 2"),
    ),
    "all columns": (
        "SELECT * FROM bid WHERE price > 10 OR auction = 1",
        lambda b: b.filter("price > 10 OR auction = 1"),
    ),
    "window": (
        f"""SELECT auction, window_start, window_end, COUNT(*) AS n, AVG(price) AS mean
            FROM TUMBLE(bid, ts, {_TEN}) GROUP BY auction, window_start, window_end""",
        lambda bid: bid.key_by("auction").window(wb.tumbling("10s")).aggregate(n=wb.count(), mean=wb.mean("price")),
    ),
    "window of all": (
        f"SELECT window_start, window_end, SUM(price + 1) AS s FROM HOP(bid, ts, INTERVAL '5' SECOND, {_TEN}) "
        "GROUP BY window_start, window_end",
        lambda bid: bid.window(wb.sliding("10s", "5s")).aggregate(s=wb.sum(wb.expr("price + 1"))),
    ),
    "join": (
        "SELECT * FROM bid AS a JOIN other AS b ON a.bidder = b.person AND b.at BETWEEN a.ts - INTERVAL '5' MINUTE "
        "AND a.ts + INTERVAL '10' MINUTE".replace("SELECT *", "SELECT auction, bidder, price, ts, at"),
        lambda bid: bid.join(_other(bid), {"bidder": "person"}, between=("-5min", "10min")),
    ),
    "join latest": (
        "SELECT auction, bidder, price, ts, at FROM bid AS b JOIN other FOR SYSTEM_TIME AS OF b.ts AS r "
        "ON b.bidder = r.person",
        lambda bid: bid.join(_other(bid), {"bidder": "person"}, between="latest"),
    ),
    "join until": (
        "SELECT auction, person, price, a.ts, until, at FROM bid AS b JOIN ads AS a ON b.bidder = a.person WHERE "
        "b.ts BETWEEN a.ts AND a.until".replace("a.ts, until, at", "a.ts AS at, until"),
        lambda bid: (
            _ads(bid)
            .join(bid, {"person": "bidder"}, between=("0s", wb.col("until")))
            .select("auction", "person", "price", at="ts", until="until")
        ),
    ),
    "group": (
        "SELECT auction, COUNT(*) AS n, COUNT(DISTINCT bidder) AS bidders FROM bid GROUP BY auction",
        lambda bid: bid.group_by("auction").aggregate(n=wb.count(), bidders=wb.count_distinct("bidder")),
    ),
    "distinct": ("SELECT DISTINCT auction FROM bid", lambda bid: bid.select("auction").distinct("auction")),
    "top": (
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid) "
        "WHERE place <= 3",
        lambda bid: bid.key_by("auction").top_n(3, "price", rank="place"),
    ),
    "semi join": (
        "SELECT * FROM bid WHERE bidder IN (SELECT person FROM other)",
        lambda bid: bid.join(_other(bid).select("person").distinct("person"), {"bidder": "person"}, how="semi"),
    ),
    "session": (
        f"""SELECT bidder, window_start, window_end, MIN(price) AS least
            FROM SESSION(TABLE bid PARTITION BY bidder, ts, {_TEN}) GROUP BY bidder, window_start, window_end""",
        lambda bid: bid.key_by("bidder").window(wb.session("10s")).aggregate(least=wb.min("price")),
    ),
    "some of a group": (
        "SELECT auction, SUM(price) FILTER (WHERE bidder = 7) AS s FROM bid GROUP BY auction HAVING SUM(price) "
        "FILTER (WHERE bidder = 7) > 5",
        lambda bid: bid.group_by("auction").aggregate(s=wb.sum("price").where("bidder = 7")).filter("s > 5"),
    ),
    "last row": (
        "SELECT auction, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts DESC) AS n "
        "FROM bid) WHERE n = 1",
        lambda bid: bid.key_by("auction").top_n(1, "ts").select("auction", "price", "ts"),
    ),
    "running": (
        "SELECT *, AVG(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS m "
        "FROM bid",
        lambda bid: bid.over(["auction"], "rows", 2, {"m": wb.mean("price")}).select(*bid.columns, "m"),
    ),
    "groups of groups": (  # as Nexmark's q4
        "SELECT person, AVG(most) AS mean FROM (SELECT person, at, MAX(price) AS most FROM (SELECT person, price, a.ts "
        "AS at FROM bid AS b JOIN ads AS a ON b.bidder = a.person WHERE b.ts BETWEEN a.ts AND a.until) AS w "
        "WHERE price > 1 GROUP BY person, at) AS q GROUP BY person",
        lambda bid: (
            _ads(bid)
            .join(bid, {"person": "bidder"}, between=("0s", wb.col("until")))
            .select("person", "price", at="ts")
            .filter("price > 1")
            .group_by("person", "at")
            .aggregate(most=wb.max("price"))
            .group_by("person")
            .aggregate(mean=wb.mean("most"))
        ),
    ),
    "union": ("SELECT * FROM bid UNION ALL SELECT * FROM bid", lambda bid: bid.union(bid)),
}


def _ads(bid: wb.Stream) -> wb.Stream:
    return bid.select(person="bidder", ts="ts", until="ts + INTERVAL 5 SECONDS")


def _other(bid: wb.Stream) -> wb.Stream:
    return bid.select(person="bidder", at="ts")


@pytest.mark.parametrize("name", _CHAINS)
def test_a_query_has_the_plan_of_its_method_chain(name: str) -> None:
    query, chain = _CHAINS[name]
    bid = bids()
    assert plan(wb.sql(query, bid=bid, other=_other(bid), ads=_ads(bid))) == plan(chain(bid))


# errors -----------------------------------------------------------------------------------------------------------

_ERRORS = [
    ("SELECT prise FROM bid", "prise", "unknown column 'prise': did you mean 'price'?"),
    ("SELECT price\nFROM bidd", "bidd", "unknown table 'bidd': did you mean 'bid'?"),
    ("SELECT c.price FROM bid AS b", "c.price", "unknown table 'c'"),
    ("SELECT 1 AS a FROM bid WHERE price IN (SELECT price FROM bid) OR price = 1", "price IN", "alone or connected by"),
    ("SELECT 1 AS a FROM bid WHERE price IN (SELECT price, ts FROM bid)", "price IN", "1 values with 2 columns"),
    (
        "SELECT 1 AS a FROM bid WHERE EXISTS (SELECT COUNT(*) FROM bid)",
        "COUNT(*)",
        "an aggregate in a correlated subquery",
    ),
    ("SELECT 1 AS a FROM bid WHERE price > (SELECT MAX(price) FROM bid)", "MAX(price)", "join with it in FROM"),
    ("SELECT lenght(price) FROM bid", "lenght(price", "unknown function 'lenght': did you mean 'length'?"),
    (
        "SELECT auction, SUMM(price) AS n FROM bid GROUP BY auction",
        "SUMM(price",
        "unknown function 'summ': did you mean 'sum'?",
    ),
    ("SELECT SUM(price) FILTER (WHERE auction) FROM bid", "auction", "the condition has the type bigint"),
    ("SELECT price FROM bid a, bid b WHERE a.auction = b.auction AND a.ts = b.ts", "price", "a.price or b.price"),
    ("SELECT price > 'x' FROM bid", "price > 'x'", "cannot compare price (bigint) and 'x' (string)"),
    ("SELECT ts FROM bid WHERE price", "price", "the condition has the type bigint: compare it with a value"),
    ("SELECT MAX(ts) AS t FROM bid GROUP BY price HAVING price", "price", "the condition has the type bigint"),
    ("SELECT a.ts FROM bid a JOIN bid b ON a.ts = b.ts AND b.price", "b.price", "compare it with a value"),
    (f"SELECT * FROM TUMBLE(bid, price, {_TEN})", "price", "'price' is not the event time of these rows: use ts"),
    ("SELECT FROM bid", "bid", "SELECT has no columns: name them, or write SELECT *"),
    (f"SELECT * FROM HOP(bid, ts, {_TEN}, INTERVAL '5' SECOND)", "HOP(bid", "rows between the windows would be lost"),
    ("SELECT COUNT(*) FROM bid GROUP BY SPLIT('a', 'b')", "SPLIT(", "has type list<"),
    ("SELECT * FROM TUMBLE(bid, ts)", "TUMBLE(bid, ts", "TUMBLE lacks SIZE"),
    ("SELECT * FROM TUMBLE(bid, ts, 10)", "10", "10 is not an interval"),
    ("SELECT * FROM TUMBLE(bid, ts, INTERVAL '1' MONTH)", "'1'", "is not a fixed duration"),
    (f"SELECT * FROM CUMULATE(bid, ts, INTERVAL '3' SECOND, {_TEN})", "CUMULATE", "a multiple of the step, 3s"),
    (
        f"SELECT price FROM TUMBLE(bid, ts, {_TEN}) GROUP BY window_start, window_end",
        "price",
        "neither in GROUP BY nor in an aggregate",
    ),
    (f"SELECT COUNT(*) FROM TUMBLE(bid, ts, {_TEN}) GROUP BY auction", "auction", "add window_start, window_end"),
    (
        f"SELECT COUNT(*) FROM SESSION(TABLE bid, ts, {_TEN}) GROUP BY auction, window_start, window_end",
        "SESSION",
        "write PARTITION BY auction after the table",
    ),
    (
        f"SELECT SUM(auction = 1) FROM TUMBLE(bid, ts, {_TEN}) GROUP BY window_start, window_end",
        "SUM(auction = 1",
        "must contain integers, floats",
    ),
    ("SELECT a.ts FROM bid a JOIN bid b ON a.ts < b.ts AND a.ts > b.ts AND a.price = b.price", "bid b", "no pair"),
    ("SELECT a.ts FROM bid a JOIN bid b ON a.ts < b.ts", "bid b", "an equality between both sides"),
    (
        "SELECT a.ts FROM bid a LEFT JOIN bid b ON a.ts = b.ts AND a.price > 3",
        "a.price > 3",
        "a left join has only equalities between both sides in ON, and a.price > 3 is none: a filter after the join "
        "gives another result, because a record that fails the condition is kept",
    ),
    (
        "SELECT a.ts FROM bid a LEFT SEMI JOIN bid b ON a.ts = b.ts AND a.price < b.price",
        "a.price < b.price",
        "a semi join has only equalities between both sides in ON, and a.price < b.price is none: a filter after the "
        "join gives another result",
    ),
    ("SELECT price FROM bid ORDER BY price", "price", "ORDER BY is not supported"),
    ("SELECT price FROM bid LIMIT 3", "3", "use .collect(10)"),
    ("SELECT price FROM bid UNION ALL SELECT price, ts FROM bid", None, "have 1 and 2 columns"),
    ("SELECT ROW_NUMBER() OVER (ORDER BY ts) FROM bid", "ROW_NUMBER() OVER (ORDER BY ts", "add AS row_number"),
    ("SELECT ts FROM (SELECT ts, ROW_NUMBER() OVER (ORDER BY ts) AS n FROM bid)", "ROW_NUMBER", "add WHERE n <= 10"),
    (
        "SELECT ts FROM (SELECT ts, ROW_NUMBER() OVER (ORDER BY ts) AS n FROM bid) WHERE n = 2",
        "n = 2",
        "write n <= 2, and filter again",
    ),
    (
        "SELECT SUM(price) OVER (ORDER BY price) FROM bid",
        "price",
        "'price' is not the event time of these rows: use ts",
    ),
    ("SELECT SUM(price) OVER (PARTITION BY auction) FROM bid", "SUM(price", "OVER needs ORDER BY"),
    (
        "SELECT SUM(price) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM bid",
        "SUM(price",
        "ROWS BETWEEN 10 PRECEDING AND CURRENT ROW",
    ),
    ("SELECT RANK() OVER (ORDER BY price DESC) FROM bid", "RANK(", "RANK is not supported with OVER: use ROW_NUMBER()"),
    (
        "SELECT LAG(price) OVER (ORDER BY ts) FROM bid",
        "LAG(price",
        "LAG is not supported with OVER: use MATCH_RECOGNIZE",
    ),
    (
        "SELECT SUM(price) OVER v FROM bid WINDOW w AS (ORDER BY ts)",
        "v",
        "unknown window 'v': Valid: w; define it with",
    ),
    ("WITH a AS (SELECT ts FROM bid), a AS (SELECT ts FROM bid) SELECT * FROM a", "a", "two queries of WITH are named"),
    (
        "SELECT price FROM bid QUALIFY ROW_NUMBER() OVER (ORDER BY ts) = 1",
        None,
        "QUALIFY is not supported: write SELECT",
    ),
    ("SELECT auction FROM bid GROUP BY\n  ALL", "GROUP BY", "GROUP BY ALL is not supported"),
    ("SELECT CURRENT_TIMESTAMP AS t FROM bid", "CURRENT_TIMESTAMP", "use the event time, or PROCTIME()"),
    (
        "SELECT SUM(price) OVER (ORDER BY ts), MIN(price) OVER (PARTITION BY auction ORDER BY ts) FROM bid",
        "MIN(price",
        "a different window than the aggregate before it",
    ),
    ("SELECT array_agg(price) FROM bid", "array_agg(price", "array_agg is not supported: the aggregates are avg"),
    ("SELECT SUM(DISTINCT price) FROM bid", "SUM(DISTINCT price", "aggregate SELECT DISTINCT in FROM"),
    (
        f"SELECT n FROM TUMBLE((SELECT MAX(price) AS n FROM bid), n, {_TEN})",
        None,
        "its rows replace earlier ones",
    ),
    ("SELECT price FROM bid EXCEPT SELECT price FROM bid", None, "write a SELECT or UNION ALL"),
    ("SELECT price FROM bid WHERE MAX(price) > 3", "MAX(price", "is an aggregate"),
    ("SELECT price AS a, ts AS a FROM bid", "ts", "two columns are named 'a'"),
    ("SELECT price FROM bid WHERE\n  price >", ">", "the query is incomplete at '>'"),
    ("SELECT 'open FROM bid", None, "a quote that is not closed"),
    ("", None, "the query is empty"),
    ("CREATE FUNCTION f AS 'x'", None, "is not supported"),
    ("INSERT INTO t SELECT price FROM bid", "t", "unknown table 't'"),
    ("SELECT price FROM bid EMIT CHANGES", None, "of this query is final"),
    ("SELECT COUNT(*) FROM bid EMIT FINAL", None, "these results never become final"),
    (
        "SELECT a.ts FROM bid a JOIN bid FOR SYSTEM_TIME AS OF a.price AS b ON a.price = b.price",
        "a.price",
        "a.price is not the event time of the left rows: use ts",
    ),
    (
        "SELECT SUM(n) OVER (ORDER BY n) AS s FROM (SELECT COUNT(*) AS n FROM bid GROUP BY auction)",
        "SUM(n)",
        "so its frames count rows: write ROWS BETWEEN 10 PRECEDING",
    ),
    ("SELECT ts FROM bid FOR SYSTEM_TIME AS OF bid.ts", None, "belongs after the table of a JOIN"),
    ("SELECT a.ts FROM bid a FULL JOIN bid FOR SYSTEM_TIME AS OF a.ts AS b ON a.price = b.price", None, "not 'outer'"),
    ("EXPLAIN SELECT price FROM bid", None, "EXPLAIN has no effect here"),
    ("CREATE TEMPORARY VIEW v AS SELECT price FROM bid", None, "the script has no query"),
    ("DROP TABLE bid", None, "is not supported: write a SELECT"),
    ("SELECT 1", None, "the query has no FROM"),
    ("SELECT * FROM bid; SELECT 1", None, "a second query starts here"),
]


@pytest.mark.parametrize(("query", "marked", "message"), _ERRORS)
def test_an_error_names_the_place_and_the_fix(query: str, marked: str | None, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        wb.sql(query, bid=bids())
    error = raised.value
    assert message in error.message
    assert error.origin is not None
    if marked is None:
        return
    line, caret = (text[4:] for text in error.excerpt.split("\n"))
    piece, first = line.strip("…"), caret.index("^")
    number, whole = next((n, each) for n, each in enumerate(query.split("\n"), 1) if piece in each)
    assert line[first : first + len(caret) - first].startswith(marked[: len(caret) - first])
    column = whole.index(piece) - line.startswith("…") + first + 1
    assert f"line {number}, column {column}: " in error.message


def test_a_table_alone_is_no_stream() -> None:
    with pytest.raises(QueryError, match=r"convert it with wb\.Stream\.from_table"):
        wb.sql("SELECT * FROM t", t=pa.table({"a": [1]}))
    with pytest.raises(QueryError, match="t is 3: pass a stream"):
        wb.sql("SELECT * FROM t", t=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("terms", [0, 3, 60])
@pytest.mark.parametrize("more", ["", ", price" * 20])
def test_a_long_line_is_cut_around_the_place(terms: int, more: str) -> None:
    """A notebook beside a docked dashboard wraps lines of more than some 70 characters, and a caret with them."""
    query = f"SELECT {'price + ' * terms}prise{more} FROM bid"
    with pytest.raises(QueryError) as raised:
        wb.sql(query, bid=bids())
    line, caret = raised.value.excerpt.split("\n")
    assert max(len(line), len(caret)) <= 64
    first = caret.index("^")
    assert line[first : len(caret)] == "prise"
    piece = line[4:].strip("…")
    assert piece in query
    assert line[4:].startswith("…") != query.startswith(piece)
    assert line.endswith("…") != query.endswith(piece)
