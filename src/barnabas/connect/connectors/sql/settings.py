"""Configuration of the SQL source and sink: the JDBC connectors' keys."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from barnabas.connect.config import Config, Names, Secret, doc
from barnabas.connect.connectors.sql.urls import address_of
from barnabas.connect.errors import ConfigError

Url = Annotated[
    str, doc("postgresql://host:port/database, or sqlite:///path; with or without jdbc: before it", importance="HIGH")
]


def _url_problems(url: str) -> list[str]:
    try:
        address_of(url)
    except ConfigError as error:
        return list(error.problems)
    return []


class SqlSinkConfig(Config):
    """Keys of the SQL sink."""

    connection_url: Url
    connection_user: Annotated[str, doc("User of the database", importance="HIGH")] = ""
    connection_password: Annotated[Secret, doc("Password of the user", importance="HIGH")] = Secret("")
    insert_mode: Annotated[
        Literal["insert", "upsert", "update"], doc("How rows are written", importance="HIGH", group="Writes")
    ] = "insert"
    pk_mode: Annotated[
        Literal["none", "kafka", "record_key", "record_value"],
        doc("Where the primary key comes from", importance="HIGH", group="Data Mapping"),
    ] = "none"
    pk_fields: Annotated[Names, doc("Columns of the primary key; empty: all fields", group="Data Mapping")] = ()
    fields_whitelist: Annotated[Names, doc("Fields of values to write; empty: all", group="Data Mapping")] = ()
    table_name_format: Annotated[str, doc("Name of the table; ${topic} is the topic's", group="Data Mapping")] = (
        "${topic}"
    )
    auto_create: Annotated[bool, doc("Create tables that are missing", group="DDL")] = False
    auto_evolve: Annotated[bool, doc("Add columns that are missing", group="DDL")] = False
    delete_enabled: Annotated[bool, doc("Delete the row of a tombstone; needs pk.mode=record_key", group="Writes")] = (
        False
    )
    batch_size: Annotated[int, doc("Rows that are written by one statement at most", group="Writes"), Meta(ge=1)] = 3000

    def check(self) -> list[str]:
        """Return what is wrong over several keys."""
        problems = _url_problems(self.connection_url)
        if self.delete_enabled and self.pk_mode != "record_key":
            problems.append("delete.enabled needs pk.mode=record_key.")
        if self.insert_mode != "insert" and self.pk_mode == "none":
            problems.append(f"insert.mode={self.insert_mode} needs a primary key: set pk.mode.")
        if self.pk_mode == "kafka" and len(self.pk_fields) not in (0, 3):
            problems.append("pk.fields must have three names with pk.mode=kafka: of topic, partition and offset.")
        return problems


class SqlSourceConfig(Config):
    """Keys of the SQL source."""

    connection_url: Url
    topic_prefix: Annotated[str, doc("Before the table's name in topics; with query the whole name")]
    connection_user: Annotated[str, doc("User of the database", importance="HIGH")] = ""
    connection_password: Annotated[Secret, doc("Password of the user", importance="HIGH")] = Secret("")
    mode: Annotated[
        Literal["bulk", "incrementing", "timestamp", "timestamp+incrementing"],
        doc("How new rows are found", importance="HIGH"),
    ] = "bulk"
    incrementing_column_name: Annotated[str, doc("Column that grows with each new row")] = ""
    timestamp_column_name: Annotated[str, doc("Column with the time of the last change")] = ""
    timestamp_delay_interval_ms: Annotated[
        int, doc("Milliseconds that a row must be old to be read: for transactions that commit late"), Meta(ge=0)
    ] = 0
    table_whitelist: Annotated[Names, doc("Tables to read; empty: all")] = ()
    table_blacklist: Annotated[Names, doc("Tables not to read")] = ()
    schema_pattern: Annotated[str, doc("Schema of the tables, in PostgreSQL")] = "public"
    query: Annotated[str, doc("A select statement to read instead of tables")] = ""
    poll_interval_ms: Annotated[int, doc("Milliseconds between two looks"), Meta(ge=1)] = 5000
    batch_max_rows: Annotated[int, doc("Rows of a table in one batch at most"), Meta(ge=1)] = 100_000

    @property
    def has_id(self) -> bool:
        """Return whether the mode uses an incrementing column."""
        return self.mode in ("incrementing", "timestamp+incrementing")

    @property
    def has_time(self) -> bool:
        """Return whether the mode uses a timestamp column."""
        return self.mode in ("timestamp", "timestamp+incrementing")

    def check(self) -> list[str]:
        """Return what is wrong over several keys."""
        problems = _url_problems(self.connection_url)
        if self.has_id and not self.incrementing_column_name:
            problems.append(f"mode={self.mode} needs incrementing.column.name.")
        if self.has_time and not self.timestamp_column_name:
            problems.append(f"mode={self.mode} needs timestamp.column.name.")
        if self.query and (self.table_whitelist or self.table_blacklist):
            problems.append("Set query, or lists of tables, and not both.")
        return problems
