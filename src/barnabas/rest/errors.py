"""Errors that become HTTP responses; the shape of their bodies is chosen by each service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from barnabas.model.errors import BarnabasError


class RestError(BarnabasError):
    """A response with an HTTP status, an error code of the service (by default the status) and a message."""

    def __init__(
        self, status: int, message: str, *, code: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = status if code is None else code
        self.message = message
        self.headers = dict(headers or {})


ErrorBody: TypeAlias = Callable[[RestError], object]


def code_and_message(error: RestError) -> object:
    """The body that Confluent's registry and Kafka Connect send."""
    return {"error_code": error.code, "message": error.message}
