"""The JupyterLab front end in a real browser: JupyterLab, a kernel, real jobs, no network."""

import sysconfig
from pathlib import Path

import nbformat
import pytest
from browsing import CHROMIUM, PATIENCE_MS, chromium, jupyter
from clicking import LECTURE, Clicking, claimed
from lab_front import Front
from live_notebook import BEATS, HEADS, MODELS

pytest.importorskip("playwright.sync_api")
INSTALLED = Path(sysconfig.get_path("data")) / "share/jupyter/labextensions/workbench-jupyterlab/package.json"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
    pytest.mark.skipif(not INSTALLED.exists(), reason="the front end is not installed: pip install ./extension"),
]


SIZE = {"width": 1400, "height": 900}
START = """%load_ext workbench
import numpy as np, pyarrow as pa, workbench as wb
rows = 1_000_000
table = pa.table({{"t": pa.array(np.arange(rows) * 50_000, pa.timestamp("us")), "k": np.arange(rows) % 7}})
stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="10s", rate=2000)
counts = stream.key_by("k").window(wb.tumbling("1min")).aggregate(n=wb.count())
job = counts.sink_to(wb.TableSink("{name}")).run("{name}", parallelism=2, checkpoint_interval="500ms")
"""
BUSY = """import time
for _ in range(600):
    time.sleep(0.05)
    if job.status()["paused"]:
        break
print("seen", job.status()["paused"])
"""
STEPPED = """%load_ext workbench
import pyarrow as pa, workbench as wb
numbers = wb.Stream.from_table(pa.table({"n": list(range(12))})).with_parallelism(2)
parity = numbers.with_columns(odd="n % 2").with_parallelism(2)
sums = parity.key_by("odd").aggregate(total=wb.sum("n")).sink_to(wb.TableSink("sums"))
job = sums.run("hand", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None)
job.view("stepper")"""
SLOW_TO_SAY_NO = """import threading, workbench as wb
%load_ext workbench
known, answer = wb.job, threading.Event()
def job(name):
    try:
        return known(name)
    except wb.errors.WorkbenchError:
        answer.wait()
        raise
wb.job = job"""
IN_FLIGHT = """channels = job._run.master.execution.channels
records = sum(channel.queued_records for channel in channels)
print(job.stepper.driver.taken, records, sum(len(channel.barriers_ahead()) for channel in channels))"""
RECORDED = """%load_ext workbench
import pathlib, time, pyarrow as pa, workbench as wb
table = pa.table({"k": ["a", "b"] * 20, "n": range(40)})
sums = wb.Stream.from_table(table, rate=20.0).with_parallelism(1).key_by("k").aggregate(total=wb.sum("n"))
job = sums.sink_to(wb.DiscardSink()).run("kept", driver="stepping", parallelism=2, buffer_size=1)
job.stepper.step(60)
job.wait()
job.recording().dashboard()"""
MARKUP = "<img src=x onerror='window.ran = 1'></p><a href='javascript:0'>&lt;b&gt;</a><script>window.ran = 2</script>"
MARKED = f"""%load_ext workbench
import pyarrow as pa, workbench as wb
def marked(row):
    if row["n"] == 3:
        raise ValueError({"5 ms: " + MARKUP!r})
    return row
stream = wb.Stream.from_table(pa.table({{"n": [1, 2, 3]}}), rate=1.0).map(marked)
stream.sink_to(wb.DiscardSink()).run("marked", restart="none")"""
LOSE = """([path, what]) => {
    const notebook = [...window.jupyterapp.shell.widgets('main')].find(widget => widget.context?.path === path)
    const kernel = notebook.sessionContext.session.kernel
    const send = kernel.sendShellMessage
    kernel.sendShellMessage = function (message, ...rest) {
        const { content, header } = message
        if (content.target_name === what) {
            kernel.sendShellMessage = send
            header.subshell_id = 'deleted'
        } else if (content.data?.name === what) {
            kernel.sendShellMessage = send
            content.comm_id = 'closed'
        }
        return send.call(kernel, message, ...rest)
    }
}"""
"""The next message that opens a comm of this target, or asks for this, is one that the kernel cannot handle."""
BESIDE = """paths => {
    const { shell } = window.jupyterapp
    const [one, other] = paths.map(path => [...shell.widgets('main')].find(widget => widget.context?.path === path))
    shell.add(one, 'main', { mode: 'split-right', ref: other.id })
}"""
"""Put the first notebook beside the second."""
SOON = """() => {
    const later = window.setTimeout
    window.setTimeout = (act, ms, ...rest) => later(act, ms === 30_000 ? 1_000 : ms, ...rest)
}"""
"""What is due in half a minute is due in a second from now on."""
CLOSE_DOCKED = """() => {
    const docked = [...window.jupyterapp.shell.widgets('main')].filter(widget => widget.hasClass('wb-Dashboard'))
    docked.forEach(widget => widget.close())
}"""
RUNNING_TIME = "() => document.querySelector('.wb-Job-facts div:nth-child(7) dd').textContent"
BUSY_UNTIL_SEEN = """deadline = time.monotonic() + 120
while not pathlib.Path("seen").exists() and time.monotonic() < deadline:
    time.sleep(0.05)
print("seen" if pathlib.Path("seen").exists() else "not seen")"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of its own: (its URL, its root directory)."""
    home = tmp_path_factory.mktemp("jupyter")
    root = tmp_path_factory.mktemp("notebooks")
    with jupyter(home, root) as url:
        yield url, root


@pytest.fixture(scope="module")
def engine():
    with chromium() as started:
        yield started


def _closed_while_built(stack: str) -> bool:
    """Whether a view of Bokeh's did not find the signals of a root that was removed before the view was complete."""
    first, *places = stack.splitlines()
    return first.endswith("reading 'connect')") and bool(places) and all("/bokeh.min.js:" in place for place in places)


def _closed_while_started(stack: str) -> bool:
    """Whether JupyterLab closed a notebook before the session of its kernel had started."""
    first, *places = stack.splitlines()
    return first == "Error: Disposed" and bool(places) and "._handleNewSession " in places[0]


@pytest.fixture(scope="module")
def page(engine):
    """One page for the tests of this file: to load JupyterLab takes a third of the time of a test."""
    page = engine.new_page(viewport=SIZE)
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(error.stack or str(error)))
    return page


@pytest.fixture(scope="module")
def shared(lab, page):
    return Front(page, *lab)


@pytest.fixture
def front(shared):
    shared.page.set_viewport_size(SIZE)
    shared.page.set_default_timeout(PATIENCE_MS)
    shared.appears(".wb-Explanation", "Open a notebook")
    shared.page.errors.clear()
    yield shared
    # Whatever a kernel leaves unanswered when it is shut down does not count. Nor does a subshell that JupyterLab asked
    # for when it made a comm: a restart cancels that request, and JupyterLab leaves the rejection unhandled. Nor does a
    # plot that was closed while Bokeh built it: Bokeh goes on without its root, and leaves the rejection unhandled. Nor
    # does a session that starts for a notebook that was closed: JupyterLab leaves that rejection unhandled, too.
    errors = list(shared.page.errors)
    shared.clear()
    known = _closed_while_built, _closed_while_started
    seen = [e for e in errors if "create_subshell_request" not in e and not any(is_known(e) for is_known in known)]
    assert seen == []


def test_the_sidebar_says_what_is_missing_and_then_shows_the_job_live(front):
    assert "Open a notebook" in front.text(".wb-Explanation")

    front.open("live.ipynb", START.format(name="live"), BUSY)
    assert front.appears(".wb-Explanation code").inner_text() == "%load_ext workbench"

    front.run_cell(0)
    front.appears(".wb-Job[data-job=live][data-state=RUNNING]")
    before = front.page.evaluate(RUNNING_TIME)
    front.page.wait_for_function(f"before => ({RUNNING_TIME})() !== before", arg=before)

    # A cell occupies the main shell; the pause arrives on a subshell, and the cell itself sees it.
    front.run_cell(1, wait=False)
    front.appears(".jp-InputPrompt", "[*]")
    front.page.get_by_role("button", name="Pause live").click()
    front.appears(".wb-Badge", "PAUSED")
    front.appears(".jp-OutputArea-output", "seen True")

    front.execute("workbench:fail", job="live", task="no such task")
    assert front.appears(".wb-mod-refusal").inner_text().startswith("unknown task 'no such task'")
    front.page.get_by_role("button", name="Dismiss this message").click()
    front.page.evaluate(SOON)
    front.execute("workbench:fail", job="live", task="no such task")
    front.appears(".wb-mod-refusal").wait_for(state="hidden")

    front.page.get_by_role("button", name="Resume live").click()
    front.appears(".wb-Badge", "RUNNING")
    front.page.get_by_role("button", name="Stop live").click()
    front.appears(".wb-Badge", "FINISHED")
    assert front.page.get_by_role("button", name="Stop live").is_disabled()


def test_the_sidebar_follows_the_notebook_and_the_restart_of_its_kernel(front):
    front.open("one.ipynb", START.format(name="one"))
    front.run_cell(0)
    front.appears(".wb-Job[data-job=one]")

    front.open("two.ipynb", START.format(name="two"))
    front.appears(".wb-Explanation code", "%load_ext workbench")
    assert front.jobs() == []
    front.run_cell(0)
    front.appears(".wb-Job[data-job=two]")
    assert front.jobs() == ["two"]

    front.open("one.ipynb")
    front.appears(".wb-Job[data-job=one]")
    assert front.jobs() == ["one"]

    front.restart_kernel("one.ipynb")
    front.appears(".wb-Explanation code", "%load_ext workbench")
    front.run_cell(0)
    front.appears(".wb-Job[data-job=one]")


def test_the_sidebar_follows_a_restart_during_which_a_comm_has_waited_too_long_for_its_subshell(front):
    front.open("slow.ipynb", START.format(name="slow"))
    front.run_cell(0)
    front.appears(".wb-Job[data-job=slow]")

    def late(route):
        answer = route.fetch()
        front.page.wait_for_timeout(4_000)
        route.fulfill(response=answer)

    front.page.route("**/restart*", late, times=1)
    front.restart_kernel("slow.ipynb")
    front.appears(".wb-Explanation code", "%load_ext workbench")
    front.run_cell(0)
    front.appears(".wb-Job[data-job=slow]")


@pytest.mark.parametrize("target", ["workbench:control", "workbench:telemetry"])
def test_a_comm_whose_opening_was_lost_is_opened_again(front, target):
    path = f"lost-{target.partition(':')[2]}.ipynb"
    front.open(path, "%load_ext workbench", START.format(name="lost"))
    front.appears(".wb-Explanation code", "%load_ext workbench")
    front.page.evaluate(LOSE, [path, target])
    front.run_cell(0)
    front.appears(".wb-Explanation", "No jobs in this kernel yet")
    front.run_cell(1)
    front.appears(".wb-Job[data-job=lost]")
    before = front.page.evaluate(RUNNING_TIME)
    front.page.wait_for_function(f"before => ({RUNNING_TIME})() !== before", arg=before)


def test_a_request_that_was_lost_is_told_and_can_be_made_again(front):
    front.open("again.ipynb", START.format(name="again"))
    front.run_cell(0)
    front.appears(".wb-Job[data-job=again]")
    front.page.evaluate(LOSE, ["again.ipynb", "pause"])
    front.page.get_by_role("button", name="Pause again").click()
    refused = front.appears(".wb-mod-refusal").inner_text()
    assert refused.startswith("the kernel lost the request 'pause': try again")
    front.page.get_by_role("button", name="Pause again").click()
    front.appears(".wb-Badge", "PAUSED")


def test_a_docked_dashboard_is_beside_the_notebook_and_follows_its_job(front):
    front.open("docked.ipynb", START.format(name="docked"))
    front.run_cell(0)
    front.page.get_by_role("button", name="Open the dashboard of docked").click()
    dashboard = ".wb-Dashboard .wb-Dashboard-content .bk-Column"
    front.appears(dashboard)
    notebook, docked = (front.page.locator(name).bounding_box() for name in (".jp-NotebookPanel", ".wb-Dashboard"))
    assert docked["x"] >= notebook["x"] + notebook["width"]

    front.appears(f"{dashboard} .who > b", "docked").click()
    front.page.keyboard.press("l")
    front.appears(LECTURE, "Dataflow")
    front.page.keyboard.press("Escape")
    front.page.locator(LECTURE).wait_for(state="hidden")

    first_view = front.page.locator(dashboard).first.element_handle()
    front.run_cell(0)  # refuses, since the job runs
    front.execute("workbench:stop", job="docked")
    front.appears(".wb-Badge", "FINISHED")
    assert first_view.is_visible()
    front.open("docked.ipynb")
    front.run_cell(0)
    front.appears(".wb-Badge", "RUNNING")
    first_view.wait_for_element_state("hidden")
    front.appears(dashboard)


def test_a_dashboard_and_a_view_of_two_jobs_come_back_wherever_they_were_lost(front):
    path, jobs = "pair.ipynb", ("upper", "lower")
    views = ["upper", ""], ["lower", "latency"]
    front.open(path, *(START.format(name=job) for job in jobs))

    def run_both():
        for cell in range(2):
            front.run_cell(cell)

    def each_shows_its_own():
        for job in jobs:
            front.appears(f"{front.docked(job)} .wb-header", job)
        assert [front.page.locator(f"{front.docked(job)} .wb-header").count() for job in jobs] == [1, 1]

    def each_says(sentence):
        for job in jobs:
            front.appears(f"{front.docked(job)} .wb-Dashboard-notice", sentence.format(job=job))
        assert front.page.locator(".wb-Dashboard .wb-header").count() == 0

    run_both()
    front.dock(*views)
    each_shows_its_own()

    front.page.wait_for_timeout(1500)  # JupyterLab saves its layout a second after the last change
    front.page.reload()
    front.await_restored()
    each_shows_its_own()

    front.restart_kernel(path)
    each_says("The kernel was restarted, which ended the job {job}. Run the cell that starts it.")
    front.open(path)
    run_both()
    each_shows_its_own()

    front.close(path)
    each_says(f"Open {path} to see the")
    front.open(path)
    front.dock(*views)  # the notebook has opened in front of one of them
    each_shows_its_own()


def test_a_view_that_was_asked_for_before_its_job_has_started_comes_although_the_answer_is_late(front):
    start = START.format(name="late")
    front.open("late.ipynb", SLOW_TO_SAY_NO, f"{start}threading.Timer(1, answer.set).start()")
    front.run_cell(0)
    front.execute("workbench:open-view", job="late", view="events")
    front.appears(".wb-Dashboard-notice", "Loading ")
    front.open("late.ipynb")
    front.run_cell(1)  # ends before the kernel says that there was no such job when it was asked
    front.appears(f"{front.docked('late')} .wb-header", "late")


def test_the_marbles_of_the_stepper_are_what_is_in_flight(front):
    page = front.page
    front.open("hand.ipynb", STEPPED, IN_FLIGHT)
    front.run_cell(0)
    front.appears("svg.wb-scene")
    drawn = """() => {
        const found = (root, selector) => [root, ...[...root.querySelectorAll("*")].flatMap(element => inside(element))]
            .flatMap(place => [...place.querySelectorAll(selector)])
        const inside = element => element.shadowRoot
            ? [element.shadowRoot, ...[...element.shadowRoot.querySelectorAll("*")].flatMap(inside)] : []
        const words = found(document, ".wb-words")[0].textContent
        const marbles = found(document, "svg.wb-scene text.inside").length
        return [Number(words.match(/Step (\\d+)/)[1]), marbles, found(document, "svg.wb-scene rect.barrier").length]
    }"""
    gliding = drawn.partition("const words")[0] + "return found(document, 'svg.wb-scene [aria-hidden=true]').length }"
    steps = []

    def press(label):
        page.get_by_role("button", name=label, exact=True).click()
        page.wait_for_function(f"before => ({drawn})()[0] !== before", arg=steps[-1] if steps else 0)
        front.run_cell(1)
        page.wait_for_function(f"() => ({gliding})() === 0")
        shown = page.evaluate(drawn)
        assert front.printed(1) == " ".join(map(str, shown)) + "\n", label
        steps.append(shown[0])
        return shown

    seen = [press(label) for label in ("record", "record", "10 ▶▶", "trigger checkpoint", "barrier", "barrier")]
    assert max(records for _, records, _ in seen) > 1
    assert seen[-1][2] > 0
    there = seen[-1]
    press("◀ back")
    assert steps[-1] == there[0] - 1
    assert press("step ▶") == there


def test_the_slider_of_a_recording_acts_while_a_cell_is_busy(front):
    front.open("kept.ipynb", RECORDED, BUSY_UNTIL_SEEN)
    front.run_cell(0, wait=False)
    front.run_cell(1, wait=False)  # the page opens its way to the kernel when this cell is running already
    heads = """() => Bokeh.documents.flatMap(document => [...document._all_models.values()])
        .filter(model => model.type === "ColumnDataSource" && model.columns().includes("piece 0"))
        .map(model => model.get_column("piece 0")[0]).join("")"""
    handle = front.appears(".noUi-handle")
    front.page.wait_for_function(f"() => ({heads})().includes('FINISHED')")
    handle.focus()
    for _ in range(5):
        handle.press("ArrowLeft")
    front.page.wait_for_function(f"() => ({heads})().includes('RUNNING')")
    (front.root / "seen").touch()
    front.appears(".jp-OutputArea-output pre", "seen").wait_for()
    assert front.printed(1) == "seen\n"


def test_the_dashboard_of_a_job_that_is_not_there_is_a_sentence(front):
    front.open("gone.ipynb", "%load_ext workbench")
    front.run_cell(0)
    front.appears(".wb-Explanation", "No jobs in this kernel yet")
    front.execute("workbench:open-dashboard", job='o\'clock "x"')
    notice = front.appears(".wb-Dashboard-notice", "unknown job").inner_text()
    assert notice.startswith('There is no dashboard of o\'clock "x": unknown job')


def test_a_failure_is_announced_and_the_status_bar_tells_of_the_jobs(front):
    front.open("noticed.ipynb", START.format(name="noticed"))
    front.run_cell(0)
    status = front.appears(".wb-Status button", "1 job")
    assert status.get_attribute("aria-label").startswith("Streaming: 1 job · ")
    front.appears('.wb-Status button[aria-label*="noticed RUNNING"]', "1 job")

    front.execute("workbench:fail", job="noticed", task="aggregate[1]")
    notice = front.appears(".jp-Notification-Toast-warning", "noticed restarted from its latest checkpoint")
    assert "aggregate[1] was failed on purpose" in notice.inner_text()
    front.page.get_by_role("button", name="Open Dashboard").click()
    front.appears(f"{front.docked('noticed')} p.news", "aggregate[1] was failed on purpose")

    front.execute("apputils:dismiss-notification")
    notice.wait_for(state="hidden")
    front.execute("workbench:fail", job="noticed", task="aggregate[0]")  # the dashboard on the screen tells of it
    front.appears(f"{front.docked('noticed')} p.news", "aggregate[0] was failed on purpose")
    front.page.wait_for_timeout(1_000)
    assert front.page.locator(".jp-Notification-Toast-warning:visible").count() == 0


def test_markup_in_what_a_function_raises_is_text_in_the_list_of_jobs_and_in_the_notice(front):
    front.open("marked.ipynb", MARKED)
    front.run_cell(0)
    notice = front.appears(".jp-Notification-Toast-error", "5 ms: <img src=x")
    failure = front.appears(".wb-Job[data-job=marked] .wb-mod-failure", MARKUP)
    for place in (notice, failure):
        assert place.locator("img[src=x], a[href^=javascript], script").count() == 0
    assert front.page.evaluate("window.ran") is None


def test_restarts_share_one_notice_and_have_none_where_it_would_cover_the_job(front):
    failing = "job.stepper.step(4), job.fail('aggregate[0]'), job.wait()\nprint(job.status()['last_interruption'])"
    front.open(
        "covered.ipynb",
        START.format(name="covered"),
        "job.fail('aggregate[0]')",
        "job.view('controls')",
        f"{STEPPED}\n{failing}",
    )
    notices = front.page.locator(".jp-Notification-Toast-warning:visible")
    front.run_cell(0)
    front.appears(".wb-Status button", "1 job")
    for times in ("restarted from", "restarted 2 times, each time from"):
        front.run_cell(1)
        front.appears(".jp-Notification-Toast-warning", f"covered {times} its latest checkpoint")
        assert notices.count() == 1
    front.execute("apputils:dismiss-notification")
    notices.wait_for(state="hidden")

    front.run_cell(2)
    front.appears(".jp-OutputArea .noUi-handle")
    front.run_cell(1)
    front.appears(".jp-OutputArea p.news", "aggregate[0] was failed on purpose")
    front.run_cell(3)
    assert "aggregate[0] was failed on purpose" in front.printed(3)
    front.page.wait_for_timeout(1_000)
    assert notices.count() == 0


def test_the_menu_has_every_view_and_a_savepoint_is_a_command(front):
    front.open("menu.ipynb", START.format(name="menu"))
    front.run_cell(0)
    front.appears(".wb-Job[data-job=menu]")
    front.page.get_by_role("menuitem", name="Streaming", exact=True).click()
    front.page.locator(".lm-Menu-itemLabel", has_text="Open View").hover()
    front.appears("#jp-mainmenu-workbench-views")
    views = front.page.locator("#jp-mainmenu-workbench-views .lm-Menu-itemLabel").all_inner_texts()
    assert ", ".join(views) == (
        "Stepper, Dataflow, Latency and throughput, Watermarks, Event time, Buffers, Checkpoints, State, Results, "
        "Controls, Events, Vertices and subtasks, Pending roots, Partial matches, Sources, Batches, "
        "Transactions, Changelog"
    )
    front.page.keyboard.press("Escape")
    front.page.keyboard.press("Escape")

    front.execute("workbench:savepoint", job="menu", name="no/slash")
    assert "savepoint 'no/slash' cannot be a file name" in front.appears(".wb-mod-refusal").inner_text()


def test_the_launcher_opens_the_tutorial_and_never_overwrites_it(front):
    front.execute("launcher:create", wait=False)
    front.page.locator(".jp-LauncherCard:visible", has_text="Streaming Tutorial").first.click()
    front.page.wait_for_function("window.jupyterapp.shell.currentWidget?.context?.path === 'streaming-tutorial.ipynb'")
    written = front.root / "streaming-tutorial.ipynb"
    assert nbformat.read(written, 4).cells[0].source.startswith("# Streaming in five cells")

    written.write_text(written.read_text().replace("# Streaming in five cells", "# Mine"))
    front.execute("workbench:open-tutorial")
    assert "# Mine" in written.read_text()


def test_a_view_in_a_cell_finds_its_job_again_when_its_notebook_was_closed_and_opened(front):
    front.open("again.ipynb", START.format(name="again"), 'job.view("latency")')
    front.run_cell(0)
    front.run_cell(1)
    front.page.wait_for_function(f"() => Math.max(...({BEATS})(), 0) > 3")
    for _ in range(2):
        front.close("again.ipynb")
        front.page.wait_for_function(f"() => ({BEATS})().length === 0")
        front.open("again.ipynb")
        front.page.wait_for_function(f"() => ({BEATS})().length === 1")
        first = front.page.evaluate(BEATS)[0]
        front.page.wait_for_function(f"first => ({BEATS})()[0] > first + 5", arg=first)
    _another_kernel_beside_it(front)


def _another_kernel_beside_it(front):
    """Both views move, each shows its own kernel's job, and no two models of the page have the same id."""
    front.open("beside.ipynb", START.format(name="beside"), 'job.view("latency")')
    front.page.evaluate(BESIDE, ["beside.ipynb", "again.ipynb"])
    front.run_cell(0)
    front.run_cell(1)
    front.page.wait_for_function(f"() => ({BEATS})().length === 2")
    first = front.page.evaluate(BEATS)
    front.page.wait_for_function(f"first => ({BEATS})().every((beat, place) => beat > first[place] + 5)", arg=first)
    heads = front.page.evaluate(HEADS)
    assert [[name in head for name in ("title='again'", "title='beside'")] for head in heads] == [[1, 0], [0, 1]]
    ids = front.page.evaluate(f"() => {MODELS}.map(model => model.id)")
    assert len(set(ids)) == len(ids) > 100


def test_a_dashboard_whose_kernel_was_restarted_does_not_say_that_its_job_runs(front):
    front.open("ended.ipynb", START.format(name="ended"), "job.dashboard()")
    front.run_cell(0)
    front.run_cell(1)
    badge = front.appears(".badge.good", "RUNNING")
    front.restart_kernel("ended.ipynb")
    badge.wait_for(state="hidden")
    front.appears(".silent", "not connected last seen RUNNING")
    front.appears(".silence", "The kernel was restarted, which ended this job")


def test_a_second_view_stands_below_the_first_and_hides_nothing(front):
    front.open("two.ipynb", START.format(name="two"))
    front.run_cell(0)
    front.execute("workbench:open-dashboard", job="two")
    first = front.appears(front.docked("two"))
    front.page.get_by_role("button", name="Open a view of two").press("Enter")
    for key in ("ArrowDown", "ArrowDown", "Enter"):  # the first one of the list is chosen when it opens
        front.page.keyboard.press(key)
    second = front.appears(f"{front.docked('two')}[aria-label*='The view']")
    assert first.is_visible()
    upper, lower = first.bounding_box(), second.bounding_box()
    assert upper["y"] + upper["height"] <= lower["y"]
    for view in ("watermarks", "buffers"):
        front.execute("workbench:open-view", job="two", view=view)
        front.appears(f"{front.docked('two')}[aria-label*='The view {view.capitalize()}']")
    heights = [one.bounding_box()["height"] for one in front.page.locator(front.docked("two")).all()]
    assert len(heights) == 4
    assert min(heights) > 0.8 * max(heights), "the highest one gives up half of its height"


def test_a_narrow_notebook_keeps_its_width_and_has_the_dashboard_below_it(front):
    front.page.set_viewport_size({**SIZE, "width": 1000})
    front.open("narrow.ipynb", START.format(name="narrow"))
    front.run_cell(0)
    before = front.page.locator(".jp-NotebookPanel:visible").bounding_box()
    front.execute("workbench:open-dashboard", job="narrow")
    below = front.appears(front.docked("narrow")).bounding_box()
    notebook = front.page.locator(".jp-NotebookPanel:visible").bounding_box()
    assert notebook["y"] + notebook["height"] <= below["y"]
    assert notebook["width"] == before["width"]


MAGIC = """%%stream flow --checkpoint-interval 500ms
wb.Stream.from_table(pa.table({"n": range(1_000_000)}), rate=500.0).filter("n % 2 = 0")"""


def test_a_stream_cell_docks_its_dashboard_beside_the_notebook_or_shows_it_as_chosen(front):
    start = "%load_ext workbench\nimport pyarrow as pa, workbench as wb"
    cells = [start, MAGIC, "%stream display cell", MAGIC.replace("flow", "here")]
    front.open("stream.ipynb", *cells)
    for cell in range(2):  # at once, as "Run All" does: the kernel does not know yet that this page docks
        front.run_cell(cell, wait=False)
    front.appears(f"{front.docked('flow')} .wb-graph")
    in_cells = ".jp-Notebook .jp-OutputArea .wb-graph"
    assert front.page.locator(in_cells).count() == 0
    assert "is docked next to the notebook" in front.page.locator(".jp-Notebook .jp-OutputArea").nth(1).inner_text()
    front.run_cell(2)
    front.run_cell(3)
    front.appears(in_cells)
    assert front.page.locator(front.docked("here")).count() == 0


def test_a_dashboard_that_was_closed_stays_closed_when_its_notebook_is_looked_at_again(front):
    front.open("closed.ipynb", "%load_ext workbench\nimport pyarrow as pa, workbench as wb", MAGIC)
    for cell in range(2):
        front.run_cell(cell, wait=False)
    docked = front.docked("flow")
    front.appears(f"{docked} .wb-graph")
    front.page.evaluate(CLOSE_DOCKED)
    front.page.locator(docked).wait_for(state="detached")
    front.open("elsewhere.ipynb", "%load_ext workbench")
    front.appears(".wb-Explanation code", "%load_ext workbench")
    front.open("closed.ipynb")
    front.appears(".wb-Job[data-job=flow]")
    front.page.wait_for_timeout(1_000)
    assert front.page.locator(docked).count() == 0


def test_common_tasks_take_as_many_clicks_as_the_documentation_says(front):
    front.open("clicked.ipynb", START.format(name="clicked"), STEPPED.replace("job.view", "#"))
    for cell in range(2):
        front.run_cell(cell)
    front.appears(".wb-Job[data-job=hand]")
    counted = Clicking(front, job="clicked", stepped="hand").count()
    assert counted == claimed()
    assert max(counted.values()) <= 2
