"""Three nodes of Apache Kafka as a peer, each broker and controller, for the rows with three replicas.

Every node is what `kafka.py` starts, with its default heap of 1 GB; they are formatted and started together. The
settings that a single node needs for its internal topics stay as they are, since no row measures those topics here.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.peers.kafka import KafkaPeer
from bench.peers.peer import Peer
from bench.probe import free_port

_NODES = 3


class KafkaThree(Peer):
    """One peer whose processes are those of three."""

    name = "kafka"
    learns = True
    brokers = _NODES

    def __init__(self) -> None:
        super().__init__()
        controllers = [free_port() for _ in range(_NODES)]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        self._nodes = [
            KafkaPeer({"controller.quorum.voters": voters}, number=number, controller_port=port)
            for number, port in enumerate(controllers, 1)
        ]
        self.host, self.port = self._nodes[0].host, self._nodes[0].port

    @property
    def pids(self) -> list[int]:
        return [pid for node in self._nodes for pid in node.pids]

    def command(self) -> list[str]:
        return self._nodes[0].command()

    def start(self) -> None:
        with ThreadPoolExecutor(_NODES) as pool:
            list(pool.map(KafkaPeer.prepare, self._nodes))
            started = time.monotonic()
            list(pool.map(KafkaPeer.start, self._nodes))
        self.ready_seconds = time.monotonic() - started

    def stop(self) -> None:
        # All at once: a node that is left alone waits for the others before it ends.
        with ThreadPoolExecutor(_NODES) as pool:
            list(pool.map(KafkaPeer.stop, self._nodes))

    def remove(self) -> None:
        for node in self._nodes:
            node.remove()
        super().remove()

    def is_alive(self) -> bool:
        return all(node.is_alive() for node in self._nodes)

    def log_end(self) -> str:
        return "\n".join(node.log_end() for node in self._nodes)

    def topic_directories(self, topic: str) -> list[Path]:
        return [directory for node in self._nodes for directory in node.topic_directories(topic)]
