"""Failover: one of three brokers is killed under four clients' load, again and again, here and in Apache Kafka.

``python -m bench.failover`` prints how long the clients waited for the next acknowledgement, and fails if anything that
was acknowledged is lost, doubled or out of order. The tests of clusters use its parts.
"""
