"""Topics that are made because someone asked for them: unknown ones in Metadata, internal ones for coordinators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.controller.requests import create_topics
from barnabas.broker.requests.services import Services
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from barnabas.observe.log import logger
from barnabas.wire.messages.create_topics import CreateTopicsRequest

log = logger("auto_create")

BROKER_DEFAULT: Final = -1
TIMEOUT_MS: Final = 5000
ACCEPTABLE: Final = (errors.NONE.code, errors.TOPIC_ALREADY_EXISTS.code)
_OFFSETS_SETTINGS: Final = {"cleanup.policy": "compact", "compression.type": "producer"}


async def create_missing(broker: Services, names: list[str]) -> dict[str, errors.WireError]:
    """Make the topics; the answer has those that could not be made, and why, as Metadata says it."""
    request = CreateTopicsRequest(topics=[_topic(broker, name) for name in names], timeout_ms=TIMEOUT_MS)
    try:
        response = await create_topics(broker, request)
    except ApiError as error:
        log.warning("topics could not be made", topics=",".join(names), reason=error)
        return dict.fromkeys(names, errors.LEADER_NOT_AVAILABLE)  # the client asks again
    return {
        topic.name: _as_metadata_says(topic.error_code)
        for topic in response.topics
        if topic.error_code not in ACCEPTABLE
    }


def _as_metadata_says(code: int) -> errors.WireError:
    # Too few brokers may be cured by waiting, so the client is told to ask again.
    if code == errors.INVALID_REPLICATION_FACTOR.code:
        return errors.LEADER_NOT_AVAILABLE
    return errors.error_of(code)


def _topic(broker: Services, name: str) -> CreateTopicsRequest.CreatableTopic:
    if name == OFFSETS_TOPIC:
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=broker.settings.offsets_topic_num_partitions,
            replication_factor=broker.settings.offsets_topic_replication_factor,
            configs=_configs({**_OFFSETS_SETTINGS, "segment.bytes": str(broker.settings.offsets_topic_segment_bytes)}),
        )
    if name == TRANSACTIONS_TOPIC:
        transactions = broker.settings.transactions
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=transactions.partition_count,
            replication_factor=transactions.replication_factor,
            configs=_configs(transactions.topic_configs),
        )
    if name == SHARE_STATE_TOPIC:
        share_state = broker.settings.share_state
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=share_state.partition_count,
            replication_factor=share_state.replication_factor,
            configs=_configs(share_state.topic_configs),
        )
    return CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT
    )


def _configs(values: Mapping[str, str]) -> list[CreateTopicsRequest.CreatableTopicConfig]:
    return [CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in values.items()]
