"""Right and wrong answers to the exercises of lesson 5."""

import pyarrow as pa

import workbench as wb

SCHEMA = {"sensor": pa.string(), "number": pa.int64(), "celsius": pa.int64()}


def judged(rule, key="sensor", keep=lambda alarm: True):
    """Compare with the last kept reading."""

    def compare(record, state):
        now, before = record["celsius"], state.last
        alarm = rule(before, now)
        if keep(alarm):
            state.last = now
        return record if alarm else None

    return lambda readings: readings.key_by(key).process(compare, SCHEMA, state={"last": pa.int64()})


def risen(before, now):
    return before is not None and now - before > 5


class Alarms(wb.functions.ProcessFunction):
    last = wb.state.ValueState(pa.int64())

    def process(self, record, state, ctx):
        before, state.last = state.last, record["celsius"]
        if before is not None and record["celsius"] - before > 5:
            yield record


class Forgetful(wb.functions.ProcessFunction):
    """Keeps the readings in the object, not in state."""

    def __init__(self):
        self.last = {}

    def process(self, record, state, ctx):
        before = self.last.get(ctx.key)
        self.last[ctx.key] = record["celsius"]
        return record if risen(before, record["celsius"]) else None


def by_list(readings):
    def compare(record, state):
        before = list(state.two)[-1:] or [None]
        state.two.clear()
        state.two.append(record["celsius"])
        return [record] if risen(before[0], record["celsius"]) else []

    return readings.key_by("sensor").process(compare, SCHEMA, state={"two": wb.state.ListState(pa.int64())})


def in_a_dictionary(readings):
    last = {}

    def compare(record, state):
        before = last.get(record["sensor"])
        last[record["sensor"]] = record["celsius"]
        return record if risen(before, record["celsius"]) else None

    return readings.key_by("sensor").process(compare, SCHEMA)


def lowest(readings):
    def compare(record, state):
        before = state.low
        state.low = record["celsius"] if before is None else min(before, record["celsius"])
        return record if risen(before, record["celsius"]) else None

    return readings.key_by("sensor").process(compare, SCHEMA, state={"low": pa.int64()})


def first(readings):
    def compare(record, state):
        before = state.first
        if before is None:
            state.first = record["celsius"]
        return record if risen(before, record["celsius"]) else None

    return readings.key_by("sensor").process(compare, SCHEMA, state={"first": pa.int64()})


everywhere = {}


def in_a_global(readings):
    def compare(record, state):
        before = everywhere.get(record["sensor"])
        everywhere[record["sensor"]] = record["celsius"]
        return record if risen(before, record["celsius"]) else None

    return readings.key_by("sensor").process(compare, SCHEMA)


class InTheClass(Forgetful):
    """Keeps the readings in its class."""

    last = {}  # noqa: RUF012  the mistake

    def __init__(self):
        pass


def in_an_attribute(readings):
    def compare(record, state):
        before = compare.last.get(record["sensor"])
        compare.last[record["sensor"]] = record["celsius"]
        return record if risen(before, record["celsius"]) else None

    compare.last = {}
    return readings.key_by("sensor").process(compare, SCHEMA)


def from_rows(readings):
    last, found = {}, []
    for record in readings.collect().to_pylist():
        if risen(last.get(record["sensor"]), record["celsius"]):
            found.append(record)
        last[record["sensor"]] = record["celsius"]
    return wb.Stream.from_table(pa.Table.from_pylist(found, pa.schema(list(SCHEMA.items()))))


def from_zero(readings):
    def compare(record, state):
        before, state.last = state.last, record["celsius"]
        return record if record["celsius"] - before > 5 else None

    state = {"last": wb.state.ValueState(pa.int64(), default=0)}
    return readings.key_by("sensor").process(compare, SCHEMA, state=state)


def by_map(readings):
    """One map for all sensors."""

    def compare(record, state):
        del record["one"]
        before = state.last.get(record["sensor"])
        state.last[record["sensor"]] = record["celsius"]
        return record if risen(before, record["celsius"]) else None

    state = {"last": wb.state.MapState(pa.string(), pa.int64())}
    return readings.with_columns(one="1").key_by("one").process(compare, SCHEMA, state=state)


def for_an_hour(readings):
    state = {"last": wb.state.ValueState(pa.int64(), ttl="1h")}

    def compare(record, state):
        before, state.last = state.last, record["celsius"]
        return record if risen(before, record["celsius"]) else None

    return readings.key_by("sensor").process(compare, SCHEMA, state=state)


noted = []


def with_a_note(readings):
    """What it keeps outside of state changes no result."""

    def compare(record, state):
        noted.append(record)
        before, state.last = state.last, record["celsius"]
        return record if risen(before, record["celsius"]) else None

    return readings.key_by("sensor").process(compare, SCHEMA, state={"last": pa.int64()})


RIGHT = {
    "alarms": {
        "a value": judged(risen),
        "a class": lambda r: r.key_by("sensor").process(Alarms(), SCHEMA),
        "a list": by_list,
        "one map": by_map,
        "a note beside it": with_a_note,
        "only rises are passed on": lambda readings: judged(risen)(readings).filter("celsius > -999"),
    }
}
WRONG = {
    "alarms": {
        "a dictionary": (in_a_dictionary, "the variable `last` around `compare`"),
        "a global variable": (in_a_global, "the global variable `everywhere`"),
        "in the class": (
            lambda readings: readings.key_by("sensor").process(InTheClass(), SCHEMA),
            "the class attribute `InTheClass.last`",
        ),
        "in the function": (in_an_attribute, "the attribute `last` of the function `compare`"),
        "collected": (from_rows, "runs a job itself"),
        "for an hour": (for_an_hour, "After 60 minutes your state forgets a reading"),
        "from zero": (from_zero, "so it is not an alarm"),
        "zero is nothing": (judged(lambda before, now: bool(before) and now - before > 5), "celsius = 6"),
        "in the object": (
            lambda readings: readings.key_by("sensor").process(Forgetful(), SCHEMA), "has to be state in checkpoints"
        ),
        "never written": (judged(risen, keep=lambda alarm: False), "the result is empty"),
        "not after an alarm": (judged(risen, keep=lambda alarm: not alarm), "remember it, too"),
        "5 degrees": (judged(lambda before, now: before is not None and now - before >= 5), "are not more than 5"),
        "a fall": (judged(lambda before, now: before is not None and abs(now - before) > 5), "A fall is not an alarm"),
        "the first": (judged(lambda before, now: now - (before or 0) > 5), "so it is not an alarm"),
        "the lowest": (lowest, "the lowest reading so far"),
        "the first reading": (first, "the first reading, not with the previous one"),
        "another key": (judged(risen, key="celsius"), "the result is empty"),
        "all readings": (lambda readings: readings.filter("celsius > -999"), "These are all readings"),
        "warm": (lambda readings: readings.filter("celsius > 25"), "rows are missing"),
        "another result": (
            lambda readings: readings.key_by("sensor").process(
                lambda record, state: {"sensor": record["sensor"]}, {"sensor": pa.string()}
            ),
            "no column 'number'",
        ),
    }
}  # fmt: skip
