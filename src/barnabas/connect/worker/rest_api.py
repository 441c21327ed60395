"""Kafka Connect's REST API: its paths, bodies and status codes.

Where Kafka answers 500 for a mistake of the client (bad JSON, an unknown field, an unknown class) this answers 400.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

import barnabas
from barnabas.connect.worker.herder import Herder, NotLeader
from barnabas.connect.worker.loggers import Loggers, checked
from barnabas.connect.worker.store import TargetState
from barnabas.rest.bodies import JSON, JsonResponse, is_true
from barnabas.rest.errors import RestError

BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
UNSUPPORTED: Final = 415
CREATED: Final = 201
ACCEPTED: Final = 202
NO_CONTENT: Final = 204
COMMIT: Final = ""  # of the source; not known at run time
_STATES: Final = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}

Endpoint = Callable[[Request], Awaitable[Response]]
Forward = Callable[[Request], Awaitable[Response]]


class RestApi:
    """Routes. ``forward`` sends a request to the leader and returns its answer."""

    def __init__(self, herder: Herder, loggers: Loggers, forward: Forward, cluster_id: Callable[[], str]) -> None:
        self._herder = herder
        self._loggers = loggers
        self._forward = forward
        self._cluster_id = cluster_id
        self.is_ready = False

    def routes(self) -> list[BaseRoute]:
        """Return all routes."""
        one = "/connectors/{name:segment}"
        table: list[tuple[str, str, Endpoint]] = [
            ("GET", "/", self._root),
            ("GET", "/health", self._health),
            ("GET", "/connectors", self._list),
            ("POST", "/connectors", self._create),
            ("GET", one, self._info),
            ("DELETE", one, self._delete),
            ("GET", f"{one}/config", self._config),
            ("PUT", f"{one}/config", self._put_config),
            ("PATCH", f"{one}/config", self._patch_config),
            ("GET", f"{one}/status", self._status),
            ("GET", f"{one}/tasks", self._tasks),
            ("GET", f"{one}/tasks/{{task:segment}}/status", self._task_status),
            ("POST", f"{one}/tasks/{{task:segment}}/restart", self._restart_task),
            ("POST", f"{one}/restart", self._restart),
            ("PUT", f"{one}/pause", self._pause),
            ("PUT", f"{one}/resume", self._resume),
            ("PUT", f"{one}/stop", self._stop),
            ("GET", f"{one}/offsets", self._offsets),
            ("PATCH", f"{one}/offsets", self._alter_offsets),
            ("DELETE", f"{one}/offsets", self._reset_offsets),
            ("GET", f"{one}/details", self._details),
            ("GET", f"{one}/topics", self._topics),
            ("PUT", f"{one}/topics/reset", self._reset_topics),
            ("GET", "/connector-plugins", self._plugins),
            ("GET", "/connector-plugins/{plugin:segment}/config", self._plugin_keys),
            ("PUT", "/connector-plugins/{plugin:segment}/config/validate", self._validate),
            ("GET", "/admin/loggers", self._list_loggers),
            ("GET", "/admin/loggers/{logger:segment}", self._logger),
            ("PUT", "/admin/loggers/{logger:segment}", self._set_logger),
        ]
        by_path: dict[str, dict[str, Endpoint]] = {}
        for method, path, endpoint in table:
            by_path.setdefault(path, {})[method] = endpoint
        return [Route(path, self._dispatch(methods), methods=list(methods)) for path, methods in by_path.items()]

    def _dispatch(self, methods: Mapping[str, Endpoint]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            chosen = methods["GET" if request.method == "HEAD" else request.method]
            try:
                return await chosen(request)
            except NotLeader:
                return await self._forward(request)

        return endpoint

    # --- the worker -----------------------------------------------------------------------------------------------

    async def _root(self, request: Request) -> Response:
        answer = {"version": barnabas.__version__, "commit": COMMIT, "kafka_cluster_id": self._cluster_id()}
        return JsonResponse(answer)

    async def _health(self, request: Request) -> Response:
        if self.is_ready:
            return JsonResponse(
                {"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."}
            )
        return JsonResponse({"status": "starting", "message": "Worker is still starting up."}, status_code=503)

    # --- connectors -----------------------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        names = self._herder.names()
        expand = request.query_params.getlist("expand")
        if not expand:
            return JsonResponse(names)
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            found[name] = {}
            try:
                if "info" in expand:
                    found[name]["info"] = await self._herder.info(name)
                if "status" in expand:
                    found[name]["status"] = await self._herder.status(name)
            except RestError as error:
                if error.status != NOT_FOUND:  # deleted meanwhile, or just created
                    raise
        return JsonResponse(found)

    async def _create(self, request: Request) -> Response:
        body = await _object(request)
        unknown = sorted(body.keys() - {"name", "config", "initial_state"})
        if unknown:
            raise RestError(BAD_REQUEST, f"unknown field {unknown[0]!r}; known are name, config and initial_state")
        name = body.get("name", "")
        if not isinstance(name, str):
            raise RestError(BAD_REQUEST, "name must be a string")
        state = body.get("initial_state")
        if state is not None and state not in _STATES:
            raise RestError(BAD_REQUEST, f"initial_state {state!r} is none of {', '.join(_STATES)}")
        target = None if state is None else _STATES[state]
        info = await self._herder.create(name, _strings(body.get("config", {})), target)
        return JsonResponse(info, status_code=CREATED, headers=_location(request, name))

    async def _info(self, request: Request) -> Response:
        return JsonResponse(await self._herder.info(_name(request)))

    async def _delete(self, request: Request) -> Response:
        await self._herder.delete(_name(request))
        return Response(status_code=NO_CONTENT)

    async def _config(self, request: Request) -> Response:
        return JsonResponse(await self._herder.config(_name(request)))

    async def _put_config(self, request: Request) -> Response:
        name = _name(request)
        is_new, info = await self._herder.put_config(name, _strings(await _object(request)))
        if is_new:
            return JsonResponse(info, status_code=CREATED, headers=_location(request, name))
        return JsonResponse(info)

    async def _patch_config(self, request: Request) -> Response:
        changes = await _object(request)
        set_keys = _strings({key: value for key, value in changes.items() if value is not None})
        gone: dict[str, str | None] = {key: None for key, value in changes.items() if value is None}
        return JsonResponse(await self._herder.patch_config(_name(request), {**set_keys, **gone}))

    async def _status(self, request: Request) -> Response:
        return JsonResponse(await self._herder.status(_name(request)))

    async def _tasks(self, request: Request) -> Response:
        return JsonResponse(await self._herder.tasks(_name(request)))

    async def _task_status(self, request: Request) -> Response:
        return JsonResponse(await self._herder.task_status(_name(request), _task(request)))

    async def _restart_task(self, request: Request) -> Response:
        await self._herder.restart_task(_name(request), _task(request))
        return Response(status_code=NO_CONTENT)

    async def _restart(self, request: Request) -> Response:
        include_tasks, only_failed = is_true(request, "includeTasks"), is_true(request, "onlyFailed")
        status = await self._herder.restart(_name(request), include_tasks=include_tasks, only_failed=only_failed)
        if include_tasks or only_failed:
            return JsonResponse(status, status_code=ACCEPTED)
        return Response(status_code=NO_CONTENT)

    async def _pause(self, request: Request) -> Response:
        await self._herder.set_target(_name(request), TargetState.PAUSED)
        return Response(status_code=ACCEPTED)

    async def _resume(self, request: Request) -> Response:
        await self._herder.set_target(_name(request), TargetState.STARTED)
        return Response(status_code=ACCEPTED)

    async def _stop(self, request: Request) -> Response:
        await self._herder.set_target(_name(request), TargetState.STOPPED)
        return Response(status_code=NO_CONTENT)

    # --- offsets and topics ---------------------------------------------------------------------------------------

    async def _details(self, request: Request) -> Response:
        return JsonResponse(dict(await self._herder.details(_name(request))))

    async def _offsets(self, request: Request) -> Response:
        return JsonResponse(await self._herder.offsets(_name(request)))

    async def _alter_offsets(self, request: Request) -> Response:
        listed = (await _object(request)).get("offsets") or []
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise RestError(BAD_REQUEST, "offsets must be a list of objects")
        entries = [(each.get("partition"), each.get("offset")) for each in listed]
        return JsonResponse(await self._herder.alter_offsets(_name(request), entries))

    async def _reset_offsets(self, request: Request) -> Response:
        return JsonResponse(await self._herder.reset_offsets(_name(request)))

    async def _topics(self, request: Request) -> Response:
        return JsonResponse(self._herder.topics(_name(request)))

    async def _reset_topics(self, request: Request) -> Response:
        await self._herder.reset_topics(_name(request))
        return Response(status_code=ACCEPTED)

    # --- plugins and loggers --------------------------------------------------------------------------------------

    async def _plugins(self, request: Request) -> Response:
        found = await self._herder.plugins()
        if request.query_params.get("connectorsOnly", "true").lower() != "false":
            found = [plugin for plugin in found if plugin["type"] in ("source", "sink")]
        return JsonResponse(found)

    async def _plugin_keys(self, request: Request) -> Response:
        return JsonResponse(await self._herder.plugin_keys(request.path_params["plugin"]))

    async def _validate(self, request: Request) -> Response:
        config = _strings(await _object(request))
        return JsonResponse(await self._herder.validate(request.path_params["plugin"], config))

    async def _list_loggers(self, request: Request) -> Response:
        return JsonResponse(self._loggers.all())

    async def _logger(self, request: Request) -> Response:
        return JsonResponse(self._loggers.get(request.path_params["logger"]))

    async def _set_logger(self, request: Request) -> Response:
        name, level = request.path_params["logger"], checked((await _object(request)).get("level"))
        if request.query_params.get("scope", "worker").lower() == "cluster":
            await self._herder.set_cluster_logger(name, level)
            return Response(status_code=NO_CONTENT)
        return JsonResponse(self._loggers.set(name, level))


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


def _task(request: Request) -> int:
    text: str = request.path_params["task"]
    if not text.isascii() or not text.isdecimal():
        raise RestError(NOT_FOUND, f"there is no task {text!r}")
    return int(text)


async def _object(request: Request) -> dict[str, Any]:
    """Return the body, which must be a JSON object."""
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind != JSON:
        raise RestError(UNSUPPORTED, f"the body must be {JSON}, not {kind}")
    try:
        body = msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RestError(BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise RestError(BAD_REQUEST, "the body must be a JSON object")
    return body


def _strings(config: Any) -> dict[str, str]:
    """Return a configuration with every value as a string, as Kafka does."""
    if not isinstance(config, dict):
        raise RestError(BAD_REQUEST, "config must be an object of keys and values")
    made: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, dict | list):
            raise RestError(BAD_REQUEST, f"the value of {key} must be a string, a number or a boolean")
        if value is not None:
            made[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return made


def _location(request: Request, name: str) -> dict[str, str]:
    return {"Location": f"{request.url.scheme}://{request.url.netloc}/connectors/{quote(name)}"}
