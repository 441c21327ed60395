"""The same pipelines with Spark's own Kafka connector and with ours, on the same broker: ``python -m bench.spark``."""
