"""Connectors by name: options become arguments, wrong options are named in errors, and secrets remain references."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from redis_server import running

import workbench as wb
from workbench import packages
from workbench.connectors.contract.secrets import check_no_literal, hidden, revealed, revealed_url
from workbench.connectors.named.connector import Declared
from workbench.connectors.named.names import CONNECTORS, named_sink, named_source
from workbench.connectors.named.options import Options
from workbench.errors import PlanError, SettingError

TABLE = Declared("orders", pa.schema({"n": pa.int64(), "at": pa.timestamp("us")}), "at")
KEYED = Declared("counts", pa.schema({"k": pa.string(), "n": pa.int64()}), key=("k",))
REDIS = {"connector": "redis", "url": "redis://localhost", "stream": "a; b"}


def test_files_are_written_and_read_again(tmp_path: Path) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path / "out"), "format": "json"}
    table = pa.table({"n": [1, 2], "at": pa.array([0, 1], pa.timestamp("us"))})
    job = wb.Stream.from_table(table).sink_to(named_sink(options, TABLE)).run("writes")
    assert job.wait("60s") == "FINISHED"
    stream = wb.Stream.from_source(named_source(options, TABLE))
    assert stream.collect().to_pylist() == table.to_pylist()


def test_a_history_is_replayed(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2], "at": pa.array([0, 1], pa.timestamp("us"))})
    wb.History.from_arrow(table, tmp_path / "log", event_time="at", arrival_time="at")
    options = {"connector": "replay", "path": str(tmp_path / "log"), "speed": "600x"}
    assert wb.Stream.from_source(named_source(options, TABLE)).collect()["n"].to_pylist() == [1, 2]
    other = Declared("orders", pa.schema({"n": pa.string()}))
    with pytest.raises(PlanError, match="declares 'n' as string, but the history has int64"):
        named_source(options, other)


def test_options_become_arguments() -> None:
    pytest.importorskip("redis")
    source: Any = named_source({**REDIS, "start": "latest", "bounded": "true", "on_error": "dead_letter"}, TABLE)
    assert (source.streams, source.start, source.bounded, source.on_error) == (
        ("a", "b"),
        "latest",
        True,
        "dead_letter",
    )
    assert source.event_time == "at"
    sink: Any = named_sink({"connector": "redis", "url": "redis://localhost", "value": "n"}, KEYED)
    assert (sink.key, sink.upsert_key, sink.value) == ("counts", ("k",), "n")
    sql: Any = named_sink({"connector": "sql", "url": "sqlite:///out.db", "create": "false"}, KEYED)
    assert (sql.table, sql.upsert_key, sql.creates_table) == ("counts", ("k",), False)
    assert named_sink({"connector": "memory"}, KEYED) == wb.TableSink("counts", upsert_key="k")
    assert named_sink({"connector": "blackhole"}, KEYED) == wb.DiscardSink()


def test_options_of_a_table_in_the_log_of_postgresql() -> None:
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    options = {"connector": "postgres-cdc", "url": "postgresql://h/d", "slot": "s", "publication": "p"}
    source: Any = named_source(options, KEYED)
    assert (source.table, source.slot, source.publication, source.key) == ("counts", "s", "p", ("k",))
    assert (source.bounded, source.chunk_rows, source.retries) == (False, 10_000, 12)
    more = {"table": "sales.t", "bounded": "true", "chunk_rows": "5", "retries": "0"}
    source = named_source(options | more, KEYED)
    assert (source.table, source.bounded, source.chunk_rows, source.retries) == ("sales.t", True, 5, 0)
    with pytest.raises(SettingError, match=r"'orders' has no key: add PRIMARY KEY \(id\) NOT ENFORCED"):
        named_source(options, TABLE)
    with pytest.raises(SettingError, match="chunk_rows is 0"):
        named_source(options | {"chunk_rows": "0"}, KEYED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'connector': add 'connector' = '...', one of blackhole, filesystem"),
        ({"connector": "redi"}, "unknown connector 'redi': did you mean 'redis'"),
        ({**REDIS, "strem": "a"}, "unknown option of the connector 'redis' 'strem': did you mean 'stream'"),
        ({"connector": "redis", "stream": "a"}, "the connector 'redis' needs the option 'url'"),
        ({**REDIS, "retries": "many"}, "the option 'retries' is 'many': write a whole number"),
        ({**REDIS, "bounded": "yes"}, "the option 'bounded' is 'yes': write 'true' or 'false'"),
        ({**REDIS, "stream": "a;"}, "the option 'stream' is 'a;': separate the names by ';'"),
        ({**REDIS, "on_error": "ignore"}, "unknown value of the option 'on_error' 'ignore'"),
        ({**REDIS, "url": "redis://ann:pa55@localhost"}, "the option 'url' has a secret in plain text"),
        ({"connector": "filesystem", "path": "x", "rate": "fast"}, "the option 'rate' is 'fast': write a number"),
        ({"connector": "socket"}, "the connector 'socket' needs the option 'port'"),
        ({"connector": "print"}, r"the connector 'print' \(the cell's output\) cannot be read: choose filesystem"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message) as raised:
        named_source(options, TABLE)
    assert "pa55" not in str(raised.value)


def test_what_cannot_be_written_to_is_named() -> None:
    with pytest.raises(SettingError, match=r"'socket' .* cannot be written to: choose blackhole or filesystem"):
        named_sink({"connector": "socket"}, TABLE)
    with pytest.raises(SettingError, match="is 7: write text in quotes"):
        named_sink({"connector": "redis", "url": 7}, TABLE)  # type: ignore[dict-item]


def test_options_of_kafka() -> None:
    pytest.importorskip("confluent_kafka")
    options = {"connector": "kafka", "servers": "localhost:9092", "topic": "a;b", "metadata.n": "offset"}
    source: Any = named_source({**options, "properties.sasl.password": "${WB_PASSWORD}"}, TABLE)
    assert (source.topics, source.metadata, source.options) == (
        *(("a", "b"), {"n": "offset"}, {"sasl.password": "${WB_PASSWORD}"}),
    )
    with pytest.raises(SettingError, match=r"'properties\.sasl\.password' has a secret in plain text"):
        named_source({**options, "properties.sasl.password": "pa55"}, TABLE)


def test_every_option_has_a_meaning() -> None:
    for connector in CONNECTORS.values():
        assert connector.title
        assert connector.source is not None or connector.sink is not None
        assert all(connector.options.values())


def test_options_below_a_prefix() -> None:
    options = Options("kafka", {"properties.client.id": "a"}, ["properties.*"])
    assert options.below("properties.") == {"client.id": "a"}
    assert "properties.client.id" in options


def test_secrets_are_looked_up_and_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WB_SECRET", "pa/55 word")
    assert revealed("${WB_SECRET}!") == "pa/55 word!"
    assert revealed_url("redis://:${WB_SECRET}@h") == "redis://:pa%2F55%20word@h"
    assert hidden("pa/55 word, pa%2F55%20word", "x${WB_SECRET}") == "***, ***"
    with pytest.raises(SettingError, match="the environment variable WB_NOWHERE is not set"):
        revealed("${WB_NOWHERE}")
    with pytest.raises(SettingError, match=r"'\$\{a b\}' does not refer to a secret"):
        revealed("${a b}")


def test_secrets_of_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the one function of the package that is called; the machine's own keyring is left alone."""
    entries = {("shop", "ann"): "pa55 word"}
    keyring = SimpleNamespace(get_password=lambda service, user: entries.get((service, user)))
    monkeypatch.setattr(packages, "import_module", {"keyring": keyring}.__getitem__)
    assert revealed_url("redis://ann:${keyring:shop/ann}@h") == "redis://ann:pa55%20word@h"
    assert hidden("refused: pa55 word", "x${keyring:shop/ann}") == "refused: ***"
    for name in ("keyring:shop/bob", "keyring:shop"):
        with pytest.raises(SettingError, match=r"the keyring has no secret for '.*': write \$\{keyring:service/user\}"):
            revealed(f"${{{name}}}")
    check_no_literal("sasl.password", "${keyring:shop/ann}")


def test_a_secret_reaches_the_server_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with running("--requirepass", "pa55word") as server:
        monkeypatch.setenv("WB_REDIS_PASSWORD", "pa55word")
        url = f"{server.url}?password=${{WB_REDIS_PASSWORD}}"
        sink = named_sink({"connector": "redis", "url": url, "stream": "entries"}, TABLE)
        table = pa.table({"n": [1, 2]})
        job = wb.Stream.from_table(table).sink_to(sink).run("writes", checkpoint_dir=tmp_path / "checkpoints")
        assert job.wait("60s") == "FINISHED"
        monkeypatch.setenv("WB_REDIS_PASSWORD", "wrong-word")
        source = named_source({"connector": "redis", "url": url, "stream": "entries"}, TABLE)
        failing = wb.Stream.from_source(source).sink_to(wb.DiscardSink())
        job = failing.run("reads", checkpoint_dir=tmp_path / "more", restart=wb.restart.no_restart())
        with pytest.raises(wb.errors.JobError, match="refuses the login") as raised:
            job.wait("60s")
        shown = f"{raised.value} {job.status()} {job.graph()} {source!r} {sink!r}"
        saved = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        for secret in ("pa55word", "wrong-word"):
            assert secret not in shown
            assert secret.encode() not in saved


def test_the_documentation_lists_every_connector_and_option() -> None:
    text = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text()
    table = text.partition("## Tables in SQL")[2].partition("\n## ")[0]
    for name, connector in CONNECTORS.items():
        (line,) = [line for line in table.splitlines() if line.startswith(f"| `{name}`: ")]
        assert [option for option in connector.options if f"`{option}`" not in line] == []


def test_options_of_feeds() -> None:
    for package in ("h11", "websockets", "paho.mqtt.client"):
        pytest.importorskip(package)
    events: Any = named_source({"connector": "sse", "url": "http://h", "header.X": "1", "format": "json"}, TABLE)
    assert (events.url, events.headers, events.event_time) == ("http://h", {"X": "1"}, "at")
    socket: Any = named_source({"connector": "websocket", "url": "ws://h", "subscribe": "a"}, TABLE)
    assert socket.subscribe == ["a"]
    nats: Any = named_source({"connector": "nats", "url": "nats://h", "stream": "a; b", "start": "7"}, TABLE)
    assert (nats.streams, nats.start, nats.subject) == (("a", "b"), 7, "")
    mqtt: Any = named_source({"connector": "mqtt", "url": "mqtt://h", "topic": "t", "retries": "0"}, TABLE)
    assert (mqtt.topic, mqtt.retries) == ("t", 0)
