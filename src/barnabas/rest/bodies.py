"""JSON bodies of requests and responses, by msgspec, and path parameters that may contain an encoded slash."""

from __future__ import annotations

from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from barnabas.rest.errors import RestError

T = TypeVar("T")

BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422
JSON: Final = "application/json"

_encode: Final = msgspec.json.Encoder().encode


class JsonResponse(Response):
    media_type = JSON

    def render(self, content: Any) -> bytes:
        return _encode(content)


async def read_json(request: Request, kind: type[T]) -> T:
    """The body as ``kind``, a msgspec Struct or a plain type; unknown fields are ignored.

    Raises RestError: 400 if the body is not JSON, 422 if it is JSON of another shape.
    """
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise RestError(UNPROCESSABLE, f"the body of the request is not as expected: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RestError(BAD_REQUEST, f"the body of the request is not JSON: {error}") from None


def is_true(request: Request, name: str) -> bool:
    """Whether a query parameter says ``true``."""
    return request.query_params.get(name, "").lower() == "true"


def int_parameter(request: Request, name: str, default: int) -> int:
    """A whole number of the query; RestError 400 if it is something else."""
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise RestError(BAD_REQUEST, f"the query parameter {name}={text!r} is not a whole number") from None


class _Segment(Convertor[str]):
    """One segment of the path, decoded after routing: ``a%2Fb`` is the name a/b, not two segments."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("segment", _Segment())
