"""AlterReplicaLogDirs: move replicas of this broker from one of its directories to another.

Versions: 1–2.
Behaviour: the answer comes as soon as a move has begun; DescribeLogDirs shows the copy and how far it is behind. Naming
the directory where a replica lies gives its move up. A replica that is not here is answered with REPLICA_NOT_AVAILABLE,
and is made in that directory should it come here later. While a directory is offline no move begins.
Differs from Kafka: the controller is told of the new directory once the copy has taken over, not right before it does.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse


async def handle(request: Request, message: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    errors: dict[TopicPartition, int] = {}
    for wanted in message.dirs:
        for topic in wanted.topics:
            for index in topic.partitions:
                key = TopicPartition(topic.name, index)
                try:
                    await request.broker.log_moves.move(key, wanted.path)
                    errors[key] = 0
                except ApiError as error:
                    errors[key] = error.error.code
    return _response(errors)


def refuse(message: AlterReplicaLogDirsRequest, error: ApiError) -> AlterReplicaLogDirsResponse:
    keys = [(topic.name, index) for each in message.dirs for topic in each.topics for index in topic.partitions]
    return _response({TopicPartition(*key): error.error.code for key in keys})


def _response(errors: dict[TopicPartition, int]) -> AlterReplicaLogDirsResponse:
    response = AlterReplicaLogDirsResponse()
    results: dict[str, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for key, code in errors.items():
        result = results.get(key.topic)
        if result is None:
            result = results[key.topic] = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=key.topic
            )
            response.results.append(result)
        result.partitions.append(
            AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                partition_index=key.partition, error_code=code
            )
        )
    return response


API: Final = Api(
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    handle,
    at=CLIENT,
    portions=(Portions("dirs.topics.partitions", "results.partitions"),),
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    audit=lambda message: [row.name for each in message.dirs for row in each.topics],
)
