"""The registry's door: users of a file and of the cluster, permissions by subject, TLS, and hostile requests."""

from __future__ import annotations

import io
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from certificates import Authority

from barnabas.cli.main import main
from barnabas.testing import Broker, RegistryProcess

SCHEMA = {"schema": '"string"'}
PERMISSIONS = """
[[allow]]
users = ["ann"]
subjects = ["orders-*"]
operations = ["read", "write"]
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with Broker(settings=settings) as running:
        yield running


def test_users_and_permissions_of_files_over_tls(broker: Broker, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.issue("/CN=registry")
    (tmp_path / "users").write_text("# users\nann = secret\nbob = hush\n")
    (tmp_path / "rules.toml").write_text(PERMISSIONS)
    options = ["--users", str(tmp_path / "users"), "--permissions", str(tmp_path / "rules.toml")]
    options += ["--tls-keystore", str(identity.store), "--group", "tls"]
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with RegistryProcess(broker.bootstrap_servers, options=options) as registry:
        assert registry.url.startswith("https://")
        url = registry.url.replace("127.0.0.1", "localhost")
        with httpx.Client(base_url=url, verify=context) as http:
            assert http.get("/subjects").status_code == 401
            ann, bob = ("ann", "secret"), ("bob", "hush")
            assert http.post("/subjects/orders-value/versions", json=SCHEMA, auth=ann).status_code == 200
            assert http.post("/subjects/orders-value/versions", json=SCHEMA, auth=("ann", "hush")).status_code == 401
            refused = http.post("/subjects/orders-value/versions", json=SCHEMA, auth=bob)
            assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
            assert http.delete("/subjects/orders-value", auth=ann).status_code == 403
            assert http.put("/config", json={"compatibility": "NONE"}, auth=ann).status_code == 403
            assert http.get("/subjects", auth=ann).json() == ["orders-value"]
            assert http.get("/subjects", auth=bob).json() == []
            assert http.get("/schemas/ids/1", auth=bob).status_code == 403


def test_the_clusters_users_authenticate(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    assert main(["user", "create", "carla", "-m", "SCRAM-SHA-256", "-b", broker.bootstrap_servers]) == 0
    login = [
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=SCRAM-SHA-256",
        "sasl.username=carla",
        "sasl.password=secret",
    ]
    options = ["--cluster-users", "--group", "sasl", *(word for each in login for word in ("-X", each))]
    with RegistryProcess(broker.address_of("SASL_PLAINTEXT"), options=options) as registry:
        assert httpx.get(f"{registry.url}/subjects").status_code == 401
        assert httpx.get(f"{registry.url}/subjects", auth=("carla", "wrong")).status_code == 401
        assert httpx.get(f"{registry.url}/subjects", auth=("nobody", "secret")).status_code == 401
        for _ in range(3):
            assert httpx.get(f"{registry.url}/subjects", auth=("carla", "secret")).status_code == 200


def test_hostile_schemas_get_a_clear_refusal_and_disturb_no_other_client(broker: Broker) -> None:
    deep = '{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000
    refusals = [
        ({"schema": deep}, 42201),
        ({"schema": "x" * 1_500_000}, 42209),
        ({"schema": '{"not":' * 10_000 + "{}" + "}" * 10_000, "schemaType": "JSON"}, 42201),
        ({"schema": '{"$ref":"http://127.0.0.1:1/x"}', "schemaType": "JSON"}, 42201),
        ({"schema": '{"$ref":"file:///etc/passwd"}', "schemaType": "JSON"}, 42201),
        ({"schema": 'syntax="proto3"; import "/etc/passwd";', "schemaType": "PROTOBUF"}, 42201),
        (
            {
                "schema": 'syntax="proto3"; import "a";',
                "schemaType": "PROTOBUF",
                "references": [{"name": "../../../tmp/x", "subject": "../../etc", "version": 1}],
            },
            42201,
        ),
        ({"schema": '"int"', "schemaType": "../../etc/passwd"}, 42201),
    ]
    with (
        RegistryProcess(broker.bootstrap_servers, options=["--group", "hostile"]) as registry,
        httpx.Client(base_url=registry.url, timeout=60) as http,
    ):
        http.post("/subjects/good/versions", json=SCHEMA).raise_for_status()
        stop, slowest = threading.Event(), [0.0]

        def read() -> None:
            with httpx.Client(base_url=registry.url, timeout=60) as other:
                while not stop.is_set():
                    began = time.monotonic()
                    assert other.get("/schemas/ids/1").status_code == 200
                    slowest[0] = max(slowest[0], time.monotonic() - began)

        reader = threading.Thread(target=read)
        reader.start()
        for body, code in refusals:
            answer = http.post("/subjects/bad/versions", content=json.dumps(body))
            assert answer.status_code == 422, answer.text[:300]
            assert answer.json()["error_code"] == code, answer.text[:300]
        for size in (5_000_000, 10_000_000):
            assert http.post("/subjects/bad/versions", content=b"x" * size).status_code == 413
        for path in ("/subjects/..%2F..%2Fetc%2Fpasswd/versions", "/subjects/%00/versions"):
            assert http.get(path).status_code == 404
        assert http.post("/subjects/%0a/versions", json=SCHEMA).json()["error_code"] == 42208
        assert http.get("/subjects", headers={"Host": "evil.example"}).status_code == 403
        stop.set()
        reader.join()
        assert slowest[0] < 10
        assert "bad" not in http.get("/subjects").json()


def test_a_busy_port_is_said_and_ends_the_process(broker: Broker) -> None:
    with RegistryProcess(broker.bootstrap_servers, options=["--group", "busy"]) as registry:
        port = registry.url.rpartition(":")[2]
        assert main(["registry", "-b", broker.bootstrap_servers, "--port", port]) == 75
