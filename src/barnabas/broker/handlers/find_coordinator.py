"""FindCoordinator: the broker that leads the partition in which a group's state is kept.

Versions: 0–6.
Behaviour: the topic of offsets is made when the first group asks; until it is there the client asks again. The
partition is Java's hash of the group id, modulo the number of partitions.
Differs from Kafka: transactional ids are answered with COORDINATOR_NOT_AVAILABLE: transactions are not offered yet.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.auto_create import create_missing
from barnabas.broker.request import Request
from barnabas.model import errors
from barnabas.model.ids import NO_BROKER, OFFSETS_TOPIC
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP: Final = 0
TRANSACTION: Final = 1
KEYS_SINCE: Final = 4
_HASH_MASK: Final = 0xFFFFFFFF
_INT_MIN: Final = 0x80000000


async def handle(request: Request, message: FindCoordinatorRequest) -> FindCoordinatorResponse:
    keys = message.coordinator_keys if request.version >= KEYS_SINCE else [message.key]
    found = [await _find(request, key, message.key_type) for key in keys]
    if request.version >= KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _find(request: Request, key: str, key_type: int) -> FindCoordinatorResponse.Coordinator:
    broker = request.broker
    if key_type == TRANSACTION:
        return _refused(key, errors.COORDINATOR_NOT_AVAILABLE)
    if key_type != GROUP:
        return _refused(key, errors.INVALID_REQUEST)
    if OFFSETS_TOPIC not in broker.image.topics.by_name:
        await create_missing(broker, [OFFSETS_TOPIC])
    topic = broker.image.topics.by_name.get(OFFSETS_TOPIC)
    if topic is None:
        return _refused(key, errors.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
    endpoint = broker.endpoint_of(leader, request.connection)
    if endpoint is None:
        return _refused(key, errors.COORDINATOR_NOT_AVAILABLE)
    host, port, _ = endpoint
    return FindCoordinatorResponse.Coordinator(key=key, node_id=leader, host=host, port=port)


def _refused(key: str, error: errors.WireError) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=NO_BROKER, host="", port=-1, error_code=error.code, error_message=error.text
    )


def partition_of(key: str, partition_count: int) -> int:
    """Java's ``String.hashCode``, its absolute value (0 for the one that has none), modulo the partitions."""
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & _HASH_MASK
    if value == _INT_MIN:
        return 0
    if value > _INT_MIN:
        value = _HASH_MASK + 1 - value
    return value % partition_count
