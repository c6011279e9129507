"""Certificates of a test's own authority."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Certificate:
    """The PEM files of a server.

    Attributes:
        chain: its certificate.
        key: its private key.
    """

    chain: Path
    key: Path


class Authority:
    """Signs certificates.

    Attributes:
        file: its own certificate, which clients trust.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._authority = trustme.CA()
        self.file = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(self.file)

    def certificate(self, *names: str, days: int = 30) -> Certificate:
        """A certificate of these host names that ends in so many days; negative: it has expired."""
        signed = self._authority.issue_cert(*names, not_after=dt.datetime.now(dt.UTC) + dt.timedelta(days=days))
        stem = f"{names[0]}-{days}"
        chain, key = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        signed.private_key_pem.write_to_path(key)
        signed.cert_chain_pems[0].write_to_path(chain)
        return Certificate(chain, key)
