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


RIGHT = {"ledger": {"by number": ByNumber, "a set": WithASet, "by account": ByAccount}}
WRONG = {
    "ledger": {
        "counts all": (ledger(lambda seen, *_: False), "Each delivery was counted"),
        "the last one": (ledger(lambda seen, n, *_: noted(seen, n, 1)), "came more than once"),
        "the last three": (ledger(lambda seen, n, *_: noted(seen, n, 3)), "right is"),
        "by amount": (ledger(lambda seen, n, account, cents: noted(seen, (account, cents))), "two payments"),
        "by account": (ledger(lambda seen, n, account, cents: noted(seen, account)), "right is"),
        "increasing numbers": (
            ledger(lambda seen, n, *_: n <= max(seen, default=-1) or noted(seen, n)), "right is"
        ),
        "nothing": (ledger(lambda *_: True), "right is"),
        "no deposits": (ledger(lambda seen, n, account, cents: cents > 0 or noted(seen, n)), "right is"),
        "unknown account": (OnlyKnown, "KeyError"),
        "a text": (Text, "right is"),
        "the latest": (Latest, "right is"),
        "all accounts": (Total, "right is"),
        "no methods": (dict, "the class needs two methods"),
    }
}  # fmt: skip
