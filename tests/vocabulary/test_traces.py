"""The user's lines of an exception: which are recorded, what they say, and the traceback that is made from them."""

from __future__ import annotations

import json
import runpy
import traceback
from pathlib import Path

import pytest

from workbench.raised import without_frames
from workbench.traces import Trace, lines_of, told_trace
from workbench.traces.told import TRACEBACK


def divide(secret: int) -> float:
    return 1 / secret


def reraise() -> None:
    try:
        divide(0)
    except ZeroDivisionError as error:
        raise ValueError("no rate") from error


def caught(call: object, *arguments: object) -> Exception:
    assert callable(call)
    with pytest.raises(Exception) as info:  # noqa: PT011  the caller knows which
        call(*arguments)
    return info.value


def test_the_text_has_the_lines_of_an_exception_and_of_its_cause() -> None:
    told = Trace.of(caught(reraise)).text.splitlines()
    assert [line.partition(", in ")[2] for line in told if ", in " in line] == [
        "caught",
        "reraise",
        "reraise",
        "divide",
    ]
    assert told.index("caused by ZeroDivisionError: division by zero") == 4
    assert told[-1] == "    return 1 / secret"


def test_libraries_are_among_the_lines_only_where_the_user_calls_them() -> None:
    lines = lines_of(caught(json.loads, "{"))
    assert [line.function.rpartition(".")[2] for line in lines] == ["caught", "loads", "decode", "raw_decode"]
    assert lines_of(caught(lambda: None, 1, 2))[0].function == "caught"


def test_the_traceback_that_is_made_again_looks_like_the_real_one_and_holds_no_values() -> None:
    error = caught(reraise)
    real = traceback.format_exception(error)
    trace = Trace.of(error)
    without_frames(error)
    assert trace.restore() is error
    assert traceback.format_exception(error) == real
    frames = [frame for each in (error, error.__cause__) for frame, _ in traceback.walk_tb(each.__traceback__)]
    assert [frame.f_locals for frame in frames] == [{}] * 4


def test_the_text_of_an_endless_recursion_and_of_long_lines_is_bounded() -> None:
    names: dict[str, object] = {}
    long = "é" * 3_000
    exec(f"def {'f' * 90}(): {long} = {'f' * 90}(); return {long}", names)
    trace = Trace.of(caught(names["f" * 90]))
    assert len(trace.text.encode()) <= 4_000
    assert trace.text.startswith('  File "')
    assert len(trace.parts[0][1]) == 16


def test_a_long_line_says_that_it_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text(f"def fail():\n    raise ValueError({'1' * 119!r})\ndef short():\n    raise ValueError('ab')\n")
    names = runpy.run_path(str(file))
    assert [line.text for line in lines_of(caught(names["fail"]))][-1].endswith("11…")
    assert [line.text for line in lines_of(caught(names["short"]))][-1] == "raise ValueError('ab')"


def test_a_secret_in_a_line_of_code_is_masked(tmp_path: object) -> None:
    file = f"{tmp_path}/job.py"
    source = "def connect():\n    raise OSError(dict(password='pa55word'))\n"
    with open(file, "w", encoding="utf-8") as written:  # noqa: PTH123
        written.write(source)
    names: dict[str, object] = {}
    exec(compile(source, file, "exec"), names)
    text = Trace.of(caught(names["connect"])).text
    assert "raise OSError(" in text
    assert "pa55word" not in text


TOLD = """[STREAM_FAILED] Query failed: Job aborted due to stage failure
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/pyspark/worker.py", line 9, in main
    process()
  File "/tmp/sent/workbench/operators/functions/called_function.py", line 7, in call
    loop(function)
  File "<workbench record loop>", line 8, in loop
  File "/srv/job.py", line 4, in f
    return {"x": helper(r)}
                 ^^^^^^^^^
  File "/srv/job.py", line 2, in helper
    return connect(token='gh0st77')
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/pyspark/worker.py", line 9, in main
    process()
workbench.errors.RecordError: map function 'f' raised ZeroDivisionError

\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_the_lines_of_an_exception_in_another_process_are_found_in_its_text() -> None:
    trace = told_trace(TOLD)
    assert isinstance(trace.restore(), ZeroDivisionError)
    assert trace.original is not None
    frames = traceback.extract_tb(trace.original.__traceback__)
    assert [(frame.filename, frame.lineno, frame.name) for frame in frames] == [
        ("/srv/job.py", 4, "f"),
        ("/srv/job.py", 2, "helper"),
    ]
    assert "gh0st77" not in trace.text


@pytest.mark.parametrize("text", ["", "KeyError: 'k'", "Traceback (most recent call last):\n", "x" * 1_000_000])
def test_a_text_without_lines_of_the_user_has_no_trace(text: str) -> None:
    assert told_trace(text) == Trace()


def test_lines_that_spark_tells_twice_are_those_of_the_original() -> None:
    lines = '  File "/jobs/job.py", line 5, in rate\n    return 1 / row["n"]\n'
    told = (
        f"failed. Return Message: {TRACEBACK}"
        '  File "/usr/lib/python3/site-packages/py4j/clientserver.py", line 644, in _call_proxy\n    return_value = 1\n'
        f"{lines}      ^^^^\npyspark.errors.exceptions.captured.PythonException: An exception was thrown:\n"
        f"{TRACEBACK}{lines}            ~~^~~\nZeroDivisionError: division by zero\n"
    )
    trace = told_trace(told)
    assert repr(trace.original) == repr(ZeroDivisionError("division by zero"))
    assert trace.text == lines.rstrip()
