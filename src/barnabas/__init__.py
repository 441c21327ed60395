"""Barnabas: a distributed, replicated commit log in Python that speaks Kafka's wire protocol.

Each row imports only rows below it; names on one row never import each other; the server tower (left) and the
client tower (right) share only the floor. ``tests/tidy/test_layers.py`` keeps this true.

                     cli      testing
        broker             |        console   connect   streams   registry
        coordinator        |              spark
        replication        |              client
        metadata           |
        raft               |
        storage            |
   ------------- transport      http ------------
        wire      world      security     observe
   ------------------- model -------------------
"""

__version__ = "0.1.0.dev0"
