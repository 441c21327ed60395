"""Stories in virtual time share what happens to a cluster (``cluster_story``), which is not installed anywhere."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
