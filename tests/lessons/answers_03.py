"""Right and wrong answers to the exercises of lesson 3."""

import pyarrow as pa

import workbench as wb

GAP_US = 600_000_000


def windowed(window, **how):
    return lambda clicks: clicks.key_by("user").window(window, **how).aggregate(clicks=wb.count())


class Visits(wb.functions.ProcessFunction):
    """Visits by hand: a timer ends one."""

    earlier = wb.state.ListState(pa.int64())

    def process(self, record, state, ctx):
        state.earlier.append(ctx.timestamp)
        ctx.register_event_timer(ctx.timestamp + GAP_US)

    def on_timer(self, time, state, ctx):
        visit = sorted(state.earlier)
        ended = [t for t in visit if t <= time]
        if ended and time - ended[-1] < GAP_US:
            return
        rest = [t for t in visit if t > time]
        state.clear()
        for t in rest:
            state.earlier.append(t)
        if ended:
            yield {"user": ctx.key, "clicks": len(ended)}


def by_timers(clicks):
    return clicks.key_by("user").process(Visits(), {"user": pa.string(), "clicks": pa.int64()})


class InOrder(wb.functions.ProcessFunction):
    """Compares each click with the one that came before it."""

    last = wb.state.ValueState(pa.int64())
    clicks = wb.state.ValueState(pa.int64(), default=0)

    def process(self, record, state, ctx):
        if state.last is not None and ctx.timestamp - state.last > GAP_US:
            yield {"user": record["user"], "clicks": state.clicks}
            state.clicks = 0
        state.last = ctx.timestamp
        state.clicks += 1
        ctx.register_event_timer(2**60)

    def on_timer(self, time, state, ctx):
        yield {"user": ctx.key, "clicks": state.clicks}


def in_order(clicks):
    return clicks.key_by("user").process(InOrder(), {"user": pa.string(), "clicks": pa.int64()})


class InMinutes(Visits):
    """As if the clock had only whole seconds."""

    def process(self, record, state, ctx):
        state.earlier.append(ctx.timestamp // 1_000_000 * 1_000_000)
        ctx.register_event_timer(ctx.timestamp // 1_000_000 * 1_000_000 + GAP_US)


QUERY = """
SELECT user, COUNT(*) AS clicks
FROM SESSION(clicks PARTITION BY user, at, INTERVAL '10' MINUTE)
GROUP BY user, window_start, window_end
"""
RIGHT = {
    "visits": {
        "session": windowed(wb.session("10min")),
        "in seconds": windowed(wb.session("600s"), allowed_lateness="0s"),
        "timers": by_timers,
        "a query": lambda clicks: wb.sql(QUERY, clicks=clicks),
        "a sum of ones": lambda clicks: (
            clicks.with_columns(one="1").key_by("user").window(wb.session("10min")).aggregate(clicks=wb.sum("one"))
        ),
    },
}
WRONG = {
    "visits": {
        "tumbling": (windowed(wb.tumbling("10min")), "Your windows have ten minutes"),
        "sliding": (windowed(wb.sliding("10min", "5min")), "each click counts in two of them"),
        "by count": (windowed(wb.windows.count_tumbling(2)), "end after two clicks"),
        "never": (windowed(wb.windows.global_window()), "where does a visit end?"),
        "5 min": (windowed(wb.session("5min")), "after 5 minutes"),
        "20 min": (windowed(wb.session("20min")), "after 20 minutes"),
        "an hour": (windowed(wb.session("1h")), "after 60 minutes"),
        "strict": (windowed(wb.session("599999ms")), "after 599.999 s"),
        "a second more": (windowed(wb.session("601s")), "after 601 s of silence"),
        "a millisecond more": (windowed(wb.session("600001ms")), "after 600.001 s of silence"),
        "in order of arrival": (in_order, "correct is clicks"),
        "whole seconds": (
            lambda clicks: clicks.key_by("user").process(InMinutes(), {"user": pa.string(), "clicks": pa.int64()}),
            "correct is clicks",
        ),
        "all together": (
            lambda clicks: clicks.window(wb.session("10min")).aggregate(clicks=wb.count()), "no column 'user'"
        ),
        "no aggregate": (
            lambda clicks: clicks.key_by("user").window(wb.session("10min")), "a window needs an aggregate"
        ),
        "early": (
            windowed(wb.session("10min"), trigger=wb.triggers.purging(wb.triggers.on_count(1))),
            "clicks = 1 occurs",
        ),
        "less time for stragglers": (
            lambda clicks: windowed(wb.session("10min"))(clicks.assign_timestamps("at", out_of_orderness="119s")),
            "for user = gap the result is clicks = 1",
        ),
        "small letters": (
            lambda clicks: windowed(wb.session("10min"))(clicks.with_columns(user="LOWER(user)")), "correct is clicks"
        ),
        "only the last": (windowed(wb.session("10min"), evictor=wb.windows.keep_last(1)), "only one click"),
    },
}  # fmt: skip
