"""Serves dashboards as separate pages, for a lecture without notebooks: the only code that opens a port, on request.

The port is on loopback; `doorkeeper` decides who gets a page.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from html import escape
from time import monotonic
from typing import Any
from urllib.parse import quote

from bokeh.application import Application
from bokeh.application.handlers import FunctionHandler
from bokeh.document import Document
from bokeh.models import Div
from bokeh.server.server import BaseServer
from bokeh.server.util import bind_sockets
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from workbench.arguments import whole_number
from workbench.dashboard.charts.badges import BADGES
from workbench.dashboard.charts.static import page, sheet
from workbench.dashboard.contract.job_port import Watched
from workbench.dashboard.contract.recent_failure import failure_now
from workbench.dashboard.contract.view_table import VIEWS, dashboard_views, recorded_views
from workbench.dashboard.lanes.lanes import Lanes
from workbench.dashboard.lecture.scene_table import SCENES
from workbench.dashboard.page.doorkeeper import ADDRESS, GuardedPages, host_names
from workbench.dashboard.page.pace import Share
from workbench.dashboard.shown.display import Display
from workbench.dashboard.shown.header import headline
from workbench.dashboard.shown.lanes_dashboard import lanes_view
from workbench.dashboard.shown.playback import PastJob, PlaybackView, Recorded
from workbench.dashboard.shown.served_line import ServedLine
from workbench.dashboard.shown.view import View
from workbench.errors import SettingError, unknown

Jobs = Callable[[], Mapping[str, Watched]]
"""Returns the jobs that are shown, by name."""

LOOK_S = 0.05
"""How often the server checks whether a page can take a frame."""
HEADER_BYTES_MAX = 16_384
IDLE_S = 60
"""After this time, a connection without a request is closed."""


class ServedPages:
    """Pages with the dashboards of jobs, served until `stop`.

    Attributes:
        url: the URL to open, with the token.
        port: on loopback.
    """

    def __init__(self, jobs: Jobs, port: int = 0, hosts: Iterable[str] = ()) -> None:
        self._hosts = host_names(hosts)
        _check_free(port)
        self._jobs = jobs
        self._share = Share()
        self._token = secrets.token_urlsafe(24)
        self._loop: IOLoop | None = None
        self._server: BaseServer | None = None
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port, ready), name="dashboard pages", daemon=True)
        self._thread.start()
        ready.wait()
        if self._server is None:
            raise SettingError(f"port {port} was taken in the meantime: choose another, or 0 for any free port")
        self.port = int(self._server.port or 0)
        self.url: str = f"http://localhost:{self.port}/?token={self._token}"

    def __repr__(self) -> str:
        return f"<ServedPages at {self.url}>" if self.is_open else "<ServedPages, stopped>"

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.url)}" target="_blank">{escape(self.url)}</a>' if self.is_open else repr(self)

    @property
    def is_open(self) -> bool:
        """Whether the pages are served."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Close the port and every page's connection; the jobs keep running."""
        loop = self._loop
        if loop is not None and self.is_open:
            loop.add_callback(loop.stop)
            self._thread.join()

    def wait(self) -> None:
        """Wait until it is stopped."""
        while self.is_open:
            self._thread.join(0.2)  # in short waits, so that an interrupt is received

    def _run(self, port: int, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._loop = IOLoop.current()
        try:
            sockets, bound = bind_sockets(ADDRESS, port)
        except OSError:
            ready.set()
            return
        pages = GuardedPages({"/": Application(FunctionHandler(self._page))}, bound, self._token, self._hosts)
        http = HTTPServer(pages, max_header_size=HEADER_BYTES_MAX, max_body_size=0, idle_connection_timeout=IDLE_S)
        http.add_sockets(sockets)
        self._server = server = BaseServer(self._loop, pages, http)
        server.start()
        ready.set()
        self._loop.start()
        server.stop()
        server.unlisten()
        self._loop.close(all_fds=True)

    def _page(self, document: Document) -> None:
        document.template = page("ground")
        jobs = self._jobs()
        arguments = document.session_context.request.arguments
        words = ("job", "view", "lecture", "compare")
        name, view, scene, lanes = (arguments.get(word, [b""])[0].decode("utf-8", "replace") for word in words)
        compared = [lane for lane in lanes.split(",") if lane]
        if len(compared) > 1 and set(compared) <= set(jobs):
            together: Any = Lanes({lane: jobs[lane] for lane in compared})
            _feed(document, together, lanes_view(together), self._share)
            document.title = f"{together.name}: side by side"
            return
        if not name and len(jobs) == 1:
            name = next(iter(jobs))
        if name in jobs and view in ("", *VIEWS) and scene in ("", *SCENES):
            _show(document, jobs[name], self._share, view or None, scene)
        elif name in jobs and scene not in ("", *SCENES):
            _list(document, jobs, unknown("scene", scene, SCENES))
        elif name in jobs:
            _list(document, jobs, unknown("view", view, VIEWS))
        else:
            _list(document, jobs, f"There is no job {name!r}." if name else "")


def serve_recording(recording: Recorded, port: int = 0, hosts: Iterable[str] = ()) -> ServedPages:
    """Serve a recording with a slider over its time, as the dashboards of jobs are served.

    Raises:
        SettingError: the port cannot be opened, or a host name is invalid.
    """
    past: Any = PastJob(recording)
    return ServedPages(lambda: {recording.name: past}, port, hosts)


def _check_free(port: int) -> None:
    whole_number(port, "port", 0)
    try:
        socket.create_server((ADDRESS, port)).close()
    except (OSError, OverflowError) as error:
        raise SettingError(f"port {port} cannot be opened ({error}): choose another, or 0 for any free port") from error


def _list(document: Document, jobs: Mapping[str, Watched], problem: str) -> None:
    """The list of jobs; `problem` says what was not found."""
    document.title = "Streaming Workbench"
    lines = [f"<p class='problem' role='alert'>{escape(problem)}</p>"] if problem else []
    lines += [_entry(name, job) for name, job in jobs.items()]
    if len(jobs) > 1:
        lines.append(f'<p><a href="?compare={quote(",".join(jobs))}">all of them side by side</a></p>')
    lines += [] if jobs else ["<p>No job has been started in this process yet.</p>"]
    text = "<h1>Streaming jobs</h1>" + "".join(lines)
    listed = Div(text=text, sizing_mode="stretch_width", disable_math=True)  # a $ is one, and fetches nothing
    listed.stylesheets = [sheet("job_list")]
    document.add_root(listed)


def _entry(name: str, job: Watched) -> str:
    """A job in the list: its dashboard, its state, what it does in words, and its views."""
    frame = job.recorder.latest()
    colour, sign = BADGES[job.state]
    said = "" if frame is None else f"<p>{escape(failure_now(frame) or headline(frame))}</p>"
    link = f"?job={quote(name)}"
    views = "".join(
        f'<a href="{link}&amp;view={view.name}" title="{escape(view.help)}">{escape(view.title)}</a>'
        for view in (recorded_views(frame) if isinstance(job, PastJob) else dashboard_views(job.live, frame))
    )
    return (
        f"<article><h2><a href='{link}'>{escape(name)}</a><span class='{colour}'>{sign} {escape(job.state)}</span></h2>"
        f"{said}<nav aria-label='Views of {escape(name)}'>{views}</nav></article>"
    )


def _show(document: Document, job: Watched, share: Share, part: str | None, scene: str) -> None:
    """A live dashboard, or one view of it; a page that has not painted the last frame gets the next one later."""
    if isinstance(job, PastJob):
        playback = PlaybackView(job.recording, scene=scene)
        document.title = f"{job.name}: recording"
        document.add_root(playback.root)
        document.js_on_event("document_ready", playback.script)
        return
    _feed(document, job, View(job, job.recorder.frames(), part, scene=scene), share)
    document.title = f"{job.name}: {part or 'dashboard'}"


def _feed(document: Document, job: Watched, view: View, share: Share) -> None:
    """Show a view, and keep it up to date."""
    line = ServedLine(document, view)
    display = Display(job, view, line)
    view.easel.follow = display.turn_to
    document.add_root(view.root)
    document.js_on_event("document_ready", line.script)
    feeding: Any = None

    def feed() -> None:
        nonlocal feeding
        if share.rest_s() == 0.0 and display.is_due(now := monotonic()):
            with share.taken():
                display.show(now)
            if display.is_finished and feeding is not None:
                document.remove_periodic_callback(feeding)
                feeding = None

    def go_on() -> None:
        nonlocal feeding
        if feeding is None:
            feeding = document.add_periodic_callback(feed, int(LOOK_S * 1000))

    view.easel.background.begun = go_on
    go_on()
