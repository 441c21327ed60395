"""Three of the example applications beside the same ones as Kafka Streams in Java, on one Barnabas broker."""
