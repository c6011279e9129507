"""A job takes its tables although the connection is lost meanwhile, and waits for a server that starts."""

from __future__ import annotations

import postgresql_server
import pyarrow as pa
import pytest
from relay import Relay

import workbench as wb
from workbench.connectors.sql.session import may_return

ROWS = pa.table({"n": [1, 2, 3]})


def taken(relay: Relay, sink: wb.types.Sink, number: int) -> None:
    """A job whose connection is lost when it has sent so many bytes."""
    cut: list[bool] = []

    def cut_off() -> None:
        cut.append(True)
        relay.forget()

    relay.ambush(number, cut_off, to_server=True)
    job = wb.Stream.from_table(ROWS).sink_to(sink).run(f"lost-{number}")
    assert job.wait("60s") == "FINISHED"
    assert cut


def test_a_table_is_taken_when_the_connection_is_lost_meanwhile() -> None:
    with postgresql_server.running() as server:
        relay = Relay(server.folder / ".s.PGSQL.5432")
        url = f"postgresql://wb@127.0.0.1:{relay.port}/postgres?sslmode=disable&gssencmode=disable"
        for number in range(400, 1_600, 400):
            taken(relay, wb.SqlSink(url, f"rows_{number}"), number)
            assert sorted(server.query(f"SELECT n FROM rows_{number}")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    "said",
    [
        "the database system is starting up",
        "the database system is not yet accepting connections",
        "the database system is in recovery mode",
        "the database system is shutting down",
    ],
)
def test_a_server_that_starts_or_recovers_is_waited_for(said: str) -> None:
    assert may_return(OSError(f"FATAL: {said}"))
