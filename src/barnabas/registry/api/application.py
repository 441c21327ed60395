"""All paths of the registry as one HTTP service."""

from __future__ import annotations

import ssl
from typing import Any, Final

from starlette.routing import Mount, Route

from barnabas.registry.api import schemas, settings, subjects
from barnabas.registry.api.forwarding import by_leader
from barnabas.registry.api.requests import MEDIA_TYPE
from barnabas.registry.permissions import Permissions
from barnabas.registry.service import SchemaRegistry
from barnabas.rest.access import Access
from barnabas.rest.service import Limits, Service, Users

BODY_BYTES_MAX: Final = 4 * 1024 * 1024

_SUBJECT: Final = "/subjects/{subject:segment}"
_VERSION: Final = _SUBJECT + "/versions/{version:segment}"


def _routes() -> list[Any]:
    return [
        Route("/subjects", subjects.list_subjects),
        Route(_SUBJECT, subjects.look_up, methods=["POST"]),
        Route(_SUBJECT, by_leader(subjects.delete_subject), methods=["DELETE"]),
        Route(_SUBJECT + "/metadata", subjects.latest_with_metadata),
        Route(_SUBJECT + "/versions", subjects.list_versions),
        Route(_SUBJECT + "/versions", by_leader(subjects.register), methods=["POST"]),
        Route(_VERSION, subjects.get_version),
        Route(_VERSION, by_leader(subjects.delete_version), methods=["DELETE"]),
        Route(_VERSION + "/schema", subjects.get_version_text),
        Route(_VERSION + "/referencedby", subjects.list_referrers),
        Route(_VERSION + "/referencedBy", subjects.list_referrers),
        Route("/compatibility" + _VERSION, subjects.check, methods=["POST"]),
        Route("/compatibility" + _SUBJECT + "/versions", subjects.check, methods=["POST"]),
        Route("/schemas", schemas.list_schemas),
        Route("/schemas/types", schemas.list_types),
        Route("/schemas/ids/{id:segment}", schemas.get_schema),
        Route("/schemas/ids/{id:segment}/schema", schemas.get_schema_text),
        Route("/schemas/ids/{id:segment}/subjects", schemas.list_subjects),
        Route("/schemas/ids/{id:segment}/versions", schemas.list_versions),
        Route("/schemas/guids/{guid:segment}", schemas.get_by_guid),
        Route("/schemas/guids/{guid:segment}/ids", schemas.list_ids_of_guid),
        *_settings_routes("config", settings.get_config, settings.set_config, settings.delete_config),
        *_settings_routes("mode", settings.get_mode, settings.set_mode, settings.delete_mode),
    ]


def _settings_routes(name: str, get: Any, put: Any, delete: Any) -> list[Route]:
    found = []
    for path in (f"/{name}", f"/{name}/{{subject:segment}}"):
        found += [
            Route(path, get),
            Route(path, by_leader(put), methods=["PUT"]),
            Route(path, by_leader(delete), methods=["DELETE"]),
        ]
    return found


class RegistryService(Service):
    """The ASGI application of a registry."""

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        access: Access,
        users: Users | None = None,
        permissions: Permissions | None = None,
        peer_tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            "schema registry",
            [
                Route("/", settings.get_root),
                Route("/readyz", settings.get_ready),
                Route("/v1/metadata/id", settings.get_cluster),
                Route("/v1/metadata/version", settings.get_server_version),
                Route("/contexts", settings.list_contexts),
                Route("/contexts/{context:segment}", by_leader(settings.delete_context), methods=["DELETE"]),
                *_routes(),
                Mount("/contexts/{context:segment}", routes=_routes()),
            ],
            access=access,
            media_type=MEDIA_TYPE,
            users=users,
            limits=Limits(body_bytes=BODY_BYTES_MAX),
        )
        self.registry = registry
        self.permissions = permissions or Permissions()
        self.peer_tls = peer_tls
