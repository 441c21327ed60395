"""Streams applications beside Kafka Streams, Quix Streams and Faust: the same work on the same broker and cores."""
