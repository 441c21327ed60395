"""The worker: state in topics in Kafka Connect's formats, leadership, the REST API. It runs no plugin code."""
