"""The built pages, held in memory: each file is looked up by its exact name, so no path can lead out of the bundle.

Every path that is not a file of the bundle is a page of the application, which the browser's code routes itself.
"""

from __future__ import annotations

import gzip
import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from barnabas.rest.errors import RestError

INDEX: Final = "index.html"
GZIP_BYTES_MIN: Final = 1024
NOT_BUILT: Final = "the pages of the console are not built: run `make console`"


class StaticFile(NamedTuple):
    media_type: str
    plain: bytes
    gzipped: bytes | None


class StaticFiles:
    def __init__(self) -> None:
        self._files = dict(_load(files("barnabas.console") / "static", ""))

    async def serve(self, request: Request) -> Response:
        name = request.path_params.get("path", "")
        found = self._files.get(name)
        if found is None:
            if name.startswith("assets/"):
                raise RestError(404, f"there is no {request.url.path}")
            found = self._files.get(INDEX)
        if found is None:
            raise RestError(503, NOT_BUILT)
        accepts = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Vary": "Accept-Encoding"}
        if accepts and found.gzipped is not None:
            return Response(found.gzipped, media_type=found.media_type, headers={**headers, "Content-Encoding": "gzip"})
        return Response(found.plain, media_type=found.media_type, headers=headers)


def _load(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for each in folder.iterdir():
        name = prefix + each.name
        if each.is_dir():
            found += _load(each, name + "/")
            continue
        content = each.read_bytes()
        media_type = mimetypes.guess_type(each.name)[0] or "application/octet-stream"
        packed = gzip.compress(content, 6, mtime=0) if len(content) >= GZIP_BYTES_MIN else None
        found.append((name, StaticFile(media_type, content, packed)))
    return found
