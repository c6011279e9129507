"""Messages of PostgreSQL's log, written by hand after its documentation, and what is not one; values and snapshots."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from workbench.connectors.postgresql_log.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Column,
    Commit,
    Relation,
    Truncate,
    message_of,
)
from workbench.connectors.postgresql_log.positions import Seen, lsn_of
from workbench.connectors.postgresql_log.texts import column_of, fits
from workbench.errors import SourceError

ID = bytes([0, 0, 64, 1])
SEVEN = b"t\0\0\0\x017"
ROW = b"\0\x02" + SEVEN + b"n"
MESSAGES = {
    b"B" + (0x1_0000_0020).to_bytes(8) + bytes(8) + (731).to_bytes(4): Begin(0x1_0000_0020, 731),
    b"C\0" + (32).to_bytes(8) + (48).to_bytes(8) + bytes(8): Commit(48),
    b"R"
    + ID
    + b"public\0caf\xc3\xa9\0d\0\x02"
    + b"\x01id\0\0\0\0\x14\xff\xff\xff\xff"
    + b"\0v\0\0\0\0\x19\0\0\0\x09": (
        Relation(0x4001, "public", "café", "d", (Column("id", 20, -1), Column("v", 25, 9)))
    ),
    b"I" + ID + b"N" + ROW: Change(0x4001, None, ("7", None), False),
    b"U" + ID + b"N\0\x02" + SEVEN + b"u": Change(0x4001, None, ("7", UNCHANGED), False),
    b"U" + ID + b"K" + ROW + b"N" + ROW: Change(0x4001, ("7", None), ("7", None), False),
    b"U" + ID + b"O" + ROW + b"N" + ROW: Change(0x4001, ("7", None), ("7", None), True),
    b"D" + ID + b"K" + ROW: Change(0x4001, ("7", None), None, False),
    b"T\0\0\0\x02\x01" + ID + b"\0\0\0\x05": Truncate((0x4001, 5)),
}


@pytest.mark.parametrize("data", MESSAGES, ids=lambda data: data[:1].decode())
def test_a_message_is_read_whole_or_refused(data: bytes) -> None:
    assert message_of(data) == MESSAGES[data]
    for end in range(1, len(data)):
        with pytest.raises(ValueError, match=r"message|name|row|identity"):
            message_of(data[:end])
    with pytest.raises(ValueError, match="message"):
        message_of(data + b"\0")


@pytest.mark.parametrize("data", [b"Y" + bytes(9), b"O" + bytes(9), b"M" + bytes(9)])
def test_types_origins_and_messages_of_programs_are_passed_over(data: bytes) -> None:
    assert message_of(data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"S" + bytes(9),
        b"I" + ID + b"O" + ROW,
        b"I" + ID + b"N\0\x01b\0\0\0\x017",
        b"I" + ID + b"N\0\x01t\0\0\0\x01\xff",
        b"I" + ID + b"N\0\x01t\xff\xff\xff\xff7",
        b"D" + ID + b"N" + ROW,
        b"R" + ID + b"public\0t\0x\0\0",
        b"T\xff\xff\xff\xff\0" + ID,
    ],
)
def test_what_the_protocol_does_not_have_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        message_of(data)


EXACT: list[tuple[int, pa.DataType, str, Any]] = [
    (20, pa.int64(), "-9223372036854775808", -(2**63)),
    (23, pa.int16(), "-5", -5),
    (16, pa.bool_(), "f", False),
    (701, pa.float64(), "0.1", 0.1),
    (701, pa.float64(), "-Infinity", float("-inf")),
    (700, pa.float64(), "0.1", 0.10000000149011612),
    (1700, pa.decimal128(9, 2), "12.50", Decimal("12.50")),
    (20, pa.decimal128(38, 0), "12", Decimal(12)),
    (25, pa.string(), "é\n", "é\n"),
    (790, pa.string(), "$1.50", "$1.50"),
    (17, pa.binary(), "\\x00ff", b"\0\xff"),
    (1082, pa.date32(), "0099-02-28", date(99, 2, 28)),
    (1083, pa.time64("us"), "23:59:59.5", time(23, 59, 59, 500_000)),
    (1114, pa.timestamp("us"), "2026-03-29 01:02:03.000004", datetime(2026, 3, 29, 1, 2, 3, 4)),
    (1184, pa.timestamp("us", "UTC"), "2026-03-29 01:02:03.5+00", datetime(2026, 3, 29, 1, 2, 3, 500_000, UTC)),
]


@pytest.mark.parametrize(("kind", "target", "text", "value"), EXACT)
def test_values_are_exact(kind: int, target: pa.DataType, text: str, value: object) -> None:
    assert fits(kind, target)
    assert column_of([text, None], kind, pa.field("c", target)).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("kind", "target", "text"),
    [
        (20, pa.int32(), "2147483648"),
        (1700, pa.decimal128(9, 2), "12.345"),
        (1700, pa.decimal128(9, 2), "NaN"),
        (1082, pa.date32(), "infinity"),
        (1082, pa.date32(), "0044-03-15 BC"),
        (1083, pa.time64("us"), "24:00:00"),
        (1114, pa.timestamp("us"), "-infinity"),
        (1114, pa.timestamp("ns"), "9999-01-01 00:00:00"),
        (1114, pa.timestamp("s"), "2026-01-01 00:00:00.5"),
        (1184, pa.timestamp("us", "UTC"), "294276-12-31 23:59:59+00"),
        (17, pa.binary(), "\\377"),
    ],
)
def test_values_that_a_type_does_not_have_are_refused(kind: int, target: pa.DataType, text: str) -> None:
    with pytest.raises(SourceError, match=r"the column 'c': .*declare it as pa\.string\(\)"):
        column_of([None, text], kind, pa.field("c", target))


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (790, pa.int64()),
        (1700, pa.float64()),
        (1700, pa.int64()),
        (701, pa.float32()),
        (1114, pa.timestamp("us", "UTC")),
        (1184, pa.timestamp("us")),
        (1186, pa.duration("us")),
        (1007, pa.list_(pa.int32())),
        (25, pa.binary()),
        (1560, pa.int8()),
    ],
)
def test_types_that_are_not_exact_do_not_fit(kind: int, target: pa.DataType) -> None:
    assert not fits(kind, target)


def test_a_snapshot_has_what_was_over_when_it_was_taken() -> None:
    begin = 5 << 32  # the log has the lower half of ids
    seen = Seen.parsed(f"{begin - 2}:{begin + 3}:{begin - 2},{begin + 1}")
    assert str(seen) == f"{begin - 2}:{begin + 3}:{begin - 2},{begin + 1}"
    ids = range(begin - 4, begin + 6)
    assert [id - begin for id in ids if seen.has(id)] == [-4, -3, -1, 0, 2]
    assert [id - begin for id in ids if seen.has(id & 0xFFFFFFFF)] == [-4, -3, -1, 0, 2]


@pytest.mark.parametrize("text", ["", "1:2", "1:2:a", "1:2:3,", "1/2", "G/1", "1/123456789"])
def test_damaged_snapshots_and_places_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        Seen.parsed(text)
    with pytest.raises(ValueError, match="is no"):
        lsn_of(text if text != "1/2" else "")
