"""The web console: pages, and the JSON API behind them, for any Kafka cluster.

``application.Console`` is the ASGI application; ``api`` has a module for each noun; ``static`` is the built bundle of
the front end, whose sources are in ``console/`` at the root of the repository.
"""
