"""The pages by which programs watch a broker: ``/livez``, ``/readyz``, ``/startupz``, ``/metrics``, a dashboard.

Live is a broker whose loop turns. Ready is one that clients can use: let into the cluster, with a leader of the
metadata quorum and no failed directory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Final

from barnabas.broker.metrics.broker import add_sources
from barnabas.broker.requests.services import Services
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.endpoints import FIRST_FREE, HTTP_PORT, CannotListen
from barnabas.http.server import HttpServer, Page, Pages
from barnabas.observe.metrics import CONTENT_TYPE
from barnabas.transport.listener import Listener

_TOTAL: Final = re.compile(r"^(kafka_server_(?:brokertopicmetrics|replicamanager)_\w+)_total$")
NODES_APART_MAX: Final = 64
DASHBOARD: Final = "grafana.json"  # beside barnabas.observe


def pages(broker: Services, listeners: Iterable[Listener], has_failed: Callable[[], bool]) -> Pages:
    def live() -> Page:
        return Page(200, ("ok\n",))

    def ready() -> Page:
        reasons = [*reasons_unready(broker), *(("the node has failed",) if has_failed() else ())]
        return Page(503, (f"{reason}\n" for reason in reasons)) if reasons else Page(200, ("ok\n",))

    add_sources(broker, listeners)

    def metrics() -> Page:
        return Page(200, broker.observed.metrics.page(), CONTENT_TYPE)

    def of_confluent() -> Page:
        return Page(200, broker.observed.metrics.page(confluent_name), CONTENT_TYPE)

    def dashboard() -> Page:
        return Page(200, (files("barnabas.observe").joinpath(DASHBOARD).read_text(),), "application/json")

    return {
        "/livez": live,
        "/readyz": ready,
        "/startupz": live,  # whoever can ask has started: the port opens when clients are answered
        "/metrics": metrics,
        "/metrics?style=confluent": of_confluent,
        "/grafana.json": dashboard,
    }


async def open_at(server: HttpServer, settings: BrokerSettings) -> None:
    host, port = settings.barnabas_http_host, settings.barnabas_http_port
    if port == FIRST_FREE:
        # Brokers of one machine that start together get the same ports each time.
        await server.start_at_first_free(host, HTTP_PORT + (settings.node_id - 1) % NODES_APART_MAX)
        return
    try:
        await server.start(host, port)
    except OSError as error:
        raise CannotListen(f"barnabas.http.port={port}", error) from error


def confluent_name(name: str) -> str:
    """Confluent's exporters write rates where Strimzi's write totals; the rest has the same names."""
    return _TOTAL.sub(r"\1persec", name)


def reasons_unready(broker: Services) -> list[str]:
    reasons = []
    node = broker.image.brokers.get(broker.broker_id)
    if node is None or node.is_fenced:
        reasons.append("the cluster has not let this broker in")
    if broker.raft.describe().leader_id < 0:
        reasons.append("no controller is known")
    reasons += [f"the directory {directory} has failed" for directory in sorted(broker.store.offline)]
    return reasons
