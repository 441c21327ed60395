"""Topics that sources create: ``topic.creation.default.*`` and groups of settings for names that match."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking.admin import Admin
from barnabas.client.settings.client import Settings
from barnabas.connect.errors import ConfigError
from barnabas.model import errors
from barnabas.model.errors import ApiError

PREFIX: Final = "topic.creation."
DEFAULT: Final = "default"
_OWN_KEYS: Final = ("include", "exclude", "partitions", "replication.factor")


def new_topic(name: str, groups: tuple[str, ...], given: Mapping[str, str]) -> NewTopic | None:
    """Return the topic to create, or None if the configuration says nothing about it. Pure."""
    for group in (*groups, DEFAULT):
        prefix = f"{PREFIX}{group}."
        keys = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
        if not keys or (group != DEFAULT and not _matches(name, keys)):
            continue
        try:
            partitions, replicas = int(keys.get("partitions", "-1")), int(keys.get("replication.factor", "-1"))
        except ValueError as error:
            raise ConfigError(f"{prefix}*: partitions and replication.factor are whole numbers") from error
        return NewTopic(name, partitions, replicas, {key: value for key, value in keys.items() if key not in _OWN_KEYS})
    return None


def _matches(name: str, keys: Mapping[str, str]) -> bool:
    def listed(key: str) -> bool:
        patterns = [each.strip() for each in keys.get(key, "").split(",") if each.strip()]
        return any(re.fullmatch(pattern, name) for pattern in patterns)

    return listed("include") and not listed("exclude")


class TopicCreator:
    """Creates topics before their first record."""

    def __init__(self, client: Mapping[str, str], groups: tuple[str, ...], given: Mapping[str, str]) -> None:
        self._client = dict(client)
        self._groups = groups
        self._given = given
        self._seen: set[str] = set()

    def ensure(self, name: str) -> None:
        """Create a topic if the configuration says how, and it is not there."""
        if name in self._seen or not self._given:
            return
        self._seen.add(name)
        topic = new_topic(name, self._groups, self._given)
        if topic is None:
            return
        with Admin(Settings.of(self._client)) as admin:
            try:
                admin.create_topic(topic)
            except ApiError as error:
                if error.error is not errors.TOPIC_ALREADY_EXISTS:
                    raise
