"""Writes on a process that does not lead: forwarded to the leader as they came, and answered as it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from barnabas.http import client as http
from barnabas.observe.log import logger
from barnabas.registry import errors
from barnabas.registry.api.requests import Call, media_type
from barnabas.registry.log import NotLeader
from barnabas.registry.service import LEAD_SECONDS_MAX
from barnabas.rest.errors import RestError

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_log: Final = logger("registry")
FORWARDED: Final = "x-forward"
PASSED_ON: Final = ("authorization", "content-type", "accept")
PAUSE_SECONDS: Final = 0.1
ANSWER_SECONDS_MAX: Final = 40.0
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


def by_leader(handler: Handler) -> Handler:
    """The handler of a write: it runs here if this process leads, otherwise at the leader."""

    async def handle(request: Request) -> Response:
        call = Call(request)
        await request.body()  # read once; a handler that runs after a failed attempt finds it again
        deadline = asyncio.get_running_loop().time() + LEAD_SECONDS_MAX
        while True:
            try:
                if await call.registry.leads_soon():
                    return await handler(request)
                if FORWARDED in request.headers:
                    raise errors.no_leader()
                return await _forward(call)
            except (NotLeader, _Retriable) as error:
                if asyncio.get_running_loop().time() >= deadline:
                    raise errors.forwarding_failed(f"the leader could not be reached: {error}") from error
                await asyncio.sleep(PAUSE_SECONDS)
                await call.registry.election.leader(fresh=True)

    return handle


class _Retriable(Exception):
    """The leader did not take the request, or taking it twice does no harm."""


async def _forward(call: Call) -> Response:
    request = call.request
    leader = await call.registry.election.leader()
    if not leader or leader == call.registry.address:
        raise _Retriable("the leader is being elected")
    target = request.scope["raw_path"].decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
    try:
        answer = await http.request(
            request.method,
            f"{leader}{target}{f'?{query}' if query else ''}",
            body=await request.body(),
            headers={**headers, FORWARDED: "true"},
            size_bytes_max=ANSWER_BYTES_MAX,
            timeout_seconds=ANSWER_SECONDS_MAX,
            tls=request.app.peer_tls,
        )
    except http.RequestFailed as error:
        if request.method == "DELETE":  # a second attempt would not find what the first one deleted
            raise errors.forwarding_failed(str(error)) from error
        raise _Retriable(str(error)) from error
    _check_leads(answer)
    await _read_own_write(call, answer)
    return Response(answer.body, status_code=answer.status, media_type=media_type(request.headers.get("accept", "")))


def _check_leads(answer: http.Response) -> None:
    if answer.status != errors.SERVER_ERROR:
        return
    try:
        code = msgspec.json.decode(answer.body).get("error_code")
    except (msgspec.DecodeError, AttributeError):
        return
    if code == errors.NO_LEADER:
        raise _Retriable("the process at the leader's address does not lead any more")


async def _read_own_write(call: Call, answer: http.Response) -> None:
    """A client that reads here what it has just written finds it."""
    if answer.status < errors.NOT_FOUND:
        try:
            await call.registry.catch_up()
        except RestError as error:
            _log.warning("write_not_read_back", reason=error)
