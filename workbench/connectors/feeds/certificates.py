"""The certificates of servers: the authorities that a client trusts, and why it refuses a certificate."""

from __future__ import annotations

import ssl
from os import PathLike, fspath

from workbench.arguments import as_given
from workbench.connectors.feeds.link import LinkError
from workbench.errors import SettingError, told_by

_FORM = "write the path of a PEM file"
_OTHER_NAME = ("mismatch", "not valid for")


def ca_file_of(given: object) -> str:
    """Check the parameter `ca_file`.

    Args:
        given: a path, or empty text for the authorities of the system.

    Raises:
        SettingError: it is not a path, or no certificate can be read from the file.

    Example:
        >>> ca_file_of("")
        ''
    """
    path = fspath(given) if isinstance(given, PathLike) else given
    if not isinstance(path, str):
        raise SettingError(f"ca_file is {as_given(given)}: {_FORM}, such as 'ca.pem'")
    trusting(path)
    return path


def trusting(ca_file: str) -> ssl.SSLContext:
    """The TLS settings of a client that checks the certificate and the host name of its server.

    Args:
        ca_file: a PEM file of the authorities to trust; empty: those of the system.

    Raises:
        SettingError: no certificate can be read from the file.
    """
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except ssl.SSLError:
        raise SettingError(f"ca_file is {ca_file!r}, which contains no certificate: {_FORM}") from None
    except OSError as error:
        raise SettingError(f"ca_file is {ca_file!r}, which cannot be read ({told_by(error)}): {_FORM}") from None


def certificate_fix(reason: str, option: str) -> str:
    """The likely fix of a refused certificate.

    Args:
        reason: OpenSSL's reason.
        option: where the user names the authorities to trust.

    Example:
        >>> certificate_fix("certificate has expired", "ca_file")
        'renew it'
    """
    if "expired" in reason:
        return "renew it"
    if any(words in reason for words in _OTHER_NAME):
        return "connect to a name that it certifies"
    return f"name the file of the authority that signed it ({option})"


def tls_failure(error: ssl.SSLError) -> LinkError:
    """The error for the user. Another attempt does not help if the certificate is refused."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        return LinkError(f"its certificate is not valid ({reason})", fatal=True, fix=certificate_fix(reason, "ca_file"))
    fact = f"no TLS connection ({error.reason or told_by(error)})"
    return LinkError(fact, fix="check whether the server uses TLS at this port")
