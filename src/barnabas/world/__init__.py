"""Access to what is not deterministic: clock, disk, randomness, threads; tasks, timers; a disk in memory."""
