"""Names that settings have in the clients of others: librdkafka (confluent-kafka), kafka-python and aiokafka.

None of them is taken here, where a setting has one name, Kafka's; whoever gives one is told which that is, or what
takes the setting's place. Names that Java's clients share are in ``unused_settings``. ``settings.py`` asks for advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_STORE: Final = "ssl.keystore.location, one PEM file with the private key and its certificates"
_LOGGING: Final = "Python's logging: the clients' logger is barnabas.client"
_RAISED: Final = "errors are raised where the call is awaited"
_OUTCOME: Final = "await what send_soon gives: it is the outcome"
_METRICS: Final = "the clients keep no metrics of their own"
_STORED: Final = "what was handed out counts as read; with enable.auto.commit=false commit(offsets) says what does"
_AHEAD: Final = "fetch.max.bytes and max.partition.fetch.bytes bound what is fetched ahead"
_NEEDLESS: Final = "leave it out, there is nothing to choose here"
_LIVENESS: Final = "leave it out: request.timeout.ms ends what gets no answer"
_VERSIONS: Final = "leave it out: brokers are always asked for their versions"
_CHECKED: Final = "certificates are always checked: ssl.truststore.location says whose are trusted"
_PROVIDER: Final = "sasl_oauthbearer_token_provider, a function that gives a token"
_KERBEROS: Final = "GSSAPI is not among the mechanisms; see sasl.mechanism"
_CLIENT: Final = "sasl.oauthbearer.client.credentials.client"

# What to use instead, by name; dots for underscores.
_INSTEAD: Final[Mapping[str, str]] = {
    # librdkafka: reaching a cluster
    "metadata.broker.list": "bootstrap.servers",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.copy.max.bytes": _NEEDLESS,
    "receive.message.max.bytes": "receive.frame.max.bytes",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "topic.metadata.refresh.fast.interval.ms": "retry.backoff.ms",
    "topic.metadata.refresh.fast.cnt": _NEEDLESS,
    "topic.metadata.refresh.sparse": _NEEDLESS,
    "topic.metadata.propagation.max.ms": "max.block.ms",
    "topic.blacklist": "a pattern that leaves them out, re.compile(...), in subscribe",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.blocking.max.ms": _NEEDLESS,
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.keepalive.enable": _LIVENESS,
    "socket.nagle.disable": "leave it out: what is sent leaves at once",
    "socket.max.fails": _LIVENESS,
    "broker.address.ttl": _NEEDLESS,
    "broker.address.family": "leave it out: all addresses of a name are tried",
    "reconnect.backoff.jitter.ms": "reconnect.backoff.ms, to which chance is always added",
    "coordinator.query.interval.ms": "retry.backoff.ms",
    "api.version.request": _VERSIONS,
    "api.version.request.timeout.ms": _VERSIONS,
    "api.version.fallback.ms": _VERSIONS,
    "broker.version.fallback": _VERSIONS,
    # librdkafka: signing in
    "ssl.ca.location": "ssl.truststore.location, a PEM file",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.ca.certificate.stores": "leave it out: without ssl.truststore.location the system's are trusted",
    "ssl.certificate.location": _STORE,
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.location": _STORE,
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.crl.location": "lists of revoked certificates are not read",
    "ssl.curves.list": "the TLS library's own choice is used",
    "ssl.sigalgs.list": "the TLS library's own choice is used",
    "https.ca.location": "ssl.truststore.location, a PEM file, which counts for issuers of tokens too",
    "https.ca.pem": "ssl.truststore.certificates, which count for issuers of tokens too",
    "enable.ssl.certificate.verification": _CHECKED,
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.kerberos.principal": _KERBEROS,
    "sasl.kerberos.keytab": _KERBEROS,
    "sasl.oauthbearer.method": "leave it out: sasl.oauthbearer.token.endpoint.url is enough",
    "sasl.oauthbearer.config": _PROVIDER,
    "sasl.oauthbearer.client.id": f"{_CLIENT}.id",
    "sasl.oauthbearer.client.secret": f"{_CLIENT}.secret",
    "enable.sasl.oauthbearer.unsecure.jwt": _PROVIDER,
    "oauth.cb": _PROVIDER,
    "oauthbearer.token.refresh.cb": _PROVIDER,
    # librdkafka: producers
    "queue.buffering.max.ms": "linger.ms",
    "queue.buffering.max.kbytes": "buffer.memory, which counts bytes",
    "queue.buffering.max.messages": "buffer.memory, which counts bytes",
    "queue.buffering.backpressure.threshold": _NEEDLESS,
    "batch.num.messages": "batch.size, which counts bytes",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
    "compression.level": "compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "sticky.partitioning.linger.ms": _NEEDLESS,
    "enable.gapless.guarantee": _NEEDLESS,
    "partitioner.cb": "Producer(settings, partitioner=...)",
    "dr.cb": _OUTCOME,
    "dr.msg.cb": _OUTCOME,
    "on.delivery": _OUTCOME,
    "delivery.report.only.error": _OUTCOME,
    # librdkafka: consumers
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.error.backoff.ms": "retry.backoff.ms",
    "fetch.queue.backoff.ms": _NEEDLESS,
    "queued.min.messages": _AHEAD,
    "queued.max.messages.kbytes": _AHEAD,
    "auto.commit.enable": "enable.auto.commit",
    "enable.auto.offset.store": _STORED,
    "offset.store.method": _STORED,
    "enable.partition.eof": "assign(partitions, until_end=True), or lag(partition)",
    "rebalance.cb": "a listener, given to subscribe",
    "offset.commit.cb": _RAISED,
    "consume.callback.max.messages": "max.poll.records",
    # librdkafka: what it says of itself
    "debug": _LOGGING,
    "log.level": _LOGGING,
    "log.cb": _LOGGING,
    "logger": _LOGGING,
    "log.connection.close": _LOGGING,
    "log.queue": _LOGGING,
    "log.thread.name": _LOGGING,
    "error.cb": _RAISED,
    "throttle.cb": "a client that a broker throttles waits by itself",
    "statistics.interval.ms": _METRICS,
    "stats.cb": _METRICS,
    # kafka-python and aiokafka
    "ssl.cafile": "ssl.truststore.location, a PEM file",
    "ssl.certfile": _STORE,
    "ssl.keyfile": _STORE,
    "ssl.password": "ssl.key.password",
    "ssl.check.hostname": "ssl.endpoint.identification.algorithm: https, or nothing",
    "ssl.crlfile": "lists of revoked certificates are not read",
    "ssl.context": "ssl.truststore.location and ssl.keystore.location, PEM files",
    "ssl.ciphers": "the TLS library's own choice is used",
    "sasl.plain.username": "sasl.username",
    "sasl.plain.password": "sasl.password",
    "sasl.oauth.token.provider": _PROVIDER,
    "api.version": _VERSIONS,
    "api.version.auto.timeout.ms": _VERSIONS,
    "max.batch.size": "batch.size",
    "consumer.timeout.ms": "poll(timeout_ms=...)",
}


def advice(name: str) -> str | None:
    """What to use in the place of a setting that others have; None if nobody known here has it."""
    return _INSTEAD.get(name.replace("_", "."))


def foreign_names() -> tuple[str, ...]:
    return tuple(_INSTEAD)
