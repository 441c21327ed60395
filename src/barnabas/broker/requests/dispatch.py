"""From a frame to an answer: header, route, version, body, handler, encoded answer.

This is the one place that knows what to do when a request cannot be understood or a handler breaks: the connection
is closed where Kafka closes it, and what went wrong on our side is logged with the API's name.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Mapping
from functools import partial
from types import GeneratorType
from typing import Any, Final, cast

from barnabas.broker.access import audit, permissions
from barnabas.broker.access.guarded_request import GuardedRequest, principal_of
from barnabas.broker.access.refusals import refusal
from barnabas.broker.handlers import api_versions, produce_one
from barnabas.broker.quotas import mutations as quota_mutations
from barnabas.broker.quotas.metering import Meter
from barnabas.broker.requests.amended_request import AmendedRequest
from barnabas.broker.requests.api import Route
from barnabas.broker.requests.portions import ENCODED_ROWS_MAX, Portions, rows_in
from barnabas.broker.requests.request import Deferred, Request
from barnabas.broker.requests.routes import ROUTES
from barnabas.broker.requests.services import Services
from barnabas.model.errors import ApiError, CorruptBatch, Malformed
from barnabas.observe.log import logger
from barnabas.observe.request_times import Timing
from barnabas.transport.connection import Answer, Connection, Later, Parts
from barnabas.wire.api import ApiKey
from barnabas.wire.decoder import ManyStructs
from barnabas.wire.frame import RequestHeader, decode_request_header
from barnabas.wire.message import Message, Unencodable, decode, decode_in_steps
from barnabas.world.turns import until_waiting

log = logger("dispatch")

# Requests as Kafka's metrics name them.
NAMES: Final[dict[int, str]] = {key: "".join(word.capitalize() for word in key.name.split("_")) for key in ApiKey}
PRODUCE: Final = NAMES[ApiKey.PRODUCE]
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"

# Two bytes can name a topic, and a name costs us a hundred bytes and microseconds in which nobody else is served. So
# only Produce, whose bulk is records, may be as large as socket.request.max.bytes allows.
RECORDLESS_BYTES_MAX: Final = 4 * 1024 * 1024
DECODED_ROWS_MAX: Final = 1000  # rows of a request that are decoded at once; more are decoded in turns


class Dispatcher:
    """Serves every connection of a broker: pass ``serve`` to its listeners.

    ``routes`` are those of the listeners' kind: clients' by default, or ``CONTROLLER_ROUTES``.
    """

    def __init__(self, broker: Services, routes: Mapping[int, Route] = ROUTES) -> None:
        self._broker = broker
        self._routes = routes
        self._is_open = broker.authorizer is None
        self._is_for_clients = ApiKey.PRODUCE in routes
        self._follow_quotas(broker.quotas.is_active)
        broker.quotas.on_activity(self._follow_quotas)
        self._times = broker.observed.times
        self._produce = self._times.kind(PRODUCE)

    def _follow_quotas(self, is_active: bool) -> None:
        self._is_metered = is_active and self._is_for_clients
        self._has_short_cut = self._is_open and self._is_for_clients and not is_active

    def serve(self, connection: Connection, frame: memoryview) -> Answer:
        answer: Answer
        if self._has_short_cut and len(frame) > 1 and not (frame[0] or frame[1]):  # Produce is API 0
            if connection.arrived_ns < self._produce.next_ns:
                answer = produce_one.attempt(self._broker, frame)
            else:
                answer = self._timed_attempt(connection, frame)
            if answer is not None:
                self._produce.count += 1
                return answer
        header, position = decode_request_header(frame)
        request = self._request(connection, header, len(frame))
        route = self._routes.get(header.api_key)
        if route is None or header.api_version not in route.versions:
            if header.api_key == ApiKey.API_VERSIONS:
                return api_versions.unsupported(request)
            raise Malformed(f"API {header.api_key} version {header.api_version} is not served")
        if len(frame) > RECORDLESS_BYTES_MAX and header.api_key != ApiKey.PRODUCE:
            log.warning("request is too large", api=route.name, size_bytes=len(frame), client=header.client_id)
            raise Malformed(f"{route.name} of {len(frame)} bytes")
        if route.is_coroutine:
            frame = memoryview(bytes(frame))  # the handler may look at it after other connections have been served
        try:
            message = decode(route.request, header.api_version, frame, position, structs_max=DECODED_ROWS_MAX)
        except ManyStructs:
            return self._decode_in_turns(request, route, memoryview(bytearray(frame)), position)
        kind = self._times.kind(NAMES[route.key] if route.key != ApiKey.FETCH else _kind_of_fetch(message))
        kind.count += 1
        if connection.arrived_ns < kind.next_ns or connection.timing is not None:
            return self._answer(request, route, message, None)
        timing = self._times.begin(kind, connection.arrived_ns, header.client_id)
        answer = self._answer(request, route, message, timing)
        _handled(timing, answer)
        if answer is not None:
            connection.timing = timing
        return answer

    def _timed_attempt(self, connection: Connection, frame: memoryview) -> Answer:
        timing = self._times.begin(self._produce, connection.arrived_ns)
        answer = produce_one.attempt(self._broker, frame)
        if answer is not None and connection.timing is None:
            connection.timing = timing
            _handled(timing, answer)
        return answer

    async def _decode_in_turns(
        self, request: Request, route: Route, frame: memoryview, position: int
    ) -> Parts | Later | None:
        """Serve a request of so many rows that it is also decoded in turns."""
        turns = self._broker.turns
        await turns.begin()
        steps = decode_in_steps(route.request, request.version, frame, position, structs_max=route.api.rows_max)
        message = await turns.run(steps)
        self._times.kind(NAMES[route.key] if route.key != ApiKey.FETCH else _kind_of_fetch(message)).count += 1
        await turns.give_way()
        answer = self._answer(request, route, message, None)
        return await answer if inspect.iscoroutine(answer) else cast("Parts | Later | None", answer)

    def _answer(self, request: Request, route: Route, message: Message, timing: Timing | None) -> Answer:
        for portions in route.api.portions:
            if portions.is_long(message):
                divided = self._in_portions(request, route, message, portions)
                return self._finish(request, route, message, divided, timing, is_audited=True)
        try:
            if request.asker is not None:
                refused = permissions.check(route.api.needs, request, message)
                if refused is not None:
                    return request.encode(refused)
            if request.meter is not None:
                refused = _admitted(request, request.meter, message)
                if refused is not None:
                    return request.encode(refused)
            answer = route.handle(request, message)
            if type(answer) is GeneratorType:
                answer = self._broker.turns.attempt(answer)
            if isinstance(answer, Message):
                if route.api.audit is not None:
                    audit.changed(request, list(route.api.audit(message)), answer)
                if rows_in(answer, ENCODED_ROWS_MAX) > ENCODED_ROWS_MAX:
                    return request.encode_in_turns(answer)
                return request.encode(answer)
        except ApiError as error:
            return _refused(route, request, message, error)
        except CorruptBatch as error:
            raise _broken(route, request, error) from error  # a file of ours, not the peer's request
        except Malformed:
            raise
        except Exception as error:
            raise _broken(route, request, error) from error
        if request.meter is not None:
            request.meter.charge(None) if answer is None else request.meter.pause()
        if isinstance(answer, Deferred):
            if route.api.audit is not None:
                answer.on_response = partial(audit.changed, request, list(route.api.audit(message)))
            return answer.future
        if answer is None:
            return None
        return self._finish(request, route, message, answer, timing)

    async def _in_portions(
        self, request: Request, route: Route, message: Message, portions: Portions
    ) -> Message | None:
        """The answer to a request of many rows, which the handler gets a few at a time."""
        turns, now_ns = self._broker.turns, self._broker.world.clock.monotonic_ns
        splitter = portions.splitter(message)
        answers: list[tuple[Any, int]] = []
        for piece, depth in splitter.portions():
            await turns.give_way()
            started_ns = now_ns()
            part = self._request(request.connection, request.header, 0)
            part.is_portion = True
            answer = self._answer_portion(part, route, piece)
            if inspect.iscoroutine(answer):
                answer = await until_waiting(answer, lambda: splitter.began(now_ns() - started_ns))  # noqa: B023
            else:
                splitter.took(now_ns() - started_ns)
            if not request.connection.is_open and route.api.audit is None:
                raise Malformed(f"the client of a {route.name} of many rows has gone")
            answers.append((answer, depth))
        whole: Message | None = None
        for answer, depth in answers:
            response: Any = await answer.future if isinstance(answer, Deferred) else answer
            if whole is None:
                whole = response
            elif response is not None:
                portions.merge(whole, response, depth)
                await turns.give_way()
        return whole

    def _answer_portion(self, part: Request, route: Route, piece: Message) -> Any:
        """The amended answer to some rows: a message, None, a deferred answer, or a coroutine for one of these."""
        try:
            answer: Any = None
            if part.asker is not None:
                answer = permissions.check(route.api.needs, part, piece)
            if answer is None and part.meter is not None:
                answer = _admitted(part, part.meter, piece)
            if answer is None:
                answer = route.handle(part, piece)
                if type(answer) is GeneratorType:
                    answer = self._broker.turns.attempt(answer)
        except ApiError as error:
            answer = refusal(route, piece, error, part.version)
        if inspect.iscoroutine(answer):
            return self._await_portion(part, route, piece, answer)
        return _portion_answered(part, route, piece, answer)

    async def _await_portion(
        self, part: Request, route: Route, piece: Message, answer: Coroutine[Any, Any, Any]
    ) -> Message | Deferred | None:
        try:
            response = await answer
        except ApiError as error:
            response = refusal(route, piece, error, part.version)
        return _portion_answered(part, route, piece, response)

    def _request(self, connection: Connection, header: RequestHeader, size_bytes: int) -> Request:
        if self._is_open and not self._is_metered:
            return Request(self._broker, connection, header)
        kind = AmendedRequest if self._is_open else GuardedRequest
        request = kind(self._broker, connection, header)
        if self._is_metered:
            user = principal_of(self._broker, connection).name
            request.meter = Meter(
                self._broker,
                connection,
                user=user,
                client_id=header.client_id or "",
                api=header.api_key,
                size_bytes=size_bytes,
            )
        return request

    async def _finish(
        self,
        request: Request,
        route: Route,
        message: Message,
        answer: Coroutine[Any, Any, Message | Deferred | None],
        timing: Timing | None,
        *,
        is_audited: bool = False,
    ) -> Parts | Later | None:
        is_deferred = False
        try:
            response = await answer
            if isinstance(response, Deferred):
                is_deferred = True
                if timing is not None:
                    response.future.add_done_callback(timing.ready)
                return response.future
            if route.api.audit is not None and not is_audited:
                audit.changed(request, list(route.api.audit(message)), response)
            return None if response is None else await request.encode_in_turns(response)
        except ApiError as error:
            return _refused(route, request, message, error)
        except CorruptBatch as error:
            raise _broken(route, request, error) from error
        except Malformed:
            raise
        except Exception as error:
            raise _broken(route, request, error) from error
        finally:
            if timing is not None and not is_deferred:
                timing.ready()


def _portion_answered(part: Request, route: Route, piece: Message, answer: Any) -> Message | Deferred | None:
    if isinstance(answer, Deferred):
        if route.api.audit is not None:
            answer.on_response = partial(audit.changed, part, list(route.api.audit(piece)))
        return answer
    if route.api.audit is not None:
        audit.changed(part, list(route.api.audit(piece)), answer)
    return None if answer is None else part.amended(answer)


def _handled(timing: Timing, answer: Answer) -> None:
    timing.handled()
    if isinstance(answer, asyncio.Future):
        answer.add_done_callback(timing.ready)
    elif isinstance(answer, list):
        timing.ready()


def _admitted(request: Request, meter: Meter, message: Message) -> Message | None:
    """The answer, if the one who asks has had too much already; None if the handler may go on."""
    assert isinstance(request, AmendedRequest)
    if request.header.api_key in quota_mutations.STRICT_SINCE:
        return quota_mutations.check(request, meter, message)
    if request.header.api_key == ApiKey.FETCH:
        if _kind_of_fetch(message) == FETCH_FOLLOWER:
            meter.exempt()
        else:
            meter.bound(message)
    return None


def _kind_of_fetch(message: Any) -> str:
    is_follower = message.replica_id >= 0 or message.replica_state.replica_id >= 0
    return FETCH_FOLLOWER if is_follower else FETCH_CONSUMER


def _broken(route: Route, request: Request, error: Exception) -> Malformed:
    """We are wrong, not the peer: the log says where, and the connection is closed, since no answer would be true."""
    log.exception("handler failed", api=route.name, version=request.version, client=request.header.client_id)
    return Malformed(f"{route.name} failed: {error}")


def _refused(route: Route, request: Request, message: Message, error: ApiError) -> Parts:
    """The API's answer with one error for all of it."""
    response = refusal(route, message, error, request.version)
    try:
        return request.encode(response)
    except Unencodable as failure:
        raise _broken(route, request, failure) from error
