"""The judge of the Streams API: the same topologies run in Barnabas and in Apache Kafka's TopologyTestDriver."""
