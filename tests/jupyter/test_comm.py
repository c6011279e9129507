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
from jupyter_client.session import Session
from waiting import until
from wire_types import FILE, typescript

from workbench.dashboard.contract.view_table import VIEWS
from workbench.errors import SettingError
from workbench.from_json import made
from workbench.front_ends import CONTROL_TARGET, TELEMETRY_TARGET
from workbench.jupyter.comm import answer, register_comms, unregister_comms
from workbench.jupyter.pump import MAX_FRONT_ENDS, PERIOD_S, FramePump
from workbench.jupyter.showing.docked import dock
from workbench.jupyter.told import hello_of, sent_head, told_head
from workbench.telemetry.frames import EdgeFrame, EventFrame, Frame, TaskFrame, VertexFrame
from workbench.wire.head import Head, head_of
from workbench.wire.messages import VERSION, Open, See, WireError, act_of, open_of, see_of
from workbench.wire.messages import message as message_of
from workbench.wire.patches import patch
from workbench.wire.sentences import text_of
from workbench.wire.values import plain

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/support/golden/wire.json").read_text())


EAGER = See({"*": {"head": 100}})
SEE = {"v": 1, "type": "see", "sections": {"*": {"head": 100}}}


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
    engine = "kernel"

    def __init__(self, frame=FRAME, state="RUNNING"):
        self.state = state
        self.frame = frame
        self.calls = []
        self.paused = False
        self.recorder = SimpleNamespace(latest=lambda: self.frame)
        self._run = SimpleNamespace(head=lambda: head_of(self.frame, self.state, paused=self.paused))

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


def told(jobs):
    """What a page is told of jobs that have just been found."""
    return [
        message_of("hello", plain(hello_of(jobs))),
        *(
            message_of("frame", {"job": name, "seq": 0, "base": None, "head": sent_head(job)})
            for name, job in jobs.items()
        ),
    ]


def test_golden_acts_are_understood():
    assert GOLDEN["version"] == VERSION
    assert GOLDEN["targets"] == {"control": CONTROL_TARGET, "telemetry": TELEMETRY_TARGET}
    for sent in GOLDEN["acts"]:
        act = act_of(sent)
        assert (act.id, act.name, act.job, act.args) == (sent["id"], sent["name"], sent["job"], sent["args"])
    assert open_of(GOLDEN["open"]) == Open(docks=True)
    assert see_of(GOLDEN["see"]) == See({"*": {"head": 1_000}}, "7")


@pytest.mark.parametrize("case", GOLDEN["refused"], ids=lambda case: case["text"][:40])
def test_what_cannot_be_done_is_answered_with_the_golden_sentence(case):
    sent = case["act"]
    reply = answer(sent, lambda: {"delays": FakeJob()})
    expected = {"id": sent["id"] if sent else "", "ok": False, "text": case["text"], "data": None}
    assert reply == message_of("reply", expected)


def test_the_front_end_offers_the_arguments_of_the_architecture_that_runs():
    """It offers the settings of its list that have a value in the job."""
    job = FakeJob(replace(FRAME, knobs={"batch_interval": "1s", "buffer_timeout": None}))
    settings = told_head(job).settings
    offered = [each.name for each in hello_of({"delays": job}).settings if settings.get(each.name) is not None]
    assert "batch_interval" in offered
    assert settings["batch_interval"] == "1s"
    assert not {"buffer_timeout", "message_timeout"} & set(offered)


def test_golden_frames_are_what_a_kernel_tells():
    jobs = {"delays": FakeJob(), "<b>new</b>": FakeJob(frame=None, state="CREATED")}
    hello, *frames = told(jobs)
    golden, *golden_frames = GOLDEN["told"][:3]
    assert frames == golden_frames
    assert (hello["jobs"], hello["docks"], hello["v"]) == (golden["jobs"], golden["docks"], golden["v"])
    assert [view for view in hello["views"] if view["name"] == "events"] == golden["views"]
    assert [each for each in hello["settings"] if each["name"] == "checkpoint_mode"] == golden["settings"]
    assert [view["name"] for view in hello["views"]] == list(VIEWS)


def test_the_golden_patch_is_what_has_changed():
    ended = told_head(FakeJob(replace(FRAME, state="FINISHED"), "FINISHED"))
    changed = patch(plain(told_head(FakeJob())), plain(ended))
    assert message_of("frame", {"job": "delays", "seq": 1, "base": 0, "head": changed}) == GOLDEN["told"][3]


def test_the_types_of_the_page_are_those_of_the_kernel():
    assert FILE.read_text() == typescript(), "run make wire"


@pytest.mark.parametrize("field", ["id", "job", "args", "name"])
@pytest.mark.parametrize("value", [None, 7, ["x"]])
def test_a_field_of_another_type_is_refused(field, value):
    with pytest.raises(WireError, match=f"{field}"):
        act_of(
            {"v": 1, "type": "act", "id": "1", "name": "fail", "job": "delays", "args": {"task": "a[0]"}, field: value}
        )


@pytest.mark.parametrize("task", ["", None, 7, ["x"]])
def test_an_argument_that_is_not_a_text_is_refused(task):
    with pytest.raises(WireError, match="needs 'task'"):
        act_of({"v": 1, "type": "act", "id": "1", "name": "fail", "job": "delays", "args": {"task": task}})


def test_a_failure_ages_out_once_the_job_has_recovered():
    minute = replace(FRAME, time_us=FRAME.time_us + 60_000_000)
    assert told_head(FakeJob(FRAME)).failure == (FRAME.failure,)
    assert told_head(FakeJob(minute)).failure is None
    assert told_head(FakeJob(replace(minute, state="RESTARTING"))).failure == (FRAME.failure,)


def test_metrics_that_a_page_cannot_read_are_left_out():
    metrics = {"numRecordsInPerSecond": math.nan, "runningTime": math.inf, "numRestarts": True}
    head = told_head(FakeJob(replace(FRAME, metrics={**metrics, "lastCompletedCheckpointId": 2**60})))
    assert (head.read_per_s, head.running_ms, head.restarts, head.checkpoint) == (None, None, None, None)


UNREAD = {
    "NaN": (replace(FRAME, settings={"rate": math.nan}), "nan is a number that a page cannot read"),
    "beyond 2^53": (replace(FRAME, tables={"delays": 2**53}), f"{2**53} is a number that a page cannot read"),
    "8 MB": (replace(FRAME, backpressure="x" * 10_000), "what there is to tell of it has more than 8 MB"),
    "no frames": (None, "'NoneType' object has no attribute 'latest'"),
}


@pytest.mark.parametrize(("frame", "why"), UNREAD.values(), ids=UNREAD)
def test_a_job_that_cannot_be_told_of_says_so_in_its_own_line_and_hides_no_other(frame, why, monkeypatch):
    monkeypatch.setattr("workbench.jupyter.told.FRAME_MAX", 10_000)
    broken = FakeJob(frame)
    if frame is None:
        broken.recorder = None
    pump, page = FramePump(lambda: {"broken": broken, "delays": FakeJob()}), FakeComm()
    pump.add(page, EAGER)
    until(lambda: len(page.sent) == 3)
    head = made(Head, page.sent[1]["head"])
    assert head.state == "UNKNOWN"
    assert text_of(head.failure).startswith("this job cannot be read: ")
    assert text_of(head.failure).endswith(why)
    assert page.sent[2]["head"] == sent_head(FakeJob())
    pump.stop()


@pytest.mark.parametrize("text", GOLDEN["hostile"], ids=lambda text: ascii(text)[:24])
def test_names_values_and_sentences_with_markup_travel_as_text(text):
    told = SimpleNamespace(sentence=text)
    frame = replace(
        FRAME, backpressure=text, failure=text, changes=(told,), interruptions=(told,), tables={text: 7},
        settings={text: text}, knobs={f"{text}!": text}, tasks=tuple(replace(task, name=text) for task in FRAME.tasks),
    )  # fmt: skip
    head = made(Head, json.loads(json.dumps(sent_head(FakeJob(frame, text)))))
    assert head.failure == ((text,) if text else None)
    sentences = (head.backpressure, head.failure, head.change, head.interruption)
    assert [text_of(each or ()) for each in sentences] == [text] * 4
    assert (head.state, dict(head.tables), head.tasks) == (text, {text: 7}, (text,) * 3)
    assert head.settings == {text: text, f"{text}!": text}


def test_what_no_message_can_carry_becomes_a_question_mark():
    half = "\udcff 5 ms \ud800"
    head = sent_head(FakeJob(replace(FRAME, failure=half, settings={half: half})))
    session = Session(key=b"")
    *_, content = session.serialize(session.msg("comm_msg", {"head": head}))
    assert json.loads(content)["head"] == head
    assert head["settings"] == {"? 5 ms ?": "? 5 ms ?"}
    reply = answer({"v": 1, "type": "act", "id": half, "name": "hello"}, dict)
    assert reply["id"] == "? 5 ms ?"


def test_a_section_that_there_is_not_is_refused():
    with pytest.raises(WireError, match="unknown section 'heads': did you mean 'head'"):
        see_of({"v": 1, "type": "see", "sections": {"*": {"head": 100, "heads": 100}}})


# -- acts ------------------------------------------------------------------------------------------------------------


def test_each_act_calls_its_twin():
    job = FakeJob()
    for sent in GOLDEN["acts"]:
        reply = answer(sent, lambda: {"delays": job})
        assert reply["id"] == sent["id"]
        assert reply["ok"] is (sent["name"] != "stop")
    assert job.calls == [
        ("tune", {"buffer_timeout": "5ms", "buffer_size": 4096}),
        "pause",
        "resume",
        "checkpoint",
        ("fail", "aggregate[1]"),
        ("savepoint", "before-fix"),
    ]


def test_errors_of_a_job_become_one_line():
    def ask(name, **args):
        act = {"v": 1, "type": "act", "id": "1", "name": name, "job": "delays", "args": args}
        return answer(act, lambda: {"delays": FakeJob()})["text"]

    assert ask("tune", settings={"bufer_timeout": "5ms"}) == "unknown setting 'bufer_timeout'"
    assert ask("stop") == "ZeroDivisionError: division by zero"


def test_a_registry_that_fails_is_an_answer_too():
    def jobs():
        raise RuntimeError("dictionary changed size during iteration")

    reply = answer({"v": 1, "type": "act", "id": "1", "name": "hello"}, jobs)
    assert (reply["ok"], reply["text"]) == (False, "RuntimeError: dictionary changed size during iteration")


# -- telemetry -------------------------------------------------------------------------------------------------------


def test_a_view_hears_the_jobs_at_once_and_then_only_what_is_new():
    job = FakeJob()
    looks = []

    def jobs():
        looks.append(1)
        return {"delays": job}

    pump = FramePump(jobs)
    view = FakeComm()
    pump.add(view, EAGER)
    until(lambda: len(looks) >= 5)
    assert view.sent == told({"delays": job})
    job.state = "FINISHED"
    until(lambda: len(view.sent) == 3)
    assert view.sent[2] == message_of("frame", {"job": "delays", "seq": 1, "base": 0, "head": {"state": "FINISHED"}})
    pump.stop()


def test_a_view_that_joins_later_hears_everything():
    pump = FramePump(lambda: {"delays": FakeJob()})
    first, second = FakeComm("first"), FakeComm("second")
    pump.add(first, EAGER)
    until(lambda: len(first.sent) == 2)
    pump.add(second, EAGER)
    until(lambda: len(second.sent) == 2)
    assert first.sent == second.sent == told({"delays": FakeJob()})
    pump.stop()


def test_it_tells_at_most_once_per_period():
    job = FakeJob()

    def jobs():
        job.frame = replace(job.frame, started_us=job.frame.started_us + 1)
        return {"delays": job}

    told_s = []
    pump = FramePump(jobs)
    pump.add(FakeComm(send=lambda data: told_s.append(time.monotonic())), EAGER)
    until(lambda: len(told_s) > 5)
    pump.stop()
    gaps_s = [after - before for before, after in pairwise(told_s)]
    assert min(gaps_s[2:]) > 0.9 * PERIOD_S  # behind the first messages, which come at once


def test_the_thread_lives_while_there_is_a_view():
    pump = FramePump(dict)
    assert not pump.running
    for comm_id in ("a", "b"):
        pump.add(FakeComm(comm_id), EAGER)
    threads = [thread for thread in threading.enumerate() if thread.name == "workbench-telemetry"]
    assert len(threads) == 1
    pump.remove("a")
    assert pump.running
    pump.remove("b")
    until(lambda: not pump.running)
    pump.add(FakeComm("c"), EAGER)
    assert pump.running
    pump.stop()
    assert not pump.running
    assert not [thread for thread in threading.enumerate() if thread.name == "workbench-telemetry"]


def test_a_process_that_ends_takes_the_thread_with_it_so_that_the_kernels_socket_has_one_writer():
    comm, jobs = FakeComm("a"), {"delays": FakeJob()}
    pump = FramePump(lambda: jobs)
    pump.add(comm, EAGER)
    until(lambda: comm.sent)
    for thread in pump.leave():
        thread.join(10.0)
        assert not thread.is_alive()
    assert not pump.running
    assert pump.leave() == []


def test_a_page_that_asks_again_hears_everything_again():
    pump, view = FramePump(lambda: {"delays": FakeJob()}), FakeComm()
    pump.add(view, EAGER)
    until(lambda: len(view.sent) == 2)
    pump.see(view.comm_id, EAGER)
    until(lambda: len(view.sent) == 4)
    assert view.sent[2:] == view.sent[:2]
    pump.see("gone", EAGER)
    pump.stop()


def test_a_page_sees_the_jobs_that_it_asked_for():
    jobs = {"delays": FakeJob(), "other": FakeJob()}
    pump, view = FramePump(lambda: jobs), FakeComm()
    pump.add(view, See({"other": {"head": 100}}))
    until(lambda: len(view.sent) == 2)
    assert [sent.get("job") for sent in view.sent] == [None, "other"]
    del jobs["other"]
    until(lambda: len(view.sent) == 3)
    assert view.sent[2]["jobs"] == ["delays"]
    jobs["other"] = FakeJob()  # another run of the name comes whole
    until(lambda: len(view.sent) == 5)
    assert view.sent[4] == view.sent[1]
    pump.stop()


def test_one_broken_view_does_not_silence_the_others():
    def refuse(data):
        raise OSError("socket is closed")

    pump = FramePump(lambda: {"delays": FakeJob()})
    broken, sound = FakeComm("broken", send=refuse), FakeComm("sound")
    pump.add(broken, EAGER)
    pump.add(sound, EAGER)
    until(lambda: sound.sent)
    assert broken.sent == []
    pump.stop()


def test_a_look_that_fails_once_does_not_end_the_telemetry():
    failures = iter([True, False])

    def jobs():
        if next(failures, False):
            raise RuntimeError("dictionary changed size during iteration")
        return {"delays": FakeJob()}

    pump = FramePump(jobs)
    view = FakeComm()
    pump.add(view, EAGER)
    until(lambda: view.sent)
    pump.stop()


def test_views_are_bounded_and_the_newest_stay():
    pump = FramePump(dict)
    views = [FakeComm(str(number)) for number in range(MAX_FRONT_ENDS + 2)]
    for view in views:
        pump.add(view, EAGER)
    assert [view.closed for view in views] == [True, True] + [False] * MAX_FRONT_ENDS
    pump.stop()


# -- both comms of a kernel ------------------------------------------------------------------------------------------


def test_both_comms_of_a_kernel():
    kernel, job = FakeKernel(), FakeJob()
    register_comms(kernel, lambda: {"delays": job})
    control, telemetry = FakeComm("control"), FakeComm("telemetry")
    kernel.targets[CONTROL_TARGET](control, message())
    kernel.targets[TELEMETRY_TARGET](telemetry, message(SEE))
    control.handle_msg(message({"v": 1, "type": "act", "id": "1", "name": "pause", "job": "delays"}))
    until(lambda: telemetry.sent and telemetry.sent[-1].get("head", {}).get("paused"))
    assert [reply["id"] for reply in control.sent] == ["1"]
    # Where a thread has sent on a comm, ipykernel delivers its incoming messages to that thread's shell.
    assert control.senders == {threading.current_thread()}
    assert threading.current_thread() not in telemetry.senders

    unregister_comms(kernel)
    assert kernel.targets == {}
    assert control.closed
    assert telemetry.closed
    unregister_comms(kernel)


@pytest.mark.parametrize(
    ("told", "docks"),
    [(GOLDEN["open"], True), (None, False), ({}, False), ({"v": 1, "type": "open", "docks": "yes"}, False)],
    ids=["docks", "nothing", "no version", "a text"],
)
def test_a_front_end_docks_if_it_says_so(told, docks):
    kernel = FakeKernel()
    register_comms(kernel, dict)
    kernel.targets[CONTROL_TARGET](FakeComm("page"), message(told))
    assert dock("delays") is docks
    unregister_comms(kernel)
    assert not dock("delays")


def test_registering_again_replaces_the_first():
    kernel = FakeKernel()
    register_comms(kernel, dict)
    control = FakeComm("control")
    kernel.targets[CONTROL_TARGET](control, message())
    register_comms(kernel, lambda: {"delays": FakeJob()})
    assert control.closed
    again = FakeComm("again")
    kernel.targets[CONTROL_TARGET](again, message())
    again.handle_msg(message({"v": 1, "type": "act", "id": "1", "name": "hello"}))
    assert again.sent[0]["data"]["jobs"] == ["delays"]
    unregister_comms(kernel)


def test_a_page_that_closes_its_comms_ends_the_thread():
    kernel = FakeKernel()
    register_comms(kernel, dict)
    telemetry = FakeComm("telemetry")
    kernel.targets[TELEMETRY_TARGET](telemetry, message(SEE))
    until(lambda: telemetry.sent)
    telemetry.closed_by_front_end(message())
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "workbench-telemetry"])
    unregister_comms(kernel)


def test_a_shell_without_comms_is_left_alone():
    for kernel in (None, object()):
        register_comms(kernel, dict)
        unregister_comms(kernel)
