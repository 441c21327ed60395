"""Paths under ``/schemas``: schemas by id and by guid, wherever they are used."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry import errors
from barnabas.registry.api.requests import Call, content_of, described
from barnabas.registry.names import context_of, normal, parse
from barnabas.registry.records import JSON, KINDS, StoredSchema
from barnabas.rest.bodies import is_true

LISTED_MAX = 1000  # schemas of one listing


async def list_types(request: Request) -> Response:
    return Call(request).answer([JSON, *(each for each in KINDS if each != JSON)])


async def list_schemas(request: Request) -> Response:
    call = Call(request)
    state = call.registry.state
    prefix = request.query_params.get("subjectPrefix", ":*:")
    deleted = is_true(request, "deleted")
    found: list[StoredSchema] = []
    for subject in state.subjects(prefix, deleted=deleted):
        if call.permissions.allows(call.user, "read", subject):
            versions = state.versions(subject, deleted=deleted)
            found += versions[-1:] if is_true(request, "latestOnly") else versions
    return call.answer([described(each) for each in call.page(found)[:LISTED_MAX]])


def _found(call: Call) -> list[StoredSchema]:
    """The versions that have the id of the path and that the user may read; the newest last."""
    text = call.request.path_params["id"]
    if not (text.isascii() and text.isdecimal()):
        raise errors.schema_not_found(text)
    named = call.request.query_params.get("subject")
    context = call.context if named is None else context_of(normal(named, context=call.context))
    found = call.registry.state.by_id(int(text), context=context) or call.registry.state.by_id(int(text))
    if named is not None and parse(named).name:
        subject = normal(named, context=call.context)
        found = [each for each in found if each.subject == subject] or found
    if not found:
        raise errors.schema_not_found(int(text))
    readable = [each for each in found if call.permissions.allows(call.user, "read", each.subject)]
    if not readable:
        call.allow("read", found[0].subject)
    return readable


async def get_schema(request: Request) -> Response:
    call = Call(request)
    found = _found(call)[0]
    said: dict[str, Any] = content_of(
        found, await call.registry.formatted(found, request.query_params.get("format", ""))
    )
    said.pop("deleted", None)
    if "subject" in request.query_params:
        said = {"subject": found.subject, "version": found.version, **said}
    if is_true(request, "fetchMaxId"):
        said["maxId"] = call.registry.state.max_id(context_of(found.subject))
    return call.answer(said)


async def get_schema_text(request: Request) -> Response:
    call = Call(request)
    found = _found(call)[0]
    text = await call.registry.formatted(found, request.query_params.get("format", ""))
    return Response(text, media_type=call.answer(None).media_type)


def _live(call: Call) -> list[StoredSchema]:
    deleted = is_true(call.request, "deleted")
    return [each for each in _found(call) if deleted or not each.deleted]


async def list_subjects(request: Request) -> Response:
    call = Call(request)
    return call.answer(call.page(sorted({each.subject for each in _live(call)})))


async def list_versions(request: Request) -> Response:
    call = Call(request)
    found = sorted(_live(call), key=lambda each: (each.subject, each.version))
    return call.answer(call.page([{"subject": each.subject, "version": each.version} for each in found]))


async def get_by_guid(request: Request) -> Response:
    call = Call(request)
    guid = request.path_params["guid"]
    found = call.registry.state.by_guid(guid)
    if not found:
        raise errors.schema_not_found(guid)
    call.allow("read", found[0].subject)
    return call.answer(
        content_of(found[0], await call.registry.formatted(found[0], request.query_params.get("format", "")))
    )


async def list_ids_of_guid(request: Request) -> Response:
    call = Call(request)
    found = call.registry.state.by_guid(request.path_params["guid"])
    pairs = sorted({(context_of(each.subject), each.id) for each in found})
    return call.answer([{"context": context, "id": schema_id} for context, schema_id in pairs])
