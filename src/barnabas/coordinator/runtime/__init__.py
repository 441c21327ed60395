"""Runs the shards of a coordinator on the partitions of its topic."""
