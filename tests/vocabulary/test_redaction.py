"""Secrets in URLs: nothing that is displayed or stored contains them."""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.api.kept.job_record import Cell
from workbench.dashboard.contract.background_actions import BackgroundActions
from workbench.errors import sentence_of
from workbench.redaction import hidden_places, redacted


def test_secrets_are_hidden() -> None:
    assert redacted("s3://key:se/cr@et@host/x") == "s3://***@host/x"
    assert redacted("http://host:8080/users/@me") == "http://host:8080/users/@me"
    assert redacted("https://ann@host/a?token=t&x=1&Api-Key=k") == "https://***@host/a?token=***&x=1&Api-Key=***"
    assert redacted("a: http://u:p@h and http://v:q@g.") == "a: http://***@h and http://***@g."
    assert redacted("nothing here: a@b, x=1, ?n=2") == "nothing here: a@b, x=1, ?n=2"
    assert redacted("no log at s3:/u:p@b/x, nor at C:/u@b") == "no log at s3:/***@b/x, nor at C:/u@b"  # made a path of


@pytest.mark.parametrize(
    "text",
    [
        'f"s3://{KEY}:{SECRET}@bucket/jobs?region=us-east-1"',
        'wb.found_jobs(f"s3://{user}@bucket", "ann@example")',
        "f's3://{os.environ[\"KEY\"]}:{keys.secret()!s}@bucket'",
        'f"s3://{KEY}:{SECRET}@bucket?secret_key={SECRET}&token={vault[0]}"',
        "f\"https://store/x?sig={os.environ['SIG']}&x=1\"",
    ],
)
def test_a_place_for_a_secret_is_none(text: str) -> None:
    assert redacted(text) == text
    cell = Cell(f"delays --checkpoint-dir {text}", text).without_secrets()
    assert (cell.body, cell.redacted) == (text, False)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("s3://{KEY}:pa55@bucket", "s3://***@bucket"),
        ("s3://ann:{SECRET}@bucket", "s3://***@bucket"),
        ("s3://{KEY}:pa{SECRET}@bucket", "s3://***@bucket"),
        ("s3://{KEY}:{SECRET}@55@bucket", "s3://***@bucket"),
        ("s3://{{pa55}}:{{pa55}}@bucket", "s3://***@bucket"),  # an f-string takes these as braces
        ("s3://{ann:pa55}@bucket", "s3://***@bucket"),
        ("s3://{'pa55'}:{'pa55'}@bucket", "s3://***@bucket"),
        ("https://store/x?token={pa55-4b1d-11}&x=1", "https://store/x?token=***&x=1"),
        ("https://store/x?token={T}pa55&x=1", "https://store/x?token=***&x=1"),
    ],
)
def test_what_is_more_than_a_place_for_a_secret_is_hidden(text: str, hidden: str) -> None:
    assert redacted(text) == hidden


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        # The parameters of Arrow's file systems, of stores and of their signed addresses.
        ("s3://b/x?access_key=AK&secret_key=SK/+=&region=eu", "s3://b/x?access_key=***&secret_key=***&region=eu"),
        ("s3://b?session_token=T&role_arn=arn:x", "s3://b?session_token=***&role_arn=arn:x"),
        ("hdfs://nn:8020/x?user=ann&kerb_ticket=/tmp/krb5", "hdfs://nn:8020/x?user=ann&kerb_ticket=***"),
        ("abfs://c@a.dfs.core.windows.net/x?account_key=K", "abfs://***@a.dfs.core.windows.net/x?account_key=***"),
        ("https://a/x?sv=2024&sig=ab%2Fc%3D&se=9", "https://a/x?sv=2024&sig=***&se=9"),
        ("gs://b/x?json_credentials={'a':1}&retry=5", "gs://b/x?json_credentials=***&retry=5"),
        ("https://b/x?X-Amz-Signature=ab&X-Amz-Date=1", "https://b/x?X-Amz-Signature=***&X-Amz-Date=1"),
        # A user and password whose host was forgotten.
        ("s3://A:secret", "s3://***"),
        ("cannot open 's3://A:se/cr+et', why", "cannot open 's3://***', why"),
        ("s3:/A:secret/x", "s3:/***"),
        ("redis://:pa55@host:6379/0", "redis://***@host:6379/0"),
        # Encoded, also more than once, and within a parameter.
        ("s3://b?endpoint_override=http%3A%2F%2Fann%3Apa55%40h&x=1", "s3://b?endpoint_override=***&x=1"),
        ("s3://b?endpoint_override=http%253A%252F%252Fann%253Apa55%2540h", "s3://b?endpoint_override=***"),
        ("s3://key:pa%4055@b/x%20y", "s3://***@b/x%20y"),
        ("/open?url=x%3Fsecret_key%3Dabc", "/open?url=***"),
        ("/open?secret%5Fkey=abc", "/open?secret_key=***"),
        # Settings of databases and clients, as text and as Python or JSON writes them.
        ("host=db user=ann password=pa55 dbname=x", "host=db user=ann password=*** dbname=x"),
        ("host=db password='pa 55\\' 5' dbname=x", "host=db password='***' dbname=x"),
        ("Server=db;Pwd=pa55;Database=x", "Server=db;Pwd=***;Database=x"),
        ("Server=db;PWD={pa;55};Database=x", "Server=db;PWD=***;Database=x"),
        ("AccountName=a;AccountKey=K==;X=1", "AccountName=a;AccountKey=***;X=1"),
        ("PGPASSWORD=pa55 psql", "PGPASSWORD=*** psql"),
        ("{'user': 'ann', 'password': 'pa55', 'n': 1}", "{'user': 'ann', 'password': '***', 'n': 1}"),
        ('{"client_secret": "pa55", "n": 1}', '{"client_secret": "***", "n": 1}'),
        ("Config(user='ann', password='pa55')", "Config(user='ann', password='***')"),
        ("aws_secret_access_key = 'pa55'", "aws_secret_access_key = '***'"),
        ("no such user, password: pa55", "no such user, password: ***"),
        ("the text ends in password='pa55", "the text ends in password=***"),
        # Headers, and keys that are known by their form.
        ("Authorization: Bearer ab.cd", "Authorization: Bearer ***"),
        ("{'Authorization': 'Basic YW5uOnBhNTU='}", "{'Authorization': 'Basic ***'}"),
        ("refused bearer eyJhbGciOiJ9.e30", "refused bearer ***"),
        ("key AKIAIOSFODNN7EXAMPLE of ann", "key *** of ann"),
        (
            "-----BEGIN PRIVATE KEY-----\nab\n-----END PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----\n",
        ),
    ],
)
def test_every_form_of_a_secret_is_hidden(text: str, hidden: str) -> None:
    found = redacted(text)
    assert found == hidden
    assert redacted(found) == found
    assert not any(secret in found for secret in ("pa55", "SK", "abc", "cr+et", "eyJ"))


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8080/users/@me, http://[::1]:8080/x and http://host:80.",
        "write hdfs://host:port/path, sqlite:///delays.db or file:///C:/x",
        "f'http://{host}:{port}/x', 'http://host:%d' % port",
        "on record {'key': 'a', 'tokens': 3, 'sort_key': 'b', 'secretary': 'c'}",
        "numTokens=5, max_tokens=3, token_count=7, key=JFK, for key origin = 'JFK', token == 5",
        "password: must be text; the secret: none; bearer of news; basic understanding",
        "100% = 5, 50%25, a%20b, C:/u@b, ann@example.com, x: 1, a=b",
        "password={SECRET} and password='{vault[0]}'",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("connect(password=given, token=os.environ['T'])", "connect(password=given, token=os.environ['T'])"),
        ("password = getpass()\nself.token: str = token", "password = getpass()\nself.token: str = token"),
        ("connect(password='pa55')", "connect(password='***')"),
        ("connect('host=db password=pa55 x=1')", "connect('host=db password=*** x=1')"),
        ("{'password': given, 'token': 'pa55'}", "{'password': given, 'token': '***'}"),
    ],
)
def test_a_program_may_pass_on_what_is_secret(text: str, hidden: str) -> None:
    assert redacted(text, code=True) == hidden
    cell = Cell("x", text).without_secrets()
    assert (cell.body, cell.redacted) == (hidden, hidden != text)


BEGINNINGS = [
    *("aa://", "aa://b:", "aa://b:c@", "?key", "?keykey", "&sigsigsig", "password='", "password={", "password= "),
    *('password="x\\', "secret_key", "secret", "'password': '", "authorization: ", "bearer ", "bearer a", "%25"),
    *("%41", "%253A%252F", "-----BEGIN PRIVATE KEY-----", "gh", "AKIA", "{a", "a", "=", ":", "aws.", "http%3A"),
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", BEGINNINGS)
def test_time_grows_with_the_length_of_a_text_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        begin = time.process_time()
        redacted(text)
        hidden_places(text)
        return time.process_time() - begin

    redacted(unit)
    short = min(seconds(20_000) for _ in range(3))
    assert min(seconds(320_000) for _ in range(2)) < 16 * 4 * max(short, 0.001)  # 256 times as much, if it were squared


SOURCE = """import workbench as wb, pyarrow as pa
numbers = wb.Stream.from_table(pa.table({'n': [1]}))
numbers.filter('nn > 1').sink_to(wb.DiscardSink()).run('x')  # as s3://key:pa55@bucket/x
"""


@pytest.mark.slow
def test_errors_and_logs_show_no_secrets(tmp_path: Path) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": [1]}))
    attempts: tuple[Callable[[], object], ...] = (
        lambda: wb.History.open("s3://key:pa55@bucket/x"),
        lambda: wb.Stream.from_files("s3://key:pa55@bucket/x"),
        lambda: wb.Recording.open("s3://key:pa55@bucket/x"),
        lambda: numbers.sink_to(wb.ParquetSink("s3://key:pa55@bucket/x")),
    )
    for attempt in attempts:
        with pytest.raises(wb.errors.WorkbenchError, match=r"\*\*\*@bucket") as caught:
            attempt()
        assert "pa55" not in str(caught.value) + repr(caught.value) + caught.value.message

    (tmp_path / "program.py").write_text(SOURCE)
    with pytest.raises(wb.errors.WorkbenchError, match=r"program.py, line 3: .*s3://\*\*\*@bucket") as caught:
        runpy.run_path(str(tmp_path / "program.py"))
    assert "pa55" not in str(caught.value)

    def fails(rows: pa.RecordBatch) -> pa.RecordBatch:
        raise OSError("no access to s3://key:pa55@bucket/x")

    job = numbers.map_batches(fails).sink_to(wb.DiscardSink()).run("fails", restart=wb.restart.no_restart())
    with pytest.raises(wb.errors.JobError) as failed:
        job.wait("60s")
    recording = job.recording(tmp_path / "x.recording")
    frames = repr([asdict(frame) for frame in recording.frames])
    assert "s3://***@bucket/x" in frames
    assert "pa55" not in frames + str(failed.value) + repr(job.status()) + repr(recording.events())
    assert "pa55" not in job.report(tmp_path / "x.html").read_text()


def test_a_password_in_a_users_exception_reaches_nobody(tmp_path: Path) -> None:
    def fails(record: dict[str, int]) -> dict[str, int]:
        raise ConnectionError("login failed: host=db user=ann password=pa55 {'token': 'pa55'}")

    numbers = wb.Stream.from_table(pa.table({"n": [1]}))
    stream = numbers.map(fails, {"n": pa.int64()}, on_error="dead_letter")
    pipeline = stream.sink_to(wb.DiscardSink()) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("letters")
    assert job.wait("60s") == "FINISHED"
    [error] = job.table("bad")["error"].to_pylist()
    assert "raised ConnectionError: login failed: host=db user=ann password=*** {'token': '***'} on" in error

    job = (
        numbers.map(fails, {"n": pa.int64()})
        .sink_to(wb.DiscardSink())
        .run("told", checkpoint_dir=tmp_path / "checkpoints", restart=wb.restart.no_restart())
    )
    with pytest.raises(wb.errors.JobError) as failed:
        job.wait("60s")
    recording = job.recording(tmp_path / "x.recording")
    frames = repr([asdict(frame) for frame in recording.frames])
    told = [frames, str(failed.value), repr(job.status()), repr(recording.events()), repr(job)]
    told += [job.report(tmp_path / "x.html").read_text()]
    for file in tmp_path.rglob("*"):
        if file.is_file():
            told.append(file.read_bytes().decode("latin-1"))
    assert [text for text in told if "pa55" in text] == []
    assert "password=***" in frames


def test_what_others_say_of_an_error_shows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError("no access to s3://key:pa55@bucket/x")

    def fails(*_: object) -> None:
        raise error

    job = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=10).sink_to(wb.DiscardSink()).run("abandoned")
    with monkeypatch.context() as patched:
        patched.setattr(job._run.master.storage, "write", fails)
        job.checkpoint()
        until(lambda: any(c.reason for c in job._run.master.coordinator.history))
    failed = [c for c in job._run.master.coordinator.history if c.reason]
    assert "could not be written: no access to s3://***@bucket/x" in failed[0].reason
    job._run.master.call(lambda: job._run.master.abandon(error))
    with pytest.raises(wb.errors.JobError, match=r"s3://\*\*\*@bucket"):
        job.wait("60s")
    frame = job.recorder.latest()
    assert frame is not None
    assert frame.failure.splitlines()[0] == "no access to s3://***@bucket/x"
    assert "OSError: no access to s3://***@bucket/x" in frame.events[-2].text
    assert "pa55" not in repr(frame) + repr(job.checkpoints())

    heard: list[str | None] = []
    background = BackgroundActions()
    background.run("look", fails, lambda result, problem: heard.append(problem))
    while not heard:
        background.settle()
    assert heard == [sentence_of(error)] == ["OSError: no access to s3://***@bucket/x"]
