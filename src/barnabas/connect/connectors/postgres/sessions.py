"""Sessions of PostgreSQL, by psycopg 3: for SQL, and for the replication protocol (COPY BOTH)."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.connect.connectors.postgres.pgoutput import POSTGRES_EPOCH_US, ProtocolError, lsn_text
from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS: Final = 10
OPTIONS: Final = (
    "-c DateStyle=ISO -c IntervalStyle=iso_8601 -c TimeZone=UTC -c bytea_output=hex -c extra_float_digits=3"
    " -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0"
)
_DATA: Final = struct.Struct(">QQq")
_KEEPALIVE: Final = struct.Struct(">QqB")
_STATUS: Final = struct.Struct(">cQQQqB")
_NOT_RETRIABLE: Final = ("28", "3D", "42", "0A", "55000")  # SQLSTATE: authorization, no database, syntax or right, …


class Xlog(NamedTuple):
    """A message of the stream and where it stands in the WAL."""

    lsn: int
    payload: bytes


@contextmanager
def database_errors(action: str) -> Iterator[None]:
    """Raise errors of psycopg as this package's: retriable if the connection or the server is at fault."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        text = f"PostgreSQL: {action}: {str(error).strip()}"
        is_lasting = state.startswith(_NOT_RETRIABLE) or "authentication failed" in text
        if isinstance(error, psycopg.OperationalError) and not is_lasting:
            raise RetriableError(text) from error
        raise ConnectError(text) from error


def connect(config: PostgresConfig, **more: Any) -> psycopg.Connection[Any]:
    """Return a session; ``more`` are parameters of the connection."""
    try:
        import psycopg
    except ImportError as error:
        raise ConnectError("PostgreSQL needs psycopg: pip install 'barnabas[postgres]'") from error
    with database_errors(f"cannot connect to {config.database_hostname}:{config.database_port}"):
        return psycopg.connect(
            **config.connection(),
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            options=OPTIONS,
            client_encoding="utf8",
            application_name="barnabas-connect",
            **more,
        )


class ReplicationSession:
    """A stream of changes from a slot. Used by one thread."""

    def __init__(self, config: PostgresConfig, start: int) -> None:
        self._connection = connect(config, replication="database")
        self._pg = self._connection.pgconn
        self.server_lsn = start  # end of the server's WAL, as far as it has told
        try:
            self._start(config, start)
        except BaseException:
            self._connection.close()
            raise

    def _start(self, config: PostgresConfig, start: int) -> None:
        from psycopg import pq

        publication = config.publication_name.replace('"', '""').replace("'", "''")
        command = (
            f'START_REPLICATION SLOT "{config.slot_name}" LOGICAL {lsn_text(start)}'
            f" (proto_version '1', publication_names '\"{publication}\"')"
        )
        for attempt in range(config.slot_max_retries + 1):
            result = self._pg.exec_(command.encode())
            if result.status == pq.ExecStatus.COPY_BOTH:
                return
            problem = result.error_message.decode(errors="replace").strip()
            if "is active" not in problem:
                raise ConnectError(f"PostgreSQL: slot {config.slot_name}: {problem}")
            if attempt < config.slot_max_retries:  # the server may not have noticed yet that our old session is gone
                time.sleep(min(1.0, config.slot_retry_delay_ms / 1000))
        raise RetriableError(f"PostgreSQL: another session reads the slot {config.slot_name}: {problem}")

    def receive(self, wait_seconds: float) -> Xlog | None:
        """Return the next message; None if there is none in this time."""
        while True:
            size, data = self._pg.get_copy_data(1)
            if size == 0:
                readable, _, _ = select.select([self._pg.socket], [], [], wait_seconds)
                if not readable:
                    return None
                self._pg.consume_input()
                continue
            if size < 0:
                raise RetriableError(f"PostgreSQL: the stream ended: {self._problem()}")
            found = self._message(bytes(data))
            if found is not None:
                return found

    def _problem(self) -> str:
        result = self._pg.get_result()
        text = result.error_message if result is not None else self._pg.error_message
        return text.decode(errors="replace").strip()

    def _message(self, data: bytes) -> Xlog | None:
        """Return the message of the stream; keepalives only move the server's position."""
        try:
            if data[:1] == b"w":
                lsn, end, _ = _DATA.unpack_from(data, 1)
                self.server_lsn = max(self.server_lsn, lsn, end)
                return Xlog(lsn, data[1 + _DATA.size :])
            if data[:1] == b"k":
                end, _, is_urgent = _KEEPALIVE.unpack_from(data, 1)
                self.server_lsn = max(self.server_lsn, end)
                self.is_reply_wanted = bool(is_urgent)
                return None
        except struct.error as error:
            raise ProtocolError(f"replication message of {len(data)} bytes is malformed: {error}") from error
        raise ProtocolError(f"unknown replication message {data[:1]!r}")

    is_reply_wanted = False

    def confirm(self, lsn: int) -> None:
        """Tell the server that everything up to here is durable."""
        now = time.time_ns() // 1000 - POSTGRES_EPOCH_US
        self._pg.put_copy_data(_STATUS.pack(b"r", max(lsn, self.server_lsn), lsn, lsn, now, 0))
        self._pg.flush()
        self.is_reply_wanted = False

    def close(self) -> None:
        """End the session."""
        self._connection.close()
