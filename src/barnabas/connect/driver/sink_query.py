"""What a sink's query reads: its topics, from the offsets of its group, or from the beginning."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from barnabas.client.blocking.admin import Admin
from barnabas.client.settings.client import Settings
from barnabas.connect.definitions import SinkConfig
from barnabas.connect.driver.checkpoints import CheckpointStore
from barnabas.connect.driver.prepared import Prepared
from barnabas.connect.errors import RetriableError
from barnabas.model.errors import ApiError

GROUP: Final = "connect-"
EARLIEST: Final = -2
OVERRIDES: Final = "consumer.override."
RESET: Final = "auto.offset.reset"


def sink_options(prepared: Prepared, client: Mapping[str, str], store: CheckpointStore, key: str) -> dict[str, str]:
    """Return the options of the format ``barnabas`` for a sink."""
    common = prepared.common
    assert isinstance(common, SinkConfig)
    overrides = {
        name.removeprefix(OVERRIDES): value
        for name, value in prepared.parts.overrides.items()
        if name.startswith(OVERRIDES)
    }
    reset = overrides.pop(RESET, "earliest")
    options = {f"kafka.{name}": value for name, value in {**client, **overrides}.items()}
    options |= {"kafka.group.id": GROUP + prepared.spec.name, "includeHeaders": "true", "failOnDataLoss": "false"}
    # By pattern also for names: a topic that is not there yet is read when it appears, as Kafka's sinks do.
    options["subscribePattern"] = common.topics_regex or "|".join(re.escape(topic) for topic in common.topics)
    note = f"{key}/start"
    start = store.note(note)
    if start is None:
        start = _start(prepared, client, common) or reset
        store.keep(note, start)
    options["startingOffsets"] = start if isinstance(start, str) else json.dumps(start)
    return options


def _start(prepared: Prepared, client: Mapping[str, str], common: SinkConfig) -> dict[str, Any] | None:
    """Return where the connector's group is, for every partition; None if the group has no offsets."""
    with Admin(Settings.of(dict(client))) as admin:
        committed = admin.group_offsets(GROUP + prepared.spec.name)
        if not committed:
            return None
        topics = common.topics or tuple(sorted({place.topic for place in committed}))
        found: dict[str, Any] = {}
        for topic, described in admin.describe_topics(topics).items():
            if isinstance(described, ApiError):
                raise RetriableError(f"topic {topic}: {described}")
            found[topic] = {}
            for part in described.partitions:
                place = next((each for each in committed if each == (topic, part.partition)), None)
                found[topic][str(part.partition)] = EARLIEST if place is None else committed[place].offset
        return found
