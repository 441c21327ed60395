"""What groups of every protocol share: the shard, offsets, listing, records, settings."""
