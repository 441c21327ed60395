"""Paths under ``/subjects`` and ``/compatibility``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry import errors, writes
from barnabas.registry.api.requests import LATEST, Call, described, parse_version
from barnabas.registry.names import ANY_CONTEXT_PREFIX, DEFAULT_CONTEXT, is_valid, normal
from barnabas.registry.records import StoredSchema
from barnabas.registry.state import State
from barnabas.registry.writes import Written
from barnabas.rest.bodies import is_true
from barnabas.rest.errors import RestError


async def list_subjects(request: Request) -> Response:
    call = Call(request)
    prefix = request.query_params.get("subjectPrefix", ANY_CONTEXT_PREFIX)
    if call.context != DEFAULT_CONTEXT:
        prefix = normal("" if prefix == ANY_CONTEXT_PREFIX else prefix, context=call.context)
    found = call.registry.state.subjects(
        prefix, deleted=is_true(request, "deleted"), deleted_only=is_true(request, "deletedOnly")
    )
    return call.answer(call.page([each for each in found if call.permissions.allows(call.user, "read", each)]))


async def list_versions(request: Request) -> Response:
    call = Call(request)
    subject, state = call.subject(), call.registry.state
    call.allow("read", subject)
    deleted, only, negative = (is_true(request, name) for name in ("deleted", "deletedOnly", "deletedAsNegative"))
    if not state.has_subject(subject, deleted=deleted or only or negative):
        raise errors.subject_not_found(subject)
    versions = state.versions(subject, deleted=deleted or only or negative)
    if only:
        versions = [each for each in versions if each.deleted]
    return call.answer(call.page([-each.version if negative and each.deleted else each.version for each in versions]))


def found_version(call: Call, subject: str, version: int, *, deleted: bool) -> StoredSchema:
    """A version of the subject; one in the default context may be in another context."""
    state = call.registry.state
    found = state.version(subject, version, deleted=deleted)
    if found is None and not subject.startswith(":"):
        others = (state.version(f":{each}:{subject}", version, deleted=deleted) for each in sorted(state.contexts))
        found = next((each for each in others if each is not None), None)
    if found is not None:
        return found
    if not state.has_subject(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(version)


async def get_version(request: Request) -> Response:
    call = Call(request)
    subject, version = call.subject(), call.version()
    call.allow("read", subject)
    found = found_version(call, subject, version, deleted=is_true(request, "deleted"))
    text = await call.registry.formatted(found, request.query_params.get("format", ""))
    return call.answer(described(found, text))


async def get_version_text(request: Request) -> Response:
    call = Call(request)
    subject, version = call.subject(), call.version()
    call.allow("read", subject)
    found = found_version(call, subject, version, deleted=is_true(request, "deleted"))
    text = await call.registry.formatted(found, request.query_params.get("format", ""))
    return Response(text, media_type=call.answer(None).media_type)


async def list_referrers(request: Request) -> Response:
    call = Call(request)
    subject, version = call.subject(), call.version()
    call.allow("read", subject)
    found = found_version(call, subject, version, deleted=True)
    referrers = call.registry.state.referrers(found.subject, found.version, deleted=is_true(request, "deleted"))
    return call.answer(call.page(sorted({each.id for each in referrers})))


async def latest_with_metadata(request: Request) -> Response:
    call = Call(request)
    subject, state = call.subject(), call.registry.state
    call.allow("read", subject)
    keys, values = request.query_params.getlist("key"), request.query_params.getlist("value")
    wanted = dict(zip(keys, values, strict=False))
    deleted = is_true(request, "deleted")
    for each in reversed(state.versions(subject, deleted=deleted)):
        properties = (each.metadata or {}).get("properties") or {}
        if each.metadata is not None and all(properties.get(key) == value for key, value in wanted.items()):
            return call.answer(described(each))
    raise (
        errors.schema_not_found() if state.has_subject(subject, deleted=deleted) else errors.subject_not_found(subject)
    )


async def look_up(request: Request) -> Response:
    call = Call(request)
    subject, state = call.subject(), call.registry.state
    call.allow("read", subject)
    deleted = is_true(request, "deleted")
    names = [subject]
    if not subject.startswith(":"):
        names += [f":{each}:{subject}" for each in sorted(state.contexts)]
    known = [each for each in names if state.has_subject(each, deleted=deleted)]
    if not known:
        raise errors.subject_not_found(subject)
    for name in known:
        draft = await call.draft(name)
        found = await call.registry.look_up(draft, normalize=is_true(request, "normalize"), deleted=deleted)
        if found is not None:
            text = await call.registry.formatted(found, request.query_params.get("format", ""))
            return call.answer(described(found, text))
    raise errors.schema_not_found()


async def register(request: Request) -> Response:
    call = Call(request)
    subject = call.subject()
    if not is_valid(subject):
        raise errors.invalid_subject(subject)
    call.allow("write", subject)
    found = await call.registry.register(await call.draft(subject), normalize=is_true(request, "normalize"))
    return call.answer({"id": found.id, "version": found.version, "guid": found.guid})


async def delete_version(request: Request) -> Response:
    call = Call(request)
    subject, version = call.subject(), call.version()
    call.allow("delete", subject)

    def decide(state: State) -> Written:
        return writes.delete_version(state, subject, version, permanent=is_true(request, "permanent"))

    return call.answer(await call.registry.write(decide))


async def delete_subject(request: Request) -> Response:
    call = Call(request)
    subject = call.subject()
    call.allow("delete", subject)

    def decide(state: State) -> Written:
        return writes.delete_subject(state, subject, permanent=is_true(request, "permanent"))

    return call.answer(await call.registry.write(decide))


async def check(request: Request) -> Response:
    """With a version of the path: against that one. Without: against those that the level asks for."""
    call = Call(request)
    subject, state = call.subject(), call.registry.state
    call.allow("read", subject)
    named = request.path_params.get("version")
    if named is None:
        earlier = state.versions(subject, deleted=False)
    else:
        version = parse_version(named)
        found = state.version(subject, version)
        if found is None and version != LATEST:
            is_known = state.has_subject(subject)
            raise errors.version_not_found(version) if is_known else errors.subject_not_found(subject)
        if found is None and not state.has_subject(subject) and state.has_subject(subject, deleted=True):
            raise errors.subject_not_found(subject)
        earlier = [] if found is None else [found]
    is_verbose = is_true(request, "verbose")
    try:
        messages = await call.registry.check(
            await call.draft(subject), earlier, normalize=is_true(request, "normalize")
        )
    except RestError as error:
        if not is_verbose or error.code != errors.INVALID_SCHEMA:
            raise
        messages = [error.message]
    said: dict[str, object] = {"is_compatible": not messages}
    return call.answer({**said, "messages": messages} if is_verbose else said)
