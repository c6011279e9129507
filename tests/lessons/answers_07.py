"""Right and wrong answers to the exercises of lesson 7."""


class Aligned:
    def __init__(self, channels):
        self.channels = channels
        self.total = 0
        self.blocked = set()
        self.waiting = []

    def record(self, channel, n):
        if channel in self.blocked:
            self.waiting.append(n)
        else:
            self.total += n

    def barrier(self, channel):
        self.blocked.add(channel)
        if len(self.blocked) < self.channels:
            return None
        return self.snapshot()

    def snapshot(self):
        copy = self.total
        self.total += sum(self.waiting)
        self.blocked.clear()
        self.waiting.clear()
        return copy


class Queues(Aligned):
    """A queue for each channel."""

    def __init__(self, channels):
        self.total, self.queues = 0, [None] * channels

    def record(self, channel, n):
        if self.queues[channel] is None:
            self.total += n
        else:
            self.queues[channel].append(n)

    def barrier(self, channel):
        self.queues[channel] = []
        if None in self.queues:
            return None
        copy = self.total
        self.total += sum(map(sum, self.queues))
        self.queues = [None] * len(self.queues)
        return copy


class Overtaking(Aligned):
    """Counts everything at once, and subtracts what came behind barriers."""

    def __init__(self, channels):
        self.channels, self.total, self.behind, self.seen = channels, 0, 0, set()

    def record(self, channel, n):
        self.total += n
        if channel in self.seen:
            self.behind += n

    def barrier(self, channel):
        self.seen.add(channel)
        if len(self.seen) == self.channels:
            copy, self.behind = self.total - self.behind, 0
            self.seen = set()
            return copy


class NoWaiting(Aligned):
    def record(self, channel, n):
        self.total += n


class Dropping(Aligned):
    def record(self, channel, n):
        if channel not in self.blocked:
            self.total += n


class First(Aligned):
    def barrier(self, channel):
        return self.total


class Every(Aligned):
    def barrier(self, channel):
        self.blocked.add(channel)
        return self.snapshot() if len(self.blocked) == self.channels else self.total


class Never(Aligned):
    def barrier(self, channel):
        self.blocked.add(channel)


class CopyLate(Aligned):
    def snapshot(self):
        super().snapshot()
        return self.total


class AllBlocked(Aligned):
    """The first barrier blocks every channel."""

    def record(self, channel, n):
        if self.blocked:
            self.waiting.append(n)
        else:
            self.total += n


class OnlyOnce(Aligned):
    def snapshot(self):
        copy = self.total
        self.total += sum(self.waiting)
        self.waiting.clear()
        return copy


class Forgets(Aligned):
    def snapshot(self):
        copy = self.total
        self.blocked.clear()
        self.waiting.clear()
        return copy


class Twice(Aligned):
    def snapshot(self):
        copy = self.total
        self.total += sum(self.waiting)
        self.blocked.clear()
        return copy


class Slow(Aligned):
    """Everything waits for the next snapshot."""

    def record(self, channel, n):
        self.waiting.append(n)


class Resets(Aligned):
    def snapshot(self):
        copy = super().snapshot()
        self.total = 0
        return copy


class InTheClass(Aligned):
    waiting = []  # noqa: RUF012  the mistake

    def __init__(self, channels):
        self.channels, self.total, self.blocked = channels, 0, set()


class TwoChannels(Aligned):
    def barrier(self, channel):
        self.blocked.add(channel)
        return self.snapshot() if len(self.blocked) == 2 or self.channels == 1 else None


class NoZero(Aligned):
    def barrier(self, channel):
        return super().barrier(channel) or None


class OneOfEach(Aligned):
    """One record of a channel can wait."""

    def __init__(self, channels):
        super().__init__(channels)
        self.last = {}

    def record(self, channel, n):
        if channel in self.blocked:
            self.last[channel] = n
        else:
            self.total += n

    def snapshot(self):
        copy = self.total
        self.total += sum(self.last.values())
        self.last.clear()
        self.blocked.clear()
        return copy


class DifferentOnes(Aligned):
    """Equal records wait only once."""

    def record(self, channel, n):
        if channel not in self.blocked or n not in self.waiting:
            super().record(channel, n)


class ThreeChannels(Aligned):
    def barrier(self, channel):
        self.blocked.add(channel)
        return self.snapshot() if len(self.blocked) == min(self.channels, 3) else None


class FirstChannel(Aligned):
    """Does not block channel 0."""

    def record(self, channel, n):
        if channel and channel in self.blocked:
            self.waiting.append(n)
        else:
            self.total += n


class Positive(Aligned):
    def record(self, channel, n):
        super().record(channel, max(n, 0))


class Histories:
    """Keeps everything, and adds it up."""

    def __init__(self, channels):
        self.parts = [[[]] for _ in range(channels)]

    @property
    def total(self):
        return sum(n for part in self.parts for piece in part for n in piece)

    def record(self, channel, n):
        self.parts[channel][-1].append(n)

    def barrier(self, channel):
        self.parts[channel].append([])
        if any(len(part) == 1 for part in self.parts):
            return None
        snapshot = sum(sum(part[0]) for part in self.parts)
        self.parts = [[part[0] + part[1], *part[2:]] for part in self.parts]
        return snapshot


RIGHT = {"alignment": {"a list": Aligned, "queues": Queues, "subtraction": Overtaking, "histories": Histories}}
WRONG = {
    "alignment": {
        "no waiting": (NoWaiting, "records from behind a barrier"),
        "dropped": (Dropping, "after the alignment"),
        "at the first barrier": (First, "not all channels have sent their barrier"),
        "at every barrier": (Every, "not all channels have sent their barrier"),
        "never": (Never, "no snapshot is returned"),
        "copied too late": (CopyLate, "records from behind a barrier"),
        "all blocked": (AllBlocked, "lacks records that arrived before the barriers"),
        "only once": (OnlyOnce, "because no barrier is missing"),
        "forgotten": (Forgets, "after the alignment"),
        "processed twice": (Twice, "because no barrier is missing"),
        "everything waits": (Slow, "because no barrier is missing"),
        "begins anew": (Resets, "because no barrier is missing"),
        "in the class": (InTheClass, "what do they share?"),
        "two channels": (TwoChannels, "not all channels have sent their barrier"),
        "three channels": (ThreeChannels, "not all channels have sent their barrier"),
        "one record waits": (OneOfEach, "because no barrier is missing"),
        "equal records once": (DifferentOnes, "because no barrier is missing"),
        "no snapshot of 0": (NoZero, "no snapshot is returned"),
        "channel 0 flows": (FirstChannel, "records from behind a barrier"),
        "nothing below 0": (Positive, "snapshot"),
        "no methods": (list, "no method 'record'"),
    },
}
