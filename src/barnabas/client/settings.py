"""What a client can be told: typed, with Kafka's names, defaults and ranges.

Each setting is declared once, as a field: ``ProducerSettings(linger_ms=5)`` in Python and ``linger.ms`` in a mapping
read by :meth:`Settings.of`. What a setting does is decided where it is read, never here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, Self

from barnabas.model.settings import INT32_MAX, INT64_MAX, InvalidSetting, Kind, Setting, SettingTable

DEFAULT_PORT: Final = 9092

Acks = Literal[0, 1, -1]
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]
IsolationLevel = Literal["read_uncommitted", "read_committed"]
OffsetReset = Literal["earliest", "latest", "none"]


_ALIASES: Final = {"all": "-1"}  # acks=all is how everyone writes it


def _setting(kind: Kind, default: Any, doc: str, **limits: Any) -> Any:
    return field(default=default, metadata=_facts(kind, doc, **limits))


def _facts(kind: Kind, doc: str, **limits: Any) -> Mapping[str, Any]:
    return {"kind": kind, "doc": doc, "limits": limits}


def _milliseconds(default: int, doc: str, *, minimum: int = 0, maximum: int = INT32_MAX) -> Any:
    return _setting(Kind.INT, default, doc, minimum=minimum, maximum=maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The part that every client shares: how to reach a cluster and how patient to be with it."""

    bootstrap_servers: tuple[str, ...] = _setting(Kind.LIST, ("127.0.0.1:9092",), "Where to ask for the cluster first.")
    client_id: str = _setting(Kind.STRING, "barnabas", "The name under which brokers log and limit this client.")
    request_timeout_ms: int = _milliseconds(30_000, "How long to wait for one answer before the connection is dropped.")
    default_api_timeout_ms: int = _milliseconds(60_000, "How long a call may go on trying.")
    retry_backoff_ms: int = _milliseconds(100, "The pause before the first retry; it doubles from there.")
    retry_backoff_max_ms: int = _milliseconds(1_000, "The longest pause before a retry.")
    reconnect_backoff_ms: int = _milliseconds(50, "The pause before a broker is dialled again; it doubles from there.")
    reconnect_backoff_max_ms: int = _milliseconds(1_000, "The longest pause before a broker is dialled again.")
    socket_connection_setup_timeout_ms: int = _milliseconds(10_000, "How long dialling a broker may take.", minimum=1)
    metadata_max_age_ms: int = _milliseconds(300_000, "When to ask for the cluster's picture again without a reason.")
    receive_frame_max_bytes: int = _setting(
        Kind.INT, 128 * 1024 * 1024, "The largest answer that is accepted.", minimum=1024, maximum=INT32_MAX
    )

    def __post_init__(self) -> None:
        servers: object = self.bootstrap_servers
        if isinstance(servers, str):  # a string is a sequence of strings too: nobody means its letters
            object.__setattr__(self, "bootstrap_servers", tuple(_names(servers)))
        for setting in self.table():
            setting.checked(getattr(self, setting.attribute))
        for server in self.bootstrap_servers:
            address_of(server)
        if not self.bootstrap_servers:
            raise InvalidSetting("bootstrap.servers is empty: name at least one host:port")

    @classmethod
    def table(cls) -> SettingTable:
        return SettingTable(_declared(entry.name, entry.default, entry.metadata) for entry in fields(cls))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From Kafka's names (``linger.ms``) or ours (``linger_ms``), values as text or typed."""
        table = cls.table()
        settings = {name: table[name.replace("_", ".")] for name in values}
        return cls(
            **{
                setting.attribute: setting.parse(_ALIASES.get(value, value)) if isinstance(value, str) else value
                for setting, value in zip(settings.values(), values.values(), strict=True)
            }
        )


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _declared(attribute: str, default: Any, metadata: Mapping[str, Any]) -> Setting:
    return Setting(
        name=attribute.replace("_", "."),
        kind=metadata["kind"],
        default=default,
        doc=metadata["doc"],
        **metadata["limits"],
    )


def _parse_acks(value: Any) -> str | None:
    return None if value in (0, 1, -1) else "must be 0, 1 or -1 (all)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(Settings):
    acks: Acks = field(
        default=-1,
        metadata=_facts(Kind.SHORT, "Who must have a batch: nobody (0), the leader (1), all (-1).", check=_parse_acks),
    )
    enable_idempotence: bool = _setting(Kind.BOOLEAN, True, "Retries neither double nor reorder what was sent.")
    batch_size: int = _setting(Kind.INT, 16_384, "Bytes after which a batch leaves without lingering.", minimum=0)
    linger_ms: int = _milliseconds(5, "How long a batch waits for more records.")
    buffer_memory: int = _setting(
        Kind.LONG, 32 * 1024 * 1024, "Bytes of records that may wait here.", minimum=1, maximum=INT64_MAX
    )
    max_request_size: int = _setting(Kind.INT, 1024 * 1024, "Bytes of records in one request.", minimum=0)
    max_in_flight_requests_per_connection: int = _setting(
        Kind.INT, 5, "Requests that a broker may owe us answers to.", minimum=1, maximum=INT32_MAX
    )
    delivery_timeout_ms: int = _milliseconds(120_000, "How long until an unanswered record counts as failed.")
    max_block_ms: int = _milliseconds(60_000, "How long a send may wait for room or for the topic's partitions.")
    compression_type: CodecName = field(
        default="none",
        metadata=_facts(Kind.STRING, "How batches are compressed.", choices=("none", "gzip", "snappy", "lz4", "zstd")),
    )

    def __post_init__(self) -> None:
        # Without the arguments: slots make the class anew, and the implicit cell still points to the old one.
        Settings.__post_init__(self)
        if self.enable_idempotence and self.acks != -1:
            # Java's producer switches idempotence off too when acks alone was given.
            object.__setattr__(self, "enable_idempotence", False)
        if self.enable_idempotence and self.max_in_flight_requests_per_connection > 5:
            raise InvalidSetting(
                "max.in.flight.requests.per.connection must be at most 5 with enable.idempotence: "
                "a broker remembers five batches of a producer"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(Settings):
    fetch_min_bytes: int = _setting(Kind.INT, 1, "Bytes that make a broker answer a fetch at once.", minimum=0)
    fetch_max_wait_ms: int = _milliseconds(500, "How long a broker may wait for fetch.min.bytes.")
    fetch_max_bytes: int = _setting(Kind.INT, 52_428_800, "Bytes in one answer, about.", minimum=0)
    max_partition_fetch_bytes: int = _setting(Kind.INT, 1_048_576, "Bytes of one partition in one answer.", minimum=0)
    max_poll_records: int = _setting(Kind.INT, 500, "Records handed out by one poll.", minimum=1)
    isolation_level: IsolationLevel = field(
        default="read_uncommitted",
        metadata=_facts(
            Kind.STRING,
            "Whether records of open and aborted transactions are seen.",
            choices=("read_uncommitted", "read_committed"),
        ),
    )
    auto_offset_reset: OffsetReset = field(
        default="latest",
        metadata=_facts(Kind.STRING, "Where to go when a position is gone.", choices=("earliest", "latest", "none")),
    )
    check_crcs: bool = _setting(Kind.BOOLEAN, True, "Whether every batch's checksum is compared.")
    client_rack: str = _setting(Kind.STRING, "", "Where this client runs, for reading from the closest replica.")
    decompressed_max_bytes: int = _setting(
        Kind.INT, 128 * 1024 * 1024, "The largest batch after decompression that is accepted.", minimum=1
    )


def address_of(server: str) -> tuple[str, int]:
    """``host``, ``host:port`` or ``[v6]:port``; a scheme like PLAINTEXT:// is allowed and dropped."""
    text = server.rpartition("://")[2]
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = rest[1:] if rest.startswith(":") else ("" if bracket and not rest else "?")
    else:
        host, _, port = text.partition(":")
    port = port or str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InvalidSetting(f"bootstrap.servers: {server!r} is not host:port")
    return host, int(port)
