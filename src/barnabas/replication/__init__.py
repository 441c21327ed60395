"""Partitions as replicas: leadership, in-sync replicas, high watermark, follower fetching."""
