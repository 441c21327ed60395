"""An HTTP server of a few lines over a real socket: a test says what is answered, and looks at what was asked."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self
from urllib.parse import unquote


class Asked(NamedTuple):
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def parts(self) -> list[str]:
        """The path, part by part."""
        return [unquote(part) for part in self.target.partition("?")[0].strip("/").split("/")]


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class SmallHttpServer(ABC):
    """Answers from when it is made until it is closed, as whoever inherits from it says."""

    def __init__(self, path: str = "") -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                answer = server.respond(Asked(self.command, self.path, self.headers, body))
                if isinstance(answer, bytes):
                    self.wfile.write(answer)
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{path}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @abstractmethod
    def respond(self, asked: Asked) -> Answer | bytes:
        """Bytes are sent as they are, whether that is HTTP or not."""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
