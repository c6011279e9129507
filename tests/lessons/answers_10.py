"""Right and wrong answers to the exercises of lesson 10."""

import workbench as wb

KEYS = ["user", "item"]


def joined(on=KEYS, **how):
    return lambda views, buys: views.join(buys, on=on, **(how or {"between": ("0min", "10min")}))


def between(low, high, on=KEYS):
    return joined(on, between=(low, high))


def from_the_right(views, buys):
    return buys.join(views, on=KEYS, between=("-10min", "0min"))


RIGHT = {
    "matched": {
        "an interval": joined(),
        "from the right": from_the_right,
        "in seconds": between("0s", "600s", ["item", "user"]),
    }
}
WRONG = {
    "matched": {
        "before and after": (between("-10min", "10min"), "before the view"),
        "before": (between("-10min", "0min"), "happened before the view"),
        "5 min": (between("0min", "5min"), "only five minutes"),
        "20 min": (between("0min", "20min"), "twenty minutes"),
        "an hour": (between("0min", "1h"), "an hour"),
        "any item": (between("0min", "10min", "user"), "of a different item"),
        "not at once": (between("1ms", "10min"), "at exactly the time of the view"),
        "not after ten minutes": (between("0min", "599s"), "after exactly ten minutes"),
        "a window": (joined(window=wb.tumbling("10min")), "the same window of ten minutes"),
        "a long window": (joined(window=wb.tumbling("1h")), "the same window of an hour"),
        "a session": (joined(window=wb.session("10min")), "should not be in the result"),
        "left": (joined(between=("0min", "10min"), how="left"), "Views without a purchase"),
        "union": (lambda views, buys: views.select("user").union(buys.select("user")), "no column 'view'"),
        "one stream": (lambda views, buys: views, "no column 'buy'"),
    }
}  # fmt: skip
