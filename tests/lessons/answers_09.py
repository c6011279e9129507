"""Right and wrong answers to the exercises of lesson 9."""

import pyarrow as pa

import workbench as wb


def summed(stream, uid="revenue", **aggregates):
    result = stream.key_by("shop").aggregate(**(aggregates or {"revenue": wb.sum("cents")}))
    return result.uid(uid) if uid else result


def fixed(**how):
    return lambda orders: summed(orders.filter("NOT cancelled"), **how)


def with_cancelled(cents):
    return lambda orders: summed(orders.with_columns(cents=f"CASE WHEN cancelled THEN {cents} ELSE cents END"))


def by_hand(orders):
    def add(record, state):
        state.sum = (state.sum or 0) + record["cents"]
        return {"shop": record["shop"], "revenue": state.sum}

    schema = {"shop": pa.string(), "revenue": pa.int64()}
    kept = orders.filter("NOT cancelled")
    return kept.key_by("shop").process(add, schema, state={"sum": pa.int64()}).uid("revenue")


RIGHT = {
    "fix": {
        "filter": lambda orders: summed(orders.filter("NOT cancelled")),
        "expression": lambda orders: summed(orders.filter(~wb.col("cancelled"))),
        "split": lambda orders: summed(orders.split({"gone": "cancelled"}, rest="kept")["kept"]),
        "nothing is added": with_cancelled("0"),
        "a function": lambda orders: summed(orders.filter(lambda order: not order["cancelled"])),
        "chosen columns": lambda orders: summed(orders.filter("NOT cancelled").select("shop", "cents")),
        "flat_map": lambda orders: summed(
            orders.flat_map(
                lambda order: [] if order["cancelled"] else [{"shop": order["shop"], "cents": order["cents"]}],
                {"shop": pa.string(), "cents": pa.int64()},
            )
        ),
    }
}
WRONG = {
    "fix": {
        "as before": (summed, "Cancelled orders still count"),
        "no uid": (fixed(uid=None), "the savepoint does not fit"),
        "another uid": (fixed(uid="fixed"), "the savepoint does not fit"),
        "the uid of the filter": (
            lambda orders: summed(orders.filter("NOT cancelled").uid("revenue"), uid="sum"), "state that is taken over"
        ),
        "the wrong way round": (lambda orders: summed(orders.filter("cancelled")), "Only the cancelled orders"),
        "a constant": (with_cancelled("1"), "At the end it has"),
        "taken back": (with_cancelled("-cents"), "At the end it has"),
        "another aggregate": (
            lambda orders: summed(orders.filter("NOT cancelled"), revenue=wb.max("cents")), "state that is taken over"
        ),
        "a count": (lambda orders: summed(orders.filter("NOT cancelled"), revenue=wb.count()), "no column count()"),
        "no orders of 0": (
            lambda orders: summed(orders.filter("NOT cancelled AND cents > 0")), "There is no result for it"
        ),
        "no large orders": (lambda orders: summed(orders.filter("NOT cancelled AND cents < 500")), "correct is"),
        "no nameless shop": (lambda orders: summed(orders.filter("NOT cancelled AND shop <> ''")), "correct is"),
        "equal orders once": (lambda orders: summed(orders.filter("NOT cancelled").distinct()), "correct is"),
        "collected": (
            lambda orders: wb.Stream.from_table(orders.collect()).key_by("shop").aggregate(revenue=wb.sum("cents")),
            "runs a job itself",
        ),
        "another key": (
            lambda orders: orders.key_by("cents").aggregate(revenue=wb.sum("cents")).uid("revenue"),
            "no column 'shop'",
        ),
        "by hand": (by_hand, "the savepoint does not fit"),
        "another name": (
            lambda orders: summed(orders.filter("NOT cancelled"), total=wb.sum("cents")), "no column 'revenue'"
        ),
        "no stream": (lambda orders: None, "a `return` missing"),
    }
}  # fmt: skip
