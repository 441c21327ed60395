"""A client of a schema registry that speaks Confluent's REST interface: schemas by id and by subject.

What was once learned of an id never changes, so it is kept. How records carry ids is in ``registered.py``; the serdes
there ask this client, and so may anybody.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import quote

from barnabas.client.errors import RegistryRefused, RegistryUnreachable
from barnabas.http.client import RequestFailed, basic, request
from barnabas.model.settings import InvalidSetting

if TYPE_CHECKING:
    from ssl import SSLContext

LOCAL_URL: Final = "http://127.0.0.1:8081"  # where `barnabas up` runs its registry
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
SCHEMAS_KEPT_MAX: Final = 10_000
SERVER_ERROR: Final = 500
ANSWER_BYTES_MAX: Final = 16 << 20

SchemaKind = Literal["AVRO", "JSON", "PROTOBUF"]


class Reference(NamedTuple):
    """Another schema that this one uses: the name by which it does, and where the registry keeps it."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    text: str
    kind: SchemaKind = "AVRO"
    references: tuple[Reference, ...] = ()


class SubjectVersion(NamedTuple):
    subject: str
    version: int
    id: int
    schema: Schema
    guid: str | None = None


class Registry:
    """Several addresses are tried one after the other. It keeps no connection open, so there is nothing to close."""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        username: str = "",
        password: str = "",
        timeout_ms: int = 10_000,
        ssl: SSLContext | None = None,
    ) -> None:
        named = urls.split(",") if isinstance(urls, str) else urls
        self.urls = tuple(url.strip().rstrip("/") for url in named if url.strip())
        if not self.urls:
            raise ValueError("name at least one address of a schema registry")
        self._headers = {"content-type": CONTENT_TYPE}
        if username:
            self._headers["authorization"] = basic(username, password)
        self._timeout_ms = timeout_ms
        self._ssl = ssl
        self._by_id: dict[int | str, Schema] = {}

    async def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of the schema, which becomes the subject's next version unless it is one already."""
        query = "?normalize=true" if normalize else ""
        answer = await self._ask("POST", f"/subjects/{_path(subject)}/versions{query}", _body(schema))
        return _number(answer, "id")

    async def schema(self, schema_id: int | str) -> Schema:
        """The schema of an id, or with text of a GUID."""
        known = self._by_id.get(schema_id)
        if known is None:
            kind = "ids" if isinstance(schema_id, int) else "guids"
            known = _schema(await self._ask("GET", f"/schemas/{kind}/{schema_id}"))
            if len(self._by_id) >= SCHEMAS_KEPT_MAX:
                del self._by_id[next(iter(self._by_id))]
            self._by_id[schema_id] = known
        return known

    async def serialized(self, schema_id: int) -> Schema:
        """The same, with a Protobuf file as its descriptor in base64; a registry that cannot do that gives its text."""
        return _schema(await self._ask("GET", f"/schemas/ids/{schema_id}?format=serialized"))

    async def lookup(self, subject: str, schema: Schema) -> SubjectVersion:
        """Which version of the subject this schema is; :class:`RegistryRefused` if it is none."""
        return _version(await self._ask("POST", f"/subjects/{_path(subject)}", _body(schema)))

    async def version(
        self, subject: str, version: int | Literal["latest"] = "latest", *, deleted: bool = False
    ) -> SubjectVersion:
        query = "?deleted=true" if deleted else ""
        return _version(await self._ask("GET", f"/subjects/{_path(subject)}/versions/{version}{query}"))

    async def subjects(self, *, deleted: bool = False) -> list[str]:
        return sorted(await self._ask("GET", f"/subjects{'?deleted=true' if deleted else ''}"))

    async def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        query = "?deleted=true" if deleted else ""
        return sorted(await self._ask("GET", f"/subjects/{_path(subject)}/versions{query}"))

    async def is_compatible(self, subject: str, schema: Schema, *, version: int | Literal["latest"] = "latest") -> bool:
        path = f"/compatibility/subjects/{_path(subject)}/versions/{version}"
        return bool((await self._ask("POST", path, _body(schema))).get("is_compatible"))

    async def incompatibilities(
        self, subject: str, schema: Schema, *, version: int | Literal["latest"] | None = None
    ) -> list[str]:
        """Why a schema cannot become the next version; without ``version`` compared as the subject's level asks."""
        path = (
            f"/compatibility/subjects/{_path(subject)}/versions{'' if version is None else f'/{version}'}?verbose=true"
        )
        answer = await self._ask("POST", path, _body(schema))
        return [] if answer.get("is_compatible") else [str(each) for each in answer.get("messages") or ["incompatible"]]

    async def compatibility(self, subject: str | None = None) -> str:
        """The rule for new versions of a subject, or of all that have none of their own."""
        path = "/config" if subject is None else f"/config/{_path(subject)}?defaultToGlobal=true"
        return str((await self._ask("GET", path))["compatibilityLevel"])

    async def set_compatibility(self, level: str, subject: str | None = None) -> None:
        path = "/config" if subject is None else f"/config/{_path(subject)}"
        await self._ask("PUT", path, {"compatibility": level})

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Its versions that are gone now; for good only if they were deleted once before."""
        path = f"/subjects/{_path(subject)}{'?permanent=true' if permanent else ''}"
        return sorted(await self._ask("DELETE", path))

    async def delete_version(self, subject: str, version: int | Literal["latest"], *, permanent: bool = False) -> int:
        path = f"/subjects/{_path(subject)}/versions/{version}{'?permanent=true' if permanent else ''}"
        return int(await self._ask("DELETE", path))

    async def mode(self, subject: str | None = None) -> str:
        """READWRITE, READONLY or IMPORT: of a subject, or of all that have none of their own."""
        path = "/mode" if subject is None else f"/mode/{_path(subject)}?defaultToGlobal=true"
        return str((await self._ask("GET", path))["mode"])

    async def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> None:
        path = "/mode" if subject is None else f"/mode/{_path(subject)}"
        await self._ask("PUT", f"{path}{'?force=true' if force else ''}", {"mode": mode})

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        reasons: list[str] = []
        content = None if body is None else json.dumps(body).encode()
        for url in self.urls:
            try:
                answer = await request(
                    method,
                    url + path,
                    body=content,
                    headers=self._headers,
                    size_bytes_max=ANSWER_BYTES_MAX,
                    timeout_seconds=self._timeout_ms / 1000,
                    tls=self._ssl,
                )
            except (RequestFailed, InvalidSetting) as error:
                reasons.append(f"the schema registry at {error}")
                continue
            try:
                said = json.loads(answer.body) if answer.body else {}
            except ValueError:
                reasons.append(f"{url} answered {answer.status} and no JSON: {answer.body[:80]!r}")
                continue
            if answer.status < 300:
                return said
            told = said if isinstance(said, dict) else {}
            text = f"{told.get('message', 'no reason given')} ({method} {path}: {answer.status})"
            if answer.status >= SERVER_ERROR:
                reasons.append(f"{url}: {text}")
                continue
            code = told.get("error_code")
            raise RegistryRefused(text, status=answer.status, code=code if isinstance(code, int) else answer.status)
        raise RegistryUnreachable("; ".join(reasons))


def _path(subject: str) -> str:
    return quote(subject, safe="")


def _body(schema: Schema) -> dict[str, object]:
    body: dict[str, object] = {"schema": schema.text}
    if schema.kind != "AVRO":
        body["schemaType"] = schema.kind
    if schema.references:
        body["references"] = [reference._asdict() for reference in schema.references]
    return body


def _schema(said: Any) -> Schema:
    try:
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in said.get("references") or ()
        )
        return Schema(str(said["schema"]), said.get("schemaType") or "AVRO", references)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RegistryUnreachable(f"what the registry answered is not a schema: {error!r}") from error


def _version(said: Any) -> SubjectVersion:
    schema = _schema(said)
    guid = said.get("guid")
    return SubjectVersion(
        str(said.get("subject", "")),
        _number(said, "version"),
        _number(said, "id"),
        schema,
        guid if isinstance(guid, str) else None,
    )


def _number(said: Any, name: str) -> int:
    number = said.get(name) if isinstance(said, dict) else None
    if not isinstance(number, int):
        raise RegistryUnreachable(f"the registry's answer has no {name}")
    return number
