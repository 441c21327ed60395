"""The worker's state, as its three topics have it, kept up to date by reading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.record import ConsumerRecord
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.store import Change, ConfigState, OffsetState, StatusState, decode
from barnabas.connect.worker.topic_log import ISOLATION, TopicLog, ensure_topic

CONFIG_PARTITIONS: Final = 1  # order among all configurations matters


class Stores:
    """Logs and the states that they add up to. ``on_change`` is told of changes in the config topic."""

    def __init__(
        self,
        cluster: Cluster,
        client: Mapping[str, str],
        settings: WorkerSettings,
        on_change: Callable[[Change], None],
    ) -> None:
        self.config = ConfigState()
        self.status = StatusState()
        self.offset = OffsetState()
        self._cluster = cluster
        self._settings = settings
        self._on_change = on_change
        reading = ConsumerSettings.of({**client, "isolation.level": ISOLATION})
        self.configs = TopicLog(cluster, reading, settings.config_storage_topic, self._apply_config)
        self.statuses = TopicLog(cluster, reading, settings.status_storage_topic, self._apply_status)
        self.offsets = TopicLog(cluster, reading, settings.offset_storage_topic, self._apply_offset)

    async def start(self) -> None:
        """Create the topics if they are not there, and read them."""
        settings, admin = self._settings, Admin(cluster=self._cluster)
        replicas = settings.storage_replication_factor
        await ensure_topic(admin, settings.config_storage_topic, CONFIG_PARTITIONS, replicas)
        await ensure_topic(admin, settings.status_storage_topic, settings.status_storage_partitions, replicas)
        await ensure_topic(admin, settings.offset_storage_topic, settings.offset_storage_partitions, replicas)
        await ensure_topic(admin, settings.checkpoint_storage_topic, 1, replicas)
        for log in (self.configs, self.statuses, self.offsets):
            await log.start()

    async def stop(self) -> None:
        """Stop reading."""
        for log in (self.configs, self.statuses, self.offsets):
            await log.stop()

    def _apply_config(self, record: ConsumerRecord[bytes, bytes]) -> None:
        if record.key is not None:
            key = record.key.decode(errors="replace")
            change = self.config.apply(key, decode(record.value), record.offset)
            if change is not None:
                self._on_change(change)

    def _apply_status(self, record: ConsumerRecord[bytes, bytes]) -> None:
        if record.key is not None:
            self.status.apply(record.key.decode(errors="replace"), decode(record.value))

    def _apply_offset(self, record: ConsumerRecord[bytes, bytes]) -> None:
        if record.key is not None:
            self.offset.apply(record.key, decode(record.value))
