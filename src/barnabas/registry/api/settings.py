"""Paths under ``/config``, ``/mode``, ``/contexts`` and ``/v1/metadata``."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from barnabas.model.version import __version__
from barnabas.registry import errors, writes
from barnabas.registry.api.requests import Call
from barnabas.registry.names import DEFAULT_CONTEXT, context_name, normal
from barnabas.registry.state import State
from barnabas.registry.writes import Written
from barnabas.rest.bodies import is_true, read_json

CONFIG_FIELDS: Final = (
    "alias",
    "normalize",
    "validateFields",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


def _scope(call: Call) -> str | None:
    if "subject" in call.request.path_params:
        return call.scope()
    return None if call.context == DEFAULT_CONTEXT else normal("", context=call.context)


async def get_config(request: Request) -> Response:
    call = Call(request)
    scope, state = _scope(call), call.registry.state
    call.allow("read", scope)
    if scope is None or is_true(request, "defaultToGlobal"):
        return call.answer(state.config_in_scope(scope))
    config = state.config(scope)
    if config is None:
        raise errors.no_subject_config(scope)
    return call.answer(config)


async def set_config(request: Request) -> Response:
    call = Call(request)
    scope = _scope(call)
    call.allow("configure", scope)
    body = await read_json(request, dict[str, Any])
    changes: dict[str, Any] = {name: body[name] for name in CONFIG_FIELDS if name in body}
    if "compatibility" in body:
        changes["compatibilityLevel"] = body["compatibility"]
    level = changes.get("compatibilityLevel")
    if isinstance(level, str):
        changes["compatibilityLevel"] = level.upper()
    elif level is not None or not changes:
        raise errors.invalid_level(level, writes.LEVELS)

    def decide(state: State) -> Written:
        return writes.set_config(state, scope, changes)

    await call.registry.write(decide)
    shown = dict(changes)
    if "compatibilityLevel" in shown:
        shown = {"compatibility": shown.pop("compatibilityLevel"), **shown}
    return call.answer(shown)


async def delete_config(request: Request) -> Response:
    call = Call(request)
    scope = _scope(call)
    call.allow("configure", scope)

    def decide(state: State) -> Written:
        return writes.delete_config(state, scope)

    deleted = await call.registry.write(decide)
    return call.answer(deleted or call.registry.state.config_in_scope(scope))


async def get_mode(request: Request) -> Response:
    call = Call(request)
    scope, state = _scope(call), call.registry.state
    call.allow("read", scope)
    if scope is None or is_true(request, "defaultToGlobal"):
        return call.answer({"mode": state.mode_in_scope(scope)})
    mode = state.mode(scope)
    if mode is None:
        raise errors.no_subject_mode(scope)
    return call.answer({"mode": mode})


async def set_mode(request: Request) -> Response:
    call = Call(request)
    scope = _scope(call)
    call.allow("configure", scope)
    body = await read_json(request, dict[str, Any])
    mode = body.get("mode")
    if not isinstance(mode, str):
        raise errors.invalid_mode(mode, writes.MODES)

    def decide(state: State) -> Written:
        return writes.set_mode(state, scope, mode, force=is_true(request, "force"))

    return call.answer(await call.registry.write(decide))


async def delete_mode(request: Request) -> Response:
    call = Call(request)
    scope = _scope(call)
    call.allow("configure", scope)

    def decide(state: State) -> Written:
        return writes.delete_mode(state, scope, recursive=is_true(request, "recursive"))

    return call.answer(await call.registry.write(decide))


async def list_contexts(request: Request) -> Response:
    call = Call(request)
    prefix = request.query_params.get("contextPrefix", "")
    return call.answer(call.page([each for each in call.registry.state.all_contexts() if each.startswith(prefix)]))


async def delete_context(request: Request) -> Response:
    call = Call(request)
    context = context_name(request.path_params["context"])
    call.allow("configure", normal("", context=context))

    def decide(state: State) -> Written:
        return writes.delete_context(state, context)

    await call.registry.write(decide)
    return Response(status_code=204)


async def get_cluster(request: Request) -> Response:
    call = Call(request)
    clusters = {"kafka-cluster": call.registry.cluster_id, "schema-registry-cluster": call.registry.group}
    return call.answer({"scope": {"path": [], "clusters": clusters}, "id": ""})


async def get_server_version(request: Request) -> Response:
    return Call(request).answer({"version": __version__, "commitId": ""})


async def get_root(request: Request) -> Response:
    return Call(request).answer({})


async def get_ready(request: Request) -> Response:
    """Whether the topic has been read, and where the leader is."""
    call = Call(request)
    status = 200 if call.registry.is_read else 503
    leads = call.registry.election.leads
    return call.answer(
        {"ready": call.registry.is_read, "leads": leads, "address": call.registry.address}, status=status
    )
