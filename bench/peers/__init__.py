"""The brokers under test, one module each, behind one small interface.

`peer.py` holds the interface and what all of them share; the table here is the list of what `--peers` accepts.
"""

from __future__ import annotations

from bench.peers.barnabas import BarnabasPeer
from bench.peers.kafka import KafkaPeer
from bench.peers.mock import MockPeer
from bench.peers.peer import Peer, PeerFailed

PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (KafkaPeer, BarnabasPeer, MockPeer)}

__all__ = ["PEERS", "BarnabasPeer", "KafkaPeer", "MockPeer", "Peer", "PeerFailed"]
