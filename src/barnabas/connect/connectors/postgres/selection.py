"""Which schemas, tables and columns are captured, and which columns make keys: lists of regular expressions. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.errors import ConfigError

_SYSTEM = re.compile(r"pg_.*|information_schema")


class Selection:
    """The lists of a configuration. Expressions match whole names, whatever their case, as in Debezium."""

    def __init__(self, config: PostgresConfig) -> None:
        self._schemas = _Filter(config.schema_include_list, config.schema_exclude_list)
        self._tables = _Filter(config.table_include_list, config.table_exclude_list)
        self._columns = _Filter(config.column_include_list, config.column_exclude_list)
        self._snapshot = _Filter(config.snapshot_include_collection_list, ())
        self._signals = config.signal_data_collection.rpartition(".")[0] and ".".join(
            config.signal_data_collection.split(".")[-2:]
        )
        self._keys = [_key_rule(rule) for rule in config.message_key_columns.split(";") if rule.strip()]

    def has_table(self, schema: str, table: str) -> bool:
        """Return whether changes of a table are published."""
        if _SYSTEM.fullmatch(schema):
            return False
        return self._schemas.admits(schema) and self._tables.admits(f"{schema}.{table}")

    def is_in_snapshot(self, schema: str, table: str) -> bool:
        """Return whether a table is read as a whole."""
        return self.has_table(schema, table) and self._snapshot.admits(f"{schema}.{table}")

    def is_signals(self, schema: str, table: str) -> bool:
        """Return whether a table holds signals."""
        return bool(self._signals) and f"{schema}.{table}" == self._signals

    def has_column(self, schema: str, table: str, column: str) -> bool:
        """Return whether a column is published."""
        return self._columns.admits(f"{schema}.{table}.{column}")

    def key_columns(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the columns that ``message.key.columns`` sets for a table; none if it says nothing."""
        name = f"{schema}.{table}"
        return next((columns for pattern, columns in self._keys if pattern.fullmatch(name)), ())


class _Filter:
    def __init__(self, included: Sequence[str], excluded: Sequence[str]) -> None:
        self._included = [re.compile(each, re.IGNORECASE) for each in included]
        self._excluded = [re.compile(each, re.IGNORECASE) for each in excluded]

    def admits(self, name: str) -> bool:
        if self._included:
            return any(each.fullmatch(name) for each in self._included)
        return not any(each.fullmatch(name) for each in self._excluded)


def _key_rule(rule: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    table, mark, columns = rule.strip().rpartition(":")
    names = tuple(each.strip() for each in columns.split(",") if each.strip())
    if not mark or not names:
        raise ConfigError(f"Invalid value {rule} for configuration message.key.columns: write schema.table:column,…")
    return re.compile(table, re.IGNORECASE), names
