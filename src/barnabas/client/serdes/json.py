"""JSON as Python's own module reads and writes it: dicts, lists, text, numbers, None.

Types are not checked here; ``structs.Struct`` has JSON of a type, and is several times as fast.
"""

from __future__ import annotations

import json
from typing import Any

from barnabas.client.serdes.serde import Place, Serde, undecodable, unencodable


class Json(Serde[Any]):
    def encode(self, content: Any, place: Place) -> bytes:
        try:
            return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise unencodable(content, place, error) from error

    def decode(self, data: bytes, place: Place) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise undecodable(data, place, error) from error
