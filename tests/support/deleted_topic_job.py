"""A job that reads a topic until the topic is deleted: in a process of its own, as some clients crash then.

Its arguments are the servers and the topic. It says when it has read a message, and then the error of the job.
"""

from __future__ import annotations

import sys

import pyarrow as pa
from waiting import until

import workbench as wb
from workbench.connectors.kafka import topic_ids


def main(servers: str, topic: str) -> None:
    vars(topic_ids).update(_LOOK_US=200_000, _AGAIN_US=200_000)
    stream = wb.Stream.from_source(wb.KafkaSource(servers, topic, {"n": pa.int64()}))
    job = stream.sink_to(wb.TableSink("read")).run("reads", checkpoint_interval="50ms", restart=wb.restart.no_restart())
    until(lambda: job.table("read").num_rows > 0)
    sys.stdout.write("read\n")
    sys.stdout.flush()
    try:
        job.wait("60s")
    except wb.errors.JobError as error:
        sys.stdout.write(f"{error}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
