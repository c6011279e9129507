"""Secrets by reference: ``${NAME}`` in a URL or an option stands for an environment variable, or an entry of a keyring.

A connector's description keeps the reference. The secret itself is looked up when a connection is opened, so it is part
of no notebook, graph, checkpoint or recording.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from workbench.errors import SettingError
from workbench.packages import needed
from workbench.redaction import redacted

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
    """A message of a client without the secrets that these URLs or options refer to.

    Example:
        >>> os.environ["DOCS_PASSWORD"] = "pa55word"
        >>> hidden("login with pa55word failed", "redis://:${DOCS_PASSWORD}@localhost")
        'login with *** failed'
    """
    for template in templates:
        for found in _REFERENCE.finditer(template):
            secret = _secret(found["name"])
            for form in (secret, quote(secret, safe="")):
                text = text.replace(form, "***") if form else text
    return text


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
