"""A Redis server: its URL, connections, and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from workbench.arguments import text_of
from workbench.connectors.contract.secrets import check_url, hidden, revealed_url, shown
from workbench.connectors.feeds.certificates import certificate_fix
from workbench.errors import SettingError, SinkError, SourceError
from workbench.packages import needed
from workbench.raised import first_line_of
from workbench.redaction import redacted

Failed = TypeVar("Failed", SourceError, SinkError)
_FIXES = {
    "WRONGTYPE": "; the key has another type: check the name",
    "NoPermissionError": "; the user in the URL lacks a permission",
    "OutOfMemoryError": "; the server has reached its maxmemory: increase it, or trim streams (max_length)",
    "ReadOnlyError": "; this is a replica: write to the primary",
}
"""Fixes by the first word of an error or, if the client removes that word, by its class."""
_INVALID = "certificate verify failed: "
"""OpenSSL's words before the reason why a certificate is refused."""
_IN_PIPELINE = "caused error: "
_ANSWER_S = 2.0
"""The maximum time of a call, which blocks a slot's thread."""


@dataclass(frozen=True)
class RedisServer:
    """A server.

    Attributes:
        url: ``redis://[user:password@]host:port/database``, ``rediss://`` for TLS, or ``unix://path``; ``${NAME}`` in
            it is an environment variable.

    Raises:
        SettingError: it is not such a URL; the message masks its password.
        MissingPackageError: the package redis is not installed.

    Example:
        >>> str(RedisServer("redis://ann:pa55@db.example:6379/0"))
        'redis://***@db.example:6379/0'
    """

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        text_of(self.url, "url", "redis://localhost:6379")
        check_url(self.url)
        package = needed("redis", "Redis")
        try:
            package.Redis.from_url(revealed_url(self.url)).close()
        except ValueError as error:
            fact = redacted(hidden(first_line_of(error), self.url))
            raise SettingError(
                f"the Redis URL {shown(self.url)!r} cannot be used ({fact}): write redis://host:port/database or"
                " unix://path"
            ) from None

    def __str__(self) -> str:
        return shown(self.url)

    def connect(self) -> Any:
        """Create a client that connects at its first call and never retries by itself."""
        package = needed("redis", "Redis")
        retry = needed("redis.retry", "Redis").Retry(needed("redis.backoff", "Redis").NoBackoff(), 0)
        return package.Redis.from_url(
            revealed_url(self.url), socket_timeout=_ANSWER_S, socket_connect_timeout=_ANSWER_S, retry=retry, protocol=2
        )

    @property
    def errors(self) -> type[Exception]:
        """The base class of a client's exceptions."""
        base: type[Exception] = needed("redis", "Redis").RedisError
        return base

    @property
    def watch_error(self) -> type[Exception]:
        """Raised when another client changed a watched key."""
        watch: type[Exception] = needed("redis", "Redis").WatchError
        return watch

    def may_return(self, error: Exception) -> bool:
        """Whether an error means that the server is unreachable, starting or busy, so that a later call can succeed."""
        package = needed("redis", "Redis")
        refused = (package.AuthenticationError, package.exceptions.AuthorizationError)
        away = (package.ConnectionError, package.TimeoutError, package.BusyLoadingError)
        return isinstance(error, away) and not isinstance(error, refused) and _INVALID not in str(error)

    def fact(self, error: Exception) -> str:
        """What an error of the client says, on one line and without secrets."""
        return redacted(hidden(first_line_of(error), self.url))

    def error(self, error: Exception, what: str, kind: type[Failed]) -> Failed:
        """The error for the user.

        Args:
            error: raised by a client.
            what: the action that failed, such as ``read the stream 'orders'``.
            kind: its class.
        """
        fact = self.fact(error)
        if isinstance(error, needed("redis", "Redis").AuthenticationError):
            return kind(f"{self} refuses the login ({fact}): check the user and the password in the URL")
        if _INVALID in fact:
            reason = fact.partition(_INVALID)[2].partition(" (_ssl")[0].rstrip(".")
            fix = certificate_fix(reason, "ssl_ca_certs in the URL")
            return kind(f"the certificate of {self} is not valid ({reason}): {fix}")
        if self.may_return(error):
            return kind(f"no connection to {self}: {fact}; start the server, or check host and port")
        fact = fact.partition(_IN_PIPELINE)[2] or fact  # without the row
        fix = _FIXES.get(type(error).__name__) or _FIXES.get(fact.partition(" ")[0], "")
        return kind(f"cannot {what} of {self}: {fact}{fix}")
