"""What the share-partitions of this broker did, in numbers; ``broker/metrics/share.py`` exports them."""

from __future__ import annotations

from barnabas.broker.share.records import Acknowledge


class Total:
    """The number, the sum and the largest of some values."""

    __slots__ = ("count", "largest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.largest = 0

    def add(self, value: int) -> None:
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)


class ShareTally:
    def __init__(self) -> None:
        self.fetches = 0
        self.failed_fetches = 0
        self.acknowledgements = 0  # requests
        self.failed_acknowledgements = 0
        self.records_acknowledged = dict.fromkeys(Acknowledge, 0)
        self.records_acquired = 0
        self.lock_timeouts = 0  # records whose lock has expired
        self.load_ms = Total()  # time to load the state of a share-partition
