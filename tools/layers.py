"""The rows of packages: each package imports only packages of the rows before its own.

``tests/tidy/test_layers.py`` checks it, and ``tools/architecture_svg.py`` draws it.
"""

from __future__ import annotations

from typing import Final

Row = tuple[str, ...]

SHARED: Final[tuple[Row, ...]] = (("model",), ("wire", "world", "security", "observe"), ("transport", "http"))
SERVER: Final[tuple[Row, ...]] = (
    ("storage",),
    ("raft",),
    ("metadata",),
    ("replication",),
    ("coordinator",),
    ("broker",),
)
CLIENT: Final[tuple[Row, ...]] = (
    ("client",),
    ("spark",),
    ("ops",),
    ("rest",),
    ("console", "connect", "registry", "streams"),
)
TOP: Final[Row] = ("cli", "testing")
