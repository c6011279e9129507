"""Secrets by reference: ``${NAME}`` in a URL or an option stands for an environment variable, or an entry of a keyring.

A connector's description keeps the reference. The secret itself is looked up when a connection is opened, so it is part
of no notebook, graph, checkpoint or recording.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from traceback import format_exception
from urllib.parse import quote, unquote

from workbench.errors import SettingError
from workbench.packages import needed
from workbench.redaction import HIDDEN, redacted

_REFERENCE = re.compile(r"\$\{(?P<name>[^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYRING = "keyring:"
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|credential|api[._-]?key|\.pem$|key\.pem|authorization|cookie"
    r"|(?:^|[._-])(?:pass|pwd|auth)$|^x-[\w-]*key$|subscription-key$",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"(?P<scheme>\w+)://(?P<user>[^/?#@:\s]*)(?P<password>:(?:\$\{[^{}]*\})?)?@"  # the password, if any, is a reference
)
_KEY_FILE = re.compile(r"(?<=[?&])(?:sslkey|ssl_keyfile)=[^&#\s]*")
_ODD = re.compile(r"[/?#\[\]\s\0-\x1f\x7f]")
"""Clients take these for the end of a login, or leave them out."""
_PORT = re.compile(r"[^:]*:\d*")
_QUERY = re.compile(r"[^?#]*\?[\w.-]+=")
_WEB_SCHEMES = ("http", "https", "ws", "wss")
"""The schemes of URLs whose path may have an @."""
_QUERY_OR_NAME = re.compile(r"[^?#]*\?[\w.-]+=|[^:]*$", re.DOTALL)
_SHORT = 4
"""A secret with fewer characters is hidden only as a whole word: within words, it would hide ordinary text."""
_TOKEN_SCHEMES = ("nats", "tls")
"""The schemes of URLs in which a user without a password is a token."""
_SCHEME_OF_LOGIN = re.compile(r"^\s*(?:basic|bearer|digest|negotiate|token|apikey)\b", re.IGNORECASE)


def revealed(text: str) -> str:
    """The text with its secrets; use it only for a connection, and never display it.

    Args:
        text: ``${NAME}`` is an environment variable, and ``${keyring:service/user}`` an entry of the system's keyring
            (package ``keyring``).

    Raises:
        SettingError: there is no such variable or entry.
        MissingPackageError: the package keyring is not installed.

    Example:
        >>> os.environ["DOCS_USER"] = "ann"
        >>> revealed("user=${DOCS_USER}")
        'user=ann'
    """
    return _REFERENCE.sub(lambda found: _secret(found["name"]), text)


def revealed_url(url: str) -> str:
    """A URL with its secrets, whose reserved characters are escaped.

    Raises:
        SettingError: as for `revealed`.
        MissingPackageError: as for `revealed`.

    Example:
        >>> os.environ["DOCS_PASSWORD"] = "a/b@c"
        >>> revealed_url("redis://:${DOCS_PASSWORD}@localhost")
        'redis://:a%2Fb%40c@localhost'
    """
    return _REFERENCE.sub(lambda found: quote(_secret(found["name"]), safe=""), url)


def hidden(text: str, *templates: str) -> str:
    """A message of a client without the secrets of these URLs or options: those that they refer to, and the logins
    that they have in plain text, as they are written and as clients decode them.

    Example:
        >>> os.environ["DOCS_PASSWORD"] = "pa55word"
        >>> hidden("login with pa55word failed", "redis://:${DOCS_PASSWORD}@localhost")
        'login with *** failed'
        >>> hidden("invalid token: 'pa%zz5'", "postgresql://ann:pa%zz5@localhost/shop")
        "invalid token: '***'"
    """
    return _without(text, [secret for template in templates for secret in _secrets_of(template)])


def hidden_options(text: str, options: Mapping[str, object]) -> str:
    """A message of a client without the secrets of its options or headers.

    Example:
        >>> hidden_options("invalid value 'pa55word'", {"sasl.password": "pa55word", "client.id": "value"})
        "invalid value '***'"
    """
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, str):
            found += _secrets_of(value)
            if is_literal(name, value):
                found += [value, *value.split()[1:]]
    return _without(text, found)


def shown(url: str) -> str:
    """A URL without its login, whatever characters that has.

    Example:
        >>> shown("redis://ann:pa 5/5@localhost/0"), shown("http://localhost:8080/feed")
        ('redis://***@localhost/0', 'http://localhost:8080/feed')
    """
    scheme, slashes, rest = url.partition("://")
    login = _login(url) or ""
    if scheme.lower() in _WEB_SCHEMES and ":" in rest.partition("/")[0]:  # a path with an @ may be half of a password
        login = rest[: max(rest.rfind("@"), 0)]
    if ":" not in login:
        return redacted(url)
    return redacted(f"{scheme}{slashes}{HIDDEN}{rest[len(login) :]}")


def check_url(url: str, name: str = "url", odd: str = "") -> None:
    """Reject a URL whose login has characters that clients take for its end, and whose rest they would show.

    Args:
        url: with or without a login; ``${NAME}`` stands for a text that is escaped.
        name: of the argument.
        odd: further characters that its client does not read in a login.

    Raises:
        SettingError: names the character, and not the login.

    Example:
        >>> check_url("redis://ann:${REDIS_PASSWORD}@localhost/0")
        >>> check_url("redis://ann:pa/55@localhost/0")
        Traceback (most recent call last):
        ...
        workbench.errors.SettingError: url is 'redis://***@localhost/0', whose user or password has '/': write %2F \
instead of it
    """
    login = _login(_REFERENCE.sub("_", url))
    found = login and (_ODD.search(login) or next((each for each in odd if each in login), None))
    if found:
        letter = found if isinstance(found, str) else found[0]
        wrong = f"{letter!r}: write {quote(letter, safe='')} instead of it"
        raise SettingError(f"{name} is {shown(url)!r}, whose user or password has {wrong}")


def cause_of(error: BaseException, *templates: str) -> BaseException | None:
    """The exception of a client as the cause of an error for the user; None: it would show a secret of these URLs.

    Example:
        >>> cause_of(ValueError("no host 'pa55'"), "redis://ann:pa55@localhost") is None
        True
    """
    text = "".join(format_exception(error))
    return error if redacted(hidden(text, *templates)) == text else None


def check_no_literal(name: str, value: str) -> None:
    """Reject an option that has a secret in plain text: it would be saved with the notebook or the program.

    Raises:
        SettingError: names the option, and not its value.

    Example:
        >>> check_no_literal("url", "redis://:${REDIS_PASSWORD}@localhost")
        >>> check_no_literal("password", "pa55word")
        Traceback (most recent call last):
        ...
        workbench.errors.SettingError: the option 'password' has a secret in plain text: set an environment variable, \
and write '${NAME}' instead, or '${keyring:service/user}'
    """
    if is_literal(name, value):
        raise SettingError(
            f"the option {name!r} has a secret in plain text: set an environment variable, and write '${{NAME}}' "
            "instead, or '${keyring:service/user}'"
        )


def is_literal(name: str, value: str) -> bool:
    """Whether a text has a secret in plain text.

    Args:
        name: of the option, header or attribute whose value it is.
        value: a URL, a login or any other text.

    Example:
        >>> is_literal("url", "postgresql://ann:${PASSWORD}@db/flights"), is_literal("url", "nats://t0ken@db")
        (False, True)
        >>> is_literal("Authorization", "Bearer ${TOKEN}"), is_literal("sasl.password", "pa55word")
        (False, True)
    """
    if "://" in value:
        plain = _REFERENCE.sub("{NAME}", _KEY_FILE.sub("", _LOGIN.sub(_without_login, value)))
        return redacted(plain) != plain
    if name.lower() == "cookie":
        value = ";".join(item.partition("=")[2] for item in value.split(";"))
    rest = _SCHEME_OF_LOGIN.sub("", _REFERENCE.sub("", value)).strip(" ;,")
    if rest and _SECRET_NAME.search(name):
        return True
    plain = _REFERENCE.sub("{NAME}", value)
    return redacted(plain) != plain


def references(text: str) -> list[str]:
    """The environment variables to which a text refers.

    Example:
        >>> references("postgresql://${DB_USER}:${DB_PASSWORD}@db/flights")
        ['DB_USER', 'DB_PASSWORD']
    """
    found = (match["name"] for match in _REFERENCE.finditer(text))
    return [name for name in found if _VARIABLE.fullmatch(name)]


def _login(url: str) -> str | None:
    """The user and password of a URL, also with characters that end them for clients; None: it has neither."""
    scheme, slashes, rest = url.partition("://")
    at = rest.rfind("@")
    if not slashes or at < 0:
        return None
    login = rest[:at]
    end = _ODD.search(login)
    if end is None or scheme.lower() in _TOKEN_SCHEMES:
        return login
    host = login[: end.start()]
    has_path = scheme.lower() in _WEB_SCHEMES or _QUERY.match(login, end.start()) is not None
    if end[0] in "/?#" and has_path and ("@" in host or _PORT.fullmatch(host)):
        return host.rpartition("@")[0] or None
    if ":" not in host and end[0] in "/?[":  # the @ is in the path or the query
        return None
    return login


def _secrets_of(template: str) -> Iterator[str]:
    """The secrets of a URL or an option: those to which it refers, and the login that it has in plain text."""
    for found in _REFERENCE.finditer(template):
        yield _secret(found["name"])
    login = _login(template)
    if login is not None:
        user, colon, password = login.partition(":")
        plain = password if colon else user
        if (colon or template.lower().startswith(_TOKEN_SCHEMES)) and not _REFERENCE.search(plain):
            yield plain


def _without(text: str, secrets: list[str]) -> str:
    forms: set[str] = set()
    for secret in secrets:
        forms |= {secret, quote(secret, safe=""), unquote(secret), repr(secret)[1:-1]}
    for form in sorted(forms - {""}, key=len, reverse=True):
        whole = re.escape(form)
        text = re.sub(rf"(?<!\w){whole}(?!\w)" if len(form) < _SHORT else whole, HIDDEN, text)
    return text


def _without_login(found: re.Match[str]) -> str:
    user = found["user"]
    is_token = found["scheme"].lower() in _TOKEN_SCHEMES and found["password"] is None
    if is_token and _REFERENCE.sub("", user):
        return found[0]
    return f"{found['scheme']}://"


def _secret(name: str) -> str:
    if name.startswith(_KEYRING):
        service, slash, user = name.removeprefix(_KEYRING).partition("/")
        found = needed("keyring", "reading a secret from the keyring").get_password(service, user) if slash else None
        if found is None:
            raise SettingError(f"the keyring has no secret for '${{{name}}}': write ${{keyring:service/user}}")
        return str(found)
    if _VARIABLE.fullmatch(name) is None:
        raise SettingError(f"'${{{name}}}' does not refer to a secret: write ${{NAME}} or ${{keyring:service/user}}")
    if (value := os.environ.get(name)) is None:
        raise SettingError(f"the environment variable {name} is not set: set it before the kernel starts")
    return value
