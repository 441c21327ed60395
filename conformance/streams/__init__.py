"""The judge of the Streams API: the same topologies here and in Apache Kafka's TopologyTestDriver, on random records."""
