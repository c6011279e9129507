"""Right and wrong answers to the exercises of lesson 4."""

import workbench as wb


def scored(time="played", wait="100s", window=None, keys=("player",), points=None, stamps=True, **how):
    def answer(taps):
        timed = taps.assign_timestamps(time, out_of_orderness=wait) if stamps else taps
        windows = timed.key_by(*keys).window(window or wb.tumbling("1min"), **how)
        return windows.aggregate(points=points or wb.sum("points"))

    return answer


QUERY = """
SELECT player, window_start, SUM(points) AS points
FROM TUMBLE(taps, played, INTERVAL '1' MINUTE)
GROUP BY player, window_start, window_end
"""
RIGHT = {
    "scores": {
        "90 s": scored(wait="90s"),
        "two minutes": scored(wait="120s"),
        "corrections": scored(wait="20s", allowed_lateness="90s"),
        "only corrections": scored(wait="0s", allowed_lateness="2min"),
        "corrections of 90 s": scored(wait="0s", allowed_lateness="90s"),
        "half and half": scored(wait="45s", allowed_lateness="45s"),
        "early results": scored(trigger=wb.triggers.early("10s")),
        "a query": lambda taps: wb.sql(QUERY, taps=taps.assign_timestamps("played", out_of_orderness="95s")),
        "a slide of its size": scored(window=wb.sliding("1min", "1min")),
    },
}
WRONG = {
    "scores": {
        "eager": (scored(wait="0s"), "Stragglers are missing"),
        "too eager": (scored(wait="1s"), "your program gives them 1 s"),
        "half a minute": (scored(wait="30s"), "your program gives them 30 s"),
        "65 s": (scored(wait="65s"), "your program gives them 65 s"),
        "75 s": (scored(wait="75s"), "your program gives them 75 s"),
        "85 s": (scored(wait="85s"), "your program gives them 85 s"),
        "a millisecond less": (scored(wait="89999ms"), "your program gives them 89.999 s"),
        "corrections too short": (scored(wait="0s", allowed_lateness="89999ms"), "correct is points"),
        "both too short": (scored(wait="20s", allowed_lateness="69s"), "correct is points"),
        "150 s": (scored(wait="150s"), "Your program waits 150 s; at most 120 s"),
        "a millisecond more": (scored(wait="120001ms"), "Your program waits 120.001 s; at most 120 s"),
        "equal taps once": (lambda taps: scored()(taps.distinct()), "correct is points"),
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
