"""Altering configurations, the incremental and the old way."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.configs import APPEND, DELETE, SET, SUBTRACT, alter_configs, incremental_alter_configs
from barnabas.model import errors
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(cluster: Any, *resources: Any, validate_only: bool = False) -> list[int]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    decision = incremental_alter_configs(cluster.image, request, cluster.facts)
    cluster.last = cluster.decided(decision)
    for result, wanted in zip(decision.response.responses, resources, strict=True):
        assert (result.resource_type, result.resource_name) == (wanted.resource_type, wanted.resource_name)
        assert bool(result.error_code) == bool(result.error_message)
    return [result.error_code for result in decision.response.responses]


def test_values_are_set_and_deleted(cluster: Any) -> None:
    cluster.create("t", [0])
    assert alter(cluster, resource(TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "6"))) == [0]
    assert dict(cluster.image.configs.of_topic("t")) == {"retention.ms": "5", "segment.ms": "6"}
    assert alter(cluster, resource(TOPIC, "t", ("retention.ms", DELETE, None))) == [0]
    assert dict(cluster.image.configs.of_topic("t")) == {"segment.ms": "6"}
    assert alter(cluster, resource(TOPIC, "t", ("segment.ms", SET, "6"))) == [0]
    assert cluster.last == []


def test_lists_grow_from_their_default_and_shrink(cluster: Any) -> None:
    cluster.create("t", [0])
    assert alter(cluster, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact"))) == [0]
    assert cluster.image.configs.of_topic("t")["cleanup.policy"] == "delete,compact"
    assert alter(cluster, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact,delete"))) == [0]
    assert cluster.image.configs.of_topic("t")["cleanup.policy"] == "delete,compact"
    assert alter(cluster, resource(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))) == [0]
    assert cluster.image.configs.of_topic("t")["cleanup.policy"] == "compact"


def test_brokers_and_the_cluster_have_settings_of_their_own(cluster: Any) -> None:
    assert alter(
        cluster,
        resource(BROKER, "1", ("listener.name.x.ssl.keystore.location", SET, "/k")),
        resource(BROKER, "", ("message.max.bytes", SET, "77")),
        resource(GROUP, "g", ("consumer.session.timeout.ms", SET, "5")),
    ) == [0, 0, 0]
    assert dict(cluster.image.configs.of_broker(1)) == {"listener.name.x.ssl.keystore.location": "/k"}
    assert cluster.image.configs.of_cluster()["message.max.bytes"] == "77"


def test_brokers_keep_names_that_they_do_not_know(cluster: Any) -> None:
    assert alter(
        cluster, resource(BROKER, "1", ("no.such", SET, "5")), resource(BROKER, "", ("nor.this", SET, ""))
    ) == [
        0,
        0,
    ]
    assert dict(cluster.image.configs.of_broker(1)) == {"no.such": "5"}
    assert cluster.image.configs.of_cluster()["nor.this"] == ""


def test_a_broker_that_is_told_the_same_again_hears_it_again(cluster: Any) -> None:
    again = resource(BROKER, "1", ("listener.name.x.ssl.keystore.location", SET, "/k"))
    assert alter(cluster, again) == [0]
    assert alter(cluster, again) == [0]
    assert len(cluster.last) == 1


def test_validating_only_writes_nothing(cluster: Any) -> None:
    cluster.create("t", [0])
    assert alter(cluster, resource(TOPIC, "t", ("retention.ms", SET, "5")), validate_only=True) == [0]
    assert not cluster.image.configs.of_topic("t")


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (resource(TOPIC, "none", ("retention.ms", SET, "5")), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "", ("retention.ms", SET, "5")), errors.INVALID_REQUEST),
        (resource(TOPIC, "a b", ("retention.ms", SET, "5")), errors.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "t", ("no.such", SET, "5")), errors.INVALID_CONFIG),
        (resource(TOPIC, "t", ("retention.ms", SET, "x")), errors.INVALID_CONFIG),
        (resource(TOPIC, "t", ("retention.ms", APPEND, "5")), errors.INVALID_CONFIG),
        (resource(TOPIC, "t", ("no.such", SUBTRACT, "5")), errors.INVALID_CONFIG),
        (resource(TOPIC, "t", ("cleanup.policy", APPEND, "burn")), errors.INVALID_CONFIG),
        (resource(TOPIC, "t", ("retention.ms", SET, "1" * 32768)), errors.INVALID_CONFIG),
        (
            resource(TOPIC, "t", ("min.compaction.lag.ms", SET, str(2**63 - 1)), ("max.compaction.lag.ms", SET, "1")),
            errors.INVALID_CONFIG,
        ),
        (resource(TOPIC, "t", ("retention.ms", SET, None)), errors.INVALID_REQUEST),
        (resource(TOPIC, "t", ("retention.ms", 9, "5")), errors.INVALID_REQUEST),
        (resource(TOPIC, "t", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")), errors.INVALID_REQUEST),
        (resource(BROKER, "9", ("message.max.bytes", SET, "5")), errors.INVALID_REQUEST),
        (resource(BROKER, "-1", ("message.max.bytes", SET, "5")), errors.INVALID_REQUEST),
        (resource(BROKER, "x", ("message.max.bytes", SET, "5")), errors.INVALID_REQUEST),
        (resource(BROKER, "1", ("message.max.bytes", SET, "-5")), errors.INVALID_REQUEST),
        (resource(BROKER, "1", ("no.such", APPEND, "5")), errors.INVALID_CONFIG),
        (resource(BROKER, "1", ("listener.name.x.no.such", SET, "5")), errors.INVALID_REQUEST),
        (resource(BROKER, "1", ("log.dirs", SET, "/d")), errors.INVALID_REQUEST),
        (resource(BROKER, "", ("ssl.keystore.location", SET, "/k")), errors.INVALID_REQUEST),
        (resource(BROKER, "1", ("min.insync.replicas", SET, "2")), errors.INVALID_CONFIG),
        (resource(BROKER, "", ("min.insync.replicas", DELETE, None)), errors.INVALID_CONFIG),
        (resource(GROUP, "", ("consumer.session.timeout.ms", SET, "5")), errors.INVALID_REQUEST),
        (resource(GROUP, "g", ("consumer.session.timeout.ms", SET, "0")), errors.INVALID_CONFIG),
        (resource(GROUP, "g", ("no.such", SET, "0")), errors.INVALID_CONFIG),
        (resource(CLIENT_METRICS, "m", ("interval.ms", SET, "5")), errors.INVALID_REQUEST),
        (resource(BROKER_LOGGER, "1", ("root", SET, "DEBUG")), errors.INVALID_REQUEST),
        (resource(99, "x", ("a", SET, "5")), errors.INVALID_REQUEST),
        (resource(99, "x"), errors.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_is_said_and_harms_no_other(cluster: Any, wanted: Any, error: Any) -> None:
    cluster.create("t", [0])
    cluster.create("fine", [0])
    before = cluster.image.configs.of_topic("t")
    assert alter(cluster, wanted, resource(TOPIC, "fine", ("retention.ms", SET, "5"))) == [error.code, 0]
    assert cluster.image.configs.of_topic("t") == before
    assert len(cluster.last) == 1


def test_a_resource_named_twice_is_refused_twice(cluster: Any) -> None:
    cluster.create("t", [0])
    once = resource(TOPIC, "t", ("retention.ms", SET, "5"))
    assert alter(cluster, once, once) == [errors.INVALID_REQUEST.code] * 2
    assert cluster.last == []


def test_a_new_minimum_makes_nobody_eligible(cluster: Any) -> None:
    topic_id = cluster.create("t", [0, 1])
    cluster.create("u", [0, 1])
    cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[0], eligible_leader_replicas=[1]))
    assert alter(cluster, resource(TOPIC, "u", ("min.insync.replicas", SET, "2"))) == [0]
    assert cluster.partition("t").elr == (1,)
    assert alter(cluster, resource(BROKER, "", ("min.insync.replicas", SET, "2"))) == [0]
    assert cluster.partition("t").elr == ()


def test_the_old_way_forgets_what_it_does_not_name(cluster: Any) -> None:
    cluster.create("t", [0], configs={"retention.ms": "5", "segment.ms": "6"})

    def replace(name: str, configs: dict[str, str | None]) -> int:
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name=name,
                    configs=[
                        AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in configs.items()
                    ],
                )
            ]
        )
        decision = alter_configs(cluster.image, request, cluster.facts)
        cluster.decided(decision)
        return decision.response.responses[0].error_code

    assert replace("t", {"segment.ms": "7"}) == 0
    assert dict(cluster.image.configs.of_topic("t")) == {"segment.ms": "7"}
    assert replace("t", {"segment.ms": None}) == errors.INVALID_REQUEST.code
    assert replace("t", {"segment.ms": "x"}) == errors.INVALID_CONFIG.code
    assert replace("none", {"segment.ms": "7"}) == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert replace("t", {}) == 0
    assert not cluster.image.configs.of_topic("t")
