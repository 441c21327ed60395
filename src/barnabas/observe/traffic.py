"""What went into a partition and came out of it since the broker took it up: counters, and nothing else.

The handlers of Produce and Fetch count on the way; ``broker/metrics/traffic.py`` adds them up by topic when somebody
looks.
"""

from __future__ import annotations


class Traffic:
    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0
