"""The REST process as a child of ``barnabas up``: the HTTP services of ``barnabas rest``."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.cli.serve.side_process import SideProcess
from barnabas.cli.terminal.rest_services import SERVICES, address_of_service


class RestProcess(SideProcess):
    name = "the REST process"
    advice = "pass --console-port N and --registry-port N to start its services, or --no-rest"

    def __init__(self, *, host: str, ports: Mapping[str, int], listener: str, connect_port: int | None = None) -> None:
        """``ports`` are those of the services to run, by name; ``connect_port`` is that of Connect, if it runs.

        ``listener`` is the broker's first one; a client without credentials must be able to use it.
        """
        super().__init__()
        self._is_open = listener.upper().startswith("PLAINTEXT://")
        self._host = host
        self._ports = {name: ports[name] for name in SERVICES if name in ports}
        self._connect_port = connect_port

    @property
    def _installed(self) -> dict[str, int]:
        return {name: port for name, port in self._ports.items() if not SERVICES[name].missing}

    @property
    def is_wanted(self) -> bool:
        return self._is_open and bool(self._installed)

    def lines(self) -> list[str]:
        """What the banner says of each service."""
        found = []
        for name, port in self._ports.items():
            service = SERVICES[name]
            if not self._is_open:
                found.append(
                    f"  {service.title} not started: the broker asks for credentials; see barnabas {name} --help"
                )
            elif service.missing:
                found.append(f"  {service.title} not installed: {service.install}")
            else:
                host = address_of_service(name, self._host)
                found.append(f"  {service.title} http://{f'[{host}]' if ':' in host else host}:{port}")
        return found

    def command(self, servers: str) -> list[str]:
        words = ["rest", "--with-parent", "--bootstrap-server", servers, "--host", self._host]
        for name, port in self._installed.items():
            words += [f"--{name}-port", str(port)]
        if self._connect_port is not None:
            words += ["--connect", f"http://127.0.0.1:{self._connect_port}"]
        return [*words, "-X", "security.protocol=PLAINTEXT"]
