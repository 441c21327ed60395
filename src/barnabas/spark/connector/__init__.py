"""The format ``barnabas`` of Spark: reads and writes topics, in batches and streams."""
