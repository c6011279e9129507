"""The main job of the notebook and the command line: delays per origin and hour over a year of real flights."""

from __future__ import annotations

from pathlib import Path

import workbench as wb
from workbench import col

NAME = "delays"


def main_job(history: wb.History, *, speed: str = "max", output: Path | None = None) -> wb.types.Pipeline:
    """The number of flights, their mean delay in minutes and the worst delay for each origin and hour of departure.

    Args:
        history: the flights, with departure as event time and landing as arrival.
        speed: replay speed, for example ``"600x"`` or ``"max"``.
        output: a folder for the same rows as Parquet files, committed exactly once.

    Returns:
        A pipeline that writes its rows to the job's table ``delays``.
    """
    # A flight becomes known when it lands, at most 24 hours after its departure. (Most land within 6; one diverted
    # flight landed 19 hours behind a flight that had left later.) With this bound no record is late.
    flights = wb.Stream.replay(history, speed=speed, out_of_orderness="24h", idle_after="10s")
    delays = (
        flights.filter("dep_delay IS NOT NULL")
        .with_columns(late=col("dep_delay") > 15)
        .key_by("origin")
        .window(wb.tumbling("1h"), allowed_lateness="1h")
        .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay"), worst=wb.max("dep_delay"))
    )
    table = delays.sink_to(wb.TableSink(NAME))
    return table if output is None else table + delays.sink_to(wb.ParquetSink(output))
