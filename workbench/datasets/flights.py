"""All 336,776 flights scheduled to leave New York City in 2013, in the order in which they became known.

A flight happens when it departs and becomes known when it lands. So a short flight overtakes a long one that left
before it, and the disorder of the stream is real.

==============================  ==========================  =====================================================
flights                         ``departed`` (event time)   ``landed`` (arrival, never null)
==============================  ==========================  =====================================================
328,063 landed                  actual departure            actual landing
458 left, no landing recorded   actual departure            scheduled landing + departure delay: when one missed it
8,255 never left                null                        scheduled departure: when one knew
==============================  ==========================  =====================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.connectors.replay.log import Progress
from workbench.datasets.package import DATA_FOLDER, data_file, identity, read_csv, unpacked
from workbench.spark.history import History, fresh_history
from workbench.spark.session import passing_session

if TYPE_CHECKING:
    from workbench.spark.session import DataFrame, SparkSession

NOTES = (
    "departed is the actual departure in UTC; it is null for the 8,255 flights that never left, which stay in the "
    "history and become known at their scheduled departure",
    "landed is the actual landing in UTC; for the 458 flights that left and have no recorded landing it is the "
    "scheduled landing plus the departure delay",
)

_MINUTE_US = 60_000_000
_DAY_US = 86_400_000_000

# Airports that the package's list lacks; none of them has daylight saving time.
_MISSING_ZONES = {
    "BQN": "America/Puerto_Rico",
    "PSE": "America/Puerto_Rico",
    "SJU": "America/Puerto_Rico",
    "STT": "America/St_Thomas",
}

_COLUMNS = (
    "year BIGINT, month BIGINT, day BIGINT, dep_time BIGINT, sched_dep_time BIGINT, dep_delay BIGINT, "
    "arr_time BIGINT, sched_arr_time BIGINT, arr_delay BIGINT, carrier STRING, flight BIGINT, tailnum STRING, "
    "origin STRING, dest STRING, air_time BIGINT, distance BIGINT, hour BIGINT, minute BIGINT, time_hour TIMESTAMP"
)
_AIRPORTS = "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt BIGINT, tz BIGINT, dst STRING, tzone STRING"


def flights(spark: SparkSession, folder: str | Path = DATA_FOLDER) -> DataFrame:
    """The flights as a Spark frame: the package's 19 columns, ``departed`` and ``landed``.

    Clock times in the source are local: a departure's in New York, a landing's in the time zone of the destination. Of
    a landing only the time of day is recorded; the day is chosen such that the landing is within 24 hours after
    departure.

    Args:
        spark: the session.
        folder: where the zipped source is unpacked, because Spark does not read zip files.
    """
    flown = read_csv(spark, unpacked("flights.csv", Path(folder) / "sources"), _COLUMNS)
    airports = read_csv(spark, data_file("airports.csv"), _AIRPORTS)
    zones = airports.selectExpr("faa AS dest", "tzone").hint("broadcast")
    missing = " ".join(f"WHEN '{airport}' THEN '{zone}'" for airport, zone in _MISSING_ZONES.items())
    expected = _later(_next_at("sched_arr_time", "scheduled"), "dep_delay")
    return (
        flown.join(zones, "dest", "left")
        .selectExpr("*", f"coalesce(tzone, CASE dest {missing} END) AS zone")
        .selectExpr("*", f"{_later('time_hour', 'minute')} AS scheduled")
        .selectExpr("*", f"{_later('scheduled', 'dep_delay')} AS departed")
        .selectExpr("*", f"coalesce({_next_at('arr_time', 'departed')}, {expected}, scheduled) AS landed")
        .select(*flown.columns, "departed", "landed")
    )


def flights_history(
    path: str | Path = DATA_FOLDER / "flights.log", *, channels: int = 2, progress: bool | Progress = True
) -> History:
    """The flights as a history, prepared by Spark the first time; event time ``departed``, arrival ``landed``.

    If it already exists and neither the data nor its preparation has changed, no Spark session is started.

    Raises:
        HistoryError: the package with the data, or Java, is missing.

    Example:
        >>> flights_history().rows
        336776
    """
    source = identity(data_file("flights.csv.zip"), data_file("airports.csv"), Path(__file__))
    history = fresh_history(path, source, ("departed", "landed", channels))
    if history is not None:
        return history
    with passing_session(progress) as spark:
        return History.from_spark(
            flights(spark, Path(path).parent),
            path,
            event_time="departed",
            arrival_time="landed",
            channels=channels,
            notes=NOTES,
            source=source,
            progress=progress,
        )


def _later(moment: str, minutes: str) -> str:
    """SQL for a moment some minutes later."""
    return f"timestamp_micros(unix_micros({moment}) + {minutes} * {_MINUTE_US})"


def _next_at(clock: str, after: str) -> str:
    """SQL for the first moment after `after` at which clocks in `zone` show `clock` (517 for 5:17, 2400 for midnight).

    It counts in microseconds, so that it does not depend on the time zone of the session.
    """
    local_us = f"unix_micros(from_utc_timestamp({after}, zone))"
    clock_us = f"({clock} DIV 100 * 60 + {clock} % 100) % 1440 * {_MINUTE_US}"
    same_day_us = f"{local_us} - pmod({local_us}, {_DAY_US}) + {clock_us}"
    same_day = f"to_utc_timestamp(timestamp_micros({same_day_us}), zone)"
    next_day = f"to_utc_timestamp(timestamp_micros({same_day_us} + {_DAY_US}), zone)"
    return f"IF({same_day} > {after}, {same_day}, {next_day})"
