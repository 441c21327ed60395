"""Whom a client trusts."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from barnabas.model.settings import InvalidSetting
from barnabas.transport.tls import TlsFiles, client_context


@pytest.fixture
def two_authorities() -> tuple[str, str]:
    """Any two of those that come with the system, as PEM."""
    known = ssl.create_default_context().get_ca_certs(binary_form=True)
    if len(known) < 2:
        pytest.skip("this system trusts nobody")
    return ssl.DER_cert_to_PEM_cert(known[0]), ssl.DER_cert_to_PEM_cert(known[1])


def test_with_a_trust_store_nobody_else_is_trusted(
    two_authorities: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Java: who names one authority does not mean all those of the system too."""
    ours, others = (tmp_path / "ours.pem"), (tmp_path / "others.pem")
    ours.write_text(two_authorities[0])
    others.write_text(two_authorities[1])
    monkeypatch.setenv("SSL_CERT_FILE", str(others))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    for files in (TlsFiles(trust_store=str(ours)), TlsFiles(trusted_certificates=two_authorities[0])):
        trusted = client_context(files)
        assert [ssl.DER_cert_to_PEM_cert(each) for each in trusted.get_ca_certs(binary_form=True)] == [
            two_authorities[0]
        ]
        assert trusted.verify_mode is ssl.CERT_REQUIRED
        assert trusted.check_hostname
    system = client_context(TlsFiles())
    assert [ssl.DER_cert_to_PEM_cert(each) for each in system.get_ca_certs(binary_form=True)] == [two_authorities[1]]


@pytest.mark.parametrize("half", [TlsFiles(key="a key"), TlsFiles(certificate_chain="certificates")])
def test_half_of_an_identity_is_refused(half: TlsFiles) -> None:
    """Certificates without their key would not be shown to anybody, and nobody would be told."""
    with pytest.raises(InvalidSetting, match=r"ssl\.keystore\.key and ssl\.keystore\.certificate\.chain"):
        client_context(half)
