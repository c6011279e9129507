"""What Spark's workers receive: all public connectors can be sent, without secrets, and only private files are read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from refusals import error_of

import workbench as wb
from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.letters.source import DeadLetterSource
from workbench.connectors.live.generator_source import GeneratorSource
from workbench.connectors.live.hybrid_source import HybridSource
from workbench.connectors.live.socket_source import SocketSource
from workbench.connectors.replay.log import write_log
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_source import TableSource
from workbench.durable.only_mine import check_only_mine
from workbench.errors import CheckpointError, PlanError
from workbench.operators.functions.dead_letters import SCHEMA
from workbench.operators.functions.lookup_table import LookupTable
from workbench.plan.physical import build_physical_graph
from workbench.spark.carried.plan import CarriedPlan
from workbench.spark.sending.secrets import environment_sent
from workbench.spark.sending.sent import SinkInDriver, placed, received, sent

SECRET = "s3cr3t-of-ours"
COLUMNS = {"n": pa.int64()}
TABLE = pa.table({"n": [1, 2]})
LOCK = threading.Lock()


def numbers(first: int, n: int) -> pa.RecordBatch:
    return pa.record_batch({"n": range(first, first + n)})


def replayed(folder: Path) -> wb.Stream:
    rows = pa.table({"n": [1], "t": pa.array([1], pa.timestamp("us", "UTC"))})
    write_log(rows, folder / "log", event_time="t", arrival_time="t", channels=1)
    return wb.Stream.replay(folder / "log")


def read_from(made: Callable[[], Source]) -> Callable[[Path], wb.Stream]:
    return lambda folder: wb.Stream.from_source(made())


SOURCES: dict[type, Callable[[Path], wb.Stream]] = {
    TableSource: lambda folder: wb.Stream.from_table(TABLE),
    FileSource: lambda folder: wb.Stream.from_files(folder / "in.csv", COLUMNS),
    GeneratorSource: lambda folder: wb.Stream.from_generator(numbers, COLUMNS, limit=5),
    DeadLetterSource: lambda folder: wb.Stream.from_dead_letters(SCHEMA.empty_table(), COLUMNS),
    SocketSource: lambda folder: wb.Stream.from_socket("localhost", 9_999),
    ReplaySource: replayed,
    wb.KafkaSource: read_from(
        lambda: wb.KafkaSource("localhost:1", "t", COLUMNS, options={"sasl.password": "${WB_SECRET}"})
    ),
    wb.RedisSource: read_from(lambda: wb.RedisSource("redis://:${WB_SECRET}@localhost:1", "s", COLUMNS)),
    wb.NatsSource: read_from(lambda: wb.NatsSource("nats://${WB_SECRET}@localhost:1", "s", COLUMNS)),
    wb.MqttSource: read_from(lambda: wb.MqttSource("mqtts://ann:${WB_SECRET}@localhost:1", topic="t", columns=COLUMNS)),
    wb.ServerEventSource: read_from(
        lambda: wb.ServerEventSource("http://localhost:1/a", COLUMNS, headers={"Authorization": "Bearer ${WB_SECRET}"})
    ),
    wb.WebSocketSource: read_from(
        lambda: wb.WebSocketSource(
            "ws://localhost:1/?token=${WB_SECRET}", COLUMNS, subscribe=['{"password": "${WB_SECRET}"}']
        )
    ),
    wb.SqlSource: read_from(
        lambda: wb.SqlSource("postgresql://ann:${WB_SECRET}@localhost:1/db", "t", {"id": pa.int64()})
    ),
}
SINKS: dict[type, Callable[[Path], Sink]] = {
    wb.TableSink: lambda folder: wb.TableSink("out"),
    wb.DiscardSink: lambda folder: wb.DiscardSink(),
    wb.PrintSink: lambda folder: wb.PrintSink(),
    wb.CallbackSink: lambda folder: wb.CallbackSink(lambda rows: LOCK.locked()),
    wb.ParquetSink: lambda folder: wb.ParquetSink(folder / "parquet"),
    wb.FileSink: lambda folder: wb.FileSink(folder / "csv", format="csv"),
    wb.SqlSink: lambda folder: wb.SqlSink(f"postgresql://ann:{SECRET}@localhost:1/db", "t"),
    wb.KafkaSink: lambda folder: wb.KafkaSink("localhost:1", "t", options={"sasl.password": SECRET}),
    wb.RedisSink: lambda folder: wb.RedisSink(f"redis://:{SECRET}@localhost:1", "s"),
    wb.NatsSink: lambda folder: wb.NatsSink(f"nats://{SECRET}@localhost:1", "s", "s.a"),
}
LOOKUPS: dict[type, Callable[[str], LookupTable]] = {
    wb.SqlLookup: lambda secret: wb.SqlLookup(
        f"postgresql://ann:{secret}@localhost:1/db", "t", {"name": pa.string()}, key="n"
    ),
    wb.RedisLookup: lambda secret: wb.RedisLookup(f"redis://:{secret}@localhost:1", "a:", {"name": pa.string()}),
}


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WB_SECRET", SECRET)


def public(base: type) -> set[type]:
    found = {value for name in wb.__all__ if isinstance(value := getattr(wb, name), type)}
    return {each for each in found if issubclass(each, base)}


def plan_of(stream: wb.Stream, sink: Sink) -> CarriedPlan:
    graph = stream.sink_to(sink).logical_graph()
    for node in graph.nodes:  # as before a start
        node.spec.describe()
        if node.role != "operator":
            node.spec.create(node.schema) if node.role == "sink" else node.spec.create()  # type: ignore[union-attr]
    return CarriedPlan(build_physical_graph(graph, 2, local_aggregation=False), "job")


def test_every_public_connector_has_an_example() -> None:
    assert public(Source) - {wb.PostgresLogSource} <= set(SOURCES)
    assert public(Sink) == set(SINKS)
    assert public(LookupTable) == set(LOOKUPS)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_is_sent(kind: type, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n1\n")
    stream = SOURCES[kind](tmp_path)
    plan = stream.sink_to(wb.DiscardSink()).explain(engine="spark")
    assert "refused" not in {each.tier for each in plan.operators}
    content = sent(plan_of(stream, wb.DiscardSink()))
    assert SECRET.encode() not in content
    [source] = [node.spec for node in cloudpickle.loads(content).graph.logical.nodes if node.role == "source"]
    assert type(source) is kind
    source.create()


def test_a_source_that_confirms_checkpoints_is_refused() -> None:
    url = "postgresql://ann:${WB_SECRET}@localhost:1/db"
    source = wb.PostgresLogSource(url, "t", {"id": pa.int64()}, slot="s", publication="p", key="id")
    plan = wb.Stream.from_source(source).sink_to(wb.DiscardSink()).explain(engine="spark")
    refused = [each.reason for each in plan.operators if each.tier == "refused"]
    assert refused == [
        "its server keeps its log until a checkpoint is confirmed, and readers on Spark confirm none: run in the kernel"
    ]


def test_a_source_of_two_parts_is_sent(tmp_path: Path) -> None:
    first = wb.Stream.from_table(TABLE).sink_to(wb.DiscardSink()).logical_graph().nodes[0].spec
    content = sent(plan_of(wb.Stream.from_source(HybridSource(first, first)), wb.DiscardSink()))
    assert isinstance(cloudpickle.loads(content).graph.logical.nodes[0].spec, HybridSource)


@pytest.mark.parametrize("kind", SINKS)
def test_a_sink_stays_in_the_driver(kind: type, tmp_path: Path) -> None:
    """With its lock, its connection and its password."""
    content = sent(plan_of(wb.Stream.from_table(TABLE), SINKS[kind](tmp_path)))
    assert SECRET.encode() not in content
    plan = cloudpickle.loads(content)
    assert [type(node.spec) for _, node in plan.sinks] == [SinkInDriver]


@pytest.mark.parametrize("kind", LOOKUPS)
def test_a_lookup_is_sent_without_its_secret(kind: type) -> None:
    def looked_up(secret: str) -> wb.Stream:
        return wb.Stream.from_table(TABLE).lookup_async(LOOKUPS[kind](secret), key="n")

    assert SECRET.encode() not in sent(plan_of(looked_up("${WB_SECRET}"), wb.DiscardSink()))
    told = error_of(looked_up(SECRET).sink_to(wb.DiscardSink()).explain(engine="spark").check)
    assert "'url' has a secret in plain text" in told
    assert "${NAME}" in told
    assert SECRET not in told


PLAIN: dict[str, Callable[[], Source]] = {
    "sasl.password": lambda: wb.KafkaSource("localhost:1", "t", COLUMNS, options={"sasl.password": SECRET}),
    "ssl.key.password": lambda: wb.KafkaSource("localhost:1", "t", COLUMNS, options={"ssl.key.password": SECRET}),
    "Authorization": lambda: wb.ServerEventSource(
        "http://localhost:1/a", COLUMNS, headers={"Authorization": f"Bearer {SECRET}"}
    ),
    "X-API-Key": lambda: wb.WebSocketSource("ws://localhost:1/", COLUMNS, headers={"X-API-Key": SECRET}),
    "subscribe": lambda: wb.WebSocketSource(
        "ws://localhost:1/", COLUMNS, subscribe=[f'{{"op": "login", "password": "{SECRET}"}}']
    ),
    "url of a web socket": lambda: wb.WebSocketSource(f"ws://localhost:1/?token={SECRET}", COLUMNS),
    "url of MQTT": lambda: wb.MqttSource(f"mqtts://ann:{SECRET}@localhost:1", topic="t", columns=COLUMNS),
    "url of Redis": lambda: wb.RedisSource(f"redis://:{SECRET}@localhost:1", "s", COLUMNS),
    "url of NATS": lambda: wb.NatsSource(f"nats://{SECRET}@localhost:1", "s", COLUMNS),
    "url of PostgreSQL": lambda: wb.SqlSource(f"postgresql://ann:{SECRET}@localhost/db", "t", {"id": pa.int64()}),
    "url with a part": lambda: wb.SqlSource(
        f"postgresql://ann:${{WB_SECRET}}{SECRET}@localhost/db", "t", {"id": pa.int64()}
    ),
    "url with a passphrase": lambda: wb.SqlSource(
        f"postgresql://ann@localhost/db?sslkey=/etc/key.pem&sslpassword={SECRET}", "t", {"id": pa.int64()}
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_secret_in_plain_text_is_refused_before_the_start(name: str) -> None:
    pipeline = wb.Stream.from_source(PLAIN[name]()).sink_to(wb.DiscardSink())
    with pytest.raises(PlanError) as caught:
        pipeline.run("secret", engine="spark")  # and no session is started
    assert f"its {name.partition(' ')[0]!r} has a secret in plain text" in str(caught.value)
    assert "write '${NAME}' instead" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        wb.SqlSource("postgresql://ann@localhost/db?sslkey=/etc/key.pem&sslmode=verify-full", "t", {"id": pa.int64()}),
        wb.KafkaSource("localhost:1", "t", COLUMNS, options={"client.id": "flights", "ssl.ca.location": "/etc/ca.pem"}),
        wb.ServerEventSource("http://localhost:1/a", COLUMNS, headers={"Accept-Language": "de"}),
    ],
)
def test_a_login_without_a_secret_is_not_refused(source: Source) -> None:
    wb.Stream.from_source(source).sink_to(wb.DiscardSink()).explain(engine="spark").check()


def test_workers_receive_the_variables_to_which_a_source_refers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        sparkContext: Any = type("Context", (), {"environment": {"PYTHONHASHSEED": "0"}})

    monkeypatch.setenv("PGPASSWORD", "other")
    monkeypatch.setenv("WORKBENCH_RECORD_MB", "8")
    given = Session.sparkContext.environment
    graph = SOURCES[wb.SqlSource](Path()).sink_to(wb.DiscardSink()).logical_graph()
    with environment_sent(Session(), graph):
        assert given == {
            "PYTHONHASHSEED": "0",
            "WB_SECRET": SECRET,
            "PGPASSWORD": "other",
            "WORKBENCH_RECORD_MB": "8",
        }
    assert given == {"PYTHONHASHSEED": "0"}


def test_one_job_starts_after_the_other() -> None:
    """Also one without variables, while Spark reads those that another one has added."""
    context = type("Context", (), {"environment": {}})
    session: Any = type("Session", (), {"sparkContext": context})
    graph = wb.Stream.from_table(TABLE).sink_to(wb.DiscardSink()).logical_graph()
    began = threading.Event()

    def start() -> None:
        with environment_sent(session, graph):
            began.set()

    other = threading.Thread(target=start)
    with environment_sent(session, SOURCES[wb.RedisSource](Path()).sink_to(wb.DiscardSink()).logical_graph()):
        other.start()
        assert not began.wait(0.1)
    other.join()
    assert began.is_set()


# what is unpickled ---------------------------------------------------------------------------------------------------


def test_a_plan_is_a_private_file() -> None:
    file = placed(sent(plan_of(wb.Stream.from_table(TABLE), wb.DiscardSink())))
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert received(file).job == "job"


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, (os.environ["WB_BOMB"],)


@pytest.mark.parametrize("how", ["folder", "parent", "file", "content"])
def test_what_others_could_have_written_is_not_unpickled(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WB_BOMB", str(tmp_path / "exploded"))
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    file = folder / placed(cloudpickle.dumps(Bomb())).name
    file.write_bytes(cloudpickle.dumps(Bomb()) + (b"." if how == "content" else b""))
    file.chmod(0o666 if how == "file" else 0o600)
    folder.chmod(0o777 if how == "folder" else 0o755)
    folder.parent.chmod(0o777 if how == "parent" else 0o755)
    expected = "not the plan that was sent" if how == "content" else r"can be written by other users \("
    with pytest.raises(CheckpointError, match=expected):
        received(file)
    assert not (tmp_path / "exploded").exists()
    folder.chmod(0o700)  # nobody can enter it any more
    folder.parent.chmod(0o1777)  # and in the parent nobody can replace it
    check_only_mine(file)
