"""The status of pipelines, published in a compacted topic: the newest record of a pipeline's name is its status.

``barnabas run`` publishes it and ``barnabas pipeline`` reads it, from any machine that reaches the cluster. Neither
needs Spark for that.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

TOPIC: Final = "__barnabas_pipelines"
PUBLISH_SECONDS: Final = 5.0
LOST_AFTER_MS: Final = 30_000
POLL_MS: Final = 5_000


@dataclass(frozen=True, kw_only=True)
class PipelineStatus:
    name: str
    state: str  # running, stopped or failed; lost if a running pipeline has not published for LOST_AFTER_MS
    file: str
    master: str
    host: str
    process: int
    checkpoint: str
    group: str
    reads: list[str]
    writes: str
    started_ms: int
    updated_ms: int
    batch_id: int = -1
    rows_total: int = 0
    rows_per_second: float = 0.0
    lag: int | None = None
    state_rows: int = 0
    batch_ms: int = 0  # duration of the last batch
    kind: str = "pipeline"  # or application
    error: str = ""

    def as_of(self, now_ms: int) -> PipelineStatus:
        is_lost = self.state == "running" and now_ms - self.updated_ms > LOST_AFTER_MS
        return replace(self, state="lost") if is_lost else self


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def publish(settings: Settings, statuses: list[PipelineStatus]) -> None:
    """Replace the published statuses of the same names."""
    values = {each.name: json.dumps(asdict(each)).encode() for each in statuses}
    told = ProducerSettings.of({"bootstrap.servers": ",".join(settings.bootstrap_servers)} | _of_client(settings))
    async with Producer(told) as producer:
        await _ensure_topic(producer.cluster)
        for name, value in values.items():
            await producer.send(TOPIC, value, key=name.encode())


async def published(settings: Settings) -> list[PipelineStatus]:
    """The statuses of all pipelines, sorted by name."""
    told = ConsumerSettings.of({"bootstrap.servers": ",".join(settings.bootstrap_servers)} | _of_client(settings))
    found: dict[str, PipelineStatus] = {}
    async with Consumer(told) as reader:
        if not await reader.cluster.look_up([TOPIC]):
            return []
        await reader.assign([TopicPartition(TOPIC, 0)], until_end=True)
        while not reader.is_at_end:
            for record in await reader.poll(timeout_ms=POLL_MS):
                name = (record.key or b"").decode()
                if record.value is None:
                    found.pop(name, None)
                else:
                    found[name] = PipelineStatus(**json.loads(record.value))
    now = now_ms()
    return [found[name].as_of(now) for name in sorted(found)]


def _of_client(settings: Settings) -> dict[str, str]:
    """Credentials of ``settings`` for a producer or consumer."""
    names = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.truststore.location")
    values = {name: getattr(settings, name.replace(".", "_")) for name in names}
    return {name: value for name, value in values.items() if value}


async def _ensure_topic(cluster: Cluster) -> None:
    if await cluster.look_up([TOPIC]):
        return
    try:
        await Admin(cluster=cluster).create_topic(NewTopic(TOPIC, 1, configs={"cleanup.policy": "compact"}))
    except ApiError as error:
        if error.error is not errors.TOPIC_ALREADY_EXISTS:
            raise
    await cluster.topic(TOPIC)
