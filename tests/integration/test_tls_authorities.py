"""A client that is asked for a certificate hears whose are trusted, as Java's server says it."""

from __future__ import annotations

import logging
import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from certificates import Authority, Identity
from talk import Talk
from test_new_keys import TRUST_STORE, alter

from barnabas.client.admin.configs import Change
from barnabas.testing import Broker
from barnabas.transport import tls_authorities
from barnabas.transport.tls import TlsFiles, server_context

VERSIONS = ("-tls1_2", "-tls1_3")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Identity:
    return authority.issue("/O=Test/CN=localhost")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("others"), "Others")


def settings_of(server: Identity, trusted: Path, client_auth: str = "required") -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,STRICT://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,STRICT:SSL",
        "ssl.keystore.location": str(server.store),
        "ssl.truststore.location": str(trusted),
        "listener.name.strict.ssl.client.auth": client_auth,
    }


def named_by(broker: Broker, version: str = "-tls1_2") -> list[str]:
    """The authorities that a client is told of, one by one, as openssl prints them."""
    where = ("-connect", broker.address_of("STRICT"))
    done = subprocess.run(
        ["openssl", "s_client", *where, version], input="", capture_output=True, text=True, check=False, timeout=30
    )
    heading = "Acceptable client certificate CA names\n"
    if heading not in done.stdout:
        assert "CONNECTED" in done.stdout, done.stderr
        return []
    lines = done.stdout.partition(heading)[2].splitlines()
    end = next(at for at, line in enumerate(lines) if ": " in line)
    return [line.replace(" = ", "=") for line in lines[:end]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_auth", ["required", "requested"])
def test_whoever_is_asked_for_a_certificate_hears_which_authorities_are_trusted(
    authority: Authority, others: Authority, server: Identity, tmp_path: Path, version: str, client_auth: str
) -> None:
    both = tmp_path / "both.pem"
    both.write_text(f"# grüße\n{authority.certificate.read_text()}\n{others.certificate.read_text()}")
    with Broker(settings=settings_of(server, both, client_auth)) as broker:
        assert named_by(broker, version) == ["CN=Test CA", "CN=Others"]


def test_trust_that_is_given_as_text_is_named_too(authority: Authority, server: Identity) -> None:
    settings = settings_of(server, authority.certificate)
    del settings["ssl.truststore.location"]
    with Broker(settings={**settings, "ssl.truststore.certificates": authority.certificate.read_text()}) as broker:
        assert named_by(broker) == ["CN=Test CA"]


def test_a_certificate_that_is_trusted_for_itself_is_named(
    authority: Authority, server: Identity, tmp_path: Path
) -> None:
    """It is no authority; if it were left out, the one client that has it would show nothing."""
    own = tmp_path / "own.pem"
    words = ["-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "own.key", "-out", own, "-subj", "/CN=own"]
    plain = ["-addext", "basicConstraints=CA:FALSE"]
    subprocess.run(["openssl", "req", "-x509", *map(str, words), *plain], check=True, capture_output=True)
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(authority.certificate.read_text() + own.read_text())
    with Broker(settings=settings_of(server, trusted)) as broker:
        assert named_by(broker) == ["CN=Test CA", "CN=own"]


def test_who_is_named_changes_with_the_trust_while_the_broker_runs(
    authority: Authority, others: Authority, server: Identity, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted.pem"
    shutil.copy(authority.certificate, trusted)
    with Broker(settings=settings_of(server, trusted)) as broker:
        assert named_by(broker) == ["CN=Test CA"]
        assert alter(broker, Change(TRUST_STORE, str(others.certificate))) is None
        assert named_by(broker) == ["CN=Others"]
        shutil.copy(others.certificate, trusted)
        assert alter(broker, Change(TRUST_STORE, str(trusted))) is None
        assert named_by(broker, "-tls1_3") == ["CN=Others"]


def test_a_client_that_is_not_asked_for_a_certificate_hears_of_no_authority(
    authority: Authority, server: Identity
) -> None:
    with Broker(settings=settings_of(server, authority.certificate, "none")) as broker:
        assert named_by(broker) == []


def context_of(server: Identity, trusted: Path) -> ssl.SSLContext:
    return server_context(TlsFiles(key_store=str(server.store), trust_store=str(trusted)), client_auth="required")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KNOWN_VERSIONS", ()),
        ("_ssl", object()),
        ("NAMES_BYTES_MAX", 10),
        ("_CERTIFICATE", re.compile("$^")),
    ],
)
def test_where_it_is_not_certain_how_to_name_them_none_are_and_a_line_says_so(
    authority: Authority,
    server: Identity,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: object,
) -> None:
    tls_authorities._open_library.cache_clear()
    monkeypatch.setattr(tls_authorities, name, value)
    with caplog.at_level(logging.WARNING), Broker(settings=settings_of(server, authority.certificate)) as broker:
        assert named_by(broker) == []
        with Talk(broker.bootstrap_servers) as talk:
            talk.create("still")
    assert "authorities_not_named" in caplog.text
