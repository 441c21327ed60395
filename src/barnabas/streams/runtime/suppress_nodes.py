"""The function of suppress: changes wait in a buffer in order of time."""

from __future__ import annotations

from typing import Any

from barnabas.streams.errors import ProcessingFailed
from barnabas.streams.runtime.buffer_store import SuppressBuffer
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.table_operators import Suppress


def build_suppress(wiring: Wiring, node: Node, operator: Suppress) -> Forward:
    """Hold back changes until their time has come, or until the buffer is full."""
    forward = wiring.forward(node)
    task = wiring.task
    buffer: SuppressBuffer = wiring.store(operator.store)
    buffer.counts_bytes = operator.max_bytes is not None
    observed = task.cell(f"suppress:{node.name}", -1)
    is_final, wait = operator.is_final, operator.wait_ms
    max_records, max_bytes = operator.max_records, operator.max_bytes
    is_limited = max_records is not None or max_bytes is not None

    def is_full() -> bool:
        return (max_records is not None and len(buffer) > max_records) or (
            max_bytes is not None and buffer.size > max_bytes
        )

    def emit_first() -> None:
        key, change = buffer.pop_first()
        # The final result of a window is never a deletion of something that was emitted before.
        if change.new is not None or not is_final:
            forward(key, change.new, change.old, change.timestamp, change.headers, change.latest)

    def suppress(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        if timestamp > observed[0]:
            observed[0] = timestamp
        time = key[2] if is_final else timestamp
        buffer.put(key, time, new, old, timestamp, headers, latest, len(task.record[0]))
        expiry = observed[0] - wait
        while buffer.is_due(expiry):
            emit_first()
        if not is_limited or not is_full():
            return
        if not operator.emit_early:
            topic, partition, offset, *_ = task.record
            raise ProcessingFailed(
                f"{node.name}: the buffer is full with {len(buffer)} records and {buffer.size} bytes; raise "
                f"max_records= or max_bytes=, or pass when_full='emit_early'",
                node=node.name,
                topic=topic,
                partition=partition,
                offset=offset,
            )
        while len(buffer) and is_full():
            emit_first()

    return suppress
