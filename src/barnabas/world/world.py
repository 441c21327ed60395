"""The four things a broker may not decide for itself, in one hand."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.world.clock import Clock
from barnabas.world.disk import Disk
from barnabas.world.entropy import Entropy
from barnabas.world.workers import Workers


@dataclass(frozen=True, slots=True)
class World:
    clock: Clock
    disk: Disk
    entropy: Entropy
    workers: Workers
