"""Bugs that are planted into the runtime, one at a time: the checker must find each of them.

Every function patches what the name of the bug says. The traps into which others fell are among them: no checkpoint at
the end or a commit without one, backpressure that is taken for silence, completions that are said once only, going on
behind a committed epoch or an unreadable checkpoint, in-flight data of operators without state, timers and positions
and watermark generators outside of the state, hashes that differ from process to process, and files written in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mutants import checkpoints, counting, moving, recovery, sinks


@dataclass(frozen=True)
class Mutant:
    """A planted bug.

    Attributes:
        plant: puts it in.
        pipeline: in which it shows soonest, or alone; empty: any.
        only: faults with which it shows soonest; empty: any.
    """

    plant: Callable[[pytest.MonkeyPatch], None]
    pipeline: str = ""
    only: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.plant.__name__


MUTANTS = [
    Mutant(moving.barrier_overtakes_partial_buffers),
    Mutant(moving.partial_buffers_are_lost_at_a_barrier),
    Mutant(moving.watermark_is_the_maximum),
    Mutant(moving.watermark_overtakes_partial_buffers),
    Mutant(moving.a_push_does_not_wake_the_receiver),
    Mutant(moving.a_poll_does_not_wake_the_sender),
    Mutant(moving.the_newest_element_comes_first),
    Mutant(moving.a_full_pool_does_not_stop_the_task),
    Mutant(moving.a_source_reads_on_without_room),
    Mutant(moving.rebalance_forgets_the_remainder, "rebalanced"),
    Mutant(moving.source_forgets_how_far_event_time_was),
    Mutant(moving.idle_inputs_hold_event_time, "late"),
    Mutant(moving.a_source_that_waits_for_room_is_marked_idle),
    Mutant(moving.backpressure_counts_as_silence, "silent"),
    Mutant(moving.keys_go_elsewhere_in_each_attempt),
    Mutant(moving.a_buffer_is_sent_twice),
    Mutant(checkpoints.blocked_channels_are_polled),
    Mutant(checkpoints.snapshot_at_the_first_barrier),
    Mutant(checkpoints.aborted_alignment_is_not_released),
    Mutant(checkpoints.commit_before_the_checkpoint_is_durable),
    Mutant(checkpoints.checkpoint_without_the_last_state),
    Mutant(checkpoints.no_checkpoint_at_the_end),
    Mutant(checkpoints.states_count_before_they_are_written),
    Mutant(checkpoints.overtaken_buffers_are_not_kept),
    Mutant(checkpoints.an_overtaking_barrier_takes_no_buffers_along),
    Mutant(checkpoints.snapshots_share_the_state, "latest"),
    Mutant(recovery.recovery_does_not_wait_for_a_manifest_on_its_way, "filtered"),
    Mutant(recovery.source_position_is_not_restored),
    Mutant(recovery.source_position_is_that_of_the_last_poll),
    Mutant(recovery.one_key_group_is_not_restored),
    Mutant(recovery.fired_windows_fire_again_after_recovery, "late"),
    Mutant(recovery.window_forgets_its_watermark, "late"),
    Mutant(recovery.the_oldest_checkpoint_is_resumed),
    Mutant(recovery.in_flight_records_are_not_sent_again),
    Mutant(recovery.in_flight_records_of_the_first_subtask_are_lost),
    Mutant(recovery.timers_are_not_restored, "timed"),
    Mutant(recovery.the_watermark_generator_is_not_restored, "windows"),
    Mutant(recovery.checksums_are_not_looked_at, "latest", ("kill", "flipped bit")),
    Mutant(recovery.an_unreadable_checkpoint_is_passed_over, "latest", ("kill", "torn file")),
    Mutant(recovery.files_are_written_in_place, "latest", ("mid-file", "metadata write", "kill")),
    Mutant(recovery.files_are_not_synced, "latest", ("power failure",)),
    Mutant(recovery.folders_are_not_synced, "latest", ("power failure",)),
    Mutant(recovery.new_folders_are_not_synced, "latest", ("power failure",)),
    Mutant(recovery.names_of_killed_processes_are_not_synced, "latest", ("folder sync", "kill", "power failure")),
    Mutant(recovery.deletions_are_not_synced, "latest", ("power failure",)),
    Mutant(recovery.the_manifest_of_a_checkpoint_goes_last, "latest", ("cleanup", "power failure")),
    Mutant(
        recovery.a_checkpoint_that_failed_takes_files_of_the_next_one, "latest", ("folder sync", "disk error", "kill")
    ),
    Mutant(recovery.shared_files_go_with_the_first_checkpoint),
    Mutant(recovery.the_newest_checkpoint_is_removed),
    Mutant(sinks.epochs_are_committed_twice, "latest"),
    Mutant(sinks.only_the_newest_epoch_is_committed, "latest"),
    Mutant(sinks.files_are_committed_without_a_checkpoint, "in files"),
    Mutant(sinks.files_are_not_committed_by_a_restore, "in files"),
    Mutant(sinks.restored_rows_are_not_shown),
    Mutant(sinks.rows_are_committed_at_the_end_without_a_checkpoint),
    Mutant(sinks.a_completion_is_not_said_again, "latest", ("kill",)),
    Mutant(sinks.a_sink_goes_on_behind_its_last_commit, "in files", ("kill",)),
    Mutant(counting.late_records_are_not_counted, "late"),
    Mutant(counting.errors_are_not_counted, "poisoned"),
    Mutant(counting.a_chained_operator_misses_a_record),
    Mutant(counting.positions_begin_anew_with_each_read, "poisoned"),
]
