"""No error of a connector shows a password, whatever characters it has and whether or not they are escaped."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.contract.secrets import cause_of, check_url, hidden_options, shown
from workbench.connectors.postgresql_log.slots import drop_slots, slots_of
from workbench.redaction import redacted

COLUMNS = {"id": pa.int64()}
HALVES = ("Wq7hX", "zK9vP")
ODD = ["/", "#", "?", " ", "@", ":", "%", "[", "]", "\\", "'", '"', "\t", "\n", "\0", "é", "\u2100", "%2F", "%zz", "1/"]
REFUSED = ["/", "#", "?", " ", "[", "]", "\t", "\n", "\0"]
CONNECTORS: dict[str, tuple[str, Callable[[str], object]]] = {
    "MqttSource": ("mqtt", lambda url: wb.MqttSource(url, COLUMNS, topic="t", retries=0)),
    "ServerEventSource": ("http", lambda url: wb.ServerEventSource(url, COLUMNS, retries=0)),
    "WebSocketSource": ("ws", lambda url: wb.WebSocketSource(url, COLUMNS, retries=0)),
    "RedisSource": ("redis", lambda url: wb.RedisSource(url, "s", COLUMNS)),
    "RedisSink": ("redis", lambda url: wb.RedisSink(url, "s")),
    "RedisLookup": ("redis", lambda url: wb.RedisLookup(url, "a:", COLUMNS)),
    "NatsSource": ("nats", lambda url: wb.NatsSource(url, "s", COLUMNS)),
    "NatsSink": ("nats", lambda url: wb.NatsSink(url, "s", "s.x")),
    "SqlSource": ("postgresql", lambda url: wb.SqlSource(url, "t", COLUMNS)),
    "SqlSink": ("postgresql", lambda url: wb.SqlSink(url, "t")),
    "SqlLookup": ("postgresql", lambda url: wb.SqlLookup(url, "t", COLUMNS)),
    "PostgresLogSource": (
        "postgresql",
        lambda url: wb.PostgresLogSource(url, "t", COLUMNS, slot="s", publication="p"),
    ),
    "KafkaSource": ("kafka", lambda url: wb.KafkaSource(url, "t", COLUMNS)),
    "KafkaSink": ("kafka", lambda url: wb.KafkaSink(url, "t")),
    "slots_of": ("postgresql", slots_of),
    "drop_slots": ("postgresql", lambda url: drop_slots(url, ["s"])),
}


def url_with(scheme: str, odd: str) -> str:
    password = f"12/{HALVES[1]}" if odd == "1/" else odd.join(HALVES)
    return f"{scheme}://ann:{password}@127.0.0.1:1/db"


def everything_of(error: BaseException) -> str:
    """What a person sees of an error: its message, notes, causes and their values."""
    chain, told = [error], []
    for each in chain:
        told += ["".join(traceback.format_exception_only(each)), repr(each.args)]
        chain += [cause for cause in (each.__cause__, None if each.__suppress_context__ else each.__context__) if cause]
    return "\n".join(told)


def shown_of(make: Callable[[str], object], url: str) -> str:
    try:
        made = make(url)
    except wb.errors.WorkbenchError as error:
        return everything_of(error)
    describe = getattr(made, "describe", str)
    return f"{made!r} {made} {describe()}"


def assert_hidden(text: str) -> None:
    assert not any(half in text for half in HALVES), text


def test_every_connector_with_a_url_is_tried() -> None:
    found = {
        name
        for name in dir(wb)
        if inspect.isclass(made := getattr(wb, name)) and {"url", "servers"} & set(inspect.signature(made).parameters)
    }
    assert found == set(CONNECTORS) - {"slots_of", "drop_slots"}


@pytest.mark.parametrize("name", CONNECTORS)
def test_a_password_with_odd_characters_is_never_shown(name: str) -> None:
    scheme, make = CONNECTORS[name]
    for odd in ODD:
        url = url_with(scheme, odd)
        if odd in REFUSED or scheme == "kafka":
            with pytest.raises(wb.errors.SettingError) as caught:
                make(url)
            assert_hidden(everything_of(caught.value))
            assert scheme == "kafka" or f"has {odd!r}: write %" in caught.value.message
        else:
            assert_hidden(shown_of(make, url))


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["%zz", "'"])
def test_a_client_that_repeats_the_password_is_not_repeated(odd: str) -> None:
    url = url_with("postgresql", odd)
    job = (
        wb.Stream.from_source(wb.SqlSource(url, "t", COLUMNS, retries=0))
        .sink_to(wb.TableSink("t"))
        .run("odd", restart=wb.restart.no_restart())
    )
    with pytest.raises(wb.errors.JobError) as caught:
        job.wait(timeout="20s")
    assert_hidden(everything_of(caught.value))
    assert_hidden(f"{job.status()} {job.recording().events()}")
    looked_up = wb.Stream.from_table(pa.table({"id": [1]})).lookup_async(
        wb.SqlLookup(url, "t", {"a": pa.int64()}), key="id"
    )
    with pytest.raises(wb.errors.WorkbenchError) as caught_there:
        looked_up.collect(timeout="20s")
    assert_hidden(everything_of(caught_there.value))


def test_what_is_no_password_stays() -> None:
    for url in (
        "http://localhost:8080/users/@me",
        "https://example.org/@me?x=a@b",
        "https://ann:secret@example.org/@me",
        "redis://localhost:6379/0?client_name=a@b",
        "postgresql:///shop?user=a@b&host=/run/x",
        "postgresql://localhost:5432/shop?user=a@b",
        "redis://[::1]:6379/0",
        "unix:///run/redis@1.sock",
        "nats://${TOKEN}@localhost",
        "redis://ann:${keyring:shop/ann}@localhost",
        "redis://ann@corp:secret@localhost/0",
    ):
        check_url(url)
    assert shown("postgresql://localhost:5432/shop?user=a@b") == "postgresql://localhost:5432/shop?user=a@b"
    assert redacted("write redis://[user:password@]host") == "write redis://[user:password@]host"
    assert redacted("write db://[user[:password]@]host/x") == "write db://[user[:password]@]host/x"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("no messages from mqtt://ann:pa 55@host:1/db t", "no messages from mqtt://***@host:1/db t"),
        ("wb.RedisSource('redis://ann:12 pa55@host/0', 'x@y')", "wb.RedisSource('redis://***@host/0', 'x@y')"),
        ("redis://ann:12/pa55@host", "redis://***@host"),
        ("no answer from http://localhost:80 for ann@host", "no answer from http://localhost:80 for ann@host"),
    ],
)
def test_odd_characters_in_any_text(text: str, hidden: str) -> None:
    assert redacted(text) == hidden


def test_options_headers_and_causes_are_hidden_as_they_are_written_and_sent() -> None:
    options = {"sasl.password": "pa/55 w%rd", "client.id": "flights"}
    assert hidden_options("bad value pa/55 w%rd or pa%2F55%20w%25rd of flights", options) == (
        "bad value *** or *** of flights"
    )
    inner = ValueError("no host 'zK9vP'")
    outer = OSError("not found")
    outer.__cause__ = inner
    assert cause_of(outer, "redis://ann:zK9vP@h") is None
    assert cause_of(outer, "redis://ann:other@h") is outer
    with pytest.raises(wb.errors.SettingError, match="the header 'Authorization' has a line end") as caught:
        wb.ServerEventSource("http://localhost", COLUMNS, headers={"Authorization": "Bearer Wq7hX\nzK9vP"})
    assert_hidden(everything_of(caught.value))
