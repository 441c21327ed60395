"""A certificate authority for a test: made anew each time with openssl, so no key lies in the repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Identity(NamedTuple):
    certificate: Path
    key: Path
    store: Path  # both in one file, as ssl.keystore.location wants it

    @property
    def chain(self) -> str:
        return self.certificate.read_text()


class Authority:
    def __init__(self, directory: Path, name: str = "Test CA") -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.certificate = directory / "ca.pem"
        self._key = directory / "ca.key"
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        extensions = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
        _openssl("req", "-x509", *new_key, "-keyout", self._key, "-out", self.certificate, "-days", "2",
                 "-subj", f"/CN={name}", *extensions)  # fmt: skip

    def issue(self, subject: str, *, password: str | None = None, days: int = 2) -> Identity:
        """A certificate for a subject like ``/O=Test/CN=broker``, valid for the loopback address."""
        name = subject.rpartition("=")[2]
        certificate, key, request = (self._directory / f"{name}.{ending}" for ending in ("pem", "key", "csr"))
        secret = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", *secret, "-keyout", key,
                 "-out", request, "-subj", subject)  # fmt: skip
        extensions = self._directory / f"{name}.ext"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
                 "-days", str(days), "-extfile", extensions, "-out", certificate)  # fmt: skip
        store = self._directory / f"{name}.store.pem"
        store.write_text(key.read_text() + certificate.read_text())
        return Identity(certificate, key, store)


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
