"""The hourly weather at New York City's three airports in 2013: 26,115 observations.

An observation's event time is the hour that it describes. The source does not say when it was published, so none is
invented: an observation arrives at its event time, and this stream is in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.connectors.replay.log import Progress
from workbench.datasets.package import DATA_FOLDER, data_file, identity, read_csv
from workbench.spark.history import History, fresh_history
from workbench.spark.session import passing_session

if TYPE_CHECKING:
    from workbench.spark.session import DataFrame, SparkSession

NOTES = ("time_hour is both event time and arrival: the source does not say when an observation was published",)

_COLUMNS = (
    "origin STRING, year BIGINT, month BIGINT, day BIGINT, hour BIGINT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, "
    "wind_dir DOUBLE, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, "
    "time_hour TIMESTAMP"
)


def weather(spark: SparkSession) -> DataFrame:
    """The observations as a Spark frame: the package's 15 columns, ``time_hour`` in UTC."""
    return read_csv(spark, data_file("weather.csv"), _COLUMNS)


def weather_history(
    path: str | Path = DATA_FOLDER / "weather.log", *, channels: int = 1, progress: bool | Progress = True
) -> History:
    """The observations as a history, prepared by Spark the first time; event time and arrival ``time_hour``.

    If it already exists and neither the data nor its preparation has changed, no Spark session is started.

    Raises:
        HistoryError: the package with the data, or Java, is missing.

    Example:
        >>> weather_history().rows
        26115
    """
    source = identity(data_file("weather.csv"), Path(__file__))
    history = fresh_history(path, source, ("time_hour", "time_hour", channels))
    if history is not None:
        return history
    with passing_session(progress) as spark:
        return History.from_spark(
            weather(spark),
            path,
            event_time="time_hour",
            arrival_time="time_hour",
            channels=channels,
            notes=NOTES,
            source=source,
            progress=progress,
        )
