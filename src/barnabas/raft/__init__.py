"""Consensus for the metadata log: KRaft as a pure machine, and the driver that runs it on a disk and a network."""
