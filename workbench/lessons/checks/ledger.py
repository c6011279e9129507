"""TODO of exercise ledger."""

from __future__ import annotations

from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.programs import program

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


JUDGE: Judge = program(
    judge,
    40,
    "40 series of payments, many of them delivered repeatedly: all balances are right.",
)
