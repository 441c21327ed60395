"""Settings as DescribeConfigs shows them: the value in force, where it comes from, and what it would be otherwise.

Every value has a chain of sources, nearest first: the topic or the group, this broker, all brokers, the file, the
default. The first one that is set is in force; the rest are its synonyms. Secrets are never shown.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.broker.settings.broker import BROKER_SETTINGS, UNITS_MS, BrokerSettings, is_known
from barnabas.broker.settings.security import LISTENER_PREFIX
from barnabas.metadata.configs_image import ConfigResource, ResourceType
from barnabas.metadata.image import ClusterImage
from barnabas.model.settings import Kind, Setting, Update
from barnabas.storage.settings import TOPIC_SETTINGS


class Source(enum.IntEnum):
    """Where a value comes from, as the protocol numbers it."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    FILE = 4
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    setting: Setting
    is_read_only: bool
    chain: tuple[Synonym, ...]  # the first one is in force
    default_of: str | None = None  # name of the broker's setting whose default is the last synonym

    @property
    def value(self) -> str | None:
        """The value in force, in the unit of the setting; a broker may have given it in hours."""
        name, value, _ = self.chain[0]
        unit = UNITS_MS.get(name)
        if unit is None or name == self.setting.name or value is None:
            return value
        return str(max(-1, int(value) * unit))

    @property
    def source(self) -> Source:
        return self.chain[0].source

    @property
    def synonyms(self) -> tuple[Synonym, ...]:
        """The chain as Kafka shows it: with no default but that of the broker's setting of the same name or unit."""
        return tuple(
            each
            for each in self.chain
            if each.source is not Source.DEFAULT or (each.name == self.default_of and each.value is not None)
        )


def describe_topic(
    image: ClusterImage, topic: str, settings: BrokerSettings, names: Collection[str] | None
) -> Iterator[Described]:
    own = image.configs.of_topic(topic)
    for setting in TOPIC_SETTINGS:
        if names is not None and setting.name not in names:
            continue
        chain = []
        if setting.name in own:
            chain.append(Synonym(setting.name, own[setting.name], Source.TOPIC))
        for name in setting.synonyms:
            chain += _sources(image, BROKER_SETTINGS[name], settings)
        if not chain or chain[-1].source is not Source.DEFAULT:
            chain.append(Synonym(setting.name, setting.text(setting.default), Source.DEFAULT))
        yield Described(setting, False, _hidden(setting, chain), next(iter(setting.synonyms), None))


def describe_broker(
    image: ClusterImage, settings: BrokerSettings, names: Collection[str] | None
) -> Iterator[Described]:
    for setting in BROKER_SETTINGS:
        if names is None or setting.name in names:
            chain = _sources(image, setting, settings) or [Synonym(setting.name, None, Source.DEFAULT)]
            yield Described(setting, setting.update is Update.READ_ONLY, _hidden(setting, chain), setting.name)
    yield from _of_listeners(image, settings, names)
    own, cluster = image.configs.of_broker(settings.node_id), image.configs.of_cluster()
    for name in sorted({*own, *cluster}):
        if not is_known(name) and (names is None or name in names):
            yield _foreign(name, *(_given(name, own, Source.BROKER) + _given(name, cluster, Source.ALL_BROKERS)))


def _foreign(name: str, *chain: Synonym) -> Described:
    """A name that no setting has; what it holds may be a secret of a plugin."""
    setting = Setting(name=name, kind=Kind.UNKNOWN, default=None, doc="No effect here.", sensitive=True)
    return Described(setting, True, _hidden(setting, list(chain)))


def _given(name: str, values: Mapping[str, str], source: Source) -> list[Synonym]:
    return [Synonym(name, values[name], source)] if name in values else []


def _of_listeners(image: ClusterImage, settings: BrokerSettings, names: Collection[str] | None) -> Iterator[Described]:
    """What is set for single listeners has no default under its own name: it is there or it is not."""
    own = image.configs.of_broker(settings.node_id)
    for full in sorted({name for name in (*own, *settings.given) if name.startswith(LISTENER_PREFIX)}):
        base = full.removeprefix(LISTENER_PREFIX).partition(".")[2]
        if base in BROKER_SETTINGS and (names is None or full in names):
            setting = replace(BROKER_SETTINGS[base], name=full, default=None)
            chain = _sources(image, setting, settings)
            yield Described(setting, setting.update is Update.READ_ONLY, _hidden(setting, chain))


def describe_all_brokers(image: ClusterImage, names: Collection[str] | None) -> Iterator[Described]:
    """Only what was set for all brokers at once: the rest is each broker's own business."""
    for name, value in sorted(image.configs.of_cluster().items()):
        chain = [Synonym(name, value, Source.ALL_BROKERS)]
        if names is not None and name not in names:
            continue
        if not is_known(name):
            yield _foreign(name, *chain)
        elif name in BROKER_SETTINGS:
            setting = BROKER_SETTINGS[name]
            yield Described(setting, setting.update is Update.READ_ONLY, _hidden(setting, chain))


def describe_group(
    image: ClusterImage, group_id: str, settings: BrokerSettings, names: Collection[str] | None
) -> Iterator[Described]:
    """A group need not exist to be described: what is set for it waits for it."""
    own = image.configs.of(ConfigResource(ResourceType.GROUP, group_id))
    for setting in settings.group_configs:
        if names is None or setting.name in names:
            chain = [Synonym(setting.name, own[setting.name], Source.GROUP)] if setting.name in own else []
            for name in setting.synonyms:
                chain += _sources(image, BROKER_SETTINGS[name], settings)
            if not setting.synonyms:
                chain.append(Synonym(setting.name, setting.text(setting.default), Source.DEFAULT))
            yield Described(setting, False, _hidden(setting, chain), next(iter(setting.synonyms), None))


def _sources(image: ClusterImage, setting: Setting, settings: BrokerSettings) -> list[Synonym]:
    found = []
    for values, source in (
        (image.configs.of_broker(settings.node_id), Source.BROKER),
        (image.configs.of_cluster(), Source.ALL_BROKERS),
        (settings.given, Source.FILE),
    ):
        found += _given(setting.name, values, source)
    if setting.default is not None:
        found.append(Synonym(setting.name, setting.text(setting.default), Source.DEFAULT))
    return found


def _hidden(setting: Setting, chain: list[Synonym]) -> tuple[Synonym, ...]:
    if setting.sensitive:
        return tuple(synonym._replace(value=None) for synonym in chain)
    return tuple(chain)
