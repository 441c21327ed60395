"""A member of a share group that sends what a test tells it to, over one connection."""

from __future__ import annotations

from typing import Any, Self

from talk import Talk

from barnabas.model.ids import Uuid
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.wire.records import decode_all

GROUP_RESOURCE = 32
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def set_group(talk: Talk, group: str, **configs: str) -> None:
    """Configuration of a group, underscores for dots, without the prefix ``share.``."""
    rows = [
        IncrementalAlterConfigsRequest.AlterableConfig(
            name=f"share.{name.replace('_', '.')}", config_operation=0, value=value
        )
        for name, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=rows
    )
    (answer,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == 0, answer


class Sharer:
    def __init__(self, bootstrap_servers: str, group: str, member: str, *topics: str) -> None:
        self.talk = Talk(bootstrap_servers)
        self._is_closed = False
        self.group, self.member, self.topics = group, member, list(topics)
        self.member_epoch = 0
        self.session_epoch = 0
        self.ids: dict[str, Uuid] = {}
        self.talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, once."""
        if not self._is_closed:
            self._is_closed = True
            self.talk.close()

    def beat(self, epoch: int | None = None, topics: list[str] | None = None) -> ShareGroupHeartbeatResponse:
        epoch = self.member_epoch if epoch is None else epoch
        answer: ShareGroupHeartbeatResponse = self.talk.ask(
            ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member,
                member_epoch=epoch,
                subscribed_topic_names=(topics or self.topics) if epoch == 0 else topics,
            )
        )
        if not answer.error_code:
            self.member_epoch = answer.member_epoch
        return answer

    def fetch_answer(
        self,
        *partitions: tuple[str, int],
        acknowledge: dict[tuple[str, int], list[tuple[int, int, list[int]]]] | None = None,
        records: int = 500,
        wait_ms: int = 0,
        epoch: int | None = None,
        **more: Any,
    ) -> ShareFetchResponse:
        request = ShareFetchRequest
        topics: dict[Uuid, list[Any]] = {}
        for topic, index in dict.fromkeys((*partitions, *(acknowledge or {}))):
            batches = [
                request.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
                for first, last, kinds in (acknowledge or {}).get((topic, index), ())
            ]
            row = request.FetchPartition(partition_index=index, acknowledgement_batches=batches)
            topics.setdefault(self.id_of(topic), []).append(row)
        message = request(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.session_epoch if epoch is None else epoch,
            max_wait_ms=wait_ms,
            max_records=records,
            batch_size=500,
            topics=[request.FetchTopic(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()],
            **more,
        )
        answer: ShareFetchResponse = self.talk.ask(message)
        if not answer.error_code and epoch is None:
            self.session_epoch += 1
        return answer

    def fetch(self, *partitions: tuple[str, int], **more: Any) -> list[tuple[int, bytes | None, int]]:
        """The offset, the value and the delivery count of each acquired record."""
        found = []
        for topic in self.fetch_answer(*partitions, **more).responses:
            for row in topic.partitions:
                assert (row.error_code, row.acknowledge_error_code) == (0, 0), row
                records = {record.offset: record.value for record in decode_all(bytes(row.records))}
                found += [
                    (offset, records[offset], acquired.delivery_count)
                    for acquired in row.acquired_records
                    for offset in range(acquired.first_offset, acquired.last_offset + 1)
                    if offset in records
                ]
        return found

    def acknowledge(
        self,
        topic: str,
        *batches: tuple[int, int, list[int]],
        partition: int = 0,
        epoch: int | None = None,
        **more: Any,
    ) -> Any:
        """The error code of the partition, or of the whole request."""
        request = ShareAcknowledgeRequest
        rows = [
            request.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
            for first, last, kinds in batches
        ]
        part = request.AcknowledgePartition(partition_index=partition, acknowledgement_batches=rows)
        answer = self.talk.ask(
            request(
                group_id=self.group,
                member_id=self.member,
                share_session_epoch=self.session_epoch if epoch is None else epoch,
                topics=[request.AcknowledgeTopic(topic_id=self.id_of(topic), partitions=[part])] if batches else [],
                **more,
            )
        )
        if answer.error_code:
            return answer.error_code
        if epoch is None:
            self.session_epoch += 1
        return answer.responses[0].partitions[0].error_code if answer.responses else 0

    def id_of(self, topic: str) -> Uuid:
        if topic not in self.ids:
            self.ids[topic] = self.talk.topic_id(topic)
        return self.ids[topic]
