"""What the cleaner of compacted logs does and has done, in numbers; Kafka's names where Kafka has them.

Only what the cleaner says of itself at the moment of asking; ``metrics`` shows it with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.broker.requests.services import Services
from barnabas.observe.metrics import COUNTER, Family, Sample, one

STATES: Final = ("cleaning", "due", "waiting", "clean", "failed", "disabled")


def of_cleaner(broker: Services) -> Iterator[Family]:
    cleaner = broker.cleaner
    totals, prefix = cleaner.totals, "barnabas_cleaner_"
    yield one(f"{prefix}rounds_total", "Rounds of cleaning that were finished.", totals.rounds, COUNTER)
    yield one(f"{prefix}read_bytes_total", "Bytes of log that they went through.", totals.read_bytes, COUNTER)
    yield one(f"{prefix}written_bytes_total", "Bytes of log that they wrote anew.", totals.written_bytes, COUNTER)
    yield one(f"{prefix}seconds_total", "Time that they took.", totals.milliseconds / 1000, COUNTER)
    yield one("kafka_log_logcleaner_maxcleantimesecs", "The longest of them.", totals.longest_ms / 1000)
    yield one(
        "kafka_log_logcleanermanager_uncleanablepartitionscount",
        "Logs that cannot be cleaned any more.",
        len(cleaner.failed),
    )
    rows = []
    for key in sorted(broker.store.logs):
        status = cleaner.status(key)
        if status is not None and status.state in STATES:
            rows.append((status, (("topic", key.topic), ("partition", str(key.partition)))))
    yield Family(
        f"{prefix}state",
        "How each compacted log stands with the cleaner: 1 for the state it is in.",
        (Sample(1, (*at, ("state", status.state))) for status, at in rows),
    )
    yield Family(
        f"{prefix}dirty_ratio",
        "Which part of what could be cleaned is dirty.",
        (Sample(round(status.cleanable.ratio, 4), at) for status, at in rows if status.cleanable is not None),
    )
