"""The gate of a listener that asks for sign-in: until a peer has proved who it is, it can ask for next to nothing.

Before sign-in only ApiVersions, SaslHandshake and SaslAuthenticate (or, after an old handshake, bare tokens) are
understood, in small frames. Whoever fails waits a moment, is told so and is cut off. Where sessions end, a peer signs
in again on the same connection, as the same user by the same mechanism, or is cut off too. The mechanisms themselves
are in ``barnabas.security``.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from struct import Struct
from typing import Final

from barnabas.broker.access.oauth_keys import OAuthKeys
from barnabas.broker.requests.request import Request
from barnabas.broker.requests.services import Services
from barnabas.broker.settings.security import ListenerSecurity
from barnabas.model import errors
from barnabas.model.errors import Malformed
from barnabas.observe.log import logger
from barnabas.security.exchange import Exchange, SignInFailed
from barnabas.security.jwks import NO_KEYS
from barnabas.security.oauthbearer import MECHANISM as OAUTHBEARER
from barnabas.security.oauthbearer import OAuthExchange, key_id_of
from barnabas.security.plain import MECHANISM as PLAIN
from barnabas.security.plain import PlainExchange
from barnabas.security.principal import USER, Principal
from barnabas.security.scram import MECHANISMS, NONCE_BYTES, Credential, Mechanism, ScramExchange
from barnabas.transport.connection import Answer, Connection, Parts, Serve
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import decode_request_header
from barnabas.wire.message import decode
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

log = logger("sign-in")
audit = logger("audit")

SIGN_IN: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
KEY_BYTES: Final = 2
SECRET_BYTES: Final = 32
SIGN_IN_AGAIN_MS_MIN: Final = 1000  # nobody needs to prove himself more often
_unpack_key: Final = Struct(">h").unpack_from
_pack_size: Final = Struct(">i").pack


async def open_gate(broker: Services, security: ListenerSecurity, serve: Serve, cleanup: AsyncExitStack) -> Serve:
    """What a listener serves in the place of ``serve``, so that nobody gets there who has not signed in."""
    gate = Gate(broker, security, serve)
    cleanup.push_async_callback(gate.stop)
    await gate.start()
    return gate.serve


class SignedIn:
    """What is known of the peer of one connection."""

    __slots__ = ("exchange", "expires_ms", "is_bare", "mechanism", "principal", "session_ms", "since_ms")

    def __init__(self) -> None:
        self.principal: Principal | None = None  # set once it has been proved
        self.mechanism = ""
        self.since_ms = 0
        self.session_ms = 0  # how long the last sign-in lasts; 0: as long as the connection
        self.expires_ms: int | None = None  # on the monotonic clock
        self.exchange: Exchange | None = None  # while a sign-in is under way
        self.is_bare = False  # the next frames are tokens and nothing else


class Gate:
    """Serves every connection of one listener: pass ``serve`` to it."""

    def __init__(self, broker: Services, security: ListenerSecurity, serve: Serve) -> None:
        self._broker = broker
        self._security = security
        self._serve = serve
        self._secret = broker.world.entropy.token(SECRET_BYTES)  # behind the salts of users that do not exist
        self._keys = OAuthKeys(broker.world, broker.timers, security.oauth)

    async def start(self) -> None:
        if OAUTHBEARER in self._security.mechanisms:
            await self._keys.start()

    async def stop(self) -> None:
        await self._keys.stop()

    def serve(self, connection: Connection, frame: memoryview) -> Answer:
        peer: SignedIn | None = connection.state
        if peer is None:
            peer = connection.state = SignedIn()
        if peer.is_bare:
            return self._take_bare(connection, peer, bytes(frame))
        if len(frame) < KEY_BYTES:
            raise Malformed("a frame too short for a request")
        (key,) = _unpack_key(frame)
        if peer.principal is not None and peer.exchange is None:
            if key != ApiKey.SASL_HANDSHAKE or not self._may_sign_in_again(peer):
                if peer.expires_ms is not None and self._broker.world.clock.monotonic_ms() >= peer.expires_ms:
                    raise Malformed("the session has ended")
                return self._serve(connection, frame)
        elif key == ApiKey.API_VERSIONS and peer.exchange is None:
            return self._serve(connection, frame)
        if key not in SIGN_IN:
            raise Malformed(f"API {key} before sign-in")
        return self._sign_in(connection, peer, frame)

    def _may_sign_in_again(self, peer: SignedIn) -> bool:
        now_ms = self._broker.world.clock.monotonic_ms()
        return peer.expires_ms is not None and now_ms - peer.since_ms >= SIGN_IN_AGAIN_MS_MIN

    # --- the steps ------------------------------------------------------------------------------------------------

    def _sign_in(self, connection: Connection, peer: SignedIn, frame: memoryview) -> Answer:
        header, position = decode_request_header(frame)
        request = Request(self._broker, connection, header)
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            if header.api_version not in SaslHandshakeRequest.versions:
                raise Malformed(f"SaslHandshake version {header.api_version} is not served")
            return self._handshake(request, peer, decode(SaslHandshakeRequest, header.api_version, frame, position))
        if header.api_version not in SaslAuthenticateRequest.versions:
            raise Malformed(f"SaslAuthenticate version {header.api_version} is not served")
        message = decode(SaslAuthenticateRequest, header.api_version, frame, position)
        return self._authenticate(request, peer, bytes(message.auth_bytes))

    def _handshake(self, request: Request, peer: SignedIn, message: SaslHandshakeRequest) -> Answer:
        offered = list(self._security.mechanisms)
        if peer.exchange is not None:
            refused = SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE.code, mechanisms=offered)
            return self._refuse(request.connection, request.encode(refused))
        if message.mechanism not in offered or (peer.principal is not None and message.mechanism != peer.mechanism):
            refused = SaslHandshakeResponse(error_code=errors.UNSUPPORTED_SASL_MECHANISM.code, mechanisms=offered)
            log.info("sign-in refused", peer=request.connection.peer[0], mechanism=message.mechanism)
            return self._refuse(request.connection, request.encode(refused))
        peer.exchange = self._exchange(message.mechanism)
        peer.is_bare = request.version == 0
        return request.encode(SaslHandshakeResponse(mechanisms=offered))

    def _authenticate(self, request: Request, peer: SignedIn, token: bytes) -> Answer:
        exchange = peer.exchange
        if exchange is None:
            refused = SaslAuthenticateResponse(
                error_code=errors.ILLEGAL_SASL_STATE.code, error_message="SaslAuthenticate before SaslHandshake"
            )
            return self._refuse(request.connection, request.encode(refused))
        if isinstance(exchange, OAuthExchange):
            return self._authenticate_bearer(request, peer, exchange, token)
        try:
            answer = self._step(request.connection, peer, exchange, token)
        except SignInFailed as error:
            return self._refuse(request.connection, _refusal(request, error))
        return _progress(request, peer, exchange, answer)

    async def _authenticate_bearer(
        self, request: Request, peer: SignedIn, exchange: OAuthExchange, token: bytes
    ) -> Parts | None:
        """Checking a signature takes longer than a turn of the loop may."""
        try:
            answer = await self._step_bearer(request.connection, peer, exchange, token)
        except SignInFailed as error:
            return await self._refuse(request.connection, _refusal(request, error))
        return _progress(request, peer, exchange, answer)

    def _take_bare(self, connection: Connection, peer: SignedIn, token: bytes) -> Answer:
        exchange = peer.exchange
        assert exchange is not None
        if isinstance(exchange, OAuthExchange):
            return self._take_bare_bearer(connection, peer, exchange, token)
        try:
            answer = self._step(connection, peer, exchange, token)
        except SignInFailed:
            return self._refuse(connection, None)
        peer.is_bare = not exchange.is_complete
        return [_pack_size(len(answer)) + answer]

    async def _take_bare_bearer(
        self, connection: Connection, peer: SignedIn, exchange: OAuthExchange, token: bytes
    ) -> Parts | None:
        try:
            answer = await self._step_bearer(connection, peer, exchange, token)
        except SignInFailed:
            return await self._refuse(connection, None)
        peer.is_bare = not exchange.is_complete
        return [_pack_size(len(answer)) + answer]

    def _step(self, connection: Connection, peer: SignedIn, exchange: Exchange, token: bytes) -> bytes:
        try:
            answer = exchange.step(token)
            self._stepped(connection, peer, exchange, None)
        except SignInFailed as error:
            self._failed(connection, exchange, str(error))
            raise
        return answer

    async def _step_bearer(
        self, connection: Connection, peer: SignedIn, exchange: OAuthExchange, token: bytes
    ) -> bytes:
        if exchange.keys is NO_KEYS:  # the first message: a key that we do not know may be a new one
            await self._keys.know(key_id_of(token))
            exchange.keys = self._keys.keys
        try:
            answer = await self._broker.world.workers.run(exchange.step, token)
            self._stepped(connection, peer, exchange, exchange.expires_ms)
        except SignInFailed as error:
            self._failed(connection, exchange, exchange.reason or str(error))
            raise
        return answer

    def _stepped(self, connection: Connection, peer: SignedIn, exchange: Exchange, expires_ms: int | None) -> None:
        if exchange.is_complete:
            assert exchange.user is not None
            self._let_in(connection, peer, Principal(USER, exchange.user), exchange.mechanism, expires_ms)

    def _failed(self, connection: Connection, exchange: Exchange, reason: str) -> None:
        self._broker.observed.signed_in(connection.listener_name, exchange.mechanism, is_success=False)
        audit.info(
            "sign-in failed",
            peer=connection.peer[0],
            listener=connection.listener_name,
            mechanism=exchange.mechanism,
            user=exchange.user,
            reason=reason,
        )

    def _let_in(
        self,
        connection: Connection,
        peer: SignedIn,
        principal: Principal,
        mechanism: str,
        credential_expires_ms: int | None,
    ) -> None:
        if peer.principal is not None and peer.principal != principal:
            raise SignInFailed(f"the connection is {peer.principal}'s, and {principal} cannot take it over")
        peer.principal, peer.mechanism, peer.exchange = principal, mechanism, None
        peer.since_ms = self._broker.world.clock.monotonic_ms()
        peer.session_ms = self._security.session_ms
        if credential_expires_ms is not None:
            left_ms = max(1, credential_expires_ms - self._broker.world.clock.wall_ms())
            peer.session_ms = min(peer.session_ms or left_ms, left_ms)
        peer.expires_ms = peer.since_ms + peer.session_ms if peer.session_ms else None
        connection.frame_bytes_max = self._broker.settings.socket_request_max_bytes
        self._broker.observed.signed_in(connection.listener_name, mechanism, is_success=True)
        log.debug("signed in", peer=connection.peer[0], mechanism=mechanism, user=principal)

    async def _refuse(self, connection: Connection, answer: Parts | None) -> Parts | None:
        """Whoever guesses shall not guess fast."""
        await self._broker.timers.sleep(self._security.failure_delay_ms)
        connection.is_last_answer = True
        return answer

    # --- the mechanisms -------------------------------------------------------------------------------------------

    def _exchange(self, mechanism: str) -> Exchange:
        if mechanism == PLAIN:
            return PlainExchange(self._security.plain_users)
        if mechanism == OAUTHBEARER:
            return OAuthExchange(NO_KEYS, self._security.oauth.expected, now_ms=self._broker.world.clock.wall_ms)
        scram = MECHANISMS[mechanism]
        return ScramExchange(
            scram,
            lambda user: self._credential(scram, user),
            nonce=self._broker.world.entropy.token(NONCE_BYTES),
            secret=self._secret,
        )

    def _credential(self, mechanism: Mechanism, user: str) -> Credential | None:
        found = self._broker.image.security.scram.get((mechanism.number, user))
        return Credential(*found) if found is not None else None


def _refusal(request: Request, error: SignInFailed) -> Parts:
    code = errors.SASL_AUTHENTICATION_FAILED.code
    return request.encode(SaslAuthenticateResponse(error_code=code, error_message=str(error)))


def _progress(request: Request, peer: SignedIn, exchange: Exchange, answer: bytes) -> Parts:
    return request.encode(
        SaslAuthenticateResponse(
            error_message=None,
            auth_bytes=answer,
            session_lifetime_ms=peer.session_ms if exchange.is_complete else 0,
        )
    )
