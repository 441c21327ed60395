"""What the metrics tell of metadata that no picture of it holds: unclean elections, and how fast commits are.

Both are seen from outside: elections in the difference between two pictures, commits where the node waits for one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.partition_image import LeaderRecoveryState

WINDOW_NS: Final = 60 * 1_000_000_000
COMMITS_MAX: Final = 1000


class Elections:
    """Counts leaders that were elected though they may not have everything."""

    def __init__(self) -> None:
        self.unclean_count = 0

    def on_image(self, old: ClusterImage, new: ClusterImage, changes: MetadataChanges) -> None:
        for topic_id, index in changes.changed_partitions:
            topic, before = new.topics.by_id.get(topic_id), old.topics.by_id.get(topic_id)
            if topic is None or before is None or index >= len(before.partitions):
                continue
            was, now = before.partitions[index], topic.partitions[index]
            if now.leader_recovery_state == LeaderRecoveryState.RECOVERING and now.leader_epoch > was.leader_epoch:
                self.unclean_count += 1


class Commits:
    """The commits of the last minute, at most so many of them."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._seen: deque[tuple[int, int, int]] = deque(maxlen=COMMITS_MAX)  # when, how long, how many records

    def took(self, duration_ns: int, records: int) -> None:
        self._seen.append((self._now_ns(), duration_ns, records))

    @property
    def latency_ms(self) -> float:
        recent = self._recent()
        return sum(duration for _, duration, _ in recent) / len(recent) / 1e6 if recent else 0.0

    @property
    def rate(self) -> float:
        """Records per second."""
        return sum(records for *_, records in self._recent()) * 1e9 / WINDOW_NS

    def _recent(self) -> list[tuple[int, int, int]]:
        start_ns = self._now_ns() - WINDOW_NS
        return [each for each in self._seen if each[0] >= start_ns]
