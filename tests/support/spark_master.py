"""A standalone cluster of Spark on this machine: a master and one worker, each a process, from the wheel of PySpark."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import until

from workbench.spark.cluster_home import cluster_home, environment
from workbench.spark.java import find_java

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The URL of the master; at the end of the block both processes are ended.

    Args:
        folder: for logs, and for the work of executors.
    """
    home = cluster_home(find_java())
    command = str(Path(home["SPARK_HOME"], "bin", "spark-class"))
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name.rpartition('.')[2]}.log"
        with log.open("wb") as file:
            started.append(
                subprocess.Popen([command, name, "--host", "127.0.0.1", "--webui-port", "0", *arguments], stderr=file)
            )
        return log

    with environment({**home, "SPARK_DAEMON_JAVA_OPTS": _QUICK}):
        try:
            log = start(_MASTER, "--port", "0")
            found: list[str] = []
            until(lambda: found.extend(re.findall(r"master at (spark://\S+:\d+)", log.read_text())) or found)
            log = start(_WORKER, "--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work"), found[0])
            until(lambda: "Successfully registered" in log.read_text())
            yield found[0]
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(60)
