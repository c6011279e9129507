"""Every connector over TLS: a server of a trusted authority is used, and any other refused with the reason."""

from __future__ import annotations

import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import kafka_server
import mqtt_server
import nats_server
import postgresql_server
import pyarrow as pa
import pytest
import redis_server
from certificates import Authority, Certificate
from feed_servers import event_server, web_socket_server
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Fetched, Sink, Source
from workbench.errors import SettingError, SourceError

pytestmark = pytest.mark.slow

SCHEMA = {"n": pa.int64()}
ROW = b'{"n": 7}'


@dataclass(frozen=True)
class Served:
    """A server, as clients see it.

    Attributes:
        source: reads its rows, for the file of the authority to trust.
        sink: writes them, if the connector has a sink.
        prepare: called before the first row is written.
        send: sends the row again and again, for a server that keeps none.
    """

    source: Callable[[Path], Source]
    sink: Callable[[Path], Sink] | None = None
    prepare: Callable[[], object] = lambda: None
    send: Callable[[], object] = lambda: None


@contextmanager
def kafka(own: Certificate, authority: Path) -> Iterator[Served]:
    with kafka_server.running(own, authority) as server:

        def options(file: Path) -> dict[str, str]:
            return {"security.protocol": "SSL", "ssl.ca.location": str(file)}

        yield Served(
            lambda file: wb.KafkaSource(server.servers, "rows", SCHEMA, options=options(file), retries=2),
            lambda file: wb.KafkaSink(server.servers, "rows", options=options(file)),
            lambda: server.topic(1, "rows"),
        )


@contextmanager
def postgresql(own: Certificate, authority: Path) -> Iterator[Served]:
    for file in (own.chain, own.key):
        if shutil.which("runuser"):
            shutil.chown(file, "postgres")
        file.chmod(0o600)
    port = free_port()
    files = (f"ssl_cert_file={own.chain}", f"ssl_key_file={own.key}")
    with postgresql_server.running("listen_addresses=127.0.0.1", f"port={port}", "ssl=on", *files) as server:
        server.url += f"&port={port}"
        place = f"postgresql://wb:pa55word@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert="
        yield Served(
            lambda file: wb.SqlSource(f"{place}{file}", "rows", SCHEMA, key="n", retries=2),
            lambda file: wb.SqlSink(f"{place}{file}", "rows"),
            lambda: server.query("CREATE TABLE rows (n BIGINT PRIMARY KEY)"),
        )


@contextmanager
def redis(own: Certificate, authority: Path) -> Iterator[Served]:
    port = free_port()
    files = ("--tls-cert-file", str(own.chain), "--tls-key-file", str(own.key), "--tls-auth-clients", "no")
    with redis_server.running("--tls-port", str(port), *files):
        place = f"rediss://127.0.0.1:{port}?ssl_ca_certs="
        yield Served(
            lambda file: wb.RedisSource(f"{place}{file}", "rows", SCHEMA, retries=2),
            lambda file: wb.RedisSink(f"{place}{file}", "rows"),
        )


@contextmanager
def nats(own: Certificate, authority: Path) -> Iterator[Served]:
    options = ("--tls", "--tlscert", str(own.chain), "--tlskey", str(own.key))
    with nats_server.running(*options, authority=authority) as server:
        yield Served(
            lambda file: wb.NatsSource(server.url, "rows", SCHEMA, ca_file=file, retries=2),
            lambda file: wb.NatsSink(server.url, "rows", "rows.all", ca_file=file),
            lambda: server.stream("rows"),
        )


@contextmanager
def mqtt(own: Certificate, authority: Path) -> Iterator[Served]:
    for file in (own.chain, own.key):
        file.chmod(0o644)
    with mqtt_server.running(f"certfile {own.chain}", f"keyfile {own.key}") as server:
        place = server.url.replace("mqtt://", "mqtts://")
        yield Served(
            lambda file: wb.MqttSource(place, SCHEMA, ca_file=file, retries=2),
            send=lambda: server.send("rows", [ROW], authority),
        )


@contextmanager
def https(own: Certificate, authority: Path) -> Iterator[Served]:
    with event_server(of_server(own)) as server:
        server.events = [ROW.decode()]
        yield Served(lambda file: wb.ServerEventSource(server.url, SCHEMA, ca_file=file, retries=2))


@contextmanager
def wss(own: Certificate, authority: Path) -> Iterator[Served]:
    with web_socket_server([], context=of_server(own)) as url:
        yield Served(lambda file: wb.WebSocketSource(url, SCHEMA, subscribe=[ROW.decode()], ca_file=file, retries=2))


Serve = Callable[[Certificate, Path], AbstractContextManager[Served]]
SERVERS = pytest.mark.parametrize("serve", [kafka, postgresql, redis, nats, mqtt, https, wss])


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that servers can open which run as another user; pytest closes its own to others."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder / "authority")


@pytest.fixture(scope="module")
def stranger(folder: Path) -> Authority:
    return Authority(folder / "stranger")


@SERVERS
def test_a_server_of_a_trusted_authority_is_used(serve: Serve, authority: Authority, stranger: Authority) -> None:
    with serve(authority.certificate("localhost", "127.0.0.1"), authority.file) as served:
        served.prepare()
        if served.sink is not None:
            write(served.sink(authority.file))
            with pytest.raises(wb.errors.WorkbenchError, match="certificate"):
                write(served.sink(stranger.file))
        assert row_of(served.source(authority.file), served.send) == 7
        with pytest.raises(SourceError, match=refusal(serve, "authority that signed it", "issuer")):
            row_of(served.source(stranger.file), served.send)


@SERVERS
def test_an_expired_certificate_is_refused(serve: Serve, authority: Authority) -> None:
    refused = pytest.raises(SourceError, match=refusal(serve, "renew it", "expired"))
    with serve(authority.certificate("localhost", "127.0.0.1", days=-1), authority.file) as served, refused:
        row_of(served.source(authority.file))


@SERVERS
def test_a_certificate_of_another_host_is_refused(serve: Serve, authority: Authority) -> None:
    refused = pytest.raises(SourceError, match=refusal(serve, "connect to a name that", "127.0.0.1"))
    with serve(authority.certificate("other.example"), authority.file) as served, refused:
        row_of(served.source(authority.file))


def test_a_server_without_tls_is_named() -> None:
    with event_server() as server:
        source = wb.ServerEventSource(server.url.replace("http://", "https://"), SCHEMA, retries=0)
        with pytest.raises(SourceError, match=r"no TLS connection .*; check whether the server uses TLS at this port$"):
            row_of(source)


def test_a_file_that_holds_no_certificate(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for file, fact in ((empty, "contains no certificate"), (tmp_path / "none.pem", "No such file or directory")):
        for make in (
            partial(wb.ServerEventSource, "https://h", SCHEMA),
            partial(wb.MqttSource, "mqtts://h", SCHEMA),
            partial(wb.NatsSource, "tls://h", "S", SCHEMA),
            partial(wb.NatsSink, "tls://h", "S", "s"),
        ):
            with pytest.raises(SettingError, match=rf"ca_file is .*{fact}.*: write the path of a PEM file"):
                make(ca_file=file)
    with pytest.raises(SettingError, match="ca_file is 7: write the path"):
        wb.NatsSource("tls://h", "S", SCHEMA, ca_file=7)  # type: ignore[arg-type]


def refusal(serve: Serve, fix: str, reason: str) -> str:
    """What the error says: the clients of Kafka and PostgreSQL do not pass on every reason."""
    if serve is kafka:
        return r"the certificate of 127\.0\.0\.1:\d+ is not valid .*: it must name this host, not have expired, and be"
    if serve is postgresql:
        return "connect to a name that its certificate has" if reason == "127.0.0.1" else "certificate verify failed; "
    return rf"certificate .*is not valid \(.*{reason}.*{fix}"


def row_of(source: Source, send: Callable[[], object] = lambda: None) -> int:
    """The first row of a source."""
    reader: Any = readers(source, 1)[0]
    found: list[int] = []

    def arrived() -> bool:
        polled = reader.poll(1)
        if isinstance(polled, Fetched):
            found.extend(polled.records.batch.column("n").to_pylist())
        reader._clock.advance_to(reader._clock.now_us() + 20_000)
        if not found:
            send()
        return bool(found)

    try:
        until(arrived)
    finally:
        reader.close()
    return found[0]


def write(sink: Sink) -> None:
    wb.Stream.from_table(pa.table({"n": [7]})).sink_to(sink).run("write", restart=wb.restart.no_restart()).wait("120s")


def of_server(own: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.chain, own.key)
    return context


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
