"""Right and wrong answers to the exercises of lesson 6."""


class ByNumber:
    def __init__(self):
        self.payments = {}

    def pay(self, payment, account, cents):
        self.payments[payment] = account, cents

    def balance(self, account):
        return sum(cents for name, cents in self.payments.values() if name == account)


class WithASet:
    def __init__(self):
        self.seen, self.sums = set(), {}

    def pay(self, payment, account, cents):
        if payment not in self.seen:
            self.seen.add(payment)
            self.sums[account] = self.sums.get(account, 0) + cents

    def balance(self, account):
        return self.sums.get(account, 0)


class ByAccount:
    def __init__(self):
        self.accounts = {}

    def pay(self, payment, account, cents):
        self.accounts.setdefault(account, {})[payment] = cents

    def balance(self, account):
        return sum(self.accounts.get(account, {}).values())


def ledger(remember):
    """A ledger that skips what it thinks it has seen."""

    class Ledger:
        def __init__(self):
            self.seen, self.sums = [], {}

        def pay(self, payment, account, cents):
            if not remember(self.seen, payment, account, cents):
                self.sums[account] = self.sums.get(account, 0) + cents

        def balance(self, account):
            return self.sums.get(account, 0)

    return Ledger


def noted(seen, what, most=1_000):
    known = what in seen
    seen.append(what)
    del seen[:-most]
    return known


class OnlyKnown(WithASet):
    def balance(self, account):
        return self.sums[account]


class Text(WithASet):
    def balance(self, account):
        return str(super().balance(account))


class Latest(ByNumber):
    def pay(self, payment, account, cents):
        self.payments[account] = account, cents


class Total(WithASet):
    def balance(self, account):
        return sum(self.sums.values())


class SetOfTuples:
    def __init__(self):
        self.payments = set()

    def pay(self, *payment):
        self.payments.add(payment)

    def balance(self, account):
        return sum(cents for _, name, cents in self.payments if name == account)


class LastWins(ByNumber):
    """Takes a payment back before it counts it again."""

    def __init__(self):
        super().__init__()
        self.sums = {}

    def pay(self, payment, account, cents):
        self.sums[account] = self.sums.get(account, 0) - self.payments.get(payment, ("", 0))[1] + cents
        self.payments[payment] = account, cents

    def balance(self, account):
        return self.sums.get(account, 0)


class Shared(ByNumber):
    payments = {}  # noqa: RUF012  the mistake

    def __init__(self):
        pass


kept = {}


class InAGlobal(ByNumber):
    def __init__(self):
        self.payments = kept


class Floating(WithASet):
    def balance(self, account):
        return int(float(super().balance(account)))


class Remainders(ByNumber):
    def pay(self, payment, account, cents):
        super().pay(payment % 256, account, cents)


class LastDigits(WithASet):
    def pay(self, payment, account, cents):
        super().pay(str(payment)[-3:], account, cents)


class NotZero(WithASet):
    def pay(self, payment, account, cents):
        if not payment or payment not in self.seen:
            super().pay(payment or len(self.seen) + 10_000, account, cents)


RIGHT = {
    "ledger": {
        "by number": ByNumber,
        "a set": WithASet,
        "by account": ByAccount,
        "a set of tuples": SetOfTuples,
        "taken back first": LastWins,
    }
}
WRONG = {
    "ledger": {
        "counts all": (ledger(lambda seen, *_: False), "was counted again"),
        "the last one": (ledger(lambda seen, n, *_: noted(seen, n, 1)), "was counted again"),
        "the last three": (ledger(lambda seen, n, *_: noted(seen, n, 3)), "was counted again"),
        "the last thousand": (ledger(lambda seen, n, *_: noted(seen, n, 1_000)), "A payment may be delivered again"),
        "in the class": (Shared, "the class attribute `Shared.payments`"),
        "a global variable": (InAGlobal, "the global variable `kept`"),
        "floating-point numbers": (Floating, "right values"),
        "remainders": (Remainders, "has"),
        "three digits": (LastDigits, "no loss"),
        "0 is nothing": (NotZero, "counted"),
        "by amount": (
            ledger(lambda seen, n, account, cents: noted(seen, (account, cents))), "Two payments of the same amount"
        ),
        "by account": (ledger(lambda seen, n, account, cents: noted(seen, account)), "for the first time, but was not"),
        "increasing numbers": (
            ledger(lambda seen, n, *_: n <= max(seen, default=-1) or noted(seen, n)), "delivered for the first time"
        ),
        "nothing": (ledger(lambda *_: True), "delivered for the first time, but was not counted"),
        "no deposits": (ledger(lambda seen, n, account, cents: cents > 0 or noted(seen, n)), "was not counted"),
        "unknown account": (OnlyKnown, "KeyError"),
        "a text": (Text, "a whole number of cents"),
        "the latest": (Latest, "Two payments of the same amount"),
        "all accounts": (Total, "the sum of all accounts"),
        "no methods": (dict, "it needs pay(payment, account, cents) and balance(account)"),
    }
}  # fmt: skip
