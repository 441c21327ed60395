"""Programs that send numbers with one client library each, and say on standard output what was acknowledged.

All take the same words (bootstrap servers, topic, partitions, pause and time for a request in milliseconds), end when
their standard input does, and speak as `voice` says; `Sender.java` does the same for Kafka's own client.
"""
