"""Keys that every connector has, beside those of its plugin: Kafka Connect's common, source and sink configuration."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from msgspec import Meta

from barnabas.connect.config import Config, Names, doc

COMMON: Final = "Common"
ERRORS: Final = "Error Handling"
DEFAULT_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
NAME_LENGTH_MAX: Final = 249


class ConnectorConfig(Config):
    """Keys of sources and sinks."""

    name: Annotated[str, doc("Name of the connector, unique in the cluster", group=COMMON), Meta(min_length=1)]
    connector_class: Annotated[str, doc("Name of the plugin, or of the Java class that it stands for", group=COMMON)]
    connector_plugin_version: Annotated[str | None, doc("Version of the plugin", group=COMMON)] = None
    tasks_max: Annotated[int, doc("Tasks to use at most", importance="HIGH", group=COMMON), Meta(ge=1)] = 1
    tasks_max_enforce: Annotated[
        Literal["true"], doc("tasks.max is always enforced", importance="LOW", group=COMMON)
    ] = "true"
    key_converter: Annotated[str, doc("Converter for keys", importance="LOW", group=COMMON)] = DEFAULT_CONVERTER
    key_converter_plugin_version: Annotated[str | None, doc("Version of the key converter", group=COMMON)] = None
    value_converter: Annotated[str, doc("Converter for values", importance="LOW", group=COMMON)] = DEFAULT_CONVERTER
    value_converter_plugin_version: Annotated[str | None, doc("Version of the value converter", group=COMMON)] = None
    header_converter: Annotated[str, doc("Converter for headers", importance="LOW", group=COMMON)] = (
        DEFAULT_HEADER_CONVERTER
    )
    header_converter_plugin_version: Annotated[str | None, doc("Version of the header converter", group=COMMON)] = None
    transforms: Annotated[Names, doc("Names of transforms, in order", importance="LOW", group="Transforms")] = ()
    predicates: Annotated[Names, doc("Names of predicates", importance="LOW", group="Predicates")] = ()
    config_action_reload: Annotated[
        Literal["restart", "none"], doc("What to do when a referenced value changes", importance="LOW", group=COMMON)
    ] = "restart"
    errors_retry_timeout: Annotated[
        int, doc("Milliseconds to retry a failed operation; 0: no retry, -1: for ever", group=ERRORS), Meta(ge=-1)
    ] = 0
    errors_retry_delay_max_ms: Annotated[
        int, doc("Milliseconds between two retries at most", group=ERRORS), Meta(ge=1)
    ] = 60_000
    errors_tolerance: Annotated[
        Literal["none", "all"], doc("all: skip records that fail; none: fail the connector", group=ERRORS)
    ] = "none"
    errors_log_enable: Annotated[bool, doc("Log each record that fails", group=ERRORS)] = False
    errors_log_include_messages: Annotated[bool, doc("Log key and value too", group=ERRORS)] = False
    restart_max_attempts: Annotated[
        int, doc("Automatic restarts in a row after retriable failures; -1: no limit", group=ERRORS), Meta(ge=-1)
    ] = -1

    def check(self) -> list[str]:
        """Return what is wrong over several keys."""
        problems = []
        if len(self.name) > NAME_LENGTH_MAX or any(ord(char) < 32 for char in self.name):
            problems.append("Invalid value for configuration name: at most 249 characters, none of them a control")
        for kind, names in (("transforms", self.transforms), ("predicates", self.predicates)):
            if len(set(names)) != len(names):
                problems.append(f"Invalid value {list(names)} for configuration {kind}: a name occurs twice")
        return problems


class SourceConfig(ConnectorConfig):
    """Keys of sources."""

    topic_creation_groups: Annotated[
        Names, doc("Groups of settings for topics that the connector creates", importance="LOW", group="Topic Creation")
    ] = ()
    exactly_once_support: Annotated[
        Literal["requested", "required"],
        doc("required: refuse connectors that cannot replay their records", group="Exactly Once Support"),
    ] = "requested"
    transaction_boundary: Annotated[
        Literal["poll"], doc("Each batch is one transaction", group="Exactly Once Support")
    ] = "poll"


class SinkConfig(ConnectorConfig):
    """Keys of sinks."""

    topics: Annotated[Names, doc("Topics to read", importance="HIGH", group=COMMON)] = ()
    topics_regex: Annotated[
        str | None, doc("Regular expression for the topics to read", importance="HIGH", group=COMMON)
    ] = None
    errors_deadletterqueue_topic_name: Annotated[
        str, doc("Topic for records that fail; needs errors.tolerance=all", group=ERRORS)
    ] = ""
    errors_deadletterqueue_topic_replication_factor: Annotated[
        int, doc("Replicas of the dead-letter topic, if the worker creates it; -1: the broker's default", group=ERRORS)
    ] = 3
    errors_deadletterqueue_context_headers_enable: Annotated[
        bool, doc("Add headers that say where and why a record failed", group=ERRORS)
    ] = False

    def check(self) -> list[str]:
        """Return what is wrong over several keys."""
        problems = ConnectorConfig.check(self)
        if bool(self.topics) == bool(self.topics_regex):
            problems.append("A sink needs topics or topics.regex, and not both.")
        if self.topics_regex is not None:
            try:
                re.compile(self.topics_regex)
            except re.error as error:
                problems.append(f"Invalid value {self.topics_regex} for configuration topics.regex: {error}")
        if self.errors_deadletterqueue_topic_name in self.topics and self.errors_deadletterqueue_topic_name:
            problems.append("The dead-letter topic must not be one of the topics that the sink reads.")
        return problems
