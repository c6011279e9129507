"""Lesson 6: failures and guarantees (the three steps, at most, at least and exactly once, acks as in Storm, D1)."""

from __future__ import annotations

from workbench.lessons.checks.ledger import JUDGE
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Option

LESSON = LessonPlan(
    number="06",
    title="Failure",
    promise="Afterwards you can explain what at most once, at least once and exactly once mean, and what they cost.",
    questions=(
        Choice(
            "where",
            "A task receives a record, updates its state, and emits a result. It dies right after the update, and "
            "starts again with empty state from the next record. What is lost?",
            (
                Option("Only the result that was not emitted.", lambda lost: lost == "result"),
                Option("That result, and everything in the state.", lambda lost: lost == "state and result"),
                Option("Nothing: the update was made.", lambda lost: lost == "nothing"),
            ),
            "The state was in the memory of the task. Without a copy elsewhere, it is lost with the task.",
        ),
        Choice(
            "acks",
            "Sources keep each record until it is acknowledged, and send it again if that takes too long. The state "
            "is saved now and then. A task fails. How do the counts compare with the right ones?",
            (
                Option("They are too small.", lambda more: more < 0),
                Option("They are right.", lambda more: more == 0),
                Option("They are too large.", lambda more: more > 0),
            ),
            "Nothing is lost. But a record whose effect was saved before it was acknowledged is sent again, and counts twice.",
        ),
        Choice(
            "exactly-once",
            "With exactly once, does the failing task process each record exactly once?",
            (
                Option("Yes, as the words say.", lambda again: again == 0),
                Option("No: some records are processed twice, and take effect once.", lambda again: again > 0),
            ),
            "After a failure, the work since the checkpoint is done again, starting with the state in the checkpoint.",
        ),
    ),
    exercises=(
        Exercise(
            "ledger",
            "Outside the job, nothing is reset after a failure. Write a class `Ledger` with `pay(payment, account, "
            "cents)` and `balance(account)`. Payments may be delivered again, in the same order or later, and the balance "
            "must still be right. Each payment has a number; the numbers are not in order.",
            (
                "Doing it twice must have the effect of doing it once: such an operation is called idempotent.",
                "What identifies a payment? Its amount does not: two people may pay the same.",
                "Keep the payments in a dictionary by their number. Writing one again changes nothing.",
            ),
            JUDGE,
        ),
    ),
)
