"""Share-partitions of the partitions that this broker leads: acquisition, acknowledgement, sessions, persistence."""
