"""Choices of partitions: of a record by a partitioner, of a member by an assignor."""
