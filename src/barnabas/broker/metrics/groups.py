"""What the metrics say of groups, under the names of kafka_exporter: offsets, lag in records and in seconds, members.

How far a group is behind is found out in ``group_lag``; the page is put together in ``metrics``. The first of the
families fills the table that the others read, row by row, so that a large one holds nobody up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from barnabas.broker.lag.group_lag import GroupLags, Lag

Labels: TypeAlias = "tuple[tuple[str, str], ...]"
Samples: TypeAlias = "Iterable[tuple[int | float, Labels]]"

PREFIX: Final = "kafka_consumergroup_"


def of_groups(lags: GroupLags) -> Iterator[tuple[str, str, Samples]]:
    """Name, meaning and samples of each family; they are to be read in this order."""
    table = _Table(lags)
    yield (
        f"{PREFIX}members",
        "Members of a group.",
        ((count, (("consumergroup", group_id),)) for group_id, count in lags.members()),
    )
    yield f"{PREFIX}current_offset", "What a group has committed.", table.filled()
    yield (
        f"{PREFIX}current_offset_sum",
        "What a group has committed, over the partitions of a topic.",
        table.committed(),
    )
    yield (
        f"{PREFIX}lag",
        "Records that a group has not read.",
        ((lag.records, at) for lag, at in table.rows if lag.records is not None),
    )
    yield f"{PREFIX}lag_sum", "Records that a group has not read, over the partitions of a topic.", table.unread()
    yield (
        f"{PREFIX}lag_seconds",
        "From the first record that a group has not read to the newest one.",
        ((lag.behind_ms / 1000, at) for lag, at in table.rows if lag.behind_ms is not None),
    )
    yield (
        f"{PREFIX}oldest_unread_seconds",
        "How long the first record that a group has not read has been there.",
        ((lag.waiting_ms / 1000, at) for lag, at in table.rows if lag.waiting_ms is not None),
    )
    yield (
        f"{PREFIX}partitions_left_out",
        "Partitions of groups of which there are too many to tell.",
        ((count, ()) for count in table.left_out()),
    )


class _Table:
    def __init__(self, lags: GroupLags) -> None:
        self._lags = lags
        self.rows: list[tuple[Lag, Labels]] = []
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}

    def filled(self) -> Samples:
        for lag in self._lags.rows():
            at = (("consumergroup", lag.group_id), ("topic", lag.topic), ("partition", str(lag.partition)))
            self.rows.append((lag, at))
            committed, unread = self._sums.get((lag.group_id, lag.topic), (0, 0))
            self._sums[lag.group_id, lag.topic] = (committed + lag.committed, unread + (lag.records or 0))
            yield lag.committed, at

    def committed(self) -> Samples:
        for (group_id, topic), (committed, _) in self._sums.items():
            yield committed, (("consumergroup", group_id), ("topic", topic))

    def unread(self) -> Samples:
        for (group_id, topic), (_, unread) in self._sums.items():
            yield unread, (("consumergroup", group_id), ("topic", topic))

    def left_out(self) -> Iterator[int]:
        yield self._lags.left_out
