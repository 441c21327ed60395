"""The log of a partition: segments, indexes, producer state, recovery, retention, compaction; all logs' store."""
