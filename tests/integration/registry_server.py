"""A schema registry of a few lines for tests of the command line: schemas by id and by subject, over a real socket."""

from __future__ import annotations

import json
from typing import Any

from small_http import Answer, Asked, SmallHttpServer

NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


class RegistryServer(SmallHttpServer):
    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.login = ""  # what the Authorization header must say, if anything
        super().__init__()

    def add(self, text: str, *, kind: str = "AVRO", subject: str = "", references: tuple[Any, ...] = ()) -> int:
        """The id of a new schema, which is a version of the subject from now on."""
        self.schemas.append({"schema": text, "schemaType": kind, "references": list(references)})
        self.subjects.setdefault(subject or f"subject-{len(self.schemas)}", []).append(len(self.schemas))
        return len(self.schemas)

    def respond(self, asked: Asked) -> Answer:
        self.requests.append(asked.target)
        if self.login and asked.headers.get("authorization") != self.login:
            status, said = 401, {"error_code": 401, "message": "Unauthorized"}
        else:
            status, said = self._find(asked.parts)
        return Answer(status, json.dumps(said).encode())

    def _find(self, path: list[str]) -> tuple[int, dict[str, Any]]:
        match path:
            case "schemas", "ids", number if int(number) <= len(self.schemas):
                return 200, self.schemas[int(number) - 1]
            case "subjects", subject, "versions", version if subject in self.subjects:
                ids = self.subjects[subject]
                place = len(ids) if version == "latest" else int(version)
                found = {"subject": subject, "version": place, "id": ids[place - 1]}
                return 200, found | self.schemas[ids[place - 1] - 1]
        return NOT_FOUND
