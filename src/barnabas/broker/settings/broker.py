"""The settings of a broker, each declared once, and their values as one typed, frozen object.

A topic's defaults are broker settings too: they are derived from ``storage.settings`` by the synonyms given there, so
that no range or text is written twice. Values come from a file, the command line and, for those that may change while
running, from the metadata log; :meth:`BrokerSettings.of` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.broker.settings.cluster import CLUSTER_SETTINGS, ClusterSettings
from barnabas.broker.settings.connections import ConnectionSettings
from barnabas.broker.settings.endpoints import FIRST_FREE, HTTP_PORT, PORT_MAX, Endpoint, clash, parse_endpoints
from barnabas.broker.settings.observe import ObserveSettings
from barnabas.broker.settings.quotas import QuotaSettings
from barnabas.broker.settings.security import LISTENER_PREFIX, PROTOCOL_MAP, SECURITY_SETTINGS, SecuritySettings
from barnabas.broker.settings.unoffered import unoffered_settings
from barnabas.broker.settings.unused import unused_settings
from barnabas.coordinator.consumer.settings import CONSUMER_GROUP_SETTINGS, ConsumerGroupSettings
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.share.settings import SHARE_GROUP_SETTINGS, ShareGroupSettings
from barnabas.coordinator.share_state.settings import ShareStateSettings
from barnabas.coordinator.transactions.settings import TransactionSettings
from barnabas.model.declared import named
from barnabas.model.settings import InvalidSetting, Kind, Setting, SettingTable, Update
from barnabas.replication.settings import ReplicationSettings
from barnabas.storage.cleaner_settings import CleanerSettings
from barnabas.storage.settings import TOPIC_SETTINGS, TopicSettings
from barnabas.transport.java_stores import check_stores

# Settings in a coarser unit than the topic setting whose default they give.
UNITS_MS: Final = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}
# Another name for the same thing, or Kafka's way of saying "unset": given, it counts; absent, it has no default.
UNSET: Final = {
    "log.retention.ms",
    "log.retention.minutes",
    "log.roll.ms",
    "log.roll.jitter.ms",
    "log.flush.interval.ms",
}
LOCALHOST: Final = "localhost"
LISTENERS_DEFAULT: Final = "PLAINTEXT://:9092"
NODE_ID_DEFAULT: Final = 1


def _endpoints_problem(value: Any) -> str | None:
    try:
        parse_endpoints(value)
    except InvalidSetting as error:
        return str(error)
    return None


def _listeners_problem(value: Any) -> str | None:
    return _endpoints_problem(value) or clash(parse_endpoints(value))


def _directories_problem(value: Any) -> str | None:
    if not value:
        return "at least one directory is needed"
    return None if len(set(value)) == len(value) else "a directory is there twice"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings(ConnectionSettings):
    """One typed value for each of the broker's own settings; topic defaults are together in ``topic_defaults``."""

    node_id: int = named("node.id", Kind.INT, NODE_ID_DEFAULT, "The number of this node in the cluster.", minimum=0)
    broker_rack: str | None = named(
        "broker.rack", Kind.STRING, None, "Where this broker stands; replicas are spread over racks."
    )
    listeners: tuple[str, ...] = named(
        "listeners",
        Kind.LIST,
        (LISTENERS_DEFAULT,),
        "The addresses to listen on, as NAME://host:port; an empty host means every interface. Those for clients may "
        "come, go and move while the broker runs.",
        check=_listeners_problem,
        update=Update.PER_BROKER,
    )
    advertised_listeners: tuple[str, ...] | None = named(
        "advertised.listeners",
        Kind.LIST,
        None,
        "The addresses that clients are told; without them a client is told the address that it used.",
        check=_endpoints_problem,
    )
    log_dirs: tuple[str, ...] = named(
        "log.dirs", Kind.LIST, ("barnabas-data",), "The directories that hold the data.", check=_directories_problem
    )
    num_partitions: int = named(
        "num.partitions",
        Kind.INT,
        1,
        "Partitions of a topic that does not say how many.",
        minimum=1,
        update=Update.CLUSTER_WIDE,
    )
    default_replication_factor: int = named(
        "default.replication.factor",
        Kind.INT,
        1,
        "Replicas of a topic that does not say how many.",
        minimum=1,
        update=Update.CLUSTER_WIDE,
    )
    auto_create_topics_enable: bool = named(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        True,
        "Whether asking for an unknown topic makes it.",
        update=Update.CLUSTER_WIDE,
    )
    delete_topic_enable: bool = named(
        "delete.topic.enable", Kind.BOOLEAN, True, "Whether topics may be deleted.", update=Update.CLUSTER_WIDE
    )
    socket_request_max_bytes: int = named(
        "socket.request.max.bytes", Kind.INT, 100 * 1024 * 1024, "The largest request that is read.", minimum=1
    )
    fetch_max_bytes: int = named(
        "fetch.max.bytes",
        Kind.INT,
        55 * 1024 * 1024,
        "The most that one fetch answers.",
        minimum=1024,
        update=Update.CLUSTER_WIDE,
    )
    max_incremental_fetch_session_cache_slots: int = named(
        "max.incremental.fetch.session.cache.slots", Kind.INT, 1000, "The most fetch sessions kept.", minimum=0
    )
    log_retention_check_interval_ms: int = named(
        "log.retention.check.interval.ms", Kind.LONG, 300_000, "How often old segments are looked for.", minimum=1
    )
    replica_high_watermark_checkpoint_interval_ms: int = named(
        "replica.high.watermark.checkpoint.interval.ms",
        Kind.LONG,
        5_000,
        "How often high watermarks are saved.",
        minimum=1,
    )
    offsets_topic_num_partitions: int = named(
        "offsets.topic.num.partitions", Kind.INT, 50, "Partitions of the topic that keeps group offsets.", minimum=1
    )
    offsets_topic_replication_factor: int = named(
        "offsets.topic.replication.factor", Kind.SHORT, 3, "Replicas of the topic that keeps group offsets.", minimum=1
    )
    offsets_topic_segment_bytes: int = named(
        "offsets.topic.segment.bytes",
        Kind.INT,
        100 * 1024 * 1024,
        "The segment size of the topic that keeps group offsets: small, so that it is compacted and loaded soon.",
        minimum=1024 * 1024,
    )
    producer_id_expiration_check_interval_ms: int = named(
        "producer.id.expiration.check.interval.ms",
        Kind.INT,
        600_000,
        "How often producers that have been silent for too long are looked for.",
        minimum=1,
    )
    producer_id_expiration_ms: int = named(
        "producer.id.expiration.ms",
        Kind.INT,
        86_400_000,
        "After what time a silent idempotent producer is forgotten.",
        minimum=1,
        update=Update.CLUSTER_WIDE,
    )
    metadata_log_max_record_bytes_between_snapshots: int = named(
        "metadata.log.max.record.bytes.between.snapshots",
        Kind.LONG,
        20 * 1024 * 1024,
        "How much metadata is written before the next snapshot of it.",
        minimum=1,
    )
    metadata_log_max_snapshot_interval_ms: int = named(
        "metadata.log.max.snapshot.interval.ms",
        Kind.LONG,
        3_600_000,
        "After what time changed metadata is put into a snapshot; 0 switches this off.",
        minimum=0,
    )
    barnabas_http_port: int = named(
        "barnabas.http.port",
        Kind.INT,
        0,
        "The port of /metrics, /livez and /readyz; 0 means that there is none, -1 one that is free: "
        f"{HTTP_PORT} for node 1, {HTTP_PORT + 1} for node 2 and so on, or the next one above it.",
        minimum=FIRST_FREE,
        maximum=PORT_MAX,
    )
    barnabas_http_host: str = named(
        "barnabas.http.host", Kind.STRING, "127.0.0.1", "The address of that port; empty is every interface."
    )
    cluster: ClusterSettings
    observe: ObserveSettings
    quotas: QuotaSettings
    security: SecuritySettings
    groups: GroupSettings
    consumer_groups: ConsumerGroupSettings
    share_groups: ShareGroupSettings
    share_state: ShareStateSettings
    transactions: TransactionSettings
    cleaner: CleanerSettings
    replication: ReplicationSettings
    topic_defaults: TopicSettings
    given: Mapping[str, str]  # as the file and the command line gave them
    dynamic: Mapping[str, str]  # as the metadata log gives them; they win

    @classmethod
    def of(cls, given: Mapping[str, str], dynamic: Mapping[str, str] | None = None) -> BrokerSettings:
        """Read and check every value; InvalidSetting names the first that is wrong and what would be right."""
        given = {ALIASES.get(name, name): text for name, text in given.items()}
        dynamic = {name: text for name, text in (dynamic or {}).items() if is_known(name)}
        every = {**given, **dynamic}
        check_stores(every)
        values = BROKER_SETTINGS.parse(
            {name: text for name, text in every.items() if not name.startswith(LISTENER_PREFIX)}
        )
        topic_defaults = _defaults_of(values)
        groups = GroupSettings.of(values, message_bytes_max=topic_defaults.max_message_bytes)
        listener_names = _listener_names(values)
        # The order of a list that came while running says nothing: brokers go on reaching each other as they did.
        at_start = BROKER_SETTINGS["listeners"].parse(given.get("listeners", LISTENERS_DEFAULT))
        names_at_start = [endpoint.name for endpoint in parse_endpoints(at_start)]
        cluster = ClusterSettings.of(
            values, listener_names, at_start=names_at_start, node_id=values.get("node.id", NODE_ID_DEFAULT)
        )
        gone = [name for name in names_at_start if name not in listener_names]
        for_listeners = {**_not_about(gone, given), **_about_known(dynamic, listener_names)}
        return cls.of_values(
            values,
            cluster=cluster,
            observe=ObserveSettings.of_values(values),
            quotas=QuotaSettings.of_values(values),
            security=SecuritySettings.of(
                listener_names, for_listeners, for_controllers=cluster.controller_listener_names
            ),
            groups=groups,
            consumer_groups=ConsumerGroupSettings.of(
                values, classic_size_max=groups.members_max, step_bytes_max=groups.record_bytes_max
            ),
            share_groups=ShareGroupSettings.of(values, step_bytes_max=groups.record_bytes_max),
            share_state=ShareStateSettings.of_values(values),
            transactions=TransactionSettings.of_values(values),
            cleaner=CleanerSettings.of_values(values),
            replication=ReplicationSettings.of_values(values),
            topic_defaults=topic_defaults,
            given=given,
            dynamic=dynamic,
        )

    @property
    def group_configs(self) -> SettingTable:
        """What a group may set for itself (resource GROUP), whatever its type."""
        return SettingTable((*self.consumer_groups.group_configs, *self.share_groups.group_configs))

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return parse_endpoints(self.listeners)

    def advertised(self, bound: Mapping[str, tuple[str, int]]) -> tuple[Endpoint, ...]:
        """What others are told, by listener: as configured, or else where the listeners are bound.

        Where something is configured, a listener for clients that is left out is told to nobody.
        """
        found = {
            name: Endpoint(name, LOCALHOST if Endpoint(name, host, port).is_wildcard else host, port)
            for name, (host, port) in bound.items()
            if name in self.security.listeners  # one that is being closed is told to nobody
        }
        if self.advertised_listeners is not None:
            told = {endpoint.name: endpoint for endpoint in parse_endpoints(self.advertised_listeners)}
            found = {name: endpoint for name, endpoint in found.items() if self.cluster.is_for_controllers(name)} | told
        return tuple(found.values())

    def advertised_to_clients(self, bound: Mapping[str, tuple[str, int]]) -> tuple[Endpoint, ...]:
        told = self.advertised(bound)
        return tuple(endpoint for endpoint in told if not self.cluster.is_for_controllers(endpoint.name))

    def advertised_to_controllers(self, bound: Mapping[str, tuple[str, int]]) -> tuple[Endpoint, ...]:
        """In the order of ``controller.listener.names``: the first is the one that the quorum uses."""
        told = {endpoint.name: endpoint for endpoint in self.advertised(bound)}
        return tuple(told[name] for name in self.cluster.controller_listener_names if name in told)

    def value(self, name: str) -> Any:
        """The value in force of any broker setting."""
        text = self.dynamic.get(name, self.given.get(name))
        setting = BROKER_SETTINGS[name]
        return setting.default if text is None else setting.parse(text)


def _topic_defaults() -> Iterator[Setting]:
    """The broker settings that give topic settings their defaults."""
    for topic in TOPIC_SETTINGS:
        for place, name in enumerate(topic.synonyms):
            unit = UNITS_MS.get(name)
            coarse: dict[str, Any] = {"kind": Kind.INT, "minimum": None} if unit else {}
            default = None if name in UNSET or (place and not unit) else topic.default
            if unit and default is not None:
                default //= unit
            yield replace(topic, name=name, synonyms=(), default=default, **coarse)


def _table() -> SettingTable:
    own = [*BrokerSettings.table(), *CleanerSettings.table(), *ReplicationSettings.table()]
    own += [*unused_settings(), *unoffered_settings()]
    own += [
        *ObserveSettings.table(),
        *QuotaSettings.table(),
        *GroupSettings.table(),
        *CONSUMER_GROUP_SETTINGS,
        *SHARE_GROUP_SETTINGS,
        *ShareStateSettings.table(),
        *TransactionSettings.table(),
        *SECURITY_SETTINGS,
        *CLUSTER_SETTINGS,
    ]
    taken = {setting.name for setting in own}
    return SettingTable([*own, *(setting for setting in _topic_defaults() if setting.name not in taken)])


BROKER_SETTINGS: Final = _table()
ALIASES: Final = {"log.dir": "log.dirs", "broker.id": "node.id"}


def is_known(name: str) -> bool:
    """Whether a setting has this name; the metadata log may also hold names that mean something to Kafka's plugins."""
    return name in BROKER_SETTINGS or name.startswith(LISTENER_PREFIX)


def _listener_names(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of all listeners; those that are advertised must be among them."""
    names = tuple(endpoint.name for endpoint in parse_endpoints(values.get("listeners", (LISTENERS_DEFAULT,))))
    for endpoint in parse_endpoints(values["advertised.listeners"]) if "advertised.listeners" in values else ():
        if endpoint.name not in names:
            raise InvalidSetting(f"advertised.listeners: {endpoint.name} is not among the listeners")
        if endpoint.is_wildcard:
            raise InvalidSetting(f"advertised.listeners: {endpoint} is no address that a client could connect to")
    return names


def _not_about(gone: list[str], given: Mapping[str, str]) -> dict[str, str]:
    """What the file says of listeners that have been taken away while running waits for them to come back."""
    starts = tuple(f"{LISTENER_PREFIX}{name.lower()}." for name in gone)
    return {name: text for name, text in given.items() if not name.startswith(starts)}


def _about_known(dynamic: Mapping[str, str], listener_names: tuple[str, ...]) -> dict[str, str]:
    """What the cluster keeps for listeners that a broker no longer has is not its business."""
    starts = tuple(f"{LISTENER_PREFIX}{name.lower()}." for name in listener_names)
    return {name: text for name, text in dynamic.items() if name == PROTOCOL_MAP or name.startswith(starts)}


def _defaults_of(values: Mapping[str, Any]) -> TopicSettings:
    found = {}
    for topic in TOPIC_SETTINGS:
        for name in topic.synonyms:
            if values.get(name) is not None:
                unit = UNITS_MS.get(name, 1)
                found[topic.name] = values[name] * unit if unit > 1 and values[name] >= 0 else values[name]
                break
    return TopicSettings.of_values(found)
