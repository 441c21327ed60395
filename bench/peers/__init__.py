"""The brokers under test, one module each, behind one small interface.

`peer.py` holds the interface and what all of them share; the table here is the list of what `--peers` accepts, and
`kind_of` says which of a column's brokers a row with more than one of them runs on.
"""

from __future__ import annotations

from bench.peers.barnabas import BarnabasPeer, BarnabasThree, BarnabasTwo
from bench.peers.kafka import KafkaPeer
from bench.peers.kafka_cluster import KafkaThree
from bench.peers.mock import MockPeer
from bench.peers.peer import Peer, PeerFailed

PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (KafkaPeer, BarnabasPeer, BarnabasTwo, MockPeer)}
_OF_THREE: dict[str, type[Peer]] = {peer.name: peer for peer in (KafkaThree, BarnabasThree)}


def kind_of(name: str, brokers: int) -> type[Peer] | None:
    """What is started for a column of the report when a row wants so many brokers; None when there is no such thing."""
    return PEERS[name] if brokers == 1 else _OF_THREE.get(name)


__all__ = ["PEERS", "BarnabasPeer", "KafkaPeer", "MockPeer", "Peer", "PeerFailed", "kind_of"]
