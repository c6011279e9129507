"""Jobs that survive their process: they are found in their directories, offered to the next kernel, and continued."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import SECRET
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import workbench as wb
from workbench.api.job import registry
from workbench.api.kept.job_record import Cell, JobRecord, KnownDirectories
from workbench.clock import SystemClock, VirtualClock
from workbench.errors import CheckpointError
from workbench.jupyter import load_ipython_extension, unload_ipython_extension
from workbench.jupyter.completion import candidates
from workbench.jupyter.magics import resuming
from workbench.jupyter.showing.advice import Advice
from workbench.runtime.storage import DirectoryStorage, open_files
from workbench.runtime.storage.lease import LEASE_US, Lease, lessee

COUNT = 2_000
BODY = """import workbench as wb, pyarrow as pa
wb.Stream.from_table(pa.table({"n": range(2000)}), rate=RATE)
"""


def numbers(rate: int) -> wb.types.Pipeline:
    return wb.Stream.from_table(pa.table({"n": range(COUNT)}), rate=rate).sink_to(wb.TableSink("out"))


def interrupted(folder: Path, name: str = "left") -> wb.types.Job:
    """A job that has been stopped behind its first checkpoint."""
    job = numbers(100).run(name, checkpoint_dir=folder, checkpoint_interval="20ms", parallelism=2)
    job.savepoint("first")
    job.stop()
    assert job.wait("60s") == "FINISHED"
    return job


# records -------------------------------------------------------------------------------------------------------------


def test_a_job_can_be_found_in_its_directory(tmp_path: Path) -> None:
    interrupted(tmp_path / "a")
    finished = numbers(100_000).run("whole", checkpoint_dir=tmp_path / "b")
    assert finished.wait("60s") == "FINISHED"
    (tmp_path / "neither").mkdir()
    left, whole = wb.found_jobs(tmp_path)
    assert (left.name, left.record.state, left.resumable, left.holder) == ("left", "FINISHED", True, None)
    assert left.checkpoint is not None
    assert left.checkpoint.checkpoint_id >= 1
    assert left.call == (
        f"run('left', checkpoint_dir={str(tmp_path / 'a')!r}, parallelism=2, checkpoint_interval='20ms', resume=True)"
    )
    assert (whole.name, whole.record.state, whole.resumable) == ("whole", "FINISHED", False)
    assert "left, checkpoint" in repr(wb.found_jobs(tmp_path))
    assert wb.found_jobs(tmp_path / "a") == (left,)
    assert wb.found_jobs(tmp_path / "neither") == ()


def test_a_job_that_runs_is_found_with_its_holder_and_cannot_be_resumed(tmp_path: Path) -> None:
    job = numbers(100).run("runs", checkpoint_dir=tmp_path)
    job.savepoint("first")
    (found,) = wb.found_jobs(tmp_path)
    assert found.holder is not None
    assert (found.holder.pid, found.resumable, found.record.state) == (os.getpid(), False, "RUNNING")
    job.cancel()
    job.wait("60s")
    assert wb.found_jobs(tmp_path)[0].resumable


def test_a_lock_of_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    interrupted(tmp_path)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    holder = {"pid": int(dead.stdout), "host": os.uname().nodename, "since_us": 0}
    (tmp_path / "lock").write_text(json.dumps(holder))
    assert wb.found_jobs(tmp_path)[0].resumable
    (tmp_path / "lock").write_text(json.dumps({**holder, "host": "elsewhere"}))
    assert not wb.found_jobs(tmp_path)[0].resumable  # from here nobody can tell


RECORD = {"format": 1, "name": "a", "state": "RUNNING", "started_us": 1, "settings": {}, "cell": None}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": 1}',
        b'{"format": 99}',
        b"\xff",
        b"[" * 100_000,
        json.dumps({**RECORD, "settings": ["a"]}).encode(),
        json.dumps({**RECORD, "name": 7}).encode(),
        json.dumps({**RECORD, "started_us": 2**70}).encode(),
        json.dumps({**RECORD, "cell": {"line": None, "body": "x"}}).encode(),
    ],
)
def test_what_is_no_record_is_no_job(tmp_path: Path, content: bytes) -> None:
    assert JobRecord.from_json(content) is None
    DirectoryStorage(tmp_path).close()
    (tmp_path / "job.json").write_bytes(content)
    assert wb.found_jobs(tmp_path) == ()


def test_a_record_is_read_as_it_was_written() -> None:
    given = {"parallelism": 2, "speed": "max", "rate": 1.5, "incremental": False, "restore": None}
    record = JobRecord("a", "RUNNING", 17, given, Cell("a -p 2", 'x = "ü"\n'))
    assert JobRecord.from_json(record.to_json()) == record


@pytest.mark.parametrize(
    "lock",
    [
        b"[" * 100_000,
        b'{"pid": 1e999, "host": "HOST", "since_us": 0}',
        b'{"pid": 9999999999, "host": "HOST", "since_us": 0}',
    ],
)
def test_what_no_process_of_this_machine_wrote_holds_nothing(tmp_path: Path, lock: bytes) -> None:
    interrupted(tmp_path)
    (tmp_path / "lock").write_bytes(lock.replace(b"HOST", os.uname().nodename.encode()))
    assert wb.found_jobs(tmp_path)[0].holder is None


def damage(folder: Path) -> Path:
    """Tear the manifest of a job's latest checkpoint; its path."""
    manifest = max(folder.glob("*/*/manifest.json"))
    manifest.write_bytes(manifest.read_bytes()[:50])
    return manifest


def test_a_damaged_job_is_found_with_what_is_wrong_and_hides_no_other(tmp_path: Path) -> None:
    for name in ("bad", "good"):
        interrupted(tmp_path / name, name)
    torn = damage(tmp_path / "bad")
    bad, good = wb.found_jobs(tmp_path)
    assert (bad.name, bad.resumable, bad.checkpoint) == ("bad", False, None)
    assert bad.problem is not None
    assert f"the manifest {torn} cannot be read" in bad.problem
    assert bad.problem in repr(wb.found_jobs(tmp_path))
    assert (good.name, good.resumable, good.problem) == ("good", True, None)


def test_a_job_that_was_taken_back_goes_on_from_there(tmp_path: Path) -> None:
    interrupted(tmp_path)
    with closing(DirectoryStorage(tmp_path)) as storage:
        first = storage.savepoint("first")
        assert first is not None
        assert wb.found_jobs(tmp_path)[0].checkpoint == storage.latest() != first
        storage.take_back(first, storage.highest_id() + 1)
        assert wb.found_jobs(tmp_path)[0].checkpoint == storage.latest() == first
        storage.discard(first.place)
    gone = wb.found_jobs(tmp_path)[0]
    assert not gone.resumable
    assert gone.problem is not None
    assert "was restored from savepoints/first, which is missing" in gone.problem


def test_secrets_of_a_cell_are_not_written_down() -> None:
    cell = Cell("x --checkpoint-dir s3://AKIAX:TOPSECRET@bucket/p", "h = wb.History.open('s3://u:pw2@b/x')\nh")
    written = JobRecord("x", "RUNNING", 17, {}, cell).to_json()
    assert b"TOPSECRET" not in written
    assert b"pw2" not in written
    read = JobRecord.from_json(written)
    assert read is not None
    assert read.cell == Cell(
        "x --checkpoint-dir s3://***@bucket/p", "h = wb.History.open('s3://***@b/x')\nh", redacted=True
    )
    assert JobRecord.from_json(read.to_json()) == read  # still redacted when the next process writes it


def test_a_job_in_an_object_store_shows_no_secret_and_is_held_by_its_lease(bucket: str) -> None:
    job = wb.Stream.from_table(pa.table({"n": range(COUNT)}), rate=100).sink_to(wb.DiscardSink()).run(
        "remote", checkpoint_dir=bucket
    )  # fmt: skip
    job.savepoint("first")
    (held,) = wb.found_jobs(bucket)
    assert held.holder is not None
    assert (held.holder.pid, held.resumable) == (os.getpid(), False)
    job.cancel()
    job.wait("60s")
    head, _, options = bucket.partition("?")
    for place in (bucket, f"{head.rpartition('/')[0]}?{options}"):  # in the folder itself, and from the one around it
        found = wb.found_jobs(place)
        (left,) = found
        assert (left.name, left.resumable, left.holder) == ("remote", True, None)
        assert left.directory == bucket
        assert SECRET not in repr(found) + found._repr_html_() + repr(left) + left.call
        assert "s3://***@" in left.call


def test_a_lease_that_has_ended_holds_nothing(bucket: str) -> None:
    clock = VirtualClock(SystemClock().now_us() - LEASE_US)
    files = open_files(bucket)
    Lease(files, clock)
    assert lessee(files, clock.now_us()) is not None
    assert lessee(files, clock.now_us() + LEASE_US) is None
    files.write("lease.json", (b'{"owner": "nobody", "heartbeat_us": 1}',))
    assert lessee(files, 2) is None


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no directory"):
        wb.found_jobs(tmp_path / "nowhere")


def test_directories_are_kept_once_without_secrets_and_forgotten_when_they_are_gone(tmp_path: Path) -> None:
    known = KnownDirectories(tmp_path / "kept")
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.mkdir()
    for location in (str(there), str(there), str(gone), "s3://bucket/jobs", "s3://key:secret@bucket/jobs"):
        known.add(location)
    assert sorted(known.locations()) == sorted([str(there), "s3://bucket/jobs"])
    assert len(list((tmp_path / "kept").iterdir())) == 2


# in a kernel ---------------------------------------------------------------------------------------------------------


def run(shell: InteractiveShell, cell: str) -> str:
    with capture_output() as captured:
        result = shell.run_cell(cell)
    shown = "".join(output.data.get("text/plain", "") for output in captured.outputs)
    if result.error_before_exec or result.error_in_exec:
        return f"{captured.stdout}{shown}"
    return f"{captured.stdout}{shown}{result.result!r}"


def forget(name: str) -> None:
    """As if the kernel had been restarted."""
    registry._jobs.pop(name)


def test_a_cell_is_shown_and_run_again(shell: InteractiveShell) -> None:
    shell.user_ns["RATE"] = 100
    run(shell, f"%%stream cells --checkpoint-dir chk --checkpoint-interval 20ms --no-dashboard -o job\n{BODY}")
    job = shell.user_ns["job"]
    job.savepoint("first")
    assert wb.found_jobs("chk")[0].record.cell == Cell(
        "cells --checkpoint-dir chk --checkpoint-interval 20ms --no-dashboard -o job", BODY
    )
    job.stop()
    job.wait("60s")
    forget("cells")
    shell.user_ns["RATE"] = 100_000
    shown = run(shell, "%stream resume --run")
    assert "%%stream cells --checkpoint-dir chk" in shown
    assert "--resume\nimport workbench as wb" in shown
    again = wb.job("cells")
    assert again is not job
    assert again.wait("60s") == "FINISHED"
    assert again.table("cells")["n"].to_pylist() == list(range(COUNT))
    assert "restored from" in " ".join(event.text for event in again.recorder.latest().events)  # type: ignore[union-attr]


def left_behind(shell: InteractiveShell) -> None:
    """A job of a cell, stopped, as an earlier kernel leaves it."""
    shell.user_ns["RATE"] = 100
    run(shell, f"%%stream cells --checkpoint-dir chk --checkpoint-interval 20ms --no-dashboard -o job\n{BODY}")
    shell.user_ns["job"].savepoint("first")
    shell.user_ns["job"].stop()
    shell.user_ns["job"].wait("60s")
    forget("cells")
    shell.user_ns["RATE"] = 100_000


def test_a_cell_is_put_before_the_person_and_not_run(shell: InteractiveShell) -> None:
    left_behind(shell)
    cell = f"%%stream cells --checkpoint-dir chk --checkpoint-interval 20ms --no-dashboard -o job --resume\n{BODY}"
    shown = run(shell, "%stream resume cells")
    assert "cells" not in wb.jobs()
    assert "This cell started 'cells' on 20" in shown
    assert f"as job.json in {Path('chk').absolute()} says; checkpoint " in shown
    assert "is the next input: read it, and run it there or with '%stream resume cells --run'" in shown
    assert f".\n\n{cell}" in shown
    assert shell.rl_next_input == cell
    run(shell, cell)
    assert wb.job("cells").wait("60s") == "FINISHED"
    assert "--run" in candidates(["resume"], {})
    assert "--run" not in candidates(["resume", "cells", "--run"], {})


def test_what_is_not_seen_in_a_cell_is_written_out(shell: InteractiveShell) -> None:
    left_behind(shell)
    record = Path("chk") / "job.json"
    content = json.loads(record.read_text())
    content["cell"]["body"] += "# \x1b[2J\u202e\r<b>\n"
    record.write_text(json.dumps(content))
    shell.rl_next_input = None
    shown = run(shell, "%stream resume")
    assert "# \\x1b[2J\\u202e\\r<b>\n" in shown
    assert "It has invisible characters, shown escaped here: '%stream resume cells --run' runs" in shown
    assert not {"\x1b", "\u202e", "\r"} & set(shown)
    assert shell.rl_next_input is None
    assert "cells" not in wb.jobs()
    assert "&lt;b&gt;" in Advice("<b>")._repr_html_()


def test_a_name_that_no_job_can_have_is_no_record(tmp_path: Path) -> None:
    assert JobRecord.from_json(json.dumps({**RECORD, "name": "a\x1b[2J"}).encode()) is None
    assert JobRecord.from_json(json.dumps({**RECORD, "name": "a"}).encode()) is not None


def test_a_cell_without_its_secrets_is_shown_and_not_run(shell: InteractiveShell) -> None:
    shell.user_ns["RATE"] = 100
    body = BODY.replace("import", "url = 's3://key:pa55@b/x'\nimport", 1)
    run(shell, f"%%stream secret --checkpoint-dir chk --no-dashboard -o job\n{body}")
    job = shell.user_ns["job"]
    job.savepoint("first")
    job.stop()
    job.wait("60s")
    forget("secret")
    shown = run(shell, "%stream resume")
    assert "Secrets are not kept: run this cell with yours in place of *** in s3://***@b/x" in shown
    assert "%%stream secret --checkpoint-dir chk --no-dashboard -o job --resume\nurl = 's3://***@b/x'\nimport" in shown
    assert "pa55" not in shown + (Path("chk") / "job.json").read_text()
    assert "secret" not in wb.jobs()


def test_a_job_that_was_restored_keeps_its_cell(shell: InteractiveShell) -> None:
    shell.user_ns["RATE"] = 100
    run(shell, f"%%stream cells --checkpoint-dir chk --no-dashboard\n{BODY}")
    before = wb.found_jobs("chk")[0].record.cell
    assert before is not None
    run(shell, "%stream savepoint cells first")
    run(shell, "%stream restore cells first")
    assert wb.found_jobs("chk")[0].record.cell == before
    wb.job("cells").stop()
    wb.job("cells").wait("60s")
    forget("cells")
    shell.user_ns["RATE"] = 100_000
    assert "%%stream cells --checkpoint-dir chk" in run(shell, "%stream resume cells --run")
    assert wb.job("cells").wait("60s") == "FINISHED"


def test_a_damaged_job_is_named_and_the_others_can_be_resumed(shell: InteractiveShell, tmp_path: Path) -> None:
    for name in ("bad", "good", "whole"):
        interrupted(tmp_path / name, name)
        forget(name)
    finished = numbers(100_000).run("whole", checkpoint_dir=tmp_path / "whole", resume=True)
    assert finished.wait("60s") == "FINISHED"
    damage(tmp_path / "bad")
    unload_ipython_extension(shell)
    with capture_output() as captured:
        load_ipython_extension(shell)
    offer = captured.stdout + "\n".join(output.data["text/plain"] for output in captured.outputs)
    assert "This job can be continued with %stream resume:\ngood, checkpoint " in offer
    assert "This job cannot be continued as it is:\nbad, the manifest " in offer
    assert "'bad' cannot be resumed: the manifest " in run(shell, "%stream resume bad")
    assert "'whole' cannot be resumed: finished" in run(shell, "%stream resume whole")
    assert "pipeline.run('good'" in run(shell, "%stream resume good")
    assert "good" in candidates(["resume"], {})
    assert "bad" not in candidates(["resume"], {})


def test_a_paused_job_goes_on_as_before(shell: InteractiveShell, tmp_path: Path) -> None:
    job = numbers(100).run("paused", checkpoint_dir=tmp_path / "chk")
    job.pause()
    run(shell, "%stream resume paused")
    assert not job.status()["paused"]
    job.cancel()
    job.wait("60s")


def test_for_a_job_of_python_the_call_is_told(shell: InteractiveShell, tmp_path: Path) -> None:
    interrupted(tmp_path / "chk")
    forget("left")
    assert f"pipeline.run('left', checkpoint_dir={str(tmp_path / 'chk')!r}" in run(shell, "%stream resume left")
    assert "unknown job to resume 'lft': did you mean 'left'?" in run(shell, "%stream resume lft")


def test_without_a_name_there_must_be_one(shell: InteractiveShell, tmp_path: Path) -> None:
    assert "there is no job to resume" in run(shell, "%stream resume")
    for name in ("one", "two"):
        interrupted(tmp_path / name, name)
        forget(name)
    assert "name the job to resume, '%stream resume NAME', from" in run(shell, "%stream resume")


def test_the_next_kernel_is_offered_what_this_one_leaves(shell: InteractiveShell, tmp_path: Path) -> None:
    interrupted(tmp_path / "chk")
    unload_ipython_extension(shell)
    with capture_output() as captured:
        load_ipython_extension(shell)
    offer = captured.stdout + "".join(output.data["text/plain"] for output in captured.outputs)
    assert offer.startswith("This job can be continued with %stream resume:\nleft, checkpoint ")
    assert (tmp_path / ".workbench" / "jobs").is_dir()


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("delays", "delays --resume"),
        ("delays -p 2 --resume", "delays -p 2 --resume"),
        ("delays --replace --restore before -p 2", "delays -p 2 --resume"),
        ("delays --restore=before", "delays --resume"),
        ("delays --checkpoint-dir 'my checkpoints'", "delays --checkpoint-dir 'my checkpoints' --resume"),
    ],
)
def test_a_line_that_continues_a_job(line: str, again: str) -> None:
    assert resuming(line) == again


KERNEL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "workbench")
for cell in sys.argv[1:]:
    result = shell.run_cell(cell)
    result.raise_error()
"""


@pytest.mark.slow
def test_a_kernel_that_was_killed_leaves_a_job_that_the_next_one_finishes(tmp_path: Path) -> None:
    start = f"%%stream kept --checkpoint-dir chk --checkpoint-interval 20ms --no-dashboard -o job\n{BODY}"
    die = "import os, signal\njob.savepoint('first')\nos.kill(os.getpid(), signal.SIGKILL)"
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")}

    def kernel(*cells: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", KERNEL, *cells], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    killed = kernel("RATE = 100", start, die)
    assert killed.returncode == -9, killed.stderr
    look = "print(job.table()['n'].to_pylist() == list(range(2000)))"
    ended = kernel("RATE = 100_000", "%stream resume --run", "job.wait('60s')", look)
    assert ended.returncode == 0, ended.stderr
    assert "This job can be continued with %stream resume:\nkept, checkpoint " in ended.stdout
    assert "True" in ended.stdout


def test_a_directory_that_may_not_be_looked_into_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(
        wb.errors.CheckpointError, match=r"'/private/jobs' cannot be listed \(Permission denied\): give"
    ):
        wb.found_jobs("/private/jobs")
