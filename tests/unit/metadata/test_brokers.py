"""Brokers come, send heartbeats and go; their partitions follow."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from barnabas.metadata.features_image import SUPPORTED_FEATURES
from barnabas.metadata.heartbeats import broker_heartbeat, fence_expired
from barnabas.metadata.partition_image import LOST_DIRECTORY
from barnabas.metadata.producer_ids import allocate_producer_ids
from barnabas.metadata.registrations import register_broker, register_controller, unregister_broker
from barnabas.metadata.sessions import BrokerSessions, Session
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

FEATURES = [
    BrokerRegistrationRequest.Feature(
        name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest
    )
    for name, levels in SUPPORTED_FEATURES.items()
]


def registration(cluster: Any, broker: int, **more: Any) -> Any:
    values = {
        "broker_id": broker,
        "cluster_id": "cluster",
        "incarnation_id": cluster.uuid(7000 + broker),
        "features": FEATURES,
        "log_dirs": [cluster.directory(broker)],
        **more,
    }
    return BrokerRegistrationRequest(**values)


def register(cluster: Any, request: Any, *, has_session: bool = False) -> int:
    decision = register_broker(cluster.image, request, cluster.facts, has_session=has_session)
    cluster.decided(decision)
    return decision.response.broker_epoch


def heartbeat(cluster: Any, broker: int, sessions: BrokerSessions | None = None, **more: Any) -> Any:
    values = {
        "broker_id": broker,
        "broker_epoch": cluster.image.brokers[broker].epoch,
        "current_metadata_offset": cluster.image.offset,
        **more,
    }
    sessions = sessions or BrokerSessions(timeout_ms=9000)
    decision = broker_heartbeat(cluster.image, BrokerHeartbeatRequest(**values), cluster.facts, sessions=sessions)
    cluster.decided(decision)
    return decision.response


def refused(error: WireError) -> Any:
    return pytest.raises(ApiError, match=error.name)


def test_a_broker_registers_fenced_and_is_let_in_when_it_has_caught_up(cluster: Any) -> None:
    offset = cluster.image.offset
    assert register(cluster, registration(cluster, 5, rack="r")) == offset + 1
    broker = cluster.image.brokers[5]
    assert (broker.is_fenced, broker.rack, broker.epoch, broker.registered_offset) == (
        True,
        "r",
        offset + 1,
        offset + 1,
    )
    behind = heartbeat(cluster, 5, current_metadata_offset=offset)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    wants_to_wait = heartbeat(cluster, 5, want_fence=True)
    assert (wants_to_wait.is_caught_up, wants_to_wait.is_fenced) == (True, True)
    let_in = heartbeat(cluster, 5)
    assert (let_in.is_caught_up, let_in.is_fenced, let_in.should_shut_down) == (True, False, False)
    assert cluster.image.is_active(5)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"cluster_id": "other"}, errors.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, errors.INVALID_REGISTRATION),
        ({"log_dirs": [LOST_DIRECTORY]}, errors.INVALID_REGISTRATION),
        ({"is_migrating_zk_broker": True}, errors.BROKER_ID_NOT_REGISTERED),
        ({"features": []}, errors.UNSUPPORTED_VERSION),
        ({"features": FEATURES[1:]}, errors.INVALID_REGISTRATION),
        ({"features": FEATURES[:3]}, errors.UNSUPPORTED_VERSION),
        (
            {
                "features": [
                    BrokerRegistrationRequest.Feature(
                        name="metadata.version", min_supported_version=7, max_supported_version=29
                    ),
                    *FEATURES[1:],
                ]
            },
            errors.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_a_broker_that_does_not_fit_is_refused(cluster: Any, more: Any, error: WireError) -> None:
    with refused(error):
        register(cluster, registration(cluster, 5, **more))


def test_directories_belong_to_one_broker_and_are_named_once(cluster: Any) -> None:
    with refused(errors.INVALID_REGISTRATION):
        register(cluster, registration(cluster, 5, log_dirs=[cluster.directory(1)]))
    with refused(errors.INVALID_REGISTRATION):
        register(cluster, registration(cluster, 5, log_dirs=[cluster.directory(5)] * 2))


def test_a_second_process_waits_until_the_first_is_silent(cluster: Any) -> None:
    with refused(errors.DUPLICATE_BROKER_REGISTRATION):
        register(cluster, registration(cluster, 1), has_session=True)
    epoch = register(cluster, registration(cluster, 1))
    assert epoch == cluster.image.offset != 101
    # The same process may register again, say with other listeners, and keeps its epoch and its state.
    heartbeat(cluster, 1)
    assert register(cluster, registration(cluster, 1, rack="new"), has_session=True) == epoch
    assert not cluster.image.brokers[1].is_fenced
    assert cluster.image.brokers[1].rack == "new"


def test_a_broker_that_ended_cleanly_stays_eligible_and_one_that_crashed_does_not(cluster: Any) -> None:
    for previous_epoch, elr in ((101, (1,)), (-1, ())):
        cluster.apply(cluster.broker_record(1))
        cluster.create(f"t{previous_epoch}", [1])
        register(cluster, registration(cluster, 1, previous_broker_epoch=previous_epoch))
        partition = cluster.partition(f"t{previous_epoch}")
        assert (partition.isr, partition.elr, partition.leader) == ((), elr, -1)
        assert partition.last_known_elr == (1,)
        heartbeat(cluster, 1)
        partition = cluster.partition(f"t{previous_epoch}")
        assert (partition.isr, partition.leader, partition.elr) == ((1,), 1, ())
        assert bool(partition.leader_recovery_state) is (not elr)


def test_a_silent_broker_leads_nothing_and_leads_again_when_it_is_back(cluster: Any) -> None:
    cluster.create("pair", [0, 1])
    cluster.create("alone", [0])
    cluster.create("other", [2, 0])
    decision = fence_expired(cluster.image, expired=Session(0, 100), facts=cluster.facts)
    cluster.decided(decision)
    assert isinstance(decision.records[-1], r.BrokerRegistrationChangeRecord)
    assert cluster.image.brokers[0].is_fenced
    assert (cluster.partition("pair").leader, cluster.partition("pair").isr) == (1, (1,))
    assert (cluster.partition("alone").leader, cluster.partition("alone").elr) == (-1, (0,))
    assert (cluster.partition("other").leader, cluster.partition("other").leader_epoch) == (2, 0)
    assert not cluster.image.topics.index.has_leaderships(0)
    # Once is enough, and only for the life that was meant.
    assert fence_expired(cluster.image, expired=Session(0, 100), facts=cluster.facts).records == []
    assert fence_expired(cluster.image, expired=Session(1, 55), facts=cluster.facts).records == []
    assert fence_expired(cluster.image, expired=Session(9, 55), facts=cluster.facts).records == []
    heartbeat(cluster, 0)
    assert (cluster.partition("alone").leader, cluster.partition("alone").isr) == (0, (0,))
    assert cluster.partition("pair").leader == 1


def test_a_controlled_shutdown_moves_leaders_first_and_waits_until_all_know(cluster: Any) -> None:
    cluster.create("t", [0, 1])
    sessions = BrokerSessions(timeout_ms=9000)
    sessions.has_read(1, cluster.image.offset)
    sessions.has_read(2, cluster.image.offset)
    answer = heartbeat(cluster, 0, sessions, want_shut_down=True)
    assert (answer.is_fenced, answer.should_shut_down) == (False, False)
    assert cluster.image.brokers[0].in_controlled_shutdown
    assert cluster.partition("t").leader == 1
    sessions.begin_shutdown(0, cluster.image.offset)
    assert not heartbeat(cluster, 0, sessions, want_shut_down=True).should_shut_down
    sessions.has_read(1, cluster.image.offset)
    assert not heartbeat(cluster, 0, sessions, want_shut_down=True).should_shut_down
    sessions.has_read(2, cluster.image.offset)
    answer = heartbeat(cluster, 0, sessions, want_shut_down=True)
    assert (answer.is_fenced, answer.should_shut_down) == (True, True)
    assert cluster.image.brokers[0].is_fenced


def test_the_last_replica_holds_a_shutdown_up_for_nobody(cluster: Any) -> None:
    cluster.create("t", [0])
    sessions = BrokerSessions(timeout_ms=9000)
    assert not heartbeat(cluster, 0, sessions, want_shut_down=True).should_shut_down
    for other in (1, 2):
        sessions.has_read(other, cluster.image.offset)
    assert heartbeat(cluster, 0, sessions, want_shut_down=True).should_shut_down
    assert cluster.partition("t").elr == (0,)


def test_who_leads_nothing_or_is_fenced_may_go_at_once(cluster: Any) -> None:
    assert heartbeat(cluster, 0, want_shut_down=True).should_shut_down
    assert heartbeat(cluster, 0, want_shut_down=True).should_shut_down
    assert heartbeat(cluster, 1, want_fence=True, want_shut_down=True).should_shut_down
    assert heartbeat(cluster, 2, want_fence=True).is_fenced


def test_a_lost_directory_takes_its_partitions_with_it(cluster: Any) -> None:
    good, bad = cluster.directory(50), cluster.directory(51)
    register(cluster, registration(cluster, 5, log_dirs=[good, bad]))
    heartbeat(cluster, 5)
    on_good = cluster.create("good", [5, 0])
    on_bad = cluster.create("bad", [5, 0])
    for topic_id, where in ((on_good, good), (on_bad, bad)):
        cluster.apply(
            r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, directories=[where, cluster.directory(0)])
        )
    heartbeat(cluster, 5, offline_log_dirs=[bad])
    assert cluster.partition("good").leader == 5
    assert (cluster.partition("bad").leader, cluster.partition("bad").isr) == (0, (0,))
    assert cluster.image.brokers[5].directories == (good,)
    heartbeat(cluster, 5, offline_log_dirs=[bad], cordoned_log_dirs=[good])
    assert cluster.image.brokers[5].cordoned_directories == (good,)


def test_an_earlier_life_sends_no_heartbeats(cluster: Any) -> None:
    with refused(errors.STALE_BROKER_EPOCH):
        heartbeat(cluster, 0, broker_epoch=1)


def test_an_unregistered_broker_is_gone(cluster: Any) -> None:
    cluster.create("t", [0, 1])
    cluster.decided(unregister_broker(cluster.image, UnregisterBrokerRequest(broker_id=0), cluster.facts))
    assert 0 not in cluster.image.brokers
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (1, (1,))
    with refused(errors.BROKER_ID_NOT_REGISTERED):
        unregister_broker(cluster.image, UnregisterBrokerRequest(broker_id=0), cluster.facts)


def test_a_controller_registers(cluster: Any) -> None:
    request = ControllerRegistrationRequest(
        controller_id=30,
        incarnation_id=cluster.uuid(4),
        listeners=[ControllerRegistrationRequest.Listener(name="C", host="h", port=9)],
    )
    cluster.decided(register_controller(cluster.image, request))
    assert cluster.image.controllers[30].end_points[0].port == 9


def test_producer_ids_come_in_blocks_that_never_repeat(cluster: Any) -> None:
    starts = []
    for broker in (0, 1, 0):
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=100 + broker)
        decision = allocate_producer_ids(cluster.image, request)
        cluster.decided(decision)
        starts.append((decision.response.producer_id_start, decision.response.producer_id_len))
    assert starts == [(0, 1000), (1000, 1000), (2000, 1000)]
    with refused(errors.STALE_BROKER_EPOCH):
        allocate_producer_ids(cluster.image, AllocateProducerIdsRequest(broker_id=0, broker_epoch=1))
    cluster.apply(r.ProducerIdsRecord(next_producer_id=2**63 - 1))
    with refused(errors.UNKNOWN_SERVER_ERROR):
        allocate_producer_ids(cluster.image, AllocateProducerIdsRequest(broker_id=0, broker_epoch=100))


def test_sessions_end_in_the_order_of_silence() -> None:
    sessions = BrokerSessions(timeout_ms=100)
    sessions.touch(1, 11, now_ms=0)
    sessions.touch(2, 22, now_ms=10)
    sessions.touch(1, 11, now_ms=20)
    assert sessions.next_deadline_ms == 111
    assert sessions.is_valid(2, 22, now_ms=110)
    assert not sessions.is_valid(2, 22, now_ms=111)
    assert not sessions.is_valid(2, 23, now_ms=11)
    assert sessions.take_expired(now_ms=110) is None
    assert sessions.take_expired(now_ms=200) == Session(2, 22)
    assert sessions.take_expired(now_ms=200) == Session(1, 11)
    assert sessions.take_expired(now_ms=200) is None
    assert sessions.next_deadline_ms is None


def test_a_new_controller_gives_everybody_a_full_session(cluster: Any) -> None:
    cluster.apply(r.FenceBrokerRecord(id=2, epoch=102))
    sessions = BrokerSessions(timeout_ms=100)
    sessions.touch(9, 9, now_ms=0)
    sessions.start(cluster.image, now_ms=1000)
    assert sessions.is_valid(0, 100, now_ms=1100)
    assert not sessions.is_valid(2, 102, now_ms=1000)
    assert not sessions.is_valid(9, 9, now_ms=1000)
    sessions.forget(0)
    assert not sessions.is_valid(0, 100, now_ms=1000)


def elections(cluster: Any, request: Any) -> dict[tuple[str, int], int]:
    decision = elect_leaders(cluster.image, request, cluster.facts)
    cluster.decided(decision)
    return {
        (topic.topic, partition.partition_id): partition.error_code
        for topic in decision.response.replica_election_results
        for partition in topic.partition_result
    }


def asked(kind: int, **topics: list[int]) -> Any:
    return ElectLeadersRequest(
        election_type=kind,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in topics.items()
        ],
    )


def test_preferred_leaders_are_elected_on_request(cluster: Any) -> None:
    cluster.create("t", [0, 1], [1, 0], [2, 1])
    cluster.decided(fence_expired(cluster.image, expired=Session(0, 100), facts=cluster.facts))
    cluster.decided(fence_expired(cluster.image, expired=Session(2, 102), facts=cluster.facts))
    unavailable = errors.PREFERRED_LEADER_NOT_AVAILABLE.code
    assert elections(cluster, asked(0, t=[0, 1, 2, 3], none=[0])) == {
        ("t", 0): unavailable,
        ("t", 1): errors.ELECTION_NOT_NEEDED.code,
        ("t", 2): unavailable,
        ("t", 3): errors.UNKNOWN_TOPIC_OR_PARTITION.code,
        ("none", 0): errors.UNKNOWN_TOPIC_OR_PARTITION.code,
    }
    heartbeat(cluster, 0)
    topic_id = cluster.image.topic("t").id
    cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[1, 0]))
    assert elections(cluster, ElectLeadersRequest(election_type=0, topic_partitions=None)) == {
        ("t", 0): 0,
        ("t", 2): unavailable,
    }
    assert cluster.partition("t", 0).leader == 0
    with refused(errors.INVALID_REQUEST):
        elections(cluster, asked(7))


def test_an_unclean_election_is_held_only_where_it_is_asked_for_or_allowed(cluster: Any) -> None:
    for name, configs in (("asked", {}), ("allowed", {"unclean.leader.election.enable": "true"}), ("never", {})):
        topic_id = cluster.create(name, [0, 1], configs=configs)
        cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[0]))
    cluster.apply(r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    cluster.apply(r.FenceBrokerRecord(id=0, epoch=100))
    for name in ("asked", "allowed", "never"):
        cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=cluster.image.topic(name).id, leader=-1))
    cluster.decided(elect_unclean_leaders(cluster.image, cluster.facts))
    assert [cluster.partition(name).leader for name in ("asked", "allowed", "never")] == [-1, 1, -1]
    assert elections(cluster, asked(1, asked=[0], allowed=[0])) == {
        ("asked", 0): 0,
        ("allowed", 0): errors.ELECTION_NOT_NEEDED.code,
    }
    assert cluster.partition("asked").leader_recovery_state == 1
    cluster.apply(r.FenceBrokerRecord(id=1, epoch=101))
    assert elections(cluster, asked(1, never=[0])) == {("never", 0): errors.ELIGIBLE_LEADERS_NOT_AVAILABLE.code}


def test_leaders_go_back_to_where_they_belong(cluster: Any) -> None:
    topic_id = cluster.create("t", [0, 1], [1, 0])
    cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1))
    decision = balance_leaders(cluster.image, cluster.facts)
    assert decision.response is False
    cluster.decided(decision)
    assert cluster.partition("t", 0).leader == 0
    assert balance_leaders(cluster.image, cluster.facts).records == []
