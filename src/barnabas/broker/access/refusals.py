"""The answer to a request that fails as a whole: the API's own, with one error in the place that it has for it.

Where an API has no such place, its module has ``refuse``, which says the error of every row of the request. The
dispatcher and the opener of envelopes ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.model.errors import ApiError, Malformed
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from barnabas.broker.requests.routes import Route

WHOLE: Final = ("error_code", "error_message")  # the place for an error of the whole


def refusal(route: Route, message: Message, error: ApiError, version: int) -> Message:
    response = _refusal(route, message, error)
    for field in response.fields:
        if field.name in WHOLE and not field.is_in(version):
            # This version says the error of each row, and the request has named none: it is empty, as Kafka's is.
            setattr(response, field.name, field.default_value())
    return response


def _refusal(route: Route, message: Message, error: ApiError) -> Message:
    if hasattr(route.module, "refuse"):
        refused: Message = route.module.refuse(message, error)
        return refused
    response = route.response()
    if not hasattr(response, "error_code"):
        raise Malformed(f"{route.name}: {error}") from error
    response.error_code = error.error.code
    if hasattr(response, "error_message"):
        response.error_message = error.message
    return response
