"""Bytes with one place changed, and files with one thing done to them."""

from __future__ import annotations

from random import Random

_INTEGERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**16, 255)


def changed(chance: Random, data: bytes) -> bytes:
    """Other bytes, most likely: flipped, cut, doubled, moved, overwritten."""
    if not data:
        return chance.randbytes(chance.choice((1, 100)))
    begin = chance.randrange(len(data))
    end = min(len(data), begin + chance.choice((1, 4, 8, 64, 1_024)))
    match chance.randrange(11):
        case 0 | 1:
            return data[:begin] + bytes([data[begin] ^ 1 << chance.randrange(8)]) + data[begin + 1 :]
        case 2:
            return data[:begin]
        case 3:
            return data[begin:]
        case 4:
            return data + (data if chance.random() < 0.5 else chance.randbytes(chance.choice((1, 8, 500))))
        case 5:
            return data[:begin] + data[end:]
        case 6:
            return data[:end] + data[begin:]
        case 7:
            return data[:begin] + chance.choice((b"\0", b"\xff", b" ", b"\n")) * (end - begin) + data[end:]
        case 8:
            return data[:begin] + chance.randbytes(end - begin) + data[end:]
        case 9:
            other = chance.randrange(len(data))
            return data[:begin] + data[other : other + end - begin] + data[end:]
    return with_integer(chance, data)


def with_integer(chance: Random, data: bytes) -> bytes:
    """The bytes with another whole number in a place where one may stand: sizes, counts and offsets are such."""
    width = chance.choice((1, 2, 4, 4, 8))
    places = max(1, len(data) // width)
    at = chance.randrange(places) * width
    old = int.from_bytes(data[at : at + width], "little", signed=True)
    new = chance.choice((*_INTEGERS, old + 1, old - 1, -old, old * 2, old << 8))
    return data[:at] + (new % (1 << 8 * width)).to_bytes(width, "little") + data[at + width :]
