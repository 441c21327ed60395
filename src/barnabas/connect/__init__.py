"""Kafka Connect in Python: connectors between topics and other systems, run on Spark, managed through Kafka's REST API.

``plugins.py`` is the API for authors of connectors. The worker (``worker.py``) answers REST requests and keeps its
state in topics; the driver (``driver.py``) is a child process that runs plugins and Spark.
"""
