"""A request whose answer is changed before it leaves: by those who refused a part of it, and by its meter.

A plain broker, without an authorizer and without quotas, never makes one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.requests.request import Request
from barnabas.broker.requests.services import Services
from barnabas.transport.connection import Connection
from barnabas.wire.frame import RequestHeader
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from barnabas.broker.quotas.metering import Meter


class AmendedRequest(Request):
    __slots__ = ("_amend", "meter")

    def __init__(self, broker: Services, connection: Connection, header: RequestHeader) -> None:
        super().__init__(broker, connection, header)
        self._amend: list[Callable[[Any], None]] = []
        self.meter: Meter | None = None

    def when_answered(self, amend: Callable[[Any], None]) -> None:
        """Change the answer of the handler before it leaves; those who come later change it later."""
        self._amend.append(amend)

    def amended(self, response: Message) -> Message:
        amends, self._amend = self._amend, []
        for amend in amends:
            amend(response)
        if self.meter is not None and not self.is_portion:
            self.meter.charge(response)
        return response
