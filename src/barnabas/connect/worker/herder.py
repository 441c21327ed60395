"""The operations of the REST API: reads from the worker's own state, writes through the leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.cluster import Cluster
from barnabas.connect.secrets import masked, unmasked
from barnabas.connect.worker.knowledge import Knowledge
from barnabas.connect.worker.leader import Leader
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.state import Stores
from barnabas.connect.worker.store import (
    Connector,
    State,
    TargetState,
    connector_record,
    generation_record,
    logger_record,
    offset_record,
    target_record,
    topic_record,
)
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.rest.errors import RestError

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
CONFLICT: Final = 409
SINK_GROUP: Final = "connect-"  # and the connector's name: the group whose offsets a sink commits
_SINK_PARTITION: Final = {"kafka_topic", "kafka_partition"}


class NotLeader(RestError):
    """Only the leader can do this: the request must be forwarded."""

    def __init__(self) -> None:
        super().__init__(CONFLICT, "the workers have no leader at the moment; try again")


class Herder:
    """What clients of the API can do. ``leader`` is set while this worker leads."""

    def __init__(self, cluster: Cluster, stores: Stores, knowledge: Knowledge, settings: WorkerSettings) -> None:
        self._cluster = cluster
        self._stores = stores
        self._knowledge = knowledge
        self._settings = settings
        self.leader: Leader | None = None

    def _leading(self) -> Leader:
        if self.leader is None:
            raise NotLeader
        return self.leader

    # --- reading --------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all connectors."""
        return self._stores.config.names()

    def connector(self, name: str, message: str = "Connector {} not found") -> Connector:
        """Return a connector, or raise 404."""
        found = self._stores.config.get(name)
        if found is None:
            raise RestError(NOT_FOUND, message.format(name))
        return found

    async def info(self, name: str) -> dict[str, Any]:
        """Return configuration, tasks and type."""
        return await self._info(self.connector(name))

    async def _info(self, connector: Connector) -> dict[str, Any]:
        known = await self._knowledge.of(connector)
        return {
            "name": connector.name,
            "config": masked(connector.config, () if known is None else known.secrets),
            "tasks": [{"connector": connector.name, "task": task} for task in range(len(connector.tasks))],
            "type": "unknown" if known is None else known.kind,
        }

    async def config(self, name: str) -> dict[str, str]:
        """Return the configuration, secrets hidden."""
        return await self._knowledge.masked(self.connector(name))

    async def status(self, name: str) -> dict[str, Any]:
        """Return the states of a connector and its tasks."""
        connector = self._stores.config.get(name)
        known = None if connector is None else await self._knowledge.of(connector)
        shown = self._stores.status.shown(name, "unknown" if known is None else known.kind)
        if shown is None or connector is None:
            raise RestError(NOT_FOUND, f"No status found for connector {name}")
        return shown

    async def task_status(self, name: str, task: int) -> dict[str, Any]:
        """Return the state of one task."""
        found = self._stores.status.tasks.get(name, {}).get(task)
        if found is None:
            raise RestError(NOT_FOUND, f"No status found for task {name}-{task}")
        return {"id": task} | found.shown()

    async def tasks(self, name: str) -> list[dict[str, Any]]:
        """Return the configurations of the tasks, secrets hidden."""
        connector = self.connector(name)
        known = await self._knowledge.of(connector)
        return [
            {"id": {"connector": name, "task": task}, "config": masked(config, () if known is None else known.secrets)}
            for task, config in enumerate(connector.tasks)
        ]

    def topics(self, name: str) -> dict[str, Any]:
        """Return the topics that a connector has used."""
        if not self._settings.topic_tracking_enable:
            raise RestError(FORBIDDEN, "topic tracking is disabled (topic.tracking.enable)")
        return {name: {"topics": sorted(self._stores.status.topics.get(name, ()))}}

    # --- configurations -------------------------------------------------------------------------------------------

    async def create(self, name: str, config: Mapping[str, str], state: TargetState | None) -> dict[str, Any]:
        """Create a connector; raise 409 if there is one of this name."""
        leader = self._leading()
        if self._stores.config.get(name) is not None:
            raise RestError(CONFLICT, f"Connector {name} already exists")
        return await self._put(leader, name, config, state)

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, dict[str, Any]]:
        """Set a configuration; return whether the connector is new, and its info."""
        leader = self._leading()
        old = self._stores.config.get(name)
        given = unmasked(config, None if old is None else old.config)
        return old is None, await self._put(leader, name, given, None)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Change some keys; None removes one."""
        leader = self._leading()
        old = self.connector(name)
        kept = {key: value for key, value in old.config.items() if changes.get(key, value) is not None}
        merged = kept | unmasked({key: value for key, value in changes.items() if value is not None}, old.config)
        return await self._put(leader, name, merged, None)

    async def _put(
        self, leader: Leader, name: str, config: Mapping[str, str], state: TargetState | None
    ) -> dict[str, Any]:
        given = {"name": name, **config}
        if given["name"] != name:
            raise RestError(BAD_REQUEST, f"the configuration is of connector {given['name']!r}, not of {name!r}")
        known = await self._knowledge.check(given)
        if known.problems:
            count = len(known.problems)
            listed = "\n".join(known.problems)
            raise RestError(BAD_REQUEST, f"The configuration of connector {name} has {count} error(s):\n{listed}")
        records = [] if state is None else [target_record(name, state)]
        # As Kafka: the name comes last in what is shown.
        stored = {key: value for key, value in given.items() if key != "name"} | {"name": name}
        await leader.write_configs([*records, connector_record(name, stored)])
        await leader.settle()
        return {"name": name, "config": masked(stored, known.secrets), "tasks": [], "type": known.kind}

    async def delete(self, name: str) -> None:
        """Delete a connector; its offsets stay."""
        leader = self._leading()
        self.connector(name)
        await leader.write_configs([connector_record(name, None), target_record(name, None)])
        topics = self._stores.status.topics.get(name, set())
        await leader.write_statuses([topic_record(name, topic, None) for topic in sorted(topics)])
        await leader.settle()

    # --- states ---------------------------------------------------------------------------------------------------

    async def set_target(self, name: str, target: TargetState) -> None:
        """Pause, stop or resume."""
        leader = self._leading()
        self.connector(name, "Unknown connector {}")
        await leader.write_configs([target_record(name, target)])
        await leader.settle()

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """Restart a connector; return its status."""
        leader = self._leading()
        self.connector(name, "Unknown connector: {}")
        await leader.restart(name, include_tasks=include_tasks, only_failed=only_failed)
        return await self.status(name)

    async def restart_task(self, name: str, task: int) -> None:
        """Restart the connector that a task is a part of."""
        leader = self._leading()
        connector = self.connector(name, "Unknown connector: {}")
        if task >= len(connector.tasks):
            raise RestError(NOT_FOUND, f"Unknown task: {name}-{task}")
        await leader.restart(name, include_tasks=True, only_failed=False)

    # --- offsets --------------------------------------------------------------------------------------------------

    async def offsets(self, name: str) -> dict[str, Any]:
        """Return how far a connector has got."""
        connector = self.connector(name)
        if await self._is_sink(connector):
            found = await Admin(cluster=self._cluster).group_offsets(SINK_GROUP + name)
            entries = [
                {
                    "partition": {"kafka_topic": place.topic, "kafka_partition": place.partition},
                    "offset": {"kafka_offset": entry.offset},
                }
                for place, entry in sorted(found.items())
            ]
        else:
            entries = [{"partition": part, "offset": offset} for part, offset in self._stores.offset.entries(name)]
        return {"offsets": entries}

    async def _is_sink(self, connector: Connector) -> bool:
        known = await self._knowledge.of(connector)
        return known is not None and known.kind == "sink"

    async def alter_offsets(self, name: str, entries: Sequence[tuple[Any, Any]]) -> dict[str, str]:
        """Change offsets of a stopped connector; an offset of None forgets one."""
        leader, connector = self._leading(), self.connector(name)
        if not entries:
            raise RestError(BAD_REQUEST, "the request has no offsets to alter")
        for partition, offset in entries:
            if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
                raise RestError(BAD_REQUEST, "each offset needs an object 'partition' and an object or null 'offset'")
        self._check_stopped(connector)
        if await self._is_sink(connector):
            await self._alter_group(name, entries)
        else:
            await self._check_entries(connector, entries)
            await leader.write_offsets([offset_record(name, partition, offset) for partition, offset in entries])
        await leader.write_configs([generation_record(name, connector.generation + 1)])
        return {"message": f"The offsets of {name} have been altered"}

    async def reset_offsets(self, name: str) -> dict[str, str]:
        """Forget all offsets of a stopped connector."""
        leader, connector = self._leading(), self.connector(name)
        self._check_stopped(connector)
        if await self._is_sink(connector):
            outcome = (await Admin(cluster=self._cluster).delete_groups([SINK_GROUP + name]))[SINK_GROUP + name]
            if outcome is not None and outcome.error is not errors.GROUP_ID_NOT_FOUND:
                raise RestError(BAD_REQUEST, f"the offsets of group {SINK_GROUP + name} cannot be deleted: {outcome}")
        else:
            known = self._stores.offset.entries(name)
            await leader.write_offsets([offset_record(name, partition, None) for partition, _ in known])
        await leader.write_configs([generation_record(name, connector.generation + 1)])
        return {"message": f"The offsets of {name} have been reset"}

    def _check_stopped(self, connector: Connector) -> None:
        status = self._stores.status.connectors.get(connector.name)
        if connector.target is not TargetState.STOPPED or status is None or status.state != State.STOPPED:
            path = f"/connectors/{connector.name}/stop"
            raise RestError(BAD_REQUEST, f"stop the connector before you change its offsets: PUT {path}")

    async def _check_entries(self, connector: Connector, entries: Sequence[tuple[Any, Any]]) -> None:
        answer = await self._knowledge.ask(
            {"op": "offsets", "config": dict(connector.config), "entries": [list(entry) for entry in entries]}
        )
        if "error" in answer:
            raise RestError(BAD_REQUEST, str(answer["message"]))

    async def _alter_group(self, name: str, entries: Sequence[tuple[Any, Any]]) -> None:
        changed: dict[TopicPartition, int] = {}
        forgotten: list[TopicPartition] = []
        for partition, offset in entries:
            if partition.keys() != _SINK_PARTITION:
                raise RestError(BAD_REQUEST, "a sink's partition has the keys 'kafka_topic' and 'kafka_partition'")
            try:
                place = TopicPartition(str(partition["kafka_topic"]), int(partition["kafka_partition"]))
                if offset is None:
                    forgotten.append(place)
                else:
                    changed[place] = int(offset["kafka_offset"])
            except (KeyError, ValueError, TypeError) as error:
                raise RestError(BAD_REQUEST, "a sink's offset has the key 'kafka_offset', a whole number") from error
        admin = Admin(cluster=self._cluster)
        try:
            if changed:
                await admin.alter_group_offsets(SINK_GROUP + name, changed)
            if forgotten:
                await admin.delete_group_offsets(SINK_GROUP + name, forgotten)
        except ApiError as error:
            if error.error is errors.GROUP_ID_NOT_FOUND and not changed:
                return  # nothing to forget
            raise RestError(BAD_REQUEST, f"group {SINK_GROUP + name}: {error}") from error

    async def details(self, name: str) -> Mapping[str, Any]:
        """Return what a connector reports about itself; only the leader knows it."""
        leader = self._leading()
        if self._stores.config.get(name) is None:
            raise RestError(NOT_FOUND, f"Connector {name} not found")
        return leader.details.get(name, {})

    async def reset_topics(self, name: str) -> None:
        """Forget which topics a connector has used."""
        leader = self._leading()
        if not (self._settings.topic_tracking_enable and self._settings.topic_tracking_allow_reset):
            raise RestError(FORBIDDEN, "topic tracking cannot be reset (topic.tracking.allow.reset)")
        topics = self._stores.status.topics.get(name, set())
        await leader.write_statuses([topic_record(name, topic, None) for topic in sorted(topics)])

    # --- plugins and loggers --------------------------------------------------------------------------------------

    async def plugins(self) -> list[dict[str, str]]:
        """Return all plugins."""
        answer = await self._knowledge.ask({"op": "plugins"})
        return list(answer["plugins"])

    async def plugin_keys(self, name: str) -> list[dict[str, Any]]:
        """Return the keys of a plugin, or raise 404."""
        answer = await self._knowledge.ask({"op": "keys", "name": name})
        if "error" in answer:
            raise RestError(NOT_FOUND, f"Unknown plugin {name}.")
        return list(answer["keys"])

    async def validate(self, name: str, config: Mapping[str, str]) -> Mapping[str, Any]:
        """Return Kafka's ``ConfigInfos``, or raise 400."""
        answer = await self._knowledge.ask({"op": "validate", "config": dict(config)})
        if "error" in answer:
            raise RestError(BAD_REQUEST, str(answer["message"]))
        return {**answer["infos"], "configs": [_without_secret(each) for each in answer["infos"]["configs"]]}

    async def set_cluster_logger(self, name: str, level: str) -> None:
        """Set the level of a logger on all workers."""
        await self._leading().write_configs([logger_record(name, level)])


def _without_secret(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a key of ``ConfigInfos`` with its value hidden if that is a secret."""
    value = config["value"]
    name, given = value["name"], value["value"]
    if not isinstance(given, str):
        return config
    secrets = frozenset({name}) if config["definition"]["type"] == "PASSWORD" else frozenset()
    return {**config, "value": {**value, "value": masked({name: given}, secrets)[name]}}
