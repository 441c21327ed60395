"""The driver: a child process of the leader that runs plugins and Spark queries. It answers no requests."""
