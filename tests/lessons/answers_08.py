"""Right and wrong answers to the exercises of lesson 8."""

from array import array
from dataclasses import dataclass, field


class Xor:
    def __init__(self):
        self.sums = {}

    def begin(self, root, id):
        return self.fold(root, [id], [])

    def update(self, root, processed, created):
        return self.fold(root, created, [processed])

    def fold(self, root, created, processed):
        folded = self.sums.pop(root, 0)
        for each in [*created, *processed]:
            folded ^= each
        if folded:
            self.sums[root] = folded
        return folded == 0


class Difference(Xor):
    """The sum of what was created, minus that of what was processed."""

    def fold(self, root, created, processed):
        left = self.sums.get(root, 0) + sum(created) - sum(processed)
        self.sums[root] = left
        if left == 0:
            del self.sums[root]
        return left == 0


class Products(Xor):
    """A fraction in lowest terms modulo a prime: what is created multiplies, what is processed divides."""

    PRIME = 2**89 - 1

    def fold(self, root, created, processed):
        value = self.sums.pop(root, 1)
        for each in created:
            value = value * each % self.PRIME
        for each in processed:
            value = value * pow(each, -1, self.PRIME) % self.PRIME
        if value != 1:
            self.sums[root] = value
        return value == 1


class Counting(Xor):
    def fold(self, root, created, processed):
        self.sums[root] = self.sums.get(root, 0) + len(created) - len(processed)
        return self.sums[root] == 0


class Sets(Xor):
    def fold(self, root, created, processed):
        self.sums[root] = self.sums.get(root, set()) ^ {*created, *processed}
        return not self.sums[root]


class Never(Xor):
    def fold(self, root, created, processed):
        super().fold(root, created, processed)
        return False


class Always(Xor):
    def fold(self, root, created, processed):
        return True


class WithoutChildren(Xor):
    def update(self, root, processed, created):
        return self.fold(root, [], [processed])


class OnlyCreated(Xor):
    def update(self, root, processed, created):
        return self.fold(root, created, [])


class BeginReplaces(Xor):
    def begin(self, root, id):
        self.sums[root] = id
        return False


class NeedsBegin(Xor):
    def update(self, root, processed, created):
        if root not in self.sums:
            return False
        return super().update(root, processed, created)


class Or(Xor):
    def fold(self, root, created, processed):
        value = self.sums.get(root, 0)
        for each in [*created, *processed]:
            value |= each
        self.sums[root] = value
        return value == 0


class OneForAll(Xor):
    def fold(self, root, created, processed):
        return super().fold(0, created, processed)


class Log(Xor):
    """Keeps every message, too."""

    def __init__(self):
        super().__init__()
        self.log = []

    def fold(self, root, created, processed):
        self.log.append([root, *created, *processed])
        return super().fold(root, created, processed)


class RootIsEnough(Xor):
    def update(self, root, processed, created):
        return not created


class KeepsZeros(Xor):
    """Keeps one number for each root, also when it is complete."""

    def fold(self, root, created, processed):
        for each in [*created, *processed]:
            self.sums[root] = self.sums.get(root, 0) ^ each
        return self.sums[root] == 0


class InTheClass(Xor):
    sums = {}  # noqa: RUF012  the mistake

    def __init__(self):
        pass


class Text(Xor):
    """Keeps the ids in a text."""

    def fold(self, root, created, processed):
        ids = set(self.sums.get(root, "").split()) ^ {*map(str, created), *map(str, processed)}
        self.sums[root] = " ".join(ids)
        return not ids


class Slots(Sets):
    __slots__ = ("hidden",)


@dataclass(slots=True)
class Tree:
    ids: set[int] = field(default_factory=set)


class Trees(Xor):
    """Keeps the ids in objects without a dictionary."""

    def fold(self, root, created, processed):
        self.sums.setdefault(root, Tree()).ids ^= {*created, *processed}
        return not self.sums[root].ids


class Arrays(Xor):
    def fold(self, root, created, processed):
        self.sums[root] = array("Q", {*self.sums.get(root, ())} ^ {*created, *processed})
        return not self.sums[root]


class Closures(Xor):
    def fold(self, root, created, processed):
        ids = self.sums.get(root, set)() ^ {*created, *processed}
        self.sums[root] = lambda: ids
        return not ids


class ADictionary(dict):
    """Is what it keeps."""

    def begin(self, root, id):
        return self.update(root, id, [])

    def update(self, root, processed, created):
        self[root] = self.get(root, set()) ^ {processed, *created}
        return not self[root]


class FewRoots(Xor):
    def fold(self, root, created, processed):
        return super().fold(root % 50, created, processed)


class RootZero(Xor):
    def fold(self, root, created, processed):
        return super().fold(root or 1, created, processed)


class FirstUpdate(Xor):
    """Expects messages in the order of the tree."""

    def __init__(self):
        self.open = {}

    def begin(self, root, id):
        self.open[root] = 1
        return False

    def update(self, root, processed, created):
        self.open[root] = self.open.get(root, 0) + len(created) - 1
        return self.open[root] == 0


RIGHT = {
    "acker": {"XOR": Xor, "a difference": Difference, "products": Products, "numbers of complete roots": KeepsZeros}
}
WRONG = {
    "acker": {
        "counting": (Counting, "not complete too early"),
        "sets": (Sets, "a few bytes for each root"),
        "never": (Never, "complete at the end"),
        "always": (Always, "not complete too early"),
        "without children": (WithoutChildren, "messages about it are on their way: 1."),
        "only created": (OnlyCreated, "complete at the end"),
        "begin replaces": (BeginReplaces, "complete at the end"),
        "begin comes first": (NeedsBegin, "complete at the end"),
        "or": (Or, "complete at the end"),
        "one number for all": (OneForAll, "complete at the end"),
        "a log": (Log, "a few bytes for each root"),
        "no children": (RootIsEnough, "not complete too early"),
        "in the class": (InTheClass, "what do they share?"),
        "in a text": (Text, "a few bytes for each root"),
        "sets beside slots": (Slots, "a few bytes for each root"),
        "sets in objects": (Trees, "a few bytes for each root"),
        "sets in itself": (ADictionary, "a few bytes for each root"),
        "arrays": (Arrays, "a few bytes for each root"),
        "sets in functions": (Closures, "a few bytes for each root"),
        "fifty roots": (FewRoots, "root "),
        "root 0 is nothing": (RootZero, "begin"),
        "in order": (FirstUpdate, "complete at the end"),
        "no methods": (dict, "no method 'begin'"),
    }
}
