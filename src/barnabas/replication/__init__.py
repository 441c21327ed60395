"""Partitions as replicas: who leads, who is in sync, how far readers may read, and who waits for that."""
