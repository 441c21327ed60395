"""Any broker answers what only the controller knows: requests are forwarded, and wait for one that is being elected."""

from __future__ import annotations

from control_story import ALL, active, ask, create, has_topic, others, story
from waiting import until_async

from barnabas.model import errors
from barnabas.model.ids import METADATA_TOPIC
from barnabas.testing.simulated_cluster import CONTROLLER_PORT, SimulatedCluster
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.envelope import EnvelopeRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest


def test_any_broker_answers_what_only_the_controller_knows() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        leader = active(cluster)
        for number in ALL:
            created = await create(number, f"by-{number}")
            assert created.error_code == 0
            assert (await create(number, f"by-{number}")).error_code == errors.TOPIC_ALREADY_EXISTS.code
            quorum = await ask(
                number,
                DescribeQuorumRequest(
                    topics=[
                        DescribeQuorumRequest.TopicData(
                            topic_name=METADATA_TOPIC,
                            partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)],
                        )
                    ]
                ),
            )
            row = quorum.topics[0].partitions[0]
            assert (row.leader_id, [each.replica_id for each in row.current_voters]) == (leader, list(ALL))
            assert {node.node_id for node in quorum.nodes} == set(ALL)
            moving = await ask(number, ListPartitionReassignmentsRequest(topics=None))
            assert (moving.error_code, moving.topics) == (0, [])
            elected = await ask(number, ElectLeadersRequest(topic_partitions=None))
            assert elected.error_code == 0
            features = await ask(number, UpdateFeaturesRequest(validate_only=True))
            assert features.error_code == 0
            ids = await ask(number, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
            assert ids.error_code == 0

    story(tell)


def test_producer_ids_of_different_brokers_are_different() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        given = [(await ask(number, request)).producer_id for number in (*ALL, *ALL)]
        assert len(set(given)) == len(given)

    story(tell)


def test_a_topic_is_made_because_somebody_asked_any_broker_for_it() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        follower = others(cluster, active(cluster))[0]
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name="wanted")], allow_auto_topic_creation=True
        )
        await ask(follower, request)
        await has_topic(cluster, "wanted")
        (row,) = (await ask(follower, request)).topics
        assert row.error_code == 0
        assert len(row.partitions[0].replica_nodes) == 3

    story(tell)


def test_requests_wait_for_a_controller_that_is_being_elected() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        dead = active(cluster)
        cluster.kill(dead)
        assert (await create(others(cluster, dead)[0], "patient", replicas=2)).error_code == 0

    story(tell)


def test_an_envelope_takes_only_what_is_forwarded() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        leader = active(cluster)
        metadata = bytes.fromhex("0003000900000001ffff00")  # header of Metadata version 9
        for data in (metadata, b"", b"\xff" * 20):
            envelope = EnvelopeRequest(
                request_data=data, request_principal=b"\x00\x00\x05User\x02a\x00\x00", client_host_address=bytes(4)
            )
            answer = await ask(leader, envelope, port=CONTROLLER_PORT)
            assert answer.error_code == errors.INVALID_REQUEST.code

    story(tell)


def test_controllers_name_each_other_and_the_active_one() -> None:
    async def tell(cluster: SimulatedCluster) -> None:
        leader = active(cluster)
        await until_async(lambda: sorted(cluster.nodes[1].services.controller.image.controllers) == list(ALL))
        for number in ALL:
            answer = await ask(number, DescribeClusterRequest(endpoint_type=2), port=CONTROLLER_PORT)
            assert (answer.cluster_id, answer.controller_id) == (cluster.nodes[1].cluster_id, leader)
            assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
                (each, f"node{each}", CONTROLLER_PORT) for each in ALL
            ]
            wrong = await ask(number, DescribeClusterRequest(endpoint_type=1), port=CONTROLLER_PORT)
            assert wrong.error_code == errors.MISMATCHED_ENDPOINT_TYPE.code

    story(tell)
