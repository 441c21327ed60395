"""Barnabas: a distributed, replicated commit log in Python that speaks Kafka's wire protocol.

Each row imports only rows below it; packages on one row never import each other; the server packages (left) and the
client packages (right) share only the rows from ``model`` to ``http``. ``tests/tidy/test_layers.py`` checks this.

                     cli      testing
        broker             |   console   connect   registry   streams
        coordinator        |              rest
        replication        |              ops
        metadata           |              spark
        raft               |              client
        storage            |
   ------------- transport      http ------------
        wire      world      security     observe
   ------------------- model -------------------
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know better; importing typing for it would cost more than all the rest
if TYPE_CHECKING:
    from barnabas.client import blocking, serdes
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.topics import NewTopic
    from barnabas.client.blocking import read
    from barnabas.client.consumer import Consumer, RebalanceListener
    from barnabas.client.offsets import Start
    from barnabas.client.producer import Producer, RecordMetadata
    from barnabas.client.record import ConsumerRecord
    from barnabas.client.settings.client import Settings
    from barnabas.client.settings.consumer import ConsumerSettings
    from barnabas.client.settings.producer import ProducerSettings
    from barnabas.client.topic import Topic
    from barnabas.model.errors import ApiError, BarnabasError
    from barnabas.model.ids import TopicPartition
    from barnabas.model.version import __version__

__all__ = [
    "Admin",
    "ApiError",
    "BarnabasError",
    "Consumer",
    "ConsumerRecord",
    "ConsumerSettings",
    "NewTopic",
    "Producer",
    "ProducerSettings",
    "RebalanceListener",
    "RecordMetadata",
    "Settings",
    "Start",
    "Topic",
    "TopicPartition",
    "__version__",
    "blocking",
    "read",
    "serdes",
]

# Importing the package is free; a name costs its module when it is first used.
_HOMES = {
    "Admin": "client.admin.client",
    "ApiError": "model.errors",
    "BarnabasError": "model.errors",
    "Consumer": "client.consumer",
    "ConsumerRecord": "client.record",
    "ConsumerSettings": "client.settings.consumer",
    "NewTopic": "client.admin.topics",
    "Producer": "client.producer",
    "ProducerSettings": "client.settings.producer",
    "RebalanceListener": "client.consumer",
    "RecordMetadata": "client.producer",
    "Settings": "client.settings.client",
    "Start": "client.offsets",
    "Topic": "client.topic",
    "TopicPartition": "model.ids",
    "__version__": "model.version",
    "blocking": "client.blocking",
    "read": "client.blocking",
    "serdes": "client.serdes",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{home}")
    value: object = module if name in ("blocking", "serdes") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
