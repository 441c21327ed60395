"""Records on their way to a broker: partitioning, batches, sending, transactions' requests."""
