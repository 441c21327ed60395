"""A cluster of processes whose brokers each have a page of numbers, which tests read."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from pathlib import Path

from barnabas.testing.cluster import Cluster
from barnabas.world.real import free_ports

Samples = dict[str, float]


class Watched(Cluster):
    """Each broker has a page of numbers."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(directory, settings=settings)
        self.ports = dict(zip(self.nodes, free_ports("127.0.0.1", len(self.nodes)), strict=True))
        for number, port in self.ports.items():
            with (self.directory / f"broker-{number}" / "server.properties").open("a") as file:
                file.write(f"barnabas.http.port={port}\n")

    def numbers(self, broker: int) -> Samples:
        """Every sample of a page, by name and labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[broker]}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    def total(self, name: str, *brokers: int) -> float:
        return sum(self.numbers(broker).get(name, 0.0) for broker in brokers or self.nodes)
