"""The dispatcher: what is our mistake is logged with the API's name, and the peer is hung up on."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.requests import dispatch
from barnabas.broker.requests.dispatch import Dispatcher
from barnabas.broker.requests.request import Deferred, Request
from barnabas.broker.requests.routes import ROUTES
from barnabas.model import errors
from barnabas.model.errors import CorruptBatch, Malformed
from barnabas.observe.request_times import RequestTimes
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import encode_request
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups() -> Any:
    """The answer of a dispatcher to a ListGroups."""
    parts = encode_request(ListGroupsRequest(), 0, correlation_id=1, client_id="c")
    frame = memoryview(b"".join(bytes(part) for part in parts)[4:])  # type: ignore[arg-type]
    times = RequestTimes(lambda: 0)
    quotas = SimpleNamespace(is_active=False, on_activity=lambda callback: None)
    broker = SimpleNamespace(authorizer=None, observed=SimpleNamespace(times=times), quotas=quotas)
    peer = SimpleNamespace(principal=None)
    connection = SimpleNamespace(requests=1, timing=None, arrived_ns=0, state=peer, peer=("10.0.0.1", 1))
    return Dispatcher(cast(Any, broker)).serve(cast(Any, connection), frame)


def corrupt(*_: Any) -> None:
    raise CorruptBatch("topic-0: no whole batch at offset 7")


async def corrupt_later(*_: Any) -> None:
    corrupt()


@pytest.mark.parametrize("handle", [corrupt, corrupt_later])
def test_a_corrupt_file_of_ours_is_logged_before_the_connection_is_closed(
    handle: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    route = dataclasses.replace(
        ROUTES[ApiKey.LIST_GROUPS], handle=handle, is_coroutine=asyncio.iscoroutinefunction(handle)
    )
    monkeypatch.setitem(dispatch.ROUTES, ApiKey.LIST_GROUPS, route)

    async def ask() -> None:
        answer = list_groups()
        assert asyncio.iscoroutine(answer)
        await answer

    with caplog.at_level(logging.ERROR, logger="barnabas"), pytest.raises(Malformed):
        asyncio.run(ask())
    assert "handler failed api=LIST_GROUPS" in caplog.text
    assert "no whole batch at offset 7" in caplog.text


@pytest.mark.parametrize("is_deferred", [False, True])
def test_a_change_is_audited_when_it_is_answered_however_its_handler_answers(
    is_deferred: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waiting: list[Deferred] = []

    def handle(request: Request, message: ListGroupsRequest) -> ListGroupsResponse | Deferred:
        if not is_deferred:
            return ListGroupsResponse(error_code=errors.NOT_CONTROLLER.code)
        waiting.append(request.defer())
        return waiting[0]

    route = ROUTES[ApiKey.LIST_GROUPS]
    api = dataclasses.replace(route.api, audit=lambda message: ["a", "b"])
    route = dataclasses.replace(route, api=api, handle=handle, is_coroutine=False)
    monkeypatch.setitem(dispatch.ROUTES, ApiKey.LIST_GROUPS, route)

    async def ask() -> None:
        answer = list_groups()
        for deferred in waiting:
            assert "change" not in caplog.text
            deferred.answer(ListGroupsResponse(error_code=errors.NOT_CONTROLLER.code))
            await answer

    with caplog.at_level(logging.INFO, logger="barnabas.audit"):
        asyncio.run(ask())
    who = "principal=User:ANONYMOUS peer=10.0.0.1 client=c"
    assert f'change api=LIST_GROUPS {who} of="a b" failed=NOT_CONTROLLER' in caplog.text
