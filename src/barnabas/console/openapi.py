"""The OpenAPI document of the console, made from the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from barnabas.console.endpoint import Endpoint
from barnabas.model.version import __version__


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    bodies = [each.body for each in endpoints if each.body is not None]
    _, components = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(f"/api{each.path}", {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Barnabas console",
            "version": __version__,
            "description": "Changes need the session cookie and the header X-Csrf-Token; /api/session gives both.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"csrf": {"type": "apiKey", "in": "header", "name": "X-Csrf-Token"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ] + [
        {"name": each.name, "in": "query", "description": each.doc, "schema": {"type": each.kind}}
        for each in endpoint.parameters
    ]
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.handler.__name__,
        "responses": {"200": {"description": "OK"}, "default": {"description": "error_code and message"}},
    }
    if parameters:
        found["parameters"] = parameters
    if endpoint.body is not None:
        (schema,), _ = msgspec.json.schema_components([endpoint.body], ref_template="#/components/schemas/{name}")
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if endpoint.method != "GET":
        found["security"] = [{"csrf": []}]
    return found
