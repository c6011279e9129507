"""One table of settings: everything that accepts, offers or describes a setting is derived from it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.stepper import Stepper
from workbench.dashboard.contract.steps import KNOBS
from workbench.durations import parse_duration
from workbench.errors import SettingError
from workbench.jupyter.completion import VALUES
from workbench.jupyter.magics import OPTIONS
from workbench.runtime.settings.restart_strategies import DEFAULT_STRATEGY
from workbench.runtime.settings.settings import Settings
from workbench.runtime.settings.table import OF_RUN, OF_TUNE, TABLE, RunSettings, TunableSettings

OF_THE_START = {
    *("name", "checkpoint_dir", "resume", "restore", "allow_non_restored_state", "standby", "incremental", "driver"),
    *("replace", "engine", "spark"),
}
"""Arguments of `Pipeline.run` that are no settings."""


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(function).parameters)
    return {name: each for name, each in found.items() if name != "self"}


def test_editors_know_the_settings_of_the_table() -> None:
    assert get_type_hints(TunableSettings).keys() == OF_TUNE.keys()
    assert get_type_hints(RunSettings).keys() == OF_RUN.keys()
    assert set(wb.SETTINGS) == OF_TUNE.keys()


def test_signatures_name_the_settings_with_their_defaults() -> None:
    run = parameters(wb.types.Pipeline.run)
    assert run.keys() == OF_THE_START | OF_RUN.keys()
    assert {name: run[name].default for name in OF_RUN} == {name: each.default for name, each in OF_RUN.items()}
    assert (run["buffer_timeout"].default, run["checkpoint_interval"].default) == ("100ms", "5s")
    assert (run["local_aggregation"].default, run["restart"].default) == (True, None)
    assert parameters(wb.types.Job.tune).keys() == OF_TUNE.keys()
    assert parameters(Stepper.fork).keys() == {"step", "name"} | OF_TUNE.keys()


def test_help_describes_each_setting() -> None:
    for function, settings in ((wb.types.Pipeline.run, OF_RUN), (wb.types.Job.tune, OF_TUNE), (Stepper.fork, OF_TUNE)):
        lines = (inspect.getdoc(function) or "").splitlines()
        assert [name for name in settings if not any(line.startswith(f"    {name}: ") for line in lines)] == []
        assert max(map(len, lines)) <= 120
        assert "**settings" not in "\n".join(lines)


def test_the_defaults_of_a_run_are_read_as_what_settings_have() -> None:
    """But for the checkpoint interval: what is built below `run`, as in simulations, asks for each checkpoint."""
    values = {name: each.default for name, each in OF_RUN.items()}
    assert Settings().with_values(values) == replace(Settings(), checkpoint_interval_us=5_000_000)


@pytest.mark.parametrize("name", [name for name in OF_TUNE if name not in ("speed", "rate")])
def test_what_is_shown_is_read_as_the_same(name: str) -> None:
    for text in TABLE[name].steps or TABLE[name].words or ("7" if "checkpoints" in name else "7s",):
        once = Settings().with_value(name, text)
        assert once.with_value(name, once.shown()[name]) == once


def test_magics_have_an_option_for_each_setting_of_a_run() -> None:
    options = {flag: details for flags, details in OPTIONS for flag in flags}
    for name in OF_RUN:
        flag = name.replace("_", "-")
        assert (f"--no-{flag}" if name == "local_aggregation" else f"--{flag}") in options
    assert options["--buffer-timeout"]["help"].endswith("such as 50ms, or disabled (default 100ms)")
    assert options["--parallelism"]["help"] == "subtasks of each operator (default 1)"


def test_completion_offers_the_words_of_each_setting() -> None:
    assert {name: tuple(VALUES[name]) for name in TABLE} == {name: tuple(each.words) for name, each in TABLE.items()}
    assert "unaligned" in VALUES["checkpoint_mode"]


def test_sliders_offer_what_can_be_tuned_in_order() -> None:
    assert {knob.name for knob in KNOBS} >= {"buffer_timeout", "checkpoint_interval", "speed", "parallelism"}
    for knob in KNOBS:
        assert knob.title
        scales = [knob.scale(step) for step in knob.steps]
        assert scales == sorted(set(scales))


def test_an_unknown_setting_of_a_run_is_refused_with_the_nearest() -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
    settings: Any = {"bufer_timeout": "5ms"}
    with pytest.raises(SettingError, match="unknown setting 'bufer_timeout': did you mean 'buffer_timeout'"):
        pipeline.run("unknown-setting", **settings)
    assert "unknown-setting" not in wb.jobs()


def test_a_duration_is_read_however_it_is_written() -> None:
    for same in ("1h", "1 h", "1 hour", "60min", "60 minutes", "3600 s", "3600 seconds", timedelta(hours=1)):
        assert parse_duration(same, "timeout") == 3_600_000_000
    for same in ("90s", "90 s", "90 sec", "1.5 min", "1.5 minutes", timedelta(seconds=90)):
        assert Settings().with_value("checkpoint_interval", same).checkpoint_interval_us == 90_000_000
    assert [parse_duration(text, "t") for text in ("2 days", "5 us", "5 microseconds", "7 milliseconds")] == [
        *(172_800_000_000, 5, 5, 7_000)
    ]
    for wrong in ("1 hours ago", "1 fortnight", "hour", "1 ss", "1 mss"):
        with pytest.raises(SettingError, match="write a number with a unit"):
            parse_duration(wrong, "timeout")


def test_a_restored_job_has_the_settings_in_force_and_its_own_restart_strategy(tmp_path: Path) -> None:
    """The strategy of who chose none differs from what it looks like as text: injected failures do not count."""
    numbers = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=10).sink_to(wb.DiscardSink())
    job = numbers.run("restored-settings", checkpoint_dir=tmp_path, guarantee="at-least-once", local_aggregation=False)
    job.tune(buffer_timeout="7 ms", checkpoint_interval=timedelta(minutes=1))
    before = job._run.master.settings
    assert (before.buffer_timeout_us, before.checkpoint_interval_us) == (7_000, 60_000_000)
    job.savepoint("kept")
    again = job.restore("kept")
    try:
        after = again._run.master.settings
        assert after.restart is DEFAULT_STRATEGY
        assert replace(after, max_parallelism=None) == before
    finally:
        again.cancel()
