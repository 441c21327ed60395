"""The listeners of a node: one for each configured address, with its security protocol and its APIs.

Addresses are taken first and served later: other controllers need an answer before this node's own metadata are there,
clients only once everything is. The node says when. Listeners for clients are opened and closed while it runs
(``follow``): those that stay are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from barnabas.broker.access.authentication import open_gate
from barnabas.broker.node.listener_changes import Shape, shapes
from barnabas.broker.requests.dispatch import Dispatcher
from barnabas.broker.requests.routes import CONTROLLER_ROUTES, ROUTES
from barnabas.broker.requests.services import Services
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.connections import parse_overrides
from barnabas.broker.settings.endpoints import CannotListen
from barnabas.broker.settings.security import ListenerSecurity, tls_context
from barnabas.model.settings import InvalidSetting
from barnabas.observe.log import logger
from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import Serve
from barnabas.transport.listener import Guests, Limits, Listener
from barnabas.transport.tls import ReplaceableContext
from barnabas.world.tasks import Tasks

log = logger("listeners")

GOODBYE_MS_MAX: Final = 1000  # what requests under way are given when their listener is closed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenListener:
    listener: Listener
    shape: Shape
    is_for_controllers: bool
    tls: ReplaceableContext | None
    gate: AsyncExitStack  # what stands before it where it asks for sign-in

    async def stop(self) -> None:
        await self.listener.stop()
        await self.gate.aclose()


class Listeners:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._opened: dict[str, OpenListener] = {}
        self._leaving: list[OpenListener] = []  # closed listeners whose last requests are still being answered
        self._clients = Dispatcher(services, ROUTES)
        self._controllers = Dispatcher(services, CONTROLLER_ROUTES)
        self._pool = FramePool()
        # A limit holds for all listeners of clients together, as in Kafka; controllers are not kept waiting by clients.
        self._guests = {is_for_controllers: Guests() for is_for_controllers in (False, True)}
        self._are_clients_served = False
        self._wanted: BrokerSettings | None = None  # settings that are not in effect yet
        self._changing = Tasks()
        self._closing = Tasks()
        self.on_change: Callable[[], None] = lambda: None  # listeners have been opened or closed

    def __iter__(self) -> Iterator[Listener]:
        return (opened.listener for opened in (*self._of(False), *self._of(True)))

    def _of(self, is_for_controllers: bool) -> list[OpenListener]:
        return [opened for opened in self._opened.values() if opened.is_for_controllers is is_for_controllers]

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Host and port by the name of the listener, as they are bound."""
        return {listener.name: (listener.host, listener.port) for listener in self}

    @property
    def has_for_controllers(self) -> bool:
        return bool(self._of(True))

    # --- from the start to the end --------------------------------------------------------------------------------

    async def bind(self) -> None:
        settings = self._services.settings
        for security in settings.security.listeners.values():
            tls_context(security)  # before any port is taken
        for name, shape in shapes(settings).items():
            self._opened[name] = await self._open(shape, settings)
        self._protect(settings)

    async def serve_controllers(self) -> None:
        for opened in self._of(True):
            await opened.listener.serve()

    async def serve_clients(self) -> None:
        await self.settled()
        self._are_clients_served = True
        for opened in self._of(False):
            await opened.listener.serve()

    async def stop_clients(self) -> None:
        self._are_clients_served = False
        await self._stop_following()
        for opened in reversed(self._of(False)):
            await opened.listener.stop()

    async def stop(self) -> None:
        """Those for clients may have been stopped before; after a start that failed, they have not."""
        await self._stop_following()
        await self._closing.stop()
        for opened in reversed([*self._opened.values(), *self._leaving]):
            await opened.stop()

    async def _open(self, shape: Shape, settings: BrokerSettings) -> OpenListener:
        """The address is taken, nobody is served yet. CannotListen, or InvalidSetting if its keys cannot be used."""
        services, name = self._services, shape.endpoint.name
        security = settings.security.listeners[name]
        is_for_controllers = settings.cluster.is_for_controllers(name)
        context = tls_context(security)
        tls = None if context is None else ReplaceableContext.of(context)
        serve: Serve = (self._controllers if is_for_controllers else self._clients).serve
        async with AsyncExitStack() as gate:
            if security.protocol.has_sasl:
                serve = await open_gate(services, security, serve, gate)
            limits = _limits(settings, security)
            listener = Listener(name, serve, self._pool, services.world.clock, services.timers, limits)
            try:
                await listener.bind(shape.endpoint.host, shape.endpoint.port, tls=tls)
            except (OSError, UnicodeError) as error:
                raise CannotListen(shape.endpoint, error) from error
            listener.guests = self._guests[is_for_controllers]
            if not is_for_controllers:
                listener.pace = services.quotas.connections.pace
            return OpenListener(
                listener=listener,
                shape=shape,
                is_for_controllers=is_for_controllers,
                tls=tls,
                gate=gate.pop_all(),
            )

    def _protect(self, settings: BrokerSettings) -> None:
        """Let other brokers connect when clients have taken all connections, unless both use the same listener."""
        of_clients = self._of(False)
        for opened in of_clients:
            is_brokers_own = opened.listener.name == settings.cluster.inter_broker_listener_name
            opened.listener.is_protected = is_brokers_own and len(of_clients) > 1

    # --- while it runs --------------------------------------------------------------------------------------------

    def follow(self, settings: BrokerSettings) -> None:
        """The settings have changed while running; InvalidSetting, and the old keys stay in use, if new are bad."""
        kept, leaving, missing = self._split(settings)
        every = settings.security.listeners
        now = [
            (opened, every[opened.listener.name])
            for opened in (*kept, *self._of(True))
            if opened.listener.name in every
        ]
        for opened, security in now:
            opened.listener.limits = _limits(settings, security)
        self._wanted = settings
        if leaving or missing:
            self._changing.once("listeners", self._change)
        contexts = [(opened.tls, tls_context(security)) for opened, security in now]
        for tls, context in contexts:
            if tls is not None and context is not None:
                tls.current = context

    async def settled(self) -> None:
        """Until the listeners are as the settings want them, or it is known that they cannot be."""
        await self._changing.done()

    async def try_out(self, settings: BrokerSettings) -> None:
        """InvalidSetting unless the listeners that are missing could be opened now."""
        _, leaving, missing = self._split(settings)
        ours = {opened.listener.port for opened in leaving}  # taken now, and free by then
        for shape in missing:
            if shape.endpoint.port in ours:
                continue
            try:
                await (await self._open(shape, settings)).stop()
            except CannotListen as error:
                raise InvalidSetting(str(error)) from error

    def _split(self, settings: BrokerSettings) -> tuple[list[OpenListener], list[OpenListener], list[Shape]]:
        """The listeners for clients that stay, those that go, and what is missing. Those for controllers are settled at
        the start: who else is in the quorum has been told of them."""
        wanted = {
            name: shape for name, shape in shapes(settings).items() if not settings.cluster.is_for_controllers(name)
        }
        listeners = self._of(False)
        kept = [opened for opened in listeners if opened.shape == wanted.get(opened.listener.name)]
        leaving = [opened for opened in listeners if opened not in kept]
        names = {opened.listener.name for opened in kept}
        return kept, leaving, [shape for name, shape in wanted.items() if name not in names]

    async def _change(self) -> None:
        while self._wanted is not None:
            settings, self._wanted = self._wanted, None
            _, leaving, missing = self._split(settings)
            for opened in leaving:
                self._close(opened)
            for shape in missing:
                await self._open_late(shape, settings)
            self._protect(settings)
            self.on_change()

    def _close(self, opened: OpenListener) -> None:
        log.info("closed", listener=opened.shape.endpoint)
        del self._opened[opened.listener.name]
        opened.listener.close()
        self._leaving.append(opened)
        self._closing.start(self._see_off(opened), f"closed-listener:{opened.listener.name}")

    async def _open_late(self, shape: Shape, settings: BrokerSettings) -> None:
        """What could be opened when it was asked for may not be any more; all others are served all the same."""
        try:
            opened = self._opened[shape.endpoint.name] = await self._open(shape, settings)
            if self._are_clients_served:
                await opened.listener.serve()
            log.info("opened", listener=shape.endpoint)
        except (CannotListen, InvalidSetting, OSError) as error:
            log.error("not opened", listener=shape.endpoint, reason=error)

    async def _see_off(self, opened: OpenListener) -> None:
        if opened.listener.connection_count:
            await self._services.timers.sleep(GOODBYE_MS_MAX)
        await opened.stop()
        self._leaving.remove(opened)

    async def _stop_following(self) -> None:
        self._wanted = None
        await self._changing.stop()


def _limits(settings: BrokerSettings, security: ListenerSecurity) -> Limits:
    size_bytes = settings.socket_request_max_bytes
    return Limits(
        frame_bytes_max=min(size_bytes, security.frame_bytes_max) if security.protocol.has_sasl else size_bytes,
        connections_max=settings.max_connections,
        connections_per_address_max=settings.max_connections_per_ip,
        idle_ms_max=settings.connections_max_idle_ms,
        connections_of_address_max=parse_overrides(settings.max_connections_per_ip_overrides),
    )
