"""RedisSource with a real server: every entry once, despite crashes, outages, trimming and invalid entries."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from redis_server import RedisProcess, client_of, running
from source_readers import readers
from waiting import until

import workbench as wb
from workbench import packages
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, SplitProgress, WaitUntil
from workbench.connectors.redis.entries import mark_of
from workbench.errors import MissingPackageError, PlanError, SettingError, SourceError
from workbench.lab.connectors import check_source

SCHEMA = pa.schema({"n": pa.int64(), "at": pa.timestamp("us")})
STREAMS = ("a", "b", "c", "d")


def time_of(n: int) -> str:
    return f"2026-03-29T01:30:{n:02}"


def fill(client: Any, count: int = 20) -> None:
    for n in range(count):
        client.xadd(STREAMS[n % len(STREAMS)], {"n": n, "at": time_of(n), "other": "x"}, id=f"{n + 1}-1")


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisProcess]:
    """A server for the tests that change nothing but their streams."""
    with running() as server:
        yield server


@pytest.fixture
def server(shared: RedisProcess) -> RedisProcess:
    with client_of(shared) as client:
        client.flushall()
        fill(client)
    return shared


def rows_of(fetched: object) -> list[int]:
    assert isinstance(fetched, Fetched)
    found: list[int] = fetched.records.batch.column("n").to_pylist()
    return found


@pytest.mark.parametrize("bounded", [True, False])
def test_a_crash_at_any_entry_loses_and_repeats_nothing(server: RedisProcess, bounded: bool) -> None:
    source = wb.RedisSource(server.url, STREAMS, SCHEMA, event_time="at", bounded=bounded)
    table = pa.table({"n": list(range(20)), "at": pa.array([time_of(n) for n in range(20)]).cast(SCHEMA.field(1).type)})
    assert check_source(source, table) == 3 * 21 + 20


def test_a_job_reads_to_the_entries_that_were_there(server: RedisProcess) -> None:
    source = wb.RedisSource(server.url, list(STREAMS), {"n": pa.int64()}, bounded=True)
    job = wb.Stream.from_source(source).sink_to(wb.TableSink("entries")).run("redis", parallelism=3)
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table()["n"].to_pylist()) == list(range(20))


def test_a_bounded_end_is_kept_by_the_checkpoint(server: RedisProcess) -> None:
    source = wb.RedisSource(server.url, "a", SCHEMA, bounded=True)
    (first,) = readers(source, 1)
    assert rows_of(first.poll(2)) == [0, 4]
    saved = first.snapshot()
    first.close()
    mark = mark_of((b"5-1", {b"n": b"4", b"at": time_of(4).encode(), b"other": b"x"}))
    assert saved == {
        **{"positions": {"a": "5-1"}, "ends": {"a": "17-1"}, "behind": {"a": 2}},
        **{"marks": {"a": mark}, "known": {"a": ["17-1", 5]}},
    }
    with client_of(server) as client:
        client.xadd("a", {"n": 100})
        client.xdel("a", "17-1")
    (second,) = readers(source, 1)
    second.restore([saved])
    assert rows_of(second.poll(10)) == [8, 12]  # what was deleted by name is skipped
    second._clock.advance_to(1_000_000)
    assert second.poll(10) == Exhausted()
    second.close()


def test_entries_that_were_trimmed_before_they_were_read_are_named(server: RedisProcess) -> None:
    """By MAXLEN, of which the server tells no ID: in a restored reader, and in one that was too slow."""
    source = wb.RedisSource(server.url, "a", SCHEMA)
    (slow,) = readers(source, 1)
    assert rows_of(slow.poll(2)) == [0, 4]
    saved = slow.snapshot()
    with client_of(server) as client:
        client.xtrim("a", maxlen=3, approximate=False)
        (fine,) = readers(source, 1)
        fine.restore([saved])
        assert rows_of(fine.poll(1)) == [8]  # what was trimmed had been read
        client.xtrim("a", maxlen=1, approximate=False)
    for reader, lost in ((slow, 2), (fine, 1), (readers(source, 1)[0], 2)):
        if reader not in (slow, fine):
            reader.restore([saved])
        with pytest.raises(SourceError, match=rf"'a' of unix://\S* was trimmed: {lost} entries after .* were removed"):
            reader.poll(9)
        reader.close()


def test_the_lag_is_what_the_server_counts(server: RedisProcess) -> None:
    (reader,) = readers(wb.RedisSource(server.url, "a", SCHEMA), 1)
    (middle,) = readers(wb.RedisSource(server.url, "a", SCHEMA, start="5-0"), 1)
    assert [rows_of(each.poll(1)) for each in (reader, middle)] == [[0], [4]]
    assert [lag_of(reader), lag_of(middle)] == [4, None]  # how many entries lie before an ID is not told
    assert [rows_of(each.poll(9)) for each in (reader, middle)] == [[4, 8, 12, 16], [8, 12, 16]]
    assert [lag_of(reader), lag_of(middle)] == [0, 0]
    with client_of(server) as client:
        for n in range(3):
            client.xadd("a", {"n": n}, id=f"{100 + n}-0")
        client.xdel("a", "17-1")  # has been read
        reader._clock.advance_to(1_000_000)
        middle._clock.advance_to(1_000_000)
        assert [rows_of(each.poll(1)) for each in (reader, middle)] == [[0], [0]]
        assert [lag_of(reader), lag_of(middle)] == [2, 2]
        client.xdel("a", "101-0")
    assert rows_of(reader.poll(1)) == [2]
    assert lag_of(reader) == 0
    reader.close()
    middle.close()


def lag_of(reader: Any) -> int | None:
    lag: int | None = reader.progress()["a"].lag
    return lag


def test_a_stream_that_is_deleted_and_begun_again(server: RedisProcess) -> None:
    (reader,) = readers(wb.RedisSource(server.url, "a", SCHEMA), 1)
    assert rows_of(reader.poll(9)) == [0, 4, 8, 12, 16]
    with client_of(server) as client:
        client.delete("a")
        reader._clock.advance_to(1_000_000)
        assert isinstance(reader.poll(9), WaitUntil)
        assert lag_of(reader) is None
        client.xadd("a", {"n": 7})
        client.xadd("a", {"n": 8})
    reader._clock.advance_to(2_000_000)
    assert rows_of(reader.poll(1)) == [7]
    assert lag_of(reader) == 1
    reader.close()


def test_the_starts(server: RedisProcess) -> None:
    def first_of(start: str) -> object:
        (reader,) = readers(wb.RedisSource(server.url, "b", SCHEMA, start=start), 1)
        try:
            before = reader.poll(1)
            with client_of(server) as client:
                client.xadd("b", {"n": 50})
            return rows_of(before if isinstance(before, Fetched) else reader_after(reader))
        finally:
            reader.close()

    def reader_after(reader: Any) -> object:
        reader._clock.advance_to(1_000_000)
        return reader.poll(1)

    assert first_of("earliest") == [1]
    assert first_of("10-0") == [9]
    assert first_of("latest") == [50]


def test_streams_take_turns(server: RedisProcess) -> None:
    (reader,) = readers(wb.RedisSource(server.url, ["a", "b"], SCHEMA), 1)
    polls = [reader.poll(2) for _ in range(4)]
    assert [(fetched.split, rows_of(fetched)) for fetched in polls if isinstance(fetched, Fetched)] == [
        *(("a", [0, 4]), ("b", [1, 5]), ("a", [8, 12]), ("b", [9, 13]))
    ]
    reader.close()


def test_values_and_missing_fields(server: RedisProcess) -> None:
    schema = pa.schema(
        [("flag", pa.bool_()), ("x", pa.float64()), ("day", pa.date32()), ("raw", pa.binary()), ("text", pa.string())]
    )
    with client_of(server) as client:
        client.xadd("typed", {"flag": "true", "x": "0.5", "day": "2026-03-29", "raw": b"\xff\0", "text": "é"})
        client.xadd("typed", {"nothing": 1})
    (reader,) = readers(wb.RedisSource(server.url, "typed", schema), 1)
    fetched = reader.poll(9)
    reader.close()
    assert isinstance(fetched, Fetched)
    assert [tuple(row.values()) for row in fetched.records.batch.to_pylist()] == [
        (True, 0.5, dt.date(2026, 3, 29), b"\xff\0", "é"),
        (None,) * 5,
    ]


def test_an_entry_that_is_no_record(server: RedisProcess) -> None:
    with client_of(server) as client:
        client.xadd("a", {"n": "many", "at": time_of(0)}, id="18-1")
        client.xadd("a", {"n": b"\xff"}, id="18-2")
        client.xadd("a", {"n": 21}, id="19-1")
    (strict,) = readers(wb.RedisSource(server.url, "a", SCHEMA, start="17-1"), 1)
    with pytest.raises(SourceError, match=r"^a of unix://\S*, entry 18-1 is not a record of these columns: .*many"):
        strict.poll(9)
    strict.close()
    (reader,) = readers(wb.RedisSource(server.url, "a", SCHEMA, start="17-0", on_error="dead_letter"), 1)
    fetched = reader.poll(9)
    reader.close()
    assert rows_of(fetched) == [16, 21]
    assert isinstance(fetched, Fetched)
    assert fetched.dead_letters is not None
    assert fetched.where is not None
    letters = fetched.dead_letters.batch.to_pylist()
    assert [letter["position"].rpartition(" ")[2] for letter in letters] == ["18-1", "18-2"]
    assert letters[0]["record"] == '{"n": "many", "at": "2026-03-29T01:30:00"}'
    assert fetched.where(1).endswith("entry 19-1")


def test_what_is_not_a_stream_is_named(server: RedisProcess) -> None:
    with client_of(server) as client:
        client.set("text", "x")
    for stream, message in (
        ("nowhere", "there is no stream 'nowhere' at unix://"),
        ("text", "the key has another type: check the name"),
    ):
        (reader,) = readers(wb.RedisSource(server.url, stream, SCHEMA), 1)
        with pytest.raises(SourceError, match=message):
            reader.poll(1)
        reader.close()


def test_a_server_that_comes_back_is_read_on_and_one_that_does_not_is_named() -> None:
    with running() as server:
        with client_of(server) as client:
            fill(client)
        clock = VirtualClock(1)
        source = wb.RedisSource(server.url, "a", SCHEMA, retries=3)
        (reader,) = readers(source, 1, clock)
        assert rows_of(reader.poll(2)) == [0, 4]
        server.stop()
        waited = []
        for _ in range(2):
            waiting = reader.poll(2)
            assert isinstance(waiting, WaitUntil)
            assert waiting.time_us is not None
            assert reader.poll(2) == waiting  # no call before then
            waited.append(waiting.time_us - clock.now_us())
            clock.advance_to(waiting.time_us)
        assert waited == [100_000, 200_000]
        assert reader.outage is not None
        assert (reader.outage.attempts, reader.outage.attempts_max) == (2, 3)
        server.start()
        assert rows_of(reader.poll(9)) == [8, 12, 16]
        assert reader.outage is None
        assert reader.progress() == {"a": SplitProgress("17-1", 0, clock.now_us())}
        server.stop()
        for _ in range(3):
            waiting = reader.poll(2)
            assert isinstance(waiting, WaitUntil)
            clock.advance_to(waiting.time_us or 0)
        with pytest.raises(SourceError, match=r"no connection to unix://.*; start the server"):
            reader.poll(2)
        reader.close()
        server.start()


def test_the_retry_that_is_due_is_a_metric() -> None:
    pytest.importorskip("redis")
    source = wb.RedisSource("redis://127.0.0.1:1", "a", SCHEMA, retries=1_000)
    stream = wb.Stream.from_source(source).sink_to(wb.DiscardSink())
    job = stream.run("waits", parallelism=2)  # of its two subtasks one has no stream, and nothing to try again
    try:
        until(lambda: "connectionAttempts" in str(job.metrics()))
        assert "connectionRetryInMs" in str(job.metrics())
    finally:
        job.cancel()
        job.wait("60s")


def test_a_refused_login_names_no_password() -> None:
    with running("--requirepass", "pa55word") as server:
        (reader,) = readers(wb.RedisSource(f"{server.url}?password=guessed", "a", SCHEMA), 1)
        with pytest.raises(SourceError, match=r"refuses the login .*: check the user and the password") as raised:
            reader.poll(1)
        reader.close()
        assert "guessed" not in str(raised.value)
        source = wb.RedisSource(f"{server.url}?password=pa55word", "a", SCHEMA)
        (reader,) = readers(source, 1)
        with pytest.raises(SourceError, match="there is no stream 'a'"):
            reader.poll(1)
        reader.close()
        assert "pa55word" not in f"{source} {source.describe()}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "http://ann:pa55@x"}, r"the Redis URL 'http://\*\*\*@x' cannot be used"),
        ({"url": "redis://h:port"}, "cannot be used"),
        ({"streams": []}, "write one or several different names"),
        ({"streams": ["a", "a"]}, "different names"),
        ({"streams": ""}, "write one or several different names"),
        ({"start": "now"}, r"start is 'now': write 'earliest', 'latest' or an ID"),
        ({"start": f"{2**64}-0"}, "is not the ID of an entry"),
        ({"retries": -1}, "retries"),
        ({"bounded": "no"}, "bounded"),
    ],
)
def test_settings_that_cannot_be_used(arguments: dict[str, Any], message: str) -> None:
    pytest.importorskip("redis")
    with pytest.raises(SettingError, match=message):
        wb.RedisSource(**{"url": "redis://localhost", "streams": "a", "schema": SCHEMA} | arguments)


def test_event_time_must_exist() -> None:
    pytest.importorskip("redis")
    with pytest.raises(PlanError, match="unknown column 'att': did you mean 'at'"):
        wb.RedisSource("redis://localhost", "a", SCHEMA, event_time="att")


def test_a_damaged_position_is_refused(server: RedisProcess) -> None:
    (reader,) = readers(wb.RedisSource(server.url, "a", SCHEMA), 1)
    with pytest.raises(ValueError, match="'x' is not the ID of an entry"):
        reader.restore([{"positions": {"a": "x"}}])
    reader.close()


def test_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(packages, "import_module", missing)
    with pytest.raises(MissingPackageError, match=r"Redis needs the package redis: run 'pip install \"redis"):
        wb.RedisSource("redis://localhost", "a", SCHEMA)


def begun_again(server: RedisProcess, ids: Sequence[str], *, read: int, bounded: bool = False) -> Any:
    """A reader that has read so many of the entries 1-0 to 5-0, its state, and the stream with other entries."""
    with client_of(server) as client:
        client.delete("r")
        for n in range(1, 6):
            client.xadd("r", {"n": n}, id=f"{n}-0")
        (reader,) = readers(wb.RedisSource(server.url, "r", SCHEMA, bounded=bounded), 1)
        assert rows_of(reader.poll(read)) == [1, 2, 3, 4, 5][:read]
        saved = json.loads(json.dumps(reader.snapshot()))
        client.delete("r")
        for number, identity in enumerate(ids):
            client.xadd("r", {"n": 100 + number}, id=identity)
    return reader, saved


def polled(reader: Any) -> Any:
    """What it gives after the next look at the server."""
    while isinstance(found := reader.poll(100), WaitUntil) and found.time_us is not None:
        if found.time_us > 5_000_000:
            break
        reader._clock.advance_to(found.time_us)
    return found


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("ids", "read", "fact"),
    [
        (["1-0", "2-0"], 5, "it now ends at 2-0"),
        (["1-0", "2-0"], 3, "it now ends at 2-0"),
        ([f"{n}-0" for n in range(1, 51)], 5, "its entry with this ID is another one"),
        (["9-0"], 3, "the former one ended at 5-0"),
        ([f"{n}-0" for n in range(9, 59)], 3, "the former one ended at 5-0"),
        (["1-0", "2-0", "3-0", "4-0", "4-5", "9-0"], 5, "it has no entry with this ID"),
        (["2-0", "9-0"], 5, "it has had 2 entries, but 5 up to the position"),
    ],
)
def test_a_stream_begun_again_is_refused_if_entries_are_lost(
    server: RedisProcess, ids: list[str], read: int, fact: str, bounded: bool
) -> None:
    """In the running reader and in a restored one, also if a bounded one has read all that it wanted."""
    running, saved = begun_again(server, ids, read=read, bounded=bounded)
    (restored,) = readers(wb.RedisSource(server.url, "r", SCHEMA, bounded=bounded), 1)
    restored.restore([saved])
    for reader in (restored, *([] if bounded and read == 5 else [running])):  # which has ended before
        with pytest.raises(SourceError, match=rf"'r' of .* was deleted or begun again since .* {read}-0: {fact}"):
            polled(reader)
        reader.close()
    running.close()


def test_a_stream_begun_again_after_all_that_was_read_is_read_on(server: RedisProcess) -> None:
    running, saved = begun_again(server, ["6-0", "7-0"], read=5)
    (restored,) = readers(wb.RedisSource(server.url, "r", SCHEMA), 1)
    restored.restore([saved])
    for reader in (running, restored):
        assert rows_of(polled(reader)) == [100, 101]
        assert lag_of_r(reader) == 0
        reader.close()


def lag_of_r(reader: Any) -> int | None:
    lag: int | None = reader.progress()["r"].lag
    return lag
