"""Tokens for OAUTHBEARER: from a function of the user's, or from an issuer by client id and secret (RFC 6749, 4.4).

A function that is no coroutine runs in a thread, since it may take its time. What an issuer gave is kept until little
of its life is left: less than a connection has used when it signs in again, so that one then has a new token.
``connections.py`` asks for one whenever a connection signs in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Final, cast
from urllib.parse import urlencode, urlsplit

from barnabas.client.errors import IssuerUnreachable, NoToken
from barnabas.client.settings.client import Settings
from barnabas.model.errors import BarnabasError

ANSWER_BYTES_MAX: Final = 1 << 20
REFUSAL_CHARACTERS_MAX: Final = 200
LIFE_USED_MAX: Final = 0.8
_FORM: Final = "application/x-www-form-urlencoded"


class Tokens:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = ""
        self._good_until = 0.0  # on the loop's clock

    async def token(self) -> str:
        """NoToken if there is none to be had."""
        provider = self._settings.sasl_oauthbearer_token_provider
        if provider is None:
            if asyncio.get_running_loop().time() >= self._good_until:
                await self._fetch()
            return self._token
        try:
            answer = provider() if asyncio.iscoroutinefunction(provider) else await asyncio.to_thread(provider)
            token = answer if isinstance(answer, str) else await cast("Awaitable[str]", answer)
        except BarnabasError:
            raise
        except Exception as error:
            raise NoToken(f"the token provider failed: {type(error).__name__}: {error}") from error
        if not is_token(token):
            raise NoToken("what the token provider gave is no token")
        return token

    async def _fetch(self) -> None:
        url = self._settings.sasl_oauthbearer_token_endpoint_url
        now = asyncio.get_running_loop().time()
        status, body = await self._post(url)
        try:
            said = json.loads(body)
            token, life = said.get("access_token"), said.get("expires_in", 0)
        except (ValueError, AttributeError):
            token, life = None, 0
        if status != 200 or not isinstance(token, str) or not is_token(token):
            reason = (
                body[:REFUSAL_CHARACTERS_MAX].decode(errors="replace") if status != 200 else "no access_token in it"
            )
            kind = IssuerUnreachable if status >= 500 else NoToken
            raise kind(f"{_place(url)} gave no token: {status}: {reason}")
        self._token = token
        is_number = isinstance(life, int | float) and not isinstance(life, bool) and 0 < life < 1 << 31
        self._good_until = now + (life * LIFE_USED_MAX if is_number else 0.0)

    async def _post(self, url: str) -> tuple[int, bytes]:
        from barnabas.http.client import RequestFailed, basic, request

        settings = self._settings
        form = {"grant_type": "client_credentials"}
        if settings.sasl_oauthbearer_scope:
            form["scope"] = settings.sasl_oauthbearer_scope
        headers = {
            "authorization": basic(
                settings.sasl_oauthbearer_client_credentials_client_id,
                settings.sasl_oauthbearer_client_credentials_client_secret,
            ),
            "content-type": _FORM,
        }
        context = None
        if urlsplit(url).scheme == "https":
            from barnabas.client.cluster.authentication import tls_context

            context = tls_context(settings)
        try:
            answer = await request(
                "POST",
                url,
                body=urlencode(form).encode(),
                headers=headers,
                size_bytes_max=ANSWER_BYTES_MAX,
                timeout_seconds=settings.request_timeout_ms / 1000,
                tls=context,
            )
        except RequestFailed as error:
            raise IssuerUnreachable(f"the issuer of tokens at {error}") from error
        return answer.status, answer.body


def is_token(text: object) -> bool:
    """Letters that a bearer token may have (RFC 6750): nothing that would end the message that it is sent in."""
    return isinstance(text, str) and bool(text) and text.isascii() and text.isprintable() and " " not in text


def _place(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]
