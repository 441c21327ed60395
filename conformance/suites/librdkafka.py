"""librdkafka's own tests: which of them there are, what broker each wants, and how its clients sign in there.

Tests that use no broker are left out. How one is run, and what its output means, is in `librdkafka_runner.py`. Called
through the table of suites.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from bench.peers import Peer
from bench.probe import offered_apis
from tools.cache import cache_directory

from conformance import security
from conformance.cluster import Cluster
from conformance.librdkafka_build import librdkafka
from conformance.librdkafka_runner import PARTS, SHARE, Runner, kafka_scripts
from conformance.outcome import Leg, Outcome, Verdict

NO_SHARE_GROUPS = "share groups: Barnabas has none"
KAFKA_VERSION = "4.2.0"  # the newest that the tests know of; share groups are tested from here on
_SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "broker.rack": "RACK1",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",  # clients are anonymous, and the tests deny them things
    "allow.everyone.if.no.acl.found": "true",
}
_SCENARIOS: dict[str, dict[str, str]] = {"default": {}, "noautocreate": {"auto.create.topics.enable": "false"}}
# These count rebalances, and count on members that come together to meet in the first one.
_WITH_DELAY = {"0102_static_group_rebalance", "0118_commit_rebalance"}
_DELAYED = {**_SETTINGS, "group.initial.rebalance.delay.ms": "3000"}
# These make topics with three replicas.
_WITH_REPLICAS = {
    "0098_consumer_txn",
    "0101_fetch_from_follower",
    "0103_transactions",
    "0107_topic_recreate",
    "0111_delay_create_topics",
}
# Nothing is denied there. Kafka's controllers, which are anonymous to each other too, would need a user of their own.
_ONE_ONLY = {"broker.rack", "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found"}
_ON_THREE = {name: value for name, value in _SETTINGS.items() if name not in _ONE_ONLY}
# These need clients that sign in, each in its own way; what is in brackets makes a row of its own.
_SIGN_IN = {
    security.certificates: ["0097_ssl_verify"],
    security.plain: ["0135_sasl_credentials", f"0135_sasl_credentials{SHARE}", "0142_reauthentication"],
    security.scram_over_tls: [
        "0135_sasl_credentials (SCRAM-SHA-512 over TLS)",
        "0142_reauthentication (SCRAM-SHA-512 over TLS)",
    ],
    security.tokens: [
        "0126_oauthbearer_oidc",
        f"0126_oauthbearer_oidc{SHARE}",
        "0142_reauthentication (OAUTHBEARER)",
        f"0142_reauthentication{SHARE}",
    ],
}
_SIGNED_IN = {test for tests in _SIGN_IN.values() for test in tests}
# Kafka's default, said to both: a client that changes its mind faster than it is answered trips over itself.
_KAFKA_PACE = {"group.consumer.assignment.interval.ms": "1000"}
_SHARE_GROUP_HEARTBEAT = 76
_IN_A_GROUP = re.compile(r"subscribe\(|KafkaConsumer::create")
# A machine that does other things besides is no reason to fail; a hang still is.
_TIMEOUT_MULTIPLIER = 2
_TABLE_ENTRY = re.compile(r"_TEST\(\s*(\d{4}_\w+),(.*?)\)(?=,\s*(?:_TEST|#|\{NULL|/\*))", re.DOTALL)
_SCENARIO = re.compile(r'\.scenario\s*=\s*"([\w,]+)"')
_LEFT_OUT = ("TEST_F_LOCAL", "TEST_F_MANUAL", "TEST_F_KNOWN_ISSUE,", "TEST_F_KNOWN_ISSUE)")


def legs() -> list[Leg]:
    """One leg per scenario, one for tests that need a delay, and those on three brokers, with and without sign-in."""
    chosen = [(test, wanted) for test, wanted in _broker_tests(librdkafka()) if test not in _SIGNED_IN]
    found = [
        Leg(
            {**_SETTINGS, **settings},
            [test for test, wanted in chosen if wanted == scenario and test not in _WITH_DELAY | _WITH_REPLICAS],
            partial(_run, scenario=scenario),
        )
        for scenario, settings in _SCENARIOS.items()
    ]
    found.append(Leg(_DELAYED, sorted(_WITH_DELAY), partial(_run, scenario="default")))
    for scenario, settings in _SCENARIOS.items():
        replicated = [test for test, wanted in chosen if wanted == scenario and test in _WITH_REPLICAS]
        found.append(Leg({**_ON_THREE, **settings}, replicated, partial(_run, scenario=scenario), is_cluster=True))
    signed_in = partial(_run, scenario="default")
    return [*found, *(Leg(_ON_THREE, tests, signed_in, True, how) for how, tests in _SIGN_IN.items())]


def group_legs() -> list[Leg]:
    """The tests whose clients are in groups, once more, with the protocol of KIP-848."""
    root = librdkafka()
    tests = [
        (test, wanted)
        for test, wanted in _broker_tests(root)
        if test not in _SIGNED_IN and "share" not in test and _has_a_group(root / "tests", test[:4])
    ]
    legs = []
    for scenario, more in _SCENARIOS.items():
        run = partial(_run, protocol="consumer", scenario=scenario)
        on_one = [test for test, wanted in tests if wanted == scenario and test not in _WITH_REPLICAS]
        on_three = [test for test, wanted in tests if wanted == scenario and test in _WITH_REPLICAS]
        legs.append(Leg({**_SETTINGS, **_KAFKA_PACE, **more}, on_one, run))
        legs.append(Leg({**_ON_THREE, **_KAFKA_PACE, **more}, on_three, run, is_cluster=True))
    return legs


def _has_a_group(directory: Path, number: str) -> bool:
    return any(_IN_A_GROUP.search(source.read_text()) for source in directory.glob(f"{number}-*.c*"))


def _broker_tests(root: Path) -> Iterator[tuple[str, str]]:
    """The tests that need a broker, each with the scenario it belongs to."""
    source = (root / "tests" / "test.c").read_text()
    table = source[source.index("struct test tests[]") : source.index("{NULL}", source.index("struct test tests[]"))]
    for test, rest in _TABLE_ENTRY.findall(table + "{NULL}"):
        if not any(flag in f"{rest})" for flag in _LEFT_OUT):
            found = _SCENARIO.search(rest)
            yield test, found[1].split(",")[0] if found else "default"


def without_share_groups(peer: Peer, tests: Sequence[str]) -> list[str]:
    """Of these tests, those about share groups, if the broker says that it has none: they would run out of time."""
    about = [test for test in tests if "share" in test]
    host, port = peer.bootstrap.split(",")[0].rsplit(":", 1)
    return about if about and _SHARE_GROUP_HEARTBEAT not in offered_apis(host, int(port)) else []


def _run(peer: Peer, tests: Sequence[str], *, scenario: str, protocol: str = "classic") -> Iterator[Outcome]:
    left_out = without_share_groups(peer, tests)
    yield from (Outcome(test, Verdict.SKIP, NO_SHARE_GROUPS) for test in left_out)
    tests = [test for test in tests if test not in left_out]
    how = peer.security if isinstance(peer, Cluster) else None
    configuration = peer.directory / "test.conf"
    lines = {
        "metadata.broker.list": peer.client_bootstrap if isinstance(peer, Cluster) else peer.bootstrap,
        "test.topic.random": "true",
        "test.timeout.multiplier": str(_TIMEOUT_MULTIPLIER),
        **(how.client_settings if how is not None else {}),
    }
    configuration.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    root = librdkafka()
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{root / 'src'}:{root / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(configuration),
        "TEST_KAFKA_VERSION": KAFKA_VERSION,
        "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
        "KAFKA_PATH": str(kafka_scripts()),
        "BROKERS": peer.bootstrap,
        **(how.environment if how is not None else {}),
    }
    logs = cache_directory("conformance", f"librdkafka-{protocol}-{peer.name}")
    runner = Runner(root / "tests", scenario, environment, logs)
    for number, same_number in groupby(tests, key=lambda test: test[:4]):
        names = list(same_number)
        whole = [name for name in names if name not in PARTS and " (" not in name]
        if whole:
            yield from runner.outcomes(number, whole)
        for name in names:
            if name not in whole:
                yield runner.outcome_of_parts(name)
    for left in (root / "tests").glob("stats_*.json"):
        left.unlink()
