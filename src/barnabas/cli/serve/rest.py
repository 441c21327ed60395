"""``barnabas rest``: the HTTP services of a cluster in one process, as ``barnabas up`` starts it beside its broker.

Each service that listens is announced on standard output by a line ``READY url``. The process ends when it is told to,
or when the pipe of its parent closes.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from barnabas.cli.serve.http_services import serve
from barnabas.cli.serve.registry import SERVICE as REGISTRY
from barnabas.cli.serve.registry import served as registry_served
from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)")
    add("--registry-port", type=int, default=REGISTRY.port, metavar="N", help="port of the schema registry")
    add("--with-parent", action="store_true", help="stop when standard input is closed")
    add_connection(parser)


def run(arguments: Namespace) -> int:
    from barnabas.observe.lines import write_logs

    write_logs()
    if REGISTRY.missing:
        raise Failure(f"the registry needs {', '.join(REGISTRY.missing)}: {REGISTRY.install}")
    settings = settings_of(Settings, arguments, client_id="barnabas-registry")
    options = Namespace(
        host=arguments.host,
        port=arguments.registry_port,
        advertised_url=None,
        group="schema-registry",
        allowed_host=[],
        allowed_origin=[],
        users=None,
        cluster_users=False,
        permissions=None,
        tls_keystore=None,
        tls_truststore=None,
    )
    work = serve([lambda: registry_served(options, settings)], with_parent=arguments.with_parent)
    return attend(work, is_long=True)
