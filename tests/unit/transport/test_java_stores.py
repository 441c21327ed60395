"""Key and trust stores of Java are refused with the command that makes PEM of them, and that command works."""

from __future__ import annotations

import shlex
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.security import tls_context
from barnabas.model.settings import InvalidSetting
from barnabas.transport.java_stores import check_stores, kind_of

KEY, TRUST = "ssl.keystore", "ssl.truststore"


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({f"{KEY}.type": "JKS", f"{KEY}.location": "/k.store"}, "keytool -importkeystore -srckeystore /k.store"),
        ({f"{KEY}.location": "/k.jks"}, "&& openssl pkcs12 -in /k.p12 -nodes -out /k.pem`"),
        ({f"{KEY}.location": "/k.keystore", f"{KEY}.password": "x"}, "keytool -importkeystore"),
        ({f"{KEY}.type": "pkcs12", f"{KEY}.location": "/k.store"}, "`openssl pkcs12 -in /k.store -nodes -out /k.pem`"),
        ({f"{KEY}.location": "/k.pfx"}, "`openssl pkcs12 -in /k.pfx -nodes -out /k.pem`"),
        ({f"{TRUST}.type": "JKS", f"{TRUST}.location": "/t.jks"}, "`keytool -list -rfc -keystore /t.jks > /t.pem`"),
        ({f"{TRUST}.location": "/t.p12"}, "`openssl pkcs12 -in /t.p12 -nokeys -out /t.pem`"),
        (
            {f"listener.name.ssl.{TRUST}.location": "/t.p12"},
            "ssl.ssl.truststore.location=/t.p12 is a PKCS12",
        ),
    ],
)
def test_a_store_of_java_is_refused_with_the_command_that_converts_it(given: dict[str, str], command: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        BrokerSettings.of({"listeners": "SSL://:9093", **given})
    assert command in str(refused.value)
    assert ".type=PEM" in str(refused.value)


@pytest.mark.parametrize("given", [{}, {f"{KEY}.type": "PEM", f"{KEY}.location": "/k.jks"}, {f"{KEY}.location": "/k"}])
def test_other_stores_are_not_judged_by_their_names(given: dict[str, str]) -> None:
    check_stores(given)


def test_stores_are_known_by_their_first_bytes() -> None:
    assert kind_of(bytes.fromhex("feedfeed0000")) == "JKS"
    assert kind_of(bytes.fromhex("3082")) == "PKCS12"
    assert kind_of(b"-----BEGIN") is None
    assert kind_of(b"") is None


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.skipif(not (shutil.which("keytool") and shutil.which("openssl")), reason="needs keytool and openssl")
def test_the_command_makes_a_file_that_can_be_used(tmp_path: Path, kind: str) -> None:
    store = tmp_path / "broker.store"  # a name that tells nothing, so the file itself is looked at
    words = (
        f"keytool -genkeypair -alias broker -keyalg EC -storetype {kind} -keystore {store} -storepass changeit "
        "-keypass changeit -dname CN=localhost -validity 10"
    )
    subprocess.run(shlex.split(words), check=True, capture_output=True)
    given = {"listeners": "SSL://:9093", f"{KEY}.location": str(store)}
    with pytest.raises(InvalidSetting, match=f"it is a {kind} store") as refused:
        tls_context(BrokerSettings.of(given).security.listeners["SSL"])
    command = str(refused.value).split("`")[1]
    # The passwords that both programs would ask for.
    command = command.replace("-importkeystore", "-importkeystore -srcstorepass changeit -deststorepass changeit")
    command = command.replace("openssl pkcs12", "openssl pkcs12 -passin pass:changeit")
    subprocess.run(command, shell=True, check=True, capture_output=True)
    given[f"{KEY}.location"] = str(store.with_suffix(".pem"))
    context = tls_context(BrokerSettings.of(given).security.listeners["SSL"])
    assert isinstance(context, ssl.SSLContext)
