"""The clients: ``producer.Producer``, ``consumer.Consumer`` and ``admin.Admin``, all on one ``cluster.Cluster``.

Everything here is asyncio and runs in the simulation too, but for ``blocking``, which has the same clients without
async. Settings are typed and carry Kafka's names; errors say by ``retriable`` whether trying again may help.
"""
