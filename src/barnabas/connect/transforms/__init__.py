"""Kafka Connect's 16 transforms and 3 predicates, under Kafka's class names. All pure."""
