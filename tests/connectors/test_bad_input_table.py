"""The table of tests for each connector and each kind of bad input is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workbench.public import names

CASES = (
    "wrong address",
    "refused login",
    "missing topic",
    "away for half a minute",
    "schema changes",
    "poison record",
    "expired offset",
    "full disk",
)
NEVER = "-"
"""It cannot happen: a source fills no disk, a sink decodes no records, and so on."""
AWAY = "bad_days: a_server_may_be_away_for_half_a_minute"
CHANGED = "bad_days: a_schema_of_messages_that_changes"
POISON = "feeds: an_event_that_is_no_record"
"""One reader decodes the messages of all feeds."""
LOOKUP = "lookups: what_cannot_be_looked_up_is_a_sentence"
HUNG = "hanging_servers: a_server_of_look_ups_that_hangs_is_shown_and_nothing_is_lost"
NOBODY = "lookups: an_address_without_a_server_is_named"
LOOKED_UP = (NEVER, HUNG, LOOKUP, LOOKUP, NEVER, NEVER)
TABLE: dict[str, tuple[str, ...]] = {
    "KafkaSource": (
        "kafka_source: a_broker_that_stays_away_is_named",
        "bad_days: a_refused_login_of_kafka",
        "kafka_source: a_topic_that_does_not_exist_is_named",
        "kafka_source: a_connection_that_is_lost_for_a_while_loses_nothing",
        CHANGED,
        "kafka_source: a_message_that_is_no_record",
        "kafka_source: an_offset_that_has_expired_is_named",
        NEVER,
    ),
    "KafkaSink": (
        "kafka_sink: a_connection_that_is_lost_for_a_while_loses_and_doubles_nothing",
        "bad_days: a_refused_login_of_kafka",
        "kafka_sink: a_topic_that_does_not_exist_is_named",
        "kafka_sink: a_connection_that_is_lost_for_a_while_loses_and_doubles_nothing",
        NEVER,
        NEVER,
        NEVER,
        "kafka_sink: a_full_disk_is_waited_for",
    ),
    "RedisSource": (
        "redis_source: a_server_that_comes_back_is_read_on_and_one_that_does_not_is_named",
        "redis_source: a_refused_login_names_no_password",
        "redis_source: what_is_not_a_stream_is_named",
        AWAY,
        CHANGED,
        "redis_source: an_entry_that_is_no_record",
        "redis_source: entries_that_were_trimmed_before_they_were_read_are_named",
        NEVER,
    ),
    "RedisSink": (
        "redis_sink: a_server_that_stays_away_fails_the_task_and_nothing_is_lost",
        "redis_source: a_refused_login_names_no_password",
        "redis_sink: a_key_of_another_type_is_refused_before_a_row_is_written",
        "redis_sink: a_server_that_stays_away_fails_the_task_and_nothing_is_lost",
        NEVER,
        NEVER,
        NEVER,
        "bad_days: a_full_memory_of_redis",
    ),
    "SqlSource": (
        "sql_source: what_cannot_be_read_is_named",
        "bad_days: a_refused_login_of_postgresql",
        "sql_source: what_cannot_be_read_is_named",
        AWAY,
        "bad_days: a_schema_that_changes_under_a_source",
        NEVER,  # rows have types
        NEVER,
        NEVER,
    ),
    "PostgresLogSource": (
        "postgresql_log: no_server_and_a_refused_login_are_named_without_the_password",
        "postgresql_log: no_server_and_a_refused_login_are_named_without_the_password",
        "postgresql_log: what_cannot_be_read_is_refused_with_the_fix",
        "postgresql_log: a_server_that_comes_back_is_read_on",
        "postgresql_log: columns_that_come_go_or_grow_while_reading",
        "postgresql_log: a_value_that_does_not_fit_is_named",
        "postgresql_log: a_slot_in_use_lost_or_gone_is_refused",
        NEVER,
    ),
    "SqlSink": (
        "postgresql_sink: no_server_and_no_package_are_named_without_the_password",
        "bad_days: a_refused_login_of_postgresql",
        "postgresql_sink: a_table_that_does_not_fit_is_named",
        "postgresql_sink: a_server_that_is_restarted_loses_and_doubles_nothing",
        "postgresql_sink: a_table_that_does_not_fit_is_named",
        "postgresql_sink: a_text_that_the_server_refuses_fails_with_its_words",
        NEVER,
        "bad_days: a_disk_of_postgresql_that_is_really_full",
    ),
    "NatsSource": (
        "nats_source: a_stream_or_a_server_that_is_not_there",
        "nats_source: logins_and_tls",
        "nats_source: a_stream_or_a_server_that_is_not_there",
        AWAY,
        CHANGED,
        "nats_source: what_is_no_record",
        "nats_source: messages_that_the_stream_has_removed_are_an_error",
        NEVER,
    ),
    "NatsSink": (
        "nats_sink: what_the_server_refuses_is_named",
        "nats_sink: a_refused_login",
        "nats_sink: what_the_server_refuses_is_named",
        "nats_sink: a_server_that_is_restarted_loses_and_doubles_nothing",
        NEVER,
        NEVER,
        NEVER,
        "nats_sink: a_full_stream_is_continued_when_it_has_room",
    ),
    "ServerEventSource": (
        "feeds: a_server_that_is_away_is_tried_again_and_then_named",
        "feeds: what_a_server_refuses_is_named",
        "feeds: what_a_server_refuses_is_named",
        AWAY,
        POISON,
        POISON,
        NEVER,
        NEVER,
    ),
    "WebSocketSource": (
        "feeds: a_connection_without_messages_is_none_that_is_lost",
        "feeds: a_web_socket_that_is_none_is_named",
        "feeds: a_web_socket_that_is_none_is_named",
        AWAY,
        POISON,
        POISON,
        NEVER,
        NEVER,
    ),
    "SocketSource": (
        "socket_source: nobody_there_is_an_error_unless_the_source_may_wait",
        NEVER,  # it has no logins and no topics
        NEVER,
        "socket_source: a_connection_that_ended_is_made_again",
        "socket_source: a_line_that_cannot_be_read_is_shown",
        "socket_source: a_line_that_cannot_be_read_is_shown",
        NEVER,
        NEVER,
    ),
    "RedisLookup": (NOBODY, "redis_source: a_refused_login_names_no_password", *LOOKED_UP),
    "SqlLookup": (NOBODY, "bad_days: a_refused_login_of_postgresql", *LOOKED_UP),
    "MqttSource": (
        AWAY,
        "feeds: messages_of_mqtt",
        "feeds: a_topic_of_mqtt_that_is_refused",  # each other one is there when somebody sends to it
        AWAY,
        POISON,
        POISON,
        NEVER,
        NEVER,
    ),
}


LOCAL = {"CallbackSink", "DiscardSink", "FileSink", "ParquetSink", "PrintSink", "TableSink"}
"""They have no server."""


def test_no_connector_is_forgotten() -> None:
    public = {name for name in names.__all__ if name.endswith(("Source", "Sink", "Lookup"))}
    assert public - LOCAL - set(TABLE) == set()


@pytest.mark.parametrize("connector", TABLE)
def test_each_case_is_tested(connector: str) -> None:
    assert len(TABLE[connector]) == len(CASES)
    for case, place in zip(CASES, TABLE[connector], strict=True):
        if place != NEVER:
            file, name = place.split(": ")
            text = Path(__file__).with_name(f"test_{file}.py").read_text()
            assert re.search(rf"^def test_{name}\(", text, re.MULTILINE), f"{connector}, {case}: {place}"
