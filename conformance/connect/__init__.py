"""Judges of ``barnabas.connect``: Kafka's own Connect worker, and Debezium in it, on the same broker."""
