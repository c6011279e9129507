"""The stand-alone page: who gets it, and that it is live."""

import http.client
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from bokeh.document import Document
from browsing import CHROMIUM, chromium, opened
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

import workbench as wb
from workbench.cli import main
from workbench.dashboard.serve import _list
from workbench.errors import SettingError

SEEN = """((window.Bokeh?.documents ?? []).flatMap((document) => [...document._all_models.values()])
    .find((model) => model.type === "ColumnDataSource" && model.columns().join() === "part")
    ?.get_column("part") ?? [])"""


def start(name):
    table = pa.table({"n": list(range(1000))})
    return wb.Stream.from_table(table, rate=20).sink_to(wb.DiscardSink()).run(name)


@pytest.fixture
def served():
    job = start("served")
    pages = wb.serve(job)
    yield pages
    pages.stop()
    job.cancel()
    job.wait("30s")


def fetch(url, **headers):
    """Status and text of a page, without following a redirect's cookie."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_only_who_knows_the_token_gets_a_page(served):
    place = f"http://localhost:{served.port}/"
    for url in (place, f"{place}?token=guess", f"{place}autoload.js?bokeh-autoload-element=x"):
        status, text = fetch(url)
        assert (status, text) == (
            403,
            "This page needs its token: open the address that was printed when it was served.",
        )
    status, text = fetch(served.url)
    assert status == 200
    assert "<title>served: dashboard</title>" in text
    assert "@media (prefers-color-scheme: dark) { body { background" in text


def test_a_single_view_has_an_address_of_its_own(served):
    assert "<title>served: subtasks</title>" in fetch(f"{served.url}&job=served&view=subtasks")[1]
    assert "<title>Streaming Workbench</title>" in fetch(f"{served.url}&job=served&view=nothing")[1]


def test_the_cookie_remembers_the_token_and_keeps_it_from_scripts(served):
    connection = http.client.HTTPConnection("localhost", served.port, timeout=30)
    connection.request("GET", f"/?{urlsplit(served.url).query}")
    answer = connection.getresponse()
    answer.read()
    cookie = answer.getheader("Set-Cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert fetch(f"http://localhost:{served.port}/", Cookie=cookie.partition(";")[0])[0] == 200
    connection.close()


@pytest.mark.parametrize("origin", ["http://evil.example", "http://localhost:1", "http://localhost.evil.example"])
def test_a_page_of_another_origin_is_refused(served, origin):
    cookie = f"workbench-{served.port}={urlsplit(served.url).query.removeprefix('token=')}"
    request = HTTPRequest(f"ws://localhost:{served.port}/ws", headers={"Origin": origin, "Cookie": cookie})
    loop = IOLoop(make_current=False)
    try:
        with pytest.raises(HTTPClientError) as refused:
            loop.run_sync(lambda: websocket_connect(request, subprotocols=["bokeh", "x"]))
    finally:
        loop.close()
    assert refused.value.code == 403


def test_it_listens_on_loopback_alone_and_stops(served):
    with Path("/proc/net/tcp").open() as table:
        lines = [line.split()[1] for line in table]
    assert f"0100007F:{served.port:04X}" in lines
    assert f"00000000:{served.port:04X}" not in lines
    served.stop()
    with pytest.raises(OSError, match=r"(?i)refused"):
        http.client.HTTPConnection("localhost", served.port, timeout=5).connect()
    assert repr(served) == "<ServedPages, stopped>"


def test_the_list_of_jobs_takes_nothing_for_a_formula():
    """BokehJS would fetch what draws formulas from a network."""
    document = Document()
    _list(document, {}, "unknown job '$$x$$'")
    assert [(root.disable_math, "$$x$$" in root.text) for root in document.roots] == [(True, True)]


def test_a_port_that_is_taken_is_a_sentence(served):
    with pytest.raises(SettingError, match=f"port {served.port} cannot be opened"):
        wb.serve(port=served.port)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM")
def test_in_a_browser_the_page_is_live_and_its_controls_act(served):
    pytest.importorskip("playwright.sync_api")
    with chromium() as browser:
        page = opened(browser, served.url, height=900)
        page.wait_for_function(f"{SEEN}.length > 0")
        seen = page.evaluate(SEEN)
        assert "graph" in seen
        assert "controls" not in seen, "it is below what the screen shows"
        page.get_by_role("button", name="Pause").click()  # it is scrolled to
        page.wait_for_function(f"{SEEN}.includes('controls')")
        page.get_by_role("button", name="Resume").wait_for()
        assert wb.job("served").status()["paused"]
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Pause").wait_for()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM")
def test_in_a_browser_the_subtasks_are_narrowed_to_a_vertex():
    pytest.importorskip("playwright.sync_api")
    keyed = wb.Stream.from_table(pa.table({"n": list(range(100_000))}), rate=100.0).key_by("n")
    job = keyed.aggregate(count=wb.count()).uid("counts").sink_to(wb.DiscardSink()).run("wide", parallelism=2)
    pages = wb.serve(job)
    with chromium() as browser:
        page = opened(browser, f"{pages.url}&view=subtasks")
        rows = page.get_by_label("Subtasks", exact=True).get_by_role("rowheader")
        rows.filter(has_text="counts[1]").wait_for()
        assert rows.all_inner_texts() == ["table[0]", "table[1]", "counts[0]", "counts[1]"]
        page.locator("[title='Subtasks of'] select").select_option("counts")
        rows.filter(has_text="table[0]").wait_for(state="detached")
        assert rows.all_inner_texts() == ["counts[0]", "counts[1]"]
    pages.stop()
    job.cancel()
    job.wait("30s")


def test_the_command_runs_a_script_and_prints_the_address(tmp_path):
    script = tmp_path / "lesson.py"
    script.write_text(
        "import sys, pyarrow as pa, workbench as wb\n"
        "stream = wb.Stream.from_table(pa.table({'n': [1, 2]})).sink_to(wb.DiscardSink())\n"
        "job = stream.run(sys.argv[1]); job.wait('30s'); print(job.state); raise SystemExit(3)\n"
    )
    command = [sys.executable, "-m", "workbench", "serve", str(script), "two"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 3, ended.stderr
    first, second = ended.stdout.splitlines()
    assert first.startswith("The dashboards of lesson.py: http://localhost:")
    assert second == "FINISHED"


def test_a_script_that_starts_no_job_is_told_so(tmp_path):
    script = tmp_path / "lesson.py"
    script.write_text("import workbench as wb\nprint('nothing to do')\n")
    command = [sys.executable, "-m", "workbench", "serve", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        "workbench: lesson.py has started no job, so there is nothing to show: start one with"
        " stream.sink_to(wb.TableSink('rows')).run('job')\n"
    )


def test_a_script_that_is_not_there_is_a_sentence(tmp_path):
    command = [sys.executable, "-m", "workbench", "serve", str(tmp_path / "none.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "there is no script" in ended.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n = 1\n\nn = n / 0\n", "lesson.py raised ZeroDivisionError: division by zero (lesson.py, line 3: n = n / 0)"),
        ("import json\njson.loads('{')\n", "lesson.py raised JSONDecodeError: Expecting property name"),
        ("ready = (\n", "lesson.py cannot be run: '(' was never closed (lesson.py, line 1: ready = ()"),
    ],
)
def test_a_script_that_fails_is_told_with_its_line(tmp_path, monkeypatch, capsys, text, sentence):
    monkeypatch.delenv("WORKBENCH_DEBUG", raising=False)
    script = tmp_path / "lesson.py"
    script.write_text(text)
    assert main(["serve", str(script)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"workbench: {sentence}")
    assert "(lesson.py, line " in told
    assert told.count("\n") == 1
