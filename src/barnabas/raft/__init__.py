"""Consensus for the metadata log: KRaft as a pure state machine, and the driver that runs it."""
