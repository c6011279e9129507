"""The events of the benchmark Nexmark, by its public definition: persons, auctions and bids, 1 : 3 : 46.

Constants and shares are those of github.com/nexmark/nexmark, nexmark-flink generator (Apache License 2.0). Texts that
no query reads are drawn from a small pool.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.elements import Int64s

RATE = 10_000
"""Events per second of event time."""
BASE_US = 1_436_918_400_000_000
"""2015-07-15, in microseconds."""
_SHARES = (1, 3, 46)
_OF = sum(_SHARES)
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1_000, 10, 5
_IN_FLIGHT, _ACTIVE, _LEAD = 100, 1_000, 10
_HOT_BLOCK = 100
_HOT_AUCTIONS, _HOT_SELLERS, _HOT_BIDDERS, _HOT_CHANNELS = 2, 4, 4, 2
"""One of this many is not hot."""
_POOL = 997
_SIDE_INPUT = 10_000

_FIRST = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent"),
    "Cheyenne",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

Chance = np.random.Generator


def events(count: int, seed: int = 1) -> dict[str, pa.Table]:
    """The first events, by their kind.

    Args:
        count: how many in all.
        seed: the same one draws the same events.

    Returns:
        The tables ``person``, ``auction`` and ``bid``, in the order of their event time, ``dateTime``.

    Example:
        >>> {name: table.num_rows for name, table in events(1_000).items()}
        {'person': 20, 'auction': 60, 'bid': 920}
    """
    chance = np.random.default_rng(seed)
    number = np.arange(count, dtype=np.int64)
    slot = number % _OF
    person, auction = slot < _SHARES[0], (slot >= _SHARES[0]) & (slot < _SHARES[0] + _SHARES[1])
    return {
        "person": _persons(number[person], chance),
        "auction": _auctions(number[auction], chance),
        "bid": _bids(number[~person & ~auction], chance),
    }


def side_input() -> pa.Table:
    """The table that q13 looks up: ``key`` from 0 to 9,999, and ``value``, the same as text."""
    keys = np.arange(_SIDE_INPUT, dtype=np.int64)
    return pa.table({"key": keys, "value": pa.array(keys).cast(pa.string())})


def _times(number: Int64s) -> Int64s:
    return BASE_US + number * (1_000_000 // RATE)


def _instants(times: Int64s) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("us"))


def _last_person(number: Int64s) -> Int64s:
    """The latest person before an event, from 0."""
    return number // _OF


def _last_auction(number: Int64s) -> Int64s:
    """The latest auction before an event, from 0; before the first one also 0."""
    slot = number % _OF - _SHARES[0]
    epoch = number // _OF - (slot < 0)
    offset = np.where(slot < 0, _SHARES[1] - 1, np.minimum(slot, _SHARES[1] - 1))
    return np.maximum(epoch * _SHARES[1] + offset, 0)


def _below(chance: Chance, limits: Int64s) -> Int64s:
    """Shape (n,): a number from 0 to each limit, exclusive."""
    drawn: Int64s = (chance.random(len(limits)) * limits).astype(np.int64)
    return drawn


def _person_of(number: Int64s, ratio: int, hot_offset: int, chance: Chance) -> Int64s:
    """A person who acts now: often the hot one of the latest hundred."""
    last = _last_person(number)
    active = np.minimum(last + 1, _ACTIVE)
    some = last + 1 - active + _below(chance, active + _LEAD)
    hot = chance.integers(0, ratio, len(number)) > 0
    return _FIRST_ID + np.where(hot, last // _HOT_BLOCK * _HOT_BLOCK + hot_offset, some)


def _pool(chance: Chance, count: int, least: int, most: int) -> pa.Array:
    """Texts out of a pool."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    texts = [
        letters[chance.integers(0, 26, size)].tobytes().decode()
        for size in chance.integers(least, most, _POOL).tolist()
    ]
    return pa.array(texts).take(pa.array(chance.integers(0, _POOL, count)))


def _chosen(chance: Chance, among: tuple[str, ...], count: int) -> pa.Array:
    return pa.array(among).take(pa.array(chance.integers(0, len(among), count)))


def _persons(number: Int64s, chance: Chance) -> pa.Table:
    n = len(number)
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    return pa.table(
        {
            "id": _FIRST_ID + _last_person(number),
            "name": _chosen(chance, tuple(names), n),
            "emailAddress": _pool(chance, n, 14, 18),
            "creditCard": pa.array([f"{digits:016d}" for digits in chance.integers(0, 10**16, n).tolist()]),
            "city": _chosen(chance, _CITIES, n),
            "state": _chosen(chance, _STATES, n),
            "dateTime": _instants(_times(number)),
            "extra": _pool(chance, n, 80, 120),
        }
    )


def _auctions(number: Int64s, chance: Chance) -> pa.Table:
    n, times = len(number), _times(number)
    initial = _prices(chance, n)
    horizon = np.full(n, _IN_FLIGHT * _OF // _SHARES[1] * (1_000_000 // RATE))
    return pa.table(
        {
            "id": _FIRST_ID + _last_auction(number),
            "itemName": _pool(chance, n, 10, 20),
            "description": _pool(chance, n, 60, 100),
            "initialBid": initial,
            "reserve": initial + _prices(chance, n),
            "dateTime": _instants(times),
            "expires": _instants(times + 1_000 + _below(chance, horizon * 2) // 1_000 * 1_000),
            "seller": _person_of(number, _HOT_SELLERS, 0, chance),
            "category": _FIRST_CATEGORY + chance.integers(0, _CATEGORIES, n),
            "extra": _pool(chance, n, 200, 300),
        }
    )


def _bids(number: Int64s, chance: Chance) -> pa.Table:
    n, last = len(number), _last_auction(number)
    least = np.maximum(last - _IN_FLIGHT, 0)
    some = least + _below(chance, last - least + 1 + _LEAD)
    hot = chance.integers(0, _HOT_AUCTIONS, n) > 0
    channels = [*_CHANNELS, *(f"channel-{at}" for at in range(10_000))]
    cold = len(_CHANNELS) + chance.integers(0, 10_000, n)
    channel = np.where(chance.integers(0, _HOT_CHANNELS, n) > 0, chance.integers(0, len(_CHANNELS), n), cold)
    return pa.table(
        {
            "auction": _FIRST_ID + np.where(hot, last // _HOT_BLOCK * _HOT_BLOCK, some),
            "bidder": _person_of(number, _HOT_BIDDERS, 1, chance),
            "price": _prices(chance, n),
            "channel": pa.array(channels).take(pa.array(channel)),
            "url": pa.array(_urls(chance, len(channels))).take(pa.array(channel)),
            "dateTime": _instants(_times(number)),
            "extra": _pool(chance, n, 54, 82),
        }
    )


def _urls(chance: Chance, count: int) -> list[str]:
    """An address for each channel; nine of ten name it."""
    letters = "abcdefghijklmnopqrstuvwxyz_"
    picks: npt.NDArray[np.int64] = chance.integers(0, len(letters), (count, 3, 4))
    made = []
    for at, parts in enumerate(picks.tolist()):
        folders = "/".join("".join(letters[letter] for letter in part) for part in parts)
        named = f"&channel_id={at * 131_071 % 2**31}" if at % 10 and at >= len(_CHANNELS) else ""
        made.append(f"https://www.nexmark.com/{folders}/item.htm?query=1{named}")
    return made


def _prices(chance: Chance, count: int) -> Int64s:
    prices: Int64s = np.round(10 ** (chance.random(count) * 6) * 100).astype(np.int64)
    return prices
