"""Lesson 2: latency, throughput and buffers (the coffee shop, E1, E3, E4, F2-3, F2-4, D2, D3, D6)."""

from __future__ import annotations

from workbench.lessons.checks.settings import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

LESSON = LessonPlan(
    number="02",
    title="Latency, throughput and buffers",
    promise="Afterwards you can explain why a stream processor sends buffers, what a buffer timeout does, and why a slow "
    "task slows down its source.",
    questions=(
        Choice(
            "rush-hour",
            "A coffee shop makes a coffee in 3 minutes, one at a time. Guests arrive at random, 19 an hour on average. "
            "How long does a guest wait from entering to drinking, on average?",
            (
                Option("About 3 minutes: the shop can make 20 an hour.", lambda minutes: minutes < 4),
                Option("About 6 minutes.", lambda minutes: 4 <= minutes < 10),
                Option("More than 10 minutes.", lambda minutes: minutes >= 10),
            ),
            "Close to the peak throughput of a system, requests spend their time in queues. Latency is low only while "
            "there is spare capacity.",
        ),
        Number(
            "channels-of-four",
            "Four parallel senders and four parallel receivers, by key. How many channels, and so at least how many "
            "buffers?",
            "channels",
            "There is one for each pair: the number grows with the square of the parallelism.",
            factor=1.0,
        ),
        Choice(
            "timeout",
            "Records arrive at 1,000 a second, and a buffer has room for 64. The buffer timeout is 10 ms. What is the "
            "latency of the slowest records?",
            (
                Option("About 0 ms: the timeout is the exception.", lambda ms: ms < 5),
                Option("About 10 ms.", lambda ms: 5 <= ms <= 20),
                Option("About 64 ms: the buffer has to be full.", lambda ms: ms > 20),
            ),
            "In 10 ms only ten records arrive, so the timeout sends the buffer. The first record in it has waited 10 ms.",
        ),
        Choice(
            "stalled",
            "A sink stops accepting records. The source could read 200 more records. How many does it read before it "
            "stops?",
            (
                Option("All 200: they wait in the memory of the stalled task.", lambda read: read >= 200),
                Option("As many as there are buffers between the source and the sink.", lambda read: 5 < read < 200),
                Option("None: it stops immediately.", lambda read: read <= 5),
            ),
            "Buffers are bounded. Each task fills the pool of the next one, then its own, and then takes no input.",
        ),
    ),
    exercises=(
        Exercise(
            "settings",
            "Choose `buffer_timeout` and `buffer_size` so that, at rates between 400 and 2,000 orders a second, 99 of "
            "100 orders arrive within 20 ms, and at most one buffer is sent for four orders.",
            (
                "Look at your curves: which timeouts keep the latency below 20 ms?",
                "At 400 orders a second, the fourth order of a buffer comes 7.5 ms after the first one. A shorter timeout sends "
                "buffers with too few orders.",
                "A timeout between 12 and 18 ms works, with a buffer that has room for more than four orders.",
            ),
            JUDGE,
        ),
    ),
)
