"""The extension in a real kernel: cells while a job runs, interrupts, and the end of the process."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from waiting import until

import workbench as wb

GENERATOR = """
import numpy as np, pyarrow as pa, workbench as wb

def rows(first, n):
    i = np.arange(first, first + n)
    return pa.record_batch({"key": i % 1000, "value": i})

numbers = wb.Stream.from_generator(rows, {"key": pa.int64(), "value": pa.int64()})
sums = numbers.key_by("key").aggregate(count=wb.count(), total=wb.sum("value")).filter("count < 0")
"""


@dataclass
class Cell:
    """What a cell gave: its status, what it printed and displayed, and its error as the notebook shows it."""

    status: str = ""
    text: str = ""
    values: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""

    @property
    def value(self) -> str:
        return str(self.values[-1]["text/plain"])


class Kernel:
    """A kernel with the extension loaded."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str, *, ok: bool = True) -> Cell:
        cell = Cell()

        def collect(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                cell.text += content["text"]
            elif message["msg_type"] in ("execute_result", "display_data"):
                cell.values.append(content["data"])
            elif message["msg_type"] == "error":
                cell.error = "\n".join(content["traceback"])

        # By default a kernel aborts what is asked within a moment of a cell that has failed.
        reply = self.client.execute_interactive(code, timeout=60, output_hook=collect, stop_on_error=False)
        cell.status = reply["content"]["status"]
        assert not ok or cell.status == "ok", cell.error
        return cell


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3")
    kernel = Kernel(manager, client)
    kernel.run("%load_ext workbench")
    kernel.run(GENERATOR)
    yield kernel
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_cell_starts_a_job_and_others_answer_beside_it(kernel: Kernel) -> None:
    started = kernel.run("%%stream load -p 2 --no-dashboard -o job\nsums")
    assert re.search(r"job +load", started.value)
    until(lambda: int(kernel.run("job.status()['records_in']").value) > 0)
    answers = [kernel.run("1+1") for _ in range(11)]
    assert {answer.value for answer in answers} == {"2"}
    assert re.search(r"load +RUNNING", kernel.run("%stream list").value)
    kernel.run("%stream set buffer_timeout=5ms")
    assert kernel.run("job.status()['buffer_timeout']").value == "'5ms'"


def test_a_mistake_is_a_sentence_in_the_notebook(kernel: Kernel) -> None:
    failed = kernel.run("x = 1\n%stream set bufer_timeout=5ms", ok=False)
    number = int(kernel.run("len(In) - 1").value) - 1
    assert failed.error == (
        "SettingError: unknown setting 'bufer_timeout': did you mean 'buffer_timeout'? "
        f"Valid: {', '.join(sorted(wb.SETTINGS))} (cell In[{number}], line 2)"
    )
    failed = kernel.run(
        "%%stream wrong\nwb.Stream.from_generator(rows, {'key': pa.int64()}).filter('kee > 1')", ok=False
    )
    assert failed.error.startswith("ExpressionError: ")
    assert "line 2: wb.Stream.from_generator" in failed.error
    assert "\n" not in failed.error


def test_a_failure_names_its_cell_and_no_line_of_the_shell(kernel: Kernel) -> None:
    failed = kernel.run(
        """def sized(row):
    return {"key": len(open("/no/such file").read())}
keys = wb.Stream.from_table(pa.table({"key": [1]}))
keys.map(sized, {"key": pa.int64()}).sink_to(wb.DiscardSink()).run("sized").wait()
""",
        ok=False,
    )
    number = int(kernel.run("len(In) - 1").value) - 1
    assert f"(cell In[{number}], line 4: keys.map(sized, " in failed.error
    assert f"Cell In[{number}], line 2, in sized" in failed.error
    assert "interactiveshell" not in failed.error


def test_an_interrupt_ends_the_cell_and_not_the_job(kernel: Kernel) -> None:
    def records() -> int:
        return int(kernel.run("job.status()['records_in']").value)

    for cell in ("import time; time.sleep(300)", "job.wait()"):
        message = kernel.client.execute(f"print('begun', flush=True); {cell}", stop_on_error=False)
        while kernel.client.get_iopub_msg(timeout=60)["content"].get("text") != "begun\n":
            pass
        kernel.manager.interrupt_kernel()
        reply = kernel.client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != message:
            reply = kernel.client.get_shell_msg(timeout=60)
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        before = records()
        until(lambda before=before: records() > before)
    assert kernel.run("job.state").value == "'RUNNING'"


def test_a_failed_task_recovers(kernel: Kernel) -> None:
    kernel.run("%stream checkpoint")
    kernel.run("%stream fail load aggregate[1]")
    until(lambda: kernel.run("job.status().get('restarts'), str(job.state)").value == "(1, 'RUNNING')")


def test_a_job_is_replaced(kernel: Kernel) -> None:
    refused = kernel.run("%%stream load\nsums", ok=False)
    assert "job 'load' is running, and another cell started it: '%stream stop load' ends it" in refused.error
    kernel.run("first = job")
    kernel.run("%%stream load --replace --no-dashboard -o job\nsums")
    assert kernel.run("first.state, job is first").value == "('FINISHED', False)"


@pytest.mark.slow
def test_the_dashboard_comes_with_the_job(kernel: Kernel) -> None:
    shown = kernel.run("%%stream load --replace\nsums")
    assert ["Dashboard of job 'load'" in value["text/plain"] for value in shown.values] == [True]  # and nothing below
    assert "text/html" in shown.values[0]
    assert "Replace" not in shown.values[0]["text/html"]
    again = kernel.run("%%stream load --replace\nsums".replace(" --replace", ""), ok=False)
    assert "another cell started it" in again.error  # without ids the text decides which cell it is


@pytest.mark.slow
def test_a_kernel_ends_at_once_and_its_jobs_take_a_last_checkpoint(tmp_path: Path) -> None:
    manager, client = start_new_kernel(kernel_name="python3")
    kernel = Kernel(manager, client)
    try:
        kernel.run("%load_ext workbench")
        kernel.run(GENERATOR)
        folder = tmp_path / "checkpoints"
        kernel.run(f"%%stream load --no-dashboard --checkpoint-interval disabled --checkpoint-dir {folder}\nsums")
        time.sleep(0.5)
        assert list(folder.glob("chk-*")) == []
        manager.shutdown_kernel()
        assert len(list(folder.glob("chk-*/manifest.json"))) == 1
    finally:
        client.stop_channels()
        if manager.is_alive():
            manager.shutdown_kernel(now=True)


def test_a_replay_starts_at_the_speed_of_the_line(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(f"""
import datetime, pathlib
day = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
times = pa.array([day + datetime.timedelta(hours=i) for i in range(1000)], pa.timestamp("us", "UTC"))
table = pa.table({{"at": times, "seen": times}})
history = wb.History.from_arrow(
    table, {str(tmp_path / "hours.log")!r}, event_time="at", arrival_time="seen", progress=False
)
""")
    kernel.run("%%stream slow --speed 3600x --no-dashboard -o slow\nwb.Stream.replay(history)")
    time.sleep(0.5)
    status = kernel.run("slow.status()['speed'], slow.status()['records_in'] < 1000").value
    assert status == "('3600x', True)"
    refused = kernel.run("%%stream fast --speed 600x\nsums", ok=False)
    assert "speed applies only to a replayed history" in refused.error
    kernel.run("slow.cancel()")


def test_a_stepping_job_goes_on_when_it_is_told_to(kernel: Kernel) -> None:
    kernel.run(
        "%%stream lesson --driver stepping --buffer-size 1 --no-dashboard -o lesson\n"
        "wb.Stream.from_table(pa.table({'n': [1, 2, 3]})).filter('n > 1')"
    )
    time.sleep(0.3)
    assert kernel.run("lesson.status().get('records_in', 0)").value == "0"
    assert kernel.run("%stream step lesson 2").value.count("Step(") == 2
    kernel.run("%stream step lesson 1000")
    assert kernel.run("lesson.state, lesson.table().to_pylist()").value == "('FINISHED', [{'n': 2}, {'n': 3}])"


@pytest.mark.slow
def test_a_front_end_finds_the_jobs_of_a_kernel_that_has_only_imported_the_workbench() -> None:
    manager, client = start_new_kernel(kernel_name="python3")
    kernel = Kernel(manager, client)

    def opened(comm: str) -> str:
        """What the kernel says to a comm that is opened, and asked for the jobs."""
        for kind, content in (
            (
                "comm_open",
                {"target_name": "workbench:control", "comm_id": comm, "data": {"v": 1, "type": "open", "docks": False}},
            ),
            ("comm_msg", {"comm_id": comm, "data": {"v": 1, "type": "act", "id": "7", "name": "hello"}}),
        ):
            client.shell_channel.send(client.session.msg(kind, content))
        while (said := client.get_iopub_msg(timeout=60))["msg_type"] not in ("comm_msg", "comm_close"):
            pass
        return str(said["content"].get("data")) if said["msg_type"] == "comm_msg" else "closed"

    try:
        kernel.run("import sys")
        assert opened("before") == "closed"
        kernel.run("import workbench as wb")
        assert kernel.run("[name for name in sys.modules if name.startswith('workbench.')]").value == (
            "['workbench.front_ends']"
        )
        assert "'ok': True" in opened("after")
        until(lambda: kernel.run("'workbench.dashboard.shown.show' in sys.modules").value == "True")
        kernel.run(GENERATOR + "job = sums.sink_to(wb.DiscardSink()).run('imported')")
        assert "'jobs': ['imported']" in opened("later")
        kernel.run("%load_ext workbench")
        assert "'jobs': ['imported']" in opened("loaded")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
