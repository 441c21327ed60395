"""Enters an application into the catalog of the cluster when it starts, and looks it up there."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.spark.connector.link import link
from barnabas.streams.catalog.application import Application, store_entries
from barnabas.streams.catalog.topic import find, publish
from barnabas.streams.errors import StreamsError
from barnabas.streams.host.checkpoint import Note
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.rebuild import state_ends
from barnabas.streams.host.state_topic import topic_name
from barnabas.streams.host.topics import internal_topics
from barnabas.streams.topology.description import describe_execution
from barnabas.streams.topology.node import Topology

__all__ = ["check_newest", "check_unused", "known_application", "new_generation", "register"]


def new_generation() -> str:
    return uuid.uuid4().hex


def known_application(application_id: str, client: Mapping[str, str]) -> Application | None:
    """The application as it was started last, or None if it never was."""
    connection = link(ConsumerSettings, client)
    return connection.run(find(connection.cluster, application_id))


def check_newest(note: Note, client: Mapping[str, str]) -> None:
    """Raise CheckpointMismatch if the application was started from another checkpoint since."""
    note.check_generation(known_application(note.application_id, client))


def check_unused(application_id: str, client: Mapping[str, str]) -> None:
    """Raise StreamsError if there is state of an application that the catalog does not have."""
    connection, name = link(ConsumerSettings, client), topic_name(application_id)
    if any(connection.run(state_ends(connection.cluster, name)).values()):
        raise StreamsError(
            f"topic {name} has the state of an application {application_id} of which neither the checkpoint nor the "
            f"entry in the catalog exists. Restore the checkpoint, or run `barnabas streams reset {application_id}`"
        )


def register(note: Note, topology: Topology, plan: Plan, home: str, client: Mapping[str, str]) -> None:
    entry = Application(
        application_id=note.application_id,
        topology=note.topology,
        partitions=note.partitions,
        state_partitions=note.state_partitions,
        tasks=len(plan.tasks),
        generation=note.generation,
        checkpoint=home,
        stores=store_entries(topology),
        internal_topics=sorted(each.name for each in internal_topics(topology, plan)),
        is_atomic=plan.is_atomic,
        started_ms=time.time_ns() // 1_000_000,
        execution=describe_execution(topology),
    )
    connection = link(ConsumerSettings, client)
    connection.run(publish(connection.cluster, entry))
