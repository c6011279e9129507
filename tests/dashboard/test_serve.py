"""The served page: access control, and live updates."""

import http.client
import logging
import socket
import subprocess
import sys
from contextlib import suppress
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
from workbench.dashboard.page import doorkeeper
from workbench.dashboard.shown.serve import _list
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
    job.wait("120s")


def fetch(url, **headers):
    """Status and text of a page, without cookies but those in `headers`; a redirect is not followed."""
    status, _, text = ask(url, **headers)
    return status, text


def ask(url, method="GET", **headers):
    """Status, headers and text of an answer."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
    connection.putrequest(method, f"{place.path}?{place.query}".rstrip("?"), skip_host=True)
    for name, value in {"Host": place.netloc, **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def place_of(served, path="/"):
    return f"http://localhost:{served.port}{path}"


def cookie_of(served):
    """What the browser gets for the token."""
    return ask(served.url)[1]["Set-Cookie"].partition(";")[0]


NEEDS_TOKEN = "This page needs its token: open the URL that was printed when the server started."


def test_only_who_knows_the_token_gets_a_page(served):
    for path in ("/", "/?token=guess", "/autoload.js?bokeh-autoload-element=x", "/static/js/bokeh.min.js", "/ws"):
        assert fetch(place_of(served, path)) == (403, NEEDS_TOKEN)
        assert fetch(place_of(served, path), Cookie=f"workbench-{served.port}=guess") == (403, NEEDS_TOKEN)
    status, text = fetch(place_of(served), Cookie=cookie_of(served))
    assert status == 200
    assert "<title>served: dashboard</title>" in text
    assert "@media (prefers-color-scheme: dark) { body { background" in text


def test_the_address_loses_the_token_on_the_way_to_the_page(served):
    status, headers, text = ask(f"{served.url}&job=served&view=subtasks")
    assert (status, headers["Location"], text) == (302, "?job=served&view=subtasks", "")
    assert ask(served.url)[1]["Location"] == "./"
    token = urlsplit(served.url).query.removeprefix("token=")
    assert token not in headers["Set-Cookie"], "who reads the cookie cannot give the address away"
    cookie = headers["Set-Cookie"].partition(";")[0]
    status, headers, _ = ask(f"{served.url}x&job=served", Cookie=cookie)  # of an address that was cut
    assert (status, headers["Location"]) == (302, "?job=served")
    for path in ("/static/js/bokeh.min.js", "/ws", "/metadata"):
        assert fetch(f"{place_of(served, path)}?token={token}") == (403, NEEDS_TOKEN)


def test_a_link_on_another_site_leads_to_the_page_too(served):
    """A browser sends no strict cookie along with a redirect of a request that another site made."""
    status, headers, text = ask(f"{served.url}&job=served", Sec_Fetch_Site="cross-site")
    assert (status, headers["Refresh"], text) == (200, "0; url=?job=served", "Opening the page.")
    assert "SameSite=Strict" in headers["Set-Cookie"]


def test_a_single_view_has_an_address_of_its_own(served):
    cookie = cookie_of(served)
    assert "<title>served: subtasks</title>" in fetch(place_of(served, "/?job=served&view=subtasks"), Cookie=cookie)[1]
    assert "<title>Streaming Workbench</title>" in fetch(place_of(served, "/?job=served&view=x"), Cookie=cookie)[1]


def test_the_cookie_remembers_the_token_and_keeps_it_from_scripts(served):
    cookie = ask(served.url)[1]["Set-Cookie"]
    assert {part.strip() for part in cookie.split(";")[1:]} == {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert cookie.startswith(f"workbench-{served.port}=")
    assert fetch(place_of(served), Cookie=cookie.partition(";")[0])[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "localhost", "localhost:1", "127.0.0.1.x:{port}", ""]
)
def test_a_name_that_is_not_ours_is_refused(served, host):
    """A page of evil.example whose name now leads to this machine is of the same origin as this one."""
    status, headers, text = ask(served.url, Host=host.format(port=served.port))
    assert status == 403
    assert "not served under this host name" in text
    assert "Set-Cookie" not in headers
    for given in (f"localhost:{served.port}", f"LOCALHOST:{served.port}", f"127.0.0.1:{served.port}"):
        assert ask(served.url, Host=given)[0] == 302


def test_two_hosts_in_one_request_are_refused(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as line:
        hosts = f"Host: localhost:{served.port}\r\nHost: evil.example\r\n"
        line.sendall(f"GET /?{urlsplit(served.url).query} HTTP/1.1\r\n{hosts}\r\n".encode())
        assert line.recv(1000).split()[1] in (b"400", b"403")


def test_a_further_name_is_served_when_it_is_given():
    job = start("named")
    pages = wb.serve(job, hosts=["Lab.example", "proxy.example:8443"])
    try:
        for host in ("lab.example", f"lab.example:{pages.port}", "proxy.example:8443"):
            assert ask(pages.url, Host=host)[0] == 302
        assert ask(pages.url, Host="proxy.example")[0] == 403
        cookie = cookie_of(pages)
        assert connected(pages, Cookie=cookie, Host="lab.example", Origin="https://lab.example")
        assert not connected(pages, Cookie=cookie, Host="lab.example", Origin="https://proxy.example")
    finally:
        pages.stop()
        job.cancel()
        job.wait("120s")


@pytest.mark.parametrize("hosts", ["lab.example", ["*"], ["http://lab.example"], [7], ["a b"], [""], ["x\r\ny"]])
def test_a_host_that_is_no_name_is_refused(hosts):
    with pytest.raises(SettingError, match=r"hosts? (is|'|7|is )"):
        wb.serve(hosts=hosts)


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_but_get_is_served(served, method):
    status, headers, _ = ask(place_of(served), method, Cookie=cookie_of(served))
    assert (status, headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/static/../serve.py",
            "/static/%2e%2e/server.py",
            "/static/..%2f..%2fserver%2furls.py",
            "/static//etc/passwd",
        ),
        *("/static/extensions/panel/../../../x", "/static/extensions/panel/%2e%2e/__init__.py", "/static/js/%00"),
        *("/metadata", "/autoload.js?bokeh-autoload-element=x", "/x", "//evil.example/", "/ws/x", "/static/"),
    ],
)
def test_nothing_but_the_pages_and_what_they_need_is_served(served, path):
    status, headers, text = ask(place_of(served, path), Cookie=cookie_of(served))
    assert status in (400, 403, 404)
    assert "import" not in text
    assert "Location" not in headers


def test_every_answer_tells_the_browser_what_it_may_do(served):
    cookie = cookie_of(served)
    answers = [
        ask(served.url),
        ask(place_of(served)),
        ask(place_of(served), Cookie=cookie),
        ask(place_of(served, "/x"), Cookie=cookie),
        ask(place_of(served, "/static/js/bokeh.min.js"), Cookie=cookie),
        ask(place_of(served, "/static/none.js"), Cookie=cookie),
        ask(place_of(served), Host="evil.example"),
    ]
    assert [status for status, _, _ in answers] == [302, 403, 200, 404, 200, 404, 403]
    for _, headers, _ in answers:
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert "unsafe-inline" not in policy["script-src"]
        assert "*" not in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in headers


def test_no_log_has_the_token(served, caplog):
    caplog.set_level(logging.DEBUG)
    token = urlsplit(served.url).query.removeprefix("token=")
    cookie = cookie_of(served)
    for path in (f"/?token={token}", f"/?token={token}x", f"/ws?token={token}", f"/x?token={token}"):
        ask(place_of(served, path))
        ask(place_of(served, path), Cookie=cookie)
        ask(place_of(served, path), "POST")
    assert "405 POST /ws" in caplog.text
    assert token not in caplog.text
    assert cookie.partition("=")[2] not in caplog.text


def connected(served, **headers):
    """Whether a connection of a page is let in."""
    request = HTTPRequest(f"ws://127.0.0.1:{served.port}/ws", headers={"Host": f"localhost:{served.port}", **headers})
    loop = IOLoop(make_current=False)

    async def connect():
        (await websocket_connect(request, subprotocols=["bokeh", "x"])).close()

    try:
        loop.run_sync(connect)
        return True
    except HTTPClientError as refused:
        return refused.code != 403
    finally:
        loop.close()


def test_a_page_of_another_origin_is_refused(served):
    cookie = cookie_of(served)
    ours = f"http://localhost:{served.port}"
    assert connected(served, Origin=ours, Cookie=cookie)
    assert not connected(served, Origin=ours)
    assert not connected(served, Origin=ours, Cookie=f"{cookie}x")
    assert not connected(served, Cookie=cookie), "every browser names the origin"
    port = served.port
    for name in ("evil.example", f"evil.example:{port}", "localhost:1", f"localhost.evil.example:{port}", "localhost"):
        assert not connected(served, Origin=f"http://{name}", Cookie=cookie)
        assert fetch(place_of(served), Origin=f"http://{name}", Cookie=cookie)[0] == 403
    for origin in ("null", f"https://localhost:{port}", f"{ours}/", f"{ours}@evil.example", f"ws://localhost:{port}"):
        assert not connected(served, Origin=origin, Cookie=cookie)


@pytest.mark.slow
def test_large_requests_and_too_many_pages_are_refused(served, monkeypatch):
    cookie = cookie_of(served)
    head = f"GET / HTTP/1.1\r\nHost: localhost:{served.port}\r\nCookie: {cookie}\r\n"
    for rest in (f"X: {100_000 * 'x'}\r\n\r\n", f"Content-Length: 100000\r\n\r\n{100_000 * 'x'}"):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as line, suppress(ConnectionError):
            line.sendall((head + rest).encode())  # which may be cut short
            assert line.recv(1000)[:10] in (b"", b"HTTP/1.1 4")
    monkeypatch.setattr(doorkeeper, "PAGES_MAX", 2)
    statuses = [fetch(place_of(served), Cookie=cookie)[0] for _ in range(4)]
    assert statuses == [200, 200, 503, 503]


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


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM")
def test_in_a_browser_the_page_is_live_and_its_controls_act(served):
    pytest.importorskip("playwright.sync_api")
    with chromium() as browser:
        page = opened(browser, served.url, height=900)
        page.wait_for_function(f"{SEEN}.length > 0")
        seen = page.evaluate(SEEN)
        assert "graph" in seen
        assert "controls" not in seen, "it is behind its button"
        page.get_by_role("group", name="Views").get_by_text("Controls", exact=True).click()
        page.get_by_role("button", name="Pause").click()
        page.wait_for_function(f"{SEEN}.includes('controls')")
        page.get_by_role("button", name="Resume").wait_for()
        assert wb.job("served").status()["paused"]
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Pause").wait_for()
        grounds = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(set(grounds)) == 2
        assert page.url == f"http://127.0.0.1:{served.port}/"
        assert page.evaluate("document.cookie") == ""
        assert page.problems == [], "the policy forbids nothing that the page does"
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
        assert page.evaluate("window.ran") is None
        assert "Content Security Policy" in "".join(page.problems)


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
    job.wait("120s")


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_script_that_starts_no_job_is_told_so(tmp_path):
    script = tmp_path / "lesson.py"
    script.write_text("import workbench as wb\nprint('nothing to do')\n")
    command = [sys.executable, "-m", "workbench", "serve", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        "workbench: lesson.py started no job, so there is nothing to show: start one with"
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
