"""What a broker sees to itself when its settings are altered, before the controller decides on the rest.

Its log levels are its own and are kept nowhere else; and only it can say whether new listeners can be opened here, and
whether the keys for them can be read. The two APIs that alter settings declare this as their ``local_part``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from barnabas.broker.controller.requests import facts
from barnabas.broker.node.listener_changes import check_change, is_about_listeners, listener_of
from barnabas.broker.requests.request import Request
from barnabas.broker.requests.services import Services
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.described import Described, Source, Synonym
from barnabas.broker.settings.security import ListenerSecurity, tls_context
from barnabas.metadata.configs import DELETE, SET, incremental_changes, whole_changes
from barnabas.metadata.configs_image import ResourceType
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.settings import InvalidSetting, Kind, Setting
from barnabas.observe import levels
from barnabas.transport.tls import check_chain, client_context
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_configs import AlterConfigsRequest


def at_home(
    handle: Callable[[Request, Any], Awaitable[Message]], refuse: Callable[[Any, ApiError], Any]
) -> Callable[[Request, Any], Awaitable[Message]]:
    """A handler that does this broker's own part and lets ``handle`` do the rest."""

    async def handle_at_home(request: Request, message: Any) -> Message:
        mine: list[tuple[Any, ApiError | None]] = []
        rest = []
        for resource in message.resources:
            try:
                is_done = await _see_to(request.broker, message, resource)
            except ApiError as error:
                mine.append((resource, error))
                continue
            if is_done:
                mine.append((resource, None))
            else:
                rest.append(resource)
        message.resources = rest
        response: Any = await handle(request, message) if rest else refuse(message, ApiError(errors.NONE))
        for resource, failure in mine:
            message.resources = [resource]
            (row,) = refuse(message, failure or ApiError(errors.NONE)).responses
            if failure is None:
                row.error_message = None
            response.responses.append(row)
        assert isinstance(response, Message)
        return response

    return handle_at_home


async def _see_to(broker: Services, message: Any, resource: Any) -> bool:
    """Whether nothing is left to do; ApiError if it must not be done."""
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        _check_name(broker, resource.resource_name)
        if isinstance(message, AlterConfigsRequest):
            raise ApiError(errors.INVALID_REQUEST, "levels are changed one by one: use IncrementalAlterConfigs")
        changes = {config.name: (config.config_operation, config.value) for config in resource.configs}
        _alter_levels(changes, is_only_asked=message.validate_only)
        return True
    if resource.resource_type == ResourceType.BROKER and resource.resource_name:
        changes_of: Any = whole_changes if isinstance(message, AlterConfigsRequest) else incremental_changes
        await _check_listeners(broker, resource.resource_name, changes_of(broker.image, facts(broker).schema, resource))
    return False


def _check_name(broker: Services, name: str) -> None:
    if name != str(broker.broker_id):
        raise ApiError(errors.INVALID_REQUEST, f"this is broker {broker.broker_id}: ask {name!r} itself")


# --- listeners --------------------------------------------------------------------------------------------------------


async def _check_listeners(broker: Services, name: str, changes: Mapping[str, str | None]) -> None:
    """Whether there could be the listeners that there would be, with what they would be given."""
    if not any(is_about_listeners(setting) for setting in changes):
        return
    _check_name(broker, name)
    configs = broker.image.configs
    values = {**configs.of_cluster(), **configs.of_broker(broker.broker_id), **changes}
    dynamic = {setting: value for setting, value in values.items() if value is not None}
    try:
        settings = BrokerSettings.of(broker.settings.given, dynamic)
        for setting, value in changes.items():
            listener_name = listener_of(setting)
            if value is not None and listener_name is not None and listener_name not in settings.security.listeners:
                raise InvalidSetting(f"{setting}: there is no listener {listener_name}")
        check_change(broker.settings, settings)
        for listener in settings.security.listeners.values():
            _check_keys(listener, is_dialled=listener.name == settings.cluster.inter_broker_listener_name)
        await broker.try_listeners(settings)
    except InvalidSetting as error:
        raise ApiError(errors.INVALID_REQUEST, str(error)) from None


def _check_keys(listener: ListenerSecurity, *, is_dialled: bool) -> None:
    context = tls_context(listener)
    has_trust = listener.tls.trust_store is not None or listener.tls.trusted_certificates is not None
    if context is not None and is_dialled and has_trust:
        check_chain(context, client_context(listener.tls, checks_host=False))


# --- levels -----------------------------------------------------------------------------------------------------------


def _alter_levels(changes: dict[str, tuple[int, str | None]], *, is_only_asked: bool) -> None:
    """All or none."""
    for name, (operation, level) in changes.items():
        if not levels.is_logger(name):
            raise ApiError(errors.INVALID_CONFIG, f"there is no logger {name!r}")
        if operation not in (SET, DELETE):
            raise ApiError(errors.INVALID_REQUEST, "a level can be set or deleted")
        if operation == DELETE and name == levels.ROOT_NAME:
            raise ApiError(errors.INVALID_REQUEST, "the root logger always has a level: set another one")
        if operation == SET and level not in levels.LEVELS:
            raise ApiError(
                errors.INVALID_CONFIG,
                f"{name}={level!r} must be one of {', '.join(levels.LEVELS)}",
            )
    if not is_only_asked:
        for name, (operation, level) in changes.items():
            levels.set_level(name, None if operation == DELETE else level)


def describe_levels(broker: Services, name: str) -> Iterator[Described]:
    _check_name(broker, name)
    row = Setting(name="level", kind=Kind.STRING, default=None, doc="From which level on this logger writes.")
    for logger, level in levels.levels().items():
        yield Described(replace(row, name=logger), False, (Synonym(logger, level, Source.LOGGER),))
