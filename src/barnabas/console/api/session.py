"""The session: which user and clusters there are, the CSRF token, log in and log out."""

from __future__ import annotations

import time
from math import ceil
from typing import Any

import msgspec

from barnabas.console.endpoint import Call, Endpoint
from barnabas.console.sessions import ID_CHARACTERS_MAX, Login
from barnabas.model.errors import BarnabasError
from barnabas.model.version import __version__
from barnabas.rest.bodies import JsonResponse
from barnabas.rest.errors import RestError


class Credentials(msgspec.Struct):
    username: str
    password: str
    cluster: str = ""


def _described(call: Call, session_id: str, user: str | None) -> dict[str, Any]:
    console = call.console
    is_known = user is not None or not console.requires_login
    return {
        "version": __version__,
        "user": user,
        "login_required": console.requires_login and user is None,
        "read_only": console.is_read_only,
        "csrf_token": console.sessions.token(session_id),
        "clusters": [
            {
                "name": source.name,
                "color": source.color,
                "servers": source.settings.get("bootstrap.servers", "") if is_known else "",
                "registry": source.registry_url is not None,
            }
            for source in console.clusters.sources.values()
        ],
    }


async def get_session(call: Call) -> JsonResponse:
    session_id = call.session_id if len(call.session_id) >= ID_CHARACTERS_MAX // 3 else call.console.sessions.new_id()
    answer = JsonResponse(_described(call, session_id, call.user or None))
    if session_id != call.session_id:
        answer.headers["Set-Cookie"] = call.console.cookie_header(session_id)
    return answer


async def log_in(call: Call) -> JsonResponse:
    """A new session id for the user, so that an id that was known before the login is worth nothing."""
    given = await call.body(Credentials)
    call.audited["login"] = given.username
    console = call.console
    name = given.cluster or next(iter(console.clusters.sources))
    if name not in console.clusters.sources:
        raise RestError(404, f"there is no cluster {name!r} in this console")
    if not given.username or not given.password:
        raise RestError(401, "give a user name and a password")
    address = call.request.client.host if call.request.client else ""
    wait_seconds = ceil(console.login_attempts.wait_seconds(given.username, address, now=time.monotonic()))
    if wait_seconds:
        headers = {"Retry-After": str(wait_seconds)}
        raise RestError(429, f"too many failed logins: try again in {wait_seconds} s", headers=headers)
    login = Login(given.username, {"sasl.username": given.username, "sasl.password": given.password})
    # Counted before the broker answers, so that attempts at the same time do not pass the limit.
    console.login_attempts.failed(given.username, address, now=time.monotonic())
    try:
        is_accepted = await console.clusters.verify(name, login)
    except BarnabasError:
        console.login_attempts.withdraw(given.username, address)
        raise
    if not is_accepted:
        raise RestError(401, "the cluster does not accept this user and password")
    console.login_attempts.succeeded(given.username, address)
    session_id = console.sessions.log_in(login, now=time.monotonic())
    answer = JsonResponse(_described(call, session_id, given.username))
    answer.headers["Set-Cookie"] = console.cookie_header(session_id)
    return answer


async def log_out(call: Call) -> dict[str, Any]:
    call.console.sessions.log_out(call.session_id)
    return {}


ENDPOINTS = (
    Endpoint("GET", "/session", get_session, "The user, the clusters and the CSRF token", needs_login=False),
    Endpoint("POST", "/session", log_in, "Log in with a SASL user of the cluster", body=Credentials, needs_login=False),
    Endpoint("DELETE", "/session", log_out, "Log out", needs_login=False),
)
