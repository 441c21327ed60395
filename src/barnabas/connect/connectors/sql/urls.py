"""Addresses of databases: ``postgresql://…`` and ``sqlite:…``, also as JDBC writes them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from barnabas.connect.errors import ConfigError

# Parameters of JDBC's URLs by their names in libpq; others of libpq's may be given as they are.
_JDBC = {"user": "user", "password": "password", "ssl": None, "sslmode": "sslmode", "currentSchema": None}
_LIBPQ = {"sslmode", "sslcert", "sslkey", "sslrootcert", "connect_timeout", "application_name", "user", "password"}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is; its text has no password."""

    kind: Literal["postgresql", "sqlite"]
    parameters: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        if self.kind == "sqlite":
            return f"sqlite:{self.parameters['path']}"
        return f"postgresql://{self.parameters['host']}:{self.parameters['port']}/{self.parameters['dbname']}"


def address_of(url: str, user: str = "", password: str = "") -> Address:
    """Return the address of a URL; raise ``ConfigError`` for one that is not understood."""
    plain = url.removeprefix("jdbc:")
    if plain.startswith("sqlite:"):
        path = plain.removeprefix("sqlite:").removeprefix("///")
        if not path or path == ":memory:":
            raise ConfigError(f"Invalid value {url} for configuration connection.url: a file is needed")
        return Address("sqlite", {"path": path})
    if not plain.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            f"Invalid value {url.partition(':')[0]}:… for configuration connection.url: only postgresql:// and sqlite:"
        )
    parts = urlsplit(plain)
    query = dict(parse_qsl(parts.query))
    unknown = [name for name in query if name not in _LIBPQ and name not in _JDBC]
    if unknown:
        raise ConfigError(f"connection.url has the unknown parameters {', '.join(unknown)}")
    try:
        port = parts.port or 5432
    except ValueError as error:
        raise ConfigError(f"connection.url: {error}") from error
    made: dict[str, Any] = {
        "host": parts.hostname or "localhost",
        "port": port,
        "dbname": unquote(parts.path.lstrip("/")) or "postgres",
    }
    made |= {name: value for name, value in query.items() if name in _LIBPQ}
    if query.get("ssl", "").lower() == "true":
        made.setdefault("sslmode", "require")
    names = {
        "user": user or unquote(parts.username or "") or query.get("user", ""),
        "password": password or unquote(parts.password or "") or query.get("password", ""),
    }
    return Address("postgresql", made | {name: value for name, value in names.items() if value})
