"""Opens the database of an address."""

from __future__ import annotations

from barnabas.connect.connectors.sql.database import Database
from barnabas.connect.connectors.sql.postgresql import PostgresqlDatabase
from barnabas.connect.connectors.sql.sqlite import SqliteDatabase
from barnabas.connect.connectors.sql.urls import Address


def open_database(address: Address) -> Database:
    """Return a session of the database at an address."""
    return SqliteDatabase(address) if address.kind == "sqlite" else PostgresqlDatabase(address)
