"""Kafka's settings that have nothing to govern here: their names are known, and each says why it has no effect.

Files written for Kafka name them, and tools set them, so they are read, kept and described; whoever sets one is told,
by the log at start and by its documentation in DescribeConfigs. Nothing that guards a cluster may be among them: a
setting of security that is not offered is refused instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.model.settings import Kind, Setting, Update

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
)


def unused_settings() -> Iterator[Setting]:
    for name, kind, default, update, reason in _ROWS:
        doc = f"No effect here: {reason}."
        yield Setting(name=name, kind=kind, default=default, doc=doc, update=update, unused=True)
