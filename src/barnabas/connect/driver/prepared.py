"""A connector ready to run: its configuration resolved, its plugins made; in the driver and in executors alike."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from barnabas.connect.catalog import Catalog, PluginSettings, load
from barnabas.connect.chain import Chain, Outgoing
from barnabas.connect.connector_config import secret_keys, take_apart
from barnabas.connect.definitions import SourceConfig
from barnabas.connect.driver.topics import TopicCreator
from barnabas.connect.errors import Stage
from barnabas.connect.plugins import Context, PollSource, Sink, Source
from barnabas.connect.records import Record
from barnabas.connect.secrets import Redactor, secrets_of
from barnabas.connect.tolerance import ErrorHandler, Failure, Raw

_DURATION: Final = re.compile(r"([\d.]+)\s*(ms|s|m|min|h)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Spec:
    """All that a process needs to run a connector; picklable. The configuration holds secrets: it is never printed."""

    name: str
    generation: int
    config: Mapping[str, str] = field(repr=False)  # references resolved
    resolved: frozenset[str] = field(repr=False)  # texts that references were resolved to
    plugins: PluginSettings
    client: Mapping[str, str] = field(repr=False)


@lru_cache(maxsize=4)
def catalog_of(settings: PluginSettings) -> Catalog:
    """Return the plugins, loaded once per process."""
    return load(settings)


class Prepared:
    """Converters, transforms and the plugin's class of a connector."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.parts = take_apart(catalog_of(spec.plugins), spec.config)
        self.chain = Chain(self.parts)
        self.common = self.chain.common
        self.cls: type[Any] = self.parts.plugin.cls
        secrets = secrets_of(spec.config, secret_keys(self.parts)) | secrets_of(spec.client, ())
        self.redact = Redactor(secrets | spec.resolved)
        groups = self.common.topic_creation_groups if isinstance(self.common, SourceConfig) else ()
        self._topics = TopicCreator(spec.client, groups, self.parts.topic_creation)

    @property
    def is_sink(self) -> bool:
        """Return whether the connector is a sink."""
        return issubclass(self.cls, Sink)

    @property
    def is_light(self) -> bool:
        """Return whether the connector shares a query with others."""
        return issubclass(self.cls, PollSource) or (issubclass(self.cls, Source) and self.cls.lane == "shared")

    @property
    def seconds(self) -> float:
        """Return the time between two batches."""
        given = self.spec.config.get("poll.interval.ms")
        if given is not None and given.strip().isdecimal():
            return int(given) / 1000
        return seconds_of(str(self.cls.every))

    def instance(self) -> Any:
        """Return a new instance of the plugin."""
        context = Context(self.spec.name, self.common.tasks_max, self.spec.client, self.parts.extra)
        return self.cls(self.cls.Config.read(self.parts.own), context)

    def errors(self, task: int) -> ErrorHandler:
        """Return a handler for the errors of one task."""
        return ErrorHandler(self.spec.name, task, self.common, pause=time.sleep, redact=self.redact)

    def outgoing(self, records: Iterator[Record], errors: ErrorHandler) -> Iterator[Outgoing]:
        """Yield a source's records as bytes; those that fail and are tolerated are left out."""
        for record in records:
            made = self.chain.transform(record, errors, None)
            outgoing = None if made is None else self.chain.to_bytes(made, errors)
            if outgoing is not None:
                self._topics.ensure(outgoing.topic)
                yield outgoing

    def incoming(self, raw: Raw, errors: ErrorHandler) -> Record | None:
        """Return a sink's record; None if it is dropped or fails and that is tolerated."""
        record = self.chain.from_bytes(raw, errors)
        return None if record is None else self.chain.transform(record, errors, raw)

    def put_failed(self, error: BaseException) -> Failure:
        """Return the failure of a record that the sink refused."""
        return Failure(Stage.TASK_PUT, self.parts.plugin.name, error)


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as ``10 s``."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as '10 s'")
    return float(match[1]) * _UNITS[match[2]]
