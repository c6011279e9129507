"""A NATS server: its URL and its login."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from urllib.parse import unquote, urlsplit

from workbench.arguments import text_of
from workbench.connectors.contract.secrets import check_url, revealed_url, shown
from workbench.connectors.feeds.certificates import ca_file_of
from workbench.connectors.feeds.tcp_link import Address
from workbench.errors import SettingError

_PORT = 4222
_SCHEMES = ("nats", "tls")


@dataclass(frozen=True, slots=True)
class Login:
    """The credentials of a client; never shown.

    Attributes:
        user, password: the client's user and password, or empty.
        token: a token instead of both.
        tls: whether the connection must be encrypted.
    """

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    tls: bool = False


@dataclass(frozen=True)
class NatsServer:
    """A server.

    Attributes:
        url: ``nats://[user:password@]host:port`` or ``nats://token@host:port``, ``tls://`` for TLS; ``${NAME}`` in it
            is an environment variable.
        ca_file: a PEM file of the certificate authorities to trust with TLS; empty: those of the system.

    Raises:
        SettingError: it is not such a URL, or the file has no certificate; the message masks its password.

    Example:
        >>> str(NatsServer("nats://ann:pa55@db.example")), NatsServer("nats://localhost").address.port
        ('nats://***@db.example', 4222)
    """

    url: str = field(repr=False)
    ca_file: str | PathLike[str] = ""

    def __post_init__(self) -> None:
        check_url(text_of(self.url, "url", "nats://localhost:4222"))
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise SettingError(f"url is {shown(self.url)!r}: write nats://host:port or tls://host:port")
        revealed_url(self.url)
        object.__setattr__(self, "ca_file", ca_file_of(self.ca_file))

    def __str__(self) -> str:
        return shown(self.url)

    @property
    def address(self) -> Address:
        """Its address. A server greets before a connection is encrypted."""
        parts = urlsplit(self.url)
        return Address(parts.hostname or "", parts.port or _PORT, ca_file=fspath(self.ca_file))

    def login(self) -> Login:
        """The login, including secrets."""
        parts = urlsplit(revealed_url(self.url))
        user, tls = unquote(parts.username or ""), parts.scheme == "tls"
        if parts.password is None:
            return Login(token=user, tls=tls)
        return Login(user, unquote(parts.password), tls=tls)
