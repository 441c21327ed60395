"""Configuration of PostgreSQL change capture: Debezium's keys, and a few of its own."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from barnabas.connect.config import Config, Names, Secret, doc

SLOT_NAME: Final = re.compile(r"[a-z0-9_]{1,63}")
CONNECTION: Final = "Connection"
SNAPSHOT: Final = "Snapshot"
EVENTS: Final = "Events"
REPLICATION: Final = "Replication"
GIGABYTE: Final = 1 << 30

SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
SnapshotMode = Literal["initial", "initial_only", "no_data", "never", "when_needed"]
Port = Annotated[int, doc("Port of the server", group=CONNECTION), Meta(ge=1, le=65535)]


class PostgresConfig(Config):
    """Keys of the PostgreSQL source."""

    database_hostname: Annotated[str, doc("Host name of the server, or directory of its socket", group=CONNECTION)]
    database_dbname: Annotated[str, doc("Database to capture", group=CONNECTION)]
    database_user: Annotated[str, doc("User with the REPLICATION attribute", group=CONNECTION)]
    topic_prefix: Annotated[str, doc("First part of all topic names"), Meta(pattern=r"^[\w.\-]+$")]
    database_password: Annotated[Secret, doc("Password of the user", group=CONNECTION)] = Secret("")
    database_port: Port = 5432
    database_sslmode: Annotated[SslMode, doc("Whether to use TLS", group=CONNECTION)] = "prefer"
    database_sslcert: Annotated[str, doc("File with the client's certificate", group=CONNECTION)] = ""
    database_sslkey: Annotated[str, doc("File with the client's key", group=CONNECTION)] = ""
    database_sslpassword: Annotated[Secret, doc("Password of the client's key", group=CONNECTION)] = Secret("")
    database_sslrootcert: Annotated[str, doc("File with the certificates to trust", group=CONNECTION)] = ""

    plugin_name: Annotated[Literal["pgoutput"], doc("Decoding plugin of the server", group=REPLICATION)] = "pgoutput"
    slot_name: Annotated[str, doc("Replication slot; one for each connector", group=REPLICATION)] = "debezium"
    slot_drop_on_stop: Annotated[bool, doc("Drop the slot when the connector stops", group=REPLICATION)] = False
    slot_max_retries: Annotated[
        int, doc("Attempts to use the slot while another session has it", group=REPLICATION), Meta(ge=0)
    ] = 6
    slot_retry_delay_ms: Annotated[int, doc("Milliseconds between these attempts", group=REPLICATION), Meta(ge=1)] = (
        10_000
    )
    slot_max_wal: Annotated[
        int,
        doc(
            "Bytes of WAL that the slot may hold back: above it the connector drops the slot and takes a new snapshot;"
            " 0: no limit",
            group=REPLICATION,
        ),
        Meta(ge=0),
    ] = 0
    slot_warn_wal: Annotated[
        int, doc("Bytes of WAL held back by the slot from which on a warning is logged", group=REPLICATION), Meta(ge=0)
    ] = GIGABYTE
    publication_name: Annotated[str, doc("Publication to read", group=REPLICATION)] = "dbz_publication"
    publication_autocreate_mode: Annotated[
        Literal["all_tables", "disabled", "filtered", "no_tables"],
        doc("Which tables a publication has that the connector creates", group=REPLICATION),
    ] = "all_tables"
    publish_via_partition_root: Annotated[
        bool,
        doc("Publications that the connector creates name the partitioned table, not the partition", group=REPLICATION),
    ] = False
    status_update_interval_ms: Annotated[
        int, doc("Milliseconds between two confirmations to the server", group=REPLICATION), Meta(ge=1)
    ] = 10_000

    schema_include_list: Annotated[Names, doc("Regular expressions of schemas to capture")] = ()
    schema_exclude_list: Annotated[Names, doc("Regular expressions of schemas not to capture")] = ()
    table_include_list: Annotated[Names, doc("Regular expressions of schema.table to capture", importance="HIGH")] = ()
    table_exclude_list: Annotated[Names, doc("Regular expressions of schema.table not to capture")] = ()
    column_include_list: Annotated[Names, doc("Regular expressions of schema.table.column to keep")] = ()
    column_exclude_list: Annotated[Names, doc("Regular expressions of schema.table.column to leave out")] = ()
    message_key_columns: Annotated[
        str, doc("Columns of keys: 'schema.table:column,column;…', the table a regular expression")
    ] = ""

    snapshot_mode: Annotated[SnapshotMode, doc("When to read the tables as a whole", group=SNAPSHOT)] = "initial"
    snapshot_include_collection_list: Annotated[
        Names, doc("Regular expressions of the tables to read as a whole; empty: all captured ones", group=SNAPSHOT)
    ] = ()
    snapshot_chunk_rows: Annotated[
        int, doc("Rows of a table that one task reads at a time", group=SNAPSHOT), Meta(ge=1)
    ] = 50_000
    incremental_snapshot_chunk_size: Annotated[
        int, doc("The same for snapshots that a signal asks for", group=SNAPSHOT), Meta(ge=1)
    ] = 10_240
    signal_data_collection: Annotated[str, doc("schema.table with rows of signals", group=SNAPSHOT)] = ""

    tombstones_on_delete: Annotated[bool, doc("Follow each delete by a tombstone", group=EVENTS)] = True
    skipped_operations: Annotated[Names, doc("Operations to leave out: c, u, d, t or none", group=EVENTS)] = ("t",)
    decimal_handling_mode: Annotated[
        Literal["precise", "double", "string"], doc("How numeric and money are written", group=EVENTS)
    ] = "precise"
    time_precision_mode: Annotated[
        Literal["adaptive", "adaptive_time_microseconds", "connect"],
        doc("How dates and times without zone are written", group=EVENTS),
    ] = "adaptive"
    interval_handling_mode: Annotated[Literal["numeric", "string"], doc("How intervals are written", group=EVENTS)] = (
        "numeric"
    )
    hstore_handling_mode: Annotated[Literal["json", "map"], doc("How hstore is written", group=EVENTS)] = "json"
    binary_handling_mode: Annotated[
        Literal["bytes", "base64", "base64-url-safe", "hex"], doc("How bytea is written", group=EVENTS)
    ] = "bytes"
    money_fraction_digits: Annotated[int, doc("Digits after the point of money", group=EVENTS), Meta(ge=0)] = 2
    include_unknown_datatypes: Annotated[
        bool, doc("Write columns of unknown types as bytes of their text, instead of leaving them out", group=EVENTS)
    ] = False
    unavailable_value_placeholder: Annotated[
        str, doc("Stands for a large value that an update did not touch", group=EVENTS)
    ] = "__debezium_unavailable_value"
    provide_transaction_metadata: Annotated[
        bool, doc("Write begin and end of transactions to PREFIX.transaction", group=EVENTS)
    ] = False
    heartbeat_interval_ms: Annotated[
        int, doc("Milliseconds between heartbeats; 0: none are needed", group=EVENTS), Meta(ge=0)
    ] = 0
    heartbeat_action_query: Annotated[str, doc("SQL statement to run with each heartbeat", group=EVENTS)] = ""
    topic_heartbeat_prefix: Annotated[str, doc("First part of the heartbeats' topic", group=EVENTS)] = (
        "__debezium-heartbeat"
    )
    extended_headers_enabled: Annotated[
        Literal["false"], doc("Headers with the connector's name are not written", group=EVENTS)
    ] = "false"
    poll_interval_ms: Annotated[int, doc("Milliseconds between two batches"), Meta(ge=1)] = 500
    max_batch_size: Annotated[int, doc("Changes in one batch at most"), Meta(ge=1)] = 100_000

    def check(self) -> list[str]:
        """Return what is wrong over several keys."""
        problems = []
        if SLOT_NAME.fullmatch(self.slot_name) is None:
            problems.append(
                f"Invalid value {self.slot_name} for configuration slot.name: lower case letters, digits and _ only"
            )
        for kind in ("schema", "table", "column"):
            included, excluded = (getattr(self, f"{kind}_{which}_list") for which in ("include", "exclude"))
            if included and excluded:
                problems.append(f"Set {kind}.include.list or {kind}.exclude.list, and not both.")
            problems += [problem for pattern in (*included, *excluded) if (problem := _not_a_pattern(kind, pattern))]
        wrong = [each for each in self.skipped_operations if each not in ("c", "u", "d", "t", "none")]
        if wrong:
            problems.append(f"Invalid value {','.join(wrong)} for configuration skipped.operations: c, u, d, t or none")
        return problems

    def connection(self) -> dict[str, Any]:
        """Return the parameters of a connection, with the password."""
        made: dict[str, Any] = {
            "host": self.database_hostname,
            "port": self.database_port,
            "dbname": self.database_dbname,
            "user": self.database_user,
            "sslmode": self.database_sslmode,
        }
        optional = {
            "password": self.database_password.reveal(),
            "sslcert": self.database_sslcert,
            "sslkey": self.database_sslkey,
            "sslpassword": self.database_sslpassword.reveal(),
            "sslrootcert": self.database_sslrootcert,
        }
        return made | {name: value for name, value in optional.items() if value}


def _not_a_pattern(kind: str, pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"Invalid value {pattern} in {kind}.include.list or {kind}.exclude.list: {error}"
    return ""
