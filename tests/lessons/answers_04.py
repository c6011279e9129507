"""Right and wrong answers to the exercises of lesson 4."""

import workbench as wb


def scored(time="played", wait="100s", window=None, keys=("player",), points=None, stamps=True, **how):
    def answer(taps):
        timed = taps.assign_timestamps(time, out_of_orderness=wait) if stamps else taps
        windows = timed.key_by(*keys).window(window or wb.tumbling("1min"), **how)
        return windows.aggregate(points=points or wb.sum("points"))

    return answer


RIGHT = {
    "scores": {
        "90 s": scored(wait="90s"),
        "two minutes": scored(wait="120s"),
        "corrections": scored(wait="20s", allowed_lateness="90s"),
        "only corrections": scored(wait="0s", allowed_lateness="2min"),
    },
}
WRONG = {
    "scores": {
        "eager": (scored(wait="0s"), "stragglers"),
        "too eager": (scored(wait="1s"), "stragglers are missing"),
        "half a minute": (scored(wait="30s"), "Some stragglers are missing"),
        "ten minutes": (scored(wait="10min"), "Waiting loses nothing, but somebody waits"),
        "an hour": (scored(wait="1h"), "Waiting loses nothing, but somebody waits"),
        "by arrival": (scored(time="seen", wait="0s"), "the minutes in which taps arrived"),
        "by arrival, patiently": (scored(time="seen", wait="100s"), "the minutes in which taps arrived"),
        "by the clock": (scored(stamps=False, time="played", window=wb.tumbling("1min")), "event time"),
        "hours": (scored(window=wb.tumbling("1h")), "the points of each hour"),
        "sliding": (scored(window=wb.sliding("1min", "30s")), "These windows overlap"),
        "count": (scored(points=wb.count()), "the number of taps"),
        "the best": (scored(points=wb.max("points")), "the points of the best tap"),
        "all players": (
            lambda taps: (
                taps.assign_timestamps("played", out_of_orderness="100s")
                .window(wb.tumbling("1min"))
                .aggregate(points=wb.sum("points"))
            ),
            "no column 'player'",
        ),
    },
}
