"""The brokers of the benchmarks, made fit for judging: a smaller heap, and settings that one of them does not know.

A suite says which settings it wants. Kafka takes them all; Barnabas refuses what it does not know, so here it is asked
again without that, and the omission is printed. A leg gets one broker or a cluster. Called by the command line.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from bench.peers import BarnabasPeer, KafkaPeer, Peer, PeerFailed

from conformance.cluster import BarnabasCluster, Cluster, KafkaCluster
from conformance.outcome import Leg

_UNKNOWN_SETTING = re.compile(r"there is no setting '([\w.]+)'")
_SETTINGS_DROPPED_MAX = 32


class SmallKafka(KafkaPeer):
    """Correctness needs no gigabyte."""

    heap = ("-Xmx512M", "-Xms256M")


class Lenient(Peer):
    """Barnabas without the settings that it does not have."""

    dropped: ClassVar[set[str]] = set()

    def start(self) -> None:
        for _ in range(_SETTINGS_DROPPED_MAX):
            for name in self.dropped:
                self.settings.pop(name, None)
            try:
                super().start()
                return
            except PeerFailed as failure:
                unknown = _UNKNOWN_SETTING.search(str(failure))
                if unknown is None or unknown[1] not in self.settings:
                    raise
                print(f"barnabas has no setting {unknown[1]}: left out", file=sys.stderr)
                self.dropped.add(unknown[1])
                self.log_path.unlink()
        raise PeerFailed("barnabas refuses too many settings")


class LenientBarnabas(Lenient, BarnabasPeer):
    """One broker."""

    def prepare(self) -> None:
        # Kafka has to be told what to advertise; a test asks where the answer came from, so Barnabas is told as well.
        self.settings.setdefault("advertised.listeners", f"PLAINTEXT://{self.bootstrap}")


class LenientCluster(Lenient, BarnabasCluster):
    """Three brokers."""


BROKERS: dict[str, type[Peer]] = {"kafka": SmallKafka, "barnabas": LenientBarnabas}
_CLUSTERS: dict[str, type[Cluster]] = {"kafka": KafkaCluster, "barnabas": LenientCluster}


@contextmanager
def started(kind: str, leg: Leg) -> Iterator[Peer]:
    """What the leg wants to run on, as long as it wants it."""
    if not leg.is_cluster:
        with BROKERS[kind](leg.settings) as peer:
            yield peer
        return
    with tempfile.TemporaryDirectory(prefix="conformance-") as place:
        if leg.security is None:
            with _CLUSTERS[kind](leg.settings) as cluster:
                yield cluster
            return
        with leg.security(Path(place)) as security, _CLUSTERS[kind](leg.settings, security) as cluster:
            yield cluster
