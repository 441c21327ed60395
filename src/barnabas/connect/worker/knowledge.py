"""What the plugin process has said about configurations: their kind, what is wrong, and which keys are secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.errors import ConnectError
from barnabas.connect.secrets import masked
from barnabas.connect.worker.children import Child
from barnabas.connect.worker.store import Connector
from barnabas.rest.errors import RestError

BAD_REQUEST: Final = 400
UNAVAILABLE: Final = 503
KNOWN_MAX: Final = 10_000  # configurations whose facts are kept


@dataclass(frozen=True, slots=True)
class Known:
    """Facts of one configuration."""

    kind: str
    version: str
    task_count: int
    problems: tuple[str, ...]
    secrets: frozenset[str]


class Knowledge:
    """Asks the plugin process, and remembers."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._known: dict[tuple[str, int], Known] = {}

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the plugin process's answer; raise ``RestError`` if it cannot answer."""
        try:
            return await self._child.request(message)
        except TimeoutError:
            raise RestError(UNAVAILABLE, "the plugin process took too long to answer") from None
        except (ConnectError, OSError) as error:
            raise RestError(UNAVAILABLE, f"the plugin process did not answer: {error}") from error

    async def check(self, config: Mapping[str, str]) -> Known:
        """Return the facts of a configuration; raise ``RestError`` if its plugin is unknown."""
        answer = await self.ask({"op": "check", "config": dict(config)})
        if "error" in answer:
            raise RestError(BAD_REQUEST, str(answer["message"]))
        return Known(
            answer["kind"],
            answer["version"],
            answer["tasks"],
            tuple(answer["problems"]),
            frozenset(answer["secrets"]),
        )

    async def of(self, connector: Connector) -> Known | None:
        """Return the facts of a stored connector, or None if its plugin is not installed here."""
        key = (connector.name, connector.revision)
        known = self._known.get(key)
        if known is None:
            try:
                known = await self.check(connector.config)
            except RestError as error:
                if error.status == BAD_REQUEST:
                    return None
                raise
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[key] = known
        return known

    async def refusal(self, connector: Connector) -> str:
        """Return why a connector cannot be run."""
        try:
            known = await self.check(connector.config)
        except RestError as error:
            return error.message
        return "\n".join(known.problems)

    async def masked(self, connector: Connector) -> dict[str, str]:
        """Return a stored configuration as it may be shown."""
        known = await self.of(connector)
        return masked(connector.config, () if known is None else known.secrets)
