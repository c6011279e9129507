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


RIGHT = {
    "visits": {
        "session": windowed(wb.session("10min")),
        "in seconds": windowed(wb.session("600s"), allowed_lateness="0s"),
        "timers": by_timers,
    },
}
WRONG = {
    "visits": {
        "tumbling": (windowed(wb.tumbling("10min")), "Your windows have ten minutes"),
        "sliding": (windowed(wb.sliding("10min", "5min")), "each click counts in two of them"),
        "by count": (windowed(wb.windows.count_tumbling(2)), "end after two clicks"),
        "never": (windowed(wb.windows.global_window()), "where does a visit end?"),
        "5 min": (windowed(wb.session("5min")), "after five minutes"),
        "20 min": (windowed(wb.session("20min")), "after twenty minutes"),
        "an hour": (windowed(wb.session("1h")), "where does a visit end?"),
        "strict": (windowed(wb.session("599999ms")), "exactly ten minutes still belongs"),
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
        "only the last": (windowed(wb.session("10min"), evictor=wb.windows.keep_last(1)), "only one click"),
    },
}  # fmt: skip
