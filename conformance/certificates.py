"""Certificates for a leg whose clients speak TLS: an authority, and what it signs, in every form that a test may want.

Made with openssl anew each time, so no key lies in the repository. The keys are RSA, encrypted with a password, as the
tests of librdkafka expect them. Called by `conformance.security`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conformance.fetched import run_quietly

KEY_PASSWORD = "12345678"
_DAYS = "2"
_SECRET_OUT = ("-passout", f"pass:{KEY_PASSWORD}")
_SECRET_IN = ("-passin", f"pass:{KEY_PASSWORD}")


@dataclass(frozen=True, slots=True)
class Identity:
    """The certificate of `certificate` is followed by that of the authority; `store` is that after its key."""

    certificate: Path
    certificate_der: Path
    key: Path
    key_der: Path
    bundle: Path
    store: Path


class Authority:
    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self.certificate, self.certificate_der, self._key = (
            directory / f"{name}.{end}" for end in ("pem", "der", "key")
        )
        _make_key(self._key)
        subject = ("-subj", f"/C=NN/O=Test/CN={name}", "-days", _DAYS)
        _openssl("req", "-x509", "-key", str(self._key), *_SECRET_IN, *subject, "-out", str(self.certificate))
        _openssl("x509", "-in", str(self.certificate), "-outform", "der", "-out", str(self.certificate_der))

    def issue(self, name: str) -> Identity:
        """A certificate for this name, good for the loopback address."""
        request, extensions, key, certificate, der, key_der, bundle, store = (
            self._directory / f"{name}.{end}"
            for end in ("csr", "ext", "key", "pem", "der", "key.der", "pfx", "store.pem")
        )
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _make_key(key)
        subject = ("-subj", f"/C=NN/O=Test/CN={name}")
        _openssl("req", "-new", "-key", str(key), *_SECRET_IN, *subject, "-out", str(request))
        signer = ("-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial", *_SECRET_IN)
        asked = ("-req", "-in", str(request), "-extfile", str(extensions), "-days", _DAYS)
        _openssl("x509", *asked, *signer, "-out", str(certificate))
        _openssl("x509", "-in", str(certificate), "-outform", "der", "-out", str(der))
        certificate.write_text(certificate.read_text() + self.certificate.read_text())
        _openssl("rsa", "-in", str(key), *_SECRET_IN, "-outform", "der", "-out", str(key_der))
        both = ("-inkey", str(key), "-in", str(certificate))
        _openssl("pkcs12", "-export", *both, *_SECRET_IN, *_SECRET_OUT, "-out", str(bundle))
        # Kafka cannot read what openssl makes by default (PBES2): Java has no `SecretKeyFactory` of that name.
        old_cipher = ("-v1", "PBE-SHA1-3DES")
        _openssl("pkcs8", "-topk8", *old_cipher, "-in", str(key), *_SECRET_IN, *_SECRET_OUT, "-out", str(store))
        store.write_text(store.read_text() + certificate.read_text())
        return Identity(certificate, der, key, key_der, bundle, store)


def _make_key(path: Path) -> None:
    # `openssl req` would encrypt it with triple DES, which Java does not read: Kafka would not start.
    how = ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-aes-256-cbc", "-pass", f"pass:{KEY_PASSWORD}")
    _openssl("genpkey", *how, "-out", str(path))


def _openssl(*words: str) -> None:
    run_quietly(["openssl", *words])
