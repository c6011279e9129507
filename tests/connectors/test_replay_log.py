"""Replay logs: records are read back in order from any position; damage is named."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.connectors.replay import cursor as replay_cursor
from workbench.connectors.replay import draft as replay_draft
from workbench.connectors.replay.draft import LogDraft
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.errors import HistoryError


def table(arrivals: list[int | None], events: list[int | None] | None = None) -> pa.Table:
    events = arrivals if events is None else events
    return pa.table(
        {
            "happened": pa.array(events, pa.timestamp("us", "UTC")),
            "known": pa.array(arrivals, pa.timestamp("us", "UTC")),
            "number": pa.array(range(len(arrivals)), pa.int64()),
        }
    )


def write(data: pa.Table, path: Path, **options: object) -> ReplayLog:
    return write_log(data, path, event_time="happened", arrival_time="known", **options)


def numbers(log: ReplayLog, channel: int, chunk: int = 1_000_000) -> list[int]:
    cursor, read = log.cursor(channel), []
    while (batch := cursor.read(chunk)) is not None:
        read += batch.column("number").to_pylist()
    cursor.close()
    return read


def test_records_are_ordered_by_arrival_and_dealt_in_turn(tmp_path: Path) -> None:
    log = write(table([40, 10, 30, 20, 30], [4, None, 3, 9, 1]), tmp_path / "a.log", channels=2)
    # By arrival: 1 (10), 3 (20), 2 (30), 4 (30, written after 2), 0 (40).
    assert numbers(log, 0) == [1, 2, 0]
    assert numbers(log, 1) == [3, 4]
    assert (log.rows, log.channels, log.start_us, log.end_us, log.rows_without_event_time) == (5, 2, 10, 40, 1)
    assert [(file.first_row, file.rows, file.event_us) for file in log.manifest.files] == [
        (0, 3, (3, 4)),
        (0, 2, (1, 9)),
    ]
    log.verify()


def test_the_manifest_says_what_is_in_the_log(tmp_path: Path) -> None:
    write(table([1, 2]), tmp_path / "a.log", fingerprint={"source": "x"}, notes=["A note."])
    content = json.loads((tmp_path / "a.log" / "manifest.json").read_text())
    assert (content["version"], content["rows"], content["event_time"]) == (1, 2, "happened")
    assert content["columns"] == {
        "happened": "timestamp[us, tz=UTC]",
        "known": "timestamp[us, tz=UTC]",
        "number": "int64",
    }
    log = ReplayLog.open(tmp_path / "a.log")
    assert (log.manifest.fingerprint, log.manifest.notes) == ({"source": "x"}, ("A note.",))
    assert log.schema == table([1]).schema


def test_timestamps_become_microseconds_in_utc(tmp_path: Path) -> None:
    data = pa.table(
        {
            "happened": pa.array([1_999], pa.timestamp("ns")),
            "known": pa.array([1_363_000_000], pa.timestamp("s", "America/New_York")),
            "day": pa.array([3], pa.date32()),
        }
    )
    log = write(data, tmp_path / "a.log", channels=1)
    batch = log.cursor(0).read(1)
    assert batch is not None
    assert [str(column.type) for column in log.schema] == [
        "timestamp[us, tz=UTC]",
        "timestamp[us, tz=UTC]",
        "date32[day]",
    ]
    assert batch.column("happened").cast(pa.int64()).to_pylist() == [1]
    assert batch.column("known").cast(pa.int64()).to_pylist() == [1_363_000_000_000_000]


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.timestamp("ms")])
def test_time_columns_may_be_integers_dates_and_timestamps(tmp_path: Path, kind: pa.DataType) -> None:
    data = pa.table(
        {"happened": pa.array([2, 1], pa.int32()).cast(pa.int64() if kind != pa.date32() else pa.int32()).cast(kind)}
    )
    log = write_log(data, tmp_path / "a.log", event_time="happened", arrival_time="happened", channels=1)
    unit = {pa.int64(): 1, pa.date32(): 86_400_000_000, pa.timestamp("ms"): 1_000}[kind]
    assert (log.start_us, log.end_us) == (unit, 2 * unit)


@settings(max_examples=60)
@given(
    arrivals=st.lists(st.integers(0, 50), max_size=60),
    channels=st.integers(1, 4),
    group=st.integers(1, 7),
    chunk=st.integers(1, 9),
    sought=st.integers(-1, 52),
)
def test_any_place_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[int], channels: int, group: int, chunk: int, sought: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "a.log"
    log = write(table(list(arrivals)), path, channels=channels, row_group_rows=group)
    order = sorted(range(len(arrivals)), key=lambda i: arrivals[i])
    for channel in range(channels):
        expected = order[channel::channels]
        assert numbers(log, channel, chunk) == expected
        cursor = log.cursor(channel)
        cursor.seek_time(sought)
        assert cursor.position == sum(arrivals[i] < sought for i in expected)
        assert cursor.peek_arrival_us() == next((arrivals[i] for i in expected if arrivals[i] >= sought), None)
        cursor.seek(len(expected) // 2)
        read: list[int] = []
        while (batch := cursor.read(chunk, arrival_limit_us=sought)) is not None:
            assert batch.num_rows <= chunk
            read += batch.column("number").to_pylist()
        assert read == [i for i in expected[len(expected) // 2 :] if arrivals[i] <= sought]
        cursor.close()
    shutil.rmtree(path)


def test_reading_does_not_copy(tmp_path: Path) -> None:
    cursor = write(table(list(range(1000))), tmp_path / "a.log", channels=1).cursor(0)
    first, second = cursor.read(100), cursor.read(100)
    assert first is not None
    assert second is not None
    assert first.column("number").buffers()[1].address == second.column("number").buffers()[1].address


def test_an_empty_history_is_a_log(tmp_path: Path) -> None:
    log = write(table([]), tmp_path / "a.log")
    assert (log.rows, log.start_us, log.end_us, log.cursor(1).read(5), log.cursor(0).peek_arrival_us()) == (
        0,
        0,
        0,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("event_time", "arrival_time", "message"),
    [
        (
            "hapened",
            "known",
            "unknown event_time column 'hapened': did you mean 'happened'? Valid: happened, known, number, text",
        ),
        ("happened", "landed", "unknown arrival_time column 'landed': Valid: happened, known, number, text"),
        (
            "happened",
            "text",
            "arrival_time column 'text' is of type string: it must be a timestamp, a date or an int64",
        ),
        ("happened", "known", "arrival_time column 'known' is null in 2 records, first in row 1:"),
    ],
)
def test_bad_time_columns_are_refused(tmp_path: Path, event_time: str, arrival_time: str, message: str) -> None:
    data = table([1, None, 3, None], [1, 1, 1, 1]).append_column("text", [["a"] * 4])
    with pytest.raises(HistoryError) as error:
        write_log(data, tmp_path / "a.log", event_time=event_time, arrival_time=arrival_time)
    assert str(error.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_other_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="channels is 0"):
        write(table([1]), tmp_path / "a.log", channels=0)
    with pytest.raises(HistoryError, match=r"\['number'\] occur more than once"):
        write(table([1]).append_column("number", [[1]]), tmp_path / "a.log")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(HistoryError, match="is not a replay log: choose another path"):
        write(table([1]), tmp_path / "mine")
    log = write(table([1]), tmp_path / "a.log")
    with pytest.raises(HistoryError, match="its channels are 0 to 1"):
        log.cursor(2)
    with pytest.raises(HistoryError, match="offset 5 is outside channel 0"):
        log.cursor(0).seek(5)


def test_a_missing_log_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"there is no such folder\): write it with History\.from_spark"):
        ReplayLog.open(tmp_path / "none.log")
    (tmp_path / "torn.log").mkdir()
    with pytest.raises(HistoryError, match=r"it has no manifest\)"):
        ReplayLog.open(tmp_path / "torn.log")


def damage_manifest(folder: Path, old: str, new: str) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace(old, new, 1))


def test_damage_is_found_and_named(tmp_path: Path) -> None:
    original = tmp_path / "a.log"
    file = next(iter(write(table([1, 2, 3]), original).manifest.files)).name

    def copy() -> Path:
        shutil.rmtree(tmp_path / "b.log", ignore_errors=True)
        return Path(shutil.copytree(original, tmp_path / "b.log"))

    folder = copy()
    (folder / file).unlink()
    with pytest.raises(HistoryError, match=f"lacks its file {file}: write it again"):
        ReplayLog.open(folder)

    folder = copy()
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[:-1])
    with pytest.raises(HistoryError, match=f"{file} has {len(content) - 1} bytes instead of {len(content)}"):
        ReplayLog.open(folder)

    (folder / file).write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    with pytest.raises(HistoryError, match="does not match its checksum"):
        ReplayLog.open(folder).verify()

    folder = copy()
    damage_manifest(folder, '"version": 1', '"version": 99')
    with pytest.raises(HistoryError, match="has format version 99 and this release reads version 1"):
        ReplayLog.open(folder)
    text = (original / "manifest.json").read_text()
    schema = json.loads(text)["schema"]
    nameless = base64.b64encode(base64.b64decode(schema).replace(b"number", b"n\xffmber")).decode()
    twice = pa.schema([(name, pa.timestamp("us", "UTC")) for name in ("happened", "known", "known")])
    doubled = base64.b64encode(twice.serialize()).decode()
    for old, new in [
        ("workbench replay log", "poem"),
        ('"rows": 3', '"rows": 4'),
        ('"notes"', '"nodes"'),
        ("{", ""),
        ("{", "[" * 100_000),
        (f'"{file}"', '"../../other.parquet"'),
        (f'"{file}"', "null"),
        (f'"{file}"', '"a\\u0000b"'),
        ('"first_row": 0', '"first_row": 1'),
        ('"without_event_time": 0', '"without_event_time": "0"'),
        ('"event_us": [', '"event_us": ["x",'),
        ('"first_arrival_us": ', '"first_arrival_us": 9'),
        ('"event_time": "happened"', '"event_time": 5'),
        ('"notes": []', '"notes": [5]'),
        ('"schema": "', '"schema": "AAAA'),
        (f'"schema": "{schema}"', f'"schema": "{nameless}"'),
        (f'"schema": "{schema}"', f'"schema": "{doubled}"'),
        (text[text.index('"channels": ') :], '"channels": [], "rows": 0}'),
    ]:
        folder = copy()
        damage_manifest(folder, old, new)
        with pytest.raises(HistoryError, match=r"is not a replay log's manifest \(.*\): write the log again"):
            ReplayLog.open(folder)

    folder = copy()
    damage_manifest(folder, '"event_time": "happened"', '"event_time": "never"')
    with pytest.raises(HistoryError, match="unknown event_time column 'never'"):
        ReplayLog.open(folder)


def test_a_log_holds_its_files_itself(tmp_path: Path) -> None:
    """What is a link to another place, or has no end, is not read."""
    log = write(table([1, 2, 3]), tmp_path / "a.log", channels=1)
    (file,) = (log.path / file.name for file in log.manifest.files)
    link = Path(shutil.copytree(log.path, tmp_path / "linked.log"))
    moved = file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(moved)
    with pytest.raises(HistoryError, match=r"parquet is a link that leads out of the folder\): write it again"):
        ReplayLog.open(log.path)
    (link / "manifest.json").rename(link / "there.json")
    (link / "manifest.json").symlink_to("there.json")
    assert numbers(ReplayLog.open(link), 0) == [0, 1, 2]
    for place in (link / "manifest.json", link / file.relative_to(log.path)):
        before = place.read_bytes()
        place.unlink()
        os.mkfifo(place)
        with pytest.raises(HistoryError, match="is not a regular file"):
            ReplayLog.open(link)
        place.unlink()
        place.write_bytes(before)
    with (link / "manifest.json").open("r+b") as manifest:
        manifest.truncate(2**40)
    with pytest.raises(HistoryError, match=r"manifest.json has 1,099,511,627,776 bytes"):
        ReplayLog.open(link)


@pytest.mark.parametrize("small_bytes", [0, replay_cursor._SMALL_BYTES])
def test_what_a_file_holds_beyond_the_manifest_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    """Ten million equal rows have some kilobytes in a file; the manifest knows how many there may be."""
    monkeypatch.setattr(replay_cursor, "_SMALL_BYTES", small_bytes)
    log = write(table([1, 2, 3]), tmp_path / "a.log", channels=1)
    same = pa.repeat(pa.scalar(7, pa.int64()), 10_000_000)
    log = replace_file(log, pa.table({"happened": same, "known": same, "number": same}))
    for name in ("read", "read_row_group"):
        monkeypatch.setattr(pq.ParquetFile, name, lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(HistoryError, match=r"has (10000000|1048576) rows where the manifest counts 3"):
        log.cursor(0).read(10)


@pytest.mark.parametrize("small_bytes", [0, replay_cursor._SMALL_BYTES])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data.drop_columns("number"), "field names are not matching"),
        (lambda data: data.set_column(2, "number", not_text()), "the column 'number' is not text"),
    ],
)
def test_a_file_of_other_columns_or_of_no_text_is_damaged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_bytes: int,
    change: Callable[[pa.Table], pa.Table],
    sentence: str,
) -> None:
    monkeypatch.setattr(replay_cursor, "_SMALL_BYTES", small_bytes)
    data = table([1, 2, 3])
    data = data.set_column(2, "number", pa.array(["x", "é", "z"]))
    damaged = replace_file(write(data, tmp_path / "a.log", channels=1), change(data))
    with pytest.raises(HistoryError, match=rf"cannot be read \(.*{sentence}.*\): the replay log is damaged"):
        damaged.cursor(0).read(10)
    assert replace_file(damaged, data).cursor(0).read(10).column("number").to_pylist() == ["x", "é", "z"]


def not_text() -> pa.Array:
    """Three texts, of which Python can read two."""
    offsets = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"x\xffz")])


def replace_file(log: ReplayLog, data: pa.Table) -> ReplayLog:
    """Put other records into the log's first file and let the manifest agree with its size."""
    file = next(iter(log.manifest.files))
    pq.write_table(data, log.path / file.name)
    damage_manifest(log.path, f'"bytes": {file.bytes}', f'"bytes": {(log.path / file.name).stat().st_size}')
    return ReplayLog.open(log.path)


def test_arrivals_that_go_back_or_are_null_are_met_while_reading(tmp_path: Path) -> None:
    second = 1_000_000
    back = replace_file(
        write(table([1, 2, 3]), tmp_path / "a.log", channels=1), table([second, 9 * second, 4 * second])
    )
    with pytest.raises(
        HistoryError,
        match=r"parquet, row 2: the arrival time goes back from 1970-01-01 00:00:09 to 1970-01-01 00:00:04;",
    ):
        back.cursor(0).read(10)
    null = replace_file(write(table([1, 2, 3]), tmp_path / "a.log", channels=1), table([second, None, 4 * second]))
    with pytest.raises(HistoryError, match="parquet, row 1: the arrival time is null after 1970-01-01 00:00:01;"):
        null.cursor(0).peek_arrival_us()
    short = replace_file(write(table([1, 2, 3]), tmp_path / "a.log", channels=1), table([1]))
    with pytest.raises(HistoryError, match="has 1 rows where the manifest counts 3"):
        short.cursor(0).read(10)


def test_arrivals_that_go_back_between_row_groups_are_met(tmp_path: Path) -> None:
    log = write(table([1, 2, 3, 4]), tmp_path / "a.log", channels=1, row_group_rows=2)
    file = next(iter(log.manifest.files))
    pq.write_table(table([1, 2, 1, 4]), log.path / file.name, row_group_size=2)
    damage_manifest(log.path, f'"bytes": {file.bytes}', f'"bytes": {(log.path / file.name).stat().st_size}')
    cursor = ReplayLog.open(log.path).cursor(0)
    assert cursor.read(10) is not None
    with pytest.raises(HistoryError, match="row 2: the arrival time goes back"):
        cursor.read(10)


def test_a_log_that_was_written_anew_is_never_mixed_with_the_old_one(tmp_path: Path) -> None:
    cursor = write(table([1, 2, 3]), tmp_path / "a.log", channels=1).cursor(0)
    write(table([7, 8, 9, 10]), tmp_path / "a.log", channels=1)
    with pytest.raises(HistoryError, match="is missing: the replay log was deleted or rewritten"):
        cursor.read(1)


def test_of_two_threads_that_write_one_log_the_second_is_refused(tmp_path: Path) -> None:
    told: list[str] = []

    def meanwhile(stage: str, done: int, total: int) -> None:
        with pytest.raises(HistoryError) as refused:
            write(table([7]), tmp_path / "a.log")
        told.append(str(refused.value))

    log = write(table([1, 2, 3]), tmp_path / "a.log", progress=meanwhile)
    sentence = "is being written by another thread: wait for it, or choose another path"
    assert told == [f"the replay log at {tmp_path / 'a.log'} {sentence}"] * 2
    assert log.rows == 3
    log.verify()
    assert write(table([7]), tmp_path / "a.log").rows == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]


def test_a_torn_write_leaves_the_old_log_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table([1, 2, 3]), tmp_path / "a.log")
    draft = LogDraft(tmp_path / "a.log", "happened", "known")
    draft.add_channel()
    pq.write_table(table([1]), draft.folder / "x.parquet")
    draft.add_file(draft.folder / "x.parquet")
    monkeypatch.setattr(replay_draft, "_in_progress", {})  # the process ends here: no manifest, no rename
    assert ReplayLog.open(tmp_path / "a.log").rows == 3
    with pytest.raises(HistoryError, match="no manifest"):
        ReplayLog.open(draft.folder)
    (tmp_path / ".a.log.999999999.tmp").mkdir()  # of a writer that was killed
    write(table([1, 2]), tmp_path / "a.log")
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]


def test_the_same_records_make_the_same_log(tmp_path: Path) -> None:
    data = table(np.random.default_rng(1).integers(0, 99, 500).tolist())
    one, two = (write(data, tmp_path / name).manifest.identity for name in ("a.log", "b.log"))
    assert one == two != write(data.slice(1), tmp_path / "c.log").manifest.identity


@pytest.mark.parametrize("small_bytes", [0, replay_cursor._SMALL_BYTES])
def test_a_file_is_read_as_a_whole_or_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    monkeypatch.setattr(replay_cursor, "_SMALL_BYTES", small_bytes)
    log = write(table(list(range(20))), tmp_path / "a.log", channels=1, row_group_rows=8)
    (file,) = log.manifest.files
    assert [group.rows for group in file.groups] == [8, 8, 4]
    assert numbers(log, 0, chunk=5) == list(range(20))
    again = write(table(list(range(100, 120))), tmp_path / "a.log", channels=1, row_group_rows=8)
    cursor = again.cursor(0)
    cursor.seek(17)
    batch = cursor.read(10)
    assert batch is not None
    assert batch.column("known").cast(pa.int64()).to_pylist() == [117, 118, 119]
    cursor = log.cursor(0)
    (log.path / file.name).write_bytes((again.path / again.manifest.channels[0][0].name).read_bytes())
    cursor.read(1)
    (log.path / file.name).unlink()
    assert cursor.read(7) is not None
    cursor.close()
    with pytest.raises(HistoryError, match="is missing: the replay log was deleted or rewritten"):
        cursor.read(1)
    pq.write_table(table(list(range(24))), log.path / file.name, row_group_size=12)
    with pytest.raises(HistoryError, match=r"has (12|24) rows where the manifest counts (8|20): write the log again"):
        cursor.read(1)


def test_a_log_may_be_left_uncompressed(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([3, 1, 2], pa.int64())})
    found = {}
    for compression in ("zstd", "none"):
        log = write_log(
            table, tmp_path / compression, event_time="t", arrival_time="t", channels=1, compression=compression
        )
        (file,) = log.manifest.files
        with pq.ParquetFile(log.path / file.name) as parquet:
            found[parquet.metadata.row_group(0).column(0).compression] = parquet.read().column("t").to_pylist()
    assert found == {"ZSTD": [1, 2, 3], "UNCOMPRESSED": [1, 2, 3]}


def test_a_log_goes_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "a.log").symlink_to(tmp_path / "disk" / "data.log")
    for arrivals in ([1, 2, 3], [4, 5]):
        assert write(table(arrivals), tmp_path / "a.log").rows == len(arrivals)
        assert ReplayLog.open(tmp_path / "disk" / "data.log").rows == len(arrivals)
        assert (tmp_path / "a.log").is_symlink()
        assert sorted(path.name for path in tmp_path.rglob("*.log*")) == ["a.log", "data.log"]


def test_a_folder_that_cannot_be_replaced_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounted").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(replay_draft.os.path, "ismount", lambda path: Path(path) == tmp_path / "mounted")
        with pytest.raises(HistoryError, match="mounted, where a file system is mounted: choose a folder in it"):
            write(table([1, 2]), tmp_path / "mounted")
    monkeypatch.chdir(tmp_path / "mounted")
    with pytest.raises(HistoryError, match=r"cannot replace \., which is the working directory: choose a folder in it"):
        write(table([1, 2]), Path())
    assert [path.name for path in tmp_path.iterdir()] == ["mounted"]


@pytest.mark.parametrize("full", [(pq, "write_table"), (replay_draft, "sync_path")])
def test_a_full_disk_is_told_with_the_log_and_leaves_the_old_one(
    full: tuple[object, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(table([1, 2]), tmp_path / "a.log")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "Error writing bytes to file. Detail: [errno 28] No space left on device")

    monkeypatch.setattr(*full, refuse)
    said = r"write a replay log at .*a\.log \(No space left on device\): free some space or choose another path$"
    with pytest.raises(HistoryError, match=said):
        write(table([3, 4, 5]), tmp_path / "a.log")
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]
    assert ReplayLog.open(tmp_path / "a.log").rows == 2


def test_a_log_that_may_not_be_read_is_not_told_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table([1, 2]), tmp_path / "a.log")
    stat = Path.stat

    def refuse(path: Path, **options: bool) -> object:
        if path.suffix == ".parquet":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(
        HistoryError, match=r"cannot be read \(Permission denied: .*\.parquet\): change its permissions$"
    ):
        ReplayLog.open(tmp_path / "a.log")


@pytest.mark.parametrize(("unit", "value"), [("s", 10**13), ("s", -(10**13)), ("ms", 10**16)])
def test_a_time_that_microseconds_cannot_count_is_refused(tmp_path: Path, unit: str, value: int) -> None:
    """One of event time or of arrival is refused before, for what is added to it (see test_ends_of_time)."""
    fine = 9 * 10**12 if unit == "s" else 9 * 10**15
    times = {"t": pa.array([0, 1, 2], pa.timestamp(unit)), "other": pa.array([0, None, value], pa.timestamp(unit))}
    with pytest.raises(HistoryError) as refused:
        write_log(pa.table(times), tmp_path / "log", event_time="t", arrival_time="t")
    assert str(refused.value) == (
        f"column 'other' has the time {value} in row 2, stored as timestamp[{unit}]: a replay log stores "
        "microseconds, which reach 292,000 years before and after 1970; fix the time or its unit, or make it null"
    )
    assert not (tmp_path / "log").exists()
    times["other"] = pa.array([0, 1, fine], pa.timestamp(unit))
    log = write_log(pa.table(times), tmp_path / "log", event_time="t", arrival_time="t")
    assert log.schema.field("other").type == pa.timestamp("us", "UTC")  # the longest that can be told is taken


def test_times_within_other_values_are_treated_as_those_of_columns(tmp_path: Path) -> None:
    plain, kept = pa.timestamp("s"), pa.timestamp("us", "UTC")
    kinds = [
        (pa.struct([("t", kind), ("n", pa.int64())]), pa.list_(kind), pa.map_(pa.string(), kind))
        for kind in (plain, kept)
    ]
    rows = ([{"t": 7, "n": 1}, None], [[7, None], []], [[("a", 7)], None])
    columns = [pa.array(values, kind) for values, kind in zip(rows, kinds[0], strict=True)]
    table = pa.table({"e": pa.array([1, 2], plain), "s": columns[0], "l": columns[1], "m": columns[2]})
    log = write_log(table, tmp_path / "log", event_time="e", arrival_time="e", channels=1)
    batch = log.cursor(0).read(10)
    assert batch is not None
    assert [batch.schema.field(name).type for name in "slm"] == list(kinds[1])
    seven = dt.datetime(1970, 1, 1, 0, 0, 7, tzinfo=dt.UTC)
    assert batch.to_pylist()[0]["s"] == {"t": seven, "n": 1}
    assert batch.to_pylist()[0]["l"] == [seven, None]
    assert batch.to_pylist()[0]["m"] == [("a", seven)]
    far = pa.array([{"t": 10**13, "n": 1}, {"t": 1, "n": 1}], kinds[0][0])
    with pytest.raises(HistoryError, match=r"column 's' has the time 10000000000000 in row 0, stored as struct"):
        write_log(table.set_column(1, "s", far), tmp_path / "far", event_time="e", arrival_time="e")
