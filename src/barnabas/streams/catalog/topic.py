"""The catalog of applications: a compacted topic with one record for each application, by its id."""

from __future__ import annotations

from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.streams.catalog.application import Application
from barnabas.streams.errors import StreamsError

__all__ = ["TOPIC", "applications", "find", "forget", "publish", "required"]

TOPIC: Final = "__barnabas_streams"
CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": str(4 * 1024 * 1024)}
POLL_MS: Final = 5_000
_PLACE: Final = TopicPartition(TOPIC, 0)


async def applications(cluster: Cluster) -> dict[str, Application]:
    """All applications, by id."""
    if not await cluster.look_up([TOPIC]):
        return {}
    found: dict[str, bytes] = {}
    reader = Consumer(ConsumerSettings(), cluster=cluster)
    try:
        await reader.assign([_PLACE], until_end=True)
        while not reader.is_at_end:
            for record in await reader.poll(timeout_ms=POLL_MS):
                name = (record.key or b"").decode()
                if record.value is None:
                    found.pop(name, None)
                else:
                    found[name] = record.value
    finally:
        await reader.close(commit=False)
    return {name: Application.decoded(found[name]) for name in sorted(found)}


async def find(cluster: Cluster, application_id: str) -> Application | None:
    return (await applications(cluster)).get(application_id)


async def required(cluster: Cluster, application_id: str) -> Application:
    """The entry of an application. Raises StreamsError if the cluster does not know it."""
    known = await applications(cluster)
    if application_id not in known:
        names = ", ".join(known) or "none"
        raise StreamsError(
            f"the cluster knows no application {application_id}; it knows: {names}. `barnabas run` adds an application"
        )
    return known[application_id]


async def publish(cluster: Cluster, application: Application) -> None:
    await _write(cluster, application.application_id, application.encoded())


async def forget(cluster: Cluster, application_id: str) -> None:
    await _write(cluster, application_id, None)


async def _write(cluster: Cluster, application_id: str, value: bytes | None) -> None:
    await _ensure_topic(cluster)
    producer = Producer(ProducerSettings(), cluster=cluster)
    try:
        await producer.send(TOPIC, value, key=application_id.encode())
    finally:
        await producer.close()


async def _ensure_topic(cluster: Cluster) -> None:
    if await cluster.look_up([TOPIC]):
        return
    try:
        await Admin(cluster=cluster).create_topic(NewTopic(TOPIC, 1, configs=CONFIGS))
    except ApiError as error:
        if error.error is not errors.TOPIC_ALREADY_EXISTS:
            raise
    await cluster.topic(TOPIC)
