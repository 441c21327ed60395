"""Makes the fuzzers beside this file importable; they are programs and installed nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
