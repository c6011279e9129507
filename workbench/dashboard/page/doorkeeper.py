"""Access control of served pages, and what a browser may do with them: checked before any handler of Bokeh's server.

A page is served only under our own host names (any other name that leads here is DNS rebinding), and only with the
cookie, which is exchanged for the token in the printed URL. Only our own pages may connect.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from bokeh.application import Application
from bokeh.server.tornado import BokehTornado
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.log import access_log
from tornado.web import OutputTransform, RequestHandler

from workbench.arguments import as_given
from workbench.errors import SettingError
from workbench.raised import one_line

ADDRESS = "127.0.0.1"
NAMES = ("localhost", ADDRESS)
PAGES_MAX = 64
MESSAGE_BYTES_MAX = 1 << 20
"""The maximum size of a message from a page, which contains only a user's clicks and typed text."""

NEEDS_TOKEN = "This page needs its token: open the URL that was printed when the server started."
_OTHER_NAME = "This page is not served under this host name: use the printed URL, or add the name to hosts."
_OTHER_ORIGIN = "A page from another origin cannot connect to this one."
_OTHER_METHOD = "Only GET is served."
_NO_PAGE = "There is no such page."
_TOO_MANY = f"{PAGES_MAX} pages are open, which is the limit: close some."

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,252})(?::[0-9]{1,5})?")
_SERVED = re.compile(r"/|/ws|/favicon\.ico|/static/(?!.*\.\.)[\w./@+^-]+")
_INLINE = re.compile(rb'<script(?: type="text/javascript")?>(.*?)</script>', re.DOTALL)
_SHIMS = re.compile(rb'<script type="text/javascript" src="[^"]*/es-module-shims[^"]*"></script>')
"""Panel loads it into every page for modules, of which ours have none; it runs scripts that no policy should allow."""
_SAME_SITE = ("", "none", "same-origin", "same-site")


def host_names(hosts: Iterable[object]) -> tuple[str, ...]:
    """Further names under which a page is reached, in lower case.

    Raises:
        SettingError: one of them is not a host name.

    Example:
        >>> host_names(["Lab.example", "10.0.0.7:8443"])
        ('lab.example', '10.0.0.7:8443')
    """
    if isinstance(hosts, str):
        raise SettingError(f"hosts is {as_given(hosts)}: write a list of names, such as ['lab.example']")
    names = []
    for host in hosts:
        if not isinstance(host, str) or not _HOST.fullmatch(host.lower()):
            raise SettingError(
                f"the host {as_given(host)} is not a host name: write it as a browser shows it, such as 'lab.example' "
                "or 'lab.example:8443'"
            )
        names.append(host.lower())
    return tuple(names)


class GuardedPages(BokehTornado):  # type: ignore[misc]
    """Bokeh's server behind access control.

    Args:
        applications: by path.
        port: that it listens on.
        token: that is in the printed address.
        hosts: further names under which it is reached, as through a proxy.
    """

    def __init__(self, applications: Mapping[str, Application], port: int, token: str, hosts: Iterable[str]) -> None:
        further = {name for host in hosts for name in ((host,) if ":" in host else (host, f"{host}:{port}"))}
        ours = {f"{name}:{port}" for name in NAMES}
        self._hosts = ours | further
        # Behind a name of the person's own there may be a proxy that has a certificate.
        self._origins = {f"http://{host}" for host in self._hosts} | {f"https://{host}" for host in further}
        self._token = token.encode()
        self._cookie = f"workbench-{port}"  # cookies are shared by all ports of a host
        self._secret = token_urlsafe(32)
        super().__init__(
            applications,
            extra_websocket_origins=sorted(self._hosts),
            sign_sessions=True,
            secret_key=token_urlsafe(32).encode(),
            include_headers=[],
            include_cookies=[],
            unused_session_lifetime_milliseconds=10_000,
            websocket_max_message_size_bytes=MESSAGE_BYTES_MAX,
        )
        self.add_transform(_Headers)

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """The handler of a request: Bokeh's, unless the request is refused."""
        if not self._is_ours(request):
            return self._refused(request, 403, _OTHER_NAME)
        if request.method != "GET":
            return self._refused(request, 405, _OTHER_METHOD)
        query = parse_qsl(request.query, keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if tokens and (self._is_known(request) or compare_digest(tokens[-1].encode(), self._token)):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            given = {"cookie": self._cookie, "secret": self._secret, "to": f"?{rest}" if rest else "./"}
            if request.path == "/":
                return self.get_handler_delegate(request, _Exchange, given)
        if tokens or not self._is_known(request):
            return self._refused(request, 403, NEEDS_TOKEN)
        origin = request.headers.get("Origin")
        if (origin is not None or request.path == "/ws") and origin not in self._origins:
            return self._refused(request, 403, _OTHER_ORIGIN)
        if not _SERVED.fullmatch(unquote(request.path)):
            return self._refused(request, 404, _NO_PAGE)
        if request.path == "/" and sum(len(each.sessions) for each in self._applications.values()) >= PAGES_MAX:
            return self._refused(request, 503, _TOO_MANY)
        return super().find_handler(request, **kwargs)

    def log_request(self, handler: RequestHandler) -> None:
        """Log a request without its query, which may contain the token."""
        request, status = handler.request, handler.get_status()
        log = access_log.error if status >= 500 else access_log.info
        log("%d %s %s", status, request.method, one_line(request.path, 200))

    def _is_ours(self, request: HTTPServerRequest) -> bool:
        hosts = request.headers.get_list("Host")
        return len(hosts) == 1 and hosts[0].lower() in self._hosts

    def _is_known(self, request: HTTPServerRequest) -> bool:
        morsel = request.cookies.get(self._cookie)
        return morsel is not None and compare_digest(morsel.value.encode(), self._secret.encode())

    def _refused(self, request: HTTPServerRequest, status: int, sentence: str) -> Any:
        return self.get_handler_delegate(request, _Refused, {"status": status, "sentence": sentence})


class _Refused(RequestHandler):
    """Answers every request with a sentence."""

    def initialize(self, status: int, sentence: str) -> None:
        self._status, self._sentence = status, sentence

    def prepare(self) -> None:
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if self._status == 405:
            self.set_header("Allow", "GET")
        self.finish(self._sentence)


class _Exchange(RequestHandler):
    """Exchanges the token for the cookie, and redirects to the URL without the token, which must not be on a screen."""

    def initialize(self, cookie: str, secret: str, to: str) -> None:
        self._cookie, self._secret, self._to = cookie, secret, to

    def get(self) -> None:
        self.set_cookie(self._cookie, self._secret, httponly=True, samesite="Strict", path="/")
        if self.request.headers.get("Sec-Fetch-Site", "") in _SAME_SITE:
            self.redirect(self._to)
            return
        # A browser that follows a link on another site sends the cookie only after a redirect by our own page.
        self.set_header("Refresh", f"0; url={self._to}")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish("Opening the page.")


class _Headers(OutputTransform):
    """Adds the headers that restrict what a browser may do with an answer."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self._host = request.host
        self._is_static = request.path.startswith("/static/")

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        headers.pop("Server", None)
        page = b""
        if headers.get("Content-Type", "").startswith("text/html"):
            page = chunk = _SHIMS.sub(b"", chunk)
            if "Content-Length" in headers:
                headers["Content-Length"] = str(len(chunk))
        headers["Content-Security-Policy"] = _policy(self._host, page)
        headers["Referrer-Policy"] = "no-referrer"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Frame-Options"] = "DENY"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if not self._is_static:
            headers["Cache-Control"] = "no-store"
        return status_code, headers, chunk


def _policy(host: str, page: bytes) -> str:
    """The Content-Security-Policy of a page: it allows only what BokehJS needs.

    These are ``unsafe-eval``, because BokehJS creates functions from the text of a CustomJS, and styles in elements and
    attributes. Of the scripts in a page, only Bokeh's own run.
    """
    digests = "".join(f" 'sha256-{b64encode(sha256(text).digest()).decode()}'" for text in _INLINE.findall(page))
    connect = f"'self' ws://{host} wss://{host}" if _HOST.fullmatch(host.lower()) else "'none'"
    return (
        f"default-src 'none'; script-src 'self' 'unsafe-eval'{digests}; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data: blob:; font-src 'self' data:; connect-src {connect}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
