"""Pipelines on Spark: ``format("barnabas")`` for reading and writing."""
