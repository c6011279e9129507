"""Right and wrong answers to the exercises of lesson 12."""

import pyarrow as pa

import workbench as wb
from workbench import col

DUE = "CASE WHEN member THEN 0 ELSE cents END"


def report(window=None, key="station", kept="seconds >= 60", due=DUE, trips=None, paid=None, **how):
    def answer(stream):
        windows = stream.filter(kept).with_columns(due=due).key_by(key).window(window or wb.tumbling("10min"), **how)
        return windows.aggregate(trips=trips or wb.count(), paid=paid or wb.sum("due"))

    return answer


def by_function(stream):
    """The right rows, by a Python function for each record."""
    schema = stream.schema.append(pa.field("due", pa.int64()))
    kept = stream.filter("seconds >= 60").map(
        lambda trip: {**trip, "due": 0 if trip["member"] else trip["cents"]}, schema
    )
    return kept.key_by("station").window(wb.tumbling("10min")).aggregate(trips=wb.count(), paid=wb.sum("due"))


def filtered_by_function(stream):
    kept = stream.filter(lambda trip: trip["seconds"] >= 60).with_columns(due=DUE)
    return kept.key_by("station").window(wb.tumbling("10min")).aggregate(trips=wb.count(), paid=wb.sum("due"))


def in_parts(stream):
    """The right rows, by windows over windows."""
    kept = stream.filter("seconds >= 60").with_columns(due=DUE)
    parts = kept.key_by("station", "member").window(wb.tumbling("10min")).aggregate(n=wb.count(), sum=wb.sum("due"))
    return parts.key_by("station").window(wb.tumbling("10min")).aggregate(trips=wb.sum("n"), paid=wb.sum("sum"))


def rolling(stream):
    kept = stream.filter("seconds >= 60").with_columns(due=DUE)
    return kept.key_by("station").aggregate(trips=wb.count(), paid=wb.sum("due"))


def not_keyed(stream):
    return stream.filter("seconds >= 60").with_columns(due=DUE).key_by("station").window(wb.tumbling("10min"))


QUERY = """
SELECT station, window_start, COUNT(*) AS trips, SUM(due) AS paid
FROM TUMBLE(rides, t, INTERVAL '10' MINUTE)
GROUP BY station, window_start, window_end
"""

WHOLE = f"""
SELECT station, window_start, COUNT(*) AS trips, SUM({DUE}) AS paid
FROM TUMBLE(rides, t, INTERVAL '10' MINUTE) WHERE seconds >= 60
GROUP BY station, window_start, window_end
"""
RIGHT = {
    "move": {
        "expressions": report(),
        "columns": report(kept=col("seconds") > 59, due="IF(member, 0, cents)"),
        "by a product": report(due="cents * CAST(NOT member AS INT)"),
        "a query of everything": lambda stream: wb.sql(WHOLE, rides=stream),
        "a slide": report(wb.sliding("10min", "10min")),
        "a query": lambda stream: wb.sql(QUERY, rides=stream.filter("seconds >= 60").with_columns(due=DUE)),
    }
}
WRONG = {
    "move": {
        "a function": (by_function, "on Spark 'map' is carried"),
        "a function as a filter": (filtered_by_function, "on Spark 'filter' is carried"),
        "windows over windows": (in_parts, "it aggregates the results of windows"),
        "a slide of its size": (
            report(wb.sliding("10min", "10min"), trigger=wb.triggers.on_count(1)),
            "correct is trips = ",
        ),
        "short trips": (report(kept="seconds >= 0"), "less than a minute"),
        "more than a minute": (report(kept="seconds > 60"), "exactly 60 seconds"),
        "members pay": (report(due="cents"), "Members pay nothing"),
        "no members": (report(kept="seconds >= 60 AND NOT member"), "trips of members count"),
        "counted": (report(due="IF(member, NULL, cents)", trips=wb.count("due")), "correct is trips = "),
        "5 min": (report(wb.tumbling("5min")), "windows have 5 minutes"),
        "an hour": (report(wb.tumbling("1h")), "windows have 60 minutes"),
        "sliding": (report(wb.sliding("10min", "5min")), "These windows overlap"),
        "sessions": (report(wb.session("10min")), "correct is trips"),
        "by count": (report(wb.windows.count_tumbling(2)), "rows are missing"),
        "nulls": (report(due="IF(member, NULL, cents)"), "a sum over nothing but nulls"),
        "prices above 0": (report(kept="seconds >= 60 AND cents > 0"), "missing"),
        "equal trips once": (lambda stream: report()(stream.distinct()), "correct is trips"),
        "collected": (
            lambda stream: report()(wb.Stream.from_table(stream.collect(), event_time="t")),
            "runs a job itself",
        ),
        "rolling": (rolling, "no column 'window_start'"),
        "the largest": (report(paid=wb.max("due")), "correct is paid = "),
        "another key": (report(key="member"), "no column 'station'"),
        "no aggregate": (not_keyed, "a window needs an aggregate"),
    }
}
