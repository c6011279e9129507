"""Lesson 6: failures and guarantees (the three steps, at most, at least and exactly once, acks as in Storm, D1)."""

from __future__ import annotations

from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Exercise, ViolatedError
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.programs import program
from workbench.lessons.exercises.question import Choice, Option

Payment = tuple[int, str, int]
"""A payment: its number, its account, and cents."""


def judge(answer: Any, chance: Random) -> None:
    """Deliver payments repeatedly: after each failure, all payments since the last checkpoint again."""
    ledger = Called(answer, kind="a ledger", methods=("pay(payment, account, cents)", "balance(account)"))
    payments = [
        (number, chance.choice(("ann", "bob")), chance.choice((100, 100, 250, -100)))
        for number in chance.sample(range(1_000), chance.randrange(3, 40))
    ]
    delivered: list[Payment] = []
    checkpoint = at = 0
    while at < len(payments):
        delivered.append(payments[at])
        ledger("pay", *payments[at])
        for account in ("ann", "bob"):
            _compare(ledger, account, delivered)
        at += 1
        if chance.random() < 0.15:
            checkpoint = at
        if chance.random() < 0.1 and len(delivered) < 500:
            at = checkpoint
    _compare(ledger, "nobody", delivered)


def _compare(ledger: Called, account: str, delivered: list[Payment]) -> None:
    """The balance of an account after the last delivery."""
    number, name, cents = delivered[-1]
    is_new = delivered.count(delivered[-1]) == 1
    right = _sum({payment for payment in delivered if payment[1] == account})
    found = ledger("balance", account)
    if found == right:
        ledger.calls.pop()  # it belongs to no counterexample
        return
    violated, why = "right values", "What distinguishes a repeated payment from a new one?"
    if not isinstance(found, int):
        why = "A balance is a whole number of cents."
    elif name == account and not is_new and found == right + cents:
        violated, why = "no duplicate", f"Payment {number} was delivered again, and was counted again."
    elif name == account and is_new and found == right - cents:
        same = any(other[1:] == (name, cents) for other in delivered[:-1])
        more = " Two payments of the same amount are two payments." if same else ""
        violated, why = "no loss", f"Payment {number} was delivered for the first time, but was not counted.{more}"
    elif found == _sum(set(delivered)):
        why = "This is the sum of all accounts."
    told = f"after {len(delivered)} {'delivery' if len(delivered) == 1 else 'deliveries'} {account} has {found!r} cents; correct is {right}. {why}"
    raise ViolatedError(violated, told, calls=ledger.calls)


def _sum(payments: set[Payment]) -> int:
    return sum(cents for _, _, cents in payments)


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
            program(
                judge,
                40,
                "40 series of payments, many of them delivered repeatedly: all balances are right.",
            ),
        ),
    ),
)
