"""The doors of a node: a listener for every address it was told of, each with what is spoken and served there.

Addresses are taken first and served later: other controllers need an answer before this node's own metadata are there,
clients only once everything is. The node says when.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack

from barnabas.broker.connection_settings import parse_overrides
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.routes import CONTROLLER_ROUTES, ROUTES
from barnabas.broker.security_settings import ListenerSecurity, tls_context
from barnabas.broker.services import Services
from barnabas.broker.settings import BrokerSettings
from barnabas.broker.sign_in import open_gate
from barnabas.model.errors import BarnabasError
from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import Serve
from barnabas.transport.listener import Guests, Limits, Listener
from barnabas.transport.tls import ReplaceableContext


class CannotListen(BarnabasError):
    """An address that is in use, or is none of this machine's."""


class Listeners:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._settings = services.settings
        self._gates = AsyncExitStack()
        self.for_clients: list[Listener] = []
        self.for_controllers: list[Listener] = []
        self._contexts: dict[str, ReplaceableContext] = {}

    def __iter__(self) -> Iterator[Listener]:
        return iter((*self.for_clients, *self.for_controllers))

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Host and port by the name of the listener, as they are bound."""
        return {listener.name: (listener.host, listener.port) for listener in self}

    async def bind(self) -> None:
        clients = Dispatcher(self._services, ROUTES)
        controllers = Dispatcher(self._services, CONTROLLER_ROUTES)
        pool = FramePool()
        # A limit holds for all listeners of clients together, as in Kafka; controllers are not kept waiting by clients.
        guests = {is_for_controllers: Guests() for is_for_controllers in (False, True)}
        every = self._settings.security.listeners
        self._contexts = _contexts(self._settings)  # before any port is taken
        for endpoint in self._settings.endpoints:
            is_for_controllers = self._settings.cluster.is_for_controllers(endpoint.name)
            serve: Serve = (controllers if is_for_controllers else clients).serve
            security = every[endpoint.name]
            if security.protocol.has_sasl:
                serve = await open_gate(self._services, security, serve, self._gates)
            world, limits = self._services.world, _limits(self._settings, security)
            listener = Listener(endpoint.name, serve, pool, world.clock, self._services.timers, limits)
            try:
                await listener.bind(endpoint.host, endpoint.port, tls=self._contexts.get(endpoint.name))
            except OSError as error:
                reason = (error.strerror or str(error)).rpartition(": ")[2]
                raise CannotListen(f"cannot listen on {endpoint}: {reason}") from error
            listener.guests = guests[is_for_controllers]
            listener.is_protected = self._is_protected(endpoint.name)
            if not is_for_controllers:
                listener.pace = self._services.quotas.connections.pace
            (self.for_controllers if is_for_controllers else self.for_clients).append(listener)

    def _is_protected(self, name: str) -> bool:
        """Other brokers come in even when clients have taken all there is, unless they come in by the same door."""
        cluster = self._settings.cluster
        of_clients = [each for each in self._settings.endpoints if not cluster.is_for_controllers(each.name)]
        return name == cluster.inter_broker_listener_name and len(of_clients) > 1

    async def serve_controllers(self) -> None:
        for listener in self.for_controllers:
            await listener.serve()

    async def serve_clients(self) -> None:
        for listener in self.for_clients:
            await listener.serve()

    def apply(self, settings: BrokerSettings) -> None:
        """The settings have changed while running; InvalidSetting, and the old keys stay in use, if new are bad."""
        for listener in self:
            listener.limits = _limits(settings, settings.security.listeners[listener.name])
        for name, context in _contexts(settings).items():
            self._contexts[name].current = context.current

    async def stop_clients(self) -> None:
        for listener in reversed(self.for_clients):
            await listener.stop()

    async def stop(self) -> None:
        """Those for clients may have been stopped before; after a start that failed, they have not."""
        for listener in reversed(list(self)):
            await listener.stop()
        await self._gates.aclose()


def _contexts(settings: BrokerSettings) -> dict[str, ReplaceableContext]:
    """What is spoken on each listener with TLS, from the files as they are now."""
    found = {name: tls_context(security) for name, security in settings.security.listeners.items()}
    return {name: ReplaceableContext.of(context) for name, context in found.items() if context is not None}


def _limits(settings: BrokerSettings, security: ListenerSecurity) -> Limits:
    size_bytes = settings.socket_request_max_bytes
    return Limits(
        frame_bytes_max=min(size_bytes, security.frame_bytes_max) if security.protocol.has_sasl else size_bytes,
        connections_max=settings.max_connections,
        connections_per_address_max=settings.max_connections_per_ip,
        idle_ms_max=settings.connections_max_idle_ms,
        connections_of_address_max=parse_overrides(settings.max_connections_per_ip_overrides),
    )
