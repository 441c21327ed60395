"""The REST process as a child of ``barnabas up``: the HTTP services of ``barnabas rest``."""

from __future__ import annotations

from barnabas.cli.serve.side_process import SideProcess
from barnabas.cli.terminal.rest_services import SERVICES


class RestProcess(SideProcess):
    name = "the REST process"
    advice = "pass --registry-port N to start the registry, or --no-rest"

    def __init__(self, *, host: str, registry_port: int, listener: str) -> None:
        """``listener`` is the broker's first one; a client without credentials must be able to use it."""
        super().__init__()
        self._is_open = listener.upper().startswith("PLAINTEXT://")
        self._host = host
        self._registry_port = registry_port

    @property
    def is_wanted(self) -> bool:
        return self._is_open and not any(service.missing for service in SERVICES.values())

    def lines(self) -> list[str]:
        """What the banner says of each service."""
        found = []
        for service in SERVICES.values():
            if not self._is_open:
                found.append(
                    f"  {service.title} not started: the broker asks for credentials; see barnabas registry --help"
                )
            elif service.missing:
                found.append(f"  {service.title} not installed: {service.install}")
            else:
                host = f"[{self._host}]" if ":" in self._host else self._host
                found.append(f"  {service.title} http://{host}:{self._registry_port}")
        return found

    def command(self, servers: str) -> list[str]:
        return [
            "rest",
            "--with-parent",
            "--bootstrap-server",
            servers,
            "--host",
            self._host,
            "--registry-port",
            str(self._registry_port),
            "-X",
            "security.protocol=PLAINTEXT",
        ]
