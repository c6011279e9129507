"""The kernel's side of the comms, with fake jobs and comms: requests, replies, and robustness."""

import json
import math
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import until

from workbench.dashboard.contract.view_table import VIEWS
from workbench.errors import SettingError
from workbench.front_ends import CONTROL_TARGET, TELEMETRY_TARGET
from workbench.jupyter.comm import MAX_FRONT_ENDS, TelemetryPump, answer, register_comms, unregister_comms
from workbench.jupyter.protocol import (
    PROTOCOL_VERSION,
    ProtocolError,
    jobs_message,
    parse_request,
    summarise,
)
from workbench.telemetry.frames import EdgeFrame, EventFrame, Frame, TaskFrame, VertexFrame

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/support/golden/comm-protocol.json").read_text())


def vertex(name, *, late):
    metrics = {"numLateRecordsDropped": late}
    return VertexFrame(id=name, name=name, operators=(), parallelism=2, metrics=metrics, x=0.0, y=0.0)


def edge(source, target):
    return EdgeFrame(f"{source}->{target}", source, target, "hash", 0, 8, 0.0, 0.0)


def task(vertex, mark_us):
    return TaskFrame(f"{vertex}[0]", vertex, 0, "tm-0/slot-0", "RUNNING", {"currentOutputWatermark": mark_us})


FRAME = Frame(
    job="delays",
    state="RUNNING",
    sequence=3,
    time_us=1_700_000_012_500_000,
    started_us=1_700_000_000_000_000,
    settings={"buffer_timeout": "50ms", "speed": "max", "parallelism": 2, "checkpoint_interval": None},
    metrics={
        "runningTime": 12500.0,
        "numRecordsInPerSecond": 250000.5,
        "numRecordsOutPerSecond": 120.0,
        "numRestarts": 1,
        "lastCompletedCheckpointId": 41,
    },
    vertices=(
        vertex("source", late=0),
        vertex("window", late=4),
        vertex("sink", late=3),
    ),
    edges=(edge("source", "window"), edge("window", "sink")),
    tasks=(task("source", 21_600_000_000), task("window", None), task("sink", 0)),
    backpressure="no task is held back",
    failure="task aggregate[1] was failed on request",
    events=(EventFrame(1_700_000_012_000_000, "failure", "task aggregate[1] was failed on request"),),
)


class FakeJob:
    engine, live = "kernel", True

    def __init__(self, frame=FRAME, state="RUNNING"):
        self.state = state
        self.frame = frame
        self.calls = []
        self.paused = False
        self.recorder = SimpleNamespace(latest=lambda: self.frame)

    def status(self):
        return {"job": "delays", "state": self.state, "paused": self.paused}

    def tune(self, **settings):
        if "bufer_timeout" in settings:
            raise SettingError("unknown setting\n'bufer_timeout'")
        self.calls.append(("tune", settings))

    def pause(self):
        self.calls.append("pause")
        self.paused = True

    def resume(self):
        self.calls.append("resume")
        self.paused = False

    def checkpoint(self):
        self.calls.append("checkpoint")

    def stop(self, *, wait):
        assert not wait
        raise ZeroDivisionError("division\nby zero")

    def fail(self, task):
        self.calls.append(("fail", task))

    def savepoint(self, name):
        self.calls.append(("savepoint", name))


class FakeComm:
    def __init__(self, comm_id="c", send=None):
        self.comm_id = comm_id
        self.sent = []
        self.senders = set()
        self.closed = False
        self._send = send

    def send(self, data):
        if self._send is not None:
            self._send(data)
        json.dumps(data, allow_nan=False)
        self.senders.add(threading.current_thread())
        self.sent.append(data)

    def on_close(self, callback):
        self.closed_by_front_end = callback

    def close(self):
        self.closed = True


class FakeKernel:
    def __init__(self):
        self.targets = {}
        self.comm_manager = SimpleNamespace(
            register_target=self.targets.__setitem__, unregister_target=lambda name, opened: self.targets.pop(name)
        )


def message(data=None):
    return {"header": {"session": "page"}, "content": {"data": data}}


# -- messages --------------------------------------------------------------------------------------------------------


def test_golden_requests_are_understood():
    assert GOLDEN["version"] == PROTOCOL_VERSION
    assert GOLDEN["targets"] == {"control": CONTROL_TARGET, "telemetry": TELEMETRY_TARGET}
    for sent in GOLDEN["requests"]:
        request = parse_request(sent)
        assert (request.id, request.verb) == (sent["id"], sent["request"])
        assert request.job == sent.get("job", "")
        assert request.settings == sent.get("settings", {})
        assert request.task == sent.get("task", "")


@pytest.mark.parametrize("case", GOLDEN["refused"], ids=lambda case: case["error"][:40])
def test_what_cannot_be_done_is_answered_with_the_golden_sentence(case):
    sent = case["request"]
    reply = answer(sent, lambda: {"delays": FakeJob()})
    assert reply == {"id": sent["id"] if sent else "", "ok": False, "version": PROTOCOL_VERSION, "error": case["error"]}


def test_the_front_end_offers_the_arguments_of_the_architecture_that_runs():
    """It offers the settings of its list that have a value in the job."""
    job = FakeJob(replace(FRAME, knobs={"batch_interval": "1s", "buffer_timeout": None}))
    summary = summarise("delays", job)
    message = jobs_message([summary])
    offered = [each["name"] for each in message["settings"] if summary.settings.get(each["name"]) is not None]
    assert "batch_interval" in offered
    assert summary.settings["batch_interval"] == "1s"
    assert not {"buffer_timeout", "message_timeout"} & set(offered)


def test_golden_telemetry_is_what_a_frame_becomes():
    jobs = {"delays": FakeJob(), "<b>new</b>": FakeJob(frame=None, state="CREATED")}
    summaries = [summarise(name, job) for name, job in jobs.items()]
    for golden, message in zip(GOLDEN["telemetry"], (jobs_message(()), jobs_message(summaries)), strict=True):
        assert message.keys() == golden.keys()
        assert message["jobs"] == golden["jobs"]
        assert [view for view in message["views"] if view["name"] == "events"] == golden["views"]
        assert [each for each in message["settings"] if each["name"] == "checkpoint_mode"] == golden["settings"]
        assert [view["name"] for view in message["views"]] == list(VIEWS)


@pytest.mark.parametrize("field", ["id", "job", "task"])
@pytest.mark.parametrize("value", ["", None, 7, ["x"]])
def test_a_field_that_is_not_a_text_is_refused(field, value):
    with pytest.raises(ProtocolError, match=f"needs '{field}'"):
        parse_request({"version": 1, "id": "1", "request": "fail", "job": "delays", "task": "a[0]", field: value})


def test_a_failure_ages_out_once_the_job_has_recovered():
    minute = replace(FRAME, time_us=FRAME.time_us + 60_000_000)
    assert summarise("delays", FakeJob(FRAME)).failure == FRAME.failure
    assert summarise("delays", FakeJob(minute)).failure is None
    assert summarise("delays", FakeJob(replace(minute, state="RESTARTING"))).failure == FRAME.failure


def test_numbers_that_json_cannot_carry_are_left_out():
    frame = replace(FRAME, metrics={"numRecordsInPerSecond": math.nan, "runningTime": math.inf, "numRestarts": True})
    summary = summarise("delays", FakeJob(frame))
    assert (summary.numRecordsInPerSecond, summary.runningTime, summary.numRestarts) == (None, None, None)


def test_a_job_that_cannot_be_read_says_so_in_its_own_line():
    broken = FakeJob()
    broken.recorder = None
    summary = summarise("delays", broken)
    assert summary.state == "UNKNOWN"
    assert summary.failure == "this job cannot be read: AttributeError: 'NoneType' object has no attribute 'latest'"


# -- requests --------------------------------------------------------------------------------------------------------


def test_each_request_calls_its_twin_and_answers_with_the_jobs_after_it():
    job = FakeJob()
    for sent in GOLDEN["requests"]:
        reply = answer(sent, lambda: {"delays": job})
        assert reply["id"] == sent["id"]
        assert reply["ok"] is (sent["request"] != "stop")
    assert job.calls == [
        ("tune", {"buffer_timeout": "5ms", "buffer_size": 4096}),
        "pause",
        "resume",
        "checkpoint",
        ("fail", "aggregate[1]"),
        ("savepoint", "before-fix"),
    ]


@pytest.mark.parametrize("frame", [FRAME, None])
def test_a_reply_has_the_job_as_it_is_after_the_request(frame):
    def paused_after(request):
        return answer({"version": 1, "id": "1", "request": request, "job": "delays"}, lambda: {"delays": job})["jobs"][
            0
        ]["paused"]

    job = FakeJob(frame)
    assert [paused_after(request) for request in ("checkpoint", "pause", "resume")] == [False, True, False]


def test_errors_of_a_job_become_one_line():
    def ask(**request):
        return answer({"version": 1, "id": "1", "job": "delays", **request}, lambda: {"delays": FakeJob()})["error"]

    assert ask(request="tune", settings={"bufer_timeout": "5ms"}) == "unknown setting 'bufer_timeout'"
    assert ask(request="stop") == "ZeroDivisionError: division by zero"


def test_a_registry_that_fails_is_an_answer_too():
    def jobs():
        raise RuntimeError("dictionary changed size during iteration")

    reply = answer({"version": 1, "id": "1", "request": "list"}, jobs)
    assert (reply["ok"], reply["error"]) == (False, "RuntimeError: dictionary changed size during iteration")


# -- telemetry -------------------------------------------------------------------------------------------------------


def test_a_view_hears_the_jobs_at_once_and_then_only_what_is_new():
    job = FakeJob()
    looks = []

    def jobs():
        looks.append(1)
        return {"delays": job}

    pump = TelemetryPump(jobs, period_s=0.01)
    view = FakeComm()
    pump.add(view)
    until(lambda: len(looks) >= 5)
    assert [told["jobs"][0]["state"] for told in view.sent] == ["RUNNING"]
    job.state = "FINISHED"
    until(lambda: len(view.sent) == 2)
    assert view.sent[1]["jobs"][0]["state"] == "FINISHED"
    pump.stop()


def test_a_view_that_joins_later_hears_everything():
    pump = TelemetryPump(lambda: {"delays": FakeJob()}, period_s=0.01)
    first, second = FakeComm("first"), FakeComm("second")
    pump.add(first)
    until(lambda: first.sent)
    pump.add(second)
    until(lambda: second.sent)
    assert first.sent == second.sent == [{**jobs_message(()), "jobs": GOLDEN["telemetry"][1]["jobs"][:1]}]
    pump.stop()


def test_it_tells_at_most_once_per_period():
    job = FakeJob()

    def jobs():
        job.frame = replace(job.frame, started_us=job.frame.started_us + 1)
        return {"delays": job}

    period_s, told_s = 0.05, []
    pump = TelemetryPump(jobs, period_s=period_s)
    pump.add(FakeComm(send=lambda data: told_s.append(time.monotonic())))
    until(lambda: len(told_s) > 5)
    pump.stop()
    gaps_s = [after - before for before, after in pairwise(told_s)]
    assert min(gaps_s[1:]) > 0.9 * period_s  # behind the first message, which comes at once


def test_the_thread_lives_while_there_is_a_view():
    pump = TelemetryPump(dict, period_s=10.0)
    assert not pump.running
    for comm_id in ("a", "b"):
        pump.add(FakeComm(comm_id))
    threads = [thread for thread in threading.enumerate() if thread.name == "workbench-telemetry"]
    assert len(threads) == 1
    pump.remove("a")
    assert pump.running
    pump.remove("b")
    until(lambda: not pump.running)
    pump.add(FakeComm("c"))
    assert pump.running
    pump.stop()
    assert not pump.running
    assert not [thread for thread in threading.enumerate() if thread.name == "workbench-telemetry"]


def test_a_process_that_ends_takes_the_thread_with_it_so_that_the_kernels_socket_has_one_writer():
    comm, jobs = FakeComm("a"), {"delays": FakeJob()}
    pump = TelemetryPump(lambda: jobs, period_s=0.01)
    pump.add(comm)
    until(lambda: comm.sent)
    for thread in pump.leave():
        thread.join(10.0)
        assert not thread.is_alive()
    assert not pump.running
    assert pump.leave() == []


def test_one_broken_view_does_not_silence_the_others():
    def refuse(data):
        raise OSError("socket is closed")

    pump = TelemetryPump(lambda: {"delays": FakeJob()}, period_s=0.01)
    broken, sound = FakeComm("broken", send=refuse), FakeComm("sound")
    pump.add(broken)
    pump.add(sound)
    until(lambda: sound.sent)
    assert broken.sent == []
    pump.stop()


def test_a_look_that_fails_once_does_not_end_the_telemetry():
    failures = iter([True, False])

    def jobs():
        if next(failures, False):
            raise RuntimeError("dictionary changed size during iteration")
        return {"delays": FakeJob()}

    pump = TelemetryPump(jobs, period_s=0.01)
    view = FakeComm()
    pump.add(view)
    until(lambda: view.sent)
    pump.stop()


def test_views_are_bounded_and_the_newest_stay():
    pump = TelemetryPump(dict, period_s=10.0)
    views = [FakeComm(str(number)) for number in range(MAX_FRONT_ENDS + 2)]
    for view in views:
        pump.add(view)
    assert [view.closed for view in views] == [True, True] + [False] * MAX_FRONT_ENDS
    pump.stop()


# -- both comms of a kernel ------------------------------------------------------------------------------------------


def test_both_comms_of_a_kernel():
    kernel, job = FakeKernel(), FakeJob()
    register_comms(kernel, lambda: {"delays": job})
    control, telemetry = FakeComm("control"), FakeComm("telemetry")
    kernel.targets[CONTROL_TARGET](control, message())
    kernel.targets[TELEMETRY_TARGET](telemetry, message())
    control.handle_msg(message({"version": 1, "id": "1", "request": "pause", "job": "delays"}))
    until(lambda: telemetry.sent and telemetry.sent[-1]["jobs"][0]["paused"])
    assert [reply["id"] for reply in control.sent] == ["1"]
    # Where a thread has sent on a comm, ipykernel delivers its incoming messages to that thread's shell.
    assert control.senders == {threading.current_thread()}
    assert threading.current_thread() not in telemetry.senders

    unregister_comms(kernel)
    assert kernel.targets == {}
    assert control.closed
    assert telemetry.closed
    unregister_comms(kernel)


def test_registering_again_replaces_the_first():
    kernel = FakeKernel()
    register_comms(kernel, dict)
    control = FakeComm("control")
    kernel.targets[CONTROL_TARGET](control, message())
    register_comms(kernel, lambda: {"delays": FakeJob()})
    assert control.closed
    again = FakeComm("again")
    kernel.targets[CONTROL_TARGET](again, message())
    again.handle_msg(message({"version": 1, "id": "1", "request": "list"}))
    assert [line["name"] for line in again.sent[0]["jobs"]] == ["delays"]
    unregister_comms(kernel)


def test_a_page_that_closes_its_comms_ends_the_thread():
    kernel = FakeKernel()
    register_comms(kernel, dict)
    telemetry = FakeComm("telemetry")
    kernel.targets[TELEMETRY_TARGET](telemetry, message())
    until(lambda: telemetry.sent)
    telemetry.closed_by_front_end(message())
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "workbench-telemetry"])
    unregister_comms(kernel)


def test_a_shell_without_comms_is_left_alone():
    for kernel in (None, object()):
        register_comms(kernel, dict)
        unregister_comms(kernel)
