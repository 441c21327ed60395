"""Benchmarks of connectors: many at once, and change capture beside Debezium."""
