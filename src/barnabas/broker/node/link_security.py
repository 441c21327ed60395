"""Links that speak what the listeners at their other end speak: TLS, and a sign-in, where those ask for it.

Brokers dial ``inter.broker.listener.name``, everybody dials the controllers on the first of
``controller.listener.names``. A login that is missing is noticed when the node starts, if it is to be one of several.
"""

from __future__ import annotations

from typing import Any

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.security import LISTENER_PREFIX, ListenerSecurity
from barnabas.model.settings import InvalidSetting
from barnabas.transport.links import Links
from barnabas.transport.session import Prove
from barnabas.transport.sign_in import Credentials
from barnabas.transport.tls import ReplaceableContext, client_context
from barnabas.world.entropy import Entropy


def controller_links(settings: BrokerSettings, entropy: Entropy) -> Links:
    """To the controllers' listeners."""
    security = settings.security.for_controllers
    mechanism = None if security is None else security.link.controller_mechanism
    name = "sasl.mechanism.controller.protocol"
    return _links(settings, entropy, f"controller-{settings.node_id}", security, mechanism, setting=name)


def broker_links(settings: BrokerSettings, entropy: Entropy) -> Links:
    """To the listener by which brokers reach each other."""
    security = settings.security.listeners.get(settings.cluster.inter_broker_listener_name or "")
    mechanism = None if security is None else security.link.inter_broker_mechanism
    name = "sasl.mechanism.inter.broker.protocol"
    return _links(settings, entropy, f"broker-{settings.node_id}", security, mechanism, setting=name)


def renew_links(settings: BrokerSettings, *, to_brokers: Links, to_controllers: Links) -> None:
    """Keys and trust have changed while running: connections that are made from now on use them."""
    security = settings.security
    of_brokers = security.listeners.get(settings.cluster.inter_broker_listener_name or "")
    for links, listener in ((to_brokers, of_brokers), (to_controllers, security.for_controllers)):
        if listener is not None and isinstance(links.tls, ReplaceableContext):
            links.tls.current = client_context(listener.tls, checks_host=listener.link.checks_host)


def _links(
    settings: BrokerSettings,
    entropy: Entropy,
    client_id: str,
    security: ListenerSecurity | None,
    mechanism: str | None,
    *,
    setting: str,
) -> Links:
    options: dict[str, Any] = {}
    if security is not None and security.protocol.has_tls and (_is_one_of_several(settings) or _has_trust(security)):
        context = client_context(security.tls, checks_host=security.link.checks_host)
        options["tls"] = ReplaceableContext.of(context)
    if security is not None and security.protocol.has_sasl:
        login = _login(security, mechanism, setting=setting)
        if login is not None:
            options["prove"] = _prover(login)
        elif _is_one_of_several(settings):
            raise InvalidSetting(
                f"other nodes are reached by the listener {security.name}, which asks for sign-in: give a username and "
                f"a password in {LISTENER_PREFIX}{security.name.lower()}.plain.sasl.jaas.config"
            )
    return Links(client_id=client_id, chance=entropy.below, **options)


def _is_one_of_several(settings: BrokerSettings) -> bool:
    return bool(settings.cluster.bootstrap_servers)


def _has_trust(security: ListenerSecurity) -> bool:
    return security.tls.trust_store is not None or security.tls.trusted_certificates is not None


def _login(security: ListenerSecurity, mechanism: str | None, *, setting: str) -> Credentials | None:
    logins = security.link.logins
    if mechanism is not None:
        return logins.get(mechanism)
    if len(logins) > 1:
        raise InvalidSetting(f"{setting}: which of {', '.join(logins)}?")
    return next(iter(logins.values()), None)


def _prover(login: Credentials) -> Prove:
    async def prove() -> Credentials:
        return login

    return prove
