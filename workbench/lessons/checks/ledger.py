"""Exercise `ledger` of lesson 6: what is special is a payment that is delivered again after many others, two payments
that differ only in their number, and the number, the amount and the balance 0."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from workbench.lessons.exercises.calls import Called
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.programs import program

Payment = tuple[int, str, int]
"""A payment: its number, its account, and cents."""

ACCOUNTS = ("ann", "bob", "")
MANY = 5_000
_SPECIAL: tuple[Payment, ...] = (
    (7, "ann", 100),
    (7, "ann", 100),  # at once
    (0, "ann", 100),  # the number 0; as much as before
    (3, "bob", 0),  # nothing
    (3, "bob", 0),
    (0, "ann", 100),
    (7, "ann", 100),  # after others
    (263, "ann", 100),  # 7 + 256
    (1_007, "ann", 100),
    (4_294_967_303, "ann", 100),  # 7 + 2**32
    (5, "bob", -100),  # money back
    (8, "bob", 100),  # the balance is 0 again
    (5, "bob", -100),
    (2, "", 40),  # an account without a name
    (8, "bob", 100),
    (2, "", 40),
    (9, "", -40),
    (10, "ann", 10**16 + 1),  # too much for a floating-point number
    (9, "", -40),
    (7, "ann", 100),
    (10, "ann", 10**16 + 1),
)


def _ledger(answer: Any, name: str = "it") -> Called:
    return Called(answer, kind="a ledger", methods=("pay(payment, account, cents)", "balance(account)"), name=name)


def special(answer: Any) -> None:
    """Deliver what is special, and look at all accounts after each delivery."""
    ledger = _ledger(answer)
    for account in ACCOUNTS:
        _compare(ledger, account, [])
    for count in range(1, len(_SPECIAL) + 1):
        ledger("pay", *_SPECIAL[count - 1])
        for account in (*ACCOUNTS, "nobody"):
            _compare(ledger, account, _SPECIAL[:count])


def many(answer: Any) -> None:
    """Deliver a payment again after thousands of others."""
    ledger = _ledger(answer)
    for number in range(MANY):
        ledger("pay", number, "ann", 1)
    ledger.calls[1:] = [f"for number in range({MANY}): it.pay(number, 'ann', 1)"]
    ledger("pay", 0, "ann", 1)
    found = ledger("balance", "ann")
    if found != MANY:
        told = (
            f"after {MANY} payments of 1 cent, payment 0 is delivered again. Now ann has {found!r} cents, not {MANY}."
        )
        if found == MANY + 1:
            told += " A payment may be delivered again at any time."
        raise ViolatedError("no duplicate" if found == MANY + 1 else "no loss", told, calls=ledger.calls)


def two(answer: Any) -> None:
    """Two ledgers know nothing of each other."""
    first, second = _ledger(answer, "first"), _ledger(answer, "second")
    first("pay", 1, "ann", 100)
    calls = [first.calls[0], second.calls[0], first.calls[1]]
    for ledger, right in ((second, 0), (first, 100)):
        if (found := ledger("balance", "ann")) != right:
            told = (
                f"ann has paid 100 cents into the first of two ledgers; one of them says {found!r} instead of {right}."
            )
            raise ViolatedError("right values", told, calls=[*calls, ledger.calls[-1]])


def judge(answer: Any, chance: Random) -> None:
    """Deliver payments repeatedly: after each failure, all payments since the last checkpoint again."""
    ledger = _ledger(answer)
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


def _compare(ledger: Called, account: str, delivered: Sequence[Payment]) -> None:
    """The balance of an account after the last delivery."""
    right = _sum({payment for payment in delivered if payment[1] == account})
    found = ledger("balance", account)
    if found == right and not isinstance(found, bool):
        ledger.calls.pop()  # it belongs to no counterexample
        return
    violated, why = _reason(found, right, account, delivered)
    times = f"{len(delivered)} {'delivery' if len(delivered) == 1 else 'deliveries'}"
    told = f"after {times} {account or 'the account without a name'} has {found!r} cents; correct is {right}. {why}"
    raise ViolatedError(violated, told, calls=ledger.calls)


def _reason(found: Any, right: int, account: str, delivered: Sequence[Payment]) -> tuple[str, str]:
    """The violated property, and what may be the mistake."""
    if not isinstance(found, int) or isinstance(found, bool):
        return "right values", "A balance is a whole number of cents."
    if not delivered:
        return "right values", "Nothing has been paid yet."
    number, name, cents = delivered[-1]
    is_new = delivered.count(delivered[-1]) == 1
    if name == account and not is_new and found == right + cents:
        return "no duplicate", f"Payment {number} was delivered again, and was counted again."
    if name == account and is_new and found == right - cents:
        same = any(other[1:] == (name, cents) for other in delivered[:-1])
        more = " Two payments of the same amount are two payments." if same else ""
        return "no loss", f"Payment {number} was delivered for the first time, but was not counted.{more}"
    if found == _sum(set(delivered)):
        return "right values", "This is the sum of all accounts."
    return "right values", "What distinguishes a repeated payment from a new one?"


def _sum(payments: set[Payment]) -> int:
    return sum(cents for _, _, cents in payments)


JUDGE: Judge = program(
    (special, two, many),
    judge,
    40,
    f"Payments with what is special, two ledgers, a payment that comes again after {MANY} others, and 40 drawn series, "
    "in which many are delivered repeatedly: all balances are right.",
)
