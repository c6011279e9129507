"""Right and wrong answers to the exercises of lesson 10."""

import pyarrow as pa

import workbench as wb

KEYS = ["user", "item"]


def joined(on=KEYS, **how):
    return lambda views, buys: views.join(buys, on=on, **(how or {"between": ("0min", "10min")}))


def between(low, high, on=KEYS):
    return joined(on, between=(low, high))


def from_the_right(views, buys):
    return buys.join(views, on=KEYS, between=("-10min", "0min"))


def wide(views, buys):
    """All pairs of two hours, and then those that are right."""
    pairs = views.rename({"at": "seen"}).join(buys.rename({"at": "bought"}), on=KEYS, between=("-1h", "1h"))
    return pairs.filter("bought >= seen AND bought <= seen + INTERVAL '10' MINUTE")


def item_later(views, buys):
    return views.rename({"item": "what"}).join(buys, on="user", between=("0min", "10min")).filter("what = item")


QUERY = """
SELECT v.view, b.buy, v.user
FROM views AS v JOIN buys AS b ON v.user = b.user AND v.item = b.item
AND b.at BETWEEN v.at AND v.at + INTERVAL '10' MINUTE
"""
RIGHT = {
    "matched": {
        "an interval": joined(),
        "from the right": from_the_right,
        "in seconds": between("0s", "600s", ["item", "user"]),
        "wide, then filtered": wide,
        "the item later": item_later,
        "a query": lambda views, buys: wb.sql(QUERY, views=views, buys=buys),
    }
}
WRONG = {
    "matched": {
        "before and after": (between("-10min", "10min"), "Your lower bound is -10 minutes"),
        "before": (between("-10min", "0min"), "happened before the view"),
        "5 min": (between("0min", "5min"), "Your bound is 5 minutes"),
        "20 min": (between("0min", "20min"), "Your bound is 20 minutes"),
        "an hour": (between("0min", "1h"), "Your bound is 60 minutes"),
        "any item": (between("0min", "10min", "user"), "of a different item"),
        "not at once": (between("1ms", "10min"), "Your lower bound is 1 ms"),
        "not after ten minutes": (between("0min", "599s"), "Your bound is 599 s"),
        "a millisecond more": (between("0s", "600001ms"), "Your bound is 600.001 s"),
        "a millisecond less": (between("0s", "599999ms"), "Your bound is 599.999 s"),
        "a millisecond early": (between("-1ms", "10min"), "Your lower bound is -1 ms"),
        "less time for stragglers": (
            lambda views, buys: joined()(views.assign_timestamps("at", out_of_orderness="59s"), buys), "missing"
        ),
        "less time for purchases": (
            lambda views, buys: joined()(views, buys.assign_timestamps("at", out_of_orderness="59s")), "missing"
        ),
        "one purchase a view": (
            lambda views, buys: joined()(views, buys).key_by("view").process(
                lambda pair, state: None if state.seen else (setattr(state, "seen", True), pair)[1],
                joined()(views, buys).schema, state={"seen": wb.state.ValueState(pa.bool_())},
            ),
            "missing",
        ),
        "a window": (joined(window=wb.tumbling("10min")), "the same window of ten minutes"),
        "a long window": (joined(window=wb.tumbling("1h")), "the same window of an hour"),
        "a session": (joined(window=wb.session("10min")), "should not be in the result"),
        "left": (joined(between=("0min", "10min"), how="left"), "Views without a purchase"),
        "union": (lambda views, buys: views.select("user").union(buys.select("user")), "no column 'view'"),
        "one stream": (lambda views, buys: views, "no column 'buy'"),
    }
}  # fmt: skip
