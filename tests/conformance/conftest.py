"""Makes the harness at the top of the repository importable; it is a tool and installed nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
