"""A schema registry of a few lines for tests of the command line: schemas by id and by subject, over a real socket."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


class RegistryServer:
    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.login = ""  # what the Authorization header must say, if anything
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                server.requests.append(self.path)
                if server.login and self.headers.get("authorization") != server.login:
                    status, said = 401, {"error_code": 401, "message": "Unauthorized"}
                else:
                    status, said = server.respond([unquote(part) for part in path.strip("/").split("/")])
                content = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, text: str, *, kind: str = "AVRO", subject: str = "", references: tuple[Any, ...] = ()) -> int:
        """The id of a new schema, which is a version of the subject from now on."""
        self.schemas.append({"schema": text, "schemaType": kind, "references": list(references)})
        self.subjects.setdefault(subject or f"subject-{len(self.schemas)}", []).append(len(self.schemas))
        return len(self.schemas)

    def respond(self, path: list[str]) -> tuple[int, dict[str, Any]]:
        match path:
            case "schemas", "ids", number if int(number) <= len(self.schemas):
                return 200, self.schemas[int(number) - 1]
            case "subjects", subject, "versions", version if subject in self.subjects:
                ids = self.subjects[subject]
                place = len(ids) if version == "latest" else int(version)
                found = {"subject": subject, "version": place, "id": ids[place - 1]}
                return 200, found | self.schemas[ids[place - 1] - 1]
        return NOT_FOUND
