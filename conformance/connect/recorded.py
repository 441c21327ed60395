"""Debezium's events of one workload, recorded, so that every test run can compare ours with them without Java.

`python -m conformance.connect.recorded` writes the file again. Positions, times and numbers of transactions are left
out; long texts and lists are kept as hashes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from conformance.connect.events import ChangeEvent

PATH: Final = Path(__file__).parents[2] / "tests" / "data" / "debezium-events.json.gz"
SEED: Final = 11
TRANSACTIONS: Final = 60
LONG: Final = 100  # characters of a text, or items of a list, from which on a hash stands for it
OF_A_RUN: Final = (
    "db",
    "ts_ms",
    "ts_us",
    "ts_ns",
    "txId",
    "lsn",
    "snapshot",
)  # what differs from run to run, or by table


COMPUTED: Final = {"defaults": ("e", "f", "i")}  # columns whose values the server makes, by table


def stable(events: Sequence[ChangeEvent]) -> list[Any]:
    """Return events without what differs from run to run, as JSON values; rows of a snapshot come first, sorted."""
    made = [_short([each.key, _stable(each.value), [list(header) for header in each.headers]]) for each in events]
    reads = [each for each in made if each[1] is not None and each[1]["payload"]["op"] == "r"]
    return [*sorted(reads, key=json.dumps), *(each for each in made if each not in reads)]


def _stable(value: Any) -> Any:
    if value is None:
        return None
    payload = dict(value["payload"])
    source = {name: each for name, each in payload["source"].items() if name not in OF_A_RUN}
    payload["source"] = source
    for side in ("before", "after"):
        if payload[side] is not None:
            hidden = COMPUTED.get(source["table"], ())
            payload[side] = {name: each for name, each in payload[side].items() if name not in hidden}
    return {"schema": value["schema"], "payload": payload}


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list) and len(value) <= LONG:
        return [_short(each) for each in value]
    if isinstance(value, list) or (isinstance(value, str) and len(value) > LONG):
        return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
    return value


def packed(events: dict[str, Sequence[Any]]) -> bytes:
    """Return events by topic as bytes; each schema is there once."""
    schemas: dict[str, Any] = {}

    def kept(value: Any) -> Any:
        if not isinstance(value, dict) or "schema" not in value:
            return value
        text = json.dumps(value["schema"], sort_keys=True)
        number = hashlib.sha256(text.encode()).hexdigest()[:8]
        schemas[number] = value["schema"]
        return {"schema": number, "payload": value["payload"]}

    topics = {topic: [[kept(key), kept(value), more] for key, value, more in some] for topic, some in events.items()}
    return gzip.compress(json.dumps({"schemas": schemas, "topics": topics}).encode(), mtime=0)


def unpacked(data: bytes) -> dict[str, list[Any]]:
    """Return events by topic."""
    found = json.loads(gzip.decompress(data))

    def whole(value: Any) -> Any:
        if not isinstance(value, dict) or "schema" not in value:
            return value
        return {"schema": found["schemas"][value["schema"]], "payload": value["payload"]}

    return {topic: [[whole(k), whole(v), more] for k, v, more in some] for topic, some in found["topics"].items()}


def main() -> None:
    from tools.connect_jars import debezium_plugins
    from tools.postgres_server import PostgresServer

    from barnabas.testing import BrokerProcess
    from conformance.connect.debezium import THEIRS, Judge
    from conformance.connect.workers import KafkaWorker
    from conformance.connect.workload import TABLES

    with tempfile.TemporaryDirectory(prefix="barnabas-record-") as name, BrokerProcess(Path(name) / "broker") as broker:
        server = PostgresServer()
        servers = broker.bootstrap_servers
        try:
            with KafkaWorker(servers, Path(name), group="theirs", plugins=[debezium_plugins()]) as kafka:
                judge = Judge(servers, server, {THEIRS: kafka})
                judge.run("recorded", SEED, TRANSACTIONS, {})
                found = {table: judge.events("recorded", THEIRS, f"public.{table}") for table in TABLES}
        finally:
            server.stop()
    PATH.write_bytes(packed({table: stable(some) for table, some in found.items()}))
    print(f"written: {PATH}, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
