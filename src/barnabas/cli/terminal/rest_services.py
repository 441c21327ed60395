"""The HTTP services that run beside a broker: which there are, their ports, and whether they are installed.

Only names are here, so that ``barnabas up`` can say what is missing without importing any of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, NamedTuple


class RestService(NamedTuple):
    title: str  # in the banner
    port: int
    extra: str
    needs: tuple[str, ...]  # modules

    @property
    def missing(self) -> list[str]:
        return [each for each in self.needs if not _is_installed(each)]

    @property
    def install(self) -> str:
        return f"pip install 'barnabas[{self.extra}]'"


_WEB: Final = ("starlette", "uvicorn", "httptools", "msgspec")
SERVICES: Final = {
    "console": RestService("CONSOLE ", 8080, "console", _WEB),
    "registry": RestService(
        "REGISTRY", 8081, "registry", (*_WEB, "fastavro", "jsonschema", "google.protobuf", "grpc_tools")
    ),
}
CONNECT: Final = RestService("CONNECT ", 8083, "connect", (*_WEB, "httpx", "pyspark", "pyarrow"))


LOOPBACK: Final = "127.0.0.1"


def address_of_service(name: str, host: str) -> str:
    """The address that a service beside an open broker listens on.

    The console of a cluster without authentication is for this machine only; `barnabas console --host` opens it.
    """
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    return LOOPBACK if name == "console" and not is_local else host


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it
        return False
