"""Whether a resource may have the configurations it would have after a change.

The rules differ by kind of resource, as in Kafka: topics and groups refuse unknown names as INVALID_CONFIG, brokers
keep them; brokers refuse values as INVALID_REQUEST. ``configs`` computes what the change would give and checks it here;
so does the creation of a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.metadata import topic_names
from barnabas.metadata.config_schema import MIN_INSYNC_REPLICAS, ConfigSchema
from barnabas.metadata.configs_image import ConfigResource, ResourceType
from barnabas.metadata.image import ClusterImage
from barnabas.model.errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
    ApiError,
)
from barnabas.model.settings import InvalidSetting, Setting, SettingTable, Update

VALUE_LENGTH_MAX: Final = 32767
_LISTENER_PREFIX: Final = "listener.name."


def table_of(schema: ConfigSchema, resource: ConfigResource) -> SettingTable:
    """The settings that a resource may have, or INVALID_REQUEST for a resource that has none here."""
    if resource.type == ResourceType.TOPIC:
        return schema.topic_settings
    if resource.type == ResourceType.BROKER:
        return schema.broker_settings
    if resource.type == ResourceType.GROUP:
        return schema.group_settings
    raise ApiError(INVALID_REQUEST, f"resources of type {resource.type} have no settings here")


def check(
    image: ClusterImage,
    schema: ConfigSchema,
    resource: ConfigResource,
    changes: Mapping[str, str | None],
    *,
    is_new: bool = False,
) -> None:
    """ApiError unless the resource may be changed so; one that is ``is_new`` need not exist yet."""
    for name, value in changes.items():
        if value is not None and len(value) > VALUE_LENGTH_MAX:
            raise ApiError(
                INVALID_CONFIG,
                f"the value of {name} has {len(value)} characters; {VALUE_LENGTH_MAX} are allowed",
            )
    values = {**image.configs.of(resource), **changes}
    own = {name: value for name, value in values.items() if value is not None}
    if resource.type == ResourceType.TOPIC:
        _check_topic(image, schema, resource.name, own)
    elif resource.type == ResourceType.BROKER:
        _check_broker(schema, resource.name, changes)
        for name, value in changes.items():
            _check_min_isr(image, resource, name, value)
    else:
        _check_group(schema, resource.name, own)
    if not is_new:
        _check_exists(image, resource)


def _check_min_isr(image: ClusterImage, resource: ConfigResource, name: str, value: str | None) -> None:
    """With eligible leader replicas, all brokers must mean the same by the minimum (KIP-966)."""
    if name != MIN_INSYNC_REPLICAS or not image.has_elr:
        return
    if resource.name:
        raise ApiError(
            INVALID_CONFIG,
            f"{name} is the same on all brokers while there are eligible leader replicas: set it for the cluster",
        )
    if value is None:
        raise ApiError(
            INVALID_CONFIG,
            f"{name} of the cluster cannot go while there are eligible leader replicas: set another value",
        )


def _check_topic(image: ClusterImage, schema: ConfigSchema, name: str, own: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(INVALID_REQUEST, "name a topic: what holds for all of them is set on the brokers")
    topic_names.check(name)
    reason = schema.reason_invalid_topic(image.configs, own)
    if reason is not None:
        raise ApiError(INVALID_CONFIG, reason)


def _check_broker(schema: ConfigSchema, broker: str, changes: Mapping[str, str | None]) -> None:
    if broker and not (broker.isascii() and broker.isdigit()):
        raise ApiError(INVALID_REQUEST, f"a broker is named by its number, not {broker!r}")
    for name, value in changes.items():
        if value is None or _is_foreign(schema, name):
            continue
        try:
            setting = _broker_setting(schema, name)
            if not broker and (setting.update is Update.PER_BROKER or setting.per_listener):
                raise ApiError(INVALID_REQUEST, f"{name} is set for one broker, not for the cluster: name a broker")
            setting.parse(value)
        except InvalidSetting as error:
            raise ApiError(INVALID_REQUEST, str(error)) from None


def _is_foreign(schema: ConfigSchema, name: str) -> bool:
    """Whether no setting has this name. Kafka keeps such names for plugins of its brokers; here they have no effect."""
    return name not in schema.broker_settings and not name.startswith(_LISTENER_PREFIX)


def _broker_setting(schema: ConfigSchema, name: str) -> Setting:
    """What a name stands for, if it may change while running. For one listener everything may that can be given for
    one: whether it is a new listener, or keys for an old one, only its broker knows and has been asked before."""
    is_for_listener = name.startswith(_LISTENER_PREFIX)
    setting = schema.broker_settings[name.split(".", 3)[-1] if is_for_listener else name]
    if is_for_listener and not setting.per_listener:
        raise ApiError(INVALID_REQUEST, f"{name} cannot be set for one listener")
    if not is_for_listener and setting.update is Update.READ_ONLY:
        raise ApiError(
            INVALID_REQUEST,
            f"{name} cannot change while the broker runs; put it into the broker's file and restart it",
        )
    if not is_for_listener and setting.per_listener:
        raise ApiError(
            INVALID_REQUEST,
            f"{name} changes for one listener at a time while the broker runs: say {_LISTENER_PREFIX}<listener>.{name}",
        )
    return setting


def _check_group(schema: ConfigSchema, group: str, own: Mapping[str, str]) -> None:
    if not group:
        raise ApiError(INVALID_REQUEST, "name a group: what holds for all of them is set on the brokers")
    try:
        schema.group_settings.parse(own)
    except InvalidSetting as error:
        raise ApiError(INVALID_CONFIG, str(error)) from None


def _check_exists(image: ClusterImage, resource: ConfigResource) -> None:
    if resource.type == ResourceType.TOPIC and resource.name not in image.topics:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {resource.name!r}")
    if resource.type == ResourceType.BROKER and resource.name:
        node_id = int(resource.name)
        if node_id not in image.brokers and node_id not in image.controllers:
            raise ApiError(INVALID_REQUEST, f"there is no node {node_id}")
