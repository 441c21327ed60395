"""The response to a request that fails as a whole: the API's own response with one error code.

If the response has no top-level error code, the API declares ``refuse``, which puts the error into every row. The
dispatcher and the handler of envelopes call this module.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.requests.api import Route
from barnabas.model.errors import ApiError, Malformed
from barnabas.wire.message import Message

WHOLE: Final = ("error_code", "error_message")  # fields for an error of the whole request


def refusal(route: Route, message: Message, error: ApiError, version: int) -> Message:
    """The response with the error; Malformed if the API has no place for it, so the connection is closed."""
    response = _refusal(route, message, error)
    for field in response.fields:
        if field.name in WHOLE and not field.is_in(version):
            # This version has errors in rows only, and the request named no row: the response is empty, as Kafka's is.
            setattr(response, field.name, field.default_value())
    return response


def _refusal(route: Route, message: Message, error: ApiError) -> Message:
    if route.api.refuse is not None:
        return route.api.refuse(message, error)
    response = route.response()
    if not hasattr(response, "error_code"):
        raise Malformed(f"{route.name}: {error}") from error
    response.error_code = error.error.code
    if hasattr(response, "error_message"):
        response.error_message = error.message
    return response
