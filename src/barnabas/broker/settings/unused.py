"""Kafka's settings that have nothing to govern here: their names are known, and each says why it has no effect.

Files written for Kafka name them, and tools set them, so they are read, kept and described; whoever sets one is told,
by the log at start and by its documentation in DescribeConfigs. Nothing that guards a cluster may be among them: a
setting of security that is not offered is refused instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.model.settings import INT32_MAX, INT64_MAX, Kind, Setting, Update

MIB: Final = 1024 * 1024
_LOOP: Final = "a broker is one loop on one core, and a machine with more cores runs more brokers"
_QUEUE: Final = "requests wait in their connections, and not in a queue of all"
_BUFFERS: Final = "the system sizes its buffers itself, by how far away a client is"
_WAITING: Final = "what waits is dropped when it is answered, so nothing is ever purged"
_CLEANER: Final = "the cleaner reads in slices and keeps 24 bytes a key; see log.cleaner.dedupe.buffer.size"
_CHECKPOINT: Final = "all checkpoints are saved together; see replica.high.watermark.checkpoint.interval.ms"
_LOADING: Final = "coordinators load their logs in slices of a fixed size"
_JAVA: Final = "it names a part of the Java platform"
_KERBEROS: Final = "GSSAPI is not among the mechanisms"
_REPORTERS: Final = "metrics are read at /metrics, see barnabas.http.port"
_LOGIN: Final = "it is about how Java clients renew their tokens"
_STREAMS: Final = "streams groups are not offered"
_TIERS: Final = "tiered storage is not offered"
_TOKENS: Final = "delegation tokens are not offered"
_WINDOWS: Final = "throttled replicas are counted second by second"
_QUORUM: Final = "what a turn of the loop writes is one batch, and slices of the metadata log have a fixed size"
_LINKS: Final = "links to other nodes wait as long as what is asked of them needs"

# Name, type, default, whether Kafka lets it change while running, and why it has no effect.
_ROWS: Final[tuple[tuple[str, Kind, Any, Update, str], ...]] = (
    ("background.threads", Kind.INT, 10, Update.CLUSTER_WIDE, _LOOP),
    ("num.io.threads", Kind.INT, 8, Update.CLUSTER_WIDE, _LOOP),
    ("num.network.threads", Kind.INT, 3, Update.CLUSTER_WIDE, _LOOP),
    ("num.recovery.threads.per.data.dir", Kind.INT, 2, Update.CLUSTER_WIDE, _LOOP),
    ("num.replica.alter.log.dirs.threads", Kind.INT, None, Update.READ_ONLY, _LOOP),
    ("group.coordinator.threads", Kind.INT, 4, Update.READ_ONLY, _LOOP),
    ("group.coordinator.background.threads", Kind.INT, 2, Update.READ_ONLY, _LOOP),
    ("queued.max.requests", Kind.INT, 500, Update.READ_ONLY, _QUEUE),
    ("queued.max.request.bytes", Kind.LONG, -1, Update.READ_ONLY, _QUEUE),
    ("socket.listen.backlog.size", Kind.INT, 50, Update.READ_ONLY, "1024 connections may wait to be accepted"),
    ("socket.receive.buffer.bytes", Kind.INT, 102_400, Update.READ_ONLY, _BUFFERS),
    ("socket.send.buffer.bytes", Kind.INT, 102_400, Update.READ_ONLY, _BUFFERS),
    ("delete.records.purgatory.purge.interval.requests", Kind.INT, 1, Update.READ_ONLY, _WAITING),
    ("fetch.purgatory.purge.interval.requests", Kind.INT, 1000, Update.READ_ONLY, _WAITING),
    ("producer.purgatory.purge.interval.requests", Kind.INT, 1000, Update.READ_ONLY, _WAITING),
    ("log.cleaner.io.buffer.size", Kind.INT, 512 * 1024, Update.CLUSTER_WIDE, _CLEANER),
    ("log.cleaner.io.buffer.load.factor", Kind.DOUBLE, 0.9, Update.CLUSTER_WIDE, _CLEANER),
    (
        "group.coordinator.append.linger.ms",
        Kind.INT,
        -1,
        Update.READ_ONLY,
        "what a turn of the loop writes is one batch",
    ),
    ("group.coordinator.cached.buffer.max.bytes", Kind.INT, MIB + 12, Update.CLUSTER_WIDE, "no buffers are cached"),
    ("offsets.load.buffer.size", Kind.INT, 5 * MIB, Update.READ_ONLY, _LOADING),
    ("transaction.state.log.load.buffer.size", Kind.INT, 5 * MIB, Update.READ_ONLY, _LOADING),
    ("kafka.metrics.polling.interval.secs", Kind.INT, 10, Update.READ_ONLY, _REPORTERS),
    ("kafka.metrics.reporters", Kind.LIST, (), Update.READ_ONLY, _REPORTERS),
    ("metric.reporters", Kind.LIST, (), Update.CLUSTER_WIDE, _REPORTERS),
    ("metrics.num.samples", Kind.INT, 2, Update.READ_ONLY, _REPORTERS),
    ("metrics.recording.level", Kind.STRING, "INFO", Update.READ_ONLY, _REPORTERS),
    ("metrics.sample.window.ms", Kind.LONG, 30_000, Update.READ_ONLY, _REPORTERS),
    ("log.message.format.version", Kind.STRING, None, Update.READ_ONLY, "there is one format, magic 2"),
    ("inter.broker.protocol.version", Kind.STRING, None, Update.READ_ONLY, "nodes agree on features, not on a version"),
    ("ssl.keymanager.algorithm", Kind.STRING, "SunX509", Update.PER_BROKER, _JAVA),
    ("ssl.trustmanager.algorithm", Kind.STRING, "PKIX", Update.PER_BROKER, _JAVA),
    ("ssl.secure.random.implementation", Kind.STRING, None, Update.PER_BROKER, _JAVA),
    ("ssl.provider", Kind.STRING, None, Update.PER_BROKER, _JAVA),
    ("ssl.protocol", Kind.STRING, "TLSv1.3", Update.PER_BROKER, "ssl.enabled.protocols says which versions are spoken"),
    ("sasl.kerberos.kinit.cmd", Kind.STRING, "/usr/bin/kinit", Update.PER_BROKER, _KERBEROS),
    ("sasl.kerberos.min.time.before.relogin", Kind.LONG, 60_000, Update.PER_BROKER, _KERBEROS),
    ("sasl.kerberos.principal.to.local.rules", Kind.LIST, ("DEFAULT",), Update.PER_BROKER, _KERBEROS),
    ("sasl.kerberos.service.name", Kind.STRING, None, Update.PER_BROKER, _KERBEROS),
    ("sasl.kerberos.ticket.renew.jitter", Kind.DOUBLE, 0.05, Update.PER_BROKER, _KERBEROS),
    ("sasl.kerberos.ticket.renew.window.factor", Kind.DOUBLE, 0.8, Update.PER_BROKER, _KERBEROS),
    ("sasl.login.refresh.buffer.seconds", Kind.SHORT, 300, Update.PER_BROKER, _LOGIN),
    ("sasl.login.refresh.min.period.seconds", Kind.SHORT, 60, Update.PER_BROKER, _LOGIN),
    ("sasl.login.refresh.window.factor", Kind.DOUBLE, 0.8, Update.PER_BROKER, _LOGIN),
    ("sasl.login.refresh.window.jitter", Kind.DOUBLE, 0.05, Update.PER_BROKER, _LOGIN),
    ("log.flush.offset.checkpoint.interval.ms", Kind.INT, 60_000, Update.READ_ONLY, _CHECKPOINT),
    ("log.flush.start.offset.checkpoint.interval.ms", Kind.INT, 60_000, Update.READ_ONLY, _CHECKPOINT),
    ("alter.log.dirs.replication.quota.window.num", Kind.INT, 11, Update.READ_ONLY, _WINDOWS),
    ("alter.log.dirs.replication.quota.window.size.seconds", Kind.INT, 1, Update.READ_ONLY, _WINDOWS),
    ("controller.quorum.append.linger.ms", Kind.INT, 25, Update.READ_ONLY, _QUORUM),
    ("controller.quorum.fetch.max.bytes", Kind.INT, 1_048_576, Update.READ_ONLY, _QUORUM),
    ("controller.quorum.fetch.snapshot.max.bytes", Kind.INT, 1_048_576, Update.READ_ONLY, _QUORUM),
    ("controller.socket.timeout.ms", Kind.INT, 30_000, Update.READ_ONLY, _LINKS),
    ("delegation.token.expiry.check.interval.ms", Kind.LONG, 3_600_000, Update.READ_ONLY, _TOKENS),
    ("delegation.token.expiry.time.ms", Kind.LONG, 86_400_000, Update.READ_ONLY, _TOKENS),
    ("delegation.token.max.lifetime.ms", Kind.LONG, 604_800_000, Update.READ_ONLY, _TOKENS),
    ("group.streams.assignment.interval.ms", Kind.INT, 1000, Update.CLUSTER_WIDE, _STREAMS),
    ("group.streams.heartbeat.interval.ms", Kind.INT, 5000, Update.READ_ONLY, _STREAMS),
    ("group.streams.initial.rebalance.delay.ms", Kind.INT, 3000, Update.READ_ONLY, _STREAMS),
    ("group.streams.max.assignment.interval.ms", Kind.INT, 15_000, Update.READ_ONLY, _STREAMS),
    ("group.streams.max.heartbeat.interval.ms", Kind.INT, 15_000, Update.READ_ONLY, _STREAMS),
    ("group.streams.max.session.timeout.ms", Kind.INT, 60_000, Update.READ_ONLY, _STREAMS),
    ("group.streams.max.size", Kind.INT, INT32_MAX, Update.READ_ONLY, _STREAMS),
    ("group.streams.max.standby.replicas", Kind.INT, 2, Update.READ_ONLY, _STREAMS),
    ("group.streams.min.assignment.interval.ms", Kind.INT, 0, Update.READ_ONLY, _STREAMS),
    ("group.streams.min.heartbeat.interval.ms", Kind.INT, 5000, Update.READ_ONLY, _STREAMS),
    ("group.streams.min.session.timeout.ms", Kind.INT, 45_000, Update.READ_ONLY, _STREAMS),
    ("group.streams.num.standby.replicas", Kind.INT, 0, Update.READ_ONLY, _STREAMS),
    ("group.streams.session.timeout.ms", Kind.INT, 45_000, Update.READ_ONLY, _STREAMS),
    (
        "log.dir.failure.timeout.ms",
        Kind.LONG,
        30_000,
        Update.READ_ONLY,
        "a directory that failed is told of with every heartbeat",
    ),
    (
        "offsets.commit.timeout.ms",
        Kind.INT,
        5000,
        Update.READ_ONLY,
        "a commit is answered when it is written, or when its coordinator moves",
    ),
    ("remote.fetch.max.wait.ms", Kind.INT, 500, Update.CLUSTER_WIDE, _TIERS),
    ("remote.list.offsets.request.timeout.ms", Kind.LONG, 30_000, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.index.file.cache.total.size.bytes", Kind.LONG, 1_073_741_824, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.manager.copier.thread.pool.size", Kind.INT, 10, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.manager.copy.max.bytes.per.second", Kind.LONG, INT64_MAX, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.manager.copy.quota.window.num", Kind.INT, 11, Update.READ_ONLY, _TIERS),
    ("remote.log.manager.copy.quota.window.size.seconds", Kind.INT, 1, Update.READ_ONLY, _TIERS),
    ("remote.log.manager.expiration.thread.pool.size", Kind.INT, 10, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.manager.fetch.max.bytes.per.second", Kind.LONG, INT64_MAX, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.manager.fetch.quota.window.num", Kind.INT, 11, Update.READ_ONLY, _TIERS),
    ("remote.log.manager.fetch.quota.window.size.seconds", Kind.INT, 1, Update.READ_ONLY, _TIERS),
    ("remote.log.manager.follower.thread.pool.size", Kind.INT, 2, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.manager.task.interval.ms", Kind.LONG, 30_000, Update.READ_ONLY, _TIERS),
    ("remote.log.manager.thread.pool.size", Kind.INT, 2, Update.READ_ONLY, _TIERS),
    ("remote.log.metadata.custom.metadata.max.bytes", Kind.INT, 128, Update.READ_ONLY, _TIERS),
    (
        "remote.log.metadata.manager.class.name",
        Kind.STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        Update.READ_ONLY,
        _TIERS,
    ),
    ("remote.log.metadata.manager.class.path", Kind.STRING, None, Update.READ_ONLY, _TIERS),
    ("remote.log.metadata.manager.impl.prefix", Kind.STRING, "rlmm.config.", Update.READ_ONLY, _TIERS),
    ("remote.log.metadata.manager.listener.name", Kind.STRING, None, Update.READ_ONLY, _TIERS),
    ("remote.log.reader.max.pending.tasks", Kind.INT, 100, Update.READ_ONLY, _TIERS),
    ("remote.log.reader.threads", Kind.INT, 10, Update.CLUSTER_WIDE, _TIERS),
    ("remote.log.storage.manager.class.name", Kind.STRING, None, Update.READ_ONLY, _TIERS),
    ("remote.log.storage.manager.class.path", Kind.STRING, None, Update.READ_ONLY, _TIERS),
    ("remote.log.storage.manager.impl.prefix", Kind.STRING, "rsm.config.", Update.READ_ONLY, _TIERS),
    ("replica.socket.receive.buffer.bytes", Kind.INT, 65_536, Update.READ_ONLY, _BUFFERS),
    ("replication.quota.window.num", Kind.INT, 11, Update.READ_ONLY, _WINDOWS),
    ("replication.quota.window.size.seconds", Kind.INT, 1, Update.READ_ONLY, _WINDOWS),
    ("request.timeout.ms", Kind.INT, 30_000, Update.READ_ONLY, _LINKS),
    ("sasl.login.connect.timeout.ms", Kind.INT, None, Update.READ_ONLY, _LOGIN),
    ("sasl.login.read.timeout.ms", Kind.INT, None, Update.READ_ONLY, _LOGIN),
    ("sasl.login.retry.backoff.max.ms", Kind.LONG, 10_000, Update.READ_ONLY, _LOGIN),
    ("sasl.login.retry.backoff.ms", Kind.LONG, 100, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.algorithm", Kind.STRING, "RS256", Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.claim.aud", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", Kind.INT, 300, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.claim.iss", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.claim.jti.include", Kind.BOOLEAN, False, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", Kind.INT, 60, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.claim.sub", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.file", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.private.key.file", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.assertion.template.file", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.client.credentials.client.id", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.scope", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    ("sasl.oauthbearer.token.endpoint.url", Kind.STRING, None, Update.READ_ONLY, _LOGIN),
    (
        "share.coordinator.append.linger.ms",
        Kind.INT,
        -1,
        Update.READ_ONLY,
        "what a turn of the loop writes is one batch",
    ),
    ("share.coordinator.cached.buffer.max.bytes", Kind.INT, 1_048_588, Update.CLUSTER_WIDE, "no buffers are cached"),
    ("share.coordinator.load.buffer.size", Kind.INT, 5_242_880, Update.READ_ONLY, _LOADING),
    (
        "share.coordinator.state.topic.compression.codec",
        Kind.INT,
        0,
        Update.READ_ONLY,
        "its records are small and not compressed",
    ),
    ("share.coordinator.threads", Kind.INT, 1, Update.READ_ONLY, _LOOP),
    ("share.fetch.purgatory.purge.interval.requests", Kind.INT, 1000, Update.READ_ONLY, _WAITING),
    ("socket.connection.setup.timeout.max.ms", Kind.LONG, 30_000, Update.READ_ONLY, _LINKS),
    ("socket.connection.setup.timeout.ms", Kind.LONG, 10_000, Update.READ_ONLY, _LINKS),
    ("telemetry.max.bytes", Kind.INT, 1_048_576, Update.READ_ONLY, "clients' telemetry is not asked for"),
    ("log.cleaner.threads", Kind.INT, 1, Update.CLUSTER_WIDE, _LOOP),
)

# The least and the largest value that Kafka takes, and the settings that have these limits.
_LIMITS: Final[dict[tuple[int, int | None], tuple[str, ...]]] = {
    (-1, None): (
        "group.coordinator.append.linger.ms",
        "share.coordinator.append.linger.ms",
    ),
    (0, None): (
        "log.cleaner.io.buffer.size",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "controller.quorum.append.linger.ms",
        "group.streams.assignment.interval.ms",
        "group.streams.initial.rebalance.delay.ms",
        "group.streams.max.assignment.interval.ms",
        "group.streams.max.standby.replicas",
        "group.streams.min.assignment.interval.ms",
        "group.streams.num.standby.replicas",
        "remote.log.metadata.custom.metadata.max.bytes",
        "log.cleaner.threads",
    ),
    (0, 3600): ("sasl.oauthbearer.assertion.claim.nbf.seconds",),
    (0, 86400): ("sasl.oauthbearer.assertion.claim.exp.seconds",),
    (1, None): (
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "group.coordinator.threads",
        "group.coordinator.background.threads",
        "queued.max.requests",
        "socket.listen.backlog.size",
        "offsets.load.buffer.size",
        "transaction.state.log.load.buffer.size",
        "kafka.metrics.polling.interval.secs",
        "metrics.num.samples",
        "metrics.sample.window.ms",
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "controller.quorum.fetch.max.bytes",
        "controller.quorum.fetch.snapshot.max.bytes",
        "delegation.token.expiry.check.interval.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "group.streams.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
        "group.streams.max.session.timeout.ms",
        "group.streams.max.size",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.session.timeout.ms",
        "log.dir.failure.timeout.ms",
        "offsets.commit.timeout.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.copy.quota.window.num",
        "remote.log.manager.copy.quota.window.size.seconds",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.fetch.quota.window.num",
        "remote.log.manager.fetch.quota.window.size.seconds",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.manager.task.interval.ms",
        "remote.log.manager.thread.pool.size",
        "remote.log.reader.max.pending.tasks",
        "remote.log.reader.threads",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "share.coordinator.load.buffer.size",
        "share.coordinator.threads",
        "telemetry.max.bytes",
    ),
    (524288, None): (
        "group.coordinator.cached.buffer.max.bytes",
        "share.coordinator.cached.buffer.max.bytes",
    ),
}


# Rows that may only have some values: a group's protocols are both there, and neither can be switched off.
def _protocols_problem(value: tuple[str, ...]) -> str | None:
    return None if {"classic", "consumer"} <= set(value) else "neither classic nor consumer can be switched off"


def unused_settings() -> Iterator[Setting]:
    limits = {name: pair for pair, names in _LIMITS.items() for name in names}
    for name, kind, default, update, reason in _ROWS:
        minimum, maximum = limits.get(name, (None, None))
        yield Setting(
            name=name,
            kind=kind,
            default=default,
            doc=f"No effect here: {reason}.",
            update=update,
            minimum=minimum,
            maximum=maximum,
            unused=True,
        )
    yield Setting(
        name="group.coordinator.rebalance.protocols",
        kind=Kind.LIST,
        default=("classic", "consumer", "streams"),
        doc="No effect here: groups of both protocols are served, and streams groups are not offered.",
        choices=("classic", "consumer", "streams", "share"),
        check=_protocols_problem,
        unused=True,
    )
