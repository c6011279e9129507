"""What pages and docstrings of public names promise about failures: each sentence with the tests that show it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from test_docstrings import names

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Shown:
    """A promise.

    Attributes:
        page: that makes it; or a public name, whose docstring does.
        sentences: its words; lines are joined.
        tests: each as ``file::function`` below ``tests``.
    """

    page: str
    sentences: tuple[str, ...]
    tests: tuple[str, ...]


COMPARED = "api/test_compare_architectures.py::test_what_each_guarantee_allows_is_what_is_observed_to_the_record"
PROMISES = "simulation/test_failing_architectures.py::test_every_promise_is_kept"
KILLS = "system/test_connector_kills.py::test_killed_processes_and_restarted_servers_lose_and_double_nothing"
UNDONE = "connectors/test_undone_changes.py"
SHOWN = (
    Shown(
        "README.md",
        ("Results are exactly once, even after a failed task or a `kill -9`.",),
        (
            "system/test_main_job.py::test_failed_tasks_recover_to_the_same_results",
            "system/test_main_job.py::test_kill_minus_nine_then_resume_gives_the_oracle_exactly_once",
            "system/test_kills.py::test_what_is_committed_is_there_once_however_often_the_process_is_killed",
        ),
    ),
    Shown(
        "docs/architectures.md",
        (
            "state and positions at one barrier | exactly once |",
            "the same, while the sources pause | exactly once |",
            "oldest unacknowledged record | at least once | unacknowledged records are read again and count twice |",
            "in one write to a store | exactly once |",
            "everything when it is committed | exactly once |",
            "state often, positions rarely | at least once |",
            "no state | at most once | state and in-flight records are lost |",
            "| snapshots | exactly once |",
            "| stop the world | exactly once |",
            "| acks, a root for each batch | at least once |",
            "| transactions, 1,000 records a write | exactly once |",
            "| transactions, 1 record a write, 500 a second | exactly once |",
            "| micro-batches of 200 ms, one and two at a time | exactly once |",
            "| changelog, positions every 2 s | at least once |",
            "| at most once | at most once |",
        ),
        (COMPARED, PROMISES, "simulation/test_failing_architectures.py::test_a_failure_at_any_step_breaks_no_promise"),
    ),
    Shown(
        "docs/architectures.md",
        (
            '`guarantee="exactly-once"` rejects weaker architectures.',
            "Sources that cannot be replayed, sinks that are not exactly once, and sources with aligned watermarks are "
            "rejected before anything starts.",
            "`ackers=0` acknowledges nothing: at most once",
        ),
        (
            "runtime/test_checkpoint_modes.py::test_exactly_once_cannot_be_guaranteed_at_least_once",
            "runtime/test_transactions.py::test_what_cannot_take_part_is_refused_before_anything_starts",
            "runtime/test_acks.py::test_without_ackers_nothing_is_replayed_and_records_are_lost",
        ),
    ),
    Shown(
        "docs/architectures.md",
        ("The log is therefore complete up to its markers, and no record is lost.",),
        (
            "runtime/test_architectures.py::test_what_was_read_since_the_last_offsets_counts_twice_and_the_audit_says_how_much",
        ),
    ),
    Shown(
        "docs/architectures.md",
        (
            "**At most once.** A barrier passes through the job at `flush_interval`, and sinks commit the rows that "
            "arrived before it.",
        ),
        (
            "runtime/test_architectures.py::test_state_is_lost_and_rows_that_were_flushed_stay",
            "runtime/test_architectures.py::test_rows_are_lost_and_none_comes_twice",
        ),
    ),
    Shown(
        "docs/architectures.md",
        (
            "under at-most-once, sources must never move backwards",
            "They must be equal if the guarantee is exactly once, or if no record was lost or processed again.",
            "never have fewer rows under at least once, or more rows under at most once.",
        ),
        (
            PROMISES,
            "simulation/test_random_architectures.py::test_a_pipeline_keeps_the_guarantee_of_its_architecture",
        ),
    ),
    Shown(
        "docs/coming-from.md",
        ("Exactly once includes sinks.",),
        ("api/test_guarantee.py::test_exactly_once_from_end_to_end", KILLS),
    ),
    Shown(
        "docs/concepts.md",
        ("state is updated exactly once per record, even after failures",),
        ("system/test_main_job.py::test_kill_minus_nine_then_resume_gives_the_oracle_exactly_once",),
    ),
    Shown(
        "docs/concepts.md",
        ("also without alignment (at least once)",),
        (
            "runtime/test_checkpoint_modes.py::test_at_least_once_counts_twice_what_came_too_early_and_says_how_much",
            "simulation/test_unaligned_simulation.py::test_at_least_once_loses_nothing_and_counts_twice_what_it_says",
        ),
    ),
    Shown(
        "docs/concepts.md",
        ("no result is lost or duplicated",),
        ("simulation/test_exhaustive.py::test_a_sample_of_all_crashes",),
    ),
    Shown(
        "docs/concepts.md",
        ("exactly once, at least once or at most once: the guarantee of the weakest source or sink",),
        (
            "api/test_guarantee.py::test_one_sink_that_does_not_wait_is_enough",
            "api/test_guarantee.py::test_a_source_that_cannot_go_back_is_weaker_still",
        ),
    ),
    Shown(
        "docs/connectors.md",
        ("Nothing is lost: a run with `resume=True` continues from the latest complete checkpoint",),
        ("connectors/test_redis_sink.py::test_a_server_that_stays_away_fails_the_task_and_nothing_is_lost", KILLS),
    ),
    Shown(
        "docs/connectors.md",
        ("exactly once: offsets are part of the checkpoint; the job assigns partitions, not a consumer group.",),
        ("connectors/test_kafka_source.py::test_a_crash_at_any_message_loses_and_repeats_nothing", KILLS),
    ),
    Shown(
        "docs/connectors.md",
        (
            '| `"at-least-once"` (default) | as they arrive | rows since the last checkpoint are sent again',
            '| `"exactly-once"` | when their checkpoint is complete, each with a header `workbench`: writer, epoch, '
            "number | the sink reads the topic from the offset in the checkpoint to its end, and sends only the "
            "messages that are missing.",
            "A sink that sends exactly once reads the topic when its job starts or resumes.",
        ),
        (
            "connectors/test_kafka_sink.py::test_a_crash_at_any_moment_keeps_the_guarantee",
            "connectors/test_kafka_sink.py::test_a_connection_that_is_lost_for_a_while_loses_and_doubles_nothing",
            KILLS,
        ),
    ),
    Shown(
        "docs/connectors.md",
        ("readers with `read_committed` see all rows of a subtask's checkpoint or none.",),
        (
            "connectors/test_kafka_transactions.py::test_a_kill_at_any_call_loses_and_doubles_nothing",
            "connectors/test_kafka_transactions.py::test_random_orders_of_kills_rescales_and_timeouts",
        ),
    ),
    Shown(
        "docs/connectors.md",
        (
            "at most once: a feed cannot be read again.",
            "while it is connected and keeps up, none is lost (QoS 1) or duplicated.",
        ),
        (
            "system/test_chaos.py::test_a_feed_cannot_promise_exactly_once",
            "connectors/test_feeds.py::test_mqtt_loses_no_message_of_a_job_that_keeps_up_and_drops_those_beyond_its_queue",
            "system/test_edge_chaos.py::test_a_job_between_failing_servers_loses_and_doubles_nothing",
        ),
    ),
    Shown(
        "docs/connectors.md",
        ("From then on, each record that the job reads is recorded exactly once.",),
        ("api/test_recording_feeds.py::test_everything_after_the_restart_is_recorded_once",),
    ),
    Shown(
        "docs/connectors.md",
        ("exactly once: the position in each JetStream stream is a sequence number in the checkpoint",),
        ("connectors/test_nats_source.py::test_it_loses_and_repeats_nothing_at_any_record", KILLS),
    ),
    Shown(
        "docs/connectors.md",
        (
            '| `"exactly-once"` | when their checkpoint is complete | the sink reads the stream from the sequence '
            "number in the checkpoint, and publishes only the messages that are missing |",
        ),
        ("connectors/test_nats_sink.py::test_a_crash_at_any_record_keeps_the_guarantee", KILLS),
    ),
    Shown(
        "docs/connectors.md",
        ("exactly once: the position in each stream is an entry ID in the checkpoint",),
        ("connectors/test_redis_source.py::test_a_crash_at_any_entry_loses_and_repeats_nothing", KILLS),
    ),
    Shown(
        "docs/connectors.md",
        (
            "exactly once: the entries of a checkpoint and its number (hash `KEY:workbench`) are written in one "
            "transaction | each key ends with its correct row; after a failure, a reader can see an older row for a "
            "while",
        ),
        ("connectors/test_redis_sink.py::test_a_crash_at_any_record_keeps_the_guarantee", KILLS),
    ),
    Shown(
        "docs/connectors.md",
        (
            "what was written since the checkpoint is taken back after a failure (fields of the hash `KEY:workbench`)",
            "After a failure the sink gives back what it has changed since the checkpoint, and then takes the changes "
            "again, so no group stays that came and went.",
        ),
        (
            f"{UNDONE}::test_a_table_has_no_row_that_came_and_went_during_a_failure",
            f"{UNDONE}::test_a_table_is_right_after_any_failures",
            f"{UNDONE}::test_a_table_of_postgresql_is_right_after_any_failures",
            f"{UNDONE}::test_hashes_of_redis_are_right_after_any_failures",
        ),
    ),
    Shown(
        "docs/connectors.md",
        ("appending is exactly once", "upserts converge by key"),
        (
            "connectors/test_postgresql_sink.py::test_a_crash_at_any_record_keeps_the_guarantee",
            "connectors/test_sql_sink.py::test_crash_points",
            "connectors/test_sql_sink.py::test_upserts_converge_whatever_is_written_again",
        ),
    ),
    Shown(
        "docs/connectors.md",
        (
            "at most once, because polling can miss rows that are committed late (below); a failure itself skips and",
            'With `guarantee="exactly-once"`, a job with this source is refused',
        ),
        (
            "connectors/test_sql_source.py::test_polling_does_not_keep_exactly_once",
            "connectors/test_sql_source.py::test_a_crash_at_any_row_loses_and_repeats_nothing",
        ),
    ),
    Shown(
        "docs/connectors.md",
        (
            "exactly once: the position in the checkpoint is a place in the log",
            "so a sink that replaces rows converges in whatever batches they come again",
        ),
        (
            "connectors/test_postgresql_log.py::test_a_restart_at_any_row_loses_and_repeats_nothing",
            "operators/test_keyed_upserts.py::test_outputs_end_alike_whatever_batches_the_changes_come_in_again_after_a_failure",
            "system/test_log_kills.py::test_a_table_that_others_write_to_is_read_exactly_under_kills",
        ),
    ),
    Shown(
        "docs/connectors.md",
        ("An exactly-once sink collects rows, makes them part of its snapshot, and publishes them when",),
        ("connectors/test_own_connectors.py::test_it_is_killed_and_restored_exactly_once",),
    ),
    Shown(
        "docs/dashboard.md",
        ("| at most once | what a failure loses",),
        ("telemetry/test_steps_with_barriers.py::test_what_is_lost_is_told",),
    ),
    Shown(
        "docs/how-to.md",
        ("Another process continues from it with the same program and `resume=True`; nothing is lost or repeated.",),
        ("runtime/test_runtime.py::test_stop_commits_what_was_processed_and_resume_goes_on",),
    ),
    Shown(
        "docs/how-to.md",
        ("Each row is written exactly once, even if a task or the process fails.",),
        (
            "connectors/test_sql_sink.py::test_crash_points",
            "system/test_sql_kills.py::test_kill_minus_nine_loses_and_doubles_no_row",
        ),
    ),
    Shown(
        "docs/spark.md",
        ("## Exactly once", "A batch that runs again reads the same rows."),
        ("spark/test_kills_spark.py::test_what_ends_in_the_middle_of_a_batch_loses_and_doubles_nothing",),
    ),
    Shown(
        "docs/spark.md",
        ("Sources that cannot be read again (MQTT, server-sent events, WebSockets, sockets) are at most once",),
        ("system/test_chaos.py::test_a_feed_cannot_promise_exactly_once",),
    ),
    Shown(
        "docs/spark.md",
        ("Each record was read back exactly once.",),
        ("spark/test_history_spark.py::test_every_record_is_there_once_and_in_order",),
    ),
    Shown(
        "docs/sql.md",
        ("A batch of records changes a group at most once.",),
        ("operators/test_changelogs.py::test_a_batch_changes_a_group_at_most_once",),
    ),
    Shown(
        "workbench/api/streams/stream.py",
        ("With parallelism 1, all records keep the order of arrival; with more, the records of a key keep it if the",),
        (
            "connectors/test_replay_order.py::test_one_subtask_reads_all_records_in_order",
            "connectors/test_replay_order.py::test_the_records_of_a_key_keep_their_order_at_any_parallelism",
            "connectors/test_replay_order.py::test_tuning_pausing_and_recovering_keep_the_order",
        ),
    ),
    Shown(
        "workbench/connectors/sql/sink.py",
        ("Committed rows are not committed again, and an older checkpoint is not restored.",),
        (
            "connectors/test_sql_sink.py::test_any_order_of_checkpoints_notices_and_crashes",
            "connectors/test_sql_sink.py::test_a_restore_behind_what_is_committed_is_refused",
        ),
    ),
)
SAID_OF_NAMES = (
    Shown(
        "CallbackSink",
        ("at least once, in Flink's terms; with idempotent calls the effect is exactly once, but not for a changelog",),
        (
            "connectors/test_callback_sink.py::test_after_a_failure_rows_come_again_and_none_is_missing",
            "operators/test_changelogs.py::test_a_batch_changes_a_group_at_most_once",
        ),
    ),
    Shown(
        "FileSink",
        ("The files with these names hold the committed rows, at every moment", "exactly once, by Flink's two-phase"),
        ("connectors/test_file_sink.py::test_crash_points",),
    ),
    Shown(
        "ParquetSink",
        ("exactly once, by Flink's two-phase commit",),
        (
            "connectors/test_parquet_sink.py::test_crash_points",
            "connectors/test_parquet_sink.py::test_a_crash_between_two_renames",
            "system/test_kills.py::test_what_is_committed_is_there_once_however_often_the_process_is_killed",
        ),
    ),
    Shown(
        "TableSink",
        ("exactly once; rows are visible when the checkpoint that ends their epoch is complete",),
        (
            "connectors/test_table_sink.py::test_crash_points",
            "connectors/test_table_sink.py::test_rows_are_invisible_before_completion_and_ordered_after",
        ),
    ),
    Shown(
        "Job.table",
        ("rows become visible once the checkpoint that ends their epoch is complete, each exactly once",),
        (
            "connectors/test_table_sink.py::test_crash_points",
            "connectors/test_table_sink.py::test_rows_are_invisible_before_completion_and_ordered_after",
        ),
    ),
    Shown(
        "KafkaSink",
        (
            '``"at-least-once"``: rows are sent as they arrive and acknowledged before each checkpoint; after a '
            "failure, rows since the last checkpoint are sent again.",
            '``"exactly-once"``: the rows since the last barrier are part of the checkpoint, and sent when it is '
            "complete.",
            "exactly once; Pravega's writers",
        ),
        (
            "connectors/test_kafka_sink.py::test_a_crash_at_any_moment_keeps_the_guarantee",
            "connectors/test_kafka_sink.py::test_what_a_crash_in_the_middle_of_the_commits_leaves_is_completed",
            KILLS,
        ),
    ),
    Shown(
        "KafkaSink",
        (
            '``"transactions"``: as ``"exactly-once"``, and the rows of each checkpoint are one transaction: readers '
            "with ``isolation.level=read_committed`` see all of them or none, and a replaced process is fenced.",
        ),
        (
            "connectors/test_kafka_transactions.py::test_a_kill_at_any_call_loses_and_doubles_nothing",
            "connectors/test_kafka_transactions.py::test_random_orders_of_kills_rescales_and_timeouts",
        ),
    ),
    Shown(
        "NatsSink",
        (
            '``"exactly-once"``: the rows since the last barrier are part of the checkpoint, and published when it is '
            "complete, with their writer, epoch and number as the ID.",
            "exactly once; JetStream's message deduplication",
        ),
        ("connectors/test_nats_sink.py::test_a_crash_at_any_record_keeps_the_guarantee", KILLS),
    ),
    Shown(
        "RedisSink",
        (
            "each row becomes an entry of a stream, exactly once: the rows since the last barrier are part of the "
            "checkpoint, and when it is complete, they are added in one transaction together with its number",
            "exactly once by a transaction together with its number",
        ),
        ("connectors/test_redis_sink.py::test_a_crash_at_any_record_keeps_the_guarantee", KILLS),
    ),
    Shown(
        "SqlSink",
        (
            "Appending is exactly once: the rows since the last barrier are part of the checkpoint, and when it is "
            "complete, they are committed in one transaction together with its number",
            "exactly once by a transaction together with its number",
        ),
        (
            "connectors/test_postgresql_sink.py::test_a_crash_at_any_record_keeps_the_guarantee",
            "connectors/test_sql_sink.py::test_crash_points",
        ),
    ),
    Shown(
        "Stream.replay",
        ("With parallelism 1, all records keep the order of arrival; with more, the records of a key keep it if the",),
        (
            "connectors/test_replay_order.py::test_one_subtask_reads_all_records_in_order",
            "connectors/test_replay_order.py::test_the_records_of_a_key_keep_their_order_at_any_parallelism",
            "connectors/test_replay_order.py::test_tuning_pausing_and_recovering_keep_the_order",
        ),
    ),
    Shown(
        "History.from_spark",
        ("Then a replay keeps their order of arrival at any parallelism",),
        ("connectors/test_replay_order.py::test_the_records_of_a_key_keep_their_order_at_any_parallelism",),
    ),
    Shown(
        "Stream.record_to",
        ("Records are committed with each checkpoint, exactly once.",),
        ("api/test_recording_feeds.py::test_everything_after_the_restart_is_recorded_once",),
    ),
    Shown(
        "Job.record",
        ("for a source that can be read again, it has each of them exactly once.",),
        ("api/test_recording_feeds.py::test_everything_after_the_restart_is_recorded_once",),
    ),
    Shown(
        "Job.audit",
        ("Empty while the checkpoints are taken exactly once.",),
        (
            "runtime/test_checkpoint_modes.py::test_at_least_once_counts_twice_what_came_too_early_and_says_how_much",
            "simulation/test_audited_counts.py::test_counts_are_too_high_by_what_the_audit_says",
        ),
    ),
    Shown(
        "Job.stop",
        ("Nothing is lost: a run with ``resume=True`` continues from the latest complete checkpoint",),
        ("connectors/test_redis_sink.py::test_a_server_that_stays_away_fails_the_task_and_nothing_is_lost", KILLS),
    ),
    Shown(
        "acks",
        ("0: nothing is acknowledged or replayed (at most once).",),
        ("runtime/test_acks.py::test_without_ackers_nothing_is_replayed_and_records_are_lost",),
    ),
    Shown(
        "register_fault_tolerance",
        ("exactly once, and at least once, as two policies of one runtime.",),
        (
            "runtime/test_checkpoint_modes.py::test_at_least_once_counts_twice_what_came_too_early_and_says_how_much",
            "simulation/test_unaligned_simulation.py::test_at_least_once_loses_nothing_and_counts_twice_what_it_says",
        ),
    ),
    *(
        Shown(
            name,
            (
                '``"exactly-once"``: barriers are aligned; ``"at-least-once"``: nothing waits for a barrier, and after '
                "a failure some records are counted twice",
            ),
            (
                "system/test_main_job.py::test_failed_tasks_recover_to_the_same_results",
                "runtime/test_checkpoint_modes.py::test_at_least_once_counts_twice_what_came_too_early_and_says_how_much",
            ),
        )
        for name in ("Job.tune", "Pipeline.run", "Stepper.fork")
    ),
    Shown(
        "Pipeline.run",
        (
            '``"exactly-once"`` or ``"at-least-once"``: a pipeline with a source or sink that cannot guarantee it is '
            "rejected.",
        ),
        ("api/test_guarantee.py::test_one_sink_that_does_not_wait_is_enough",),
    ),
    *(
        Shown(
            name,
            ("in the order of arrival",),
            ("operators/test_windows.py::test_any_run_gives_what_the_model_gives",),
        )
        for name in ("keep_last", "WindowedStream.apply")
    ),
)
_PROMISING = re.compile(
    r"(exactly|at most)[ -]once|at least once(?! a second)|never lost|without loss|order of arrival"
    r"|\b(nothing|none|no (record|row|message|result|change)s?) (is|are|was|were) (lost|skipped|doubled|duplicated)",
    re.IGNORECASE,
)
_NOT_PROMISED = (
    "because an exactly-once sink buffers 70 MB per second",
    "*High-throughput, low-latency, and exactly-once stream processing with Apache Flink*",
    "| at most once | 23.1 M |",
)
"""Words that cite a title or report a measurement."""


def of_one_line(text: str) -> str:
    return " ".join(text.split())


@cache
def collected_in(file: str) -> frozenset[str]:
    """The functions of a file that pytest collects, without those that are always skipped."""
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not any(
            "mark.skip" in ast.unparse(each) and "skipif" not in ast.unparse(each) for each in node.decorator_list
        )
    )


@cache
def docstrings() -> dict[str, str]:
    """Of public names, without their examples."""
    return {name: re.split(r"\n\s*Examples?:", of.text)[0] for name, of in names().items()}


@pytest.mark.parametrize(
    "shown", [*SHOWN, *SAID_OF_NAMES], ids=lambda shown: f"{shown.page.rpartition('/')[2]}: {shown.sentences[0][:40]}"
)
def test_a_promise_is_made_and_has_its_tests(shown: Shown) -> None:
    text = of_one_line((ROOT / shown.page).read_text() if shown in SHOWN else docstrings()[shown.page])
    assert [sentence for sentence in shown.sentences if sentence not in text] == [], shown.page
    for each in shown.tests:
        file, _, name = each.partition("::")
        assert name in collected_in(file), each


def test_every_promise_of_a_page_is_in_the_table() -> None:
    pages = ["README.md", "SECURITY.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
    unknown: list[str] = []
    for page in sorted({*pages} - {"docs/reference.md", "docs/benchmarks.md"}):  # of docstrings, and of measurements
        known = [sentence for shown in SHOWN if shown.page == page for sentence in shown.sentences]
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
        for part in re.split(r"\n\s*\n|\n(?=[|*-] ?)", text):
            unit = of_one_line(part)
            for each in (*known, *_NOT_PROMISED):
                unit = unit.replace(each, "")
            if found := _PROMISING.search(unit):
                unknown.append(f"{page}: {unit[max(0, found.start() - 80) : found.end() + 80]}")
    assert unknown == []


def test_every_promise_of_a_public_docstring_is_in_the_table() -> None:
    unknown: list[str] = []
    for name, text in docstrings().items():
        told = of_one_line(text).replace('as users write it, ``checkpoint_mode="exactly-once"``', "")
        for shown in SAID_OF_NAMES:
            if shown.page == name:
                for each in shown.sentences:
                    told = told.replace(each, "")
        if found := _PROMISING.search(told):
            unknown.append(f"{name}: {told[max(0, found.start() - 80) : found.end() + 80]}")
    assert unknown == []
