"""Produce: append batches to partitions that this broker leads.

Versions: 3–13 (13 names topics by id). ApiVersions announces 0 as the minimum, because librdkafka infers the message
format from it; 0–2 are refused.
Behaviour: each partition succeeds or fails alone. acks=0 gets no answer, and a closed connection if anything failed;
acks=1 is answered when the leader has written; acks=all when every in-sync replica has. The first batch of a
transaction in a partition is appended when the coordinator knows of it: from version 12 on the leader tells it, before
that it asks.
Differs from Kafka: a leader that no follower has asked for anything while a batch waited says NOT_LEADER_OR_FOLLOWER,
not REQUEST_TIMED_OUT, and closes the connection: it may be cut off.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, TypeAlias

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators import transactional_batches as transactional
from barnabas.broker.handlers.leadership import leader_of, node_endpoints
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Deferred, Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.replication.partition import Partition
from barnabas.security.acl import Operation, ResourceType
from barnabas.storage.validate import (
    InvalidRecords,
    NeedsWorker,
    Unpacking,
    Validated,
    is_packed,
    is_transactional,
    needs_worker,
    validate,
)
from barnabas.wire.api import ApiKey
from barnabas.wire.batch import TRANSACTIONAL
from barnabas.wire.message import Message
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.world.disk import DiskFailure

Row: TypeAlias = ProduceResponse.PartitionProduceResponse
Checked: TypeAlias = "dict[tuple[int, int], Validated | ApiError]"  # by place of topic and partition in the request

ACKS_NONE: Final = 0
ACKS_ALL: Final = -1
ACKS: Final = (ACKS_ALL, ACKS_NONE, 1)
TIMEOUT_MS_MAX: Final = 24 * 3600 * 1000
TOPIC_IDS_SINCE: Final = 13
LEADER_HINT_SINCE: Final = 10
ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics, as in Kafka
PARTITIONS_MAX: Final = (
    20_000  # topics and partitions of one request: more batches than fit into a client's largest by default
)


def handle(
    request: Request, message: ProduceRequest
) -> ProduceResponse | Deferred | Coroutine[Any, Any, ProduceResponse | Deferred | None] | None:
    checked: Checked = {}
    if not _check_packed(request, message, checked):
        return _handle_in_workers(request, message, checked)
    if message.transactional_id is not None:
        batches = transactional.unadmitted(message, partial(_partition, request))
        if batches:
            transactional.keep(message)
            checked = {}  # its batches are views into memory that is used again
            return _handle_admitted(request, message, checked, batches)
    return _append_all(request, message, checked, transactional.NOBODY)


def _check_packed(request: Request, message: ProduceRequest, checked: Checked) -> bool:
    """Validate the compressed batches; False if some are too large to be unpacked on the event loop."""
    unpacking = Unpacking()
    now_ms = request.broker.world.clock.wall_ms()
    for place, topic in enumerate(message.topic_data):
        for number, data in enumerate(topic.partition_data):
            if data.records is None or not is_packed(data.records):
                continue
            if needs_worker(data.records):
                return False
            try:
                partition = _partition(request, topic, data.index)
                found = validate(data.records, partition.rules, now_ms=now_ms, unpacking=unpacking)
                checked[place, number] = found
            except ApiError as error:
                checked[place, number] = error
            except NeedsWorker:
                return False
    return True


async def _handle_admitted(
    request: Request, message: ProduceRequest, checked: Checked, batches: list[transactional.Unadmitted]
) -> ProduceResponse | Deferred | None:
    """The first batches of a transaction in their partitions: the coordinator is asked before they are appended."""
    assert message.transactional_id is not None
    manner = transactional.manner_of(request.version)
    admission = await transactional.ask(request.broker, message.transactional_id, batches, manner)
    return _append_all(request, message, {**checked, **admission.refused}, admission)


async def _handle_in_workers(
    request: Request, message: ProduceRequest, checked: Checked
) -> ProduceResponse | Deferred | None:
    """Large compressed batches are unpacked and checked off the loop; the connection waits, so order is kept."""
    checked.clear()
    workers, now_ms = request.broker.world.workers, request.broker.world.clock.wall_ms()
    for place, topic in enumerate(message.topic_data):
        for number, data in enumerate(topic.partition_data):
            if data.records is None or not is_packed(data.records):
                continue
            try:
                partition = _partition(request, topic, data.index)
                checked[place, number] = await workers.run(_validate, data.records, partition.rules, now_ms)
            except ApiError as error:
                checked[place, number] = error
    if message.transactional_id is not None:
        batches = transactional.unadmitted(message, partial(_partition, request))
        if batches:
            return await _handle_admitted(request, message, checked, batches)
    return _append_all(request, message, checked, transactional.NOBODY)


def _validate(records: memoryview, rules: Any, now_ms: int) -> Validated:
    return validate(records, rules, now_ms=now_ms)


def _append_all(
    request: Request, message: ProduceRequest, checked: Checked, admission: transactional.Admission
) -> ProduceResponse | Deferred | None:
    """Append every batch, then answer: at once, or when the in-sync replicas have what waits for them."""
    response = ProduceResponse()
    waiting: list[tuple[Row, Partition, int]] = []
    now_ms = request.broker.world.clock.wall_ms()
    is_failed = False
    version = transactional.manner_of(request.version).version if message.transactional_id is not None else 0
    for place, topic in enumerate(message.topic_data):
        rows: list[Row] = []
        for number, data in enumerate(topic.partition_data):
            row = Row(index=data.index, base_offset=-1)
            rows.append(row)
            partition: Partition | None = None
            try:
                if message.acks not in ACKS:
                    raise ApiError(errors.INVALID_REQUIRED_ACKS)
                partition = _partition(request, topic, data.index)
                found = checked.get((place, number)) if checked else None
                if isinstance(found, ApiError):
                    raise found
                if data.records is None:
                    raise ApiError(errors.INVALID_RECORD, "the request holds no batch for this partition")
                validated = found or validate(data.records, partition.rules, now_ms=now_ms)
                if validated.header[5] & TRANSACTIONAL:
                    transactional.check(partition.log, validated.header, message.transactional_id, admission)
                appended = partition.append(
                    validated,
                    is_waiting_for_all=message.acks == ACKS_ALL,
                    now_ms=now_ms,
                    transaction_version=version,
                )
            except (ApiError, DiskFailure) as error:
                is_failed = True
                _fail(request, topic, row, partition, error, response)
                continue
            traffic = partition.traffic
            traffic.produces += 1
            traffic.bytes_in += len(data.records)
            traffic.messages_in += appended.last_offset - appended.base_offset + 1
            row.base_offset = appended.base_offset
            row.log_append_time_ms = appended.append_time_ms
            row.log_start_offset = appended.log_start_offset
            if partition.log.high_watermark <= appended.last_offset:
                waiting.append((row, partition, appended.last_offset))
        response.responses.append(
            ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)
        )
    if message.acks == ACKS_NONE:
        if is_failed:
            raise Malformed("a batch sent with acks=0 was refused; a closed connection is the only way to say so")
        return None
    if message.acks == ACKS_ALL and waiting:
        return _wait(request, response, waiting, timeout_ms=min(max(message.timeout_ms, 0), TIMEOUT_MS_MAX))
    return response


def _partition(request: Request, topic: ProduceRequest.TopicProduceData, index: int) -> Partition:
    replicas = request.broker.replicas
    if request.version >= TOPIC_IDS_SINCE:
        partition = replicas.leader_by_id(topic.topic_id, index)
    else:
        partition = replicas.leader(topic.name, index)
    if partition.is_internal and request.header.client_id != ADMIN_CLIENT:
        raise ApiError(errors.INVALID_TOPIC_EXCEPTION, f"clients do not write to {partition.id.topic}")
    return partition


def _fail(
    request: Request,
    topic: ProduceRequest.TopicProduceData,
    row: Row,
    partition: Partition | None,
    error: ApiError | DiskFailure,
    response: ProduceResponse,
) -> None:
    if isinstance(error, DiskFailure):
        error = ApiError(errors.KAFKA_STORAGE_ERROR, str(error))
    traffic = request.broker.observed.strays if partition is None else partition.traffic
    traffic.produces += 1
    traffic.failed_produces += 1
    row.error_code = error.error.code
    row.error_message = error.message
    if isinstance(error, InvalidRecords):
        row.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in error.record_errors
        ]
    if request.version >= LEADER_HINT_SINCE and error.error is errors.NOT_LEADER_OR_FOLLOWER:
        leader = leader_of(request, topic.name, topic.topic_id, row.index)
        if leader is not None:
            row.current_leader = ProduceResponse.LeaderIdAndEpoch(**leader._asdict())
            known = {endpoint.node_id for endpoint in response.node_endpoints}
            response.node_endpoints += node_endpoints(request, {leader.leader_id} - known, ProduceResponse.NodeEndpoint)


def _wait(
    request: Request, response: ProduceResponse, waiting: list[tuple[Row, Partition, int]], *, timeout_ms: int
) -> Deferred:
    """Answer when the high watermark has passed every row, or say which rows it did not pass in time."""
    deferred = request.defer()
    left = set(range(len(waiting)))

    def settle(number: int, is_acknowledged: bool) -> None:
        if number not in left:
            return
        left.discard(number)
        if not is_acknowledged:
            _unsay(waiting[number][0], errors.NOT_LEADER_OR_FOLLOWER)
        if not left:
            timer.cancel()
            deferred.answer(response)

    def time_out() -> None:
        reasons = {number: waiting[number][1].why_late(timeout_ms) for number in sorted(left)}
        for number, reason in reasons.items():
            _unsay(waiting[number][0], reason)
        left.clear()
        deferred.answer(response, is_last=errors.NOT_LEADER_OR_FOLLOWER in reasons.values())

    timer = request.broker.timers.after(timeout_ms, time_out)
    for number, (_, partition, last_offset) in enumerate(waiting):
        partition.when_acknowledged(last_offset, lambda done, number=number: settle(number, done))  # type: ignore[misc]
    return deferred


def _unsay(row: Row, error: errors.WireError) -> None:
    row.error_code, row.error_message = error.code, error.text
    row.base_offset = row.log_append_time_ms = row.log_start_offset = -1


_ROWS: Final = permissions.Rows(
    "topic_data",
    Operation.WRITE,
    ResourceType.TOPIC,
    ProduceResponse,
    "responses",
    permissions.partitions(
        ProduceResponse.TopicProduceResponse,
        Row,
        parts="partition_data",
        index="index",
        answer_parts="partition_responses",
        base_offset=-1,
    ),
)


def _has_transactional_batches(message: ProduceRequest) -> bool:
    return any(
        is_transactional(data.records)
        for topic in message.topic_data
        for data in topic.partition_data
        if data.records is not None
    )


def _needs(request: GuardedRequest, message: ProduceRequest) -> Message | None:
    """WRITE on each topic, and on the transactional id if there is one."""
    whole = None
    if message.transactional_id is not None and _has_transactional_batches(message):
        whole = permissions.denial(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    asked = sum(len(topic.partition_data) for topic in message.topic_data)
    answer = _ROWS.apply(request, message, whole)
    left = 0 if answer is not None else sum(len(topic.partition_data) for topic in message.topic_data)
    if message.acks == ACKS_NONE and left < asked:
        raise Malformed("a batch sent with acks=0 was refused; a closed connection is the only way to say so")
    return answer


API: Final = Api(
    ApiKey.PRODUCE,
    handle,
    at=CLIENT,
    portions=(Portions("topic_data.partition_data", "responses.partition_responses"),),
    needs=_needs,
    rows_max=PARTITIONS_MAX,
    announced_from=0,  # librdkafka infers the message format from the lowest version; 0 to 2 are refused
)
