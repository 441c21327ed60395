"""The REST API of a Connect worker, as commands use it: errors become one line."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from typing import Any, Final
from urllib.parse import quote

from barnabas.ops.failure import Failure
from barnabas.transport.tls import TlsFiles, client_context

URL_VARIABLE: Final = "BARNABAS_CONNECT_URL"
USER_VARIABLE: Final = "BARNABAS_CONNECT_USER"
KEYSTORE_VARIABLE: Final = "BARNABAS_CONNECT_KEYSTORE"  # PEM file with the client's key and certificate
TRUSTSTORE_VARIABLE: Final = "BARNABAS_CONNECT_TRUSTSTORE"  # PEM file with the CAs to trust
DEFAULT_URL: Final = "http://127.0.0.1:8083"
SECONDS_MAX: Final = 90.0
RETRIES: Final = 20  # while the workers elect a leader
CONFLICT: Final = 409
NOT_FOUND: Final = 404


def add_url(parser: ArgumentParser) -> None:
    """Add the option that says where the worker is."""
    parser.add_argument(
        "--url",
        default=os.environ.get(URL_VARIABLE, DEFAULT_URL),
        metavar="URL",
        help=f"address of a worker; ${URL_VARIABLE}, else {DEFAULT_URL}. ${USER_VARIABLE}=USER:PASSWORD authenticates",
    )


class RestClient:
    """Calls of the REST API."""

    def __init__(self, arguments: Namespace) -> None:
        try:
            import httpx
        except ImportError as error:
            raise Failure("httpx is missing: `pip install 'barnabas[connect]'` installs it") from error
        self._url: str = arguments.url.rstrip("/")
        user = os.environ.get(USER_VARIABLE, "")
        name, _, password = user.partition(":")
        self._auth = (name, password) if user else None
        self._http = httpx
        self._tls = self._url.startswith("https://") and client_context(
            TlsFiles(key_store=os.environ.get(KEYSTORE_VARIABLE), trust_store=os.environ.get(TRUSTSTORE_VARIABLE))
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer, or None if it is empty; raise ``Failure`` for an error."""
        answer = self._send(method, path, body)
        if answer.status_code >= 400:
            raise Failure(_message(answer))
        return answer.json() if answer.content else None

    def find(self, path: str) -> Any:
        """Return the JSON of an answer, or None if there is no such thing."""
        answer = self._send("GET", path, None)
        if answer.status_code == NOT_FOUND:
            return None
        if answer.status_code >= 400:
            raise Failure(_message(answer))
        return answer.json()

    def _send(self, method: str, path: str, body: Any) -> Any:
        for left in range(RETRIES, -1, -1):
            try:
                answer = self._http.request(
                    method, self._url + path, json=body, auth=self._auth, timeout=SECONDS_MAX, verify=self._tls or True
                )
            except self._http.HTTPError as error:
                way_out = "start one with `barnabas connect worker`"
                raise Failure(f"no worker answers at {self._url}: {error}; {way_out}") from error
            if answer.status_code != CONFLICT or "leader" not in answer.text or not left:
                return answer
            time.sleep(0.5)
        raise AssertionError("the last attempt returns")


def connector_path(name: str, rest: str = "") -> str:
    """Return the path of a connector; its name may hold any character."""
    return f"/connectors/{quote(name, safe='')}{rest}"


def _message(answer: Any) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.request.method} {answer.request.url}: status {answer.status_code}"
