"""The clients: ``producer.Producer``, ``consumer.Consumer`` and ``admin.Admin``, all on one ``cluster.Cluster``.

Everything here is asyncio and runs in the simulation too. Settings are typed and carry Kafka's names; errors say by
``retriable`` whether trying again may help.
"""
