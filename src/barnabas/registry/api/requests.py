"""What a request says: subject and version of the path, the body of a schema, the media type of the response."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry import errors
from barnabas.registry.names import DEFAULT_CONTEXT, context_name, is_valid, normal
from barnabas.registry.permissions import Permissions
from barnabas.registry.records import AVRO, KINDS, Reference, StoredSchema
from barnabas.registry.service import SchemaRegistry
from barnabas.registry.writes import ID_MAX, Draft
from barnabas.rest.bodies import JsonResponse, int_parameter, read_json
from barnabas.rest.errors import RestError

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
MEDIA_TYPES: Final = (MEDIA_TYPE, "application/vnd.schemaregistry+json", "application/json")
LATEST: Final = -1
NOT_ACCEPTABLE: Final = 406


class SchemaBody(msgspec.Struct):
    """The body of a registration, a look-up or a check; unknown fields are ignored."""

    schema: str | None = None
    schemaType: str | None = None  # noqa: N815
    references: list[Reference] | None = None
    metadata: dict[str, Any] | None = None
    ruleSet: dict[str, Any] | None = None  # noqa: N815
    id: int | None = None
    version: int | None = None


class Call:
    """One request of the API."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.registry: SchemaRegistry = request.app.registry
        self.permissions: Permissions = request.app.permissions

    @property
    def context(self) -> str:
        """Of the path ``/contexts/NAME/...``, or the default."""
        named = self.request.path_params.get("context")
        return DEFAULT_CONTEXT if named is None else context_name(named)

    @property
    def user(self) -> str | None:
        user: str | None = self.request.state.user
        return user

    def allow(self, operation: str, subject: str | None) -> None:
        """Raises RestError if the user may not do this."""
        self.permissions.check(self.user, operation, subject)

    def subject(self, *, follows_alias: bool = True) -> str:
        """The subject of the path; an alias stands for another subject."""
        subject = normal(self.request.path_params["subject"], context=self.context)
        if follows_alias:
            alias = (self.registry.state.config(subject) or {}).get("alias")
            if alias:
                return normal(str(alias), context=self.context)
        return subject

    def scope(self) -> str | None:
        """The subject or context of settings; None for the default context, whose settings are the global ones."""
        subject = self.subject(follows_alias=False)
        if subject in ("", ":.:"):
            return None
        if not is_valid(subject, allows_context=True):
            raise errors.invalid_subject(subject)
        return subject

    def version(self) -> int:
        return parse_version(self.request.path_params["version"])

    def page(self, found: list[Any]) -> list[Any]:
        """The part of a list that ``offset`` and ``limit`` ask for."""
        offset, limit = int_parameter(self.request, "offset", 0), int_parameter(self.request, "limit", -1)
        return found[max(offset, 0) :] if limit < 0 else found[max(offset, 0) :][:limit]

    async def draft(self, subject: str) -> Draft:
        body = await read_json(self.request, SchemaBody)
        kind = (body.schemaType or AVRO).upper()
        if kind not in KINDS:
            raise errors.invalid_schema(f"the schema type {body.schemaType!r} is none of {', '.join(KINDS)}")
        return Draft(
            subject=subject,
            text=body.schema or "",
            kind=kind,
            references=tuple(body.references or ()),
            metadata=body.metadata,
            rule_set=body.ruleSet,
            id=-1 if body.id is None else body.id,
            version=body.version or 0,
        )

    def answer(self, content: Any, *, status: int = 200) -> Response:
        return JsonResponse(content, status_code=status, media_type=media_type(self.request.headers.get("accept", "")))


def media_type(accept: str) -> str:
    """The media type of the response; raises RestError if the client accepts none that there is."""
    wanted = [each.partition(";")[0].strip().lower() for each in accept.split(",") if each.strip()]
    if not wanted or any(each in ("*/*", "application/*", MEDIA_TYPE) for each in wanted):
        return MEDIA_TYPE
    for each in MEDIA_TYPES:
        if each in wanted:
            return each
    raise RestError(NOT_ACCEPTABLE, f"HTTP 406 Not Acceptable: the registry sends {', '.join(MEDIA_TYPES)}")


def parse_version(text: str) -> int:
    """A version of the path: a number from 1, or ``latest`` (also -1)."""
    named = text.strip().lower()
    if named in ("latest", "-1"):
        return LATEST
    if not (named.isascii() and named.isdecimal()) or not 0 < int(named) <= ID_MAX:
        raise errors.invalid_version(text)
    return int(named)


def described(schema: StoredSchema, text: str | None = None) -> dict[str, Any]:
    """A version as the API shows it."""
    return {"subject": schema.subject, "version": schema.version, "id": schema.id, **content_of(schema, text)}


def content_of(schema: StoredSchema, text: str | None = None) -> dict[str, Any]:
    """A schema without its place in a subject."""
    found: dict[str, Any] = {"guid": schema.guid}
    if schema.kind != AVRO:
        found["schemaType"] = schema.kind
    if schema.references:
        found["references"] = schema.references
    if schema.metadata is not None:
        found["metadata"] = schema.metadata
    if schema.ruleSet is not None:
        found["ruleSet"] = schema.ruleSet
    found["schema"] = schema.text if text is None else text
    if schema.deleted:
        found["deleted"] = True
    return found
