"""What a handler receives: who asks, on which connection, in which version, and the parts of the broker it may use.

A handler is ``def handle(request, message)`` and answers with a message, with :meth:`Request.defer` (later, while the
connection goes on), or is a coroutine (later, while the connection waits). A handler whose work grows with the cluster
is a generator that yields after every row: ``world.turns`` resumes it in as many turns as it needs. It raises
``ApiError`` only where its API has one error code for the whole answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.requests.portions import ENCODED_ROWS_MAX, rows_in
from barnabas.observe.log import logger
from barnabas.transport.connection import Connection, Parts
from barnabas.transport.outbox import LastAnswer
from barnabas.wire.frame import RequestHeader, encode_response, encode_response_in_steps
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from barnabas.broker.access.authorizer import Asker
    from barnabas.broker.quotas.metering import Meter
    from barnabas.broker.requests.services import Services

log = logger("request")


class Request:
    __slots__ = ("broker", "connection", "header", "is_portion", "version")

    asker: Asker | None = None  # who asks, on a broker where that matters: see ``guarded_request``
    meter: Meter | None = None  # what it costs the one who asks, where quotas are set: see ``metering``

    def __init__(self, broker: Services, connection: Connection, header: RequestHeader) -> None:
        self.broker = broker
        self.connection = connection
        self.header = header
        self.version = header.api_version
        self.is_portion = False  # some of the rows of a request: its answer is merged with others, not encoded

    def amended(self, response: Message) -> Message:
        """The response as it leaves, see ``AmendedRequest``."""
        return response

    def encode(self, response: Message, version: int | None = None) -> Parts:
        # The only parts that are not buffers are the slices of files that the handlers themselves put in.
        return cast(
            Parts,
            encode_response(
                self.amended(response),
                self.version if version is None else version,
                correlation_id=self.header.correlation_id,
            ),
        )

    async def encode_in_turns(self, response: Message) -> Parts:
        """As ``encode``; a response of many rows is encoded in several turns of the loop."""
        response = self.amended(response)
        if rows_in(response, ENCODED_ROWS_MAX) <= ENCODED_ROWS_MAX:
            parts = encode_response(response, self.version, correlation_id=self.header.correlation_id)
            return cast(Parts, parts)
        turns = self.broker.turns
        await turns.begin()
        steps = encode_response_in_steps(response, self.version, correlation_id=self.header.correlation_id)
        return cast(Parts, await turns.run(steps))

    def defer(self) -> Deferred:
        return Deferred(self, asyncio.get_running_loop().create_future())


@dataclass(slots=True, eq=False)
class Deferred:
    """An answer that comes later; requests behind it on the connection are worked on meanwhile.

    It must keep no view into the request: the memory is used again as soon as the handler returns.
    """

    request: Request
    future: asyncio.Future[Parts | None]
    on_response: Callable[[Message | None], None] | None = None  # called with the response before it is sent

    @property
    def is_over(self) -> bool:
        """Answered already, or nobody is there any longer to hear the answer."""
        return self.future.done()

    def answer(self, response: Message | None, *, is_last: bool = False) -> None:
        """With ``is_last`` the connection is closed after it."""
        if self.future.done():
            return
        try:
            if self.on_response is not None:
                self.on_response(response)
            if self.request.is_portion:
                self._answer_portion(response, is_last=is_last)
                return
            if response is not None and rows_in(response, ENCODED_ROWS_MAX) > ENCODED_ROWS_MAX:
                self.request.broker.tasks.start(self._answer_in_turns(response, is_last=is_last), "encode")
                return
            parts = None if response is None else self.request.encode(response)
            self.future.set_result(LastAnswer(parts) if is_last and parts is not None else parts)
        except Exception:  # noqa: BLE001  # as the dispatcher does for answers that do not wait
            # Whoever completes us moves a high watermark for everyone: our mistake must not reach them.
            self._broken()

    def _answer_portion(self, response: Message | None, *, is_last: bool) -> None:
        if is_last:
            self.request.connection.is_last_answer = True
        merged: Any = None if response is None else self.request.amended(response)
        self.future.set_result(merged)

    async def _answer_in_turns(self, response: Message, *, is_last: bool) -> None:
        try:
            parts = await self.request.encode_in_turns(response)
            if not self.future.done():
                self.future.set_result(LastAnswer(parts) if is_last else parts)
        except Exception:  # noqa: BLE001
            self._broken()

    def attempt(self, work: Callable[[], Message | None]) -> None:
        """Answer with what the work gives, or go on waiting if that is None.

        Called by timers and by those who have news, whom a failure does not concern; the client, for whom no answer
        would be true, finds its connection closed instead of waiting for ever.
        """
        if self.future.done():
            return
        try:
            response = work()
        except Exception:  # noqa: BLE001
            self._broken()
            return
        if response is not None:
            self.answer(response)

    def _broken(self) -> None:
        log.exception("deferred answer failed", api=self.request.header.api_key, version=self.request.version)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection instead of answering."""
        if not self.future.done():
            self.future.cancel()
