"""Our clients against Apache Kafka of several versions: the same tests that judge them against Barnabas.

Each version is started from Maven's jars, and the modules named here run in a process of their own with
`BARNABAS_TEST_BOOTSTRAP`: producing and consuming in every codec and acknowledgement, cut connections, groups whose
members come and go, static members, other clients' members, transactions with kills and hand-overs, admin, columns.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_nodes import VERSIONS, KafkaNode

ROOT = Path(__file__).parents[2]
MODULES = (
    "tests/integration/test_client.py",
    "tests/integration/test_client_admin.py",
    "tests/integration/test_client_arrow.py",
    "tests/integration/test_client_blocking.py",
    "tests/integration/test_client_groups.py",
    "tests/integration/test_client_topic.py",
    "tests/integration/test_client_transactions.py",
)
SECONDS_MAX = 900

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.mark.parametrize("version", VERSIONS)
def test_our_clients_pass_their_tests_with_apache_kafka(version: str) -> None:
    with KafkaNode(version) as node:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *MODULES]
        environment = {**os.environ, "BARNABAS_TEST_BOOTSTRAP": node.bootstrap, "BARNABAS_TEST_VERSION": version}
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX)
        assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}\n{node.log_end()}"
        print(f"Apache Kafka {node.version}: {ran.stdout.splitlines()[-1]}")
        assert "passed" in ran.stdout
